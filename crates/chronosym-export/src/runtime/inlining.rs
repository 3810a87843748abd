//! The JIT's inlining decisions, with the cost of rejected calls.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use chronosym_core::{
    BodyIndex, Code, Function, FunctionId, ProcessIndex, Profile, Resolver, Timeline,
};
use chronosym_runtime::{CompiledBody, InlinedCall, JitDecisions, TailCall, Unused, advice};
use chronosym_types::hash::HashMap;
use serde::ser::SerializeMap;

use super::context::Notes;
use super::grid::{Grid, sentence};
use crate::compiled_bodies::{bodies_of, body_of};
use crate::header::describe;
use crate::object::{Fields, Object};
use crate::pattern::Pattern;
use crate::table::TableOptions;
use crate::units::{counted, show_count, show_time};
use crate::weight::WeightUnit;

/// The decisions of the JIT about the calls in hot bodies.
#[derive(Debug)]
pub struct Inlining {
    /// Describes the samples; absent without samples.
    samples: Option<String>,
    unit: WeightUnit,
    /// The weight of all samples.
    total: u64,
    /// Heaviest first.
    bodies: Vec<Body>,
    /// Rejected calls of all bodies, by the weight of the callee in calls from there.
    rejected: Vec<Rejected>,
    has_events: bool,
    /// Whether the trace has any decisions.
    has_any: bool,
    notes: Notes,
}

#[derive(Debug)]
struct Body {
    pid: Option<u32>,
    name: String,
    tier: Option<String>,
    start: u64,
    size: u64,
    time_ns: u64,
    /// The weight of samples whose innermost frame is in the body, inlined code included.
    own: u64,
    inlined: Vec<Inlined>,
    decisions: Option<CompiledBody>,
}

/// An inlined call, according to one of the sources.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Inlined {
    caller: String,
    callee: String,
    /// The line of the call, if rich debug info and a symbol file state it.
    line: Option<(String, u32)>,
    count: u64,
    source: &'static str,
}

#[derive(Debug)]
struct Rejected {
    /// The compiled method.
    body: Arc<str>,
    caller: Arc<str>,
    callee: Arc<str>,
    reason: Arc<str>,
    always: bool,
    /// The reason that an earlier event states for all calls of the callee, if this event only
    /// refers to it.
    earlier: Option<Arc<str>>,
    /// Number of compilations of the method.
    bodies: u64,
    weight: u64,
}

/// Inlined according to JittedMethodRichDebugInfo, which states the call offset.
const RICH: &str = "rich debug info";
/// Inlined according to MethodJitInliningSucceeded, which does not state it.
const EVENTS: &str = "JIT events";

