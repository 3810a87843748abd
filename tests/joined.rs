//! CPU profiles of Linux as timelines, alone and joined with recordings of runtimes, from synthetic
//! recordings.

use std::io::Cursor;
use std::sync::Arc;

use chronosym::unwind::{CallFrames, ImageFiles, Registers, Step};
use chronosym::{
    Activity, ActivityEvidence, ActivityFilter, CallerProof, Certainty, ClockMatch, Diagnostics,
    Evidence, Filter, Frame, ImageRef, Input, LineReason, OpenError, Opener, Options, Position,
    ProcessMatch, Resolver, SampleKind, SampleSelection, SymbolSource, Timeline,
};
use chronosym_support::etl::{At as EtlAt, EtlWriter, Op, Options as EtlOptions, Process, Stack};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::Method;
use chronosym_support::perf::{JitdumpWriter, PerfAttr, PerfWriter};
use chronosym_support::trace::{EventSpec, TraceInfo};

const SECOND: u64 = 1_000_000_000;
const PID: u32 = 4242;
const JIT: u64 = 0x7f00_0000_0000;

type Read = Result<(Arc<Timeline>, Diagnostics), OpenError>;

fn open_with(opener: Opener, files: &[(&str, &[u8])]) -> Read {
    let inputs = files
        .iter()
        .map(|(name, bytes)| Input::stream(*name, Cursor::new(bytes.to_vec())));
    opener.open(inputs)?.timeline(Options::default())
}

fn open(files: &[(&str, &[u8])]) -> Arc<Timeline> {
    let (timeline, _) = open_with(Opener::new(), files).expect("it can be read");
    timeline
}

fn frame(timeline: &Timeline, pid: u32, address: u64, time: u64) -> Frame {
    let process = timeline.process_of(pid, time).expect("the process");
    let mut frames = timeline.frames(process, address, time, Position::Exact, None);
    assert_eq!(frames.len(), 1);
    frames.remove(0)
}

fn module(timeline: &Timeline, pid: u32, address: u64, time: u64) -> Option<String> {
    frame(timeline, pid, address, time)
        .module()
        .map(str::to_owned)
}

fn name(timeline: &Timeline, address: u64, time: u64) -> Option<String> {
    frame(timeline, PID, address, time)
        .name()
        .ok()
        .map(str::to_owned)
}

/// Returns a profile whose clock is at one second at its start, with one process that has a
/// library.
fn profile() -> PerfWriter {
    let mut perf = PerfWriter::new(PerfAttr::default());
    perf.comm(SECOND, PID, PID, "app");
    perf.mmap2(
        SECOND + 1,
        PID,
        0x10_0000,
        0x1_0000,
        0x2000,
        "/lib/libone.so",
    );
    perf
}

/// Returns a recording of methods, each with its name, address, start and end, in ns since the
/// trace began.
fn runtime(info: TraceInfo, bodies: &[(&str, u64, i64, Option<i64>)]) -> Vec<u8> {
    let mut writer = NettraceWriter::v4().info(info);
    let load = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
    let unload = writer.event_type("Microsoft-Windows-DotNETRuntime", 144, 2);
    for (id, &(name, start, from, to)) in bodies.iter().enumerate() {
        let method = Method {
            id: id as u64 + 1,
            start,
            size: 0x100,
            flags: 8,
            names: Some(("N.T", name, "void ()")),
            ..Method::default()
        };
        writer.event(load, from, 7, &[], &method.encode(2));
        if let Some(to) = to {
            writer.event(unload, to, 7, &[], &method.encode(2));
        }
    }
    writer.finish()
}

fn started_at(ns: u64) -> TraceInfo {
    TraceInfo {
        qpc_start: ns as i64,
        process_id: PID,
        ..TraceInfo::default()
    }
}

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

/// Returns whether the image and the jitted code are certain at times of a recording of which
/// records are lost at 300 ns.
fn certain_after_losses(perf: &[u8], runtime: &[u8]) -> [[bool; 2]; 3] {
    let timeline = open(&[("perf.data", perf), ("app.nettrace", runtime)]);
    [250, 350, 950].map(|time| {
        let frames = [0x10_0010, JIT + 4].map(|address| frame(&timeline, PID, address, time));
        assert_eq!(frames[0].module(), Some("libone"), "{time}");
        assert_eq!(frames[1].name(), Ok("N.T.Run"), "{time}");
        frames.map(|frame| frame.certainty == Some(Certainty::Exact))
    })
}

#[test]
fn a_loss_concerns_what_its_recording_describes() {
    let perf = |has_loss| {
        let attr = PerfAttr {
            flags: PerfAttr::default().flags | 1 << 8,
            ..PerfAttr::default()
        };
        let mut perf = PerfWriter::new(attr);
        perf.comm(SECOND, PID, PID, "app");
        let (start, size) = (0x10_0000, 0x1_0000);
        perf.mmap2(SECOND + 1, PID, start, size, 0, "/lib/libone.so");
        perf.sample(SECOND + 290, PID, 4, &[0x10_0010]);
        if has_loss {
            perf.lost(SECOND + 300, PID, 1, 5);
        }
        perf.sample(SECOND + 1_000, PID, PID, &[0x10_0010]);
        perf.file()
    };
    let runtime = |has_loss, last| {
        let mut writer = NettraceWriter::v4().info(started_at(SECOND));
        let load = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
        let method = Method {
            id: 1,
            start: JIT,
            size: 0x100,
            flags: 8,
            names: Some(("N.T", "Run", "void ()")),
            ..Method::default()
        };
        writer.event(load, 10, 7, &[], &method.encode(2));
        if has_loss {
            writer.lose(7, 3);
        }
        let other = Method {
            id: 2,
            start: JIT + 0x1000,
            ..method
        };
        writer.event(load, last, 7, &[], &other.encode(2));
        writer.finish()
    };
    let certain = |loss_of_perf, loss_of_runtime, last| {
        certain_after_losses(&perf(loss_of_perf), &runtime(loss_of_runtime, last))
    };
    assert_eq!(certain(false, false, 900), [[true; 2]; 3]);
    // The runtime's recording shows that the process is the same, if it lasts that long.
    let long = [[true, true], [false, true], [false, true]];
    assert_eq!(certain(true, false, 900), long);
    let short = [[true, true], [false, false], [false, false]];
    assert_eq!(certain(true, false, 200), short);
    assert_eq!(certain(false, true, 200), [[true, false]; 3]);
    let both = [[true, false], [false, false], [false, false]];
    assert_eq!(certain(true, true, 200), both);
}

