//! Reads jitdump files: code that a runtime compiled, with names, lines and times.
//! [`Reader::next_record`] has an example.
//!
//! No record ends the lifetime of code: the latest load or move that covers an address applies, and
//! ends the lifetime of code it overlaps. Records are delivered in file order, which is time order
//! unless [`Diagnostics::late_records`] is not 0.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of what was read, and places in it"
)]

use std::io::Read;

use chronosym_types::{ByteOrder, Gap, GapCause, Gaps, Window};

use crate::bytes::Cursor;
use crate::error::Error;

const FORMAT: &str = "jitdump";
const HEADER: usize = 40;
const RECORD_HEADER: usize = 16;

/// Limits of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Maximum size of a record in bytes, which is held in memory; a larger one ends the file. The
    /// default is 256 MiB.
    pub record_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            record_limit: 256 << 20,
        }
    }
}

/// The header of a jitdump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Byte order of the machine that wrote it.
    pub byte_order: ByteOrder,
    /// The process id, in the process's own pid namespace.
    pub pid: u32,
    /// Times are cycles of the processor's counter
    /// ([`TimeConversion`](crate::TimeConversion)); otherwise they are ns of `CLOCK_MONOTONIC`.
    pub has_cycles: bool,
    /// Bias of the addresses of lines.
    line_bias: u64,
}

/// One record, borrowed from the reader until the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// Code was compiled.
    Load(Load<'a>),
    /// Code was moved to a new address.
    Move(Move),
    /// The runtime shut down.
    Close,
}

/// Code that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load<'a> {
    /// ns, or cycles: [`Header::has_cycles`].
    pub time: u64,
    /// Thread that compiled it.
    pub tid: u32,
    /// First address of the code.
    pub address: u64,
    /// Bytes of the code.
    pub size: u64,
    /// The name, as the runtime formats it.
    pub name: &'a [u8],
    /// Source lines.
    pub lines: Lines<'a>,
    /// `.eh_frame` of the code, from the record before it; empty without one. Its addresses are
    /// those of a section that follows the code, aligned to 8 bytes.
    pub eh_frame: &'a [u8],
}

/// Code that was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Move {
    /// ns, or cycles: [`Header::has_cycles`].
    pub time: u64,
    /// Thread that moved it.
    pub tid: u32,
    /// First address before the move.
    pub old_address: u64,
    /// First address after the move. The two ranges may overlap.
    pub new_address: u64,
}

/// A position in source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line<'a> {
    /// First address of the line's code.
    pub address: u64,
    /// Line, from 1.
    pub line: u32,
    /// Path of the source file.
    pub path: &'a [u8],
}

/// The source lines of a code body, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines<'a> {
    entries: Cursor<'a>,
    left: u64,
    path: &'a [u8],
    /// Bias of the addresses.
    bias: u64,
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        const AS_BEFORE: [u8; 2] = [0xff, 0];
        let left = self.left.checked_sub(1)?;
        let address = self.entries.u64()?.wrapping_sub(self.bias);
        let (line, _column) = (self.entries.u32()?, self.entries.u32()?);
        if self.entries.rest().starts_with(&AS_BEFORE) {
            self.entries.take(AS_BEFORE.len());
        } else {
            self.path = self.entries.text();
        }
        self.left = left;
        Some(Line {
            address,
            line,
            path: self.path,
        })
    }
}

/// What was damaged or unknown in a jitdump, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes read from the source.
    pub bytes_read: u64,
    /// Records read, including debug info and unknown ones.
    pub records: u64,
    /// The end of a file that is cut short, or after which records cannot be found.
    pub gaps: Gaps,
    /// Records whose content exceeds their size, skipped.
    pub bad_records: u64,
    /// Malformed line tables, skipped: their code has no lines.
    pub bad_lines: u64,
    /// Records of unknown types, skipped.
    pub unknown_records: u64,
    /// Records that are earlier than a previous one.
    pub late_records: u64,
}

impl Diagnostics {
    /// Returns whether the file was whole and read entirely.
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
    window: Window<R>,
    header: Header,
    options: Options,
    diagnostics: Diagnostics,
    /// Bytes of the record that was delivered last.
    used: usize,
    latest: u64,
    /// The body of the record with the lines of the next load.
    lines: Vec<u8>,
    /// The body of the record with the unwind information of the next load.
    unwinding: Vec<u8>,
}

mod kind {
    pub(super) const LOAD: u32 = 0;
    pub(super) const MOVE: u32 = 1;
    pub(super) const DEBUG_INFO: u32 = 2;
    pub(super) const CLOSE: u32 = 3;
    pub(super) const UNWINDING_INFO: u32 = 4;
}

/// The header of a record.
#[derive(Clone, Copy)]
struct Head {
    kind: u32,
    size: usize,
    time: u64,
}

