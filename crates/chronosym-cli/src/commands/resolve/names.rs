//! Timelines that stay open, and the names at their addresses.

use std::collections::HashMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Result;
use chronosym::symbols::{SymbolOptions, Symbolizer};
use chronosym::{
    AddressQuery, Input, Opener, Options, Position, ProcessIndex, QueryProcess, ResolvedBatch,
    Resolver, SampleSelection,
};

use super::query::Query;
use crate::args::Resolve;
use crate::{limits, progress, symbols};

/// Resolves addresses of the processes of a folder of timelines.
pub struct Names {
    folder: PathBuf,
    max_open: usize,
    position: Position,
    symbols: Arc<Symbolizer>,
    keys: HashMap<Box<str>, u32>,
    /// By number of the key.
    processes: Vec<Process>,
    /// Counts batches, to close the timelines that were not used for longest.
    clock: u64,
    batch: ResolvedBatch,
}

/// A key, with its process while it is open.
struct Process {
    key: Box<str>,
    open: Result<Box<Open>, &'static str>,
    /// Of the file when it was opened.
    stamp: Option<Stamp>,
    used: u64,
    queries: Vec<AddressQuery>,
    rows: Vec<usize>,
}

/// Size and time of a file: another one means other content.
type Stamp = (u64, Option<SystemTime>);

/// Why a key has no process.
const CLOSED: &str = "closed";
const NO_TIMELINE: &str = "NoTimeline";
const UNREADABLE: &str = "UnreadableTimeline";
const WHICH_PROCESS: &str = "NoSuchProcess";

struct Open {
    resolver: Resolver,
    process: ProcessIndex,
    /// ns since 1970-01-01 UTC.
    start: i128,
    /// The text of each frame of the resolver's table; `None` for those without a name.
    texts: Vec<Option<Box<str>>>,
}

/// The names of the rows of a batch.
#[derive(Default)]
pub struct Answers {
    /// The first name of each row, and the number of its names.
    rows: Vec<(usize, usize)>,
    /// The end of each name in `text`.
    ends: Vec<usize>,
    text: String,
}

impl Answers {
    fn clear(&mut self, rows: usize) {
        self.rows.clear();
        self.rows.resize(rows, (0, 0));
        self.ends.clear();
        self.text.clear();
    }

    fn push(&mut self, row: usize, name: &str) {
        let (first, count) = &mut self.rows[row];
        if *count == 0 {
            *first = self.ends.len();
        }
        *count += 1;
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The names of a row, innermost first.
    pub fn of(&self, row: usize) -> impl ExactSizeIterator<Item = &str> {
        let (first, count) = self.rows[row];
        (first..first + count).map(|name| {
            let start = name.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.text[start..self.ends[name]]
        })
    }
}

impl Names {
    pub fn new(args: &Resolve) -> Result<Self> {
        let options = SymbolOptions::within(&limits::get());
        let symbols = Symbolizer::new(symbols::config(&args.symbols)?, options);
        Ok(Names {
            folder: args.timelines.clone(),
            max_open: args.max_open,
            position: match args.caller {
                true => Position::Return,
                false => Position::Exact,
            },
            symbols: Arc::new(symbols),
            keys: HashMap::new(),
            processes: Vec::new(),
            clock: 0,
            batch: ResolvedBatch::default(),
        })
    }

    /// Returns the number of a key.
    pub fn key(&mut self, key: &str) -> u32 {
        if let Some(&number) = self.keys.get(key) {
            return number;
        }
        let number = self.processes.len() as u32;
        self.keys.insert(key.into(), number);
        self.processes.push(Process {
            key: key.into(),
            open: Err(CLOSED),
            stamp: None,
            used: 0,
            queries: Vec::new(),
            rows: Vec::new(),
        });
        number
    }

    /// Resolves a batch.
    pub fn resolve(&mut self, queries: &[Query], answers: &mut Answers) {
        self.clock += 1;
        answers.clear(queries.len());
        let mut used = Vec::new();
        for (row, query) in queries.iter().enumerate() {
            let process = &mut self.processes[query.key as usize];
            if process.used != self.clock {
                process.used = self.clock;
                used.push(query.key);
            }
            process.rows.push(row);
        }
        for key in used {
            self.close_least_used(key);
            let (folder, symbols) = (&self.folder, &self.symbols);
            let process = &mut self.processes[key as usize];
            process.refresh(folder, symbols);
            process.resolve(queries, self.position, &mut self.batch, answers);
        }
    }

    /// Closes the timeline that was not used for longest, if another one is to be opened.
    fn close_least_used(&mut self, key: u32) {
        let open = self.processes.iter().filter(|process| process.open.is_ok());
        if self.processes[key as usize].open.is_ok() || open.count() < self.max_open {
            return;
        }
        let open = self
            .processes
            .iter_mut()
            .filter(|process| process.open.is_ok());
        if let Some(least) = open.min_by_key(|process| process.used) {
            (least.open, least.stamp) = (Err(CLOSED), None);
        }
    }
}

impl Process {
    /// Opens the timeline, if it is not open or the file has changed.
    fn refresh(&mut self, folder: &Path, symbols: &Arc<Symbolizer>) {
        let (name, pid) = match self.key.rsplit_once('#') {
            Some((name, pid)) if pid.bytes().all(|it| it.is_ascii_digit()) => (name, Some(pid)),
            _ => (&*self.key, None),
        };
        // A key is data: it names files of the folder only.
        let is_inside = Path::new(name)
            .components()
            .all(|it| matches!(it, Component::Normal(_)));
        let path = folder.join(name);
        let stamp = fs::metadata(&path)
            .ok()
            .filter(|it| is_inside && it.is_file());
        let stamp = stamp.map(|it| (it.len(), it.modified().ok()));
        let has_limit = matches!(&self.open, Ok(open) if open.resolver.limit().is_some());
        if stamp.is_some() && stamp == self.stamp && !has_limit {
            return;
        }
        self.stamp = stamp;
        self.open = match stamp {
            Some(_) => Open::read(&path, pid.map(str::parse), symbols),
            None => Err(NO_TIMELINE),
        };
    }

    fn resolve(
        &mut self,
        queries: &[Query],
        position: Position,
        batch: &mut ResolvedBatch,
        answers: &mut Answers,
    ) {
        let open = match &mut self.open {
            Ok(open) => open,
            Err(problem) => {
                for row in self.rows.drain(..) {
                    let address = queries[row].address;
                    answers.push(row, &format!("{address:#x} ({problem})"));
                }
                return;
            }
        };
        self.queries.clear();
        self.queries.extend(self.rows.iter().map(|&row| {
            let Query { time, address, .. } = queries[row];
            let time = (i128::from(time) - open.start).clamp(0, i128::from(u64::MAX));
            AddressQuery {
                process: QueryProcess::Index(open.process),
                address,
                time_ns: time as u64,
                position,
            }
        }));
        open.resolver.resolve_batch(&self.queries, batch);
        open.add_texts();
        for (query, row) in self.rows.drain(..).enumerate() {
            let frames = batch.frames_of(query).iter();
            let texts = frames.map(|frame| open.texts[frame.index()].as_deref());
            if texts.clone().all(|text| text.is_some()) {
                texts.flatten().for_each(|text| answers.push(row, text));
            } else {
                open.push_unnamed(&self.queries[query], row, answers);
            }
        }
    }
}

impl Open {
    fn read(
        path: &Path,
        pid: Option<Result<u32, std::num::ParseIntError>>,
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
        }))
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
