//! Recordings of one machine, joined into one timeline: what the system saw of processors and processes, what runtimes say of
//! code.
//!
//! The system's recording, a perf.data or .etl, is read first, since it says which processes there are; then what runtimes
//! recorded, then their jitdumps and perf maps. Each counts its time from the earliest of all, or from the begin of the .etl:
//! what runtimes say of the time before it holds at its begin.

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::Path;
use std::sync::Arc;

use chronosym_ctf::Reader as Ctf;
use chronosym_etl::EtlReader;
use chronosym_nettrace::Reader as Nettrace;
use chronosym_perf::{Options, Reader as Perf, TimeConversion, jitdump};
use chronosym_types::hash::HashSet;
use flate2::read::MultiGzDecoder;

use super::bytes::{ByteStream, FileBytes, keep};
use super::clocks::{Clock, Kind, Offset, estimate};
use super::companions::Beside;
use super::error::{OpenError, failed};
use super::format::Format;
use super::image_maps::ImageMaps;
use super::meter::Meter;
use super::note::Note;
use super::perf_map;
use super::report::Report;
use crate::recording::{ClockMatch, JoinedRecording};
use crate::session::Session;
use crate::source::jitdump::{self as dump, Place};
use crate::source::perf::{self, PerfReport};
use crate::source::script::PlacedFile;
use crate::source::{self, ReadError, etl, nettrace, script};
use crate::unwind::ImageFiles;

/// What is joined.
pub(super) struct Parts {
    pub perf: Option<(String, FileBytes)>,
    /// What `perf script` printed: it has the names that were known where it was recorded, and the samples if the perf.data that
    /// it was made of is not there.
    pub script: Option<(String, ByteStream)>,
    pub image_maps: ImageMaps,
    pub etl: Option<(String, Box<EtlReader<FileBytes>>)>,
    pub runtimes: Vec<(String, ByteStream)>,
    pub jitdumps: Vec<(String, ByteStream)>,
    /// Of user space and of the kernel, read as one.
    pub ctf: Option<(String, Ctf<ByteStream>)>,
    /// By process.
    pub maps: Vec<(String, u32, ByteStream)>,
    pub beside: Beside,
    /// For unwinding.
    pub files: Option<Arc<dyn ImageFiles>>,
}

/// A runtime's recording, begun.
struct Runtime {
    name: String,
    reader: Nettrace<ByteStream>,
    process: Option<u32>,
    start_ns: i128,
    offset: Offset,
}

/// What LTTng recorded, begun.
struct Tracepoints {
    name: String,
    reader: Ctf<ByteStream>,
    start_ns: i128,
    offset: Offset,
}

/// What the system recorded, looked into.
struct Profile {
    name: String,
    clock: Clock,
    source: ProfileBytes,
}

enum ProfileBytes {
    Perf {
        source: FileBytes,
        cycles: Option<TimeConversion>,
    },
    Etl {
        reader: Box<EtlReader<FileBytes>>,
        began_ns: i128,
    },
}

