//! Feeds a session without a trace: typed facts, samples of any event, observers of reading.

use std::io::Cursor;
use std::sync::Arc;

use chronosym::facts::{
    Action, At, Image, Method, Module, NativeMethod, Process, Sample, Stub, Symbol,
};
use chronosym::source::EventStream;
use chronosym::source::etl::EtlStream;
use chronosym::source::nettrace::NettraceStream;
use chronosym::{
    EventKey, EventSchema, Evidence, Filter, LiveSession, Loss, Options, Payload, PointerSize,
    Position, Provider, Resolver, SampleKind, Session, Timeline, Weight,
};
use chronosym_conformance::script;
use chronosym_etl::Reader as EtlReader;
use chronosym_support::etl::{self, EtlWriter, guid};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{self, universal};
use chronosym_support::trace::{FieldKind, TypeSpec};

fn names(timeline: &Timeline, address: u64, time: u64) -> Vec<String> {
    let process = timeline.find_process(42, Some(time)).expect("the process");
    let frames = timeline.frames(process, address, time, Position::Exact, None);
    frames.iter().map(script::text).collect()
}

#[test]
fn any_event_is_a_weighted_sample() {
    let mut session = Session::new(Options::default());
    let at = At::new(10).process(42).thread(7);
    let method = Method::new(Action::Load, 1, 0x1000, 64).named("T", "A", "void ()");
    session.apply(at, method);
    let allocation = session.event_type(Arc::new(EventSchema::new(EventKey::Named {
        provider: "App".into(),
        name: "Allocation".into(),
    })));
    let weights = [Weight::Bytes(8), Weight::Bytes(24)];
    for (time, weight) in (20..).zip(weights) {
        let sample = Sample::new(SampleKind::Event)
            .of(allocation)
            .weighing(weight);
        session.sample(at.at(time), &[0x1010, 0x1020], sample);
    }
    session.sample(at.at(30), &[0x1010], Sample::cpu());
    let timeline = session.finish();
    let mut resolver = Resolver::new(&timeline, None);
    let mut found = Vec::new();
    timeline.for_each_weighed_sample(&Filter::default(), |sample| {
        let (class, time, weight) = (sample.class, sample.time_ns, sample.weight);
        let stack = resolver.resolve(class, time).expect("a stack").0;
        let leaf = script::text(resolver.frame(resolver.leaf(stack)));
        let label = timeline.event_types()[class.event.index()].label();
        found.push((time, label.to_string(), leaf, weight));
    });
    let row = |time, label: &str, weight| (time, label.to_owned(), "T.A".to_owned(), weight);
    assert_eq!(
        found,
        [
            row(20, "App/Allocation", weights[0]),
            row(21, "App/Allocation", weights[1]),
            row(30, "Samples/cpu", Weight::Unknown),
        ]
    );
}

#[test]
fn processes_images_and_symbols_without_a_trace() {
    let mut session = Session::new(Options::default());
    let at = |time| At::new(time).process(42).thread(7);
    session.apply(at(10), Process::new(Action::Load, "first"));
    let mut image = Image::new(Action::Load, 0x7000, 0x1000, "/lib/libc.so.6");
    image.file_offset = 0x2000;
    image.build_id = "0badcafe";
    session.apply(at(11), image);
    // Memory without a file is not an image.
    session.apply(at(11), Image::new(Action::Load, 0x9000, 0x1000, "//anon"));
    session.apply(at(20), Image::new(Action::Unload, 0x7000, 0, ""));
    session.apply(at(21), Symbol::new(0x5000, 0x5fff, "helper"));
    session.apply(at(30), Process::new(Action::Unload, ""));
    session.apply(at(40), Process::new(Action::Load, "second"));
    let timeline = session.finish();
    let first = timeline.find_process(42, Some(15)).expect("the first");
    let images: Vec<_> = timeline
        .images(first)
        .map(|i| (i.name, i.image.base))
        .collect();
    assert_eq!(images, [("libc", 0x7000)]);
    let frame = &timeline.frames(first, 0x7010, 15, Position::Exact, None)[0];
    assert_eq!(frame.module(), Some("libc"));
    assert_eq!(names(&timeline, 0x7010, 25), ["AfterUnload"]);
    assert_eq!(names(&timeline, 0x5010, 25), ["helper"]);
    let all: Vec<_> = timeline.processes().map(|p| (p.pid, p.name)).collect();
    assert_eq!(all, [(Some(42), Some("first")), (Some(42), Some("second"))]);
}

