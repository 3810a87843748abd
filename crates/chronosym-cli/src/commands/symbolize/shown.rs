//! Frames of a timeline or a PDB in the four styles.

use std::io::{self, Write};

use chronosym::{Frame, NameReason, Timeline};
use chronosym_export::{FrameObject, Hex, raw_json, write_json};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::output::printable;

use crate::args::Style;

/// One frame, ready to be printed.
#[derive(Clone, Debug, Default)]
pub struct Shown {
    /// What people read: `module!name+0xoffset`.
    pub label: String,
    /// The name alone.
    pub name: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub column: Option<u32>,
    /// Why there is no name, for people.
    pub reason: Option<String>,
    /// The object of `--style json`, which says all.
    pub object: Option<Box<RawValue>>,
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        let object = |shown: &Self| shown.object.as_ref().map(|object| object.get().to_owned());
        self.label == other.label && object(self) == object(other)
    }
}

impl Serialize for Shown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.object.serialize(serializer)
    }
}

impl Shown {
    pub fn of(frame: &Frame, timeline: &Timeline) -> Self {
        let mut label = match (frame.name(), frame.module()) {
            (Err(_), None) => "??".to_owned(),
            _ => frame.label().to_owned(),
        };
        if let Some(offset) = frame.offset.filter(|_| !frame.inlined)
            && frame.name().is_ok()
        {
            label.push_str(&format!("+{}", Hex(offset)));
        }
        let line = frame.line.as_ref().ok();
        Shown {
            label,
            name: frame.name().ok().map(str::to_owned),
            file: line.map(|l| l.file.to_string()),
            line: line.map(|l| l.line),
            column: line.and_then(|l| l.column),
            reason: frame.name().err().map(|reason| reason.to_string()),
            object: raw_json(&FrameObject::new(frame, timeline)).ok(),
        }
    }

    fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        let file = printable(file);
        Some(match (self.line, self.column) {
            (Some(line), Some(column)) => format!("{file}:{line}:{column}"),
            (Some(line), None) => format!("{file}:{line}"),
            _ => file.into_owned(),
        })
    }
}

/// Prints the frames of one address, innermost first.
pub fn print(
    style: Style,
    address: &str,
    frames: &[Shown],
    out: &mut impl Write,
) -> io::Result<()> {
    match style {
        Style::Text => {
            for (i, frame) in frames.iter().enumerate() {
                let label = printable(&frame.label);
                match i {
                    0 => write!(out, "{address} {label}")?,
                    _ => write!(out, "{:1$} inlined into {label}", "", address.len())?,
                }
                if let Some(place) = frame.place() {
                    write!(out, " at {place}")?;
                }
                if let Some(reason) = &frame.reason {
                    write!(out, " ({reason})")?;
                }
                writeln!(out)?;
            }
            Ok(())
        }
        Style::Json => print_object(&Line { address, frames }, out),
        Style::Llvm => {
            for frame in frames {
                writeln!(
                    out,
                    "{}\n{}:{}:{}",
                    printable(frame.name.as_deref().unwrap_or("??")),
                    printable(frame.file.as_deref().unwrap_or("??")),
                    frame.line.unwrap_or(0),
                    frame.column.unwrap_or(0)
                )?;
            }
            writeln!(out)
        }
        Style::Gnu => frames.iter().try_for_each(|frame| {
            let name = printable(frame.name.as_deref().unwrap_or("??"));
            match (frame.file.as_deref().map(printable), frame.line) {
                (Some(file), Some(line)) => writeln!(out, "{name}\n{file}:{line}"),
                (Some(file), None) => writeln!(out, "{name}\n{file}:?"),
                (None, _) => writeln!(out, "{name}\n??:0"),
            }
        }),
    }
}

/// The object of `--style json`.
#[derive(Serialize)]
pub struct Line<'a, F> {
    pub address: &'a str,
    pub frames: &'a [F],
}

/// The frame of something that cannot be answered.
#[derive(Serialize)]
pub struct Unknown<'a> {
    pub address: &'a str,
    pub name_reason: &'a str,
}

/// Prints one line of `--style json`.
pub fn print_object(object: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    write_json(object, out)?;
    writeln!(out)
}

/// Why something cannot be answered: for people, and for programs.
pub type Why = (&'static str, NameReason);

/// The module that an address names is none that is known.
pub const OTHER_FILE: Why = ("not this file", NameReason::NoSymbolFile);
/// The text is no address.
pub const NO_ADDRESS: Why = ("not an address", NameReason::InvalidAddress);

/// Something that cannot be answered: no address, or an image that is not there.
pub fn print_unknown(
    style: Style,
    text: &str,
    (why, reason): Why,
    out: &mut impl Write,
) -> io::Result<()> {
    match style {
        Style::Text => writeln!(out, "{} ?? ({why})", printable(text)),
        Style::Json => {
            let unknown = Unknown {
                address: text,
                name_reason: reason.as_str(),
            };
            let line = Line {
                address: text,
                frames: &[unknown],
            };
            print_object(&line, out)
        }
        Style::Llvm => writeln!(out, "??\n??:0:0\n"),
        Style::Gnu => writeln!(out, "??\n??:0"),
    }
}

/// What stands in a text in place of an address: innermost first, `a < b` for a inlined into b; `None` without any name.
pub fn in_text(frames: &[Shown]) -> Option<String> {
    frames.iter().any(|f| f.name.is_some()).then(|| {
        let one = |frame: &Shown| match (&frame.file, frame.line) {
            (Some(file), Some(line)) => {
                format!("{} ({}:{line})", frame.label, chronosym::file_name(file))
            }
            _ => frame.label.clone(),
        };
        let all = frames.iter().map(one).collect::<Vec<_>>().join(" < ");
        printable(&all).into_owned()
    })
}