impl Parts {
    /// What all of it is.
    pub fn format(&self) -> Format {
        let is_alone = self.runtimes.is_empty() && self.etl.is_none();
        match (&self.script, &self.perf, &self.ctf, self.jitdumps.len()) {
            (_, Some(_), None, _) if is_alone => Format::PerfData,
            (Some(_), None, None, 0) if is_alone => Format::PerfScript,
            (None, None, None, _) if is_alone => Format::JitDump,
            (None, None, Some(_), 0) if is_alone => Format::Ctf,
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
            files: self.files,
            reference: None,
            began_ns: 0,
            of_runtimes: None,
            cycles: None,
            perf: PerfReport::default(),
        };
        let mut profile = match (self.perf, self.etl) {
            (Some((name, source)), _) => Some(Profile::of_perf(name, source)?),
            (None, Some((name, reader))) => Some(Profile::of_etl(name, reader)),
            (None, None) => None,
        };
        join.reference = match (&profile, &self.script) {
            (Some(profile), _) => Some((profile.name.clone(), profile.clock)),
            // A text does not say by which clock; perfcollect records by that of runtimes.
            (None, Some((name, _))) => Some((name.clone(), Clock::MONOTONIC)),
            (None, None) => None,
        };
        let runtimes = join.begin_runtimes(self.runtimes, &mut profile)?;
        let ctf = join.begin_ctf(self.ctf)?;
        let (has_ticks, has_lives) = (
            profile.is_none() && self.script.is_none(),
            profile.is_none(),
        );
        let earliest = join.begin(&runtimes, &ctf);
        let maps = self.maps.iter().map(|(_, own, _)| join.beside.pid(*own));
        let maps: Vec<u32> = maps.collect();
        let has_profile = profile.is_some();
        if let Some(profile) = profile {
            join.read_profile(profile, earliest)?;
            let headers = runtimes.iter().map(|it| it.reader.header());
            let own = headers.filter_map(|header| header.process_id);
            join.beside.find_containers(&join.perf, own);
        } else if self.script.is_none() {
            join.describe(&runtimes, &ctf);
        }
        if let Some(script) = self.script {
            let files = join.read_script(script, has_profile, earliest, &maps)?;
            let (limits, held) = (&join.meter.limits, join.meter.may_hold());
            match self.image_maps.apply(&files, limits, held, join.session) {
                Err(OpenError::Cancelled) => return Err(OpenError::Cancelled),
                Err(error) => join.cannot_read("maps of images".to_owned(), &error.to_string()),
                Ok(()) => {}
            }
        }
        for runtime in runtimes {
            join.read_runtime(runtime, has_ticks)?;
        }
        if let Some(ctf) = ctf {
            join.read_ctf(ctf, has_lives)?;
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
    fn of_perf(name: String, mut source: FileBytes) -> Result<Self, OpenError> {
        let mut reader = open_perf(&name, &mut source)?;
        let clock = Clock::of_perf(&mut reader);
        let cycles = reader.info().time_conversion;
        let source = ProfileBytes::Perf { source, cycles };
        Ok(Profile {
            name,
            clock,
            source,
        })
    }

    fn of_etl(name: String, reader: Box<EtlReader<FileBytes>>) -> Self {
        let (clock, began_ns) = Clock::of_etl(reader.clock(), reader.header().clock_type);
        let source = ProfileBytes::Etl { reader, began_ns };
        Profile {
            name,
            clock,
            source,
        }
    }
}

fn open_perf<'s>(
    name: &str,
    source: &'s mut FileBytes,
) -> Result<Perf<&'s mut FileBytes>, OpenError> {
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

fn not_joined(first: &str, second: &str) -> OpenError {
    OpenError::SeveralRecordings {
        first: first.to_owned(),
        second: second.to_owned(),
    }
}

fn of_another_boot(first: &str, second: &str) -> OpenError {
    OpenError::DifferentRecordings {
        first: first.to_owned(),
        second: second.to_owned(),
        what: "boot time",
    }
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
    /// The clock that all others are put on, with the recording that it is of.
    reference: Option<(String, Clock)>,
    files: Option<Arc<dyn ImageFiles>>,
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
            let (other, against) = self.reference.get_or_insert_with(|| (name.clone(), clock));
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
            let source = profile.as_mut().map(|profile| &mut profile.source);
            // No Windows counts so.
            if matches!(source, Some(ProfileBytes::Etl { .. })) && clock.kind.is_of_linux() {
                return Err(not_joined(other, &name));
            }
            let offset = match (clock.behind(against), again, source) {
                (Some(Ok(offset)), ..) => offset,
                (Some(Err(())), Some(file), Some(ProfileBytes::Perf { source, .. })) => {
                    let offset = estimate(source, reader, process.unwrap_or_default());
                    reader = Nettrace::new(rewound(&name, file)?)
                        .map_err(|error| in_runtime(&name, error))?;
                    offset
                }
                (Some(Err(())), ..) => return Err(not_joined(other, &name)),
                (None, ..) => return Err(of_another_boot(other, &name)),
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

    /// Puts the clock of what LTTng recorded on that of the others.
    fn begin_ctf(
        &mut self,
        ctf: Option<(String, Ctf<ByteStream>)>,
    ) -> Result<Option<Tracepoints>, OpenError> {
        let Some((name, mut reader)) = ctf else {
            return Ok(None);
        };
        let clock = Clock::of_ctf(&reader);
        let offset = match &self.reference {
            None => Offset::NONE,
            Some((other, against)) => match clock.behind(against) {
                Some(Ok(offset)) => offset,
                Some(Err(())) => Offset::UNKNOWN,
                None => return Err(of_another_boot(other, &name)),
            },
        };
        let start_ns = reader.next_time_ns().unwrap_or_default().into();
        Ok(Some(Tracepoints {
            name,
            reader,
            start_ns,
            offset,
        }))
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

    /// Finds out when the session begins, in ns of the reference clock, as far as recordings of runtimes say.
    fn begin(&mut self, runtimes: &[Runtime], ctf: &Option<Tracepoints>) -> Option<i128> {
        let starts = runtimes.iter().map(|it| it.start_ns + it.offset.ns);
        let of_ctf = ctf.iter().map(|it| it.start_ns + it.offset.ns);
        let earliest = starts.chain(of_ctf).min();
        self.began_ns = earliest.unwrap_or_default();
        let of_runtime = runtimes.first().map(|runtime| runtime.offset);
        self.of_runtimes = of_runtime.or(ctf.as_ref().map(|ctf| ctf.offset));
        earliest
    }

    /// Says what runtimes' recordings are of, where no other says more.
    fn describe(&mut self, runtimes: &[Runtime], ctf: &Option<Tracepoints>) {
        if let Some(first) = runtimes.first() {
            nettrace::describe(first.reader.header(), self.session);
        } else if let Some(ctf) = ctf {
            let began_ns = u64::try_from(self.began_ns.max(0)).unwrap_or(u64::MAX);
            source::ctf::describe(ctf.reader.traces(), began_ns, self.session);
        }
    }

    /// Reads what `perf script` printed: its names, where the perf.data that it was made of was read, else its samples, too.
    /// Returns where files are.
    fn read_script(
        &mut self,
        (name, stream): (String, ByteStream),
        has_samples: bool,
        earliest: Option<i128>,
        maps: &[u32],
    ) -> Result<Vec<PlacedFile>, OpenError> {
        let reader = chronosym_perf::script::Reader::new(stream);
        let (found, end) = if has_samples {
            let began_ns = u64::try_from(self.began_ns).unwrap_or_default();
            script::read_names(reader, self.session, began_ns, maps)
        } else {
            self.of_runtimes.get_or_insert(Offset::NONE);
            script::describe(self.session);
            let earliest = earliest.and_then(|ns| u64::try_from(ns.max(0)).ok());
            let (found, end) = script::read_from(reader, self.session, earliest, maps);
            self.began_ns = found.began_ns.into();
            (found, end)
        };
        self.report.notes.extend(Note::of_script(&found));
        let (gives, how) = match (has_samples, self.report.format) {
            (true, _) => (
                "names; the samples are those of the perf.data",
                ClockMatch::Same,
            ),
            (false, Format::PerfScript) => ("samples and names", ClockMatch::Same),
            (false, _) => ("samples and names", ClockMatch::Assumed),
        };
        self.came_from(JoinedRecording {
            // perf prints µs.
            error_ns: if has_samples { 0 } else { 1_000 },
            ..JoinedRecording::new(&name, gives, how)
        });
        end.map_err(|error| in_perf(&name, error))?;
        Ok(found.files)
    }

    /// Reads what the system recorded.
    fn read_profile(&mut self, profile: Profile, earliest: Option<i128>) -> Result<(), OpenError> {
        let Profile {
            name,
            clock,
            source,
        } = profile;
        if self.of_runtimes.is_none() && clock.kind == Kind::Monotonic {
            self.of_runtimes = Some(Offset::NONE);
        }
        let gives = "samples, processes and images";
        self.came_from(JoinedRecording::new(&name, gives, ClockMatch::Same));
        match source {
            ProfileBytes::Perf { source, cycles } => {
                self.cycles = cycles;
                self.read_perf(&name, source, earliest)
            }
            ProfileBytes::Etl { reader, began_ns } => {
                self.began_ns = began_ns;
                let found = etl::read_joined(*reader, self.session);
                self.report.add_etl(std::slice::from_ref(&name), &found);
                Ok(())
            }
        }
    }

    fn read_perf(
        &mut self,
        name: &str,
        mut source: FileBytes,
        earliest: Option<i128>,
    ) -> Result<(), OpenError> {
        let reader = open_perf(name, &mut source)?;
        let earliest = earliest.and_then(|ns| u64::try_from(ns.max(0)).ok());
        let files = self.files.clone();
        let (found, end) = perf::read_from(reader, self.session, earliest, files);
        self.began_ns = found.began_ns.into();
        self.report.notes.extend(Note::of_perf(&found));
        self.report.lost_events += found.diagnostics.lost_records;
        (self.report).add_gaps(&[name.to_owned()], &found.diagnostics.gaps);
        self.perf = found;
        end.map_err(|error| in_perf(name, error))
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
        let own = reader.header().process_id;
        let process = own.map_or(process, |own| Some(self.beside.pid(own)));
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
            own_pid: own.zip(process).filter(|(own, pid)| own != pid),
            ..JoinedRecording::new(&name, gives, offset.how)
        });
        end.map_err(|error| in_runtime(&name, error))
    }

    /// Reads what LTTng recorded. A perf.data says more of the lives of processes.
    fn read_ctf(&mut self, ctf: Tracepoints, has_lives: bool) -> Result<(), OpenError> {
        let Tracepoints {
            name,
            reader,
            offset,
            ..
        } = ctf;
        let beside = &self.beside;
        let place = source::ctf::Place {
            behind_ns: offset.ns - self.began_ns,
            own_pid: &|own| beside.pid(own),
            has_lives,
        };
        let (found, end) = source::ctf::read_from(reader, self.session, place);
        self.report.notes.extend(Note::of_ctf(&found));
        self.report.lost_events += found.lost_events;
        self.report.is_cut_short |= found.cut_streams > 0;
        self.came_from(JoinedRecording {
            offset_ns: i64::try_from(offset.ns).unwrap_or(i64::MAX),
            error_ns: offset.error_ns,
            ..JoinedRecording::new(&name, "code of its processes", offset.how)
        });
        end.map_err(|error| in_trace(&name, error.into()))
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
            (self.report).add_gaps(std::slice::from_ref(&name), &found.gaps);
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
        let mut done = HashSet::default();
        let limits = &self.meter.limits;
        let mut held = self.meter.may_hold();
        for (name, own, stream) in named {
            let process = self.beside.pid(own);
            let damaged = |name, source| OpenError::Damaged { name, source };
            let text = perf_map::whole(&name, stream, held, limits, damaged)?;
            held = held.saturating_sub(text.len() as u64);
            done.insert(process);
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
