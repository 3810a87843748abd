use crate::EventKey;
use crate::layouts::{self, Layout};

/// An event type with a typed decoder, as the table in this crate's README lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogEntry {
    /// The event type in its newest known version.
    pub key: EventKey,
    /// The published name.
    pub name: &'static str,
    /// The oldest known version.
    pub oldest_version: u32,
}

/// Returns every event type with a typed decoder, except those of the Universal providers, which
/// describe themselves.
///
/// # Examples
///
/// ```
/// let gc: Vec<_> = chronosym_events::catalog().filter(|entry| entry.name == "MethodLoadVerbose").collect();
/// assert!(!gc.is_empty());
/// ```
pub fn catalog() -> impl Iterator<Item = CatalogEntry> {
    let manifest = layouts::MANIFEST.iter().map(|(provider, id, layout)| {
        let key = EventKey::Manifest {
            provider: provider.clone(),
            id: *id,
            version: layout.newest,
        };
        entry(key, layout)
    });
    let classic = layouts::CLASSIC.iter().map(|(class, opcode, layout)| {
        let key = EventKey::Classic {
            class: *class,
            opcode: *opcode,
            version: u16::try_from(layout.newest).unwrap_or(u16::MAX),
        };
        entry(key, layout)
    });
    manifest.chain(classic)
}

fn entry(key: EventKey, layout: &Layout) -> CatalogEntry {
    CatalogEntry {
        key,
        name: layout.name,
        oldest_version: layout.oldest,
    }
}
