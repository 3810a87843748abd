//! Timelines that stay open, and the names at their addresses.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Result;
use chronosym::Position;
use chronosym::symbols::{SymbolOptions, Symbolizer};
use chronosym_types::hash::HashMap;

use super::answers::{Answer, Answers};
use super::open::Open;
use super::pool::Pool;
use super::rows::{Rows, RowsByKey};
use crate::args::Resolve;
use crate::{limits, symbols};

/// Resolves addresses of the processes of a folder of timelines.
pub struct Names {
    folder: PathBuf,
    max_open: usize,
    position: Position,
    symbols: Arc<Symbolizer>,
    keys: HashMap<Box<[u8]>, u32>,
    /// The number of a key whose end has this hash, which saves most searches in `keys`.
    recent: Vec<u32>,
    /// By number of the key.
    processes: Vec<Process>,
    by_key: RowsByKey,
    /// Counts batches, to close the timelines that were not used for longest.
    clock: u64,
}

/// A key, with its process while it is open.
struct Process {
    key: Box<[u8]>,
    open: Result<Box<Open>, &'static str>,
    /// Of the file when it was opened.
    stamp: Option<Stamp>,
    used: u64,
}

/// Rows of a process that are resolved at once: the next ones find the names of their bodies.
const ROWS: usize = 1 << 10;

/// Number of hashes of keys.
const RECENT: usize = 1 << 12;

/// Returns a hash of the end of a key, which differs most between keys.
#[inline]
fn slot(key: &[u8]) -> usize {
    let (rest, end) = match key.split_last_chunk() {
        Some((rest, &end)) => (rest, u64::from_le_bytes(end)),
        None => (key, 0),
    };
    let rest = match (rest.last_chunk(), key.first_chunk()) {
        (Some(&before), _) => u64::from_le_bytes(before),
        // The end has a part of these bytes.
        (None, Some(&first)) => u64::from_le_bytes(first),
        (None, None) => rest.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)),
    };
    let hash = (end ^ rest.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (hash >> 48) as usize % RECENT
}

/// Size and time of a file: another one means other content.
type Stamp = (u64, Option<SystemTime>);

/// Why a key has no process.
const CLOSED: &str = "closed";
const NO_TIMELINE: &str = "NoTimeline";

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
            keys: HashMap::default(),
            recent: Vec::new(),
            processes: Vec::new(),
            by_key: RowsByKey::default(),
            clock: 0,
        })
    }

    /// Returns the number of a key.
    pub fn key(&mut self, key: &[u8]) -> u32 {
        let slot = slot(key);
        if let Some(&number) = self.recent.get(slot)
            && let Some(process) = self.processes.get(number as usize)
            && *process.key == *key
        {
            return number;
        }
        let number = self.add_key(key);
        if self.recent.is_empty() {
            self.recent.resize(RECENT, 0);
        }
        self.recent[slot] = number;
        number
    }

    fn add_key(&mut self, key: &[u8]) -> u32 {
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
        });
        number
    }

    /// Resolves a batch.
    pub fn resolve(&mut self, batch: &Rows<'_>, answers: &mut Answers) {
        answers.clear(batch.len());
        if answers.pool.is_full() {
            answers.pool = Pool::default();
            let all = self.processes.iter_mut();
            let open = all.filter_map(|process| process.open.as_mut().ok());
            open.for_each(|open| open.forget_names());
        }
        // The rows of a process together: its code is in the processor's caches.
        let mut by_key = std::mem::take(&mut self.by_key);
        by_key.sort(self.processes.len(), batch);
        for (key, rows) in by_key.iter() {
            self.close_least_used(key);
            let (folder, symbols) = (&self.folder, &self.symbols);
            let process = &mut self.processes[key as usize];
            process.used = self.clock;
            process.refresh(folder, symbols, (batch, rows), self.position);
            process.resolve(batch, rows, self.position, answers);
        }
        self.by_key = by_key;
        self.clock += 1;
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
    /// Opens the timeline, if the file has changed or is not open, or a part of it has not all that
    /// some rows need.
    fn refresh(
        &mut self,
        folder: &Path,
        symbols: &Arc<Symbolizer>,
        (batch, rows): (&Rows<'_>, &[u32]),
        position: Position,
    ) {
        let key = String::from_utf8_lossy(&self.key);
        let (name, pid) = match key.rsplit_once('#') {
            Some((name, pid)) if pid.bytes().all(|it| it.is_ascii_digit()) => (name, Some(pid)),
            _ => (&*key, None),
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
        let is_same = stamp.is_some() && stamp == self.stamp;
        let pid = pid.map(str::parse);
        let part = match &self.open {
            Ok(open) if is_same && !open.has_limit() => {
                if open.has(batch, rows, position) {
                    return;
                }
                // Others will be asked for, too.
                None
            }
            Err(_) if is_same => return,
            _ => Some((batch, rows, position)),
        };
        self.stamp = stamp;
        self.open = match stamp {
            Some(_) => Open::read(&path, pid, symbols, part),
            None => Err(NO_TIMELINE),
        };
    }

    fn resolve(
        &mut self,
        batch: &Rows<'_>,
        rows: &[u32],
        position: Position,
        answers: &mut Answers,
    ) {
        match &mut self.open {
            Ok(open) => {
                for rows in rows.chunks(ROWS) {
                    open.resolve(batch, rows, position, answers);
                }
            }
            Err(problem) => {
                for &row in rows {
                    let address = batch.addresses[row as usize];
                    let name = answers.own(format!("{address:#x} ({problem})"));
                    answers.set(row, Answer::Only(name));
                }
            }
        }
    }
}
