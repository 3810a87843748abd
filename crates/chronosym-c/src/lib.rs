//! The C interface of chronosym.
//!
//! `include/chronosym.h` is generated from this crate, and docs/languages/c.md explains it. Objects are handles: numbers in a
//! table, never pointers, so a null, freed or foreign handle is an error and not undefined behaviour. Every function
//! returns a [`chronosym_status`]; the details of the last failure of a thread are in [`chronosym_last_error`]. No panic
//! crosses the boundary.
//!
//! From Rust, use the crate `chronosym` instead.
#![deny(missing_docs)]
// Names are those of the C header.
#![allow(non_camel_case_types)]

mod boundary;
mod facts;
mod handles;
mod last_error;
mod names;
mod open;
mod pointers;
mod resolver;
mod session;
mod status;
mod symbols;
mod text;
mod timeline;

pub use facts::{
    chronosym_action, chronosym_fact, chronosym_fact_kind, chronosym_il_entry, chronosym_pdb,
};
pub use last_error::{chronosym_error, chronosym_last_error};
pub use names::{chronosym_list, chronosym_name, chronosym_version};
pub use open::{chronosym_open, chronosym_open_flags, chronosym_open_options, chronosym_progress};
pub use resolver::{
    chronosym_frame, chronosym_position, chronosym_query, chronosym_resolve,
    chronosym_resolve_stacks, chronosym_resolver, chronosym_resolver_advance,
    chronosym_resolver_free, chronosym_resolver_new, chronosym_rows, chronosym_stack,
};
pub use session::{
    chronosym_event, chronosym_read, chronosym_session, chronosym_session_advance,
    chronosym_session_apply, chronosym_session_event_type, chronosym_session_finish,
    chronosym_session_forget_before, chronosym_session_free, chronosym_session_new,
    chronosym_session_new_live, chronosym_session_publish, chronosym_session_push,
    chronosym_session_read, chronosym_session_timeline,
};
pub use status::chronosym_status;
pub use symbols::{
    chronosym_symbol_flags, chronosym_symbol_options, chronosym_symbols, chronosym_symbols_free,
    chronosym_symbols_new,
};
pub use text::chronosym_text;
pub use timeline::{
    chronosym_diagnostic, chronosym_process, chronosym_timeline, chronosym_timeline_diagnostics,
    chronosym_timeline_free, chronosym_timeline_info, chronosym_timeline_processes,
    chronosym_timeline_save, chronosym_timeline_share, chronosym_timeline_summary,
};
