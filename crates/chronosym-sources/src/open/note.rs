//! What was found wrong, as values that can be told apart and shown.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chronosym_events::DecodeError;
use chronosym_nettrace::{GapCause, GapTotal, Gaps};

use crate::etl::EtlReport;
use crate::perf::PerfReport;
use crate::script::ScriptReport;
use chronosym_core::LimitReached;
use chronosym_core::Timeline;

/// Something that is wrong with a recording. What is not concerned was read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A wrapper is damaged from some byte on; what comes before it is used.
    Damaged {
        /// What is damaged: a file, and what it is in.
        name: String,
        /// How.
        error: String,
    },
    /// A zip file has no readable list of entries; the entries themselves are looked for.
    NoZipList {
        /// The zip file.
        name: String,
        /// Why not.
        error: String,
    },
    /// An entry of a zip file cannot be read.
    DamagedEntry {
        /// The zip file.
        name: String,
        /// Position of the entry in the zip file's list, from 0.
        entry: usize,
        /// Why not.
        error: String,
    },
    /// Entries of a zip file lie in each other's bytes; all but the first of each such place were left out.
    OverlappingEntries {
        /// The zip file.
        name: String,
        /// How many were left out.
        entries: u64,
    },
    /// A limit was reached; what lies beyond was left out.
    Limit {
        /// What is too large.
        name: String,
        /// The limit.
        limit: LimitReached,
    },
    /// The trace ends in the middle.
    CutShort {
        /// Offset in the trace after the last byte that could be used.
        at_offset: u64,
        /// Bytes after it.
        bytes_lost: u64,
    },
    /// Parts of a trace could not be used; [`Report::gaps`](super::Report::gaps) says where.
    Gaps {
        /// Why.
        cause: GapCause,
        /// How many, and of how many bytes.
        total: GapTotal,
    },
    /// The runtime dropped events.
    EventsDropped {
        /// How many.
        events: u64,
        /// On how many threads.
        threads: usize,
    },
    /// Events whose payload does not decode.
    Undecodable {
        /// How many.
        events: u64,
        /// The event type, as `Provider/Name` or the like.
        event: String,
        /// Why.
        error: DecodeError,
    },
    /// A file that goes with a recording cannot be used as a whole.
    Companion {
        /// The file.
        name: String,
        /// What is wrong with it.
        error: String,
    },
    /// Something that happened more than once.
    Counted {
        /// How often.
        count: u64,
        /// What it says of the answers.
        kind: NoteKind,
        /// What, in words that follow the number.
        what: &'static str,
    },
}

/// What a note says of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoteKind {
    /// The recorder lost events: they were never in the recording.
    Loss,
    /// Parts of the recording cannot be read.
    Damage,
    /// A limit of this library was reached.
    Limit,
    /// Parts were read, and mean nothing that could be used.
    Unused,
}

use NoteKind::{Damage, Loss, Unused};

impl Note {
    /// What it says of the answers.
    pub fn kind(&self) -> NoteKind {
        match self {
            Note::Limit { .. } => NoteKind::Limit,
            Note::EventsDropped { .. } => Loss,
            Note::Undecodable { .. } => Unused,
            Note::Counted { kind, .. } => *kind,
            _ => Damage,
        }
    }

    /// What a reader of nettrace or netperf found.
    pub fn of_nettrace(found: &chronosym_nettrace::Diagnostics) -> Vec<Note> {
        let d = found;
        let dropped = (d.lost_events() > 0).then(|| Note::EventsDropped {
            events: d.lost_events(),
            threads: d.losses.len(),
        });
        #[rustfmt::skip]
        let rows = [
            (d.bad_records, Damage, "rows of metadata and threads make no sense and were left out"),
            (d.unknown_blocks, Unused, "blocks are of an unknown kind"),
            (d.unknown_metadata, Unused, "events have a type that was never defined"),
            (d.unknown_stacks, Unused, "events name a stack that is not there"),
            (d.unknown_threads, Unused, "events name a thread that is not there"),
            (d.unknown_labels, Unused, "events name labels that are not there"),
            (d.unreadable_fields, Unused, "event types have a field that cannot be read"),
            (d.unknown_options, Unused, "options of event types and threads are of an unknown kind"),
            (d.forced_regions, NoteKind::Limit, "times the events were too many to be put in order as a whole"),
        ];
        let gaps = Note::of_gaps(&d.gaps).into_iter();
        gaps.chain(dropped).chain(counted(&rows)).collect()
    }

