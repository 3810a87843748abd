//! LTTng traces and texts of perf as timelines, alone and joined, from synthetic recordings.

use std::io::{Cursor, Write};
use std::sync::Arc;

use chronosym::facts::{At, Sample};
use chronosym::{
    Certainty, ClockMatch, Diagnostics, Evidence, Filter, Frame, Input, OpenError, Opener, Options,
    Position, Session, Timeline, Weight,
};
use chronosym_support::ctf::{CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};
use chronosym_support::payload::{self, Method};
use chronosym_support::perf::{PerfAttr, PerfWriter};

const SECOND: u64 = 1_000_000_000;
const PID: u32 = 4242;
const JIT: u64 = 0x7f00_0000_0000;

const OWNER: &[(&str, CtfType)] = &[
    ("vpid", CtfType::Signed(32)),
    ("vtid", CtfType::Signed(32)),
    ("procname", CtfType::Chars(17)),
];
/// The fields of a tracepoint whose payload is in ETW's form.
const PACKED: &[(&str, CtfType)] = &[
    ("length", CtfType::Unsigned(32)),
    ("__data__", CtfType::Bytes),
];

type Read = Result<(Arc<Timeline>, Diagnostics), OpenError>;

fn open_all(files: &[(&str, &[u8])]) -> Read {
    let inputs = files
        .iter()
        .map(|(name, bytes)| Input::stream(*name, Cursor::new(bytes.to_vec())));
    Opener::new().open(inputs)?.timeline(Options::default())
}

fn open(files: &[(&str, &[u8])]) -> Arc<Timeline> {
    let (timeline, diagnostics) = open_all(files).expect("it can be read");
    assert!(diagnostics.list.is_empty(), "{:?}", diagnostics.list);
    timeline
}

fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(*name, options).expect("an entry");
        zip.write_all(bytes).expect("memory");
    }
    zip.finish().expect("memory").into_inner()
}

/// A trace of a runtime: methods that are loaded and unloaded, each in a packed tracepoint.
struct Runtime {
    trace: CtfTrace,
    load: u32,
    unload: u32,
    events: Vec<(u64, u32, Vec<u8>)>,
}

impl Runtime {
    fn new() -> Self {
        let mut trace = CtfTrace::new(CtfLayout::default(), OWNER);
        let load = trace.event("DotNETRuntime:MethodLoadVerbose_V2", PACKED);
        let unload = trace.event("DotNETRuntime:MethodUnloadVerbose_V1", PACKED);
        Runtime {
            trace,
            load,
            unload,
            events: Vec::new(),
        }
    }

    fn body(mut self, name: &str, start: u64, from: u64, to: Option<u64>) -> Self {
        let method = Method {
            id: self.events.len() as u64 + 1,
            start,
            size: 0x100,
            flags: 8,
            names: Some(("N.T", name, "void ()")),
            ..Method::default()
        };
        self.events.push((from, self.load, method.encode(2)));
        let end = to.map(|to| (to, self.unload, method.encode(1)));
        self.events.extend(end);
        self.events.sort();
        self
    }

    fn events(&self) -> Vec<CtfEvent<'_>> {
        let events = self.events.iter().map(|(time, id, payload)| CtfEvent {
            time: *time,
            id: *id,
            context: owner(PID, 7, "worker"),
            fields: vec![
                CtfValue::Number(payload.len() as u64),
                CtfValue::Bytes(payload),
            ],
        });
        events.collect()
    }

    fn stream(&self) -> Vec<u8> {
        self.trace.packet(0, 0, 0, &self.events())
    }

    fn open(&self) -> Arc<Timeline> {
        open(&[
            ("metadata", &self.trace.metadata()),
            ("channel0_0", &self.stream()),
        ])
    }
}

fn owner(pid: u32, tid: u32, name: &str) -> Vec<CtfValue<'_>> {
    vec![
        CtfValue::Number(pid.into()),
        CtfValue::Number(tid.into()),
        CtfValue::Text(name),
    ]
}

