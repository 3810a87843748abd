//! Recordings of one machine, joined into one timeline: what perf saw of processors and processes, what runtimes say of code.
//!
//! A perf.data is read first, since it says which processes there are; then what runtimes recorded, then their jitdumps and
//! perf maps. Each counts its time from the earliest of all.

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::Path;

use chronosym_nettrace::Reader as Nettrace;
use chronosym_nettrace::{Gap, GapCause, Gaps};
use chronosym_perf::{Options, Reader as Perf, TimeConversion, jitdump};
use flate2::read::MultiGzDecoder;

use super::clocks::{Clock, Kind, Offset, estimate};
use super::companions::Beside;
use super::error::{OpenError, failed};
use super::find::{ByteStream, SeekableBytes, keep};
use super::format::Format;
use super::meter::Meter;
use super::note::Note;
use super::perf_map;
use super::recording::Report;
use crate::recording::{ClockMatch, JoinedRecording};
use crate::session::Session;
use crate::source::jitdump::{self as dump, Place};
use crate::source::perf::{self, PerfReport};
use crate::source::{ReadError, nettrace};

/// What is joined.
pub(super) struct Parts {
    pub perf: Option<(String, SeekableBytes)>,
    pub runtimes: Vec<(String, ByteStream)>,
    pub jitdumps: Vec<(String, ByteStream)>,
    /// By process.
    pub maps: Vec<(String, u32, ByteStream)>,
    pub beside: Beside,
}

/// A runtime's recording, begun.
struct Runtime {
    name: String,
    reader: Nettrace<ByteStream>,
    process: Option<u32>,
    start_ns: i128,
    offset: Offset,
}

/// The perf.data, looked into.
struct Profile {
    name: String,
    source: SeekableBytes,
    clock: Clock,
    cycles: Option<TimeConversion>,
}

impl Parts {
    /// What all of it is.
    pub fn format(&self) -> Format {
        match (&self.perf, self.runtimes.len(), self.jitdumps.len()) {
            (Some(_), 0, _) => Format::PerfData,
            (None, 0, _) => Format::JitDump,
            _ => Format::Joined,
        }
    }

    /// Reads all of it.
    pub fn read(self, session: &mut Session, meter: &Meter) -> Result<Report, OpenError> {
        let mut join = Join {
            report: Report::new(self.format()),
            session,
            meter,
            beside: self.beside,
            began_ns: 0,
            of_runtimes: None,
            cycles: None,
            perf: PerfReport::default(),
        };
        let mut profile = match self.perf {
            Some((name, source)) => Some(Profile::new(name, source)?),
            None => None,
        };
        let runtimes = join.begin_runtimes(self.runtimes, &mut profile)?;
        let has_ticks = profile.is_none();
        join.read_perf(profile, &runtimes)?;
        for runtime in runtimes {
            join.read_runtime(runtime, has_ticks)?;
        }
        join.read_jitdumps(self.jitdumps)?;
        join.read_maps(self.maps)?;
        join.session.machine.map_images_over_code();
        let facts = join.session.facts();
        let errors = facts.recordings.iter().map(|part| part.error_ns);
        facts.clock_error_ns = errors.max().unwrap_or(0);
        if facts.recordings.len() < 2 {
            facts.recordings.clear();
        } else if join.report.format == Format::Joined {
            facts.process_id = None;
        }
        Ok(join.report)
    }
}

impl Profile {
    fn new(name: String, mut source: SeekableBytes) -> Result<Self, OpenError> {
        let (clock, cycles) = {
            let mut reader = open_perf(&name, &mut source)?;
            (Clock::of_perf(&mut reader), reader.info().time_conversion)
        };
        Ok(Profile {
            name,
            source,
            clock,
            cycles,
        })
    }
}

fn open_perf<'s>(
    name: &str,
    source: &'s mut SeekableBytes,
) -> Result<Perf<&'s mut SeekableBytes>, OpenError> {
    source.rewind().map_err(|error| unreadable(name, error))?;
    Perf::open(source, Options::default()).map_err(|error| in_perf(name, error))
}

