//! From files, pipes and wrappers to one recording.
//!
//! [`open`] opens a file; [`Opener`] also several files of one recording, streams, limits of one's own, and tells how far
//! reading has come. Formats are told by content, never by name; zip and gzip wrappers are opened, in each other too.
//!
//! ```no_run
//! # fn main() -> Result<(), chronosym::OpenError> {
//! let (timeline, report) = chronosym::open("app.etl.zip")?.timeline(chronosym::Options::default())?;
//! report.notes.iter().for_each(|note| eprintln!("{note}"));
//! # Ok(()) }
//! ```
//!
//! nettrace and netperf are read from front to back, and go through a wrapper without being unpacked first. An .etl in a
//! wrapper is unpacked to a temporary file, within [`Limits`].

mod clocks;
mod companions;
mod ctf;
mod error;
mod find;
mod format;
mod image_maps;
mod join;
mod meter;
mod note;
mod perf_map;
mod recording;
mod salvage;
mod symbol_entries;
mod zip;

use std::fmt;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use chronosym_nettrace::{Gap, GapCause, GapTotal, Gaps};
pub use error::OpenError;
pub use find::{ByteStream, PositionedBytes, Seekable, SeekableBytes};
pub use format::Format;
pub use meter::Progress;
pub use note::{Note, NoteKind, Notes};
pub use perf_map::read_perf_map;
pub use recording::{JoinedBytes, RecordBytes, Recording, RecordingBytes, Report, TraceGap};
pub use symbol_entries::SymbolEntries;

use companions::Beside;
use find::{Finder, Found};
use meter::{Meter, Watch};
use salvage::is;

use crate::limits::Limits;
use crate::unwind::ImageFiles;

/// Opens the recording in a file, which may be a zip or gzip file.
///
/// # Errors
/// [`OpenError`] says why nothing in it can be read.
pub fn open(path: impl AsRef<Path>) -> Result<Recording, OpenError> {
    Opener::new().open([Input::file(path.as_ref())])
}

/// Something that holds a trace.
pub struct Input(What);

enum What {
    Path(PathBuf),
    Stream(String, ByteStream),
}

impl Input {
    /// A file, a pipe or a device by its path.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Input(What::Path(path.into()))
    }

    /// Anything that is read from front to back; `name` is what it is called in messages.
    pub fn stream(name: impl Into<String>, source: impl Read + Send + 'static) -> Self {
        Input(What::Stream(name.into(), Box::new(source)))
    }

    /// Standard input.
    pub fn stdin() -> Self {
        Input::stream("standard input", std::io::stdin())
    }

    fn name(&self) -> String {
        match &self.0 {
            What::Path(path) => path.display().to_string(),
            What::Stream(name, _) => name.clone(),
        }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Input").field(&self.name()).finish()
    }
}

/// Opens recordings.
#[derive(Default)]
pub struct Opener {
    limits: Limits,
    watch: Option<Box<Watch>>,
    beside: Beside,
    files: Option<Arc<dyn ImageFiles>>,
}

impl Opener {
    /// With the default [`Limits`], watched by nobody.
    pub fn new() -> Self {
        Opener::default()
    }

    /// With limits of one's own.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Tells how far reading has come, from whatever thread reads, about once every few hundred KB. The answer
    /// [`ControlFlow::Break`] ends the reading: [`OpenError::Cancelled`].
    pub fn watch(
        mut self,
        watch: impl Fn(Progress) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Opens jitdumps and perf maps also where a perf.data says that they were, or where runtimes put them: it was recorded
    /// on this machine. Those beside the perf.data are opened anyway.
    pub fn trust_trace_paths(mut self) -> Self {
        self.beside.trusts_paths = true;
        self
    }

    /// A process that calls itself `own`, in a container, is `pid` in the perf.data.
    pub fn map_pid(mut self, own: u32, pid: u32) -> Self {
        self.beside.pids.push((own, pid));
        self
    }

    /// Unwinds the stacks that samples of a perf.data hold a copy of (`perf record --call-graph dwarf`), with these files.
    pub fn unwind_with(mut self, files: Arc<dyn ImageFiles>) -> Self {
        self.files = Some(files);
        self
    }

    /// Opens what is named together: one trace, all .etl files of one recording, or recordings of one machine and time
    /// that become one timeline: a perf.data, traces of LTTng, nettrace files of several
    /// processes, jitdumps, perf maps.
    ///
    /// # Errors
    /// [`OpenError`] says why nothing can be read, or why the inputs are not one recording.
    pub fn open(self, inputs: impl IntoIterator<Item = Input>) -> Result<Recording, OpenError> {
        let inputs: Vec<Input> = inputs.into_iter().collect();
        refuse_twins(&inputs)?;
        let mut finder = Finder {
            meter: Arc::new(Meter::new(self.limits, self.watch)),
            notes: Notes::default(),
            found: Found::default(),
            is_full: false,
        };
        let mut beside = self.beside;
        for input in inputs {
            beside.add_folder(&input);
            finder.look_into(input)?;
        }
        Recording::new(finder, beside, self.files)
    }
}

/// A file that is named twice would be counted twice. Pipes and terminals are left alone: to open one may already take
/// something from it.
fn refuse_twins(inputs: &[Input]) -> Result<(), OpenError> {
    let path = |input: &Input| match &input.0 {
        What::Path(path) => Some(path.clone()),
        What::Stream(..) => None,
    };
    let paths: Vec<PathBuf> = inputs.iter().filter_map(path).collect();
    let is_file = |path: &Path| path.metadata().is_ok_and(|m| m.is_file());
    for (i, second) in paths.iter().enumerate() {
        let same = |first: &&PathBuf| {
            *first == second
                || is_file(first)
                    && is_file(second)
                    && same_file::is_same_file(first, second).unwrap_or(false)
        };
        if let Some(first) = paths[..i].iter().find(same) {
            return Err(OpenError::SameFile {
                first: first.display().to_string(),
                second: second.display().to_string(),
            });
        }
    }
    Ok(())
}
