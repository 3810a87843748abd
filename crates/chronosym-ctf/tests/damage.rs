//! Traces that are cut short, damaged or hostile.

use std::io::{self, Read};

use chronosym_ctf::{Diagnostics, Error, Metadata, Options, Reader, Source};
use chronosym_support::ctf::{CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};

fn trace() -> CtfTrace {
    let context = [
        ("vpid", CtfType::Signed(32)),
        ("procname", CtfType::Chars(17)),
    ];
    let mut trace = CtfTrace::new(CtfLayout::default(), &context);
    trace.event(
        "P:One",
        &[("data", CtfType::Bytes), ("text", CtfType::Text)],
    );
    trace
}

fn event(time: u64) -> CtfEvent<'static> {
    CtfEvent {
        time,
        id: 0,
        context: vec![CtfValue::Number(1), CtfValue::Text("p")],
        fields: vec![CtfValue::Bytes(b"0123456789"), CtfValue::Text("text")],
    }
}

/// Three packets of 40 events.
fn stream(trace: &CtfTrace) -> Vec<u8> {
    let packet = |at: u64| {
        let events: Vec<_> = (0..40).map(|i| event(at * 1000 + i)).collect();
        trace.packet(at, 0, 0, &events)
    };
    (0..3).flat_map(packet).collect()
}

fn metadata(trace: &CtfTrace) -> Metadata {
    Metadata::parse(&trace.metadata(), Options::default()).expect("it is metadata")
}

fn reader_of<R: Read>(traces: Vec<Metadata>, streams: Vec<R>, options: Options) -> Reader<R> {
    Reader::new(Source { traces, streams }, options).expect("a trace")
}

fn read(metadata: &Metadata, stream: &[u8]) -> (Vec<u64>, Diagnostics) {
    let mut reader = reader_of(vec![metadata.clone()], vec![stream], Options::default());
    let mut times = Vec::new();
    while let Some(event) = reader.next_event().expect("a slice does not fail") {
        assert!(times.last().is_none_or(|&last| last <= event.time_ns));
        assert!(format!("{:?}{:?}", event.context, event.fields).len() < 10_000);
        times.push(event.time_ns);
    }
    let diagnostics = reader.diagnostics().clone();
    assert!(diagnostics.bytes_read <= stream.len() as u64);
    (times, diagnostics)
}

#[test]
fn a_stream_that_is_cut_anywhere_is_read_as_far_as_it_goes() {
    let trace = trace();
    let (metadata, stream) = (metadata(&trace), stream(&trace));
    let (whole, diagnostics) = read(&metadata, &stream);
    assert_eq!(whole.len(), 120);
    assert!(diagnostics.is_clean());
    let mut most = 0;
    for end in 0..stream.len() {
        let (times, diagnostics) = read(&metadata, &stream[..end]);
        assert_eq!(times, whole[..times.len()], "{end}");
        assert!(times.len() >= most, "{end}");
        most = times.len();
        // Padding that is missing is nothing that is missing.
        assert!(times.len() == 120 || end == 0 || !diagnostics.is_clean() || times.len() % 40 == 0);
    }
    assert_eq!(most, 120);
}

#[test]
fn a_byte_that_is_wrong_costs_no_other_packet() {
    let trace = trace();
    let (metadata, stream) = (metadata(&trace), stream(&trace));
    let packet = stream.len() / 3;
    // Events follow the first 84 bytes.
    for at in (84..packet).step_by(3) {
        let mut damaged = stream.clone();
        damaged[packet + at] ^= 0xff;
        let (times, _) = read(&metadata, &damaged);
        assert_eq!(times[..40], (0..40).collect::<Vec<u64>>(), "{at}");
        assert_eq!(
            times[times.len() - 40..],
            (2000..2040).collect::<Vec<u64>>(),
            "{at}"
        );
    }
    // Any field of a header may be wrong; events read before are kept.
    for at in 0..84 {
        let mut damaged = stream.clone();
        damaged[packet + at] ^= 0xff;
        let (times, _) = read(&metadata, &damaged);
        assert_eq!(times[..40], (0..40).collect::<Vec<u64>>(), "{at}");
    }
}

#[test]
fn metadata_that_is_cut_or_changed_anywhere() {
    let trace = trace();
    let (text, stream) = (trace.text(), stream(&trace));
    for end in (0..text.len()).step_by(7) {
        if let Ok(metadata) = Metadata::parse(&text.as_bytes()[..end], Options::default()) {
            read(&metadata, &stream);
        }
    }
    for at in (12..text.len()).step_by(5) {
        let mut damaged = text.clone().into_bytes();
        damaged[at] = b"{};[9\"x<"[at % 8];
        if let Ok(metadata) = Metadata::parse(&damaged, Options::default()) {
            read(&metadata, &stream);
        }
    }
}

#[test]
fn a_definition_that_cannot_be_read_costs_itself() {
    let trace = trace();
    let bad = "event { name = \"bad\"; id = 7; fields := struct { no_such_type x; }; };\n";
    let text = trace
        .text()
        .replacen("event {\n", &format!("{bad}event {{\n"), 1);
    let metadata = Metadata::parse(text.as_bytes(), Options::default()).expect("it is metadata");
    assert_eq!(metadata.bad_definitions(), 1);
    assert_eq!(read(&metadata, &stream(&trace)).0.len(), 120);
}

