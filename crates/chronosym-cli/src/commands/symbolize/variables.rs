//! Variables, as llvm-symbolizer prints them for `DATA` and `FRAME` lines.

use std::borrow::Cow;
use std::fmt::Display;

use chronosym::symbols::FileSymbols;
use chronosym_symbols::demangle::{Dialect, demangle_as};

use crate::output::printable;

/// The placeholder of llvm-symbolizer for what is unknown.
const UNKNOWN: &str = "??";

/// Prints the variables of a file.
pub struct Variables<'a> {
    pub symbols: &'a FileSymbols,
    /// Whether the address precedes its answer.
    pub has_addresses: bool,
    pub demangle: bool,
}

impl Variables<'_> {
    /// Appends the variable or function that contains an address: its name, its address and size,
    /// and its declaration. `shown` is the address as written, `lookup` that in the file.
    pub fn write_global(&self, shown: Option<u64>, lookup: Option<u64>, out: &mut Vec<u8>) {
        self.write_address(shown, out);
        match lookup.and_then(|address| self.symbols.data_symbol(address)) {
            Some(symbol) => {
                let name = self.readable(&symbol.name);
                let (name, start, size) = (printable(&name), symbol.start, symbol.size);
                out.extend(format!("{name}\n{start} {size}\n").bytes());
            }
            None => out.extend(format!("{UNKNOWN}\n0 0\n").bytes()),
        }
        match lookup.and_then(|address| self.symbols.declaration(address)) {
            Some((file, line)) => out.extend(format!("{}:{line}\n\n", printable(&file)).bytes()),
            None => out.extend(b"??:?\n\n"),
        }
    }

    /// Appends the local variables of the function at an address: for each its function, its name,
    /// its declaration, and its offset, size and tag.
    pub fn write_locals(&self, shown: Option<u64>, lookup: Option<u64>, out: &mut Vec<u8>) {
        self.write_address(shown, out);
        let locals = lookup.map(|address| self.symbols.locals(address));
        let locals = locals.unwrap_or_default();
        if locals.is_empty() {
            out.extend(format!("{UNKNOWN}\n").bytes());
        }
        for local in locals {
            let text = |text: Option<String>| {
                text.map_or_else(|| UNKNOWN.to_owned(), |text| printable(&text).into_owned())
            };
            let (function, name) = (text(local.function), text(local.name));
            let (file, line) = (text(local.file), local.line);
            let numbers = [
                number(local.frame_offset),
                number(local.size),
                number(local.tag_offset),
            ];
            let numbers = numbers.join(" ");
            out.extend(format!("{function}\n{name}\n{file}:{line}\n{numbers}\n").bytes());
        }
        out.push(b'\n');
    }

    /// Returns the name of the variable or function that contains an address.
    pub fn name_at(&self, address: u64) -> Option<String> {
        let symbol = self.symbols.data_symbol(address)?;
        Some(self.readable(&symbol.name).into_owned())
    }

    fn readable<'n>(&self, name: &'n str) -> Cow<'n, str> {
        let readable = demangle_as(name, Dialect::Llvm).ok();
        let readable = readable.filter(|_| self.demangle);
        readable.map_or(name.into(), Cow::Owned)
    }

    fn write_address(&self, shown: Option<u64>, out: &mut Vec<u8>) {
        if let Some(address) = shown.filter(|_| self.has_addresses) {
            out.extend(format!("{address:#x}\n").bytes());
        }
    }
}

fn number(number: Option<impl Display>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string())
}
