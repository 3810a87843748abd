//! Columns of numbers as bytes, which compress well and are read in one pass.

use std::io::{self, Write};

use chronosym_types::zigzag;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;

/// A column: its name, the number of values, and the bytes per value.
#[derive(Debug, Serialize)]
pub(super) struct ColumnInfo {
    name: &'static str,
    count: usize,
    bytes: u32,
}

/// Columns of unsigned integers. The least significant bytes of all values of a column come first,
/// then the next ones: bytes of one significance resemble each other.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub info: Vec<ColumnInfo>,
    bytes: Vec<u8>,
}

impl Columns {
    pub fn add(&mut self, name: &'static str, values: impl IntoIterator<Item = u64>) {
        let values: Vec<u64> = values.into_iter().collect();
        let most = values.iter().max().copied().unwrap_or(0);
        let bytes = (u64::BITS - most.leading_zeros()).div_ceil(8);
        for byte in 0..bytes {
            let of = values.iter().map(|value| (value >> (8 * byte)) as u8);
            self.bytes.extend(of);
        }
        let count = values.len();
        self.info.push(ColumnInfo { name, count, bytes });
    }

    /// Writes the header and the columns, compressed and in base64: the length of the header in
    /// four bytes, least significant first, the header, the columns. Nothing in it is markup.
    pub fn write(&self, header: &str, out: &mut impl Write) -> io::Result<()> {
        let out = base64::write::EncoderWriter::new(out, &base64::prelude::BASE64_STANDARD);
        let mut out = ZlibEncoder::new(out, Compression::best());
        let length = u32::try_from(header.len()).map_err(io::Error::other)?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(header.as_bytes())?;
        out.write_all(&self.bytes)?;
        out.finish()?.finish()?;
        Ok(())
    }
}

/// Differences between successive values.
pub(super) fn deltas(values: impl IntoIterator<Item = u64>) -> impl Iterator<Item = u64> {
    let mut last = 0;
    values.into_iter().map(move |value| {
        let delta = value.wrapping_sub(last);
        last = value;
        zigzag(delta)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_one_significance_are_together() {
        let mut columns = Columns::default();
        columns.add("a", deltas([1000, 1001, 999]));
        columns.add("b", [0, 0]);
        columns.add("c", [u64::MAX]);
        assert_eq!(
            columns.bytes,
            [
                0xd0, 2, 3, 0x07, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255
            ]
        );
        let bytes: Vec<u32> = columns.info.iter().map(|column| column.bytes).collect();
        assert_eq!(bytes, [2, 0, 8]);
    }
}
