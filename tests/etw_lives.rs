//! Lifetimes of images, processes, threads and code in ETW traces, from the writer through the
//! reader and the engine.

mod etw;

use chronosym::{Certainty, Filter, NameReason, Position, Resolver, SampleSelection, When};
use chronosym_support::etl::{
    At, CLR_RUNDOWN, CLR_RUNTIME, EtlWriter, Event, Image, Op, Options as FileOptions, Process,
    buffers, guid, utf16,
};
use chronosym_support::payload::Method;
use etw::{
    APP, KERNEL, PID, TID, Writer, image, method, method_of, sampled, samples, stack, timeline,
    timeline_of, with_process,
};

/// An event of `Microsoft-Windows-Kernel-Process`.
fn kernel_process(w: &mut Writer, at: At, id: u16, version: u8, payload: &[u8]) {
    let event = Event {
        provider: guid(0x22fb2cd6, 0x0e7a, 0x422b, 0xa0c7_2fad1fd0e716),
        id,
        version,
        payload,
        ..Event::default()
    };
    w.event(at, &event).unwrap();
}

#[test]
fn the_hypercall_page_is_an_image_of_the_kernel() {
    const PAGE: u64 = 0xffff_f803_1234_5000;
    let image = guid(0x2cb1_5d1d, 0x5fc1, 0x11d2, 0xabe1_00a0_c911_f518);
    let mut w = with_process(FileOptions::default());
    w.classic(At::ms(2), image, 34, 2, &PAGE.to_le_bytes())
        .unwrap();
    let timeline = timeline(w);
    let process = timeline.process_of(PID, 5_000_000).expect("the process");
    let frame = |address| {
        let frames = timeline.frames(process, address, 1_000_000, Position::Exact, None);
        frames[0].module().map(str::to_owned)
    };
    assert_eq!(frame(PAGE + 0xfff).as_deref(), Some("[hypercall page]"));
    assert_eq!(frame(PAGE + 0x1000), None);
}

