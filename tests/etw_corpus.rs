//! The engine over real ETW traces: compares with counts made by hand, and with the effects of the
//! rules.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use chronosym::source::EventStream;
use chronosym::source::etl::{EtlStream, read};
use chronosym::{Diagnostics, Evidence, Filter, Options, Position, Resolver, Session, Timeline};
use chronosym_conformance::{CORPUS, case, unzip};
use chronosym_etl::Reader as EtlReader;
use chronosym_events::Provider;
use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let net = |name: &str, check: fn(&[u8]) -> Result<(), Failed>| {
        case(CORPUS, name, move |corpus| {
            check(&unzip(&corpus.join("net.4.5.2.x64.etl.zip"), ".etl")?)
        })
    };
    let mut cases: Vec<Trial> = vec![
        net("samples_and_stacks_are_those_that_perfview_has", samples),
        net("frames_by_kind_without_time_and_with_it", kinds),
        net("every_il_map_belongs_to_a_body", il_maps),
        net("methods_of_the_rundown_answer_long_before_it", rundown),
        net("images_have_identities_and_paths", images),
        net("cut_at_buffers_it_gives_the_stacks_it_has", truncations),
        net("descriptions_in_the_trace_name_events", described),
    ];
    for name in ["gcevents", "gcrundownevents", "primitive-types"] {
        cases.push(case(
            CORPUS,
            format!("{name}_cut_anywhere_is_read_as_far_as_it_goes"),
            move |corpus| {
                small_truncations(&unzip(&corpus.join(format!("{name}.etl.zip")), ".etl")?)
            },
        ));
    }
    cases.push(case(CORPUS, "flipped_bits_never_panic", |corpus| {
        for name in ["gcevents", "gcrundownevents", "primitive-types"] {
            flipped(unzip(&corpus.join(format!("{name}.etl.zip")), ".etl")?);
        }
        Ok(())
    }));
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// The program that the trace is about.
const TEST_PID: u32 = 3676;

fn load(trace: &[u8]) -> Result<(Arc<Timeline>, Diagnostics), Failed> {
    let mut session = Session::new(Options::default());
    let diagnostics = read(EtlReader::new(trace, Default::default())?, &mut session)?;
    Ok((session.finish(), diagnostics))
}

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what}: {found:?}, not {expected:?}").into())
    }
}

fn samples(trace: &[u8]) -> Result<(), Failed> {
    let (timeline, diagnostics) = load(trace)?;
    let profile = timeline
        .event_types()
        .iter()
        .find(|t| t.schema.name() == "PerfInfo/Sample")
        .ok_or("no samples")?;
    equal("samples", profile.count, 79_528)?;
    equal("samples with a stack", profile.stacks, 6_318)?;
    equal("kept samples", timeline.samples().len(), 79_528)?;
    let mut busy = 0;
    timeline.for_each_sample(&Filter::default(), |_, _| busy += 1);
    equal("samples without idle ones", busy, 6_320)?;
    let stack_keys = diagnostics
        .list
        .iter()
        .find(|it| it.text.contains("stack keys"));
    equal("undefined keys", stack_keys, None)?;
    let mut of_pid = Filter::default();
    of_pid.pid = Some((TEST_PID, None));
    let mut of_test = 0;
    timeline.for_each_sample(&of_pid, |_, _| of_test += 1);
    equal("samples of the program", of_test, 5_129)
}

/// The kind of an address according to the tables alone, at any time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Jit,
    Image,
    Kernel,
    Unknown,
}

