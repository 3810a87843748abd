//! PE images: identity, sections, the debug directory, the CLI header, exports.
//!
//! Managed images are PE files on every operating system. Formats: the PE format, the chapter
//! "PE/COFF" of the portable PDB specification, and ECMA-335 II.25 for the CLI header.

mod debug;
mod image;
#[cfg(test)]
mod tests;

pub use debug::{CodeView, PdbChecksum, PerfMapId};
pub use image::{CorHeader, Machine, PeImage, RvaRange, Section, TargetOs};
