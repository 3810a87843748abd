//! Addresses of an ELF or PE file: DWARF, symbol tables, exports.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Result;
use chronosym_symbols::style::{Image, Printer};
use chronosym_symbols::{Address, DebugFileSearch, NativeSymbols, Query};

use super::companion;
use super::shown::{self, Layout};
use super::source::{self, Answers, Source};
use crate::args::Symbolize;
use crate::request::{AddressRequest, At, Target};
use crate::symbols;

pub struct ObjectSource {
    symbols: NativeSymbols,
    module: String,
    layout: Layout,
    query: Query,
    back: u64,
    rva: bool,
    answers: chronosym_symbols::Answers,
    damage: HashSet<String>,
    found: companion::Companion,
    /// Why code has no name, where nothing else says so.
    no_name: &'static str,
}

impl ObjectSource {
    pub fn open(path: &Path, args: &Symbolize, mut found: companion::Companion) -> Result<Self> {
        let config = symbols::config(&args.symbols)?;
        let mut places = DebugFileSearch::configured(path, &config);
        places.recorded_paths = !args.no_recorded_paths;
        let mut symbols = NativeSymbols::open_path_with(path, places)
            .map_err(|error| companion::no_file(error, path))?;
        companion::add_files(&mut symbols, path, &config, &mut found);
        let missing = symbols.is_stripped() || symbols.missing_supplement().is_some();
        let no_name = match found.reason {
            _ if !missing => "NoName",
            Some("NoSymbolFile") | None if symbols.has_rejected_debug_file() => {
                "SymbolFileMismatch"
            }
            Some(reason) => reason,
            None => "NoSymbolFile",
        };
        let layout = Layout::new(args.style, args.filter);
        let mut query = Query::default();
        query.lines = !args.symbols.no_lines;
        query.line_share = crate::limits::get().line_share;
        query.symbol_names = layout.style().wants_symbol_names();
        Ok(ObjectSource {
            symbols,
            module: source::simple_name(path),
            layout,
            query,
            back: u64::from(args.query.caller),
            rva: args.rva,
            answers: chronosym_symbols::Answers::new(),
            damage: HashSet::new(),
            found,
            no_name,
        })
    }

    /// The address to look up, and the one to show.
    fn address(&self, place: Target<'_>) -> Option<(Address, u64)> {
        let back = |at: u64| at.wrapping_sub(self.back);
        if let (Some(name), At::Rva(at)) = (place.file, place.at)
            && let Some(section) = self.symbols.section(name)
        {
            let address = back(section.start.checked_add(at)?);
            return Some((Address::VirtualAddress(address), at));
        }
        match place.at {
            At::Address(at) if self.rva => Some((Address::Rva(back(at)), at)),
            At::Address(at) => Some((Address::VirtualAddress(back(at)), at)),
            At::Rva(at) => Some((Address::Rva(back(at)), at)),
            At::FileOffset(at) => Some((Address::FileOffset(back(at)), at)),
            At::Il(..) => None,
        }
    }
}

impl Source for ObjectSource {
    fn answer<'s>(&'s mut self, questions: Vec<AddressRequest<'s>>) -> Result<Answers<'s>> {
        let mut addresses = Vec::with_capacity(questions.len());
        // The address to print, and which of the answers is its.
        let asked: Vec<Option<(u64, usize)>> = questions
            .iter()
            .map(|question| {
                let (address, shown) = self.address(question.target?)?;
                addresses.push(address);
                Some((shown, addresses.len() - 1))
            })
            .collect();
        self.symbols
            .find_all(&addresses, &self.query, &mut self.answers);
        self.damage.extend(self.answers.damage().iter().cloned());
        let (layout, answers) = (self.layout, &self.answers);
        let printer = Printer::new(layout.style(), answers).image(Image {
            module: &self.module,
            base: self.symbols.base(),
            build_id: self.symbols.build_id(),
            pdb_id: self.found.pdb_id.as_deref(),
            no_name: self.no_name,
            subtracted: self.back,
        });
        Ok(Box::new(move |index, out| {
            let question = &questions[index];
            let answer = asked[index].and_then(|(shown, at)| Some((shown, answers.get(at)?)));
            match (answer, layout) {
                // Writing to memory does not fail.
                (Some((shown, answer)), Layout::Lines(_)) => {
                    _ = printer.print(out, shown, &answer);
                }
                (Some((shown, answer)), Layout::InText) => {
                    layout.write(question, "", printer.frames(shown, &answer), out);
                }
                (None, _) => {
                    let why = match question.target {
                        Some(_) => shown::OTHER_KIND,
                        None => shown::NO_ADDRESS,
                    };
                    layout.write_unknown(question, question.text, why, out);
                }
            }
        }))
    }

    fn ids(&self) -> Vec<String> {
        let build = self.symbols.build_id().map(ToString::to_string);
        build.into_iter().chain(self.found.pdb_id.clone()).collect()
    }

    fn has_part(&self, name: &str) -> bool {
        self.symbols.section(name).is_some()
    }

    fn notes(&mut self) -> Vec<String> {
        let mut damage: Vec<String> = self.damage.iter().cloned().collect();
        damage.sort();
        let mut notes = self.found.notes.clone();
        notes.extend(self.symbols.missing_files());
        notes.extend(damage);
        notes
    }
}