impl<R: Read> Reader<R> {
    /// Opens a jitdump and reads its header.
    ///
    /// # Errors
    /// [`Error::WrongFormat`], [`Error::UnsupportedVersion`], [`Error::DamagedHeader`],
    /// [`Error::Io`].
    pub fn new(source: R, options: Options) -> Result<Self, Error> {
        let mut window = Window::new(source);
        let header = read_header(&mut window);
        if let Some(source) = window.take_failure() {
            let offset = window.end_offset();
            return Err(Error::Io { offset, source });
        }
        Ok(Self {
            header: header?,
            options,
            diagnostics: Diagnostics {
                bytes_read: window.end_offset(),
                ..Diagnostics::default()
            },
            window,
            used: 0,
            latest: 0,
            lines: Vec::new(),
            unwinding: Vec::new(),
        })
    }

    /// Returns the file's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the diagnostics so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Returns the next load, move or close; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if the source fails, after everything read before has been delivered. Damage
    /// is counted in [`diagnostics`](Self::diagnostics) and never an error.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_perf::jitdump::{Options, Reader, Record};
    /// # let mut writer = chronosym_support::perf::JitdumpWriter::new(false, 10, 0);
    /// # writer.lines(1, 0x7f00_1000, &[(0x7f00_1004, 12, Some("app.py"))]);
    /// # writer.load(1, 10, 0x7f00_1000, "py::work:app.py", &[0x90; 32]);
    /// # let dump = writer.file();
    ///
    /// let mut reader = Reader::new(&dump[..], Options::default())?;
    /// assert_eq!(reader.header().pid, 10);
    /// let Some(Record::Load(load)) = reader.next_record()? else { panic!("no code") };
    /// assert_eq!((load.address, load.size, load.name), (0x7f00_1000, 32, &b"py::work:app.py"[..]));
    /// let line = load.lines.clone().next().unwrap();
    /// assert_eq!((line.line, line.path), (12, &b"app.py"[..]));
    /// # Ok::<(), chronosym_perf::Error>(())
    /// ```
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, Error> {
        if self.used > 0 {
            self.window.discard(std::mem::take(&mut self.used));
            self.lines.clear();
            self.unwinding.clear();
        }
        let head = loop {
            let Some(head) = self.head() else {
                let offset = self.window.end_offset();
                return match self.window.take_failure() {
                    Some(source) => Err(Error::Io { offset, source }),
                    None => Ok(None),
                };
            };
            if self.is_whole(head) {
                break head;
            }
            self.window.discard(head.size);
        };
        self.used = head.size;
        self.diagnostics.late_records += u64::from(head.time < self.latest);
        self.latest = self.latest.max(head.time);
        Ok(self.decode(head))
    }

    /// Reads the header of the next record, and the whole record into memory.
    fn head(&mut self) -> Option<Head> {
        let order = self.header.byte_order;
        let head = self.window.peek(RECORD_HEADER).and_then(|bytes| {
            let mut at = Cursor::new(bytes, order);
            let (kind, size, time) = (at.u32()?, at.u32()? as usize, at.u64()?);
            Some(Head { kind, size, time })
        });
        let head = head
            .filter(|head| (RECORD_HEADER..=self.options.record_limit).contains(&head.size))
            .filter(|head| self.window.peek(head.size).is_some());
        if head.is_none() {
            let at = self.window.offset(0);
            let lost = self.window.drop_bytes(0, u64::MAX);
            if lost > 0 {
                let cut = Gap::new(at, lost, GapCause::CutShort);
                self.diagnostics.gaps.add(cut);
            }
        }
        self.diagnostics.bytes_read = self.window.end_offset();
        head
    }

    /// Returns the body of the next record.
    fn body(&self, head: Head) -> Cursor<'_> {
        let body = self.window.bytes().get(RECORD_HEADER..head.size);
        Cursor::new(body.unwrap_or_default(), self.header.byte_order)
    }

    /// Returns whether the record is delivered. Debug info is kept for the next load.
    fn is_whole(&mut self, head: Head) -> bool {
        self.diagnostics.records += 1;
        let body = self.body(head);
        match head.kind {
            kind::LOAD if body.rest().len() >= Load::LEAST => true,
            kind::MOVE if body.rest().len() >= Move::LEAST => true,
            kind::CLOSE => true,
            kind::DEBUG_INFO | kind::UNWINDING_INFO => {
                let body = self.window.bytes().get(RECORD_HEADER..head.size);
                let kept = match head.kind {
                    kind::DEBUG_INFO => &mut self.lines,
                    _ => &mut self.unwinding,
                };
                kept.clear();
                kept.extend_from_slice(body.unwrap_or_default());
                false
            }
            kind::LOAD | kind::MOVE => {
                self.diagnostics.bad_records += 1;
                self.lines.clear();
                self.unwinding.clear();
                false
            }
            _ => {
                self.diagnostics.unknown_records += 1;
                false
            }
        }
    }

    /// Decodes a complete record.
    fn decode(&mut self, head: Head) -> Option<Record<'_>> {
        let Header { byte_order, .. } = self.header;
        let body = self.window.bytes().get(RECORD_HEADER..head.size)?;
        let body = Cursor::new(body, byte_order);
        Some(match head.kind {
            kind::LOAD => {
                let mut load = Load::read(body, head.time)?;
                if !self.lines.is_empty() {
                    match Lines::read(&self.lines, &self.header, load.address) {
                        Some(lines) => load.lines = lines,
                        None => self.diagnostics.bad_lines += 1,
                    }
                }
                if !self.unwinding.is_empty() {
                    match eh_frame(Cursor::new(&self.unwinding, byte_order)) {
                        Some(bytes) => load.eh_frame = bytes,
                        None => self.diagnostics.bad_records += 1,
                    }
                }
                Record::Load(load)
            }
            kind::MOVE => Record::Move(Move::read(body, head.time)?),
            _ => Record::Close,
        })
    }
}

