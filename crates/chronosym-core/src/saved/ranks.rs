//! Ranks of names and strings: the order in which rows first refer to them.

use rustc_hash::FxHashMap;

use crate::ids::NameId;
use crate::strings::StringId;

/// Ranks of the names and strings that rows refer to. 0 represents no name, and the empty string.
#[derive(Default)]
pub(super) struct Ranks {
    pub names: FxHashMap<NameId, u32>,
    pub names_in_order: Vec<NameId>,
    pub strings: FxHashMap<StringId, u32>,
    pub strings_in_order: Vec<StringId>,
}

impl Ranks {
    pub fn name(&mut self, name: NameId) -> u32 {
        if name == NameId::NONE {
            return 0;
        }
        let next = self.names_in_order.len() as u32 + 1;
        *self.names.entry(name).or_insert_with(|| {
            self.names_in_order.push(name);
            next
        })
    }

    pub fn string(&mut self, string: StringId) -> u32 {
        if string == StringId::EMPTY {
            return 0;
        }
        let next = self.strings_in_order.len() as u32 + 1;
        *self.strings.entry(string).or_insert_with(|| {
            self.strings_in_order.push(string);
            next
        })
    }
}

/// The source of names and strings for rows that are read.
pub(super) trait TextSource {
    fn string(&mut self, rank: u32) -> Option<StringId>;
    fn name(&mut self, rank: u32) -> Option<NameId>;
}

/// For rows without names and strings.
pub(super) struct NoTexts;

impl TextSource for NoTexts {
    fn string(&mut self, _: u32) -> Option<StringId> {
        None
    }

    fn name(&mut self, _: u32) -> Option<NameId> {
        None
    }
}

/// Leaves ranks in place of names and strings: most rows of a block are dropped before their texts
/// are needed.
pub(super) struct Unread;

impl TextSource for Unread {
    fn string(&mut self, rank: u32) -> Option<StringId> {
        Some(StringId(rank))
    }

    fn name(&mut self, rank: u32) -> Option<NameId> {
        Some(NameId(rank))
    }
}