#[test]
fn a_jitdump_body_has_lines_and_ends_where_another_starts() {
    let mut session = Session::new(Options::default());
    let at = |time| At::new(time).process(42).thread(7);
    let lines = [(0x1010, "b.py", 2), (0x1000, "a.py", 1)];
    let method = NativeMethod::new("py::f", 0x1000, 0x40).with_lines(&lines);
    session.apply(at(10), method);
    let dotnet = "int32 [Lib] Ns.T::M(int32)[OptimizedTier1]";
    session.apply(at(20), NativeMethod::new(dotnet, 0x1020, 0x40));
    let timeline = session.finish();
    let process = timeline.find_process(42, None).expect("the process");
    assert_eq!(names(&timeline, 0x1010, 15), ["py::f"]);
    let frame = &timeline.frames(process, 0x1010, 15, Position::Exact, None)[0];
    assert_eq!(frame.evidence, Some(Evidence::JitDump));
    assert_eq!(names(&timeline, 0x1030, 25), ["Ns.T.M"]);
    assert_eq!(names(&timeline, 0x1010, 25), ["AfterUnload"]);
    let body = timeline.bodies(process).next().expect("a body").index;
    let line = |offset| timeline.stated_line(process, body, offset);
    assert_eq!(line(0x0f), Some(("a.py", 1)));
    assert_eq!(line(0x20), Some(("b.py", 2)));
}

#[test]
fn a_stub_has_the_evidence_of_its_stub_event() {
    for before in [true, false] {
        let mut session = Session::new(Options::default());
        let at = At::new(10).process(42).thread(7);
        let stub = Stub::new(9, ["App.Native", "Beep", "void ()"]);
        if before {
            session.apply(at, stub);
        }
        let method = Method::new(Action::Load, 9, 0x1000, 64).named(
            "dynamicClass",
            "IL_STUB_PInvoke",
            "void ()",
        );
        session.apply(at, method);
        if !before {
            session.apply(at, stub);
        }
        let timeline = session.finish();
        let process = timeline.find_process(42, None).expect("the process");
        let body = timeline.bodies(process).next().expect("a body");
        assert!(body.evidence.contains(Evidence::Stub) && body.evidence.contains(Evidence::Load));
        let target = "IL_STUB_PInvoke \u{2192} App.Native.Beep";
        assert_eq!(names(&timeline, 0x1010, 20), [target]);
    }
}

#[test]
fn facts_without_a_pid_belong_to_a_process_without_id() {
    let mut session = Session::new(Options::default());
    let at = At::new(10).thread(7);
    session.apply(
        at,
        Method::new(Action::Load, 1, 0x1000, 64).named("T", "A", ""),
    );
    session.sample(at, &[0x1010], Sample::cpu());
    let timeline = session.finish();
    let pids: Vec<_> = timeline.processes().map(|p| p.pid).collect();
    assert_eq!(pids, [None]);
    assert_eq!(timeline.find_process(0, None), None);
}

#[test]
fn an_event_of_a_foreign_type_is_counted() {
    let mut other = Session::new(Options::default());
    let key = |id| EventKey::Manifest {
        provider: Provider::Runtime,
        id,
        version: 2,
    };
    let foreign = other.event_type(Arc::new(EventSchema::new(key(143))));
    let mut session = Session::new(Options::default());
    let payload = Payload {
        pointer_size: PointerSize::Eight,
        bytes: &[],
    };
    session.push(foreign, At::new(1), payload, None);
    session.sample(At::new(1), &[1], Sample::cpu().of(foreign));
    assert!(!session.needs_order(foreign) && !session.wants_stack(foreign));
    let diagnostics = session.finish().diagnostics();
    let text = "2 events are of a type that was never registered";
    assert_eq!((diagnostics.len(), &*diagnostics[0].text), (1, text));
}

#[test]
fn a_process_that_is_created_first_is_one() {
    let mut w = NettraceWriter::v6();
    let create = w.define(
        TypeSpec::new("Universal.System", 1, 0)
            .named("ProcessCreate")
            .field("NamespaceId", FieldKind::VAR_U)
            .field("Name", FieldKind::UTF8)
            .field("NamespaceName", FieldKind::UTF8),
    );
    w.event(create, 10, 1, &[], &universal::process(7, "New", ""));
    let mut session = Session::new(Options::default());
    chronosym::source::nettrace::read(Cursor::new(w.finish()), &mut session).expect("a trace");
    let timeline = session.finish();
    let all: Vec<_> = timeline.processes().map(|p| (p.name, p.start_ns)).collect();
    assert_eq!(all, [(Some("New"), Some(10))]);
}

