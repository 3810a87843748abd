//! What a symbol file says about addresses: frames in a buffer that is reused from batch to batch.

#![cfg_attr(
    not(test),
    expect(
        clippy::cast_possible_truncation,
        reason = "ids and places of frames have 32 bits: more of them than that fit no memory"
    )
)]

use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::sync::OnceLock;

use chronosym_types::hash::RandomState;
use hashbrown::HashTable;

use crate::demangle::{Unreadable, demangle};

/// An address in one of the three ways in which tools write them. They differ by up to gigabytes, so they are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// Bytes from where the image's first byte is mapped: what remains of a sampled address when the base is taken off.
    Rva(u64),
    /// As the file itself states addresses: in its symbol table, its DWARF, its program headers.
    VirtualAddress(u64),
    /// Bytes from the start of the file.
    FileOffset(u64),
}

/// Where a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// Debug information: DWARF, or a PDB's procedures.
    DebugInfo,
    /// The symbol table (`.symtab`, also the one in `.gnu_debugdata`; COFF symbols).
    SymbolTable,
    /// The dynamic symbol table: what the file exports, so a name may be that of a function some way before the address.
    DynamicSymbols,
    /// The export table of a PE image, with the same weakness.
    Export,
}

/// Why there is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missing {
    /// The address lies outside everything that the image maps.
    OutsideImage,
    /// Of a file offset: the file is a debug file, whose program headers do not say where the image's bytes are mapped.
    NoSegment,
    /// Nothing in the file names this address.
    NoName,
    /// What would name it is damaged: see [`Answers::damage`].
    Damaged,
    /// To find it out would cost more than is allowed: see [`Answers::damage`].
    LimitReached,
}

/// Index of an interned name of an [`Answers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub(crate) u32);

/// Index of an interned file path of an [`Answers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub(crate) u32);

impl NameId {
    /// The number, dense from 0 in order of first use.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One frame as kept: 40 bytes, ids for text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredFrame {
    pub(crate) name: Option<NonZeroId>,
    pub(crate) symbol: Option<NonZeroId>,
    pub(crate) file: Option<NonZeroId>,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) discriminator: u32,
    pub(crate) function: u64,
    pub(crate) has_function: bool,
    pub(crate) inlined: bool,
    pub(crate) plain_names: bool,
    /// Its line was not looked up, since that would have cost too much.
    pub(crate) line_limited: bool,
    pub(crate) source: Source,
}

/// An id stored as id + 1, so that `Option` takes no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NonZeroId(NonZeroU32);

impl NonZeroId {
    pub(crate) fn new(id: u32) -> Self {
        Self(NonZeroU32::MIN.saturating_add(id))
    }

    pub(crate) fn get(self) -> u32 {
        self.0.get() - 1
    }
}

/// Interned strings, each one once: one buffer of text, ends by id.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    text: String,
    copy: Vec<u8>,
    ends: Vec<u32>,
    known: HashTable<u32>,
    hash: RandomState,
}

impl Strings {
    /// The id of a string; `None` once 4 GiB of text are held.
    pub(crate) fn intern(&mut self, text: &[u8]) -> Option<NonZeroId> {
        let hash = self.hash.hash_one(text);
        let same = |&id: &u32| span(&self.text, &self.ends, id).as_bytes() == text;
        if let Some(&id) = self.known.find(hash, same) {
            return Some(NonZeroId::new(id));
        }
        let id = u32::try_from(self.ends.len()).ok()?;
        let end = u32::try_from(self.text.len().checked_add(text.len())?).ok()?;
        // Copied before it is checked: the file may change in between.
        self.copy.clear();
        self.copy.extend_from_slice(text);
        match std::str::from_utf8(&self.copy) {
            Ok(text) => self.text.push_str(text),
            // What replaces the bytes is text, so this goes one deep.
            Err(_) => {
                let replaced = String::from_utf8_lossy(&self.copy).into_owned();
                return self.intern(replaced.as_bytes());
            }
        }
        self.ends.push(end);
        let (texts, ends, hash_of) = (&self.text, &self.ends, &self.hash);
        let rehash = |&id: &u32| hash_of.hash_one(span(texts, ends, id).as_bytes());
        self.known.insert_unique(hash, id, rehash);
        Some(NonZeroId::new(id))
    }

