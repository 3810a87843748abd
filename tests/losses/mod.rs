//! Damaged copies of traces, and the comparison of their answers with those of the whole trace.

pub mod blocks;
pub mod etl;
pub mod perf;

use std::collections::HashMap;
use std::io::Cursor;

use chronosym::{
    Certainty, Code, EventSelector, Filter, Frame, Input, Opener, Options, Resolver,
    SampleSelection,
};
use libtest_mimic::Failed;

/// Deterministic numbers (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end.max(1)
    }
}

/// The frames of a sample: address, whether it is inlined, what is named, and the certainty.
type Frames = Vec<(u64, bool, Option<String>, Option<Certainty>)>;

/// The samples of a trace by time and thread, and whether it is known to be incomplete.
pub struct Answers {
    samples: HashMap<(u64, u64), Frames>,
    is_incomplete: bool,
}

/// Reads a trace; the samples are those of a profiler, and the workload's own events.
pub fn read(bytes: &[u8]) -> Result<Answers, Failed> {
    let events = ["Microsoft-DotNETCore-SampleProfiler", "Workload-Truth"];
    let events = events.iter().filter_map(|name| EventSelector::parse(name));
    let options = match bytes.starts_with(b"Nettrace\x14") || bytes.starts_with(b"\x14\0\0\0") {
        true => Options::from(SampleSelection::Events(events.collect())),
        false => Options::default(),
    };
    let input = Input::stream("trace", Cursor::new(bytes.to_vec()));
    let (timeline, diagnostics) = Opener::new().open([input])?.timeline(options)?;
    let mut resolver = Resolver::new(&timeline, None);
    let mut samples = HashMap::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let tid = timeline.thread_view(class.thread).map(|thread| thread.tid);
        let Some((stack, _)) = resolver.resolve(class, time) else {
            return;
        };
        let frames = resolver.stack(stack).map(|id| {
            let frame = resolver.frame(id);
            (frame.address, frame.inlined, what(frame), frame.certainty)
        });
        samples.insert((time, tid.unwrap_or_default()), frames.collect());
    });
    let is_damage = |it: &chronosym::Diagnostic| {
        use chronosym::DiagnosticKind::{Limit, Unused};
        !matches!(it.kind, Unused | Limit)
    };
    Ok(Answers {
        samples,
        is_incomplete: !timeline.losses().is_empty() || diagnostics.list.iter().any(is_damage),
    })
}

/// Returns what a frame names: a function, or a place in an image.
fn what(frame: &Frame) -> Option<String> {
    match (frame.name(), &frame.code) {
        (Ok(name), _) => Some(name.to_owned()),
        (Err(_), Code::Image { rva, .. }) => Some(format!("{}+{rva:#x}", frame.module()?)),
        _ => None,
    }
}

/// The outcome of all trials of a trace.
#[derive(Debug, Default)]
pub struct Score {
    trials: u64,
    right: u64,
    /// Exact without the loss.
    exact: u64,
    /// Of these, no longer exact.
    doubted: u64,
    wrong: u64,
    /// Wrong and exact in a copy that shows no sign of a loss.
    unnoticed: u64,
    wrong_and_exact: Vec<String>,
}

impl Score {
    /// Compares a damaged copy with the whole trace.
    pub fn add(&mut self, what: &str, whole: &Answers, damaged: &Answers) {
        self.trials += 1;
        for (sample, frames) in &damaged.samples {
            if let Some(truth) = whole.samples.get(sample) {
                let what = format!("{what} {sample:?}");
                self.compare(&what, truth, frames, damaged.is_incomplete);
            }
        }
    }

    /// Compares the frames of a stack, by address; inlinees only if both have the same number.
    fn compare(&mut self, what: &str, whole: &Frames, damaged: &Frames, is_noticed: bool) {
        let hosts = |frames: &Frames| -> Frames {
            let hosts = frames.iter().filter(|frame| !frame.1);
            hosts.cloned().collect()
        };
        let (whole_hosts, damaged_hosts) = (hosts(whole), hosts(damaged));
        let addresses = |frames: &Frames| frames.iter().map(|frame| frame.0).collect::<Vec<_>>();
        if addresses(&whole_hosts) != addresses(&damaged_hosts) {
            return;
        }
        let (whole, damaged) = match whole.len() == damaged.len() {
            true => (whole, damaged),
            false => (&whole_hosts, &damaged_hosts),
        };
        for ((address, _, truth, sure), (_, _, name, certainty)) in whole.iter().zip(damaged) {
            let (Some(truth), Some(name)) = (truth, name) else {
                continue;
            };
            let (was_exact, is_exact) = (
                *sure == Some(Certainty::Exact),
                *certainty == Some(Certainty::Exact),
            );
            if truth == name {
                self.right += 1;
                self.exact += u64::from(was_exact);
                self.doubted += u64::from(was_exact && !is_exact);
            } else {
                self.wrong += 1;
                self.unnoticed += u64::from(is_exact && !is_noticed);
                if is_exact && is_noticed {
                    let text = format!("{what}: {address:#x} is {truth}, not {name}");
                    self.wrong_and_exact.push(text);
                }
            }
        }
    }

    /// Prints the score. No name may be wrong and exact if a loss was noticed; `is_visible` states
    /// that every loss is.
    pub fn check(self, is_visible: bool) -> Result<(), Failed> {
        let share = self.doubted as f64 * 100.0 / self.exact.max(1) as f64;
        println!(
            "{} trials: {} right, {share:.1} % of the exact ones no longer exact, {} wrong, {} of them exact without a sign of a loss",
            self.trials, self.right, self.wrong, self.unnoticed
        );
        if !self.wrong_and_exact.is_empty() || is_visible && self.unnoticed > 0 {
            let first: Vec<_> = self.wrong_and_exact.iter().take(10).collect();
            let count = self.wrong_and_exact.len() as u64 + self.unnoticed;
            return Err(format!("{count} names are wrong and exact: {first:#?}").into());
        }
        if self.trials == 0 || self.right == 0 {
            return Err("nothing was compared".into());
        }
        Ok(())
    }
}

/// Overwrites parts of a trace after its first bytes, or cuts it short.
pub fn overwrite(bytes: &[u8], seed: u64) -> Vec<u8> {
    const HEAD: usize = 1024;
    let mut random = Random::new(seed);
    let mut copy = bytes.to_vec();
    let place = |random: &mut Random| HEAD + random.below(bytes.len().saturating_sub(2 * HEAD));
    if seed.is_multiple_of(3) {
        copy.truncate(place(&mut random));
        return copy;
    }
    for _ in 0..4 {
        let at = place(&mut random);
        let end = (at + 64 + random.below(4000)).min(copy.len());
        let filler = if seed.is_multiple_of(2) { 0 } else { 0xcc };
        copy[at..end].fill(filler);
    }
    copy
}