fn frame(timeline: &Timeline, pid: u32, address: u64, time: u64) -> Frame {
    let process = timeline.process_of(pid, time).expect("the process");
    let mut frames = timeline.frames(process, address, time, Position::Exact, None);
    assert_eq!(frames.len(), 1);
    frames.remove(0)
}

fn name(timeline: &Timeline, address: u64, time: u64) -> Option<String> {
    frame(timeline, PID, address, time)
        .name()
        .ok()
        .map(str::to_owned)
}

/// All samples: thread, weight, and the names of their frames with their modules.
fn stacks(timeline: &Arc<Timeline>) -> Vec<(u64, Weight, Vec<String>)> {
    let mut found = Vec::new();
    timeline.for_each_weighed_sample(&Filter::default(), |sample| {
        let (class, time, weight) = (sample.class, sample.time_ns, sample.weight);
        let thread = timeline.thread_view(class.thread).expect("it has one");
        let mut position = class.kind.leaf_position();
        let frames = timeline.stacks().addresses(class.stack).map(|address| {
            let frames = timeline.frames(thread.process, address, time, position, None);
            position = Position::Return;
            let frame = frames.last().expect("never none");
            format!(
                "{}!{}",
                frame.module().unwrap_or("?"),
                frame.name().unwrap_or("?")
            )
        });
        found.push((thread.tid, weight, frames.collect()));
    });
    found
}

#[test]
fn packed_tracepoints_are_the_runtimes_events() {
    let runtime = Runtime::new()
        .body("First", JIT, SECOND, Some(SECOND + 500))
        .body("Second", JIT, SECOND + 1_000, None);
    let timeline = runtime.open();
    let facts = timeline.facts();
    assert_eq!(
        (&*facts.format, &*facts.version, facts.pointer_size),
        ("ctf", "1.8", Some(8))
    );
    assert_eq!(facts.machine.as_deref(), Some("Linux 6.1.0-test"));
    assert_eq!(
        facts.start_unix_ns,
        Some(1_584_479_919_502_699_645 + i128::from(SECOND))
    );
    assert_eq!(name(&timeline, JIT + 4, 100).as_deref(), Some("N.T.First"));
    assert_eq!(name(&timeline, JIT + 4, 700), None);
    let second = frame(&timeline, PID, JIT + 4, 1_200);
    assert_eq!(second.name(), Ok("N.T.Second"));
    assert_eq!(
        (second.evidence, second.certainty),
        (Some(Evidence::Load), Some(Certainty::Exact))
    );
    // Only the name of its thread identifies the process.
    let process = timeline.process_of(PID, 0).expect("it is there");
    assert_eq!(
        timeline.process_view(process).and_then(|it| it.name),
        Some("worker")
    );
}

