//! Recordings of perf as timelines, compared with the output of `perf script`, with a runtime's
//! events, and with programs recorded by the test.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use chronosym::symbols::{StoreConfig, SymbolOptions, Symbolizer};
use chronosym::{
    CallerProof, Code, Evidence, Filter, Frame, Input, LineReason, Opener, Options, Position,
    SymbolSource, Timeline, Weight,
};
use chronosym_conformance::{TESTDATA, case, perf_record};
use chronosym_perf::script;
use chronosym_support::perf::{PerfAttr, PerfWriter};
use chronosym_support::random::Random;
use chronosym_symbols::NativeSymbols;
use chronosym_symbols::identity::BuildId;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let mut cases = Vec::new();
    for name in ["net8", "net10"] {
        cases.push(case(
            TESTDATA,
            format!("{name}_has_the_samples_of_its_text"),
            move |folder| agrees_with_text(&folder.join("perf").join(name)),
        ));
    }
    cases.push(case(
        TESTDATA,
        "jit_frames_have_the_names_of_the_jitdump",
        |folder| {
            let timeline = open(&folder.join("perf/net8/perf.data"))?;
            let mut named = BTreeMap::new();
            each_frame(&timeline, |frame| {
                *named.entry(kind(frame)).or_default() += 1
            });
            // Two of perf's 7,987 are in no load that is older, and 1,420 are of precompiled code
            // that perf shows as a file's.
            let jitted = named.get("JitDump").copied().unwrap_or(0);
            check(jitted >= 7_985, format!("{named:?}"))
        },
    ));
    cases.push(case(TESTDATA, "joined_jit_frames_have_names", joined));
    cases.push(case(TESTDATA, "damaged_recordings_are_read", damaged));
    cases.push(recorded(
        "a_c_program_has_its_functions_and_lines",
        c_program,
    ));
    cases.push(recorded(
        "a_program_without_a_build_id_is_found_by_its_inode",
        without_build_id,
    ));
    cases.push(recorded(
        "kernel_modules_are_named_from_their_files",
        kernel_module,
    ));
    cases.push(recorded(
        "copied_stacks_are_unwound_as_perf_unwinds_them",
        copied_stacks,
    ));
    cases.push(recorded(
        "node_has_the_functions_of_its_jitdump",
        node_with_jitdump,
    ));
    cases.push(recorded(
        "node_has_the_names_that_perf_injects",
        node_as_injected,
    ));
    cases.push(recorded(
        "node_has_the_functions_of_its_perf_map",
        node_with_map,
    ));
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

fn check(holds: bool, found: impl std::fmt::Display) -> Result<(), Failed> {
    if holds {
        return Ok(());
    }
    Err(format!("found {found}").into())
}

fn open(path: &Path) -> Result<Arc<Timeline>, Failed> {
    Ok(chronosym::open(path)?.timeline(Options::default())?.0)
}

fn unpack(path: &Path) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(File::open(path)?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn kind(frame: &Frame) -> &'static str {
    match (frame.name(), frame.evidence) {
        (Ok(_), Some(evidence)) => evidence.as_str(),
        (Ok(_), None) => "named",
        (Err(reason), _) => reason.as_str(),
    }
}

/// Calls `each` with the frames of all samples, one per address.
fn each_frame(timeline: &Arc<Timeline>, mut each: impl FnMut(&Frame)) {
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let thread = timeline.thread_view(class.thread).expect("it has one");
        let mut position = class.kind.leaf_position();
        for address in timeline.stacks().addresses(class.stack) {
            let frames = timeline.frames(thread.process, address, time, position, None);
            each(frames.last().expect("never none"));
            position = Position::Return;
        }
    });
}

/// A sample in either output: its header, and its addresses as perf prints them.
type Row = (u64, Option<u32>, u64, String, Vec<u64>);