    pub(crate) fn get(&self, id: u32) -> &str {
        span(&self.text, &self.ends, id)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.known.clear();
    }

    /// Takes over another table: the id that each of its strings has here.
    fn merge(&mut self, other: &Strings) -> Vec<Option<NonZeroId>> {
        (0..other.ends.len() as u32)
            .map(|id| self.intern(other.get(id).as_bytes()))
            .collect()
    }
}

fn span<'a>(text: &'a str, ends: &[u32], id: u32) -> &'a str {
    let at = |i: usize| ends.get(i).map_or(text.len(), |&end| end as usize);
    let start = id.checked_sub(1).map_or(0, |before| at(before as usize));
    text.get(start..at(id as usize)).unwrap_or("")
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredAnswer {
    pub(crate) address: u64,
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) missing: Missing,
}

/// Answers to a batch of addresses, in the order asked.
///
/// A buffer to be used again and again: a batch clears it and keeps its memory. Names and paths are interned, so that
/// within a batch comparing [`NameId`]s is comparing names.
#[derive(Debug, Default)]
pub struct Answers {
    pub(crate) names: Strings,
    pub(crate) files: Strings,
    pub(crate) frames: Vec<StoredFrame>,
    pub(crate) answers: Vec<StoredAnswer>,
    pub(crate) damage: Vec<String>,
    /// Whether lines were asked for.
    pub(crate) lines: bool,
    demangled: Vec<OnceLock<Readable>>,
}

/// A name without its mangling, or why there is none.
type Readable = Result<Box<str>, Unreadable>;

/// At most this many kinds of damage are described; more of them would say no more.
const MAX_DAMAGE: usize = 64;

impl Answers {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of answers: one for every address asked.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// True before the first batch.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// The answer to the `index`th address.
    pub fn get(&self, index: usize) -> Option<Answer<'_>> {
        let raw = *self.answers.get(index)?;
        Some(Answer { all: self, raw })
    }

    /// All answers in the order asked.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Answer<'_>> {
        self.answers.iter().map(|&raw| Answer { all: self, raw })
    }

    /// Number of distinct names; every [`NameId`] is below it.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// A name as the file has it.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id.0)
    }

    /// The name without its mangling ([`demangle`]), worked out when first asked for; else what is shown in its
    /// place.
    pub fn demangled(&self, id: NameId) -> &str {
        let raw = self.names.get(id.0);
        match self.readable(id) {
            Some(Ok(readable)) => readable,
            Some(Err(why)) => why.shown(raw),
            None => raw,
        }
    }

    /// True if the name is too long or unfolds to too much to be shown without its mangling.
    pub fn name_limited(&self, id: NameId) -> bool {
        matches!(self.readable(id), Some(Err(Unreadable::LimitReached)))
    }

    fn readable(&self, id: NameId) -> Option<&Readable> {
        let demangle = || demangle(self.names.get(id.0)).map(String::into_boxed_str);
        let cell = self.demangled.get(id.index())?;
        Some(cell.get_or_init(demangle))
    }

    /// A source path: absolute where the debug information makes it so.
    pub fn file(&self, id: FileId) -> &str {
        self.files.get(id.0)
    }

    /// Damage met while answering this batch, described once each, the first 64 of them.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.files.clear();
        self.frames.clear();
        self.answers.clear();
        self.damage.clear();
        self.demangled.clear();
    }

    pub(crate) fn note_damage(&mut self, text: String) {
        if self.damage.len() < MAX_DAMAGE && !self.damage.contains(&text) {
            self.damage.push(text);
        }
    }

    /// Called once the names are all there.
    pub(crate) fn seal(&mut self) {
        self.demangled.resize_with(self.names.len(), OnceLock::new);
    }

    /// Takes over the text and frames of another buffer; returns how far its frame indexes moved.
    pub(crate) fn append(&mut self, other: &mut Answers) -> u32 {
        let names = self.names.merge(&other.names);
        let files = self.files.merge(&other.files);
        let here = |ids: &[Option<NonZeroId>], id: Option<NonZeroId>| {
            id.and_then(|id| *ids.get(id.get() as usize)?)
        };
        let frames = self.frames.len() as u32;
        self.frames.extend(other.frames.iter().map(|f| StoredFrame {
            name: here(&names, f.name),
            symbol: here(&names, f.symbol),
            file: here(&files, f.file),
            ..*f
        }));
        for text in other.damage.drain(..) {
            self.note_damage(text);
        }
        frames
    }
}

