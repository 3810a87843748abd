#![doc = include_str!("../README.md")]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

mod array;
mod catalog;
mod clr;
mod cursor;
mod describe;
mod error;
mod event;
mod event_info;
#[cfg(feature = "manifest")]
mod event_source;
mod inline_tree;
pub mod kernel;
mod layouts;
mod part;
mod provider;
mod published;
mod schema;
#[cfg(feature = "serde")]
mod serialize;
pub mod tasks;
pub mod universal;
mod value;

pub use array::{I32s, Ids, U32s};
pub use catalog::{CatalogEntry, catalog};
pub use chronosym_types::{
    AStr, Addresses, Field, FieldType, Guid, ParseGuidError, PointerSize, TraceLoggingSchema, WStr,
};
pub use clr::*;
pub use cursor::Action;
pub use error::DecodeError;
pub use event::Event;
#[cfg(feature = "manifest")]
pub use event_source::{ManifestChunks, ManifestError};
pub use inline_tree::{InlineMapping, InlineNode, InlineTree, InlineTreeError, RichDebugChunks};
pub use kernel::KernelEvent;
pub use provider::Provider;
pub use schema::{EventKey, EventSchema, MANIFEST_EVENT_ID, RawEvent};
pub use universal::{Text, UniversalEvent};
pub use value::{FieldList, Value};
