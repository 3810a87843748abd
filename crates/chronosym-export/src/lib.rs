//! Writes resolved profiles: folded stacks, text trees, JSON lines, hot-method tables.
//!
//! Every writer takes a [`chronosym::Profile`] or [`chronosym::Timeline`] and a [`std::io::Write`].
#![deny(missing_docs)]

mod annotate;
mod butterfly;
mod call_tree;
mod diff;
mod fit;
mod folded;
mod json;
mod rows;
mod text;
mod threads;
mod top;
mod top_by;

pub use annotate::{FileLines, Line, LineSamples, MethodLines, Source, write_lines};
pub use butterfly::{Butterfly, Neighbour, write_butterfly};
pub use call_tree::{CallTree, TreeOptions};
pub use diff::{Change, Diff, MethodDiff, MethodSamples, write_diff};
pub use folded::write_folded;
pub use json::{FrameObject, Hex, write_json_lines};
pub use text::{TextOptions, write_text};
pub use threads::{HotThread, hot_threads, write_threads};
pub use top::{HotMethod, TopOptions, hot_methods, write_top};
pub use top_by::{By, HotRow, Sort, hot_rows, write_rows, write_rows_json};
