//! Joins saved timelines of one machine.

use std::collections::BTreeMap;
use std::ops::Range;

use super::base::Base;
use super::error::SavedError;
use super::file::SavedTimeline;
use super::recording_rows::RecordingRow;
use crate::diagnostic::Diagnostics;
use crate::process::Process;
use crate::recording::{ClockMatch, JoinedRecording, Loss, TraceFacts};
use crate::session::Session;

/// Why saved timelines cannot be joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// One of them cannot be read.
    #[error("{name}: {error}")]
    Saved {
        /// Its name.
        name: String,
        /// The cause.
        error: SavedError,
    },
    /// One of them does not state when it began, so its times cannot be compared with others.
    #[error("{name} does not state when its recording began, so its times cannot be compared")]
    NoStart {
        /// Its name.
        name: String,
    },
    /// Two are of different machines, or of different boots of one: their process ids are
    /// unrelated.
    #[error("{first} and {second} are of different machines or boots")]
    AnotherMachine {
        /// The name of one.
        first: String,
        /// The name of the other.
        second: String,
    },
    /// Two are of one recording.
    #[error("{first} and {second} are the same recording")]
    SameRecording {
        /// The name of one.
        first: String,
        /// The name of the other.
        second: String,
    },
    /// Two contain a process with the same id, and no evidence that it is one process, or that one
    /// ended before the other started.
    #[error(
        "{first} and {second} both have {process}, and neither states whether it is the same process"
    )]
    SameProcess {
        /// The name of one.
        first: String,
        /// The name of the other.
        second: String,
        /// The process.
        process: String,
    },
}