#[test]
fn tracepoints_with_fields_are_the_runtimes_events() {
    let layout = CtfLayout {
        is_aligned: true,
        ..CtfLayout::default()
    };
    let mut trace = CtfTrace::new(layout, OWNER);
    let method = [
        ("MethodID", CtfType::Unsigned(64)),
        ("ModuleID", CtfType::Unsigned(64)),
        ("MethodStartAddress", CtfType::Unsigned(64)),
        ("MethodSize", CtfType::Unsigned(32)),
        ("MethodToken", CtfType::Unsigned(32)),
        ("MethodFlags", CtfType::Unsigned(32)),
        ("MethodNamespace", CtfType::Text),
        ("MethodName", CtfType::Text),
        ("MethodSignature", CtfType::Text),
    ];
    let body = |id: u64, start: u64, name| {
        let numbers = [id, 0, start, 0x100, 0, 8].map(CtfValue::Number);
        [
            &numbers[..],
            &[
                CtfValue::Text("N.T"),
                CtfValue::Text(name),
                CtfValue::Text("void ()"),
            ],
        ]
        .concat()
    };
    let load = trace.event("DotNETRuntime:MethodLoadVerbose", &method);
    let listed = trace.event("DotNETRuntimeRundown:MethodDCEndVerbose", &method);
    let entry = trace.event(
        "DotNETRuntime:R2RGetEntryPoint",
        &[
            ("MethodID", CtfType::Unsigned(64)),
            ("MethodNamespace", CtfType::Text),
            ("MethodName", CtfType::Text),
            ("MethodSignature", CtfType::Text),
            ("EntryPoint", CtfType::Unsigned(64)),
            ("ClrInstanceID", CtfType::Unsigned(16)),
        ],
    );
    let map = trace.event(
        "DotNETRuntime:MethodILToNativeMap",
        &[
            ("MethodID", CtfType::Unsigned(64)),
            ("ReJITID", CtfType::Unsigned(64)),
            ("MethodExtent", CtfType::Unsigned(8)),
            ("CountOfMapEntries", CtfType::Unsigned(16)),
            ("ILOffsets", CtfType::Words),
            ("NativeOffsets", CtfType::Words),
            ("ClrInstanceID", CtfType::Unsigned(16)),
        ],
    );
    let numbers = |numbers: &[u64]| {
        numbers
            .iter()
            .map(|&it| CtfValue::Number(it))
            .collect::<Vec<_>>()
    };
    let texts = ["N.T", "Ready", "void ()"].map(CtfValue::Text);
    let fields = [
        (load, body(1, JIT, "Größe")),
        (
            map,
            [
                numbers(&[1, 0, 0, 2]),
                vec![CtfValue::Words(&[0, 5]), CtfValue::Words(&[0, 0x40])],
                numbers(&[0]),
            ]
            .concat(),
        ),
        (
            entry,
            [numbers(&[3]), texts.to_vec(), numbers(&[JIT + 0x8000, 0])].concat(),
        ),
        (listed, body(2, JIT + 0x1000, "Listed")),
    ];
    let events = fields
        .into_iter()
        .enumerate()
        .map(|(at, (id, fields))| CtfEvent {
            time: SECOND + at as u64 * 100,
            id,
            context: owner(PID, PID, "app"),
            fields,
        });
    let stream = trace.packet(0, 0, 0, &events.collect::<Vec<_>>());
    let timeline = open(&[("metadata", &trace.metadata()), ("channel0_0", &stream)]);
    let first = frame(&timeline, PID, JIT + 0x48, 200);
    assert_eq!(
        (first.name(), first.il_offset.map(|il| il.offset)),
        (Ok("N.T.Größe"), Some(5))
    );
    assert_eq!(
        name(&timeline, JIT + 0x1004, 50).as_deref(),
        Some("N.T.Listed")
    );
    assert_eq!(
        frame(&timeline, PID, JIT + 0x1004, 50).certainty,
        Some(Certainty::Inferred)
    );
    assert_eq!(
        name(&timeline, JIT + 0x8004, 250).as_deref(),
        Some("N.T.Ready")
    );
    let counts: Vec<_> = timeline
        .event_types()
        .iter()
        .map(|t| (t.schema.id(), t.schema.version(), t.count))
        .collect();
    assert_eq!(
        counts,
        [
            (Some(143), 0, 1),
            (Some(190), 0, 1),
            (Some(159), 0, 1),
            (Some(144), 0, 1)
        ]
    );
}

