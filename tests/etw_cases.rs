//! Cases that no real trace at hand has: made by the writer, read by the reader, answered by the engine.

use chronosym::source::etl::{EtlReport, read};
use chronosym::{
    Certainty, EventSelector, Filter, NameReason, Options, Position, Resolver, SampleSelection,
    Session, Timeline,
};
use chronosym_etl::EtlReader;
use chronosym_support::etl::{
    At, CLR_RUNDOWN, CLR_RUNTIME, EtlWriter, Event, Image, Op, Options as FileOptions, Process,
    Stack, StackMode, buffers, guid, stack_item, utf16,
};
use chronosym_support::payload::{Method, clr_stack_walk};

type Writer = EtlWriter<Vec<u8>>;

const PID: u32 = 100;
const TID: u32 = 7;
const KERNEL: u64 = 0xffff_f800_0000_0000;
const APP: u64 = 0x1_4000_0000;

fn writer(options: FileOptions) -> Writer {
    let mut w = EtlWriter::new(Vec::new(), options).unwrap();
    let kernel = if w.options().wide {
        KERNEL
    } else {
        0x8280_0000
    };
    image(&mut w, At::ns(0), Op::DCStart, kernel, 0, "ntoskrnl.exe");
    w
}

/// A trace with one process, one thread and one image.
fn with_process(options: FileOptions) -> Writer {
    let mut w = writer(options);
    let process = Process {
        pid: PID,
        image: "app.exe",
        command_line: "app.exe --fast",
        ..Process::default()
    };
    w.process(At::ns(1), Op::DCStart, &process).unwrap();
    w.thread(At::ns(1), Op::DCStart, PID, TID).unwrap();
    let base = if w.options().wide { APP } else { 0x40_0000 };
    image(&mut w, At::ns(1), Op::DCStart, base, PID, "app.exe");
    w
}

fn image(w: &mut Writer, at: At, op: Op, base: u64, pid: u32, name: &str) {
    let path = format!(r"\Device\HarddiskVolume2\bin\{name}");
    let image = Image {
        base,
        size: 0x1_0000,
        pid,
        path: &path,
        ..Image::default()
    };
    w.image(at, op, &image).unwrap();
}

fn stack(w: &mut Writer, at: At, event: At, tid: u32, addresses: &[u64]) {
    let stack = Stack {
        event,
        pid: PID,
        tid,
        addresses,
    };
    w.stack(at, &stack).unwrap();
}

/// A sample of the one thread and its stack, logged a little later.
fn sampled(w: &mut Writer, at: At, addresses: &[u64]) {
    w.sample(at, addresses[0], TID).unwrap();
    let later = At::ns(at.ns + 1_000).cpu(at.cpu);
    stack(w, later, at, TID, addresses);
}

fn method(w: &mut Writer, at: At, id: u16, start: u64, name: &str) {
    let method = Method {
        id: 0x7000,
        module: 0x9000,
        start,
        size: 0x100,
        token: 0x0600_0001,
        flags: 8,
        names: Some(("Type", name, "void ()")),
        ..Method::default()
    };
    let at = at.pid(PID).tid(TID);
    w.clr(at, CLR_RUNTIME, id, 1, &method.encode(1), &[])
        .unwrap();
}

fn timeline_of(files: &[Vec<u8>], selection: SampleSelection) -> (Timeline, EtlReport) {
    let readers = files.iter().map(|f| EtlReader::open(f.as_slice()).unwrap());
    let reader = EtlReader::merge(readers.collect()).unwrap();
    let mut session = Session::new(Options { samples: selection });
    let report = read(reader, &mut session);
    (session.finish(), report)
}

fn timeline(w: Writer) -> Timeline {
    timeline_of(&[w.finish().unwrap()], SampleSelection::Profilers).0
}

fn events(w: Writer, selector: &str) -> Timeline {
    let selector = EventSelector::parse(selector).unwrap();
    let selection = SampleSelection::Events(vec![selector]);
    timeline_of(&[w.finish().unwrap()], selection).0
}

/// Every sample: ms, process, thread, frames from the outermost to the innermost.
fn samples(timeline: &Timeline) -> Vec<String> {
    samples_that(timeline, &Filter::default())
}

fn samples_that(timeline: &Timeline, filter: &Filter) -> Vec<String> {
    let mut resolver = Resolver::new(timeline, None);
    let mut all = Vec::new();
    timeline.for_each_sample(filter, |class, time| {
        let thread = timeline.thread_view(class.thread);
        let process = timeline.process_view(thread.process);
        let (stack, _) = resolver.resolve(class, time);
        let mut frames: Vec<String> = resolver
            .stack(stack)
            .map(|f| resolver.frame(f).label())
            .collect();
        frames.reverse();
        all.push(format!(
            "{} {} {} {}",
            time / 1_000_000,
            process.name.unwrap_or("?"),
            thread.tid,
            frames.join(";")
        ));
    });
    all
}

