/// Why bytes cannot be read as OTLP profiles.
///
/// Damage after a first profile is not an error: see [`Profiles::damaged`](crate::Profiles::damaged).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// They have neither a profile nor a dictionary.
    #[error("not OTLP profiles in the encoding of Protocol Buffers{}", hint(.found))]
    NotProfiles {
        /// The first byte, if there is one.
        found: Option<u8>,
    },
    /// They are longer than the reader supports.
    #[error("OTLP profiles of more than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

fn hint(found: &Option<u8>) -> &'static str {
    match found {
        Some(b'{') => ": they look like JSON, which is not supported",
        _ => "",
    }
}
