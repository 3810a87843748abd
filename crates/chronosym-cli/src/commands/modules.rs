//! `chronosym modules`.

use std::io::Write;
use std::ops::Range;

use anyhow::Result;
use chronosym::symbols::Symbolizer;
use chronosym::{Begin, End, PdbId, ProcessIndex, Timeline};
use chronosym_types::json::HexNumber;
use serde::Serialize;

use super::life::{self, LifeObject};
use super::listing::{self, List};
use crate::args::Listing;
use crate::output::text_line;
use crate::symbols::{self, SymbolFileObject};

pub fn run(args: &Listing, quiet: bool) -> Result<()> {
    let loaded = listing::load(args, quiet)?;
    let symbols = symbols::open(&args.input.symbols, &loaded)?;
    listing::write(args, &loaded.timeline, &Binaries { symbols })
}

struct Binaries {
    symbols: Symbolizer,
}

/// The modules and images of a process.
#[derive(Serialize)]
struct Has<'t> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    modules: Vec<ModuleObject<'t>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<ImageObject<'t>>,
}

/// A CLR module.
#[derive(Serialize)]
struct ModuleObject<'t> {
    name: &'t str,
    #[serde(flatten)]
    life: LifeObject,
    #[serde(skip)]
    shown_life: String,
    bodies: usize,
    evidence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    il_path: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_path: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pdb: Option<PdbObject<'t>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_pdb: Option<PdbObject<'t>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbols: Option<SymbolFileObject>,
}

/// A native image.
#[derive(Serialize)]
struct ImageObject<'t> {
    name: &'t str,
    #[serde(flatten)]
    life: LifeObject,
    #[serde(skip)]
    shown_life: String,
    address: HexNumber,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    build_id: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pdb: Option<PdbObject<'t>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbols: Option<SymbolFileObject>,
}

/// The identity of a PDB.
#[derive(Serialize)]
struct PdbObject<'t> {
    guid: String,
    age: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'t str,
}

impl<'t> From<&'t PdbId> for PdbObject<'t> {
    fn from(pdb: &'t PdbId) -> Self {
        PdbObject {
            guid: pdb.guid.to_string(),
            age: pdb.age,
            path: &pdb.path,
        }
    }
}

impl List for Binaries {
    type Has<'t> = Has<'t>;

    fn of<'t>(
        &self,
        timeline: &'t Timeline,
        process: ProcessIndex,
        times: Range<u64>,
    ) -> Option<Has<'t>> {
        let modules = timeline.modules(process);
        let modules =
            modules.filter(|m| begins_before(m.begin, times.end) && ends_after(m.end, times.start));
        let modules = modules.map(|m| ModuleObject {
            name: m.name,
            life: (m.begin, m.end).into(),
            shown_life: life::show_known(m.begin, m.end),
            bodies: m.bodies,
            evidence: m.evidence.to_string(),
            il_path: m.il_path,
            native_path: m.native_path,
            pdb: m.managed_pdb.map(Into::into),
            native_pdb: m.native_pdb.map(Into::into),
            symbols: timeline
                .module_ref(process, m.index)
                .map(|module| self.symbols.module_pdb(&module).into()),
        });
        let images = timeline.images(process);
        let images = images.filter(|i| i.life.from < times.end && i.life.to > times.start);
        let images = images.map(|i| ImageObject {
            name: i.name,
            life: i.life.into(),
            shown_life: life::show(i.life),
            address: HexNumber(i.base),
            size: i.size,
            path: i.path,
            build_id: i.build_id,
            pdb: i.pdb.map(Into::into),
            symbols: timeline
                .image_ref(process, i.index)
                .map(|image| self.symbols.image_symbols(&image).into()),
        });
        let (modules, images): (Vec<_>, Vec<_>) = (modules.collect(), images.collect());
        let is_empty = modules.is_empty() && images.is_empty();
        (!is_empty).then_some(Has { modules, images })
    }

    fn write(&self, has: &Has<'_>, out: &mut dyn Write) -> std::io::Result<()> {
        text_line!(
            out,
            "         {:<40} life (~ inferred, < loaded before, > alive after)",
            "name"
        )?;
        for m in &has.modules {
            text_line!(
                out,
                "  module {:<40} {:<28} {} bodies, {}",
                m.name,
                m.shown_life,
                m.bodies,
                m.evidence
            )?;
            fact("IL    ", m.il_path, out)?;
            fact("native", m.native_path, out)?;
            pdb(&m.pdb, out)?;
            pdb(&m.native_pdb, out)?;
            found(&m.symbols, out)?;
        }
        for i in &has.images {
            let HexNumber(first) = i.address;
            let last = first.saturating_add(i.size.saturating_sub(1));
            text_line!(
                out,
                "  image  {:<40} {:<28} {first:#x}-{last:#x}",
                i.name,
                i.shown_life
            )?;
            fact("path  ", i.path, out)?;
            fact("build id", i.build_id, out)?;
            pdb(&i.pdb, out)?;
            found(&i.symbols, out)?;
        }
        Ok(())
    }
}

const INDENT: &str = "         ";

fn fact(what: &str, value: Option<&str>, out: &mut dyn Write) -> std::io::Result<()> {
    match value {
        Some(value) => text_line!(out, "{INDENT}{what} {value}"),
        None => Ok(()),
    }
}

fn pdb(pdb: &Option<PdbObject<'_>>, out: &mut dyn Write) -> std::io::Result<()> {
    match pdb {
        Some(pdb) => text_line!(
            out,
            "{INDENT}PDB    {} age {} {}",
            pdb.guid,
            pdb.age,
            pdb.path
        ),
        None => Ok(()),
    }
}

fn found(symbols: &Option<SymbolFileObject>, out: &mut dyn Write) -> std::io::Result<()> {
    match symbols {
        Some(symbols) => symbols.write("symbols", INDENT, out),
        None => Ok(()),
    }
}

fn begins_before(begin: Begin, time: u64) -> bool {
    match begin {
        Begin::At(at) => at < time,
        Begin::Before(_) | Begin::Unbounded => true,
    }
}

fn ends_after(end: End, time: u64) -> bool {
    match end {
        End::At(at) => at > time,
        End::After(_) | End::Open => true,
    }
}
