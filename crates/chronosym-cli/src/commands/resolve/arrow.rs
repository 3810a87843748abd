//! Batches in Arrow's stream format.

use std::io::{Read, Write};

use anyhow::Result;
use chronosym_fleet::AddressReader;

use super::answers::Answers;
use super::names::Names;
use super::query::Query;

/// Resolves batches as they arrive.
pub fn resolve(input: impl Read, mut names: Names, out: &mut dyn Write) -> Result<()> {
    let mut reader = AddressReader::new(input)?;
    let mut writer = reader.writer(out)?;
    let (mut queries, mut answers) = (Vec::new(), Answers::default());
    loop {
        queries.clear();
        let more = reader.next_batch(|key, time, address| {
            let key = names.key(key.as_bytes());
            queries.push(Query { key, time, address });
        })?;
        if !more {
            break;
        }
        names.resolve(&queries, &mut answers);
        writer.write((0..answers.len()).map(|row| answers.of(row)))?;
    }
    writer.finish()?;
    Ok(())
}