fn in_trace(name: &str, source: ReadError) -> OpenError {
    OpenError::Trace {
        name: name.to_owned(),
        source,
    }
}

fn in_perf(name: &str, error: chronosym_perf::Error) -> OpenError {
    match error {
        chronosym_perf::Error::Io { offset, source } => failed(name, source, |name, source| {
            in_trace(&name, chronosym_perf::Error::Io { offset, source }.into())
        }),
        error => in_trace(name, error.into()),
    }
}

fn in_runtime(name: &str, error: chronosym_nettrace::Error) -> OpenError {
    in_trace(name, error.into())
}

fn unreadable(name: &str, error: io::Error) -> OpenError {
    failed(name, error, |name, source| OpenError::Read { name, source })
}

/// A jitdump that is to be read.
struct Dump {
    name: String,
    process: u32,
    reader: jitdump::Reader<ByteStream>,
}

/// What is being joined, and what is known of it so far.
struct Join<'a> {
    session: &'a mut Session,
    meter: &'a Meter,
    report: Report,
    beside: Beside,
    /// The time of the reference clock at the session's time 0.
    began_ns: i128,
    /// How far the clock of runtimes is behind the reference.
    of_runtimes: Option<Offset>,
    cycles: Option<TimeConversion>,
    perf: PerfReport,
}

