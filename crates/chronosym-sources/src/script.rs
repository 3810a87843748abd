//! The text of `perf script`: samples with the names that perf resolved where they were recorded.
//!
//! For a frame in a file, perf prints the file offset; it prints the address only for other frames.
//! So each file gets an address range in each process that nothing else uses, and names are
//! recorded for exactly the addresses printed.

use std::collections::BTreeMap;
use std::hash::BuildHasher;
use std::io::Read;
use std::sync::Arc;

use chronosym_events::{Action, EventKey, EventSchema, PointerSize, RawEvent};
use chronosym_perf::script::{Frame, Reader, Sample};
use chronosym_types::hash::HashMap;

use super::perf::{Counted, KERNEL};
use super::threads::Threads;
use crate::error::ReadError;
use crate::stream::{EventStream, StreamEvent};
use chronosym_core::DiagnosticKind::{self, Damage, Limit, Unused};
use chronosym_core::facts::{self, At, Image, Symbol};
use chronosym_core::{
    Addressing, Diagnostics, Evidence, ProcessIndex, RecordingId, SampleKind, Session,
    is_anonymous, simple_name,
};

/// Base of the first file's range. No system maps anything at these addresses.
const FILES: u64 = 0x1000_0000_0000;
/// Size of a file's range, and hence the first value that is not a file offset.
const FILE_SIZE: u64 = 1 << 32;
/// Maximum number of files per process that get a range; frames of others keep the printed value.
const MOST_FILES: usize = 4096;

/// A file of a process, and the address assigned to its first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlacedFile {
    /// The process.
    pub process: u32,
    /// The file.
    pub path: Box<str>,
    /// The address.
    pub base: u64,
}

/// Converts the diagnostics of the `perf script` reader.
fn diagnostics(counted: &chronosym_perf::script::Diagnostics) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    #[rustfmt::skip]
    let counts = [
        (counted.unknown_lines, Damage, "lines are neither samples nor frames and were skipped"),
        (counted.long_lines, Limit, "lines are too long, or too many for one sample, and were cut or skipped"),
        (counted.other_records, Unused, "lines describe mappings and other records, which are not read from text"),
    ];
    diagnostics.add_counts(&counts);
    diagnostics
}

pub(crate) fn describe(session: &mut Session) {
    let facts = session.facts();
    facts.format = "perf script".to_owned();
    facts.pointer_size = Some(8);
}

/// The samples of a text, as events without a payload.
///
/// Addresses are as perf printed them; when read into a session, files get address ranges.
pub struct ScriptStream<R> {
    reader: Reader<R>,
    schemas: Schemas,
    began_ns: Option<u64>,
    stack: Vec<u64>,
    is_joined: bool,
    /// Whether only names are read, because the session has the samples.
    has_names_only: bool,
    importer: Importer,
    has_begun: bool,
    has_ended: bool,
}

impl<R: Read> ScriptStream<R> {
    /// Opens a text.
    ///
    /// # Errors
    ///
    /// [`ReadError::Perf`] if the source cannot be read.
    pub fn new(source: R, options: chronosym_perf::script::Options) -> Result<Self, ReadError> {
        Ok(ScriptStream {
            reader: Reader::new(source, options)?,
            schemas: Schemas::default(),
            began_ns: None,
            stack: Vec::new(),
            is_joined: false,
            has_names_only: false,
            importer: Importer::default(),
            has_begun: false,
            has_ended: false,
        })
    }

    /// Prepares for a session of several recordings, whose time 0 is `earliest_ns` of the text's
    /// clock if the first sample is later. Perf maps of the processes in `maps` are available, and
    /// have more names than the text.
    pub(crate) fn joined(mut self, earliest_ns: Option<u64>, maps: Vec<u32>) -> Self {
        self.is_joined = true;
        (self.importer.earliest_ns, self.importer.maps) = (earliest_ns, maps);
        self
    }

    /// Reads the names only: the session has read the samples from the perf.data from which the
    /// text was made, whose clock was `began_ns` at the session's time 0, and which states the
    /// process of each thread.
    pub(crate) fn names_only(
        mut self,
        began_ns: u64,
        maps: Vec<u32>,
        owners: HashMap<u32, u32>,
    ) -> Self {
        (self.is_joined, self.has_names_only) = (true, true);
        self.importer.recorded_owners = owners;
        (self.importer.began_ns, self.importer.maps) = (Some(began_ns), maps);
        self
    }

