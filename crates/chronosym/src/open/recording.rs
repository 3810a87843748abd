//! One recording: what was named together, if it is of one.

use std::sync::Arc;

use chronosym_etl::{EtlError, EtlReader, ReadAt};

use super::error::{OpenError, failed};
use super::find::{ByteStream, Finder, Found, PositionedBytes};
use super::format::Format;
use super::meter::Meter;
use super::note::{Note, Notes};
use super::symbol_entries::SymbolEntries;
use crate::selection::Options;
use crate::session::Session;
use crate::source::ReadError;
use crate::source::{etl, nettrace};
use crate::timeline::Timeline;

/// A recording that was opened, ready to be read.
pub struct Recording {
    format: Format,
    names: Vec<String>,
    bytes: RecordingBytes,
    notes: Notes,
    symbols: SymbolEntries,
    meter: Arc<Meter>,
}

/// The bytes of a recording, for reading them with the readers' own interface.
#[non_exhaustive]
pub enum RecordingBytes {
    /// nettrace or netperf.
    Nettrace(ByteStream),
    /// All .etl files of the recording.
    Etl(Box<EtlReader<PositionedBytes>>),
}

/// What was found while a recording was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Report {
    /// The format.
    pub format: Format,
    /// Everything that is wrong, wrappers first.
    pub notes: Vec<Note>,
    /// Events that the recorder says were lost.
    pub lost_events: u64,
    /// Whether a trace ends in the middle.
    pub is_cut_short: bool,
}

impl Recording {
    /// Only .etl files can be of one recording; anything else together would be shown as one program's run though it
    /// was never one.
    pub(super) fn new(finder: Finder) -> Result<Self, OpenError> {
        let Finder {
            meter,
            notes,
            found,
        } = finder;
        let Found {
            mut streams,
            etl,
            symbols,
        } = found;
        let mut names: Vec<String> = streams.iter().map(|(name, ..)| name.clone()).collect();
        names.extend(etl.iter().map(|(name, _)| name.clone()));
        if let (false, [first, second, ..]) = (streams.is_empty(), names.as_slice()) {
            return Err(OpenError::SeveralRecordings {
                first: first.clone(),
                second: second.clone(),
            });
        }
        let (format, bytes) = match streams.pop() {
            Some((_, format, stream)) => (format, RecordingBytes::Nettrace(stream)),
            None => (Format::Etl, RecordingBytes::Etl(Box::new(merge(etl)?))),
        };
        let symbols = SymbolEntries::new(symbols, &meter).map_err(|error| {
            failed("symbol files", error, |name, source| OpenError::Spool {
                name,
                source,
            })
        })?;
        Ok(Recording {
            format,
            names,
            bytes,
            notes,
            symbols,
            meter,
        })
    }

    /// The format of its traces.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What its traces are called: paths, and for what is in a wrapper `x.zip (inside.etl)`.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// What is wrong with the wrappers. More may come up while the recording is read; [`Report`] has all of it.
    pub fn notes(&self) -> Notes {
        self.notes.clone()
    }

    /// Symbol files in the same zip file.
    pub fn symbol_entries(&self) -> SymbolEntries {
        self.symbols.clone()
    }

    /// The traces themselves.
    pub fn into_bytes(self) -> RecordingBytes {
        self.bytes
    }

    /// Reads it into a timeline.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn timeline(self, options: Options) -> Result<(Arc<Timeline>, Report), OpenError> {
        let mut session = Session::new(options);
        let mut report = self.read(&mut session)?;
        let timeline = session.finish();
        report.notes.extend(Note::of_timeline(&timeline));
        Ok((timeline, report))
    }

    /// Reads it into a session.
    ///
    /// # Errors
    /// [`OpenError::Trace`] where its reader refuses the trace, the source fails, or the session has read another
    /// recording; [`OpenError::Cancelled`]. What was read before is in the session.
    pub fn read(self, session: &mut Session) -> Result<Report, OpenError> {
        let in_trace = |source| OpenError::Trace {
            name: self.names.first().cloned().unwrap_or_default(),
            source,
        };
        let read: Result<_, ReadError> = match self.bytes {
            RecordingBytes::Nettrace(stream) => nettrace::read(stream, session).map(|found| {
                let notes = Note::of_nettrace(&found);
                (notes, found.lost_events(), found.truncation.is_some())
            }),
            RecordingBytes::Etl(reader) => etl::read(*reader, session).map(|found| {
                let d = &found.diagnostics;
                let is_cut_short = d.truncated_buffers > 0 || d.unread_bytes > 0;
                (Note::of_etl_report(&found), d.events_lost, is_cut_short)
            }),
        };
        if self.meter.is_cancelled() {
            return Err(OpenError::Cancelled);
        }
        let (found, lost_events, is_cut_short) = read.map_err(in_trace)?;
        let mut notes = self.notes.take();
        notes.extend(found);
        Ok(Report {
            format: self.format,
            notes,
            lost_events,
            is_cut_short,
        })
    }
}

fn merge(files: Vec<(String, PositionedBytes)>) -> Result<EtlReader<PositionedBytes>, OpenError> {
    for (i, (second, second_file)) in files.iter().enumerate() {
        if let Some((first, _)) = files[..i]
            .iter()
            .find(|(_, file)| is_copy(second_file, file))
        {
            let (first, second) = (first.clone(), second.clone());
            return Err(OpenError::Copies { first, second });
        }
    }
    let (names, files): (Vec<String>, Vec<_>) = files.into_iter().unzip();
    let mut readers = Vec::with_capacity(files.len());
    for (name, file) in names.iter().zip(files) {
        let reader = EtlReader::open(file).map_err(|error| of_etl(name, error))?;
        readers.push(reader);
    }
    EtlReader::merge(readers).map_err(|error| match error {
        EtlError::NotOneRecording { index, what } => OpenError::DifferentRecordings {
            first: names[0].clone(),
            second: names[index].clone(),
            what,
        },
        EtlError::Empty => OpenError::NoInput,
        error => of_etl(&names[0], error),
    })
}

fn of_etl(name: &str, error: EtlError) -> OpenError {
    let etl = |source| OpenError::Etl {
        name: name.to_owned(),
        source,
    };
    match error {
        EtlError::Io { offset, source } => failed(name, source, |_, source| {
            etl(EtlError::Io { offset, source })
        }),
        error => etl(error),
    }
}

/// Whether two files hold the same; files that do not differ early on.
fn is_copy(a: &impl ReadAt, b: &impl ReadAt) -> bool {
    const PIECE: usize = 1 << 16;
    let piece = |file: &dyn ReadAt, at: u64| {
        let mut bytes = vec![0; PIECE];
        let n = file.read_at(at, &mut bytes).ok()?;
        bytes.truncate(n);
        Some(bytes)
    };
    let (Ok(size), Ok(other)) = (a.size(), b.size()) else {
        return false;
    };
    size == other
        && (0..size).step_by(PIECE).all(|at| {
            let a = piece(a, at);
            a.is_some() && a == piece(b, at)
        })
}