#[test]
fn kernel_part_stands_on_the_user_part() {
    let mut w = with_process(FileOptions::default());
    w.sample(At::ms(1), KERNEL + 0x10, TID).unwrap();
    stack(
        &mut w,
        At::us(1_010),
        At::ms(1),
        TID,
        &[KERNEL + 0x10, KERNEL + 0x21],
    );
    stack(
        &mut w,
        At::us(1_020),
        At::ms(1),
        TID,
        &[APP + 0x31, APP + 0x41],
    );
    assert_eq!(
        samples(&timeline(w)),
        ["1 app 7 app!+0x41;app!+0x31;ntoskrnl!+0x21;ntoskrnl!+0x10"]
    );
}

#[test]
fn keys_are_defined_after_their_use_and_used_again() {
    let mut w = with_process(FileOptions::default());
    // One number stands for a kernel part and for a user part at once, and means something else each time.
    for (ms, offset) in [(1, 0x100), (2, 0x200)] {
        w.sample(At::ms(ms), KERNEL + offset, TID).unwrap();
        let at = At::us(ms * 1_000 + 10);
        for mode in [StackMode::Kernel, StackMode::User] {
            w.stack_key(at, mode, At::ms(ms), PID, TID, 5).unwrap();
        }
        let at = At::us(ms * 1_000 + 500);
        w.stack_definition(at, 35, 5, &[APP + offset]).unwrap();
        let kernel = [KERNEL + offset, KERNEL + 1];
        w.stack_definition(at, 35, 5, &kernel).unwrap();
    }
    // The last definitions come with the rundown, long after.
    w.sample(At::ms(3), APP + 0x300, TID).unwrap();
    let at = At::us(3_010);
    w.stack_key(at, StackMode::User, At::ms(3), PID, TID, 5)
        .unwrap();
    w.sample(At::ms(4), APP + 0x400, TID).unwrap();
    let at = At::us(4_010);
    w.stack_key(at, StackMode::User, At::ms(4), PID, TID, 6)
        .unwrap();
    w.stack_definition(At::ms(9_000), 36, 5, &[APP + 0x300, APP + 1])
        .unwrap();
    let file = w.finish().unwrap();
    let (timeline, report) = timeline_of(&[file], SampleSelection::Profilers);
    assert_eq!(
        samples(&timeline),
        [
            "1 app 7 app!+0x100;ntoskrnl!+0x1;ntoskrnl!+0x100",
            "2 app 7 app!+0x200;ntoskrnl!+0x1;ntoskrnl!+0x200",
            "3 app 7 app!+0x1;app!+0x300",
            // Without a definition there is still the place of the sample.
            "4 app 7 app!+0x400",
        ]
    );
    assert_eq!(report.undefined_stack_keys, 1);
}

#[test]
fn samples_of_one_stack_are_one_class_whatever_keys_they_came_by() {
    let mut w = with_process(FileOptions::default());
    for ms in 1..=100 {
        w.sample(At::ms(ms), APP + 0x10, TID).unwrap();
        let key = ms as u64 % 3;
        w.stack_key(
            At::us(ms * 1_000 + 1),
            StackMode::User,
            At::ms(ms),
            PID,
            TID,
            key,
        )
        .unwrap();
        w.stack_definition(At::us(ms * 1_000 + 2), 35, key, &[APP + 0x10, APP + 0x21])
            .unwrap();
    }
    let timeline = timeline(w);
    assert_eq!(timeline.samples().len(), 100);
    assert_eq!(timeline.samples().classes().len(), 1);
}

#[test]
fn event_whose_only_key_is_never_defined_has_no_stack() {
    let mut w = with_process(FileOptions::default());
    for ms in [1, 2] {
        w.cswitch(At::ms(ms), TID, 0).unwrap();
        let at = At::us(ms * 1_000 + 10);
        w.stack_key(at, StackMode::User, At::ms(ms), PID, TID, ms as u64)
            .unwrap();
    }
    w.stack_definition(At::ms(3), 36, 2, &[APP + 0x10]).unwrap();
    let timeline = events(w, "Kernel/CSwitch");
    assert_eq!(samples(&timeline), ["2 app 7 app!+0x10"]);
    assert_eq!(timeline.samples().len(), 1);
}

