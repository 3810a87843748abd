//! Columns that Arrow's consumers take without a copy, and arrays that they pass.

mod categories;
mod data;
mod ffi;
mod input;
mod queries;

pub use categories::Categories;
pub use data::{Array, Field, NONE, Texts};
pub use ffi::{ArrowArray, ArrowArrayStream, ArrowSchema, Next};
pub use input::Numbers;
pub use queries::{QUERY, Queries};
