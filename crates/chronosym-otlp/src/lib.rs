//! Reads [OTLP profiles](https://opentelemetry.io/docs/specs/otel/profiles/), in the version
//! `v1development` of opentelemetry-proto 1.9 and later, and adds names and lines to them.
//!
//! # Examples
//!
//! ```
//! use chronosym_otlp::{NewLine, Profiles};
//! use opentelemetry_proto::tonic::profiles::v1development as proto;
//! use prost::Message;
//!
//! let mut data = proto::ProfilesData::default();
//! let mut dictionary = proto::ProfilesDictionary::default();
//! dictionary.location_table.push(proto::Location { address: 0x1234, ..Default::default() });
//! data.dictionary = Some(dictionary);
//! let scope = proto::ScopeProfiles { profiles: vec![Default::default()], ..Default::default() };
//! data.resource_profiles = vec![proto::ResourceProfiles { scope_profiles: vec![scope], ..Default::default() }];
//!
//! let all = Profiles::read(data.encode_to_vec())?;
//! assert_eq!(all[0].location(0).unwrap().address, 0x1234);
//! let name = NewLine { name: "main".to_owned(), file: "main.c".to_owned(), line: 7, column: 0 };
//! let named = all[0].with_lines(&[(0, vec![name])].into_iter().collect());
//! let named = Profiles::read(named)?;
//! let line = named[0].location(0).unwrap().lines().next().unwrap();
//! assert_eq!((line.line, &*named[0].function(line.function).unwrap().name), (7, "main"));
//! # Ok::<(), chronosym_otlp::Error>(())
//! ```
//!
//! # Limits
//!
//! The input is in memory, at most [`MAX_BYTES`]; every element of a table takes eight bytes more.
//! Texts are cut after [`MAX_TEXT`] bytes, and lists of an element after 256 elements, so that reading
//! an element takes bounded time.
//!
//! # Damage
//!
//! Every index and length is checked. A message that does not follow the encoding ends early, and a
//! truncated element of a table is left out.
#![deny(missing_docs)]

mod error;
mod frames;
mod profiles;
mod rewrite;
mod wire;

pub use error::Error;
pub use frames::{Address, FileIds, FrameType};
pub use profiles::{
    Attribute, AttributeValue, Function, Line, Location, MAX_BYTES, MAX_TEXT, Mapping, Profile,
    Profiles, Sample, Samples, ValueType,
};
pub use rewrite::{NewLine, join};
