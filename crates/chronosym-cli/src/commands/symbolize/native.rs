//! Addresses of a native file: an object file or a Windows PDB.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use chronosym::file_name;
use chronosym::symbols::{FileSymbols, StoreConfig};
use chronosym_symbols::{Address, ObjectPath, Query};

use super::element;
use super::llvm_json;
use super::shown::{self, Layout, Why};
use super::source::{Answers, Source};
use super::variables::Variables;
use crate::args::Symbolize;
use crate::protocol::Wanted;
use crate::request::{AddressRequest, At, Method, Target};

pub struct NativeSource {
    symbols: FileSymbols,
    path: String,
    /// Names of the file in texts.
    names: Vec<String>,
    query: Query,
    back: u64,
    rva: bool,
    demangle: bool,
    /// Start of the section that addresses are relative to.
    section: Option<u64>,
    /// Subtracted from each address.
    adjust: u64,
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
            (image, pdb) => FileSymbols::of_pdb(pdb.unwrap_or(Path::new("")), image, args.any_pdb)
                .map(|mut symbols| {
                    symbols.use_cache(config.symbol_cache());
                    symbols
                }),
        };
        let object = image.map(ObjectPath::parse);
        let object = object.as_ref().map(|object| &*object.file);
        let path = object.or(pdb).unwrap_or(Path::new(""));
        let mut query = Query::default();
        query.lines = !args.symbols.no_lines;
        query.inlines = args.wants_inlines();
        query.line_share = crate::limits::get().line_share;
        let symbols = symbols?;
        let tool = args.tool.as_ref();
        if let Some(tool) = tool {
            query.relative_paths = tool.relative_paths;
            query.skip_line_zero = tool.skip_line_zero;
            query.declarations = tool.shape.has_starts;
        }
        let section = tool.and_then(|tool| tool.section.as_deref());
        let start = section.map(|name| {
            let start = symbols.section(name);
            start.with_context(|| format!("{}: no section {name}", path.display()))
        });
        Ok(NativeSource {
            section: start.transpose()?,
            adjust: tool.map_or(0, |tool| tool.adjust),
            demangle: tool.is_none_or(|tool| tool.demangle),
            symbols,
            path: path.display().to_string(),
            names: [path.file_name(), path.file_stem()]
                .into_iter()
                .flatten()
                .map(|name| name.to_string_lossy().into_owned())
                .collect(),
            query,
            back: u64::from(args.query.caller),
            rva: args.rva,
        })
    }

    /// Returns the address to look up, the one to print, and whether the function's size confirms
    /// them.
    fn address(&self, target: Target<'_>) -> Result<Located, Why> {
        let back = |at: u64| at.wrapping_sub(self.back);
        if let (Some(name), At::Rva(offset), true) = (target.file, target.at, target.is_ambiguous) {
            if let Some(start) = self.symbols.section(name) {
                let address = start.checked_add(offset).ok_or(shown::NO_FUNCTION)?;
                return Ok(Located::at(Address::VirtualAddress(back(address)), offset));
            }
            // `f+0x1a` looks like `module+0x1a`.
            if !self
                .names
                .iter()
                .any(|own| own.eq_ignore_ascii_case(file_name(name)))
                && !self.symbols.functions_named(name).is_empty()
            {
                return self.function(name, offset, None);
            }
        }
        let (address, shown) = match target.at {
            At::Address(at) if self.rva => (Address::Rva(back(self.moved(at))), at),
            At::Address(at) => (Address::VirtualAddress(back(self.moved(at))), at),
            At::Rva(at) => (Address::Rva(back(at)), at),
            At::FileOffset(at) if self.symbols.has_file_offsets() => {
                (Address::FileOffset(back(at)), at)
            }
            At::Mapped {
                address,
                start,
                len,
            } => {
                let missing = match len {
                    0 => shown::NO_LOAD_ADDRESS,
                    _ => shown::NO_SUCH_MAPPING,
                };
                let own = self.symbols.mapped_code(len).ok_or(missing)?;
                let within = address.wrapping_sub(start);
                let lookup = Address::VirtualAddress(back(own.wrapping_add(within)));
                (lookup, address)
            }
            At::Symbol(symbol) => return self.function(symbol.name, symbol.offset, symbol.size),
            At::Il(Method::Named(name), offset) => return self.function(name, offset.into(), None),
            At::FileOffset(_) | At::Il(..) | At::Listed(..) => return Err(shown::OTHER_KIND),
        };
        Ok(Located::at(address, shown))
    }

    /// Returns an address with the options' section and adjustment applied.
    fn moved(&self, address: u64) -> u64 {
        let start = self.section.unwrap_or(0);
        address.wrapping_add(start).wrapping_sub(self.adjust)
    }

    /// Returns the printer of variables.
    fn variables(&self, layout: Layout) -> Variables<'_> {
        Variables {
            symbols: &self.symbols,
            has_addresses: layout.shape().has_addresses,
            demangle: self.demangle,
        }
    }

    /// Returns an address in a function. If several functions have the name, the size must select
    /// one.
    fn function(&self, name: &str, offset: u64, size: Option<u64>) -> Result<Located, Why> {
        let all = self.symbols.functions_named(name);
        let len = |range: &Range<u64>| range.end.saturating_sub(range.start);
        let mut of_size = all.iter().filter(|range| Some(len(range)) == size);
        let (function, is_certain) = match (&*all, of_size.next(), of_size.next()) {
            (_, Some(range), None) => (range, true),
            // Another size, perhaps that of another build.
            ([range], ..) => (range, size.is_none()),
            ([], ..) => return Err(shown::NO_FUNCTION),
            _ => return Err(shown::SEVERAL_FUNCTIONS),
        };
        if offset >= len(function) {
            return Err(shown::NO_FUNCTION);
        }
        let address = function.start.saturating_add(offset);
        let lookup = Address::VirtualAddress(address.wrapping_sub(self.back));
        Ok(Located {
            lookup,
            shown: address,
            is_certain,
        })
    }
}

