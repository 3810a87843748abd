//! `chronosym modules`.

use std::io::Write;

use anyhow::Result;
use chronosym::{PdbId, SampleSelection};

use crate::args::Listing;
use crate::output::text_line;
use crate::units::show_time;
use crate::{load, output, symbols};

pub fn run(args: &Listing, quiet: bool) -> Result<()> {
    let loaded = load::load(
        &args.input.traces,
        SampleSelection::None,
        &args.input.symbols,
    )?;
    super::tell(&loaded.notes, quiet);
    let timeline = &loaded.timeline;
    let symbols = symbols::open(&args.input.symbols, &loaded)?;
    let filter = load::filter(&args.filters, timeline)?;
    let mut out = output::open(args.input.output.as_deref());
    for process in timeline
        .processes()
        .filter(|p| filter.has_process(timeline, p.index))
    {
        let times = filter.times();
        let modules: Vec<_> = timeline
            .modules(process.index)
            .filter(|m| begins_before(m.begin, times.end) && ends_after(m.end, times.start))
            .collect();
        let images: Vec<_> = timeline
            .images(process.index)
            .filter(|i| i.life.from < times.end && i.life.to > times.start)
            .collect();
        if modules.is_empty() && images.is_empty() {
            continue;
        }
        text_line!(out, "{}", process.label())?;
        text_line!(
            out,
            "         {:<40} life (~ inferred, < loaded before, > alive after)",
            "name"
        )?;
        for m in &modules {
            let life = format!("{}..{}", begin(m.begin), end(m.end));
            text_line!(
                out,
                "  module {:<40} {life:<28} {} bodies, {}",
                m.name,
                m.bodies,
                m.evidence
            )?;
            if let Some(path) = m.il_path {
                text_line!(out, "         IL     {path}")?;
            }
            if let Some(path) = m.native_path {
                text_line!(out, "         native {path}")?;
            }
            pdb(&mut out, m.managed_pdb)?;
            pdb(&mut out, m.native_pdb)?;
            if let Some(module) = timeline.module_ref(process.index, m.index) {
                let file = symbols.module_pdb(&module);
                symbols::describe("symbols", &file, INDENT, &mut out)?;
            }
        }
        for i in &images {
            let last = i.base.saturating_add(i.size.saturating_sub(1));
            let life = format!("{}..{}", from(i.life), to(i.life));
            text_line!(
                out,
                "  image  {:<40} {life:<28} {:#x}-{last:#x}",
                i.name,
                i.base
            )?;
            if let Some(path) = i.path {
                text_line!(out, "         path   {path}")?;
            }
            if let Some(id) = i.build_id {
                text_line!(out, "         build id {id}")?;
            }
            pdb(&mut out, i.pdb)?;
            if let Some(image) = timeline.image_ref(process.index, i.index) {
                let file = symbols.image_symbols(&image);
                symbols::describe("symbols", &file, INDENT, &mut out)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

const INDENT: &str = "         ";

fn pdb(out: &mut impl Write, pdb: Option<&PdbId>) -> std::io::Result<()> {
    match pdb {
        Some(pdb) => text_line!(
            out,
            "         PDB    {} age {} {}",
            pdb.guid,
            pdb.age,
            pdb.path
        ),
        None => Ok(()),
    }
}

fn begins_before(begin: chronosym::Begin, time: u64) -> bool {
    match begin {
        chronosym::Begin::At(at) => at < time,
        chronosym::Begin::Before(_) | chronosym::Begin::Unbounded => true,
    }
}

fn ends_after(end: chronosym::End, time: u64) -> bool {
    match end {
        chronosym::End::At(at) => at > time,
        chronosym::End::After(_) | chronosym::End::Open => true,
    }
}

fn begin(begin: chronosym::Begin) -> String {
    match begin {
        chronosym::Begin::At(at) => show_time(at),
        chronosym::Begin::Before(at) => format!("<{}", show_time(at)),
        chronosym::Begin::Unbounded => String::new(),
    }
}

fn end(end: chronosym::End) -> String {
    match end {
        chronosym::End::At(at) => show_time(at),
        chronosym::End::After(at) => format!(">{}", show_time(at)),
        chronosym::End::Open => String::new(),
    }
}

/// The begin of a life; `<` where it is inferred.
pub fn from(life: chronosym::Life) -> String {
    match (life.from, life.from_known) {
        (0, false) => String::new(),
        (at, true) => show_time(at),
        (at, false) => format!("~{}", show_time(at)),
    }
}

/// The end of a life; `~` where it is inferred.
pub fn to(life: chronosym::Life) -> String {
    match (life.to, life.to_known) {
        (u64::MAX, _) => String::new(),
        (at, true) => show_time(at),
        (at, false) => format!("~{}", show_time(at)),
    }
}