fn agrees_with_text(folder: &Path) -> Result<(), Failed> {
    let data = folder.join("perf.data");
    // As a stream, so that no files next to it are used.
    let input = Input::stream("perf.data", File::open(&data)?);
    let recording = Opener::new().open([input])?;
    let (timeline, _) = recording.timeline(Options::default())?;
    let mut reader = chronosym_perf::Reader::open(File::open(data)?, Default::default())?;
    let mut began_ns = None;
    while began_ns.is_none() {
        began_ns = reader.next_record()?.ok_or("no record has a time")?.time_ns;
    }
    let began_ns = began_ns.unwrap_or_default();
    let mut found: Vec<Row> = Vec::new();
    let mut filter = Filter::default();
    filter.idle = true;
    timeline.for_each_weighed_sample(&filter, |sample| {
        let (class, time, weight) = (sample.class, sample.time_ns, sample.weight);
        assert_eq!(weight, Weight::Ns(5_025_125), "one every 5 ms");
        let schema = &timeline.event_types()[class.event.index()].schema;
        assert_eq!(
            (&**schema.provider_name(), &*schema.name()),
            ("perf", "cpu-clock")
        );
        let thread = timeline.thread_view(class.thread).expect("it has one");
        let process = timeline.process_view(thread.process).expect("it has one");
        let addresses = timeline.stacks().addresses(class.stack).map(|address| {
            let frame = timeline.frames(thread.process, address, time, Position::Exact, None);
            // perf prints the file offset.
            match frame.first().map(|frame| frame.code) {
                Some(Code::Image { rva, .. }) if address >> 63 == 0 => rva,
                _ => address,
            }
        });
        let us = (time + began_ns) / 1_000;
        let comm = timeline.thread_name(class.thread, time);
        let comm = comm.unwrap_or_default().to_owned();
        found.push((us, process.pid, thread.tid, comm, addresses.collect()));
    });
    let text = unpack(&folder.join("perf-script.txt.gz"))?;
    let mut reader = script::Reader::new(text.as_slice(), Default::default())?;
    let mut expected: Vec<Row> = Vec::new();
    while let Some(sample) = reader.next_sample()? {
        let mut addresses: Vec<u64> = sample.frames().map(|frame| frame.address).collect();
        // Values at the end of a chain that are not addresses are omitted.
        while addresses.last().is_some_and(|&last| last < 0x1000) {
            let last = sample.frames().last().and_then(|frame| frame.dso);
            if last.is_some() {
                break;
            }
            addresses.pop();
        }
        let (us, tid) = (sample.time_ns / 1_000, sample.tid.into());
        expected.push((us, sample.pid, tid, sample.comm.to_owned(), addresses));
    }
    found.sort();
    expected.sort();
    check(
        found.len() == expected.len(),
        format!("{} samples", found.len()),
    )?;
    let mut pairs = found.iter().zip(&expected);
    pairs.try_for_each(|(ours, theirs)| check(ours == theirs, format!("{ours:x?} for {theirs:x?}")))
}

/// A recording of the runtime joined with one of perf: the runtime's events name the code that perf
/// sampled.
fn joined(folder: &Path) -> Result<(), Failed> {
    let path = folder.join("clr31/join/mono.zip");
    let timeline = open(&path)?;
    let (mut anonymous, mut by_events, mut by_map) = (0, 0, 0);
    let mut images = BTreeMap::new();
    each_frame(&timeline, |frame| {
        let process = match frame.code {
            Code::Body(process, _) | Code::Untimed(process, _) => process,
            Code::Image { .. } => return,
            _ => {
                anonymous += 1;
                return;
            }
        };
        let has_image = images.entry(frame.address).or_insert_with(|| {
            let at = |view: chronosym::ImageView<'_>| {
                let image = view.image;
                (image.base..image.base + image.size).contains(&frame.address)
            };
            timeline.images(process).any(at)
        });
        if !*has_image {
            anonymous += 1;
            let is_map = frame.evidence == Some(Evidence::PerfMap);
            by_map += u32::from(is_map);
            by_events += u32::from(!is_map && frame.name().is_ok());
        }
    });
    // Of 19,989 frames in anonymous executable memory, the number that each source names.
    let found = format!("{by_events} of {anonymous}, {by_map} by the map");
    check(by_events >= 19_929 && by_map <= 60, found)?;
    let clocks: Vec<_> = timeline
        .facts()
        .recordings
        .iter()
        .map(|r| r.error_ns)
        .collect();
    check(clocks == [0, 0, 0], format!("{clocks:?}"))?;
    // The hottest lines are C#'s own.
    let mut config = StoreConfig::new();
    config.folders = vec![folder.join("clr31/workload")];
    let symbols = Symbolizer::new(config, SymbolOptions::default());
    let profile = timeline.profile(&Filter::default(), Some(Arc::new(symbols)));
    let mut lines = 0;
    for entry in &profile.entries {
        for id in profile.resolver.stack(entry.stack) {
            let frame = profile.resolver.frame(id);
            let is_ours = frame
                .line
                .as_ref()
                .is_ok_and(|line| line.file.ends_with(".cs"));
            lines += if is_ours { entry.samples } else { 0 };
        }
    }
    check(lines > 10_000, format!("{lines} frames with a line"))
}

