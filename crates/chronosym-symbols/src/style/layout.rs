//! The four layouts of an answer.

use std::io::{self, Write};
use std::str::FromStr;

use chronosym_types::escape::terminal;
use chronosym_types::json::{self, FrameObject};
use serde::Serialize;

/// How answers are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Style {
    /// For people: the address, then a frame a line.
    #[default]
    Text,
    /// One JSON object a line: `{"address","frames"}`.
    Json,
    /// As `llvm-symbolizer` prints: name and `file:line:column` in turn, a blank line after each address.
    Llvm,
    /// As `addr2line -f -i -C` prints: name and `file:line` in turn.
    Gnu,
}

impl Style {
    /// True if the style prints the symbol table's names, which then have to be asked for
    /// ([`Query::symbol_names`](crate::Query::symbol_names)).
    pub fn wants_symbol_names(self) -> bool {
        matches!(self, Self::Llvm | Self::Gnu)
    }
}

/// A layout of no such name.
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

/// Prints the frames of one answer, innermost first. `address` is what was asked for.
///
/// # Errors
/// Those of the writer.
pub fn print<'a>(
    style: Style,
    out: &mut impl Write,
    address: &str,
    frames: impl IntoIterator<Item = FrameObject<'a>>,
) -> io::Result<()> {
    let frames = frames.into_iter();
    match style {
        Style::Text => text(out, address, frames),
        Style::Json => object(out, address, frames),
        Style::Llvm => llvm(out, frames),
        Style::Gnu => gnu(out, frames),
    }
}

/// For people: the address and its function, then who it is inlined into, each with its line.
fn text<'a>(
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
            put(out, file)?;
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

/// One JSON object a line, its frames as everywhere else in this project's JSON.
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

/// As `llvm-symbolizer --output-style=LLVM`.
fn llvm<'a>(out: &mut impl Write, frames: impl Iterator<Item = FrameObject<'a>>) -> io::Result<()> {
    for frame in frames {
        put(out, frame.name.unwrap_or("??"))?;
        out.write_all(b"\n")?;
        put(out, frame.file.unwrap_or("??"))?;
        for n in [frame.line, frame.column] {
            out.write_all(b":")?;
            number(out, n.unwrap_or(0))?;
        }
        out.write_all(b"\n")?;
    }
    out.write_all(b"\n")
}

/// As `addr2line -f -i -C`.
fn gnu<'a>(out: &mut impl Write, frames: impl Iterator<Item = FrameObject<'a>>) -> io::Result<()> {
    let mut discriminator = None;
    for frame in frames {
        put(out, frame.name.unwrap_or("??"))?;
        out.write_all(b"\n")?;
        put(out, frame.file.unwrap_or("??"))?;
        out.write_all(b":")?;
        match frame.line {
            Some(line) => number(out, line)?,
            None if frame.meaning.is_some() => out.write_all(b"0")?,
            None => out.write_all(b"?")?,
        }
        // The discriminator belongs to the first frame's line; binutils print it after every frame's.
        match *discriminator.get_or_insert(frame.discriminator) {
            0 => out.write_all(b"\n")?,
            n => writeln!(out, " (discriminator {n})")?,
        }
    }
    Ok(())
}

/// Writes a name or a path.
fn put(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(terminal(text).as_bytes())
}

/// Writes a number: what the formatting of the standard library makes of it takes longer than all else of a frame.
fn number(out: &mut impl Write, number: u32) -> io::Result<()> {
    out.write_all(itoa::Buffer::new().format(number).as_bytes())
}
