//! The EventPipe reader against real traces: TraceEvent's counts and first events, whole reads,
//! cuts.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chronosym_conformance::{CORPUS, TESTDATA, case, unzip};
use chronosym_nettrace::{Diagnostics, Field, FieldType, Format, Options, Reader};
use libtest_mimic::{Arguments, Failed, Trial};

/// Names of the corpus's events in the baselines.
const NAMES: &str = include_str!("data/eventpipe-events.txt");

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

fn main() -> ExitCode {
    let mut cases = Vec::new();
    for name in [
        "eventpipe-dotnetcore2.1-linux-x64-objver3.netperf",
        "eventpipe-dotnetcore3.0-win-x64-objver4.nettrace",
        "eventpipe-dotnetcore5.0-win-x64-arraytypes.nettrace",
        "eventpipe-dotnetcore6.0-win-x64-executioncheckpoints.nettrace",
    ] {
        cases.push(case(
            CORPUS,
            format!("{name}_agrees_with_its_baseline"),
            move |corpus| {
                let baseline =
                    std::fs::read_to_string(corpus.join(format!("{name}.baseline.txt")))?;
                agrees(
                    &Summary::read(unzip_trace(&corpus.join(format!("{name}.zip")))?.as_slice())?,
                    &baseline,
                )
            },
        ));
    }
    cases.push(case(
        CORPUS,
        "corpus_counts_of_methods_maps_modules_and_samples",
        corpus_counts,
    ));
    cases.push(case(
        CORPUS,
        "array_fields_of_net5_event_sources",
        array_fields,
    ));
    cases.push(case(
        CORPUS,
        "v6_of_record_trace_reads_to_its_end",
        record_trace,
    ));
    cases.push(case(
        CORPUS,
        "every_cut_and_change_of_the_smallest_trace",
        smallest_trace,
    ));
    cases.push(case(CORPUS, "cuts_of_the_v6_trace", |corpus| {
        cuts(&std::fs::read(corpus.join("record-trace.v6.nettrace"))?, 7)
    }));
    cases.push(case(CORPUS, "cuts_of_a_netperf_trace", |corpus| {
        let trace =
            unzip_trace(&corpus.join("eventpipe-dotnetcore2.1-linux-x64-objver3.netperf.zip"))?;
        cuts(&trace, 997_331)
    }));
    cases.extend(whole_reads(CORPUS, "corpus"));
    cases.extend(whole_reads(TESTDATA, "testdata"));
    cases.push(case(
        TESTDATA,
        "v6_of_collect_linux_has_its_processes_and_samples",
        collect_linux,
    ));
    cases.push(case(
        TESTDATA,
        "big_reads_to_its_end_without_being_held",
        big,
    ));
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

fn unzip_trace(path: &Path) -> Result<Vec<u8>, Failed> {
    let suffix = if path.to_string_lossy().contains(".netperf") {
        ".netperf"
    } else {
        ".nettrace"
    };
    unzip(path, suffix)
}

/// One kind of event.
type Key = (String, u32, u32);

#[derive(Default)]
struct Summary {
    counts: BTreeMap<Key, u64>,
    /// (time in ns, thread, process) of the first event of each provider and id, by time.
    first: HashMap<(String, u32), (u64, u64, Option<u32>)>,
    samples: u64,
    sample_frames: u64,
    diagnostics: Diagnostics,
    largest_region: usize,
    fields: HashMap<Key, Option<Vec<Field>>>,
}

impl Summary {
    fn read(source: impl Read) -> Result<Self, Failed> {
        let mut reader = Reader::new(source, Options::default())?;
        let mut summary = Self::default();
        let mut counts: Vec<u64> = Vec::new();
        let mut first: Vec<Option<(u64, u64, Option<u32>)>> = Vec::new();
        let mut latest = i64::MIN;
        while let Some(region) = reader.next_region()? {
            summary.largest_region = summary.largest_region.max(region.len());
            let samplers: Vec<bool> = region
                .event_types()
                .iter()
                .map(|kind| kind.provider == SAMPLER)
                .collect();
            counts.resize(samplers.len(), 0);
            first.resize(samplers.len(), None);
            let in_file_order = region.records().len();
            let mut in_time_order = 0;
            for record in region.in_time_order() {
                in_time_order += 1;
                if record.raw_time < latest {
                    return Err(
                        format!("time goes back from {latest} to {}", record.raw_time).into(),
                    );
                }
                latest = record.raw_time;
                let kind = record.event_type.index();
                counts[kind] += 1;
                first[kind].get_or_insert((record.time_ns, record.thread_id, record.process_id));
            }
            if in_time_order != in_file_order {
                return Err(format!(
                    "{in_time_order} records in time order, {in_file_order} in file order"
                )
                .into());
            }
            for record in region
                .records()
                .filter(|record| samplers[record.event_type.index()])
            {
                summary.samples += 1;
                summary.sample_frames +=
                    record.stack.map_or(0, |row| region.stack(row).len() as u64);
            }
        }
        for ((kind, count), first) in reader.event_types().iter().zip(counts).zip(first) {
            let key = (kind.provider.clone(), kind.id, kind.version);
            summary.fields.insert(key.clone(), kind.fields.clone());
            *summary.counts.entry(key).or_default() += count;
            if let Some(first) = first {
                let known = summary
                    .first
                    .entry((kind.provider.clone(), kind.id))
                    .or_insert(first);
                *known = first.min(*known);
            }
        }
        summary.diagnostics = reader.diagnostics().clone();
        Ok(summary)
    }

    fn count(&self, provider: &str, ids: &[u32]) -> u64 {
        let chosen = self
            .counts
            .iter()
            .filter(|((name, id, _), _)| name == provider && ids.contains(id));
        chosen.map(|(_, count)| count).sum()
    }

    fn total(&self) -> u64 {
        self.counts.values().sum()
    }
}

/// Counts, and time, thread and process of the first event of each name.
fn agrees(summary: &Summary, baseline: &str) -> Result<(), Failed> {
    clean(&summary.diagnostics)?;
    let mut names: HashMap<(&str, u32), &str> = HashMap::new();
    for line in NAMES.lines().filter(|line| !line.starts_with('#')) {
        let [provider, id, name] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(line.into());
        };
        names.insert((provider, id.parse()?), name);
    }
    /// How many, and time, thread and process of the first.
    type Seen = (u64, (u64, u64, Option<u32>));
    let mut ours: BTreeMap<String, Seen> = BTreeMap::new();
    for ((provider, id, _), count) in &summary.counts {
        let name = names
            .get(&(provider.as_str(), *id))
            .ok_or(format!("{provider}/{id} has no name in the table"))?;
        if *name == "-" || *count == 0 {
            continue;
        }
        let first = summary.first[&(provider.clone(), *id)];
        let entry = ours
            .entry(format!("{provider}/{name}"))
            .or_insert((0, first));
        entry.0 += count;
        entry.1 = entry.1.min(first);
    }
    let mut theirs = 0;
    for line in baseline.trim_start_matches('\u{feff}').lines() {
        let (name, rest) = line.split_once(", ").ok_or(line)?;
        let (count, event) = rest.split_once(", ").ok_or(line)?;
        let (our_count, (ns, thread, process)) =
            ours.get(name).ok_or(format!("{name} is missing"))?;
        if *our_count != count.parse::<u64>()? {
            return Err(format!("{name}: {our_count} events, the baseline has {count}").into());
        }
        let attribute = |name: &str| {
            let (_, rest) = event.split_once(&format!(" {name}="))?;
            let value = rest.trim_start().strip_prefix('"')?.split_once('"')?.0;
            Some(value.trim().replace(',', ""))
        };
        let ms: f64 = attribute("MSec").ok_or(line)?.parse()?;
        if (*ns as f64 / 1e6 - ms).abs() > 0.000_051 {
            return Err(format!("{name}: first at {ns} ns, the baseline says {ms} ms").into());
        }
        if attribute("TID") != Some(thread.to_string())
            || attribute("PID") != process.map(|pid| pid.to_string())
        {
            return Err(format!(
                "{name}: thread {thread} of process {process:?}, the baseline says {line}"
            )
            .into());
        }
        theirs += 1;
    }
    if theirs != ours.len() {
        return Err(format!("{} names, the baseline has {theirs}", ours.len()).into());
    }
    Ok(())
}