/// A kernel module is found by the build ID in the recording, whatever its name there.
fn kernel_module(folder: &Path) -> Result<(), Failed> {
    const MODULE: u64 = 0xffff_ffff_c000_0000;
    const KERNEL: u16 = 1;
    const HAS_BUILD_ID: u16 = 1 << 14;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("native/module.c");
    run(Command::new("cc")
        .current_dir(folder)
        .args(["-O2", "-ffreestanding", "-c", "-o", "made.o"])
        .arg(source))?;
    let link = ["-r", "--build-id=sha1", "-o", "made.ko", "made.o"];
    run(Command::new("ld").current_dir(folder).args(link))?;
    let native = NativeSymbols::open_path(&folder.join("made.ko"))?;
    let id = native.build_id().ok_or("it has no build id")?.to_string();
    let id = BuildId::parse(&id).ok_or("hex")?;
    // NAME|VALUE|CLASS|TYPE|SIZE|LINE|SECTION: a module's other sections are loaded apart.
    let listed = Command::new("nm")
        .args(["--format=sysv", "made.ko"])
        .current_dir(folder)
        .output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let functions = listed.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let (name, at, section) = (columns.first()?, columns.get(1)?, columns.last()?);
        let is_function = columns.get(3) == Some(&"FUNC") && *section == ".text";
        let at = u64::from_str_radix(at, 16).ok().filter(|_| is_function)?;
        Some((at, (*name).to_owned()))
    });
    let functions: Vec<(u64, String)> = functions.collect();
    check(!functions.is_empty(), &listed)?;
    for name in ["[made]", "/lib/modules/6.1.0/extra/made.ko.xz"] {
        let mut perf = PerfWriter::new(PerfAttr::default());
        let body = perf.body().u32(u32::MAX).u32(0).words(&[MODULE, 0x4000, 0]);
        let body = body.raw(&[20, 0, 0, 0]).raw(id.as_bytes()).u32(5).u32(2);
        perf.kernel_record(10, KERNEL | HAS_BUILD_ID, body.name(name), 1, 0);
        for (at, _) in &functions {
            perf.sample(2 + at, 7, 7, &[MODULE + at]);
        }
        std::fs::write(folder.join("perf.data"), perf.file())?;
        let timeline = open(&folder.join("perf.data"))?;
        let mut config = StoreConfig::new();
        config.folders = vec![folder.to_owned()];
        let symbols: Arc<dyn SymbolSource> =
            Arc::new(Symbolizer::new(config, SymbolOptions::default()));
        let process = timeline.process_of(7, 0).ok_or("it is there")?;
        for (at, expected) in &functions {
            let symbols = Some(&*symbols);
            let time = 1 + at;
            let address = MODULE + at;
            let frames = timeline.frames(process, address, time, Position::Exact, symbols);
            let found = frames.last().and_then(|frame| frame.function.name());
            check(
                found == Some(expected),
                format!(
                    "{found:?} for {expected}: {:?}",
                    frames.last().map(|it| (it.name(), it.code))
                ),
            )?;
        }
    }
    Ok(())
}

fn damaged(folder: &Path) -> Result<(), Failed> {
    let bytes = std::fs::read(folder.join("perf/net8/perf.data"))?;
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut samples = 0;
    for round in 0..24 {
        let mut copy = bytes.clone();
        if round % 2 == 0 {
            copy.truncate(random.index(copy.len()));
        }
        for _ in 0..10 * (round % 2) {
            let at = random.index(copy.len());
            copy[at] = random.below(256) as u8;
        }
        let opened = Opener::new().open([Input::stream("perf.data", Cursor::new(copy))]);
        let read = opened.and_then(|recording| recording.timeline(Options::default()));
        if let Ok((timeline, _)) = read {
            samples += timeline.samples().len();
        }
    }
    check(samples > 2_000, format!("{samples} samples"))
}