#[test]
fn a_loss_of_samples_leaves_everything_certain() {
    let certain = |counts: &[(u64, u64)]| {
        let attr = |ids: [u64; 1], flags| PerfAttr {
            sample_type: PerfAttr::default().sample_type | 1 << 16,
            flags: PerfAttr::default().flags | flags,
            ids: ids.to_vec(),
            ..PerfAttr::default()
        };
        let mut perf = PerfWriter::new(attr([1], 0));
        perf.attr(attr([2], 1 << 8));
        perf.id_index(&[(1, Ok(0)), (2, Ok(0))]);
        perf.comm(SECOND, PID, PID, "app");
        let (start, size) = (0x10_0000, 0x1_0000);
        perf.mmap2(SECOND + 1, PID, start, size, 0, "/lib/libone.so");
        perf.sample(SECOND + 200, PID, 4, &[0x10_0010]);
        perf.lost(SECOND + 300, PID, 1, 5);
        perf.sample(SECOND + 1_000, PID, 4, &[0x10_0010]);
        for &(id, count) in counts {
            perf.lost_of_event(id, count);
        }
        let timeline = open(&[("perf.data", &perf.file())]);
        [150, 250, 950].map(|time| {
            let frame = frame(&timeline, PID, 0x10_0010, time);
            frame.certainty == Some(Certainty::Exact)
        })
    };
    assert_eq!(certain(&[(1, 5)]), [true; 3]);
    assert_eq!(certain(&[]), [true, false, false]);
    assert_eq!(certain(&[(1, 4), (2, 1)]), [true, false, false]);
}

#[test]
fn a_loss_of_a_thread_concerns_its_process() {
    let attr = PerfAttr {
        sample_type: PerfAttr::default().sample_type | 1 << 16,
        flags: PerfAttr::default().flags | 1 << 8,
        ids: vec![1, 2],
        ..PerfAttr::default()
    };
    let mut perf = PerfWriter::new(attr);
    perf.id_index(&[(1, Err(PID.into())), (2, Err(77))]);
    for pid in [PID, 77] {
        perf.comm(SECOND, pid, pid, "app");
        perf.mmap2(SECOND + 1, pid, 0x10_0000, 0x1000, 0, "/lib/libone.so");
    }
    perf.lost(SECOND + 300, 77, 2, 5);
    perf.sample(SECOND + 400, PID, PID, &[0x10_0010]);
    let timeline = open(&[("perf.data", &perf.file())]);
    let certainty = |pid| frame(&timeline, pid, 0x10_0010, 350).certainty;
    assert_eq!(certainty(PID), Some(Certainty::Exact));
    assert_eq!(certainty(77), Some(Certainty::Inferred));
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

/// Unwind tables of one library: frames of one word, the outermost function from 0xe00 on, and a
/// range without entries.
struct OneLibrary;

impl ImageFiles for OneLibrary {
    fn call_frames(&self, image: &ImageRef<'_>) -> Option<Arc<dyn CallFrames>> {
        (image.path == "/lib/libone.so").then(|| Arc::new(OneLibrary) as Arc<dyn CallFrames>)
    }
}

impl CallFrames for OneLibrary {
    fn step(
        &self,
        _: &ImageRef<'_>,
        rva: u64,
        registers: &mut Registers,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Step {
        if rva >= 0x2e00 {
            return Step::Outermost;
        }
        let Some((stack, back)) = registers
            .stack_pointer()
            .and_then(|stack| Some((stack, read(stack)?)))
        else {
            return Step::Lost;
        };
        registers.set_stack_pointer(stack + 8);
        registers.instruction = back;
        match rva {
            0x2800 => Step::NoEntry,
            0x2900 => Step::Caller(CallerProof::Signal),
            _ => Step::Caller(CallerProof::UnwindTable),
        }
    }
}

/// A recording of stacks: instruction pointer, frame pointer, and the words from the stack pointer
/// up.
fn copied(samples: &[(u64, u64, &[u64])]) -> PerfWriter {
    let mut perf = PerfWriter::new(PerfAttr {
        sample_type: 0x7 | 1 << 12 | 1 << 13,
        regs_user: 0xff_0fff,
        ..PerfAttr::default()
    });
    perf.comm(SECOND, PID, PID, "app");
    let libraries = [
        (0x10_0000, "/lib/libone.so"),
        (0x20_0000, "/lib/libtwo.so"),
        (0x30_0000, "/app/App.DLL"),
    ];
    for (address, path) in libraries {
        perf.mmap2(SECOND + 1, PID, address, 0x1_0000, 0x2000, path);
    }
    for (&(instruction, frame, words), time) in samples.iter().zip(SECOND + 2..) {
        let mut registers = [0; 20];
        (registers[6], registers[7], registers[8]) = (frame, STACK, instruction);
        let body = perf.body().u64(instruction).u32(PID).u32(PID).u64(time);
        let body = body.u64(2).words(&registers).u64(words.len() as u64 * 8);
        perf.record(9, 2, body.words(words).u64(words.len() as u64 * 8));
    }
    perf
}

const STACK: u64 = 0x7ffc_0000;

#[test]
fn copied_stacks_are_walked_by_tables_and_frame_pointers() {
    let whole: &[u64] = &[JIT + 0x10, 9, STACK + 0x30, 0x30_0100, 9, 9, 0, 0x10_0f00];
    let perf = copied(&[
        (0x10_0010, STACK + 0x10, whole),
        // The table has a hole there.
        (0x10_0800, STACK + 0x10, &[9, 9, 0, 0x10_0f00]),
        // Out of a handler, whose caller was interrupted at the first byte of the outermost
        // function.
        (0x10_0900, 0, &[0x10_0f00]),
        // The file of that library is not available.
        (0x20_0010, STACK, &[0, 0x10_0f00]),
        // Frame pointers that form a cycle, and one that leads out of the copy.
        (JIT, STACK, &[STACK, JIT + 0x20]),
        (JIT, STACK + 0x100, &[STACK, JIT + 0x20]),
        // As much as was copied.
        (0x10_0010, 0, &[0x10_0020, 0x10_0030]),
    ]);
    let opener = Opener::new().unwind_with(Arc::new(OneLibrary));
    let (timeline, diagnostics) = open_with(opener, &[("perf.data", &perf.file())]).unwrap();
    let mut resolver = Resolver::new(&timeline, None);
    let mut stacks = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let (stack, _) = resolver.resolve(class, time).expect("it has a stack");
        let frames = resolver.stack(stack).map(|id| resolver.frame(id));
        stacks.push(
            frames
                .map(|frame| (frame.address, frame.proof))
                .collect::<Vec<_>>(),
        );
    });
    let (table, pointer) = (
        Some(CallerProof::UnwindTable),
        Some(CallerProof::FramePointer),
    );
    let first = [
        (0x10_0010, None),
        (JIT + 0x10, table),
        (0x30_0100, pointer),
        (0x10_0f00, pointer),
    ];
    assert_eq!(stacks[0], first);
    assert_eq!(stacks[1], [(0x10_0800, None), (0x10_0f00, pointer)]);
    let interrupted = (0x10_0f00, Some(CallerProof::Signal));
    assert_eq!(stacks[2], [(0x10_0900, None), interrupted]);
    assert_eq!(stacks[3], [(0x20_0010, None)]);
    assert_eq!(stacks[4], [(JIT, None)]);
    assert_eq!(stacks[5], [(JIT, None)]);
    assert_eq!(
        stacks[6],
        [(0x10_0010, None), (0x10_0020, table), (0x10_0030, table)]
    );
    let notes: Vec<String> = diagnostics.list.iter().map(ToString::to_string).collect();
    assert!(
        notes.iter().any(|note| note.starts_with("4 samples")),
        "{notes:?}"
    );
    // Without files only the innermost frame is known.
    let (timeline, diagnostics) = open_with(Opener::new(), &[("perf.data", &perf.file())]).unwrap();
    assert_eq!(timeline.stacks().len(), 5);
    let notes: Vec<String> = diagnostics.list.iter().map(ToString::to_string).collect();
    assert!(notes[0].starts_with("7 samples"), "{notes:?}");
}

