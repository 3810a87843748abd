//! The timeline of a process, and the names of its code.

use std::num::ParseIntError;
use std::path::Path;
use std::sync::Arc;

use chronosym::symbols::Symbolizer;
use chronosym::{
    AddressAt, BodyIndex, Certainty, Code, Frame, FrameId, Input, Opener, Options, Position,
    ProcessIndex, Resolver, SampleSelection, SavedTimeline, Timeline,
};

use super::answers::{Answer, Answers};
use super::pool::Name;
use super::rows::Rows;
use crate::{limits, load, progress};

const UNREADABLE: &str = "UnreadableTimeline";
const WHICH_PROCESS: &str = "NoSuchProcess";

/// The pid that a key states.
type Pid = Result<u32, ParseIntError>;

/// A process whose timeline is open.
pub struct Open {
    resolver: Resolver,
    process: ProcessIndex,
    /// ns since 1970-01-01 UTC.
    start: i64,
    /// The addresses of a timeline of which a part was read.
    part: Option<Vec<u64>>,
    /// The name of each frame of the resolver, if it has one.
    frames: Vec<Option<Name>>,
    bodies: Vec<BodyNames>,
    /// Answers in bodies whose names vary, each at the slot of its address.
    varied: Vec<Option<Varied>>,
    at: Vec<AddressAt>,
    found: Vec<Option<BodyIndex>>,
    names: Vec<Name>,
    label: String,
}

/// What is known of the names in a body.
#[derive(Clone, Copy)]
enum BodyNames {
    Unknown,
    /// All addresses have one name.
    Only(Name),
    /// Names may differ between its addresses: it may have inlinees.
    Varied,
}

/// The names at an address of a body whose names vary.
#[derive(Clone, Copy)]
struct Varied {
    address: u64,
    body: BodyIndex,
    answer: Answer,
}

/// Number of slots for [`Varied`]; those of a process take 128 KiB.
const SLOTS: usize = 1 << 12;

/// Returns the slot of an address.
fn slot(address: u64) -> usize {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % SLOTS
}

/// Number of rows for which a part of a timeline is read.
const FEW: usize = 16;

impl Open {
    /// Reads the timeline of a process: the part that names some rows, if they are few.
    pub fn read(
        path: &Path,
        pid: Option<Pid>,
        symbols: &Arc<Symbolizer>,
        rows: Option<(&Rows<'_>, &[u32], Position)>,
    ) -> Result<Box<Self>, &'static str> {
        let few = rows.filter(|(_, rows, _)| rows.len() <= FEW);
        if let Some(part) = few.and_then(|rows| Self::read_part(path, &pid, symbols, rows)) {
            return Ok(part);
        }
        let recording = Opener::new()
            .limits(limits::get())
            .open([Input::file(path)]);
        let read = recording.and_then(|it| it.timeline(Options::from(SampleSelection::None)));
        let (timeline, _) = read.map_err(|error| {
            progress::note(&error.to_string());
            UNREADABLE
        })?;
        Self::of(&timeline, &pid, symbols, None).ok_or(WHICH_PROCESS)
    }

