//! Rows as ClickHouse's `RowBinary`: `key String, time Int64, address UInt64` to `Array(String)`.

use std::io::Write;

use anyhow::{Result, bail};

use super::answers::Answers;
use super::input::Input;
use super::names::Names;
use super::rows::Columns;

/// Bytes of a key.
const MAX_KEY: usize = 4096;
/// Bytes that are written at once.
const OUTPUT: usize = 1 << 17;

/// Resolves rows as they arrive: those that have been read are answered before it waits for others.
pub fn resolve(mut input: Input, mut names: Names, out: &mut impl Write) -> Result<()> {
    let (mut bytes, mut text) = (Vec::new(), Vec::new());
    let mut columns = Columns::default();
    let mut answers = Answers::default();
    while input.read(&mut bytes)? {
        let mut rest = bytes.as_slice();
        columns.clear();
        while row(&mut rest, &mut names, &mut columns)? {}
        let used = bytes.len() - rest.len();
        bytes.drain(..used);
        names.resolve(&columns.rows(), &mut answers);
        for row in 0..answers.len() {
            push_names(row, &answers, &mut text);
            if text.len() >= OUTPUT {
                out.write_all(&text)?;
                text.clear();
            }
        }
        out.write_all(&text)?;
        text.clear();
        out.flush()?;
    }
    if !bytes.is_empty() {
        bail!("the input ends within a row");
    }
    Ok(())
}

fn push_names(row: usize, answers: &Answers, text: &mut Vec<u8>) {
    let names = answers.of(row);
    push_length(names.len(), text);
    for &name in names {
        let name = answers.text(name);
        push_length(name.len(), text);
        text.extend_from_slice(name.as_bytes());
    }
}

/// Reads a row, if it is there as a whole. Returns whether it is.
fn row(bytes: &mut &[u8], names: &mut Names, columns: &mut Columns) -> Result<bool> {
    let mut rest = *bytes;
    let Some(length) = length(&mut rest)? else {
        return Ok(false);
    };
    if length > MAX_KEY {
        bail!(
            "a key has {length} bytes, more than {MAX_KEY}: expected rows of String, Int64, UInt64"
        );
    }
    let Some((key, rest)) = rest.split_at_checked(length) else {
        return Ok(false);
    };
    let Some((&time, rest)) = rest.split_first_chunk() else {
        return Ok(false);
    };
    let Some((&address, rest)) = rest.split_first_chunk() else {
        return Ok(false);
    };
    *bytes = rest;
    columns.keys.push(names.key(key));
    columns.times.push(i64::from_le_bytes(time));
    columns.addresses.push(u64::from_le_bytes(address));
    Ok(true)
}

/// Reads a LEB128 number, if it is there as a whole.
fn length(bytes: &mut &[u8]) -> Result<Option<usize>> {
    let mut value = 0;
    for at in 0..5 {
        let Some(&byte) = bytes.get(at) else {
            return Ok(None);
        };
        value |= usize::from(byte & 0x7f) << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Ok(Some(value));
        }
    }
    bail!("the length of a key has more than 5 bytes: expected rows of String, Int64, UInt64")
}

/// Appends a LEB128 number.
fn push_length(mut value: usize, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
