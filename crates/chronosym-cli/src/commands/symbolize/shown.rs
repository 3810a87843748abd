//! Output of answers: in one of the styles, or in place of an address in a text.

use std::borrow::Cow;

use chronosym::{Frame, NameReason, Timeline, file_name};
use chronosym_symbols::style::{self, Shape, Style};
use chronosym_types::json::{FrameObject, HexNumber};

use super::element;
use super::llvm_json::{self, Failure};
use crate::output::printable;
use crate::request::{AddressRequest, Form};

/// Output format of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// As text, JSON, or in the format of another tool.
    Lines(Style, Shape),
    /// In place of an address in a text; unresolved addresses stay.
    InText,
    /// One JSON object for each address of a text.
    Objects,
    /// llvm-symbolizer's JSON objects.
    LlvmObjects(Shape),
    /// In place of an element of symbolizer markup.
    Markup,
}

impl Layout {
    /// Returns the layout for addresses of a log.
    pub fn of_log(style: Style) -> Self {
        match style {
            Style::Json => Layout::Objects,
            _ => Layout::InText,
        }
    }

    /// Returns the parts that the styles of other tools print.
    pub fn shape(self) -> Shape {
        match self {
            Layout::Lines(_, shape) | Layout::LlvmObjects(shape) => shape,
            _ => Shape::default(),
        }
    }

    /// Returns the style of lines; text for other layouts.
    pub fn style(self) -> Style {
        match self {
            Layout::Lines(style, _) => style,
            Layout::InText => Style::Text,
            Layout::Objects => Style::Json,
            Layout::LlvmObjects(_) | Layout::Markup => Style::Llvm,
        }
    }

    /// Returns whether the input is a list of addresses, not a log.
    pub fn is_list(self) -> bool {
        matches!(self, Layout::Lines(..) | Layout::LlvmObjects(_))
    }

    /// Appends the frames of one answer, innermost first; `address` precedes them. In a log,
    /// returns why nothing is known.
    pub fn write<'a>(
        self,
        question: &AddressRequest<'_>,
        address: &str,
        frames: impl IntoIterator<Item = FrameObject<'a>>,
        out: &mut Vec<u8>,
    ) -> Option<Unknown> {
        match self {
            // Writing to memory does not fail.
            Layout::Lines(style, shape) => {
                let number = question
                    .shown_address()
                    .map(|address| style.address(&shape, address));
                let address = match style {
                    Style::Llvm | Style::Gnu => number.as_deref().unwrap_or_default(),
                    _ => address,
                };
                _ = style::print(style, &shape, out, address, frames);
                None
            }
            Layout::LlvmObjects(shape) => {
                llvm_json::write(question, "", &shape, frames.into_iter(), out);
                None
            }
            Layout::Markup => {
                element::write(question, frames, out);
                None
            }
            Layout::Objects => {
                let frames: Vec<_> = frames.into_iter().collect();
                let is_known = frames.iter().any(|frame| frame.name.is_some());
                let unknown = (!is_known).then(|| unknown_as(frames.first()));
                _ = style::print(Style::Json, &Shape::default(), out, address, frames);
                unknown
            }
            Layout::InText => {
                let text = match in_text(question.form, frames) {
                    Ok(text) => text,
                    Err(unknown) => return Some(unknown),
                };
                let text = printable(&text);
                match question.form {
                    Form::JsonText | Form::JsonValue => {
                        let quoted = serde_json::Value::from(&*text).to_string();
                        let inner = quoted
                            .strip_prefix('"')
                            .and_then(|text| text.strip_suffix('"'));
                        let inner = inner.unwrap_or(&quoted);
                        let is_value = question.form == Form::JsonValue;
                        out.extend(if is_value { &quoted } else { inner }.bytes());
                    }
                    _ => out.extend(text.as_bytes()),
                }
                None
            }
        }
    }

    /// Appends an unresolved address with the reason.
    pub fn write_unknown(
        self,
        question: &AddressRequest<'_>,
        address: &str,
        why: Why,
        out: &mut Vec<u8>,
    ) -> Option<Unknown> {
        if let Layout::LlvmObjects(shape) = self {
            let failure = match why {
                OTHER_FILE => Failure::NoFile,
                NO_ADDRESS => Failure::NoAddress,
                _ => Failure::Nothing,
            };
            llvm_json::write_unknown(question, &shape, failure, out);
            return None;
        }
        if self == Layout::Markup && [OTHER_FILE, NO_ADDRESS].contains(&why) {
            out.extend(element::raw(question.text).bytes());
            return None;
        }
        self.write(question, address, [unknown(question, why)], out)
    }
}

