//! Source lines: every frame for which a trace's own expected stacks have a file and a line must
//! have that file and that line.

mod workload;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use chronosym::symbols::{StoreConfig, SymbolOptions, Symbolizer};
use chronosym::{
    Certainty, Evidence, Filter, Frame, LineReason, Position, ResolvedStack, Resolver, SymbolSource,
};
use workload::{Trace, TruthFrame, full_name, load, name_of, open, testdata};

fn symbols(folders: &[PathBuf]) -> Symbolizer {
    let mut config = StoreConfig::new();
    config.folders = folders.to_vec();
    Symbolizer::new(config, SymbolOptions::default())
}

fn folder(path: &str) -> Arc<Symbolizer> {
    Arc::new(symbols(&[testdata().join(path)]))
}

/// Calls `each` with every physical frame in both the expected stacks and ours.
fn compare(trace: &Trace, symbols: &Arc<Symbolizer>, mut each: impl FnMut(&TruthFrame, &Frame)) {
    let mut resolver = Resolver::new(&trace.timeline, Some(symbols.clone()));
    for (time, tid, stack) in stacks(trace, &mut resolver) {
        let Some(event) = trace.truth.get(&(time, tid)) else {
            continue;
        };
        let mut ours = resolver
            .stack(stack)
            .map(|id| resolver.frame(id))
            .filter(|frame| !frame.inlined)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .peekable();
        for truth in event.frames.iter().rev() {
            let name = full_name(truth);
            if name.ends_with("Truth.Emit") {
                // The stack trace was taken at another line than the one that wrote the event.
                break;
            }
            if name.ends_with("Interop.QSort") {
                // The P/Invoke itself: its raw frame is code of a stub.
                ours.next_if(|f| f.name().is_err() || name_of(f).contains("IL_STUB"));
                continue;
            }
            let frame = ours.next().expect("a frame");
            assert_eq!(
                (name_of(frame), frame.offset),
                (name, u64::try_from(truth.native).ok())
            );
            each(truth, frame);
        }
    }
}

fn stacks(trace: &Trace, resolver: &mut Resolver) -> Vec<(u64, u64, ResolvedStack)> {
    let mut stacks = Vec::new();
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
    stacks
}

/// Every line of the truth of a trace, but for those that `excused` accepts: (truth, ours) lines of
/// a method.
fn assert_lines(
    trace: &str,
    symbols: &Arc<Symbolizer>,
    least: usize,
    excused: impl Fn(&str, u32, u32) -> bool,
) {
    let loaded = load(trace);
    let (mut right, mut excuses, mut wrong) = (0, 0, Vec::new());
    compare(&loaded, symbols, |truth, frame| {
        let Some((file, line)) = &truth.line else {
            return;
        };
        match &frame.line {
            Ok(ours) if &*ours.file == file && ours.line == *line => right += 1,
            Ok(ours) if &*ours.file == file && excused(&full_name(truth), *line, ours.line) => {
                excuses += 1;
            }
            ours => wrong.push(format!(
                "{}+{} IL {:?}: {file}:{line} is {ours:?} {:?}",
                full_name(truth),
                truth.native,
                frame.il_offset,
                frame.line_reason()
            )),
        }
    });
    println!("{trace}: {right} lines right, {excuses} excused");
    let all = right + excuses + wrong.len();
    wrong.sort();
    wrong.dedup();
    assert!(
        wrong.is_empty(),
        "{trace}: of {all} lines these are wrong:\n{}",
        wrong.join("\n")
    );
    assert!(right >= least, "{trace}: only {right} lines");
}

fn none(_: &str, _: u32, _: u32) -> bool {
    false
}

// Rule 14.
#[test]
fn lines_of_net_10() {
    for (trace, least) in [
        ("all", 592),
        ("reuse", 1298),
        ("rich", 675),
        ("entry", 624),
        ("default", 852),
        ("attach", 481),
    ] {
        let symbols = folder("clr10/workload");
        assert_lines(
            &format!("clr10/traces/{trace}.nettrace.zip"),
            &symbols,
            least,
            none,
        );
    }
}

#[test]
fn lines_of_net_9() {
    let symbols = folder("clr10/workload/net9");
    assert_lines("clr10/traces/net9-rich.nettrace.zip", &symbols, 600, none);
}

#[test]
fn lines_of_net_core_3_1() {
    // 3.1 looks up a caller at the return address itself. If the call ends a statement, that is the
    // next one.
    const ENDS_OF_STATEMENTS: [(&str, u32, u32); 5] = [
        ("Workload.Interop.Ascending", 182, 181),
        ("Workload.Interop.Run", 192, 191),
        ("Workload.Plugins.Run", 38, 37),
        ("Workload.Shapes.Run", 78, 89),
        ("Workload.Tiers.Run", 125, 129),
    ];
    for (trace, least) in [("all", 804), ("reuse", 240)] {
        let symbols = folder("clr31/workload");
        let trace = format!("clr31/workload/traces/{trace}.nettrace.zip");
        assert_lines(&trace, &symbols, least, |method, truth, ours| {
            ENDS_OF_STATEMENTS.contains(&(method, truth, ours))
        });
    }
}

