//! Flame graphs as single files: an SVG that is drawn without scripts and searched with them, and a
//! page around it.

mod graph;
mod page;
mod svg;

pub use page::{PageFacts, write_diff_html};
pub use svg::{write_diff_svg, write_svg};
