//! A recording: the inputs that were opened together.

use std::sync::Arc;

use chronosym_etl::{Error as EtlError, ReadAt, Reader as EtlReader};

use super::bytes::{ByteStream, FileBytes};
use super::companions::Beside;
use super::ctf;
use super::error::{OpenError, failed, in_trace};
use super::find::{Finder, Inputs};
use super::format::{Format, Open, Source};
use super::join::Parts;
use super::layers::LayerDiagnostics;
use super::meter::Meter;
use super::symbol_entries::SymbolEntries;
use crate::etl::EtlStream;
use crate::stream::EventStream;
use chronosym_core::unwind::ImageFiles;
use chronosym_core::{Budget, Diagnostics, Options, RecordingId, Session, Timeline};

/// An open recording, ready to be read.
pub struct Recording {
    format: Format,
    names: Vec<String>,
    bytes: Bytes,
    notes: LayerDiagnostics,
    symbols: SymbolEntries,
    meter: Arc<Meter>,
}

/// How a recording is read.
enum Bytes {
    /// One stream, the function that opens it, and files of images.
    Stream(Open, ByteStream, Option<Arc<dyn ImageFiles>>),
    /// All .etl files of the recording.
    Etl(Box<EtlReader<FileBytes>>),
    /// Several recordings to join.
    Joined(Box<Parts>),
}

const MAP_ALONE: &str = "a perf map; give it together with its recording";
const CTF_STREAM_ALONE: &str =
    "a stream of an LTTng trace without its metadata; give the folder that contains both";

impl Recording {
    /// Creates a recording from opened inputs. .etl files that do not belong together are rejected;
    /// other recordings are joined as far as possible.
    pub(super) fn new(
        finder: Finder,
        beside: Beside,
        files: Option<Arc<dyn ImageFiles>>,
    ) -> Result<Self, OpenError> {
        let Finder {
            meter,
            notes,
            inputs,
            ..
        } = finder;
        let Inputs {
            mut streams,
            etl,
            mut perf,
            mut scripts,
            image_maps,
            jitdumps,
            ctf,
            maps,
            symbols,
        } = inputs;
        leave_out_injected(&mut perf, &notes);
        let of_others = [perf.len(), scripts.len(), streams.len(), jitdumps.len()];
        let others = of_others.iter().sum::<usize>() + ctf.metadata.len();
        let of_ctf: Vec<String> = ctf.metadata.iter().map(|it| it.0.clone()).collect();
        let names = (perf.iter().map(|it| &it.0))
            .chain(scripts.iter().map(|it| &it.0))
            .chain(streams.iter().map(|it| &it.0))
            .chain(jitdumps.iter().map(|it| &it.0))
            .chain(&of_ctf)
            .chain(etl.iter().map(|it| &it.0));
        let names: Vec<String> = names.cloned().collect();
        let is_alone = |format: Format| match format.source() {
            Source::Stream { is_of_runtime, .. } => !is_of_runtime,
            Source::Parts => false,
        };
        let has_alone = streams.iter().any(|(_, format, _)| is_alone(*format));
        if let [first, second, ..] = names.as_slice()
             // The system records once.
             && (perf.len() > 1 || scripts.len() > 1 || has_alone
                || !etl.is_empty() && others > streams.len())
        {
            return Err(OpenError::SeveralRecordings {
                first: first.clone(),
                second: second.clone(),
            });
        }
        let incomplete = match (maps.first(), ctf.streams.first(), ctf.metadata.is_empty()) {
            (_, Some((name, _)), true) => Some((name, CTF_STREAM_ALONE)),
            (Some((name, ..)), ..) if names.is_empty() => Some((name, MAP_ALONE)),
            _ => None,
        };
        if let Some((name, found)) = incomplete {
            return Err(OpenError::NotATrace {
                name: name.clone(),
                found: found.to_owned(),
            });
        }
        let ctf = ctf::reader(ctf, &notes, meter.may_hold())?;
        let ctf = ctf.map(|reader| (of_ctf.join(", "), reader));
        let is_etl = !etl.is_empty();
        let (format, bytes) = if others == 0 {
            (Format::Etl, Bytes::Etl(Box::new(merge(etl)?)))
        } else if others == 1
            && (maps.is_empty() || has_alone)
            && !is_etl
            && let Some((_, format, stream)) = streams.pop()
            && let Source::Stream { open, .. } = format.source()
        {
            (format, Bytes::Stream(open, stream, files))
        } else {
            let etl = match etl.first() {
                Some((name, _)) => Some((name.clone(), Box::new(merge(etl)?))),
                None => None,
            };
            let parts = Parts {
                perf: perf.pop(),
                script: scripts.pop(),
                image_maps,
                etl,
                runtimes: streams
                    .into_iter()
                    .map(|(name, _, it)| (name, it))
                    .collect(),
                jitdumps,
                ctf,
                maps,
                beside,
                files,
            };
            (parts.format(), Bytes::Joined(Box::new(parts)))
        };
        let symbols = SymbolEntries::new(symbols, &meter);
        Ok(Recording {
            format,
            names,
            bytes,
            notes,
            symbols,
            meter,
        })
    }

    /// Returns the format of its traces.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the memory budget for reading it and for results computed from it.
    pub fn budget(&self) -> Budget {
        self.meter.budget()
    }

    /// Returns the names of its traces: paths, or `x.zip (inside.etl)` for a trace in an archive.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the diagnostics of archives and compression layers so far. More may be added while
    /// the recording is read, which returns all of them.
    pub fn layer_diagnostics(&self) -> LayerDiagnostics {
        self.notes.clone()
    }

    /// Returns the symbol files in the same zip file.
    pub fn symbol_entries(&self) -> SymbolEntries {
        self.symbols.clone()
    }