#[test]
fn an_in_memory_pdb_is_whole_as_soon_as_its_last_chunk_is_there() {
    let mut live = LiveSession::new();
    let at = At::new(1).process(42).thread(7);
    live.apply(at, Module::new(Action::Load, 5, "Dynamic"));
    let schema = EventSchema::new(EventKey::Manifest {
        provider: Provider::Runtime,
        id: 260,
        version: 0,
    });
    let id = live.event_type(Arc::new(schema));
    let mut push = |number: u16, bytes: &[u8]| {
        let chunk = payload::code_symbols(5, 2, number, bytes, 0);
        let payload = Payload {
            pointer_size: PointerSize::Eight,
            bytes: &chunk,
        };
        live.push(id, at, payload);
        live.publish();
        let timeline = live.reader().timeline();
        let process = timeline.find_process(42, None).expect("the process");
        let module = timeline.modules(process).next().expect("a module").index;
        let module = timeline.module_ref(process, module).expect("a module");
        module.in_memory_pdb.map(|pdb| pdb.to_vec())
    };
    assert_eq!(push(1, b"B"), None);
    assert_eq!(push(0, b"A"), Some(b"AB".to_vec()));
}

#[test]
fn losses_of_an_etl_are_counted_by_kind() {
    let options = etl::Options {
        events_lost: 3,
        buffers_lost: 2,
        ..etl::Options::default()
    };
    let bytes = EtlWriter::new(Vec::new(), options).and_then(EtlWriter::finish);
    let bytes = bytes.expect("memory");
    let mut session = Session::new(Options::default());
    let reader = EtlReader::new(&*bytes, Default::default()).expect("a trace");
    chronosym::source::etl::read(reader, &mut session).expect("the first recording");
    let timeline = session.finish();
    let mut expected = Loss::of_events(0, u64::MAX, 3);
    expected.buffers = 2;
    assert_eq!(timeline.losses(), [expected]);
}

#[test]
fn samples_of_a_counter_have_its_period_and_not_the_timers() {
    const PERF_INFO: [u8; 16] = guid(0xce1dbfb4, 0x137e, 0x4da6, 0x87b0_3f59aa102cbc);
    let mut w = EtlWriter::new(Vec::new(), etl::Options::default()).expect("memory");
    let interval = |source: u32, new: u32| {
        let mut payload: Vec<u8> = [source, new, new]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        payload.extend([0, 0]);
        payload
    };
    let timer = interval(0, 10_000);
    w.classic(etl::At::ms(0), PERF_INFO, 73, 3, &timer)
        .expect("memory");
    let sample = |source: u16| {
        let mut payload = 0x1000u64.to_le_bytes().to_vec();
        payload.extend(7u32.to_le_bytes());
        payload.extend(source.to_le_bytes());
        payload.extend([0, 0]);
        payload
    };
    let (known, unknown) = (sample(5), sample(6));
    w.classic(etl::At::ms(1), PERF_INFO, 72, 3, &interval(5, 65_536))
        .expect("memory");
    w.classic(etl::At::ms(2), PERF_INFO, 47, 2, &known)
        .expect("memory");
    w.classic(etl::At::ms(3), PERF_INFO, 47, 2, &unknown)
        .expect("memory");
    let bytes = w.finish().expect("memory");
    let selector = chronosym::EventSelector::parse("Kernel/47").expect("a selector");
    let mut session = Session::new(chronosym::SampleSelection::Events(vec![selector]));
    let reader = EtlReader::new(&*bytes, Default::default()).expect("a trace");
    chronosym::source::etl::read(reader, &mut session).expect("the first recording");
    let timeline = session.finish();
    let mut weights = Vec::new();
    timeline.for_each_weighed_sample(&Filter::default(), |sample| weights.push(sample.weight));
    assert_eq!(weights, [Weight::Count(65_536), Weight::Unknown]);
}