    /// What could not be used of a trace.
    pub fn of_gaps(gaps: &Gaps) -> Vec<Note> {
        let cut = gaps.listed().iter().rev();
        let cut = cut.filter(|gap| gap.cause == GapCause::CutShort).take(1);
        let cut = cut.map(|gap| Note::CutShort {
            at_offset: gap.offset,
            bytes_lost: gap.length,
        });
        // Of one that is no longer listed the place is not known.
        let is_listed = cut.clone().next().is_some();
        let others = GapCause::ALL.into_iter().filter_map(|cause| {
            let total = gaps.of(cause);
            let counts = total.count > 0 && !(cause == GapCause::CutShort && is_listed);
            counts.then_some(Note::Gaps { cause, total })
        });
        cut.chain(others).collect()
    }

    /// What was found while a perf.data was read into a session.
    pub fn of_perf(report: &PerfReport) -> Vec<Note> {
        let d = &report.diagnostics;
        #[rustfmt::skip]
        let rows = [
            (u64::from(d.unfinished), Damage, "recording was never finished: the recorder was killed before it wrote what it knows of the machine"),
            (d.lost_records, Loss, "records were lost while recording"),
            (d.lost_samples, Loss, "samples were lost while recording"),
            (d.throttles, Loss, "times the kernel paused sampling, too many samples having come"),
            (d.cut_maps, Loss, "processes have more mappings than the recorder had time to list"),
            (d.bad_records, Damage, "records make no sense and were left out"),
            (d.bad_sections, Damage, "descriptions of the machine or of events cannot be read"),
            (d.bad_compressed_bytes, Damage, "compressed bytes cannot be unpacked"),
            (d.unknown_records, Unused, "records are of an unknown type"),
            (d.unknown_events, Unused, "samples are of an event that is not described, and were left out"),
            (d.late_records, Unused, "records could not be put in the order of time"),
            (d.forced_rounds, NoteKind::Limit, "times the records were too many to be put in order as a whole"),
            (d.aux_faults, Unused, "faults of hardware traces, which are not read"),
            (report.not_unwound, Unused, "samples have a copy of the user stack, which is not unwound: of user code they show the innermost frame"),
            (report.broken_walks, Unused, "samples have a copy of the user stack, which is unwound up to a frame whose caller cannot be found"),
            (report.without_deferred, Unused, "samples lack their frames of user code, which were to follow and did not"),
            (report.of_guests, Unused, "samples are of guests, whose addresses are another machine's, and were left out"),
        ];
        of_found(&d.gaps, &rows)
    }

    /// What a reader of jitdumps found.
    pub fn of_jitdump(found: &chronosym_perf::jitdump::Diagnostics) -> Vec<Note> {
        let d = found;
        #[rustfmt::skip]
        let rows = [
            (d.bad_records, Damage, "records of the jitdump make no sense and were left out"),
            (d.bad_lines, Damage, "line tables of the jitdump make no sense and were left out"),
            (d.unknown_records, Unused, "records of the jitdump are of an unknown type"),
            (d.late_records, Unused, "records of the jitdump are out of the order of time"),
        ];
        of_found(&d.gaps, &rows)
    }

    /// What was found while the text of `perf script` was read into a session.
    pub fn of_script(report: &ScriptReport) -> Vec<Note> {
        let d = &report.diagnostics;
        #[rustfmt::skip]
        let rows = [
            (d.unknown_lines, Damage, "lines are neither samples nor frames, and were left out"),
            (d.long_lines, NoteKind::Limit, "lines are too long, or too many for one sample, and were cut or left out"),
            (d.other_records, Unused, "lines tell of mappings and the like, which are not read from text"),
            (report.without_process, Unused, "samples do not say their process and were given to one by their thread: print them with -F +pid"),
        ];
        counted(&rows).collect()
    }

    /// What a reader of traces of LTTng found.
    pub fn of_ctf(found: &chronosym_ctf::Diagnostics) -> Vec<Note> {
        let d = found;
        #[rustfmt::skip]
        let rows = [
            (d.lost_events, Loss, "events were lost while recording"),
            (d.lost_packets, Loss, "packets were lost while recording"),
            (d.cut_streams, Damage, "streams of the trace end in the middle"),
            (d.bad_packets, Damage, "packets have something that is no event, and were left out from there on"),
            (d.bytes_skipped, Damage, "bytes could not be read as events"),
            (d.bad_definitions, Damage, "definitions of events cannot be read"),
            (d.unknown_streams, Unused, "streams are of a trace whose metadata is not at hand"),
            (d.late_events, Unused, "events could not be put in the order of time"),
        ];
        counted(&rows).collect()
    }

    /// What a reader of .etl found.
    pub fn of_etl(found: &chronosym_etl::Diagnostics) -> Vec<Note> {
        let d = found;
        #[rustfmt::skip]
        let rows = [
            (d.events_lost, Loss, "events were lost while recording"),
            (d.buffers_lost, Loss, "buffers were lost while recording"),
            (d.buffers_with_lost_events, Loss, "buffers are marked: events around them were lost"),
            (d.buffers_after_lost_buffer, Loss, "buffers are marked: a buffer before them was lost"),
            (d.lost_event_records, Loss, "times a real-time consumer was too slow and events were lost"),
            (d.clamped_times, Unused, "records are from before the start or from long after the end, and were moved there"),
            (d.unordered_buffers, Unused, "buffers had records out of the order of time, which were sorted"),
            (d.late_records, Unused, "records could not be put in the order of time"),
        ];
        of_found(&d.gaps, &rows)
    }