fn kinds(trace: &[u8]) -> Result<(), Failed> {
    let (timeline, _) = load(trace)?;
    let process = timeline.find_process(TEST_PID, None).ok_or("no program")?;
    let bodies: Vec<_> = timeline
        .bodies(process)
        .filter(|b| b.evidence.contains(Evidence::Load))
        .collect();
    let images: Vec<_> = timeline
        .images(process)
        .map(|i| (i.image.base, i.image.size))
        .collect();
    let holds = |start: u64, size: u64, address: u64| address.wrapping_sub(start) < size;
    let naive = |address: u64| {
        if bodies.iter().any(|b| holds(b.start, b.size, address)) {
            Kind::Jit
        } else if address >= 0xffff_0000_0000_0000 {
            Kind::Kernel
        } else if images
            .iter()
            .any(|&(base, size)| holds(base, size, address))
        {
            Kind::Image
        } else {
            Kind::Unknown
        }
    };
    let mut memo: BTreeMap<u64, Kind> = BTreeMap::new();
    let mut by_tables: BTreeMap<Kind, u64> = BTreeMap::new();
    let mut by_engine: BTreeMap<Kind, u64> = BTreeMap::new();
    let mut changes: BTreeMap<(Kind, Kind), u64> = BTreeMap::new();
    let mut leaves: BTreeMap<String, u64> = BTreeMap::new();
    let mut filter = Filter::default();
    filter.pid = Some((TEST_PID, None));
    timeline.for_each_sample(&filter, |class, time| {
        for (depth, address) in timeline.stacks().addresses(class.stack).enumerate() {
            let kind = *memo.entry(address).or_insert_with(|| naive(address));
            *by_tables.entry(kind).or_default() += 1;
            let position = if depth == 0 {
                Position::Exact
            } else {
                Position::Return
            };
            let frames = timeline.frames(process, address, time, position, None);
            let single = &frames[0];
            let found = match single.evidence {
                Some(Evidence::Load) => Kind::Jit,
                Some(_) if address >= 0xffff_0000_0000_0000 => Kind::Kernel,
                Some(_) => Kind::Image,
                None => Kind::Unknown,
            };
            *by_engine.entry(found).or_default() += 1;
            if found != kind {
                *changes.entry((kind, found)).or_default() += 1;
            }
            if depth == 0 && kind == Kind::Jit {
                let body = bodies.iter().find(|b| holds(b.start, b.size, address));
                let name = body.and_then(|b| b.name.clone()).unwrap_or_default();
                *leaves.entry(name).or_default() += 1;
            }
        }
    });
    let counted = |of: &BTreeMap<Kind, u64>| {
        [Kind::Jit, Kind::Image, Kind::Kernel, Kind::Unknown]
            .map(|kind| of.get(&kind).copied().unwrap_or(0))
    };
    equal(
        "frames by the tables alone",
        counted(&by_tables),
        [25_447, 69_609, 813, 89],
    )?;
    let top = leaves.into_iter().max_by_key(|(_, count)| *count);
    equal(
        "the method in which most samples are",
        top,
        Some(("System.DateTime.GetDatePart".to_owned(), 1_856)),
    )?;
    // Time: one frame is in a range where mscorlib was mapped briefly, 200 ms before. Rule 10: a
    // kernel address resolves to an image of the kernel, and 18 are in none. Return addresses and
    // the lifetimes of bodies change no kind: no call is the last instruction before another body,
    // and no body's range was used again in this run.
    equal(
        "frames by the engine",
        counted(&by_engine),
        [25_447, 69_608, 813, 90],
    )?;
    equal(
        "what differs",
        changes,
        BTreeMap::from([((Kind::Image, Kind::Unknown), 1)]),
    )
}

fn il_maps(trace: &[u8]) -> Result<(), Failed> {
    let (timeline, _) = load(trace)?;
    equal("maps without a body", timeline.unbound_il_maps(), 0)?;
    let with_map: usize = timeline
        .processes()
        .map(|p| {
            timeline
                .bodies(p.index)
                .filter(|b| b.il_map_entries.is_some())
                .count()
        })
        .sum();
    // 273 live maps and 16,221 of the rundown; two bodies have both.
    equal("bodies with a map", with_map, 16_492)
}

fn rundown(trace: &[u8]) -> Result<(), Failed> {
    let (timeline, _) = load(trace)?;
    let mut listed: BTreeMap<u32, u64> = BTreeMap::new();
    for process in timeline.processes() {
        for body in timeline.bodies(process.index) {
            if body.evidence.iter().eq([Evidence::DCEnd]) {
                *listed.entry(process.pid.unwrap_or(u32::MAX)).or_default() += 1;
            }
        }
    }
    if listed.is_empty() {
        return Err("no method is known from the rundown alone".into());
    }
    let mut resolver = Resolver::new(&timeline, None);
    let (mut frames, mut earliest) = (0, u64::MAX);
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let (stack, _) = resolver.resolve(class, time).expect("a stack");
        for frame in resolver.stack(stack) {
            if resolver.frame(frame).evidence == Some(Evidence::DCEnd) {
                frames += 1;
                earliest = earliest.min(time);
            }
        }
    });
    let first = rundown_begins(trace)?;
    // Seconds before the rundown.
    if frames < 1_000 || earliest + 5_000_000_000 > first {
        return Err(format!(
            "{frames} frames, the first at {earliest} ns, the rundown at {first} ns"
        )
        .into());
    }
    Ok(())
}

