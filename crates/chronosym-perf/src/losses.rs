//! Records that the kernel lost because a ring buffer was full: when, and whether all of them were
//! samples.
//!
//! A `LOST` record precedes the next record of the same buffer. At the end the recorder states how
//! many records each event lost (perf 6.1 with Linux 6.0, or later). Only events that describe
//! processes lose descriptions of processes, so if those lost nothing, samples were lost.

use chronosym_types::hash::HashMap;

use crate::attr::Attrs;
use crate::buffers::Buffer;
use crate::diagnostics::LossWindow;
use crate::record::{Event, Record};

/// Losses after this number are merged.
const MAX_WINDOWS: usize = 4_096;

#[derive(Default)]
pub(crate) struct Losses {
    /// Time of the last record of each buffer.
    last_ns: HashMap<Buffer, u64>,
    /// The buffer of each `LOST` record.
    buffers: Vec<Option<Buffer>>,
    counts: HashMap<Option<Buffer>, Counts>,
    of_all: Counts,
}

/// Lost records of a buffer.
#[derive(Clone, Copy, Default)]
struct Counts {
    /// As `LOST` records count them.
    records: u64,
    /// As the recorder counts them: of events that only take samples, and of others.
    samples: u64,
    others: u64,
}

impl Counts {
    /// Returns whether the recorder's counts show that only samples were lost.
    fn are_samples(&self) -> bool {
        self.others == 0 && self.samples > 0 && self.samples >= self.records
    }

    /// Returns the number of lost records that no `LOST` record follows, if descriptions of
    /// processes may be among them.
    fn at_end(&self) -> u64 {
        let counted = self.samples.saturating_add(self.others);
        match self.others {
            0 => 0,
            _ => counted.saturating_sub(self.records),
        }
    }
}

impl Losses {
    /// Takes in the next record by time, and adds its loss. `id` returns that of the event that
    /// wrote it.
    pub(crate) fn take(
        &mut self,
        record: &Record<'_>,
        id: impl Fn() -> Option<u64>,
        attrs: &Attrs,
        windows: &mut Vec<LossWindow>,
    ) {
        match record.event {
            Event::Lost { id, records } => {
                let buffer = attrs.buffers.of(record, || Some(id));
                self.count(buffer, |counts| {
                    counts.records = counts.records.saturating_add(records)
                });
                self.buffers.push(buffer);
                let of_thread = matches!(buffer, Some(Buffer::Thread(_)));
                windows.push(LossWindow {
                    from_ns: buffer.and_then(|buffer| self.last_ns.get(&buffer).copied()),
                    to_ns: record.time_ns,
                    records,
                    process: record.pid.filter(|_| of_thread),
                    only_samples: false,
                });
            }
            // The kernel's own records of this type have a time; they count samples that no buffer
            // was asked to hold.
            Event::LostSamples {
                samples,
                filtered: false,
            } if record.time_ns.is_none() => {
                let attr = record.attr.and_then(|index| attrs.all().get(index));
                let only_samples = attr.is_some_and(|attr| !attr.describes_processes());
                let buffer = id().and_then(|id| attrs.buffers.of_id(id));
                self.count(buffer, |counts| {
                    let count = match only_samples {
                        true => &mut counts.samples,
                        false => &mut counts.others,
                    };
                    *count = count.saturating_add(samples);
                });
            }
            _ => {}
        }
        if let Some(time) = record.time_ns
            && let Some(buffer) = attrs.buffers.of(record, id)
        {
            self.last_ns.insert(buffer, time);
        }
    }

    fn count(&mut self, buffer: Option<Buffer>, add: impl Fn(&mut Counts)) {
        add(self.counts.entry(buffer).or_default());
        add(&mut self.of_all);
    }

    /// Completes the losses after the last record. The recorder's counts prove nothing if parts of
    /// the recording cannot be read.
    pub(crate) fn finish(&mut self, is_readable: bool, windows: &mut Vec<LossWindow>) {
        let Self {
            last_ns,
            buffers,
            counts,
            of_all,
        } = std::mem::take(self);
        for (window, buffer) in windows.iter_mut().zip(&buffers) {
            let own = counts.get(buffer).is_some_and(Counts::are_samples);
            window.only_samples = is_readable && (own || of_all.are_samples());
        }
        let known = counts
            .iter()
            .filter_map(|(buffer, counts)| Some(((*buffer)?, counts)));
        let mut at_end: Vec<_> = known.filter(|(_, counts)| counts.at_end() > 0).collect();
        at_end.sort_unstable_by_key(|(buffer, _)| *buffer);
        let unknown = counts.contains_key(&None) && of_all.at_end() > 0;
        let only = match last_ns.len() {
            1 => last_ns.values().next().copied(),
            _ => None,
        };
        let ends = at_end.iter().map(|(buffer, counts)| {
            let from_ns = last_ns.get(buffer).copied();
            (from_ns, counts.at_end())
        });
        let of_unknown = unknown.then_some((only, of_all.at_end()));
        windows.extend(ends.chain(of_unknown).map(|(from_ns, records)| LossWindow {
            from_ns,
            records,
            ..LossWindow::default()
        }));
        if windows.len() > MAX_WINDOWS {
            windows.retain(|window| !window.only_samples);
        }
        if windows.len() > MAX_WINDOWS {
            let rest = windows.split_off(MAX_WINDOWS);
            windows.extend(rest.into_iter().reduce(LossWindow::join));
        }
    }
}