    /// Returns the format of the events that [`into_events`](Self::into_events) returns.
    pub fn event_format(&self) -> Option<Format> {
        let Bytes::Joined(parts) = &self.bytes else {
            return Some(self.format);
        };
        parts.event_format()
    }

    /// Returns the events of its traces. Of several traces, one that recorded the whole machine is
    /// used: LTTng before a perf.data, and that before a text of `perf script`. `None` for
    /// recordings of several runtimes, and for jitdumps alone.
    ///
    /// # Errors
    ///
    /// [`OpenError::Trace`] if its reader rejects the trace or the source fails.
    ///
    /// # Examples
    ///
    /// ```
    /// let recording = chronosym_sources::open::open("../../testdata/clr10/traces/memory.nettrace.zip")?;
    /// let mut events = recording.into_events()?.unwrap();
    /// let mut loads = 0;
    /// while let Some(event) = events.next_event()? {
    ///     loads += u32::from(event.schema.name() == "MethodLoadVerbose");
    /// }
    /// assert!(loads > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_events(self) -> Result<Option<Box<dyn EventStream + Send>>, OpenError> {
        let name = self.names.join(", ");
        let events = match self.bytes {
            Bytes::Stream(open, stream, files) => open(stream, files).map(Some),
            Bytes::Etl(reader) => Ok(Some(Box::new(EtlStream::of(*reader)) as _)),
            Bytes::Joined(parts) => parts.into_events(),
        };
        events.map_err(|error| in_trace(&name, error))
    }

    /// Reads the recording into a timeline.
    ///
    /// # Errors
    ///
    /// The errors of [`read`](Self::read).
    pub fn timeline(
        self,
        options: impl Into<Options>,
    ) -> Result<(Arc<Timeline>, Diagnostics), OpenError> {
        let mut session = Session::new(options);
        let mut diagnostics = self.read(&mut session)?;
        let timeline = session.finish();
        diagnostics.list.extend(timeline.diagnostics());
        Ok((timeline, diagnostics))
    }

    /// Reads the recording into a session.
    ///
    /// # Errors
    ///
    /// [`OpenError::Trace`] if its reader rejects the trace, the source fails, or the session has
    /// read another recording; [`OpenError::Cancelled`]. The session keeps what was read before the
    /// error.
    pub fn read(self, session: &mut Session) -> Result<Diagnostics, OpenError> {
        let name = self.names.first().cloned().unwrap_or_default();
        let refused = |error| in_trace(&name, error);
        let named = |mut diagnostics: Diagnostics| {
            diagnostics.name_files(&self.names);
            diagnostics
        };
        let read_into = |stream: &mut dyn EventStream, session: &mut Session| {
            let end = stream.read_into(session);
            end.map(|()| named(stream.diagnostics())).map_err(refused)
        };
        session.limit_memory(self.meter.budget());
        let read = match self.bytes {
            Bytes::Stream(open, stream, files) => match open(stream, files) {
                Ok(mut stream) => read_into(&mut *stream, session),
                Err(error) => Err(refused(error)),
            },
            Bytes::Etl(reader) => read_into(&mut EtlStream::of(*reader), session),
            Bytes::Joined(parts) => session
                .admit(RecordingId::Whole)
                .map_err(|error| in_trace(&name, error))
                .and_then(|_| parts.read(session, &self.meter)),
        };
        if self.meter.is_cancelled() {
            return Err(OpenError::Cancelled);
        }
        let read = read?;
        let mut diagnostics = Diagnostics::default();
        diagnostics.list = self.notes.take();
        diagnostics.append(read);
        Ok(diagnostics)
    }
}

/// Removes the output of `perf inject` that perfcollect packs with the original perf.data: it has
/// the same samples.
fn leave_out_injected(perf: &mut Vec<(String, FileBytes)>, notes: &LayerDiagnostics) {
    let original = |name: &str| name.replace("perf-jit.data", "perf.data");
    let names: Vec<String> = perf.iter().map(|(name, _)| name.clone()).collect();
    perf.retain(|(name, _)| {
        let made_of = original(name);
        let is_copy = made_of != *name && names.contains(&made_of);
        if is_copy {
            let what = "ignored: it has the samples of the perf.data next to it";
            notes.damage(name, what);
        }
        !is_copy
    });
}

fn merge(files: Vec<(String, FileBytes)>) -> Result<EtlReader<FileBytes>, OpenError> {
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
        let reader =
            EtlReader::new(file, Default::default()).map_err(|error| of_etl(name, error))?;
        readers.push(reader);
    }
    let merged = EtlReader::merge(readers).map_err(|error| match error {
        EtlError::NotOneRecording { index, what } => OpenError::DifferentRecordings {
            first: names[0].clone(),
            second: names[index].clone(),
            what,
        },
        EtlError::Empty => OpenError::NoInput,
        error => of_etl(&names[0], error),
    });
    let mut reader = merged?;
    reader.read_ahead();
    Ok(reader)
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

/// Returns whether two files have the same content. Files that differ are usually distinguished
/// early.
fn is_copy(a: &impl ReadAt, b: &impl ReadAt) -> bool {
    const BLOCK: usize = 1 << 16;
    let block = |file: &dyn ReadAt, at: u64| {
        let mut bytes = vec![0; BLOCK];
        let n = file.read_at(at, &mut bytes).ok()?;
        bytes.truncate(n);
        Some(bytes)
    };
    let (Ok(size), Ok(other)) = (a.size(), b.size()) else {
        return false;
    };
    size == other
        && (0..size).step_by(BLOCK).all(|at| {
            let a = block(a, at);
            a.is_some() && a == block(b, at)
        })
}
