//! Which files and options the answers of converted symbols are of.

use std::path::Path;
use std::time::UNIX_EPOCH;

use chronosym_types::Hex;
use sha2::{Digest, Sha256};

use super::layout::VERSION;
use crate::demangle::Dialect;
use crate::mmap::FileData;
use crate::query::Query;

/// Bytes that are compared at the start and at the end of a file.
const SAMPLE: usize = 4096;

/// A digest of everything that answers depend on: the version of the program, the options of the
/// query, and of each file its identity, length, time of modification, first and last bytes.
///
/// The cache marks files in its folder as used by their time, and replaces them as a whole: their
/// time does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

/// A file that answers are from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a> {
    pub(crate) data: &'a FileData,
    /// Its build id or the id of the PDB; empty if it has none.
    pub(crate) id: &'a [u8],
}

impl Key {
    /// Returns the key of answers from these files; `None` for bytes that are no file.
    pub(crate) fn new(inputs: &[Input<'_>], query: &Query, cache: &Path) -> Option<Self> {
        let mut digest = Sha256::new();
        digest.update(VERSION.to_le_bytes());
        digest.update(env!("CARGO_PKG_VERSION"));
        let dialect = match query.symbol_names {
            None => 0,
            Some(Dialect::Plain) => 1,
            Some(Dialect::Llvm) => 2,
            Some(Dialect::Gnu) => 3,
        };
        digest.update([0, u8::from(query.inlines), u8::from(query.lines), dialect]);
        digest.update((query.line_share as u64).to_le_bytes());
        for Input { data, id } in inputs {
            let origin = data.origin()?;
            let modified = match origin.path.starts_with(cache) {
                true => 0,
                false => origin.modified.duration_since(UNIX_EPOCH).ok()?.as_nanos(),
            };
            let sample = data.len().min(SAMPLE);
            digest.update((id.len() as u64).to_le_bytes());
            digest.update(id);
            digest.update((data.len() as u64).to_le_bytes());
            digest.update(origin.len.to_le_bytes());
            digest.update(modified.to_le_bytes());
            digest.update(data.get(..sample)?);
            digest.update(data.get(data.len().checked_sub(sample)?..)?);
        }
        Some(Self(digest.finalize().into()))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns the name of the file with the answers, without extension.
    pub(crate) fn name(&self) -> String {
        Hex(&self.0).to_string()
    }
}
