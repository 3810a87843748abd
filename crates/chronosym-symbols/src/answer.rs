//! The frames of a batch of addresses, in a buffer that is reused.

#![cfg_attr(
    not(test),
    expect(
        clippy::cast_possible_truncation,
        reason = "ids and indexes of frames have 32 bits: more do not fit into memory"
    )
)]

use std::hash::BuildHasher;
use std::num::NonZeroU32;
use std::sync::OnceLock;

use chronosym_types::hash::{HashMap, RandomState};
use hashbrown::HashTable;

use chronosym_types::json::FunctionStart;

use crate::demangle::{Unreadable, demangle};
use crate::name_limit::{is_cut, limited};

/// An address in one of the three forms that tools use. They can differ by gigabytes.
///
/// Closed: a file has these three kinds of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Address {
    /// Bytes from the image's first byte in memory: a sampled address minus the base of the image.
    Rva(u64),
    /// An address as in the file's symbol table, DWARF and program headers.
    VirtualAddress(u64),
    /// Bytes from the start of the file.
    FileOffset(u64),
}

/// The source of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// Debug information: DWARF, or a PDB's procedures.
    DebugInfo,
    /// The symbol table (`.symtab`, also the one in `.gnu_debugdata`; COFF symbols).
    SymbolTable,
    /// The dynamic symbol table. It lists exported functions only, so the name may be that of an
    /// earlier function.
    DynamicSymbols,
    /// The export table of a PE image, with the same limitation.
    Export,
    /// The public symbols of a PDB, which have no sizes.
    PublicSymbols,
    /// A stub of the procedure linkage table, with the name of the function that it calls and
    /// `@plt`.
    Plt,
}

impl Source {
    /// Returns whether names are those of the nearest start of a function: where functions end is
    /// not recorded.
    pub fn is_approximate(self) -> bool {
        matches!(
            self,
            Self::DynamicSymbols | Self::Export | Self::PublicSymbols
        )
    }
}

/// Why there is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Missing {
    /// The image maps nothing at the address.
    OutsideImage,
    /// A file offset cannot be converted: the program headers of a debug file do not state where
    /// the image's bytes are mapped.
    NoSegment,
    /// No symbol of the file covers the address.
    NoName,
    /// The data that covers the address is damaged; see [`Answers::damage`].
    Damaged,
    /// A limit on work was reached; see [`Answers::damage`].
    LimitReached,
}

/// Index of an interned name of an [`Answers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub(crate) u32);

/// Index of an interned file path of an [`Answers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub(crate) u32);

impl NameId {
    /// Returns the number, dense from 0 in order of first use.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A frame in 40 bytes, with ids for text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The line was not looked up because of a limit.
    pub(crate) line_limited: bool,
    /// The line may belong to an inlinee.
    pub(crate) line_uncertain: bool,
    pub(crate) source: Source,
}

/// What few queries want of a frame.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameDetail {
    pub(crate) file: Option<NonZeroId>,
    pub(crate) line: u32,
    pub(crate) low_pc: Option<u64>,
    /// The line is that of earlier code.
    pub(crate) line_approximate: bool,
}

/// An id stored as id + 1, so that `Option` takes no more space.
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

/// Interned strings: one buffer of text, and the end of each string by id.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    text: String,
    copy: Vec<u8>,
    ends: Vec<u32>,
    ids: HashTable<u32>,
    hash: RandomState,
}

impl Strings {
    /// Returns the id of a string; `None` once 4 GiB of text are stored.
    ///
    /// A long name or path is cut; see `name_limit.rs`.
    pub(crate) fn intern(&mut self, text: &[u8]) -> Option<NonZeroId> {
        let text = &*limited(text);
        let hash = self.hash.hash_one(text);
        let same = |&id: &u32| span(&self.text, &self.ends, id).as_bytes() == text;
        if let Some(&id) = self.ids.find(hash, same) {
            return Some(NonZeroId::new(id));
        }
        let id = u32::try_from(self.ends.len()).ok()?;
        let end = u32::try_from(self.text.len().checked_add(text.len())?).ok()?;
        // Copied before it is checked: the file may change in between.
        self.copy.clear();
        self.copy.extend_from_slice(text);
        match std::str::from_utf8(&self.copy) {
            Ok(text) => self.text.push_str(text),
            // The replacement is UTF-8, so this recurs once.
            Err(_) => {
                let replaced = String::from_utf8_lossy(&self.copy).into_owned();
                return self.intern(replaced.as_bytes());
            }
        }
        self.ends.push(end);
        let (texts, ends, hash_of) = (&self.text, &self.ends, &self.hash);
        let rehash = |&id: &u32| hash_of.hash_one(span(texts, ends, id).as_bytes());
        self.ids.insert_unique(hash, id, rehash);
        Some(NonZeroId::new(id))
    }

