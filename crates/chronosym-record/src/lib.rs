#![doc = include_str!("../README.md")]
//!
//! ```no_run
//! # #[cfg(unix)]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use chronosym_record::{Config, Limits, Profile, Runtime, find};
//!
//! let target = find(4711)?;
//! let config = Config::new(Profile::Cpu.providers());
//! let session = Runtime::of(&target).collect(&config)?;
//! let mut out = std::fs::File::create("app.nettrace")?;
//! let began = std::time::Instant::now();
//! let recorded = session.record(&mut out, &Limits::default(), |_| began.elapsed().as_secs() >= 10)?;
//! println!("{} bytes", recorded.bytes);
//! # Ok(()) }
//! # #[cfg(not(unix))]
//! # fn main() {}
//! ```
//!
//! # Sources
//!
//! The protocol is described in the repository dotnet/diagnostics,
//! `documentation/design-docs/ipc-protocol.md`; diagnostic ports in the .NET documentation,
//! "Diagnostic port"; keywords and levels in the runtime's event manifest, `ClrEtwAll.man`.
#![deny(missing_docs)]

#[cfg(unix)]
mod connections;
// Elsewhere programs are not started and processes not found.
#[cfg_attr(not(unix), allow(dead_code))]
mod error;
#[cfg(unix)]
mod identity;
#[cfg_attr(not(unix), allow(dead_code))]
mod ipc;
mod pipe;
#[cfg(unix)]
mod port;
#[cfg(unix)]
mod process;
mod profile;
#[cfg_attr(not(unix), allow(dead_code))]
mod provider;
mod session;
#[cfg(unix)]
mod socket;
#[cfg(unix)]
mod started;
mod stream;
#[cfg(unix)]
mod suspended;

pub use error::RecordError;
#[cfg(unix)]
pub use identity::Identity;
#[cfg(unix)]
pub use process::{Target, find, find_all};
pub use profile::Profile;
pub use provider::{Config, Provider, ProviderError};
pub use session::{End, Limits, Recorded, Runtime, Session};
#[cfg(unix)]
pub use started::Started;
#[cfg(unix)]
pub use suspended::Suspended;
