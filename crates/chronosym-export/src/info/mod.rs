//! What a trace holds, how its frames are named, and what is wrong with it, as text and as JSON.

mod advice;
mod json;
mod overview;
mod summary;
mod text;

pub use overview::Overview;