impl Inlining {
    /// Reports the bodies of a profile or, if it has no samples, all; with `method` only those whose
    /// name matches it. The timeline was read with the options of
    /// [`JitDecisions`].
    pub fn new(profile: &mut Profile, decisions: JitDecisions, method: Option<&Pattern>) -> Self {
        let timeline = profile.resolver.timeline().clone();
        let unit = WeightUnit::of(profile);
        let weights = Weights::of(profile, unit);
        let has_samples = profile.samples() > 0;
        let JitDecisions { bodies, unused, .. } = decisions;
        let has_events = !bodies.is_empty();
        let earlier = reasons_for_good(&bodies);
        let mut by_body: BTreeMap<(ProcessIndex, BodyIndex), CompiledBody> = BTreeMap::new();
        let mut unloaded = Vec::new();
        let (by_address, mut keys) = bodies_of(&timeline);
        for body in bodies {
            match body_of(&by_address, &body) {
                Some(key) => drop(by_body.insert(key, body)),
                None => unloaded.push(body),
            }
        }
        keys.extend(by_body.keys());
        let has_any = has_events || !keys.is_empty();
        let mut rejected = BTreeMap::new();
        let mut all = Vec::new();
        for key in keys {
            let own = weights.own.get(&key).copied().unwrap_or(0);
            let decisions = by_body.remove(&key);
            if let Some(decisions) = &decisions {
                weights.rejected(key, decisions, &profile.resolver, &mut rejected);
            }
            let is_hot = own > 0 || !has_samples || method.is_some();
            let Some(view) = is_hot.then(|| timeline.body_view(key.0, key.1)).flatten() else {
                continue;
            };
            let body = Body {
                pid: timeline.process_view(key.0).and_then(|process| process.pid),
                name: view.name.clone().unwrap_or_else(|| "?".to_owned()),
                tier: view.tier.map(|tier| tier.to_string()),
                start: view.start,
                size: view.size,
                time_ns: view.lifetime.from,
                own,
                inlined: Vec::new(),
                decisions,
            };
            if !matches(method, &body.name) {
                continue;
            }
            let inlined = inlined(&mut profile.resolver, key, &body);
            if !inlined.is_empty() || body.decisions.is_some() || method.is_some() {
                all.push(Body { inlined, ..body });
            }
        }
        let mut rejected: Vec<Rejected> = rejected
            .into_values()
            .filter(|it: &Rejected| matches(method, &it.body) || matches(method, &it.callee))
            .collect();
        for it in rejected.iter_mut().filter(|it| is_cached(&it.reason)) {
            it.earlier = earlier.get(&it.callee).cloned();
        }
        rejected.sort_by_key(|it| Reverse((it.weight, it.bodies)));
        all.sort_by_key(|body| (Reverse(body.own), body.time_ns));
        Inlining {
            samples: has_samples.then(|| describe(profile)),
            unit,
            total: unit.total(profile),
            bodies: all,
            rejected,
            has_events,
            has_any,
            notes: notes(&timeline, unused, unloaded.len() as u64),
        }
    }

    /// Returns whether the trace has decisions, but none about the method.
    pub fn lacks_method(&self) -> bool {
        self.has_any && self.bodies.is_empty() && self.rejected.is_empty()
    }

    /// Writes the rejected calls and the bodies.
    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        if !self.has_any {
            let text = format!(
                "no JIT decisions in the trace; to record them: dotnet-trace collect \
                 --providers {}; to add the IL offsets of inlined calls: DOTNET_RichDebugInfo=1, and \
                 Microsoft-Windows-DotNETRuntimePrivate:0x40000:5",
                JitDecisions::PROVIDER
            );
            return sentence(&text, options, out);
        }
        for line in self.samples.iter().flat_map(|samples| samples.lines()) {
            sentence(line, options, out)?;
        }
        if !self.has_events {
            let text = format!(
                "rejected calls and tail calls are unknown; to record them: dotnet-trace collect \
                 --providers {}",
                JitDecisions::PROVIDER
            );
            sentence(&text, options, out)?;
        }
        let shown = |weight: u64| {
            let share = weight as f64 * 100.0 / self.total.max(1) as f64;
            [format!("{share:.1}%"), self.unit.show(weight)]
        };
        let unit = match self.unit {
            WeightUnit::Time => "ms".to_owned(),
            unit => unit.to_string(),
        };
        if !self.rejected.is_empty() {
            writeln!(
                out,
                "\nrejected calls, by weight of the callee when called from there"
            )?;
            let mut grid = Grid::new(
                ["share", &unit, "bodies", "call, reason, and remedy"],
                options.max_lines,
            );
            for it in &self.rejected {
                grid.row(|| {
                    let [share, weight] = shown(it.weight);
                    [share, weight, show_count(it.bodies), it.show()]
                });
            }
            grid.write(options, out)?;
        }
        for body in self.bodies.iter().take(options.max_lines) {
            let [share, weight] = shown(body.own);
            let tier = body.tier.as_deref().unwrap_or("unknown tier");
            let weight = match self.samples {
                Some(_) => format!(", self {share} ({weight} {unit})"),
                None => String::new(),
            };
            let text = format!(
                "{}, {tier}, {} bytes, compiled at {}{weight}",
                body.name,
                body.size,
                show_time(body.time_ns)
            );
            writeln!(out)?;
            sentence(&text, options, out)?;
            body.write(options, out)?;
        }
        match self.bodies.len().saturating_sub(options.max_lines) {
            0 => {}
            more => writeln!(
                out,
                "\n{}: see -n",
                counted(more as u64, "more bod").replace("bods", "bodies")
            )?,
        }
        self.notes.write(options, out)
    }
}

