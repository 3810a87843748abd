//! Shaping of stacks before output: which stacks are included, and which of their frames are
//! merged.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use chronosym_core::{BinaryId, FrameId, Function, Profile, ResolvedStack, Resolver};

use crate::candidates::{CandidateFrames, CandidateInlinees};
use crate::pattern::{Pattern, PatternError};
use crate::user_code::UserCode;

/// Shapes resolved stacks. The default leaves them unchanged.
///
/// Patterns are those of [`Pattern`]; regular expressions need no slashes. The steps, in their order:
///
/// 1. [`include`](Shape::include) and [`exclude`](Shape::exclude) select stacks by their original
///    frames and the [candidates](Shape::candidate_inlinees). Only these two change the number of
///    samples.
/// 2. [`no_inlines`](Shape::no_inlines) and [`fold`](Shape::fold) remove frames: their weight is
///    their caller's. A stack without remaining frames becomes the single frame `[folded]`.
/// 3. [`just_my_code`](Shape::just_my_code) merges adjacent frames that are not user code into
///    `[framework]`, and [`group_modules`](Shape::group_modules) those of one module into a frame
///    with its name.
/// 4. [`collapse_recursion`](Shape::collapse_recursion) reduces repeated rounds of calls to one.
///
/// A merged frame has the address of the first of its frames, and neither line nor tier;
/// [`Resolver::stands_for`] returns their number.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
    fold: Vec<Pattern>,
    group_modules: bool,
    mine: Option<Vec<Pattern>>,
    no_inlines: bool,
    collapse_recursion: bool,
    candidates: Option<Arc<CandidateInlinees>>,
}

impl Shape {
    /// Shapes all stacks of a profile, and drops the entries of excluded ones. Entries whose stacks
    /// become equal stay separate.
    pub fn apply(&self, profile: &mut Profile) {
        let mut shaper = Shaper::new(self);
        let resolver = &mut profile.resolver;
        profile.entries.retain_mut(|entry| {
            let shaped = shaper.shape(resolver, entry.stack);
            entry.stack = shaped.unwrap_or(entry.stack);
            shaped.is_some()
        });
    }

    /// Includes only stacks with a frame that matches this pattern, or another included one.
    ///
    /// # Errors
    ///
    /// If the pattern is not a regular expression; likewise for [`Shape::exclude`] and
    /// [`Shape::fold`].
    pub fn include(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.include.push(Pattern::or_regex(pattern)?);
        Ok(self)
    }

    /// Excludes stacks with a frame that matches this pattern.
    pub fn exclude(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.exclude.push(Pattern::or_regex(pattern)?);
        Ok(self)
    }

    /// Merges frames that match this pattern into their callers.
    ///
    /// # Examples
    ///
    /// ```
    /// # use chronosym_core::facts::{At, Method, Sample};
    /// # use chronosym_core::{Action, Filter, Options, Session};
    /// # let mut session = Session::new(Options::default());
    /// # let at = At::new(0).process(42).thread(7);
    /// # session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Lock", "Enter", ""));
    /// # session.apply(at, Method::new(Action::Load, 2, 0x2000, 64).named("Ns.Type", "Main", ""));
    /// # session.sample(at.at(100), &[0x1010, 0x2020], Sample::cpu());
    /// # let timeline = session.finish();
    /// use chronosym_export::Shape;
    ///
    /// // The time of `Ns.Lock` belongs to its callers.
    /// let mut profile = timeline.profile(&Filter::default(), None);
    /// Shape::default().fold(r"^Ns\.Lock\.")?.apply(&mut profile);
    /// let leaf = profile.resolver.leaf(profile.entries[0].stack);
    /// assert_eq!(profile.resolver.frame(leaf).label(), "Ns.Type.Main");
    /// # Ok::<(), chronosym_export::PatternError>(())
    /// ```
    pub fn fold(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.fold.push(Pattern::or_regex(pattern)?);
        Ok(self)
    }

    /// Replaces the frames of each module by one frame.
    pub fn group_modules(mut self) -> Self {
        self.group_modules = true;
        self
    }

    /// Merges frames that are not user code into `[framework]` ([`UserCode`](crate::UserCode)).
    /// Frames with neither name nor module are unchanged: their owner is unknown.
    pub fn just_my_code(mut self) -> Self {
        self.mine.get_or_insert_default();
        self
    }

    /// Merges frames like [`Shape::just_my_code`], but user code is exactly the modules whose
    /// simple names match this pattern, or another given one.
    ///
    /// # Errors
    ///
    /// If the pattern is invalid.
    pub fn my_modules(mut self, pattern: &str) -> Result<Self, PatternError> {
        let mine = self.mine.get_or_insert_default();
        mine.push(Pattern::new(pattern)?);
        Ok(self)
    }

