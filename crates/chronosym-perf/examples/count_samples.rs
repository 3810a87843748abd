//! Counts the records of a perf.data, or the code bodies of a jitdump, and describes the recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::Instant;

use chronosym_perf::{Error, Event, Options, Reader, jitdump};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("usage: count PERF.DATA|JITDUMP")?;
    let begun = Instant::now();
    let counted = count_records(File::open(&path)?);
    if let Err(Error::WrongFormat { .. }) = counted {
        count_loads(File::open(&path)?)?;
    } else {
        counted?;
    }
    println!("{:?}", begun.elapsed());
    Ok(())
}

fn count_records(file: File) -> Result<(), Error> {
    let mut reader = Reader::new(file, Options::default())?;
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
    println!("{:#?}\n{:#?}", reader.attrs(), reader.info());
    println!("records by type: {counts:?}, {frames} frames in {parts} parts of call chains");
    println!("{:#?}", reader.diagnostics());
    Ok(())
}

fn count_loads(file: File) -> Result<(), Error> {
    let mut reader = jitdump::Reader::new(file, Default::default())?;
    println!("{:#?}", reader.header());
    let (mut loads, mut moves, mut bytes, mut lines) = (0u64, 0u64, 0u64, 0u64);
    while let Some(record) = reader.next_record()? {
        match record {
            jitdump::Record::Load(load) => {
                loads += 1;
                bytes += load.size;
                lines += load.lines.count() as u64;
            }
            jitdump::Record::Move(_) => moves += 1,
            _ => {}
        }
    }
    println!("{loads} loads of {bytes} bytes with {lines} lines, {moves} moves");
    println!("{:#?}", reader.diagnostics());
    Ok(())
}
