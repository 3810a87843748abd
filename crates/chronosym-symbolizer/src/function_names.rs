//! Finds functions by their names, as logs write them.

use std::hash::BuildHasher;
use std::ops::Range;

use chronosym_symbols::demangle::demangle;
use chronosym_types::hash::RandomState;

/// The functions of one file, by hashes of their names.
#[derive(Debug, Default)]
pub(crate) struct FunctionNames {
    seed: RandomState,
    /// Sorted. A function has one element per form of its name.
    functions: Vec<(u64, u64, u64)>,
}

impl FunctionNames {
    /// Builds the table from names as the file has them, with their addresses. A function is found
    /// by this name, by the demangled name, and by the demangled name without parameters.
    pub(crate) fn new<'a>(functions: impl Iterator<Item = (&'a [u8], Range<u64>)>) -> Self {
        let mut names = Self::default();
        for (name, range) in functions {
            let Ok(name) = std::str::from_utf8(name) else {
                continue;
            };
            names.add(name, &range);
            // `f@@VERSION`, and `f.isra.0` and `f.cold`, whose suffixes some tools cut off.
            if let Some((plain, _)) = name.split_once('@').filter(|(plain, _)| !plain.is_empty()) {
                names.add(plain, &range);
            }
            if let Ok(readable) = demangle(name)
                && readable != name
            {
                names.add(&readable, &range);
                let plain = without_parameters(&readable);
                if plain != readable {
                    names.add(plain, &range);
                }
            }
        }
        names.functions.sort_unstable();
        names.functions.dedup();
        names
    }

    fn add(&mut self, name: &str, range: &Range<u64>) {
        self.functions
            .push((self.seed.hash_one(name), range.start, range.end));
    }

    /// Returns the address ranges of the functions with a name.
    pub(crate) fn find(&self, name: &str) -> Vec<Range<u64>> {
        let hash = self.seed.hash_one(name);
        let first = self.functions.partition_point(|(own, ..)| *own < hash);
        let functions = self.functions.iter().skip(first);
        let mut found: Vec<Range<u64>> = functions
            .take_while(|(own, ..)| *own == hash)
            .map(|&(_, start, end)| start..end)
            .collect();
        // Aliases of one function may have different sizes.
        found.dedup_by(|next, kept| {
            let is_same = next.start == kept.start;
            if is_same {
                kept.end = kept.end.max(next.end);
            }
            is_same
        });
        found
    }
}

/// Removes the parameters from a name such as `ns::f<int>(char) const`.
fn without_parameters(name: &str) -> &str {
    let name = name.strip_suffix(" const").unwrap_or(name);
    let Some(inner) = name.strip_suffix(')') else {
        return name;
    };
    let mut depth = 0_usize;
    let open = inner.char_indices().rev().find(|&(_, c)| {
        match c {
            ')' => depth = depth.saturating_add(1),
            '(' if depth == 0 => return true,
            '(' => depth = depth.saturating_sub(1),
            _ => {}
        }
        false
    });
    let front = open.and_then(|(at, _)| name.get(..at));
    front.filter(|front| !front.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_each_form_of_their_name() {
        let functions: [(&[u8], Range<u64>); 4] = [
            (b"_Z3wrki", 0x10..0x20),
            (b"f", 0x20..0x30),
            (b"f", 0x40..0x48),
            (b"memcpy@@GLIBC_2.14", 0x50..0x60),
        ];
        let names = FunctionNames::new(functions.into_iter());
        for name in ["_Z3wrki", "wrk(int)", "wrk"] {
            assert_eq!(
                names.find(name),
                vec![Range {
                    start: 0x10,
                    end: 0x20
                }],
                "{name}"
            );
        }
        assert_eq!(names.find("f"), [0x20..0x30, 0x40..0x48]);
        assert_eq!(
            names.find("memcpy"),
            vec![Range {
                start: 0x50,
                end: 0x60
            }]
        );
        assert_eq!(names.find("g"), []);
        assert_eq!(
            without_parameters("a::operator()(int) const"),
            "a::operator()"
        );
        assert_eq!(without_parameters("(x)"), "(x)");
    }
}
