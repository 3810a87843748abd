//! A trace that is still being written, on standard input: another thread resolves an address while events arrive.

use chronosym::{LiveSession, Position};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).ok_or("which address, in hex?")?;
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
    let mut live = LiveSession::new();
    let reader = live.reader();
    let feeder = std::thread::spawn(move || {
        let read = chronosym::source::nettrace::read_live(std::io::stdin(), &mut live);
        live.finish();
        read
    });
    let mut more = true;
    while more {
        more = !feeder.is_finished();
        let timeline = reader.timeline();
        let now = timeline.facts().duration_ns;
        for process in timeline.processes() {
            for frame in timeline.frames(process.index, address, now, Position::Exact, None) {
                let provisional = timeline.is_provisional(process.index, address, now);
                println!("{now} ns: {}, provisional: {provisional}", frame.label());
            }
        }
    }
    feeder.join().map_err(|_| "the feeder failed")??;
    Ok(())
}