/// A kernel trace: tasks start, run programs, and end.
#[test]
fn kernel_traces_report_processes() {
    let layout = CtfLayout {
        is_kernel: true,
        uuid: *b"kernelkernelkern",
        ..CtfLayout::default()
    };
    let context = [
        ("pid", CtfType::Signed(32)),
        ("procname", CtfType::Chars(16)),
    ];
    let mut trace = CtfTrace::new(layout, &context);
    let id = CtfType::Signed(32);
    let state = trace.event(
        "lttng_statedump_process_state",
        &[("tid", id), ("pid", id), ("name", CtfType::Chars(16))],
    );
    let fork = trace.event(
        "sched_process_fork",
        &[
            ("child_comm", CtfType::Chars(16)),
            ("child_tid", id),
            ("child_pid", id),
        ],
    );
    let exec = trace.event(
        "sched_process_exec",
        &[("filename", CtfType::Text), ("tid", id), ("old_tid", id)],
    );
    let exit = trace.event(
        "sched_process_exit",
        &[("comm", CtfType::Chars(16)), ("tid", id), ("prio", id)],
    );
    let switch = trace.event(
        "sched_switch",
        &[("prev_comm", CtfType::Chars(16)), ("prev_tid", id)],
    );
    let event = |time: u64, id, pid: u32, fields| CtfEvent {
        time: SECOND + time,
        id,
        context: vec![CtfValue::Number(pid.into()), CtfValue::Text("x")],
        fields,
    };
    let number = |id: u32| CtfValue::Number(id.into());
    let events = [
        event(
            0,
            state,
            1,
            vec![number(50), number(50), CtfValue::Text("shell")],
        ),
        event(
            100,
            fork,
            50,
            vec![CtfValue::Text("shell"), number(PID), number(PID)],
        ),
        event(
            200,
            exec,
            PID,
            vec![CtfValue::Text("/usr/bin/dotnet"), number(PID), number(PID)],
        ),
        event(
            300,
            fork,
            PID,
            vec![CtfValue::Text("worker"), number(7), number(PID)],
        ),
        event(350, switch, PID, vec![CtfValue::Text("renamed"), number(7)]),
        event(
            400,
            exit,
            PID,
            vec![CtfValue::Text("dotnet"), number(PID), number(0)],
        ),
        event(
            500,
            exit,
            PID,
            vec![CtfValue::Text("worker"), number(7), number(0)],
        ),
        event(
            600,
            fork,
            50,
            vec![CtfValue::Text("shell"), number(PID), number(PID)],
        ),
    ];
    let stream = trace.packet(0, 0, 0, &events);
    let metadata = trace.metadata();
    let kernel: [(&'static str, &[u8]); 2] = [
        ("kernel/metadata", &metadata),
        ("kernel/channel0_0", &stream),
    ];
    let timeline = open(&kernel);
    let lives = timeline.processes().filter(|it| it.pid == Some(PID));
    let lives: Vec<_> = lives
        .map(|it| (it.name.map(str::to_owned), it.start_ns, it.end_ns))
        .collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(
        lives,
        [
            (named("dotnet"), Some(100), Some(500)),
            (named("shell"), Some(600), None)
        ]
    );
    let process = timeline.process_of(50, 0).expect("it was there");
    assert_eq!(
        timeline.process_view(process).and_then(|it| it.name),
        Some("shell")
    );

    // A thread has the name that it had when it was last switched out.
    let inputs = kernel.map(|(name, bytes)| Input::stream(name, Cursor::new(bytes.to_vec())));
    let mut session = Session::new(Options::default());
    let recording = Opener::new().open(inputs).expect("it can be opened");
    recording.read(&mut session).expect("it can be read");
    session.sample(At::new(360).process(PID).thread(7), &[JIT], Sample::cpu());
    let mut names = Vec::new();
    let timeline = session.finish();
    timeline.for_each_sample(&Filter::default(), |class, _| {
        let thread = timeline.thread_view(class.thread).expect("it has one");
        names.extend(thread.name.map(str::to_owned));
    });
    assert_eq!(names, ["renamed"]);

    // With the user-space events of the process's runtime: its code ends with the process.
    let runtime = Runtime::new().body("Run", JIT, SECOND + 350, None);
    let (of_user, user) = (runtime.trace.metadata(), runtime.stream());
    let both = [
        &kernel[..],
        &[("ust/metadata", &*of_user), ("ust/channel0_0", &*user)],
    ]
    .concat();
    let timeline = open(&both);
    assert_eq!(timeline.facts().format, "ctf");
    assert_eq!(name(&timeline, JIT + 4, 450).as_deref(), Some("N.T.Run"));
    assert_eq!(name(&timeline, JIT + 4, 550), None);
    assert_eq!(name(&timeline, JIT + 4, 650), None);
}

#[test]
fn losses_reduce_the_certainty_of_answers() {
    let runtime = Runtime::new().body("First", JIT, SECOND, None).body(
        "Second",
        JIT + 0x1000,
        SECOND + 2_000,
        None,
    );
    let events = runtime.events();
    let packets = [
        runtime.trace.packet(0, 0, 0, &events[..1]),
        runtime.trace.packet(1, 30, 0, &events[1..]),
    ];
    let files: [(&str, &[u8]); 2] = [
        ("metadata", &runtime.trace.metadata()),
        ("channel0_0", &packets.concat()),
    ];
    let (timeline, diagnostics) = open_all(&files).expect("it can be read");
    assert_eq!(diagnostics.lost_events(), 30);
    let certainty = |time| frame(&timeline, PID, JIT + 4, time).certainty;
    assert_eq!(certainty(2_100), Some(Certainty::Inferred));
    assert_eq!(
        frame(&timeline, PID, JIT + 0x1004, 2_100).certainty,
        Some(Certainty::Exact)
    );
}

#[test]
fn samples_of_perf_and_code_of_lttng_are_one_timeline() {
    let mut perf = PerfWriter::new(PerfAttr::default());
    perf.comm(SECOND, PID, PID, "app");
    perf.sample(SECOND + 150, PID, PID, &[JIT + 4]);
    perf.sample(SECOND + 850, PID, PID, &[JIT + 4]);
    let runtime = Runtime::new()
        .body("First", JIT, SECOND + 100, Some(SECOND + 500))
        .body("Second", JIT, SECOND + 800, None);
    let (metadata, stream) = (runtime.trace.metadata(), runtime.stream());
    let timeline = open(&[
        ("perf.data", &perf.file()),
        ("metadata", &metadata),
        ("channel0_0", &stream),
    ]);
    let facts = timeline.facts();
    let clocks: Vec<_> = facts
        .recordings
        .iter()
        .map(|it| (it.clock, it.error_ns))
        .collect();
    assert_eq!(clocks, [(ClockMatch::Same, 0); 2]);
    let names: Vec<_> = stacks(&timeline)
        .into_iter()
        .map(|(_, _, frames)| frames)
        .collect();
    assert_eq!(names, [["?!N.T.First"], ["?!N.T.Second"]]);
    // With perf's own clock the offset is unknown.
    let attr = PerfAttr {
        flags: 1 << 18,
        ..PerfAttr::default()
    };
    let mut perf = PerfWriter::new(attr);
    perf.comm(SECOND, PID, PID, "app");
    perf.sample(SECOND + 150, PID, PID, &[JIT + 4]);
    let timeline = open(&[
        ("perf.data", &perf.file()),
        ("metadata", &metadata),
        ("channel0_0", &stream),
    ]);
    assert_eq!(timeline.facts().recordings[1].clock, ClockMatch::Assumed);
    assert_eq!(
        frame(&timeline, PID, JIT + 4, 150).certainty,
        Some(Certainty::Inferred)
    );
}

const TEXT: &str = "app  4242/4242 [000]     1.000050:    1000000 cpu-clock: \n\
    \t          13608 helper+0x8 (/lib/libone.so)\n\
    \t    7f0000000010 void [M] Old::Name()[Optimized]+0x10 (/tmp/perf-4242.map)\n\
    \t          13700 inner (inlined)\n\
    \t          13700 outer+0x100 (/lib/libone.so)\n\
    \t           2004 [unknown] (/lib/two.ni.dll)\n\
    \n\
    app  4242/7 [001]     1.000900:    1000000 cpu-clock: \n\
    \tffffffff81000010 do_work+0x10 ([kernel.kallsyms])\n\
    \t    7f0000000010 void [M] Old::Name()[Optimized]+0x10 (/tmp/perf-4242.map)\n\
    \t              10 [unknown] ([unknown])\n\
    \n";

#[test]
fn a_text_of_perf_has_samples_and_names() {
    let timeline = open(&[("perf.data.txt", TEXT.as_bytes())]);
    assert_eq!(timeline.facts().format, "perf script");
    assert_eq!(timeline.facts().sample_interval_ns, Some(1_000_000));
    let ms = Weight::Ns(1_000_000);
    let own = |frames: &[&str]| frames.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        stacks(&timeline),
        [
            (
                4242,
                ms,
                own(&[
                    "libone!helper",
                    "M!Old.Name",
                    "libone!inner",
                    "libone!outer",
                    "two!?"
                ])
            ),
            (7, ms, own(&["[kernel.kallsyms]!do_work", "M!Old.Name"])),
        ]
    );
    let process = timeline.process_of(PID, 0).expect("it is there");
    assert_eq!(
        timeline.process_view(process).and_then(|it| it.name),
        Some("app")
    );
    // The file offset of a frame without a name.
    let frames = timeline.samples().len();
    assert_eq!(frames, 2);
}

