//! Compares the readers of perf.data, jitdump and perf script's text with the output of `perf` for
//! the same recordings, stored next to them or produced by the tool if it is installed.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use chronosym_conformance::{TESTDATA, case, perf_record, unzip};
use chronosym_perf::{
    CpuMode, Event, Gaps, Mmap, Options, Reader, Record, Sample, jitdump, script,
};
use chronosym_support::random::Random;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let mut cases = Vec::new();
    // Records by type, and the chains that have a part in the kernel.
    let counts = [
        (
            "net8",
            [(1, 1), (3, 17), (4, 16), (7, 15), (9, 767), (10, 156)],
            25,
        ),
        (
            "net10",
            [(1, 1), (3, 17), (4, 16), (7, 15), (9, 776), (10, 93)],
            30,
        ),
        (
            "mono",
            [(1, 1), (3, 3), (4, 18), (7, 17), (9, 2915), (10, 212)],
            97,
        ),
    ];
    for (name, kinds, kernel) in counts {
        cases.push(case(
            TESTDATA,
            format!("{name}_has_its_records"),
            move |folder| has_records(&recording(folder, name)?, kinds.into(), kernel),
        ));
    }
    for name in ["net8", "net10"] {
        cases.push(case(
            TESTDATA,
            format!("{name}_agrees_with_its_text"),
            move |folder| {
                let text = unpack(&folder.join("perf").join(name).join("perf-script.txt.gz"))?;
                agrees_with_text(&recording(folder, name)?, &text)
            },
        ));
    }
    for name in ["net8", "net10", "mono"] {
        let found = tool(
            TESTDATA,
            format!("{name}_agrees_with_perf"),
            move |folder| {
                let scratch = tempfile::tempdir()?;
                let path = scratch.path().join("perf.data");
                std::fs::write(&path, recording(folder, name)?)?;
                agrees_with_perf(&path, true)
            },
        );
        cases.push(found);
    }
    cases.push(case(TESTDATA, "net8_jitdump_has_its_loads", |folder| {
        let dump = unpack(&folder.join("perf/net8/jit-5323.dump.gz"))?;
        let (loads, diagnostics) = loads(&dump)?;
        let addresses: std::collections::BTreeSet<_> = loads.iter().map(|load| load.0).collect();
        check(&(loads.len(), addresses.len()), &(11_504, 6_163))?;
        check(&diagnostics.is_clean(), &true)
    }));
    cases.push(case(TESTDATA, "damaged_recordings_never_panic", |folder| {
        let bytes = recording(folder, "net8")?;
        damaged(&bytes, 200, |bytes| {
            let options = Options::default().with_round_limit(64 << 10);
            let Ok(mut reader) = Reader::open(Cursor::new(bytes), options) else {
                return 0;
            };
            let mut records = 0;
            while let Ok(Some(_)) = reader.next_record() {
                records += 1;
            }
            records
        })
    }));
    cases.push(case(TESTDATA, "damaged_jitdumps_never_panic", |folder| {
        let bytes = unpack(&folder.join("perf/net8/jit-5323.dump.gz"))?;
        damaged(&bytes[..200_000], 200, |bytes| {
            loads(bytes).map_or(0, |loads| loads.0.len())
        })
    }));
    cases.push(case(TESTDATA, "damaged_texts_never_panic", |folder| {
        let bytes = unpack(&folder.join("perf/net8/perf-script.txt.gz"))?;
        damaged(&bytes[..200_000], 50, |bytes| {
            let Ok(mut reader) = script::Reader::new(bytes, Default::default()) else {
                return 0;
            };
            let mut frames = 0;
            while let Ok(Some(sample)) = reader.next_sample() {
                frames += sample.frames().count();
            }
            frames
        })
    }));
    cases.push(case(
        TESTDATA,
        "net10_jitdump_is_cut_after_its_first_load",
        |folder| {
            let dump = unpack(&folder.join("perf/net10/jit-5355.dump.gz"))?;
            let (loads, diagnostics) = loads(&dump)?;
            check(&(loads.len(), diagnostics.gaps.total().bytes), &(1, 32_854))
        },
    ));
    let recordings: [(&str, &[&str], bool); 9] = [
        ("plain", &["-g"], true),
        ("compressed", &["-g", "-z"], true),
        ("compressed_hard", &["-g", "-z=22", "-F", "20000"], true),
        ("piped", &["-g", "-o", "-"], true),
        ("compressed_pipe", &["-g", "-z", "-o", "-"], true),
        (
            "build_ids_in_mappings",
            &["-g", "--buildid-mmap", "--switch-events"],
            true,
        ),
        ("lossy", &["-g", "-F", "20000", "-m", "1"], true),
        // perf unwinds the copied stacks, so its chains are longer than the recorded ones.
        ("dwarf", &["--call-graph", "dwarf,4096"], false),
        (
            "every_field",
            &[
                "-g",
                "-e",
                "task-clock",
                "--namespaces",
                "--all-cgroups",
                "-d",
                "--phys-data",
                "--data-page-size",
                "--code-page-size",
                "-W",
            ],
            true,
        ),
    ];
    for (name, arguments, has_chains) in recordings {
        cases.push(recorded(
            format!("{name}_recording_agrees_with_perf"),
            move |folder| {
                let path = folder.join("perf.data");
                record(&path, arguments, &["sh", "-c", WORK])?;
                agrees_with_perf(&path, has_chains)
            },
        ));
    }
    cases.push(recorded("jitdump_of_node_has_lines".into(), |folder| {
        if Command::new("node").arg("--version").output().is_err() {
            return Ok(());
        }
        let code = "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } fib(30)";
        std::fs::write(folder.join("fib.js"), code)?;
        run(Command::new("node")
            .args(["--perf-prof", "fib.js"])
            .current_dir(folder))?;
        let dump = (std::fs::read_dir(folder)?.flatten())
            .find(|entry| entry.path().extension().is_some_and(|end| end == "dump"))
            .ok_or("node wrote no jitdump")?;
        let (loads, diagnostics) = loads(&std::fs::read(dump.path())?)?;
        // V8 corrupts the lines of most scripts other than its own.
        let has = |name: &str, lines: usize| {
            (loads.iter()).any(|load| load.1.contains(name) && load.2 >= lines)
        };
        check(&(has("fib ", 0), has("JS:", 1)), &(true, true))?;
        check(
            &(diagnostics.bad_records, &diagnostics.gaps),
            &(0, &Gaps::default()),
        )
    }));
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// A workload in two processes, one of which has a name with a blank and a parenthesis.
const WORK: &str = "printf 'w er)x' > /proc/$$/comm; i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; \
    cat /proc/self/maps > /dev/null; seq 200000 | sort -r > /dev/null";