fn clean(diagnostics: &Diagnostics) -> Result<(), Failed> {
    if diagnostics.is_clean() {
        Ok(())
    } else {
        Err(format!("{diagnostics:#?}").into())
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, expected {expected:?}").into())
    }
}

/// Samples with their frames, verbose method events, IL maps and module events of the traces,
/// counted beforehand.
fn corpus_counts(corpus: &Path) -> Result<(), Failed> {
    let expected = [
        ("VoiceMemo.23092.nettrace", 947, 12_206, [107_302, 25, 57]),
        (
            "eventpipe-dotnetcore3.0-win-x64-objver4.nettrace",
            35_161,
            539_953,
            [53, 35, 14],
        ),
        (
            "eventpipe-dotnetcore5.0-win-x64-arraytypes.nettrace",
            0,
            0,
            [1_499, 363, 33],
        ),
        (
            "eventpipe-dotnetcore2.1-linux-x64-objver3.netperf",
            0,
            0,
            [26_053, 50, 13],
        ),
        (
            "only_managed_samples.nettrace",
            7_423,
            27_273,
            [408, 37, 11],
        ),
    ];
    for (name, samples, frames, counts) in expected {
        let summary = Summary::read(unzip_trace(&corpus.join(format!("{name}.zip")))?.as_slice())?;
        same(&format!("{name}: samples"), summary.samples, samples)?;
        same(&format!("{name}: frames"), summary.sample_frames, frames)?;
        let methods = summary.count(RUNTIME, &[143]) + summary.count(RUNDOWN, &[143, 144]);
        let maps = summary.count(RUNTIME, &[190]) + summary.count(RUNDOWN, &[149, 150]);
        let modules = summary.count(RUNTIME, &[152]) + summary.count(RUNDOWN, &[153, 154]);
        same(
            &format!("{name}: methods, maps, modules"),
            [methods, maps, modules],
            counts,
        )?;
    }
    Ok(())
}