    /// Reads a part of a saved timeline, unless another file is meant or some rows need the rest.
    fn read_part(
        path: &Path,
        pid: &Option<Pid>,
        symbols: &Arc<Symbolizer>,
        (batch, rows, position): (&Rows<'_>, &[u32], Position),
    ) -> Option<Box<Self>> {
        if !load::is_saved(path) {
            return None;
        }
        // Not mapped: the file may be truncated while the command runs.
        let bytes = std::fs::read(path).ok()?;
        let saved = SavedTimeline::open(&bytes).ok()?;
        let addresses: Vec<u64> = rows
            .iter()
            .map(|&row| batch.addresses[row as usize])
            .collect();
        let pid_of_rows = pid.as_ref().and_then(|pid| pid.as_ref().ok()).copied();
        let read = saved.bodies_of(pid_of_rows, &addresses, position);
        let (timeline, _) = read.ok()?;
        let part = Self::of(&timeline, pid, symbols, Some(addresses))?;
        part.has(batch, rows, position).then_some(part)
    }

    /// Selects the process of a timeline.
    fn of(
        timeline: &Arc<Timeline>,
        pid: &Option<Pid>,
        symbols: &Arc<Symbolizer>,
        part: Option<Vec<u64>>,
    ) -> Option<Box<Self>> {
        let all = timeline.processes().filter(|it| it.pid != Some(0));
        let mut of_pid = all.filter(|it| match pid {
            None => true,
            Some(pid) => it.pid.is_some() && it.pid == pid.as_ref().ok().copied(),
        });
        let (Some(only), None) = (of_pid.next(), of_pid.next()) else {
            return None;
        };
        Some(Box::new(Open {
            start: saturated(timeline.facts().start_unix_ns.unwrap_or(0)),
            resolver: Resolver::new(timeline, Some(symbols.clone())),
            process: only.index,
            part,
            frames: Vec::new(),
            bodies: Vec::new(),
            varied: Vec::new(),
            at: Vec::new(),
            found: Vec::new(),
            names: Vec::new(),
            label: String::new(),
        }))
    }

    /// Returns whether what was read answers some rows: each has code in the part, with names that
    /// do not depend on the rest.
    pub fn has(&self, batch: &Rows<'_>, rows: &[u32], position: Position) -> bool {
        let Some(part) = &self.part else {
            return true;
        };
        let (timeline, process) = (self.resolver.timeline(), self.process);
        let symbols = self.resolver.symbols().map(|it| &**it);
        rows.iter().all(|&row| {
            let (address, time) = self.place(batch, row);
            if !part.contains(&address) || timeline.body(process, address, time, position).is_none()
            {
                return false;
            }
            let frames = timeline.frames(process, address, time, position, symbols);
            frames.iter().all(|frame| {
                let is_stated = frame.certainty != Some(Certainty::Approximate);
                matches!(frame.code, Code::Body(..)) && frame.name().is_ok() && is_stated
            })
        })
    }

    /// Returns the address of a row, and its time from the start of the timeline.
    fn place(&self, batch: &Rows<'_>, row: u32) -> (u64, u64) {
        let row = row as usize;
        (batch.addresses[row], since(self.start, batch.times[row]))
    }

    /// Names rows of a batch, which belong to this process.
    pub fn resolve(
        &mut self,
        batch: &Rows<'_>,
        rows: &[u32],
        position: Position,
        answers: &mut Answers,
    ) {
        let mut at = std::mem::take(&mut self.at);
        at.clear();
        at.extend(rows.iter().map(|&row| {
            let (address, time_ns) = self.place(batch, row);
            AddressAt::new(self.process, address, time_ns, position)
        }));
        let mut found = std::mem::take(&mut self.found);
        found.resize(rows.len(), None);
        self.resolver.timeline().bodies_of_batch(&at, &mut found);
        for ((&row, &at), &body) in rows.iter().zip(&at).zip(&found) {
            let address = batch.addresses[row as usize];
            let known = self.known(body, address);
            let known = known.or_else(|| self.name_body(body?, answers));
            let answer = known.unwrap_or_else(|| {
                let frames = self.resolver.resolve_address(at);
                self.add_names(answers);
                match self.named(frames.clone(), answers) {
                    Some(answer) => {
                        self.keep(body, address, answer);
                        answer
                    }
                    None => {
                        let place = self.place(batch, row);
                        self.with_reasons(frames, place, position, answers)
                    }
                }
            });
            answers.set(row, answer);
        }
        (self.at, self.found) = (at, found);
    }

    /// Returns the names at an address of a body, if they are known without the resolver.
    #[inline]
    fn known(&self, body: Option<BodyIndex>, address: u64) -> Option<Answer> {
        let body = body?;
        match self.bodies.get(body.index())? {
            BodyNames::Only(name) => Some(Answer::Only(*name)),
            BodyNames::Varied => {
                let varied = self.varied.get(slot(address))?.as_ref()?;
                let is_same = (varied.body, varied.address) == (body, address);
                is_same.then_some(varied.answer)
            }
            BodyNames::Unknown => None,
        }
    }

    /// Forgets names, which the pool does not have any more.
    pub fn forget_names(&mut self) {
        self.frames.clear();
        self.bodies.clear();
        self.varied.clear();
    }

    /// Whether answers were left out because a limit was reached.
    pub fn has_limit(&self) -> bool {
        self.resolver.limit().is_some()
    }

    /// Names a body, unless its names vary.
    fn name_body(&mut self, body: BodyIndex, answers: &mut Answers) -> Option<Answer> {
        if self.bodies.len() <= body.index() {
            self.bodies.resize(body.index() + 1, BodyNames::Unknown);
        }
        let names = &mut self.bodies[body.index()];
        if !matches!(names, BodyNames::Unknown) {
            return None;
        }
        *names = BodyNames::Varied;
        self.label.clear();
        let symbols = self.resolver.symbols().map(|it| &**it);
        let timeline = self.resolver.timeline();
        if !timeline.push_body_label(self.process, body, symbols, &mut self.label) {
            return None;
        }
        let name = answers.pool.name(&self.label);
        *names = BodyNames::Only(name);
        Some(Answer::Only(name))
    }

    /// Keeps the names at an address of a body.
    fn keep(&mut self, body: Option<BodyIndex>, address: u64, answer: Answer) {
        let Some(body) = body else { return };
        if self.varied.is_empty() {
            self.varied.resize(SLOTS, None);
        }
        self.varied[slot(address)] = Some(Varied {
            address,
            body,
            answer,
        });
    }

    /// Names the frames that are new in the resolver.
    fn add_names(&mut self, answers: &mut Answers) {
        let new = &self.resolver.frames()[self.frames.len()..];
        let name = |frame: &Frame| {
            frame
                .name()
                .is_ok()
                .then(|| answers.pool.name(frame.label()))
        };
        self.frames.extend(new.iter().map(name));
    }

    /// Returns the names of frames, if all have one.
    fn named(
        &mut self,
        frames: impl Iterator<Item = FrameId>,
        answers: &mut Answers,
    ) -> Option<Answer> {
        self.names.clear();
        for frame in frames {
            self.names.push(self.frames[frame.index()]?);
        }
        Some(answers.answer(&self.names))
    }

    /// Returns the names of frames of which one has none: it has the reason in its place.
    fn with_reasons(
        &self,
        frames: impl Iterator<Item = FrameId>,
        (address, time_ns): (u64, u64),
        position: Position,
        answers: &mut Answers,
    ) -> Answer {
        let name = |frame: &Frame| match frame.name() {
            Ok(_) => answers.own(frame.label().to_owned()),
            Err(reason) => answers.own(format!("{} ({})", frame.label(), reason.as_str())),
        };
        let names: Vec<Name> = if self.has_limit() {
            // Frames that were left out are resolved alone.
            let symbols = self.resolver.symbols().map(|it| &**it);
            let timeline = self.resolver.timeline();
            let frames = timeline.frames(self.process, address, time_ns, position, symbols);
            frames.iter().map(name).collect()
        } else {
            frames.map(|id| self.resolver.frame(id)).map(name).collect()
        };
        answers.answer(&names)
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
