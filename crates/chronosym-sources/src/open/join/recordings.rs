//! Reading recordings: what the system saw, what runtimes and tracers said.

use chronosym_perf::script::Reader as Script;

use super::begun::{Profile, ProfileBytes, Runtime, Tracepoints, open_perf};
use super::joined::Join;
use crate::open::bytes::{ByteStream, FileBytes};
use crate::open::clocks::{Kind, Offset};
use crate::open::error::{OpenError, in_perf, in_trace};
use crate::open::format::Format;
use crate::script::PlacedFile;
use crate::{etl, nettrace, perf, script};
use chronosym_core::{ClockMatch, JoinedRecording};

impl Join<'_> {
    /// Reads what `perf script` printed: its names, where the perf.data that it was made of was read, else its samples, too.
    /// Returns where files are.
    pub(super) fn read_script(
        &mut self,
        (name, stream): (String, ByteStream),
        has_samples: bool,
        earliest: Option<i128>,
        maps: &[u32],
    ) -> Result<Vec<PlacedFile>, OpenError> {
        let reader =
            Script::new(stream, Default::default()).map_err(|error| in_perf(&name, error))?;
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
        self.diagnostics.append(found.diagnostics);
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
        Ok(found.files)
    }

    /// Reads what the system recorded.
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
                let found = etl::read_joined(*reader, self.session);
                self.found_in(&name, found);
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
        let (mut found, end) = perf::read_from(reader, self.session, earliest, files);
        self.began_ns = found.began_ns.into();
        self.found_in(name, std::mem::take(&mut found.diagnostics));
        self.perf = found;
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
            start_ns,
            offset,
        } = runtime;
        let own = reader.header().process_id;
        let process = own.map_or(process, |own| Some(self.beside.pid(own)));
        let began = i64::try_from(start_ns + offset.ns - self.began_ns).unwrap_or(i64::MAX);
        let (found, end) = nettrace::read_joined(reader, self.session, began, process, has_ticks);
        self.found_in(&name, found);
        let gives = match has_ticks {
            true => "code and samples of its process",
            false => "code of its process",
        };
        let mut joined = offset.of(&name, gives);
        joined.own_pid = own.zip(process).filter(|(own, pid)| own != pid);
        self.came_from(joined);
        end.map_err(|error| in_trace(&name, error))
    }

    /// Reads what LTTng recorded. A perf.data says more of the lives of processes.
    pub(super) fn read_ctf(&mut self, ctf: Tracepoints, has_lives: bool) -> Result<(), OpenError> {
        let Tracepoints {
            name,
            reader,
            offset,
            ..
        } = ctf;
        let beside = &self.beside;
        let place = crate::ctf::Place {
            behind_ns: offset.ns - self.began_ns,
            own_pid: &|own| beside.pid(own),
            has_lives,
        };
        let (found, end) = crate::ctf::read_from(reader, self.session, place);
        self.diagnostics.append(found);
        self.came_from(offset.of(&name, "code of its processes"));
        end.map_err(|error| in_trace(&name, error))
    }
}
