//! The README's table of events is the catalog.

use std::fmt::Write as _;

use chronosym_events::{EventKey, catalog};

const BEGIN: &str = "<!-- events: made by the test `the_table_is_the_catalog` -->\n";
const END: &str = "<!-- end of events -->";

/// The table's rows, one an event type, grouped by who logs it.
fn table() -> String {
    let mut text = String::new();
    let mut group = String::new();
    for entry in catalog() {
        let (owner, id, newest) = match &entry.key {
            EventKey::Manifest {
                provider,
                id,
                version,
            } => (provider.to_string(), *id, *version),
            EventKey::Classic {
                class,
                opcode,
                version,
            } => (
                format!("class {class}"),
                (*opcode).into(),
                (*version).into(),
            ),
            EventKey::Named { .. } => continue,
        };
        if owner != group {
            write!(
                text,
                "\n**{owner}**\n\n| id | event | versions | fields |\n|---|---|---|---|\n"
            )
            .unwrap();
            group = owner;
        }
        let versions = if entry.oldest_version == newest {
            format!("{newest}")
        } else {
            format!("{}–{newest}", entry.oldest_version)
        };
        let fields: Vec<_> = entry
            .fields
            .iter()
            .map(|f| {
                if f.when.is_empty() {
                    f.name.clone()
                } else {
                    format!("{} ({})", f.name, f.when)
                }
            })
            .collect();
        writeln!(
            text,
            "| {id} | {} | {versions} | {} |",
            entry.name,
            fields.join(", ")
        )
        .unwrap();
    }
    text
}

/// With `UPDATE_README` set the test writes the table instead.
#[test]
fn the_table_is_the_catalog() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (before, rest) = readme
        .split_once(BEGIN)
        .expect("the README has the table's begin");
    let (stands, after) = rest
        .split_once(END)
        .expect("the README has the table's end");
    let due = format!("{}\n", table());
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{due}{END}{after}")).unwrap();
        return;
    }
    assert!(
        stands == due,
        "the table differs from the catalog; UPDATE_README=1 cargo test -p chronosym-events writes it"
    );
}