    /// Returns the clock's time at the session's time 0, in ns.
    pub(crate) fn began_ns(&self) -> u64 {
        let began_ns = self.importer.began_ns.or(self.importer.earliest_ns);
        began_ns.unwrap_or_default()
    }

    /// Returns the files with their assigned addresses.
    pub(crate) fn placed_files(self) -> Vec<PlacedFile> {
        self.importer.placed_files()
    }

    fn begin(&mut self, session: &mut Session) -> Result<(), ReadError> {
        self.has_begun = true;
        if !self.is_joined {
            session.admit(RecordingId::Whole)?;
        }
        if !self.has_names_only {
            describe(session);
        }
        Ok(())
    }

    fn finish(&mut self, session: &mut Session) {
        self.has_ended = true;
        if !self.has_names_only {
            self.importer.threads.name_processes(session);
        }
        self.importer.state_names(session);
        if !self.has_names_only {
            self.importer.map_printed_ranges(session);
        }
    }

    /// Reads the next sample into a session; returns its time.
    fn step(&mut self, session: &mut Session) -> Result<Option<u64>, chronosym_perf::Error> {
        let Some(sample) = self.reader.next_sample()? else {
            return Ok(None);
        };
        match self.has_names_only {
            true => self.importer.take_names(&sample, session),
            false => self.importer.take(&sample, session),
        }
        let began_ns = self.importer.began_ns.unwrap_or_default();
        Ok(Some(sample.time_ns.saturating_sub(began_ns)))
    }
}

impl<R: Read> EventStream for ScriptStream<R> {
    fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, ReadError> {
        let Some(sample) = self.reader.next_sample()? else {
            return Ok(None);
        };
        let began_ns = *self.began_ns.get_or_insert(sample.time_ns);
        let time_ns = sample.time_ns.saturating_sub(began_ns);
        self.stack.clear();
        self.stack
            .extend(sample.frames().map(|frame| frame.address));
        let schema = self.schemas.of(&sample);
        let event = raw_event(&sample, time_ns, schema);
        Ok(Some(StreamEvent::new(event, schema, &self.stack)))
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = diagnostics(self.reader.diagnostics());
        diagnostics.add_counts(&self.importer.counts());
        diagnostics
    }

    fn read_batch(&mut self, session: &mut Session) -> Result<Option<u64>, ReadError> {
        if self.has_ended {
            return Ok(None);
        }
        if !self.has_begun {
            self.begin(session)?;
        }
        let step = match session.has_room(1) {
            true => self.step(session),
            false => Ok(None),
        };
        if !matches!(step, Ok(Some(_))) {
            self.finish(session);
        }
        Ok(step?)
    }
}

/// The schemas of the events in a text, built on first use.
#[derive(Debug, Default)]
struct Schemas(HashMap<Box<str>, Arc<EventSchema>>);

impl Schemas {
    /// Returns the schema of a sample.
    fn of(&mut self, sample: &Sample<'_>) -> &Arc<EventSchema> {
        let schema_of = self.0.entry(sample.event.into());
        schema_of.or_insert_with(|| schema(sample.event))
    }
}

fn schema(event: &str) -> Arc<EventSchema> {
    let name = if event.is_empty() { "samples" } else { event };
    Arc::new(EventSchema::new(EventKey::Named {
        provider: "perf".into(),
        name: name.into(),
    }))
}

/// Converts a sample to an event without a payload, at a time in ns since the recording began.
fn raw_event<'a>(sample: &Sample<'_>, time_ns: u64, schema: &'a EventSchema) -> RawEvent<'a> {
    RawEvent {
        time_ns,
        process_id: sample.pid,
        thread_id: Some(sample.tid.into()),
        processor: sample.cpu,
        pointer_size: PointerSize::Eight,
        schema,
        payload: &[],
    }
}

/// The files and the inlined calls of a process, with their assigned addresses.
#[derive(Default)]
struct Files {
    bases: HashMap<Box<str>, u64>,
    inlined: HashMap<u64, u64>,
}

/// A mapping of a file: file offset, size in bytes, address.
type Mapping = (u64, u64, u64);