impl<'a> Load<'a> {
    /// Bytes before the name.
    const LEAST: usize = 40;

    fn read(mut at: Cursor<'a>, time: u64) -> Option<Self> {
        let (_pid, tid) = (at.u32()?, at.u32()?);
        // The second address is that of the code; the first one (`vma`) is unused.
        at.u64()?;
        let (address, size, _index) = (at.u64()?, at.u64()?, at.u64()?);
        Some(Self {
            time,
            tid,
            address,
            size,
            name: at.text(),
            lines: Lines::none(&at),
            eh_frame: &[],
        })
    }
}

/// Returns `.eh_frame` of a record of unwind information, which `.eh_frame_hdr` follows.
fn eh_frame(mut at: Cursor<'_>) -> Option<&[u8]> {
    let (size, header, _mapped) = (at.u64()?, at.u64()?, at.u64()?);
    let size = size.checked_sub(header)?;
    at.rest().get(..usize::try_from(size).ok()?)
}

impl Move {
    const LEAST: usize = 48;

    fn read(mut at: Cursor<'_>, time: u64) -> Option<Self> {
        let (_pid, tid) = (at.u32()?, at.u32()?);
        at.u64()?;
        Some(Self {
            time,
            tid,
            old_address: at.u64()?,
            new_address: at.u64()?,
        })
    }
}

impl<'a> Lines<'a> {
    fn none(at: &Cursor<'a>) -> Self {
        Self {
            entries: *at,
            left: 0,
            path: &[],
            bias: 0,
        }
    }

    /// Returns the lines of a debug record, if it belongs to the code at `address` and they fill
    /// it, up to padding.
    fn read(body: &'a [u8], header: &Header, address: u64) -> Option<Self> {
        const PADDING: usize = 7;
        let mut at = Cursor::new(body, header.byte_order);
        let (own, left) = (at.u64()?, at.u64()?);
        let lines = Self {
            left,
            bias: header.line_bias,
            ..Self::none(&at)
        };
        let mut walk = lines.clone();
        while walk.next().is_some() {}
        let is_whole = walk.left == 0 && walk.entries.rest().len() <= PADDING;
        (own == address && is_whole).then_some(lines)
    }
}

fn read_header<R: Read>(window: &mut Window<R>) -> Result<Header, Error> {
    let cut = Error::DamagedHeader {
        format: FORMAT,
        what: "it is cut short",
    };
    let byte_order = match window.peek(4) {
        Some(b"DTiJ") => ByteOrder::Little,
        Some(b"JiTD") => ByteOrder::Big,
        _ => return Err(Error::wrong_format(FORMAT, window.bytes())),
    };
    let Some(bytes) = window.peek(HEADER) else {
        return Err(cut);
    };
    let mut at = Cursor::new(bytes, byte_order);
    let mut next = || at.u32().unwrap_or(0);
    let [_, version, size, elf_machine, reserved, pid] = std::array::from_fn(|_| next());
    let flags = at.rest().get(8..);
    let flags = flags.and_then(|flags| Cursor::new(flags, byte_order).u64());
    // Version 2 of old Mono only omits fields.
    if !(1..=2).contains(&version) {
        return Err(Error::UnsupportedVersion {
            format: FORMAT,
            version,
            known: "1, 2",
        });
    }
    let size = u64::from(size).max(HEADER as u64);
    if window.drop_bytes(0, size) < size {
        return Err(cut);
    }
    Ok(Header {
        byte_order,
        pid,
        has_cycles: flags.unwrap_or(0) & 1 != 0,
        line_bias: line_bias(reserved, elf_machine),
    })
}

/// Bias of the addresses of lines: V8, which marks a reserved field, adds the size of the header of
/// the ELF file that `perf inject` makes of the code.
fn line_bias(reserved: u32, elf_machine: u32) -> u64 {
    const V8: u32 = 0xdead_beef;
    const X86: u32 = 3;
    const ARM: u32 = 40;
    match (reserved, elf_machine) {
        (V8, X86 | ARM) => 0x34,
        (V8, _) => 0x40,
        _ => 0,
    }
}
