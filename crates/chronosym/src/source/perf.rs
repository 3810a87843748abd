//! CPU profiles of Linux: perf.data.
//!
//! A process is what has an id between its first record and its end; an `exec` of one that was sampled before is another
//! process. What is mapped in a process that begins as a copy of another is told of only if it is needed.

use std::io::{Read, Seek};
use std::sync::Arc;

use chronosym_events::{Action, EventKey, EventSchema, PointerSize, RawEvent, Text};
use chronosym_perf::{
    BuildId, ByteOrder, Comm, CpuMode, Diagnostics, Event, EventAttr, Info, KernelSymbol, Mmap,
    Options, Reader, Record, Sample, Task, Words,
};
use chronosym_types::{Processor, Registers};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Identity, ReadError};
use crate::event_types::EventTypeId;
use crate::facts::{self, Addressing, At, Fact, Image, Process};
use crate::images::file_name;
use crate::recording::Loss;
use crate::samples::{SampleKind, Weight};
use crate::session::Session;
use crate::stacks::Walked;
use crate::unwind::{FileNumber, ImageFiles, Thread, Unwinder};

/// The process under which the kernel's own code stands, whose threads run while a processor is idle.
pub(crate) const KERNEL: u32 = 0;
/// What records call it.
const KERNEL_IN_RECORDS: u32 = u32::MAX;

/// What was found while a perf.data was read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PerfReport {
    /// What its reader found.
    pub diagnostics: Diagnostics,
    /// The clock's time at the session's time 0, in ns.
    pub began_ns: u64,
    /// Samples whose user stack was copied and not unwound: only its innermost frame is there.
    pub not_unwound: u64,
    /// Samples whose user stack was unwound up to a frame whose caller could not be found.
    pub broken_walks: u64,
    /// Samples whose user frames were to follow and did not.
    pub without_deferred: u64,
    /// Samples of guests, left out: their addresses are another machine's.
    pub of_guests: u64,
    /// The processes that were sampled.
    pub sampled: Vec<u32>,
    /// Jitdumps that were mapped: the process and the path.
    pub jitdumps: Vec<(u32, String)>,
    /// Processes that mapped .NET's runtime: what such a process is, and whether it is in another pid namespace than the
    /// machine's first, as far as that was recorded.
    pub runtimes: FxHashMap<u32, bool>,
}

/// Reads a perf.data into a session.
///
/// # Errors
///
/// If it is none, if it cannot be read, or if the session was read from another recording. What was read before is in
/// the session.
pub fn read(source: impl Read + Seek, session: &mut Session) -> Result<PerfReport, ReadError> {
    let reader = Reader::open(source, Options::default())?;
    Identity::Perf.admit(session, false)?;
    let (report, end) = read_from(reader, session, None, None);
    end?;
    Ok(report)
}

