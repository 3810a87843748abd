//! Compares every stack of the self-made traces with the output of Microsoft's TraceEvent.

mod workload;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Cursor;
use std::sync::Arc;

use chronosym::{
    EventSelector, EventTypeId, Filter, Frame, FrameId, ResolvedStack, Resolver, SampleSelection,
    Session, Timeline,
};
use chronosym_nettrace::TraceHeader;

use workload::{bytes, gunzip};

/// A frame as TraceEvent has it.
struct TheirFrame<'a> {
    address: u64,
    name: &'a str,
    module: &'a str,
}

/// TraceEvent's output for a trace.
#[derive(Default)]
struct Theirs<'a> {
    frames: Vec<TheirFrame<'a>>,
    /// Frames of each stack, innermost first.
    stacks: Vec<Vec<usize>>,
    /// (QPC time, thread, provider, stack)
    samples: Vec<(i64, u64, &'a str, usize)>,
}

fn parse(text: &str) -> Theirs<'_> {
    let mut theirs = Theirs::default();
    for line in text.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| -> usize { parts[i].parse().expect("a number") };
        match parts[0] {
            "F" => {
                assert_eq!(number(1), theirs.frames.len());
                theirs.frames.push(TheirFrame {
                    address: u64::from_str_radix(parts[2], 16).expect("an address"),
                    name: parts[3],
                    module: parts[4],
                });
            }
            "K" => {
                assert_eq!(number(1), theirs.stacks.len());
                let ids = parts[2].split(' ').filter(|id| !id.is_empty());
                theirs
                    .stacks
                    .push(ids.map(|id| id.parse().expect("a frame")).collect());
            }
            "S" => {
                let provider = parts[3].split('/').next().expect("a provider");
                theirs.samples.push((
                    parts[1].parse().expect("a time"),
                    number(2) as u64,
                    provider,
                    number(4),
                ));
            }
            other => panic!("unknown row {other}"),
        }
    }
    theirs
}

/// Why a frame differs, and why ours is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    /// Names of `ProcessSymbol` records and perf maps: TraceEvent keeps the text, `Type::Method`.
    /// We parse it, so that a method has one name in all sources: `Type.Method`.
    Separator,
    /// TraceEvent removes only the endings `.so` and `.dll`, and keeps `libc.so.6`. The version of
    /// a library is not part of its simple name.
    LibraryVersion,
    /// Two symbols of a library share a range, `read` and `__read`: either is right. Of symbols
    /// without a time we use the latest (rule 18), TraceEvent the first.
    Alias,
    /// TraceEvent calls the module of code in anonymous memory `unknown`. Absent means unknown with
    /// us.
    NoModule,
}

fn simple_library(name: &str) -> &str {
    name.find(".so.").map_or(name, |at| &name[..at])
}

fn our_name(frame: &Frame) -> String {
    let name = frame.name().ok().unwrap_or_default();
    let signature = frame.signature().unwrap_or("");
    // As TraceEvent: from the first parenthesis.
    let arguments = signature.find('(').map_or("", |at| &signature[at..]);
    format!("{name}{arguments}")
}

/// Returns how our frame differs from TraceEvent's; a text for unexplained differences.
fn differences(
    timeline: &Timeline,
    ours: &Frame,
    theirs: &TheirFrame<'_>,
) -> Result<Vec<Difference>, String> {
    let mut found = Vec::new();
    let name = our_name(ours);
    if name != theirs.name {
        let path = theirs.name.split('(').next().unwrap_or_default();
        let arguments = &theirs.name[path.len()..];
        if path.contains("::") && name == format!("{}{arguments}", path.replacen("::", ".", 1)) {
            found.push(Difference::Separator);
        } else if is_alias(timeline, ours, theirs) {
            found.push(Difference::Alias);
        } else {
            let reason = ours.name().err();
            return Err(format!("{} is {name} ({reason:?})", theirs.name));
        }
    }
    // TraceEvent lower-cases the names of most modules (fault M).
    let module = ours.module().unwrap_or_default();
    if !module.eq_ignore_ascii_case(theirs.module) {
        if module.is_empty() && theirs.module == "unknown" {
            found.push(Difference::NoModule);
            return Ok(found);
        }
        if !module.eq_ignore_ascii_case(simple_library(theirs.module)) {
            return Err(format!("{} in {} is in {module}", name, theirs.module));
        }
        found.push(Difference::LibraryVersion);
    }
    Ok(found)
}

