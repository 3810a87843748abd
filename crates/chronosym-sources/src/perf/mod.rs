//! CPU profiles of Linux: perf.data.
//!
//! A process incarnation extends from the first record of an id to its end; an `exec` of a process
//! that was sampled before starts another incarnation. The mappings that a forked process inherits
//! are recorded in the session only when they are needed.

mod deferred;
mod here;
mod mapped;
mod processes;
mod records;
mod stack;
mod switches;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::time::SystemTime;

use chronosym_events::Action;
use chronosym_perf::{
    BuildId, ByteOrder, CpuMode, Event, EventAttr, Info, KernelSymbol, Mmap, Reader, Record, Sample,
};
use chronosym_types::MappedFile;
use chronosym_types::hash::HashMap;
use deferred::Waiting;

use chronosym_core::DiagnosticKind::{Damage, Limit, Loss as Lost, LostEvents, Unused};
use chronosym_core::facts::{At, Image};
use chronosym_core::unwind::{ImageFiles, JittedFrames, Thread, Unwinder};
use chronosym_core::{
    Addressing, CallerProof, Diagnostics, EventTypeId, Host, Loss, LossScope, RecordingId,
    SampleKind, Session, ThreadSwitch, Walked, file_name,
};

pub(crate) use mapped::MappedProcess;
pub(crate) use processes::KERNEL;
use processes::Processes;
pub(super) use records::Counted;
use records::{Schemas, event_name, is_clock, is_profile, raw_event, record_name, schema};
use stack::{Recorded, addresses, is_guest, registers};
use switches::{LastSwitches, Switched, Tracepoint};

use crate::error::ReadError;
use crate::stream::{EventStream, StreamEvent};

/// [`KERNEL`] as records state it.
const KERNEL_IN_RECORDS: u32 = u32::MAX;

/// Facts about processes in a perf.data, for recordings that are joined with it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The clock's time at the session's time 0, in ns.
    pub began_ns: u64,
    /// The processes that were sampled.
    pub sampled: Vec<u32>,
    /// Mapped jitdumps: the process and the path.
    pub jitdumps: Vec<(u32, String)>,
    /// Executable mappings, by process.
    pub processes: BTreeMap<u32, MappedProcess>,
    /// The process of each thread.
    pub owners: HashMap<u32, u32>,
}

/// Samples whose user-space frames are incomplete.
#[derive(Debug, Default)]
struct Incomplete {
    /// The user stack was copied and not unwound: only its innermost frame is present.
    not_unwound: u64,
    /// The user stack was unwound up to a frame whose caller could not be determined.
    broken_walks: u64,
    /// Samples of guests, which are skipped: their addresses belong to another machine.
    of_guests: u64,
}

/// Converts the diagnostics of the perf.data reader.
fn diagnostics(counted: &chronosym_perf::Diagnostics) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.add_gaps(&counted.gaps);
    #[rustfmt::skip]
    let counts = [
        (u64::from(counted.unfinished), Damage, "recording was never finished: the recorder was killed before it described the machine"),
        (counted.lost_records, LostEvents, "records were lost while recording"),
        (counted.lost_samples, Lost, "samples were lost while recording"),
        (counted.throttles, Lost, "times the kernel throttled sampling"),
        (counted.cut_maps, Lost, "processes have more mappings than the recorder had time to list"),
        (counted.bad_records, Damage, "records are invalid and were skipped"),
        (counted.bad_sections, Damage, "descriptions of the machine or of events cannot be read"),
        (counted.bad_compressed_bytes, Damage, "compressed bytes cannot be unpacked"),
        (counted.unknown_records, Unused, "records are of an unknown type"),
        (counted.unknown_events, Unused, "samples belong to an undescribed event and were skipped"),
        (counted.late_records, Unused, "records could not be sorted by time"),
        (counted.forced_rounds, Limit, "times there were too many records to sort at once"),
        (counted.aux_bytes, Unused, "bytes of hardware traces (AUX data) are not decoded: `perf script --itrace=…` decodes them"),
        (counted.aux_faults, Unused, "faults of hardware traces, which are not read"),
    ];
    diagnostics.add_counts(&counts);
    diagnostics
}

