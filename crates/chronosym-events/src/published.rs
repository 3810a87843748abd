//! Names and fields of events without a typed decoder, as Microsoft publishes them.
//!
//! The tables are text; each states at its start how to read it.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use crate::kernel::classes;
use crate::{Field, FieldType, Guid, Provider};

static CLR: LazyLock<Table> = LazyLock::new(|| parse(include_str!("published/clr.txt")));
static WINDOWS: LazyLock<Table> = LazyLock::new(|| parse(include_str!("published/windows.txt")));
static KERNEL: LazyLock<Table> = LazyLock::new(|| parse(include_str!("published/kernel.txt")));

/// The events of each section, by id.
type Table = Vec<(&'static str, Vec<Event>)>;

/// An event of a table.
#[derive(Clone, Copy, Debug)]
struct Event {
    id: u32,
    name: &'static str,
    /// The table's text from its fields on.
    fields: &'static str,
}

/// The published layout of an event.
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) name: Option<Cow<'static, str>>,
    /// The fields of the newest published version that is not newer than the event's.
    pub(crate) fields: Option<Arc<[Field]>>,
}

/// Returns a manifest event without a typed decoder.
pub(crate) fn manifest(provider: &Provider, id: u32, version: u32) -> Option<Published> {
    let provider = provider.canonical().name()?;
    let event = look_up(&CLR, provider, id).or_else(|| look_up(&WINDOWS, provider, id))?;
    Some(Published {
        name: Some(event.name.into()),
        fields: fields(event.fields, version),
    })
}

/// Returns the id of a manifest event without a typed decoder, by its name.
pub(crate) fn manifest_id(provider: &Provider, name: &str) -> Option<u32> {
    let mut events = section(&CLR, provider.canonical().name()?).iter();
    Some(events.find(|event| event.name == name)?.id)
}

/// Returns a classic event without a typed decoder; its name has the class in front: `DiskIO/Read`.
pub(crate) fn classic(class: Guid, opcode: u8, version: u16) -> Option<Published> {
    let class = classes::name(class)?;
    let event = look_up(&KERNEL, class, opcode.into());
    let name = match event.map(|event| event.name) {
        Some("") => class.into(),
        Some(name) => format!("{class}/{name}").into(),
        None => format!("{class}/Opcode({opcode})").into(),
    };
    Some(Published {
        name: Some(name),
        fields: event.and_then(|event| fields(event.fields, version.into())),
    })
}

fn section<'t>(table: &'t Table, name: &str) -> &'t [Event] {
    let section = table.iter().find(|(own, _)| *own == name);
    section.map_or(&[], |(_, events)| events)
}

fn look_up<'t>(table: &'t Table, name: &str, id: u32) -> Option<&'t Event> {
    let events = section(table, name);
    let index = events.binary_search_by_key(&id, |event| event.id).ok()?;
    events.get(index)
}

fn parse(text: &'static str) -> Table {
    let mut table = Table::new();
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        rest = after;
        if line.starts_with([' ', '#']) {
            continue;
        }
        let line = line.trim_end();
        let mut words = line.split(' ');
        if let Some(name) = line.strip_prefix('[') {
            table.push((name.trim_end_matches(']'), Vec::new()));
        } else if let Some(Ok(id)) = words.next().map(str::parse)
            && let Some((_, events)) = table.last_mut()
        {
            let name = words.next().unwrap_or_default();
            let same = words.nth(1).and_then(|id| id.parse().ok());
            let same = same.and_then(|id: u32| events.iter().find(|event| event.id == id));
            let fields = same.map_or(after, |event| event.fields);
            events.push(Event { id, name, fields });
        }
    }
    table
}

/// Returns the fields at the start of a table's text, in the newest layout not newer than
/// `version`.
fn fields(text: &str, version: u32) -> Option<Arc<[Field]>> {
    let indented = text.lines().take_while(|line| line.starts_with(' '));
    let layouts: String = indented.collect();
    let mut layouts = layouts.split('@').filter_map(|layout| {
        let (first, fields) = layout.split_once(' ')?;
        (first.parse::<u32>().ok()? <= version).then_some(fields)
    });
    let mut tokens = layouts.next_back()?.split_whitespace();
    Some(read(&mut tokens, version).0.into())
}

/// Reads fields up to the end, or up to the `}` of their struct; also returns the text after the
/// brace.
fn read<'t>(tokens: &mut dyn Iterator<Item = &'t str>, version: u32) -> (Vec<Field>, &'t str) {
    let mut fields = Vec::new();
    while let Some(token) = tokens.next() {
        if let Some(suffix) = token.strip_prefix('}') {
            return (fields, suffix);
        }
        let (name, ty) = token.split_once(':').unwrap_or_default();
        let (ty, suffix) = ty.split_at(ty.find(['[', '>']).unwrap_or(ty.len()));
        let (ty, suffix) = match ty {
            "{" => {
                let (members, suffix) = read(tokens, version);
                (FieldType::Object(members), suffix)
            }
            _ => (number_or_text(ty), suffix),
        };
        let (count, since) = suffix.split_once(">=").unwrap_or((suffix, "0"));
        let ty = match count.strip_prefix('[').and_then(|c| c.strip_suffix(']')) {
            Some(count) => counted(ty, count, &fields),
            None => ty,
        };
        if since.parse().is_ok_and(|since: u32| since <= version) {
            fields.push(Field::new(name, ty));
        }
    }
    (fields, "")
}

