use crate::EventKey;
use crate::rows::{self, Row};

/// One event type that has a typed decoder: a row of the table in this crate's README.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// Who the event is, in its newest known version.
    pub key: EventKey,
    /// Its published name.
    pub name: &'static str,
    /// The oldest version whose layout is known.
    pub oldest_version: u32,
}

/// Every event type with a layout of its own, made from the declarations that the decoders come from. The Universal
/// providers' events, which describe themselves, are not among them.
pub fn catalog() -> impl Iterator<Item = CatalogEntry> {
    let manifest = rows::MANIFEST.iter().map(|(provider, id, row)| {
        let key = EventKey::Manifest {
            provider: provider.clone(),
            id: *id,
            version: row.newest,
        };
        entry(key, row)
    });
    let classic = rows::CLASSIC.iter().map(|(class, opcode, row)| {
        let key = EventKey::Classic {
            class: *class,
            opcode: *opcode,
            version: u16::try_from(row.newest).unwrap_or(u16::MAX),
        };
        entry(key, row)
    });
    manifest.chain(classic)
}

fn entry(key: EventKey, row: &Row) -> CatalogEntry {
    CatalogEntry {
        key,
        name: row.name,
        oldest_version: row.oldest,
    }
}
