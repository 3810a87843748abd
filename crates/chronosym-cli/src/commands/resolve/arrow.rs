//! Batches in Arrow's stream format.

use std::io::{Read, Write};

use anyhow::Result;
use chronosym_fleet::AddressReader;

use super::answers::Answers;
use super::names::Names;

/// Resolves batches as they arrive.
pub fn resolve(input: impl Read, mut names: Names, out: &mut dyn Write) -> Result<()> {
    let mut reader = AddressReader::new(input)?;
    let mut writer = reader.writer(out)?;
    let mut answers = Answers::default();
    while let Some(batch) = reader.next_batch()? {
        let keys: Vec<u32> = batch.keys().map(|it| names.key(it.as_bytes())).collect();
        for (key, time, address) in batch.rows() {
            names.ask(keys[key], time, address);
        }
        names.resolve(&mut answers);
        let (texts, rows) = answers.numbered();
        writer.write(texts, rows)?;
    }
    writer.finish()?;
    Ok(())
}
