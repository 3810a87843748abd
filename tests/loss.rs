//! Certainty after lost events, and which address of a frame is looked up.

use std::collections::HashMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use chronosym::facts::{At, Method, Module, Process, Sample};
use chronosym::{
    Action, Certainty, EventSelector, Filter, Frame, Loss, ModuleRef, NameReason, Options,
    Position, Resolver, SampleKind, SampleSelection, Session, SymbolSource, Timeline,
};

const PID: u32 = 42;

fn session() -> Session {
    let mut session = Session::new(Options::default());
    session.facts().pointer_size = Some(8);
    session.apply(at(0), Process::new(Action::DCStart, "app"));
    session
}

fn at(time: u64) -> At {
    At::new(time).process(PID).thread(7)
}

fn method(action: Action, id: u64, start: u64, name: &'static str) -> Method<'static> {
    let method = Method::new(action, id, start, 0x40).in_module(1, 0x0600_0000 | id as u32);
    match name {
        "" => method,
        name => method.named("T", name, "void ()"),
    }
}

fn frame(
    timeline: &Timeline,
    address: u64,
    time: u64,
    symbols: Option<&dyn SymbolSource>,
) -> Frame {
    let process = timeline.find_process(PID, None).expect("the process");
    timeline
        .frames(process, address, time, Position::Exact, symbols)
        .remove(0)
}

/// Rule 6: the end of a module ends a body, whose own unload may be lost.
#[test]
fn an_end_by_the_container_confirms_nothing_after_a_loss() {
    for (has_unload, has_loss) in [(false, true), (true, true), (false, false)] {
        let mut session = session();
        session.apply(at(5), Module::new(Action::Load, 1, "/app/a.dll"));
        session.apply(at(10), method(Action::Load, 1, 0x1000, "Run"));
        if has_loss {
            session.lost(Loss::between(40, 50));
        }
        if has_unload {
            session.apply(at(90), method(Action::Unload, 1, 0x1000, "Run"));
        }
        session.apply(at(100), Module::new(Action::Unload, 1, "/app/a.dll"));
        let timeline = session.finish();
        let answer = |time| {
            let frame = frame(&timeline, 0x1010, time, None);
            assert_eq!(frame.name(), Ok("T.Run"));
            (frame.certainty, frame.is_guess())
        };
        let exact = (Some(Certainty::Exact), false);
        let doubtful = match has_loss && !has_unload {
            true => (Some(Certainty::Inferred), true),
            false => exact,
        };
        assert_eq!(answer(39), exact);
        assert_eq!(answer(60), doubtful);
        assert_eq!(answer(85), doubtful);
    }
}

// Rule 9.
#[test]
fn the_first_user_frame_below_kernel_frames_is_looked_up_at_its_own_address() {
    const KERNEL: u64 = 0xffff_8000_0000_1000;
    for kind in [SampleKind::Cpu, SampleKind::Event] {
        let mut session = Session::new(SampleSelection::Events(
            EventSelector::parse("Samples").into_iter().collect(),
        ));
        session.facts().pointer_size = Some(8);
        session.apply(at(0), Process::new(Action::DCStart, "app"));
        session.apply(at(1), method(Action::Load, 1, 0x1000, "Before"));
        session.apply(at(1), method(Action::Load, 2, 0x1040, "At"));
        let stack = [KERNEL + 8, KERNEL, 0x1040, 0x1040];
        session.sample(at(5), &stack, Sample::new(kind));
        session.sample(at(6), &[0x1044, 0x1040], Sample::new(kind));
        let timeline = session.finish();
        let mut resolver = Resolver::new(&timeline, None);
        let mut stacks = Vec::new();
        timeline.for_each_sample(&Filter::default(), |class, time| {
            let (stack, _) = resolver.resolve(class, time).expect("a stack");
            let names = resolver
                .stack(stack)
                .map(|id| resolver.frame(id).label().to_owned());
            stacks.push(names.collect::<Vec<_>>());
        });
        assert_eq!(stacks[0][2..], ["T.At", "T.Before"], "{kind}");
        assert_eq!(stacks[1], ["T.At", "T.Before"], "{kind}");
        let process = timeline.find_process(PID, None).expect("the process");
        let when = chronosym::When::At(5);
        let leaf = kind.leaf_position();
        let (stack, _) = resolver
            .resolve_addresses(process, &stack, when, leaf)
            .expect("frames");
        let names = resolver
            .stack(stack)
            .map(|id| resolver.frame(id).label().to_owned());
        assert_eq!(names.collect::<Vec<_>>()[2..], ["T.At", "T.Before"]);
    }
}

#[test]
fn a_kernel_address_does_not_lack_a_rundown() {
    let mut session = session();
    session.apply(at(1), method(Action::Load, 1, 0x1000, "Run"));
    let timeline = session.finish();
    let reason = |address| frame(&timeline, address, 5, None).name().err();
    assert_eq!(
        reason(0xffff_8000_0000_1000),
        Some(NameReason::NoCodeAtAddress)
    );
    assert_eq!(reason(0x9000), Some(NameReason::NoRundown));
}

struct Metadata;

impl SymbolSource for Metadata {
    fn method_name(&self, module: &ModuleRef<'_>, token: u32) -> Option<(String, String)> {
        let is_it = module.il_path == "/app/PluginA.dll" && token == 0x0600_0001;
        is_it.then(|| ("Plugin".to_owned(), "Run".to_owned()))
    }
}

#[test]
fn methods_without_names_in_events_are_named_by_their_tokens() {
    let mut session = session();
    session.apply(at(1), Module::new(Action::Load, 1, "/app/PluginA.dll"));
    session.apply(at(2), method(Action::Load, 1, 0x1000, ""));
    session.apply(
        at(2),
        Method::new(Action::Load, 2, 0x2000, 0x40).in_module(1, 0),
    );
    let timeline = session.finish();
    let label = |address, symbols| frame(&timeline, address, 5, symbols).label().to_owned();
    assert_eq!(label(0x1010, Some(&Metadata)), "PluginA!Plugin.Run");
    assert_eq!(label(0x1010, None), "PluginA!0x06000001");
    let unnamed = frame(&timeline, 0x1010, 5, None);
    assert_eq!(unnamed.name(), Err(NameReason::NoName));
    assert_eq!(
        (unnamed.token, unnamed.module()),
        (Some(0x0600_0001), Some("PluginA"))
    );
    assert_eq!(
        label(0x2010, Some(&Metadata)),
        "0x2010",
        "a nil token names nothing"
    );
}

/// The objects of a nettrace V4 or V5 file.
struct Objects {
    head: Vec<u8>,
    /// The header of each object, its name, its content, and whether the content is a block.
    list: Vec<(Vec<u8>, String, Vec<u8>)>,
}

impl Objects {
    fn of(bytes: &[u8]) -> Self {
        const HEAD: usize = 32;
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let (mut at, mut list) = (HEAD, Vec::new());
        while bytes[at] == 5 {
            let name_at = at + 15;
            let name_end = name_at + number(at + 11);
            let name = String::from_utf8(bytes[name_at..name_end].to_vec()).unwrap();
            let header = bytes[at..name_end + 1].to_vec();
            at = name_end + 1;
            let end = match name.as_str() {
                "Trace" => at + 48,
                _ => {
                    let size = number(at);
                    at = (at + 4).next_multiple_of(4);
                    at + size
                }
            };
            list.push((header, name, bytes[at..end].to_vec()));
            assert_eq!(bytes[end], 6, "the end of an object");
            at = end + 1;
        }
        Objects {
            head: bytes[..HEAD].to_vec(),
            list,
        }
    }

    /// The file without the blocks of events and stacks that `drop` selects by number.
    fn without(&self, drop: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut bytes = self.head.clone();
        for (number, (header, name, content)) in self.list.iter().enumerate() {
            if matches!(name.as_str(), "EventBlock" | "StackBlock") && drop(number) {
                continue;
            }
            bytes.extend_from_slice(header);
            if name != "Trace" {
                bytes.extend((content.len() as u32).to_le_bytes());
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes.extend_from_slice(content);
            bytes.push(6);
        }
        bytes.push(1);
        bytes
    }
}

/// Address, name and certainty of the frames of a stack.
type Frames = Vec<(u64, bool, Option<String>, Option<Certainty>)>;

fn read(bytes: &[u8]) -> HashMap<(u64, u64), Frames> {
    let events = ["Microsoft-DotNETCore-SampleProfiler", "Workload-Truth"];
    let events = events.iter().filter_map(|name| EventSelector::parse(name));
    let mut session = Session::new(SampleSelection::Events(events.collect()));
    chronosym::source::nettrace::read(Cursor::new(bytes), &mut session).expect("a trace");
    let timeline: Arc<Timeline> = session.finish();
    let mut resolver = Resolver::new(&timeline, None);
    let mut samples = HashMap::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let tid = timeline.thread_view(class.thread).expect("a thread").tid;
        let (stack, _) = resolver.resolve(class, time).expect("a stack");
        let frames = resolver.stack(stack).map(|id| {
            let frame = resolver.frame(id);
            let name = frame.name().ok().map(str::to_owned);
            (frame.address, frame.inlined, name, frame.certainty)
        });
        samples.insert((time, tid), frames.collect());
    });
    samples
}

