//! Names of files with code.

/// Their endings, in lower case.
const ENDINGS: &[&str] = &[".so", ".dll", ".exe", ".dylib", ".sys", ".ko", ".node"];

/// Returns whether a file has the name of one with code, such as `app.exe` or `libc.so.6`.
pub fn is_code_file(name: &str) -> bool {
    let lower = name.to_lowercase();
    ENDINGS.iter().any(|ending| lower.ends_with(ending)) || lower.contains(".so.")
}
