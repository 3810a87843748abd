//! The four styles of output.

use std::io::{self, Write};
use std::str::FromStr;

use chronosym_types::escape::terminal;
use chronosym_types::json::{self, FrameObject};
use serde::Serialize;

use super::context;
use super::shape::Shape;
use crate::demangle::Dialect;

/// Marks a line of earlier code, as llvm-symbolizer does.
pub const APPROXIMATE_LINE: &str = " (approximate)";

/// A style of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Style {
    /// Readable text: the address, then one frame per line.
    #[default]
    Text,
    /// One JSON object per line: `{"address","frames"}`.
    Json,
    /// The output of `llvm-symbolizer`: name and `file:line:column` in turn, a blank line after
    /// each address.
    Llvm,
    /// The output of `addr2line -f -i -C`: name and `file:line` in turn.
    Gnu,
}

impl Style {
    /// Returns the dialect of the tool whose names of symbols the style prints; they need
    /// [`Query::symbol_names`](crate::Query::symbol_names).
    pub fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Llvm => Some(Dialect::Llvm),
            Self::Gnu => Some(Dialect::Gnu),
            Self::Text | Self::Json => None,
        }
    }

    /// Returns the address as the style prints it before an answer; empty if it prints none.
    pub fn address(self, shape: &Shape, address: u64) -> String {
        match self {
            Self::Llvm | Self::Gnu if !shape.has_addresses => String::new(),
            Self::Gnu => hex(address, 16),
            _ => hex(address, 1),
        }
    }
}

/// The name of a style is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}: not one of text, json, llvm, gnu")]
pub struct UnknownStyle(String);

impl FromStr for Style {
    type Err = UnknownStyle;

    fn from_str(name: &str) -> Result<Self, UnknownStyle> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "llvm" => Ok(Self::Llvm),
            "gnu" => Ok(Self::Gnu),
            _ => Err(UnknownStyle(name.to_owned())),
        }
    }
}

/// Prints the frames of one address, innermost first. `address` is printed before them; the styles
/// of other tools print it only where `shape` says so.
///
/// # Errors
/// Those of the writer.
pub fn print<'a>(
    style: Style,
    shape: &Shape,
    out: &mut impl Write,
    address: &str,
    frames: impl IntoIterator<Item = FrameObject<'a>>,
) -> io::Result<()> {
    let frames = frames.into_iter();
    match style {
        Style::Text => text(shape, out, address, frames),
        Style::Json => object(out, address, frames),
        Style::Llvm => llvm(shape, out, address, frames),
        Style::Gnu => gnu(shape, out, address, frames),
    }
}

/// Prints the address and its function, then the functions it is inlined into, each with its line.
fn text<'a>(
    shape: &Shape,
    out: &mut impl Write,
    address: &str,
    frames: impl Iterator<Item = FrameObject<'a>>,
) -> io::Result<()> {
    put(out, address)?;
    for (i, frame) in frames.enumerate() {
        if i == 0 {
            out.write_all(b" ")?;
        } else {
            write!(out, "{:1$} inlined into ", "", address.len())?;
        }
        put(out, frame.label.as_deref().or(frame.name).unwrap_or("??"))?;
        if let Some(file) = frame.file {
            out.write_all(b" at ")?;
            put(out, shape.path(file))?;
            for n in [frame.line, frame.line.and(frame.column)]
                .into_iter()
                .flatten()
            {
                out.write_all(b":")?;
                number(out, n)?;
            }
        }
        if let Some(meaning) = &frame.meaning {
            out.write_all(b" (")?;
            put(out, meaning)?;
            out.write_all(b")")?;
        }
        out.write_all(frame.mark.as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Prints one JSON object on a line.
fn object<'a>(
    out: &mut impl Write,
    address: &str,
    frames: impl Iterator<Item = FrameObject<'a>>,
) -> io::Result<()> {
    #[derive(Serialize)]
    struct Line<'a> {
        address: &'a str,
        frames: Vec<FrameObject<'a>>,
    }
    let frames = frames.collect();
    json::to_writer(&mut *out, &Line { address, frames })?;
    out.write_all(b"\n")
}

/// Prints like `llvm-symbolizer --output-style=LLVM`.
fn llvm<'a>(
    shape: &Shape,
    out: &mut impl Write,
    address: &str,
    frames: impl Iterator<Item = FrameObject<'a>>,
) -> io::Result<()> {
    before(shape, out, address)?;
    let len = if shape.is_innermost { 1 } else { usize::MAX };
    // A loop would move each frame several times.
    frames.take(len).enumerate().try_for_each(|(at, frame)| {
        name(shape, out, &frame, at > 0, " at ")?;
        if shape.has_starts {
            return verbose(shape, out, &frame);
        }
        put(out, shape.path(frame.file.unwrap_or("??")))?;
        position(out, &frame)?;
        match (frame.file, frame.line, shape.context_lines) {
            (Some(file), Some(line), lines @ 1..) => context::print(out, file, line, lines),
            _ => Ok(()),
        }
    })?;
    out.write_all(b"\n")
}

