//! Portable PDBs: source documents, sequence points, Source Link, embedded source and state machines.
//!
//! Format: the portable PDB specification (v1.0), which builds on ECMA-335 metadata. Opening a PDB
//! reads the table of contents; the sequence points of one method are decoded when it is asked for.

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
