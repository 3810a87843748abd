//! Method names: namespace (the full type name), method name and signature, each triple stored
//! once.

use std::borrow::Cow;
use std::hash::BuildHasher;

use chronosym_events::Text;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::{FxBuildHasher, FxHashSet};

use crate::ids::NameId;
use crate::recent_texts::RecentTexts;
use crate::strings::StringId;
use crate::strings::Strings;
use chronosym_types::SparseVec;

/// The parts of a method's name, as the runtime spells them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct MethodName {
    pub namespace: StringId,
    pub name: StringId,
    pub signature: StringId,
}

#[derive(Debug, Default)]
pub(crate) struct NameTable {
    pub strings: Strings,
    all: SparseVec<MethodName>,
    index: HashTable<NameId>,
    /// Namespaces, names and signatures, which many methods share.
    recent: RecentTexts,
    scratch: Vec<u8>,
}

/// Maximum length in bytes of a name, a signature or a path. An output repeats names for each
/// frame, so a small trace with long ones could fill a disk.
const LONGEST: usize = 4 << 10;
/// The end of a name that was cut.
const CUT: char = '\u{2026}';

/// Cuts a name to 4 KiB.
pub(crate) fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return Cow::Borrowed(text);
    }
    let end = (0..=LONGEST).rfind(|&end| text.is_char_boundary(end));
    let mut short = text[..end.unwrap_or_default()].to_owned();
    short.push(CUT);
    Cow::Owned(short)
}

/// Returns whether a name was cut.
pub(crate) fn is_cut(name: &str) -> bool {
    name.len() > LONGEST && name.ends_with(CUT)
}

impl NameTable {
    pub(crate) fn intern(&mut self, namespace: &str, name: &str, signature: &str) -> NameId {
        let key = MethodName {
            namespace: self.short(namespace),
            name: self.short(name),
            signature: self.short(signature),
        };
        self.intern_parts(key)
    }

    /// Returns the id of a name whose parts are interned.
    pub(crate) fn intern_parts(&mut self, key: MethodName) -> NameId {
        if key.namespace == StringId::EMPTY && key.name == StringId::EMPTY {
            return NameId::NONE;
        }
        let hash = |name: &MethodName| FxBuildHasher.hash_one(name);
        let same = |id: &NameId| self.all[id.0 as usize] == key;
        let rehash = |id: &NameId| hash(&self.all[id.0 as usize]);
        match self.index.entry(hash(&key), same, rehash) {
            Entry::Occupied(slot) => *slot.get(),
            Entry::Vacant(slot) => {
                let id = NameId(self.all.push(key) as u32);
                slot.insert(id);
                id
            }
        }
    }

    /// Returns whether a name consists of these parts: namespace, name, signature.
    pub(crate) fn is(&mut self, id: NameId, [namespace, name, signature]: [Text<'_>; 3]) -> bool {
        self.get(id).is_some_and(|known| {
            name == *self.strings.get(known.name)
                && self.is_shared(known.namespace, namespace)
                && self.is_shared(known.signature, signature)
        })
    }

    /// Interns the parts of a name, as text of any encoding: namespace, name, signature.
    pub(crate) fn method(&mut self, [namespace, name, signature]: [Text<'_>; 3]) -> NameId {
        let key = MethodName {
            namespace: self.shared(namespace),
            name: self.shared(name),
            signature: self.shared(signature),
        };
        self.intern_parts(key)
    }

    /// As [`text`](Self::text), for text that is likely to recur: it is not decoded again.
    fn shared(&mut self, text: Text<'_>) -> StringId {
        let Text::Wide(wide) = text else {
            return self.text(text);
        };
        let bytes = wide.as_bytes();
        self.recent.id(bytes).map(StringId).unwrap_or_else(|| {
            let id = self.text(text);
            self.recent.add(id.0, bytes);
            id
        })
    }

    /// Returns whether a text has an id.
    fn is_shared(&mut self, id: StringId, text: Text<'_>) -> bool {
        match text {
            Text::Wide(wide) if self.recent.is(id.0, wide.as_bytes()) => true,
            _ => self.shared(text) == id,
        }
    }

    /// Interns a name or a path, cut to 4 KiB.
    pub(crate) fn short(&mut self, text: &str) -> StringId {
        self.strings.intern(&cut(text))
    }

    /// Interns a name or a path of any encoding, cut to 4 KiB.
    pub(crate) fn text<'a>(&mut self, text: impl Into<Text<'a>>) -> StringId {
        self.decoded(text.into(), |strings, text| strings.intern(&cut(text)))
    }

    /// Interns text of any encoding and length.
    pub(crate) fn whole<'a>(&mut self, text: impl Into<Text<'a>>) -> StringId {
        self.decoded(text.into(), Strings::intern)
    }

