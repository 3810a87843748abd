//! Recordings whose headers have been read, and their clock offsets.

use std::fs::File;
use std::io::{BufReader, Read, Seek};

use chronosym_ctf::Reader as Ctf;
use chronosym_etl::Reader as EtlReader;
use chronosym_nettrace::Reader as Nettrace;
use chronosym_perf::{Options, Reader as Perf, TimeConversion};

use super::joined::Join;
use crate::nettrace::{self, Methods};
use crate::open::bytes::{ByteStream, FileBytes, keep};
use crate::open::clocks::{Clock, Kind, Offset, estimate};
use crate::open::error::{OpenError, in_perf, in_trace, unreadable};
use chronosym_core::ProcessMatch;

/// A runtime's recording whose header has been read.
pub(super) struct Runtime {
    pub name: String,
    pub reader: Nettrace<ByteStream>,
    /// Its process, from the header or `--map-pid`.
    pub process: Option<u32>,
    pub methods: Methods,
    /// Its process in the perf.data, and the evidence.
    pub matched: Option<(u32, ProcessMatch)>,
    /// For a recording of all processes: how many of those with methods have them mapped in the
    /// perf.data, and their number.
    pub mapped: Option<(usize, usize)>,
    pub start_ns: i128,
    pub offset: Offset,
}

/// LTTng traces whose metadata has been read.
pub(super) struct Tracepoints {
    pub name: String,
    pub reader: Ctf<ByteStream>,
    pub start_ns: i128,
    pub offset: Offset,
}

/// The recording of the system, partly read.
pub(super) struct Profile {
    pub name: String,
    pub clock: Clock,
    pub source: ProfileBytes,
}

pub(super) enum ProfileBytes {
    Perf {
        source: FileBytes,
        cycles: Option<TimeConversion>,
    },
    Etl {
        reader: Box<EtlReader<FileBytes>>,
        began_ns: i128,
    },
}

impl Profile {
    pub(super) fn of_perf(name: String, mut source: FileBytes) -> Result<Self, OpenError> {
        let mut reader = open_perf(&name, &mut source)?;
        let clock = Clock::of_perf(&mut reader);
        let cycles = reader.info().time_conversion;
        drop(reader);
        let source = ProfileBytes::Perf { source, cycles };
        Ok(Profile {
            name,
            clock,
            source,
        })
    }

    pub(super) fn of_etl(name: String, reader: Box<EtlReader<FileBytes>>) -> Self {
        let (clock, began_ns) = Clock::of_etl(reader.clock(), reader.header().clock_type);
        let source = ProfileBytes::Etl { reader, began_ns };
        Profile {
            name,
            clock,
            source,
        }
    }
}

