//! Call stacks of profiles: copied stacks, branch records, frames that follow later.

use std::sync::Arc;

use chronosym::unwind::{CallFrames, ImageFiles, Registers, Step};
use chronosym::{CallerProof, Filter, ImageRef, Input, Opener, Options, Resolver};
use chronosym_support::perf::{JitdumpWriter, PerfAttr, PerfWriter};

use super::{JIT, PID, SECOND, open, open_with, profile, profile_with};

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
    let mut perf = profile_with(attr);
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
