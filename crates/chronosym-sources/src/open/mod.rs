//! Opens files, pipes and archives as one recording.
//!
//! [`open`](fn@open) opens a file. [`Opener`] also opens several files of one recording and
//! streams, sets limits, and reports progress. The format is detected from the content, never from
//! the name. Zip and gzip archives are opened, nested ones too.
//!
//! A nettrace or netperf in an archive is decompressed while it is read. An .etl in an archive is
//! first extracted to a temporary file, within [`Limits`].

mod bytes;
mod clocks;
mod companions;
mod ctf;
mod error;
mod error_kind;
mod find;
mod format;
mod image_maps;
mod input;
mod join;
mod layers;
mod meter;
mod perf_folder;
mod perf_map;
mod recording;
mod salvage;
mod symbol_entries;
mod zip;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

pub use bytes::{ByteStream, FileBytes, Positioned};
pub use chronosym_nettrace::{Gap, GapCause, GapTotal, Gaps};
pub use error::OpenError;
pub use error_kind::ErrorKind;
pub use format::Format;
pub use input::Input;
pub use layers::LayerDiagnostics;
pub use meter::Progress;
pub use perf_map::read_perf_map;
pub use recording::Recording;
pub use symbol_entries::SymbolEntries;

use companions::Beside;
use find::{Finder, Inputs};
use input::refuse_twins;
use meter::{Meter, Watch};

use chronosym_core::Limits;
use chronosym_core::unwind::ImageFiles;

/// Opens the recording in a file, which may be a zip or gzip file.
///
/// # Errors
///
/// [`OpenError`] if nothing in it can be read.
///
/// # Examples
///
/// ```
/// use chronosym_core::{Filter, Options};
///
/// let recording = chronosym_sources::open::open("../../testdata/clr10/traces/memory.nettrace.zip")?;
/// let (timeline, diagnostics) = recording.timeline(Options::default())?;
/// assert_eq!(diagnostics.lost_events(), 0);
/// let profile = timeline.profile(&Filter::default(), None);
/// assert!(profile.samples() > 0);
/// # Ok::<(), chronosym_sources::open::OpenError>(())
/// ```
pub fn open(path: impl AsRef<Path>) -> Result<Recording, OpenError> {
    Opener::new().open([Input::file(path.as_ref())])
}

/// Opens recordings with options.
///
/// # Examples
///
/// ```
/// use chronosym_core::{Limits, Options};
/// use chronosym_sources::open::{Input, Opener};
///
/// let mut limits = Limits::default();
/// limits.memory = Some(64 << 20);
/// let trace = Input::file("../../testdata/clr10/traces/memory.nettrace.zip");
/// let recording = Opener::new().limits(limits).open([trace])?;
/// let (timeline, _) = recording.timeline(Options::default())?;
/// assert!(timeline.processes().count() > 0);
/// # Ok::<(), chronosym_sources::open::OpenError>(())
/// ```
#[derive(Default)]
pub struct Opener {
    limits: Limits,
    watch: Option<Box<Watch>>,
    beside: Beside,
    files: Option<Arc<dyn ImageFiles>>,
    format: Option<Format>,
}

impl Opener {
    /// Creates an opener with the default [`Limits`] and without an observer.
    pub fn new() -> Self {
        Opener::default()
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets a function that observes the progress of reading. It is called on the reading thread,
    /// about once every few hundred KB; if it returns [`ControlFlow::Break`], reading ends with
    /// [`OpenError::Cancelled`].
    pub fn watch(
        mut self,
        watch: impl Fn(Progress) -> ControlFlow<()> + Send + Sync + 'static,
    ) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Also opens jitdumps and perf maps at the paths in a perf.data, and where runtimes write
    /// them: use it for recordings of this machine. Those next to the perf.data are opened in any
    /// case.
    pub fn trust_trace_paths(mut self) -> Self {
        self.beside.trusts_paths = true;
        self
    }

    /// Maps a process's own id in a container (`own`) to its id in the perf.data (`pid`).
    pub fn map_pid(mut self, own: u32, pid: u32) -> Self {
        self.beside.pids.push((own, pid));
        self
    }

    /// Unwinds, with these files, the stacks that samples of a perf.data hold a copy of (`perf
    /// record --call-graph dwarf`), and finds in them the files that OTLP profiles identify by
    /// their content.
    pub fn unwind_with(mut self, files: Arc<dyn ImageFiles>) -> Self {
        self.files = Some(files);
        self
    }

    /// Reads inputs in this format instead of detecting it, once archives and compression layers are
    /// opened: for a format without a signature, [`Format::Otlp`].
    pub fn read_as(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Opens inputs that belong together: one trace, all .etl files of one recording, or recordings
    /// of one machine and time that become one timeline: a perf.data, LTTng traces, nettrace files
    /// of several processes, jitdumps, perf maps.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if nothing can be read, or if the inputs are not one recording.
    pub fn open(self, inputs: impl IntoIterator<Item = Input>) -> Result<Recording, OpenError> {
        let inputs: Vec<Input> = inputs.into_iter().collect();
        refuse_twins(&inputs)?;
        let mut finder = Finder {
            meter: Arc::new(Meter::new(self.limits, self.watch)),
            notes: LayerDiagnostics::default(),
            inputs: Inputs::default(),
            is_full: false,
            format: self.format,
        };
        let mut beside = self.beside;
        for input in inputs {
            beside.add_folder(&input);
            finder.look_into(input)?;
        }
        Recording::new(finder, beside, self.files)
    }
}