/// `.eh_frame` as CPython 3.13 writes it (`-X perf_jit`): code of 11 bytes, whose frame is one word
/// larger after 4 bytes, and which the section follows at the next multiple of 8.
const OF_PYTHON: [u8; 48] = [
    0x14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 0x10, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
    0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 0x0b, 0, 0, 0, 0, 0x44, 0x0e, 0x10, 0x46,
    0x0e, 8, 0,
];

#[test]
fn copied_stacks_are_walked_through_code_of_jitdumps() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    };
    let other = JIT + 0x100;
    // Out of one function into the other, which has no frame pointer either.
    let words: &[u64] = &[9, other + 7, 9, JIT + 0x200];
    let perf = write("perf.data", &copied(&[(JIT + 7, 0, words)]).file());
    let mut dump = JitdumpWriter::new(false, PID, 0);
    let load = |dump: &mut JitdumpWriter, time, address, name| {
        dump.unwinding(time, &OF_PYTHON, &[0; 20]);
        dump.load(time, PID, address, name, &[0x90; 11]);
    };
    load(&mut dump, SECOND, JIT, "py::inner:a.py");
    load(&mut dump, SECOND, other, "py::outer:a.py");
    // Compiled after the sample.
    load(&mut dump, 2 * SECOND, JIT + 0x1f8, "py::late:a.py");
    write(&format!("jit-{PID}.dump"), dump.file());
    let stack = || {
        let files = Arc::new(chronosym::symbols::Symbolizer::new(
            Default::default(),
            Default::default(),
        ));
        let opener = Opener::new().unwind_with(files);
        let recording = opener.open([Input::file(&perf)]).expect("it can be read");
        let (timeline, _) = recording.timeline(Options::default()).expect("it is sound");
        let mut resolver = Resolver::new(&timeline, None);
        let mut found = Vec::new();
        timeline.for_each_sample(&Filter::default(), |class, time| {
            let (stack, _) = resolver.resolve(class, time).expect("it has a stack");
            let frames = resolver.stack(stack).map(|id| resolver.frame(id));
            found.extend(frames.map(|frame| (frame.label().to_owned(), frame.proof)));
        });
        found
    };
    let table = Some(CallerProof::UnwindTable);
    let frame = |name: &str, proof| (name.to_owned(), proof);
    assert_eq!(
        stack(),
        [
            frame("py::inner:a.py", None),
            frame("py::outer:a.py", table),
            frame("0x7f0000000200", table)
        ]
    );
    let dump = folder.path().join(format!("jit-{PID}.dump"));
    std::fs::remove_file(dump).expect("it exists");
    assert_eq!(stack(), [frame("0x7f0000000007", None)]);
}