#[test]
fn image_in_place_of_another_at_the_same_base() {
    // Case E: TraceEvent gives samples in the second image to the first one.
    let base = 0x7ff0_0000_0000;
    let mut w = with_process(FileOptions::default());
    sampled(&mut w, At::ms(1), &[base + 0x10]);
    image(&mut w, At::ms(2), Op::Load, base, PID, "first.dll");
    sampled(&mut w, At::ms(3), &[base + 0x10]);
    image(&mut w, At::ms(4), Op::Unload, base, PID, "first.dll");
    sampled(&mut w, At::ms(5), &[base + 0x10]);
    image(&mut w, At::ms(6), Op::Load, base, PID, "second.dll");
    sampled(&mut w, At::ms(7), &[base + 0x10]);
    // Its unload event is lost.
    image(&mut w, At::ms(8), Op::Load, base, PID, "third.dll");
    sampled(&mut w, At::ms(9), &[base + 0x10]);
    let timeline = timeline(w);
    assert_eq!(
        samples(&timeline),
        [
            "1 app 7 0x7ff000000010",
            "3 app 7 first!+0x10",
            "5 app 7 0x7ff000000010",
            "7 app 7 second!+0x10",
            "9 app 7 third!+0x10",
        ]
    );
    let process = timeline.find_process(PID, None).unwrap();
    let reason = |ms: u64| {
        let mut resolver = Resolver::new(&timeline, None);
        let mut of = Vec::new();
        timeline.for_each_sample(&Filter::default(), |class, time| {
            if time / 1_000_000 == ms {
                let (stack, _) =
                    resolver.resolve_stack(process, class.stack, time, Position::Exact);
                of.push(resolver.frame(resolver.leaf(stack)).name_reason);
            }
        });
        of
    };
    assert_eq!(reason(1), [Some(NameReason::BeforeFirstLoad)]);
    assert_eq!(reason(5), [Some(NameReason::AfterUnload)]);
}

#[test]
fn images_that_only_a_rundown_lists_were_there_all_along() {
    let mut w = with_process(FileOptions::default());
    sampled(&mut w, At::ms(1), &[APP + 0x10]);
    sampled(&mut w, At::ms(2), &[0x7ff0_0000_0010]);
    sampled(&mut w, At::ms(3), &[KERNEL + 0x20_0010]);
    image(
        &mut w,
        At::ms(4),
        Op::DCStop,
        0x7ff0_0000_0000,
        PID,
        "late.dll",
    );
    image(
        &mut w,
        At::ms(4),
        Op::DCStop,
        KERNEL + 0x20_0000,
        4,
        "driver.sys",
    );
    assert_eq!(
        samples(&timeline(w)),
        [
            "1 app 7 app!+0x10",
            "2 app 7 late!+0x10",
            "3 app 7 driver!+0x10"
        ]
    );
}

#[test]
fn image_over_jitted_code_closes_it() {
    let base = 0x7ff0_0000_0000;
    let mut w = with_process(FileOptions::default());
    method(&mut w, At::ms(1), 143, base + 0x100, "Jitted");
    sampled(&mut w, At::ms(2), &[base + 0x110]);
    image(&mut w, At::ms(3), Op::Load, base, PID, "over.dll");
    sampled(&mut w, At::ms(4), &[base + 0x110]);
    assert_eq!(
        samples(&timeline(w)),
        ["2 app 7 Type.Jitted", "4 app 7 over!+0x110"]
    );
}

/// Identity of images, told before the image event, after it, or by both halves at once.
fn identities(before: bool) {
    let signature = guid(0x1111_2222, 0x3333, 0x4444, 0x5555_6666_7777_8888);
    let mut w = with_process(FileOptions::default());
    let base = 0x7ff0_0000_0000;
    let at = At::ms(1).pid(PID);
    let tell = |w: &mut Writer, pid: u32| {
        let at = At::ms(1).pid(pid);
        w.image_id(at, base, 0x1_0000, 0x5f00_0001, "lib.dll")
            .unwrap();
        w.rsds(at, base, PID, signature, 3, r"c:\build\lib.pdb")
            .unwrap();
    };
    // Most ImageID events say process 0.
    if before {
        tell(&mut w, 0);
    }
    image(&mut w, at, Op::Load, base, PID, "lib.dll");
    if !before {
        tell(&mut w, 0);
    }
    // Another image at the same base without an identity of its own, and another process's image there.
    image(&mut w, At::ms(2), Op::Unload, base, PID, "lib.dll");
    image(&mut w, At::ms(3), Op::Load, base, PID, "bare.dll");
    image(&mut w, At::ms(3), Op::Load, base, PID + 1, "lib.dll");
    let timeline = timeline(w);
    let told = |pid: u32| {
        let process = timeline.find_process(pid, None).unwrap();
        let mut images: Vec<_> = timeline
            .images(process)
            .filter(|i| i.base == base)
            .map(|i| {
                let pdb = i.pdb.map(|p| (p.guid.0, p.age, p.path.to_string()));
                (i.name, i.timestamp, pdb)
            })
            .collect();
        images.sort();
        images
    };
    let pdb = Some((signature, 3, r"c:\build\lib.pdb".to_owned()));
    assert_eq!(
        told(PID),
        [("bare", None, None), ("lib", Some(0x5f00_0001), pdb)]
    );
    assert_eq!(told(PID + 1), [("lib", None, None)]);
}

#[test]
fn identity_before_the_image_event() {
    identities(true);
}

