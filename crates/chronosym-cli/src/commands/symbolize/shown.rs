//! Frames of a timeline or a PDB in the four styles.

use std::io::{self, Write};

use crate::output::printable;
use chronosym::{Frame, NameReason};
use chronosym_export::FrameWriter;

use crate::args::Style;

/// One frame, ready to be printed.
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// The object of `--style json`.
    pub json: String,
}

impl Shown {
    pub fn of(frame: &Frame) -> Self {
        let mut label = match (&frame.name, &frame.module) {
            (None, None) => "??".to_owned(),
            _ => frame.label(),
        };
        if let Some(offset) = frame
            .offset
            .filter(|_| frame.name.is_some() && !frame.inlined)
        {
            label.push_str(&format!("+{offset:#x}"));
        }
        let mut json = String::new();
        FrameWriter::push(frame, &mut json);
        Shown {
            label,
            name: frame.name.as_ref().map(|name| name.to_string()),
            file: frame.line.as_ref().map(|l| l.file.to_string()),
            line: frame.line.as_ref().map(|l| l.line),
            column: frame.line.as_ref().and_then(|l| l.column),
            reason: frame.name_reason.map(|reason| reason.to_string()),
            json,
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
        Style::Json => {
            let mut text = String::from("{\"address\":");
            chronosym_export::push_json_string(address, &mut text);
            text.push_str(",\"frames\":");
            push_objects(frames, &mut text);
            writeln!(out, "{text}}}")
        }
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

/// Appends frames as a JSON array.
pub fn push_objects(frames: &[Shown], out: &mut String) {
    out.push('[');
    for (i, frame) in frames.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&frame.json);
    }
    out.push(']');
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
            let mut quoted = String::new();
            chronosym_export::push_json_string(text, &mut quoted);
            writeln!(
                out,
                "{{\"address\":{quoted},\"frames\":[{{\"address\":{quoted},\"name_reason\":\"{reason}\"}}]}}"
            )
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
