//! Counts the events of a trace: the folders with a `metadata` file that are named.

use std::collections::BTreeMap;
use std::fs::{self, File};

use chronosym_ctf::{Metadata, Options, Reader, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut traces, mut streams) = (Vec::new(), Vec::new());
    for folder in std::env::args_os().skip(1) {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.ends_with("metadata") {
                traces.push(Metadata::parse(&fs::read(path)?, Options::default())?);
            } else if path.is_file() {
                streams.push(File::open(path)?);
            }
        }
    }
    let mut reader = Reader::new(Source { traces, streams }, Options::default())?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    while let Some(event) = reader.next_event()? {
        *counts.entry(event.event_type.name.clone()).or_default() += 1;
    }
    for (name, count) in counts {
        println!("{count:>10} {name}");
    }
    println!("{:?}", reader.diagnostics());
    Ok(())
}
