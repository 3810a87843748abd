//! A CPU profile alone: mappings, kernels, samples.

use chronosym::{Filter, Opener, SampleKind};
use chronosym_support::perf::{PerfAttr, PerfWriter};

use super::{PID, SECOND, frame, module, name, open, open_with, profile};

#[test]
fn a_mapping_replaces_exactly_what_it_covers() {
    let mut perf = profile();
    perf.mmap2(
        SECOND + 100,
        PID,
        0x10_4000,
        0x1000,
        0x9000,
        "/lib/libtwo.so",
    );
    perf.mmap2(SECOND + 200, PID, 0x10_8000, 0x1000, 0x10_8000, "//anon");
    // Another permission for the same bytes of the same file has no effect.
    perf.mmap2(
        SECOND + 250,
        PID,
        0x10_1000,
        0x1000,
        0x3000,
        "/lib/libone.so",
    );
    perf.sample(SECOND + 300, PID, PID, &[0x10_0010]);
    let timeline = open(&[("perf.data", &perf.file())]);
    let at = |address, time| module(&timeline, PID, address, time);
    assert_eq!(at(0x10_4010, 50).as_deref(), Some("libone"));
    assert_eq!(at(0x10_4010, 150).as_deref(), Some("libtwo"));
    for address in [0x10_0010, 0x10_1010, 0x10_3fff, 0x10_5000, 0x10_ffff] {
        assert_eq!(at(address, 280).as_deref(), Some("libone"), "{address:#x}");
    }
    assert_eq!(
        (at(0x10_8010, 150).is_some(), at(0x10_8010, 280)),
        (true, None)
    );
    // The remaining part of a mapping keeps its file offset.
    let rva = |address, time| match frame(&timeline, PID, address, time).code {
        chronosym::Code::Image { rva, .. } => rva,
        other => panic!("{other:?}"),
    };
    assert_eq!((rva(0x10_5010, 50), rva(0x10_5010, 280)), (0x7010, 0x7010));
    assert_eq!(
        timeline
            .images(timeline.find_process(PID, None).unwrap())
            .count(),
        6
    );
}

#[test]
fn forks_inherit_mappings_and_exec_drops_them() {
    let mut perf = profile();
    perf.fork(SECOND + 100, 50, PID, 50);
    perf.fork(SECOND + 110, 51, 50, 51);
    perf.mmap2(SECOND + 150, PID, 0x20_0000, 0x1000, 0, "/lib/liblate.so");
    perf.sample(SECOND + 200, 51, 51, &[0x10_0010]);
    let exec = perf.body().u32(51).u32(51).name("other");
    perf.kernel_record(3, 1 << 13, exec, SECOND + 300, 51);
    perf.sample(SECOND + 400, 51, 51, &[0x10_0010]);
    let exec = perf.body().u32(50).u32(50).name("ls");
    perf.kernel_record(3, 1 << 13, exec, SECOND + 500, 50);
    perf.sample(SECOND + 600, 50, 50, &[0x10_0010]);
    perf.exit(SECOND + 700, 50, 50);
    let timeline = open(&[("perf.data", &perf.file())]);
    assert_eq!(
        module(&timeline, 51, 0x10_0010, 200).as_deref(),
        Some("libone")
    );
    assert_eq!(
        module(&timeline, 51, 0x20_0010, 200),
        None,
        "mapped after it was made"
    );
    assert_eq!(module(&timeline, 51, 0x10_0010, 400), None);
    assert_eq!(module(&timeline, 50, 0x10_0010, 600), None);
    let name = |pid, time| {
        let process = timeline.process_of(pid, time).expect("it is there");
        timeline
            .process_view(process)
            .expect("it is there")
            .name
            .map(str::to_owned)
    };
    // It has the name of its parent until it runs another program.
    assert_eq!(name(51, 200).as_deref(), Some("app"));
    assert_eq!(name(51, 400).as_deref(), Some("other"));
    assert_eq!(name(50, 600).as_deref(), Some("ls"));
    let process = timeline.find_process(50, None).expect("it is there");
    assert_eq!(timeline.process_view(process).unwrap().end_ns, Some(700));
}

