//! C++ names as GCC and Clang mangle them (the Itanium C++ ABI, section 5.1): read into nodes, written in a tool's dialect.

mod expressions;
mod names;
mod node;
mod operators;
mod parser;
mod types;
mod writer;

use super::output::{Dialect, Unreadable};
use parser::Parser;
use writer::Writer;

/// The readable form of a name that nests no deeper than that.
pub(super) fn demangle(
    name: &str,
    dialect: Dialect,
    max_depth: usize,
) -> Result<String, Unreadable> {
    let own = name.trim_start_matches('_').strip_prefix('Z');
    let own = own.ok_or(Unreadable::NotMangled)?;
    let mut parser = Parser::new(own, dialect, max_depth);
    let read = parser.whole();
    // `@GLIBC_2.2` and the like: a version is no part of the name, but not part of the mangling either.
    let tail = own.get(parser.at..);
    let tail = tail.filter(|tail| tail.is_empty() || tail.starts_with('@'));
    match (read, tail) {
        (Some(whole), Some(tail)) => {
            Writer::new(&parser.nodes, dialect, max_depth).text(whole, tail)
        }
        _ if parser.too_deep => Err(Unreadable::LimitReached),
        _ => Err(Unreadable::NotMangled),
    }
}
