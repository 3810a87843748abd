//! Reads exported tables back into a session.

mod file;
mod footer;
mod memory;
mod pages;
mod place;
mod rows;
mod stacks;

use std::path::Path;

use chronosym_core::facts::{At, Fact, Process, Sample};
use chronosym_core::{
    Action, Budget, DiagnosticKind, Diagnostics, EventKey, EventSchema, Limits, RecordingId,
    SampleKind, Session, Weight,
};
use chronosym_types::hash::{HashMap, HashSet};
use std::collections::hash_map::Entry;

use file::Tables;
use memory::Memory;
use place::Places;
use rows::{ProcessKey, SampleRow};
use stacks::Stacks;

pub use file::is_export;
pub(crate) use rows::{Texts, numbers};

use crate::error::Error;

/// A process: machine, boot, id and start.
type OwnedKey = (Box<str>, Box<str>, Option<i64>, Option<i64>);

/// Bytes of a process in the maps, and of a thread or type of events, without their texts.
const PROCESS: u64 = 400;
const NAME: u64 = 100;

/// Numbers of processes.
struct Processes {
    pids: HashMap<OwnedKey, u32>,
    taken: HashSet<u32>,
    /// The next number for a process whose id another one has, too.
    next: u32,
    /// Most rows have the process of the row before.
    last: Option<(OwnedKey, u32)>,
}

impl Processes {
    /// Returns a number for a process: its id, unless a process of another machine or time has it.
    fn pid(&mut self, key: ProcessKey<'_>, memory: &mut Memory) -> Result<u32, String> {
        let (host, boot) = key.machine;
        if let Some(((last_host, last_boot, id, start), pid)) = &self.last
            && (&**last_host, &**last_boot, *id, *start) == (host, boot, key.pid, key.start)
        {
            return Ok(*pid);
        }
        let owned: OwnedKey = (host.into(), boot.into(), key.pid, key.start);
        let known = self.pids.get(&owned).copied();
        if known.is_none() {
            memory.charge(PROCESS + 2 * (host.len() + boot.len()) as u64)?;
        }
        let pid = known.unwrap_or_else(|| {
            let own = key.pid.and_then(|pid| u32::try_from(pid).ok());
            let own = own.filter(|pid| self.taken.insert(*pid));
            own.unwrap_or_else(|| {
                while !self.taken.insert(self.next) {
                    self.next = self.next.wrapping_add(1);
                }
                self.next
            })
        });
        self.pids.insert(owned.clone(), pid);
        self.last = Some((owned, pid));
        Ok(pid)
    }
}

