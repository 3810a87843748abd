//! jitdump: what a runtime compiled, when, and where it put the code.
//!
//! ```no_run
//! use chronosym_perf::jitdump::{Reader, Record};
//!
//! # fn list(source: impl std::io::Read) -> Result<(), chronosym_perf::Error> {
//! let mut reader = Reader::new(source)?;
//! while let Some(record) = reader.next_record()? {
//!     if let Record::Load(load) = record {
//!         println!("{} {:#x} {}", load.time, load.address, String::from_utf8_lossy(load.name));
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! There is no record for code that goes: the latest load or move that covers an address is what stood there, and ends
//! what it overlaps. Records come in the order of the file, which is that of their times unless
//! [`Diagnostics::late_records`] says otherwise.

use std::io::Read;

use crate::bytes::{ByteOrder, Cursor};
use crate::error::{Error, Truncation};
use crate::stream::Stream;

const FORMAT: &str = "jitdump";
const HEADER: usize = 40;
const RECORD_HEADER: usize = 16;
/// A record is held whole, but not one that is larger than this.
const MOST_RECORD: usize = 256 << 20;

/// What a jitdump says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The order of bytes of the machine that wrote it.
    pub byte_order: ByteOrder,
    /// ELF's number of the processor: 62 x86-64, 183 arm64.
    pub elf_machine: u32,
    /// The process, by the number that it has for itself: in a container another than outside.
    pub pid: u32,
    /// Times are cycles of the processor's counter
    /// ([`TimeConversion`](crate::TimeConversion)); otherwise they are ns of `CLOCK_MONOTONIC`.
    pub has_cycles: bool,
    /// V8 wrote it: the addresses of its lines are too high by the size of an ELF header.
    is_v8: bool,
}

/// One record; it borrows from the reader until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// Code was compiled.
    Load(Load<'a>),
    /// Code was moved: from then on it stands at the new address only.
    Move(Move),
    /// The runtime ended in order.
    Close {
        /// As [`Load::time`].
        time: u64,
    },
}

/// Code that was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load<'a> {
    /// ns, or cycles: [`Header::has_cycles`].
    pub time: u64,
    /// Process.
    pub pid: u32,
    /// Thread that compiled it.
    pub tid: u32,
    /// First address of the code.
    pub address: u64,
    /// Bytes of the code.
    pub size: u64,
    /// Number of the code body, of which a [`Move`] speaks.
    pub index: u64,
    /// The name, in the spelling of the runtime.
    pub name: &'a [u8],
    /// The machine code; `None` if the file does not have it.
    pub code: Option<&'a [u8]>,
    /// Offset of the machine code in the file, in bytes.
    pub code_offset: u64,
    /// Source lines.
    pub lines: Lines<'a>,
    /// How to unwind.
    pub unwinding: Option<Unwinding<'a>>,
}

/// Code that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Move {
    /// ns, or cycles: [`Header::has_cycles`].
    pub time: u64,
    /// Process.
    pub pid: u32,
    /// Thread that moved it.
    pub tid: u32,
    /// First address before.
    pub old_address: u64,
    /// First address from now on. The two ranges may overlap.
    pub new_address: u64,
    /// Bytes of the code.
    pub size: u64,
    /// As [`Load::index`].
    pub index: u64,
}

/// Unwind tables of a code body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unwinding<'a> {
    /// `.eh_frame`.
    pub eh_frame: &'a [u8],
    /// `.eh_frame_hdr`.
    pub eh_frame_header: &'a [u8],
    /// Bytes of both that are mapped in the process; 0 if they are in the file only.
    pub mapped_size: u64,
}

/// A position in source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line<'a> {
    /// First address of the code that it is about.
    pub address: u64,
    /// Line, from 1.
    pub line: u32,
    /// Column, or a discriminator: as the runtime sees it.
    pub column: u32,
    /// Path of the source file.
    pub path: &'a [u8],
}

/// The source lines of a code body, in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines<'a> {
    rows: Cursor<'a>,
    left: u64,
    path: &'a [u8],
    /// What addresses are too high by.
    bias: u64,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        const AS_BEFORE: [u8; 2] = [0xff, 0];
        self.left = self.left.checked_sub(1)?;
        let address = self.rows.u64()?.wrapping_sub(self.bias);
        let (line, column) = (self.rows.u32()?, self.rows.u32()?);
        if self.rows.rest().starts_with(&AS_BEFORE) {
            self.rows.take(AS_BEFORE.len());
        } else {
            self.path = self.rows.text();
        }
        Some(Line {
            address,
            line,
            column,
            path: self.path,
        })
    }
}

/// Everything about a jitdump that was not as it should be, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes read from the source.
    pub bytes_read: u64,
    /// Records read, those that belong to a load and unknown ones among them.
    pub records: u64,
    /// Set if the file ends inside a record or cannot be followed further.
    pub truncation: Option<Truncation>,
    /// Records whose content does not fit their size, left out.
    pub bad_records: u64,
    /// Line tables that do not end where they should, left out: their code is there without lines.
    pub bad_lines: u64,
    /// Records of a type that this reader does not know, left out.
    pub unknown_records: u64,
    /// Records whose time is before that of an earlier record.
    pub late_records: u64,
}