/// A case that records: ignored where that is forbidden or a tool is missing, unless it must be
/// there.
fn recorded(name: &str, run: impl FnOnce(&Path) -> Result<(), Failed> + Send + 'static) -> Trial {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    let works = |command: &mut Command| {
        let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
        silent.status().is_ok_and(|status| status.success())
    };
    let can_record = works(perf_record("cpu-clock").args(["-o", "/dev/null", "true"]));
    let tool = if name.starts_with("node") {
        "node"
    } else {
        "cc"
    };
    let has_tool = can_record && works(Command::new(tool).arg("--version"));
    let trial = Trial::test(name, move || run(tempfile::tempdir()?.path()));
    trial.with_ignored_flag(!has_tool && !required)
}

fn run(command: &mut Command) -> Result<(), Failed> {
    let output = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    check(output.status.success(), format!("{command:?}: {said}"))
}

fn record(folder: &Path, program: &[&str]) -> Result<(), Failed> {
    record_with(folder, &["-g"], program)
}

fn record_with(folder: &Path, how: &[&str], program: &[&str]) -> Result<(), Failed> {
    run(perf_record("cpu-clock")
        .current_dir(folder)
        .env("HOME", folder)
        .args(["-F", "999"])
        .args(how)
        .arg("--")
        .args(program))
}

/// Files mapped in a recording of this machine are found without trust, until they are replaced.
fn without_build_id(folder: &Path) -> Result<(), Failed> {
    let code = "volatile long total;\nint main(void) { for (long i = 0; i < 100000000; i++) total += i; return 0; }\n";
    std::fs::write(folder.join("work.c"), code)?;
    let compile = ["-g", "-O0", "-Wl,--build-id=none", "-o", "work", "work.c"];
    run(Command::new("cc").current_dir(folder).args(compile))?;
    record(folder, &["./work"])?;
    let in_main = || {
        let recording = Opener::new().open([Input::file(folder.join("perf.data"))])?;
        let (timeline, _) = recording.timeline(Options::default())?;
        let symbols = Symbolizer::new(StoreConfig::new(), SymbolOptions::default());
        let profile = timeline.profile(&Filter::default(), Some(Arc::new(symbols)));
        let main = samples_with(&profile, |frame| frame.name() == Ok("main"));
        Ok::<_, Failed>((main, profile.samples()))
    };
    let (main, all) = in_main()?;
    check(all > 30 && main * 10 > all * 8, format!("{main} of {all}"))?;
    std::fs::write(folder.join("work.c"), format!("int more;\n{code}"))?;
    run(Command::new("cc").current_dir(folder).args(compile))?;
    let (main, _) = in_main()?;
    check(main == 0, format!("{main} named from another build"))
}

/// A profile with symbols at the paths that it names: it was recorded here.
fn here(folder: &Path) -> Result<chronosym::Profile, Failed> {
    let opener = Opener::new().trust_trace_paths();
    let opener = opener.unwind_with(Arc::new(symbols()));
    let recording = opener.open([Input::file(folder.join("perf.data"))])?;
    let (timeline, _) = recording.timeline(Options::default())?;
    Ok(timeline.profile(&Filter::default(), Some(Arc::new(symbols()))))
}

/// Files at the paths that recordings name.
fn symbols() -> Symbolizer {
    let mut config = StoreConfig::new();
    config.trust_trace_paths = true;
    Symbolizer::new(config, SymbolOptions::default())
}

/// Samples in whose stack there is such a frame.
fn samples_with(profile: &chronosym::Profile, is: impl Fn(&Frame) -> bool) -> u64 {
    let entries = profile.entries.iter();
    let has = |stack| {
        let mut frames = profile.resolver.stack(stack);
        frames.any(|id| is(profile.resolver.frame(id)))
    };
    entries
        .filter(|entry| has(entry.stack))
        .map(|entry| entry.samples)
        .sum()
}

fn c_program(folder: &Path) -> Result<(), Failed> {
    let code = "volatile long total;\n\
        __attribute__((noinline)) void inner(long n) {\n  for (long i = 0; i < n; i++) total += i;\n}\n\
        __attribute__((noinline)) void outer(void) { inner(100000000); total++; }\n\
        int main(void) { outer(); return 0; }\n";
    std::fs::write(folder.join("work.c"), code)?;
    let options = ["-g", "-O0", "-Wl,--build-id", "-o", "work"];
    run(Command::new("cc")
        .current_dir(folder)
        .args(options)
        .arg("work.c"))?;
    record(folder, &["./work"])?;
    let profile = here(folder)?;
    let all = profile.samples();
    let inner = samples_with(&profile, |frame| {
        let line = frame.line.as_ref().map(|line| line.line);
        frame.name() == Ok("inner") && line == Ok(3)
    });
    let outer = samples_with(&profile, |frame| frame.name() == Ok("outer"));
    check(
        all > 30 && inner * 10 > all * 8 && outer * 10 > all * 8,
        format!("{all} samples, {inner} of inner, {outer} of outer"),
    )
}