#[test]
fn identity_after_the_image_event() {
    identities(false);
}

#[test]
fn pid_used_again_is_another_process() {
    let mut w = with_process(FileOptions::default());
    sampled(&mut w, At::ms(1), &[APP + 0x10]);
    w.process(
        At::ms(2),
        Op::Stop,
        &Process {
            pid: PID,
            image: "app.exe",
            ..Process::default()
        },
    )
    .unwrap();
    w.thread(At::ms(2), Op::Stop, PID, TID).unwrap();
    let other = Process {
        pid: PID,
        image: "other.exe",
        ..Process::default()
    };
    w.process(At::ms(3), Op::Start, &other).unwrap();
    w.thread(At::ms(3), Op::Start, PID, TID).unwrap();
    sampled(&mut w, At::us(3_100), &[APP + 0x10]);
    image(&mut w, At::ms(4), Op::Load, APP, PID, "other.exe");
    sampled(&mut w, At::ms(5), &[APP + 0x10]);
    let timeline = timeline(w);
    assert_eq!(
        samples(&timeline),
        [
            "1 app 7 app!+0x10",
            "3 other 7 0x140000010",
            "5 other 7 other!+0x10",
        ]
    );
    assert_eq!(timeline.processes().filter(|p| p.pid == PID).count(), 2);
}

#[test]
fn tid_used_again_is_another_processs_thread() {
    let mut w = with_process(FileOptions::default());
    // No stack: the process is that of the thread at the time.
    w.sample(At::ms(1), APP + 0x10, TID).unwrap();
    w.thread(At::ms(2), Op::Stop, PID, TID).unwrap();
    let other = Process {
        pid: 200,
        image: "other.exe",
        ..Process::default()
    };
    w.process(At::ms(3), Op::DCStart, &other).unwrap();
    w.thread(At::ms(4), Op::Start, 200, TID).unwrap();
    w.sample(At::ms(5), APP + 0x10, TID).unwrap();
    assert_eq!(
        samples(&timeline(w)),
        ["1 app 7 app!+0x10", "5 other 7 0x140000010"]
    );
}

#[test]
fn thread_that_only_the_end_lists_was_its_processs_all_along() {
    let mut w = with_process(FileOptions::default());
    for tid in [8, 9, 10] {
        w.sample(At::ms(1), APP + 0x10, tid).unwrap();
    }
    stack(
        &mut w,
        At::us(1_010),
        At::ms(1),
        10,
        &[APP + 0x10, APP + 0x21],
    );
    // Started later: the sample before was another thread's.
    w.thread(At::ms(2), Op::Start, PID, 9).unwrap();
    w.thread(At::ms(3), Op::DCStop, PID, 8).unwrap();
    w.thread(At::ms(3), Op::DCStop, PID, 9).unwrap();
    assert_eq!(
        samples(&timeline(w)),
        [
            "1 app 8 app!+0x10",
            "1 ? 9 0x140000010",
            "1 app 10 app!+0x21;app!+0x10",
        ]
    );
}

#[test]
fn wow64_frames_stay_together() {
    let mut w = with_process(FileOptions::default());
    image(
        &mut w,
        At::ns(2),
        Op::DCStart,
        0x77c0_0000,
        PID,
        "wow64cpu.dll",
    );
    image(&mut w, At::ns(2), Op::DCStart, 0x40_0000, PID, "app32.exe");
    // A program that can use 4 GB has code where a 32-bit kernel would be.
    image(&mut w, At::ns(2), Op::DCStart, 0xc000_0000, PID, "high.dll");
    w.sample(At::ms(1), KERNEL + 0x10, TID).unwrap();
    stack(&mut w, At::us(1_010), At::ms(1), TID, &[KERNEL + 0x10]);
    stack(
        &mut w,
        At::us(1_020),
        At::ms(1),
        TID,
        &[0x77c0_0011, 0x40_0021, 0xc000_0031],
    );
    // A 32-bit stack in a record of a 32-bit process.
    let payload = Method {
        id: 1,
        start: 0x50_0000,
        size: 0x10,
        ..Method::default()
    }
    .encode(1);
    let item = stack_item(0, &[0x40_0041, 0xc000_0051], true);
    let event = Event {
        provider: CLR_RUNTIME,
        id: 141,
        version: 1,
        narrow: true,
        extended: &[(5, &item)],
        payload: &payload,
        ..Event::default()
    };
    w.event(At::ms(2).pid(PID).tid(TID), &event).unwrap();
    let file = w.finish().unwrap();
    let (cpu, _) = timeline_of(std::slice::from_ref(&file), SampleSelection::Profilers);
    assert_eq!(
        samples(&cpu),
        ["1 app 7 high!+0x31;app32!+0x21;wow64cpu!+0x11;ntoskrnl!+0x10"]
    );
    let loads = EventSelector::parse("Microsoft-Windows-DotNETRuntime/141").unwrap();
    let (loads, _) = timeline_of(&[file], SampleSelection::Events(vec![loads]));
    assert_eq!(samples(&loads), ["2 app 7 high!+0x51;app32!+0x41"]);
}

