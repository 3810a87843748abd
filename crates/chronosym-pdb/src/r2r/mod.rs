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
mod header;
mod image;
mod instance;
mod map;
mod names;
mod native;
mod runtime_functions;

pub use base::{BaseMatch, MethodStart};
pub use bounds::{Bound, Bounds, IlMapping, IlPosition};
pub use image::{R2rImage, R2rMethod, R2rMethodId};
pub use map::{NamedMethodStart, R2rMap, R2rMapMethod};
pub use names::{AssemblyId, AssemblyResolver, DefiningModule, MethodDefinition, NoAssemblies};
