//! Lines as they arrive.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result};

/// Answers come in batches: the parts of a file are read once for a batch, and single addresses are resolved at once.
pub const INPUT_BUFFER: usize = 4 << 20;

/// Reads what input there is without waiting for more, up to the end of a line; false at the end.
pub fn next_lines<R: Read>(input: &mut BufReader<R>, lines: &mut Vec<u8>) -> Result<bool> {
    lines.clear();
    input
        .read_until(b'\n', lines)
        .context("cannot read the text")?;
    let ready = input.buffer();
    let whole = ready
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    lines.extend_from_slice(&ready[..whole]);
    input.consume(whole);
    Ok(!lines.is_empty())
}