    /// As [`Strings::intern`], quicker if the string is that of `recent`, which it then is.
    pub(crate) fn intern_recent(
        &mut self,
        text: &[u8],
        recent: &mut Option<NonZeroId>,
    ) -> Option<NonZeroId> {
        let is_recent = |id: NonZeroId| self.get(id.get()).as_bytes() == text;
        if !recent.is_some_and(is_recent) {
            *recent = self.intern(text);
        }
        *recent
    }

    pub(crate) fn get(&self, id: u32) -> &str {
        span(&self.text, &self.ends, id)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns all strings, one after the other.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the end of each string in [`Self::text`].
    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.ids.clear();
    }

    /// Interns the strings of another table and returns their ids here.
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

impl StoredAnswer {
    /// Returns the answer for an address that is not in the image.
    pub(crate) fn outside(address: u64) -> Self {
        Self {
            address,
            start: 0,
            len: 0,
            missing: Missing::OutsideImage,
        }
    }

    /// Returns the answer with the frames from `start` on.
    pub(crate) fn since(start: usize, address: u64, out: &Answers) -> Self {
        Self {
            address,
            start: start as u32,
            len: out.frames.len().saturating_sub(start) as u32,
            missing: Missing::NoName,
        }
    }
}

/// The answers to a batch of addresses, in the order of the query.
///
/// A buffer to reuse: a batch clears it and keeps its memory. Names and paths are interned, so
/// equal names of a batch have equal [`NameId`]s.
#[derive(Debug, Default)]
pub struct Answers {
    pub(crate) names: Strings,
    pub(crate) files: Strings,
    pub(crate) frames: Vec<StoredFrame>,
    /// By index of the frame; empty for most queries.
    pub(crate) details: HashMap<usize, FrameDetail>,
    pub(crate) answers: Vec<StoredAnswer>,
    pub(crate) damage: Vec<String>,
    /// Whether the query wanted lines.
    pub(crate) lines: bool,
    demangled: Vec<OnceLock<Readable>>,
}

/// A demangled name, or why there is none.
type Readable = Result<Box<str>, Unreadable>;

/// The number of descriptions of damage that are kept.
const MAX_DAMAGE: usize = 64;

impl Answers {
    /// Creates an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of answers: one for every address of the query.
    pub fn len(&self) -> usize {
        self.answers.len()
    }

    /// True before the first batch.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty()
    }

    /// Returns the answer to the `index`th address.
    pub fn get(&self, index: usize) -> Option<Answer<'_>> {
        let raw = *self.answers.get(index)?;
        Some(Answer { all: self, raw })
    }

    /// Returns all answers in the order of the query.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Answer<'_>> {
        self.answers.iter().map(|&raw| Answer { all: self, raw })
    }

    /// Returns the number of distinct names; every [`NameId`] is less than it.
    pub fn name_count(&self) -> usize {
        self.names.len()
    }

    /// Returns a name as in the file.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id.0)
    }

    /// Returns the demangled name ([`demangle`]), or the name as in the file, cut to 4 KiB if a
    /// limit was reached. Demangled on first use.
    pub fn demangled(&self, id: NameId) -> &str {
        let raw = self.names.get(id.0);
        match self.readable(id) {
            Some(Ok(readable)) => readable,
            Some(Err(why)) => why.shown(raw),
            None => raw,
        }
    }

    /// Returns true if the name is cut, or not demangled, because a limit was reached.
    pub fn name_limited(&self, id: NameId) -> bool {
        is_cut(self.name(id)) || matches!(self.readable(id), Some(Err(Unreadable::LimitReached)))
    }

    fn readable(&self, id: NameId) -> Option<&Readable> {
        let demangle = || demangle(self.names.get(id.0)).map(String::into_boxed_str);
        let cell = self.demangled.get(id.index())?;
        Some(cell.get_or_init(demangle))
    }

    /// Returns a source path: absolute where the debug information makes it so.
    pub fn file(&self, id: FileId) -> &str {
        self.files.get(id.0)
    }

    /// Descriptions of the damage met in this batch, each once, at most 64.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    pub(crate) fn clear(&mut self) {
        self.names.clear();
        self.files.clear();
        self.frames.clear();
        self.details.clear();
        self.answers.clear();
        self.damage.clear();
        self.demangled.clear();
    }

    pub(crate) fn note_damage(&mut self, text: String) {
        if self.damage.len() < MAX_DAMAGE && !self.damage.contains(&text) {
            self.damage.push(text);
        }
    }

    /// Called once all names are interned.
    pub(crate) fn seal(&mut self) {
        self.demangled.resize_with(self.names.len(), OnceLock::new);
    }

    /// Moves the text and frames of another buffer here; returns the number to add to its frame
    /// indexes.
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
        let details = other.details.drain().map(|(index, detail)| {
            let file = here(&files, detail.file);
            let index = index.saturating_add(frames as usize);
            (index, FrameDetail { file, ..detail })
        });
        self.details.extend(details);
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
    /// Returns the virtual address, converted from an [`Address::Rva`] or a file offset if need be.
    pub fn address(&self) -> u64 {
        self.raw.address
    }

    /// Returns the frames, innermost first: the innermost inlinee, its callers, and last the
    /// function whose code this is.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = Frame<'a>> + use<'a> {
        let all = self.all;
        let start = self.raw.start as usize;
        let end = start.saturating_add(self.raw.len as usize);
        let frames = all.frames.get(start..end).unwrap_or(&[]);
        let frames = frames.iter().enumerate();
        frames.map(move |(at, raw)| Frame {
            all,
            raw,
            index: start.saturating_add(at),
        })
    }

    /// Returns why there is no frame; `None` if there are some.
    pub fn missing(&self) -> Option<Missing> {
        (self.raw.len == 0).then_some(self.raw.missing)
    }
}

