//! The .etl reader against what Microsoft's TraceEvent printed for the same real traces.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use chronosym_conformance::{CORPUS, case, unzip};
use chronosym_etl::{Diagnostics, EtlReader, EventKey, ExtendedItem, Record, RecordKind};
use libtest_mimic::{Arguments, Failed};

/// Which event a baseline's name stands for: GUID, whether ids or opcodes follow, prefix of the names; then the events.
const EVENTS: &str = include_str!("data/etl-events.txt");

fn main() -> ExitCode {
    let baselined = [
        "net.4.5.2.x64",
        "gcevents",
        "gcrundownevents",
        "primitive-types",
    ];
    let mut cases = Vec::new();
    for name in baselined {
        cases.push(case(
            CORPUS,
            format!("{name}_agrees_with_its_baseline"),
            move |corpus| {
                let trace = unzip(&corpus.join(format!("{name}.etl.zip")), ".etl")?;
                agrees(
                    &trace,
                    &Baseline::read(&corpus.join(format!("{name}.baseline.txt")))?,
                )
            },
        ));
    }
    cases.push(case(
        CORPUS,
        "self_describing_event_decodes_to_its_fields",
        |corpus| {
            self_describing(&std::fs::read(
                corpus.join("SelfDescribingSingleEvent.etl"),
            )?)
        },
    ));
    for name in baselined {
        cases.push(case(
            CORPUS,
            format!("{name}_reads_as_far_as_it_goes_when_cut"),
            move |corpus| truncations(&unzip(&corpus.join(format!("{name}.etl.zip")), ".etl")?),
        ));
    }
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// What a baseline says: how many events of each name there are, and the first of each, in the trace's order.
#[derive(Default)]
struct Baseline {
    counts: HashMap<String, u64>,
    events: Vec<Printed>,
}

/// An event as the baseline prints it.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    name: String,
    /// Rounded to microseconds, halves up.
    time_us: u64,
    process_id: i64,
    thread_id: i64,
    cpu: u16,
    length: usize,
}

impl Baseline {
    fn read(path: &Path) -> Result<Self, Failed> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let mut baseline = Self::default();
        for line in text.trim_start_matches('\u{feff}').lines() {
            if let Some(rest) = line.strip_prefix("COUNT ") {
                let (name, count) = rest.rsplit_once(':').ok_or(line)?;
                baseline.counts.insert(name.into(), count.trim().parse()?);
            } else if let Some(rest) = line.strip_prefix("EVENT ") {
                baseline.events.push(Printed::parse(rest).ok_or(line)?);
            }
        }
        Ok(baseline)
    }
}

impl Printed {
    fn parse(line: &str) -> Option<Self> {
        let number = |text: &str| text.trim().replace([',', '.'], "").parse::<i64>().ok();
        let (time, rest) = line.split_once(": ")?;
        let (name, rest) = rest.split_once(" PID=")?;
        let (process_id, rest) = rest.split_once("; TID=")?;
        let (thread_id, rest) = rest.split_once("; ")?;
        let (cpu, rest) = rest.split_once("ProceNum=")?.1.split_once("; ")?;
        let length = rest.strip_prefix("DataLen=")?.split_once("; ")?.0;
        Some(Self {
            name: name.into(),
            time_us: number(time)? as u64,
            process_id: number(process_id)?,
            thread_id: number(thread_id)?,
            cpu: number(cpu)? as u16,
            length: number(length)? as usize,
        })
    }

    fn of(name: &str, record: &Record<'_>, threads: &Threads) -> Self {
        let signed = |id: Option<u32>| id.map_or(-1, i64::from);
        let (process_id, thread_id) = threads.subject(name, record);
        Self {
            name: name.into(),
            time_us: (record.time_ns + 500) / 1000,
            process_id: signed(process_id),
            thread_id: signed(thread_id),
            cpu: record.cpu,
            length: record.payload.len(),
        }
    }
}

/// Process of each thread. TraceEvent shows whom a kernel event is about, not who logged it.
#[derive(Default)]
struct Threads(HashMap<u32, u32>);

impl Threads {
    fn learn(&mut self, name: &str, record: &Record<'_>) {
        if matches!(
            name,
            "Windows Kernel/Thread/Start" | "Windows Kernel/Thread/DCStart"
        ) {
            self.0.insert(word(record, 4), word(record, 0));
        } else if let (Some(process_id), Some(thread_id)) = (record.process_id, record.thread_id) {
            self.0.entry(thread_id).or_insert(process_id);
        }
    }