/// An address of the file.
#[derive(Clone, Copy)]
struct Located {
    /// The address to look up.
    lookup: Address,
    /// The address to print.
    shown: u64,
    /// False if the function has another size than the text states.
    is_certain: bool,
}

impl Located {
    fn at(lookup: Address, shown: u64) -> Self {
        let is_certain = true;
        Located {
            lookup,
            shown,
            is_certain,
        }
    }
}

impl Source for NativeSource {
    fn answer<'s>(
        &'s mut self,
        requests: Vec<AddressRequest<'s>>,
        layout: Layout,
    ) -> Result<Answers<'s>> {
        self.query.symbol_names = layout.style().dialect();
        let mut addresses = Vec::with_capacity(requests.len());
        // The address to print, and the index of its answer.
        let located: Vec<Result<(Located, usize), Why>> = requests
            .iter()
            .map(|request| {
                let target = request.target.ok_or(shown::NO_ADDRESS)?;
                let mut located = self.address(target)?;
                located.shown = request.address.unwrap_or(located.shown);
                addresses.push(located.lookup);
                Ok((located, addresses.len() - 1))
            })
            .collect();
        self.symbols.resolve(&addresses, &self.query);
        let answers = self.symbols.answers();
        let printer = self.symbols.printer(layout.style(), self.back);
        let printer = printer.shape(layout.shape()).demangle(self.demangle);
        let own: &Self = self;
        let symbol_file = self.path.as_str();
        Ok(Box::new(move |index, out| {
            let request = &requests[index];
            let target = request.target;
            if request.wanted != Wanted::Code {
                let shown = target.and_then(|target| target.address());
                let lookup = shown.map(|address| own.moved(address));
                let variables = own.variables(layout);
                if layout == Layout::Markup {
                    let name = lookup.and_then(|address| variables.name_at(address));
                    element::write_name(request, &name.unwrap_or_default(), out);
                    return None;
                }
                if let Layout::LlvmObjects(shape) = layout {
                    let found = (&own.symbols, lookup);
                    let demangle = own.demangle;
                    llvm_json::write_variables(request, symbol_file, &shape, found, demangle, out);
                    return None;
                }
                match request.wanted {
                    Wanted::Data => variables.write_global(shown, lookup, out),
                    _ => variables.write_locals(shown, lookup, out),
                }
                return None;
            }
            let is_number = target.is_some_and(|target| target.address().is_some());
            let found = located[index]
                .and_then(|(located, at)| Ok((located, answers.get(at).ok_or(shown::OTHER_KIND)?)));
            match (found, layout) {
                // Writing to memory does not fail.
                (Ok((located, answer)), Layout::Lines(_, shape))
                    // A symbol has no address to print.
                    if located.is_certain && (is_number || !shape.has_addresses) =>
                {
                    _ = printer.print(out, located.shown, &answer);
                    None
                }
                (Ok((located, answer)), Layout::LlvmObjects(shape)) => {
                    let frames = printer.frames(located.shown, &answer);
                    llvm_json::write(request, symbol_file, &shape, frames, out);
                    None
                }
                (Ok((located, answer)), _) => {
                    let address = format!("{:#x}", located.shown);
                    let frames = printer.frames(located.shown, &answer).map(|mut frame| {
                        if layout == Layout::Objects {
                            frame.symbol_file = Some(symbol_file);
                        }
                        if !located.is_certain {
                            frame.certainty = Some("Approximate");
                            let label = frame.label.as_deref().or(frame.name);
                            frame.label = label.map(|label| format!("~{label}").into());
                        }
                        frame
                    });
                    layout.write(request, &address, frames, out)
                }
                (Err(why), _) => layout.write_unknown(request, request.text, why, out),
            }
        }))
    }

    fn ids(&self) -> Vec<String> {
        self.symbols.ids()
    }

    fn has_part(&self, name: &str) -> bool {
        self.symbols.section(name).is_some() || !self.symbols.functions_named(name).is_empty()
    }

    fn notes(&mut self) -> Vec<String> {
        self.symbols.notes()
    }

    fn convert(&self) {
        self.symbols.convert();
    }
}