/// A printed name: its process, and its range from the start of the symbol to the printed address.
struct Name {
    process: ProcessIndex,
    start: u64,
    last: u64,
    symbol: Box<str>,
    /// `None` for names of a perf map.
    file: Option<Box<str>>,
}

#[derive(Default)]
struct Importer {
    earliest_ns: Option<u64>,
    maps: Vec<u32>,
    began_ns: Option<u64>,
    events: HashMap<Box<str>, Counted>,
    /// The event whose samples form the profile.
    profile: Option<Box<str>>,
    threads: Threads,
    /// Processes of threads, as far as they were seen.
    owners: HashMap<u32, u32>,
    /// Processes of threads according to the perf.data from which the text was made.
    recorded_owners: HashMap<u32, u32>,
    files: HashMap<u32, Files>,
    /// Mappings of the processes' files, if the text's perf.data has been read.
    mapped: HashMap<(u32, ProcessIndex, Box<str>), Vec<Mapping>>,
    names: Vec<Name>,
    /// By process and address: the hash of the name there.
    name_hashes: HashMap<(ProcessIndex, u64), u64>,
    /// First and last printed address by process and file, for files whose addresses were printed.
    ranges: BTreeMap<(u32, Box<str>), (u64, u64)>,
    stack: Vec<u64>,
    without_process: u64,
}