#[test]
fn sizes_that_lie() {
    let trace = trace();
    let (metadata, stream) = (metadata(&trace), stream(&trace));
    let packet = stream.len() / 3;
    let with = |at: usize, value: u64| {
        let mut damaged = stream.clone();
        damaged[packet + at..][..8].copy_from_slice(&value.to_le_bytes());
        read(&metadata, &damaged)
    };
    const CONTENT: usize = 48;
    const SIZE: usize = 56;
    let first: Vec<u64> = (0..40).collect();
    // More content than packet: the packet is skipped, the next one is found.
    let (times, diagnostics) = with(CONTENT, u64::MAX);
    assert_eq!((times.len(), diagnostics.bad_packets), (80, 1));
    // No size, no way on.
    for size in [0, 8, u64::MAX] {
        let (times, diagnostics) = with(SIZE, size);
        assert_eq!(times[..40], first);
        assert!(
            times.len() <= 80 && !diagnostics.is_clean() || size == u64::MAX,
            "{size}"
        );
    }
    // The times of a packet: bytes after its end are not events.
    let (times, diagnostics) = with(40, 1010);
    assert_eq!((times.len(), diagnostics.bad_packets), (91, 1));
}

#[test]
fn what_cannot_be_read_is_lost_at_its_time() {
    let trace = trace();
    let (metadata, stream) = (metadata(&trace), stream(&trace));
    let packet = stream.len() / 3;
    let losses = |damaged: &[u8]| -> Vec<(u64, u64)> {
        let (_, diagnostics) = read(&metadata, damaged);
        let losses = diagnostics.losses.iter();
        losses.map(|loss| (loss.from_ns, loss.to_ns)).collect()
    };
    let with = |at: usize, bytes: &[u8]| {
        let mut damaged = stream.clone();
        damaged[packet + at..][..bytes.len()].copy_from_slice(bytes);
        losses(&damaged)
    };
    assert_eq!(losses(&stream), []);
    // More content than packet: all of its events.
    assert_eq!(with(48, &u64::MAX.to_le_bytes()), [(1000, 1039)]);
    // A packet without a size: everything after the packet before it.
    assert_eq!(with(56, &[0; 8]), [(39, u64::MAX)]);
    // An event without a type, after which the packet is not read.
    let damaged = with(packet / 2, &[0xff; 64]);
    assert_eq!(damaged.len(), 1);
    assert!((1010..1030).contains(&damaged[0].0) && damaged[0].1 == 1039);
    // A stream that ends inside of a packet.
    let cut = losses(&stream[..packet + packet / 2]);
    assert_eq!(cut.len(), 1);
    assert!((1010..1030).contains(&cut[0].0) && cut[0].1 == u64::MAX);
}

#[test]
fn types_that_would_take_for_ever_are_refused() {
    let head = "/* CTF 1.8 */ trace { byte_order = le; }; stream { };\n";
    let parse = |text: String| {
        let text = format!("{head}{text}");
        Metadata::parse(text.as_bytes(), Options::default()).expect("the rest can be read")
    };
    // Each level twice the one before.
    let mut doubling = "struct s0 { integer { size = 8; } a; };\n".to_owned();
    for level in 1..40 {
        let before = level - 1;
        doubling += &format!("struct s{level} {{ struct s{before} a; struct s{before} b; }};\n");
    }
    assert!(parse(doubling).bad_definitions() > 0);
    // Elements without size, any number of them.
    let nothing = "struct none { }; event { fields := struct { struct none a[4000000000]; }; };";
    assert_eq!(parse(nothing.to_owned()).bad_definitions(), 1);
    let dimensions = "[1]".repeat(100_000);
    let deep =
        format!("event {{ fields := struct {{ integer {{ size = 8; }} a{dimensions}; }}; }};");
    assert_eq!(parse(deep).bad_definitions(), 1);
    for word in ["struct {", "enum : ", "{"] {
        assert!(
            parse(format!("event {{ fields := {}", word.repeat(100_000))).bad_definitions() > 0
        );
    }
    for number in ["0", "65", "-1", "99999999999999999999999999999999999999999"] {
        let text = format!("typealias integer {{ size = {number}; }} := a;");
        assert_eq!(parse(text).bad_definitions(), 1, "{number}");
    }
    // A list of structs of one bit holds as many values as the packet has bits.
    let bits = "event { fields := struct { struct { integer { size = 1; align = 1; } a; } b[600000]; }; };";
    let metadata = parse(bits.to_owned());
    assert_eq!(metadata.bad_definitions(), 0);
    let (times, diagnostics) = read(&metadata, &[0; 100_000]);
    assert_eq!((times.len(), diagnostics.bad_packets), (0, 1));
}

#[test]
fn a_packet_larger_than_the_limit_is_read_up_to_it() {
    let trace = trace();
    let (metadata, stream) = (metadata(&trace), stream(&trace));
    let options = Options::default().with_packet_limit(400);
    let mut reader = reader_of(vec![metadata], vec![stream.as_slice()], options);
    let mut events = 0;
    while reader.next_event().unwrap().is_some() {
        events += 1;
    }
    assert!((3..30).contains(&events), "{events}");
    assert!(reader.diagnostics().bad_packets >= 3);
}

/// Fails at the end of its bytes.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk is gone")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_failing_source_keeps_the_data_read() {
    let trace = trace();
    let stream = stream(&trace);
    let failing: Box<dyn Read> = Box::new(Failing(&stream[..stream.len() / 2]));
    let streams = vec![failing, Box::new(stream.as_slice())];
    let mut reader = reader_of(vec![metadata(&trace)], streams, Options::default());
    let mut events = 0;
    let error = loop {
        match reader.next_event() {
            Ok(Some(_)) => events += 1,
            Ok(None) => panic!("it fails"),
            Err(error) => break error,
        }
    };
    assert!((160..200).contains(&events), "{events}");
    assert!(matches!(error, Error::Io { stream: 0, .. }), "{error}");
    assert!(reader.next_event().expect("it is said once").is_none());
}