/// Returns a label without its module.
fn name_of(label: &str) -> &str {
    label.split_once('!').map_or(label, |(_, name)| name)
}

/// Returns whether a reason is the attribute of a method, or an earlier result that the runtime
/// cached.
fn is_cached(reason: &str) -> bool {
    reason.contains("cached result")
}

/// Returns, by method, the reason for which none of its calls can be inlined.
fn reasons_for_good(bodies: &[CompiledBody]) -> HashMap<Arc<str>, Arc<str>> {
    let calls = bodies.iter().flat_map(|body| &body.rejected);
    let for_good = calls.filter(|it| it.always && !is_cached(&it.reason));
    for_good
        .map(|it| (it.callee.clone(), it.reason.clone()))
        .collect()
}

/// Returns whether a name is meant; everything without a method.
fn matches(method: Option<&Pattern>, name: &str) -> bool {
    method.is_none_or(|method| method.is_match(name))
}

fn notes(timeline: &Timeline, mut unused: Unused, unloaded: u64) -> Notes {
    unused.without_end = unloaded;
    Notes::new(timeline, &unused)
}

/// Caller, callee, and the line of the call.
type Call = (String, String, Option<(String, u32)>);

/// Returns the calls inlined into a body, from its inline tree and from events.
fn inlined(
    resolver: &mut Resolver,
    (process, index): (ProcessIndex, BodyIndex),
    body: &Body,
) -> Vec<Inlined> {
    let mut found: BTreeMap<Call, u64> = BTreeMap::new();
    let nodes = resolver.inlinees(process, index);
    for node in &nodes {
        let caller = node.parent.and_then(|parent| nodes.get(parent as usize));
        let Some(caller) = caller else {
            continue;
        };
        let line = node.line.as_ref();
        let line = line.map(|line| (line.file.to_string(), line.line));
        let label = |function: &Function| function.label().to_owned();
        let key = (label(&caller.function), label(&node.function), line);
        *found.entry(key).or_default() += 1;
    }
    let rich = found
        .into_iter()
        .map(|((caller, callee, line), count)| Inlined {
            caller,
            callee,
            line,
            count,
            source: RICH,
        });
    let mut inlined: Vec<Inlined> = rich.collect();
    // Inlined calls without remaining code are in events only. For a call in inlined code, events
    // may name the compiled method as the caller.
    let name = |label: &str| name_of(label).to_owned();
    let pairs = inlined
        .iter()
        .map(|it| (name(&it.caller), name(&it.callee)));
    let known: BTreeSet<(String, String)> = pairs.collect();
    let callees: BTreeSet<&str> = known.iter().map(|(_, callee)| &**callee).collect();
    let mut events: BTreeMap<&InlinedCall, u64> = BTreeMap::new();
    for call in body.decisions.iter().flat_map(|body| &body.inlined) {
        *events.entry(call).or_default() += 1;
    }
    for (call, count) in events {
        let is_known = match *call.caller == *body.name {
            true => callees.contains(&*call.callee),
            false => known.contains(&(call.caller.to_string(), call.callee.to_string())),
        };
        if !is_known {
            inlined.push(Inlined {
                caller: call.caller.to_string(),
                callee: call.callee.to_string(),
                line: None,
                count,
                source: EVENTS,
            });
        }
    }
    inlined
}

/// The weights of a profile by body and by call.
struct Weights {
    own: HashMap<(ProcessIndex, BodyIndex), u64>,
    /// By calling body and called function.
    calls: HashMap<(ProcessIndex, BodyIndex), BTreeMap<FunctionId, u64>>,
}