#[test]
fn kernels_modules_and_bpf_programs_have_addresses_and_lifetimes() {
    const TEXT: u64 = 0xffff_ffff_8100_0000;
    const BPF: u64 = 0xffff_ffff_c000_1000;
    let mut perf = PerfWriter::new(PerfAttr::default());
    let kernel = |perf: &mut PerfWriter, start, size, offset, name: &str| {
        let body = perf
            .body()
            .u32(u32::MAX)
            .u32(0)
            .words(&[start, size, offset]);
        perf.kernel_record(1, 1, body.name(name), 0, 0);
    };
    kernel(&mut perf, TEXT, 0x20_0000, TEXT, "[kernel.kallsyms]_text");
    kernel(&mut perf, 0xffff_ffff_a000_0000, 0x1000, 0, "[xfs]");
    perf.comm(SECOND, PID, PID, "app");
    let symbol = |perf: &PerfWriter, flags| {
        perf.body()
            .u64(BPF)
            .u32(0x80)
            .u16(1)
            .u16(flags)
            .name("bpf_prog_1")
    };
    let (come, gone) = (symbol(&perf, 0), symbol(&perf, 1));
    perf.kernel_record(17, 0, come, SECOND + 100, PID);
    perf.kernel_record(17, 0, gone, SECOND + 200, PID);
    perf.sample(SECOND + 300, PID, PID, &[TEXT + 0x40]);
    let timeline = open(&[("perf.data", &perf.file())]);
    let text = frame(&timeline, PID, TEXT + 0x40, 300);
    assert_eq!(text.module(), Some("[kernel.kallsyms]"));
    assert!(matches!(
        text.code,
        chronosym::Code::Image { rva: 0x40, .. }
    ));
    assert_eq!(
        module(&timeline, PID, 0xffff_ffff_a000_0010, 300).as_deref(),
        Some("[xfs]")
    );
    assert_eq!(name(&timeline, BPF + 0x10, 50), None);
    assert_eq!(
        name(&timeline, BPF + 0x10, 150).as_deref(),
        Some("bpf_prog_1")
    );
    assert_eq!(name(&timeline, BPF + 0x10, 250), None);
}

#[test]
fn hardware_traces_are_reported_and_simpleperf_is_named() {
    let mut perf = profile();
    perf.sample(SECOND + 10, PID, PID, &[0x10_0010]);
    let body = perf.body().u64(64).words(&[0, 0, 0]).u32(0).u32(0);
    perf.record(71, 0, body);
    perf.raw(&[0xaa; 64]);
    perf.sample(SECOND + 20, PID, PID, &[0x10_0010]);
    let meta = b"app_type\0debuggable\0simpleperf_version\x001.build.10345\0".to_vec();
    perf.feature(129, meta);
    let (timeline, diagnostics) = open_with(Opener::new(), &[("perf.data", &perf.file())]).unwrap();
    let texts: Vec<String> = diagnostics.list.iter().map(ToString::to_string).collect();
    let is_named = |text: &String| text.starts_with("64 bytes of hardware traces");
    assert!(texts.iter().any(is_named), "{texts:?}");
    assert_eq!(timeline.facts().version, "simpleperf 1.build.10345");
    assert_eq!(timeline.samples().len(), 2);
}

#[test]
fn the_vdso_is_an_image_and_other_memory_is_not() {
    let mut perf = profile();
    for (address, name) in [
        (0x50_0000, "[vdso]"),
        (0x60_0000, "[heap]"),
        (0x70_0000, "//anon"),
    ] {
        perf.mmap2(SECOND + 2, PID, address, 0x1000, 0, name);
    }
    perf.sample(SECOND + 3, PID, PID, &[0x50_0010]);
    let timeline = open(&[("perf.data", &perf.file())]);
    let at = |address| module(&timeline, PID, address, 3);
    assert_eq!(at(0x50_0010).as_deref(), Some("[vdso]"));
    assert_eq!((at(0x60_0010), at(0x70_0010)), (None, None));
}