#[test]
fn lines_of_a_plug_in_loaded_from_bytes() {
    let symbols = folder("clr10/workload/memory");
    assert_lines("clr10/traces/memory.nettrace.zip", &symbols, 232, none);
}

#[test]
fn lines_of_precompiled_code() {
    let trace = "clr10/traces/r2r.nettrace.zip";
    let folders = ["clr10/r2r/linux-x64", "clr10/workload"].map(|f| testdata().join(f));
    let symbols = Arc::new(symbols(&folders));
    assert_lines(trace, &symbols, 380, none);
    let mut precompiled = 0;
    compare(&load(trace), &symbols, |truth, frame| {
        precompiled += usize::from(
            truth.line.is_some() && frame.tier.is_some_and(|tier| tier.name() == "ReadyToRun"),
        );
    });
    assert!(precompiled >= 100, "only {precompiled} precompiled frames");
}

/// The PDB's id is the same for every target for which the module was compiled: only the starts of
/// its methods distinguish them.
#[test]
fn a_precompiled_image_for_another_system_is_not_used() {
    for other in ["clr10/r2r/windows-x64", "clr10/r2r/linux-arm64"] {
        let folders = [other, "clr10/workload"].map(|f| testdata().join(f));
        compare(
            &load("clr10/traces/r2r.nettrace.zip"),
            &Arc::new(symbols(&folders)),
            |truth, frame| {
                if truth.line.is_some() && frame.tier.is_some_and(|t| t.name() == "ReadyToRun") {
                    assert_eq!(frame.line.as_ref().ok(), None, "{other}: {frame:?}");
                    assert_eq!(frame.line_reason(), Some(LineReason::SymbolFileMismatch));
                }
            },
        );
    }
}

#[test]
fn chains_of_inlined_calls() {
    for (trace, symbol_folder, least) in [
        ("net9-rich", "clr10/workload/net9", 32),
        ("rich", "clr10/workload", 27),
    ] {
        let loaded = load(&format!("clr10/traces/{trace}.nettrace.zip"));
        let symbols = folder(symbol_folder);
        let mut resolver = Resolver::new(&loaded.timeline, Some(symbols.clone()));
        let (mut chains, mut exact, mut coarse, mut approximate) = (0, 0, 0, 0);
        let mut wrong = Vec::new();
        for (time, tid, stack) in stacks(&loaded, &mut resolver) {
            let Some(event) = loaded.logical.get(&(time, tid)) else {
                continue;
            };
            chains += 1;
            let frames: Vec<&Frame> = resolver.stack(stack).map(|id| resolver.frame(id)).collect();
            let writer = frames
                .iter()
                .position(|f| name_of(f).ends_with("Truth.Inlined"))
                .expect("the frame that wrote the event");
            for (i, (name, line)) in event.frames.iter().enumerate() {
                let frame = frames[writer + 1 + i];
                assert!(
                    name_of(frame).ends_with(name.as_str()),
                    "{frame:?} is no {name}"
                );
                let ours = frame.line.as_ref().ok().map(|l| l.line);
                if ours == Some(*line) {
                    exact += 1;
                } else if name == "Outer" && (frame.inlined, *line, ours) == (false, 25, Some(24)) {
                    // Its tier 0 code has a single IL offset in its map: the runtime's own stack
                    // traces have line 24, too.
                    coarse += 1;
                } else if frame.certainty == Some(Certainty::Approximate) {
                    approximate += 1;
                } else {
                    wrong.push(format!("{name}:{line} is {ours:?}: {frame:?}"));
                }
            }
        }
        println!(
            "{trace}: {chains} chains, {exact} lines exact, {coarse} of coarse maps, {approximate} approximate"
        );
        assert!(wrong.is_empty(), "{trace}:\n{}", wrong.join("\n"));
        assert!(chains >= least, "{trace}: only {chains} chains");
    }
}

#[test]
fn another_build_gives_a_reason_and_no_line() {
    let symbols = folder("clr10/workload/net9");
    let loaded = load("clr10/traces/rich.nettrace.zip");
    let mut frames = 0;
    compare(&loaded, &symbols, |truth, frame| {
        if truth.line.is_some() {
            assert_eq!(frame.line.as_ref().ok(), None);
            assert_eq!(frame.line_reason(), Some(LineReason::SymbolFileMismatch));
            frames += 1;
        }
    });
    assert!(frames > 0);
}

