//! Tables read back show what the recording shows.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use chronosym::facts::{At, Method, Process, Sample};
use chronosym::{
    Action, Certainty, Diagnostics, Filter, Host, Limits, Options, SampleKind, Session, Timeline,
    Weight,
};
use chronosym_fleet::{Exporter, Format, FrameNames, Trace};

fn open(name: &str) -> Arc<Timeline> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/clr10/traces");
    let recording = chronosym::open(folder.join(name)).unwrap();
    recording.timeline(Options::default()).unwrap().0
}

fn read(path: &Path) -> (Arc<Timeline>, Diagnostics) {
    let mut session = Session::new(Options::default());
    let diagnostics = chronosym_fleet::read(path, &Limits::default(), &mut session).unwrap();
    (session.finish(), diagnostics)
}

/// Samples and weights by process, thread, stack of labels, and kind.
type Stacks = BTreeMap<(Option<u32>, u64, Vec<String>, &'static str), [u64; 5]>;

fn stacks(timeline: &Arc<Timeline>) -> Stacks {
    let profile = timeline.profile(&Filter::default(), None);
    let mut stacks = Stacks::new();
    for entry in &profile.entries {
        let thread = timeline.thread_view(entry.thread).unwrap();
        let pid = timeline.process_view(thread.process).unwrap().pid;
        let frames = profile.resolver.stack(entry.stack);
        let labels = frames.map(|frame| profile.resolver.frame(frame).label().to_owned());
        let key = (pid, thread.tid, labels.collect(), entry.kind.as_str());
        let counts = stacks.entry(key).or_default();
        let all = [
            entry.samples,
            entry.time_ns,
            entry.untimed,
            entry.bytes,
            entry.events,
        ];
        for (count, more) in counts.iter_mut().zip(all) {
            *count += more;
        }
    }
    stacks
}

#[test]
fn stacks_and_weights_are_those_of_the_recording() {
    for name in ["all", "linux", "memory", "rich", "reuse", "norundown"] {
        let timeline = open(&format!("{name}.nettrace.zip"));
        let expected = stacks(&timeline);
        assert!(!expected.is_empty());
        for format in [Format::Parquet, Format::Arrow] {
            let folder = tempfile::tempdir().unwrap();
            let exporter = Exporter::new(folder.path()).format(format);
            exporter.export(&Trace::new(name, &timeline)).unwrap();
            let (read, _) = read(folder.path());
            let shown = stacks(&read);
            let differ = |row: &(&_, &_)| expected.get(row.0) != Some(row.1);
            assert_eq!(shown.iter().find(differ), None, "{name}, {format:?}");
            assert_eq!(shown.len(), expected.len(), "{name}");
        }
    }
}

#[test]
fn addresses_come_back_as_addresses() {
    let timeline = open("linux.nettrace.zip");
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::new(folder.path()).names(FrameNames::Addresses);
    let exported = exporter.export(&Trace::new("x", &timeline)).unwrap();
    let shown = stacks(&read(folder.path()).0);
    let samples: u64 = shown.values().map(|counts| counts[0]).sum();
    assert_eq!(samples, exported.samples);
    let labels = shown.keys().flat_map(|key| &key.2);
    let is_address = |label: &String| label.starts_with("0x") || label.contains("!+0x");
    assert!(labels.into_iter().all(is_address));
}

/// One second of a process, with a sample every 100 ms.
fn session(method: &str, action: Action) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    session.facts().start_unix_ns = Some(1_700_000_000_000_000_000);
    let at = At::new(0).process(42).thread(7);
    session.apply(at, Process::new(Action::Load, "app"));
    let end = at.at(match action {
        Action::DCEnd => 1_000_000_000,
        _ => 0,
    });
    session.apply(
        end,
        Method::new(action, 1, 0x1000, 64).named("Ns.Type", method, ""),
    );
    let sample = Sample::new(SampleKind::Cpu).weighing(Weight::Ns(100));
    for time in 1..=10 {
        session.sample(at.at(time * 100_000_000), &[0x1010], sample);
    }
    session.finish()
}

#[test]
fn processes_of_two_machines_with_one_id_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    for (host, method) in [("a", "First"), ("b", "Second"), ("b", "Second")] {
        let timeline = session(method, Action::Load);
        let mut trace = Trace::new(host, &timeline);
        trace.host = Some(Host::new(host, "boot"));
        Exporter::new(folder.path()).export(&trace).unwrap();
    }
    let (timeline, _) = read(folder.path());
    let shown = stacks(&timeline);
    let stacks: Vec<_> = shown
        .iter()
        .map(|(key, counts)| (key.0, &*key.2[0], counts[1]))
        .collect();
    let other = 1 << 31;
    assert_eq!(
        stacks,
        [
            (Some(42), "Ns.Type.First", 1000),
            (Some(other), "Ns.Type.Second", 1000)
        ]
    );
    assert!(
        timeline
            .processes()
            .all(|process| process.name == Some("app"))
    );
    // A file alone.
    let file = std::fs::read_dir(folder.path().join("samples"))
        .unwrap()
        .next()
        .unwrap();
    let (timeline, _) = read(&file.unwrap().path());
    assert_eq!(timeline.profile(&Filter::default(), None).samples(), 10);
}

#[test]
fn names_are_no_more_certain_than_they_were() {
    for (action, expected) in [
        (Action::Load, Certainty::Exact),
        (Action::DCEnd, Certainty::Inferred),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let timeline = session("Run", action);
        Exporter::new(folder.path())
            .export(&Trace::new("x", &timeline))
            .unwrap();
        let of_trace = timeline.profile(&Filter::default(), None);
        let leaf = of_trace.resolver.leaf(of_trace.entries[0].stack);
        assert_eq!(of_trace.resolver.frame(leaf).certainty, Some(expected));
        let profile = read(folder.path()).0.profile(&Filter::default(), None);
        for entry in &profile.entries {
            let frame = profile.resolver.frame(profile.resolver.leaf(entry.stack));
            assert_eq!(frame.certainty, Some(expected));
        }
        assert_eq!(profile.samples(), 10);
    }
}

/// Changed bytes and cut files: an answer or an error, and no panic.
#[test]
fn damaged_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let timeline = session("Run", Action::Load);
    for format in [Format::Parquet, Format::Arrow] {
        let tables = folder.path().join(format.extension());
        let exporter = Exporter::new(&tables).format(format);
        exporter.export(&Trace::new("x", &timeline)).unwrap();
        let mut refused = 0;
        for table in ["samples", "stacks", "frames"] {
            let path = std::fs::read_dir(tables.join(table))
                .unwrap()
                .next()
                .unwrap();
            let path = path.unwrap().path();
            let whole = std::fs::read(&path).unwrap();
            for at in (0..whole.len()).step_by(whole.len() / 100) {
                let mut changed = whole.clone();
                changed[at] ^= 0x55;
                std::fs::write(&path, changed).unwrap();
                let mut session = Session::new(Options::default());
                let read = chronosym_fleet::read(&tables, &Limits::default(), &mut session);
                refused += u64::from(read.is_err());
                drop(session.finish());
            }
            for length in [0, 1, 10, whole.len() / 2, whole.len() - 1] {
                std::fs::write(&path, &whole[..length]).unwrap();
                let mut session = Session::new(Options::default());
                let read = chronosym_fleet::read(&tables, &Limits::default(), &mut session);
                let error = read.unwrap_err().to_string();
                assert!(error.contains(path.to_str().unwrap()), "{error}");
            }
            std::fs::write(&path, whole).unwrap();
        }
        assert!(refused > 50, "{refused}");
    }
}
