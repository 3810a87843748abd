//! Checks the processor and operating system of precompiled code against those of the trace's
//! machine.

use chronosym_pdb::pe::{Machine, PeImage, TargetOs};

use crate::files::FileError;

/// The difference between a file of the wanted identity and the one in the trace.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Unfit {
    #[error("it is for {file}, the trace is of {trace}")]
    Target { file: Target, trace: Target },
    #[error("it states no target")]
    NoTarget,
    #[error("its time stamp differs")]
    TimeStamp,
    #[error("its perf map differs")]
    PerfMap,
    #[error("its sections are not mapped like this")]
    Sections,
    #[error("the image's headers are not mapped where they should be")]
    Headers,
    #[error("it names code outside of the mapped section")]
    Outside,
    #[error("it is empty")]
    Empty,
    #[error("its methods are not at the addresses in the trace")]
    Methods,
    #[error("it is not the file that ran")]
    NotWhatRan,
    #[error(
        "it has no section addresses, and contiguous sections would end at {assumed:#x}, but the image ends at {size:#x}"
    )]
    Size { assumed: u32, size: u64 },
    #[error(transparent)]
    File(#[from] FileError),
}

/// Operating system and processor, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    pub os: Option<TargetOs>,
    pub machine: Option<Machine>,
}

impl Target {
    /// Parses the description in a trace, such as `Linux x64`; ETW traces name the system only.
    pub fn of_trace(text: Option<&str>) -> Self {
        let mut target = Target::default();
        let words = text.unwrap_or_default().split([' ', '-']);
        for word in words.map(str::to_ascii_lowercase) {
            match word.as_str() {
                "windows" => target.os = Some(TargetOs::Windows),
                "linux" => target.os = Some(TargetOs::Linux),
                "macos" | "osx" | "darwin" => target.os = Some(TargetOs::Apple),
                "freebsd" => target.os = Some(TargetOs::FreeBsd),
                "x64" | "amd64" | "x86_64" => target.machine = Some(Machine::X64),
                "x86" | "i386" => target.machine = Some(Machine::X86),
                "arm64" | "aarch64" => target.machine = Some(Machine::Arm64),
                "arm" | "arm32" => target.machine = Some(Machine::Arm),
                _ => {}
            }
        }
        target
    }

    /// Returns the target of a precompiled image. Images without native code run on any machine and
    /// have none.
    pub fn of_image(image: &PeImage<'_>) -> Self {
        match image.cor_header() {
            Some(cor) if cor.managed_native_header.size > 0 => Target::of_code(image),
            _ => Target::default(),
        }
    }

    /// Returns the target of an image that is known to be precompiled.
    pub fn of_code(image: &PeImage<'_>) -> Self {
        Target {
            os: Some(image.target_os()),
            machine: Some(image.machine()),
        }
    }

    /// Returns whether both may be the same, as far as both are known.
    pub fn agrees(self, other: Target) -> bool {
        fn same<T: PartialEq>(a: Option<T>, b: Option<T>) -> bool {
            a.zip(b).is_none_or(|(a, b)| a == b)
        }
        same(self.os, other.os) && same(self.machine, other.machine)
    }

    /// Checks the target of a file against that of the trace.
    ///
    /// # Errors
    ///
    /// The difference.
    pub fn must_agree(self, trace: Target) -> Result<(), Unfit> {
        let file = self;
        file.agrees(trace)
            .then_some(())
            .ok_or(Unfit::Target { file, trace })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.os, self.machine) {
            (Some(os), Some(machine)) => write!(f, "{os:?} {machine:?}"),
            (Some(os), None) => write!(f, "{os:?}"),
            (None, Some(machine)) => write!(f, "{machine:?}"),
            (None, None) => f.write_str("any machine"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_traces_and_images_are_compared() {
        let linux = Target::of_trace(Some("Linux x64"));
        assert_eq!(linux.to_string(), "Linux X64");
        let windows = Target::of_trace(Some("Windows 6.1 build 7601"));
        assert_eq!(
            (windows.os, windows.machine),
            (Some(TargetOs::Windows), None)
        );
        assert!(!linux.agrees(windows));
        let of = |os, machine| Target {
            os: Some(os),
            machine: Some(machine),
        };
        assert!(windows.agrees(of(TargetOs::Windows, Machine::Arm64)));
        assert!(!linux.agrees(of(TargetOs::Linux, Machine::Arm64)));
        assert!(linux.agrees(of(TargetOs::Linux, Machine::X64)));
        assert!(Target::of_trace(None).agrees(linux));
        assert!(linux.agrees(Target::default()));
    }
}