/// A symbol file made for a test: a file in the test data, its name in the folder, and a change to
/// its bytes.
type Made<'a> = (&'a str, &'a str, &'a dyn Fn(&mut Vec<u8>));

/// A folder of such files.
fn made_folder(files: &[Made<'_>]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, name, change) in files {
        let mut bytes = std::fs::read(testdata().join(from)).expect(from);
        change(&mut bytes);
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    folder
}

/// Returns the reasons of the workload's own frames that have a line in the expected stacks.
fn reasons(folder: &tempfile::TempDir) -> BTreeSet<Option<LineReason>> {
    let symbols = Arc::new(symbols(&[folder.path().to_owned()]));
    let mut reasons = BTreeSet::new();
    compare(
        &load("clr10/traces/rich.nettrace.zip"),
        &symbols,
        |truth, frame| {
            if truth.line.is_some() {
                assert_eq!(frame.line.is_err(), frame.line_reason().is_some());
                reasons.insert(frame.line_reason());
            }
        },
    );
    reasons
}

const DLL: &str = "clr10/workload/Workload.dll";
const PDB: &str = "clr10/workload/Workload.pdb";

#[test]
fn damaged_symbol_files_give_a_reason_and_no_line() {
    let damaged = BTreeSet::from([Some(LineReason::SymbolFileDamaged)]);
    let cut = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2);
    let folder = made_folder(&[(PDB, "Workload.pdb", &cut)]);
    assert_eq!(reasons(&folder), damaged, "a PDB cut in half");

    // The id matches, but the content is not that of the image's PDB.
    let flip = |bytes: &mut Vec<u8>| *bytes.last_mut().expect("bytes") ^= 1;
    let folder = made_folder(&[(DLL, "Workload.dll", &|_| ()), (PDB, "Workload.pdb", &flip)]);
    assert_eq!(reasons(&folder), damaged, "a PDB with another checksum");

    let folder = made_folder(&[(DLL, "Workload.dll", &|_| ())]);
    // The image states where its PDB was built, and that path is not trusted.
    let none = BTreeSet::from([Some(LineReason::PathNotTrusted)]);
    assert_eq!(reasons(&folder), none, "an image alone");

    let folder = made_folder(&[
        (DLL, "Workload.dll", &|_| ()),
        (PDB, "Workload.pdb", &|_| ()),
    ]);
    assert_eq!(reasons(&folder), BTreeSet::from([None]), "both whole");
}

#[test]
fn without_lines_frames_have_the_reason_lines_disabled() {
    let mut config = StoreConfig::new();
    config.folders = vec![testdata().join("clr10/workload")];
    let mut options = SymbolOptions::default();
    options.lines = false;
    let symbols = Arc::new(Symbolizer::new(config, options));
    compare(
        &load("clr10/traces/rich.nettrace.zip"),
        &symbols,
        |truth, frame| {
            assert_eq!(frame.line.as_ref().ok(), None);
            if truth.line.is_some() {
                assert_eq!(frame.line_reason(), Some(LineReason::LinesDisabled));
            }
        },
    );
}

#[test]
fn names_that_a_compiler_gave_are_shown_as_the_user_wrote_them() {
    let mut options = SymbolOptions::default();
    options.pretty = true;
    let symbols = Symbolizer::new(StoreConfig::new(), options);
    let trace = load("clr10/traces/rich.nettrace.zip");
    let mut resolver = Resolver::new(&trace.timeline, Some(Arc::new(symbols)));
    let mut names = BTreeSet::new();
    for (_, _, stack) in stacks(&trace, &mut resolver) {
        names.extend(resolver.stack(stack).map(|id| name_of(resolver.frame(id))));
    }
    let shown: Vec<_> = names
        .iter()
        .filter(|n| n.starts_with("Workload."))
        .collect();
    assert!(
        shown
            .iter()
            .all(|n| !n.contains("+<>c") && !n.contains(">d__")),
        "{shown:#?}"
    );
    assert!(
        names.contains("Workload.Program.Main.<lambda#3>"),
        "{shown:#?}"
    );
}

