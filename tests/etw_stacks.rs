//! Stacks of ETW samples and events, assembled from their parts, from the writer through the reader
//! and the engine.

mod etw;

use chronosym::{EventSelector, Filter, SampleSelection};
use chronosym_support::etl::{
    At, CLR_RUNTIME, EtlWriter, Event, Op, Options as FileOptions, Process, StackMode, guid,
    stack_item,
};
use chronosym_support::payload::{Method, clr_stack_walk};
use etw::{
    APP, KERNEL, PID, TID, Writer, events, image, samples, samples_that, stack, timeline,
    timeline_of, with_process,
};

#[test]
fn kernel_frames_are_called_from_user_frames() {
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
    // One number identifies a kernel part and a user part at the same time, and has a new meaning
    // each time.
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
    // The last definitions are in the rundown, much later.
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
    let (timeline, diagnostics) = timeline_of(&[file], SampleSelection::Profilers);
    assert_eq!(
        samples(&timeline),
        [
            "1 app 7 app!+0x100;ntoskrnl!+0x1;ntoskrnl!+0x100",
            "2 app 7 app!+0x200;ntoskrnl!+0x1;ntoskrnl!+0x200",
            "3 app 7 app!+0x1;app!+0x300",
            // Without a definition, the sample's instruction pointer remains.
            "4 app 7 app!+0x400",
        ]
    );
    assert_eq!(diagnostics.list[0].text, "1 stack keys were never defined");
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
    // Processor 3's buffers are first in the file, although its records are the latest; parts are
    // on other processors.
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
fn idle_is_excluded_but_not_code_that_runs_on_an_idle_processor() {
    let mut w = with_process(FileOptions::default());
    w.process(At::ns(2), Op::DCStart, &Process::default())
        .unwrap();
    w.sample_with(At::ms(1), KERNEL + 0x10, 0, 0).unwrap();
    w.sample_with(At::ms(2), KERNEL + 0x20, 0, 1).unwrap();
    w.sample_with(At::ms(3), KERNEL + 0x30, 0, 2).unwrap();
    // A priority alone is not an interrupt.
    w.sample_with(At::ms(4), KERNEL + 0x40, 0, 0x28).unwrap();
    let timeline = timeline(w);
    assert_eq!(
        samples(&timeline),
        ["2 Idle 0 ntoskrnl!+0x20", "3 Idle 0 ntoskrnl!+0x30"]
    );
    let mut with_idle = Filter::default();
    with_idle.idle = true;
    assert_eq!(samples_that(&timeline, &with_idle).len(), 4);
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
    // This stack belongs to an event that was not requested, not to the load before it.
    load(&mut w, 5, TID, 141);
    load(&mut w, 6, TID, 142);
    walked(&mut w, 7, TID, APP + 0x31);
    let trace = w.finish().unwrap();
    let selector = EventSelector::parse("Microsoft-Windows-DotNETRuntime/141").unwrap();
    let selection = SampleSelection::Events(vec![selector]);
    let (timeline, _) = timeline_of(std::slice::from_ref(&trace), selection);
    assert_eq!(
        samples(&timeline),
        ["1 app 7 app!+0x11", "2 app 8 app!+0x21"]
    );
    // They are counted whether they are wanted or not.
    let (unwanted, _) = timeline_of(&[trace], SampleSelection::Profilers);
    for timeline in [timeline, unwanted] {
        let stacks = |id| {
            let mut types = timeline.event_types().iter();
            types.find(|t| t.schema.id() == Some(id)).map(|t| t.stacks)
        };
        assert_eq!((stacks(141), stacks(142)), (Some(2), Some(1)));
    }
}

#[test]
fn context_switches_have_the_stack_of_the_resuming_thread() {
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
    // The thread may have left the kernel and entered it again: its next user part belongs to this
    // sample only.
    w.sample(At::ms(2), KERNEL + 0x20, TID).unwrap();
    stack(&mut w, At::us(2_010), At::ms(2), TID, &[KERNEL + 0x20]);
    stack(&mut w, At::us(2_020), At::ms(2), TID, &[APP + 0x31]);
    assert_eq!(
        samples(&timeline(w)),
        ["1 app 7 ntoskrnl!+0x10", "2 app 7 app!+0x31;ntoskrnl!+0x20",]
    );
}

#[test]
fn the_instruction_pointer_replaces_a_missing_kernel_part() {
    let mut w = with_process(FileOptions::default());
    // The kernel's part is lost.
    w.sample(At::ms(1), KERNEL + 0x10, TID).unwrap();
    stack(&mut w, At::us(1_010), At::ms(1), TID, &[APP + 0x31]);
    // Its key is never defined; the user's is before the sample is given up, …
    let keys = |w: &mut Writer, ms: i64| {
        w.sample(At::ms(ms), KERNEL + 0x20, TID).unwrap();
        for (mode, key) in [(StackMode::Kernel, 6), (StackMode::User, 7)] {
            let at = At::us(ms * 1_000 + 10);
            w.stack_key(at, mode, At::ms(ms), PID, TID, key).unwrap();
        }
    };
    keys(&mut w, 2);
    w.stack_definition(At::ms(3), 35, 7, &[APP + 0x41]).unwrap();
    // … or after.
    keys(&mut w, 4);
    w.sample(At::ms(3_000), APP + 0x50, TID).unwrap();
    w.stack_definition(At::ms(3_001), 35, 7, &[APP + 0x61])
        .unwrap();
    // The user part of a thread in user mode is complete.
    w.sample(At::ms(3_002), APP + 0x70, TID).unwrap();
    stack(
        &mut w,
        At::us(3_002_010),
        At::ms(3_002),
        TID,
        &[APP + 0x71, APP + 0x81],
    );
    assert_eq!(
        samples(&timeline(w)),
        [
            "1 app 7 app!+0x31;ntoskrnl!+0x10",
            "2 app 7 app!+0x41;ntoskrnl!+0x20",
            "4 app 7 app!+0x61;ntoskrnl!+0x20",
            "3000 app 7 app!+0x50",
            "3002 app 7 app!+0x81;app!+0x71",
        ]
    );
}

#[test]
fn the_definition_of_a_user_part_does_not_define_a_kernel_part() {
    let mut w = with_process(FileOptions::default());
    w.thread(At::ns(2), Op::DCStart, 200, 8).unwrap();
    let reference = |w: &mut Writer, ms: i64| {
        w.sample(At::ms(ms), KERNEL + 0x10, TID).unwrap();
        let at = At::us(ms * 1_000 + 10);
        w.stack_key(at, StackMode::Kernel, At::ms(ms), PID, TID, 5)
            .unwrap();
    };
    // The user definition has the key of another thread's event, which was not requested.
    reference(&mut w, 1);
    w.cswitch(At::ms(2), 8, 0).unwrap();
    w.stack_key(At::us(2_010), StackMode::User, At::ms(2), 200, 8, 5)
        .unwrap();
    w.stack_definition(At::ms(3), 35, 5, &[APP + 0x31]).unwrap();
    w.stack_definition(At::ms(4), 35, 5, &[KERNEL + 0x10, KERNEL + 0x21])
        .unwrap();
    // The kernel's definition is lost.
    reference(&mut w, 5);
    w.stack_definition(At::ms(6), 35, 5, &[APP + 0x31]).unwrap();
    let file = w.finish().unwrap();
    let (timeline, diagnostics) = timeline_of(&[file], SampleSelection::Profilers);
    assert_eq!(
        samples(&timeline),
        [
            "1 app 7 ntoskrnl!+0x21;ntoskrnl!+0x10",
            "5 app 7 ntoskrnl!+0x10"
        ]
    );
    assert_eq!(diagnostics.list[0].text, "1 stack keys were never defined");
}

#[test]
fn key_in_an_event_is_one_of_either_part() {
    let provider = guid(0x1234_5678, 1, 2, 0x0102_0304_0506_0708);
    let mut w = with_process(FileOptions::default());
    for (ms, key) in [(1, 5_u64), (2, 6)] {
        let item = [0_u64.to_le_bytes(), key.to_le_bytes()].concat();
        let event = Event {
            provider,
            id: 5,
            extended: &[(0x12, &item)],
            ..Event::default()
        };
        w.event(At::ms(ms).pid(PID).tid(TID), &event).unwrap();
    }
    w.stack_definition(At::ms(3), 35, 5, &[KERNEL + 0x11])
        .unwrap();
    w.stack_definition(At::ms(3), 35, 6, &[APP + 0x21]).unwrap();
    let timeline = events(w, "12345678-0001-0002-0102-030405060708/5");
    assert_eq!(
        samples(&timeline),
        ["1 app 7 ntoskrnl!+0x11", "2 app 7 app!+0x21"]
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