impl Diagnostics {
    /// Whether the file was whole and read entirely.
    pub fn is_clean(&self) -> bool {
        let counted = Self {
            bytes_read: self.bytes_read,
            records: self.records,
            ..Self::default()
        };
        *self == counted
    }
}

/// Reads a jitdump from front to back, from any source.
pub struct Reader<R> {
    stream: Stream<R>,
    header: Header,
    diagnostics: Diagnostics,
    /// Bytes of the record that was handed out last.
    used: usize,
    latest: u64,
    /// Bodies of records that belong to the next load.
    lines: Vec<u8>,
    unwinding: Vec<u8>,
}

/// The header of a record.
#[derive(Clone, Copy)]
struct Head {
    kind: u32,
    size: usize,
    time: u64,
}

const LOAD: u32 = 0;
const MOVE: u32 = 1;
const DEBUG_INFO: u32 = 2;
const CLOSE: u32 = 3;
const UNWINDING_INFO: u32 = 4;

impl<R: Read> Reader<R> {
    /// Begins a jitdump: reads its header and nothing more.
    ///
    /// # Errors
    /// [`Error::WrongFormat`], [`Error::UnsupportedVersion`], [`Error::DamagedHeader`], [`Error::Io`].
    pub fn new(source: R) -> Result<Self, Error> {
        let mut stream = Stream::new(source);
        let header = read_header(&mut stream);
        if let Some(source) = stream.take_failure() {
            let offset = stream.end_offset();
            return Err(Error::Io { offset, source });
        }
        Ok(Self {
            header: header?,
            diagnostics: Diagnostics {
                bytes_read: stream.end_offset(),
                ..Diagnostics::default()
            },
            stream,
            used: 0,
            latest: 0,
            lines: Vec::new(),
            unwinding: Vec::new(),
        })
    }

    /// What the file says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was wrong with the file so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// The next load, move or close; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if the source fails, after everything read before has been delivered. Damage is counted in
    /// [`diagnostics`](Self::diagnostics) and never an error.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        self.stream.advance(std::mem::take(&mut self.used));
        let head = loop {
            let Some(head) = self.head() else {
                return match self.stream.take_failure() {
                    Some(source) => Err(Error::Io { offset: self.stream.end_offset(), source }),
                    None => Ok(None),
                };
            };
            if self.is_delivered(head) {
                break head;
            }
            self.stream.advance(head.size);
        };
        self.used = head.size;
        self.latest = self.latest.max(head.time);
        let offset = self.stream.offset();
        Ok(self.decode(head, offset))
    }

    /// The header of the next record, which is in the stream whole.
    fn head(&mut self) -> Option<Head> {
        let order = self.header.byte_order;
        let head = self.stream.peek(RECORD_HEADER).and_then(|bytes| {
            let mut at = Cursor::new(bytes, order);
            let (kind, size, time) = (at.u32()?, at.u32()? as usize, at.u64()?);
            Some(Head { kind, size, time })
        });
        let fits = |head: &Head| (RECORD_HEADER..=MOST_RECORD).contains(&head.size);
        let head = head.filter(fits).filter(|head| self.stream.peek(head.size).is_some());
        if head.is_none() {
            let at_offset = self.stream.offset();
            let bytes_lost = self.stream.skip(u64::MAX);
            if bytes_lost > 0 {
                self.diagnostics.truncation = Some(Truncation { at_offset, bytes_lost });
            }
        }
        self.diagnostics.bytes_read = self.stream.end_offset();
        head
    }

    /// Counts a record and keeps what belongs to the next load; whether it is one to hand out.
    fn is_delivered(&mut self, head: Head) -> bool {
        self.diagnostics.records += 1;
        let body = &self.stream.bytes()[RECORD_HEADER..head.size];
        let mut at = Cursor::new(body, self.header.byte_order);
        match head.kind {
            DEBUG_INFO => {
                self.lines.clear();
                self.lines.extend_from_slice(body);
                return false;
            }
            UNWINDING_INFO => {
                self.unwinding.clear();
                self.unwinding.extend_from_slice(body);
                return false;
            }
            LOAD if load(&mut at).is_some() => {}
            MOVE if at.take(48).is_some() => {}
            CLOSE => {}
            LOAD | MOVE => {
                self.diagnostics.bad_records += 1;
                self.forget();
                return false;
            }
            _ => {
                self.diagnostics.unknown_records += 1;
                return false;
            }
        }
        self.diagnostics.late_records += u64::from(head.time < self.latest);
        true
    }

    /// Drops what belongs to a load that is not there.
    fn forget(&mut self) {
        self.lines.clear();
        self.unwinding.clear();
    }

    fn decode(&mut self, head: Head, offset: u64) -> Option<Record<'_>> {
        None
    }
}

fn load<'a>(at: &mut Cursor<'a>) -> Option<Load<'a>> {
    None
}

fn read_header<R: Read>(stream: &mut Stream<R>) -> Result<Header, Error> {
    todo!()
}
