//! Reads the recordings of the system, of runtimes and of tracers.

use super::begun::{Profile, ProfileBytes, Runtime, Tracepoints, open_perf};
use super::jitted::Dumps;
use super::joined::Join;
use crate::ctf::{self, CtfStream};
use crate::etl::EtlStream;
use crate::nettrace::{self, NettraceStream};
use crate::open::bytes::{ByteStream, FileBytes};
use crate::open::clocks::{Kind, Offset};
use crate::open::error::{OpenError, in_perf, in_trace};
use crate::open::format::Format;
use crate::perf::PerfStream;
use crate::script::PlacedFile;
use crate::script::ScriptStream;
use crate::stream::EventStream;
use chronosym_core::{ClockMatch, JoinedRecording, ProcessMatch};

impl Join<'_> {
    /// Reads a text of `perf script`: its names, and its samples unless the perf.data from which it
    /// was made has been read. Returns the bases of files.
    pub(super) fn read_script(
        &mut self,
        (name, stream): (String, ByteStream),
        has_samples: bool,
        earliest: Option<i128>,
        maps: &[u32],
    ) -> Result<Vec<PlacedFile>, OpenError> {
        let stream = ScriptStream::new(stream, Default::default());
        let stream = stream.map_err(|error| in_perf(&name, error))?;
        let maps = maps.to_vec();
        let mut stream = if has_samples {
            let began_ns = u64::try_from(self.began_ns).unwrap_or_default();
            stream.names_only(began_ns, maps, std::mem::take(&mut self.perf.owners))
        } else {
            self.of_runtimes.get_or_insert(Offset::NONE);
            let earliest = earliest.and_then(|ns| u64::try_from(ns.max(0)).ok());
            stream.joined(earliest, maps)
        };
        let end = stream.read_into(self.session);
        if !has_samples {
            self.began_ns = stream.began_ns().into();
        }
        self.diagnostics.append(stream.diagnostics());
        let (gives, how) = match (has_samples, self.format) {
            (true, _) => (
                "names; the samples are those of the perf.data",
                ClockMatch::Same,
            ),
            (false, Format::PerfScript) => ("samples and names", ClockMatch::Same),
            (false, _) => ("samples and names", ClockMatch::Assumed),
        };
        let mut joined = JoinedRecording::new(&name, gives, how);
        // perf prints µs.
        joined.error_ns = if has_samples { 0 } else { 1_000 };
        self.came_from(joined);
        end.map_err(|error| in_perf(&name, error))?;
        Ok(stream.placed_files())
    }

    /// Reads the system's recording.
    pub(super) fn read_profile(
        &mut self,
        profile: Profile,
        earliest: Option<i128>,
    ) -> Result<(), OpenError> {
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
                let mut stream = EtlStream::joined(*reader);
                let end = stream.read_into(self.session);
                self.found_in(&name, stream.diagnostics());
                end.map_err(|error| in_trace(&name, error))
            }
        }
    }

    fn read_perf(
        &mut self,
        name: &str,
        source: FileBytes,
        earliest: Option<i128>,
    ) -> Result<(), OpenError> {
        let mut reader = open_perf(name, source)?;
        reader.read_ahead();
        let earliest = earliest.and_then(|ns| u64::try_from(ns.max(0)).ok());
        // Only for a file given as an input the name is its path.
        let written = std::fs::metadata(name).and_then(|data| data.modified());
        let stream = PerfStream::of(reader).written_at(written.ok());
        let mut stream = stream.joined(earliest);
        if let Some(files) = self.files.clone() {
            let limit = self.meter.limits.unpacked_bytes;
            let offset = self.of_runtimes.as_ref().map(|offset| offset.ns);
            let dumps = Dumps::new(self.beside.clone(), limit, self.cycles, offset);
            stream = stream.unwind_with(files).unwind_jitted(Box::new(dumps));
        }
        let end = stream.read_into(self.session);
        self.found_in(name, stream.diagnostics());
        self.perf = stream.outcome();
        self.began_ns = self.perf.began_ns.into();
        end.map_err(|error| in_perf(name, error))
    }

    pub(super) fn read_runtime(
        &mut self,
        runtime: Runtime,
        has_ticks: bool,
    ) -> Result<(), OpenError> {
        let Runtime {
            name,
            reader,
            process,
            matched,
            mapped,
            start_ns,
            offset,
            ..
        } = runtime;
        let own = reader.header().process_id;
        let process = matched.map_or(process, |(pid, _)| Some(pid));
        if let (Some(own), Some(pid)) = (own, process.filter(|&pid| Some(pid) != own)) {
            self.beside.add_pid(own, pid);
        }
        let began_ns = start_ns + offset.ns - self.began_ns;
        let joined = nettrace::Joined {
            began_ns: i64::try_from(began_ns).unwrap_or(i64::MAX),
            process,
            has_ticks,
        };
        let mut stream = NettraceStream::joined(reader, joined);
        let end = stream.read_into(self.session);
        let complete = process.map(|pid| (pid, stream.complete_until_ns()));
        self.complete.extend(complete);
        self.found_in(&name, stream.diagnostics());
        let gives = match (own, has_ticks) {
            (None, true) => "code and samples of all processes",
            (None, false) => "code of all processes, found by their ids",
            (Some(_), true) => "code and samples of its process",
            (Some(_), false) => "code of its process",
        };
        let mut joined = offset.of(&name, gives);
        joined.own_pid = own.zip(process).filter(|(own, pid)| own != pid);
        joined.process_match = matched.map(|(_, evidence)| evidence);
        if let Some((mapped, all)) = mapped {
            let text =
                format!("{gives}; {mapped} of {all} processes with methods have them mapped");
            joined.gives = text.into();
            joined.process_match = Some(ProcessMatch::ProcessId);
        }
        self.came_from(joined);
        end.map_err(|error| in_trace(&name, error))
    }

    /// Reads the LTTng traces. A perf.data describes the lifetimes of processes better.
    pub(super) fn read_ctf(&mut self, ctf: Tracepoints, has_lives: bool) -> Result<(), OpenError> {
        let Tracepoints {
            name,
            reader,
            offset,
            ..
        } = ctf;
        let joined = ctf::Joined {
            offset_ns: offset.ns - self.began_ns,
            pids: self.beside.pids.clone(),
            has_lives,
        };
        let mut stream = CtfStream::joined(reader, joined);
        let end = stream.read_into(self.session);
        self.diagnostics.append(stream.diagnostics());
        self.came_from(offset.of(&name, "code of its processes"));
        end.map_err(|error| in_trace(&name, error))
    }
}