#[test]
fn three_gigabytes_of_user_addresses_on_32_bits() {
    let narrow = FileOptions {
        wide: false,
        ..FileOptions::default()
    };
    for told_late in [false, true] {
        let mut w = EtlWriter::new(Vec::new(), narrow.clone()).unwrap();
        let list = |w: &mut Writer, at: At, op: Op| {
            image(w, at, op, 0xc280_0000, 0, "ntoskrnl.exe");
            image(w, at, op, 0x9000_0000, PID, "high.dll");
        };
        if !told_late {
            list(&mut w, At::ns(1), Op::DCStart);
        }
        w.process(
            At::ns(1),
            Op::DCStart,
            &Process {
                pid: PID,
                image: "app.exe",
                ..Process::default()
            },
        )
        .unwrap();
        w.thread(At::ns(1), Op::DCStart, PID, TID).unwrap();
        w.sample(At::ms(1), 0xc280_0010, TID).unwrap();
        stack(&mut w, At::us(1_010), At::ms(1), TID, &[0xc280_0010]);
        stack(&mut w, At::us(1_020), At::ms(1), TID, &[0x9000_0011]);
        w.sample(At::ms(2), 0xc280_0010, TID).unwrap();
        w.stack_key(At::us(2_010), StackMode::Kernel, At::ms(2), PID, TID, 1)
            .unwrap();
        w.stack_key(At::us(2_020), StackMode::User, At::ms(2), PID, TID, 2)
            .unwrap();
        w.stack_definition(At::ms(3), 35, 2, &[0x9000_0011])
            .unwrap();
        w.stack_definition(At::ms(3), 35, 1, &[0xc280_0010])
            .unwrap();
        if told_late {
            list(&mut w, At::ms(9), Op::DCStop);
        }
        let expected = "app 7 high!+0x11;ntoskrnl!+0x10";
        assert_eq!(
            samples(&timeline(w)),
            [format!("1 {expected}"), format!("2 {expected}")],
            "kernel images told late: {told_late}"
        );
    }
}

#[test]
fn out_of_order_processors_and_parts_on_another_one() {
    let options = FileOptions {
        cpus: 4,
        buffer_size: 4096,
        ..FileOptions::default()
    };
    let mut w = with_process(options);
    // Processor 3's buffers come to the file first, though its records are the latest; parts come from other processors.
    for ms in (1..400).rev().step_by(7) {
        let at = At::ms(ms).cpu((ms % 4) as u16);
        w.flush((ms % 4) as u16).unwrap();
        w.sample(at, APP + ms as u64, TID).unwrap();
        let later = At::us(ms * 1_000 + 300).cpu(((ms + 1) % 4) as u16);
        w.flush(((ms + 1) % 4) as u16).unwrap();
        stack(&mut w, later, at, TID, &[APP + ms as u64, APP + 0x1001]);
    }
    let expected: Vec<_> = (1..400)
        .rev()
        .step_by(7)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .map(|ms| format!("{ms} app 7 app!+0x1001;app!+{ms:#x}"))
        .collect();
    assert_eq!(samples(&timeline(w)), expected);
}

#[test]
fn circular_file_keeps_the_youngest_lap() {
    let options = FileOptions {
        buffer_size: 4096,
        log_file_mode: 2,
        ..FileOptions::default()
    };
    let mut w = with_process(options);
    for ms in 1..400 {
        sampled(&mut w, At::ms(ms), &[APP + ms as u64, APP + 0x1001]);
    }
    let file = w.finish().unwrap();
    let all = buffers(&file);
    let (header, rest) = all.split_first().unwrap();
    // The last lap overwrote the first buffers but for the very first, where processes and images stand.
    let (setup, rest) = rest.split_first().unwrap();
    let (old, new) = rest.split_at(rest.len() / 2);
    let kept = &old[old.len() / 2..];
    let wrapped: Vec<u8> = [*header, *setup]
        .into_iter()
        .chain(new.iter().copied())
        .chain(kept.iter().copied())
        .flatten()
        .copied()
        .collect();
    let whole = samples(&timeline_of(std::slice::from_ref(&file), SampleSelection::Profilers).0);
    let found = samples(&timeline_of(&[wrapped], SampleSelection::Profilers).0);
    assert_eq!(whole.len(), 399);
    assert!((200..399).contains(&found.len()), "{}", found.len());
    // What is there is the same as in the whole file, but where the lap's edge cut a sample from its stack.
    let different = found.iter().filter(|s| !whole.contains(s)).count();
    assert!(different <= 2, "{different}");
}