/// Arrays are described by the tags of .NET 5, the first field list is empty then.
fn array_fields(corpus: &Path) -> Result<(), Failed> {
    let path = corpus.join("eventpipe-dotnetcore5.0-win-x64-arraytypes.nettrace.zip");
    let summary = Summary::read(unzip_trace(&path)?.as_slice())?;
    let key = ("TestEventSource0".to_owned(), 5, 0);
    let fields = summary
        .fields
        .get(&key)
        .and_then(Option::as_ref)
        .ok_or("no fields")?;
    let array = |element| FieldType::Array(Box::new(element));
    let expected = [
        ("arg0", array(FieldType::U32)),
        ("arg1", array(FieldType::I16)),
        ("arg2", FieldType::I64),
    ];
    let expected: Vec<_> = expected
        .map(|(name, field_type)| (name.into(), field_type))
        .into();
    let found: Vec<_> = fields
        .iter()
        .map(|field| (field.name.clone(), field.ty.clone()))
        .collect();
    same("fields", found, expected)
}

fn record_trace(corpus: &Path) -> Result<(), Failed> {
    let bytes = std::fs::read(corpus.join("record-trace.v6.nettrace"))?;
    let reader = Reader::new(bytes.as_slice(), Options::default())?;
    same(
        "format",
        (reader.header().format, reader.header().version.0),
        (Format::Nettrace, 6),
    )?;
    same("sampling", reader.header().sample_rate_ns, Some(1_000_000))?;
    let summary = Summary::read(bytes.as_slice())?;
    clean(&summary.diagnostics)?;
    same(
        "bytes read",
        summary.diagnostics.bytes_read,
        bytes.len() as u64,
    )?;
    same("events", summary.total(), 1_585)
}

fn smallest_trace(corpus: &Path) -> Result<(), Failed> {
    let name = "eventpipe-dotnetcore6.0-win-x64-executioncheckpoints.nettrace.zip";
    let mut bytes = unzip_trace(&corpus.join(name))?;
    cuts(&bytes, 1)?;
    for position in 0..bytes.len() {
        let original = bytes[position];
        for bit in 0..8 {
            bytes[position] = original ^ (1 << bit);
            if let Ok(mut reader) = Reader::new(bytes.as_slice(), Options::default()) {
                while reader.next_region()?.is_some() {}
            }
        }
        bytes[position] = original;
    }
    Ok(())
}

