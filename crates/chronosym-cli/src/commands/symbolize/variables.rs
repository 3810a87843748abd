//! Variables, as llvm-symbolizer prints them for `DATA` and `FRAME` lines.

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
        let symbol = lookup.and_then(|address| self.symbols.data_symbol(address));
        let (name, start, size) = match symbol {
            Some(symbol) => (&*symbol.name, symbol.start, symbol.size),
            None => (UNKNOWN, 0, 0),
        };
        let readable = demangle_as(name, Dialect::Llvm)
            .ok()
            .filter(|_| self.demangle);
        let name = printable(readable.as_deref().unwrap_or(name));
        out.extend(format!("{name}\n{start} {size}\n").bytes());
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

    fn write_address(&self, shown: Option<u64>, out: &mut Vec<u8>) {
        if let Some(address) = shown.filter(|_| self.has_addresses) {
            out.extend(format!("{address:#x}\n").bytes());
        }
    }
}

fn number(number: Option<impl Display>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string())
}
