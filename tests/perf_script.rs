//! Compares recordings of perf with `perf script`, the tool's own listing of them: samples, times,
//! processes, threads, addresses, and names where perf has one.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use chronosym::symbols::{Kallsyms, StoreConfig, SymbolOptions, Symbolizer};
use chronosym::{Code, Filter, Frame, Input, Opener, Options, Resolver, SampleSelection};
use chronosym_conformance::{TESTDATA, case, perf_record, unzip};
use chronosym_perf::script;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    let is_missing = Command::new("perf").arg("--version").output().is_err();
    let with_perf = |trial: Trial| match is_missing && !required {
        true => trial.with_ignored_flag(true),
        false => trial,
    };
    let mut cases = Vec::new();
    if !is_missing || required {
        cases.extend(["net8", "net10", "mono"].map(|name| {
            case(TESTDATA, name, move |folder| {
                let bytes = match name {
                    "mono" => unzip(&folder.join("clr31/join/mono.zip"), "perf.data")?,
                    _ => std::fs::read(folder.join("perf").join(name).join("perf.data"))?,
                };
                let scratch = tempfile::tempdir()?;
                let path = scratch.path().join("perf.data");
                std::fs::write(&path, bytes)?;
                // Made on another machine: perf names only what is the same here.
                agrees(&path, true, 0)
            })
        }));
    }
    cases.push(with_perf(Trial::test("tools", || {
        recorded(&["-g"], &["sh", "-c", WORK], 50)
    })));
    cases.push(with_perf(Trial::test("tools_without_chains", || {
        recorded(&[], &["sh", "-c", WORK], 50)
    })));
    cases.push(with_perf(Trial::test("c_program", c_program)));
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

const WORK: &str =
    "for i in 1 2 3; do seq 100000 | sort -r | md5sum; ls -lR /usr/share/doc; done > /dev/null";

/// Records a program, and compares.
fn recorded(arguments: &[&str], program: &[&str], names: u64) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("perf.data");
    let mut perf = perf_record("cpu-clock:u");
    perf.args(["-F", "4999", "-o"]).arg(&path);
    let output = perf.args(arguments).arg("--").args(program).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        println!("skipped: perf cannot record here: {said}");
        return Ok(());
    }
    agrees(&path, arguments.contains(&"-g"), names)
}

/// A program with frame pointers, whose functions call each other, inlined ones among them.
fn c_program() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let (source, program) = (folder.path().join("calls.c"), folder.path().join("calls"));
    let code = "#include <stdlib.h>\n\
        volatile int sink;\n\
        static int twice(int n) { return n * 2 + n % 7; }\n\
        __attribute__((noinline)) int leaf(int n) { int s = 0; for (int i = 0; i < 300; i++) s += twice(i ^ n); return s; }\n\
        int other(int) __attribute__((alias(\"leaf\")));\n\
        __attribute__((noinline)) int middle(int n) { return leaf(n) + other(n + 1) + 1; }\n\
        __attribute__((noinline, noreturn)) void last(int n) { sink = middle(n); exit(0); }\n\
        int main(void) { int s = 0; for (int i = 0; i < 400000; i++) s += middle(i); last(s); }\n";
    std::fs::write(&source, code)?;
    let mut compiler = Command::new("cc");
    compiler
        .args(["-g", "-O2", "-fno-omit-frame-pointer", "-o"])
        .arg(&program)
        .arg(&source);
    if !compiler.status()?.success() {
        return Err(format!("{compiler:?} fails").into());
    }
    let program = program.to_str().ok_or("a name in UTF-8")?;
    recorded(&["-g"], &[program], 1_000)
}

/// A frame: address as perf prints it, its symbol, and the offset in that.
type Row = (u64, Option<(String, u64)>);

/// A sample: process, thread, time, event, and frames with the innermost first.
type Sample = (u32, u64, u64, String, Vec<Row>);

/// Compares every sample, and every name that perf has; at least so many names are compared.
fn agrees(path: &Path, has_chains: bool, least: u64) -> Result<(), Failed> {
    let theirs = listed(path)?;
    let ours = resolved(path, has_chains)?;
    if theirs.len() != ours.len() || ours.is_empty() {
        return Err(format!("{} samples, perf has {}", ours.len(), theirs.len()).into());
    }
    let mut classes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut faults = Vec::new();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let head = |it: &Sample| (it.0, it.1, it.2, it.3.clone());
        let addresses = |it: &Sample| it.4.iter().map(|row| row.0).collect::<Vec<_>>();
        if head(ours) != head(theirs) || addresses(ours) != addresses(theirs) {
            return Err(format!("{ours:x?} where perf has {theirs:x?}").into());
        }
        for (depth, (own, their)) in ours.4.iter().zip(&theirs.4).enumerate() {
            match class(&own.1, &their.1, depth > 0) {
                Some(class) => *classes.entry(class).or_default() += 1,
                None => faults.push(format!("{own:x?} where perf has {their:x?}")),
            }
        }
    }
    println!("{} samples, {classes:?}", ours.len());
    if !faults.is_empty() {
        let first = &faults[..faults.len().min(10)];
        return Err(format!("{} faults: {first:#?}", faults.len()).into());
    }
    if classes.get("same").copied().unwrap_or_default() < least {
        return Err("too few names were compared".into());
    }
    Ok(())
}

