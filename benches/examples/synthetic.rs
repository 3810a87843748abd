//! Writes a synthetic trace to standard output:
//!
//! `cargo run --release --manifest-path benches/Cargo.toml --example synthetic -- BODIES STACKS SAMPLES > trace.nettrace`

use std::error::Error;
use std::io::{self, Write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u32>());
    let mut next = || numbers.next().ok_or("BODIES STACKS SAMPLES, please");
    let (bodies, stacks, samples) = (next()??, next()??, next()??);
    let bytes = chronosym_benches::trace::synthetic(bodies.into(), stacks.into(), samples as usize);
    io::stdout().write_all(&bytes)?;
    Ok(())
}
