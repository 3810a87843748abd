//! Lists the code that was ever loaded at these addresses of a trace's process.

use chronosym::{Position, SampleSelection};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which trace?")?;
    let (timeline, _) = chronosym::open(path)?.timeline(SampleSelection::None)?;

    let managed = timeline.processes().find(|p| p.is_managed);
    let process = managed.ok_or("no managed process")?.index;
    for address in arguments {
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16)?;
        for body in timeline.bodies_at(process, address) {
            let at = body.lifetime.from;
            for frame in timeline.frames(process, address, at, Position::Exact, None) {
                println!("{address:#x} from {at} ns on: {}", frame.label());
            }
        }
    }
    Ok(())
}
