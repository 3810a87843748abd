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
        // C callers cannot match or build types by their fields' names; structures grow by their
        // size.
        let has_other_callers = ["/chronosym-cli/", "/chronosym-c/"]
            .iter()
            .any(|of_crate| path.contains(of_crate));
        path.contains("/src/") && !has_other_callers
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

/// Phrases that read as translated. CONTRIBUTING.md says how prose is written, docs/glossary.md
/// which terms it uses.
const TRANSLATED: [&str; 47] = [
    "anew",
    "are asked for",
    "are said",
    "at hand",
    "at the most",
    "came of",
    "comes of",
    "each of them",
    "for whom",
    "foretell",
    "goes round",
    "handed out",
    "handed over",
    "hands out",
    "hands over",
    "has it that",
    "held to",
    "in the making",
    "is asked for",
    "is put to",
    "is said",
    "it is told",
    "lets expect",
    "makes no sense",
    "nobody",
    "over and over",
    "so-and-so",
    "speak of",
    "speaks of",
    "stand at",
    "stands at",
    "stands there",
    "stood",
    "symbolise",
    "symboliser",
    "tell apart",
    "tell of",
    "tells",
    "tells apart",
    "tells of",
    "that are asked",
    "that is asked",
    "told of",
    "what is left",
    "what stands",
    "what stood",
    "whoever",
];

/// Returns each line on which one of the phrases starts, with the phrase. A phrase may continue on
/// the next line. If `is_code`, only comments are searched.
fn translated(text: &str, is_code: bool) -> Vec<(usize, &'static str)> {
    let prose = |line: &str| match is_code {
        true => line
            .trim_start()
            .strip_prefix("//")
            .map(|rest| rest.trim_start_matches(['/', '!']).trim().to_lowercase()),
        false => Some(line.trim().to_lowercase()),
    };
    let lines: Vec<String> = text
        .lines()
        .map(|line| prose(line).unwrap_or_default())
        .collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1).map_or("", String::as_str);
        let both = format!("{line} {next}");
        for phrase in TRANSLATED {
            let is_word = both.match_indices(phrase).any(|(at, _)| {
                let is_end = |part: Option<char>| part.is_none_or(|c| !c.is_alphanumeric());
                at < line.len()
                    && is_end(both[..at].chars().next_back())
                    && is_end(both[at + phrase.len()..].chars().next())
            });
            if is_word {
                found.push((index + 1, phrase));
            }
        }
    }
    found
}

#[test]
fn translated_phrases_are_found() {
    let source = "/// Reads it anew.\nlet anew = \"anew\";\n    // Pages: one is asked\n    // for, and every one.\n";
    assert_eq!(translated(source, true), [(1, "anew"), (3, "is asked for")]);
    assert_eq!(
        translated("Nobody's\ntime, for every page.", false),
        [(1, "nobody")]
    );
}

#[test]
fn prose_reads_as_written_by_an_engineer() {
    let root = root();
    let mut texts = Vec::new();
    for folder in ["crates", "tests", "benches", "fuzz"] {
        let mut sources = Vec::new();
        files(&root.join(folder), ".rs", &mut sources);
        texts.extend(sources.into_iter().map(|(path, text)| {
            // The texts of options are help, too.
            let is_help = path
                .to_string_lossy()
                .replace('\\', "/")
                .contains("chronosym-cli/src/args/");
            (path, text, !is_help)
        }));
    }
    let mut documents = Vec::new();
    files(&root.join("docs"), ".md", &mut documents);
    documents.retain(|(path, _)| !path.ends_with("docs/glossary.md"));
    for name in [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
    ] {
        let path = root.join(name);
        let text = fs::read_to_string(&path).unwrap();
        documents.push((path, text));
    }
    texts.extend(
        documents
            .into_iter()
            .map(|(path, text)| (path, text, false)),
    );
    let mut found = Vec::new();
    for (path, text, is_code) in &texts {
        let path = path.strip_prefix(&root).unwrap().display();
        found.extend(
            translated(text, *is_code)
                .into_iter()
                .map(|(line, phrase)| format!("{path}:{line}: {phrase}")),
        );
    }
    assert!(
        found.is_empty(),
        "reads as translated:\n{}",
        found.join("\n")
    );
}
