//! Raw DEFLATE data (RFC 1951) whose size is stated: embedded PDBs and embedded sources.

use std::io::Read;

use crate::{Error, Result};

/// Unpacks raw deflate data that states its unpacked size.
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
    // The stated size is not trusted for the allocation: the vector grows with what really comes.
    let mut out = Vec::new();
    let read = flate2::read::DeflateDecoder::new(packed)
        .take((size as u64).saturating_add(1))
        .read_to_end(&mut out);
    match read {
        Ok(found) if found == size => Ok(out),
        Ok(_) => Err(Error::damaged(what, 0, "its size is not the stated one")),
        Err(_) => Err(Error::damaged(what, 0, "not deflate data")),
    }
}
