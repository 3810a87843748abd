//! Statistics of how the frames of samples are named.

use std::collections::{BTreeMap, BTreeSet};

use chronosym_core::{Code, Evidence, Frame, NameReason, ProcessIndex, Profile, ResolvedStack};
use chronosym_symbolizer::Symbolizer;
use rustc_hash::FxHashMap;

use crate::annotate::module_of;
use crate::header::describe;

/// Statistics of the default samples of a trace.
#[derive(Debug)]
pub(super) struct Summary {
    /// Their description, in a few lines.
    pub description: String,
    /// The number of samples of idle processors, which are left out.
    pub idle: u64,
    /// The frames of all stacks.
    pub frames: Naming,
    /// The leaves alone: as many as samples.
    pub own: Naming,
    pub with_line: u64,
    /// Samples with a frame that a lost event could refute.
    pub after_loss: u64,
    /// Number of samples with one frame, and number of samples with one or two frames of user code.
    pub single: u64,
    pub shallow: u64,
    pub samples_of: BTreeMap<ProcessIndex, u64>,
    /// The symbol files that were found for the code of samples.
    pub symbol_files: BTreeSet<String>,
}

/// Numbers of named frames, and of unnamed ones by reason.
#[derive(Debug, Default)]
pub(super) struct Naming {
    pub total: u64,
    pub named: u64,
    /// Number of named frames whose name is a guess.
    pub guessed: u64,
    pub evidence: BTreeMap<Evidence, u64>,
    pub reasons: BTreeMap<NameReason, u64>,
}

impl Naming {
    fn count(&mut self, frame: &Frame, samples: u64) {
        self.total += samples;
        match frame.name() {
            Ok(_) => {
                self.named += samples;
                if frame.is_guess() {
                    self.guessed += samples;
                }
                if let Some(evidence) = frame.evidence {
                    *self.evidence.entry(evidence).or_default() += samples;
                }
            }
            Err(reason) => *self.reasons.entry(reason).or_default() += samples,
        }
    }

    /// Returns the number of frames without a name because no symbol file is available.
    pub fn without_file(&self) -> u64 {
        let reasons = [
            NameReason::NoSymbolFile,
            NameReason::PathNotTrusted,
            NameReason::Offline,
        ];
        reasons.into_iter().map(|reason| self.unnamed(reason)).sum()
    }

    /// Returns the number of frames that have no name for a reason.
    pub fn unnamed(&self, reason: NameReason) -> u64 {
        self.reasons.get(&reason).copied().unwrap_or(0)
    }

    /// Returns a percentage of all frames.
    pub fn share(&self, n: u64) -> f64 {
        n as f64 * 100.0 / self.total.max(1) as f64
    }
}

impl Summary {
    pub fn new(profile: &Profile, symbols: &Symbolizer) -> Self {
        let timeline = profile.resolver.timeline();
        let classes = timeline.samples().classes().iter();
        let classes = classes.zip(timeline.samples().counts());
        let mut summary = Summary {
            description: describe(profile),
            idle: classes
                .filter(|(class, _)| class.idle)
                .map(|(_, count)| count)
                .sum(),
            frames: Naming::default(),
            own: Naming::default(),
            with_line: 0,
            after_loss: 0,
            single: 0,
            shallow: 0,
            samples_of: BTreeMap::new(),
            symbol_files: symbol_files(profile, symbols),
        };
        // Many threads may share one deep stack.
        let mut samples_of_stack: FxHashMap<ResolvedStack, u64> = FxHashMap::default();
        for entry in &profile.entries {
            if let Some(thread) = timeline.thread_view(entry.thread) {
                *summary.samples_of.entry(thread.process).or_default() += entry.samples;
            }
            *samples_of_stack.entry(entry.stack).or_default() += entry.samples;
        }
        for (stack, samples) in samples_of_stack {
            let resolver = &profile.resolver;
            let mut frames = resolver.stack(stack).map(|id| resolver.frame(id));
            if frames.any(|frame| frame.after_loss) {
                summary.after_loss += samples;
            }
            let (mut all, mut of_user) = (0_u32, 0_u32);
            for (depth, id) in profile.resolver.stack(stack).enumerate() {
                let frame = profile.resolver.frame(id);
                summary.frames.count(frame, samples);
                if depth == 0 {
                    summary.own.count(frame, samples);
                }
                summary.with_line += if frame.line.is_ok() { samples } else { 0 };
                all += u32::from(!frame.inlined);
                of_user += u32::from(!frame.inlined && frame.address >> 63 == 0);
            }
            summary.single += if all == 1 { samples } else { 0 };
            summary.shallow += if matches!(of_user, 1..=2) { samples } else { 0 };
        }
        summary
    }

    /// Returns the percentages of leaves and of all frames that `count` counts.
    pub fn share(&self, count: impl Fn(&Naming) -> u64) -> String {
        let [own, all] = [&self.own, &self.frames].map(|naming| naming.share(count(naming)));
        format!("{own:.0} % of self, {all:.0} % of all frames")
    }
}

/// Returns the symbol files of modules and images that have frames.
fn symbol_files(profile: &Profile, symbols: &Symbolizer) -> BTreeSet<String> {
    let timeline = profile.resolver.timeline();
    let (mut modules, mut images) = (BTreeSet::new(), BTreeSet::new());
    for frame in profile.resolver.frames() {
        modules.extend(module_of(frame, timeline));
        if let Code::Image { process, image, .. } = frame.code {
            images.insert((process, image));
        }
    }
    let modules = modules.into_iter().filter_map(|(process, module)| {
        let module = timeline.module_ref(process, module)?;
        symbols.module_pdb(&module).found.ok()
    });
    let images = images.into_iter().filter_map(|(process, image)| {
        let image = timeline.image_ref(process, image)?;
        symbols.image_symbols(&image).found.ok()
    });
    modules.chain(images).map(|file| file.to_string()).collect()
}
