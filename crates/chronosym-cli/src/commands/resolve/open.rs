//! The timeline of a process, and the names of its code.

use std::num::ParseIntError;
use std::path::Path;
use std::sync::Arc;

use chronosym::symbols::Symbolizer;
use chronosym::{
    AddressAt, AddressQuery, BodyIndex, Input, Opener, Options, Position, ProcessIndex,
    QueryProcess, ResolvedBatch, Resolver, SampleSelection,
};

use super::answers::{Answer, Answers};
use super::pool::Name;
use super::rows::Rows;
use crate::{limits, progress};

const UNREADABLE: &str = "UnreadableTimeline";
const WHICH_PROCESS: &str = "NoSuchProcess";

/// A process whose timeline is open.
pub struct Open {
    resolver: Resolver,
    process: ProcessIndex,
    /// ns since 1970-01-01 UTC.
    start: i64,
    /// The name of each frame of the resolver's table, if it has one.
    frames: Vec<Option<Name>>,
    bodies: Vec<BodyNames>,
    /// Answers in bodies with inlinees, each at the slot of its address.
    inlined: Vec<Option<Inlined>>,
    at: Vec<AddressAt>,
    found: Vec<Option<BodyIndex>>,
    /// Positions of the addresses that are not answered without the resolver, and their queries.
    others: Vec<usize>,
    queries: Vec<AddressQuery>,
    batch: ResolvedBatch,
    names: Vec<Name>,
}

/// What is known of the names in a body.
#[derive(Clone, Copy)]
enum BodyNames {
    Unknown,
    /// All addresses have one name.
    Only(Name),
    /// It has an inline tree: names differ between its addresses.
    Inlined,
}

/// The names at an address of a body with inlinees.
#[derive(Clone, Copy)]
struct Inlined {
    address: u64,
    body: BodyIndex,
    answer: Answer,
}

/// Number of slots for [`Inlined`]; those of a process take 128 KiB.
const SLOTS: usize = 1 << 12;

/// Returns the slot of an address.
fn slot(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % SLOTS
}

