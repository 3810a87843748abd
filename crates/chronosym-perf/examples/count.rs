//! Counts the records of a perf.data by type, and says what is known of the recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::Instant;

use chronosym_perf::{Event, Options, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: count PERF.DATA")?;
    let begun = Instant::now();
    let mut reader = Reader::new(File::open(path)?, Options::default())?;
    let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
    let (mut parts, mut frames) = (0u64, 0u64);
    while let Some(record) = reader.next_record()? {
        *counts.entry(record.kind).or_default() += 1;
        if let Event::Sample(sample) = record.event {
            for part in sample.callchain.iter().flat_map(|chain| chain.parts()) {
                parts += 1;
                frames += part.addresses.len() as u64;
            }
        }
    }
    let elapsed = begun.elapsed();
    println!("{:#?}\n{:#?}", reader.attrs(), reader.info());
    println!("records by type: {counts:?}, {frames} frames in {parts} parts of call chains");
    println!("{:#?}\n{elapsed:?}", reader.diagnostics());
    Ok(())
}