#[test]
fn kernel_stands_in_every_process_and_the_systems_user_mode_in_none() {
    let mut w = with_process(FileOptions::default());
    image(
        &mut w,
        At::ns(2),
        Op::DCStart,
        KERNEL + 0x10_0000,
        4,
        "driver.sys",
    );
    image(
        &mut w,
        At::ns(2),
        Op::DCStart,
        0x7ffa_0000_0000,
        4,
        "ntdll.dll",
    );
    sampled(&mut w, At::ms(1), &[KERNEL + 0x10_0010]);
    sampled(&mut w, At::ms(2), &[0x7ffa_0000_0010]);
    assert_eq!(
        samples(&timeline(w)),
        ["1 app 7 driver!+0x10", "2 app 7 0x7ffa00000010"]
    );
}

#[test]
fn idle_is_left_out_but_not_what_runs_on_an_idle_processor() {
    let mut w = with_process(FileOptions::default());
    w.process(At::ns(2), Op::DCStart, &Process::default())
        .unwrap();
    w.sample_with(At::ms(1), KERNEL + 0x10, 0, 0).unwrap();
    w.sample_with(At::ms(2), KERNEL + 0x20, 0, 1).unwrap();
    w.sample_with(At::ms(3), KERNEL + 0x30, 0, 2).unwrap();
    // A priority alone is no interrupt.
    w.sample_with(At::ms(4), KERNEL + 0x40, 0, 0x28).unwrap();
    let timeline = timeline(w);
    assert_eq!(
        samples(&timeline),
        ["2 Idle 0 ntoskrnl!+0x20", "3 Idle 0 ntoskrnl!+0x30"]
    );
    let with_idle = Filter {
        idle: true,
        ..Filter::default()
    };
    assert_eq!(samples_that(&timeline, &with_idle).len(), 4);
}

#[test]
fn kernel_sessions_and_user_sessions_are_files_of_their_own() {
    let mut kernel = with_process(FileOptions::default());
    sampled(&mut kernel, At::ms(2), &[0x7ff0_0000_0010, APP + 0x11]);
    sampled(&mut kernel, At::ms(4), &[0x7ff0_0000_0010, APP + 0x11]);
    let mut user = EtlWriter::new(Vec::new(), FileOptions::default()).unwrap();
    method(&mut user, At::ms(1), 143, 0x7ff0_0000_0000, "Live");
    method(&mut user, At::ms(3), 144, 0x7ff0_0000_0000, "Live");
    let files = [kernel.finish().unwrap(), user.finish().unwrap()];
    for files in [files.clone(), [files[1].clone(), files[0].clone()]] {
        let (timeline, _) = timeline_of(&files, SampleSelection::Profilers);
        assert_eq!(
            samples(&timeline),
            [
                "2 app 7 app!+0x11;Type.Live",
                "4 app 7 app!+0x11;0x7ff000000010"
            ]
        );
    }
}

#[test]
fn lost_events_make_answers_less_sure() {
    for lost in [0, 3] {
        let mut w = with_process(FileOptions {
            events_lost: lost,
            ..FileOptions::default()
        });
        method(&mut w, At::ms(1), 143, 0x7ff0_0000_0000, "Method");
        sampled(&mut w, At::ms(2), &[0x7ff0_0000_0010]);
        sampled(&mut w, At::ms(3), &[0x7ff1_0000_0010]);
        let timeline = timeline(w);
        let mut resolver = Resolver::new(&timeline, None);
        let mut found = Vec::new();
        timeline.for_each_sample(&Filter::default(), |class, time| {
            let (stack, _) = resolver.resolve(class, time);
            let frame = resolver.frame(resolver.leaf(stack));
            found.push((frame.certainty, frame.name_reason));
        });
        let (certainty, reason) = if lost == 0 {
            (Certainty::Exact, NameReason::NoRundown)
        } else {
            (Certainty::Inferred, NameReason::EventsLost)
        };
        assert_eq!(found[0].0, Some(certainty), "{lost} lost");
        assert_eq!(found[1].1, Some(reason), "{lost} lost");
    }
}

#[test]
fn clr_stack_walk_belongs_to_the_event_before_it_on_its_thread() {
    let mut w = with_process(FileOptions::default());
    w.thread(At::ns(2), Op::DCStart, PID, 8).unwrap();
    let walk = |frame: u64| clr_stack_walk(1, 8, &[frame]);
    let load = |w: &mut Writer, ms: i64, tid: u32, id: u16| {
        let at = At::ms(ms).pid(PID).tid(tid);
        let start = 0x50_0000 + 0x100 * ms as u64;
        let method = Method {
            id: 1,
            start,
            size: 0x10,
            ..Method::default()
        };
        w.clr(at, CLR_RUNTIME, id, 1, &method.encode(1), &[])
            .unwrap();
    };
    let walked = |w: &mut Writer, ms: i64, tid: u32, frame: u64| {
        let at = At::ms(ms).pid(PID).tid(tid);
        w.clr(at, CLR_RUNTIME, 82, 0, &walk(frame), &[]).unwrap();
    };
    load(&mut w, 1, TID, 141);
    load(&mut w, 2, 8, 141);
    walked(&mut w, 3, TID, APP + 0x11);
    walked(&mut w, 4, 8, APP + 0x21);
    // This one is of an event that nobody asked for, not of the load before it.
    load(&mut w, 5, TID, 141);
    load(&mut w, 6, TID, 142);
    walked(&mut w, 7, TID, APP + 0x31);
    let timeline = events(w, "Microsoft-Windows-DotNETRuntime/141");
    assert_eq!(
        samples(&timeline),
        ["1 app 7 app!+0x11", "2 app 8 app!+0x21"]
    );
}

