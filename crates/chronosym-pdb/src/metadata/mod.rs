//! ECMA-335 metadata, as far as it names methods and types.

mod il;
mod names;
mod root;
mod signature;
mod tables;
#[cfg(test)]
mod tests;
mod text;

pub use il::IlBody;
pub use names::MethodName;
pub use root::{Metadata, MethodDef};
pub use signature::{MethodSignature, Type, TypeName};
pub use tables::{Table, Token};
pub use text::TypeFormat;

pub(crate) use signature::{Budget, Modules, SignatureReader};
pub(crate) use tables::HAS_CUSTOM_DEBUG_INFORMATION;