    fn subject(&self, name: &str, record: &Record<'_>) -> (Option<u32>, Option<u32>) {
        let width = record.pointer_size.bytes();
        let of_thread = |tid: u32| (self.0.get(&tid).copied(), Some(tid));
        let Some(name) = name.strip_prefix("Windows Kernel/") else {
            return (record.process_id, record.thread_id);
        };
        match name {
            "Process/PerfCtr" | "Process/PerfCtrRundown" => (Some(word(record, 0)), None),
            _ if name.starts_with("Process/") => (Some(word(record, width)), None),
            "Image/Unload" | "Image/DCStart" | "Image/DCStop" => {
                (Some(word(record, 2 * width)), None)
            }
            "Thread/Start" | "Thread/Stop" => (Some(word(record, 0)), Some(word(record, 4))),
            _ if name.starts_with("TcpIp/") || name.starts_with("UdpIp/") => {
                (Some(word(record, 0)), None)
            }
            "SystemConfig/Services" => (Some(word(record, 0)), record.thread_id),
            "PerfInfo/Sample" => of_thread(word(record, width)),
            "Memory/HardFault" => of_thread(word(record, 32)),
            "DiskIO/Read" | "DiskIO/Write" => of_thread(word(record, 48)),
            // TraceEvent takes the low half of the response time for the thread.
            "DiskIO/FlushBuffers" => of_thread(word(record, 8)),
            _ => (record.process_id, record.thread_id),
        }
    }
}

fn word(record: &Record<'_>, at: usize) -> u32 {
    record.payload.get(at..at + 4).map_or(u32::MAX, |bytes| {
        u32::from_le_bytes(bytes.try_into().unwrap())
    })
}

/// Names of the events by GUID (as printed) and id or opcode.
fn names() -> HashMap<(String, u16), String> {
    let mut names = HashMap::new();
    let (mut guid, mut prefix) = ("", "");
    for line in EVENTS.lines() {
        if let Some(event) = line.strip_prefix("  ") {
            let (number, name) = event.split_once(' ').unwrap_or((event, ""));
            let slash = if name.is_empty() { "" } else { "/" };
            names.insert(
                (guid.into(), number.parse().unwrap()),
                format!("{prefix}{slash}{name}"),
            );
        } else {
            (guid, prefix) = line.split_once(' ').unwrap();
            prefix = prefix.split_once(' ').unwrap().1;
        }
    }
    names
}

fn agrees(trace: &[u8], baseline: &Baseline) -> Result<(), Failed> {
    let names = names();
    let mut reader = EtlReader::open(trace)?;
    let mut counts = HashMap::<&str, u64>::new();
    let mut events = Vec::new();
    let mut threads = Threads::default();
    while let Some(record) = reader.next_record() {
        let key = match record.key {
            EventKey::Classic { class, opcode, .. } => (class.to_string(), u16::from(opcode)),
            EventKey::Manifest { provider, id, .. } => (provider.to_string(), id),
            _ => continue,
        };
        let Some(name) = names.get(&key) else {
            continue;
        };
        threads.learn(name, &record);
        if name == "Windows Kernel/PerfInfo/Sample" && is_idle(&record) {
            continue;
        }
        let count = counts.entry(name).or_default();
        *count += 1;
        if *count <= 5 && baseline.counts.contains_key(name) {
            events.push(Printed::of(name, &record, &threads));
        }
    }
    for (name, expected) in &baseline.counts {
        let found = counts.get(name.as_str()).copied().unwrap_or(0);
        if found != *expected {
            return Err(format!("{name}: {found} events, {expected} in the baseline").into());
        }
    }
    for (found, expected) in events.iter().zip(&baseline.events) {
        if found != expected {
            return Err(format!("found    {found:?}\nexpected {expected:?}").into());
        }
    }
    if events.len() != baseline.events.len() {
        return Err(format!(
            "{} events, {} in the baseline",
            events.len(),
            baseline.events.len()
        )
        .into());
    }
    Ok(())
}

/// The baselines leave out samples of the idle thread outside DPCs and interrupts.
fn is_idle(record: &Record<'_>) -> bool {
    let width = record.pointer_size.bytes();
    record.kind == RecordKind::PerfInfo
        && record.payload[width..width + 4] == [0; 4]
        && record.payload[width + 6] & 3 == 0
}