impl Weights {
    fn of(profile: &Profile, unit: WeightUnit) -> Self {
        let mut weights = Weights {
            own: HashMap::default(),
            calls: HashMap::default(),
        };
        let resolver = &profile.resolver;
        let mut seen = BTreeSet::new();
        for entry in &profile.entries {
            let weight = unit.weight(entry);
            seen.clear();
            let frames = resolver.stack(entry.stack).map(|id| resolver.frame(id));
            let mut callee: Option<FunctionId> = None;
            let mut is_leaf = true;
            for frame in frames.filter(|frame| !frame.inlined) {
                if let Code::Body(process, body) = frame.code {
                    let key = (process, body);
                    if is_leaf {
                        *weights.own.entry(key).or_default() += weight;
                    }
                    // Recursion counts once.
                    if let Some(callee) = callee
                        && seen.insert((key, callee))
                    {
                        let calls = weights.calls.entry(key).or_default();
                        *calls.entry(callee).or_default() += weight;
                    }
                }
                callee = Some(frame.function.id());
                is_leaf = false;
            }
        }
        weights
    }

    /// Adds the rejected calls of a body.
    fn rejected(
        &self,
        key: (ProcessIndex, BodyIndex),
        body: &CompiledBody,
        resolver: &Resolver,
        out: &mut BTreeMap<[Arc<str>; 4], Rejected>,
    ) {
        let mut weights: HashMap<&str, u64> = HashMap::default();
        for (callee, weight) in self.calls.get(&key).into_iter().flatten() {
            let function = &resolver.functions()[callee.index()];
            let name = function.recorded_name();
            *weights.entry(name.unwrap_or_default()).or_default() += weight;
        }
        let mut counted = BTreeSet::new();
        for it in &body.rejected {
            let (caller, callee) = (it.caller.clone(), it.callee.clone());
            let of = [body.name.clone(), caller, callee, it.reason.clone()];
            if !counted.insert(of.clone()) {
                continue;
            }
            let rejected = out.entry(of).or_insert_with(|| Rejected {
                body: body.name.clone(),
                caller: it.caller.clone(),
                callee: it.callee.clone(),
                reason: it.reason.clone(),
                always: it.always,
                earlier: None,
                bodies: 0,
                weight: 0,
            });
            rejected.bodies += 1;
            rejected.weight += weights.get(&*it.callee).copied().unwrap_or(0);
        }
    }
}

impl Rejected {
    fn show(&self) -> String {
        let within = match self.body == self.caller {
            true => String::new(),
            false => format!(" (inlined into {})", self.body),
        };
        let earlier = self.earlier.as_ref();
        let earlier = earlier.map_or(String::new(), |earlier| format!(", earlier {earlier}"));
        let advice = self.advice();
        let advice = advice.map_or(String::new(), |advice| format!("; {advice}"));
        format!(
            "{}{within} → {}: {}{earlier}{advice}",
            self.caller, self.callee, self.reason
        )
    }

    fn advice(&self) -> Option<&'static str> {
        advice(self.earlier.as_ref().unwrap_or(&self.reason))
    }
}

impl Body {
    fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        for it in &self.inlined {
            let line = it.line.as_ref().map_or(String::new(), |(file, line)| {
                let file = file.rsplit(['/', '\\']).next().unwrap_or(file);
                format!(" at {file}:{line}")
            });
            let times = match it.count {
                1 => String::new(),
                count => format!(" {} times", show_count(count)),
            };
            let text = format!(
                "  inlined{times}: {} into {}{line} ({})",
                it.callee, it.caller, it.source
            );
            sentence(&text, options, out)?;
        }
        for line in self.decisions.iter().flat_map(rejections) {
            sentence(&format!("  {line}"), options, out)?;
        }
        Ok(())
    }
}

/// Returns the JIT's decisions about the calls of a body, one per line.
pub(crate) fn decisions(body: &CompiledBody) -> Vec<String> {
    let inlined: BTreeSet<&InlinedCall> = body.inlined.iter().collect();
    let inlined = inlined.into_iter();
    let inlined = inlined.map(|it| format!("inlined: {} into {}", it.callee, it.caller));
    inlined.chain(rejections(body)).collect()
}

