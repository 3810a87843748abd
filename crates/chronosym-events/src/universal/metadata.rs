use crate::Guid;

/// The identity of a mapped file, from the JSON of a `ProcessMappingMetadata` event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SymbolMetadata {
    /// A PE file: a managed assembly.
    Pe(PeMetadata),
    /// An ELF file.
    Elf(ElfMetadata),
}

/// The identity of a PE file, and of its symbol files.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PeMetadata {
    /// The PDB's file name.
    pub name: Option<String>,
    /// The time stamp in the file's header.
    pub time_date_stamp: Option<u32>,
    /// The PDB's age.
    pub age: Option<u32>,
    /// The PDB's signature.
    pub signature: Option<Guid>,
    /// The signature of the ReadyToRun perf map.
    pub perfmap_signature: Option<Guid>,
    /// The format version of the ReadyToRun perf map.
    pub perfmap_version: Option<u32>,
    /// The file name of the ReadyToRun perf map.
    pub perfmap_name: Option<String>,
    /// RVA of the code section.
    pub text_offset: Option<u64>,
}

/// The identity of an ELF file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ElfMetadata {
    /// The build ID, in hex.
    pub build_id: Option<String>,
    /// The address of the first executable segment.
    pub p_vaddr: Option<u64>,
    /// The file offset of that segment in bytes.
    pub p_offset: Option<u64>,
}

/// Why the metadata of a mapping could not be parsed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MetadataError {
    /// The metadata is not JSON.
    #[cfg(feature = "serde")]
    #[error("metadata of a mapping is not JSON")]
    Json(#[from] serde_json::Error),
    /// The crate was built without the feature `serde`.
    #[error("metadata of a mapping is not read: built without the feature \"serde\"")]
    NotBuilt,
    /// The metadata describes neither a PE nor an ELF file.
    #[error("metadata of a mapping has the type {0:?} (expected PE or ELF)")]
    UnknownType(String),
}

impl SymbolMetadata {
    /// Parses the event's SymbolMetadata field; `None` if it is empty. Empty strings, zero ids and
    /// fields of an unexpected type count as absent.
    ///
    /// # Errors
    /// [`MetadataError`] when the text is not JSON or describes another kind of file.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_events::universal::SymbolMetadata;
    ///
    /// let json = r#"{"type":"ELF","build_id":"5f0d1a2b","p_offset":"0x1000","p_vaddr":"0x2000"}"#;
    /// let Some(SymbolMetadata::Elf(elf)) = SymbolMetadata::parse(json)? else { panic!("not ELF") };
    /// assert_eq!(elf.build_id.as_deref(), Some("5f0d1a2b"));
    /// # Ok::<(), chronosym_events::universal::MetadataError>(())
    /// ```
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
        // Recorders write the sixteen bytes in the file's order, not in that of a GUID's text.
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
