//! The layout of `addr2line -f -i -C`.

use std::io::{self, Write};

use super::{Printer, number, put};
use crate::answer::Answer;

pub(super) fn print(
    printer: &Printer<'_>,
    out: &mut impl Write,
    answer: &Answer<'_>,
) -> io::Result<()> {
    let frames = answer.frames();
    if frames.len() == 0 {
        return out.write_all(b"??\n??:0\n");
    }
    let mut discriminator = 0;
    for (i, frame) in frames.enumerate() {
        // Of a C++ function without a linkage name in the debug information, one of an unnamed namespace for instance,
        // binutils print the symbol table's name. (Of inlined ones they may print that of the function around them,
        // depending on what was asked before; that is not followed.)
        let symbol = frame.symbol_id().filter(|_| {
            !frame.inlined() && !frame.plain_names() && !frame.name().is_some_and(is_linkage_name)
        });
        let id = symbol.or(frame.name_id());
        let name = id.map_or("??", |id| printer.name(id));
        put(out, name)?;
        out.write_all(b"\n")?;
        put(out, frame.file().unwrap_or("??"))?;
        out.write_all(b":")?;
        match frame.line() {
            Some(line) => number(out, line.get())?,
            None => out.write_all(b"?")?,
        }
        // The discriminator belongs to the first frame's line; binutils print it after every frame's.
        if i == 0 {
            discriminator = frame.discriminator();
        }
        match discriminator {
            0 => out.write_all(b"\n")?,
            n => writeln!(out, " (discriminator {n})")?,
        }
    }
    Ok(())
}

/// True for what compilers put into `DW_AT_linkage_name`, told by its mangling.
fn is_linkage_name(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}
