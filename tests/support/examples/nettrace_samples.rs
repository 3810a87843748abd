//! Writes a .nettrace of samples to standard output: `nettrace_samples BODIES STACKS SAMPLES`.

use std::error::Error;
use std::io::{self, Write};

use chronosym_support::synthetic;

fn main() -> Result<(), Box<dyn Error>> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u32>());
    let mut next = || numbers.next().ok_or("BODIES STACKS SAMPLES, please");
    let (bodies, stacks, samples) = (next()??, next()??, next()??);
    let mut out = io::stdout().lock();
    synthetic::nettrace(bodies.into(), stacks.into(), samples as usize, &mut out)?;
    Ok(out.flush()?)
}
