//! Rules of resolution have numbers: rules cited by code are in `docs/resolution.md`, and each rule
//! there has a test that names it. Types named in the glossary exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The numbers of the list items in the document.
fn documented() -> BTreeSet<u32> {
    let text = fs::read_to_string(root().join("docs/resolution.md")).expect("the document");
    let numbers = text.lines().filter_map(|line| {
        let (number, rest) = line.split_once(". **")?;
        (!rest.is_empty()).then(|| number.parse().ok()).flatten()
    });
    numbers.collect()
}

/// Rust sources below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "target" {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The numbers after `rule` or `rules` in the comments of a text: `rule 12`, `rules 1 to 7`, `rules
/// 8 and 9`.
fn cited(text: &str) -> BTreeSet<u32> {
    let mut numbers = BTreeSet::new();
    let comments = text.lines().filter_map(|line| line.split_once("//"));
    for (_, comment) in comments {
        let comment = comment.to_ascii_lowercase();
        for (at, _) in comment.match_indices("rule") {
            let rest = comment[at + 4..].trim_start_matches('s');
            let mut words = rest.split_whitespace();
            let mut last = None;
            let mut through = false;
            for word in words.by_ref() {
                let digits = word.trim_matches(|c: char| !c.is_ascii_digit());
                match digits.parse::<u32>() {
                    Ok(number) if through => numbers.extend(last.unwrap_or(number)..=number),
                    Ok(number) => {
                        numbers.insert(number);
                        last = Some(number);
                    }
                    Err(_) if last.is_none() || !matches!(word, "to" | "and" | "or") => break,
                    Err(_) => {}
                }
                through = word == "to";
            }
        }
    }
    numbers
}

fn cited_below(folder: &str) -> BTreeSet<u32> {
    let mut files = Vec::new();
    sources(&root().join(folder), &mut files);
    let own = Path::new(file!()).file_name();
    let files = files.iter().filter(|file| file.file_name() != own);
    files
        .flat_map(|file| cited(&fs::read_to_string(file).expect("a source")))
        .collect()
}

#[test]
fn citations_are_read() {
    assert_eq!(cited("// rules 1 to 3, and more"), [1, 2, 3].into());
    assert_eq!(cited("//! (rules 8 and 10)."), [8, 10].into());
    assert_eq!(cited("let rule = 5; // no rule"), [].into());
    assert_eq!(cited("/// Rule 19: without 2"), [19].into());
}

#[test]
fn each_citation_leads_to_a_rule() {
    let documented = documented();
    assert!(documented.len() >= 20, "{documented:?}");
    let lost: Vec<_> = ["crates", "tests", "benches"]
        .into_iter()
        .flat_map(cited_below)
        .filter(|rule| !documented.contains(rule))
        .collect();
    assert!(
        lost.is_empty(),
        "cited but not in docs/resolution.md: {lost:?}"
    );
}

#[test]
fn each_rule_has_a_test_that_names_it() {
    let named = cited_below("tests");
    let without: Vec<_> = documented().difference(&named).copied().collect();
    assert!(without.is_empty(), "no test names these rules: {without:?}");
}

/// The types in the last column of the glossary's tables; those of the language start in lower
/// case.
fn glossary_types(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    let last = rows.filter_map(|row| row.split('|').nth(4));
    let types = last.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    types
        .filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
        .collect()
}

/// The types that a source defines, with a keyword or as the first line of a macro's body.
fn defined(text: &str) -> impl Iterator<Item = String> {
    const KEYWORDS: [&str; 4] = ["struct ", "enum ", "trait ", "type "];
    let code = text.lines().map(str::trim_start);
    let code = code.filter(|line| !line.starts_with("//"));
    code.filter_map(|line| {
        let keyword = KEYWORDS
            .iter()
            .find_map(|word| Some(line.find(word)? + word.len()));
        let name = &line[keyword.or(line.ends_with(" {").then_some(0))?..];
        let end = name.find(|c: char| !c.is_alphanumeric());
        Some(name[..end.unwrap_or(name.len())].to_owned())
    })
}

#[test]
fn each_type_of_the_glossary_exists() {
    let text = fs::read_to_string(root().join("docs/glossary.md")).expect("the glossary");
    let types = glossary_types(&text);
    assert!(types.len() > 50, "{types:?}");
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let read = |file| fs::read_to_string(file).expect("a source");
    let defined: BTreeSet<_> = files
        .iter()
        .map(read)
        .flat_map(|text| defined(&text).collect::<Vec<_>>())
        .collect();
    let missing: Vec<_> = types
        .iter()
        .filter(|name| !defined.contains(**name))
        .collect();
    assert!(missing.is_empty(), "no such types: {missing:?}");
}
