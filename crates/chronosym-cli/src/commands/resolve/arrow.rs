//! Batches in Arrow's stream format.

use std::io::{self, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use anyhow::Result;
use chronosym_fleet::{AddressBatch, AddressReader, Error};

use super::answers::Answers;
use super::names::Names;
use super::rows::Columns;

/// Batches that wait while others are resolved.
const WAITING: usize = 16;
/// Rows that are resolved at once, if so many have arrived: the more rows a process has, the more of
/// them find its code in the processor's caches.
const ROWS: usize = 1 << 20;

/// Resolves batches as they arrive: those that have been read are answered before it waits for others.
pub fn resolve(mut names: Names, out: &mut dyn Write) -> Result<()> {
    let reader = AddressReader::new(io::stdin())?;
    let mut writer = reader.writer(out)?;
    let batches = read(reader)?;
    let mut answers = Answers::default();
    let mut columns = Columns::default();
    let mut ends = Vec::new();
    while let Ok(first) = batches.recv() {
        columns.clear();
        ends.clear();
        let mut next = Some(first);
        while let Some(Ok(batch)) = next {
            push(&batch, &mut names, &mut columns);
            ends.push(columns.keys.len());
            let has_room = columns.keys.len() < ROWS;
            next = has_room.then(|| batches.try_recv().ok()).flatten();
        }
        names.resolve(&columns.rows(), &mut answers);
        let mut start = 0;
        for &end in &ends {
            let (texts, rows) = answers.numbered(start..end);
            writer.write(texts, rows)?;
            start = end;
        }
        // The batches before a damaged one have answers.
        if let Some(Err(error)) = next {
            return Err(error.into());
        }
    }
    writer.finish()?;
    Ok(())
}

/// Reads batches in a thread of its own, up to the end or the first damaged one.
fn read(mut reader: AddressReader<io::Stdin>) -> Result<Receiver<Result<AddressBatch, Error>>> {
    let (sender, batches) = mpsc::sync_channel(WAITING);
    thread::Builder::new().spawn(move || {
        while let Some(batch) = reader.next_batch().transpose() {
            let is_last = batch.is_err();
            if sender.send(batch).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(batches)
}

/// Adds the rows of a batch.
fn push(batch: &AddressBatch, names: &mut Names, columns: &mut Columns) {
    let numbers = batch.keys().map(|it| names.key(it.as_bytes()));
    match batch.positions() {
        None => columns.keys.extend(numbers),
        Some(positions) => {
            let numbers: Vec<u32> = numbers.collect();
            let keys = positions.iter().map(|&it| numbers[it as usize]);
            columns.keys.extend(keys);
        }
    }
    columns.times.extend_from_slice(batch.times());
    columns.addresses.extend_from_slice(batch.addresses());
}