/// Returns how two names agree; `None` if they do not.
fn class(
    own: &Option<(String, u64)>,
    their: &Option<(String, u64)>,
    is_caller: bool,
) -> Option<&'static str> {
    match (own, their) {
        (_, None) => Some("perf has no name"),
        (Some(own), Some(their)) if own == their => Some("same"),
        // Several symbols start there.
        (Some(own), Some(their)) if own.1 == their.1 => Some("alias"),
        // perf looks up a return address itself: after a call that does not return, that is the
        // start of the next function.
        (Some(_), Some((_, 0))) if is_caller => Some("start of the next function"),
        // An entry of the PLT whose function perf does not find, or takes from the order of the
        // relocations, in which those that call a resolver have no name.
        (None, Some((name, 0..16))) if name.ends_with("@plt") => Some("entry of the PLT"),
        // Nor is there a function before a signal trampoline, which the kernel makes the caller.
        (None, Some((_, 0))) if is_caller => Some("start of a function after a gap"),
        _ => None,
    }
}

/// Runs `perf script`.
fn listed(path: &Path) -> Result<Vec<Sample>, Failed> {
    let mut perf = Command::new("perf");
    perf.args([
        "script",
        "--ns",
        "--no-inline",
        "-F",
        "comm,pid,tid,time,event,ip,sym,symoff,dso",
    ]);
    perf.arg("-i")
        .arg(path)
        .env("PAGER", "cat")
        .stderr(Stdio::piped());
    let output = perf.output()?;
    let mut reader = script::Reader::new(output.stdout.as_slice(), Default::default())?;
    let mut samples = Vec::new();
    while let Some(sample) = reader.next_sample()? {
        let rows = sample
            .frames()
            .filter(|frame| !frame.is_inlined)
            .map(|frame| {
                let symbol = frame.symbol.filter(|&symbol| symbol != "[unknown]");
                (frame.address, symbol.map(str::to_owned).zip(frame.offset))
            });
        let mut rows: Vec<Row> = rows.collect();
        // Values at the end of a chain that are not addresses are left out.
        while rows.len() > 1
            && rows
                .last()
                .is_some_and(|row| row.0 < 0x1000 && row.1.is_none())
        {
            rows.pop();
        }
        let pid = sample.pid.ok_or("no pid")?;
        let event = sample.event.to_owned();
        samples.push((pid, sample.tid.into(), sample.time_ns, event, rows));
    }
    samples.sort();
    Ok(samples)
}

/// Resolves the samples with the files of this machine.
fn resolved(path: &Path, has_chains: bool) -> Result<Vec<Sample>, Failed> {
    let mut reader = chronosym_perf::Reader::open(std::fs::File::open(path)?, Default::default())?;
    let mut began_ns = None;
    while began_ns.is_none() {
        began_ns = reader.next_record()?.ok_or("no record has a time")?.time_ns;
    }
    let began_ns = began_ns.unwrap_or_default();
    let mut config = StoreConfig::new();
    config.trust_trace_paths = true;
    // As perf does, if the kernel is that of the recording.
    let mut options = SymbolOptions::default();
    options.kallsyms = Kallsyms::open("/proc/kallsyms").ok().map(Arc::new);
    let symbols: Arc<_> = Symbolizer::new(config, options).into();
    let recording = Opener::new().open([Input::file(path)])?;
    let (timeline, _) = recording.timeline(Options::from(SampleSelection::All))?;
    let mut resolver = Resolver::new(&timeline, Some(symbols));
    let mut filter = Filter::default();
    filter.idle = true;
    let mut samples = Vec::new();
    timeline.for_each_sample(&filter, |class, time| {
        let thread = timeline.thread_view(class.thread).expect("it has one");
        let process = timeline.process_view(thread.process).expect("it has one");
        let event = timeline.event_types()[class.event.index()]
            .schema
            .name()
            .into_owned();
        let (stack, _) = resolver.resolve(class, time).expect("a stack");
        let frames = resolver.stack(stack).map(|id| resolver.frame(id));
        let rows = frames
            .filter(|frame| !frame.inlined)
            .map(|frame| row(frame, has_chains));
        samples.push((
            process.pid.unwrap_or_default(),
            thread.tid,
            time + began_ns,
            event,
            rows.collect(),
        ));
    });
    samples.sort();
    Ok(samples)
}

/// Returns a frame as perf prints it: in a chain the file offset, if it is in a file.
fn row(frame: &Frame, is_in_chain: bool) -> Row {
    let address = match frame.code {
        Code::Image { rva, .. } if is_in_chain && frame.address >> 63 == 0 => rva,
        _ => frame.address,
    };
    (
        address,
        frame.name().ok().map(str::to_owned).zip(frame.offset),
    )
}
