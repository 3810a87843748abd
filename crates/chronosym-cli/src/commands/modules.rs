//! `chronosym modules`.

use std::io::{self, Write};
use std::ops::Range;

use anyhow::Result;
use chronosym::symbols::Symbolizer;
use chronosym::{Begin, End, ImageView, ModuleView, PdbId, ProcessIndex, Timeline};
use chronosym_types::json::HexNumber;
use serde::Serialize;
use serde_with::skip_serializing_none;

use super::life::LifeObject;
use super::listing;
use crate::args::Listing;
use crate::output::text_line;
use crate::symbolizer;
use crate::symbols::SymbolFileObject;
use crate::units::show_range;

pub fn run(args: &Listing) -> Result<()> {
    let loaded = listing::load(args)?;
    let symbols = symbolizer::open(&args.input.symbols, &loaded)?;
    let timeline = &loaded.timeline;
    let of = |process, times| Binaries::of(timeline, &symbols, process, times);
    listing::write(args, timeline, of, Binaries::write)
}

/// The modules and images of a process.
#[derive(Serialize)]
struct Binaries<'t> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modules: Vec<Module<'t>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Image<'t>>,
}

/// A CLR module.
#[skip_serializing_none]
#[derive(Serialize)]
struct Module<'t> {
    name: &'t str,
    #[serde(flatten)]
    life: LifeObject,
    bodies: usize,
    evidence: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    il_path: &'t str,
    #[serde(skip_serializing_if = "str::is_empty")]
    native_path: &'t str,
    pdb: Option<Pdb<'t>>,
    native_pdb: Option<Pdb<'t>>,
    symbols: SymbolFileObject,
}

/// A native image.
#[skip_serializing_none]
#[derive(Serialize)]
struct Image<'t> {
    name: &'t str,
    #[serde(flatten)]
    life: LifeObject,
    address: HexNumber,
    size: u64,
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'t str,
    build_id: Option<&'t str>,
    pdb: Option<Pdb<'t>>,
    symbols: SymbolFileObject,
}

/// The identity of a PDB.
#[derive(Serialize)]
struct Pdb<'t> {
    guid: String,
    age: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'t str,
}

impl<'t> From<&'t PdbId> for Pdb<'t> {
    fn from(pdb: &'t PdbId) -> Self {
        Pdb {
            guid: pdb.guid.to_string(),
            age: pdb.age,
            path: &pdb.path,
        }
    }
}

impl<'t> Binaries<'t> {
    fn of(
        timeline: &'t Timeline,
        symbols: &Symbolizer,
        process: ProcessIndex,
        times: Range<u64>,
    ) -> Option<Self> {
        let is_module_there = |m: &ModuleView<'_>| {
            let begins_late = matches!(m.begin, Begin::At(at) if at >= times.end);
            let ends_early = matches!(m.end, End::At(at) if at <= times.start);
            !begins_late && !ends_early
        };
        let module = |m: ModuleView<'t>| Module {
            name: m.name,
            life: (m.begin, m.end).into(),
            bodies: m.bodies,
            evidence: m.evidence.to_string(),
            il_path: m.module.il_path,
            native_path: m.module.native_path,
            pdb: m.module.managed_pdb.map(Into::into),
            native_pdb: m.module.native_pdb.map(Into::into),
            symbols: symbols.module_pdb(&m.module).into(),
        };
        let is_image_there = |i: &ImageView<'_>| i.life.from < times.end && i.life.to > times.start;
        let image = |i: ImageView<'t>| Image {
            name: i.name,
            life: i.life.into(),
            address: HexNumber(i.image.base),
            size: i.image.size,
            path: i.image.path,
            build_id: i.image.build_id,
            pdb: i.image.pdb.map(Into::into),
            symbols: symbols.image_symbols(&i.image).into(),
        };
        let modules = timeline.modules(process).filter(is_module_there);
        let images = timeline.images(process).filter(is_image_there);
        let binaries = Binaries {
            modules: modules.map(module).collect(),
            images: images.map(image).collect(),
        };
        let is_empty = binaries.modules.is_empty() && binaries.images.is_empty();
        (!is_empty).then_some(binaries)
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        text_line!(
            out,
            "         {:<40} life (~ inferred, < loaded before, > alive after)",
            "name"
        )?;
        for m in &self.modules {
            text_line!(
                out,
                "  module {:<40} {:<28} {} bodies, {}",
                m.name,
                m.life,
                m.bodies,
                m.evidence
            )?;
            let facts = [("IL    ", m.il_path), ("native", m.native_path)];
            details(&facts, &[&m.pdb, &m.native_pdb], &m.symbols, out)?;
        }
        for i in &self.images {
            text_line!(
                out,
                "  image  {:<40} {:<28} {}",
                i.name,
                i.life,
                show_range(i.address.0, i.size)
            )?;
            let build_id = i.build_id.unwrap_or_default();
            let facts = [("path  ", i.path), ("build id", build_id)];
            details(&facts, &[&i.pdb], &i.symbols, out)?;
        }
        Ok(())
    }
}

/// What stands below a module or an image.
fn details(
    facts: &[(&str, &str)],
    pdbs: &[&Option<Pdb<'_>>],
    symbols: &SymbolFileObject,
    out: &mut dyn Write,
) -> io::Result<()> {
    const INDENT: &str = "         ";
    for (what, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        text_line!(out, "{INDENT}{what} {value}")?;
    }
    for Pdb { guid, age, path } in pdbs.iter().copied().flatten() {
        text_line!(out, "{INDENT}PDB    {guid} age {age} {path}")?;
    }
    symbols.write("symbols", INDENT, out)
}
