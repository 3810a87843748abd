//! Manifests that .NET EventSources log about themselves: event 65534, XML in pieces.

use roxmltree::Node;

use crate::manifest::EventDescription;
use crate::tracelogging::scalar;
use crate::{Field, FieldType, Guid};

/// Why the pieces of a manifest make no manifest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// An event of this id that holds something else.
    #[error("not a piece of an EventSource manifest")]
    NotAPiece,
    /// A piece is missing.
    #[error("piece {found} of an EventSource manifest follows where piece {expected} is due")]
    MissingPiece {
        /// The piece that is due.
        expected: u16,
        /// The piece that came.
        found: u16,
    },
    /// The pieces are longer than any real manifest.
    #[error("EventSource manifest of more than {limit} bytes")]
    TooLong {
        /// The greatest length that is accepted.
        limit: usize,
    },
    /// The pieces are no XML, or no manifest.
    #[error("EventSource manifest that cannot be read: {0}")]
    Xml(String),
}

/// Joins the pieces of one provider's manifest; keep one of these a provider and process.
#[derive(Clone, Debug, Default)]
pub struct ManifestPieces {
    xml: Vec<u8>,
    next: u16,
}

impl ManifestPieces {
    /// A manifest longer than this is taken for damage: real ones have some ten kilobytes.
    pub const LIMIT: usize = 16 << 20;

    /// Adds the payload of an event with id [`MANIFEST_EVENT_ID`](crate::MANIFEST_EVENT_ID): u8 format (1), u8 major, u8 minor, u8 0x5b, u16 number of
    /// pieces, u16 piece, text. The last piece gives the descriptions of the provider's events.
    ///
    /// # Errors
    /// [`ManifestError`] when pieces are missing or make no manifest. The next first piece starts anew.
    pub fn push(&mut self, payload: &[u8]) -> Result<Option<Vec<EventDescription>>, ManifestError> {
        let [1, _, _, 0x5b, t0, t1, p0, p1, text @ ..] = payload else {
            return Err(ManifestError::NotAPiece);
        };
        let (total, found) = (
            u16::from_le_bytes([*t0, *t1]),
            u16::from_le_bytes([*p0, *p1]),
        );
        if found == 0 {
            *self = Self::default();
        }
        if found != self.next {
            let expected = std::mem::take(self).next;
            return Err(ManifestError::MissingPiece { expected, found });
        }
        if self.xml.len() + text.len() > Self::LIMIT {
            *self = Self::default();
            return Err(ManifestError::TooLong { limit: Self::LIMIT });
        }
        self.xml.extend_from_slice(text);
        self.next = found.saturating_add(1);
        if self.next < total {
            return Ok(None);
        }
        let xml = std::mem::take(self).xml;
        let text = String::from_utf8_lossy(&xml);
        parse(text.trim_end_matches('\0')).map(Some)
    }
}

fn parse(xml: &str) -> Result<Vec<EventDescription>, ManifestError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const XML: &str = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
 <instrumentation><events><provider name="My-Source" guid="{a8a71ac1-040f-54a2-07ca-00a89b5ab761}">
  <tasks><task name="Work" value="1"/></tasks>
  <opcodes><opcode name="Push" value="11"/></opcodes>
  <keywords><keyword name="A" mask="0x1"/><keyword name="B" mask="0x10"/></keywords>
  <events>
   <event value="1" version="0" level="win:Informational" task="Plain"/>
   <event value="2" version="3" level="win:Verbose" task="Work" opcode="win:Start" template="T" keywords="A B"/>
   <event value="3" version="0" level="win:Error" symbol="Sym" opcode="Push"/>
   <event value="99999" version="0" task="TooBig"/>
  </events>
  <templates><template tid="T">
   <data name="size" inType="win:UInt32"/>
   <data name="blob" inType="win:Binary" length="size"/>
   <data name="text" inType="win:UnicodeString"/>
   <data name="id" inType="win:UInt64" outType="win:HexInt64"/>
   <data name="what" inType="win:Strange"/>
  </template></templates>
 </provider></events></instrumentation></instrumentationManifest>"#;

    fn pieces(size: usize) -> Vec<Vec<u8>> {
        let chunks: Vec<_> = XML.as_bytes().chunks(size).collect();
        let piece = |(i, text): (usize, &&[u8])| {
            let mut out = vec![1, 1, 0, 0x5b];
            out.extend((chunks.len() as u16).to_le_bytes());
            out.extend((i as u16).to_le_bytes());
            out.extend_from_slice(text);
            out
        };
        chunks.iter().enumerate().map(piece).collect()
    }

    #[test]
    fn pieces_make_descriptions() {
        let mut manifest = ManifestPieces::default();
        let pieces = pieces(100);
        let (last, others) = pieces.split_last().unwrap();
        for piece in others {
            assert_eq!(manifest.push(piece), Ok(None));
        }
        let events = manifest.push(last).unwrap().unwrap();
        let names: Vec<_> = events
            .iter()
            .map(|e| (e.id, e.version, e.level, e.opcode, e.name().unwrap()))
            .collect();
        assert_eq!(
            names,
            [
                (1, 0, 4, 0, "Plain".into()),
                (2, 3, 5, 1, "Work/Start".into()),
                (3, 0, 2, 11, "Sym/Push".into())
            ]
        );
        assert_eq!(events[1].keywords, 0x11);
        assert_eq!(
            events[1].fields,
            [
                Field::new("size", FieldType::U32),
                Field::new(
                    "blob",
                    FieldType::CountedBy(Box::new(FieldType::Bytes(1)), 0)
                ),
                Field::new("text", FieldType::Utf16),
                Field::new("id", FieldType::Hex64),
                Field::new("what", FieldType::Unknown),
            ]
        );
        assert_eq!(events[1].schema().provider_name().as_ref(), "My-Source");
    }

    #[test]
    fn damage_is_an_error() {
        let mut manifest = ManifestPieces::default();
        let pieces = pieces(100);
        assert_eq!(manifest.push(&pieces[0]), Ok(None));
        assert_eq!(
            manifest.push(&pieces[2]),
            Err(ManifestError::MissingPiece {
                expected: 1,
                found: 2
            })
        );
        assert_eq!(
            manifest.push(&pieces[1]),
            Err(ManifestError::MissingPiece {
                expected: 0,
                found: 1
            })
        );
        assert_eq!(
            manifest.push(b"\x01\x01\x00[\x01\0\0"),
            Err(ManifestError::NotAPiece)
        );
        assert!(matches!(
            manifest.push(b"\x01\x01\x00[\x01\0\0\0<a>"),
            Err(ManifestError::Xml(_))
        ));
        assert!(matches!(
            manifest.push(b"\x01\x01\x00[\x01\0\0\0<a/>"),
            Err(ManifestError::Xml(_))
        ));
    }
}