/// Without frame pointers, through the C library and back, out of a signal's handler, and at frames
/// whose size is determined at run time. Each part runs for tens of milliseconds or more, so that
/// samples fall in all of them at any rate.
const UNWOUND: &str = r#"
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
volatile long total;
__attribute__((noinline)) void leaf(long n) { for (long i = 0; i < n; i++) total += i; }
__attribute__((noinline)) void deep(int n) {
    char room[64];
    memset(room, n, sizeof room);
    if (n) deep(n - 1); else leaf(2000000);
    total += room[3];
}
__attribute__((noinline)) void grown(int n) {
    char *room = alloca(n);
    memset(room, 1, n);
    leaf(2000000);
    total += room[n / 2];
}
static int compare(const void *a, const void *b) {
    for (int i = 0; i < 50; i++) total += i;
    return *(const int *)a - *(const int *)b;
}
static void handler(int signal) { leaf(4000000); total += signal; }
int main(void) {
    static int rows[10000];
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, 0);
    for (int i = 0; i < 60; i++) {
        deep(20);
        grown(200 + i);
        for (int row = 0; row < 10000; row++) rows[row] = rand();
        qsort(rows, 10000, sizeof *rows, compare);
        raise(SIGUSR1);
    }
    return 0;
}
"#;

fn copied_stacks(folder: &Path) -> Result<(), Failed> {
    std::fs::write(folder.join("work.c"), UNWOUND)?;
    let options = [
        "-O2",
        "-fomit-frame-pointer",
        "-Wl,--build-id",
        "-o",
        "work",
    ];
    run(Command::new("cc")
        .current_dir(folder)
        .args(options)
        .arg("work.c"))?;
    record_with(folder, &["--call-graph", "dwarf,8192"], &["./work"])?;
    let printed = Command::new("perf")
        .args(["script", "--ns", "--no-inline", "-i", "perf.data"])
        .args(["-F", "comm,pid,tid,time,event,ip,sym,dso"])
        .current_dir(folder)
        .output()?;
    let mut printed = script::Reader::new(printed.stdout.as_slice(), Default::default())?;
    let profile = here(folder)?;
    let timeline = profile.resolver.timeline();
    let mut own = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        own.push((time, *class));
    });
    own.sort_by_key(|(time, _)| *time);
    let mut resolver = chronosym::Resolver::new(timeline, None);
    let (mut samples, mut frames, mut by_table, mut in_handler) = (0, 0, 0, 0);
    for (time, class) in own {
        let printed = printed.next_sample()?.ok_or("perf has fewer samples")?;
        let (stack, _) = resolver.resolve(&class, time).ok_or("no stack")?;
        // perf prints calls, not where they return to; of the kernel both have addresses.
        let mut places = Vec::new();
        for id in resolver.stack(stack) {
            let frame = resolver.frame(id);
            let back = u64::from(
                frame
                    .proof
                    .is_some_and(|proof| proof != CallerProof::Signal),
            );
            by_table += u64::from(frame.proof == Some(CallerProof::UnwindTable));
            places.push(match frame.code {
                Code::Image { rva, .. } if frame.address >> 63 == 0 => rva - back,
                _ => frame.address - back,
            });
        }
        let rows: Vec<_> = printed.frames().collect();
        let expected: Vec<u64> = rows.iter().map(|row| row.address).collect();
        check(
            places == expected,
            format!("{places:x?} where perf has {expected:x?}"),
        )?;
        in_handler += u64::from(rows.iter().any(|row| row.symbol == Some("handler")));
        samples += 1;
        frames += rows.len();
    }
    check(printed.next_sample()?.is_none(), "perf has more samples")?;
    check(
        samples > 30 && frames > 5 * samples && by_table > 100 && in_handler > 0,
        format!("{samples} samples, {frames} frames, {by_table} by tables, {in_handler} signals"),
    )
}

const SCRIPT: &str = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }\n\
    for (let i = 0; i < 6; i++) fib(32);\n";

