//! Flame graphs as single files: SVGs that are drawn without scripts and searched with them.

mod graph;
mod svg;

pub use svg::{write_diff_svg, write_svg};