    /// Returns the patterns of [`Shape::my_modules`] that match no module or image so far.
    pub fn unmatched_modules(&self, resolver: &Resolver) -> impl Iterator<Item = &Pattern> {
        let names = self.mine.iter().flatten();
        names.filter(|mine| {
            let mut binaries = resolver.binaries().iter();
            !binaries.any(|binary| mine.is_match(binary.name()))
        })
    }

    /// Merges inlinees into the functions that contain them.
    pub fn no_inlines(mut self) -> Self {
        self.no_inlines = true;
        self
    }

    /// Collapses rounds of up to eight functions that call each other repeatedly.
    pub fn collapse_recursion(mut self) -> Self {
        self.collapse_recursion = true;
        self
    }

    /// Adds frames of methods that are probably inlined, by the JIT's events: their names are
    /// [`Approximate`](chronosym_core::Certainty::Approximate).
    pub fn candidate_inlinees(mut self, candidates: CandidateInlinees) -> Self {
        self.candidates = Some(Arc::new(candidates)).filter(|it| !it.is_empty());
        self
    }

    /// Returns whether it leaves every stack unchanged.
    pub fn is_plain(&self) -> bool {
        let patterns = [&self.include, &self.exclude, &self.fold];
        patterns.iter().all(|patterns| patterns.is_empty())
            && !(self.group_modules || self.no_inlines || self.collapse_recursion)
            && self.mine.is_none()
            && self.candidates.is_none()
    }

    fn verdict(&self, function: &Function, is_user_code: bool) -> Verdict {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|p| p.is_match(function.label()));
        let is_mine = || match &self.mine {
            None => true,
            Some(_) if function.name().is_none() && function.binary().is_none() => true,
            Some(names) if names.is_empty() => is_user_code,
            Some(names) => {
                let name = function.binary().map(|binary| binary.name());
                name.is_some_and(|name| names.iter().any(|mine| mine.is_match(name)))
            }
        };
        Verdict {
            included: matches(&self.include),
            excluded: matches(&self.exclude),
            becomes: if matches(&self.fold) {
                Becomes::Nothing
            } else if !is_mine() {
                Becomes::Part(Group::Framework)
            } else if self.group_modules {
                Becomes::Part(Group::Module(function.binary().map(|binary| binary.id())))
            } else {
                Becomes::Itself
            },
        }
    }
}

/// The shape's decision about the frames of a function.
#[derive(Clone, Copy)]
struct Verdict {
    included: bool,
    excluded: bool,
    becomes: Becomes,
}

#[derive(Clone, Copy)]
enum Becomes {
    Itself,
    Nothing,
    Part(Group),
}

/// The kind of a merged frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Group {
    Framework,
    Folded,
    Module(Option<BinaryId>),
}

/// The result for a stack.
#[derive(Clone, Copy)]
struct Shaped {
    /// `None` if all its frames are folded.
    stack: Option<ResolvedStack>,
    included: bool,
    excluded: bool,
}

/// Shapes the stacks of one resolver, each once.
pub struct Shaper<'s> {
    shape: &'s Shape,
    /// By stack.
    shaped: Vec<Option<Shaped>>,
    /// By function.
    verdicts: Vec<Option<Verdict>>,
    /// The merged frame for a group and number of frames.
    groups: FxHashMap<(Group, u32), FrameId>,
    /// The group of each merged frame.
    grouped: FxHashMap<FrameId, Group>,
    /// Determined with the first stack.
    user_code: Option<UserCode>,
    candidates: CandidateFrames,
    path: Vec<ResolvedStack>,
}

impl std::fmt::Debug for Shaper<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shaper")
            .field("shape", self.shape)
            .finish_non_exhaustive()
    }
}

impl<'s> Shaper<'s> {
    /// Creates a shaper with an empty cache.
    pub fn new(shape: &'s Shape) -> Self {
        Shaper {
            shape,
            shaped: Vec::new(),
            verdicts: Vec::new(),
            groups: FxHashMap::default(),
            grouped: FxHashMap::default(),
            user_code: None,
            candidates: CandidateFrames::default(),
            path: Vec::new(),
        }
    }