/// Reads the tables of a folder that `chronosym export` wrote, or one of its files with samples,
/// into a session.
///
/// Samples have the stacks, labels and weights of the recordings. Times count from the first sample.
/// Processes of different machines that have one id get others. Source lines are left out, and so
/// is what distinguishes guesses from inferred names; both are counted in the diagnostics.
///
/// # Errors
///
/// [`Error::Read`] if a file is missing or cannot be read, or has other columns.
///
/// # Examples
///
/// ```
/// use chronosym_core::facts::{At, Method, Sample};
/// use chronosym_core::{Action, Filter, Limits, Options, Session};
/// use chronosym_fleet::{Exporter, Trace};
///
/// let mut session = Session::new(Options::default());
/// let at = At::new(0).process(42).thread(7);
/// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
/// session.sample(at.at(100), &[0x1010], Sample::cpu());
/// let folder = tempfile::tempdir()?;
/// Exporter::new(folder.path()).export(&Trace::new("a.nettrace", &session.finish()))?;
///
/// let mut session = Session::new(Options::default());
/// chronosym_fleet::read(folder.path(), &Limits::default(), &mut session)?;
/// let profile = session.finish().profile(&Filter::default(), None);
/// let leaf = profile.resolver.leaf(profile.entries[0].stack);
/// assert_eq!(profile.resolver.frame(leaf).label(), "Ns.Type.Run");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read(path: &Path, limits: &Limits, session: &mut Session) -> Result<Diagnostics, Error> {
    let tables = Tables::find(path)?;
    session
        .admit(RecordingId::Whole)
        .map_err(Error::read(path))?;
    session.limit_memory(Budget::of(limits, Some(tables.bytes)));
    session.facts().format = "tables".to_owned();
    let mut diagnostics = Diagnostics::default();
    let mut memory = Memory::of(limits, tables.bytes);
    let stacks = Stacks::read(&tables, &mut memory)?;
    let mut places = Places::new(&stacks);
    let mut processes = Processes {
        pids: HashMap::default(),
        taken: HashSet::default(),
        next: 1 << 31,
        last: None,
    };

    // Code is stated before samples: a first pass finds the code of each process.
    let mut first = i64::MAX;
    let mut last = i64::MIN;
    let mut names = HashMap::default();
    for file in &tables.samples {
        rows::each(file, |row| {
            (first, last) = (first.min(row.time), last.max(row.time));
            let pid = processes.pid(row.key, &mut memory)?;
            if let Entry::Vacant(name) = names.entry(pid) {
                memory.charge(row.process.map_or(0, |name| name.len() as u64))?;
                name.insert(row.process.map(str::to_owned));
            }
            if let Some(stack) = row.stack {
                places.add(pid, stack);
            }
            Ok(true)
        })?;
    }
    let start = first.min(last);
    session.facts().start_unix_ns = Some(start.into());
    session.facts().duration_ns = last.saturating_sub(start) as u64;
    for (&pid, name) in &names {
        let process = Process::new(Action::DCStart, name.as_deref().unwrap_or_default());
        session.apply(At::new(0).process(pid), process);
    }
    places.state(Action::Load, 0, session);
    let mut reader = Samples {
        start,
        session,
        events: HashMap::default(),
        threads: HashMap::default(),
        stack: Vec::new(),
        without_stack: 0,
    };
    for file in &tables.samples {
        rows::each(file, |row| {
            let pid = processes.pid(row.key, &mut memory)?;
            reader.add(pid, &row, &places, &mut memory)
        })?;
    }
    let without_stack = reader.without_stack;
    // After the last sample: code is inferred to have been there before it was listed.
    let end = last.saturating_sub(start) as u64 + 1;
    places.state(Action::DCEnd, end, session);
    if !stacks.lacks_rundown {
        for &pid in names.keys() {
            let complete = Fact::RundownComplete { clr_instance: 0 };
            session.apply(At::new(end).process(pid), complete);
        }
    }
    let counts = [
        (
            without_stack,
            DiagnosticKind::Unused,
            "samples have no stack",
        ),
        (
            places.guesses(),
            DiagnosticKind::Unused,
            "names are guesses, and are shown as inferred",
        ),
        (
            places.cut(),
            DiagnosticKind::Damage,
            "stacks refer to rows that are missing, or are too deep, and were cut",
        ),
    ];
    diagnostics.add_counts(&counts);
    Ok(diagnostics)
}

/// Adds samples to a session.
struct Samples<'s> {
    start: i64,
    session: &'s mut Session,
    events: HashMap<Box<str>, chronosym_core::EventTypeId>,
    /// The name of each thread so far.
    threads: HashMap<(u32, i64), Box<str>>,
    stack: Vec<u64>,
    without_stack: u64,
}

impl Samples<'_> {
    /// Returns whether there is room for more.
    fn add(
        &mut self,
        pid: u32,
        row: &SampleRow<'_>,
        places: &Places<'_>,
        memory: &mut Memory,
    ) -> Result<bool, String> {
        let Some(stack) = row.stack else {
            self.without_stack += 1;
            return Ok(true);
        };
        places.addresses(stack, &mut self.stack);
        let kind = SampleKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == row.kind);
        let kind = kind.unwrap_or(SampleKind::Event);
        let weight = row.weight.map(|weight| weight.max(0) as u64);
        let weight = match (weight, row.unit) {
            (Some(1), "events") if kind == SampleKind::Event => Weight::One,
            (Some(weight), "ns") => Weight::Ns(weight),
            (Some(weight), "bytes") => Weight::Bytes(weight),
            (Some(weight), "events") => Weight::Count(weight),
            _ => Weight::Unknown,
        };
        let event = match self.events.get(row.event) {
            Some(&event) => event,
            None => {
                memory.charge(NAME + row.event.len() as u64)?;
                let (provider, name) = row.event.split_once('/').unwrap_or(("samples", row.event));
                let schema = EventSchema::new(EventKey::Named {
                    provider: provider.into(),
                    name: name.into(),
                });
                let event = self.session.event_type(schema.into());
                self.events.insert(row.event.into(), event);
                event
            }
        };
        let time = row.time.saturating_sub(self.start).max(0) as u64;
        let at = At::new(time).process(pid).thread(row.tid as u64);
        if let Some(name) = row.thread {
            let known = self.threads.get(&(pid, row.tid));
            if known.is_none_or(|known| **known != *name) {
                memory.charge(NAME + name.len() as u64)?;
                self.threads.insert((pid, row.tid), name.into());
                self.session.apply(at, Fact::ThreadName(name.into()));
            }
        }
        let sample = Sample::new(kind).weighing(weight).of(event);
        self.session.sample(at, &self.stack, sample);
        // The session counts what a limit on memory leaves out.
        Ok(self.session.has_room(1))
    }
}