#[test]
fn calls_of_branch_records_are_the_callers() {
    const TEXT: u64 = 0xffff_ffff_8100_0000;
    let attr = PerfAttr {
        sample_type: 0x7 | 1 << 5 | 1 << 11,
        // User, call stack, without cycles and flags, with an index of the hardware's.
        branch_sample_type: 1 | 1 << 11 | 1 << 14 | 1 << 15 | 1 << 17,
        ..PerfAttr::default()
    };
    let mut perf = PerfWriter::new(attr);
    perf.comm(SECOND, PID, PID, "app");
    perf.mmap2(
        SECOND + 1,
        PID,
        0x10_0000,
        0x1_0000,
        0x2000,
        "/lib/libone.so",
    );
    let (kernel, user) = (-128i64 as u64, -512i64 as u64);
    let mut sample = |time, mode, chain: &[u64], branches: &[u64]| {
        let body = perf
            .body()
            .u64(chain[1])
            .u32(PID)
            .u32(PID)
            .u64(SECOND + time);
        let body = body.u64(chain.len() as u64).words(chain);
        let body = body.u64(branches.len() as u64).u64(7);
        let triples: Vec<u64> = branches
            .iter()
            .flat_map(|&from| [from, 0x10_0000, 0])
            .collect();
        perf.record(9, mode, body.words(&triples));
    };
    // The walk over frame pointers ends early, or is wrong.
    sample(
        10,
        2,
        &[user, 0x10_0010, 0x10_0666],
        &[0x10_0100, 0x10_0200, 0, 0x10_0300],
    );
    sample(11, 1, &[kernel, TEXT + 1, user, 0x10_0020], &[0x10_0100]);
    // Nothing was recorded.
    sample(12, 2, &[user, 0x10_0010, 0x10_0666], &[]);
    let timeline = open(&[("perf.data", &perf.file())]);
    let mut resolver = Resolver::new(&timeline, None);
    let mut stacks = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let (stack, _) = resolver.resolve(class, time).expect("it has a stack");
        let frames = resolver.stack(stack).map(|id| resolver.frame(id));
        let frames: Vec<_> = frames.map(|frame| (frame.address, frame.proof)).collect();
        stacks.push((time, frames));
    });
    stacks.sort_by_key(|&(time, _)| time);
    let stacks: Vec<_> = stacks.into_iter().map(|(_, frames)| frames).collect();
    let call = |address| (address, Some(CallerProof::BranchRecord));
    assert_eq!(
        stacks[0],
        [(0x10_0010, None), call(0x10_0100), call(0x10_0200)]
    );
    assert_eq!(
        stacks[1],
        [(TEXT + 1, None), (0x10_0020, None), call(0x10_0100)]
    );
    assert_eq!(stacks[2], [(0x10_0010, None), (0x10_0666, None)]);
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
fn frames_that_follow_later_are_put_to_their_samples() {
    const TEXT: u64 = 0xffff_ffff_8100_0000;
    let mut perf = profile();
    let sample = |perf: &mut PerfWriter, time, address, cookie| {
        let body = perf
            .body()
            .u64(address)
            .u32(PID)
            .u32(PID)
            .u64(SECOND + time);
        let body = body.u32(1).u32(0).u64(1_000_000).u64(4);
        let (kernel, deferred) = (-128i64 as u64, -640i64 as u64);
        perf.record(9, 1, body.words(&[kernel, address, deferred, cookie]));
    };
    let frames = |perf: &mut PerfWriter, time, cookie, frames: &[u64]| {
        let body = perf.body().u64(cookie).u64(frames.len() as u64 + 1);
        let body = body.u64(-512i64 as u64).words(frames);
        perf.kernel_record(22, 2, body, SECOND + time, PID);
    };
    sample(&mut perf, 10, TEXT + 1, 1);
    sample(&mut perf, 11, TEXT + 2, 1);
    frames(&mut perf, 12, 1, &[0x10_0010, 0x10_0020]);
    // The frames of this sample were lost: another system call has another cookie, and these frames
    // match no sample.
    sample(&mut perf, 13, TEXT + 3, 2);
    sample(&mut perf, 14, TEXT + 4, 3);
    frames(&mut perf, 15, 9, &[0x10_0030]);
    sample(&mut perf, 16, TEXT + 5, 4);
    let (timeline, diagnostics) = open_with(Opener::new(), &[("perf.data", &perf.file())]).unwrap();
    let mut stacks = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let stack: Vec<u64> = timeline.stacks().addresses(class.stack).collect();
        stacks.push((time, stack));
    });
    stacks.sort();
    let user = [0x10_0010, 0x10_0020];
    assert_eq!(stacks[0], (10, vec![TEXT + 1, user[0], user[1]]));
    assert_eq!(stacks[1], (11, vec![TEXT + 2, user[0], user[1]]));
    let alone = [
        (13, vec![TEXT + 3]),
        (14, vec![TEXT + 4]),
        (16, vec![TEXT + 5]),
    ];
    assert_eq!(stacks[2..], alone);
    let notes: Vec<String> = diagnostics.list.iter().map(ToString::to_string).collect();
    assert!(notes[0].starts_with("3 samples lack"), "{notes:?}");
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
fn a_jitdump_has_lifetimes_lines_and_moves() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let mut dump = JitdumpWriter::new(false, PID, 0);
    dump.lines(
        SECOND + 50,
        JIT,
        &[(JIT, 3, Some("a.js")), (JIT + 8, 4, None)],
    );
    dump.load(SECOND + 100, PID, JIT, "first", &[0x90; 32]);
    let index = dump.load(SECOND + 200, PID, JIT + 16, "second", &[0x90; 32]);
    // Onto itself.
    dump.moved(SECOND + 300, PID, JIT + 16, JIT + 32, 32, index);
    let files: [(&str, &[u8]); 2] = [("perf.data", &perf.file()), ("jit-1.dump", dump.file())];
    let timeline = open(&files);
    assert_eq!(name(&timeline, JIT + 4, 50), None);
    let first = frame(&timeline, PID, JIT + 9, 150);
    assert_eq!(
        (first.name(), first.evidence),
        (Ok("first"), Some(Evidence::JitDump))
    );
    let line = first.line.expect("it has a line");
    assert_eq!((&*line.file, line.line), ("a.js", 4));
    assert_eq!(name(&timeline, JIT + 20, 250).as_deref(), Some("second"));
    assert_eq!(name(&timeline, JIT + 20, 350), None);
    assert_eq!(name(&timeline, JIT + 60, 350).as_deref(), Some("second"));
    let recordings = &timeline.facts().recordings;
    assert_eq!(recordings.len(), 2);
    assert_eq!(recordings[1].clock, ClockMatch::Same);
    struct WithoutLines;
    impl SymbolSource for WithoutLines {
        fn wants_lines(&self) -> bool {
            false
        }
    }
    let process = timeline.process_of(PID, 150).expect("the process");
    let without = timeline.frames(process, JIT + 9, 150, Position::Exact, Some(&WithoutLines));
    assert_eq!(without[0].line, Err(LineReason::LinesDisabled));
    // By itself, too.
    let alone = open(&[("jit-1.dump", dump.file())]);
    assert_eq!(name(&alone, JIT + 4, 20).as_deref(), Some("first"));
}

#[test]
fn perf_maps_are_the_last_resort_and_contradictions_are_reported() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let map = format!(
        "{JIT:x} 20 once\n{:x} 20 other\n{:x} 8 alone\n",
        JIT + 16,
        JIT + 64
    );
    let runtime = runtime(started_at(SECOND), &[("Known", JIT, 100, Some(500))]);
    let timeline = open(&[
        ("perf.data", &perf.file()),
        ("perf-4242.map", map.as_bytes()),
        ("app.nettrace", &runtime),
    ]);
    assert_eq!(name(&timeline, JIT + 20, 300).as_deref(), Some("N.T.Known"));
    let guess = frame(&timeline, PID, JIT + 20, 600);
    assert_eq!(
        (guess.name(), guess.certainty),
        (Ok("other"), Some(Certainty::Approximate))
    );
    let alone = frame(&timeline, PID, JIT + 64, 600);
    assert_eq!(
        (alone.name(), alone.certainty),
        (Ok("alone"), Some(Certainty::Inferred))
    );
    // A map alone has no process.
    let map: &[u8] = map.as_bytes();
    let refused = open_with(Opener::new(), &[("perf-4242.map", map)]);
    assert!(matches!(refused, Err(OpenError::NotATrace { .. })));
}

