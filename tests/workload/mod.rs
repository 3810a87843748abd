//! The expected stacks in traces of the workload, and their comparison with ours.
//!
//! The workload writes the runtime's own stack trace into an event; the event's stack holds the
//! same frames as raw addresses.
// Each suite uses a part.
#![allow(dead_code)]

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronosym::Diagnostics;
use chronosym::{
    EventSelector, Filter, Frame, IlOffset, IlSource, NameReason, Position, ResolvedStack,
    Resolver, SampleSelection, Session, Timeline,
};

/// One frame as the runtime sees it.
#[derive(Debug)]
pub struct TruthFrame {
    pub type_name: String,
    pub method: String,
    pub native: i64,
    pub il: i64,
    /// File and line, where the runtime had symbols.
    pub line: Option<(String, u32)>,
}

/// One truth event: its frames, innermost first.
pub struct TruthEvent {
    pub site: String,
    pub frames: Vec<TruthFrame>,
}

/// The content of an event about expected inlining: (method, line of the call in it), innermost
/// first.
pub struct LogicalEvent {
    pub site: String,
    pub frames: Vec<(String, u32)>,
}

pub struct Trace {
    pub timeline: Arc<Timeline>,
    pub truth: HashMap<(u64, u64), TruthEvent>,
    pub logical: HashMap<(u64, u64), LogicalEvent>,
}

pub fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata")
}

/// The unpacked bytes of a trace in the test data.
pub fn bytes(trace: &str) -> Vec<u8> {
    chronosym_conformance::unzip(&testdata().join(trace), ".nettrace")
        .unwrap_or_else(|e| panic!("{trace}: {e:?}"))
}

/// A `.gz` text in the test data.
pub fn gunzip(path: &str) -> String {
    let file = std::fs::File::open(testdata().join(path)).expect(path);
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect(path);
    text
}

/// A session that keeps the stacks of the truth events.
pub fn session() -> Session {
    let selectors = ["Workload-Truth/1", "Workload-Truth/3"]
        .map(|s| EventSelector::parse(s).expect("a selector"));
    Session::new(SampleSelection::Events(selectors.into()))
}

pub fn load(trace: &str) -> Trace {
    let (trace_read, diagnostics) = read(&bytes(trace));
    assert!(diagnostics.list.is_empty(), "{trace}: {diagnostics:?}");
    trace_read
}

/// A trace from its bytes.
pub fn read(bytes: &[u8]) -> (Trace, Diagnostics) {
    let mut session = session();
    let diagnostics =
        chronosym::source::nettrace::read(Cursor::new(bytes), &mut session).expect("a trace");
    (Trace::new(session.finish(), bytes), diagnostics)
}

impl Trace {
    /// Creates a timeline with the bytes from which it was read.
    pub fn new(timeline: Arc<Timeline>, bytes: &[u8]) -> Self {
        let (truth, logical) = payloads(bytes);
        assert!(!truth.is_empty(), "there are no truth events");
        Trace {
            timeline,
            truth,
            logical,
        }
    }
}

/// The truth events by (time, thread).
#[allow(clippy::type_complexity)]
pub fn payloads(
    bytes: &[u8],
) -> (
    HashMap<(u64, u64), TruthEvent>,
    HashMap<(u64, u64), LogicalEvent>,
) {
    let mut reader =
        chronosym_nettrace::Reader::new(Cursor::new(bytes), Default::default()).expect("a trace");
    let (mut truth, mut logical) = (HashMap::new(), HashMap::new());
    while let Some(region) = reader.next_region().expect("readable") {
        for record in region.records() {
            let event_type = region.event_type(record.event_type).expect("a known type");
            if event_type.provider != "Workload-Truth" || event_type.id == 2 {
                continue;
            }
            let wide: Vec<u16> = record
                .payload
                .chunks_exact(2)
                .map(|b| u16::from_le_bytes([b[0], b[1]]))
                .collect();
            let mut texts = wide.split(|&c| c == 0).map(String::from_utf16_lossy);
            let (site, frames) = (texts.next().expect("a site"), texts.next().expect("frames"));
            let key = (record.time_ns, record.thread_id);
            if event_type.id == 1 {
                let frames = frames.lines().map(truth_frame).collect();
                truth.insert(key, TruthEvent { site, frames });
            } else {
                let frame = |line: &str| {
                    let (name, number) = line.split_once('\t').expect("a name and a line");
                    (name.to_owned(), number.parse().expect("a line number"))
                };
                logical.insert(
                    key,
                    LogicalEvent {
                        site,
                        frames: frames.lines().map(frame).collect(),
                    },
                );
            }
        }
    }
    (truth, logical)
}

pub fn truth_frame(line: &str) -> TruthFrame {
    let parts: Vec<&str> = line.split('\t').collect();
    let line = parts[6].parse().ok().filter(|&line| line > 0);
    TruthFrame {
        type_name: parts[1].to_owned(),
        method: parts[2].to_owned(),
        native: parts[3].parse().expect("a native offset"),
        il: parts[4].parse().expect("an IL offset"),
        line: line.map(|line| (parts[5].to_owned(), line)),
    }
}

