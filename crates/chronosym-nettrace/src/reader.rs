//! The reader: takes bytes from the source, steps from block to block, hands out regions.

use std::io::Read;

use crate::clock::Clock;
use crate::cursor::{Cursor, Fault, Parsed};
use crate::decoder::{Decoder, EventBlock, Stop};
use crate::diagnostics::{Diagnostics, Truncation};
use crate::error::Error;
use crate::event_type::EventType;
use crate::header::TraceHeader;
use crate::netperf::MetadataForm;
use crate::open::{self, Opened};
use crate::region::Region;
use crate::window::Window;

/// What a reader may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bytes that one region may take in memory, read-ahead and tables aside: its blocks as read plus 48 bytes an event.
    ///
    /// A trace without sequence points is one region from start to end. When a region reaches the limit, what there
    /// is of it is delivered and [`Diagnostics::forced_regions`] counts it. 256 MiB unless told, at most 1 GiB; real
    /// regions are below 10 MB.
    pub region_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            region_limit: 256 << 20,
        }
    }
}

impl Options {
    /// These options with another [`region_limit`](Self::region_limit).
    pub fn with_region_limit(mut self, bytes: usize) -> Self {
        self.region_limit = bytes;
        self
    }
}

/// Reads a trace from front to back, one ordering region at a time.
///
/// The source may be a file, a pipe, a socket or a decompressor: nothing seeks. It needs no `BufReader`.
pub struct Reader<R> {
    pub(crate) window: Window<R>,
    /// Position in the window of what comes next.
    pub(crate) at: usize,
    pub(crate) header: TraceHeader,
    pub(crate) clock: Clock,
    pub(crate) decoder: Decoder,
    pub(crate) framing: Framing,
    pub(crate) stage: Stage,
    /// Stream offset up to which everything has been used.
    used_to: u64,
    region_limit: usize,
}

/// How a file is cut into pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// V1, V2: one event after the other.
    Events(MetadataForm),
    /// V3: objects with blocks of netperf events.
    NetperfObjects,
    /// V4: objects with blocks.
    Objects,
    /// V6: blocks.
    Blocks,
}

/// Where in the file the reader stands.
pub(crate) enum Stage {
    /// Before a block, an object, or in V1 and V2 an event.
    Between,
    /// In a block of events or metadata events, V4 and later.
    Blobs(Box<EventBlock>),
    /// In a V3 block of events that ends at this stream offset.
    NetperfEvents(u64),
    /// Before an object's end tag.
    EndTag,
    /// Looking for the next object after damage.
    Lost,
    /// After the last thing that could be read.
    Ended,
}

pub(crate) enum Step {
    Next,
    /// A sequence point was passed, or a region reached a natural size in a format without them.
    RegionEnd,
    /// The region reached its limit.
    Full,
}

/// Why something was not read.
pub(crate) enum Trouble {
    /// The stream ends inside.
    Cut,
    /// It is not what it should be.
    Bad,
}

/// Netperf is in time order as it stands: any size of region will do.
pub(crate) const NETPERF_REGION: usize = 1 << 20;

impl<R: Read> Reader<R> {
    /// Begins a trace: reads its header and nothing more.
    ///
    /// # Errors
    /// [`Error::NotATrace`], [`Error::UnsupportedVersion`], [`Error::BadHeader`], [`Error::Io`]. A header that is cut
    /// short is no error: the trace has no events then and [`Diagnostics::truncation`] is set.
    pub fn new(source: R) -> Result<Self, Error> {
        Self::with_options(source, Options::default())
    }

