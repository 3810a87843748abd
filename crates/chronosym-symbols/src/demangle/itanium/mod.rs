//! Demangles C++ names of GCC and Clang (Itanium C++ ABI, section 5.1): parses them into nodes, and
//! writes these in a tool's dialect.

mod expressions;
mod floats;
mod names;
mod node;
mod operators;
mod parser;
mod types;
mod writer;

use super::output::{Dialect, Unreadable};
use parser::Parser;
use writer::Writer;

/// The demangled form of a name that nests at most `max_depth` levels.
pub(super) fn demangle(
    name: &str,
    dialect: Dialect,
    max_depth: usize,
) -> Result<String, Unreadable> {
    let own = name.trim_start_matches('_').strip_prefix('Z');
    let own = own.ok_or(Unreadable::NotMangled)?;
    let mut parser = Parser::new(own, dialect, max_depth);
    // Three underscores, or four where the linker adds one, mark the function of a block.
    let is_block = name.len().saturating_sub(own.len()) > 3;
    let parsed = match is_block {
        true => parser.block(),
        false => parser.whole(),
    };
    // A symbol version, such as `@GLIBC_2.2`, is not part of the mangling.
    let tail = own.get(parser.at..);
    let tail = tail.filter(|tail| tail.is_empty() || tail.starts_with('@'));
    match (parsed, tail) {
        (Some(whole), Some(tail)) => {
            Writer::new(&parser.nodes, dialect, max_depth).text(whole, tail)
        }
        _ if parser.too_deep => Err(Unreadable::LimitReached),
        _ => Err(Unreadable::NotMangled),
    }
}