#[test]
fn threads_of_a_text_belong_to_the_processes_of_its_perf_data() {
    let mut perf = PerfWriter::new(PerfAttr::default());
    perf.comm(SECOND, PID, PID, "app");
    perf.fork(SECOND + 1, PID, PID, 7);
    perf.mmap2(SECOND, PID, ONE, 0x8000, 0x1_0000, "/lib/libone.so");
    perf.sample(SECOND + 50_000, PID, 7, &[ONE + 0x3608]);
    let text = "app     7     1.000050:    1000000 cpu-clock: \n\
        \t          13608 helper+0x8 (/lib/libone.so)\n\n";
    let files: [(&str, &[u8]); 2] = [
        ("perf.data", &perf.file()),
        ("perf.data.txt", text.as_bytes()),
    ];
    let (timeline, diagnostics) = open_all(&files).expect("it can be read");
    let stacks = stacks(&timeline);
    assert_eq!(stacks[0].2, ["libone!helper"]);
    assert!(diagnostics.list.is_empty(), "{:?}", diagnostics.list);
    assert!(timeline.find_process(7, None).is_none());
}

/// The base of files in the perf.data of a bundle.
const ONE: u64 = 0x55_0000_0000;
const TWO: u64 = 0x56_0000_0000;

#[test]
fn a_bundle_of_perfcollect_is_one_recording() {
    let runtime = Runtime::new()
        .body("First", JIT, SECOND + 10_000, Some(SECOND + 500_000))
        .body("Second", JIT, SECOND + 800_000, None);
    let (metadata, stream) = (runtime.trace.metadata(), runtime.stream());
    // The perf.data from which the text was printed: mappings are known, inlined calls are not.
    let mut perf = PerfWriter::new(PerfAttr::default());
    perf.comm(SECOND, PID, PID, "app");
    perf.mmap2(SECOND, PID, ONE, 0x8000, 0x1_0000, "/lib/libone.so");
    perf.mmap2(SECOND, PID, TWO, 0x8000, 0x2000, "/lib/two.ni.dll");
    let chain = [ONE + 0x3608, JIT + 0x10, ONE + 0x3700, TWO + 4];
    perf.sample(SECOND + 50_000, PID, PID, &chain);
    perf.sample(SECOND + 900_000, PID, 7, &[JIT + 0x10]);
    let perf = perf.file();
    let map = b"7f0000000000 100 void [M] Old::Name()[Optimized]\n";
    let images = b"NILoad;/lib/other.ni.dll;{A}\nNILoad;/lib/two.ni.dll;{3FD6C14E}\n";
    let entries: [(&str, &[u8]); 10] = [
        ("x.trace/perfcollect.log", b"Collection started.\n"),
        ("x.trace/perf.data", &perf),
        ("x.trace/perf-jit.data", &perf),
        ("x.trace/perf.data.txt", TEXT.as_bytes()),
        ("x.trace/perf-4242.map", map),
        ("x.trace/perfinfo-4242.map", images),
        (
            "x.trace/two.ni.{3fd6c14e}.map",
            b"00002000 10 void [two] N.Precompiled::Run()\n",
        ),
        (
            "x.trace/other.ni.{b}.map",
            b"00000000 ffffffff void [other] N.Wrong::Run()\n",
        ),
        (
            "x.trace/lttngTrace/auto-1/ust/uid/0/64-bit/metadata",
            &metadata,
        ),
        (
            "x.trace/lttngTrace/auto-1/ust/uid/0/64-bit/channel0_0",
            &stream,
        ),
    ];
    let (timeline, _) = open_all(&[("x.trace.zip", &zip(&entries))]).expect("it can be read");
    assert!(timeline.facts().recordings.len() > 1);
    // The samples are those of the perf.data, the names those of the text made from it.
    let stacks = stacks(&timeline);
    let names: Vec<_> = stacks.iter().flat_map(|(_, _, frames)| frames).collect();
    assert_eq!(
        names,
        [
            "libone!helper",
            "?!N.T.First",
            "libone!outer",
            "two!N.Precompiled.Run",
            "?!N.T.Second"
        ]
    );
    let gives: Vec<_> = timeline
        .facts()
        .recordings
        .iter()
        .map(|it| (&*it.gives, it.clock))
        .collect();
    assert_eq!(gives.len(), 4, "{gives:?}");
    assert!(
        gives[..3]
            .iter()
            .all(|(_, clock)| *clock == ClockMatch::Same),
        "{gives:?}"
    );
    // The same, not packed.
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in entries {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        std::fs::write(path, bytes).expect("a file");
    }
    let recording = chronosym::open(folder.path()).expect("it can be opened");
    let (unpacked, _) = recording
        .timeline(Options::default())
        .expect("it can be read");
    assert_eq!(self::stacks(&unpacked), stacks);
}

