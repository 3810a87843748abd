//! Addresses of a native file: an object file or a Windows PDB.

use std::path::Path;

use anyhow::Result;
use chronosym::symbols::{FileSymbols, StoreConfig};
use chronosym_symbols::{Address, Query};

use super::shown::{self, Layout};
use super::source::{Answers, Source};
use crate::args::Symbolize;
use crate::request::{AddressRequest, At, Target};

pub struct NativeSource {
    symbols: FileSymbols,
    layout: Layout,
    query: Query,
    back: u64,
    rva: bool,
}

impl NativeSource {
    pub fn open(
        image: Option<&Path>,
        pdb: Option<&Path>,
        config: &StoreConfig,
        args: &Symbolize,
    ) -> Result<Self> {
        let symbols = match (image, pdb) {
            (Some(image), None) => FileSymbols::of_image(image, config, !args.no_recorded_paths),
            (image, pdb) => FileSymbols::of_pdb(pdb.unwrap_or(Path::new("")), image),
        };
        let layout = Layout::new(args.style, args.in_text());
        let mut query = Query::default();
        query.lines = !args.symbols.no_lines;
        query.line_share = crate::limits::get().line_share;
        query.symbol_names = layout.style().wants_symbol_names();
        Ok(NativeSource {
            symbols: symbols?,
            layout,
            query,
            back: u64::from(args.query.caller),
            rva: args.rva,
        })
    }

    /// The address to look up, and the one to print.
    fn address(&self, target: Target<'_>) -> Option<(Address, u64)> {
        let back = |at: u64| at.wrapping_sub(self.back);
        if let (Some(name), At::Rva(at)) = (target.file, target.at)
            && let Some(start) = self.symbols.section(name)
        {
            let address = back(start.checked_add(at)?);
            return Some((Address::VirtualAddress(address), at));
        }
        match target.at {
            At::Address(at) if self.rva => Some((Address::Rva(back(at)), at)),
            At::Address(at) => Some((Address::VirtualAddress(back(at)), at)),
            At::Rva(at) => Some((Address::Rva(back(at)), at)),
            At::FileOffset(at) if self.symbols.has_file_offsets() => {
                Some((Address::FileOffset(back(at)), at))
            }
            At::FileOffset(_) | At::Il(..) => None,
        }
    }
}

impl Source for NativeSource {
    fn answer<'s>(&'s mut self, requests: Vec<AddressRequest<'s>>) -> Result<Answers<'s>> {
        let mut addresses = Vec::with_capacity(requests.len());
        // The address to print, and the index of its answer.
        let asked: Vec<Option<(u64, usize)>> = requests
            .iter()
            .map(|request| {
                let (address, shown) = self.address(request.target?)?;
                addresses.push(address);
                Some((request.address.unwrap_or(shown), addresses.len() - 1))
            })
            .collect();
        self.symbols.resolve(&addresses, &self.query);
        let (layout, answers) = (self.layout, self.symbols.answers());
        let printer = self.symbols.printer(layout.style(), self.back);
        Ok(Box::new(move |index, out| {
            let request = &requests[index];
            let answer = asked[index].and_then(|(shown, at)| Some((shown, answers.get(at)?)));
            match (answer, layout) {
                // Writing to memory does not fail.
                (Some((shown, answer)), Layout::Lines(_)) => {
                    _ = printer.print(out, shown, &answer);
                }
                (Some((shown, answer)), Layout::InText) => {
                    layout.write(request, "", printer.frames(shown, &answer), out);
                }
                (None, _) => {
                    let why = match request.target {
                        Some(_) => shown::OTHER_KIND,
                        None => shown::NO_ADDRESS,
                    };
                    layout.write_unknown(request, request.text, why, out);
                }
            }
        }))
    }

    fn ids(&self) -> Vec<String> {
        self.symbols.ids()
    }

    fn has_part(&self, name: &str) -> bool {
        self.symbols.section(name).is_some()
    }

    fn notes(&mut self) -> Vec<String> {
        self.symbols.notes()
    }
}