#[test]
fn context_switches_have_the_stack_of_the_thread_that_goes_on() {
    let mut w = with_process(FileOptions::default());
    w.cswitch(At::ms(1), TID, 99).unwrap();
    // Another event of the same time on another processor.
    w.cswitch(At::ms(1).cpu(0), 50, TID).unwrap();
    stack(&mut w, At::us(1_010), At::ms(1), TID, &[KERNEL + 0x11]);
    stack(&mut w, At::us(1_020), At::ms(1), TID, &[APP + 0x21]);
    let timeline = events(w, "Kernel/CSwitch");
    assert_eq!(samples(&timeline), ["1 app 7 app!+0x21;ntoskrnl!+0x11"]);
}

#[test]
fn kernel_part_without_a_user_part_stays_alone() {
    let mut w = with_process(FileOptions::default());
    w.sample(At::ms(1), KERNEL + 0x10, TID).unwrap();
    stack(&mut w, At::us(1_010), At::ms(1), TID, &[KERNEL + 0x10]);
    // The thread may have left the kernel and come back: its next user part is that of this sample only.
    w.sample(At::ms(2), KERNEL + 0x20, TID).unwrap();
    stack(&mut w, At::us(2_010), At::ms(2), TID, &[KERNEL + 0x20]);
    stack(&mut w, At::us(2_020), At::ms(2), TID, &[APP + 0x31]);
    assert_eq!(
        samples(&timeline(w)),
        ["1 app 7 ntoskrnl!+0x10", "2 app 7 app!+0x31;ntoskrnl!+0x20",]
    );
}

#[test]
fn other_half_of_an_events_stack_comes_by_its_match_id() {
    const KERNEL_EVENT_TRACING: [u8; 16] = guid(0xb675_ec37, 0xbdb6, 0x4648, 0xbc92_f3fd_c74d_3ca2);
    let provider = guid(0x1234_5678, 1, 2, 0x0102_0304_0506_0708);
    let mut w = with_process(FileOptions::default());
    let event = |w: &mut Writer, ms: i64, match_id: u64, frame: u64| {
        let item = stack_item(match_id, &[frame], false);
        let event = Event {
            provider,
            id: 5,
            extended: &[(6, &item)],
            ..Event::default()
        };
        w.event(At::ms(ms).pid(PID).tid(TID), &event).unwrap();
    };
    event(&mut w, 1, 77, KERNEL + 0x11);
    event(&mut w, 2, 78, KERNEL + 0x21);
    for (match_id, frame) in [(78, APP + 0x41), (77, APP + 0x31), (79, APP + 0x51)] {
        let item = stack_item(match_id, &[frame], false);
        let event = Event {
            provider: KERNEL_EVENT_TRACING,
            id: 18,
            opcode: 24,
            extended: &[(6, &item)],
            ..Event::default()
        };
        w.event(At::ms(3).pid(PID).tid(TID), &event).unwrap();
    }
    let timeline = events(w, "12345678-0001-0002-0102-030405060708/5");
    assert_eq!(
        samples(&timeline),
        [
            "1 app 7 app!+0x31;ntoskrnl!+0x11",
            "2 app 7 app!+0x41;ntoskrnl!+0x21"
        ]
    );
}

#[test]
fn sampling_interval_changes_with_time() {
    let mut w = with_process(FileOptions::default());
    w.sample_interval(At::us(1), 73, 10_000, 10_000).unwrap();
    w.sample_interval(At::ms(5), 72, 1_221, 10_000).unwrap();
    w.sample_interval(At::ms(9), 74, 0, 1_221).unwrap();
    let timeline = timeline(w);
    let facts = timeline.facts();
    assert_eq!(facts.sample_interval_ns, Some(1_000_000));
    assert_eq!(facts.sample_interval_at(4_999_999), Some(1_000_000));
    assert_eq!(facts.sample_interval_at(5_000_000), Some(122_100));
    assert_eq!(facts.sample_interval_at(9_500_000), Some(122_100));
}

