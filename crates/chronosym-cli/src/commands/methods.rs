//! `chronosym methods`.

use std::fmt::Display;
use std::io::{self, Write};
use std::ops::Range;

use anyhow::Result;
use chronosym::{BodyView, EvidenceSet, ProcessIndex, Timeline};
use chronosym_types::json::HexNumber;
use serde::{Serialize, Serializer};
use serde_with::skip_serializing_none;

use super::life::LifeObject;
use super::listing;
use crate::args;
use crate::output::text_line;
use crate::units::show_range;

pub fn run(args: &args::Methods) -> Result<()> {
    let loaded = listing::load(&args.listing)?;
    let wanted = args.matching.as_ref().map(|text| text.to_lowercase());
    let timeline = &loaded.timeline;
    let of = |process, times| Methods::of(timeline, process, times, wanted.as_deref());
    listing::write(&args.listing, timeline, of, Methods::write)
}

/// The code bodies of a process, by address.
#[derive(Serialize)]
struct Methods<'t> {
    methods: Vec<Body<'t>>,
}

impl<'t> Methods<'t> {
    /// Those alive at some of the times whose label contains what is wanted, in lower case.
    fn of(
        timeline: &'t Timeline,
        process: ProcessIndex,
        times: Range<u64>,
        wanted: Option<&str>,
    ) -> Option<Self> {
        let bodies = timeline.bodies(process);
        let mut bodies: Vec<_> = bodies
            .filter(|body| body.life.to > times.start && body.life.from < times.end)
            .collect();
        bodies.sort_by_key(|b| (b.start, b.life.from));
        let mut methods: Vec<Body<'t>> = bodies.into_iter().map(Body::from).collect();
        if let Some(wanted) = wanted {
            methods.retain(|body| body.label().to_lowercase().contains(wanted));
        }
        (!methods.is_empty()).then_some(Methods { methods })
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        text_line!(
            out,
            "  {:<29} {:<22} {:<22} {:<17} method",
            "first-last address",
            "life (~ inferred)",
            "tier",
            "evidence"
        )?;
        self.methods.iter().try_for_each(|body| body.write(out))
    }
}

/// A code body.
#[skip_serializing_none]
#[derive(Serialize)]
pub struct Body<'t> {
    address: HexNumber,
    size: u64,
    #[serde(flatten)]
    pub life: LifeObject,
    name: Option<String>,
    module: Option<&'t str>,
    signature: Option<&'t str>,
    tier: Option<&'static str>,
    native_code_version: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cold: bool,
    #[serde(serialize_with = "as_text")]
    evidence: EvidenceSet,
    il_map_entries: Option<usize>,
    inline_tree: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stub_targets: Vec<String>,
}

impl<'t> From<BodyView<'t>> for Body<'t> {
    fn from(body: BodyView<'t>) -> Self {
        Body {
            address: HexNumber(body.start),
            size: body.size,
            life: body.life.into(),
            name: body.name,
            module: body.module,
            signature: body.signature,
            tier: body.tier.map(|tier| tier.name()),
            native_code_version: body.native_code_version,
            cold: body.is_cold,
            evidence: body.evidence,
            il_map_entries: body.il_map_entries,
            inline_tree: body.has_inline_tree,
            stub_targets: body.stub_targets,
        }
    }
}

impl Body<'_> {
    /// `module!name`.
    fn label(&self) -> String {
        let name = self.name.as_deref().unwrap_or("(no name)");
        self.module
            .map_or_else(|| name.to_owned(), |module| format!("{module}!{name}"))
    }

    /// One line: range, life, tier, version, evidence, name.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut kind = self.tier.unwrap_or("-").to_owned();
        if self.cold {
            kind.push_str(" cold");
        }
        if self.native_code_version != 0 {
            kind.push_str(&format!(" v{}", self.native_code_version));
        }
        let mut name = self.label();
        if let Some(signature) = self.signature.and_then(|s| s.find('(').map(|at| &s[at..])) {
            name.push_str(signature);
        }
        if !self.stub_targets.is_empty() {
            name.push_str(&format!(" \u{2192} {}", self.stub_targets.join(", ")));
        }
        text_line!(
            out,
            "  {} {:<22} {kind:<22} {:<17} {name}",
            show_range(self.address.0, self.size),
            self.life,
            self.evidence.to_string()
        )
    }
}

fn as_text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
