//! Statistics of how the frames of samples are named.

use std::collections::{BTreeMap, BTreeSet};

use chronosym_core::{
    Code, Evidence, Frame, LimitReached, NameReason, ProcessIndex, Profile, ResolvedStack,
};
use chronosym_symbolizer::Symbolizer;

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
    /// The limit that left out frames.
    pub limit: Option<LimitReached>,
}

/// What the statistics need of a stack.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    after_loss: bool,
    /// Numbers of frames that are not inlined, all and of user code, up to three.
    frames: u8,
    of_user: u8,
}

impl Shape {
    /// Adds a frame.
    fn with(self, frame: &Frame) -> Self {
        let is_user = frame.address >> 63 == 0;
        Shape {
            after_loss: self.after_loss || frame.after_loss,
            frames: 3.min(self.frames + u8::from(!frame.inlined)),
            of_user: 3.min(self.of_user + u8::from(!frame.inlined && is_user)),
        }
    }
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
        if samples == 0 {
            return;
        }
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
            limit: profile.resolver.limit(),
        };
        let resolver = &profile.resolver;
        let mut own = vec![0; resolver.stacks().len()];
        for entry in &profile.entries {
            if let Some(thread) = timeline.thread_view(entry.thread) {
                *summary.samples_of.entry(thread.process).or_default() += entry.samples;
            }
            own[entry.stack.index()] += entry.samples;
        }
        // For each frame: the samples whose leaf it is, and all samples that contain it.
        let mut of_frames = vec![(0, 0); resolver.frames().len()];
        let mut shapes = Vec::with_capacity(own.len());
        let totals = resolver.totals(resolver.stacks().zip(own.iter().copied()));
        for ((stack, own), all) in resolver.stacks().zip(own).zip(totals) {
            let caller = resolver.caller(stack).map(ResolvedStack::index);
            let callers: Shape = caller.map_or_else(Shape::default, |caller| shapes[caller]);
            let frame = resolver.leaf(stack);
            let shape = callers.with(resolver.frame(frame));
            shapes.push(shape);
            let of_frame = &mut of_frames[frame.index()];
            *of_frame = (of_frame.0 + own, of_frame.1 + all);
            summary.after_loss += if shape.after_loss { own } else { 0 };
            summary.single += if shape.frames == 1 { own } else { 0 };
            summary.shallow += if matches!(shape.of_user, 1..=2) {
                own
            } else {
                0
            };
        }
        for (frame, (own, all)) in resolver.frames().iter().zip(of_frames) {
            summary.own.count(frame, own);
            summary.frames.count(frame, all);
            summary.with_line += if frame.line.is_ok() { all } else { 0 };
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