fn rundown_begins(trace: &[u8]) -> Result<u64, Failed> {
    let mut stream = EtlStream::new(trace, Default::default())?;
    while let Some(event) = stream.next_event()? {
        if matches!(
            event.schema.key(),
            chronosym_events::EventKey::Manifest {
                provider: Provider::Rundown,
                id: 144,
                ..
            }
        ) {
            return Ok(event.event.time_ns);
        }
    }
    Err("no rundown".into())
}

fn images(trace: &[u8]) -> Result<(), Failed> {
    let (timeline, _) = load(trace)?;
    let (mut all, mut with_pdb, mut with_stamp, mut nt) = (0, 0, 0, Vec::new());
    for process in timeline.processes() {
        for image in timeline.images(process.index).map(|view| view.image) {
            all += 1;
            with_pdb += u32::from(image.pdb.is_some());
            with_stamp += u32::from(image.timestamp.is_some());
            nt.extend(
                Some(image.path)
                    .filter(|p| p.starts_with(r"\Device") || p.starts_with(r"\SystemRoot"))
                    .map(str::to_owned),
            );
        }
    }
    nt.sort();
    nt.dedup();
    // The last one is the hypercall page.
    equal("images", all, 1_799)?;
    equal("images with the identity of a PDB", with_pdb, 1_767)?;
    // Two thirds of the image events themselves have none.
    equal("images with a time stamp", with_stamp, 1_798)?;
    equal("paths that no program knows", nt, Vec::new())
}

/// Returns the start of each buffer and the end of the file.
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

fn truncations(trace: &[u8]) -> Result<(), Failed> {
    let edges = edges(trace);
    let mut last = 0;
    for edge in edges.iter().skip(1).step_by(edges.len().div_ceil(12)) {
        let cut = &trace[..*edge];
        let (timeline, diagnostics) = load(cut)?;
        if diagnostics.is_damaged() {
            return Err(format!("cut at the edge {edge} it is damaged").into());
        }
        let sampled = timeline
            .event_types()
            .iter()
            .find(|t| t.schema.name() == "PerfInfo/Sample")
            .map_or(0, |t| t.count);
        equal("kept samples", timeline.samples().len(), sampled)?;
        if sampled < last {
            return Err(format!("cut at {edge}: fewer samples than before").into());
        }
        last = sampled;
        timeline.profile(&Filter::default(), None);
    }
    Ok(())
}

fn small_truncations(trace: &[u8]) -> Result<(), Failed> {
    let start = edges(trace)[1];
    let mut types = 0;
    for cut in (start..=trace.len()).step_by(trace.len().div_ceil(200)) {
        let (timeline, _) = load(&trace[..cut])?;
        if timeline.event_types().len() < types {
            return Err(format!("cut at {cut}: fewer events than before").into());
        }
        types = timeline.event_types().len();
    }
    Ok(())
}

/// Reads a trace with one more bit flipped each time, as long as it can be opened.
fn flipped(mut trace: Vec<u8>) {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..300 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let at = (state >> 33) as usize % trace.len();
        trace[at] ^= 1 << (state >> 29 & 7);
        if let Ok(reader) = EtlReader::new(trace.as_slice(), Default::default()) {
            let mut session = Session::new(Options::default());
            read(reader, &mut session).expect("the first");
            session.finish().profile(&Filter::default(), None);
        }
    }
}

/// Merging adds descriptions of manifest events; published layouts need none.
fn described(trace: &[u8]) -> Result<(), Failed> {
    let mut stream = EtlStream::new(trace, Default::default())?;
    let mut decoded: BTreeMap<String, u64> = BTreeMap::new();
    while let Some(event) = stream.next_event()? {
        let schema = event.schema;
        if schema.is_typed() || schema.fields().is_none() {
            continue;
        }
        let Some(fields) = event.event.fields()? else {
            return Err(format!("{} has a schema and no fields", schema.name()).into());
        };
        if fields.iter().next().is_none() && !event.event.payload.is_empty() {
            return Err(format!("{}: nothing of its payload decodes", schema.name()).into());
        }
        *decoded
            .entry(schema.provider_name().to_string())
            .or_default() += 1;
    }
    // By merging, and by the manifests of the EventSources.
    for provider in ["PerfView", "Microsoft-Windows-DotNETRuntime"] {
        if !decoded.contains_key(provider) {
            return Err(format!("no event of {provider} is described: {decoded:?}").into());
        }
    }
    let diagnostics = stream.diagnostics();
    let mut list = diagnostics.list.iter();
    if let Some(it) = list.find(|it| it.text.contains("descriptions of event types")) {
        return Err(format!("unreadable descriptions: {it}").into());
    }
    equal("described events", decoded.values().sum(), 26_168)
}
