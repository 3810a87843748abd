#![expect(clippy::arithmetic_side_effects, reason = "counts of what was read")]

use chronosym_types::Gaps;

/// What was damaged, lost or unknown in a trace, counted.
///
/// It grows while the trace is read and is complete once
/// [`next_region`](crate::Reader::next_region) has returned `None`.
///
/// # Examples
///
/// ```
/// use chronosym_nettrace::{Options, Reader};
/// # let mut writer = chronosym_support::nettrace::NettraceWriter::v4();
/// # let tick = writer.event_type("My-EventSource", 1, 0);
/// # writer.event(tick, 300, 7, &[], &[]);
/// # writer.lose(7, 5);
/// # writer.event(tick, 400, 7, &[], &[]);
/// # let trace = writer.finish();
///
/// // A trace whose thread 7 dropped five events between 300 and 400 ns.
/// let mut reader = Reader::new(&trace[..], Options::default())?;
/// while reader.next_region()?.is_some() {}
///
/// let diagnostics = reader.diagnostics();
/// assert_eq!((diagnostics.events, diagnostics.lost_events()), (2, 5));
/// assert_eq!(diagnostics.losses[0].thread_id, Some(7));
/// let window = diagnostics.loss_windows[0];
/// assert_eq!((window.from_ns, window.to_ns), (300, 400));
/// # Ok::<(), chronosym_nettrace::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes read from the source.
    pub bytes_read: u64,
    /// Events delivered.
    pub events: u64,
    /// Event type definitions read, repeated ones included.
    pub metadata_records: u64,
    /// Stacks read.
    pub stacks: u64,
    /// Sequence points passed.
    pub sequence_points: u64,
    /// The unusable parts and their causes, including bytes after the end mark, and the end of a
    /// trace without one.
    pub gaps: Gaps,
    /// Undecodable metadata and thread entries; those after them are read. Undecodable events are
    /// gaps.
    pub bad_records: u64,
    /// Blocks and objects of unknown kinds, skipped.
    pub unknown_blocks: u64,
    /// Blocks whose alignment shows that bytes before them are missing.
    pub misaligned_blocks: u64,
    /// Events that occur twice in the file, by thread, sequence number and time; skipped the second
    /// time.
    pub repeated_events: u64,
    /// Events whose type was never defined; skipped.
    pub unknown_metadata: u64,
    /// Events whose stack id is undefined, delivered without a stack.
    pub unknown_stacks: u64,
    /// V6 events whose thread index is undefined, delivered with thread id 0.
    pub unknown_threads: u64,
    /// V6 events whose label list is undefined, delivered without labels.
    pub unknown_labels: u64,
    /// Event types with an unreadable field, or an unreadable list of fields.
    pub unreadable_fields: u64,
    /// Runs of events of threads beyond 262,144 between two sequence points: their sequence numbers
    /// are not tracked, and their losses are unknown.
    pub unfollowed_threads: u64,
    /// Definitions of event types beyond the first 65,536; their events count as those of undefined
    /// types.
    pub event_types_left_out: u64,
    /// Unknown options of V6 types and threads; the options before them are used.
    pub unknown_options: u64,
    /// Regions that were delivered before their sequence point because they reached
    /// [`Options::region_limit`](crate::Options::region_limit): time order across their border is
    /// not certain.
    pub forced_regions: u64,
    /// Events that the traced process dropped, by capture thread, in order of first loss.
    pub losses: Vec<ThreadLoss>,
    /// Time windows in which events of any thread are missing, dropped or lost with a damaged part
    /// of the trace, in file order; at most 4,096 windows, the last of which then grows.
    pub loss_windows: Vec<LossWindow>,
}

impl Diagnostics {
    /// Returns whether the trace was whole and read entirely, and no event was lost.
    pub fn is_clean(&self) -> bool {
        let counted = Self {
            bytes_read: self.bytes_read,
            events: self.events,
            metadata_records: self.metadata_records,
            stacks: self.stacks,
            sequence_points: self.sequence_points,
            ..Self::default()
        };
        *self == counted
    }

    /// Events that the traced process dropped, over all threads.
    pub fn lost_events(&self) -> u64 {
        self.losses.iter().map(|loss| loss.events).sum()
    }
}

/// Events dropped on one capture thread, found by gaps in its sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadLoss {
    /// The capture thread as events name it: an OS thread id, in V6 a thread index.
    pub capture_thread: u64,
    /// OS thread id; in V6 from the thread's entry, if it has one.
    pub thread_id: Option<u64>,
    /// Events dropped.
    pub events: u64,
    /// Gaps found.
    pub gaps: u64,
}

/// A time window in which events are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossWindow {
    /// The thread whose they are, as in [`ThreadLoss::capture_thread`]; in a window that grew, the
    /// first one. `None` for events of any thread, which were in a part that cannot be read.
    pub capture_thread: Option<u64>,
    /// Last event or sequence point before the gap, in ns since the trace start.
    pub from_ns: u64,
    /// First event or sequence point after the gap, in ns since the trace start.
    pub to_ns: u64,
    /// Events missing, as far as sequence numbers count them.
    pub events: u64,
}

const MAX_LOSS_WINDOWS: usize = 4_096;

impl Diagnostics {
    /// Counts events the traced process dropped; `slot` is the thread's index in `losses` once it
    /// has one.
    pub(crate) fn add_loss(
        &mut self,
        slot: &mut Option<usize>,
        (capture_thread, thread_id): (u64, Option<u64>),
        events: u64,
    ) {
        let index = *slot.get_or_insert_with(|| {
            self.losses.push(ThreadLoss {
                capture_thread,
                thread_id,
                events: 0,
                gaps: 0,
            });
            self.losses.len() - 1
        });
        if let Some(loss) = self.losses.get_mut(index) {
            loss.events += events;
            loss.gaps += 1;
        }
    }

    /// Notes when events are missing.
    pub(crate) fn add_window(&mut self, window: LossWindow) {
        if self.loss_windows.len() < MAX_LOSS_WINDOWS {
            self.loss_windows.push(window);
        } else if let Some(last) = self.loss_windows.last_mut() {
            last.from_ns = last.from_ns.min(window.from_ns);
            last.to_ns = last.to_ns.max(window.to_ns);
            last.events += window.events;
        }
    }
}
