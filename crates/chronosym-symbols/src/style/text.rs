//! The layout for people: the address and its function, then who it is inlined into, each with its line.

use std::io::{self, Write};

use super::{Printer, number, put};
use crate::answer::{Answer, Missing, Source};

/// As many blanks as the longest address has characters.
const BLANK: &[u8; 18] = b"                  ";

pub(super) fn print(
    printer: &Printer<'_>,
    out: &mut impl Write,
    address: u64,
    answer: &Answer<'_>,
) -> io::Result<()> {
    if let Some(missing) = answer.missing() {
        let reason = match missing {
            Missing::OutsideImage => "outside the image",
            Missing::NoName => "no name",
            Missing::Damaged => "debug information damaged",
            Missing::LimitReached => "would cost too much to find out",
        };
        return writeln!(out, "{address:#x} ?? ({reason})");
    }
    write!(out, "{address:#x}")?;
    let digits = (u64::BITS - (address | 1).leading_zeros()).div_ceil(4) as usize;
    let lead = &BLANK[..digits + "0x".len()];
    for (i, frame) in answer.frames().enumerate() {
        if i == 0 {
            out.write_all(b" ")?;
        } else {
            out.write_all(lead)?;
            out.write_all(b" inlined into ")?;
        }
        let name = frame.name_id().map_or("??", |id| printer.name(id));
        put(out, name)?;
        if let Some(file) = frame.file() {
            out.write_all(b" at ")?;
            put(out, file)?;
            if let Some(line) = frame.line() {
                out.write_all(b":")?;
                number(out, line.get())?;
                if let Some(column) = frame.column() {
                    out.write_all(b":")?;
                    number(out, column.get())?;
                }
            }
        }
        match frame.source() {
            Source::DebugInfo => {}
            Source::SymbolTable => out.write_all(b" [symbol]")?,
            Source::DynamicSymbols => out.write_all(b" [dynamic symbol]")?,
            Source::Export => out.write_all(b" [nearest export]")?,
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}