/// The records of a perf.data, as events without a payload.
///
/// When read into a session, they become samples, processes, threads and images.
pub struct PerfStream<R> {
    reader: Reader<R>,
    schemas: Schemas,
    attrs: Vec<EventAttr>,
    began_ns: Option<u64>,
    stack: Vec<u64>,
    is_joined: bool,
    earliest_ns: Option<u64>,
    files: Option<Arc<dyn ImageFiles>>,
    jitted: Option<Box<dyn JittedFrames>>,
    written: Option<SystemTime>,
    /// Set once reading into a session has started.
    importer: Option<Box<Importer>>,
    has_ended: bool,
}

impl<R: Read> PerfStream<R> {
    /// Opens a perf.data from any source; [`Reader::open`] and [`of`](Self::of) open seekable ones.
    ///
    /// # Errors
    ///
    /// [`ReadError::Perf`] if the source is not such a file or cannot be read.
    pub fn new(source: R, options: chronosym_perf::Options) -> Result<Self, ReadError> {
        Ok(PerfStream::of(Reader::new(source, options)?))
    }

    /// Returns the records of a perf.data that is open.
    pub fn of(reader: Reader<R>) -> Self {
        PerfStream {
            reader,
            schemas: Schemas::default(),
            attrs: Vec::new(),
            began_ns: None,
            stack: Vec::new(),
            is_joined: false,
            earliest_ns: None,
            files: None,
            jitted: None,
            written: None,
            importer: None,
            has_ended: false,
        }
    }

    /// Unwinds the stacks that samples hold copies of, with these files.
    pub fn unwind_with(mut self, files: Arc<dyn ImageFiles>) -> Self {
        self.files = Some(files);
        self
    }

    /// Walks through jitted code, too.
    pub(crate) fn unwind_jitted(mut self, jitted: Box<dyn JittedFrames>) -> Self {
        self.jitted = Some(jitted);
        self
    }

    /// Sets when the file was last written, which, with the time of its last sample, determines
    /// when the machine was booted.
    pub fn written_at(mut self, written: Option<SystemTime>) -> Self {
        self.written = written;
        self
    }

    /// Prepares for a session of several recordings, whose time 0 is that of the first record, or
    /// `earliest_ns` of its clock if that is earlier.
    pub(crate) fn joined(self, earliest_ns: Option<u64>) -> Self {
        PerfStream {
            is_joined: true,
            earliest_ns,
            ..self
        }
    }

    /// Returns the file's reader.
    pub fn reader(&self) -> &Reader<R> {
        &self.reader
    }

    /// Takes the facts about processes, after all was read into a session.
    pub(crate) fn outcome(&mut self) -> Outcome {
        let Some(importer) = &mut self.importer else {
            return Outcome::default();
        };
        let sampled = std::mem::take(&mut importer.processes.sampled).into_iter();
        let mut sampled: Vec<u32> = sampled.collect();
        sampled.sort_unstable();
        for (pid, process) in &mut importer.outcome.processes {
            process.is_contained = importer.processes.contained.get(pid) == Some(&true);
            process.finish();
        }
        Outcome {
            began_ns: importer.began_ns.unwrap_or_default(),
            sampled,
            owners: std::mem::take(&mut importer.processes.owners),
            ..std::mem::take(&mut importer.outcome)
        }
    }

