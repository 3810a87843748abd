//! Compares the .etl reader with the output of Microsoft's TraceEvent for the same real traces.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;

use chronosym_conformance::{CORPUS, case, unzip};
use chronosym_etl::{Diagnostics, EventKey, ExtendedItem, Reader as EtlReader, Record, RecordKind};
use chronosym_events::{EventSchema, Provider, RawEvent, TraceLoggingSchema};
use libtest_mimic::{Arguments, Failed};

/// The events that a baseline's names identify: GUID, whether ids or opcodes follow, prefix of the
/// names; then the events.
const EVENTS: &str = include_str!("data/etl-events.txt");

fn main() -> ExitCode {
    // With the number of payload values that are compared.
    let baselined = [
        ("net.4.5.2.x64", 870),
        ("gcevents", 28),
        ("gcrundownevents", 155),
        ("primitive-types", 60),
    ];
    let mut cases = Vec::new();
    for (name, values) in baselined {
        cases.push(case(
            CORPUS,
            format!("{name}_agrees_with_its_baseline"),
            move |corpus| {
                let trace = unzip(&corpus.join(format!("{name}.etl.zip")), ".etl")?;
                let baseline = Baseline::read(&corpus.join(format!("{name}.baseline.txt")))?;
                agrees(&trace, &Baseline { values, ..baseline })
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
    for name in ["gcevents", "gcrundownevents", "primitive-types"] {
        cases.push(case(
            CORPUS,
            format!("{name}_with_flipped_bits_never_panics"),
            move |corpus| flipped(unzip(&corpus.join(format!("{name}.etl.zip")), ".etl")?),
        ));
    }
    cases.push(case(
        CORPUS,
        "SelfDescribingSingleEvent_with_flipped_bits_never_panics",
        |corpus| flipped(std::fs::read(corpus.join("SelfDescribingSingleEvent.etl"))?),
    ));
    cases.push(case(
        CORPUS,
        "session_and_rundown_of_one_recording_merge",
        |corpus| {
            let session = unzip(&corpus.join("gcevents.etl.zip"), ".etl")?;
            let rundown = unzip(&corpus.join("gcrundownevents.etl.zip"), ".etl")?;
            merged(&session, &rundown)
        },
    ));
    for (name, _) in baselined {
        cases.push(case(
            CORPUS,
            format!("{name}_without_a_buffer_reports_it_missing"),
            move |corpus| {
                let trace = unzip(&corpus.join(format!("{name}.etl.zip")), ".etl")?;
                without_a_buffer(&trace)
            },
        ));
        cases.push(case(
            CORPUS,
            format!("{name}_reads_as_far_as_it_goes_when_cut"),
            move |corpus| truncations(&unzip(&corpus.join(format!("{name}.etl.zip")), ".etl")?),
        ));
    }
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// A baseline: the number of events of each name, and the first event of each, in the trace's
/// order.
#[derive(Default)]
struct Baseline {
    counts: HashMap<String, u64>,
    events: Vec<Printed>,
    /// Minimum number of printed values that must be compared.
    values: usize,
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
    /// The decoded payload.
    fields: Fields,
}

/// Names and values of a payload, as text. All are equal here; [`agree`] compares them.
#[derive(Debug, Default)]
struct Fields(Vec<(String, String)>);

impl PartialEq for Fields {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Fields {}

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
        let (length, rest) = rest.strip_prefix("DataLen=")?.split_once("; ")?;
        let fields = rest.split("; ").filter_map(|field| field.split_once('='));
        Some(Self {
            name: name.into(),
            time_us: number(time)? as u64,
            process_id: number(process_id)?,
            thread_id: number(thread_id)?,
            cpu: number(cpu)? as u16,
            length: number(length)? as usize,
            fields: Fields(
                fields
                    .map(|(name, value)| (name.to_lowercase(), value.into()))
                    .collect(),
            ),
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
            fields: Fields(fields(record)),
        }
    }
}

/// Process of each thread. TraceEvent shows whom a kernel event is about, not who logged it.
#[derive(Default)]
struct Threads(HashMap<u32, u32>);

impl Threads {
    fn observe(&mut self, name: &str, record: &Record<'_>) {
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
    let mut reader = EtlReader::new(trace, Default::default())?;
    let mut counts = HashMap::<&str, u64>::new();
    let mut events = Vec::new();
    let mut threads = Threads::default();
    while let Some(record) = reader.next_record()? {
        let key = match record.key {
            EventKey::Classic { class, opcode, .. } => (class.to_string(), u16::from(opcode)),
            EventKey::Manifest { provider, id, .. } => (provider.to_string(), id),
            _ => continue,
        };
        let Some(name) = names.get(&key) else {
            continue;
        };
        threads.observe(name, &record);
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
    let mut compared = 0;
    for (found, expected) in events.iter().zip(&baseline.events) {
        if found != expected {
            return Err(format!("found    {found:?}\nexpected {expected:?}").into());
        }
        for (name, value) in &found.fields.0 {
            let Some((_, printed)) = expected.fields.0.iter().find(|(other, _)| other == name)
            else {
                continue;
            };
            match agree(value, printed) {
                // TraceEvent looks for the process of an ImageID event where its size ends.
                _ if found.name == "KernelTraceControl/ImageID" && name == "processid" => {}
                // TraceEvent uses the upper byte of a SYSTEMTIME's milliseconds as the
                // milliseconds.
                _ if name == "system_time_type" => {}
                Some(false) => {
                    return Err(format!("{} {name} = {value}, not {printed}", found.name).into());
                }
                agreed => compared += usize::from(agreed.is_some()),
            }
        }
    }
    if compared < baseline.values {
        return Err(format!("only {compared} values could be compared").into());
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
    let mut reader = EtlReader::new(trace, Default::default())?;
    let mut found = Vec::new();
    while let Some(record) = reader.next_record()? {
        let (mut provider, mut schema) = (None, None);
        for item in record.extended_items() {
            match item {
                ExtendedItem::ProviderName(name) => provider = Some(name.to_text()),
                ExtendedItem::SchemaTl(found) => schema = Some(found),
                _ => {}
            }
        }
        let Some(schema) = schema else { continue };
        let schema = TraceLoggingSchema::parse(schema)?;
        found.push(format!("{}/{}", provider.unwrap_or_default(), schema.name));
        let names = schema.fields.into_iter().map(|f| f.name.to_string());
        found.extend(
            names
                .zip(self::fields(&record))
                .map(|(name, (_, value))| format!("{name} {value}")),
        );
    }
    let expected = ["MySource/TestEvent", "a {b=Hello, c=World!}"];
    if found != expected {
        return Err(format!("{found:?}, not {expected:?}").into());
    }
    Ok(())
}

/// Two files of one PerfView run: the rundown started some 14.5 s after the session.
fn merged(session: &[u8], rundown: &[u8]) -> Result<(), Failed> {
    let (one, two) = (records(session)?.0, records(rundown)?.0);
    let mut reader = EtlReader::merge(vec![
        EtlReader::new(session, Default::default())?,
        EtlReader::new(rundown, Default::default())?,
    ])?;
    let apart = reader.headers()[1].start_time - reader.headers()[0].start_time;
    let (mut times, mut second_start) = (Vec::new(), None);
    while let Some(record) = reader.next_record()? {
        if record.raw_time == two[0].0 {
            second_start = second_start.or(Some(record.time_ns));
        }
        times.push(record.raw_time);
    }
    if times.len() != one.len() + two.len() || !times.is_sorted() {
        return Err(format!("{} records of {} and {}", times.len(), one.len(), two.len()).into());
    }
    // Performance counter and system time agree to a millisecond on when the second file began.
    match second_start {
        Some(ns) if ns.abs_diff(apart * 100) < 1_000_000 => Ok(()),
        other => Err(format!(
            "the second file begins at {other:?} ns, not {} ns",
            apart * 100
        )
        .into()),
    }
}

/// Numbers that look random and are the same in every run.
fn random(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 20) as usize
}

/// Flips up to eight bits at a time, half of the time in sizes and headers of buffers and records.
fn flipped(mut trace: Vec<u8>) -> Result<(), Failed> {
    let edges = edges(&trace);
    let (whole, _) = records(&trace)?;
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..500 {
        let mut flips = Vec::new();
        for _ in 0..1 + random(&mut state) % 8 {
            let near = edges[random(&mut state) % (edges.len() - 1)] + random(&mut state) % 300;
            let at = if random(&mut state) & 1 == 0 {
                near
            } else {
                random(&mut state)
            };
            flips.push((at % trace.len(), 1 << (random(&mut state) % 8)));
        }
        flips.iter().for_each(|(at, bit)| trace[*at] ^= bit);
        // A file with an invalid header may be rejected, but must not return more than it contains.
        if let Ok((found, counted)) = records(&trace)
            && (found.len() as u64 != counted.records || found.len() > 2 * whole.len())
        {
            return Err(format!("{} records of {}: {counted:?}", found.len(), whole.len()).into());
        }
        flips.iter().for_each(|(at, bit)| trace[*at] ^= bit);
    }
    Ok(())
}

/// Returns the start of each buffer and the end of the file, from the sizes in the headers alone.
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

/// Returns the raw time and length of every record, and the diagnostics.
fn records(trace: &[u8]) -> Result<(Vec<(i64, usize)>, Diagnostics), Failed> {
    let mut reader = EtlReader::new(trace, Default::default())?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push((record.raw_time, record.bytes().len()));
    }
    Ok((records, reader.diagnostics().clone()))
}

/// A file cut at a buffer's edge has all earlier buffers; one cut inside a buffer also has the
/// complete records of that buffer.
fn truncations(trace: &[u8]) -> Result<(), Failed> {
    let edges = edges(trace);
    if edges.last() != Some(&trace.len()) {
        return Err("the file does not end with a buffer".into());
    }
    // Records of each buffer, read alone after the buffer with the log file header.
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
    // Everything before a cut is compared for ten cuts, the last few buffers for each cut.
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
    // A thousand cuts inside buffers; in the large file each is tested with the header and the
    // adjacent buffers.
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..1000 {
        let cut = edges[1] + random(&mut state) % (trace.len() - edges[1]);
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
        let gaps = counted.gaps.total();
        let damage = (gaps.count, counted.gaps.is_cut_short());
        let expected = (u64::from(in_last > 0), in_last > 0);
        if damage != expected && !trace[edges[last]..cut].iter().all(|byte| *byte == 0) {
            return Err(format!("cut at {cut}: counted {damage:?}, not {expected:?}").into());
        }
    }
    Ok(())
}

/// A complete file lacks no buffer; without one of its buffers, or with a cut at a buffer's edge,
/// it lacks what was removed.
fn without_a_buffer(trace: &[u8]) -> Result<(), Failed> {
    let edges = edges(trace);
    let (_, found) = records(trace)?;
    if found.lost_anything() || found.missing_buffers != 0 {
        return Err(format!("the complete file: {found:?}").into());
    }
    let last = edges.len() - 2;
    for removed in (1..=last).step_by(last.div_ceil(20)).chain([last]) {
        let (before, after) = (&trace[..edges[removed]], &trace[edges[removed + 1]..]);
        let (_, found) = records(&[before, after].concat())?;
        if found.missing_buffers != 1 || !found.lost_anything() {
            return Err(format!("without buffer {removed}: {found:?}").into());
        }
        let missing = (last + 1 - removed) as u64;
        let (_, found) = records(before)?;
        if found.missing_buffers != missing || found.is_damaged() {
            return Err(format!("cut before buffer {removed}: {found:?}").into());
        }
    }
    Ok(())
}

/// Returns the payload's fields, if a layout for them is known.
fn fields(record: &Record<'_>) -> Vec<(String, String)> {
    let key = match record.key {
        EventKey::Classic {
            class,
            opcode,
            version,
        } => chronosym_events::EventKey::Classic {
            class,
            opcode,
            version,
        },
        EventKey::Manifest {
            provider,
            id,
            version,
            ..
        } => chronosym_events::EventKey::Manifest {
            provider: Provider::from_guid(provider),
            id: id.into(),
            version: version.into(),
        },
        _ => return Vec::new(),
    };
    let mut schema = EventSchema::new(key);
    for item in record.extended_items() {
        if let ExtendedItem::SchemaTl(item) = item {
            schema = schema.with_fields(TraceLoggingSchema::parse(item).unwrap().fields);
        }
    }
    let event = RawEvent {
        time_ns: record.time_ns,
        process_id: record.process_id,
        thread_id: record.thread_id.map(u64::from),
        processor: Some(record.cpu.into()),
        pointer_size: record.pointer_size,
        schema: &schema,
        payload: record.payload,
    };
    let fields = event
        .fields()
        .unwrap_or_else(|error| panic!("{:?}: {error}", record.key));
    let fields = fields.into_iter().flatten();
    fields
        .map(|(name, value)| (printed_name(&name).to_lowercase(), value.to_string()))
        .collect()
}

/// Returns the name that a baseline gives a field if it differs from the published one.
fn printed_name(name: &str) -> &str {
    match name {
        "SessionNameString" => "SessionName",
        "LogFileNameString" => "LogFileName",
        "DirectoryTableBase" => "PageDirectoryBase",
        // For a service TraceEvent prints the process that had the id, not the name in the payload.
        "ProcessName" => "name in the payload",
        name => name,
    }
}

/// Returns whether a value equals the one that a baseline printed: numbers with separators, in hex,
/// or as a negative i32; text truncated after twenty characters; DOS paths. `None` if the baseline
/// prints a name or a date for a number.
fn agree(value: &str, printed: &str) -> Option<bool> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => {
            let digits = text.replace(',', "");
            digits
                .parse()
                .ok()
                .or_else(|| digits.parse::<i64>().ok().map(|n| n as u64))
        }
    };
    match (number(value), number(printed)) {
        (Some(value), Some(printed)) => {
            Some(value == printed || (printed as i64) < 0 && value == u64::from(printed as u32))
        }
        (Some(_), None) if !printed.is_empty() => None,
        // A character, which TraceEvent shows by its number.
        (None, Some(printed)) if value.chars().count() == 1 => {
            Some(value.chars().all(|c| u64::from(c) == printed))
        }
        _ => Some(
            [value.to_owned(), dos_path(value), short_date(value)]
                .iter()
                .any(|value| match printed.strip_suffix("...") {
                    Some(start) => value.starts_with(start),
                    None => value.eq_ignore_ascii_case(printed),
                }),
        ),
    }
}

/// `2021-09-09T14:59:35.799Z` as `21/09/09 14:59:35.799`.
fn short_date(value: &str) -> String {
    value
        .chars()
        .skip(2)
        .map(|c| {
            if c == '-' {
                '/'
            } else if c == 'T' {
                ' '
            } else {
                c
            }
        })
        .collect()
}

/// The path as the recorded machine's user knew it, by the VolumeMapping events of `net.4.5.2.x64`.
fn dos_path(path: &str) -> String {
    let mapped = [
        (r"\SystemRoot\", r"C:\Windows\"),
        (r"\Device\HarddiskVolume2\", r"C:\"),
        (r"\Windows\", r"C:\Windows\"),
        (r"\Device\Mup\", r"\\"),
    ];
    let found = mapped
        .iter()
        .find_map(|(nt, dos)| Some(format!("{dos}{}", path.strip_prefix(nt)?)));
    found.unwrap_or_else(|| path.into())
}