/// As [`read`]. The session's time 0 is that of the first record, or `earliest_ns` of its clock if that is before it. Stacks
/// that samples hold a copy of are unwound with the `files` of images.
pub(crate) fn read_from<R: Read>(
    mut reader: Reader<R>,
    session: &mut Session,
    earliest_ns: Option<u64>,
    files: Option<Arc<dyn ImageFiles>>,
) -> (PerfReport, Result<(), chronosym_perf::Error>) {
    let mut feed = Feed {
        earliest_ns,
        is_big: reader.byte_order() == ByteOrder::Big,
        unwinder: files.map(Unwinder::new),
        build_ids: build_ids(reader.info()),
        ..Feed::default()
    };
    describe(reader.info(), reader.attrs(), session);
    let end = loop {
        // Pipes tell of events while they are read: before the next record it is known which one it is of.
        if let Err(error) = reader.has_next() {
            break Err(error);
        }
        if feed.attrs.len() < reader.attrs().len() {
            feed.add_attrs(reader.attrs(), session);
        }
        match reader.next_record() {
            Ok(Some(record)) => feed.take(&record, session),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    feed.release_all(session);
    describe(reader.info(), reader.attrs(), session);
    let began_ns = feed.began_ns.unwrap_or_default();
    if let Some(clock) = reader.info().clock {
        let began = i128::from(began_ns) - i128::from(clock.clock_ns);
        session.facts().start_unix_ns = Some(i128::from(clock.wall_ns) + began);
    }
    let mut sampled: Vec<u32> = feed.sampled.into_iter().collect();
    sampled.sort_unstable();
    for (pid, is_contained) in &mut feed.report.runtimes {
        *is_contained = feed.contained.get(pid).copied().unwrap_or(false);
    }
    let report = PerfReport {
        diagnostics: reader.diagnostics().clone(),
        began_ns,
        sampled,
        ..feed.report
    };
    (report, end)
}

pub(crate) fn describe(info: &Info, attrs: &[EventAttr], session: &mut Session) {
    let facts = session.facts();
    facts.format = "perf.data".to_owned();
    facts.version = info.recorder_version.clone().unwrap_or_default();
    facts.processors = info.cpus_online;
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

pub(crate) fn build_ids(info: &Info) -> FxHashMap<Vec<u8>, BuildId> {
    let ids = info.build_ids.iter();
    ids.map(|entry| (entry.name.clone(), entry.id)).collect()
}

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const RAW: u32 = 4;
/// Types from here on are those of a machine's own counters.
const FIRST_DYNAMIC: u32 = 6;

/// Whether an event is the processor's time, in ns.
fn is_clock(attr: &EventAttr) -> bool {
    attr.kind == SOFTWARE && attr.config <= 1
}

/// Whether samples of an event say where a processor was busy.
fn is_profile(attr: &EventAttr) -> bool {
    is_clock(attr) || matches!(attr.kind, HARDWARE | RAW) || attr.kind >= FIRST_DYNAMIC
}

/// What samples of an event are.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    pub event: EventTypeId,
    pub kind: SampleKind,
    pub is_clock: bool,
}

impl Counted {
    /// A sample that stands for `period` ns of a clock, or so many events.
    pub fn sample(self, period: Option<u64>, idle: bool) -> facts::Sample {
        let weight = match (period, self.is_clock) {
            (Some(ns), true) => Weight::Ns(ns),
            (Some(events), false) => Weight::Count(events),
            (None, _) => Weight::One,
        };
        let mut sample = facts::Sample::new(self.kind).weighing(weight);
        sample.event = Some(self.event);
        sample.idle = idle;
        sample
    }
}

#[derive(Default)]
struct Feed {
    earliest_ns: Option<u64>,
    began_ns: Option<u64>,
    build_ids: FxHashMap<Vec<u8>, BuildId>,
    attrs: Vec<Counted>,
    /// Type and configuration of the event whose samples are the profile.
    profile: Option<(u32, u32)>,
    records: FxHashMap<u32, EventTypeId>,
    /// Threads that are there, by process, and what they are called.
    threads: FxHashMap<u32, FxHashMap<u32, Vec<u8>>>,
    /// Copies of which nothing was told yet: what they are copies of, and since when.
    copies: FxHashMap<u32, (u32, u64)>,
    /// Processes that have been sampled since they run their program, and all that ever were.
    busy: FxHashSet<u32>,
    sampled: FxHashSet<u32>,
    is_kernel_named: bool,
    /// Whether processes are in another pid namespace than the machine's first.
    contained: FxHashMap<u32, bool>,
    /// When each processor was heard of last.
    last_ns: FxHashMap<u32, u64>,
    /// By process and thread.
    deferred: FxHashMap<(u32, u32), Deferred>,
    is_big: bool,
    unwinder: Option<Unwinder>,
    /// Build ids of files that the recording states none of.
    found_ids: FxHashMap<(Vec<u8>, FileNumber), Option<String>>,
    addresses: Vec<u64>,
    frames: Vec<Walked>,
    report: PerfReport,
}

/// Samples of a thread in the kernel, of which the frames of user space follow once it goes back there.
#[derive(Default)]
struct Deferred {
    cookie: u64,
    samples: Vec<(At, Vec<Walked>, facts::Sample)>,
}

/// Samples that wait for their frames at most, of one thread.
const MOST_DEFERRED: usize = 4096;

/// What a record is called.
fn record_name(kind: u32) -> String {
    const NAMES: [&str; 23] = [
        "0",
        "MMAP",
        "LOST",
        "COMM",
        "EXIT",
        "THROTTLE",
        "UNTHROTTLE",
        "FORK",
        "READ",
        "SAMPLE",
        "MMAP2",
        "AUX",
        "ITRACE_START",
        "LOST_SAMPLES",
        "SWITCH",
        "SWITCH_CPU_WIDE",
        "NAMESPACES",
        "KSYMBOL",
        "BPF_EVENT",
        "CGROUP",
        "TEXT_POKE",
        "AUX_OUTPUT_HW_ID",
        "CALLCHAIN_DEFERRED",
    ];
    let known = NAMES.get(kind as usize);
    known.map_or_else(|| kind.to_string(), |&name| name.to_owned())
}

/// What stands for an event or a type of record in a session.
fn schema(name: &str) -> Arc<EventSchema> {
    Arc::new(EventSchema::new(EventKey::Named {
        provider: "perf".into(),
        name: name.into(),
    }))
}

/// The schemas of a recording's records, made as they come up.
#[derive(Debug, Default)]
pub struct Schemas(FxHashMap<(u32, Option<usize>), Arc<EventSchema>>);

impl Schemas {
    /// The schema of a record: samples are called after their event, others after what they are.
    pub fn of(&mut self, record: &Record<'_>, attrs: &[EventAttr]) -> &Arc<EventSchema> {
        let is_sample = matches!(record.event, Event::Sample(_));
        let attr = record.attr.filter(|_| is_sample);
        let make = || match attr.and_then(|at| attrs.get(at)) {
            Some(attr) => schema(&event_name(attr)),
            None => schema(&record_name(record.kind)),
        };
        self.0.entry((record.kind, attr)).or_insert_with(make)
    }
}

/// A record as an event without a payload, at a time in ns since the recording began.
pub fn raw_event<'a>(record: &Record<'_>, time_ns: u64, schema: &'a EventSchema) -> RawEvent<'a> {
    RawEvent {
        time_ns,
        process_id: record.pid,
        thread_id: record.tid.map(u64::from),
        processor: record.cpu,
        pointer_size: PointerSize::Eight,
        schema,
        payload: &[],
    }
}

/// Puts the addresses of a sample into `out`, innermost first: those of the kernel, then those of the program. Guests have
/// none, since their addresses are another machine's. False if a copy of the user stack was not unwound.
pub fn addresses(record: &Record<'_>, sample: &Sample<'_>, out: &mut Vec<u64>) -> bool {
    out.clear();
    if is_guest(record.cpu_mode) {
        return true;
    }
    let mut has_user = false;
    for part in sample.callchain.iter().flat_map(|chain| chain.parts()) {
        if !is_guest(part.mode) {
            has_user |= part.mode == CpuMode::User;
            out.extend(part.addresses.iter());
        }
    }
    // Walks over frame pointers end in what is no address.
    const LOWEST: u64 = 0x1000;
    while out.last().is_some_and(|&last| last < LOWEST) {
        out.pop();
    }
    if out.is_empty() {
        out.extend(sample.ip);
    }
    // Threads of the kernel have neither registers nor a stack of user space.
    has_user || sample.user_stack.is_none_or(|_| !has_registers(sample))
}

fn has_registers(sample: &Sample<'_>) -> bool {
    sample.user_registers.is_none_or(|it| it.abi != 0)
}

fn is_guest(mode: CpuMode) -> bool {
    matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser)
}

fn event_name(attr: &EventAttr) -> String {
    let number = || format!("{}:{:#x}", attr.kind, attr.config);
    attr.name.clone().unwrap_or_else(number)
}

impl Feed {
    fn add_attrs(&mut self, attrs: &[EventAttr], session: &mut Session) {
        for attr in &attrs[self.attrs.len()..] {
            // Processors of two kinds count the same with a counter each.
            let what = (attr.kind, attr.config as u32);
            let kind = match is_profile(attr) && *self.profile.get_or_insert(what) == what {
                true => SampleKind::Cpu,
                false => SampleKind::Event,
            };
            self.attrs.push(Counted {
                event: session.event_type(schema(&event_name(attr))),
                kind,
                is_clock: is_clock(attr),
            });
        }
    }

    /// A record's time in the session; what describes the state before is at its begin.
    fn time(&mut self, record: &Record<'_>) -> u64 {
        let Some(ns) = record.time_ns else {
            return 0;
        };
        let earliest = self.earliest_ns.unwrap_or(ns);
        let began = *self.began_ns.get_or_insert(ns.min(earliest));
        ns.saturating_sub(began)
    }

    fn take(&mut self, record: &Record<'_>, session: &mut Session) {
        let at = At::new(self.time(record));
        let is_live = record.time_ns.is_some();
        if !matches!(record.event, Event::Sample(_)) {
            let known = self.records.entry(record.kind);
            let id =
                *known.or_insert_with(|| session.event_type(schema(&record_name(record.kind))));
            session.count(id, 1, 0, at.time_ns);
        }
        match &record.event {
            Event::Sample(sample) => self.sample(at, record, sample, session),
            Event::Mmap(mmap) if !mmap.is_data => {
                self.mmap(at, is_live, record.cpu_mode, mmap, session);
            }
            Event::Comm(comm) => self.comm(at, comm, session),
            Event::Fork(task) => self.fork(at, is_live, task, session),
            Event::DeferredCallchain { cookie, callchain } => {
                let thread = (
                    record.pid.unwrap_or_default(),
                    record.tid.unwrap_or_default(),
                );
                let parts = callchain.parts();
                let parts = parts.filter(|part| part.mode == CpuMode::User);
                let frames: Vec<u64> = parts.flat_map(|part| part.addresses.iter()).collect();
                self.release(thread, Some((*cookie, &frames)), session);
            }
            Event::Namespaces { pid, links, .. } => self.namespaces(*pid, *links),
            Event::Exit(task) => self.exit(at, task, session),
            Event::KernelSymbol(symbol) => self.kernel_symbol(at, is_live, symbol, session),
            Event::Lost { records, .. } => {
                let cpu = record.cpu.unwrap_or_default();
                let from = self.last_ns.get(&cpu).copied().unwrap_or_default();
                session.lost(Loss::of_events(from, at.time_ns, *records));
            }
            _ => {}
        }
        if let Some(cpu) = record.cpu {
            self.last_ns.insert(cpu, at.time_ns);
        }
    }

    fn sample(&mut self, at: At, record: &Record<'_>, sample: &Sample<'_>, session: &mut Session) {
        let Some(counted) = record.attr.and_then(|attr| self.attrs.get(attr).copied()) else {
            return;
        };
        if is_guest(record.cpu_mode) {
            self.report.of_guests += 1;
            session.count(counted.event, 1, 0, at.time_ns);
            return;
        }
        if let Some(pid) = record.pid {
            if pid == KERNEL {
                self.name_kernel(session);
            }
            self.need(pid, session);
            if self.busy.insert(pid) {
                self.sampled.insert(pid);
            }
        }
        let is_whole = addresses(record, sample, &mut self.addresses);
        self.frames.clear();
        let recorded = self.addresses.iter().copied();
        self.frames.extend(recorded.map(Walked::from));
        if !is_whole {
            self.unwind(at, record, sample, session);
        }
        let at = At {
            process: record.pid,
            thread: record.tid.map(u64::from),
            ..at
        };
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
            Some(cookie) => self.defer(cookie, at, stated, session),
            None => session.sample_walked(at, self.frames.iter().copied(), stated),
        }
    }

    /// Keeps the sample until the rest of its frames is known.
    fn defer(&mut self, cookie: u64, at: At, stated: facts::Sample, session: &mut Session) {
        let tid = at.thread.and_then(|tid| u32::try_from(tid).ok());
        let thread = (at.process.unwrap_or_default(), tid.unwrap_or_default());
        let waiting = self.deferred.entry(thread).or_default();
        if waiting.cookie != cookie || waiting.samples.len() >= MOST_DEFERRED {
            self.release(thread, None, session);
        }
        let waiting = self.deferred.entry(thread).or_default();
        waiting.cookie = cookie;
        waiting.samples.push((at, self.frames.clone(), stated));
    }

    /// Hands over the samples of a thread that waited, with the frames if they are those that they waited for.
    fn release(
        &mut self,
        thread: (u32, u32),
        frames: Option<(u64, &[u64])>,
        session: &mut Session,
    ) {
        let Some(waited) = self.deferred.remove(&thread) else {
            return;
        };
        let rest = frames.filter(|(cookie, _)| *cookie == waited.cookie);
        for (at, mut own, stated) in waited.samples {
            match rest {
                Some((_, rest)) => own.extend(rest.iter().copied().map(Walked::from)),
                None => self.report.without_deferred += 1,
            }
            session.sample_walked(at, own.iter().copied(), stated);
        }
    }

    fn release_all(&mut self, session: &mut Session) {
        let mut threads: Vec<_> = self.deferred.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.release(thread, None, session);
        }
    }

    /// Appends the frames of user space by the copy of its stack; without files of images, the innermost one.
    fn unwind(&mut self, at: At, record: &Record<'_>, sample: &Sample<'_>, session: &mut Session) {
        let registers = sample
            .user_registers
            .and_then(|it| registers(session, &it).filter(|_| !self.is_big));
        // The innermost frame is what the registers begin with.
        if registers.is_some() && record.cpu_mode == CpuMode::User {
            self.frames.clear();
        }
        let walk = (self.unwinder.as_mut()).zip(registers.clone());
        let Some((unwinder, own)) = walk else {
            self.report.not_unwound += 1;
            let innermost = registers.map(|it| Walked::from(it.instruction));
            self.frames.extend(innermost);
            return;
        };
        let machine = &mut session.machine;
        let process = machine.process(record.pid, at.time_ns);
        machine.state(process);
        let thread = Thread {
            registers: own,
            stack: sample.user_stack.unwrap_or_default(),
        };
        let state = &machine.states[process.index()];
        let is_whole = unwinder.walk(thread, state, &machine.names, &mut self.frames);
        self.report.broken_walks += u64::from(!is_whole);
    }

    /// Tells what is mapped in a copy of a process.
    fn need(&mut self, pid: u32, session: &mut Session) {
        // A copy of a copy of … that nothing was told of: the first one comes first.
        let mut chain = Vec::new();
        let mut next = pid;
        while let Some((parent, time_ns)) = self.copies.remove(&next) {
            chain.push((next, parent, time_ns));
            next = parent;
        }
        for (child, parent, time_ns) in chain.into_iter().rev() {
            session.apply(At::new(time_ns).process(child), Fact::Fork { parent });
        }
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
                // It begins where the symbol is that it is named after; what comes before is no code.
                true => (mmap.file_offset.max(mmap.address), TEXT),
                false => (mmap.address, &*name),
            };
            let own = || self.build_ids.get(path.as_bytes()).copied();
            let build_id = stated.or_else(own).map(hex).unwrap_or_default();
            // Where addresses of the kernel are kept secret, nothing is said.
            if base >> 63 == 0 && session.facts().pointer_size == Some(8) || end <= base {
                return;
            }
            self.name_kernel(session);
            let image = Image {
                addressing: Addressing::Rva,
                build_id: &build_id,
                ..Image::new(action, base, end - base, path)
            };
            session.apply(at.process(KERNEL), image);
            return;
        }
        if !matches!(mode, CpuMode::User | CpuMode::Unknown) {
            return;
        }
        if pid_of_jitdump(&name).is_some() {
            self.report.jitdumps.push((mmap.pid, name.into_owned()));
            return;
        }
        self.need(mmap.pid, session);
        if file_name(&name) == "libcoreclr.so" {
            self.report.runtimes.insert(mmap.pid, false);
        }
        let build_id = match stated {
            Some(id) => hex(id),
            None => self.find_build_id(mmap, &name).unwrap_or_default(),
        };
        let image = Image {
            file_offset: mmap.file_offset,
            addressing: Addressing::FileOffset,
            build_id: &build_id,
            ..Image::new(action, mmap.address, mmap.size, &*name)
        };
        session.apply(at.process(mmap.pid), image);
    }

    fn namespaces(&mut self, pid: u32, links: Words<'_>) {
        // Device and inode of net, uts, ipc, pid.
        const PID: usize = 7;
        const FIRST: u64 = 0xefff_fffc;
        if let Some(inode) = links.get(PID) {
            self.contained.insert(pid, inode != FIRST);
        }
    }

    /// The build id of a file by the file itself, where the recording does not say: `perf` states those of files that samples
    /// fell in, not those of their callers.
    fn find_build_id(&mut self, mmap: &Mmap<'_>, path: &str) -> Option<String> {
        let (files, mapped) = (&self.unwinder.as_ref()?.files, mmap.file?);
        let number = FileNumber {
            device: (mapped.major, mapped.minor),
            inode: mapped.inode,
        };
        let known = self.found_ids.entry((mmap.name.to_vec(), number));
        known
            .or_insert_with(|| files.build_id(path, number))
            .clone()
    }

    fn comm(&mut self, at: At, comm: &Comm<'_>, session: &mut Session) {
        let name = String::from_utf8_lossy(comm.name);
        let name = Text::from(&*name);
        let threads = self.threads.entry(comm.pid).or_default();
        threads.insert(comm.tid, comm.name.to_vec());
        let at = at.process(comm.pid).thread(comm.tid.into());
        if comm.is_exec {
            self.copies.remove(&comm.pid);
            if self.busy.remove(&comm.pid) {
                session.apply(at, Process::new(Action::Load, name));
            } else {
                session.apply(at, Fact::Exec);
            }
        }
        if comm.pid == comm.tid {
            session.apply(at, Process::new(Action::DCStart, name));
        }
        session.apply(at, Fact::ThreadName(name));
    }

    fn fork(&mut self, at: At, is_live: bool, task: &Task, session: &mut Session) {
        // It is called as the thread that it is a copy of.
        let of_parent = self.threads.get(&task.parent_pid);
        let comm = of_parent.and_then(|threads| threads.get(&task.parent_tid));
        let comm = comm.cloned().unwrap_or_default();
        let name = String::from_utf8_lossy(&comm);
        let name = Text::from(&*name);
        let threads = self.threads.entry(task.pid).or_default();
        let at = at.process(task.pid).thread(task.tid.into());
        if task.pid != task.parent_pid && is_live {
            threads.clear();
            self.busy.remove(&task.pid);
            session.apply(at, Process::new(Action::Load, name));
            self.copies.insert(task.pid, (task.parent_pid, at.time_ns));
        }
        if !name.is_empty() {
            session.apply(at, Fact::ThreadName(name));
        }
        threads.insert(task.tid, comm);
    }

    /// Code that the kernel makes at run time: each eBPF program is an image of one function.
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
        self.name_kernel(session);
        let name = String::from_utf8_lossy(symbol.name);
        let image = Image {
            is_function: true,
            ..Image::new(action, symbol.address, symbol.size.into(), &*name)
        };
        session.apply(at.process(KERNEL), image);
    }

    /// No record names the kernel, nor what runs while a processor is idle.
    fn name_kernel(&mut self, session: &mut Session) {
        if !std::mem::replace(&mut self.is_kernel_named, true) {
            let at = At::new(0).process(KERNEL).thread(0);
            session.apply(at, Process::new(Action::DCStart, "[kernel]"));
            session.apply(at, Fact::ThreadName(Text::from("swapper")));
        }
    }

    /// A process ends with its last thread.
    fn exit(&mut self, at: At, task: &Task, session: &mut Session) {
        let Some(threads) = self.threads.get_mut(&task.pid) else {
            return;
        };
        if threads.remove(&task.tid).is_some() && threads.is_empty() {
            self.threads.remove(&task.pid);
            session.apply(at.process(task.pid), Process::new(Action::Unload, ""));
        }
    }
}

