//! Source text around a line.

use std::fs::File;
use std::io::{self, Read, Write};

use chronosym_types::escape::terminal;

use crate::store::local_path;

/// Maximum size of a source file in bytes.
const MAX_SIZE: u64 = 16 << 20;

/// Prints a line and those around it, `count` in total, as llvm-symbolizer does; nothing if the file
/// is not available at its absolute path.
///
/// # Errors
/// Those of the writer.
pub fn print(out: &mut impl Write, path: &str, line: u32, count: u32) -> io::Result<()> {
    let Some(text) = read(path).filter(|_| line > 0 && count > 0) else {
        return Ok(());
    };
    let text = String::from_utf8_lossy(&text);
    let first = line.saturating_sub(count / 2).max(1);
    let last = first.saturating_add(count.saturating_sub(1));
    // LLVM rounds the logarithm up.
    let width = match last {
        1 => 0,
        last => last.saturating_sub(1).to_string().len(),
    };
    let numbered = (1..=last).zip(text.lines());
    for (number, text) in numbered.skip_while(|(number, _)| *number < first) {
        let mark = if number == line { " >: " } else { "  : " };
        write!(out, "{number:width$}{mark}")?;
        for (at, part) in text.split('\t').enumerate() {
            out.write_all(if at > 0 { b"\t" } else { b"" })?;
            out.write_all(terminal(part).as_bytes())?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn read(path: &str) -> Option<Vec<u8>> {
    let path = local_path(path).ok()?;
    let is_small = |data: &std::fs::Metadata| data.is_file() && data.len() <= MAX_SIZE;
    path.metadata().ok().filter(is_small)?;
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_SIZE).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(path: &str, line: u32, count: u32) -> String {
        let mut out = Vec::new();
        print(&mut out, path, line, count).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_around_a_line_are_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.c");
        std::fs::write(&path, "one\n\ttwo\r\n\x1b[31mthree\nfour").unwrap();
        let path = path.to_str().unwrap();
        assert_eq!(printed(path, 2, 2), "1  : one\n2 >: \ttwo\n");
        let last = printed(path, 4, 3);
        assert!(
            last.starts_with("3  : ") && last.ends_with("\n4 >: four\n"),
            "{last}"
        );
        assert!(!last.contains('\x1b'), "{last:?}");
        assert_eq!(printed(path, 1, 1), "1 >: one\n");
        assert!(printed(path, 1, 20).starts_with(" 1 >: one\n 2  : "));
        for (line, count) in [(0, 3), (9, 1), (1, 0), (u32::MAX, u32::MAX)] {
            let text = printed(path, line, count);
            assert!(!text.contains(">:"), "{text}");
        }
    }

    #[test]
    fn only_files_of_this_machine_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().to_str().unwrap();
        for path in [folder, "a.c", "//server/a.c", "/dev/zero", "/\0", ""] {
            assert_eq!(printed(path, 1, 1), "", "{path:?}");
        }
    }
}
