//! Counts the events of a trace by provider, id and version, and prints the time of one pass.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::Instant;

use chronosym_nettrace::{Options, Reader};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("usage: count_events TRACE [ordered]")?;
    let ordered = std::env::args_os()
        .nth(2)
        .is_some_and(|argument| argument == "ordered");
    let begun = Instant::now();
    let mut reader = Reader::new(File::open(path)?, Options::default())?;
    println!("{:#?}", reader.header());
    let mut counts: Vec<u64> = Vec::new();
    let (mut events, mut payload_bytes, mut regions, mut addresses) = (0u64, 0u64, 0u64, 0u64);
    let mut largest_region = 0;
    while let Some(region) = reader.next_region()? {
        regions += 1;
        largest_region = largest_region.max(region.len());
        counts.resize(region.event_types().len(), 0);
        let records = if ordered {
            region.in_time_order()
        } else {
            region.records()
        };
        for record in records {
            events += 1;
            payload_bytes += record.payload.len() as u64;
            counts[record.event_type.index()] += 1;
            if let Some(stack) = record.stack {
                addresses += region.stack(stack).len() as u64;
            }
        }
    }
    let elapsed = begun.elapsed();
    let mut sums: BTreeMap<_, u64> = BTreeMap::new();
    for (event_type, count) in reader.event_types().iter().zip(counts) {
        let key = (
            &event_type.provider,
            event_type.id,
            event_type.version,
            &event_type.name,
        );
        *sums.entry(key).or_default() += count;
    }
    for ((provider, id, version, name), count) in sums {
        println!("{count:>9} {provider}/{id} v{version} {name}");
    }
    println!("{:#?}", reader.diagnostics());
    println!(
        "{events} events, {payload_bytes} payload bytes, {addresses} addresses, {regions} regions, largest {largest_region}"
    );
    println!(
        "{elapsed:?}, {:.1} ns an event",
        elapsed.as_nanos() as f64 / events.max(1) as f64
    );
    Ok(())
}
