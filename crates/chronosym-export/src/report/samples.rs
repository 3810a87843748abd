//! The samples of a report by time, merged if there are too many.

use std::collections::hash_map::Entry;

use chronosym_core::{Activity, ResolvedStack, ThreadIndex};
use chronosym_types::zigzag;
use rustc_hash::FxHashMap;

use super::calls::Calls;
use super::columns::{Columns, deltas};
use crate::series::{Series, TimedSample};
use crate::tables::Numbered;
use crate::weight::add;

/// One sample, or samples of a thread with equal stacks and activities in one time slice.
#[derive(Clone, Copy)]
pub(super) struct Sample {
    /// An index of [`Samples::threads`].
    pub thread: u32,
    pub time_ns: u64,
    /// A node of [`Calls`].
    pub node: u32,
    pub activity: u8,
    pub weight: u64,
    pub count: u64,
}

impl Sample {
    fn of(sample: &TimedSample, thread: usize, node: u32) -> Self {
        Sample {
            thread: thread as u32,
            time_ns: sample.time_ns,
            node,
            // The index in the list of activities, which the script has, too.
            activity: sample.activity as u8,
            weight: sample.weight,
            count: 1,
        }
    }

    /// Adds a sample of the same thread, stack and activity.
    fn add(&mut self, sample: &Sample) {
        add(&mut self.weight, sample.weight);
        self.count += sample.count;
    }
}

pub(super) struct Samples {
    samples: Vec<Sample>,
    pub threads: Numbered<ThreadIndex>,
    /// The length of the slices in which samples were merged, in ns.
    pub slice_ns: Option<u64>,
    /// The number of samples of a thread of which the first one is kept; 1 for all.
    pub every: u64,
}

/// Slices are at most this part of the time: longer ones would be seen on a time axis.
const FEWEST_SLICES: u64 = 1_000;

impl Samples {
    /// Merges samples of equal thread, stack and activity in slices of time, whose length doubles
    /// until at most `max_samples` remain: totals stay exact. If slices would become too long, the
    /// first of every few samples of each thread is kept instead, with the weight of all.
    pub fn new(series: &Series, calls: &mut Calls<'_>, max_samples: usize) -> Self {
        let mut threads = Numbered::default();
        let mut samples = all(series, calls, &mut threads);
        let times = samples.iter().map(|sample| sample.time_ns);
        let span = times.clone().max().unwrap_or(0) - times.min().unwrap_or(0);
        let most_ns = span / FEWEST_SLICES;
        let (mut slice_ns, mut every) = (None, 1);
        if samples.len() > max_samples {
            // Each thread has at least one sample in each slice in which it was seen.
            let first = (span / max_samples.max(1) as u64).saturating_mul(threads.len() as u64);
            let mut slice = first.max(1);
            while samples.len() > max_samples && slice <= most_ns {
                samples = merged(&mut samples, slice);
                slice_ns = Some(slice);
                slice = slice.saturating_mul(2);
            }
        }
        if samples.len() > max_samples {
            samples = all(series, calls, &mut threads);
            every = samples.len().div_ceil(max_samples.max(1)) as u64;
            samples = thinned(&samples, every);
            slice_ns = None;
        }
        // Stable: samples of one time keep their order.
        samples.sort_by_key(|sample| sample.time_ns);
        Samples {
            samples,
            threads,
            slice_ns,
            every,
        }
    }

    /// Adds the samples by time to `columns`; `place` has the place of each node. Returns whether
    /// weights are stated as differences to the time until the thread's next sample.
    pub fn write(&self, place: &[u32], columns: &mut Columns) -> bool {
        write(&self.samples, self.threads.len(), place, columns)
    }
}

/// As [`Samples::write`].
pub(super) fn write(
    samples: &[Sample],
    threads: usize,
    place: &[u32],
    columns: &mut Columns,
) -> bool {
    let of = |part: fn(&Sample) -> u64| samples.iter().map(part);
    columns.add("sample.time", deltas(of(|sample| sample.time_ns)));
    columns.add("sample.thread", thread_numbers(samples, threads));
    // Stacks of one thread resemble each other.
    let mut last = vec![0; threads];
    let nodes = samples.iter().map(|sample| {
        let node = u64::from(place[sample.node as usize]);
        let before = std::mem::replace(&mut last[sample.thread as usize], node);
        zigzag(node.wrapping_sub(before))
    });
    columns.add("sample.stack", nodes);
    columns.add("sample.activity", of(|sample| sample.activity.into()));
    columns.add("sample.count", of(|sample| sample.count));
    let plain: Vec<u64> = deltas(of(|sample| sample.weight)).collect();
    let until_next = weights_until_next(samples, threads);
    let bytes = |values: &[u64]| -> u64 {
        let bits = values
            .iter()
            .map(|value| u64::from(64 - value.leading_zeros()));
        bits.map(|bits| bits / 7 + 1).sum()
    };
    let is_until_next = bytes(&until_next) < bytes(&plain);
    columns.add(
        "sample.weight",
        if is_until_next { until_next } else { plain },
    );
    is_until_next
}

