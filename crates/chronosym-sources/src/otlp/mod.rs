//! OTLP profiles: samples of any profiler that writes the format of OpenTelemetry.
//!
//! Frames keep the names that the profile has for them. Others get addresses at which symbol files
//! name them: the OpenTelemetry eBPF profiler states only files and addresses of native code, and
//! methods and IL offsets of .NET code.

mod places;
mod samples;
mod symbolize;

use std::io::Read;
use std::sync::Arc;

use chronosym_core::DiagnosticKind::{Damage, Limit};
use chronosym_core::facts::{At, Sample};
use chronosym_core::unwind::ImageFiles;
use chronosym_core::{Diagnostics, Position, ProcessIndex, RecordingId, SampleKind, Session};
use chronosym_core::{EventTypeId, StackId};
use chronosym_events::{EventKey, EventSchema, PointerSize, RawEvent};
use chronosym_otlp::{MAX_BYTES, Profile, Profiles};
use chronosym_types::hash::HashMap;

pub use self::symbolize::{Symbolized, symbolize};

use self::places::Places;
use self::samples::{Measure, Owner, is_cpu, measures_same};
use super::threads::Threads;
use crate::error::ReadError;
use crate::stream::{EventStream, StreamEvent};

/// Maximum number of locations of a stack that are used, from the innermost on.
const MOST_LOCATIONS: usize = 4096;
/// Maximum number of samples that values add which count several.
const MOST_REPEATED: u64 = 4 << 20;
/// Maximum number of frames of all stacks, each counted once for each of its processes, for each byte
/// of the input.
const PER_BYTE: u64 = 8;

/// The samples of OTLP profiles, as events without a payload, in the order of the file. The file is
/// read into memory.
pub struct OtlpStream<R> {
    source: Option<R>,
    files: Option<Arc<dyn ImageFiles>>,
    messages: Vec<Message>,
    began_unix_ns: u64,
    /// Name of the values that form the profile.
    main: String,
    next: Next,
    schemas: HashMap<String, Arc<EventSchema>>,
    stack: Vec<u64>,
    has_begun: bool,
    /// Why the source failed after the bytes that were read.
    failed: Option<std::io::Error>,
    importer: Importer,
}

/// A message, with its stacks in the session.
struct Message {
    profiles: Profiles,
    places: Places,
    /// Interned stacks, by their index and the position of the innermost frame, with their numbers of
    /// frames.
    stacks: HashMap<(usize, Position), (Option<StackId>, u64)>,
    /// Stacks of processes, and whether their frames are within the limit.
    stated: HashMap<(ProcessIndex, usize), bool>,
}

/// Indices of a message and of a profile in it, and the offset of the next sample there.
#[derive(Clone, Copy, Default)]
struct Next {
    message: usize,
    profile: usize,
    sample: Option<u32>,
}

impl<R: Read> OtlpStream<R> {
    /// Creates a stream, which reads its source on first use. `files` identifies files that the
    /// profile identifies by their content.
    pub fn new(source: R, files: Option<Arc<dyn ImageFiles>>) -> Self {
        OtlpStream {
            source: Some(source),
            files,
            messages: Vec::new(),
            began_unix_ns: 0,
            main: String::new(),
            next: Next::default(),
            schemas: HashMap::default(),
            stack: Vec::new(),
            has_begun: false,
            failed: None,
            importer: Importer::default(),
        }
    }