/// Returns whether both names belong to symbols with the same start.
fn is_alias(timeline: &Timeline, ours: &Frame, theirs: &TheirFrame<'_>) -> bool {
    // A return address can be the first byte of the next function.
    let symbols = timeline.processes().flat_map(|process| {
        [ours.address - 1, ours.address]
            .into_iter()
            .flat_map(move |address| timeline.untimed_at(process.index, address))
    });
    let (mut mine, mut other) = (Vec::new(), Vec::new());
    for symbol in symbols {
        if symbol.name.as_deref() == ours.name().ok() {
            mine.push((symbol.start, symbol.last));
        } else if symbol.name.as_deref() == Some(theirs.name) {
            other.push((symbol.start, symbol.last));
        }
    }
    mine.iter().any(|range| other.contains(range))
}

/// The result of a comparison.
#[derive(Default)]
struct Report {
    stacks: u64,
    /// Frames that TraceEvent names.
    named: u64,
    same: u64,
    /// Frames that only we name.
    ours_only: u64,
    differences: BTreeMap<Difference, u64>,
    unexplained: Vec<String>,
    /// Event types whose stacks TraceEvent does not give.
    left_over: BTreeSet<String>,
}

fn read(bytes: &[u8], theirs: &Theirs<'_>) -> (Arc<Timeline>, TraceHeader) {
    let providers: BTreeSet<&str> = theirs.samples.iter().map(|s| s.2).collect();
    let selectors = providers
        .iter()
        .map(|p| EventSelector::parse(p).expect("a selector"));
    let mut session = Session::new(SampleSelection::Events(selectors.collect()));
    chronosym::source::nettrace::read(Cursor::new(bytes), &mut session).expect("a trace");
    let reader =
        chronosym_nettrace::Reader::new(Cursor::new(bytes), Default::default()).expect("a trace");
    (session.finish(), reader.header().clone())
}

/// One of our samples.
struct OurSample {
    event: EventTypeId,
    stack: ResolvedStack,
    matched: bool,
}

