//! .etl traces through the program: kernel events by their names, events by descriptions in the
//! trace, several files, cuts.

mod common;

use common::*;
use serde_json::Value;

use chronosym_support::etl::{
    At, EtlWriter, Event, Image, Op, Options, Process, Stack, buffers, stack_item,
};

const PROVIDER: [u8; 16] = *b"0123456789abcdef";
const THREAD: u8 = 0x05;
const PERF_INFO: u8 = 0x0f;
const CSWITCH: u8 = 36;
const SAMPLE: u8 = 46;

/// The manifest that an EventSource logs of itself (its event 65534), in one chunk.
fn manifest() -> Vec<u8> {
    let xml = r#"<instrumentationManifest><instrumentation><events>
        <provider name="My-Source" guid="{33323130-3534-3736-3839-616263646566}">
        <events><event value="7" version="0" level="win:Informational" symbol="Order" template="OrderArgs"/></events>
        <templates><template tid="OrderArgs">
            <data name="amount" inType="win:Int32"/><data name="customer" inType="win:UnicodeString"/>
        </template></templates></provider></events></instrumentation></instrumentationManifest>"#;
    let mut piece = vec![1, 1, 0, 0x5b, 1, 0, 0, 0];
    piece.extend_from_slice(xml.as_bytes());
    piece
}

fn switch(new: u32, old: u32) -> Vec<u8> {
    let mut payload = [new.to_le_bytes(), old.to_le_bytes()].concat();
    payload.extend([0; 16]);
    payload
}

fn trace() -> Vec<u8> {
    trace_with(Options::default())
}

