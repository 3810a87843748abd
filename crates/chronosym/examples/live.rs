//! A trace that is still being written, on standard input: another thread resolves an address while
//! events arrive.

use chronosym::source::{nettrace::NettraceStream, read_live};
use chronosym::{LiveSession, Position};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("which address, in hex?")?;
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
    let mut live = LiveSession::new();
    let reader = live.reader();
    let feeder = std::thread::spawn(move || {
        let stream = NettraceStream::new(std::io::stdin(), Default::default());
        let read = stream.and_then(|mut stream| read_live(&mut stream, &mut live));
        live.finish();
        read
    });
    let mut told = 0;
    while !feeder.is_finished() || told < reader.timeline().facts().duration_ns {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let timeline = reader.timeline();
        let now = timeline.facts().duration_ns;
        if std::mem::replace(&mut told, now) < now {
            for process in timeline.processes().map(|process| process.index) {
                let frames = timeline.frames(process, address, now, Position::Exact, None);
                let open = timeline.is_provisional(process, address, now, Position::Exact);
                println!("{now} ns: {}, provisional: {open}", frames[0].label());
            }
        }
    }
    feeder.join().map_err(|_| "the feeder failed")??;
    Ok(())
}
