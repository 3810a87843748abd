//! The table of limits in docs/security.md is that of `Limits`: each with its option and its
//! default.

use std::collections::BTreeMap;
use std::path::Path;

use chronosym::{Budget, Limits};

/// The limits by name, as the library has them.
fn defaults() -> BTreeMap<String, u64> {
    let text = format!("{:?}", Limits::default());
    let fields = text.trim_start_matches("Limits {").trim_end_matches('}');
    fields
        .split(',')
        .map(|field| {
            let (name, value) = field.split_once(':').unwrap();
            let value = match (name.trim(), value.trim()) {
                // It depends on the size of the input; this is the minimum.
                ("memory", "None") => Budget::of_input(Some(0)).bytes(),
                // It depends on the output; this is that of a report.
                ("tree_nodes", "None") => Limits::REPORT_NODES.into(),
                (_, value) => value.parse().unwrap(),
            };
            (name.trim().to_owned(), value)
        })
        .collect()
}

/// A number as the document writes it: `64 GiB`, `1,500,000`.
fn number(text: &str) -> Option<u64> {
    let mut words = text.split([' ', ',']).peekable();
    let first: u64 = words.next()?.parse().ok()?;
    match words.peek() {
        Some(&"GiB") => Some(first << 30),
        Some(&"MiB") => Some(first << 20),
        Some(&"KiB") => Some(first << 10),
        _ => {
            let digits = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',');
            let digits: String = digits.filter(char::is_ascii_digit).collect();
            digits.parse().ok()
        }
    }
}

#[test]
fn each_limit_is_documented_with_its_default() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/security.md");
    let text = std::fs::read_to_string(path).unwrap();
    let mut documented = BTreeMap::new();
    for row in text.lines().filter_map(|line| line.strip_prefix("| `")) {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [name, option, default, _] = cells[..] else {
            continue;
        };
        let name = name.trim_end_matches('`');
        assert_eq!(option, format!("`--max-{}`", name.replace('_', "-")));
        documented.insert(name.to_owned(), number(default).unwrap());
    }
    assert_eq!(documented, defaults(), "left: docs/security.md");
}
