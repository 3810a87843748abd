//! Reads the bytes of a metadata file into [`Metadata`].

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a packet has its header"
)]

use chronosym_types::ByteOrder;

use crate::error::Error;
use crate::metadata::{FieldType, Holds, Metadata, NameTable};
use crate::options::Options;
use crate::parser;
use crate::types::Type;

impl Metadata {
    /// Parses metadata. Definitions that cannot be parsed are counted and skipped.
    ///
    /// # Errors
    /// [`Error::NotMetadata`], [`Error::MetadataTooLong`], [`Error::UnsupportedVersion`], and
    /// [`Error::NothingDescribed`] if no stream is declared.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_ctf::{Metadata, Options};
    /// # use chronosym_support::ctf::{CtfLayout, CtfTrace, CtfType};
    /// # let mut trace = CtfTrace::new(CtfLayout::default(), &[]);
    /// # trace.event("app:request", &[("path", CtfType::Text)]);
    /// # let metadata = trace.metadata();
    ///
    /// let metadata = Metadata::parse(&metadata, Options::default())?;
    /// assert_eq!(metadata.event_types()[0].name, "app:request");
    /// assert_eq!(metadata.bad_definitions(), 0);
    /// # Ok::<(), chronosym_ctf::Error>(())
    /// ```
    pub fn parse(bytes: &[u8], options: Options) -> Result<Self, Error> {
        if bytes.len() > options.metadata_limit {
            let limit = options.metadata_limit;
            return Err(Error::MetadataTooLong { limit });
        }
        let text = text_of(bytes)?;
        let (mut metadata, version) = parser::parse(&String::from_utf8_lossy(&text));
        if let Some((major, minor)) = version.filter(|&version| version != (1, 8)) {
            return Err(Error::UnsupportedVersion { major, minor });
        }
        if metadata.streams.is_empty() {
            return Err(Error::NothingDescribed);
        }
        for (at, event) in metadata.event_types.iter_mut().enumerate() {
            event.fields = fields(event.fields_type.as_deref(), &metadata.names);
            metadata.by_id.insert((event.stream_id, event.id), at);
        }
        metadata.id_name = metadata.names.find("id");
        Ok(metadata)
    }
}

/// Returns the fields of a type.
fn fields(ty: Option<&Type>, names: &NameTable) -> Vec<FieldType> {
    let Some(Type::Struct(structure)) = ty else {
        return Vec::new();
    };
    let described = structure.fields.iter().map(|field| FieldType {
        name: names.get(field.name).clone(),
        holds: match &*field.ty {
            Type::Scalar(scalar) | Type::Enum(scalar, _) => Holds::Number(scalar.into()),
            Type::Text => Holds::Text,
            Type::Array(element, _) | Type::Sequence(element, _) => match &**element {
                Type::Scalar(scalar) if scalar.is_text && scalar.bits == 8 => Holds::Text,
                Type::Scalar(scalar) | Type::Enum(scalar, _) => Holds::List(scalar.into()),
                _ => Holds::Others,
            },
            Type::Struct(_) | Type::Variant(_) => Holds::Others,
        },
        is_length: field.register.is_some() && matches!(*field.ty, Type::Scalar(_)),
    });
    described.collect()
}

/// The first bytes of a packet of metadata.
const MAGIC: u32 = 0x75d1_1d57;

/// Returns the text in packets of metadata: u32 magic, 16 bytes UUID, u32 checksum, u32 bits of
/// content, u32 bits of the packet, both with this header of 37 bytes, u8 compression, encryption,
/// checksum scheme, major, minor. Tokens may straddle packets.
fn text_of(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    const HEADER: usize = 37;
    let order = match bytes.first_chunk() {
        Some(magic) if u32::from_le_bytes(*magic) == MAGIC => ByteOrder::Little,
        Some(magic) if u32::from_be_bytes(*magic) == MAGIC => ByteOrder::Big,
        _ if bytes.starts_with(b"/* CTF 1.") => return Ok(bytes.to_vec()),
        _ => {
            let found = match bytes.len() {
                0 => "nothing: an empty file".to_owned(),
                _ => format!("\"{}\"", bytes[..bytes.len().min(8)].escape_ascii()),
            };
            return Err(Error::NotMetadata { found });
        }
    };
    let word =
        |packet: &[u8], at: usize| order.u32(packet[at..at + 4].try_into().unwrap_or_default());
    let (mut text, mut rest) = (Vec::new(), bytes);
    while rest.len() > HEADER && word(rest, 0) == MAGIC {
        let (content, packet) = (word(rest, 24) as usize / 8, word(rest, 28) as usize / 8);
        text.extend_from_slice(
            rest.get(HEADER..content.min(rest.len()))
                .unwrap_or_default(),
        );
        if packet <= HEADER {
            break;
        }
        rest = rest.get(packet..).unwrap_or_default();
    }
    Ok(text)
}
