//! Writes resolved profiles: folded stacks, text trees, JSON lines, hot-method tables.
//!
//! Every writer takes a [`chronosym::Profile`] or [`chronosym::Timeline`] and a [`std::io::Write`].
#![deny(missing_docs)]

mod call_tree;
mod folded;
mod header;
mod json;
mod measure;
mod rows;
mod text;
mod top;

pub use call_tree::{CallTree, TreeOptions};
pub use folded::write_folded;
pub use header::{describe, meaning, show_count};
pub use json::{FrameObject, Hex, write_json_lines};
pub use measure::Measure;
pub use text::{TextOptions, write_text};
pub use top::{HotMethod, TopOptions, hot_methods, write_top};
