//! Joins recordings of one machine into one timeline: the system's recording of processors and
//! processes, and the runtimes' recordings of code.
//!
//! The system's recording, a perf.data or .etl, is read first, since it states which processes
//! exist; then the runtimes' recordings, then their jitdumps and perf maps. Times count from the
//! earliest of all, or from the start of the .etl: events of runtimes from before that are moved to
//! its start.

mod begun;
mod code;
mod jitted;
mod joined;
mod process;
mod recordings;

use std::sync::Arc;

use chronosym_ctf::Reader as Ctf;
use chronosym_etl::Reader as EtlReader;
use chronosym_perf::Reader as Perf;

use self::begun::{Profile, ProfileBytes};
use self::joined::Join;
use super::bytes::{ByteStream, FileBytes};
use super::clocks::Clock;
use super::companions::Beside;
use super::error::OpenError;
use super::format::Format;
use super::image_maps::ImageMaps;
use super::meter::Meter;
use crate::ctf::CtfStream;
use crate::error::ReadError;
use crate::perf::{self, PerfStream};
use crate::script::ScriptStream;
use crate::stream::EventStream;
use chronosym_core::unwind::ImageFiles;
use chronosym_core::{Diagnostics, Session};

/// The recordings to join.
pub(super) struct Parts {
    pub perf: Option<(String, FileBytes)>,
    /// A text of `perf script`: it has the names that were known where it was recorded, and the
    /// samples if the perf.data from which it was made is missing.
    pub script: Option<(String, ByteStream)>,
    pub image_maps: ImageMaps,
    pub etl: Option<(String, Box<EtlReader<FileBytes>>)>,
    pub runtimes: Vec<(String, ByteStream)>,
    pub jitdumps: Vec<(String, ByteStream)>,
    /// Traces of user space and of the kernel, read as one.
    pub ctf: Option<(String, Ctf<ByteStream>)>,
    /// By process.
    pub maps: Vec<(String, u32, ByteStream)>,
    pub beside: Beside,
    /// Image files for unwinding.
    pub files: Option<Arc<dyn ImageFiles>>,
}

impl Parts {
    /// Returns the format of the result.
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

    /// Returns the format of the events that [`into_events`](Self::into_events) returns.
    pub fn event_format(&self) -> Option<Format> {
        match (&self.ctf, &self.perf, &self.script) {
            _ if !self.runtimes.is_empty() || self.etl.is_some() => None,
            (Some(_), ..) => Some(Format::Ctf),
            (None, Some(_), _) => Some(Format::PerfData),
            (None, None, script) => script.as_ref().map(|_| Format::PerfScript),
        }
    }

    /// Returns the events of a part that recorded the whole machine.
    pub fn into_events(self) -> Result<Option<Box<dyn EventStream + Send>>, ReadError> {
        Ok(Some(
            match (self.event_format(), self.ctf, self.perf, self.script) {
                (Some(Format::Ctf), Some((_, reader)), ..) => Box::new(CtfStream::of(reader)),
                (Some(Format::PerfData), _, Some((_, source)), _) => {
                    let mut reader = Perf::open(source, Default::default())?;
                    reader.read_ahead();
                    Box::new(PerfStream::of(reader))
                }
                (Some(Format::PerfScript), _, _, Some((_, stream))) => {
                    Box::new(ScriptStream::new(stream, Default::default())?)
                }
                _ => return Ok(None),
            },
        ))
    }

    /// Reads all parts.
    pub fn read(self, session: &mut Session, meter: &Meter) -> Result<Diagnostics, OpenError> {
        let mut join = Join {
            format: self.format(),
            diagnostics: Diagnostics::default(),
            session,
            meter,
            beside: self.beside,
            files: self.files,
            reference: None,
            began_ns: 0,
            of_runtimes: None,
            cycles: None,
            perf: perf::Outcome::default(),
            complete: Vec::new(),
        };
        let mut profile = match (self.perf, self.etl) {
            (Some((name, source)), _) => Some(Profile::of_perf(name, source)?),
            (None, Some((name, reader))) => Some(Profile::of_etl(name, reader)),
            (None, None) => None,
        };
        join.reference = match (&profile, &self.script) {
            (Some(profile), _) => Some((profile.name.clone(), profile.clock)),
            // A text does not state its clock; perfcollect records with that of the runtimes.
            (None, Some((name, _))) => Some((name.clone(), Clock::MONOTONIC)),
            (None, None) => None,
        };
        let mut runtimes = join.begin_runtimes(self.runtimes, &mut profile)?;
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
            let name = profile.name.clone();
            if let ProfileBytes::Perf { .. } = profile.source {
                join.read_profile(profile, earliest)?;
                join.find_processes(&mut runtimes, &name)?;
            } else {
                join.read_profile(profile, earliest)?;
            }
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
        join.session.map_images_over_code();
        join.confirm_code();
        let facts = join.session.facts();
        let errors = facts.recordings.iter().map(|part| part.error_ns);
        facts.clock_error_ns = errors.max().unwrap_or(0);
        if facts.recordings.len() < 2 {
            facts.recordings.clear();
        } else if join.format == Format::Joined {
            facts.process_id = None;
        }
        Ok(join.diagnostics)
    }
}
