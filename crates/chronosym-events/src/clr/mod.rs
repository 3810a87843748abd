//! Events of the runtime's providers.

mod loader;
mod method;
mod runtime;
mod types;

pub use {loader::*, method::*, runtime::*, types::*};