fn node(folder: &Path, option: &str) -> Result<chronosym::Profile, Failed> {
    std::fs::write(folder.join("fib.js"), SCRIPT)?;
    record(folder, &["node", option, "fib.js"])?;
    here(folder)
}

fn node_with_jitdump(folder: &Path) -> Result<(), Failed> {
    let profile = node(folder, "--perf-prof")?;
    let by = |frame: &Frame| frame.evidence == Some(Evidence::JitDump);
    let fib = samples_with(&profile, |frame| {
        by(frame) && frame.name().is_ok_and(|name| name.contains("fib"))
    });
    let all = profile.samples();
    check(fib * 2 > all, format!("{fib} of {all} samples"))
}

/// Functions that are compiled repeatedly, some of which are dropped.
const COMPILING: &str = "let total = 0;\n\
    for (let i = 0; i < 400; i++) {\n\
      const f = new Function('n', `let t = ${i}; for (let k = 0; k < n; k++) t = (t * 31 + k) | 0; return t`);\n\
      for (let k = 0; k < 60; k++) total += f(2000);\n\
    }\n\
    console.log(total);\n";

/// Every frame of compiled code has the name that it has after `perf inject` has written an ELF
/// file for each load.
fn node_as_injected(folder: &Path) -> Result<(), Failed> {
    std::fs::write(folder.join("compiling.js"), COMPILING)?;
    record(folder, &["node", "--perf-prof", "compiling.js"])?;
    let perf = |arguments: &[&str]| {
        let command = &mut Command::new("perf");
        // It keeps a copy of every file at home.
        let command = command.current_dir(folder).env("HOME", folder);
        let output = command.args(arguments).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        check(output.status.success(), said)?;
        Ok::<_, Failed>(output.stdout)
    };
    perf(&["inject", "--jit", "-i", "perf.data", "-o", "injected.data"])?;
    let text = perf(&[
        "script",
        "--ns",
        "--no-inline",
        "--no-demangle",
        "-i",
        "injected.data",
        "-F",
        "comm,pid,tid,time,event,ip,sym,dso",
    ])?;
    let mut names = BTreeMap::new();
    let mut printed = script::Reader::new(text.as_slice(), Default::default())?;
    while let Some(sample) = printed.next_sample()? {
        let frames = sample.frames().map(|frame| {
            let name = frame.symbol.map(str::to_owned);
            name.filter(|_| frame.dso.is_some_and(|dso| dso.contains("jitted-")))
        });
        names.insert((sample.tid, sample.time_ns), frames.collect::<Vec<_>>());
    }
    let profile = here(folder)?;
    let timeline = profile.resolver.timeline();
    let mut own = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| own.push((time, *class)));
    let began = names.keys().map(|&(_, time)| time).min().unwrap_or(0)
        - own.iter().map(|(time, _)| *time).min().unwrap_or(0);
    let mut resolver = chronosym::Resolver::new(timeline, None);
    let (mut same, mut different, mut unknown) = (0, Vec::new(), 0);
    for (time, class) in own {
        let thread = timeline.thread_view(class.thread).ok_or("no thread")?;
        let key = (thread.tid as u32, time + began);
        let printed = names.get(&key).ok_or("perf has no such sample")?;
        let (stack, _) = resolver.resolve(&class, time).ok_or("no stack")?;
        let frames: Vec<&Frame> = resolver.stack(stack).map(|id| resolver.frame(id)).collect();
        for (frame, printed) in frames.iter().zip(printed) {
            let name = frame.name().ok();
            let name = name.filter(|_| frame.evidence == Some(Evidence::JitDump));
            match (name, printed.as_deref()) {
                (Some(own), Some(other)) if own == other => same += 1,
                (None, Some(_)) => unknown += 1,
                (own, Some(other)) => different.push(format!("{own:?} {other}")),
                (_, None) => {}
            }
        }
    }
    check(
        same > 500 && different.is_empty() && unknown == 0,
        format!("{same} names are the same, {unknown} are not known, others: {different:?}"),
    )
}

fn node_with_map(folder: &Path) -> Result<(), Failed> {
    let profile = node(folder, "--perf-basic-prof")?;
    let fib = samples_with(&profile, |frame| {
        let by = frame.evidence == Some(Evidence::PerfMap);
        by && frame.line_reason() == Some(LineReason::NoILMap)
            && frame.name().is_ok_and(|name| name.contains("fib"))
    });
    let all = profile.samples();
    check(fib * 2 > all, format!("{fib} of {all} samples"))
}