/// Registers of a 64-bit program, by DWARF's numbers.
fn registers(session: &mut Session, recorded: &chronosym_perf::Registers<'_>) -> Option<Registers> {
    const IS_64_BIT: u64 = 2;
    // ax dx cx bx si di bp sp r8..r15, as the kernel numbers them.
    const X86_64: [u32; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
    let machine = session.facts().machine.as_deref().unwrap_or("x86_64");
    let (processor, instruction) = match machine {
        _ if machine.ends_with("aarch64") => (Processor::Aarch64, 32),
        _ if machine.ends_with("x86_64") => (Processor::X86_64, 8),
        _ => return None,
    };
    let instruction = recorded
        .get(instruction)
        .filter(|_| recorded.abi == IS_64_BIT)?;
    let mut registers = Registers::new(processor, instruction);
    for number in 0..32 {
        let own = match processor {
            Processor::X86_64 => X86_64.get(usize::from(number)).copied(),
            _ => Some(number.into()),
        };
        registers.set(number, own.and_then(|own| recorded.get(own)));
    }
    Some(registers)
}

fn hex(id: BuildId) -> String {
    format!("{id:?}")
}

/// The process of `jit-PID.dump`, by the number that it has for itself: the writer maps a page of it to be found.
pub(crate) fn pid_of_jitdump(path: &str) -> Option<u32> {
    let name = file_name(path).strip_prefix("jit-")?;
    name.strip_suffix(".dump")?.parse().ok()
}
