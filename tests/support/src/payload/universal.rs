//! Payloads of the Universal providers, as their recorders write them.

use super::Payload;

fn text(p: Payload, text: &str) -> Payload {
    p.u16(u16::try_from(text.len()).expect("text below 64 KiB"))
        .bytes(text.as_bytes())
}

/// ExistingProcess, ProcessCreate: NamespaceId, Name, NamespaceName.
#[must_use]
pub fn process(namespace_id: u64, name: &str, namespace: &str) -> Vec<u8> {
    text(text(Payload::new().varint(namespace_id), name), namespace).finish()
}

/// ProcessMapping: Id, StartAddress, EndAddress, FileOffset, FileName, MetadataId.
#[must_use]
pub fn mapping(id: u64, start: u64, end: u64, offset: u64, file: &str, metadata: u64) -> Vec<u8> {
    let p = Payload::new()
        .varint(id)
        .varint(start)
        .varint(end)
        .varint(offset);
    text(p, file).varint(metadata).finish()
}

/// ProcessSymbol: Id, MappingId, StartAddress, EndAddress (inclusive), Name.
#[must_use]
pub fn symbol(id: u64, mapping: u64, start: u64, end: u64, name: &str) -> Vec<u8> {
    text(
        Payload::new()
            .varint(id)
            .varint(mapping)
            .varint(start)
            .varint(end),
        name,
    )
    .finish()
}

/// ProcessMappingMetadata: Id, SymbolMetadata, VersionMetadata.
#[must_use]
pub fn mapping_metadata(id: u64, symbols: &str, version: &str) -> Vec<u8> {
    text(text(Payload::new().varint(id), symbols), version).finish()
}

/// cpu, cswitch: Value.
#[must_use]
pub fn sample(value: u64) -> Vec<u8> {
    Payload::new().varint(value).finish()
}