#[test]
fn the_kernel_is_process_0_and_its_idle_threads_run_there() {
    let mut perf = PerfWriter::new(PerfAttr::default());
    let text = 0xffff_ffff_8100_0000_u64;
    let body = perf.body().u32(u32::MAX).u32(0);
    let body = body.words(&[text, 0x1000, text]);
    perf.kernel_record(1, 1, body.name("[kernel.kallsyms]_text"), 0, 0);
    let chain = perf.body().u64(text + 8).u32(0).u32(0).u64(SECOND);
    let chain = chain.u32(1).u32(0).u64(1_000_000).u64(2);
    perf.record(9, 1, chain.words(&[-128i64 as u64, text + 8]));
    let timeline = open(&[("perf.data", &perf.file())]);
    let processes: Vec<_> = timeline.processes().map(|it| (it.pid, it.name)).collect();
    assert_eq!(processes, [(Some(0), Some("[kernel]"))]);
    let mut seen = 0;
    let mut with_idle = Filter::default();
    with_idle.idle = true;
    timeline.for_each_sample(&with_idle, |class, _| {
        let thread = timeline.thread_view(class.thread).expect("it is there");
        assert_eq!(
            (thread.tid, thread.name, class.idle),
            (0, Some("swapper"), true)
        );
        seen += 1;
    });
    assert_eq!(seen, 1);
}

#[test]
fn samples_have_their_stated_weight_and_other_events_are_not_a_profile() {
    let attr = PerfAttr {
        sample_type: 0x1_01a7 | 1 << 6,
        ids: vec![1],
        ..PerfAttr::default()
    };
    let mut perf = PerfWriter::new(attr);
    let sample = |perf: &mut PerfWriter, misc, chain: &[u64]| {
        let body = perf.body().u64(1).u64(0x10).u32(PID).u32(PID).u64(SECOND);
        let body = body.u64(1).u32(0).u32(0).u64(250).u64(chain.len() as u64);
        perf.record(9, misc, body.words(chain));
    };
    let (kernel, user) = (-128i64 as u64, -512i64 as u64);
    sample(
        &mut perf,
        1,
        &[
            kernel,
            0xffff_ffff_8100_0010,
            user,
            0x10_0020,
            0x10_0030,
            0x7,
        ],
    );
    sample(&mut perf, 2, &[]);
    // A guest's.
    sample(&mut perf, 5, &[0x10_0020]);
    let timeline = open(&[("perf.data", &perf.file())]);
    let mut stacks = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, _| {
        assert_eq!(class.kind, SampleKind::Cpu);
        stacks.push(timeline.stacks().addresses(class.stack).collect::<Vec<_>>());
    });
    let first = vec![0xffff_ffff_8100_0010, 0x10_0020, 0x10_0030];
    assert_eq!(
        stacks,
        [first, vec![0x10]],
        "addresses that can be none are left out"
    );
    let count = timeline
        .event_types()
        .iter()
        .find(|t| t.schema.name() == "cpu-clock");
    assert_eq!(count.map(|t| (t.count, t.stacks)), Some((3, 2)));
}

#[test]
fn a_process_whose_main_thread_is_not_there_is_called_as_its_lowest_one() {
    let sample =
        |tid: u32| format!("t{tid} 10/{tid} [000] 1.000000: 1 cpu-clock: \n\t1000 f (/a)\n\n");
    let text: String = (20..40).rev().map(sample).collect();
    let timeline = open(&[("perf.txt", text.as_bytes())]);
    assert_eq!(timeline.processes().next().unwrap().name, Some("t20"));
}
