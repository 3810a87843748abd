//! Conventions of the public interface and of the prose that scripts can check.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Appends the files below a folder whose names have an ending, with their text.
fn files(folder: &Path, end: &str, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, end, found);
        } else if path.to_string_lossy().ends_with(end) {
            let text = fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

/// Returns the declarations of types that callers could match exhaustively or build from all their
/// fields, and that have neither `#[non_exhaustive]` nor a comment `Closed` with a reason.
fn fixed_types(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap();
    let lines: Vec<&str> = source.lines().collect();
    let mut fixed = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let declaration = line.trim();
        let is_enum = declaration.starts_with("pub enum ");
        if !declaration.ends_with('{')
            || declaration.contains('$')
            || !(is_enum || declaration.starts_with("pub struct "))
        {
            continue;
        }
        let of_item = lines[..at].iter().rev().map(|line| line.trim());
        let above = of_item.take_while(|line| !line.is_empty() && !line.ends_with('}'));
        let can_grow = above
            .filter(|line| line.starts_with("///") || line.starts_with("#["))
            .any(|line| line.contains("non_exhaustive") || line.contains("losed"));
        let body = lines[at + 1..].iter().map(|line| line.trim());
        let mut fields = body
            .take_while(|line| *line != "}")
            .filter(|line| !line.starts_with("//") && !line.starts_with('#') && line.contains(':'));
        if !can_grow && (is_enum || fields.all(|field| field.starts_with("pub "))) {
            fixed.push(declaration.to_owned());
        }
    }
    fixed
}

#[test]
fn types_that_cannot_grow_are_found() {
    let source = "/// A.\npub enum A {\n    B,\n}\n\n/// C.\n///\n/// Closed: because.\npub enum C {\n}\n\n\
                  #[non_exhaustive]\npub struct D {\n    pub e: u8,\n}\n\npub struct F {\n    /// g\n    pub g: u8,\n}\n\n\
                  pub struct H {\n    pub i: u8,\n    j: u8,\n}\n";
    assert_eq!(fixed_types(source), ["pub enum A {", "pub struct F {"]);
}

#[test]
fn public_types_can_grow_unless_closed_on_purpose() {
    let mut sources = Vec::new();
    files(&root().join("crates"), ".rs", &mut sources);
    let of_libraries = sources.iter().filter(|(path, _)| {
        let path = path.to_string_lossy().replace('\\', "/");
        path.contains("/src/") && !path.contains("/chronosym-cli/")
    });
    let mut fixed = Vec::new();
    for (path, text) in of_libraries {
        fixed.extend(
            fixed_types(text)
                .into_iter()
                .map(|it| format!("{}: {it}", path.display())),
        );
    }
    assert!(
        fixed.is_empty(),
        "neither growing nor closed:\n{}",
        fixed.join("\n")
    );
}