/// The answer to one address.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    all: &'a Answers,
    raw: StoredAnswer,
}

impl<'a> Answer<'a> {
    /// The virtual address asked for (for an [`Address::Rva`] or a file offset: what it stands for).
    pub fn address(&self) -> u64 {
        self.raw.address
    }

    /// The frames, innermost first: the function inlined deepest, its callers, last the function whose code this is.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame<'a>> + use<'a> {
        let all = self.all;
        let start = self.raw.start as usize;
        let end = start.saturating_add(self.raw.len as usize);
        let frames = all.frames.get(start..end).unwrap_or(&[]);
        frames.iter().map(move |raw| Frame { all, raw })
    }

    /// Why there is no frame; `None` if there are some.
    pub fn missing(&self) -> Option<Missing> {
        (self.raw.len == 0).then_some(self.raw.missing)
    }
}

/// One function at an address.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    all: &'a Answers,
    raw: &'a StoredFrame,
}

impl<'a> Frame<'a> {
    /// The function's name as the file has it, mangled: the debug information's linkage name before its plain one, else the
    /// symbol's.
    pub fn name(&self) -> Option<&'a str> {
        self.name_id().map(|id| self.all.name(id))
    }

    /// Its id.
    pub fn name_id(&self) -> Option<NameId> {
        self.raw.name.map(|id| NameId(id.get()))
    }

    /// The name without its mangling.
    pub fn demangled(&self) -> Option<&'a str> {
        self.name_id().map(|id| self.all.demangled(id))
    }

    /// True if the name is shown in part and mangled: see [`Answers::name_limited`].
    pub fn name_limited(&self) -> bool {
        let id = self.name_id();
        id.is_some_and(|id| self.all.name_limited(id))
    }

    /// The symbol table's name for this code, in the last frame, if it was asked for
    /// ([`Query::symbol_names`](crate::Query::symbol_names)) and is there.
    pub fn symbol_id(&self) -> Option<NameId> {
        self.raw.symbol.map(|id| NameId(id.get()))
    }

    /// The source file: of the code itself in the first frame, of the call in the others.
    pub fn file(&self) -> Option<&'a str> {
        self.file_id().map(|id| self.all.file(id))
    }

    /// Its id.
    pub fn file_id(&self) -> Option<FileId> {
        self.raw.file.map(|id| FileId(id.get()))
    }

    /// The line, from 1; `None` where the compiler states that the code belongs to no line.
    pub fn line(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.raw.line)
    }

    /// True if the line was not looked up because that would have cost more than is allowed: see [`Answers::damage`].
    pub fn line_limited(&self) -> bool {
        self.raw.line_limited
    }

    /// The column, from 1, if known.
    pub fn column(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.raw.column)
    }

    /// DWARF's discriminator of several blocks on one line; 0 for none.
    pub fn discriminator(&self) -> u32 {
        self.raw.discriminator
    }

    /// True if this function was inlined into the next frame's.
    pub fn inlined(&self) -> bool {
        self.raw.inlined
    }

    /// Virtual address where this function's code begins (an inlined one's: its code in this place).
    pub fn function_start(&self) -> Option<u64> {
        self.raw.has_function.then_some(self.raw.function)
    }

    /// True in the code of languages that do not mangle (C), where a plain name is the name the linker sees.
    pub(crate) fn plain_names(&self) -> bool {
        self.raw.plain_names
    }

    /// Where the name comes from.
    pub fn source(&self) -> Source {
        self.raw.source
    }
}
