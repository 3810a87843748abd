//! Reads traces of every format into the engine of chronosym ([`chronosym_core`]).
//!
//! [`open`](fn@open::open) opens files, pipes and archives, and joins recordings of one machine and
//! time. Each of the other modules adapts one format: it turns a reader's records into events of a
//! [`Session`](chronosym_core::Session).
#![deny(missing_docs)]

pub mod ctf;
mod error;
pub mod etl;
mod etw_clr;
mod etw_processes;
mod etw_samples;
mod etw_stacks;
mod etw_switches;
mod etw_types;
pub mod jitdump;
pub mod nettrace;
pub mod open;
pub mod otlp;
pub mod perf;
pub mod saved;
pub mod script;
mod stream;
mod task_state;
mod threads;

pub use {chronosym_ctf, chronosym_etl, chronosym_nettrace, chronosym_otlp, chronosym_perf};

pub use chronosym_core::AnotherRecording;
pub use error::ReadError;
pub use stream::{EventStream, StreamEvent, read_live};
