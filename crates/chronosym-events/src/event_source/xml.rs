//! The XML of an EventSource's manifest.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "lengths of names in memory, and depths up to MAX_DEPTH"
)]

use std::collections::HashMap;

use chronosym_types::tracelogging::scalar;
use roxmltree::Node;

use super::error::ManifestError;
use crate::{EventSchema, Field, FieldType, Guid};

/// Returns the schemas of the provider's events.
pub(super) fn parse(xml: &str) -> Result<Vec<EventSchema>, ManifestError> {
    check(xml)?;
    let document =
        roxmltree::Document::parse(xml).map_err(|e| ManifestError::Xml(e.to_string()))?;
    let provider = named(document.root(), "provider")
        .next()
        .ok_or_else(|| ManifestError::Xml("it has no provider".into()))?;
    let guid: Guid = provider
        .attribute("guid")
        .and_then(|g| g.parse().ok())
        .ok_or_else(|| ManifestError::Xml("its provider has no GUID".into()))?;
    let definitions = Definitions::of(provider);
    let provider_name = provider
        .attribute("name")
        .filter(|name| name.len() <= LONGEST_SHARED_NAME);
    let mut budget = xml.len().saturating_mul(4);
    let mut schemas = Vec::new();
    for event in named(provider, "event") {
        let value = |name: &str| event.attribute(name).and_then(number);
        let Some(id) = value("value").and_then(|id| u16::try_from(id).ok()) else {
            continue;
        };
        let version = value("version").and_then(|n| u8::try_from(n).ok());
        let template = event.attribute("template");
        let template = template.and_then(|name| definitions.templates.get(name));
        let task = event.attribute("task").or(event.attribute("symbol"));
        let opcode = event.attribute("opcode");
        let schema = EventSchema::of_manifest(
            guid,
            provider_name,
            id,
            version.unwrap_or(0),
            (task, opcode),
        )
        .with_fields(template.map_or(Vec::new(), |t| fields(*t, 0, &mut budget)))
        .with_descriptor(
            opcode.map_or(0, |name| definitions.opcode(name)),
            level(event.attribute("level").unwrap_or_default()),
            definitions.keywords(event.attribute("keywords").unwrap_or_default()),
        );
        schemas.push(schema);
    }
    Ok(schemas)
}

/// The limit on the length of a name that all events of a provider share.
const LONGEST_SHARED_NAME: usize = 1024;

/// Rejects XML that takes the parser time quadratic in its size: it compares each attribute with
/// the earlier ones, and copies the namespaces of the enclosing element. Each attribute has a `=`,
/// and an element has a `<` at its start only.
fn check(xml: &str) -> Result<(), ManifestError> {
    const MOST_ATTRIBUTES: usize = 256;
    const MOST_NAMESPACES: usize = 64;
    let attributes = |element: &str| element.bytes().filter(|byte| *byte == b'=').count();
    if xml.split('<').any(|it| attributes(it) > MOST_ATTRIBUTES) {
        return Err(ManifestError::Xml(
            "an element has too many attributes".into(),
        ));
    }
    if xml.matches("xmlns").count() > MOST_NAMESPACES {
        return Err(ManifestError::Xml("it has too many namespaces".into()));
    }
    Ok(())
}

/// The definitions that events refer to by name; the first one of each name.
#[derive(Default)]
struct Definitions<'a, 'i> {
    templates: HashMap<&'a str, Node<'a, 'i>>,
    opcodes: HashMap<&'a str, u8>,
    keywords: HashMap<&'a str, u64>,
}

impl<'a, 'i> Definitions<'a, 'i> {
    fn of(provider: Node<'a, 'i>) -> Self {
        let mut definitions = Self::default();
        for node in provider.descendants().filter(Node::is_element) {
            let value = |name: &str| node.attribute(name).and_then(number);
            match (
                node.tag_name().name(),
                node.attribute("tid"),
                node.attribute("name"),
            ) {
                ("template", Some(id), _) => {
                    definitions.templates.entry(id).or_insert(node);
                }
                ("opcode", _, Some(name)) => {
                    let value = value("value").and_then(|n| u8::try_from(n).ok());
                    definitions
                        .opcodes
                        .entry(name)
                        .or_insert(value.unwrap_or(0));
                }
                ("keyword", _, Some(name)) => {
                    let mask = value("mask").unwrap_or(0);
                    definitions.keywords.entry(name).or_insert(mask);
                }
                _ => {}
            }
        }
        definitions
    }

