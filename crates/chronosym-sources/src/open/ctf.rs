//! Opens LTTng traces: from the files of their folders to one reader.

use std::io::Read;

use chronosym_ctf::{Metadata, Options, Reader, Source};

use super::bytes::ByteStream;
use super::error::{OpenError, in_trace, unreadable};
use super::find::CtfFiles;
use super::layers::LayerDiagnostics;

/// Reads the traces' metadata and assigns their streams; `None` if there is no trace. A trace whose
/// metadata cannot be read is skipped unless it is the only one. At most `held` bytes of packets
/// are kept in memory.
///
/// # Errors
///
/// [`OpenError`] if nothing can be read.
pub(super) fn reader(
    files: CtfFiles,
    notes: &LayerDiagnostics,
    held: u64,
) -> Result<Option<Reader<ByteStream>>, OpenError> {
    let mut options = Options::default();
    options.open_limit = options
        .open_limit
        .min(usize::try_from(held).unwrap_or(usize::MAX));
    // The limit of metadata applies to all traces together.
    let mut left = options;
    let (mut traces, mut refused) = (Vec::new(), None);
    for (name, stream) in files.metadata {
        let mut bytes = Vec::new();
        let read = stream
            .take(left.metadata_limit as u64 + 1)
            .read_to_end(&mut bytes);
        let read = read.map_err(|error| unreadable(&name, error));
        let parsed = read
            .and_then(|_| Metadata::parse(&bytes, left).map_err(|error| in_trace(&name, error)));
        left.metadata_limit = left.metadata_limit.saturating_sub(bytes.len());
        match parsed {
            Ok(metadata) => traces.push(metadata),
            Err(OpenError::Cancelled) => return Err(OpenError::Cancelled),
            Err(error) => {
                notes.damage(&name, error.cause());
                refused = Some(error);
            }
        }
    }
    if traces.is_empty() {
        return refused.map_or(Ok(None), Err);
    }
    let streams = files
        .streams
        .into_iter()
        .map(|(_, stream)| stream)
        .collect();
    let reader = Reader::new(Source { traces, streams }, options);
    reader.map(Some).map_err(|error| in_trace("LTTng", error))
}
