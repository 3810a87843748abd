//! An .etl that is cut at any buffer gives the stacks that it has.

mod common;

use common::*;

use chronosym_support::etl::{
    At, EtlWriter, Image, Op, Options as FileOptions, Process, Stack, buffers,
};

const BASE: u64 = 0x1_4000_0000;

/// Two processors sample one thread each millisecond.
fn trace() -> Vec<u8> {
    let options = FileOptions {
        cpus: 2,
        buffer_size: 4096,
        end_ns: None,
        ..FileOptions::default()
    };
    let mut w = EtlWriter::new(Vec::new(), options).unwrap();
    let process = Process {
        pid: 100,
        image: "app.exe",
        ..Process::default()
    };
    w.process(At::ns(0), Op::DCStart, &process).unwrap();
    w.thread(At::ns(0), Op::DCStart, 100, 7).unwrap();
    let image = Image {
        base: BASE,
        size: 0x1_0000,
        pid: 100,
        path: r"C:\app.exe",
        ..Image::default()
    };
    w.image(At::ns(0), Op::DCStart, &image).unwrap();
    w.flush(0).unwrap();
    for ms in 1..300 {
        let at = At::ms(ms).cpu((ms % 2) as u16);
        w.sample(at, BASE + 0x10, 7).unwrap();
        let stack = Stack {
            event: at,
            pid: 100,
            tid: 7,
            addresses: &[BASE + 0x10, BASE + 0x21],
        };
        let later = At::us(ms * 1_000 + 20).cpu(at.cpu);
        w.stack(later, &stack).unwrap();
    }
    w.finish().unwrap()
}

#[test]
fn every_buffer_edge_gives_the_samples_before_it() {
    let trace = trace();
    let sizes: Vec<usize> = buffers(&trace).iter().map(|b| b.len()).collect();
    assert!(sizes.len() > 6);
    let mut edge = sizes[0];
    let mut before = 0;
    for size in &sizes[1..] {
        edge += size;
        // At the edge, and inside the next buffer.
        for cut in [edge, (edge + 700).min(trace.len())] {
            let input = file(&trace[..cut]);
            let path = input.to_str().unwrap();
            let run = run(&["stacks", "--format", "folded", path]);
            let damaged = cut != edge;
            let samples: u64 = run
                .stdout
                .lines()
                .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
                .sum();
            assert_eq!(run.status, 0, "{cut}: {}", run.stderr);
            assert!(samples >= before, "{cut}: {samples} after {before}");
            if damaged {
                assert!(run.stderr.contains("cut short"), "{cut}: {}", run.stderr);
            }
            for line in run.stdout.lines() {
                assert!(line.starts_with("app (100);thread (7);app!"), "{line}");
            }
            before = samples;
        }
    }
    assert_eq!(before, 299);
}
