use crate::Guid;

/// What a mapped file is, from the JSON of a `ProcessMappingMetadata` event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymbolMetadata {
    /// A PE file: a managed assembly.
    Pe(PeMetadata),
    /// An ELF file.
    Elf(ElfMetadata),
}

/// What finds the symbols of a PE file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PeMetadata {
    /// The name of its PDB.
    pub name: Option<String>,
    /// The time stamp in its header.
    pub time_date_stamp: Option<u32>,
    /// The PDB's age.
    pub age: Option<u32>,
    /// The PDB's signature.
    pub signature: Option<Guid>,
    /// The signature of its R2R perf map.
    pub perfmap_signature: Option<Guid>,
    /// The version of its R2R perf map's format.
    pub perfmap_version: Option<u32>,
    /// The name of its R2R perf map.
    pub perfmap_name: Option<String>,
    /// RVA of its code section in memory, in bytes.
    pub text_offset: Option<u64>,
}

/// What finds the symbols of an ELF file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ElfMetadata {
    /// The build id, in hex.
    pub build_id: Option<String>,
    /// Address of its first executable segment.
    pub p_vaddr: Option<u64>,
    /// Where that segment is in the file, in bytes.
    pub p_offset: Option<u64>,
}

/// Why the JSON of a mapping could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// It is no JSON.
    #[cfg(feature = "serde")]
    #[error("the metadata of a mapping is no JSON")]
    Json(#[from] serde_json::Error),
    /// The crate was built without its feature `serde`.
    #[error("the metadata of mappings is not read: this was built without the feature \"serde\"")]
    NotBuilt,
    /// It describes neither a PE nor an ELF file.
    #[error("the metadata of a mapping is of type {0:?}; PE or ELF is expected")]
    UnknownType(String),
}

impl SymbolMetadata {
    /// Parses the text of the event's SymbolMetadata field; empty text gives `None`. Empty strings, zero ids and fields of
    /// another type than expected count as absent.
    ///
    /// # Errors
    /// [`MetadataError`] when the text is no JSON or describes another kind of file.
    pub fn parse(json: &str) -> Result<Option<Self>, MetadataError> {
        if json.trim().is_empty() {
            return Ok(None);
        }
        Self::parse_json(json)
    }

    #[cfg(not(feature = "serde"))]
    fn parse_json(_: &str) -> Result<Option<Self>, MetadataError> {
        Err(MetadataError::NotBuilt)
    }

    #[cfg(feature = "serde")]
    fn parse_json(json: &str) -> Result<Option<Self>, MetadataError> {
        use serde_json::Value;
        let object: Value = serde_json::from_str(json)?;
        let text = |name: &str| {
            object
                .get(name)?
                .as_str()
                .filter(|t| !t.is_empty())
                .map(str::to_owned)
        };
        let number = |name: &str| match object.get(name)? {
            Value::String(hex) => u64::from_str_radix(hex.trim_start_matches("0x"), 16).ok(),
            other => other.as_u64(),
        };
        let small = |name: &str| number(name).and_then(|n| u32::try_from(n).ok());
        // Recorders write the sixteen bytes in the order in which the file has them, not as a GUID's text.
        let guid = |name: &str| {
            let digits = text(name).filter(|t| t.len() == 32)?;
            let bytes = u128::from_str_radix(&digits, 16).ok()?.to_be_bytes();
            Some(Guid(bytes)).filter(|g| !g.is_zero())
        };
        match object.get("type").and_then(Value::as_str) {
            Some("PE") => Ok(Some(Self::Pe(PeMetadata {
                name: text("name"),
                time_date_stamp: small("date_time"),
                age: small("age"),
                signature: guid("signature"),
                perfmap_signature: guid("perfmap_signature"),
                perfmap_version: small("perfmap_version"),
                perfmap_name: text("perfmap_name"),
                text_offset: number("text_offset"),
            }))),
            Some("ELF") => Ok(Some(Self::Elf(ElfMetadata {
                build_id: text("build_id"),
                p_vaddr: number("p_vaddr"),
                p_offset: number("p_offset"),
            }))),
            other => Err(MetadataError::UnknownType(
                other.unwrap_or_default().to_owned(),
            )),
        }
    }
}