    fn decoded(
        &mut self,
        text: Text<'_>,
        intern: impl FnOnce(&mut Strings, &str) -> StringId,
    ) -> StringId {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        text.append_to(&mut scratch);
        let text = str::from_utf8(&scratch).unwrap_or_default();
        let id = intern(&mut self.strings, text);
        self.scratch = scratch;
        id
    }

    /// Bytes of names and strings.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.all.count() * 2 * size_of::<MethodName>() + self.strings.memory_bytes()
    }

    pub(crate) fn get(&self, id: NameId) -> Option<MethodName> {
        self.all.get(id.0 as usize).copied()
    }

    /// Drops names and strings that are not in use.
    pub(crate) fn retain(&mut self, names: &FxHashSet<NameId>, mut strings: FxHashSet<StringId>) {
        self.all.retain(|id, _| names.contains(&NameId(id as u32)));
        self.index.retain(|id| names.contains(id));
        let hash = |id: &NameId| FxBuildHasher.hash_one(self.all[id.0 as usize]);
        self.index.shrink_to(2 * self.index.len(), hash);
        let parts = self
            .all
            .iter()
            .flat_map(|it| [it.namespace, it.name, it.signature]);
        strings.extend(parts);
        self.strings.retain(|id| strings.contains(&id));
        self.recent.clear();
    }

    /// Returns a read-only copy of the table.
    pub(crate) fn snapshot(&self) -> Self {
        NameTable {
            strings: self.strings.snapshot(),
            all: self.all.clone(),
            ..NameTable::default()
        }
    }

    /// Appends `Namespace.Type.Method`; returns false if the method has no name.
    pub(crate) fn push_full(&self, id: NameId, out: &mut String) -> bool {
        let Some(name) = self.get(id) else {
            return false;
        };
        let namespace = self.strings.get(name.namespace);
        out.push_str(namespace);
        if !namespace.is_empty() && name.name != StringId::EMPTY {
            out.push('.');
        }
        out.push_str(self.strings.get(name.name));
        true
    }
}

#[cfg(test)]
mod tests {
    use chronosym_events::WStr;

    use super::*;
    use crate::recent_texts;

    /// Calls `with` with these parts in UTF-16.
    fn wide<R>(parts: [&str; 3], with: impl FnOnce([Text<'_>; 3]) -> R) -> R {
        let bytes = parts.map(|part| -> Vec<u8> {
            let units = part.encode_utf16();
            units.flat_map(u16::to_le_bytes).collect()
        });
        let [namespace, name, signature] = &bytes;
        with([namespace, name, signature].map(|part| Text::Wide(WStr::new(part))))
    }

    #[test]
    fn a_name_has_one_id_in_every_encoding() {
        let long = "T".repeat(recent_texts::LONGEST);
        let all = [
            ["Ns.Type", "Run", "void ()"],
            ["Ns.Type", "Run", "int32 ()"],
            ["Ns.Type", "Ru\u{e9}", "void ()"],
            ["", "Run", ""],
            [&long, "Run", "void ()"],
        ];
        let mut names = NameTable::default();
        let ids = all.map(|parts| wide(parts, |parts| names.method(parts)));
        for (id, parts) in ids.into_iter().zip(all) {
            assert_eq!(wide(parts, |parts| names.method(parts)), id);
            assert_eq!(names.method(parts.map(Text::from)), id);
            for (other, other_parts) in ids.into_iter().zip(all) {
                let is = wide(other_parts, |parts| names.is(id, parts));
                assert_eq!(is, id == other, "{parts:?} and {other_parts:?}");
            }
        }
    }

    #[test]
    fn a_dropped_name_is_stored_again() {
        let mut names = NameTable::default();
        let parts = ["Ns.Type", "Run", "void ()"];
        wide(parts, |parts| names.method(parts));
        names.retain(&FxHashSet::default(), FxHashSet::default());
        let id = wide(parts, |parts| names.method(parts));
        let mut full = String::new();
        assert!(names.push_full(id, &mut full));
        assert_eq!(full, "Ns.Type.Run");
    }

    #[test]
    fn long_names_are_cut_at_a_character() {
        let long = "\u{e9}".repeat(3_000);
        let mut names = NameTable::default();
        let id = names.intern(&long, "Run", &"x".repeat(1 << 20));
        let mut full = String::new();
        assert!(names.push_full(id, &mut full));
        let kept = "\u{e9}".repeat(2 << 10);
        assert_eq!(full, format!("{kept}\u{2026}.Run"));
        let name = names.get(id).unwrap();
        assert!(is_cut(names.strings.get(name.namespace)));
        assert_eq!(names.strings.get(name.signature).len(), LONGEST + 3);
        let command = names.whole(&*long);
        assert_eq!(names.strings.get(command), long);
        assert!(!is_cut("\u{2026}"));
    }
}
