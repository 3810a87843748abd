//! The reader: takes bytes from the source, steps from block to block, returns regions.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "positions and sizes in a region, which has at most 1 GiB, and counts of what was read"
)]

use std::io::Read;
use std::ops::Range;

use chronosym_types::Window;

use crate::clock::Clock;
use crate::decoder::Decoder;
use crate::diagnostics::Diagnostics;
use crate::error::Error;
use crate::event_type::EventType;
use crate::framing::Framing;
use crate::header::TraceHeader;
use crate::open::{self, Opened};
use crate::region::Region;
use crate::walk::{Stage, Step, Walk};

/// Limits of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Maximum memory of one region in bytes, apart from read-ahead and tables: its blocks as read
    /// plus 48 bytes per event.
    ///
    /// A trace without sequence points is one region from start to end. When a region reaches the
    /// limit, the part read so far is delivered and [`Diagnostics::forced_regions`] counts it. The
    /// default is 256 MiB, the maximum 1 GiB; real regions are below 10 MB.
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
/// The source may be a file, a pipe, a socket or a decompressor: nothing seeks. It needs no
/// `BufReader`.
pub struct Reader<R> {
    walk: Walk<R>,
    header: TraceHeader,
    clock: Clock,
    region_limit: usize,
}

impl<R: Read> Reader<R> {
    /// Starts a trace: reads its header only.
    ///
    /// # Errors
    ///
    /// [`Error::NotATrace`], [`Error::UnsupportedVersion`], [`Error::BadHeader`], [`Error::Io`]. A
    /// truncated header is not an error: the trace then has no events, and [`Diagnostics::gaps`]
    /// reports it.
    pub fn new(source: R, options: Options) -> Result<Self, Error> {
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
        let mut walk = Walk::new(window, at, decoder, framing);
        if cut {
            walk.cut();
        }
        walk.decoder.diagnostics.bytes_read = walk.window.end_offset();
        Ok(Self {
            walk,
            header,
            clock,
            region_limit,
        })
    }

    /// From now on gives records only of events whose type `wants` is true of. The others are
    /// merely counted, which is a good deal faster: [`Region::counted`]. Events with labels (V6)
    /// become records in any case.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_nettrace::{Options, Reader};
    /// # let mut writer = chronosym_support::nettrace::NettraceWriter::v4();
    /// # let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    /// # let load = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
    /// # writer.event(load, 100, 7, &[], &[]);
    /// # writer.event(sample, 200, 7, &[0x7f00_1010], &[2, 0, 0, 0]);
    /// # let trace = writer.finish();
    ///
    /// let mut reader = Reader::new(&trace[..], Options::default())?;
    /// reader.select(|event_type| event_type.provider == "Microsoft-DotNETCore-SampleProfiler");
    ///
    /// let region = reader.next_region()?.unwrap();
    /// assert_eq!(region.records().count(), 1);
    /// // Other events are counted, not delivered.
    /// let counts: u64 = region.counted().map(|(_, count)| count.events).sum();
    /// assert_eq!(counts, 1);
    /// # Ok::<(), chronosym_nettrace::Error>(())
    /// ```
    pub fn select(&mut self, wants: impl Fn(&EventType) -> bool + Send + 'static) {
        self.walk.decoder.types.select(Box::new(wants));
    }

    /// From now on gives records of events whose type `is_timed` is true of only at `times`, in ns
    /// since the start of the trace. Those at other times are counted as
    /// [`select`](Self::select) counts events.
    pub fn select_times(
        &mut self,
        times: Range<u64>,
        is_timed: impl Fn(&EventType) -> bool + Send + 'static,
    ) {
        let ticks = self.clock.first_at(times.start)..self.clock.first_at(times.end);
        (self.walk.decoder.types).select_times(ticks, Box::new(is_timed));
    }

    /// Returns the header of the trace.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Returns the event types defined so far. A type keeps its index; a redefinition gets a new
    /// one.
    pub fn event_types(&self) -> &[EventType] {
        self.walk.decoder.types.all()
    }

    /// Returns the diagnostics so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.walk.decoder.diagnostics
    }

    /// Reads up to the next sequence point and returns the events before it; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if the source fails, after everything read before has been delivered. Damage
    /// is counted in [`diagnostics`](Self::diagnostics) and never an error.
    pub fn next_region(&mut self) -> Result<Option<Region<'_>>, Error> {
        self.begin_region();
        while !matches!(self.walk.stage, Stage::Ended) {
            let step = self.step();
            let ends = match step {
                Step::Next => self.walk.decoder.region.size() + self.walk.at > self.region_limit,
                Step::RegionEnd | Step::Full => true,
            };
            if !ends {
                continue;
            }
            if self.walk.decoder.region.is_empty() {
                self.begin_region();
                continue;
            }
            if !matches!(step, Step::RegionEnd) {
                self.walk.decoder.diagnostics.forced_regions += 1;
            }
            break;
        }
        self.walk.decoder.end_region();
        self.walk.decoder.diagnostics.bytes_read = self.walk.window.end_offset();
        if self.walk.decoder.region.is_empty() {
            let offset = self.walk.window.end_offset();
            return match self.walk.window.take_failure() {
                Some(source) => Err(Error::Io { offset, source }),
                None => Ok(None),
            };
        }
        Ok(Some(self.region()))
    }

    /// Returns the region that [`next_region`](Self::next_region) gave last; an empty one before
    /// the first and after the last.
    pub fn region(&self) -> Region<'_> {
        Region {
            bytes: self.walk.window.bytes(),
            data: &self.walk.decoder.region,
            header: &self.header,
            clock: self.clock,
            types: &self.walk.decoder.types,
            threads: (self.walk.framing == Framing::Blocks).then_some(&self.walk.decoder.threads),
        }
    }

    fn begin_region(&mut self) {
        self.walk.window.discard(self.walk.at);
        self.walk.at = 0;
        self.walk.decoder.begin_region();
        if let Stage::Blobs(block) = &mut self.walk.stage {
            block.begin_region();
        }
    }

    fn step(&mut self) -> Step {
        match &self.walk.stage {
            Stage::Between => match self.walk.framing {
                Framing::Events(form) => self.walk.bare_event(form),
                Framing::NetperfObjects | Framing::Objects => self.walk.object(),
                Framing::Blocks => self.walk.block(),
            },
            Stage::Blobs(_) => self.walk.blobs(),
            &Stage::NetperfEvents(end) => self.walk.netperf_events(end),
            Stage::EndTag => self.walk.end_tag(),
            &Stage::Lost(cause) => self.walk.find(cause),
            Stage::Ended => Step::Next,
        }
    }
}