#[test]
fn recordings_of_one_clock_are_one_timeline_whichever_began_first() {
    for (began, offset) in [(SECOND - 400, 0), (SECOND + 200, 200)] {
        let mut perf = profile();
        perf.mmap2(SECOND + 700, PID, JIT, 0x1000, 0, "/lib/libover.so");
        perf.sample(SECOND + 900, PID, PID, &[JIT]);
        // In ns since its own start.
        let at = |ns: u64| ns as i64 + SECOND as i64 - began as i64;
        let bodies = [
            ("First", JIT, at(300), None),
            ("Second", JIT, at(500), None),
        ];
        let runtime = runtime(started_at(began), &bodies);
        let files: [(&str, &[u8]); 2] = [("a.nettrace", &runtime), ("perf.data", &perf.file())];
        let (timeline, _) = open_with(Opener::new(), &files).expect("they are of one machine");
        assert!(timeline.facts().recordings.len() > 1);
        let zero = if offset == 0 { 400 } else { 0 };
        let at = |address, ns| name(&timeline, address, ns + zero);
        assert_eq!(at(JIT + 16, 400).as_deref(), Some("N.T.First"));
        assert_eq!(at(JIT + 16, 600).as_deref(), Some("N.T.Second"));
        // A mapping over code ends it, although it was read first.
        assert_eq!(at(JIT + 16, 800), None);
        assert_eq!(
            module(&timeline, PID, JIT + 16, 800 + zero).as_deref(),
            Some("libover")
        );
        assert_eq!(
            module(&timeline, PID, 0x10_0010, 400 + zero).as_deref(),
            Some("libone")
        );
        let clocks: Vec<_> = timeline
            .facts()
            .recordings
            .iter()
            .map(|r| r.clock)
            .collect();
        assert_eq!(clocks, [ClockMatch::Same; 2]);
        assert_eq!(timeline.facts().clock_error_ns, 0);
        assert_eq!(
            frame(&timeline, PID, JIT, 600 + zero).certainty,
            Some(Certainty::Exact)
        );
    }
}

/// A recording of Windows: a process with an image, one sample at 2 ms of an address in no image.
/// It started at 500 s of the performance counter.
fn windows(clock: u32) -> Vec<u8> {
    let options = EtlOptions {
        clock,
        ..EtlOptions::default()
    };
    let mut writer = EtlWriter::new(Vec::new(), options).unwrap();
    let at = EtlAt::ns(1);
    let process = Process {
        pid: PID,
        image: "app.exe",
        command_line: "app.exe",
        ..Process::default()
    };
    writer.process(at, Op::DCStart, &process).unwrap();
    writer.thread(at, Op::DCStart, PID, 7).unwrap();
    let sampled = EtlAt::ms(2);
    writer.sample(sampled, JIT + 0x10, 7).unwrap();
    let stack = Stack {
        event: sampled,
        pid: PID,
        tid: 7,
        addresses: &[JIT + 0x10, JIT + 0x110],
    };
    writer.stack(EtlAt::us(2_001), &stack).unwrap();
    writer.finish().unwrap()
}

#[test]
fn recordings_of_windows_and_of_a_runtime_share_the_performance_counter() {
    const TICKS: i64 = 10_000_000;
    // The .etl began on 2024-01-17 at 21:20:00 UTC; the runtime's recording 1 ms earlier.
    let began_at = |minute| TraceInfo {
        qpc_start: 500 * TICKS - TICKS / 1_000,
        frequency: TICKS as u64,
        process_id: PID,
        start: [2024, 1, 3, 17, 21, minute, 59, 999],
        ..TraceInfo::default()
    };
    let bodies = [
        ("Before", JIT, 100_000, Some(2_900_000)),
        ("During", JIT, 2_950_000, None),
        ("Caller", JIT + 0x100, 50_000, None),
    ];
    let nettrace = runtime(began_at(19), &bodies);
    let files: [(&str, &[u8]); 2] = [("a.etl", &windows(1)), ("a.nettrace", &nettrace)];
    let (timeline, _) = open_with(Opener::new(), &files).expect("they fit");
    assert!(timeline.facts().recordings.len() > 1);
    // 1 ms later on the clock of the .etl.
    assert_eq!(
        name(&timeline, JIT + 0x10, 1_899_900).as_deref(),
        Some("N.T.Before")
    );
    assert_eq!(name(&timeline, JIT + 0x10, 1_949_900), None);
    let mut resolver = Resolver::new(&timeline, None);
    let mut stacks = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        assert_eq!((class.kind, time), (SampleKind::Cpu, 2_000_000));
        let (stack, _) = resolver.resolve(class, time).expect("it has a stack");
        let frames = resolver.stack(stack).map(|id| resolver.frame(id));
        stacks.push(
            frames
                .map(|frame| frame.name().map(str::to_owned))
                .collect::<Vec<_>>(),
        );
    });
    let expected = ["N.T.During", "N.T.Caller"].map(|name| Ok(name.to_owned()));
    assert_eq!(stacks, [expected]);
    let recordings = &timeline.facts().recordings;
    let clocks: Vec<_> = recordings
        .iter()
        .map(|it| (it.clock, it.error_ns))
        .collect();
    assert_eq!(clocks, [(ClockMatch::Same, 0), (ClockMatch::Same, 0)]);
    // An .etl that counts the wall's time: to 1 ms.
    let files: [(&str, &[u8]); 2] = [("a.etl", &windows(2)), ("a.nettrace", &nettrace)];
    let timeline = open(&files);
    let second = &timeline.facts().recordings[1];
    assert_eq!(
        (second.clock, second.error_ns),
        (ClockMatch::Wall, 1_000_000)
    );
    let found = frame(&timeline, PID, JIT + 0x10, 2_000_000);
    assert_eq!(found.certainty, Some(Certainty::Inferred));
    // A recording of another boot, and one of another system.
    let other = runtime(began_at(20), &bodies);
    let apart = open_with(
        Opener::new(),
        &[("a.etl", &windows(1)), ("a.nettrace", &other)],
    );
    assert!(matches!(apart, Err(OpenError::DifferentRecordings { .. })));
    let two = open_with(
        Opener::new(),
        &[("a.etl", &windows(1)), ("perf.data", &profile().file())],
    );
    assert!(matches!(two, Err(OpenError::SeveralRecordings { .. })));
}

