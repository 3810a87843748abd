use crate::layout::Layout;
use crate::part::FieldSpec;
use crate::{EventKey, clr, kernel};

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
    let manifest = clr::ROWS.iter().map(|row| {
        let key = EventKey::Manifest {
            provider: row.provider.clone(),
            id: row.id,
            version: row.layout.newest,
        };
        entry(key, row.name, &row.layout)
    });
    let classic = kernel::ROWS.iter().map(|row| {
        let version = u16::try_from(row.layout.newest).unwrap_or(u16::MAX);
        entry(
            EventKey::Classic {
                class: row.class,
                opcode: row.opcode,
                version,
            },
            row.name,
            &row.layout,
        )
    });
    let user_stack = &kernel::USER_STACK;
    let key = EventKey::Manifest {
        provider: crate::Provider::EventTracing,
        id: 18,
        version: 0,
    };
    let user_stack = entry(key, user_stack.name, &user_stack.layout);
    manifest.chain(classic).chain(std::iter::once(user_stack))
}

fn entry(key: EventKey, name: &'static str, layout: &Layout) -> CatalogEntry {
    let mut specs = Vec::new();
    (layout.spec)(&mut specs);
    let fields = specs
        .into_iter()
        .filter_map(|spec| field(spec, layout))
        .collect();
    CatalogEntry {
        key,
        name,
        oldest_version: layout.shape.oldest,
        fields,
    }
}

/// The field as events of this layout have it, or nothing where they never do.
fn field(spec: FieldSpec, layout: &Layout) -> Option<CatalogField> {
    let shape = layout.shape;
    let (there, when) = match spec.when.as_str() {
        "verbose" => (shape.verbose, ""),
        "private" => (shape.private, ""),
        "ended" => (shape.defunct, "V5"),
        when => (true, when),
    };
    there.then(|| CatalogField {
        name: spec.name,
        when: when.to_owned(),
    })
}
