//! Counts the events of a trace by kind: `cargo run --example count_records -- trace.etl…`

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;

use chronosym_etl::{EventKey, Options, Reader};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Result<Vec<_>, _> = std::env::args_os().skip(1).map(File::open).collect();
    let readers: Result<Vec<_>, _> = (files?.into_iter())
        .map(|file| Reader::new(file, Options::default()))
        .collect();
    let mut reader = Reader::merge(readers?)?;
    println!("{:#?}", reader.header());
    let start = std::time::Instant::now();
    let mut counts = BTreeMap::<String, u64>::new();
    let mut records = 0u64;
    while let Some(record) = reader.next_record()? {
        records += 1;
        let name = match record.key {
            EventKey::Classic {
                class,
                opcode,
                version,
            } => format!("{class}/{opcode} v{version}"),
            EventKey::Manifest {
                provider,
                id,
                version,
                ..
            } => format!("{provider} {id} v{version}"),
            other => format!("{other:?}"),
        };
        *counts.entry(name).or_default() += 1;
    }
    let elapsed = start.elapsed();
    for (name, count) in counts {
        println!("{count:10} {name}");
    }
    println!("{:#?}", reader.diagnostics());
    println!("{records} records in {elapsed:?}");
    Ok(())
}
