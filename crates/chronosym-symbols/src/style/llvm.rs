//! The layout of `llvm-symbolizer --output-style=LLVM`.

use std::io::{self, Write};

use super::{Printer, or_zero, put};
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
        put(out, name)?;
        out.write_all(b"\n")?;
        put(out, frame.file().unwrap_or("??"))?;
        out.write_all(b":")?;
        or_zero(out, frame.line())?;
        out.write_all(b":")?;
        or_zero(out, frame.column())?;
        out.write_all(b"\n")?;
    }
    out.write_all(b"\n")
}
