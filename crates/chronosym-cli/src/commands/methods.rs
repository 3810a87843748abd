//! `chronosym methods`.

use std::io::Write;

use anyhow::Result;
use chronosym::{BodyView, SampleSelection};

use super::modules::{from, to};
use crate::args::Methods;
use crate::output::text_line;
use crate::{load, output};

pub fn run(args: &Methods, quiet: bool) -> Result<()> {
    let loaded = load::load(
        &args.input.traces,
        SampleSelection::None,
        &args.input.symbols,
    )?;
    super::tell(&loaded.notes, quiet);
    let timeline = &loaded.timeline;
    let filter = load::filter(&args.filters, timeline)?;
    let wanted = args.matching.as_ref().map(|text| text.to_lowercase());
    let mut out = output::open(args.input.output.as_deref());
    for process in timeline
        .processes()
        .filter(|p| filter.has_process(timeline, p.index))
    {
        let bodies = timeline.bodies(process.index).filter(|body| {
            let alive = body.life.to > filter.times().start && body.life.from < filter.times().end;
            alive
                && wanted
                    .as_ref()
                    .is_none_or(|wanted| label(body).to_lowercase().contains(wanted))
        });
        let mut bodies: Vec<_> = bodies.collect();
        if bodies.is_empty() {
            continue;
        }
        bodies.sort_by_key(|b| (b.start, b.life.from));
        text_line!(out, "{}", process.label())?;
        text_line!(
            out,
            "  {:<29} {:<22} {:<22} {:<17} method",
            "first-last address",
            "life (~ inferred)",
            "tier",
            "evidence"
        )?;
        for body in &bodies {
            line(body, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// `module!name`.
pub fn label(body: &BodyView<'_>) -> String {
    let name = body.name.as_deref().unwrap_or("(no name)");
    body.module
        .map_or_else(|| name.to_owned(), |module| format!("{module}!{name}"))
}

/// One line: range, life, tier, version, evidence, name.
pub fn line(body: &BodyView<'_>, out: &mut impl Write) -> std::io::Result<()> {
    let last = body.start.saturating_add(body.size.saturating_sub(1));
    let mut kind = body.tier.map_or("-".to_owned(), |t| t.name().to_owned());
    if body.is_cold {
        kind.push_str(" cold");
    }
    if body.native_code_version != 0 {
        kind.push_str(&format!(" v{}", body.native_code_version));
    }
    let life = format!("{}..{}", from(body.life), to(body.life));
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