impl Open {
    /// Reads the timeline of a process.
    pub fn read(
        path: &Path,
        pid: Option<Result<u32, ParseIntError>>,
        symbols: &Arc<Symbolizer>,
    ) -> Result<Box<Self>, &'static str> {
        let recording = Opener::new()
            .limits(limits::get())
            .open([Input::file(path)]);
        let read = recording.and_then(|it| it.timeline(Options::from(SampleSelection::None)));
        let (timeline, _) = read.map_err(|error| {
            progress::note(&error.to_string());
            UNREADABLE
        })?;
        let all = timeline.processes().filter(|it| it.pid != Some(0));
        let mut of_pid = all.filter(|it| match &pid {
            None => true,
            Some(pid) => it.pid.is_some() && it.pid == pid.as_ref().ok().copied(),
        });
        let process = match (of_pid.next(), of_pid.next()) {
            (Some(only), None) => only.index,
            _ => return Err(WHICH_PROCESS),
        };
        drop(of_pid);
        Ok(Box::new(Open {
            start: saturated(timeline.facts().start_unix_ns.unwrap_or(0)),
            resolver: Resolver::new(&timeline, Some(symbols.clone())),
            process,
            frames: Vec::new(),
            bodies: Vec::new(),
            inlined: Vec::new(),
            at: Vec::new(),
            found: Vec::new(),
            others: Vec::new(),
            queries: Vec::new(),
            batch: ResolvedBatch::default(),
            names: Vec::new(),
        }))
    }

    /// Names rows of a batch, which belong to this process.
    pub fn resolve(
        &mut self,
        batch: &Rows<'_>,
        rows: &[u32],
        position: Position,
        answers: &mut Answers,
    ) {
        let (process, start) = (self.process, self.start);
        let at = |&row: &u32| {
            let row = row as usize;
            let time_ns = since(start, batch.times[row]);
            AddressAt::new(process, batch.addresses[row], time_ns, position)
        };
        self.at.clear();
        self.at.extend(rows.iter().map(at));
        self.found.resize(rows.len(), None);
        let timeline = self.resolver.timeline();
        timeline.bodies_of_batch(&self.at, &mut self.found);
        self.others.clear();
        for (number, (&row, body)) in rows.iter().zip(&self.found).enumerate() {
            match self.known(*body, batch.addresses[row as usize]) {
                Some(answer) => answers.set(row, answer),
                None => self.others.push(number),
            }
        }
        if !self.others.is_empty() {
            self.resolve_others(batch, rows, position, answers);
        }
    }

    /// Returns the names at an address of a body, if they are known without the resolver.
    #[inline]
    fn known(&self, body: Option<BodyIndex>, address: u64) -> Option<Answer> {
        let body = body?;
        match self.bodies.get(body.index())? {
            BodyNames::Only(name) => Some(Answer::Only(*name)),
            BodyNames::Inlined => {
                let inlined = self.inlined.get(slot(address))?.as_ref()?;
                let is_same = (inlined.body, inlined.address) == (body, address);
                is_same.then_some(inlined.answer)
            }
            BodyNames::Unknown => None,
        }
    }

    /// Forgets names, which the pool does not have any more.
    pub fn forget_names(&mut self) {
        self.frames.clear();
        self.bodies.clear();
        self.inlined.clear();
    }

    /// Whether answers were left out because a limit was reached.
    pub fn has_limit(&self) -> bool {
        self.resolver.limit().is_some()
    }

    /// Names the addresses of which nothing is known.
    fn resolve_others(
        &mut self,
        batch: &Rows<'_>,
        rows: &[u32],
        position: Position,
        answers: &mut Answers,
    ) {
        let others = std::mem::take(&mut self.others);
        let mut names = std::mem::take(&mut self.names);
        self.queries.clear();
        self.queries.extend(others.iter().map(|&number| {
            let row = rows[number] as usize;
            AddressQuery {
                process: QueryProcess::Index(self.process),
                address: batch.addresses[row],
                time_ns: since(self.start, batch.times[row]),
                position,
            }
        }));
        self.resolver.resolve_batch(&self.queries, &mut self.batch);
        self.add_names(answers);
        for (query, &number) in others.iter().enumerate() {
            let frames = self.batch.frames_of(query).iter();
            names.clear();
            names.extend(frames.clone().map_while(|it| self.frames[it.index()]));
            if names.len() < frames.len() {
                self.set_unnamed(&self.queries[query], rows[number], answers);
                continue;
            }
            let answer = answers.answer(&names);
            answers.set(rows[number], answer);
            if let Some(body) = self.found[number] {
                self.learn(body, self.queries[query].address, answer);
            }
        }
        (self.others, self.names) = (others, names);
    }

    /// Keeps the names at an address of a body.
    fn learn(&mut self, body: BodyIndex, address: u64, answer: Answer) {
        if self.bodies.len() <= body.index() {
            self.bodies.resize(body.index() + 1, BodyNames::Unknown);
        }
        let names = &mut self.bodies[body.index()];
        if matches!(names, BodyNames::Unknown) {
            let is_one = self.resolver.inlinees(self.process, body).is_empty();
            *names = match answer {
                Answer::Only(name) if is_one => BodyNames::Only(name),
                _ => BodyNames::Inlined,
            };
        }
        if matches!(names, BodyNames::Inlined) {
            if self.inlined.is_empty() {
                self.inlined.resize(SLOTS, None);
            }
            self.inlined[slot(address)] = Some(Inlined {
                address,
                body,
                answer,
            });
        }
    }

    /// Names the frames that are new in the table.
    fn add_names(&mut self, answers: &mut Answers) {
        let table = self.resolver.frame_table();
        let mut label = String::new();
        for frame in self.frames.len()..table.len() {
            let module = table.text(table.module()[frame]);
            let method = table.text(table.method()[frame]);
            label.clear();
            if !module.is_empty() {
                label.push_str(module);
                label.push('!');
            }
            label.push_str(method);
            let has_name = !method.is_empty();
            self.frames
                .push(has_name.then(|| answers.pool.name(&label)));
        }
    }

    /// Sets the names of frames of which one has no name: it has the reason in its place.
    fn set_unnamed(&self, query: &AddressQuery, row: u32, answers: &mut Answers) {
        let QueryProcess::Index(process) = query.process else {
            return;
        };
        let symbols = self.resolver.symbols().map(|it| &**it);
        let (address, time) = (query.address, query.time_ns);
        let timeline = self.resolver.timeline();
        let frames = timeline.frames(process, address, time, query.position, symbols);
        let names: Vec<Name> = frames
            .iter()
            .map(|frame| match frame.name() {
                Ok(_) => answers.own(frame.label().to_owned()),
                Err(reason) => answers.own(format!("{} ({})", frame.label(), reason.as_str())),
            })
            .collect();
        let answer = answers.answer(&names);
        answers.set(row, answer);
    }
}

/// Returns the time from the start of a trace; 0 before it.
fn since(start: i64, time: i64) -> u64 {
    time.max(start).abs_diff(start)
}

/// Returns the nearest number of 64 bits.
fn saturated(number: i128) -> i64 {
    let nearest = number.clamp(i64::MIN.into(), i64::MAX.into());
    nearest as i64
}
