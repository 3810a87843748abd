//! `chronosym methods`.

use std::io::Write;
use std::ops::Range;

use anyhow::Result;
use chronosym::{BodyView, ProcessIndex, Timeline};
use serde::{Serialize, Serializer};

use super::life::{self, LifeObject};
use super::listing::{self, List};
use crate::args::Methods;
use crate::output::text_line;

pub fn run(args: &Methods, quiet: bool) -> Result<()> {
    let loaded = listing::load(&args.listing, quiet)?;
    let wanted = args.matching.as_ref().map(|text| text.to_lowercase());
    listing::write(&args.listing, &loaded.timeline, &Bodies { wanted })
}

struct Bodies {
    /// What a label is to contain, in lower case.
    wanted: Option<String>,
}

/// The code bodies of a process, by address.
struct Has<'t>(Vec<BodyView<'t>>);

impl Serialize for Has<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Object<'a> {
            methods: Vec<BodyObject<'a>>,
        }
        let methods = self.0.iter().map(BodyObject).collect();
        Object { methods }.serialize(serializer)
    }
}

impl List for Bodies {
    type Has<'t> = Has<'t>;

    fn of<'t>(
        &self,
        timeline: &'t Timeline,
        process: ProcessIndex,
        times: Range<u64>,
    ) -> Option<Has<'t>> {
        let is_wanted = |body: &BodyView<'_>| {
            let alive = body.life.to > times.start && body.life.from < times.end;
            let matches = |wanted: &String| label(body).to_lowercase().contains(wanted);
            alive && self.wanted.as_ref().is_none_or(matches)
        };
        let mut bodies: Vec<_> = timeline.bodies(process).filter(is_wanted).collect();
        bodies.sort_by_key(|b| (b.start, b.life.from));
        (!bodies.is_empty()).then_some(Has(bodies))
    }

    fn write(&self, has: &Has<'_>, out: &mut dyn Write) -> std::io::Result<()> {
        text_line!(
            out,
            "  {:<29} {:<22} {:<22} {:<17} method",
            "first-last address",
            "life (~ inferred)",
            "tier",
            "evidence"
        )?;
        has.0.iter().try_for_each(|body| line(body, out))
    }
}

/// A code body in JSON.
pub struct BodyObject<'a>(pub &'a BodyView<'a>);

impl Serialize for BodyObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Object<'a> {
            address: chronosym_types::json::HexNumber,
            size: u64,
            #[serde(flatten)]
            life: LifeObject,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            module: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            signature: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            tier: Option<&'a str>,
            native_code_version: u64,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            cold: bool,
            evidence: String,
            #[serde(skip_serializing_if = "Option::is_none")]
            il_map_entries: Option<usize>,
            inline_tree: bool,
            #[serde(skip_serializing_if = "<[_]>::is_empty")]
            stub_targets: &'a [String],
        }
        let body = &self.0;
        let object = Object {
            address: chronosym_types::json::HexNumber(body.start),
            size: body.size,
            life: body.life.into(),
            name: body.name.as_deref(),
            module: body.module,
            signature: body.signature,
            tier: body.tier.map(|tier| tier.name()),
            native_code_version: body.native_code_version,
            cold: body.is_cold,
            evidence: body.evidence.to_string(),
            il_map_entries: body.il_map_entries,
            inline_tree: body.has_inline_tree,
            stub_targets: &body.stub_targets,
        };
        object.serialize(serializer)
    }
}

/// `module!name`.
fn label(body: &BodyView<'_>) -> String {
    let name = body.name.as_deref().unwrap_or("(no name)");
    body.module
        .map_or_else(|| name.to_owned(), |module| format!("{module}!{name}"))
}

/// One line: range, life, tier, version, evidence, name.
pub fn line(body: &BodyView<'_>, out: &mut dyn Write) -> std::io::Result<()> {
    let last = body.start.saturating_add(body.size.saturating_sub(1));
    let mut kind = body.tier.map_or("-".to_owned(), |t| t.name().to_owned());
    if body.is_cold {
        kind.push_str(" cold");
    }
    if body.native_code_version != 0 {
        kind.push_str(&format!(" v{}", body.native_code_version));
    }
    let life = life::show(body.life);
    let mut name = label(body);
    if let Some(signature) = body.signature.and_then(|s| s.find('(').map(|at| &s[at..])) {
        name.push_str(signature);
    }
    if !body.stub_targets.is_empty() {
        name.push_str(&format!(" \u{2192} {}", body.stub_targets.join(", ")));
    }
    text_line!(
        out,
        "  {:#x}-{last:#x} {life:<22} {kind:<22} {:<17} {name}",
        body.start,
        body.evidence.to_string()
    )
}
