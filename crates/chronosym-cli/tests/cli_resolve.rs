//! `chronosym resolve`: a process that names addresses until its input ends.

#[cfg(feature = "fleet")]
#[path = "resolve/arrow.rs"]
mod arrow;
mod common;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Output, Stdio};

use std::sync::Arc;

use chronosym::chronosym_events::InlineTree;
use chronosym::facts::{self, Action, At, Method};
use chronosym::{Frame, Options, Position, SaveOptions, Session, Timeline};
use chronosym_support::payload::inline_tree;
use chronosym_support::random::Random;
use common::{REUSE, arg, chronosym, json_lines, run, run_with_input};

/// A row as ClickHouse writes it.
fn row(key: &str, time: i64, address: u64) -> Vec<u8> {
    assert!(key.len() < 0x80);
    let mut row = vec![key.len() as u8];
    row.extend(key.as_bytes());
    row.extend(time.to_le_bytes());
    row.extend(address.to_le_bytes());
    row
}

/// Reads a LEB128 number.
fn number(out: &mut impl Read) -> usize {
    let (mut value, mut shift) = (0, 0);
    loop {
        let mut byte = [0];
        out.read_exact(&mut byte).unwrap();
        value |= usize::from(byte[0] & 0x7f) << shift;
        shift += 7;
        if byte[0] < 0x80 {
            return value;
        }
    }
}

/// Reads the names of a row.
fn names(out: &mut impl Read) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..number(out) {
        let mut name = vec![0; number(out)];
        out.read_exact(&mut name).unwrap();
        names.push(String::from_utf8(name).unwrap());
    }
    names
}

struct Resolver {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Resolver {
    fn start(timelines: &Path, options: &[&str]) -> Self {
        let mut child = chronosym()
            .args(["resolve", "--stdin", "rowbinary", "--timelines"])
            .arg(timelines)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = child.stdout.take().unwrap();
        Resolver {
            child,
            input,
            output,
        }
    }