/// Reads saved timelines of one machine, each with its name for messages, into an empty session.
/// Time 0 is the start of the earliest. Returns the diagnostics of the traces.
///
/// A process of one timeline has the answers of that timeline. A process of several has those of
/// one recording with the data of all; the time between two of them is a loss. It is the same
/// process if the starts are equal, or if modules or images of both are at the same addresses.
/// Losses apply to all processes, whose certainty may decrease.
///
/// # Errors
///
/// [`MergeError`] if one is damaged, or if they do not belong together. The session is then
/// unusable.
pub fn merge(
    files: &[(&str, SavedTimeline<'_>)],
    session: &mut Session,
) -> Result<Diagnostics, MergeError> {
    let mut rows = Vec::new();
    for (name, file) in files {
        let recording = file.recording().map_err(|error| MergeError::Saved {
            name: (*name).to_owned(),
            error,
        })?;
        let start = recording.facts.start_unix_ns;
        match start {
            None if files.len() > 1 => {
                let name = (*name).to_owned();
                return Err(MergeError::NoStart { name });
            }
            start => rows.push((start.unwrap_or(0), *name, file, recording)),
        }
    }
    rows.sort_by_key(|&(start, name, ..)| (start, name));
    let key = |facts: &TraceFacts| (facts.start_unix_ns, facts.duration_ns, facts.process_id);
    for pair in rows.windows(2) {
        if key(&pair[0].3.facts) == key(&pair[1].3.facts) {
            let [first, second] = [pair[0].1, pair[1].1].map(str::to_owned);
            return Err(MergeError::SameRecording { first, second });
        }
    }
    let mut diagnostics = Diagnostics::default();
    let mut owners: BTreeMap<Option<u32>, (usize, &str)> = BTreeMap::new();
    let mut first: Option<(i128, &str)> = None;
    for (number, (start, name, file, recording)) in rows.into_iter().enumerate() {
        let mut base = Base {
            shift_ns: first.map_or(0, |(zero, _)| {
                u64::try_from(start - zero).unwrap_or(u64::MAX)
            }),
            joins_within_ns: first.map(|_| CLOCK_ERROR_NS),
            ..Base::default()
        };
        let before = session.machine.processes.all.end();
        let until = session.machine.facts.duration_ns;
        if let Some((_, earliest)) = first {
            is_same_machine(&session.machine.facts, earliest, &recording.facts, name)?;
        }
        first.get_or_insert((start, name));
        add_recording(session, &base, name, &recording, files.len() > 1);
        let read = file.read_rows(session, &mut base);
        read.map_err(|error| MergeError::Saved {
            name: name.to_owned(),
            error,
        })?;
        if base.processes.iter().any(|process| process.known.is_some()) {
            join_times(session, until, base.shift_ns);
        }
        let processes = &session.machine.processes;
        let pids: Vec<Option<u32>> = processes.all.indexed().map(|(_, it)| it.pid).collect();
        for &pid in &pids[before..] {
            if let Some(&(_, first)) = owners.get(&pid).filter(|(owner, _)| *owner != number)
                && !are_distinct(
                    processes
                        .incarnations(pid)
                        .map(|it| &processes.all[it.index()]),
                )
            {
                return Err(MergeError::SameProcess {
                    first: first.to_owned(),
                    second: name.to_owned(),
                    process: pid.map_or("an unnamed process".to_owned(), |pid| {
                        format!("process {pid}")
                    }),
                });
            }
            owners.insert(pid, (number, name));
        }
        add_diagnostics(
            &mut diagnostics,
            name,
            recording.diagnostics,
            files.len() > 1,
        );
    }
    Ok(diagnostics)
}

/// Recordings state when they began as Windows' SYSTEMTIME or UNIX time, in ms or finer.
const CLOCK_ERROR_NS: u64 = 2_000_000;

/// Records that processes are in two recordings: the clocks differ by up to their error, and what
/// happened after the end of one and before the start of the other is lost.
fn join_times(session: &mut Session, until_ns: u64, began_ns: u64) {
    let facts = &mut session.machine.facts;
    facts.clock_error_ns = facts.clock_error_ns.max(CLOCK_ERROR_NS);
    if began_ns > until_ns.saturating_add(CLOCK_ERROR_NS) {
        session.losses.push(Loss::between(until_ns, began_ns));
    }
}

/// Returns whether the incarnations of a process id are known to be distinct: a process without a
/// recorded start could be the same as the one before.
fn are_distinct<'p>(incarnations: impl Iterator<Item = &'p Process>) -> bool {
    let lives: Vec<Range<Option<u64>>> = incarnations.map(|it| it.start..it.end).collect();
    lives.windows(2).all(|pair| {
        let started = pair[1].start;
        started.is_some()
            && pair[0].start <= started
            && pair[0].end.is_none_or(|end| Some(end) <= started)
    })
}

fn is_same_machine(
    first: &TraceFacts,
    first_name: &str,
    second: &TraceFacts,
    second_name: &str,
) -> Result<(), MergeError> {
    let differ = |a: &str, b: &str| !a.is_empty() && !b.is_empty() && a != b;
    let hosts = first.host.as_ref().zip(second.host.as_ref());
    let other_host =
        hosts.is_some_and(|(a, b)| differ(&a.name, &b.name) || differ(&a.boot_id, &b.boot_id));
    if other_host
        || first
            .pointer_size
            .zip(second.pointer_size)
            .is_some_and(|(a, b)| a != b)
    {
        return Err(MergeError::AnotherMachine {
            first: first_name.to_owned(),
            second: second_name.to_owned(),
        });
    }
    Ok(())
}

/// Adds the properties of a whole recording.
fn add_recording(
    session: &mut Session,
    base: &Base,
    name: &str,
    recording: &RecordingRow,
    is_joined: bool,
) {
    let facts = &mut session.machine.facts;
    if base.joins_within_ns.is_none() && facts.format.is_empty() {
        *facts = recording.facts.clone();
    } else {
        let other = &recording.facts;
        let end = other.duration_ns.saturating_add(base.shift_ns);
        facts.duration_ns = facts.duration_ns.max(end);
        facts.clock_error_ns = facts.clock_error_ns.max(other.clock_error_ns);
        facts.lacks_samples |= other.lacks_samples;
        facts.process_id = facts
            .process_id
            .filter(|_| other.process_id == facts.process_id);
        facts.host = facts.host.take().or_else(|| other.host.clone());
        facts.pointer_size = facts.pointer_size.or(other.pointer_size);
        if facts.sample_interval_ns != other.sample_interval_ns {
            facts.sample_interval_ns = None;
            facts.sample_interval_changes.clear();
        }
    }
    if is_joined {
        let mut joined = JoinedRecording::new(name, "saved timeline", ClockMatch::Wall);
        joined.error_ns = CLOCK_ERROR_NS;
        joined.offset_ns = i64::try_from(base.shift_ns).unwrap_or(i64::MAX);
        facts.recordings.push(joined);
    }
    session.machine.counters.add(&recording.counters);
    session.markers.left_out += recording.markers_left_out;
    session.see_thumb(recording.is_thumb);
    for loss in &recording.losses {
        let mut loss = *loss;
        base.times([&mut loss.from_ns, &mut loss.to_ns]);
        session.losses.push(loss);
    }
}

fn add_diagnostics(all: &mut Diagnostics, name: &str, mut own: Diagnostics, is_joined: bool) {
    if is_joined {
        let list = own.list.iter_mut().map(|it| &mut it.file);
        list.for_each(|file| *file = Some(file.take().unwrap_or_else(|| name.to_owned())));
    }
    all.list.append(&mut own.list);
    all.gaps.append(&mut own.gaps);
    all.gaps_left_out += own.gaps_left_out;
}