/// Returns the frame of an unresolved request.
pub fn unknown<'a>(question: &AddressRequest<'_>, why: Why) -> FrameObject<'a> {
    let (meaning, reason) = why;
    let address = question.target.and_then(|place| place.address());
    let mut frame = FrameObject::default();
    frame.address = address.map(HexNumber);
    frame.name_reason = Some(reason.as_str());
    frame.meaning = Some(meaning.into());
    frame
}

/// Why nothing is known of a log's address.
pub type Unknown = Cow<'static, str>;

const NO_NAME: &str = "no name";

/// Why a request is unresolved: as text, and as a reason.
pub type Why = (&'static str, NameReason);

/// The address names an unknown module.
pub const OTHER_FILE: Why = ("not this file", NameReason::NoSymbolFile);
/// The text is not an address.
pub const NO_ADDRESS: Why = ("not an address", NameReason::InvalidAddress);
/// Several functions have the name.
pub const SEVERAL_FUNCTIONS: Why = ("several functions have this name", NameReason::Ambiguous);
/// No function has the name, or it is shorter.
pub const NO_FUNCTION: Why = ("no such function", NameReason::NoName);
/// The log lists the mappings, and none contains the address.
pub const NO_FILE_THERE: Why = ("in none of the listed images", NameReason::InvalidAddress);
/// The address is one of a process, and no load address is known.
pub const NO_LOAD_ADDRESS: Why = (
    "the log states no load address of the file",
    NameReason::InvalidAddress,
);
/// The log states a mapping of code, and the file has no segment of its size.
pub const NO_SUCH_MAPPING: Why = (
    "no segment of the file has the size of the mapping",
    NameReason::InvalidAddress,
);
/// There are several files, and the address names none.
pub const WHICH_FILE: Why = (
    "in one of several files: use FILE+0x…",
    NameReason::InvalidAddress,
);
/// The file does not support this kind of address.
pub const OTHER_KIND: Why = (
    "not an address of this kind of file",
    NameReason::InvalidAddress,
);

/// Converts a frame of a timeline.
pub fn of_frame<'a>(frame: &'a Frame, timeline: &'a Timeline) -> FrameObject<'a> {
    let guess = if frame.is_guess() { "~" } else { "" };
    let label = match (frame.name(), frame.module(), frame.offset) {
        (Err(_), None, _) => format!("{guess}??"),
        (Ok(_), _, Some(offset)) if !frame.inlined => {
            format!("{guess}{}+{offset:#x}", frame.label())
        }
        _ => format!("{guess}{}", frame.label()),
    };
    let mut object = chronosym_export::frame_object(frame, timeline);
    object.label = Some(label.into());
    object.meaning = frame.name().err().map(|reason| reason.as_str().into());
    object
}

/// Returns the text that replaces an address: innermost first, `a < b` if a is inlined into b.
fn in_text<'a>(
    form: Form,
    frames: impl IntoIterator<Item = FrameObject<'a>>,
) -> Result<String, Unknown> {
    let mut frames = frames.into_iter();
    if let Form::Line(between) = form {
        let frame = frames.next();
        let line = frame.as_ref().and_then(|frame| frame.file.zip(frame.line));
        let line = line.map(|(file, line)| format!("{file}{between}{line}"));
        return line.ok_or_else(|| match unknown_as(frame.as_ref()) {
            why if why == NO_NAME => "no line".into(),
            why => why,
        });
    }
    let mut known = false;
    let mut why = None;
    let one = |frame: FrameObject<'a>| {
        known |= frame.name.is_some() || frame.line.is_some();
        if !known {
            why = Some(unknown_as(Some(&frame)));
        }
        let name = frame.name.unwrap_or("??");
        let label = frame.label.unwrap_or(name.into());
        let is_plain = label.strip_prefix('~').unwrap_or(&label) == name;
        let offset = frame
            .offset
            .filter(|offset| *offset > 0 && is_plain && !frame.inlined);
        match (frame.file, frame.line, offset) {
            (Some(file), Some(line), _) => format!("{label} ({}:{line})", file_name(file)).into(),
            // Without a line, only the offset identifies the position in the function.
            (.., Some(offset)) => format!("{label}+{offset:#x}").into(),
            _ => label,
        }
    };
    let all: Vec<Cow<'_, str>> = frames.map(one).collect();
    if known {
        Ok(all.join(" < "))
    } else {
        Err(why.unwrap_or(NO_NAME.into()))
    }
}

/// Returns why nothing is known of a frame.
fn unknown_as(frame: Option<&FrameObject<'_>>) -> Unknown {
    let meaning = frame.and_then(|frame| frame.meaning.as_deref());
    meaning.unwrap_or(NO_NAME).to_owned().into()
}
