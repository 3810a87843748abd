//! The XML of an EventSource's manifest.

use chronosym_types::tracelogging::scalar;
use roxmltree::Node;

use crate::error::ManifestError;
use crate::manifest::EventDescription;
use crate::{Field, FieldType, Guid};

/// The descriptions of a provider's events.
pub(crate) fn parse(xml: &str) -> Result<Vec<EventDescription>, ManifestError> {
    let document =
        roxmltree::Document::parse(xml).map_err(|e| ManifestError::Xml(e.to_string()))?;
    let provider = named(document.root(), "provider")
        .next()
        .ok_or_else(|| ManifestError::Xml("it has no provider".into()))?;
    let guid: Guid = provider
        .attribute("guid")
        .and_then(|g| g.parse().ok())
        .ok_or_else(|| ManifestError::Xml("its provider has no GUID".into()))?;
    let events = named(provider, "event").filter_map(|event| {
        let number = |name: &str| event.attribute(name).and_then(number);
        let template = event.attribute("template");
        let template = template
            .and_then(|t| named(provider, "template").find(|n| n.attribute("tid") == Some(t)));
        Some(EventDescription {
            provider: guid,
            provider_name: provider.attribute("name").map(str::to_owned),
            id: u16::try_from(number("value")?).ok()?,
            version: number("version")
                .and_then(|n| u8::try_from(n).ok())
                .unwrap_or(0),
            level: level(event.attribute("level").unwrap_or_default()),
            opcode: event
                .attribute("opcode")
                .map_or(0, |name| opcode(provider, name)),
            keywords: keywords(provider, event.attribute("keywords").unwrap_or_default()),
            task_name: event
                .attribute("task")
                .or(event.attribute("symbol"))
                .map(str::to_owned),
            opcode_name: event.attribute("opcode").map(str::to_owned),
            fields: template.map(|t| fields(t, 0)).unwrap_or_default(),
        })
    });
    Ok(events.collect())
}

/// Elements of this name anywhere below, whatever their namespace.
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

fn level(name: &str) -> u8 {
    const LEVELS: [&str; 6] = [
        "win:LogAlways",
        "win:Critical",
        "win:Error",
        "win:Warning",
        "win:Informational",
        "win:Verbose",
    ];
    LEVELS
        .iter()
        .position(|l| *l == name)
        .map_or(0, |i| i as u8)
}

fn opcode(provider: Node<'_, '_>, name: &str) -> u8 {
    const COMMON: [(&str, u8); 10] = [
        ("win:Info", 0),
        ("win:Start", 1),
        ("win:Stop", 2),
        ("win:DC_Start", 3),
        ("win:DC_Stop", 4),
        ("win:Extension", 5),
        ("win:Reply", 6),
        ("win:Resume", 7),
        ("win:Suspend", 8),
        ("win:Send", 9),
    ];
    let common = COMMON
        .iter()
        .find(|(n, _)| *n == name)
        .map(|(_, value)| *value);
    common.unwrap_or_else(|| {
        let own = named(provider, "opcode").find(|n| n.attribute("name") == Some(name));
        let value = own.and_then(|n| n.attribute("value")).and_then(number);
        value.and_then(|n| u8::try_from(n).ok()).unwrap_or(0)
    })
}

fn keywords(provider: Node<'_, '_>, names: &str) -> u64 {
    names
        .split_whitespace()
        .filter_map(|name| named(provider, "keyword").find(|n| n.attribute("name") == Some(name)))
        .filter_map(|n| n.attribute("mask").and_then(number))
        .fold(0, |all, mask| all | mask)
}

/// Structs nest no deeper than this; deeper ones are unknown.
const MAX_DEPTH: usize = 16;

fn fields(template: Node<'_, '_>, depth: usize) -> Vec<Field> {
    let data: Vec<_> = template.children().filter(|n| n.is_element()).collect();
    let names: Vec<_> = data
        .iter()
        .map(|n| n.attribute("name").unwrap_or_default())
        .collect();
    let earlier = |name: &str| {
        names
            .iter()
            .position(|n| *n == name)
            .and_then(|i| u16::try_from(i).ok())
    };
    data.iter()
        .zip(&names)
        .map(|(node, name)| {
            let mut ty = if node.tag_name().name() == "struct" {
                if depth < MAX_DEPTH {
                    FieldType::Object(fields(*node, depth + 1))
                } else {
                    FieldType::Unknown
                }
            } else {
                data_type(*node, &earlier)
            };
            if let Some(count) = node.attribute("count") {
                ty = match (
                    earlier(count),
                    number(count).and_then(|n| u16::try_from(n).ok()),
                ) {
                    (Some(field), _) => FieldType::CountedBy(Box::new(ty), field),
                    (None, Some(n)) => FieldType::FixedArray(Box::new(ty), n),
                    (None, None) => FieldType::Unknown,
                };
            }
            Field::new(*name, ty)
        })
        .collect()
}

fn data_type(node: Node<'_, '_>, earlier: &dyn Fn(&str) -> Option<u16>) -> FieldType {
    const IN_TYPES: [(&str, u8); 21] = [
        ("UnicodeString", 1),
        ("AnsiString", 2),
        ("Int8", 3),
        ("UInt8", 4),
        ("Int16", 5),
        ("UInt16", 6),
        ("Int32", 7),
        ("UInt32", 8),
        ("Int64", 9),
        ("UInt64", 10),
        ("Float", 11),
        ("Double", 12),
        ("Boolean", 13),
        ("Binary", 14),
        ("GUID", 15),
        ("Pointer", 16),
        ("FILETIME", 17),
        ("SYSTEMTIME", 18),
        ("SID", 19),
        ("HexInt32", 20),
        ("HexInt64", 21),
    ];
    let in_name = node.attribute("inType").unwrap_or_default();
    let in_name = in_name.strip_prefix("win:").unwrap_or(in_name);
    let Some((_, in_type)) = IN_TYPES.iter().find(|(name, _)| *name == in_name) else {
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
        _ => return scalar(*in_type, out_type),
    };
    match node.attribute("length") {
        Some(length) => match (
            earlier(length),
            number(length).and_then(|n| u16::try_from(n).ok()),
        ) {
            (Some(field), _) => FieldType::CountedBy(Box::new(unit), field),
            (None, Some(n)) if *in_type == 14 => FieldType::Bytes(n),
            (None, Some(n)) => FieldType::FixedArray(Box::new(unit), n),
            (None, None) => FieldType::Unknown,
        },
        None if *in_type == 14 => FieldType::Unknown,
        None => scalar(*in_type, 0),
    }
}