fn trace_with(options: Options) -> Vec<u8> {
    let mut etl = EtlWriter::new(Vec::new(), options).unwrap();
    for i in 0..2_000u32 {
        let at = At::us(i64::from(i) * 100);
        etl.compact(at, THREAD, CSWITCH, 4, &switch(20 + i % 2, 21 - i % 2))
            .unwrap();
        let mut sample = 0x7ff6_0000_1000u64.to_le_bytes().to_vec();
        sample.extend([20, 0, 0, 0, 1, 0, 0, 0]);
        etl.perfinfo(
            At::us(i64::from(i) * 100 + 50),
            PERF_INFO,
            SAMPLE,
            2,
            &sample,
        )
        .unwrap();
    }
    let mut order = 42u32.to_le_bytes().to_vec();
    order.extend("Ann\n".encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    let stack = stack_item(0, &[0x7ff6_0000_2000, 0x7ff6_0000_3000], false);
    let extended = [(6, stack.as_slice())];
    let event = Event {
        provider: PROVIDER,
        id: 7,
        payload: &order,
        extended: &extended,
        ..Event::default()
    };
    etl.event(At::ms(201).pid(10).tid(20), &event).unwrap();
    // The description follows its events.
    let manifest = manifest();
    let event = Event {
        provider: PROVIDER,
        id: 0xfffe,
        payload: &manifest,
        ..Event::default()
    };
    etl.event(At::ms(202).pid(10).tid(20), &event).unwrap();
    etl.finish().unwrap()
}

fn events(args: &[&str]) -> Vec<Value> {
    let mut all = vec!["-q", "events", "--format", "jsonl"];
    all.extend(args);
    json_lines(&all)
}

#[test]
fn kernel_events_go_by_short_and_full_names() {
    let path = file(&trace());
    let path = path.to_str().unwrap();
    for (name, count) in [
        ("Kernel/CSwitch", 2_000),
        ("kernel/thread/cswitch", 2_000),
        ("Windows Kernel/CSwitch", 2_000),
        ("Kernel/Sample", 2_000),
        ("Kernel", 4_001),
    ] {
        assert_eq!(events(&["--event", name, path]).len(), count, "{name}");
    }
    let none = run(&["events", "--event", "Kernel/NoSuchEvent", path]);
    assert_eq!(none.status, 1);
    assert!(
        none.stderr.contains("Kernel/Thread/CSwitch"),
        "{}",
        none.stderr
    );
    let first = &events(&["--event", "Kernel/CSwitch", path])[0];
    assert_eq!(first["name"], "Thread/CSwitch");
    assert_eq!(first["fields"]["NewThreadId"], 20);
    assert_eq!(first["fields"]["OldThreadId"], 21);
    assert!(
        first.get("pid").is_none(),
        "the record does not say: {first}"
    );
    let info = run(&["info", path]);
    assert!(
        info.stdout.contains("Kernel/Thread/CSwitch"),
        "{}",
        info.stdout
    );
}

#[test]
fn descriptions_that_cannot_be_read_are_counted() {
    let mut etl = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    let event = Event {
        provider: PROVIDER,
        id: 0xfffe,
        payload: &[9],
        ..Event::default()
    };
    etl.event(At::ms(1).pid(10).tid(20), &event).unwrap();
    let path = file(&etl.finish().unwrap());
    let info = run(&["info", path.to_str().unwrap()]);
    let note = "1 descriptions of event types cannot be read";
    let all = format!("{}{}", info.stdout, info.stderr);
    assert!(all.contains(note), "{all}");
}

#[test]
fn events_of_a_process_include_all_attributed_to_it() {
    const UDP: u8 = 0x08;
    let mut etl = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    let sample = |tid: u32| {
        let address = 0x7ff6_0000_1000u64.to_le_bytes();
        [&address[..], &tid.to_le_bytes(), &[1, 0, 0, 0]].concat()
    };
    // Before any event states the process of thread 20.
    etl.perfinfo(At::ms(1), PERF_INFO, SAMPLE, 2, &sample(20))
        .unwrap();
    // Process 4 logs that thread 20 is of 10, thread 21 of 11.
    for (tid, pid) in [(20u32, 10u32), (21, 11)] {
        let mut thread = [pid.to_le_bytes(), tid.to_le_bytes()].concat();
        thread.extend([0; 64]);
        etl.system(At::ms(2).pid(4).tid(8), THREAD, 3, 3, &thread)
            .unwrap();
    }
    etl.perfinfo(At::ms(3), PERF_INFO, SAMPLE, 2, &sample(21))
        .unwrap();
    etl.compact(At::ms(4), THREAD, CSWITCH, 4, &switch(21, 20))
        .unwrap();
    let mut datagram = 10u32.to_le_bytes().to_vec();
    datagram.extend([0; 28]);
    etl.perfinfo(At::ms(5), UDP, 11, 2, &datagram).unwrap();
    // The thread's id is reused.
    let mut thread = [11u32.to_le_bytes(), 20u32.to_le_bytes()].concat();
    thread.extend([0; 64]);
    etl.system(At::ms(6).pid(4).tid(8), THREAD, 1, 3, &thread)
        .unwrap();
    etl.perfinfo(At::ms(7), PERF_INFO, SAMPLE, 2, &sample(20))
        .unwrap();
    let path = file(&etl.finish().unwrap());
    let path = path.to_str().unwrap();
    let times = |args: &[&str]| -> Vec<u64> {
        let all = events(&[args, &[path]].concat());
        all.iter()
            .map(|event| event["time_ns"].as_u64().unwrap() / 1_000_000)
            .collect()
    };
    assert_eq!(times(&["--pid", "10"]), [1, 2, 4, 5]);
    assert_eq!(times(&["--pid", "11"]), [2, 3, 4, 6, 7]);
    assert_eq!(times(&["--pid", "11", "--tid", "21"]), [2, 3, 4]);
    // The trace's header is of process 4, too.
    assert_eq!(times(&["--pid", "4"]), [0, 2, 2, 6]);
}

#[test]
fn a_description_anywhere_in_the_trace_names_fields() {
    let path = file(&trace());
    let path = path.to_str().unwrap();
    let orders = events(&["--event", "My-Source/Order", path]);
    assert_eq!(orders.len(), 1);
    let order = &orders[0];
    assert_eq!(order["id"], 7);
    assert_eq!(
        order["fields"],
        serde_json::json!({"amount": 42, "customer": "Ann\n"})
    );
    assert_eq!(
        order["stack"],
        serde_json::json!(["0x7ff600002000", "0x7ff600003000"])
    );
    assert_eq!((&order["pid"], &order["tid"]), (&10.into(), &20.into()));
    // A line break in a value breaks no line of text.
    let text = run(&["events", "--event", "My-Source/Order", path]).stdout;
    assert_eq!(text.lines().count(), 1);
    assert!(
        text.contains("amount=42, customer=Ann?  [stack of 2]"),
        "{text}"
    );
}

#[test]
fn files_of_one_recording_are_merged_in_time_order() {
    let other = trace_with(Options {
        session_name: "other".to_owned(),
        ..Options::default()
    });
    let (one, two) = (file(&trace()), file(&other));
    let alone = events(&[one.to_str().unwrap()]);
    let zip = file(&zipped(&[("one.etl", &trace()), ("two.etl", &other)]));
    for together in [
        vec![one.to_str().unwrap(), two.to_str().unwrap()],
        vec![zip.to_str().unwrap()],
    ] {
        let both = events(&together);
        assert_eq!(both.len(), 2 * alone.len());
        assert!(both.is_sorted_by_key(|e| e["time_ns"].as_u64().unwrap()));
    }
}

#[test]
fn files_that_do_not_belong_together_are_named() {
    let (one, copy) = (file(&trace()), file(&trace()));
    let later = file(&trace_with(Options {
        boot_time: Options::default().boot_time + 600_000_000,
        ..Options::default()
    }));
    let [one, copy, later] = [&one, &copy, &later].map(|path| path.to_str().unwrap());
    let zip = file(&zipped(&[("one.etl", &trace()), ("copy.etl", &trace())]));
    let linux = arg(LINUX);
    for (files, words) in [
        (vec![one, copy], vec![one, copy, "copies"]),
        (vec![one, later], vec![one, later, "boot time"]),
        (vec![one, &linux], vec![one, &linux, "one by one"]),
        (vec![zip.to_str().unwrap()], vec!["one.etl", "copy.etl"]),
    ] {
        for command in ["stacks", "events"] {
            let mut args = vec![command];
            args.extend(&files);
            let run = run(&args);
            assert_eq!((run.status, run.stdout.as_str()), (1, ""), "{args:?}");
            for word in &words {
                assert!(run.stderr.contains(word), "{args:?}: {}", run.stderr);
            }
        }
    }
}

#[test]
fn a_stack_in_the_record_is_counted_without_request() {
    let path = file(&trace());
    let run = run(&["info", "--format", "json", path.to_str().unwrap()]);
    let info: Value = serde_json::from_str(&run.stdout).unwrap();
    let events = info["events"].as_array().unwrap();
    let order = events.iter().find(|e| e["provider"] == "My-Source");
    assert_eq!(order.unwrap()["stacks"], 1);
}

#[test]
fn a_process_is_meant_only_while_it_runs() {
    let mut etl = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    let process = Process {
        pid: 100,
        image: "app.exe",
        ..Process::default()
    };
    etl.process(At::ms(10), Op::Start, &process).unwrap();
    etl.thread(At::ms(10), Op::Start, 100, 7).unwrap();
    for ms in 11..20 {
        etl.sample(At::ms(ms), 0x1_4000_0010, 7).unwrap();
    }
    etl.process(At::ms(20), Op::Stop, &process).unwrap();
    let path = file(&etl.finish().unwrap());
    let path = path.to_str().unwrap();
    for command in [
        &["stacks", path][..],
        &["events", path],
        &["methods", path],
        &["explain", path, "0x1"],
        &["symbolize", "--trace", path, "0x1"],
    ] {
        for (at, there) in [("5ms", false), ("15ms", true), ("25ms", false)] {
            let pid = format!("100@{at}");
            let mut args = command.to_vec();
            args.extend(["--pid", &pid]);
            let run = run(&args);
            assert_eq!(run.status == 0, there, "{args:?}: {}", run.stderr);
            assert!(
                there || run.stderr.contains("app 0.010000s..0.020000s"),
                "{args:?}: {}",
                run.stderr
            );
        }
    }
}

#[test]
fn the_time_selects_the_process_of_a_reused_id() {
    let mut etl = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    for (image, from, own, shared) in [
        ("alpha.exe", 10, 0x40_0000, "first.dll"),
        ("gamma.exe", 30, 0x70_0000, "second.dll"),
    ] {
        let process = Process {
            pid: 100,
            image,
            ..Process::default()
        };
        etl.process(At::ms(from), Op::Start, &process).unwrap();
        let own = [(image, own), (shared, 0x90_0000)];
        for (name, base) in own {
            let image = Image {
                base,
                size: 0x2000,
                pid: 100,
                path: name,
                ..Image::default()
            };
            etl.image(At::ms(from + 1), Op::Load, &image).unwrap();
        }
        etl.process(At::ms(from + 10), Op::Stop, &process).unwrap();
    }
    let path = file(&etl.finish().unwrap());
    let path = path.to_str().unwrap();
    let explain = |more: &[&str]| run(&[&["explain", path, "0x5000", "--pid"], more].concat());
    for time in [&["100", "--time", "15ms"][..], &["100@15ms"]] {
        let run = explain(time);
        assert!(run.stdout.contains("in alpha (100)"), "{}", run.stdout);
    }
    assert!(
        explain(&["100", "--time", "35ms"])
            .stdout
            .contains("in gamma (100)")
    );
    let without = explain(&["100"]);
    assert_eq!((without.status, without.stdout.as_str()), (2, ""));
    let lives = "alpha 0.010000s..0.020000s";
    assert!(without.stderr.contains(lives), "{}", without.stderr);
    // Addresses are looked up in both.
    let symbolize = |more: &[&str]| {
        run(&[&["symbolize", "--trace", path, "--pid", "100"], more].concat()).stdout
    };
    assert_eq!(
        symbolize(&["0x401010"]),
        "0x401010 alpha!+0x1010 (NoSymbolFile)\n"
    );
    assert_eq!(
        symbolize(&["0x701010"]),
        "0x701010 gamma!+0x1010 (NoSymbolFile)\n"
    );
    assert_eq!(
        symbolize(&["gamma+0x10"]),
        "gamma+0x10 gamma!+0x10 (NoSymbolFile)\n"
    );
    let both = symbolize(&["0x901010"]);
    assert!(
        both.contains("Ambiguous: 2 answers at different times"),
        "{both}"
    );
    assert!(symbolize(&["0x5000"]).contains("NoCodeAtAddress"));
    let then = symbolize(&["--time", "35ms", "0x901010"]);
    assert_eq!(then, "0x901010 second!+0x1010 (NoSymbolFile)\n");
}

#[test]
fn one_of_several_processes_must_be_selected() {
    let mut etl = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    for pid in [100, 200] {
        let process = Process {
            pid,
            image: "app.exe",
            ..Process::default()
        };
        etl.process(At::ms(0), Op::DCStart, &process).unwrap();
    }
    let path = file(&etl.finish().unwrap());
    let path = path.to_str().unwrap();
    for args in [
        &["explain", path, "0x1"][..],
        &["symbolize", "--trace", path, "0x1"],
    ] {
        let run = run(args);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{args:?}");
        assert!(
            run.stderr.contains("select one with --pid") && run.stderr.contains("app (200)"),
            "{}",
            run.stderr
        );
    }
}

#[test]
fn what_was_lost_is_said_of_a_window_too() {
    let path = file(&trace_with(Options {
        events_lost: 3,
        ..Options::default()
    }));
    let run = run(&["events", "--to", "1us", path.to_str().unwrap()]);
    assert!(run.stderr.contains("3 events were lost"), "{}", run.stderr);
}

#[test]
fn a_cut_file_is_read_to_its_last_whole_buffer() {
    let trace = trace();
    let mut before = 0;
    for cut in (1..8).map(|i| trace.len() * i / 8 + 5) {
        let path = file(&trace[..cut]);
        let path = path.to_str().unwrap();
        let run = run(&["events", "--format", "jsonl", path]);
        assert_eq!(run.status, 0, "cut at {cut}: {}", run.stderr);
        assert!(run.stderr.contains("note:"), "cut at {cut}");
        let count = run.stdout.lines().count();
        assert!(count >= before, "cut at {cut}");
        before = count;
        let info = common::run(&["info", path]);
        assert!(
            info.stdout.starts_with("! CUT SHORT"),
            "cut at {cut}: {}",
            info.stdout
        );
    }
    assert!(before > 2_000);
    // An .etl through a pipe is kept in a temporary file.
    let piped = run_with_input(&["-q", "events", "--format", "jsonl", "-"], &trace);
    assert_eq!(piped.stdout.lines().count(), 4_003);
}

#[test]
fn unknown_events_are_counted_and_printed_in_hex() {
    let mut etl = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    etl.system(At::ms(1), 0x20, 5, 1, &[1, 2, 3, 4]).unwrap();
    // A message of WPP with a GUID and a time, and one without a GUID.
    let time = etl.raw(2_000_000).to_le_bytes();
    let message = [&[36, 0, 0, 0x90, 77, 0, 0x0a, 0], &PROVIDER[..], &time].concat();
    etl.raw_record(0, &[&message[..], b"abcd"].concat())
        .unwrap();
    etl.raw_record(0, &[10, 0, 0, 0x90, 78, 0, 0, 0, b'e', b'f'])
        .unwrap();
    etl.raw_record(0, &[6, 0, 0x0e, 0xc0, 7, 8]).unwrap();
    etl.raw_record(0, &[5, 0, 0x0f, 0xc0, 9]).unwrap();
    let path = file(&etl.finish().unwrap());
    let path = path.to_str().unwrap();
    let info = run(&["info", path]).stdout;
    let expected = [
        ("Windows Kernel/Group(0x20)/Event(5)", "01020304"),
        (
            "WPP/33323130-3534-3736-3839-616263646566/Message(77)",
            "61626364",
        ),
        ("WPP/Message(78)", "6566"),
        ("Unknown/Header(0x0e)", "0708"),
        ("Unknown/Header(0x0f)", "09"),
    ];
    for (label, payload) in expected {
        let line = format!("1  {label}");
        assert!(info.lines().any(|l| l.ends_with(&line)), "{label}: {info}");
        let found = events(&["--event", label, path]);
        assert_eq!(found.len(), 1, "{label}");
        assert_eq!(
            found[0]["fields"],
            serde_json::json!({ "Payload": payload }),
            "{label}"
        );
    }
    assert_eq!(events(&[path]).len(), 1 + expected.len());
}

#[test]
fn several_files_start_with_the_earliest() {
    let options = Options::default();
    let later = Options {
        start_raw: options.start_raw + 100 * options.perf_freq as i64,
        start_time: options.start_time + 100 * 10_000_000,
        ..options.clone()
    };
    let [one, two] = [options, later].map(|options| {
        let mut etl = EtlWriter::new(Vec::new(), options).unwrap();
        etl.sample(At::ms(1), 0x1000, 20).unwrap();
        file(&etl.finish().unwrap())
    });
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());
    let start = |files: &[&str]| {
        let mut args = vec!["info", "--format", "json"];
        args.extend(files);
        json_lines(&args)[0]["start"].clone()
    };
    assert_ne!(start(&[one]), start(&[two]));
    assert_eq!(start(&[two, one]), start(&[one]));
    assert_eq!(start(&[one, two]), start(&[one]));
}

