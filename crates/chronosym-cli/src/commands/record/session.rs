//! The recording of one process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use chronosym_record::{
    Config, End, Identity, Limits, Recorded, Runtime, Session, Started, Target,
};

use super::ending::Ending;
use super::files::Files;
use super::losses::Losses;
use crate::commands::dotnet_process;
use crate::progress;

/// A list of the code that was compiled before takes no longer to begin, nor to go on.
const LISTING: Duration = Duration::from_secs(10);
/// In all it takes no longer.
const LISTED: Duration = Duration::from_secs(60);
/// Half its bytes at most: some 260 for each method.
const MOST_LISTED: u64 = 128 << 20;

/// What recordings have in common.
pub struct Recorder {
    pub config: Config,
    pub ending: Ending,
    /// Nanoseconds.
    pub duration: Option<u64>,
    /// Whether the code that was compiled before is listed.
    pub lists_code: bool,
}

/// A recorded process.
pub struct Process {
    pub pid: u32,
    /// Its id in its own pid namespace, as in its recording.
    pub own_pid: u32,
    pub identity: Identity,
}

impl Process {
    fn new(pid: u32, own_pid: u32) -> Self {
        let identity = Identity::of(pid);
        Process {
            pid,
            own_pid,
            identity,
        }
    }
}

/// A finished recording.
pub struct Made {
    pub trace: PathBuf,
    pub process: Process,
    /// The list of the code that was compiled before, if the recording lacks its end.
    start: Option<PathBuf>,
    recorded: Recorded,
}

impl Recorder {
    /// Records a process that runs.
    pub fn attach(&self, target: &Target, files: Files) -> Result<Made> {
        let runtime = Runtime::of(target);
        let list = match self.lists_code {
            true => dotnet_process::list_code(&runtime),
            false => None,
        };
        let session = runtime.collect(&self.config);
        let (name, pid) = (&target.name, target.pid);
        let process = Process::new(pid, target.own_pid);
        let session = session.with_context(|| format!("cannot record {name} ({pid})"))?;
        self.record(name, process, session, list, files)
    }

    /// Records a runtime that waits to be resumed.
    pub fn start(&self, name: &str, started: Started, files: Files) -> Result<Made> {
        let pid = started.pid();
        let process = Process::new(pid, pid);
        let session = started.collect(&self.config);
        let session = session.with_context(|| format!("cannot record {name} ({pid})"))?;
        self.record(name, process, session, None, files)
    }

    fn record(
        &self,
        name: &str,
        process: Process,
        session: Session,
        list: Option<Session>,
        files: Files,
    ) -> Result<Made> {
        self.ending.began();
        let mut out = files.create()?;
        let start = files.start.clone();
        let list = list.map(|list| thread::spawn(move || write_list(list, &start)));
        let until = self.duration;
        let until = until.map(|ns| format!(" for {:.1} s", ns as f64 / 1e9));
        progress::hint(&format!(
            "recording {name} ({}) to {}{}; Ctrl+C stops",
            process.pid,
            files.trace.display(),
            until.unwrap_or_default()
        ));
        let losses = Losses::follow(&files.trace);
        let limits = Limits::default().bytes(self.ending.max_bytes());
        let mut counted = 0;
        let recorded = session.record(&mut out, &limits, |bytes| {
            self.ending.add(bytes - counted);
            counted = bytes;
            self.ending.is_over()
        });
        losses.end();
        let recorded = recorded?;
        self.ending.add(recorded.bytes - counted);
        let has_list = list.is_some_and(|list| list.join().unwrap_or(false));
        if recorded.is_complete && has_list {
            // Its end lists the same code, and what came since.
            _ = std::fs::remove_file(&files.start);
        }
        Ok(Made {
            start: (has_list && !recorded.is_complete).then_some(files.start),
            trace: files.trace,
            process,
            recorded,
        })
    }
}

impl Made {
    /// The files that are read together.
    pub fn files(&self) -> impl Iterator<Item = PathBuf> + use<> {
        self.start.clone().into_iter().chain([self.trace.clone()])
    }

    pub fn report_end(&self) {
        let trace = self.trace.display();
        if self.recorded.end == End::Stalled {
            progress::note(&format!(
                "{trace}: the runtime did not end the recording: it hangs, or sends without end"
            ));
        }
        if !self.recorded.is_complete {
            let rest = match &self.start {
                Some(start) => format!(
                    "read {} with it, which lists what was compiled before",
                    start.display()
                ),
                None => "code that was compiled before may be unnamed".to_owned(),
            };
            progress::note(&format!(
                "{trace}: the code that ran is not listed at the end: {rest}"
            ));
        }
    }
}

/// Writes the list. Returns whether there is one: a recording without is of use, too.
fn write_list(list: Session, path: &Path) -> bool {
    let mut limits = Limits::default().bytes(MOST_LISTED);
    (limits.silence, limits.end) = (LISTING, LISTED);
    let written = File::create(path)
        .ok()
        .and_then(|mut file| list.record(&mut file, &limits, |_| true).ok());
    let is_complete = written.is_some_and(|recorded| recorded.is_complete);
    if !is_complete {
        progress::note("the runtime did not list the code that was compiled before");
        _ = std::fs::remove_file(path);
    }
    is_complete
}
