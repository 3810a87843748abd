//! What losses and damage of one of several recordings put in doubt.

use chronosym::{Certainty, Opener, Position};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::Method;
use chronosym_support::perf::{JitdumpWriter, PerfAttr, PerfWriter};
use chronosym_support::random::Random;

use super::{JIT, PID, SECOND, frame, open, open_with, profile, runtime, started_at};

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
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut read = 0;
    for round in 0..120 {
        let mut copy = parts.clone();
        let part = &mut copy[round % 3];
        if round % 2 == 0 {
            part.truncate(random.index(part.len()));
        } else {
            for _ in 0..8 {
                let at = random.index(part.len());
                part[at] = random.below(256) as u8;
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
