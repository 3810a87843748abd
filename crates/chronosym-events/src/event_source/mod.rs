//! Manifests that .NET EventSources log about themselves: event 65534, XML in chunks.

mod error;
mod xml;

pub use error::ManifestError;

use crate::EventSchema;

/// Joins the chunks of a manifest; one per provider and process.
#[derive(Clone, Debug, Default)]
pub struct ManifestChunks {
    xml: Vec<u8>,
    next: u16,
}

impl ManifestChunks {
    /// The limit on the length of a manifest in bytes; real ones have some ten kilobytes.
    pub const LIMIT: usize = 16 << 20;

    /// Adds the payload of an event with id [`MANIFEST_EVENT_ID`](crate::MANIFEST_EVENT_ID). The
    /// last chunk returns the schemas of the provider's events.
    ///
    /// Layout: u8 format (1), u8 major, u8 minor, u8 0x5b, u16 total chunks, u16 chunk number,
    /// text.
    ///
    /// # Errors
    /// [`ManifestError`] when a chunk is missing, or the chunks are not a manifest. The next first
    /// chunk starts over.
    pub fn push(&mut self, payload: &[u8]) -> Result<Option<Vec<EventSchema>>, ManifestError> {
        let [1, _, _, 0x5b, t0, t1, p0, p1, text @ ..] = payload else {
            return Err(ManifestError::NotAChunk);
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
            return Err(ManifestError::MissingChunk { expected, found });
        }
        if self.xml.len().saturating_add(text.len()) > Self::LIMIT {
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
        xml::parse(text.trim_end_matches('\0')).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, FieldType};

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

    fn chunks(size: usize) -> Vec<Vec<u8>> {
        let texts: Vec<_> = XML.as_bytes().chunks(size).collect();
        let chunk = |(i, text): (usize, &&[u8])| {
            let mut out = vec![1, 1, 0, 0x5b];
            out.extend((texts.len() as u16).to_le_bytes());
            out.extend((i as u16).to_le_bytes());
            out.extend_from_slice(text);
            out
        };
        texts.iter().enumerate().map(chunk).collect()
    }

    #[test]
    fn chunks_make_descriptions() {
        let mut manifest = ManifestChunks::default();
        let chunks = chunks(100);
        let (last, others) = chunks.split_last().unwrap();
        for chunk in others {
            assert!(manifest.push(chunk).unwrap().is_none());
        }
        let events = manifest.push(last).unwrap().unwrap();
        let names: Vec<_> = events
            .iter()
            .map(|e| (e.id(), e.version(), e.level(), e.opcode(), e.name()))
            .collect();
        assert_eq!(
            names,
            [
                (Some(1), 0, 4, 0, "Plain".into()),
                (Some(2), 3, 5, 1, "Work/Start".into()),
                (Some(3), 0, 2, 11, "Sym/Push".into())
            ]
        );
        assert_eq!(events[1].keywords(), 0x11);
        assert_eq!(
            events[1].fields().unwrap(),
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
        assert_eq!(events[1].provider_name().as_ref(), "My-Source");
    }

    #[test]
    fn damage_is_an_error() {
        let mut manifest = ManifestChunks::default();
        let chunks = chunks(100);
        assert!(manifest.push(&chunks[0]).unwrap().is_none());
        assert_eq!(
            manifest.push(&chunks[2]).err(),
            Some(ManifestError::MissingChunk {
                expected: 1,
                found: 2
            })
        );
        assert_eq!(
            manifest.push(&chunks[1]).err(),
            Some(ManifestError::MissingChunk {
                expected: 0,
                found: 1
            })
        );
        assert_eq!(
            manifest.push(b"\x01\x01\x00[\x01\0\0").err(),
            Some(ManifestError::NotAChunk)
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

    /// Returns a manifest in one chunk with `inner` in its provider.
    fn manifest(inner: &str) -> Vec<u8> {
        let mut chunk = b"\x01\x01\x00[\x01\0\0\0".to_vec();
        chunk.extend(b"<m><provider name='P' guid='{a8a71ac1-040f-54a2-07ca-00a89b5ab761}'>");
        chunk.extend(inner.as_bytes());
        chunk.extend(b"</provider></m>");
        chunk
    }

    #[test]
    fn a_template_that_all_events_share_costs_no_more_than_the_manifest_allows() {
        let mut inner: String = (0..2_000)
            .map(|id| format!("<event value='{id}' template='T'/>"))
            .collect();
        inner += "<template tid='T'>";
        inner.extend((0..2_000).map(|i| format!("<data name='f{i}' inType='win:Int32'/>")));
        inner += "</template>";
        let xml = manifest(&inner);
        let events = ManifestChunks::default().push(&xml).unwrap().unwrap();
        assert_eq!(events.len(), 2_000);
        assert_eq!(events[0].fields().unwrap().len(), 2_000);
        let all: usize = events
            .iter()
            .map(|event| event.fields().unwrap().len())
            .sum();
        assert!(all < xml.len() / 4, "{all}");
    }

    #[test]
    fn elements_with_more_attributes_or_namespaces_than_any_manifest_has_are_refused() {
        let attributes: String = (0..300).map(|i| format!(" a{i}=''")).collect();
        let namespaces: String = (0..100).map(|i| format!("<a xmlns:n{i}='u'/>")).collect();
        for inner in [format!("<a{attributes}/>"), namespaces] {
            let pushed = ManifestChunks::default().push(&manifest(&inner));
            assert!(matches!(pushed, Err(ManifestError::Xml(_))));
        }
        let deep = "<a>".repeat(100_000) + &"</a>".repeat(100_000);
        let _ = ManifestChunks::default().push(&manifest(&deep));
    }
}