#[test]
fn ticks_are_used_only_without_perf_samples() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let ticks = |process_id| {
        let info = TraceInfo {
            process_id,
            ..started_at(SECOND)
        };
        let mut writer = NettraceWriter::v4().info(info);
        let tick = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
        for time in 0..10 {
            writer.event(tick, time, 7, &[JIT], &[2, 0, 0, 0]);
        }
        writer.finish()
    };
    let (one, two) = (ticks(PID), ticks(77));
    let joined = open(&[("perf.data", &perf.file()), ("one", &one)]);
    assert_eq!(joined.samples().len(), 1);
    let counted = joined.event_types().iter().filter(|t| t.count == 10);
    assert_eq!(counted.map(|t| t.stacks).collect::<Vec<_>>(), [10]);
    // Two processes of one machine, without a perf.data.
    let both = open(&[("one", &one), ("two", &two)]);
    assert_eq!(both.samples().len(), 20);
    let pids: Vec<_> = both.processes().filter_map(|p| p.pid).collect();
    assert_eq!(pids, [PID, 77]);
    // The ticks can be selected explicitly.
    let ticks = "Microsoft-DotNETCore-SampleProfiler";
    let samples = SampleSelection::Events(vec![chronosym::EventSelector::parse(ticks).unwrap()]);
    let inputs = [("perf.data", perf.file()), ("one", one)];
    let inputs = inputs.map(|(name, bytes)| Input::stream(name, Cursor::new(bytes)));
    let recording = Opener::new().open(inputs).expect("two");
    let (selected, _) = recording.timeline(samples).expect("two");
    assert_eq!(selected.samples().len(), 10);
}

// Rule 22.
#[test]
fn cpu_samples_show_which_ticks_found_a_thread_on_a_processor() {
    const MS: u64 = 1_000_000;
    const TICKS: u64 = 50;
    let mut perf = profile();
    let mut random = 7_u64;
    let mut cpu: Vec<(u32, u64)> = (0..40)
        .map(|_| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (7 + (random >> 40) as u32 % 3, (random >> 33) % (TICKS * MS))
        })
        .collect();
    // A thread of the same id in another process, and the very start and end of a tick.
    cpu.extend([(7, 10 * MS), (8, 21 * MS - 1)]);
    cpu.sort_by_key(|&(_, time)| time);
    for &(tid, time) in &cpu {
        perf.sample(SECOND + time, PID, tid, &[JIT]);
        perf.sample(SECOND + time, 50, tid + 1, &[JIT]);
    }
    let mut writer = NettraceWriter::v4().info(started_at(SECOND));
    let tick = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for time in 0..TICKS {
        for thread in [7, 8, 10] {
            writer.event(tick, (time * MS) as i64, thread, &[JIT], &[1, 0, 0, 0]);
        }
    }
    let inputs = [("perf.data", perf.file()), ("one", writer.finish())];
    let inputs = inputs.map(|(name, bytes)| Input::stream(name, Cursor::new(bytes)));
    let selector = chronosym::EventSelector::parse("Microsoft-DotNETCore-SampleProfiler");
    let samples = SampleSelection::Events(selector.into_iter().collect());
    let recording = Opener::new().open(inputs).expect("two");
    let (timeline, _) = recording.timeline(samples).expect("two");
    let mut found = Vec::new();
    timeline.for_each_weighed_sample(&Filter::default(), |sample| {
        let tid = timeline.thread_view(sample.class.thread).unwrap().tid;
        let activity = timeline.activity(&sample);
        let on_cpu = activity.activity == Activity::OnCpu;
        assert_eq!(
            on_cpu,
            activity.evidence == Some(ActivityEvidence::CpuSample)
        );
        found.push((sample.time_ns, tid, on_cpu));
    });
    found.sort_unstable();
    let is_on_cpu = |thread: u64, tick: u64| {
        let times = tick * MS..(tick + 1) * MS;
        let mut cpu = cpu.iter();
        cpu.any(|&(tid, time)| u64::from(tid) == thread && times.contains(&time))
    };
    let all = (0..TICKS).flat_map(|tick| [7, 8, 10].map(|thread| (tick, thread)));
    let expected = all.map(|(tick, thread)| (tick * MS, thread, is_on_cpu(thread, tick)));
    let expected: Vec<_> = expected.collect();
    assert_eq!(found, expected);
    let count = expected.iter().filter(|it| it.2).count() as u64;
    assert!(count > 20, "{count}");
    let mut filter = Filter::default();
    filter.activity = Some(ActivityFilter::Only(Activity::OnCpu));
    assert_eq!(timeline.profile(&filter, None).samples(), count);
}

#[test]
fn recordings_that_do_not_belong_together_are_rejected() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let one = runtime(started_at(SECOND), &[]);
    let refusal = |files: &[(&str, &[u8])]| match open_with(Opener::new(), files) {
        Ok(_) => panic!("it is read"),
        Err(error) => error,
    };
    let copies = refusal(&[("a", &one), ("b", &one)]);
    assert!(matches!(copies, OpenError::Copies { .. }), "{copies}");
    let file = perf.file();
    let two = refusal(&[("a", &file), ("b", &file)]);
    assert!(matches!(two, OpenError::SeveralRecordings { .. }), "{two}");
    // By wall time it is 2026; by the clock it would be another boot.
    let mut other = perf.clone();
    let wall = 1_600_000_000 * SECOND;
    let clock = other.body().u32(1).u32(1).words(&[wall, SECOND]);
    other.feature(29, clock.bytes);
    let boot = refusal(&[("a", &other.file()), ("b", &one)]);
    assert!(
        matches!(
            boot,
            OpenError::DifferentRecordings {
                what: "boot time",
                ..
            }
        ),
        "{boot}"
    );
}

// Rule 23.
#[test]
fn an_unknown_clock_is_estimated_and_answers_near_changes_are_not_exact() {
    const AHEAD: u64 = 500_000;
    let attr = PerfAttr {
        flags: 1 << 18,
        ..PerfAttr::default()
    };
    let perf = |threads: bool| {
        let mut perf = PerfWriter::new(attr.clone());
        perf.comm(SECOND, PID, PID, "app");
        if threads {
            perf.fork(SECOND + 90_000 + AHEAD, PID, PID, 7);
            perf.exit(SECOND + 910_000 + AHEAD, PID, 7);
        }
        perf.sample(SECOND + 2_000_000, PID, PID, &[JIT]);
        perf.file()
    };
    let bodies = [
        ("First", JIT, 100_000, None),
        ("Second", JIT, 900_000, None),
    ];
    let runtime = runtime(started_at(SECOND), &bodies);
    let timeline = open(&[("perf.data", &perf(true)), ("a.nettrace", &runtime)]);
    let joined = &timeline.facts().recordings[1];
    assert_eq!(
        (joined.clock, joined.error_ns),
        (ClockMatch::Estimated, 10_000)
    );
    assert_eq!(joined.offset_ns, AHEAD as i64);
    let at = |ns: u64| {
        let frame = frame(&timeline, PID, JIT + 4, ns + AHEAD);
        (frame.name().ok().map(str::to_owned), frame.certainty)
    };
    let first = Some("N.T.First".to_owned());
    let second = Some("N.T.Second".to_owned());
    assert_eq!(at(105_000), (first.clone(), Some(Certainty::Inferred)));
    assert_eq!(at(895_000).0, first);
    assert_eq!(at(905_000), (second.clone(), Some(Certainty::Inferred)));
    assert_eq!(at(950_000), (second, Some(Certainty::Exact)));
    // Without a thread in both recordings, the offset is uncertain.
    let timeline = open(&[("perf.data", &perf(false)), ("a.nettrace", &runtime)]);
    let joined = &timeline.facts().recordings[1];
    assert_eq!(
        (joined.clock, joined.error_ns),
        (ClockMatch::Assumed, SECOND)
    );
    let unsure = frame(&timeline, PID, JIT + 4, 950_000);
    assert_eq!(unsure.certainty, Some(Certainty::Inferred));
}