impl Importer {
    /// Counts of unusable data.
    fn counts(&self) -> [(u64, DiagnosticKind, &'static str); 1] {
        let what = "samples do not state their process and were assigned by their thread: print them with -F +pid";
        [(self.without_process, Unused, what)]
    }

    /// Returns the time and process of a sample.
    fn at(&mut self, sample: &Sample<'_>) -> (At, u32) {
        let earliest = self.earliest_ns.unwrap_or(u64::MAX);
        let began_ns = *self.began_ns.get_or_insert(sample.time_ns.min(earliest));
        let pid = self.process(sample);
        let at = At::new(sample.time_ns.saturating_sub(began_ns)).process(pid);
        (at.thread(sample.tid.into()), pid)
    }

    /// Records the names of frames at the addresses where the process mapped their files. Inlined
    /// calls have no address of their own.
    fn take_names(&mut self, sample: &Sample<'_>, session: &mut Session) {
        let (at, pid) = self.at(sample);
        let process = session.process_at(at);
        let mut is_leaf = true;
        for frame in sample.frames().filter(|frame| !frame.is_inlined) {
            let file = frame
                .dso
                .filter(|file| frame.address >> 63 == 0 && is_file(file));
            let address = match file {
                Some(file) => self.mapped(pid, process, file, frame.address, session),
                None => Some(frame.address),
            };
            if let Some(address) = address {
                self.name((pid, process), address, is_leaf, &frame, frame.dso);
            }
            is_leaf = false;
        }
    }

    /// Returns the address in a process of a file offset, or of what older versions of perf print
    /// instead.
    fn mapped(
        &mut self,
        pid: u32,
        process: ProcessIndex,
        file: &str,
        printed: u64,
        session: &Session,
    ) -> Option<u64> {
        let mappings = self.mapped.entry((pid, process, file.into()));
        let mappings = mappings.or_insert_with(|| {
            let mappings = session.mappings_of(process, file);
            mappings
                .map(|it| (it.file_offset, it.size, it.base))
                .collect()
        });
        let mut places = mappings.iter().filter_map(|&(offset, size, base)| {
            let offset_in_mapping = printed
                .checked_sub(offset)
                .filter(|&offset_in_mapping| offset_in_mapping < size);
            offset_in_mapping.map(|offset_in_mapping| base.saturating_add(offset_in_mapping))
        });
        let is_there = |&&(_, size, base): &&Mapping| printed.wrapping_sub(base) < size;
        let itself = || mappings.iter().find(is_there).map(|_| printed);
        places.next_back().or_else(itself)
    }

    fn take(&mut self, sample: &Sample<'_>, session: &mut Session) {
        let (at, pid) = self.at(sample);
        let process = session.process_at(at);
        self.threads
            .name(at, pid, sample.tid.into(), sample.comm.as_bytes(), session);
        let counted = self.event(sample.event, session);
        if counted.kind == SampleKind::Event && !session.is_selected(counted.event) {
            let stacks = u64::from(sample.frames().next().is_some());
            session.count(counted.event, 1, stacks, at.time_ns);
            return;
        }
        self.stack.clear();
        let mut frames = sample.frames().peekable();
        while let Some(frame) = frames.next() {
            // An inlined call has the address of the one that contains it.
            let file = match frame.is_inlined {
                true => frames.peek().and_then(|next| next.dso),
                false => frame.dso,
            };
            let is_leaf = self.stack.is_empty() && counted.kind == SampleKind::Cpu;
            let address = self.place(pid, &frame, file, session);
            self.name((pid, process), address, is_leaf, &frame, file);
            self.stack.push(address);
        }
        // Walks over frame pointers end in values that are not addresses.
        const LOWEST: u64 = 0x1000;
        while self.stack.last().is_some_and(|&last| last < LOWEST) {
            self.stack.pop();
        }
        let facts = session.facts();
        if counted.is_clock && facts.sample_interval_ns.is_none() {
            facts.sample_interval_ns = sample.period;
        }
        session.sample(at, &self.stack, counted.sample(sample.period, pid == 0));
    }

    /// Returns the process of a sample. If it was not printed, it is the one in which the thread
    /// was seen, or whose perf map names the thread.
    fn process(&mut self, sample: &Sample<'_>) -> u32 {
        if let Some(pid) = sample.pid {
            self.owners.insert(sample.tid, pid);
            return pid;
        }
        if let Some(&pid) = self.recorded_owners.get(&sample.tid) {
            return pid;
        }
        self.without_process += 1;
        let map = sample
            .frames()
            .filter_map(|frame| frame.dso)
            .find_map(pid_of_map);
        if let Some(pid) = map {
            self.owners.insert(sample.tid, pid);
        }
        *self.owners.get(&sample.tid).unwrap_or(&sample.tid)
    }

    fn event(&mut self, name: &str, session: &mut Session) -> Counted {
        if let Some(&counted) = self.events.get(name) {
            return counted;
        }
        let base = name.split([':', '/']).next().unwrap_or_default();
        let is_profile =
            !is_tracepoint(name) && **self.profile.get_or_insert_with(|| base.into()) == *base;
        let counted = Counted {
            event: session.event_type(schema(name)),
            kind: match is_profile {
                true => SampleKind::Cpu,
                false => SampleKind::Event,
            },
            is_clock: matches!(base, "cpu-clock" | "task-clock"),
            is_complete: false,
            tracepoint: None,
        };
        self.events.insert(name.into(), counted);
        counted
    }

    /// Returns the address assigned to a frame.
    fn place(
        &mut self,
        pid: u32,
        frame: &Frame<'_>,
        file: Option<&str>,
        session: &mut Session,
    ) -> u64 {
        if frame.is_inlined {
            let base = self.base(pid, "[inlined]", session);
            let inlined = &mut self.files.entry(pid).or_default().inlined;
            let next = inlined.len() as u64 * 2 + 1;
            let key = inlined
                .hasher()
                .hash_one((frame.address, frame.symbol, file));
            let place = *inlined.entry(key).or_insert(next);
            return base.map_or(frame.address, |base| base + place % FILE_SIZE);
        }
        let is_kernel = frame.address >> 63 == 1;
        let Some(file) = file.filter(|file| is_kernel || is_file(file)) else {
            return frame.address;
        };
        if frame.address < FILE_SIZE {
            let base = self.base(pid, file, session);
            return base.map_or(frame.address, |base| base + frame.address);
        }
        let owner = if is_kernel { KERNEL } else { pid };
        let range = self.ranges.entry((owner, file.into()));
        let (first, last) = range.or_insert((frame.address, frame.address));
        (*first, *last) = (frame.address.min(*first), frame.address.max(*last));
        frame.address
    }

    /// Returns the base of a file in a process; `None` if the limit of files is reached.
    fn base(&mut self, pid: u32, file: &str, session: &mut Session) -> Option<u64> {
        let files = &mut self.files.entry(pid).or_default().bases;
        if let Some(&base) = files.get(file) {
            return Some(base);
        }
        let count = Some(files.len()).filter(|&count| count < MOST_FILES)?;
        let base = FILES + count as u64 * FILE_SIZE;
        files.insert(file.into(), base);
        let mut image = Image::new(Action::DCStart, base, FILE_SIZE, file);
        image.addressing = Addressing::FileOffset;
        session.apply(At::new(0).process(pid), image);
        Some(base)
    }

    /// Keeps a printed name under the address at which it will be looked up (rule 9).
    fn name(
        &mut self,
        (pid, process): (u32, ProcessIndex),
        address: u64,
        is_leaf: bool,
        frame: &Frame<'_>,
        file: Option<&str>,
    ) {
        let Some(symbol) = frame.symbol else {
            return;
        };
        let of_map = file.and_then(pid_of_map).is_some();
        if of_map && self.maps.contains(&pid) {
            return;
        }
        let last = if is_leaf {
            address
        } else {
            address.saturating_sub(1)
        };
        let hash = self.name_hashes.hasher().hash_one(symbol);
        if self.name_hashes.insert((process, last), hash) == Some(hash) {
            return;
        }
        let start = address.saturating_sub(frame.offset.unwrap_or(0));
        self.names.push(Name {
            process,
            last,
            start: start.min(last),
            symbol: symbol.into(),
            file: file.filter(|_| !of_map).map(Into::into),
        });
    }

    /// Records the names: each applies from the start of its symbol, unless another name was
    /// printed in between.
    fn state_names(&mut self, session: &mut Session) {
        let mut names = std::mem::take(&mut self.names);
        names.sort_by_key(|name| (name.process, name.last));
        let mut before: Option<&Name> = None;
        for name in &names {
            let other = before.filter(|it| it.process == name.process && it.symbol != name.symbol);
            let free = other.map_or(0, |other| other.last.saturating_add(1));
            let module = simple_name(name.file.as_deref().unwrap_or_default());
            let start = name.start.max(free).min(name.last);
            let mut symbol = Symbol::new(start, name.last, &*name.symbol);
            symbol.module = module.into();
            if name.file.is_some() {
                symbol.evidence = Evidence::ProcessSymbol;
            }
            session.name_untimed(name.process, symbol);
            before = Some(name);
        }
    }

    fn placed_files(self) -> Vec<PlacedFile> {
        let mapped = self
            .mapped
            .into_iter()
            .filter_map(|((process, _, path), mappings)| {
                let &(offset, _, base) = mappings.first()?;
                Some(PlacedFile {
                    process,
                    path,
                    base: base.wrapping_sub(offset),
                })
            });
        let files = self.files.into_iter().flat_map(|(process, files)| {
            let bases = files.bases.into_iter();
            bases.map(move |(path, base)| PlacedFile {
                process,
                path,
                base,
            })
        });
        let mut files: Vec<PlacedFile> = files.chain(mapped).collect();
        files.sort_by(|a, b| (a.process, a.base, &a.path).cmp(&(b.process, b.base, &b.path)));
        files
    }

    /// Maps files whose addresses were printed, as older versions of perf do, and all do for the
    /// kernel: the range between the first and the last address belongs to the file.
    fn map_printed_ranges(&self, session: &mut Session) {
        for ((pid, file), &(first, last)) in &self.ranges {
            if *pid == KERNEL {
                let kernel = facts::Process::new(Action::DCStart, "[kernel]");
                session.apply(At::new(0).process(KERNEL), kernel);
            }
            let size = (last - first).saturating_add(1);
            let mut image = Image::new(Action::DCStart, first, size, &**file);
            image.addressing = Addressing::Rva;
            session.apply(At::new(0).process(*pid), image);
        }
    }
}

/// Detects tracepoints such as `sched:sched_switch`, but not `cycles:u`, whose letters are
/// modifiers.
fn is_tracepoint(event: &str) -> bool {
    let mut parts = event.split(':');
    let (Some(_), Some(second)) = (parts.next(), parts.next()) else {
        return false;
    };
    !second
        .chars()
        .all(|letter| "ukhGHIpPSDWeb".contains(letter))
}

/// Returns whether the name is a file. Code that runtimes wrote to memory is printed with its
/// address.
fn is_file(dso: &str) -> bool {
    dso == "[vdso]" || pid_of_map(dso).is_none() && !is_anonymous(dso)
}

/// Returns the process in `perf-PID.map`.
fn pid_of_map(dso: &str) -> Option<u32> {
    let name = dso.rsplit('/').next().unwrap_or(dso);
    let pid = name.strip_prefix("perf-")?.strip_suffix(".map")?;
    pid.parse().ok()
}