    fn load(&mut self) -> Result<(), ReadError> {
        let Some(source) = self.source.take() else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        let read = source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes);
        self.failed = read.err();
        if bytes.is_empty()
            && let Some(error) = self.failed.take()
        {
            return Err(ReadError::Other(error.into()));
        }
        self.importer.left = (bytes.len() as u64).saturating_mul(PER_BYTE);
        let mut mappings = 0_usize;
        for profiles in Profiles::read(bytes)? {
            self.importer.damaged += profiles.damaged();
            let places = Places::new(mappings);
            mappings = mappings.saturating_add(profiles.mapping_count());
            self.messages.push(Message {
                profiles,
                places,
                stacks: HashMap::default(),
                stated: HashMap::default(),
            });
        }
        let profiles = || self.messages.iter().flat_map(|it| it.profiles.profiles());
        let times = profiles().flat_map(|profile| {
            let samples = profile.samples().flat_map(|it| it.times_unix_ns());
            samples.chain([profile.time_unix_ns()])
        });
        self.began_unix_ns = times.filter(|&time| time > 0).min().unwrap_or(0);
        let main = profiles().find(is_cpu).or_else(|| profiles().next());
        self.main = main.map_or(String::new(), |main| main.sample_type().name.into_owned());
        Ok(())
    }

    fn schema(&mut self, name: &str) -> Arc<EventSchema> {
        let schema = self.schemas.entry(name.to_owned()).or_insert_with(|| {
            let name = if name.is_empty() { "samples" } else { name };
            Arc::new(EventSchema::new(EventKey::Named {
                provider: "otlp".into(),
                name: name.into(),
            }))
        });
        Arc::clone(schema)
    }

    fn begin(&mut self, session: &mut Session) -> Result<(), ReadError> {
        self.has_begun = true;
        session.admit(RecordingId::Whole)?;
        let facts = session.facts();
        facts.format = "otlp".to_owned();
        facts.pointer_size = Some(8);
        facts.start_unix_ns = (self.began_unix_ns > 0).then(|| self.began_unix_ns.into());
        Ok(())
    }

    /// Reads the samples of the next profile into a session, and of the one after it if that
    /// measures the same samples. Returns false at the end, and if the session is full.
    fn step(&mut self, session: &mut Session) -> bool {
        let Next {
            message, profile, ..
        } = self.next;
        let Some(profiles) = self.messages.get(message).map(|it| &it.profiles) else {
            return false;
        };
        let Some(name) = profiles.profile(profile).map(|it| it.sample_type().name) else {
            self.next = Next {
                message: message + 1,
                ..Next::default()
            };
            return true;
        };
        let name = name.into_owned();
        let kind = match name == self.main {
            true => SampleKind::Cpu,
            false => SampleKind::Event,
        };
        let event = session.event_type(self.schema(&name));
        let Some(message) = self.messages.get_mut(message) else {
            return false;
        };
        let mut reader = ProfileReader {
            message,
            files: self.files.as_deref(),
            began_unix_ns: self.began_unix_ns,
            event,
            kind,
            importer: &mut self.importer,
        };
        let read = reader.read(profile, session);
        self.next.profile += read;
        read > 0
    }
}

/// Counts, limits and names of all messages.
struct Importer {
    threads: Threads,
    damaged: u64,
    /// Number of frames that may still be used.
    left: u64,
    unstated: u64,
    repeated_left: u64,
    unrepeated: u64,
}

impl Default for Importer {
    fn default() -> Self {
        Importer {
            threads: Threads::default(),
            damaged: 0,
            left: 0,
            unstated: 0,
            repeated_left: MOST_REPEATED,
            unrepeated: 0,
        }
    }
}

/// Reads a profile into a session.
struct ProfileReader<'s> {
    message: &'s mut Message,
    files: Option<&'s dyn ImageFiles>,
    began_unix_ns: u64,
    event: EventTypeId,
    kind: SampleKind,
    importer: &'s mut Importer,
}