    /// As [`new`](Self::new), with limits of one's own.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_options(source: R, options: Options) -> Result<Self, Error> {
        const MOST: usize = 1 << 30;
        let mut window = Window::new(source);
        let Opened {
            header,
            framing,
            at,
            cut,
        } = open::open(&mut window)?;
        let clock = Clock::new(&header);
        let region_limit = options.region_limit.min(MOST);
        let decoder = Decoder::new(
            clock,
            header.pointer_size,
            framing == Framing::Blocks,
            region_limit,
        );
        let stage = Stage::Between;
        let mut reader = Self {
            window,
            at,
            header,
            clock,
            decoder,
            framing,
            stage,
            used_to: 0,
            region_limit,
        };
        if cut {
            reader.cut();
        }
        reader.decoder.diagnostics.bytes_read = reader.window.end_offset();
        Ok(reader)
    }

    /// From now on gives records only of events whose type `wants` is true of. The others are merely counted, which
    /// is a good deal faster: [`Region::counted`]. Events with labels (V6) become records in any case.
    pub fn select(&mut self, wants: impl Fn(&EventType) -> bool + Send + 'static) {
        self.decoder.types.select(Box::new(wants));
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// The event types known so far; a type keeps its index, a redefinition gets a new one.
    pub fn event_types(&self) -> &[EventType] {
        self.decoder.types.all()
    }

    /// What was wrong with the trace so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.decoder.diagnostics
    }

    /// Reads up to the next sequence point and returns the events before it; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if the source fails, after everything read before has been delivered. Damage is counted in
    /// [`diagnostics`](Self::diagnostics) and never an error.
    pub fn next_region(&mut self) -> Result<Option<Region<'_>>, Error> {
        self.begin_region();
        while !matches!(self.stage, Stage::Ended) {
            let step = self.step();
            let ends = match step {
                Step::Next => self.decoder.region.size() + self.at > self.region_limit,
                Step::RegionEnd | Step::Full => true,
            };
            if !ends {
                continue;
            }
            if self.decoder.region.is_empty() {
                self.begin_region();
                continue;
            }
            if !matches!(step, Step::RegionEnd) {
                self.decoder.diagnostics.forced_regions += 1;
            }
            break;
        }
        self.decoder.diagnostics.bytes_read = self.window.end_offset();
        if self.decoder.region.is_empty() {
            let offset = self.window.end_offset();
            return match self.window.take_failure() {
                Some(source) => Err(Error::Io { offset, source }),
                None => Ok(None),
            };
        }
        Ok(Some(Region {
            bytes: self.window.bytes(),
            data: &self.decoder.region,
            header: &self.header,
            clock: self.clock,
            types: &self.decoder.types,
            threads: (self.framing == Framing::Blocks).then_some(&self.decoder.threads),
        }))
    }

    fn begin_region(&mut self) {
        self.window.discard(self.at);
        self.at = 0;
        self.decoder.begin_region();
        if let Stage::Blobs(block) = &mut self.stage {
            block.begin_region();
        }
    }

    fn step(&mut self) -> Step {
        match &self.stage {
            Stage::Between => match self.framing {
                Framing::Events(form) => self.bare_event(form),
                Framing::NetperfObjects | Framing::Objects => self.object(),
                Framing::Blocks => self.block(),
            },
            Stage::Blobs(_) => self.blobs(),
            &Stage::NetperfEvents(end) => self.netperf_events(end),
            Stage::EndTag => self.end_tag(),
            Stage::Lost => self.find_object(),
            Stage::Ended => Step::Next,
        }
    }

    /// Reads something small; the stream is asked for no more bytes than it takes.
    pub(crate) fn read<T>(
        &mut self,
        read: impl Fn(&mut Cursor<'_>, u64) -> Parsed<T>,
    ) -> Result<T, Trouble> {
        loop {
            let mut cursor = Cursor::starting_at(self.window.bytes(), self.at);
            match read(&mut cursor, self.window.offset(0)) {
                Ok(value) => {
                    self.at = cursor.position();
                    return Ok(value);
                }
                Err(Fault::Short) if self.window.read_more() => {}
                Err(Fault::Short) => return Err(Trouble::Cut),
                Err(Fault::Bad) => return Err(Trouble::Bad),
            }
        }
    }

    /// Everything before the position has been used.
    pub(crate) fn mark(&mut self) {
        self.used_to = self.window.offset(self.at);
    }

    /// Ends the read where the stream ended too early.
    pub(crate) fn cut(&mut self) {
        let bytes_lost = self.window.end_offset() - self.used_to;
        self.at = self.window.bytes().len();
        self.decoder.diagnostics.truncation = Some(Truncation {
            at_offset: self.used_to,
            bytes_lost,
        });
        self.stage = Stage::Ended;
    }

    /// Ends the read where nothing more can be found, although the stream goes on.
    pub(crate) fn give_up(&mut self) {
        let position = self.window.bytes().len();
        while self.window.fill_to(position + 1) {
            let more = (self.window.bytes().len() - position) as u64;
            self.window.drop_bytes(position, more);
        }
        self.decoder.diagnostics.bad_bytes += self.window.end_offset() - self.used_to;
        self.cut();
    }

    /// Counts bytes that are stepped over because nothing can be made of them.
    pub(crate) fn give_up_to(&mut self, position: usize) {
        self.decoder.diagnostics.bad_bytes += position.saturating_sub(self.at) as u64;
        self.at = position;
    }

    /// Steps over what is left of a block, `size` bytes, without holding more than is there already.
    pub(crate) fn step_over(&mut self, size: u64) {
        let held = self.window.bytes().len() - self.at;
        if size <= held as u64 {
            self.at += size as usize;
        } else if !self.window.drop_bytes(self.at, size) {
            return self.cut();
        }
        self.end_block();
    }

    /// Begins a block of events at its header.
    pub(crate) fn open_blobs(&mut self, size: u32, metadata: bool) {
        let end = self.window.offset(self.at) + u64::from(size);
        let opened = loop {
            let bytes = self.window.bytes();
            let mut cursor = Cursor::starting_at(bytes, self.at);
            match self.decoder.open_block(&mut cursor, size, end, metadata) {
                Ok(block) => {
                    self.at = cursor.position();
                    break Ok(block);
                }
                Err(Fault::Short) if self.window.read_more() => {}
                Err(fault) => break Err(fault),
            }
        };
        match opened {
            Ok(block) => self.stage = Stage::Blobs(Box::new(block)),
            Err(Fault::Short) => self.cut(),
            Err(Fault::Bad) => {
                self.decoder.damaged();
                self.decoder.diagnostics.bad_blocks += 1;
                self.decoder.diagnostics.bad_bytes += u64::from(size);
                self.step_over(u64::from(size));
            }
        }
    }

    /// After a block's last byte.
    pub(crate) fn end_block(&mut self) {
        self.stage = if self.framing == Framing::Blocks {
            Stage::Between
        } else {
            Stage::EndTag
        };
    }

    fn blobs(&mut self) -> Step {
        let Stage::Blobs(block) = &mut self.stage else {
            return Step::Next;
        };
        let base = self.window.offset(0);
        let block_end = (block.end - base) as usize;
        let bytes = self.window.bytes();
        let whole = bytes.len() >= block_end;
        let readable = &bytes[..block_end.min(bytes.len())];
        let (at, stop) = self.decoder.events(block, readable, self.at, whole, base);
        self.at = at;
        self.mark();
        match stop {
            Stop::Done => self.end_block(),
            Stop::Full => return Step::Full,
            Stop::NeedMore if self.window.read_more() => {}
            Stop::NeedMore => self.cut(),
            Stop::Bad => {
                self.decoder.diagnostics.bad_records += 1;
                let left = (block_end - at) as u64;
                self.decoder.diagnostics.bad_bytes += left;
                self.step_over(left);
            }
        }
        Step::Next
    }
}