fn self_describing(trace: &[u8]) -> Result<(), Failed> {
    let mut reader = EtlReader::open(trace)?;
    let mut found = Vec::new();
    while let Some(record) = reader.next_record() {
        let (mut provider, mut schema) = (None, None);
        for item in record.extended_items() {
            match item {
                ExtendedItem::ProviderTraits(traits) => provider = Some(traits.name()),
                ExtendedItem::SchemaTl(found) => schema = Some(found),
                _ => {}
            }
        }
        let Some(schema) = schema else { continue };
        found.push(format!(
            "{}/{}",
            provider.unwrap_or_default(),
            schema.name()
        ));
        let whole = schema.values(
            record.payload,
            record.pointer_size,
            |depth, field, value| {
                let units: Vec<u16> = value
                    .chunks_exact(2)
                    .map(|unit| u16::from_le_bytes([unit[0], unit[1]]))
                    .collect();
                found.push(format!(
                    "{depth} {} {}",
                    field.name(),
                    String::from_utf16_lossy(&units)
                ));
            },
        );
        if !whole {
            return Err("the payload is shorter than its fields".into());
        }
    }
    let expected = ["MySource/TestEvent", "0 a ", "1 b Hello", "1 c World!"];
    if found != expected {
        return Err(format!("{found:?}, not {expected:?}").into());
    }
    Ok(())
}

/// Where buffers begin and the file ends, from the sizes in the headers alone.
fn edges(trace: &[u8]) -> Vec<usize> {
    let mut edges = vec![0];
    while let Some(size) = trace
        .get(edges[edges.len() - 1]..)
        .and_then(|rest| rest.first_chunk())
    {
        edges.push(edges[edges.len() - 1] + u32::from_le_bytes(*size) as usize);
    }
    edges
}

/// Raw time and length of every record, and what was counted.
fn records(trace: &[u8]) -> Result<(Vec<(i64, usize)>, Diagnostics), Failed> {
    let mut reader = EtlReader::open(trace)?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record() {
        records.push((record.raw_time, record.bytes().len()));
    }
    Ok((records, reader.diagnostics().clone()))
}

/// Cut at each edge the file holds all of its earlier buffers; cut inside, also what is whole of the one that is cut.
fn truncations(trace: &[u8]) -> Result<(), Failed> {
    let edges = edges(trace);
    if edges.last() != Some(&trace.len()) {
        return Err("the file does not end with a buffer".into());
    }
    // Records of each buffer, read alone after the one with the log file header.
    let first = &trace[..edges[1]];
    let (header, _) = records(first)?;
    let mut upto = vec![0, header.len()];
    for pair in edges[1..].windows(2) {
        let (alone, found) = records(&[first, &trace[pair[0]..pair[1]]].concat())?;
        if found.is_damaged() {
            return Err(format!("the buffer at {} is damaged", pair[0]).into());
        }
        upto.push(upto[upto.len() - 1] + alone.len() - header.len());
    }
    // All that precedes a cut is looked at for ten of them, the last few buffers for each.
    let step = edges.len().div_ceil(10);
    for (last, edge) in edges.iter().enumerate().skip(1) {
        let from = if last % step == 0 {
            1
        } else {
            last.saturating_sub(3).max(1)
        };
        let (found, counted) = records(&[first, &trace[edges[from]..*edge]].concat())?;
        let expected = upto[last] - upto[from] + header.len();
        if found.len() != expected
            || counted.is_damaged()
            || !found.is_sorted_by_key(|record| record.0)
        {
            return Err(format!("cut at {edge}: {} records, not {expected}", found.len()).into());
        }
    }
    // A thousand places inside; of the large file each is tried with the header and the buffers around it.
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..1000 {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let cut = edges[1] + (random >> 20) as usize % (trace.len() - edges[1]);
        let last = edges.partition_point(|edge| *edge <= cut) - 1;
        let from = last.saturating_sub(3).max(1);
        let (found, counted) = records(&[first, &trace[edges[from]..cut]].concat())?;
        let (low, high) = (
            upto[last] - upto[from] + header.len(),
            upto[last + 1] - upto[from] + header.len(),
        );
        let in_last = cut - edges[last];
        if !(low..=high).contains(&found.len()) || !found.is_sorted_by_key(|record| record.0) {
            return Err(
                format!("cut at {cut}: {} records, not {low} to {high}", found.len()).into(),
            );
        }
        let damage = (counted.truncated_buffers, counted.unread_bytes);
        let expected = if in_last >= 72 {
            (1, 0)
        } else {
            (0, in_last as u64)
        };
        if damage != expected && !trace[edges[last]..cut].iter().all(|byte| *byte == 0) {
            return Err(format!("cut at {cut}: counted {damage:?}, not {expected:?}").into());
        }
    }
    Ok(())
}