/// Prints the location of a frame and the start of its function, as `--verbose` does.
fn verbose(shape: &Shape, out: &mut impl Write, frame: &FrameObject<'_>) -> io::Result<()> {
    let mut path = |label: &str, path: &str| {
        write!(out, "  {label}: ")?;
        put(out, shape.path(path))?;
        out.write_all(b"\n")
    };
    path("Filename", frame.file.unwrap_or("??"))?;
    let start = &frame.start;
    if let Some(line) = start.line {
        // LLVM has two placeholders.
        let unknown = if shape.is_innermost { "<invalid>" } else { "" };
        path("Function start filename", start.file.unwrap_or(unknown))?;
        writeln!(out, "  Function start line: {line}")?;
    }
    if let Some(address) = start.address {
        writeln!(out, "  Function start address: {address:#x}")?;
    }
    let (line, column) = (frame.line.unwrap_or(0), frame.column.unwrap_or(0));
    writeln!(out, "  Line: {line}\n  Column: {column}")?;
    if frame.discriminator != 0 {
        writeln!(out, "  Discriminator: {}", frame.discriminator)?;
    }
    if frame.mark == APPROXIMATE_LINE {
        out.write_all(b"  Approximate: true\n")?;
    }
    Ok(())
}

/// Prints like `addr2line -f -i`.
fn gnu<'a>(
    shape: &Shape,
    out: &mut impl Write,
    address: &str,
    frames: impl Iterator<Item = FrameObject<'a>>,
) -> io::Result<()> {
    before(shape, out, address)?;
    let mut discriminator = None;
    for (at, frame) in frames.enumerate() {
        // If nothing is found, binutils omit the word.
        let between = if frame.meaning.is_some() { " " } else { " at " };
        name(shape, out, &frame, at > 0, between)?;
        put(out, shape.path(frame.file.unwrap_or("??")))?;
        out.write_all(b":")?;
        match frame.line {
            Some(line) => number(out, line)?,
            None if frame.meaning.is_some() => out.write_all(b"0")?,
            None => out.write_all(b"?")?,
        }
        // The discriminator belongs to the first frame's line; binutils print it on every line.
        match *discriminator.get_or_insert(frame.discriminator) {
            0 => out.write_all(b"\n")?,
            n => writeln!(out, " (discriminator {n})")?,
        }
        if shape.is_innermost {
            break;
        }
    }
    Ok(())
}

/// Writes the address that precedes an answer; nothing if a symbol was requested.
fn before(shape: &Shape, out: &mut impl Write, address: &str) -> io::Result<()> {
    if !shape.has_addresses || address.is_empty() {
        return Ok(());
    }
    put(out, address)?;
    out.write_all(if shape.is_pretty { b": " } else { b"\n" })
}

/// Writes the name of a function.
fn name(
    shape: &Shape,
    out: &mut impl Write,
    frame: &FrameObject<'_>,
    is_outer: bool,
    between: &str,
) -> io::Result<()> {
    if shape.is_pretty && is_outer {
        out.write_all(b" (inlined by) ")?;
    }
    if let Some(name) = shape.name(frame.name.unwrap_or("??")) {
        put(out, &name)?;
        out.write_all(match (shape.is_pretty, between) {
            (true, between) => between.as_bytes(),
            (false, _) => b"\n",
        })?;
    }
    Ok(())
}

/// Writes a name or a path.
fn put(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(terminal(text).as_bytes())
}

/// Returns a number in hexadecimal with at least this many digits, without the formatting of the
/// standard library, as below.
fn hex(number: u64, min_digits: usize) -> String {
    let digits = number.to_be_bytes().map(|byte| [byte >> 4, byte & 0xf]);
    let digits = digits.as_flattened();
    let zeros = digits.iter().take_while(|&&digit| digit == 0).count();
    let shown = digits
        .iter()
        .skip(zeros.min(digits.len().saturating_sub(min_digits)));
    let mut text = String::with_capacity(18);
    text.push_str("0x");
    text.extend(shown.filter_map(|&digit| char::from_digit(digit.into(), 16)));
    text
}

/// Writes line, column and the end of a frame of llvm-symbolizer, in one piece.
fn position(out: &mut impl Write, frame: &FrameObject<'_>) -> io::Result<()> {
    // Two numbers of ten digits with their colons, the mark, and the end of the line.
    let mut text = [0; 23 + APPROXIMATE_LINE.len()];
    let mut free = &mut text[..];
    for n in [frame.line, frame.column] {
        free.write_all(b":")?;
        number(&mut free, n.unwrap_or(0))?;
    }
    if frame.mark == APPROXIMATE_LINE {
        free.write_all(APPROXIMATE_LINE.as_bytes())?;
    }
    free.write_all(b"\n")?;
    let left = free.len();
    out.write_all(
        text.get(..text.len().saturating_sub(left))
            .unwrap_or_default(),
    )
}

/// Writes a number without the formatting of the standard library, which would take longer than
/// everything else.
fn number(out: &mut impl Write, number: u32) -> io::Result<()> {
    out.write_all(itoa::Buffer::new().format(number).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_numbers() {
        for shift in 0..64 {
            for number in [
                0,
                1 << shift,
                u64::MAX >> shift,
                0x1234_5678_9abc_def0 >> shift,
            ] {
                assert_eq!(hex(number, 1), format!("{number:#x}"));
                assert_eq!(hex(number, 16), format!("{number:#018x}"));
            }
        }
    }
}