/// A case that runs `perf`: ignored if that is missing, unless it is required.
fn with_perf(trial: Trial) -> Trial {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|value| value == "1");
    let missing = Command::new("perf").arg("--version").output().is_err();
    if missing && !required {
        trial.with_ignored_flag(true)
    } else {
        trial
    }
}

fn tool(
    variable: &'static str,
    name: String,
    run: impl FnOnce(&Path) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    let unset = std::env::var_os(variable).is_none();
    let trial = case(variable, name, run);
    if unset { trial } else { with_perf(trial) }
}

fn recorded(name: String, run: impl FnOnce(&Path) -> Result<(), Failed> + Send + 'static) -> Trial {
    with_perf(Trial::test(name, move || run(tempfile::tempdir()?.path())))
}

fn run(command: &mut Command) -> Result<Vec<u8>, Failed> {
    let output = command.stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {said}").into());
    }
    Ok(output.stdout)
}

fn record(path: &Path, arguments: &[&str], program: &[&str]) -> Result<(), Failed> {
    let mut command = perf_record("cpu-clock");
    if !arguments.contains(&"-o") {
        command.arg("-o").arg(path);
    }
    let out = run(command.args(arguments).arg("--").args(program))?;
    if arguments.contains(&"-o") {
        std::fs::write(path, out)?;
    }
    Ok(())
}

fn recording(folder: &Path, name: &str) -> Result<Vec<u8>, Failed> {
    match name {
        "mono" => unzip(&folder.join("clr31/join/mono.zip"), "perf.data"),
        _ => Ok(std::fs::read(
            folder.join("perf").join(name).join("perf.data"),
        )?),
    }
}

