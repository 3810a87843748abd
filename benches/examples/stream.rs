//! Prints the code bodies and sampled addresses of an EventPipe trace (zipped or not), for
//! `CHRONOSYM_BENCH_STREAM` of the lookup bench:
//!
//! `cargo run --release --manifest-path benches/Cargo.toml --example stream -- trace.nettrace > stream.txt`

use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter, Cursor, Read, Write};

use chronosym::{Filter, Options, Session};

/// As many lines of samples at most.
const QUERIES: usize = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("which trace?")?;
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    if bytes.starts_with(b"PK") {
        let mut archive = zip::ZipArchive::new(Cursor::new(std::mem::take(&mut bytes)))?;
        archive.by_index(0)?.read_to_end(&mut bytes)?;
    }
    let mut session = Session::new(Options::default());
    chronosym::source::nettrace::read(bytes.as_slice(), &mut session)?;
    let timeline = session.finish();
    let mut out = BufWriter::new(io::stdout().lock());
    for process in timeline.processes() {
        for body in timeline.bodies(process.index).filter(|b| b.size > 0) {
            let last = body.start + (body.size - 1);
            let life = body.lifetime;
            writeln!(
                out,
                "b {:#x} {last:#x} {} {}",
                body.start, life.from, life.to
            )?;
        }
    }
    let (mut left, mut failed) = (QUERIES, None);
    timeline.for_each_sample(&Filter::default(), |class, time| {
        for address in timeline.stacks().addresses(class.stack).take(left) {
            left -= 1;
            failed = writeln!(out, "q {address:#x} {time}")
                .err()
                .or(failed.take());
        }
    });
    failed.map_or(Ok(()), Err)?;
    out.flush()?;
    Ok(())
}