/// Every `step`-th cut after the magic yields the start of the trace and reports what is missing.
fn cuts(bytes: &[u8], step: usize) -> Result<(), Failed> {
    const MAGIC: usize = 24;
    let whole = Summary::read(bytes)?.total();
    let mut before = 0;
    for length in (MAGIC..bytes.len()).step_by(step) {
        let summary = Summary::read(&bytes[..length])?;
        let [gap] = summary.diagnostics.gaps.listed() else {
            return Err(format!("cut at {length}: {:?}", summary.diagnostics.gaps).into());
        };
        same("end of the only gap", gap.end(), length as u64)?;
        let events = summary.total();
        if events < before || events > whole {
            return Err(format!("cut at {length}: {events} events, {before} before").into());
        }
        before = events;
    }
    if before == 0 {
        Err("no cut delivered an event".into())
    } else {
        Ok(())
    }
}

/// One case per trace: all of it is read without diagnostics.
fn whole_reads(variable: &'static str, label: &str) -> Vec<Trial> {
    let Some(folder) = std::env::var_os(variable).map(PathBuf::from) else {
        return vec![case(variable, format!("{label}_reads_whole"), |_| Ok(()))];
    };
    let mut traces = Vec::new();
    find_traces(&folder, &mut traces);
    let cases = traces.into_iter().map(|path| {
        let name = path
            .strip_prefix(&folder)
            .unwrap_or(&path)
            .display()
            .to_string();
        case(variable, format!("{label}/{name}_reads_whole"), move |_| {
            let bytes = if path.extension().is_some_and(|ext| ext == "zip") {
                unzip_trace(&path)?
            } else {
                std::fs::read(&path)?
            };
            let summary = Summary::read(bytes.as_slice())?;
            clean(&summary.diagnostics)?;
            same(
                "bytes read",
                summary.diagnostics.bytes_read,
                bytes.len() as u64,
            )?;
            same("events", summary.diagnostics.events, summary.total())?;
            if summary.total() == 0 {
                Err("no events".into())
            } else {
                Ok(())
            }
        })
    });
    let mut cases: Vec<_> = cases.collect();
    if cases.is_empty() {
        cases.push(case(variable, format!("{label}_holds_traces"), |_| {
            Err("no trace found".into())
        }));
    }
    cases
}

fn find_traces(folder: &Path, traces: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            find_traces(&path, traces);
        } else if [".nettrace", ".nettrace.zip", ".netperf.zip"]
            .iter()
            .any(|suffix| name.ends_with(suffix))
            && name != "big.nettrace.zip"
        {
            traces.push(path);
        }
    }
}

fn collect_linux(testdata: &Path) -> Result<(), Failed> {
    let bytes = unzip_trace(&testdata.join("clr10/traces/linux.nettrace.zip"))?;
    let mut reader = Reader::new(bytes.as_slice(), Options::default())?;
    let (mut samples, mut with_process, mut with_stack) = (0, 0, 0);
    while let Some(region) = reader.next_region()? {
        for record in region.records() {
            let kind = region.event_type(record.event_type).ok_or("no type")?;
            if kind.provider == "Universal.Events" && kind.name == "cpu" {
                samples += 1;
                with_process += u32::from(
                    record.process_id.is_some_and(|pid| pid != 0) && record.thread_id != 0,
                );
                with_stack += u32::from(
                    record
                        .stack
                        .is_some_and(|row| !region.stack(row).is_empty()),
                );
            }
        }
    }
    clean(reader.diagnostics())?;
    if samples == 0 || with_process == 0 || with_stack != samples {
        return Err(format!(
            "{samples} samples, {with_process} of a process, {with_stack} with a stack"
        )
        .into());
    }
    Ok(())
}

/// Straight from the decompressor: the file is never held in memory.
fn big(testdata: &Path) -> Result<(), Failed> {
    let mut archive =
        zip::ZipArchive::new(File::open(testdata.join("clr10/traces/big.nettrace.zip"))?)?;
    let index = (0..archive.len())
        .find(|&index| {
            archive
                .name_for_index(index)
                .is_some_and(|name| name.is_ok_and(|n| n.ends_with(".nettrace")))
        })
        .ok_or("no trace inside")?;
    let summary = Summary::read(archive.by_index(index)?)?;
    clean(&summary.diagnostics)?;
    same("bytes", summary.diagnostics.bytes_read, 173_187_034)?;
    same("stacks", summary.diagnostics.stacks, 24_112)?;
    same("events", summary.total(), 2_027_897)?;
    if summary.largest_region > 100_000 {
        Err(format!("a region of {}", summary.largest_region).into())
    } else {
        Ok(())
    }
}