fn compare(trace: &str) -> Report {
    let text = gunzip(&format!("{trace}.traceevent.tsv.gz"));
    let theirs = parse(&text);
    let (timeline, header) = read(&bytes(&format!("{trace}.nettrace.zip")), &theirs);
    let mut report = Report::default();

    let mut resolver = Resolver::new(&timeline, None);
    let mut samples: HashMap<(u64, u64), Vec<OurSample>> = HashMap::new();
    let mut everything = Filter::default();
    everything.idle = true;
    timeline.for_each_sample(&everything, |class, time| {
        let tid = timeline.thread_view(class.thread).expect("a thread").tid;
        samples.entry((time, tid)).or_default().push(OurSample {
            event: class.event,
            stack: resolver.resolve(class, time).expect("a stack").0,
            matched: false,
        });
    });

    // Frames without inlinees, which TraceEvent does not have.
    let mut physical: HashMap<ResolvedStack, Vec<FrameId>> = HashMap::new();
    let mut pairs: HashMap<(ResolvedStack, usize), u64> = HashMap::new();
    for &(qpc, tid, provider, stack) in &theirs.samples {
        let ticks = i128::from(qpc - header.qpc_start);
        let time = (ticks * 1_000_000_000 / i128::from(header.qpc_frequency)) as u64;
        let wanted: Vec<u64> = theirs.stacks[stack]
            .iter()
            .map(|&f| theirs.frames[f].address)
            .collect();
        let same = |sample: &&mut OurSample| {
            let frames = physical.entry(sample.stack).or_insert_with(|| {
                let all = resolver.stack(sample.stack);
                all.filter(|&f| !resolver.frame(f).inlined).collect()
            });
            let addresses = frames.iter().map(|&f| resolver.frame(f).address);
            let schema = &timeline.event_types()[sample.event.index()].schema;
            !sample.matched
                && schema.provider_name().as_ref() == provider
                && addresses.eq(wanted.iter().copied())
        };
        let at_that_time = samples.get_mut(&(time, tid));
        match at_that_time.and_then(|all| all.iter_mut().find(same)) {
            Some(sample) => {
                sample.matched = true;
                report.stacks += 1;
                *pairs.entry((sample.stack, stack)).or_default() += 1;
            }
            None => report
                .unexplained
                .push(format!("stack {stack} at {time} of thread {tid}")),
        }
    }
    for sample in samples.values().flatten().filter(|s| !s.matched) {
        let label = timeline.event_types()[sample.event.index()].label();
        report.left_over.insert(label);
    }

    for ((ours, stack), count) in pairs {
        for (&ours, &their) in physical[&ours].iter().zip(&theirs.stacks[stack]) {
            let (ours, their) = (resolver.frame(ours), &theirs.frames[their]);
            if their.name.is_empty() {
                report.ours_only += count * u64::from(ours.name().is_ok());
                continue;
            }
            report.named += count;
            match differences(&timeline, ours, their) {
                Ok(found) => {
                    report.same += count * u64::from(found.is_empty());
                    for difference in found {
                        *report.differences.entry(difference).or_default() += count;
                    }
                }
                Err(text) => report
                    .unexplained
                    .push(format!("{count} times: {:x}: {text}", their.address)),
            }
        }
    }
    report
}

/// TraceEvent uses up IL maps and keeps no stack of theirs.
const NOT_SHOWN: &[&str] = &["Microsoft-Windows-DotNETRuntime/190"];

fn assert_same(trace: &str) -> Report {
    let report = compare(trace);
    println!(
        "{trace}: {} stacks, {} of {} frames the same, {} named by us alone, {:?}, not shown: {:?}",
        report.stacks,
        report.same,
        report.named,
        report.ours_only,
        report.differences,
        report.left_over
    );
    assert!(
        report.unexplained.is_empty(),
        "{trace}: {} unexplained:\n{}",
        report.unexplained.len(),
        report.unexplained[..report.unexplained.len().min(50)].join("\n")
    );
    assert!(report.stacks > 5_000 && report.named > 50_000, "{trace}");
    for label in &report.left_over {
        assert!(NOT_SHOWN.contains(&label.as_str()), "{trace}: {label}");
    }
    report
}

#[test]
fn runtime_traces_have_the_same_names_throughout() {
    for trace in [
        "clr10/traces/all",
        "clr10/traces/attach",
        "clr10/traces/default",
        "clr10/traces/entry",
        "clr10/traces/net9-rich",
        "clr10/traces/r2r",
        "clr10/traces/reuse",
        "clr10/traces/rich",
        "clr31/workload/traces/all",
        "clr31/workload/traces/reuse",
    ] {
        let report = assert_same(trace);
        assert_eq!(report.same, report.named, "{trace}");
    }
}

#[test]
fn a_machines_trace_differs_in_spelling_alone() {
    let report = assert_same("clr10/traces/linux");
    let of = |difference| report.differences.get(&difference).copied().unwrap_or(0);
    let share = |difference| of(difference) as f64 / report.named as f64;
    // Managed frames, frames of libc, and the few others.
    assert!(share(Difference::Separator) < 0.7);
    assert!(share(Difference::LibraryVersion) < 0.3);
    assert!(share(Difference::Alias) < 0.002);
    assert!(share(Difference::NoModule) < 0.004);
    // Differences other than spelling.
    let other = of(Difference::Alias);
    assert!((report.named - other) as f64 / report.named as f64 >= 0.999);
}
