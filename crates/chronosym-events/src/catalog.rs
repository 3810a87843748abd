use crate::EventKey;
use crate::cursor::Form;
use crate::part::FieldSpec;
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
    /// Its fields in order.
    pub fields: Vec<CatalogField>,
}

/// One field of a [`CatalogEntry`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogField {
    /// Its published name.
    pub name: String,
    /// The version that brought it, such as `V1`; `optional` where no version tells; empty for fields that are always there.
    pub when: String,
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
    let mut specs = Vec::new();
    (row.spec)(&mut specs);
    CatalogEntry {
        key,
        name: row.name,
        oldest_version: row.oldest,
        fields: specs
            .into_iter()
            .filter_map(|spec| field(spec, row.shape.form))
            .collect(),
    }
}

/// The field as events of this form have it, or nothing where they never do.
fn field(spec: FieldSpec, form: Form) -> Option<CatalogField> {
    let (there, when) = match spec.when.as_str() {
        "verbose" => (form == Form::Verbose, ""),
        "ended" => (form == Form::Defunct, "V5"),
        when => (true, when),
    };
    there.then(|| CatalogField {
        name: spec.name,
        when: when.to_owned(),
    })
}
