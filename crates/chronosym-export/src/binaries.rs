//! Modules and images in listings, as text and as JSON.

use std::io::{self, Write};
use std::ops::Range;

use chronosym_core::{End, ImageView, ModuleView, PdbReference, ProcessIndex, Start, Timeline};
use chronosym_symbolizer::{SymbolFile, Symbolizer};
use chronosym_types::json::HexNumber;
use serde::ser::SerializeMap;

use crate::lifetime::Lifetime;
use crate::object::{Fields, Object};
use crate::symbol_file::write_symbol_file;
use crate::text_line;
use crate::units::show_range;

/// The modules and images of a process, each with its symbol file.
#[derive(Debug)]
pub struct Binaries<'t> {
    modules: Vec<WithSymbols<ModuleView<'t>>>,
    images: Vec<WithSymbols<ImageView<'t>>>,
}

#[derive(Debug)]
struct WithSymbols<T> {
    binary: T,
    symbols: SymbolFile,
}

impl<'t> Binaries<'t> {
    /// Returns those that are loaded at some time of a range, in ns; `None` if there is none.
    pub fn of(
        timeline: &'t Timeline,
        symbols: &Symbolizer,
        process: ProcessIndex,
        times: &Range<u64>,
    ) -> Option<Self> {
        let is_module_listed = |m: &ModuleView<'_>| {
            let is_later = matches!(m.start, Start::At(at) if at >= times.end);
            let is_earlier = matches!(m.end, End::At(at) if at <= times.start);
            !is_later && !is_earlier
        };
        let is_image_listed =
            |i: &ImageView<'_>| i.lifetime.from < times.end && i.lifetime.to > times.start;
        let modules = timeline.modules(process).filter(is_module_listed);
        let images = timeline.images(process).filter(is_image_listed);
        let binaries = Binaries {
            modules: modules
                .map(|module| WithSymbols {
                    symbols: symbols.module_pdb(&module.module),
                    binary: module,
                })
                .collect(),
            images: images
                .map(|image| WithSymbols {
                    symbols: symbols.image_symbols(&image.image),
                    binary: image,
                })
                .collect(),
        };
        let is_empty = binaries.modules.is_empty() && binaries.images.is_empty();
        (!is_empty).then_some(binaries)
    }

    /// Keeps the first entries only: modules, then images.
    pub fn truncate(&mut self, most: usize) {
        self.modules.truncate(most);
        self.images.truncate(most - self.modules.len());
    }

    /// Writes a table.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        text_line!(
            out,
            "         {:<40} lifetime (~ inferred, < loaded before, > alive after)",
            "name"
        )?;
        for WithSymbols { binary, symbols } in &self.modules {
            text_line!(
                out,
                "  module {:<40} {:<28} {} bodies, {}",
                binary.name,
                Lifetime::from((binary.start, binary.end)),
                binary.bodies,
                binary.evidence
            )?;
            let module = &binary.module;
            let facts = [("IL    ", module.il_path), ("native", module.native_path)];
            let pdbs = [module.managed_pdb, module.native_pdb];
            write_details(&facts, &pdbs, symbols, out)?;
        }
        for WithSymbols { binary, symbols } in &self.images {
            let image = &binary.image;
            text_line!(
                out,
                "  image  {:<40} {:<28} {}",
                binary.name,
                Lifetime::from(binary.lifetime),
                show_range(image.base, image.size)
            )?;
            let build_id = image.build_id.unwrap_or_default();
            let facts = [("path  ", image.path), ("build id", build_id)];
            write_details(&facts, &[image.pdb], symbols, out)?;
        }
        Ok(())
    }
}

impl Fields for Binaries<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some_objects("modules", &self.modules)
            .some_objects("images", &self.images);
    }
}

impl Fields for WithSymbols<ModuleView<'_>> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let (view, module) = (&self.binary, &self.binary.module);
        object
            .field("name", view.name)
            .fields_of(&Lifetime::from((view.start, view.end)))
            .field("bodies", view.bodies)
            .shown("evidence", view.evidence)
            .text("il_path", module.il_path)
            .text("native_path", module.native_path)
            .object("pdb", module.managed_pdb)
            .object("native_pdb", module.native_pdb)
            .object("symbols", Some(&self.symbols));
    }
}

impl Fields for WithSymbols<ImageView<'_>> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let (view, image) = (&self.binary, &self.binary.image);
        object
            .field("name", view.name)
            .fields_of(&Lifetime::from(view.lifetime))
            .field("address", HexNumber(image.base))
            .field("size", image.size)
            .text("path", image.path)
            .some("build_id", image.build_id)
            .object("pdb", image.pdb)
            .object("symbols", Some(&self.symbols));
    }
}

impl Fields for PdbReference {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .shown("guid", self.id.guid)
            .field("age", self.id.age)
            .text("path", &self.path);
    }
}

/// Writes the details below a module or an image.
fn write_details(
    facts: &[(&str, &str)],
    pdbs: &[Option<&PdbReference>],
    symbols: &SymbolFile,
    out: &mut dyn Write,
) -> io::Result<()> {
    const INDENT: &str = "         ";
    for (what, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
        text_line!(out, "{INDENT}{what} {value}")?;
    }
    for pdb in pdbs.iter().flatten() {
        text_line!(out, "{INDENT}PDB    {} {}", pdb.id, pdb.path)?;
    }
    write_symbol_file(symbols, "symbols", INDENT, out)
}