/// Times of the first events of a stream, with the number of addresses.
fn first_events(stream: &mut dyn EventStream, most: usize) -> Vec<(u64, usize)> {
    let mut seen = Vec::new();
    while seen.len() < most
        && let Some(event) = stream.next_event().expect("bytes")
    {
        seen.push((event.event.time_ns, event.stack.len()));
    }
    seen
}

#[test]
fn a_stream_has_every_event_and_reading_can_end_anywhere() {
    let mut w = NettraceWriter::v4();
    let sample = w.event_type(script::SAMPLER, 0, 0);
    let other = w.event_type("Unwanted", 1, 0);
    for time in [10, 20, 30] {
        w.event(sample, time, 1, &[0x10, 0x20], &[2, 0, 0, 0]);
        w.event(other, time + 1, 1, &[], &[]);
        w.sequence_point();
    }
    let bytes = w.finish();
    let open = || NettraceStream::new(&*bytes, Default::default()).expect("a trace");
    for (most, rows) in [(9, 6), (4, 4)] {
        let all = [(10, 2), (11, 0), (20, 2), (21, 0), (30, 2), (31, 0)];
        assert_eq!(first_events(&mut open(), most), all[..rows]);
    }
    // A batch has the events before a sequence point.
    for (batches, samples) in [(9, 3), (1, 1)] {
        let mut session = Session::new(Options::default());
        let mut stream = open();
        for _ in 0..batches {
            stream.read_batch(&mut session).expect("bytes");
        }
        assert_eq!(session.finish().samples().len(), samples);
    }
    let mut w = EtlWriter::new(Vec::new(), etl::Options::default()).expect("memory");
    for ms in [1, 2] {
        let method = script::method(1, 0x1000, 64, "A").encode(2);
        let at = etl::At::ms(ms).pid(42).tid(7);
        w.clr(at, etl::CLR_RUNTIME, 143, 2, &method, &[0x10])
            .expect("memory");
    }
    let bytes = w.finish().expect("memory");
    let mut stream = EtlStream::new(&*bytes, Default::default()).expect("a trace");
    for _ in 0..2 {
        let mut methods = 0;
        while let Some(event) = stream.next_event().expect("bytes") {
            let decoded = event.event.decode();
            methods += usize::from(matches!(decoded, Ok(Some(_))) && event.stack == [0x10]);
        }
        assert_eq!(methods, 2);
        assert!(stream.rewind());
    }
}

// Rule 11.
#[test]
fn a_body_wins_over_a_symbol_and_a_symbol_over_an_image() {
    let mut session = Session::new(Options::default());
    let at = |time| At::new(time).process(42).thread(7);
    session.apply(
        at(0),
        Image::new(Action::Load, 0x1_0000, 0x1000, "/lib/libx.so"),
    );
    session.apply(at(0), Symbol::new(0x1_0000, 0x1_00ff, "symbol"));
    let method = |action| Method::new(action, 1, 0x1_0000, 0x40).named("T", "M", "void  ()");
    session.apply(at(10), method(Action::Load));
    session.apply(at(20), method(Action::Unload));
    let timeline = session.finish();
    assert_eq!(names(&timeline, 0x1_0010, 15), ["T.M"]);
    assert_eq!(names(&timeline, 0x1_0010, 25), ["symbol"]);
    assert_eq!(names(&timeline, 0x1_0080, 15), ["symbol"]);
    assert_eq!(names(&timeline, 0x1_0200, 15), ["NoSymbolFile"]);
}

#[test]
fn times_beyond_all_bounds_add_up_to_the_most() {
    let mut session = Session::new(Options::default());
    for (time, thread) in [(0, 1), (0, 2), (u64::MAX - 1, 1), (u64::MAX - 1, 2)] {
        let at = At::new(time).process(42).thread(thread);
        session.sample(at, &[0x1010], Sample::new(SampleKind::WallManaged));
        let huge = Sample::cpu().weighing(Weight::Ns(u64::MAX));
        session.sample(at, &[0x1010], huge);
    }
    let timeline = session.finish();
    let profile = timeline.profile(&Filter::default(), None);
    assert_eq!(profile.time_ns(), Some(u64::MAX));
    let (by, sort) = Default::default();
    let rows = chronosym_export::hotspots(&profile, by, sort, false);
    let (mut text, options) = (Vec::new(), Default::default());
    chronosym_export::write_top(&profile, (by, sort), &rows, &[], options, &mut text)
        .expect("memory");
    assert!(String::from_utf8_lossy(&text).contains("100.0%"));
}