fn unpack(path: &Path) -> Result<Vec<u8>, Failed> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(File::open(path)?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn check<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), Failed> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{found:?} where {expected:?} should be").into())
}

fn for_each(
    bytes: &[u8],
    mut see: impl FnMut(&Record<'_>) -> Result<(), Failed>,
) -> Result<Reader<Cursor<&[u8]>>, Failed> {
    let mut reader = Reader::new(Cursor::new(bytes), Options::default())?;
    while let Some(record) = reader.next_record()? {
        see(&record)?;
    }
    Ok(reader)
}

fn has_records(bytes: &[u8], kinds: BTreeMap<u32, u64>, kernel: u64) -> Result<(), Failed> {
    let mut counts = BTreeMap::<u32, u64>::new();
    let mut in_kernel = 0;
    let mut latest = 0;
    let reader = for_each(bytes, |record| {
        *counts.entry(record.kind).or_default() += 1;
        if let Event::Sample(Sample {
            callchain: Some(chain),
            ..
        }) = record.event
        {
            in_kernel += u64::from(chain.parts().any(|part| part.mode == CpuMode::Kernel));
        }
        let time = record.time_ns.unwrap_or(latest);
        check(&(time >= latest), &true)?;
        latest = time;
        Ok(())
    })?;
    check(&counts, &kinds)?;
    check(&in_kernel, &kernel)?;
    check(&reader.diagnostics().is_clean(), &true)?;
    check(&reader.attrs()[0].clock_id, &Some(1))
}

/// Reads copies in which ten bytes are wrong; most of them remain partly readable.
fn damaged(bytes: &[u8], copies: usize, read: impl Fn(&[u8]) -> usize) -> Result<(), Failed> {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut readable = 0;
    for _ in 0..copies {
        let mut copy = bytes.to_vec();
        for _ in 0..10 {
            copy[random.index(bytes.len())] = random.below(256) as u8;
        }
        readable += usize::from(read(&copy) > 0);
    }
    check(&(readable > copies / 2), &true)
}

/// Returns address, names and lines of loaded code.
#[allow(clippy::type_complexity)]
fn loads(dump: &[u8]) -> Result<(Vec<(u64, String, usize)>, jitdump::Diagnostics), Failed> {
    let mut reader = jitdump::Reader::new(dump, Default::default())?;
    let mut loads = Vec::new();
    while let Some(record) = reader.next_record()? {
        let jitdump::Record::Load(load) = record else {
            continue;
        };
        let (start, end) = (load.address, load.address.saturating_add(load.size));
        for line in load.lines.clone() {
            check(&(start..=end).contains(&line.address), &true)?;
        }
        let name = String::from_utf8_lossy(load.name).into_owned();
        loads.push((load.address, name, load.lines.count()));
    }
    Ok((loads, reader.diagnostics().clone()))
}

/// Names and mappings of processes at the time of a record.
#[derive(Default)]
struct Machine {
    comms: HashMap<u32, String>,
    maps: HashMap<u32, Vec<(u64, u64, u64, String)>>,
}

impl Machine {
    /// Returns perf's name of a thread, whose record may have been lost.
    fn comm(&self, tid: u32) -> String {
        let known = self.comms.get(&tid).cloned();
        known.unwrap_or_else(|| format!(":{tid}"))
    }

    fn see(&mut self, event: &Event<'_>) {
        match *event {
            Event::Comm(comm) => {
                let name = String::from_utf8_lossy(comm.name).into_owned();
                self.comms.insert(comm.tid, name);
                if comm.is_exec {
                    self.maps.remove(&comm.pid);
                }
            }
            Event::Fork(task) => {
                match self.comms.get(&task.parent_tid).cloned() {
                    Some(name) => self.comms.insert(task.tid, name),
                    None => self.comms.remove(&task.tid),
                };
                if task.pid != task.parent_pid {
                    let maps = self.maps.get(&task.parent_pid).cloned().unwrap_or_default();
                    self.maps.insert(task.pid, maps);
                }
            }
            Event::Mmap(Mmap {
                pid,
                address,
                size,
                file_offset,
                name,
                is_data: false,
                ..
            }) => {
                let name = String::from_utf8_lossy(name).into_owned();
                let maps = self.maps.entry(pid).or_default();
                maps.push((address, address.saturating_add(size), file_offset, name));
            }
            _ => {}
        }
    }

    /// Returns a frame as perf prints it: a file offset if it is in a file, and the file.
    fn place(&self, pid: u32, address: u64) -> (u64, Option<&str>) {
        let maps = self.maps.get(&pid).map_or(&[][..], Vec::as_slice);
        let found = maps
            .iter()
            .rev()
            .find(|map| (map.0..map.1).contains(&address));
        match found {
            Some((_, _, _, name)) if name == "//anon" => (address, None),
            Some((start, _, offset, name)) => (address - start + offset, Some(name)),
            None => (address, None),
        }
    }
}

fn agrees_with_text(bytes: &[u8], text: &[u8]) -> Result<(), Failed> {
    let mut text = script::Reader::new(text, Default::default())?;
    let mut machine = Machine::default();
    let (mut samples, mut frames) = (0, 0);
    for_each(bytes, |record| {
        machine.see(&record.event);
        let Event::Sample(sample) = record.event else {
            return Ok(());
        };
        let printed = text.next_sample()?.ok_or("the text has fewer samples")?;
        let (pid, tid) = (record.pid.ok_or("no pid")?, record.tid.ok_or("no tid")?);
        check(&(printed.pid, printed.tid), &(Some(pid), tid))?;
        check(&printed.comm, &machine.comm(tid).as_str())?;
        check(
            &Some(printed.time_ns),
            &record.time_ns.map(|time| time / 1_000 * 1_000),
        )?;
        let mut rows = printed.frames().filter(|frame| !frame.is_inlined);
        let chain = sample.callchain.ok_or("no chain")?;
        for part in chain.parts() {
            for address in part.addresses.iter() {
                let row = rows.next().ok_or("the text has fewer frames")?;
                let (place, file) = match part.mode {
                    CpuMode::User => machine.place(pid, address),
                    _ => (address, Some("[kernel.kallsyms]")),
                };
                check(&row.address, &place)?;
                if let Some(file) = file {
                    check(&row.dso, &Some(file))?;
                }
                frames += 1;
            }
        }
        samples += 1;
        check(&rows.next().is_none(), &true)
    })?;
    check(&text.next_sample()?.is_none(), &true)?;
    check(&text.diagnostics().is_clean(), &true)?;
    check(&(samples > 700 && frames > 18_000), &true)
}

/// A sample as `perf script` prints it, and the chain as recorded.
type Printed = (String, u32, u32, u64, Option<u64>, String);

/// Compares every sample and the number of every kind of record.
fn agrees_with_perf(path: &Path, has_chains: bool) -> Result<(), Failed> {
    let perf = |arguments: &[&str]| {
        run(Command::new("perf")
            .args(arguments)
            .arg("-i")
            .arg(path)
            .env("PAGER", "cat"))
    };
    let text = perf(&["script", "--ns", "-F", "comm,pid,tid,time,period,event,ip"])?;
    let dump = perf(&["report", "-D"])?;
    let (kinds, dumped) = dumped(&String::from_utf8_lossy(&dump))?;
    let bytes = std::fs::read(path)?;
    let mut machine = Machine::default();
    let mut own: Vec<Printed> = Vec::new();
    let mut chains: Vec<(u64, u64, Vec<u64>)> = Vec::new();
    let mut counts = BTreeMap::<&str, u64>::new();
    let mut events = Vec::new();
    let reader = for_each(&bytes, |record| {
        machine.see(&record.event);
        *counts.entry(kind_name(record.kind)).or_default() += 1;
        let Event::Sample(sample) = record.event else {
            return Ok(());
        };
        let (pid, tid) = (record.pid.ok_or("no pid")?, record.tid.ok_or("no tid")?);
        let time = record.time_ns.ok_or("no time")?;
        let comm = machine.comm(tid);
        events.push(record.attr.ok_or("no event")?);
        own.push((comm, pid, tid, time, sample.period, String::new()));
        let chain = sample.callchain.map(|chain| chain.words().iter().collect());
        chains.push((time, sample.ip.ok_or("no ip")?, chain.unwrap_or_default()));
        Ok(())
    })?;
    for (sample, event) in own.iter_mut().zip(events) {
        sample.5 = reader.attrs()[event].name.clone().unwrap_or_default();
    }
    let diagnostics = reader.diagnostics();
    let damage = (
        diagnostics.bad_records,
        diagnostics.bad_sections,
        diagnostics.late_records,
    );
    check(&damage, &(0, 0, 0))?;
    check(
        &(&diagnostics.gaps, diagnostics.bad_compressed_bytes),
        &(&Gaps::default(), 0),
    )?;
    for (kind, count) in kinds {
        check(
            &(kind.as_str(), counts.get(kind.as_str())),
            &(kind.as_str(), Some(&count)),
        )?;
    }
    let mut printed = Vec::new();
    let mut reader = script::Reader::new(text.as_slice(), Default::default())?;
    while let Some(sample) = reader.next_sample()? {
        let pid = sample.pid.ok_or("no pid")?;
        let (comm, event) = (sample.comm.to_owned(), sample.event.to_owned());
        printed.push((comm, pid, sample.tid, sample.time_ns, sample.period, event));
    }
    check(&(own.len(), own.is_empty()), &(printed.len(), false))?;
    for (own, printed) in own.iter().zip(&printed) {
        check(own, printed)?;
    }
    for (own, dumped) in chains.iter().zip(&dumped) {
        check(own, dumped)?;
    }
    check(
        &(has_chains && chains.iter().all(|chain| chain.2.is_empty())),
        &false,
    )?;
    check(&chains.len(), &dumped.len())
}

/// The kinds of record that a dump names, and how often; then time, address and chain of each
/// sample.
#[allow(clippy::type_complexity)]
fn dumped(dump: &str) -> Result<(BTreeMap<String, u64>, Vec<(u64, u64, Vec<u64>)>), Failed> {
    const OWN: [&str; 12] = [
        "ATTR",
        "FEATURE",
        "FINISHED_ROUND",
        "FINISHED_INIT",
        "ID_INDEX",
        "THREAD_MAP",
        "CPU_MAP",
        "EVENT_UPDATE",
        "COMPRESSED",
        "TIME_CONV",
        "HEADER_BUILD_ID",
        "TRACING_DATA",
    ];
    let mut kinds = BTreeMap::new();
    let mut samples: Vec<(u64, u64, Vec<u64>)> = Vec::new();
    for line in dump.lines() {
        if let Some((head, rest)) = line.split_once("PERF_RECORD_") {
            let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
            let kind = &rest[..end.unwrap_or(rest.len())];
            if !head.contains("]: ") || OWN.contains(&kind) {
                continue;
            }
            *kinds.entry(kind.to_owned()).or_default() += 1;
            if kind == "SAMPLE" {
                let time = head.split_whitespace().find_map(|word| word.parse().ok());
                let address = rest
                    .split(": 0x")
                    .nth(1)
                    .and_then(|rest| rest.split(' ').next());
                let address = address.ok_or(line)?;
                samples.push((
                    time.ok_or(line)?,
                    u64::from_str_radix(address, 16)?,
                    Vec::new(),
                ));
            }
        } else if let (Some(row), Some(sample)) = (line.strip_prefix("....."), samples.last_mut()) {
            let Some((number, address)) = row.split_once(": ") else {
                continue;
            };
            if number.trim().parse::<u32>().is_ok() {
                sample.2.push(u64::from_str_radix(address.trim(), 16)?);
            }
        }
    }
    Ok((kinds, samples))
}

fn kind_name(kind: u32) -> &'static str {
    match kind {
        1 => "MMAP",
        2 => "LOST",
        3 => "COMM",
        4 => "EXIT",
        7 => "FORK",
        9 => "SAMPLE",
        10 => "MMAP2",
        13 => "LOST_SAMPLES",
        14 => "SWITCH",
        16 => "NAMESPACES",
        17 => "KSYMBOL",
        18 => "BPF_EVENT",
        19 => "CGROUP",
        _ => "?",
    }
}
