//! Overviews of traces, as text and as JSON: contents, samples, names and diagnostics.

mod advice;
mod json;
mod overview;
mod summary;
mod text;

pub use overview::Overview;