/// Returns the thread of each sample: 0 for the one that followed the sample before it the last
/// time, else its index from 1. A profiler visits threads in the same order repeatedly.
fn thread_numbers(samples: &[Sample], threads: usize) -> Vec<u64> {
    let mut follower = vec![None; threads];
    let mut before: Option<usize> = None;
    let number = |sample: &Sample| {
        let thread = sample.thread;
        let expected = before.and_then(|before| follower[before].replace(thread));
        before = Some(thread as usize);
        if expected == Some(thread) {
            0
        } else {
            u64::from(thread) + 1
        }
    };
    samples.iter().map(number).collect()
}

fn weights_until_next(samples: &[Sample], threads: usize) -> Vec<u64> {
    let mut next: Vec<Option<u64>> = vec![None; threads];
    let differences = samples.iter().rev().map(|sample| {
        let next = next[sample.thread as usize].replace(sample.time_ns);
        let expected = next.map_or(0, |next| next - sample.time_ns);
        zigzag(sample.weight.wrapping_sub(expected))
    });
    let mut differences: Vec<u64> = differences.collect();
    differences.reverse();
    differences
}

/// Returns the samples of a series.
fn all(series: &Series, calls: &mut Calls<'_>, threads: &mut Numbered<ThreadIndex>) -> Vec<Sample> {
    let samples = series.samples.iter().map(|sample| {
        let thread = threads.insert_full(sample.thread).0;
        Sample::of(sample, thread, calls.node(sample.stack))
    });
    samples.collect()
}

/// Returns the sums of samples of equal thread, stack and activity, at one time.
pub(super) fn sums(
    samples: &[TimedSample],
    time_ns: u64,
    threads: &Numbered<ThreadIndex>,
    nodes: &FxHashMap<ResolvedStack, u32>,
) -> Vec<Sample> {
    let mut sums: FxHashMap<(ThreadIndex, ResolvedStack, Activity), Sample> = FxHashMap::default();
    for sample in samples {
        match sums.entry((sample.thread, sample.stack, sample.activity)) {
            Entry::Occupied(mut sum) => sum.get_mut().add(&Sample::of(sample, 0, 0)),
            Entry::Vacant(first) => {
                let thread = threads.get_index_of(&sample.thread);
                let node = nodes.get(&sample.stack);
                if let (Some(thread), Some(&node)) = (thread, node) {
                    let own = Sample::of(sample, thread, node);
                    first.insert(Sample { time_ns, ..own });
                }
            }
        }
    }
    let mut sums: Vec<Sample> = sums.into_values().collect();
    sums.sort_unstable_by_key(|sum| (sum.thread, sum.node, sum.activity));
    sums
}

/// Merges samples in slices of time; `samples` are in the order of slices.
fn merged(samples: &mut [Sample], slice_ns: u64) -> Vec<Sample> {
    let mut merged: Vec<Sample> = Vec::new();
    for slice in samples.chunk_by_mut(|a, b| a.time_ns / slice_ns == b.time_ns / slice_ns) {
        let key = |sample: &Sample| (sample.thread, sample.node, sample.activity);
        slice.sort_by_key(key);
        for same in slice.chunk_by(|a, b| key(a) == key(b)) {
            let mut sum = Sample {
                weight: 0,
                count: 0,
                ..same[0]
            };
            same.iter().for_each(|sample| sum.add(sample));
            merged.push(sum);
        }
    }
    merged
}

/// Keeps the first of every `n` samples of each thread, with the weight and count of all `n`.
fn thinned(samples: &[Sample], n: u64) -> Vec<Sample> {
    // Of each thread the sample that was kept last.
    let mut last: FxHashMap<u32, usize> = FxHashMap::default();
    let mut kept: Vec<Sample> = Vec::new();
    for sample in samples {
        match last.get(&sample.thread).map(|&last| &mut kept[last]) {
            Some(sum) if sum.count < n => sum.add(sample),
            _ => {
                last.insert(sample.thread, kept.len());
                kept.push(*sample);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_samples_keep_their_sums() {
        let sample = |time_ns, thread, node| Sample {
            thread,
            time_ns,
            node,
            activity: 0,
            weight: time_ns + 1,
            count: 1,
        };
        let mut samples: Vec<Sample> = (0..100).map(|i| sample(i, i as u32 % 2, 7)).collect();
        let third = thinned(&samples, 3);
        assert_eq!(third.len(), 34);
        assert_eq!((third[2].time_ns, third[2].thread), (6, 0));
        assert_eq!((third[2].count, third[2].weight), (3, 7 + 9 + 11));
        assert_eq!(third.iter().map(|sum| sum.weight).sum::<u64>(), 5050);
        assert_eq!(third.iter().map(|sum| sum.count).sum::<u64>(), 100);
        let ten = merged(&mut samples, 10);
        assert_eq!(ten.len(), 20);
        assert!(ten.iter().all(|sum| sum.count == 5));
        assert_eq!((ten[0].time_ns, ten[0].weight), (0, 1 + 3 + 5 + 7 + 9));
        let mut ten = ten;
        let twenty = merged(&mut ten, 20);
        assert_eq!((twenty.len(), twenty[0].count), (10, 10));
        let total: u64 = twenty.iter().map(|sum| sum.weight).sum();
        assert_eq!(total, 100 * 101 / 2);
    }
}