    fn begin(&mut self, session: &mut Session) -> Result<(), ReadError> {
        if !self.is_joined {
            session.admit(RecordingId::Whole)?;
        }
        self.importer = Some(Box::new(Importer {
            is_joined: self.is_joined,
            earliest_ns: self.earliest_ns,
            order: self.reader.byte_order(),
            unwinder: (self.files.take())
                .map(|files| Unwinder::new(files).with_jitted(self.jitted.take())),
            build_ids: build_ids(self.reader.info()),
            here_until_ns: here::until_ns(self.reader.info(), self.written),
            ..Importer::default()
        }));
        describe(self.reader.info(), self.reader.attrs(), session);
        Ok(())
    }

    fn finish(&mut self, session: &mut Session) {
        self.has_ended = true;
        self.note_losses(session);
        let Some(importer) = &mut self.importer else {
            return;
        };
        let began_ns = importer.began_ns.unwrap_or_default();
        let windows = &self.reader.diagnostics().loss_windows;
        // No answer depends on samples.
        for window in windows.iter().filter(|window| !window.only_samples) {
            let since = |ns: u64| ns.saturating_sub(began_ns);
            let from = window.from_ns.map_or(0, since);
            let to = window.to_ns.map_or(u64::MAX, since);
            let loss = Loss::of_events(from, to, window.records);
            session.lost(loss.of_process(window.process).scope(LossScope::System));
        }
        importer.waiting.release_all(session);
        describe(self.reader.info(), self.reader.attrs(), session);
        if let Some(clock) = self.reader.info().clock {
            let began = i128::from(began_ns) - i128::from(clock.clock_ns);
            session.facts().start_unix_ns = Some(i128::from(clock.wall_ns) + began);
        }
    }

    /// Adds the losses since the last call to the session, once its time 0 is known.
    fn note_losses(&mut self, session: &mut Session) {
        let Some(importer) = &mut self.importer else {
            return;
        };
        let (times, began_ns) = (&self.reader.diagnostics().missing_times, importer.began_ns);
        for times in times[importer.losses..]
            .iter()
            .take_while(|_| began_ns.is_some())
        {
            let since = |ns: u64| ns.saturating_sub(began_ns.unwrap_or_default());
            let loss = Loss::between(since(times.start), since(times.end));
            session.lost(loss.scope(LossScope::System));
            importer.losses += 1;
        }
    }

    /// Reads the next record into a session; returns its time.
    fn step(&mut self, session: &mut Session) -> Result<Option<u64>, chronosym_perf::Error> {
        // In pipe mode, events are described while they are read: the event of the next record must
        // be known before it is read.
        self.reader.has_next()?;
        self.note_losses(session);
        let Some(importer) = &mut self.importer else {
            return Ok(None);
        };
        if importer.attrs.len() < self.reader.attrs().len() {
            importer.add_attrs(self.reader.attrs(), session);
        }
        let record = self.reader.next_record()?;
        Ok(record.map(|record| importer.take(&record, session)))
    }
}

impl<R: Read> EventStream for PerfStream<R> {
    fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, ReadError> {
        // In pipe mode, events are described while they are read: the event of the next record must
        // be known before it is read.
        self.reader.has_next()?;
        if self.attrs.len() < self.reader.attrs().len() {
            self.attrs = self.reader.attrs().to_vec();
        }
        let Some(record) = self.reader.next_record()? else {
            return Ok(None);
        };
        let began_ns = &mut self.began_ns;
        let time = record
            .time_ns
            .map_or(0, |ns| ns.saturating_sub(*began_ns.get_or_insert(ns)));
        let schema = self.schemas.of(&record, &self.attrs);
        self.stack.clear();
        if let Event::Sample(sample) = &record.event {
            addresses(&record, sample, &mut self.stack);
        }
        let event = raw_event(&record, time, schema);
        Ok(Some(StreamEvent::new(event, schema, &self.stack)))
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = diagnostics(self.reader.diagnostics());
        if let Some(importer) = &self.importer {
            let incomplete = &importer.incomplete;
            #[rustfmt::skip]
            let counts = [
                (incomplete.not_unwound, Unused, "samples have a copy of the user stack, which was not unwound: only the innermost user frame is shown"),
                (incomplete.broken_walks, Unused, "samples have a copy of the user stack, which was unwound up to a frame whose caller cannot be found"),
                (importer.waiting.without, Unused, "samples lack their user frames: the deferred call chain is missing"),
                (importer.sampled_switches, Unused, "events of the scheduler are only a sample, because a frequency was set: leave out `perf record -F`, or add `--switch-events`"),
                (incomplete.of_guests, Unused, "samples of virtual-machine guests were skipped: their addresses belong to another machine"),
            ];
            diagnostics.add_counts(&counts);
        }
        diagnostics
    }