#[test]
fn a_process_of_a_container_is_the_given_one() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let info = TraceInfo {
        process_id: 1,
        ..started_at(SECOND)
    };
    let runtime = runtime(info, &[("Run", JIT, 100, None)]);
    let files: [(&str, &[u8]); 2] = [("perf.data", &perf.file()), ("a.nettrace", &runtime)];
    let plain = open(&files);
    assert_eq!(name(&plain, JIT, 300), None);
    let (mapped, _) = open_with(Opener::new().map_pid(1, PID), &files).expect("both");
    assert_eq!(name(&mapped, JIT, 300).as_deref(), Some("N.T.Run"));
    assert_eq!(mapped.processes().filter(|p| p.pid == Some(1)).count(), 0);
}

#[test]
fn processes_of_containers_are_found_by_their_mappings() {
    let info = TraceInfo {
        process_id: 1,
        ..started_at(SECOND)
    };
    let runtime = runtime(info, &[("Run", JIT, 100, None)]);
    let with = |change: &dyn Fn(&mut PerfWriter)| {
        let mut perf = profile();
        perf.sample(SECOND + 900, PID, PID, &[JIT]);
        change(&mut perf);
        let timeline = open(&[("perf.data", &perf.file()), ("a.nettrace", &runtime)]);
        let own = timeline.facts().recordings[1].own_pid;
        (name(&timeline, JIT, 950), own)
    };
    let named = (Some("N.T.Run".to_owned()), Some((1, PID)));
    let dump = "/tmp/jit-1.dump";
    let mapped = |perf: &mut PerfWriter| perf.mmap2(SECOND + 2, PID, JIT, 0x1000, 0, dump);
    assert_eq!(with(&mapped), named);
    let contain = |perf: &mut PerfWriter, pid, inode| {
        let links = [4, 1, 4, 2, 4, 3, 4, inode];
        let body = perf.body().u32(pid).u32(pid).u64(4).words(&links);
        perf.kernel_record(16, 0, body, SECOND + 2, pid);
        let library = "/usr/share/dotnet/libcoreclr.so";
        perf.mmap2(SECOND + 3, pid, 0x50_0000, 0x1000, 0, library);
    };
    assert_eq!(with(&|perf| contain(perf, PID, 0xf000_0152)), named);
    // Two candidates are ambiguous; a process outside containers is not a candidate, and if process
    // 1 itself runs .NET, it matches.
    for (pids, inode) in [
        (&[PID, 99][..], 0xf000_0152),
        (&[PID], 0xefff_fffc),
        (&[PID, 1], 0xf000_0152),
    ] {
        let found = with(&|perf| pids.iter().for_each(|&pid| contain(perf, pid, inode)));
        assert_eq!(found, (None, None), "{pids:?}");
    }
}

/// A recording of process 1 of a container, with precompiled methods from an address on.
fn contained(start: u64, qpc_start: u64) -> Vec<u8> {
    let info = TraceInfo {
        process_id: 1,
        ..started_at(qpc_start)
    };
    let mut writer = NettraceWriter::v4().info(info);
    let load = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
    for id in 0..10 {
        let method = Method {
            id: id + 1,
            start: start + 0x100 * id,
            size: 0x100,
            flags: 0,
            names: Some(("N.T", "Precompiled", "void ()")),
            ..Method::default()
        };
        writer.event(load, 100, 7, &[], &method.encode(2));
    }
    writer.finish()
}

/// Maps a runtime and an assembly, the latter at an address.
fn map_dotnet(perf: &mut PerfWriter, pid: u32, assembly: u64) {
    let runtime = "/usr/share/dotnet/libcoreclr.so";
    perf.mmap2(SECOND + 3, pid, 0x50_0000, 0x1000, 0, runtime);
    perf.mmap2(SECOND + 3, pid, assembly, 0x1_0000, 0, "/app/App.dll");
}

// Rule 23.
#[test]
fn recordings_are_of_the_process_that_has_their_code_mapped() {
    const OTHER: u32 = 99;
    const FIRST: u64 = 0x7f11_0000_0000;
    const SECOND_CODE: u64 = 0x7f22_0000_0000;
    let mut perf = profile();
    // The machine's own first process, which runs another program.
    perf.comm(SECOND, 1, 1, "systemd");
    perf.mmap2(
        SECOND + 1,
        1,
        0x10_0000,
        0x1000,
        0,
        "/usr/lib/systemd/systemd",
    );
    perf.comm(SECOND, OTHER, OTHER, "other");
    map_dotnet(&mut perf, PID, FIRST);
    map_dotnet(&mut perf, OTHER, SECOND_CODE);
    for (pid, address) in [(PID, FIRST), (OTHER, SECOND_CODE), (1, 0x10_0010)] {
        perf.sample(SECOND + 900, pid, pid, &[address + 0x10]);
    }
    let (first, second) = (contained(FIRST, SECOND), contained(SECOND_CODE, SECOND + 1));
    let files: [(&str, &[u8]); 3] = [
        ("perf.data", &perf.file()),
        ("first.nettrace", &first),
        ("second.nettrace", &second),
    ];
    for files in [&files[..2], &files[..], &[files[0], files[2]]] {
        let timeline = open(files);
        for part in &timeline.facts().recordings[1..] {
            let (pid, start) = match part.name.as_str() {
                "first.nettrace" => (PID, FIRST),
                _ => (OTHER, SECOND_CODE),
            };
            assert_eq!(part.own_pid, Some((1, pid)));
            assert_eq!(part.process_match, Some(ProcessMatch::MappedCode));
            let frame = frame(&timeline, pid, start + 0x10, 900);
            assert_eq!(frame.name(), Ok("N.T.Precompiled"));
        }
        let first = timeline.process_of(1, 900).expect("it was sampled");
        assert_eq!(timeline.bodies(first).count(), 0);
    }
}

