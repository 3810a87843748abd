//! Reads input lines in batches, as they become available.

use std::io::{BufRead, BufReader, Read};

use anyhow::{Context, Result};

/// Size of the input buffer in bytes, and the maximum size of a batch. A batch reads each part of a
/// file once; single addresses are resolved immediately.
pub const INPUT_BUFFER: usize = 4 << 20;

/// Reads the available input without waiting for more, up to the end of a line; returns false at
/// the end.
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