    fn read_batch(&mut self, session: &mut Session) -> Result<Option<u64>, ReadError> {
        if self.has_ended {
            return Ok(None);
        }
        if self.importer.is_none() {
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

pub(crate) fn describe(info: &Info, attrs: &[EventAttr], session: &mut Session) {
    let facts = session.facts();
    facts.format = "perf.data".to_owned();
    facts.version = info.recorder_version.clone().unwrap_or_default();
    facts.processors = info.cpus_online;
    facts.host = info.host_name.as_deref().map(|name| Host::new(name, ""));
    let arch = info.arch.as_deref();
    let is_32_bit = |arch: &str| ["i386", "i686", "arm", "armv7l"].contains(&arch);
    facts.pointer_size = Some(if arch.is_some_and(is_32_bit) { 4 } else { 8 });
    let release = info.os_release.as_deref().map(|it| format!("Linux {it}"));
    let machine: Vec<&str> = release.as_deref().into_iter().chain(arch).collect();
    facts.machine = (!machine.is_empty()).then(|| machine.join(" "));
    if let Some(clock) = attrs.iter().find(|attr| is_clock(attr)) {
        facts.sample_interval_ns = match (clock.period, clock.frequency) {
            (Some(ns), _) => Some(ns),
            (_, Some(hz)) => 1_000_000_000_u64.checked_div(hz),
            _ => None,
        };
    }
}

pub(crate) fn build_ids(info: &Info) -> HashMap<Vec<u8>, BuildId> {
    let ids = info.build_ids.iter();
    ids.map(|entry| (entry.name.clone(), entry.id)).collect()
}

#[derive(Default)]
struct Importer {
    /// Whether mappings are collected for joined recordings.
    is_joined: bool,
    earliest_ns: Option<u64>,
    began_ns: Option<u64>,
    build_ids: HashMap<Vec<u8>, BuildId>,
    attrs: Vec<Counted>,
    /// Type and configuration of the event whose samples form the profile.
    profile: Option<(u32, u32)>,
    records: HashMap<u32, EventTypeId>,
    processes: Processes,
    /// Number of parts of the recording that cannot be read and were added as losses.
    losses: usize,
    waiting: Waiting,
    last_switches: LastSwitches,
    /// Number of scheduler tracepoints that were sampled rather than recorded completely.
    sampled_switches: u64,
    order: ByteOrder,
    unwinder: Option<Unwinder>,
    /// The end of the recording, if it was made on this machine since its last boot.
    here_until_ns: Option<u64>,
    addresses: Vec<u64>,
    frames: Vec<Walked>,
    incomplete: Incomplete,
    outcome: Outcome,
}

impl Importer {
    fn add_attrs(&mut self, attrs: &[EventAttr], session: &mut Session) {
        for attr in &attrs[self.attrs.len()..] {
            // Hybrid processors count the same event with one counter per core type.
            let what = (attr.kind, attr.config as u32);
            let kind = match is_profile(attr) && *self.profile.get_or_insert(what) == what {
                true => SampleKind::Cpu,
                false => SampleKind::Event,
            };
            self.attrs.push(Counted {
                event: session.event_type(schema(&event_name(attr))),
                kind,
                is_clock: is_clock(attr),
                tracepoint: Tracepoint::of(&event_name(attr)),
                is_complete: attr.frequency.is_none() && attr.period == Some(1),
            });
        }
    }

    /// Converts a record's time to the session's; records that describe the state before the
    /// recording are at its start.
    fn time(&mut self, record: &Record<'_>) -> u64 {
        let Some(ns) = record.time_ns else {
            return 0;
        };
        let earliest = self.earliest_ns.unwrap_or(ns);
        let began = *self.began_ns.get_or_insert(ns.min(earliest));
        ns.saturating_sub(began)
    }

    /// Imports a record; returns its time in the session.
    fn take(&mut self, record: &Record<'_>, session: &mut Session) -> u64 {
        let at = At::new(self.time(record));
        let is_live = record.time_ns.is_some();
        if !matches!(record.event, Event::Sample(_)) {
            let id = self.records.entry(record.kind);
            let id = *id.or_insert_with(|| session.event_type(schema(&record_name(record.kind))));
            session.count(id, 1, 0, at.time_ns);
        }
        match &record.event {
            Event::Sample(sample) => self.sample(at, record, sample, session),
            Event::Mmap(mmap) if !mmap.is_data => {
                self.mmap(at, is_live, record.cpu_mode, mmap, session);
            }
            Event::Comm(comm) => self.processes.comm(at, comm, session),
            Event::Fork(task) => self.processes.fork(at, is_live, task, session),
            Event::DeferredCallchain { cookie, callchain } => {
                let thread = (
                    record.pid.unwrap_or_default(),
                    record.tid.unwrap_or_default(),
                );
                let parts = callchain.parts();
                let parts = parts.filter(|part| part.mode == CpuMode::User);
                let frames: Vec<u64> = parts.flat_map(|part| part.addresses.iter()).collect();
                self.waiting
                    .release(thread, Some((*cookie, &frames)), session);
            }
            Event::Namespaces { pid, links, .. } => {
                self.processes.namespaces(at, *pid, *links, session);
            }
            Event::Exit(task) => {
                let thread = at.of(Some(task.pid), Some(task.tid.into()));
                session.switch(thread, ThreadSwitch::End, None);
                self.processes.exit(at, task, session);
            }
            Event::Switch { out, preempted } => {
                let switch = match (out, preempted) {
                    (false, _) => ThreadSwitch::Run,
                    (true, true) => ThreadSwitch::Preempt,
                    (true, false) => ThreadSwitch::Block,
                };
                let tid = record
                    .tid
                    .filter(|&tid| tid != 0 && session.options().switches);
                if let Some(tid) = tid
                    && let Some(stack) = self.last_switches.record(tid, at.time_ns, !out)
                {
                    let at = at.of(record.pid, Some(tid.into()));
                    session.switch(at, switch, stack);
                }
            }
            Event::KernelSymbol(symbol) => self.kernel_symbol(at, is_live, symbol, session),
            Event::Lost { .. } => session.switches_lost(at.time_ns),
            _ => {}
        }
        at.time_ns
    }

    fn sample(&mut self, at: At, record: &Record<'_>, sample: &Sample<'_>, session: &mut Session) {
        let Some(counted) = record.attr.and_then(|attr| self.attrs.get(attr).copied()) else {
            return;
        };
        if is_guest(record.cpu_mode) {
            self.incomplete.of_guests += 1;
            session.count(counted.event, 1, 0, at.time_ns);
            return;
        }
        if let Some(pid) = record.pid {
            self.processes.sample(pid, session);
        }
        let Recorded { is_whole, calls } = addresses(record, sample, &mut self.addresses);
        self.frames.clear();
        let (walked, called) = self.addresses.split_at(calls);
        self.frames
            .extend(walked.iter().map(|&it| Walked::from(it)));
        let proof = Some(CallerProof::BranchRecord);
        self.frames
            .extend(called.iter().map(|&address| Walked { address, proof }));
        if !is_whole {
            self.unwind(at, record, sample, session);
        }
        let at = at.of(record.pid, record.tid.map(u64::from));
        if let Some(tracepoint) = counted.tracepoint.filter(|_| session.options().switches) {
            self.switch(at, counted, tracepoint, sample, session);
        }
        if counted.kind == SampleKind::Event && !session.is_selected(counted.event) {
            session.count(
                counted.event,
                1,
                u64::from(!self.frames.is_empty()),
                at.time_ns,
            );
            return;
        }
        let stated = counted.sample(sample.period, record.pid == Some(0));
        let chain = sample.callchain.iter().flat_map(|chain| chain.parts());
        match chain.filter_map(|part| part.deferred).last() {
            Some(cookie) => {
                let frames = self.frames.clone();
                self.waiting.defer(cookie, (at, frames, stated), session);
            }
            None => session.sample_walked(at, self.frames.iter().copied(), stated),
        }
    }

    /// Applies a scheduler tracepoint of a thread, whose stack is that of the thread being switched
    /// out, or of the one that wakes another.
    fn switch(
        &mut self,
        at: At,
        counted: Counted,
        tracepoint: Tracepoint,
        sample: &Sample<'_>,
        session: &mut Session,
    ) {
        let order = self.order;
        let raw = sample.raw.unwrap_or_default();
        // The idle thread, and threads whose process is unknown, are skipped.
        let of_thread = |tid: u32| {
            let pid = self.processes.owners.get(&tid).filter(|_| tid != 0);
            pid.map(|&pid| at.of(Some(pid), Some(tid.into())))
        };
        match tracepoint {
            _ if !counted.is_complete => {
                self.sampled_switches += 1;
                if let (Tracepoint::Switch, Some(switched)) =
                    (tracepoint, switches::switched(raw, order))
                    && let Some(stack) = session.intern_whole(self.frames.iter().copied())
                {
                    let tid = switched.leaves.0;
                    (self.last_switches).stack(tid, at.time_ns, counted.event, stack);
                }
            }
            Tracepoint::Wakeup => {
                let Some(woken) = switches::woken(raw, order).and_then(of_thread) else {
                    return;
                };
                session.wake(woken, |session| {
                    let stack = session.intern_whole(self.frames.iter().copied());
                    session.waker_class(at, counted.event, stack)
                });
            }
            Tracepoint::Switch => {
                let Some(Switched { leaves, comes }) = switches::switched(raw, order) else {
                    return;
                };
                let (left, switch) = leaves;
                if let Some(at) = of_thread(left) {
                    let stack = session.intern_whole(self.frames.iter().copied());
                    session.switch(at, switch, stack.map(|stack| (counted.event, stack)));
                }
                if let Some(at) = of_thread(comes) {
                    session.switch(at, ThreadSwitch::Run, None);
                }
                self.last_switches.tracepoint(left, false);
                self.last_switches.tracepoint(comes, true);
            }
        }
    }

    /// Appends the user-space frames by unwinding the copy of the stack; without image files, only
    /// the innermost frame.
    fn unwind(&mut self, at: At, record: &Record<'_>, sample: &Sample<'_>, session: &mut Session) {
        let registers = sample
            .user_registers
            .and_then(|it| registers(session, &it).filter(|_| self.order == ByteOrder::Little));
        // The registers hold the innermost frame.
        if registers.is_some() && record.cpu_mode == CpuMode::User {
            self.frames.clear();
        }
        let walk = (self.unwinder.as_mut()).zip(registers.clone());
        let Some((unwinder, own)) = walk else {
            self.incomplete.not_unwound += 1;
            let innermost = registers.map(|it| Walked::from(it.instruction));
            self.frames.extend(innermost);
            return;
        };
        let thread = Thread {
            registers: own,
            stack: sample.user_stack.unwrap_or_default(),
            process: record.pid.unwrap_or_default(),
            time_ns: record.time_ns.unwrap_or_default(),
        };
        let at = at.of(record.pid, None);
        let is_whole = session.walk_stack(at, thread, unwinder, &mut self.frames);
        self.incomplete.broken_walks += u64::from(!is_whole);
    }

    fn mmap(
        &mut self,
        at: At,
        is_live: bool,
        mode: CpuMode,
        mmap: &Mmap<'_>,
        session: &mut Session,
    ) {
        let action = if is_live {
            Action::Load
        } else {
            Action::DCStart
        };
        let name = String::from_utf8_lossy(mmap.name);
        let stated = mmap
            .build_id
            .or_else(|| self.build_ids.get(mmap.name).copied());
        if mode == CpuMode::Kernel || mmap.pid == KERNEL_IN_RECORDS {
            const TEXT: &str = "[kernel.kallsyms]";
            let end = mmap.address.saturating_add(mmap.size);
            let (base, path) = match name.starts_with("[kernel") {
                // The kernel starts at the symbol after which the mapping is named; there is no
                // code before it.
                true => (mmap.file_offset.max(mmap.address), TEXT),
                false => (mmap.address, &*name),
            };
            let own = || self.build_ids.get(path.as_bytes()).copied();
            let build_id = stated.or_else(own).map(hex).unwrap_or_default();
            // Kernel addresses are hidden (`kptr_restrict`): there is nothing to record.
            if base >> 63 == 0 && session.facts().pointer_size == Some(8) || end <= base {
                return;
            }
            self.processes.name_kernel(session);
            let mut image = Image::new(action, base, end - base, path);
            image.addressing = Addressing::Rva;
            image.build_id = &build_id;
            session.apply(at.process(KERNEL), image);
            return;
        }
        if !matches!(mode, CpuMode::User | CpuMode::Unknown) {
            return;
        }
        if pid_of_jitdump(&name).is_some() {
            if let Some(unwinder) = &mut self.unwinder {
                unwinder.mapped(mmap.pid, &name);
            }
            self.outcome.jitdumps.push((mmap.pid, name.into_owned()));
            return;
        }
        self.processes.need(mmap.pid, session);
        if self.is_joined {
            let process = self.outcome.processes.entry(mmap.pid).or_default();
            process.map(&name, mmap.address, mmap.size);
        }
        let build_id = stated.map(hex).unwrap_or_default();
        let mut image = Image::new(action, mmap.address, mmap.size, &*name);
        image.file_offset = mmap.file_offset;
        image.addressing = Addressing::FileOffset;
        image.build_id = &build_id;
        image.file = mmap
            .file
            .filter(|it| it.inode != 0)
            .map(|number| MappedFile {
                number,
                here_until_ns: self.here_until_ns,
            });
        session.apply(at.process(mmap.pid), image);
    }

    /// Records code that the kernel generates: each eBPF program is an image of one function.
    fn kernel_symbol(
        &mut self,
        at: At,
        is_live: bool,
        symbol: &KernelSymbol<'_>,
        session: &mut Session,
    ) {
        let action = match (symbol.is_unregistered, is_live) {
            (true, _) => Action::Unload,
            (false, true) => Action::Load,
            (false, false) => Action::DCStart,
        };
        self.processes.name_kernel(session);
        let name = String::from_utf8_lossy(symbol.name);
        let mut image = Image::new(action, symbol.address, symbol.size.into(), &*name);
        image.is_function = true;
        session.apply(at.process(KERNEL), image);
    }
}

fn hex(id: BuildId) -> String {
    format!("{id:?}")
}

/// Returns the process in `jit-PID.dump`, which is the writer's own id. The writer maps a page of
/// the file to make it known.
pub(crate) fn pid_of_jitdump(path: &str) -> Option<u32> {
    let name = file_name(path).strip_prefix("jit-")?;
    name.strip_suffix(".dump")?.parse().ok()
}
