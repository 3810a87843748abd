//! The README's table of events is the catalog.

#[expect(dead_code, reason = "the names and texts of cases are of other tests")]
mod cases;

use std::fmt::Write as _;
use std::ops::RangeInclusive;

use cases::{Case, raw};
use chronosym_events::{EventKey, EventSchema, Value, catalog};

const BEGIN: &str = "<!-- events: made by the test `the_table_is_the_catalog` -->\n";
const END: &str = "<!-- end of events -->";

/// Returns the names of a payload's fields; those of a list's first element follow the list's.
fn names(case: &Case, version: u32, end: Option<usize>) -> Vec<String> {
    let schema = EventSchema::new((case.key)(version));
    let payload = (case.encode)(version, 8);
    let fields = raw(&schema, &payload[..end.unwrap_or(payload.len())], 8).fields();
    let name = |(name, value): (&str, &Value<'_>)| match value {
        Value::Array(items) => match items.first() {
            Some(Value::Object(inner)) => {
                let inner: Vec<_> = inner.iter().map(|(name, _)| name).collect();
                format!("{name}[{}]", inner.join(", "))
            }
            _ => name.to_owned(),
        },
        _ => name.to_owned(),
    };
    fields.unwrap().unwrap().iter().map(name).collect()
}

/// The fields of the newest version, with the version that brought each.
fn fields(case: &Case, versions: RangeInclusive<u32>) -> Vec<String> {
    let newest = *versions.end();
    let has = |version, end, name: &String| names(case, version, end).contains(name);
    let field = |name: String| {
        let since = versions.clone().find(|&at| has(at, None, &name));
        let mut ends = (case.may_end)(newest, 8).into_iter();
        match since {
            _ if ends.any(|end| !has(newest, Some(end), &name)) => format!("{name} (optional)"),
            Some(version) if version > *versions.start() => format!("{name} (V{version})"),
            _ => name,
        }
    };
    names(case, newest, None).into_iter().map(field).collect()
}

/// The table's rows, one an event type, grouped by who logs it.
fn table() -> String {
    let mut text = String::new();
    let mut group = String::new();
    let cases = cases::all();
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
        let case = cases.iter().find(|case| (case.key)(newest) == entry.key);
        let fields = fields(
            case.expect("a case for each"),
            entry.oldest_version..=newest,
        );
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