    /// Asks for one row: the answer comes while the input stays open.
    fn ask(&mut self, key: &str, time: i64, address: u64) -> Vec<String> {
        self.input.write_all(&row(key, time, address)).unwrap();
        self.input.flush().unwrap();
        names(&mut self.output)
    }

    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

/// Time in ns since 1970, address and name of samples, and the pid.
fn samples(trace: &str) -> (Vec<(i64, u64, String)>, u64) {
    let lines = json_lines(&["stacks", "--format", "jsonl", trace]);
    let recording = chronosym::open(trace).unwrap();
    let (timeline, _) = recording.timeline(chronosym::Options::default()).unwrap();
    let start = timeline.facts().start_unix_ns.unwrap() as i64;
    let named = lines.iter().filter_map(|sample| {
        let leaf = &sample["frames"][0];
        let is_leaf = sample["kind"] == "wall_managed" && leaf["inlined"].is_null();
        let name = leaf["name"].as_str().filter(|_| is_leaf)?;
        let name = match leaf["module"].as_str() {
            Some(module) => format!("{module}!{name}"),
            None => name.to_owned(),
        };
        let address = leaf["address"].as_str().unwrap().trim_start_matches("0x");
        let address = u64::from_str_radix(address, 16).unwrap();
        Some((start + sample["time_ns"].as_i64().unwrap(), address, name))
    });
    (named.collect(), lines[0]["pid"].as_u64().unwrap())
}

/// A folder with the timeline of a trace under two names.
fn timelines(trace: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("a.chrono");
    let run = run(&["save", trace, "-o", saved.to_str().unwrap()]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    std::fs::copy(&saved, folder.path().join("b.chrono")).unwrap();
    folder
}

#[test]
fn rows_are_named_while_the_input_stays_open() {
    let trace = arg(REUSE);
    let folder = timelines(&trace);
    let (samples, pid) = samples(&trace);
    assert!(samples.len() > 50, "{}", samples.len());
    // With room for one timeline, two in turn are opened again and again.
    for (options, step) in [([].as_slice(), 20), (&["--max-open", "1"], 500)] {
        let mut resolver = Resolver::start(folder.path(), options);
        for (number, (time, address, name)) in samples.iter().step_by(step).enumerate() {
            let key = match number % 3 {
                0 => "a.chrono".to_owned(),
                1 => "b.chrono".to_owned(),
                _ => format!("a.chrono#{pid}"),
            };
            let names = resolver.ask(&key, *time, *address);
            assert_eq!(names.concat(), *name, "{key}");
        }
        resolver.end();
    }
}

/// Passes rows of a format to the command, and returns its output.
fn resolve(timelines: &Path, format: &str, rows: Vec<u8>, options: &[&str]) -> Output {
    let mut child = chronosym()
        .args(["resolve", "--stdin", format, "--timelines"])
        .arg(timelines)
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A program that stops early leaves the rest of its input unread.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&rows)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

#[test]
fn a_batch_is_named_in_its_order() {
    let trace = arg(REUSE);
    let folder = timelines(&trace);
    let (samples, _) = samples(&trace);
    let keys = ["a.chrono", "missing.chrono", "b.chrono"];
    let rows = (0..100_000).map(|n| (keys[n % 3], &samples[n % samples.len()]));
    let input: Vec<u8> = rows
        .clone()
        .flat_map(|(key, it)| row(key, it.0, it.1))
        .collect();
    let output = resolve(folder.path(), "rowbinary", input, &[]);
    let mut output = output.stdout.as_slice();
    for (key, (_, address, name)) in rows {
        let expected = match key {
            "missing.chrono" => format!("{address:#x} (NoTimeline)"),
            _ => name.clone(),
        };
        assert_eq!(names(&mut output), [expected]);
    }
    assert!(output.is_empty());
}

/// The names of frames, each with its reason if it has none.
fn labels(frames: &[Frame]) -> Vec<String> {
    let label = |it: &Frame| match it.name() {
        Ok(_) => it.label().to_owned(),
        Err(reason) => format!("{} ({})", it.label(), reason.as_str()),
    };
    frames.iter().map(label).collect()
}

/// Every address of code that was inlined, and of code that was not, in two batches: the second one knows the bodies.
#[test]
fn names_of_bodies_are_those_of_their_addresses() {
    let folder = timelines(&arg("clr10/traces/rich.nettrace.zip"));
    let recording = chronosym::open(folder.path().join("a.chrono")).unwrap();
    let (timeline, _) = recording.timeline(chronosym::Options::default()).unwrap();
    let start = timeline.facts().start_unix_ns.unwrap() as u64;
    let process = timeline.processes().next().unwrap().index;
    let (mut rows, mut wanted) = (Vec::new(), Vec::new());
    for body in timeline.bodies(process).filter(|it| it.name.is_some()) {
        let time_ns = body.lifetime.from;
        for address in (body.start..body.start + body.size).step_by(31) {
            rows.extend(row("a.chrono", (start + time_ns) as i64, address));
            let frames = timeline.frames(process, address, time_ns, Position::Exact, None);
            wanted.push(labels(&frames));
        }
    }
    assert!(wanted.iter().any(|names| names.len() > 1));
    // By the time of the second half, all bodies are known.
    let output = resolve(folder.path(), "rowbinary", rows.repeat(2), &[]);
    let mut output = output.stdout.as_slice();
    for of_row in wanted.iter().chain(&wanted) {
        assert_eq!(names(&mut output), *of_row);
    }
}

/// First address, bytes of code and end of time in [`history`].
const CODE: u64 = 0x10_0000;
const EXTENT: u64 = 0x1000;
const END: u64 = 10_000;

/// Processes whose code is loaded, replaced and unloaded at random, with inlinees and without names.
fn history(random: &mut Random, pids: &[u32]) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    session.facts().start_unix_ns = Some(1_000_000);
    let mut time = 0;
    for number in 1..200 {
        time += random.below(2 * END / 200);
        let at = At::new(time)
            .process(pids[random.index(pids.len())])
            .thread(1);
        // Methods have several bodies, and many bodies an address.
        let id = 1 + random.below(50);
        let (start, size) = (
            CODE + random.below(EXTENT / 16) * 16,
            16 + random.below(256),
        );
        let action = match random.below(4) {
            0 => Action::Unload,
            _ => Action::Load,
        };
        let method = Method::new(action, id, start, size as u32);
        let name = format!("Run{id}");
        match random.below(8) {
            0 => session.apply(at, method),
            _ => session.apply(at, method.named("Ns.Type", &name, "void ()")),
        };
        if number % 3 == 0 {
            let inlinee = 1 + random.below(50);
            let (from, to) = (random.below(64) as u32, random.below(256) as u32);
            let tree = inline_tree(
                &[(id, 0, 1, 0), (inlinee, 7, 0, 0)],
                &[(3, 1, from), (5, 0, from + to)],
            );
            let tree = InlineTree::parse(&tree).unwrap();
            session.apply(at, facts::InlineTree::new(id, tree));
        }
    }
    session.finish()
}

/// Blocks of rows, known bodies and known addresses give the names that single lookups give.
#[test]
fn rows_of_random_histories_have_the_names_of_single_lookups() {
    let (mut inlined, mut unnamed, mut named) = (0, 0, 0);
    for seed in 0..6 {
        let random = &mut Random::new(seed);
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<_> = (0..3).map(|_| history(random, &[42])).collect();
        for (number, timeline) in all.iter().enumerate() {
            let bytes = timeline.save(Vec::new(), &SaveOptions::new()).unwrap();
            std::fs::write(folder.path().join(format!("{number}.chrono")), bytes).unwrap();
        }
        let (position, options) = match seed % 2 {
            0 => (Position::Exact, [].as_slice()),
            _ => (Position::Return, ["--caller"].as_slice()),
        };
        let (mut rows, mut wanted) = (Vec::new(), Vec::new());
        for _ in 0..5_000 {
            let number = random.index(all.len());
            let (address, time) = (CODE + random.below(EXTENT + 512), random.below(END));
            rows.extend(row(
                &format!("{number}.chrono"),
                1_000_000 + time as i64,
                address,
            ));
            let timeline = &all[number];
            let process = timeline.find_process(42, None).unwrap();
            let frames = timeline.frames(process, address, time, position, None);
            inlined += usize::from(frames.len() > 1);
            match frames[0].name() {
                Ok(_) => named += 1,
                Err(_) => unnamed += 1,
            }
            wanted.push(labels(&frames));
        }
        let output = resolve(folder.path(), "rowbinary", rows.repeat(3), options);
        let mut output = output.stdout.as_slice();
        for of_row in wanted.iter().cycle().take(3 * wanted.len()) {
            assert_eq!(names(&mut output), *of_row, "seed {seed}");
        }
        assert!(output.is_empty());
    }
    assert!(
        inlined > 500 && unnamed > 500 && named > 500,
        "{inlined} {unnamed} {named}"
    );
}

/// A few rows read a part of each timeline, which is closed before the next one.
#[test]
fn a_part_of_a_timeline_gives_the_names_of_all_of_it() {
    let random = &mut Random::new(11);
    let folder = tempfile::tempdir().unwrap();
    let all: Vec<_> = (0..2).map(|_| history(random, &[42, 43])).collect();
    for (number, timeline) in all.iter().enumerate() {
        let bytes = timeline.save(Vec::new(), &SaveOptions::new()).unwrap();
        std::fs::write(folder.path().join(format!("{number}.chrono")), bytes).unwrap();
    }
    for (position, options) in [
        (Position::Exact, ["--max-open", "1"].as_slice()),
        (Position::Return, &["--max-open", "1", "--caller"]),
    ] {
        let mut resolver = Resolver::start(folder.path(), options);
        let mut named = 0;
        for row in 0..400 {
            let (timeline, pid) = (&all[row % 2], 42 + random.below(2) as u32);
            let (address, time) = (CODE + random.below(EXTENT + 512), random.below(END));
            let process = timeline.find_process(pid, None).unwrap();
            let frames = timeline.frames(process, address, time, position, None);
            named += usize::from(frames[0].name().is_ok());
            let key = format!("{}.chrono#{pid}", row % 2);
            let names = resolver.ask(&key, 1_000_000 + time as i64, address);
            assert_eq!(names, labels(&frames), "{key} {address:#x} {time}");
        }
        assert!(named > 50, "{named}");
        resolver.end();
    }
}

#[test]
fn a_few_rows_read_only_their_part_of_a_timeline() {
    let trace = arg(REUSE);
    let folder = timelines(&trace);
    let (samples, _) = samples(&trace);
    let path = folder.path().join("a.chrono");
    let mut bytes = std::fs::read(&path).unwrap();
    // Blocks of code come first.
    let damaged = bytes.len() / 4;
    bytes[damaged] ^= 0xff;
    std::fs::write(&path, bytes).unwrap();
    let distinct: BTreeMap<u64, _> = samples.iter().map(|it| (it.1, it)).collect();
    let (mut named, mut refused) = (0, 0);
    for (time, address, name) in distinct.values().step_by(distinct.len() / 20) {
        let mut resolver = Resolver::start(folder.path(), &[]);
        let unreadable = format!("{address:#x} (UnreadableTimeline)");
        match resolver.ask("a.chrono", *time, *address) {
            names if names == [name.as_str()] => {
                named += 1;
                // Others need all of it.
                let others = resolver.ask("a.chrono", *time, 0x1234_5678);
                assert_eq!(others, ["0x12345678 (UnreadableTimeline)"]);
            }
            names => {
                assert_eq!(names, [unreadable]);
                refused += 1;
            }
        }
        resolver.end();
    }
    assert!(named > 10, "{named} {refused}");
}

#[test]
fn a_timeline_that_changes_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let mut resolver = Resolver::start(folder.path(), &[]);
    assert_eq!(resolver.ask("a.chrono", 0, 16), ["0x10 (NoTimeline)"]);
    let trace = arg(REUSE);
    std::fs::copy(
        timelines(&trace).path().join("a.chrono"),
        folder.path().join("a.chrono"),
    )
    .unwrap();
    let (time, address, name) = samples(&trace).0.remove(0);
    assert_eq!(resolver.ask("a.chrono", time, address), [name]);
    std::fs::write(folder.path().join("a.chrono"), "no timeline").unwrap();
    let answer = resolver.ask("a.chrono", time, address);
    assert_eq!(answer, [format!("{address:#x} (UnreadableTimeline)")]);
    resolver.end();
}

#[test]
fn keys_are_names_of_files_in_the_folder() {
    let trace = arg(REUSE);
    let folder = timelines(&trace);
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let absolute = folder.path().join("a.chrono");
    let mut resolver = Resolver::start(&inner, &[]);
    for key in [
        "../a.chrono",
        absolute.to_str().unwrap(),
        "",
        ".",
        "a\0b",
        "inner/../../a.chrono",
    ] {
        assert_eq!(resolver.ask(key, 0, 1), ["0x1 (NoTimeline)"], "{key:?}");
    }
    resolver.end();
    let mut resolver = Resolver::start(folder.path(), &[]);
    for key in ["a.chrono#1", "a.chrono#99999999999999999999"] {
        assert_eq!(resolver.ask(key, 0, 1), ["0x1 (NoSuchProcess)"], "{key:?}");
    }
    resolver.end();
}

#[test]
fn wrong_input_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let long = [0xff, 0xff, 0xff, 0x7f];
    let cut = &row("a", 1, 2)[..10];
    for (input, expected) in [
        (long.as_slice(), "more than 4096"),
        (&[0xff; 10], "more than 5 bytes"),
        (cut, "ends within a row"),
    ] {
        let run = run_with_input(
            &["resolve", "--stdin", "rowbinary", "--timelines", folder],
            input,
        );
        assert_eq!(run.status, 1);
        assert!(run.stderr.contains(expected), "{}", run.stderr);
    }
    let run = run(&["resolve", "--stdin", "rowbinary", "--timelines", "/nowhere"]);
    assert_eq!(run.status, 2, "{}", run.stderr);
}

#[cfg(not(feature = "fleet"))]
#[test]
fn arrow_needs_the_feature() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().to_str().unwrap();
    let run = run_with_input(&["resolve", "--stdin", "arrow", "--timelines", folder], b"");
    assert!(run.stderr.contains("--features fleet"), "{}", run.stderr);
}
