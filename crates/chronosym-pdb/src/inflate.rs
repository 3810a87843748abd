//! Raw DEFLATE data (RFC 1951) of stated size: embedded PDBs and embedded sources.

use std::io::Read;

use crate::{Error, Result};

/// Decompresses `packed`, which must have `size` bytes decompressed, and at most `limit`.
pub(crate) fn inflate(
    what: &'static str,
    packed: &[u8],
    size: usize,
    limit: usize,
) -> Result<Vec<u8>> {
    if size > limit {
        return Err(Error::TooLarge {
            what,
            size: size as u64,
            limit: limit as u64,
        });
    }
    // The vector grows with the output: a false size allocates nothing.
    let mut out = Vec::new();
    let read = flate2::read::DeflateDecoder::new(packed)
        .take((size as u64).saturating_add(1))
        .read_to_end(&mut out);
    match read {
        Ok(read) if read == size => Ok(out),
        Ok(_) => Err(Error::damaged(what, 0, "its size is not the stated one")),
        Err(_) => Err(Error::damaged(what, 0, "not deflate data")),
    }
}