#[test]
fn unreadable_single_files_are_reported() {
    let runtime = Runtime::new().body("First", JIT, SECOND, None);
    let (metadata, stream) = (runtime.trace.metadata(), runtime.stream());
    let Err(error) = open_all(&[("channel0_0", &stream)]) else {
        panic!("it is refused");
    };
    assert!(
        error.to_string().contains("without its metadata"),
        "{error}"
    );
    let damaged = [&metadata[..37], &[0; 100]].concat();
    let error = open_all(&[("metadata", &damaged), ("channel0_0", &stream)]).err();
    assert!(matches!(error, Some(OpenError::Trace { .. })), "{error:?}");
    // Next to a valid trace it is not a reason to reject all.
    let files: [(&str, &[u8]); 3] = [
        ("a/metadata", &damaged),
        ("b/metadata", &metadata),
        ("b/channel0_0", &stream),
    ];
    let (timeline, diagnostics) = open_all(&files).expect("the other one can be read");
    assert_eq!(diagnostics.list.len(), 1);
    assert_eq!(name(&timeline, JIT + 4, 100).as_deref(), Some("N.T.First"));
    let folder = tempfile::tempdir().expect("a folder");
    let error = chronosym::open(folder.path()).err();
    assert!(
        matches!(error, Some(OpenError::Directory { .. })),
        "{error:?}"
    );
    // A payload that ends too early.
    let mut trace = CtfTrace::new(CtfLayout::default(), OWNER);
    let id = trace.event("DotNETRuntime:MethodLoadVerbose_V1", PACKED);
    let payload = payload::jitting_started(1, 2, 3, 4, 0, ("a", "b", "c"), 0);
    let event = CtfEvent {
        time: SECOND,
        id,
        context: owner(PID, PID, "app"),
        fields: vec![CtfValue::Number(8), CtfValue::Bytes(&payload[..8])],
    };
    let stream = trace.packet(0, 0, 0, &[event]);
    let (_, diagnostics) =
        open_all(&[("metadata", &trace.metadata()), ("s", &stream)]).expect("it can be read");
    assert_eq!(diagnostics.list.len(), 1, "{:?}", diagnostics.list);
}