impl ProfileReader<'_> {
    /// Returns the number of profiles that were read; 0 if the session is full.
    fn read(&mut self, index: usize, session: &mut Session) -> usize {
        let Message {
            profiles,
            places,
            stacks,
            stated,
        } = &mut *self.message;
        let Some(profile) = profiles.profile(index) else {
            return 1;
        };
        let other = profiles.profile(index + 1);
        let other = other.filter(|other| measures_same(&profile, other));
        let measure = Measure::new(&profile, other.as_ref());
        if self.kind == SampleKind::Cpu && session.facts().sample_interval_ns.is_none() {
            session.facts().sample_interval_ns = measure.period_ns;
        }
        let resource = Owner::default().with(profile.resource());
        let position = self.kind.leaf_position();
        let began_ns = profile.time_unix_ns().saturating_sub(self.began_unix_ns);
        let facts = session.facts();
        let end_ns = began_ns.saturating_add(profile.duration_ns());
        facts.duration_ns = facts.duration_ns.max(end_ns);
        let mut others = other.iter().flat_map(Profile::samples);
        for sample in profile.samples() {
            if !session.has_room(1) {
                return 0;
            }
            let paired = others.next();
            let owner = resource.clone().with(sample.attributes());
            let at = At::new(0).of(owner.pid, owner.tid);
            let process = session.process_at(at);
            if let (Some(pid), Some(tid)) = (owner.pid, owner.tid) {
                let name = owner.thread_name.as_bytes();
                self.importer.threads.name(at, pid, tid, name, session);
                session.name_process(pid, owner.process_name.as_bytes());
            }
            let locations = || profiles.stack(sample.stack).take(MOST_LOCATIONS);
            let (stack, depth) = *stacks.entry((sample.stack, position)).or_insert_with(|| {
                let left = &mut self.importer.left;
                let addresses = places.stack(profiles, locations(), (position, left), self.files);
                let depth = addresses.len() as u64;
                (session.intern_whole(addresses.iter().copied()), depth)
            });
            let is_stated = *stated.entry((process, sample.stack)).or_insert_with(|| {
                let Some(left) = self.importer.left.checked_sub(depth) else {
                    self.importer.unstated += 1;
                    return false;
                };
                self.importer.left = left;
                let at = At::new(0).of(owner.pid, None);
                for location in locations() {
                    places.state(profiles, location, (at, process), self.files, session);
                }
                true
            });
            let stack = stack.filter(|_| is_stated);
            let value = |value: i64| u64::try_from(value).unwrap_or(0);
            let mut values = sample.values().map(value);
            let mut weights = paired.iter().flat_map(|it| it.values()).map(value);
            let mut log = |time_ns, weight| {
                let sample = Sample::new(self.kind).of(self.event).weighing(weight);
                session.sample_of_stack(at.at(time_ns), stack, sample);
            };
            let mut has_times = false;
            for time in sample.times_unix_ns() {
                has_times = true;
                let value = values.next().unwrap_or(1);
                let weight = measure.weight(value, weights.next(), (0, 1));
                log(time.saturating_sub(self.began_unix_ns), weight);
            }
            if !has_times {
                let (value, weight) = (values.next().unwrap_or(1), weights.next());
                let wanted = measure.count(value);
                let count = wanted.min(self.importer.repeated_left.saturating_add(1));
                self.importer.unrepeated += u64::from(count < wanted);
                self.importer.repeated_left -= count.saturating_sub(1);
                for index in 0..count {
                    log(began_ns, measure.weight(value, weight, (index, count)));
                }
            }
        }
        1 + usize::from(other.is_some())
    }
}

impl<R: Read> EventStream for OtlpStream<R> {
    fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, ReadError> {
        self.load()?;
        let (name, time_ns, process_id, thread_id) = loop {
            let Some(Message { profiles, .. }) = self.messages.get(self.next.message) else {
                return Ok(None);
            };
            let Some(profile) = profiles.profile(self.next.profile) else {
                self.next = Next {
                    message: self.next.message + 1,
                    ..Next::default()
                };
                continue;
            };
            let mut samples = match self.next.sample {
                Some(position) => profile.samples_from(position),
                None => profile.samples(),
            };
            let Some(sample) = samples.next() else {
                self.next.profile += 1;
                self.next.sample = None;
                continue;
            };
            self.next.sample = Some(samples.position());
            let time = sample.times_unix_ns().next();
            let time = time.unwrap_or(profile.time_unix_ns());
            let owner = Owner::default().with(profile.resource());
            let owner = owner.with(sample.attributes());
            let locations = profiles.stack(sample.stack).take(MOST_LOCATIONS);
            let addresses = locations.filter_map(|index| profiles.location(index));
            self.stack.clear();
            self.stack.extend(addresses.map(|it| it.address));
            let name = profile.sample_type().name.into_owned();
            let time_ns = time.saturating_sub(self.began_unix_ns);
            break (name, time_ns, owner.pid, owner.tid);
        };
        self.schema(&name);
        let Some(schema) = self.schemas.get(&name) else {
            return Ok(None);
        };
        let event = RawEvent {
            time_ns,
            process_id,
            thread_id,
            processor: None,
            pointer_size: PointerSize::Eight,
            schema,
            payload: &[],
        };
        let mut event = StreamEvent::new(event, schema, &self.stack);
        event.watermark_ns = 0;
        Ok(Some(event))
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        let it = &self.importer;
        #[rustfmt::skip]
        let counts = [
            (it.damaged, Damage, "messages end early or are not encoded as Protocol Buffers"),
            (it.unstated, Limit, "stacks are left out: their frames in all processes are more than 8 for each byte of the file"),
            (it.unrepeated, Limit, "values are too large to become that many samples"),
        ];
        diagnostics.add_counts(&counts);
        diagnostics
    }

    fn read_batch(&mut self, session: &mut Session) -> Result<Option<u64>, ReadError> {
        self.load()?;
        if !self.has_begun {
            self.begin(session)?;
        }
        if self.step(session) {
            return Ok(Some(0));
        }
        match self.failed.take() {
            Some(error) => Err(ReadError::Other(error.into())),
            None => Ok(None),
        }
    }
}