#[test]
fn paths_are_those_that_programs_know() {
    let mut w = with_process(FileOptions::default());
    let at = At::ns(3);
    let paths = [
        (r"\Device\HarddiskVolume1\a.dll", r"D:\a.dll"),
        (
            r"\Device\HarddiskVolume10\b.dll",
            r"\Device\HarddiskVolume10\b.dll",
        ),
        (r"\SystemRoot\system32\c.dll", r"C:\Windows\system32\c.dll"),
        (r"\??\C:\d.dll", r"C:\d.dll"),
        (r"\Device\Mup\server\share\e.dll", r"\\server\share\e.dll"),
    ];
    for (i, (nt, _)) in paths.iter().enumerate() {
        let base = 0x7ff0_0000_0000 + 0x10_0000 * i as u64;
        let image = Image {
            base,
            size: 0x1000,
            pid: PID,
            path: nt,
            ..Image::default()
        };
        w.image(at, Op::Load, &image).unwrap();
    }
    // What volumes mean is told when the trace is merged, after all.
    const SYSTEM_CONFIG: [u8; 16] = guid(0x9b79_ee91, 0xb5fd, 0x41c0, 0xa243_4248_e266_e9d0);
    let mut folders = utf16(r"C:\Windows\system32");
    folders.extend(utf16(r"C:\Windows"));
    w.classic(At::ms(9), SYSTEM_CONFIG, 33, 0, &folders)
        .unwrap();
    w.volume_mapping(At::ms(9), r"\Device\HarddiskVolume1", "D:")
        .unwrap();
    let timeline = timeline(w);
    let process = timeline.find_process(PID, None).unwrap();
    let mut found: Vec<_> = timeline
        .images(process)
        .filter(|i| i.base >= 0x7ff0_0000_0000)
        .map(|i| (i.base, i.path.unwrap().to_owned()))
        .collect();
    found.sort();
    let found: Vec<_> = found.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(found, paths.map(|(_, dos)| dos));
}

#[test]
fn processes_have_names_and_command_lines() {
    let w = with_process(FileOptions::default());
    let timeline = timeline(w);
    let process = timeline.find_process(PID, None).unwrap();
    let view = timeline.process_view(process);
    assert_eq!(view.name, Some("app"));
    assert_eq!(view.command_line, Some("app.exe --fast"));
}

#[test]
fn rundown_only_methods_answer_samples_taken_before() {
    let mut w = with_process(FileOptions::default());
    sampled(&mut w, At::ms(1), &[0x7ff0_0000_0010]);
    let method = Method {
        id: 1,
        start: 0x7ff0_0000_0000,
        size: 0x100,
        token: 0x0600_0001,
        names: Some(("Type", "Old", "void ()")),
        ..Method::default()
    };
    let at = At::ms(9_000).pid(PID).tid(TID);
    w.clr(at, CLR_RUNDOWN, 144, 1, &method.encode(1), &[])
        .unwrap();
    assert_eq!(samples(&timeline(w)), ["1 app 7 Type.Old"]);
}

/// A manifest as an EventSource logs it, in pieces.
#[test]
fn event_source_manifest_names_events_that_came_before_it() {
    let provider = guid(0x0bad_cafe, 1, 2, 0x0102_0304_0506_0708);
    let xml = r#"<instrumentationManifest xmlns="http://schemas.microsoft.com/win/2004/08/events">
<instrumentation xmlns:xs="http://www.w3.org/2001/XMLSchema"><events>
<provider name="My-Source" guid="{0badcafe-0001-0002-0102-030405060708}" symbol="MySource">
<tasks><task name="Work" value="65531"/></tasks>
<events><event value="3" version="0" level="win:Informational" task="Work" template="WorkArgs"/></events>
<templates><template tid="WorkArgs"><data name="count" inType="win:Int32"/></template></templates>
</provider></events></instrumentation></instrumentationManifest>"#;
    let mut w = with_process(FileOptions::default());
    let at = At::ms(1).pid(PID).tid(TID);
    let event = |w: &mut Writer, id: u16, payload: &[u8]| {
        let event = Event {
            provider,
            id,
            payload,
            ..Event::default()
        };
        w.event(at, &event).unwrap();
    };
    event(&mut w, 3, &42u32.to_le_bytes());
    let (first, second) = xml.as_bytes().split_at(300);
    for (number, text) in [first, second].into_iter().enumerate() {
        let mut payload = vec![1, 1, 0, 0x5b, 2, 0, number as u8, 0];
        payload.extend_from_slice(text);
        event(&mut w, 0xfffe, &payload);
    }
    let timeline = timeline(w);
    let labels: Vec<_> = timeline.event_types().iter().map(|t| t.label()).collect();
    assert!(labels.iter().any(|l| l.contains("My-Source")), "{labels:?}");
    let known = timeline
        .event_types()
        .iter()
        .find(|t| t.schema.id() == Some(3) && &**t.schema.provider_name() == "My-Source");
    let fields = known.and_then(|t| t.schema.fields()).unwrap();
    assert_eq!(&*fields[0].name, "count");
}