    /// Those, and what was found when they were read into a session.
    pub fn of_etl_report(report: &EtlReport) -> Vec<Note> {
        #[rustfmt::skip]
        let rows = [
            (report.undefined_stack_keys, Unused, "stack keys were never defined"),
            (report.late_stack_parts, Unused, "parts of stacks came more than 2 s after their event and were left out"),
            (report.unreadable_descriptions, Unused, UNREADABLE_DESCRIPTIONS),
        ];
        let mut notes = Note::of_etl(&report.diagnostics);
        notes.extend(counted(&rows));
        notes
    }

    /// Descriptions of event types that cannot be read.
    pub fn unreadable_descriptions(count: u64) -> Option<Note> {
        counted(&[(count, Unused, UNREADABLE_DESCRIPTIONS)]).next()
    }

    /// What of the events could not be used for a timeline.
    pub fn of_timeline(timeline: &Timeline) -> Vec<Note> {
        let d = timeline.diagnostics();
        let undecodable = d
            .undecodable
            .iter()
            .map(|(id, error, events)| Note::Undecodable {
                events: *events,
                event: timeline.event_types()[id.index()].label(),
                error: *error,
            });
        #[rustfmt::skip]
        let rows = [
            (timeline.unbound_il_maps(), Unused, "IL maps belong to no code body"),
            (d.unbound_inline_trees, Unused, "inline trees belong to no code body"),
            (d.copies_left_out, NoteKind::Limit, "processes that began as copies of others have nothing mapped: there are too many"),
            (d.bad_perf_map_rows, Unused, "perf map lines are not of the form START SIZE name"),
            (d.unknown_event_types, Unused, "events are of a type that was never registered"),
            (d.stacks_dropped, NoteKind::Limit, "stacks were dropped: too many distinct frames"),
        ];
        undecodable.chain(counted(&rows)).collect()
    }
}

const UNREADABLE_DESCRIPTIONS: &str = "descriptions of event types cannot be read";

/// What could not be used, and what was counted.
fn of_found(gaps: &Gaps, rows: &[(u64, NoteKind, &'static str)]) -> Vec<Note> {
    let gaps = Note::of_gaps(gaps).into_iter();
    gaps.chain(counted(rows)).collect()
}

fn counted(rows: &[(u64, NoteKind, &'static str)]) -> impl Iterator<Item = Note> {
    let rows = rows.iter().filter(|(count, ..)| *count > 0);
    rows.map(|&(count, kind, what)| Note::Counted { count, kind, what })
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Damaged { name, error } => {
                write!(f, "{name} is damaged: {error}; reading what is there")
            }
            Note::NoZipList { name, error } => write!(
                f,
                "{name} is damaged or cut short ({error}); reading what is there"
            ),
            Note::DamagedEntry { name, entry, error } => {
                write!(f, "{name}: entry {entry} is damaged: {error}")
            }
            Note::OverlappingEntries { name, entries } => write!(
                f,
                "{name}: {entries} entries lie in the bytes of others and were left out"
            ),
            Note::Limit { name, limit } => {
                write!(f, "{name}: {limit}; what lies beyond is left out")
            }
            Note::CutShort {
                at_offset,
                bytes_lost,
            } => write!(
                f,
                "the trace is cut short at byte {at_offset}: {bytes_lost} bytes of an unfinished part were dropped, all \
                 before them is used"
            ),
            Note::Gaps { cause, total } => {
                let (parts, were) = match total.count {
                    1 => ("part", "was"),
                    _ => ("parts", "were"),
                };
                write!(
                    f,
                    "{} {parts} of {} bytes {were} left out: {cause}",
                    total.count, total.bytes
                )
            }
            Note::EventsDropped { events, threads } => {
                write!(
                    f,
                    "the runtime dropped {events} events on {threads} threads"
                )
            }
            Note::Undecodable {
                events,
                event,
                error,
            } => {
                write!(f, "{events} {event} events do not decode: {error}")
            }
            Note::Companion { name, error } => write!(f, "{name}: {error}"),
            Note::Counted { count, what, .. } => write!(f, "{count} {what}"),
        }
    }
}

/// Notes of wrappers, which come up while what is in them is read, perhaps on another thread.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Vec<Note>>>);

impl Notes {
    pub(super) fn push(&self, note: Note) {
        self.list().push(note);
    }

    /// The notes so far; they are not kept.
    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut self.list())
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Note>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