/// Every method of a precompiled image is named by the image alone, with or without an event: the
/// map that the compiler wrote next to the image lists them all.
#[test]
fn precompiled_methods_that_no_event_names() {
    let folder = testdata().join("clr10/r2r/linux-x64");
    let text = std::fs::read(folder.join("Workload.ni.r2rmap")).expect("a map");
    let map = chronosym_pdb::r2r::R2rMap::parse(&text).expect("a map");
    let symbols = symbols(&[folder, testdata().join("clr10/workload")]);
    let trace = load("clr10/traces/r2r.nettrace.zip");
    let process = trace.timeline.processes().find(|p| p.is_managed);
    let process = process.expect("a process").index;
    let module = trace
        .timeline
        .modules(process)
        .find(|m| m.name == "Workload");
    let module = module.expect("the module").index;
    let module = trace
        .timeline
        .module_ref(process, module)
        .expect("the module");
    let range = symbols.precompiled_range(&module).expect("a base");
    let time = trace.timeline.facts().duration_ns / 2;
    let (mut told, mut by_image, mut lines) = (0, 0, 0);
    for row in map.methods() {
        let address = range.start + u64::from(row.rva) + u64::from(row.size) / 2;
        let ask = |symbols| {
            let mut frames =
                trace
                    .timeline
                    .frames(process, address, time, Position::Exact, symbols);
            frames.pop().expect("a frame")
        };
        let frame = ask(Some(&symbols as &dyn SymbolSource));
        let name = name_of(&frame);
        // `Return Owner::Method(Parameters)`, without instantiations.
        let wanted = open(&row.name);
        let (wanted, _) = wanted.split_once('(').expect("parameters");
        let (owner, method) = wanted.rsplit_once("::").expect("a type and a method");
        let owner = owner.rsplit(' ').next().expect("a type");
        assert_eq!(name, format!("{owner}.{method}"));
        assert_eq!(frame.module(), Some("Workload"));
        if ask(None).name().is_ok() {
            told += 1;
            continue;
        }
        by_image += 1;
        lines += usize::from(frame.line.is_ok());
        assert_eq!(frame.evidence, Some(Evidence::ImageTable), "{name}");
        assert_eq!(frame.certainty, Some(Certainty::Inferred), "{name}");
        assert_eq!(frame.offset, Some(u64::from(row.size) / 2), "{name}");
    }
    println!("{told} methods told of, {by_image} named by the image, {lines} of them with a line");
    assert_eq!(told + by_image, map.methods().len());
    assert!(by_image > 0 && told > 0 && lines > 0);
    // Nothing beyond the image has a name.
    let beyond = trace
        .timeline
        .frames(process, range.end, time, Position::Exact, Some(&symbols));
    assert_eq!(beyond[0].evidence, None, "{beyond:?}");
}

/// A second program: lines of `#line` directives, lambdas, iterators, async methods, plug-ins. Its
/// truth has tokens and native offsets, no times: some body of the method must have the line. .NET
/// Core 3.1 looks up the return address itself.
#[test]
fn lines_of_the_second_program() {
    for (trace, least) in [("full", 18), ("minimal", 18), ("attach", 18)] {
        let path = format!("clr31/live/traces/{trace}");
        let bytes = workload::bytes(&format!("{path}.nettrace.zip"));
        let mut session = workload::session();
        chronosym::source::nettrace::read(std::io::Cursor::new(&bytes), &mut session)
            .expect("a trace");
        let timeline = session.finish();
        let symbols = folder("clr31/live");
        let process = timeline.processes().find(|p| p.is_managed);
        let process = process.expect("a process").index;
        let mut bodies: BTreeMap<(String, u32), Vec<_>> = BTreeMap::new();
        for body in timeline.bodies(process) {
            let name = body.name.as_deref().map(open).unwrap_or_default();
            bodies.entry((name, body.token)).or_default().push(body);
        }
        let truth = workload::gunzip(&format!("{path}.truth.tsv.gz"));
        let (mut right, mut wrong, mut unknown) = (BTreeSet::new(), BTreeSet::new(), 0);
        for row in truth.lines() {
            let cells: Vec<&str> = row.split('\t').collect();
            let number: u32 = cells[8].parse().unwrap_or(0);
            if number == 0 {
                continue;
            }
            let method = cells[3].split_once('(').map_or(cells[3], |(head, _)| head);
            let method = method.rsplit(' ').next().expect("a name");
            let name = format!("{}.{}", open(cells[2]), open(method));
            let token = cells[4].parse().expect("a token");
            let native: u64 = cells[6].parse().expect("an offset");
            let Some(bodies) = bodies.get(&(name.clone(), token)) else {
                unknown += 1;
                continue;
            };
            let has_line = bodies.iter().filter(|b| native < b.size).any(|body| {
                let address = body.start + native;
                let position = Position::Exact;
                let frames = timeline.frames(
                    process,
                    address,
                    body.lifetime.from,
                    position,
                    Some(&*symbols),
                );
                let line = frames.last().and_then(|frame| frame.line.as_ref().ok());
                line.is_some_and(|line| (&*line.file, line.line) == (cells[7], number))
            });
            let key = (name, native, cells[7].to_owned(), number);
            if has_line {
                right.insert(key);
            } else {
                wrong.insert(key);
            }
        }
        println!(
            "{trace}: {} sites right, {unknown} rows of unknown methods",
            right.len()
        );
        assert!(wrong.is_empty(), "{trace}: {wrong:#?}");
        assert!(right.len() >= least, "{trace}: only {}", right.len());
    }
}
