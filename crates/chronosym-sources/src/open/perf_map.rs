//! Reads perf maps, which may be gzipped.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::error::{OpenError, failed};
use chronosym_core::{LimitReached, Limits};

/// Returns the text of a perf map, plain or gzipped, for
/// [`Session::perf_map`](chronosym_core::Session::perf_map).
///
/// # Errors
///
/// [`OpenError::Open`], [`OpenError::Read`], [`OpenError::Damaged`], or [`OpenError::Limit`] for
/// [`Limits::perf_map_bytes`].
pub fn read_perf_map(path: impl AsRef<Path>, limits: &Limits) -> Result<Vec<u8>, OpenError> {
    let name = path.as_ref().display().to_string();
    let read = |source| OpenError::read(name.clone(), source);
    let file = File::open(&path).map_err(read)?;
    let held = limits.held_of(file.metadata().map_or(0, |it| it.len()));
    let mut file = BufReader::new(file);
    if file.fill_buf().map_err(read)?.starts_with(&[0x1f, 0x8b]) {
        let name = format!("{name} (gzip)");
        return whole(
            &name,
            MultiGzDecoder::new(file),
            held,
            limits,
            OpenError::damaged,
        );
    }
    // The ratio limit does not apply to uncompressed files.
    whole(&name, file, u64::MAX, limits, OpenError::read)
}

/// Reads a whole perf map of up to `held` bytes.
pub(super) fn whole(
    name: &str,
    source: impl Read,
    held: u64,
    limits: &Limits,
    or: impl FnOnce(String, io::Error) -> OpenError,
) -> Result<Vec<u8>, OpenError> {
    let most = limits.perf_map_bytes.min(held);
    let mut text = Vec::new();
    let read = source.take(most.saturating_add(1)).read_to_end(&mut text);
    read.map_err(|error| failed(name, error, or))?;
    if text.len() as u64 > most {
        return Err(OpenError::Limit {
            name: name.to_owned(),
            limit: match most < limits.perf_map_bytes {
                true => LimitReached::UnpackedRatio(limits.held_ratio()),
                false => LimitReached::PerfMapBytes(most),
            },
        });
    }
    Ok(text)
}