/// The open definition: generic arguments are not in the truth.
pub fn open(name: &str) -> String {
    let mut depth = 0;
    name.chars()
        .filter(|&c| {
            depth += i32::from(c == '[');
            let outside = depth == 0;
            depth -= i32::from(c == ']');
            outside
        })
        .collect()
}

pub fn full_name(frame: &TruthFrame) -> String {
    match frame.type_name.as_str() {
        // Dynamic methods have no type; the runtime's events give them one.
        "" => format!("dynamicClass.{}", frame.method),
        owner => format!("{}.{}", open(owner), frame.method),
    }
}

pub fn name_of(frame: &Frame) -> String {
    frame.name().ok().map(open).unwrap_or_default()
}

/// Number of frames compared, and the differences.
#[derive(Default)]
pub struct Report {
    pub frames: u64,
    pub il: u64,
    pub stubs: u64,
    pub wrong: Vec<String>,
    /// Frames without a name: the reason, and the expected name.
    pub unnamed: Vec<(NameReason, String)>,
}

impl Report {
    /// Everything that a complete trace must not have.
    pub fn faults(&self) -> Vec<&str> {
        let unnamed = self.unnamed.iter().map(|(_, text)| text);
        self.wrong
            .iter()
            .chain(unnamed)
            .map(String::as_str)
            .collect()
    }
}

/// Compares every expected frame of a trace with ours. `caller_offset` is what the runtime
/// subtracts from a return address before it looks up an IL offset.
pub fn check(trace: &Trace, caller_offset: u64, report: &mut Report) {
    let mut resolver = Resolver::new(&trace.timeline, None);
    let mut stacks: Vec<(u64, u64, ResolvedStack)> = Vec::new();
    trace
        .timeline
        .for_each_sample(&Filter::default(), |class, time| {
            let tid = trace
                .timeline
                .thread_view(class.thread)
                .expect("a thread")
                .tid;
            stacks.push((time, tid, resolver.resolve(class, time).expect("a stack").0));
        });
    let mut seen = 0;
    for (time, tid, stack) in stacks {
        let Some(event) = trace.truth.get(&(time, tid)) else {
            continue;
        };
        seen += 1;
        // From the outermost frame inwards, without inlinees: the runtime has physical frames only.
        let mut ours: Vec<&Frame> = resolver
            .stack(stack)
            .map(|id| resolver.frame(id))
            .filter(|frame| !frame.inlined)
            .collect();
        ours.reverse();
        let mut at = 0;
        for (i, truth) in event.frames.iter().enumerate().rev() {
            let wanted = full_name(truth);
            if wanted.ends_with("Truth.Emit") {
                // The stack trace was taken at another line than the one that wrote the event.
                break;
            }
            if wanted.ends_with("Interop.QSort") {
                // The P/Invoke itself: its raw frame is code of a stub without an event.
                report.stubs += 1;
                at += usize::from(
                    ours.get(at)
                        .is_some_and(|f| f.name().is_err() || name_of(f).contains("IL_STUB")),
                );
                continue;
            }
            let Some(frame) = ours.get(at) else {
                report
                    .wrong
                    .push(format!("{}: stack ends before {wanted}", event.site));
                break;
            };
            at += 1;
            report.frames += 1;
            if let Some(reason) = frame.name().err() {
                let text = format!("{}: {wanted}+{}: {reason:?}", event.site, truth.native);
                report.unnamed.push((reason, text));
                continue;
            }
            if name_of(frame) != wanted || frame.offset != u64::try_from(truth.native).ok() {
                report.wrong.push(format!(
                    "{}: {wanted}+{} is {}+{:?}",
                    event.site,
                    truth.native,
                    name_of(frame),
                    frame.offset
                ));
                continue;
            }
            check_il(trace, frame, truth, i == 0, caller_offset, time, report);
        }
    }
    assert_eq!(seen, trace.truth.len(), "every truth event has a stack");
}

pub fn check_il(
    trace: &Trace,
    frame: &Frame,
    truth: &TruthFrame,
    is_leaf: bool,
    caller_offset: u64,
    time: u64,
    report: &mut Report,
) {
    let process = trace
        .timeline
        .processes()
        .find(|p| p.is_managed)
        .expect("a process")
        .index;
    let raw = Position::Exact;
    let answer = if caller_offset == 0 || is_leaf {
        trace
            .timeline
            .frames(process, frame.address, time, raw, None)
            .pop()
            .and_then(|f| f.il_offset)
    } else {
        frame.il_offset
    };
    let Some(IlOffset { offset, source, .. }) = answer else {
        return;
    };
    report.il += 1;
    // The runtime reports 0 for a prolog; for an epilog entry its offset differs from ours (rule
    // 13).
    if i64::from(offset) != truth.il && source != IlSource::Nearest {
        report.wrong.push(format!(
            "{}+{}: IL {} is {offset} ({source:?})",
            full_name(truth),
            truth.native,
            truth.il
        ));
    }
}
