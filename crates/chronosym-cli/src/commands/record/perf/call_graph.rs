//! How `perf` finds the callers in a process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use chronosym_symbols::mmap::FileData;
use chronosym_symbols::unwind::UnwindTable;

/// Bytes of `/proc/PID/maps`, and images, that are read.
const MAX_MAPS: u64 = 16 << 20;
const MAX_IMAGES: usize = 128;

/// Whether less than half of the native code of processes has frame pointers: then callers are
/// found by copies of the stack, if at all.
pub fn needs_stacks(pids: &[u32]) -> bool {
    let images: BTreeSet<PathBuf> = pids.iter().flat_map(|&pid| images(pid)).collect();
    let (mut all, mut with_pointer) = (0_u64, 0_u64);
    for image in images.iter().take(MAX_IMAGES) {
        // Others have no unwind tables: managed images, files that are gone.
        let table = FileData::map(image).and_then(UnwindTable::parse);
        if let Ok(counted) = table.map(|table| table.frame_pointers()) {
            all = all.saturating_add(counted.functions);
            with_pointer = with_pointer.saturating_add(counted.with_pointer);
        }
    }
    with_pointer < all / 2
}

/// The files that a process has mapped with a right to execute, through its root.
fn images(pid: u32) -> Vec<PathBuf> {
    let mut text = String::new();
    let file = File::open(format!("/proc/{pid}/maps"));
    if let Ok(file) = file {
        _ = file.take(MAX_MAPS).read_to_string(&mut text);
    }
    let root = format!("/proc/{pid}/root");
    let paths = text.lines().filter_map(executable);
    let inside = paths.map(|path| path.strip_prefix('/').unwrap_or(path));
    inside.map(|path| Path::new(&root).join(path)).collect()
}

/// The path in a line of `maps`, if code is mapped.
fn executable(line: &str) -> Option<&str> {
    let path = line.get(line.find('/')?..)?;
    let rights = line.split_whitespace().nth(1)?;
    rights.contains('x').then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_files_is_found() {
        let code = "7f00-7f10 r-xp 00001000 fe:00 17      /usr/lib/lib c.so";
        assert_eq!(executable(code), Some("/usr/lib/lib c.so"));
        assert_eq!(executable(&code.replace("r-xp", "rw-p")), None);
        assert_eq!(executable("7f00-7f10 r-xp 0 00:00 0 [vdso]"), None);
        // This process has code.
        assert!(!images(std::process::id()).is_empty());
    }
}