impl Join<'_> {
    /// Reads the headers of what runtimes recorded, and puts their clocks on that of the perf.data, or of the first of them.
    fn begin_runtimes(
        &mut self,
        streams: Vec<(String, ByteStream)>,
        profile: &mut Option<Profile>,
    ) -> Result<Vec<Runtime>, OpenError> {
        let mut reference = profile.as_ref().map(|it| (it.name.clone(), it.clock));
        let mut runtimes: Vec<Runtime> = Vec::new();
        for (name, stream) in streams {
            let (stream, again) = match profile {
                Some(profile) if profile.clock.kind == Kind::Unknown => {
                    self.twice(&name, stream)?
                }
                _ => (stream, None),
            };
            let mut reader = Nettrace::new(stream).map_err(|error| in_runtime(&name, error))?;
            let process = reader.header().process_id.map(|own| self.beside.pid(own));
            let (clock, start_ns) = Clock::of_nettrace(reader.header());
            let (other, against) = reference.get_or_insert_with(|| (name.clone(), clock));
            let not_joined = |first: &str, second: &str| OpenError::SeveralRecordings {
                first: first.to_owned(),
                second: second.to_owned(),
            };
            for known in &runtimes {
                if (known.process, known.start_ns) == (process, start_ns) {
                    return Err(OpenError::Copies {
                        first: known.name.clone(),
                        second: name,
                    });
                }
                if known.process.is_none() || process.is_none() {
                    return Err(not_joined(&known.name, &name));
                }
            }
            let offset = match (clock.behind(against), again, &mut *profile) {
                (Some(Ok(offset)), ..) => offset,
                (Some(Err(())), Some(file), Some(profile)) => {
                    let offset = estimate(&mut profile.source, reader, process.unwrap_or_default());
                    reader = Nettrace::new(rewound(&name, file)?)
                        .map_err(|error| in_runtime(&name, error))?;
                    offset
                }
                (Some(Err(())), ..) => return Err(not_joined(other, &name)),
                (None, ..) => {
                    return Err(OpenError::DifferentRecordings {
                        first: other.clone(),
                        second: name,
                        what: "boot time",
                    });
                }
            };
            runtimes.push(Runtime {
                name,
                reader,
                process,
                start_ns,
                offset,
            });
        }
        runtimes.sort_by_key(|runtime| runtime.start_ns + runtime.offset.ns);
        Ok(runtimes)
    }

    /// A stream that can be read once more: it takes a pass of its own to find out how far clocks are apart.
    fn twice(
        &self,
        name: &str,
        stream: ByteStream,
    ) -> Result<(ByteStream, Option<File>), OpenError> {
        let most = self.meter.limits.unpacked_bytes;
        let (file, _) = keep(stream, most).map_err(|error| unreadable(name, error))?;
        let again = file.try_clone().map_err(|error| unreadable(name, error))?;
        Ok((rewound(name, file)?, Some(again)))
    }

    /// Reads the perf.data, if there is one.
    fn read_perf(
        &mut self,
        profile: Option<Profile>,
        runtimes: &[Runtime],
    ) -> Result<(), OpenError> {
        let starts = runtimes.iter().map(|it| it.start_ns + it.offset.ns);
        let earliest = starts.min();
        self.began_ns = earliest.unwrap_or_default();
        self.of_runtimes = runtimes.first().map(|runtime| runtime.offset);
        let Some(mut profile) = profile else {
            if let Some(first) = runtimes.first() {
                nettrace::describe(first.reader.header(), self.session);
            }
            return Ok(());
        };
        if self.of_runtimes.is_none() && profile.clock.kind == Kind::Monotonic {
            self.of_runtimes = Some(Offset::NONE);
        }
        self.cycles = profile.cycles;
        let name = profile.name;
        let reader = open_perf(&name, &mut profile.source)?;
        let earliest = earliest.and_then(|ns| u64::try_from(ns.max(0)).ok());
        let (found, end) = perf::read_from(reader, self.session, earliest);
        self.began_ns = found.began_ns.into();
        self.report.notes.extend(Note::of_perf(&found));
        self.report.lost_events += found.diagnostics.lost_records;
        let gaps = cut_short(found.diagnostics.truncation);
        self.report.add_gaps(std::slice::from_ref(&name), &gaps);
        self.perf = found;
        let gives = "samples, processes and images";
        self.came_from(JoinedRecording::new(&name, gives, ClockMatch::Same));
        end.map_err(|error| in_perf(&name, error))
    }

    fn came_from(&mut self, recording: JoinedRecording) {
        self.session.facts().recordings.push(recording);
    }

    fn read_runtime(&mut self, runtime: Runtime, has_ticks: bool) -> Result<(), OpenError> {
        let Runtime {
            name,
            reader,
            process,
            start_ns,
            offset,
        } = runtime;
        let began = i64::try_from(start_ns + offset.ns - self.began_ns).unwrap_or(i64::MAX);
        let (found, end) = nettrace::read_joined(reader, self.session, began, process, has_ticks);
        self.report.notes.extend(Note::of_nettrace(&found));
        self.report.lost_events += found.lost_events();
        (self.report).add_gaps(std::slice::from_ref(&name), &found.gaps);
        let gives = match has_ticks {
            true => "code and samples of its process",
            false => "code of its process",
        };
        self.came_from(JoinedRecording {
            offset_ns: i64::try_from(offset.ns).unwrap_or(i64::MAX),
            error_ns: offset.error_ns,
            ..JoinedRecording::new(&name, gives, offset.how)
        });
        end.map_err(|error| in_runtime(&name, error))
    }

    /// Reads jitdumps: those that were named, and those beside a perf.data.
    fn read_jitdumps(&mut self, named: Vec<(String, ByteStream)>) -> Result<(), OpenError> {
        let mut dumps: Vec<Dump> = Vec::new();
        for (name, stream) in named {
            let reader = jitdump::Reader::new(stream).map_err(|error| in_perf(&name, error))?;
            let process = self.beside.pid(reader.header().pid);
            dumps.push(Dump {
                name,
                process,
                reader,
            });
        }
        for process in self.perf.sampled.clone() {
            let is_named = dumps.iter().any(|dump| dump.process == process);
            let path = self.beside.jitdump(process, &self.perf.jitdumps);
            if let Some(path) = path.filter(|_| !is_named) {
                let name = path.display().to_string();
                let reader = open_companion(&path, self.meter)
                    .and_then(|stream| jitdump::Reader::new(stream).map_err(io::Error::other));
                match reader {
                    Ok(reader) if self.beside.pid(reader.header().pid) == process => {
                        dumps.push(Dump {
                            name,
                            process,
                            reader,
                        });
                    }
                    Ok(_) => self.cannot_read(name, "it is of another process"),
                    Err(error) => self.cannot_read(name, &error.to_string()),
                }
            }
        }
        dumps
            .into_iter()
            .try_for_each(|dump| self.read_jitdump(dump))
    }

    fn cannot_read(&mut self, name: String, error: &str) {
        let error = error.to_owned();
        self.report.notes.push(Note::Companion { name, error });
    }

    fn read_jitdump(&mut self, dump: Dump) -> Result<(), OpenError> {
        let Dump {
            name,
            process,
            reader,
        } = dump;
        let has_cycles = reader.header().has_cycles;
        let is_alone = self.report.format == Format::JitDump;
        // Cycles become times of the kernel's own clock, which is that of a perf.data without another.
        let offset = match self.of_runtimes.filter(|_| !has_cycles) {
            Some(offset) => offset,
            None if is_alone || has_cycles && self.cycles.is_some() => Offset::NONE,
            None => Offset::UNKNOWN,
        };
        if is_alone {
            dump::describe(&reader, self.session);
        }
        let (cycles, mut began) = (self.cycles, (!is_alone).then_some(self.began_ns));
        let place = Place {
            process,
            time: &mut |time| {
                let time = dump::nanoseconds(time, has_cycles, cycles);
                let time = i128::from(time) + offset.ns;
                let began = *began.get_or_insert(time);
                u64::try_from(time - began).unwrap_or(0)
            },
        };
        let (found, end) = dump::read_from(reader, self.session, place);
        for note in Note::of_jitdump(&found) {
            self.cannot_read(name.clone(), &note.to_string());
        }
        if is_alone {
            let gaps = cut_short(found.truncation);
            self.report.add_gaps(std::slice::from_ref(&name), &gaps);
        }
        self.came_from(JoinedRecording {
            offset_ns: i64::try_from(offset.ns).unwrap_or(i64::MAX),
            error_ns: offset.error_ns,
            ..JoinedRecording::new(&name, "code that its process compiled", offset.how)
        });
        end.map_err(|error| in_perf(&name, error))
    }

    /// Reads perf maps: those that were named, and those beside a perf.data.
    fn read_maps(&mut self, named: Vec<(String, u32, ByteStream)>) -> Result<(), OpenError> {
        let mut done: Vec<u32> = Vec::new();
        let limits = &self.meter.limits;
        for (name, own, stream) in named {
            let process = self.beside.pid(own);
            let damaged = |name, source| OpenError::Damaged { name, source };
            let text = perf_map::whole(&name, stream, limits, damaged)?;
            done.push(process);
            self.add_map(&name, process, &text);
        }
        for process in self.perf.sampled.clone() {
            let path = self.beside.perf_map(process);
            if let Some(path) = path.filter(|_| !done.contains(&process)) {
                let name = path.display().to_string();
                match perf_map::read_perf_map(&path, limits) {
                    Ok(text) => self.add_map(&name, process, &text),
                    Err(error) => self.cannot_read(name, &error.to_string()),
                }
            }
        }
        Ok(())
    }

    fn add_map(&mut self, name: &str, process: u32, text: &[u8]) {
        if !self.session.has_process(process) {
            return self.cannot_read(name.to_owned(), "the recording has no such process");
        }
        self.session.perf_map(process, text);
        let gives = "names of code, without times";
        self.came_from(JoinedRecording::new(name, gives, ClockMatch::Timeless));
    }
}

/// What a recording lacks that is cut short.
fn cut_short(truncation: Option<chronosym_perf::Truncation>) -> Gaps {
    let mut gaps = Gaps::default();
    if let Some(cut) = truncation {
        gaps.add(Gap::new(cut.at_offset, cut.bytes_lost, GapCause::CutShort));
    }
    gaps
}

fn rewound(name: &str, mut file: File) -> Result<ByteStream, OpenError> {
    file.rewind().map_err(|error| unreadable(name, error))?;
    Ok(Box::new(BufReader::new(file)))
}

/// A file beside a trace, unpacked if it is packed.
fn open_companion(path: &Path, meter: &Meter) -> io::Result<ByteStream> {
    let file = BufReader::new(File::open(path)?);
    let most = meter.limits.unpacked_bytes;
    Ok(match path.extension().is_some_and(|it| it == "gz") {
        true => Box::new(io::Read::take(MultiGzDecoder::new(file), most)),
        false => Box::new(file),
    })
}
