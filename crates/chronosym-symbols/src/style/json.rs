//! One JSON object a line, its frames as everywhere else in this project's JSON.

use std::io::{self, Write};

use chronosym_types::escape;

use super::{Printer, number};
use crate::answer::{Answer, Missing, Source};

/// Programs that read JSON may keep numbers as `f64`: greater ones stand as text.
const MAX_NUMBER: u64 = 1 << 53;

const LIMIT_REACHED: &str = "LimitReached";

pub(super) fn print(
    printer: &Printer<'_>,
    out: &mut impl Write,
    address: u64,
    answer: &Answer<'_>,
) -> io::Result<()> {
    write!(out, "{{\"address\":\"{address:#x}\",\"frames\":[")?;
    let no_name = printer.image.as_ref().map_or("NoName", |i| i.no_name);
    if let Some(missing) = answer.missing() {
        let reason = match missing {
            Missing::OutsideImage => "InvalidAddress",
            Missing::NoName => no_name,
            Missing::Damaged => "SymbolFileDamaged",
            Missing::LimitReached => LIMIT_REACHED,
        };
        write!(out, "{{\"address\":\"{address:#x}\"")?;
        if missing != Missing::OutsideImage {
            place(printer, out, answer)?;
        }
        write!(out, ",\"name_reason\":\"{reason}\"}}")?;
    }
    // Offsets count from the body that the code is in, for inlined frames as for its own.
    let body = answer.frames().last().and_then(|f| f.function_start());
    let offset = body.and_then(|start| answer.address().checked_sub(start));
    for (i, frame) in answer.frames().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        write!(out, "{comma}{{\"address\":\"{address:#x}\"")?;
        match frame.name_id() {
            Some(id) => {
                out.write_all(b",\"name\":")?;
                string(out, printer.name(id))?;
            }
            None => {
                place(printer, out, answer)?;
                write!(out, ",\"name_reason\":\"{no_name}\"")?;
            }
        }
        if let Some(offset) = offset {
            out.write_all(b",\"offset\":")?;
            number(out, offset)?;
        }
        if let Some(file) = frame.file() {
            out.write_all(b",\"file\":")?;
            string(out, file)?;
        }
        if let Some(line) = frame.line() {
            out.write_all(b",\"line\":")?;
            number(out, line.get())?;
        }
        if let Some(column) = frame.column() {
            out.write_all(b",\"column\":")?;
            number(out, column.get())?;
        }
        if frame.inlined() {
            out.write_all(b",\"inlined\":true")?;
        }
        // What stands next before an address in a list that names only some functions is a guess.
        if matches!(frame.source(), Source::Export | Source::DynamicSymbols) {
            out.write_all(b",\"certainty\":\"Approximate\"")?;
        }
        if frame.line().is_none() && frame.name_id().is_some() {
            let reason = match printer.answers.lines {
                false => "LinesDisabled",
                true if frame.line_limited() => LIMIT_REACHED,
                true => "NoLineInfo",
            };
            write!(out, ",\"line_reason\":\"{reason}\"")?;
        }
        out.write_all(b"}")?;
    }
    out.write_all(b"]}\n")
}

/// Where in which image the frame is: said of those without a name.
fn place(printer: &Printer<'_>, out: &mut impl Write, answer: &Answer<'_>) -> io::Result<()> {
    let Some(image) = &printer.image else {
        return Ok(());
    };
    out.write_all(b",\"module\":")?;
    string(out, image.module)?;
    if let Some(rva) = answer.address().checked_sub(image.base) {
        out.write_all(b",\"rva\":")?;
        match rva.saturating_add(image.taken_off) {
            rva @ ..=MAX_NUMBER => number(out, rva)?,
            rva => write!(out, "\"{rva:#x}\"")?,
        }
    }
    if let Some(id) = image.build_id {
        write!(out, ",\"build_id\":\"{id}\"")?;
    }
    if let Some(id) = image.pdb_id {
        write!(out, ",\"pdb_id\":\"{id}\"")?;
    }
    Ok(())
}

/// A JSON string.
fn string(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(b"\"")?;
    out.write_all(escape::json(text).as_bytes())?;
    out.write_all(b"\"")
}
