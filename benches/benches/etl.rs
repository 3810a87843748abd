//! From the bytes of an .etl to folded stacks, compared with a bare pass over its records. Prints
//! the ratios last.
//!
//! With `CHRONOSYM_CORPUS` set, the trace is `net.4.5.2.x64.etl.zip` there; else a synthetic one.
#![allow(missing_docs)]

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chronosym::{Options, Session, Timeline};
use chronosym_benches::measure::{folded, measure};
use chronosym_benches::size;
use chronosym_etl::Reader as EtlReader;
use chronosym_support::etl::{At, EtlWriter, Image, Op, Options as FileOptions, Process, Stack};
use criterion::Criterion;

fn real() -> Option<Vec<u8>> {
    let folder = PathBuf::from(std::env::var_os("CHRONOSYM_CORPUS")?);
    let path = folder.join("net.4.5.2.x64.etl.zip");
    let read = || -> io::Result<Vec<u8>> {
        let mut archive = zip::ZipArchive::new(File::open(&path)?)?;
        for index in 0..archive.len() {
            let mut member = archive.by_index(index)?;
            if member.name().is_ok_and(|name| name.ends_with(".etl")) {
                let mut bytes = Vec::new();
                member.read_to_end(&mut bytes)?;
                return Ok(bytes);
            }
        }
        Err(io::ErrorKind::NotFound.into())
    };
    Some(read().unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

/// Samples with stacks of twenty frames on four processors.
fn synthetic(samples: i64) -> io::Result<Vec<u8>> {
    let options = FileOptions {
        cpus: 4,
        compress: true,
        ..FileOptions::default()
    };
    let base = 0x7ff7_0000_0000;
    let mut w = EtlWriter::new(Vec::new(), options)?;
    let process = Process {
        pid: 100,
        image: "app.exe",
        ..Process::default()
    };
    w.process(At::ns(0), Op::DCStart, &process)?;
    let image = Image {
        base,
        size: 0x10_0000,
        pid: 100,
        path: r"C:\app.exe",
        ..Image::default()
    };
    w.image(At::ns(0), Op::DCStart, &image)?;
    w.thread(At::ns(0), Op::DCStart, 100, 7)?;
    for number in 1..=samples {
        let at = At::us(number * 250).cpu((number % 4) as u16);
        let hot = (number * number) as u64 % 997;
        let addresses: [u64; 20] = std::array::from_fn(|d| base + hot * (20 - d as u64) + 0x31);
        w.sample(at, addresses[0], 7)?;
        let stack = Stack {
            event: at,
            pid: 100,
            tid: 7,
            addresses: &addresses,
        };
        w.stack(At::ns(at.ns + 20_000).cpu(at.cpu), &stack)?;
    }
    w.finish()
}

/// Every record in the order of time: (records, sum of their sizes).
fn records(bytes: &[u8]) -> (u64, u64) {
    let mut reader = EtlReader::new(bytes, Default::default()).expect("a trace");
    let mut seen = (0, 0);
    while let Some(record) = reader.next_record().expect("bytes") {
        seen.0 += 1;
        seen.1 += record.bytes().len() as u64;
    }
    seen
}

fn timeline(bytes: &[u8]) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    let reader = EtlReader::new(bytes, Default::default()).expect("a trace");
    chronosym::source::etl::read(reader, &mut session).expect("the first");
    session.finish()
}

fn etl(criterion: &mut Criterion) {
    let (name, bytes) = match real() {
        Some(bytes) => ("net.4.5.2.x64", bytes),
        None => (
            "synthetic",
            synthetic(size(100_000) as i64).expect("written to memory"),
        ),
    };
    let (count, size) = records(&bytes);
    let group = format!("etl/{name}");
    let pass = measure(criterion, &group, "records", size, || records(&bytes));
    let session = measure(criterion, &group, "session", size, || timeline(&bytes));
    let done = timeline(&bytes);
    let fold = measure(criterion, &group, "profile_to_folded", size, || {
        folded(&done)
    });
    let whole = measure(criterion, &group, "bytes_to_folded", size, || {
        folded(&timeline(&bytes))
    });
    if !pass.is_finite() || !whole.is_finite() {
        return;
    }
    println!(
        "\n{name}: {:.1} MB, {count} records of {:.1} MB, {} samples. Best milliseconds, and how many times the pass over \
         records:\n",
        bytes.len() as f64 / 1e6,
        size as f64 / 1e6,
        done.samples().len()
    );
    for (step, ms) in [
        ("records in the order of time", pass),
        ("session: read and freeze", session),
        ("profile and folded stacks", fold),
        ("bytes to folded stacks", whole),
    ] {
        println!("{step:<36}{ms:>10.1}{:>9.2}x", ms / pass);
    }
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3))
        .sample_size(10)
        .configure_from_args();
    etl(&mut criterion);
    criterion.final_summary();
}