#[derive(Debug, Default)]
struct Score {
    right: u64,
    /// Right and not exact, although exact without the loss.
    doubted: u64,
    wrong: u64,
    wrong_and_exact: Vec<String>,
}

impl Score {
    /// Compares the frames of a stack, by address; inlinees only if both have the same number.
    fn add(&mut self, what: &str, whole: &Frames, damaged: &Frames) {
        let addresses = |frames: &Frames| {
            let hosts = frames.iter().filter(|frame| !frame.1);
            hosts.map(|frame| frame.0).collect::<Vec<_>>()
        };
        if addresses(whole) != addresses(damaged) {
            return;
        }
        let is_host = |frame: &&(u64, bool, Option<String>, Option<Certainty>)| !frame.1;
        let pairs: Vec<_> = match whole.len() == damaged.len() {
            true => whole.iter().zip(damaged).collect(),
            false => {
                let hosts = damaged.iter().filter(is_host);
                whole.iter().filter(is_host).zip(hosts).collect()
            }
        };
        for ((address, _, truth, sure), (_, _, name, certainty)) in pairs {
            let (Some(truth), Some(name)) = (truth, name) else {
                continue;
            };
            let is_exact = *certainty == Some(Certainty::Exact);
            if truth == name {
                self.right += 1;
                self.doubted += u64::from(*sure == Some(Certainty::Exact) && !is_exact);
            } else {
                self.wrong += 1;
                if is_exact {
                    let text = format!("{what}: {address:#x} is {truth}, not {name}");
                    self.wrong_and_exact.push(text);
                }
            }
        }
    }
}