/// One function at an address.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    all: &'a Answers,
    raw: &'a StoredFrame,
    index: usize,
}

impl<'a> Frame<'a> {
    /// Returns the name of the function as in the file, mangled: its linkage name, else its plain
    /// name, else that of the symbol.
    pub fn name(&self) -> Option<&'a str> {
        self.name_id().map(|id| self.all.name(id))
    }

    /// Its id.
    pub fn name_id(&self) -> Option<NameId> {
        self.raw.name.map(|id| NameId(id.get()))
    }

    /// Returns the demangled name; see [`Answers::demangled`].
    pub fn demangled(&self) -> Option<&'a str> {
        self.name_id().map(|id| self.all.demangled(id))
    }

    /// Returns true if the name is cut, or not demangled, because a limit was reached.
    pub fn name_limited(&self) -> bool {
        let id = self.name_id();
        id.is_some_and(|id| self.all.name_limited(id))
    }

    /// Returns the name of the symbol that covers this code, in the last frame, if the query wanted
    /// it ([`Query::symbol_names`](crate::Query::symbol_names)).
    pub fn symbol_id(&self) -> Option<NameId> {
        self.raw.symbol.map(|id| NameId(id.get()))
    }

    /// Returns the source file: that of the code in the first frame, those of the calls in the
    /// others.
    pub fn file(&self) -> Option<&'a str> {
        self.file_id().map(|id| self.all.file(id))
    }

    /// Its id.
    pub fn file_id(&self) -> Option<FileId> {
        self.raw.file.map(|id| FileId(id.get()))
    }

    /// Returns the line, from 1; `None` for code that belongs to no line.
    pub fn line(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.raw.line)
    }

    /// Returns true if the line was not looked up because a limit was reached; see
    /// [`Answers::damage`].
    pub fn line_limited(&self) -> bool {
        self.raw.line_limited
    }

    /// Returns true if the line may belong to a function that is inlined at the address: the line
    /// table is there, but the file with the entries of the split unit (`.dwo`) is missing.
    pub fn line_uncertain(&self) -> bool {
        self.raw.line_uncertain
    }

    /// Returns true if the code belongs to no line, and the line is that of earlier code
    /// ([`Query::skip_line_zero`](crate::Query::skip_line_zero)).
    pub fn line_approximate(&self) -> bool {
        self.detail().line_approximate
    }

    /// Returns where the function is declared, if the query wanted it
    /// ([`Query::declarations`](crate::Query::declarations)).
    ///
    /// The address is `DW_AT_low_pc`: functions of several ranges have none.
    pub fn declaration(&self) -> FunctionStart<'a> {
        let detail = self.detail();
        let file = detail.file.map(|id| self.all.files.get(id.get()));
        let line = NonZeroU32::new(detail.line).map(NonZeroU32::get);
        FunctionStart::new(file, line, detail.low_pc)
    }

    fn detail(&self) -> FrameDetail {
        let detail = self.all.details.get(&self.index);
        detail.copied().unwrap_or_default()
    }

    /// Returns the column, from 1; `None` if it is not recorded.
    pub fn column(&self) -> Option<NonZeroU32> {
        NonZeroU32::new(self.raw.column)
    }

    /// DWARF's discriminator of several blocks on one line; 0 for none.
    pub fn discriminator(&self) -> u32 {
        self.raw.discriminator
    }

    /// Returns true if this function was inlined into the next frame's.
    pub fn inlined(&self) -> bool {
        self.raw.inlined
    }

    /// Returns the virtual address of the start of the function's code, or of the inlined code.
    pub fn function_start(&self) -> Option<u64> {
        self.raw.has_function.then_some(self.raw.function)
    }

    /// Returns true for languages that do not mangle names, such as C: the plain name is the
    /// linkage name.
    pub(crate) fn plain_names(&self) -> bool {
        self.raw.plain_names
    }

    /// Returns the source of the name.
    pub fn source(&self) -> Source {
        self.raw.source
    }
}