impl Join<'_> {
    /// Reads the headers of the runtimes' recordings, and determines the offsets of their clocks to
    /// that of the perf.data, or of the first of them.
    pub(super) fn begin_runtimes(
        &mut self,
        streams: Vec<(String, ByteStream)>,
        profile: &mut Option<Profile>,
    ) -> Result<Vec<Runtime>, OpenError> {
        let mut runtimes: Vec<Runtime> = Vec::new();
        for (name, stream) in streams {
            let mut stream = stream;
            let mut again = None;
            let mut methods = Methods::default();
            if let Some(profile) = profile
                && let ProfileBytes::Perf { .. } = profile.source
            {
                let (file, copy) = self.twice(&name, stream)?;
                stream = file;
                if let Ok(reader) = Nettrace::new(stream, Default::default()) {
                    methods = Methods::read(reader);
                }
                stream = rewound(
                    &name,
                    copy.try_clone().map_err(|error| unreadable(&name, error))?,
                )?;
                again = Some(copy).filter(|_| profile.clock.kind == Kind::Unknown);
            }
            let mut reader = Nettrace::new(stream, Default::default())
                .map_err(|error| in_trace(&name, error))?;
            let process = reader.header().process_id.map(|own| self.beside.pid(own));
            let (clock, start_ns) = Clock::of_nettrace(reader.header());
            let (other, against) = self.reference.get_or_insert_with(|| (name.clone(), clock));
            for earlier in &runtimes {
                if (earlier.process, earlier.start_ns) == (process, start_ns) {
                    return Err(OpenError::Copies {
                        first: earlier.name.clone(),
                        second: name,
                    });
                }
                if earlier.process.is_none() || process.is_none() {
                    return Err(not_joined(&earlier.name, &name));
                }
            }
            let source = profile.as_mut().map(|profile| &mut profile.source);
            // No clock of Windows counts like this.
            if matches!(source, Some(ProfileBytes::Etl { .. })) && clock.kind.is_of_linux() {
                return Err(not_joined(other, &name));
            }
            let offset = match (clock.offset_to(against), again, source) {
                (Some(Ok(offset)), ..) => offset,
                (Some(Err(())), Some(file), Some(ProfileBytes::Perf { source, .. })) => {
                    let offset = estimate(source, reader, process.unwrap_or_default());
                    reader = Nettrace::new(rewound(&name, file)?, Default::default())
                        .map_err(|error| in_trace(&name, error))?;
                    offset
                }
                (Some(Err(())), ..) => return Err(not_joined(other, &name)),
                (None, ..) => return Err(of_another_boot(other, &name)),
            };
            runtimes.push(Runtime {
                name,
                reader,
                process,
                methods,
                matched: None,
                mapped: None,
                start_ns,
                offset,
            });
        }
        runtimes.sort_by_key(|runtime| runtime.start_ns + runtime.offset.ns);
        Ok(runtimes)
    }

    /// Determines the offset of LTTng's clock to that of the others.
    pub(super) fn begin_ctf(
        &mut self,
        ctf: Option<(String, Ctf<ByteStream>)>,
    ) -> Result<Option<Tracepoints>, OpenError> {
        let Some((name, mut reader)) = ctf else {
            return Ok(None);
        };
        let clock = Clock::of_ctf(&reader);
        let offset = match &self.reference {
            None => Offset::NONE,
            Some((other, against)) => match clock.offset_to(against) {
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

    /// Makes a stream readable twice: estimating the clock offset takes a pass of its own.
    fn twice(&self, name: &str, stream: ByteStream) -> Result<(ByteStream, File), OpenError> {
        let most = self.meter.limits.unpacked_bytes;
        let (file, _) = keep(stream, most).map_err(|error| unreadable(name, error))?;
        let again = file.try_clone().map_err(|error| unreadable(name, error))?;
        Ok((rewound(name, file)?, again))
    }

    /// Sets the start of the session, in ns of the reference clock, as far as it follows from
    /// recordings of runtimes.
    pub(super) fn begin(
        &mut self,
        runtimes: &[Runtime],
        ctf: &Option<Tracepoints>,
    ) -> Option<i128> {
        let starts = runtimes.iter().map(|it| it.start_ns + it.offset.ns);
        let of_ctf = ctf.iter().map(|it| it.start_ns + it.offset.ns);
        let earliest = starts.chain(of_ctf).min();
        self.began_ns = earliest.unwrap_or_default();
        let of_runtime = runtimes.first().map(|runtime| runtime.offset);
        self.of_runtimes = of_runtime.or(ctf.as_ref().map(|ctf| ctf.offset));
        earliest
    }

    /// Records the description of the machine in the runtimes' recordings, for use where no other
    /// recording states it.
    pub(super) fn describe(&mut self, runtimes: &[Runtime], ctf: &Option<Tracepoints>) {
        if let Some(first) = runtimes.first() {
            nettrace::describe(first.reader.header(), self.session);
        } else if let Some(ctf) = ctf {
            let began_ns = u64::try_from(self.began_ns.max(0)).unwrap_or(u64::MAX);
            crate::ctf::describe(ctf.reader.traces(), began_ns, self.session);
        }
    }
}

pub(super) fn open_perf<S: Read + Seek>(name: &str, mut source: S) -> Result<Perf<S>, OpenError> {
    source.rewind().map_err(|error| unreadable(name, error))?;
    Perf::open(source, Options::default()).map_err(|error| in_perf(name, error))
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

fn rewound(name: &str, mut file: File) -> Result<ByteStream, OpenError> {
    file.rewind().map_err(|error| unreadable(name, error))?;
    Ok(Box::new(BufReader::new(file)))
}