    /// Returns the shaped stack; `None` for an excluded one.
    ///
    /// # Panics
    ///
    /// If the stack belongs to another resolver. All calls must pass the same one.
    pub fn shape(
        &mut self,
        resolver: &mut Resolver,
        stack: ResolvedStack,
    ) -> Option<ResolvedStack> {
        if self.shape.is_plain() {
            return Some(stack);
        }
        if self.shaped.len() <= stack.index() {
            self.shaped.resize(stack.index() + 1, None);
        }
        // Up to a cached stack, then down again.
        let mut shaped = Shaped {
            stack: None,
            included: self.shape.include.is_empty(),
            excluded: false,
        };
        let mut path = std::mem::take(&mut self.path);
        let mut next = Some(stack);
        while let Some(at) = next {
            if let Some(cached) = self.shaped[at.index()] {
                shaped = cached;
                break;
            }
            path.push(at);
            next = resolver.caller(at);
        }
        while let Some(at) = path.pop() {
            let frame = resolver.leaf(at);
            if let (Some(candidates), Some(caller)) = (&self.shape.candidates, resolver.caller(at))
            {
                let caller = resolver.leaf(caller);
                let found = self.candidates.between(candidates, resolver, caller, frame);
                for inlinee in found {
                    shaped = self.push(resolver, shaped, inlinee);
                }
            }
            shaped = self.push(resolver, shaped, frame);
            self.shaped[at.index()] = Some(shaped);
        }
        self.path = path;
        if shaped.excluded || !shaped.included {
            return None;
        }
        Some(shaped.stack.unwrap_or_else(|| {
            let frame = self.group(resolver, Group::Folded, 1, resolver.leaf(stack));
            resolver.calling(None, frame)
        }))
    }

    /// Adds a frame to the shaped stack of its callers.
    fn push(&mut self, resolver: &mut Resolver, callers: Shaped, frame: FrameId) -> Shaped {
        let function = &resolver.frame(frame).function;
        let index = function.id().index();
        if self.verdicts.len() <= index {
            self.verdicts.resize(index + 1, None);
        }
        let user_code = *self
            .user_code
            .get_or_insert_with(|| UserCode::of(resolver.timeline()));
        let verdict = *self.verdicts[index].get_or_insert_with(|| {
            let is_user_code = user_code.has(resolver.frame(frame));
            self.shape.verdict(function, is_user_code)
        });
        let is_left_out = self.shape.no_inlines && resolver.frame(frame).inlined;
        let stack = match verdict.becomes {
            _ if is_left_out => callers.stack,
            Becomes::Nothing => callers.stack,
            Becomes::Itself => Some(self.call(resolver, callers.stack, frame)),
            Becomes::Part(group) => {
                let is_group =
                    |top: &ResolvedStack| self.grouped.get(&resolver.leaf(*top)) == Some(&group);
                let (callers, before) = match callers.stack.filter(is_group) {
                    Some(top) => (
                        resolver.caller(top),
                        resolver.stands_for(resolver.leaf(top)),
                    ),
                    None => (callers.stack, None),
                };
                let frames = before.unwrap_or(0).saturating_add(1);
                let frame = self.group(resolver, group, frames, frame);
                Some(self.call(resolver, callers, frame))
            }
        };
        Shaped {
            stack,
            included: callers.included || verdict.included,
            excluded: callers.excluded || verdict.excluded,
        }
    }

    fn call(
        &self,
        resolver: &mut Resolver,
        callers: Option<ResolvedStack>,
        frame: FrameId,
    ) -> ResolvedStack {
        const LONGEST_ROUND: usize = 8;
        let called = resolver.calling(callers, frame);
        if !self.shape.collapse_recursion {
            return called;
        }
        // The round that ends with this frame is dropped if it equals the one before it.
        let (mut before, mut stacks) = ([None; 2 * LONGEST_ROUND], Some(called));
        let mut depth = 0;
        while let (Some(stack), true) = (stacks, depth < before.len()) {
            before[depth] = Some((stack, resolver.frame(resolver.leaf(stack)).function.id()));
            depth += 1;
            stacks = resolver.caller(stack);
        }
        let function = |at: usize| before[at].map(|(_, function)| function);
        let repeats = |round: &usize| {
            2 * round <= depth && (0..*round).all(|at| function(at) == function(at + round))
        };
        let round = (1..=LONGEST_ROUND).find(repeats);
        let first = round.and_then(|round| before[round]);
        first.map_or(called, |(stack, _)| stack)
    }

    /// Returns the merged frame for a group and number of frames.
    fn group(
        &mut self,
        resolver: &mut Resolver,
        group: Group,
        frames: u32,
        first: FrameId,
    ) -> FrameId {
        *self.groups.entry((group, frames)).or_insert_with(|| {
            let binary = match group {
                Group::Module(Some(binary)) => Some(resolver.binaries()[binary.index()].clone()),
                _ => None,
            };
            let label = match (group, &binary) {
                (Group::Framework, _) => FRAMEWORK,
                (Group::Folded, _) => "[folded]",
                (Group::Module(_), None) => "[no module]",
                (Group::Module(_), Some(binary)) => binary.name(),
            };
            let frame = resolver.add_collapsed(label, binary.as_ref(), first, frames);
            self.grouped.insert(frame, group);
            frame
        })
    }
}

/// Name of the frame for code that is not user code ([`Shape::just_my_code`]).
pub const FRAMEWORK: &str = "[framework]";