/// Returns the calls of a body that were not inlined, and its tail calls.
fn rejections(body: &CompiledBody) -> Vec<String> {
    let rejected: BTreeSet<_> = body.rejected.iter().collect();
    let rejected = rejected.into_iter();
    let rejected = rejected.map(|it| {
        format!(
            "not inlined: {} into {}: {}",
            it.callee, it.caller, it.reason
        )
    });
    let tail_calls = body.tail_calls.iter().map(show_tail_call);
    rejected.chain(tail_calls).collect()
}

/// Returns a tail call as text.
fn show_tail_call(it: &TailCall) -> String {
    let explicit = if it.is_explicit { "explicit " } else { "" };
    match &it.outcome {
        Ok(how) => {
            let effect = match how.leaves_caller() {
                true => "stacks of the callee lack the caller",
                false => "a jump within the body",
            };
            let (callee, caller) = (&it.callee, &it.caller);
            format!("{explicit}tail call of {callee} by {caller}: {how}, {effect}")
        }
        Err(reason) => format!(
            "{explicit}tail call of {} by {} was not made: {reason}",
            it.callee, it.caller
        ),
    }
}

impl Fields for Inlining {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("report", "inlining")
            .some("record", (!self.has_any).then_some(JitDecisions::PROVIDER))
            .field("unit", self.unit.as_str())
            .some("total", self.samples.as_ref().map(|_| self.total))
            .objects("rejected", &self.rejected)
            .objects("bodies", &self.bodies)
            .object("unused", Some(&self.notes));
    }
}

impl Fields for Rejected {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("method", &*self.body)
            .field("caller", &*self.caller)
            .field("callee", &*self.callee)
            .field("reason", &*self.reason)
            .flag("always", self.always)
            .some("earlier_reason", self.earlier.as_deref())
            .some("advice", self.advice())
            .field("bodies", self.bodies)
            .field("weight", self.weight);
    }
}

impl Fields for Body {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let decisions = self.decisions.iter();
        let rejected = decisions.clone().flat_map(|of| &of.rejected);
        let tail_calls = decisions.flat_map(|of| &of.tail_calls);
        object
            .some("pid", self.pid)
            .field("name", &self.name)
            .some("tier", self.tier.as_deref())
            .shown("start", format_args!("{:#x}", self.start))
            .field("size", self.size)
            .field("time_ns", self.time_ns)
            .field("self", self.own)
            .objects("inlined", &self.inlined)
            .objects("rejected", rejected.map(RejectedView))
            .objects("tail_calls", tail_calls.map(TailCallView));
    }
}

/// The contents of the JIT's events about a body.
#[derive(Clone, Copy)]
pub(crate) struct Decisions<'a>(pub &'a CompiledBody);

impl Fields for Decisions<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let Decisions(body) = self;
        object
            .field("name", &*body.name)
            .some("tier", body.tier.map(|tier| tier.to_string()))
            .field("time_ns", body.time_ns)
            .objects("inlined", body.inlined.iter().map(InlinedView))
            .objects("rejected", body.rejected.iter().map(RejectedView))
            .objects("tail_calls", body.tail_calls.iter().map(TailCallView));
    }
}

struct InlinedView<'a>(&'a InlinedCall);

impl Fields for InlinedView<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("caller", &*self.0.caller)
            .field("callee", &*self.0.callee);
    }
}

impl Fields for Inlined {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("caller", &self.caller)
            .field("callee", &self.callee)
            .some("file", self.line.as_ref().map(|line| &line.0))
            .some("line", self.line.as_ref().map(|line| line.1))
            .field("count", self.count)
            .field("source", self.source);
    }
}

struct RejectedView<'a>(&'a chronosym_runtime::RejectedCall);

impl Fields for RejectedView<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("caller", &*self.0.caller)
            .field("callee", &*self.0.callee)
            .field("reason", &*self.0.reason)
            .flag("always", self.0.always);
    }
}

struct TailCallView<'a>(&'a TailCall);

impl Fields for TailCallView<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let made = self.0.outcome.as_ref();
        object
            .field("caller", &*self.0.caller)
            .field("callee", &*self.0.callee)
            .flag("explicit", self.0.is_explicit)
            .some("type", made.ok().map(|how| how.to_string()))
            .some("reason", made.err().map(|reason| &**reason));
    }
}
