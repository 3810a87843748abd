//! Names addresses of a program from the deltas that an agent appends, while it does so: the part
//! of a profiler that runs where the samples are collected.
//!
//! ```text
//! namer app.deltas 1.5 0x7f1234567890
//! ```

use std::error::Error;
use std::fs::File;
use std::io::Read;

use chronosym::{DeltaReader, Position, SampleSelection, Session};

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: namer DELTAS SECONDS ADDRESS...";
    let mut args = std::env::args().skip(1);
    let mut file = File::open(args.next().ok_or(usage)?)?;
    let time_ns = (args.next().ok_or(usage)?.parse::<f64>()? * 1e9) as u64;
    let (mut reader, mut session) = (DeltaReader::new(), Session::new(SampleSelection::None));
    let (mut unread, mut piece) = (Vec::new(), [0; 1 << 16]);
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            break;
        }
        unread.extend_from_slice(&piece[..count]);
        let read = reader.read(&unread, &mut session)?;
        unread.drain(..read);
    }
    let timeline = session.finish();
    let process = timeline.processes().find(|process| process.is_managed);
    let process = process.ok_or("no process with code")?.index;
    for address in args {
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
        let frames = timeline.frames(process, address, time_ns, Position::Exact, None);
        for frame in &frames {
            println!("{address:#x} {}", frame.label());
        }
    }
    Ok(())
}
