//! Portable PDBs: documents, sequence points, Source Link and embedded source.
//!
//! Format: the portable PDB specification (v1.0), which builds on ECMA-335 metadata. Parsing reads
//! the stream headers and table layout; sequence points are decoded per method on demand.

mod custom;
mod document;
mod pdb;
mod sequence_points;
mod source_link;
#[cfg(test)]
mod tests;

pub use document::{Document, HashAlgorithm};
pub use pdb::PortablePdb;
pub use sequence_points::{SequencePoint, SequencePoints};
pub use source_link::SourceLink;