#[test]
fn damage_and_loss_are_reported() {
    let options = Options {
        end_ns: Some(4_000_000_000),
        ..Options::default()
    };
    let mut etl = EtlWriter::new(Vec::new(), options).unwrap();
    etl.flag_buffer(0, 2);
    etl.sample(At::us(-5), 0x1000, 20).unwrap();
    // The second part is logged after its event stopped waiting; no event waited for a stack at the
    // third part's time.
    etl.sample(At::ms(10), 0x1000, 20).unwrap();
    etl.sample(At::ms(3_000), 0x2000, 20).unwrap();
    for event in [3_000, 10, 2_999] {
        let stack = Stack {
            event: At::ms(event),
            pid: 10,
            tid: 20,
            addresses: &[0x2000, 0x3000],
        };
        etl.stack(At::ms(3_001), &stack).unwrap();
    }
    etl.flush(0).unwrap();
    etl.flag_buffer(0, 4);
    etl.sample(At::ms(3_002), 0x2000, 20).unwrap();
    etl.sample(At::ms(3_001), 0x2000, 20).unwrap();
    let mut trace = etl.finish().unwrap();
    let end = trace.len();
    trace.extend([0x11; 64]);
    let path = file(&trace);
    let info = run(&["info", path.to_str().unwrap()]).stdout;
    for note in [
        "1 buffers are marked: events around them were lost",
        "1 buffers are marked: a buffer before them was lost",
        "1 parts of stacks came more than 2 s after their event and were skipped",
        "1 records have times before the start or long after the end, and were moved there",
        "1 buffers had records out of time order, which were sorted",
    ] {
        assert!(info.contains(&format!("  {note}\n")), "{note}: {info}");
    }
    assert!(!info.contains("order of time\n"), "{info}");
    let cut = format!("the trace is cut short at byte {end}: 64 bytes");
    assert!(info.contains(&cut), "{info}");
    // Garbage between buffers is not at the end of the file.
    let garbage = vec![0x11; 64 << 10];
    let (before, after) = trace[..end].split_at(buffers(&trace)[0].len());
    let path = file(&[before, &garbage, after].concat());
    let info = run(&["info", path.to_str().unwrap()]).stdout;
    let note = "1 part of 65536 bytes was left out: no block begins here";
    assert!(info.contains(note), "{info}");
    assert!(!info.contains("CUT SHORT"), "{info}");
    let row = "65,536  no block begins here\n";
    assert!(info.contains(row), "{info}");
    let json = run(&["info", "--format", "json", path.to_str().unwrap()]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let gap = &json["gaps"][0];
    assert_eq!(gap["offset"], before.len());
    assert_eq!(gap["bytes"], 64 << 10);
    assert_eq!(gap["cause"], "no_block");
    assert_eq!(json["gaps"].as_array().unwrap().len(), 1);
}