/// Returns a type by its name in a table; `^` in front aligns it.
fn number_or_text(name: &str) -> FieldType {
    match name.strip_prefix('^') {
        Some(name) => FieldType::Aligned(Box::new(scalar(name))),
        None => scalar(name),
    }
}

fn scalar(name: &str) -> FieldType {
    match name {
        "u8" => FieldType::U8,
        "u16" => FieldType::U16,
        "u32" => FieldType::U32,
        "u64" => FieldType::U64,
        "i8" => FieldType::I8,
        "i32" => FieldType::I32,
        "i64" => FieldType::I64,
        "f64" => FieldType::F64,
        "x16" => FieldType::Hex16,
        "x32" => FieldType::Hex32,
        "x64" => FieldType::Hex64,
        "filetime" => FieldType::FileTime,
        "sid" => FieldType::Sid,
        "bool32" => FieldType::Bool32,
        "ptr" => FieldType::Pointer,
        "guid" => FieldType::Guid,
        "utf16" => FieldType::Utf16,
        "ansi" => FieldType::Ansi,
        "ipv4" => FieldType::Ipv4,
        "ipv6" => FieldType::Ipv6,
        "port" => FieldType::Port,
        "bytes" => FieldType::Bytes(1),
        _ => FieldType::Unknown,
    }
}

/// Returns a type with a count: a number, or the name of an earlier field.
fn counted(ty: FieldType, count: &str, earlier: &[Field]) -> FieldType {
    let field = earlier.iter().position(|field| *field.name == *count);
    match (ty, count.parse(), field.map(u16::try_from)) {
        (FieldType::Utf16, Ok(units), _) => FieldType::FixedUtf16(units),
        (FieldType::Bytes(_), Ok(bytes), _) => FieldType::Bytes(bytes),
        (ty, Ok(count), _) => FieldType::FixedArray(Box::new(ty), count),
        (ty, _, Some(Ok(field))) => FieldType::CountedBy(Box::new(ty), field),
        _ => FieldType::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layouts;

    #[test]
    fn rows_have_a_name_known_types_and_no_decoder() {
        for (provider, events) in CLR.iter().chain(WINDOWS.iter()) {
            let provider = Provider::from_name(provider);
            assert!(!matches!(provider, Provider::Name(_)), "{provider}");
            assert!(events.is_sorted_by(|a, b| a.id < b.id), "{provider}");
            for event in events {
                assert!(
                    layouts::manifest(&provider, event.id).is_none(),
                    "{event:?}"
                );
                assert!(!event.name.is_empty(), "{event:?}");
                assert_readable(event);
            }
        }
        for (class, events) in KERNEL.iter() {
            let guid = classes::ALL.iter().find(|(_, name)| name == class);
            assert!(events.is_sorted_by(|a, b| a.id < b.id), "{class}");
            for event in events {
                let opcode = u8::try_from(event.id).unwrap();
                assert!(
                    layouts::classic(guid.unwrap().0, opcode).is_none(),
                    "{event:?}"
                );
                assert_readable(event);
            }
        }
        let count = |table: &Table| table.iter().map(|(_, events)| events.len()).sum::<usize>();
        assert!(count(&CLR) > 250 && count(&KERNEL) >= 120);
    }

    /// Asserts that each layout of an event can be read and that they are sorted by version.
    fn assert_readable(event: &Event) {
        let (text, event) = (event.fields, event.name);
        let lines = text.lines().take_while(|line| line.starts_with(' '));
        let layouts = lines.filter(|line| line.starts_with("    @")).count();
        let mut versions: Vec<_> = (0..10)
            .filter_map(|version| fields(text, version))
            .collect();
        versions.dedup();
        assert!(versions.len() >= layouts, "{event}");
        let newest = format!("{:?}", versions.last());
        for bad in [": Unknown", "(Unknown", "\"\""] {
            assert!(!newest.contains(bad), "{event}: {newest}");
        }
    }

    #[test]
    fn the_newest_published_version_is_used_for_newer_ones() {
        let fields = |version| {
            let event = manifest(&Provider::NativeRuntime, 10, version).unwrap();
            event.fields.map(|fields| fields.len())
        };
        assert_eq!(fields(0), None);
        assert_eq!(fields(1), Some(3));
        assert_eq!(fields(4), Some(9));
        assert_eq!(fields(99), Some(9));
        assert!(manifest(&Provider::Stress, 10, 4).is_none());
        assert_eq!(
            manifest_id(&Provider::NativeRuntime, "ExceptionThrown"),
            Some(80)
        );
    }

    #[test]
    fn events_of_one_kind_share_their_fields() {
        let private = |id, version| manifest(&Provider::Private, id, version)?.fields;
        assert_eq!(private(176, 0), private(159, 0));
        assert_eq!(private(123, 1), private(80, 1));
        assert_eq!(private(10, 0).map(|f| f.len()), Some(1));
        assert!(private(4, 0).is_none() && private(124, 1).is_none());
    }
}
