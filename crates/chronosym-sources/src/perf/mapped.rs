//! Executable mappings of processes, for recordings that are joined with a perf.data.

use chronosym_core::{file_name, is_anonymous};

/// Executable mappings that a process had at any time.
#[derive(Debug, Default)]
pub(crate) struct MappedProcess {
    pub files: Ranges,
    /// Memory without a named file, such as that of .NET's double mapping.
    pub anonymous: Ranges,
    /// Whether the .NET or Mono runtime is mapped.
    pub runs_dotnet: bool,
    /// Whether a managed image is mapped.
    pub has_assemblies: bool,
    /// Whether it is in another pid namespace than the machine's initial one, as far as that was
    /// recorded.
    pub is_contained: bool,
}

impl MappedProcess {
    pub fn map(&mut self, path: &str, start: u64, size: u64) {
        let name = file_name(path);
        self.runs_dotnet |= ["libcoreclr.so", "libmonosgen-2.0.so"].contains(&name);
        self.has_assemblies |= name.ends_with(".dll");
        let ranges = match is_anonymous(path) {
            true => &mut self.anonymous,
            false => &mut self.files,
        };
        ranges.0.push((start, start.saturating_add(size)));
    }

    /// Returns how many of the addresses are in its mappings.
    pub fn count(&self, addresses: &[u64]) -> usize {
        self.files.count(addresses) + self.anonymous.count(addresses)
    }

    /// Prepares the ranges for [`Ranges::count`].
    pub fn finish(&mut self) {
        self.files.sort();
        self.anonymous.sort();
    }
}

/// Ranges of addresses.
#[derive(Debug, Default)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Sorts the ranges and merges those that overlap.
    fn sort(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|next, last| {
            let overlaps = next.0 <= last.1;
            if overlaps {
                last.1 = last.1.max(next.1);
            }
            overlaps
        });
    }

    /// Returns how many of the addresses are in a range.
    pub fn count(&self, addresses: &[u64]) -> usize {
        let is_in = |&&address: &&u64| {
            let after = self.0.partition_point(|&(start, _)| start <= address);
            after > 0 && address < self.0[after - 1].1
        };
        addresses.iter().filter(is_in).count()
    }
}
