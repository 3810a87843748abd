//! Batches in Arrow's stream format.

use std::io::{Read, Write};

use anyhow::Result;
use chronosym_fleet::AddressReader;

use super::answers::Answers;
use super::names::Names;
use super::rows::Rows;

/// Resolves batches as they arrive.
pub fn resolve(input: impl Read, mut names: Names, out: &mut dyn Write) -> Result<()> {
    let mut reader = AddressReader::new(input)?;
    let mut writer = reader.writer(out)?;
    let mut answers = Answers::default();
    let mut keys = Vec::new();
    while let Some(batch) = reader.next_batch()? {
        keys.clear();
        let numbers = batch.keys().map(|it| names.key(it.as_bytes()));
        match batch.positions() {
            None => keys.extend(numbers),
            Some(positions) => {
                let numbers: Vec<u32> = numbers.collect();
                keys.extend(positions.iter().map(|&it| numbers[it as usize]));
            }
        }
        let rows = Rows {
            keys: &keys,
            times: batch.times(),
            addresses: batch.addresses(),
        };
        names.resolve(&rows, &mut answers);
        let (texts, rows) = answers.numbered();
        writer.write(texts, rows)?;
    }
    writer.finish()?;
    Ok(())
}
