//! The main job, from the bytes of a .nettrace to folded stacks, compared with a bare pass over the
//! same bytes; and the growth with the length of the trace. Prints the ratios last.
//!
//! With `CHRONOSYM_TESTDATA` set, the trace is `clr10/traces/big.nettrace.zip` there; else a
//! synthetic one.
#![allow(missing_docs)]

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chronosym::{Options, Session, Timeline};
use chronosym_benches::measure::{folded, measure};
use chronosym_benches::size;
use chronosym_benches::trace::{self, Seen};
use chronosym_nettrace::Reader;
use criterion::Criterion;

fn big() -> Option<Vec<u8>> {
    let folder = PathBuf::from(std::env::var_os("CHRONOSYM_TESTDATA")?);
    let path = folder.join("clr10/traces/big.nettrace.zip");
    let read = || -> io::Result<Vec<u8>> {
        let mut archive = zip::ZipArchive::new(File::open(&path)?)?;
        let mut bytes = Vec::new();
        archive.by_index(0)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    Some(read().unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn made_up(bodies: usize, stacks: usize, samples: usize) -> Vec<u8> {
    trace::synthetic(size(bodies) as u64, size(stacks) as u64, size(samples))
}

/// Every record and every stack, through the reader.
fn records(bytes: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let mut reader = Reader::new(bytes, Default::default()).expect("a trace");
    while let Some(region) = reader.next_region().expect("bytes in memory") {
        for record in region.records() {
            seen.events += 1;
            seen.samples += u64::from(record.stack.is_some());
            seen.sum = seen.sum.wrapping_add(record.time_ns);
        }
        for stack in region.stacks() {
            seen.stacks += 1;
            seen.frames += stack.len() as u64;
            seen.sum = stack.iter().fold(seen.sum, u64::wrapping_add);
        }
    }
    seen
}

fn timeline(bytes: &[u8]) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    chronosym::source::nettrace::read(bytes, &mut session).expect("a trace");
    session.finish()
}

fn main_job(criterion: &mut Criterion) {
    let (name, bytes) = match big() {
        Some(bytes) => ("big", bytes),
        None => ("synthetic", made_up(20_000, 20_000, 2_000_000)),
    };
    let seen = trace::bare_pass(&bytes).expect("a V4 trace");
    let read = records(&bytes);
    assert_eq!(
        (read.events, read.stacks, read.frames),
        (seen.events, seen.stacks, seen.frames),
        "the bare pass and the reader see the same"
    );
    let group = format!("main_job/{name}");
    let size = bytes.len() as u64;
    let bare = measure(criterion, &group, "bare_pass", size, || {
        trace::bare_pass(&bytes)
    });
    let reader = measure(criterion, &group, "reader", size, || records(&bytes));
    let session = measure(criterion, &group, "session", size, || timeline(&bytes));
    let done = timeline(&bytes);
    let fold = measure(criterion, &group, "profile_to_folded", size, || {
        folded(&done)
    });
    let whole = measure(criterion, &group, "bytes_to_folded", size, || {
        folded(&timeline(&bytes))
    });
    if !bare.is_finite() || !whole.is_finite() {
        return;
    }
    println!(
        "\n{name}: {:.1} MB, {} events, {} with a stack, {} stacks of {} frames. Best milliseconds, and how many times the bare \
         pass:\n",
        size as f64 / 1e6,
        seen.events,
        seen.samples,
        seen.stacks,
        seen.frames
    );
    for (step, ms) in [
        ("bare pass over headers and stacks", bare),
        ("reader: records in regions", reader),
        ("session: read and freeze", session),
        ("profile and folded stacks", fold),
        ("bytes to folded stacks", whole),
    ] {
        println!("{step:<36}{ms:>10.1}{:>9.1}x", ms / bare);
    }
}

fn growth(criterion: &mut Criterion) {
    let mut rows = Vec::new();
    for (label, bodies, stacks, samples) in [
        ("1x samples", 5000, 5000, 300_000),
        ("10x samples", 5000, 5000, 3_000_000),
        ("10x bodies and stacks", 50_000, 50_000, 300_000),
    ] {
        let bytes = made_up(bodies, stacks, samples);
        let ms = measure(criterion, "growth", label, bytes.len() as u64, || {
            folded(&timeline(&bytes))
        });
        rows.push((label, bytes.len(), ms));
    }
    if rows.iter().all(|row| row.2.is_finite()) {
        println!("\nGrowth of a made-up trace: best milliseconds from bytes to folded stacks\n");
        for (label, bytes, ms) in rows {
            println!("{label:<36}{:>8.1} MB{ms:>10.1}", bytes as f64 / 1e6);
        }
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .sample_size(10)
        .configure_from_args();
    main_job(&mut criterion);
    growth(&mut criterion);
    criterion.final_summary();
}
