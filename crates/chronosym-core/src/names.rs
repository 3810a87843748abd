//! Method names: namespace (the full type name), method name and signature, each distinct triple once.

use std::hash::BuildHasher;

use chronosym_events::Text;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use rustc_hash::FxBuildHasher;

use crate::ids::NameId;
use crate::strings::StringId;
use crate::strings::Strings;
use chronosym_types::Chunked;

/// The parts of a method's name, as the runtime spells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MethodName {
    pub namespace: StringId,
    pub name: StringId,
    pub signature: StringId,
}

#[derive(Debug, Default)]
pub(crate) struct Names {
    pub strings: Strings,
    all: Chunked<MethodName>,
    index: HashTable<NameId>,
    scratch: String,
}

impl Names {
    pub(crate) fn intern(&mut self, namespace: &str, name: &str, signature: &str) -> NameId {
        let key = MethodName {
            namespace: self.strings.intern(namespace),
            name: self.strings.intern(name),
            signature: self.strings.intern(signature),
        };
        if key.namespace == StringId::EMPTY && key.name == StringId::EMPTY {
            return NameId::NONE;
        }
        let hash = |name: &MethodName| FxBuildHasher.hash_one(name);
        let same = |id: &NameId| self.all[id.0 as usize] == key;
        let rehash = |id: &NameId| hash(&self.all[id.0 as usize]);
        match self.index.entry(hash(&key), same, rehash) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let id = NameId(self.all.len() as u32);
                place.insert(id);
                self.all.push(key);
                id
            }
        }
    }

    /// Whether a name has these three parts: namespace, name, signature.
    pub(crate) fn is(&self, id: NameId, parts: [Text<'_>; 3]) -> bool {
        self.get(id).is_some_and(|known| {
            let known = [known.namespace, known.name, known.signature];
            let mut pairs = known.into_iter().zip(parts);
            pairs.all(|(known, part)| part == *self.strings.get(known))
        })
    }

    /// As [`Names::intern`], from text of any kind: namespace, name, signature.
    pub(crate) fn method(&mut self, parts: [Text<'_>; 3]) -> NameId {
        let mut text = std::mem::take(&mut self.scratch);
        text.clear();
        let [a, b, _] = parts.map(|part| {
            part.push_to(&mut text);
            text.len()
        });
        let id = self.intern(&text[..a], &text[a..b], &text[b..]);
        self.scratch = text;
        id
    }

    /// Interns text of any kind.
    pub(crate) fn text<'a>(&mut self, text: impl Into<Text<'a>>) -> StringId {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        text.into().push_to(&mut scratch);
        let id = self.strings.intern(&scratch);
        self.scratch = scratch;
        id
    }

    pub(crate) fn get(&self, id: NameId) -> Option<MethodName> {
        self.all.get(id.0 as usize).copied()
    }

    /// The names as they are now, to be read.
    pub(crate) fn snapshot(&self) -> Self {
        Names {
            strings: self.strings.snapshot(),
            all: self.all.clone(),
            ..Names::default()
        }
    }

    /// Appends `Namespace.Type.Method`; false where the method has no name.
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