    fn opcode(&self, name: &str) -> u8 {
        const COMMON: &str = "Info Start Stop DC_Start DC_Stop Extension Reply Resume Suspend Send";
        let common = name.strip_prefix("win:");
        common
            .and_then(|name| index_of(name, COMMON))
            .or_else(|| self.opcodes.get(name).copied())
            .unwrap_or(0)
    }

    fn keywords(&self, names: &str) -> u64 {
        names
            .split_whitespace()
            .filter_map(|name| self.keywords.get(name))
            .fold(0, |all, mask| all | mask)
    }
}

fn named<'a, 'i>(node: Node<'a, 'i>, name: &'static str) -> impl Iterator<Item = Node<'a, 'i>> {
    node.descendants()
        .filter(move |n| n.is_element() && n.tag_name().name() == name)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the index of a name in a list, which is its number.
fn index_of(name: &str, names: &str) -> Option<u8> {
    let index = names.split_whitespace().position(|other| other == name)?;
    u8::try_from(index).ok()
}

fn level(name: &str) -> u8 {
    const LEVELS: &str =
        "win:LogAlways win:Critical win:Error win:Warning win:Informational win:Verbose";
    index_of(name, LEVELS).unwrap_or(0)
}

const MAX_DEPTH: usize = 16;

/// Returns the fields of a template. Events may share one, so each field counts against a budget
/// that depends on the manifest's size.
fn fields(template: Node<'_, '_>, depth: usize, budget: &mut usize) -> Vec<Field> {
    const FIELD: usize = 16;
    if *budget == 0 {
        return Vec::new();
    }
    let elements = || template.children().filter(Node::is_element);
    let mut indexes = HashMap::new();
    for (node, index) in elements().zip(0..=u16::MAX) {
        indexes
            .entry(node.attribute("name").unwrap_or_default())
            .or_insert(index);
    }
    let earlier = |name: &str| indexes.get(name).copied();
    let mut out = Vec::new();
    for node in elements() {
        let name = node.attribute("name").unwrap_or_default();
        *budget = budget.saturating_sub(FIELD + name.len());
        if *budget == 0 {
            break;
        }
        let mut ty = match node.tag_name().name() {
            "struct" if depth < MAX_DEPTH => FieldType::Object(fields(node, depth + 1, budget)),
            "struct" => FieldType::Unknown,
            _ => data_type(node, &earlier),
        };
        if let Some(count) = node.attribute("count") {
            let fixed = number(count).and_then(|n| u16::try_from(n).ok());
            ty = match (earlier(count), fixed) {
                (Some(field), _) => FieldType::CountedBy(Box::new(ty), field),
                (None, Some(n)) => FieldType::FixedArray(Box::new(ty), n),
                (None, None) => FieldType::Unknown,
            };
        }
        out.push(Field::new(name, ty));
    }
    out
}

fn data_type(node: Node<'_, '_>, earlier: &dyn Fn(&str) -> Option<u16>) -> FieldType {
    const IN_TYPES: &str = "
        - UnicodeString AnsiString Int8 UInt8 Int16 UInt16 Int32 UInt32 Int64 UInt64 Float Double
        Boolean Binary GUID Pointer FILETIME SYSTEMTIME SID HexInt32 HexInt64";
    let in_name = node.attribute("inType").unwrap_or_default();
    let in_name = in_name.strip_prefix("win:").unwrap_or(in_name);
    let Some(in_type) = index_of(in_name, IN_TYPES).filter(|code| *code > 0) else {
        return FieldType::Unknown;
    };
    let out_type = match node.attribute("outType") {
        Some("xs:string") => 2,
        Some("xs:boolean") => 3,
        Some(hex) if hex.starts_with("win:HexInt") => 4,
        _ => 0,
    };
    let unit = match in_type {
        1 => FieldType::Char16,
        2 => FieldType::Char8,
        14 => FieldType::Bytes(1),
        _ => return scalar(in_type, out_type),
    };
    match node.attribute("length") {
        Some(length) => match (
            earlier(length),
            number(length).and_then(|n| u16::try_from(n).ok()),
        ) {
            (Some(field), _) => FieldType::CountedBy(Box::new(unit), field),
            (None, Some(n)) if in_type == 14 => FieldType::Bytes(n),
            (None, Some(n)) => FieldType::FixedArray(Box::new(unit), n),
            (None, None) => FieldType::Unknown,
        },
        None if in_type == 14 => FieldType::Unknown,
        None => scalar(in_type, 0),
    }
}
