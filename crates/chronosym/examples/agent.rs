//! Reads an EventPipe stream from standard input, and appends what names its code to a file: the
//! part of a profiler that runs on the program's host. `namer` resolves addresses with the file, on
//! any host. A crash loses what was not read: each batch is appended at once.
//!
//! ```text
//! agent app.deltas <app.nettrace
//! namer app.deltas 1.5 0x7f1234567890
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{Write, stdin};

use chronosym::LiveSession;
use chronosym::source::EventStream;
use chronosym::source::nettrace::NettraceStream;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: agent DELTAS")?;
    let mut file = File::create(path)?;
    let mut stream = NettraceStream::new(stdin(), Default::default())?;
    let mut live = LiveSession::new();
    live.keep_deltas();
    while live
        .read_batch(|session| stream.read_batch(session))?
        .is_some()
    {
        file.write_all(&live.take_delta())?;
        // The agent's own memory follows what is alive.
        live.forget_before(live.watermark());
    }
    file.write_all(&live.take_delta())?;
    Ok(())
}
