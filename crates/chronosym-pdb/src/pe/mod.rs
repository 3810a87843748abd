//! Facts of a PE image: identity, sections, the debug directory, the CLR header, and the names that
//! the image itself carries as a last resort.
//!
//! Managed images are PE files on every OS. Formats: the PE/COFF specification, the portable PDB
//! specification's "PE/COFF" chapter, and ECMA-335 II.25 for the CLR header.

mod debug;
mod image;
#[cfg(test)]
mod tests;

pub use debug::{CodeView, PdbChecksum, PerfMapId};
pub use image::{CorHeader, Machine, PeImage, RvaRange, Section, TargetOs};
