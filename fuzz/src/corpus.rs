//! Inputs on disk: those that a run of libFuzzer kept (`corpus/`), and those that revealed a bug
//! (`tests/regressions/`).

use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder of inputs that libFuzzer kept for a target.
#[must_use]
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target)
}

/// Returns the folder of inputs that revealed a bug.
#[must_use]
pub fn regressions(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/regressions")
        .join(target)
}

/// Returns the files of a folder by name; none if there is no folder.
///
/// # Errors
///
/// A file cannot be read.
pub fn files(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let Ok(entries) = folder.read_dir() else {
        return Ok(Vec::new());
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, std::fs::read(entry.path())?));
    }
    files.sort();
    Ok(files)
}

/// The words of a dictionary in libFuzzer's format: a line `name="text"` each, bytes as `\xNN`, `#`
/// before a remark.
#[must_use]
pub fn words(dictionary: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("dictionaries")
        .join(format!("{dictionary}.dict"));
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(word).collect()
}

fn word(line: &str) -> Option<Vec<u8>> {
    let (name, text) = line.split_once('"')?;
    if name.starts_with('#') {
        return None;
    }
    let mut bytes = Vec::new();
    let mut rest = text.strip_suffix('"')?.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
                }
                plain => plain,
            },
            plain => plain,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_libfuzzer_does() {
        assert_eq!(word(r#"a="x\x00\"\\""#), Some(b"x\0\"\\".to_vec()));
        assert_eq!(word(r##"# "x""##), None);
        assert_eq!(word("a=x"), None);
    }

    #[test]
    fn every_dictionary_has_words() {
        for target in crate::TARGETS {
            let words = words(target.words);
            assert!(words.len() > 3, "{}: {}", target.words, words.len());
            assert!(
                words.iter().all(|word| !word.is_empty()),
                "{}",
                target.words
            );
        }
    }
}