#[test]
fn no_name_is_wrong_and_exact_after_lost_blocks() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let mut score = Score::default();
    for trace in [
        "clr10/traces/all",
        "clr10/traces/reuse",
        "clr10/traces/rich",
        "clr10/traces/entry",
        "clr10/traces/default",
        "clr31/workload/traces/reuse",
    ] {
        let path = testdata.join(format!("{trace}.nettrace.zip"));
        let bytes = chronosym_conformance::unzip(&path, ".nettrace").expect("a trace");
        let objects = Objects::of(&bytes);
        let whole = read(&objects.without(|_| false));
        assert_eq!(whole, read(&bytes), "{trace} is read as before");
        let count = objects.list.len();
        // Runs of blocks from the first to the last, then a sixth of all.
        for trial in 0..8 {
            let (from, to) = (count * trial / 6, count * trial / 6 + 1 + count / 20);
            let is_dropped = |number: usize| match trial {
                0..6 => (from..to).contains(&number),
                _ => (number * 7 + trial * 3).is_multiple_of(6),
            };
            let damaged = read(&objects.without(is_dropped));
            for (sample, frames) in &damaged {
                if let Some(truth) = whole.get(sample) {
                    score.add(&format!("{trace} {trial} {sample:?}"), truth, frames);
                }
            }
        }
    }
    let Score {
        right,
        doubted,
        wrong,
        wrong_and_exact,
    } = score;
    println!("{right} right, {doubted} of them no longer exact, {wrong} wrong");
    let first: Vec<_> = wrong_and_exact.iter().take(10).collect();
    assert!(
        first.is_empty(),
        "{} names are wrong and exact: {first:#?}",
        wrong_and_exact.len()
    );
    assert!(right > 100_000, "only {right} frames were compared");
}
