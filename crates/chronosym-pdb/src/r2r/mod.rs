//! ReadyToRun images: precompiled code, its method tables and debug information.
//!
//! The image names every method in it and maps native offsets to IL offsets. Composites, and names
//! defined in other modules, also need the metadata of those modules.
//!
//! Format: `docs/design/coreclr/botr/readytorun-format.md` of dotnet/runtime and the headers
//! `readytorun.h` and `readytoruninstructionset.h`; checked on images of major versions 2, 3, 9, 10
//! and 16.

mod base;
mod bounds;
mod functions;
mod header;
mod image;
mod instance;
mod map;
mod names;
mod native;

pub use base::{BaseMatch, KnownStart};
pub use bounds::{Bound, Bounds, IlAnswer, IlMapping};
pub use image::{MethodId, R2rImage, R2rMethod};
pub use map::{NamedStart, R2rMap, R2rMapRow};
pub use names::{AssemblyId, Definition, ModuleRef, ModuleSource, NoModules};
