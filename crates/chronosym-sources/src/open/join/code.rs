//! Reads jitdumps and perf maps, which only name code.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use chronosym_perf::jitdump;
use chronosym_types::hash::HashSet;
use flate2::read::MultiGzDecoder;

use super::joined::Join;
use crate::jitdump::{self as dump, Target};
use crate::open::bytes::ByteStream;
use crate::open::clocks::Offset;
use crate::open::error::{OpenError, in_perf};
use crate::open::format::Format;
use crate::open::perf_map;
use chronosym_core::{ClockMatch, Diagnostic, JoinedRecording};

/// A jitdump to be read.
struct Dump {
    name: String,
    process: u32,
    reader: jitdump::Reader<ByteStream>,
}

impl Join<'_> {
    /// Reads jitdumps: the ones given as inputs, and those next to a perf.data.
    pub(super) fn read_jitdumps(
        &mut self,
        named: Vec<(String, ByteStream)>,
    ) -> Result<(), OpenError> {
        let mut dumps: Vec<Dump> = Vec::new();
        for (name, stream) in named {
            let reader = jitdump::Reader::new(stream, Default::default())
                .map_err(|error| in_perf(&name, error))?;
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
                let limit = self.meter.limits.unpacked_bytes;
                let reader = open_companion(&path, limit).and_then(|stream| {
                    jitdump::Reader::new(stream, Default::default()).map_err(io::Error::other)
                });
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

    fn read_jitdump(&mut self, dump: Dump) -> Result<(), OpenError> {
        let Dump {
            name,
            process,
            reader,
        } = dump;
        let has_cycles = reader.header().has_cycles;
        let is_alone = self.format == Format::JitDump;
        // Cycles are converted to the kernel's own clock, the default clock of a perf.data.
        let offset = match self.of_runtimes.filter(|_| !has_cycles) {
            Some(offset) => offset,
            None if is_alone || has_cycles && self.cycles.is_some() => Offset::NONE,
            None => Offset::UNKNOWN,
        };
        if is_alone {
            dump::describe(&reader, self.session);
        }
        let (cycles, mut began) = (self.cycles, (!is_alone).then_some(self.began_ns));
        let target = Target {
            process,
            time: &mut |time| {
                let time = dump::nanoseconds(time, has_cycles, cycles);
                let time = i128::from(time) + offset.ns;
                let began = *began.get_or_insert(time);
                u64::try_from(time - began).unwrap_or(0)
            },
        };
        let (mut diagnostics, end) = dump::read_from(reader, self.session, target);
        if is_alone {
            for diagnostic in &mut diagnostics.list {
                *diagnostic = Diagnostic::of_file(diagnostic.kind, &*name, &diagnostic.text);
            }
            self.found_in(&name, diagnostics);
        } else {
            for diagnostic in diagnostics.list {
                self.cannot_read(name.clone(), &diagnostic.text);
            }
        }
        self.came_from(offset.of(&name, "code that its process compiled"));
        end.map_err(|error| in_perf(&name, error))
    }

    /// Reads perf maps: the ones given as inputs, and those next to a perf.data.
    pub(super) fn read_maps(
        &mut self,
        named: Vec<(String, u32, ByteStream)>,
    ) -> Result<(), OpenError> {
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

/// Opens a file next to a trace, and decompresses it if necessary.
pub(super) fn open_companion(path: &Path, most: u64) -> io::Result<ByteStream> {
    let file = BufReader::new(File::open(path)?);
    Ok(match path.extension().is_some_and(|it| it == "gz") {
        true => Box::new(io::Read::take(MultiGzDecoder::new(file), most)),
        false => Box::new(file),
    })
}