#[test]
fn processes_and_images_of_a_session_without_the_kernel_logger() {
    let name = utf16(r"\Device\HarddiskVolume2\bin\web.exe");
    let ids = |ids: &[u32]| {
        ids.iter()
            .flat_map(|id| id.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let start = [&ids(&[PID])[..], &[0; 8], &ids(&[1, 0]), &name].concat();
    // With a sequence number and a label of integrity.
    let label = [&[1, 1, 0, 0, 0, 0, 0, 16][..], &ids(&[0x3000])].concat();
    let newer = [
        &ids(&[PID])[..],
        &[0; 16],
        &ids(&[1]),
        &[0; 8],
        &ids(&[0, 0, 1, 0]),
    ]
    .concat();
    let newer = [&newer[..], &label, &name, &ids(&[1, 2]), &[0; 4]].concat();
    let words = |words: &[u64]| {
        words
            .iter()
            .flat_map(|it| it.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let image = [
        &words(&[APP, 0x1_0000])[..],
        &ids(&[PID, 1, 7]),
        &words(&[APP]),
        &name,
    ]
    .concat();
    for (id, version, start) in [(1, 0, &start), (15, 0, &start), (1, 3, &newer)] {
        let mut w = EtlWriter::new(Vec::new(), FileOptions::default()).unwrap();
        kernel_process(&mut w, At::ms(1), id, version, start);
        kernel_process(&mut w, At::ms(2), 5, 0, &image);
        kernel_process(&mut w, At::ms(8), 6, 0, &image);
        kernel_process(&mut w, At::ms(9), 2, 0, &ids(&[PID]));
        let timeline = timeline(w);
        let process = timeline.process_of(PID, 5_000_000).expect("the process");
        let view = timeline.process_view(process).expect("the process");
        assert_eq!(view.name, Some("web"));
        assert_eq!(view.end_ns, Some(9_000_000));
        let mut images = timeline.images(process);
        let image = images.next().expect("the image");
        assert_eq!((image.image.base, image.image.timestamp), (APP, Some(7)));
        assert_eq!(images.count(), 0);
        let frames = timeline.frames(process, APP + 0x10, 5_000_000, Position::Exact, None);
        assert_eq!(frames[0].module(), Some("web"));
    }
}

#[test]
fn an_image_replaces_another_at_the_same_base() {
    // Case E: TraceEvent attributes samples in the second image to the first.
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
                let (stack, _) = resolver
                    .resolve_stack(process, class.stack, When::At(time), Position::Exact)
                    .expect("a stack");
                of.push(resolver.frame(resolver.leaf(stack)).name().err());
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

// Rule 5.
#[test]
fn image_over_jitted_code_closes_it() {
    let base = 0x7ff0_0000_0000;
    // Whether its load was recorded, or a rundown listed it.
    for provider in [CLR_RUNTIME, CLR_RUNDOWN] {
        let mut w = with_process(FileOptions::default());
        method_of(&mut w, provider, At::ms(1), 143, base + 0x100, "Jitted");
        sampled(&mut w, At::ms(2), &[base + 0x110]);
        image(&mut w, At::ms(3), Op::Load, base, PID, "over.dll");
        sampled(&mut w, At::ms(4), &[base + 0x110]);
        assert_eq!(
            samples(&timeline(w)),
            ["2 app 7 Type.Jitted", "4 app 7 over!+0x110"]
        );
    }
}

/// The identity of an image, logged before the image event, after it, or by both halves.
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
    // Most ImageID events state process 0.
    if before {
        tell(&mut w, 0);
    }
    image(&mut w, at, Op::Load, base, PID, "lib.dll");
    if !before {
        tell(&mut w, 0);
    }
    // Another image at the same base without an identity of its own, and another process's image
    // there.
    image(&mut w, At::ms(2), Op::Unload, base, PID, "lib.dll");
    image(&mut w, At::ms(3), Op::Load, base, PID, "bare.dll");
    image(&mut w, At::ms(3), Op::Load, base, PID + 1, "lib.dll");
    let timeline = timeline(w);
    let told = |pid: u32| {
        let process = timeline.find_process(pid, None).unwrap();
        let mut images: Vec<_> = timeline
            .images(process)
            .filter(|i| i.image.base == base)
            .map(|i| {
                let pdb = i
                    .image
                    .pdb
                    .map(|p| (p.id.guid.0, p.id.age, p.path.to_string()));
                (i.name, i.image.timestamp, pdb)
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
    assert_eq!(
        timeline.processes().filter(|p| p.pid == Some(PID)).count(),
        2
    );
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
    // The last lap overwrote the first buffers except the very first, which describes processes and
    // images.
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
    // The remaining samples equal those of the whole file, except where the lap's edge separated a
    // sample from its stack.
    let different = found.iter().filter(|s| !whole.contains(s)).count();
    assert!(different <= 2, "{different}");
}

// Rule 10.
#[test]
fn the_kernel_is_in_every_process_and_the_systems_user_mode_in_none() {
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
    let timeline = timeline(w);
    assert_eq!(
        samples(&timeline),
        ["1 app 7 driver!+0x10", "2 app 7 0x7ffa00000010"]
    );
    // Lists of images agree.
    let app = timeline.processes().find(|p| p.name == Some("app"));
    let app = app.expect("the process").index;
    let names: Vec<&str> = timeline.images_in_space(app).map(|i| i.name).collect();
    assert!(names.contains(&"driver") && !names.contains(&"ntdll"));
    assert_eq!(timeline.images_at(app, KERNEL + 0x10_0010).count(), 1);
    assert_eq!(timeline.images_at(app, 0x7ffa_0000_0010).count(), 0);
    assert_eq!(timeline.lifetimes_at(app, KERNEL + 0x10_0010).len(), 1);
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
fn lost_events_reduce_certainty() {
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
            let (stack, _) = resolver.resolve(class, time).expect("a stack");
            let frame = resolver.frame(resolver.leaf(stack));
            found.push((frame.certainty, frame.name().err()));
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
    // Volume mappings are logged when the trace is merged, after all other events.
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
        .filter(|i| i.image.base >= 0x7ff0_0000_0000)
        .map(|i| (i.image.base, i.image.path.to_owned()))
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
    let view = timeline.process_view(process).expect("a process");
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

/// A manifest in chunks, as an EventSource logs it.
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
