//! The timeline of a process, and the names of its code.

use std::num::ParseIntError;
use std::path::Path;
use std::sync::Arc;

use chronosym::symbols::Symbolizer;
use chronosym::{
    AddressAt, AddressQuery, BodyIndex, Input, Opener, Options, Position, ProcessIndex,
    QueryProcess, ResolvedBatch, Resolver, SampleSelection, TableFrame,
};

use super::answers::Answers;
use super::query::Query;
use crate::{limits, progress};

const UNREADABLE: &str = "UnreadableTimeline";
const WHICH_PROCESS: &str = "NoSuchProcess";

/// A process whose timeline is open.
pub struct Open {
    resolver: Resolver,
    process: ProcessIndex,
    /// ns since 1970-01-01 UTC.
    start: i128,
    /// The text of each frame of the resolver's table; `None` for those without a name.
    texts: Vec<Option<Box<str>>>,
    /// What is known of each body so far.
    names: Vec<BodyName>,
    at: Vec<AddressAt>,
    bodies: Vec<Option<BodyIndex>>,
    /// Positions of the addresses of a batch that the names of bodies do not answer, and their queries.
    others: Vec<usize>,
    queries: Vec<AddressQuery>,
    batch: ResolvedBatch,
}

/// The names at the addresses of a body.
#[derive(Clone, Copy)]
enum BodyName {
    Unknown,
    /// All have the one name of this frame.
    One(TableFrame),
    /// They differ: the body has an inline tree.
    Several,
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
            start: timeline.facts().start_unix_ns.unwrap_or(0),
            resolver: Resolver::new(&timeline, Some(symbols.clone())),
            process,
            texts: Vec::new(),
            names: Vec::new(),
            at: Vec::new(),
            bodies: Vec::new(),
            others: Vec::new(),
            queries: Vec::new(),
            batch: ResolvedBatch::default(),
        }))
    }

    /// Names the rows of a batch that belong to this process.
    pub fn resolve(
        &mut self,
        rows: &[usize],
        queries: &[Query],
        position: Position,
        answers: &mut Answers,
    ) {
        let time_ns = |time: i64| {
            let time = i128::from(time) - self.start;
            time.clamp(0, i128::from(u64::MAX)) as u64
        };
        self.at.clear();
        self.at.extend(rows.iter().map(|&row| {
            let Query { time, address, .. } = queries[row];
            AddressAt::new(self.process, address, time_ns(time), position)
        }));
        self.bodies.clear();
        self.bodies.resize(rows.len(), None);
        let timeline = self.resolver.timeline();
        timeline.bodies_of_batch(&self.at, &mut self.bodies);
        self.others.clear();
        self.queries.clear();
        for (at, (&row, body)) in rows.iter().zip(&self.bodies).enumerate() {
            if let Some(name) = body.and_then(|body| self.name_of(body)) {
                answers.push(row, name);
                continue;
            }
            let Query { time, address, .. } = queries[row];
            self.others.push(at);
            self.queries.push(AddressQuery {
                process: QueryProcess::Index(self.process),
                address,
                time_ns: time_ns(time),
                position,
            });
        }
        if !self.others.is_empty() {
            self.resolve_others(rows, answers);
        }
    }

    /// Whether answers were left out because a limit was reached.
    pub fn has_limit(&self) -> bool {
        self.resolver.limit().is_some()
    }

    /// The name at every address of a body, if there is one and it is known.
    fn name_of(&self, body: BodyIndex) -> Option<&str> {
        match self.names.get(body.index())? {
            BodyName::One(frame) => self.texts[frame.index()].as_deref(),
            _ => None,
        }
    }

    /// Names the addresses that the names of bodies do not answer.
    fn resolve_others(&mut self, rows: &[usize], answers: &mut Answers) {
        self.resolver.resolve_batch(&self.queries, &mut self.batch);
        self.add_texts();
        for query in 0..self.others.len() {
            let at = self.others[query];
            let frames = self.batch.frames_of(query);
            let texts = frames.iter().map(|it| self.texts[it.index()].as_deref());
            if texts.clone().all(|text| text.is_some()) {
                texts
                    .flatten()
                    .for_each(|text| answers.push(rows[at], text));
                if let (Some(body), &[frame]) = (self.bodies[at], frames) {
                    self.learn(body, frame);
                }
            } else {
                self.push_unnamed(&self.queries[query], rows[at], answers);
            }
        }
    }

    /// Keeps the name at an address of a body if it is that of the whole body.
    fn learn(&mut self, body: BodyIndex, frame: TableFrame) {
        if self.names.len() <= body.index() {
            self.names.resize(body.index() + 1, BodyName::Unknown);
        }
        if let BodyName::Unknown = self.names[body.index()] {
            let is_one = self.resolver.inlinees(self.process, body).is_empty();
            self.names[body.index()] = match is_one {
                true => BodyName::One(frame),
                false => BodyName::Several,
            };
        }
    }

    /// Makes the texts of frames that are new in the table.
    fn add_texts(&mut self) {
        let table = self.resolver.frame_table();
        for frame in self.texts.len()..table.len() {
            let module = table.text(table.module()[frame]);
            let text = match (module, table.text(table.method()[frame])) {
                (_, "") => None,
                ("", method) => Some(method.into()),
                (module, method) => Some(format!("{module}!{method}").into()),
            };
            self.texts.push(text);
        }
    }

    /// Adds frames of which one has no name, with the reason.
    fn push_unnamed(&self, query: &AddressQuery, row: usize, answers: &mut Answers) {
        let QueryProcess::Index(process) = query.process else {
            return;
        };
        let symbols = self.resolver.symbols().map(|it| &**it);
        let (address, time) = (query.address, query.time_ns);
        let timeline = self.resolver.timeline();
        for frame in timeline.frames(process, address, time, query.position, symbols) {
            match frame.name() {
                Ok(_) => answers.push(row, frame.label()),
                Err(reason) => {
                    answers.push(row, &format!("{} ({})", frame.label(), reason.as_str()))
                }
            }
        }
    }
}
