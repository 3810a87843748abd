//! The layout for people: the address and its function, then who it is inlined into, each with its line.

use std::io::{self, Write};

use super::Printer;
use crate::answer::{Answer, Missing, Source};

pub(super) fn print(
    printer: &Printer<'_>,
    out: &mut impl Write,
    address: u64,
    answer: &Answer<'_>,
) -> io::Result<()> {
    let lead = format!("{address:#x}");
    if let Some(missing) = answer.missing() {
        let reason = match missing {
            Missing::OutsideImage => "outside the image",
            Missing::NoName => "no name",
            Missing::Damaged => "debug information damaged",
        };
        return writeln!(out, "{lead} ?? ({reason})");
    }
    let mut before = "";
    for (i, frame) in answer.frames().enumerate() {
        match i {
            0 => out.write_all(lead.as_bytes())?,
            _ => write!(out, "{:1$}", "", lead.len())?,
        }
        let name = frame.name_id().map_or("??", |id| printer.name(id));
        write!(out, " {before}{name}")?;
        if let Some(file) = frame.file() {
            write!(out, " at {file}")?;
            if let Some(line) = frame.line() {
                write!(out, ":{line}")?;
                if let Some(column) = frame.column() {
                    write!(out, ":{column}")?;
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
        before = "inlined into ";
    }
    Ok(())
}
