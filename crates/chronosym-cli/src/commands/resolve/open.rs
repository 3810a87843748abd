//! The timeline of a process, and the names of its code.

use std::num::ParseIntError;
use std::path::Path;
use std::sync::Arc;

use chronosym::symbols::Symbolizer;
use chronosym::{
    AddressAt, AddressQuery, BodyIndex, Input, Opener, Options, Position, ProcessIndex,
    QueryProcess, ResolvedBatch, Resolver, SampleSelection,
};

use super::answers::Answers;
use super::pool::Name;
use crate::{limits, progress};

const UNREADABLE: &str = "UnreadableTimeline";
const WHICH_PROCESS: &str = "NoSuchProcess";

/// A row of a batch: an address, and a time in ns since 1970-01-01 UTC.
pub struct Asked {
    pub row: u32,
    pub time: i64,
    pub address: u64,
}

/// A process whose timeline is open.
pub struct Open {
    resolver: Resolver,
    process: ProcessIndex,
    /// ns since 1970-01-01 UTC.
    start: i128,
    /// The name of each frame of the resolver's table, if it has one.
    frames: Vec<Option<Name>>,
    /// The only name of each body, [`UNKNOWN`] or [`SEVERAL`].
    bodies: Vec<Name>,
    at: Vec<AddressAt>,
    found: Vec<Option<BodyIndex>>,
    /// Positions of the addresses of a batch that the names of bodies do not answer, and their queries.
    others: Vec<usize>,
    queries: Vec<AddressQuery>,
    batch: ResolvedBatch,
}

/// Of a body whose name is not known yet.
const UNKNOWN: Name = Name(u32::MAX);
/// Of a body with an inline tree: names differ between its addresses.
const SEVERAL: Name = Name(u32::MAX - 1);

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
            start: timeline.facts().start_unix_ns.unwrap_or(0),
            resolver: Resolver::new(&timeline, Some(symbols.clone())),
            process,
            frames: Vec::new(),
            bodies: Vec::new(),
            at: Vec::new(),
            found: Vec::new(),
            others: Vec::new(),
            queries: Vec::new(),
            batch: ResolvedBatch::default(),
        }))
    }

    /// Names the rows of a batch that belong to this process.
    pub fn resolve(&mut self, asked: &[Asked], position: Position, answers: &mut Answers) {
        let (process, start) = (self.process, self.start);
        let time_ns = |asked: &Asked| {
            let time = i128::from(asked.time) - start;
            time.clamp(0, i128::from(u64::MAX)) as u64
        };
        let at = |it: &Asked| AddressAt::new(process, it.address, time_ns(it), position);
        self.at.clear();
        self.at.extend(asked.iter().map(at));
        self.found.resize(asked.len(), None);
        let timeline = self.resolver.timeline();
        timeline.bodies_of_batch(&self.at, &mut self.found);
        self.others.clear();
        self.queries.clear();
        for (number, (asked, body)) in asked.iter().zip(&self.found).enumerate() {
            let name = body.and_then(|body| self.bodies.get(body.index()));
            match name {
                Some(&name) if name != UNKNOWN && name != SEVERAL => answers.set(asked.row, name),
                _ => {
                    self.others.push(number);
                    self.queries.push(AddressQuery {
                        process: QueryProcess::Index(process),
                        address: asked.address,
                        time_ns: time_ns(asked),
                        position,
                    });
                }
            }
        }
        if !self.others.is_empty() {
            self.resolve_others(asked, answers);
        }
    }

    /// Forgets names, which the pool does not have any more.
    pub fn forget_names(&mut self) {
        self.frames.clear();
        self.bodies.clear();
    }

    /// Whether answers were left out because a limit was reached.
    pub fn has_limit(&self) -> bool {
        self.resolver.limit().is_some()
    }

    /// Names the addresses that the names of bodies do not answer.
    fn resolve_others(&mut self, asked: &[Asked], answers: &mut Answers) {
        self.resolver.resolve_batch(&self.queries, &mut self.batch);
        self.add_names(answers);
        let others = std::mem::take(&mut self.others);
        for (query, &number) in others.iter().enumerate() {
            let row = asked[number].row;
            let frames = self.batch.frames_of(query);
            let mut names = frames.iter().map(|it| self.frames[it.index()]);
            if !names.clone().all(|name| name.is_some()) {
                self.set_unnamed(&self.queries[query], row, answers);
                continue;
            }
            answers.set_all(row, names.clone().flatten());
            if let (Some(body), 1, Some(Some(name))) =
                (self.found[number], frames.len(), names.next())
            {
                self.learn(body, name);
            }
        }
        self.others = others;
    }

    /// Keeps the name at an address of a body if it is that of the whole body.
    fn learn(&mut self, body: BodyIndex, name: Name) {
        if self.bodies.len() <= body.index() {
            self.bodies.resize(body.index() + 1, UNKNOWN);
        }
        if self.bodies[body.index()] == UNKNOWN {
            let is_one = self.resolver.inlinees(self.process, body).is_empty();
            self.bodies[body.index()] = match is_one {
                true => name,
                false => SEVERAL,
            };
        }
    }

    /// Names the frames that are new in the table.
    fn add_names(&mut self, answers: &mut Answers) {
        let table = self.resolver.frame_table();
        for frame in self.frames.len()..table.len() {
            let module = table.text(table.module()[frame]);
            let name = match (module, table.text(table.method()[frame])) {
                (_, "") => None,
                ("", method) => Some(answers.pool.name(method)),
                (module, method) => Some(answers.pool.name(&format!("{module}!{method}"))),
            };
            self.frames.push(name);
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
        answers.set_all(row, names);
    }
}
