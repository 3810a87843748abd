//! Ids of frames and stacks: hashes of what they show, equal in all files.

use sha2::{Digest, Sha256};

use crate::format::FORMAT_VERSION;

/// Hashes parts, each with its length, so that no two lists of parts have the same bytes.
pub struct Content(Sha256);

impl Content {
    /// Starts the content of a kind of id.
    pub fn new(kind: &str) -> Self {
        let mut content = Content(Sha256::new());
        content.text(Some(kind)).text(Some(FORMAT_VERSION));
        content
    }

    pub fn text(&mut self, text: Option<&str>) -> &mut Self {
        self.number(text.map(|text| text.len() as u64));
        self.0.update(text.unwrap_or_default());
        self
    }

    pub fn number(&mut self, number: Option<u64>) -> &mut Self {
        self.0.update([u8::from(number.is_some())]);
        self.0.update(number.unwrap_or_default().to_le_bytes());
        self
    }

    /// Returns the first 8 bytes of the hash, as a little-endian number.
    pub fn id(self) -> i64 {
        let mut first = [0; 8];
        for (byte, of_hash) in first.iter_mut().zip(self.0.finalize()) {
            *byte = of_hash;
        }
        i64::from_le_bytes(first)
    }
}

/// Returns the id of a stack: of its innermost frame, and of the stack of its caller.
pub fn stack_id(frame: i64, caller: Option<i64>) -> i64 {
    let mut content = Content::new("stack");
    content.number(Some(frame as u64));
    content.number(caller.map(|caller| caller as u64));
    content.id()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(parts: &[Option<&str>]) -> i64 {
        let mut content = Content::new("frame");
        for part in parts {
            content.text(*part);
        }
        content.id()
    }

    #[test]
    fn different_parts_have_different_ids() {
        let all = [
            id(&[Some("ab"), Some("c")]),
            id(&[Some("a"), Some("bc")]),
            id(&[Some(""), Some("abc")]),
            id(&[None, Some("abc")]),
            stack_id(1, None),
            stack_id(1, Some(0)),
            stack_id(0, Some(1)),
        ];
        for (at, id) in all.iter().enumerate() {
            assert!(!all[..at].contains(id), "{at}");
        }
    }

    /// Files of different releases are joined by these numbers, which another implementation computed.
    #[test]
    fn ids_do_not_change() {
        assert_eq!(stack_id(1, None), 1_878_147_456_590_161_730);
        assert_eq!(id(&[Some("Ns.Type.Run")]), -4_367_028_018_617_374_649);
    }
}
