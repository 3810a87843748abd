//! Traces of LTTng: from the files of their folders to one reader.

use std::io::Read;

use chronosym_ctf::{Metadata, Options, Reader};

use super::bytes::ByteStream;
use super::error::{OpenError, failed};
use super::find::CtfFiles;
use super::note::{Note, Notes};

/// Reads what is described, and puts the streams to it; `None` if there is none. A trace whose metadata cannot be read is
/// left out unless there is no other.
///
/// # Errors
/// [`OpenError`] if nothing of it can be read.
pub(super) fn reader(
    files: CtfFiles,
    notes: &Notes,
) -> Result<Option<Reader<ByteStream>>, OpenError> {
    let options = Options::default();
    let (mut traces, mut refused) = (Vec::new(), None);
    for (name, stream) in files.metadata {
        let mut bytes = Vec::new();
        let read = stream
            .take(options.metadata_limit as u64 + 1)
            .read_to_end(&mut bytes);
        let read = read.map_err(|error| failed(&name, error, OpenError::read));
        let parsed = read.and_then(|_| {
            Metadata::parse(&bytes, options).map_err(|source| OpenError::Trace {
                name: name.clone(),
                source: source.into(),
            })
        });
        match parsed {
            Ok(metadata) => traces.push(metadata),
            Err(OpenError::Cancelled) => return Err(OpenError::Cancelled),
            Err(error) => {
                let cause = error.cause();
                notes.push(Note::Companion { name, error: cause });
                refused = Some(error);
            }
        }
    }
    if traces.is_empty() {
        return refused.map_or(Ok(None), Err);
    }
    let mut reader = Reader::new(traces, options);
    for (_, stream) in files.streams {
        reader.add_stream(stream);
    }
    Ok(Some(reader))
}