// Rule 23.
#[test]
fn recordings_of_all_processes_state_which_have_their_code_mapped() {
    const OTHER: u32 = 99;
    const GONE: u32 = 98;
    const CODE: u64 = 0x7f11_0000_0000;
    let mut perf = profile();
    perf.comm(SECOND, OTHER, OTHER, "other");
    for pid in [PID, OTHER] {
        map_dotnet(&mut perf, pid, CODE);
        perf.sample(SECOND + 900, pid, pid, &[CODE + 0x10]);
    }
    // Recorders of whole machines have another clock than perf: wall time joins them.
    let info = TraceInfo {
        process_id: 0,
        ..started_at(SECOND)
    };
    let wall = 1_772_690_828_009_000_000;
    let clock = perf.body().u32(1).u32(1).words(&[wall, SECOND]);
    perf.feature(29, clock.bytes);
    let mut writer = NettraceWriter::v6().info(info);
    let load = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
    // Another process had the id of the second one, and the third one is not in the perf.data.
    for (pid, start) in [(PID, CODE), (OTHER, CODE + 0x100_0000), (GONE, CODE)] {
        for id in 0..10 {
            let method = Method {
                id: id + 1,
                start: start + 0x100 * id,
                size: 0x100,
                names: Some(("N.T", "Precompiled", "void ()")),
                ..Method::default()
            };
            let payload = method.encode(2);
            writer.record(&EventSpec {
                process: Some(pid),
                ..EventSpec::new(load, 100, u64::from(pid)).payload(&payload)
            });
        }
    }
    let files: [(&str, &[u8]); 2] = [
        ("perf.data", &perf.file()),
        ("all.nettrace", &writer.finish()),
    ];
    let (timeline, diagnostics) = open_with(Opener::new(), &files).expect("they are joined");
    let part = &timeline.facts().recordings[1];
    assert_eq!(
        part.gives,
        "code of all processes, found by their ids; 1 of 3 processes with methods have them mapped"
    );
    assert_eq!(part.process_match, Some(ProcessMatch::ProcessId));
    assert_eq!(
        frame(&timeline, PID, CODE + 0x10, 900).name(),
        Ok("N.T.Precompiled")
    );
    let texts: Vec<&str> = diagnostics.list.iter().map(|it| &*it.text).collect();
    assert_eq!(
        texts,
        [
            "all.nettrace: the process 99 has none of its precompiled methods mapped in perf.data: it may be another one"
        ]
    );
}

// Rule 23.
#[test]
fn recordings_that_contradict_the_process_of_their_id_are_refused() {
    let refusal = |perf: &PerfWriter, runtime: &[u8]| {
        let files: [(&str, &[u8]); 2] = [("perf.data", &perf.file()), ("a.nettrace", runtime)];
        let Err(error) = open_with(Opener::new(), &files) else {
            panic!("it is joined");
        };
        let text = error.to_string();
        assert!(text.contains("--map-pid 1=PID"), "{text}");
        let (mapped, _) = open_with(Opener::new().map_pid(1, 1), &files).expect("as named");
        let evidence = mapped.facts().recordings[1].process_match;
        assert_eq!(evidence, Some(ProcessMatch::MapPid));
        text
    };
    let info = TraceInfo {
        process_id: 1,
        ..started_at(SECOND)
    };
    let mut perf = profile();
    perf.comm(SECOND, 1, 1, "systemd");
    map_dotnet(&mut perf, PID, JIT);
    let text = refusal(&perf, &runtime(info, &[]));
    assert!(text.contains("does not run .NET"), "{text}");
    // Another run of the same container.
    let mut perf = profile();
    perf.comm(SECOND, 1, 1, "app");
    map_dotnet(&mut perf, 1, JIT);
    let text = refusal(&perf, &contained(JIT + 0x100_0000, SECOND));
    assert!(text.contains("precompiled"), "{text}");
}

#[test]
fn a_recording_of_a_process_that_perf_did_not_see_is_reported() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let files: [(&str, &[u8]); 2] = [
        ("perf.data", &perf.file()),
        ("a.nettrace", &contained(JIT, SECOND)),
    ];
    let (_, diagnostics) = open_with(Opener::new(), &files).expect("both");
    let texts: Vec<String> = diagnostics.list.iter().map(ToString::to_string).collect();
    assert!(
        texts.iter().any(|text| text.contains("--map-pid 1=PID")),
        "{texts:?}"
    );
}

#[test]
fn damaged_recordings_are_joined_as_far_as_they_go() {
    let mut perf = profile();
    for n in 0..40 {
        perf.fork(SECOND + 100 + n, 100 + n as u32, PID, 100 + n as u32);
        perf.mmap2(
            SECOND + 200 + n,
            PID,
            0x10_0000 + n * 0x800,
            0x1000,
            0,
            "/lib/libn.so",
        );
        perf.sample(
            SECOND + 300 + n,
            100 + n as u32,
            100 + n as u32,
            &[JIT + n, 0x10_0010],
        );
    }
    let runtime = runtime(started_at(SECOND), &[("Run", JIT, 100, None)]);
    let mut dump = JitdumpWriter::new(false, PID, 0);
    for n in 0..40 {
        let index = dump.load(SECOND + n, PID, JIT + 8 * n, "code", &[0x90; 32]);
        dump.moved(SECOND + n, PID, JIT + 8 * n, JIT + 4 * n, 32, index);
    }
    let parts = [perf.file(), runtime, dump.file().to_vec()];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut read = 0;
    for round in 0..120 {
        let mut copy = parts.clone();
        let part = &mut copy[round % 3];
        if round % 2 == 0 {
            part.truncate(next(part.len()));
        } else {
            for _ in 0..8 {
                let at = next(part.len());
                part[at] = next(256) as u8;
            }
        }
        let files: [(&str, &[u8]); 3] = [
            ("perf.data", &copy[0]),
            ("a", &copy[1]),
            ("jit-1.dump", &copy[2]),
        ];
        if let Ok((timeline, _)) = open_with(Opener::new(), &files) {
            read += 1;
            for process in timeline.processes() {
                let frames = timeline.frames(process.index, JIT, 150, Position::Return, None);
                assert!(!frames.is_empty());
            }
        }
    }
    assert!(read > 60, "{read} of 120 could be read");
}

#[test]
fn a_process_whose_main_thread_is_not_there_is_called_as_its_lowest_one() {
    let sample =
        |tid: u32| format!("t{tid} 10/{tid} [000] 1.000000: 1 cpu-clock: \n\t1000 f (/a)\n\n");
    let text: String = (20..40).rev().map(sample).collect();
    let timeline = open(&[("perf.txt", text.as_bytes())]);
    assert_eq!(timeline.processes().next().unwrap().name, Some("t20"));
}
