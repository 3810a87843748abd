//! Symbols of variables and functions, for llvm-symbolizer's `DATA` lines.

use object::SymbolKind;
use object::read::{Object, ObjectSymbol};

use super::container::{Container, Format};

/// A variable or function of the symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataSymbol {
    /// Its virtual address.
    pub start: u64,
    /// Its size in bytes; 0 if unknown.
    pub size: u64,
    /// Its name as in the file.
    pub name: String,
}

/// Returns the symbols with their addresses, sorted: of several at one address the largest, then
/// the last of the table, as LLVM chooses.
pub(crate) fn read(container: &Container) -> Vec<DataSymbol> {
    let Ok(file) = container.file() else {
        return Vec::new();
    };
    let mut symbols = of(container, file.symbols());
    if symbols.is_empty() {
        symbols = of(container, file.dynamic_symbols());
    }
    symbols.sort_by_key(|symbol| (symbol.start, symbol.size));
    symbols.dedup_by(|next, kept| {
        let is_same = next.start == kept.start;
        if is_same {
            std::mem::swap(next, kept);
        }
        is_same
    });
    symbols
}

fn of<'d>(
    container: &Container,
    symbols: impl Iterator<Item = impl ObjectSymbol<'d>>,
) -> Vec<DataSymbol> {
    let symbols = symbols.filter_map(|symbol| {
        let is_named = match symbol.kind() {
            SymbolKind::Text | SymbolKind::Data => true,
            SymbolKind::Unknown | SymbolKind::Label => container.format == Format::Elf,
            _ => false,
        };
        let index = symbol.section_index().filter(|_| is_named)?;
        let name = String::from_utf8_lossy(symbol.name_bytes().ok()?).into_owned();
        Some(DataSymbol {
            start: symbol
                .address()
                .wrapping_add(container.section_start(index)),
            size: symbol.size(),
            name,
        })
    });
    symbols.collect()
}

/// Returns the symbol that contains an address.
pub(crate) fn find(symbols: &[DataSymbol], address: u64) -> Option<&DataSymbol> {
    let next = symbols.partition_point(|symbol| symbol.start <= address);
    let symbol = symbols.get(next.checked_sub(1)?)?;
    let within = address.checked_sub(symbol.start)?;
    (symbol.size == 0 || within < symbol.size).then_some(symbol)
}
