//! The layout of `llvm-symbolizer --output-style=LLVM`.

use std::io::{self, Write};

use super::{OrZero, Printer};
use crate::answer::Answer;

pub(super) fn print(
    printer: &Printer<'_>,
    out: &mut impl Write,
    answer: &Answer<'_>,
) -> io::Result<()> {
    let frames = answer.frames();
    if frames.len() == 0 {
        return out.write_all(b"??\n??:0:0\n\n");
    }
    for frame in frames {
        // Of the function whose code it is, LLVM prints the symbol table's name.
        let id = frame.symbol_id().or(frame.name_id());
        let name = id.map_or("??", |id| printer.name(id));
        writeln!(
            out,
            "{name}\n{}:{}:{}",
            frame.file().unwrap_or("??"),
            OrZero(frame.line()),
            OrZero(frame.column()),
        )?;
    }
    out.write_all(b"\n")
}
