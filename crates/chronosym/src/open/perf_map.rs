//! Perf maps, which may be gzipped.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::error::OpenError;
use crate::limits::{LimitReached, Limits};

/// The text of a perf map, plain or gzipped, for [`Session::perf_map`](crate::Session::perf_map).
///
/// # Errors
/// [`OpenError::Open`], [`OpenError::Read`], [`OpenError::Damaged`], or [`OpenError::Limit`] for
/// [`Limits::perf_map_bytes`].
pub fn read_perf_map(path: impl AsRef<Path>, limits: &Limits) -> Result<Vec<u8>, OpenError> {
    let name = path.as_ref().display().to_string();
    let read = |source| OpenError::Read {
        name: name.clone(),
        source,
    };
    let file = File::open(&path).map_err(read)?;
    let mut file = BufReader::new(file);
    let most = limits.perf_map_bytes;
    let (mut text, rest) = (Vec::new(), most.saturating_add(1));
    if file.fill_buf().map_err(read)?.starts_with(&[0x1f, 0x8b]) {
        let unpacked = MultiGzDecoder::new(file).take(rest).read_to_end(&mut text);
        unpacked.map_err(|source| OpenError::Damaged {
            name: format!("{name} (gzip)"),
            source,
        })?;
    } else {
        file.take(rest).read_to_end(&mut text).map_err(read)?;
    }
    if text.len() as u64 > most {
        let limit = LimitReached::PerfMapBytes(most);
        return Err(OpenError::Limit { name, limit });
    }
    Ok(text)
}
