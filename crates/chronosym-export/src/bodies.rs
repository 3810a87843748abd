//! Code bodies in listings, as text and as JSON.

use std::io::{self, Write};
use std::ops::Range;

use chronosym_core::{BodyView, ProcessIndex, Timeline};
use chronosym_types::json::HexNumber;
use serde::ser::SerializeMap;

use crate::lifetime::Lifetime;
use crate::object::{Fields, Object};
use crate::pattern::Pattern;
use crate::text_line;
use crate::units::show_range;

/// The code bodies of a process, by address.
#[derive(Debug)]
pub struct Bodies<'t>(Vec<BodyView<'t>>);

impl<'t> Bodies<'t> {
    /// Returns those that are alive at some time of a range, in ns, and whose `module!name`
    /// matches a pattern; `None` if there is none.
    pub fn of(
        timeline: &'t Timeline,
        process: ProcessIndex,
        times: &Range<u64>,
        pattern: Option<&Pattern>,
    ) -> Option<Self> {
        let is_listed = |body: &BodyView<'_>| {
            let is_alive = body.lifetime.to > times.start && body.lifetime.from < times.end;
            is_alive && pattern.is_none_or(|pattern| pattern.is_match(&label(body)))
        };
        let mut bodies: Vec<_> = timeline.bodies(process).filter(is_listed).collect();
        bodies.sort_by_key(|body| (body.start, body.lifetime.from));
        (!bodies.is_empty()).then_some(Bodies(bodies))
    }

    /// Keeps the first entries only.
    pub fn truncate(&mut self, most: usize) {
        self.0.truncate(most);
    }

    /// Writes a table.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        text_line!(
            out,
            "  {:<29} {:<22} {:<22} {:<17} method",
            "first-last address",
            "life (~ inferred)",
            "tier",
            "evidence"
        )?;
        self.0.iter().try_for_each(|body| write_body(body, out))
    }
}

impl Fields for Bodies<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object.objects("methods", &self.0);
    }
}

impl Fields for BodyView<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let targets = Some(&self.stub_targets).filter(|targets| !targets.is_empty());
        object
            .field("address", HexNumber(self.start))
            .field("size", self.size)
            .fields_of(&Lifetime::from(self.lifetime))
            .some("name", self.name.as_ref())
            .some("module", self.module)
            .some("signature", self.signature)
            .some("tier", self.tier.map(|tier| tier.name()))
            .field("native_code_version", self.native_code_version)
            .flag("cold", self.is_cold)
            .shown("evidence", self.evidence)
            .some("il_map_entries", self.il_map_entries)
            .field("inline_tree", self.has_inline_tree)
            .some("stub_targets", targets);
    }
}

/// Returns `module!name`.
fn label(body: &BodyView<'_>) -> String {
    let name = body.name.as_deref().unwrap_or("(no name)");
    body.module
        .map_or_else(|| name.to_owned(), |module| format!("{module}!{name}"))
}

/// One line: range, lifetime, tier, version, evidence, name.
pub(crate) fn write_body(body: &BodyView<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut kind = body.tier.map_or("-", |tier| tier.name()).to_owned();
    if body.is_cold {
        kind.push_str(" cold");
    }
    if body.native_code_version != 0 {
        kind.push_str(&format!(" v{}", body.native_code_version));
    }
    let mut name = label(body);
    if let Some(signature) = body.signature.and_then(|s| s.find('(').map(|at| &s[at..])) {
        name.push_str(signature);
    }
    if !body.stub_targets.is_empty() {
        name.push_str(&format!(" \u{2192} {}", body.stub_targets.join(", ")));
    }
    text_line!(
        out,
        "  {} {:<22} {kind:<22} {:<17} {name}",
        show_range(body.start, body.size),
        Lifetime::from(body.lifetime),
        body.evidence.to_string()
    )
}
