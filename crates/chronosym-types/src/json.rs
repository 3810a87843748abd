//! JSON output: compact, with escapes for characters that control a terminal, and one object for a
//! frame.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

use crate::{HexText, escape};

/// Writes compact JSON with `\u` escapes for the characters of [`escape::is_hostile`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Formatter;

impl serde_json::ser::Formatter for Formatter {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        out.write_all(escape::json(fragment).as_bytes())
    }
}

/// Writes a value as JSON.
///
/// # Errors
/// Errors of the writer and of the value.
pub fn to_writer(out: impl Write, value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, Formatter))
}

/// Returns a value as JSON text.
///
/// # Errors
/// Errors of the value.
pub fn to_string(value: &(impl Serialize + ?Sized)) -> serde_json::Result<String> {
    let mut text = Vec::new();
    to_writer(&mut text, value)?;
    // The output consists of text.
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// Returns a value as JSON that is written several times.
///
/// # Errors
/// Errors of the value.
pub fn to_raw_value(value: &(impl Serialize + ?Sized)) -> serde_json::Result<Box<RawValue>> {
    RawValue::from_string(to_string(value)?)
}

/// A number that serializes as `"0x…"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HexNumber(pub u64);

impl fmt::Display for HexNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for HexNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HexText::new(self.0))
    }
}

/// A metadata token, which serializes as `"0x06000001"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub u32);

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#010x}", self.0))
    }
}

/// Largest number that is written as a number: readers may store numbers as `f64`.
const MAX_NUMBER: u64 = 1 << 53;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn number<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match *value {
        Some(number) if number > MAX_NUMBER => HexNumber(number).serialize(serializer),
        number => number.serialize(serializer),
    }
}

/// A frame as commands print it. The JSON object omits absent fields.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct FrameObject<'a> {
    /// The address as in the stack; managed code can be resolved without one.
    pub address: Option<HexNumber>,
    /// The method's metadata token, if it was resolved by token or name.
    pub token: Option<Token>,
    /// Namespace, type and method, or the symbol.
    pub name: Option<&'a str>,
    /// The method's signature.
    pub signature: Option<&'a str>,
    /// Simple name of the module or image.
    pub module: Option<&'a str>,
    /// The printed address minus the start of the code body or symbol; for an inlinee, of the body
    /// that contains it.
    pub offset: Option<u64>,
    /// Bytes from the image's base, if there is no name.
    #[serde(serialize_with = "number")]
    pub rva: Option<u64>,
    /// Signature and age of the image's PDB, if there is no name.
    pub pdb_id: Option<Cow<'a, str>>,
    /// The image's build id, if there is no name.
    pub build_id: Option<Cow<'a, str>>,
    /// Bytes from the start of the IL.
    pub il_offset: Option<u32>,
    /// The source file.
    pub file: Option<&'a str>,
    /// Counted from 1.
    pub line: Option<u32>,
    /// Counted from 1.
    pub column: Option<u32>,
    /// Number of frames that this one replaces, if there are several.
    pub stands_for: Option<u32>,
    /// Whether it is inlined into the next frame; omitted if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inlined: bool,
    /// Optimization tier of the code.
    pub tier: Option<&'a str>,
    /// Evidence of the answer.
    pub evidence: Option<&'a str>,
    /// Certainty of the answer.
    pub certainty: Option<&'a str>,
    /// How it was recognized as a caller, if the recorder did not walk the stack.
    pub proof: Option<&'a str>,
    /// Path of the file that the name is from, if the image's first symbol file had no answer.
    pub symbol_file: Option<&'a str>,
    /// Why there is no name, or only a part.
    pub name_reason: Option<&'a str>,
    /// Why there is a name but no line.
    pub line_reason: Option<&'a str>,
    /// Text for readers instead of the name alone.
    #[serde(skip)]
    pub label: Option<Cow<'a, str>>,
    /// A remark on the name for readers, in brackets.
    #[serde(skip)]
    pub mark: &'static str,
    /// Why nothing is known, for people.
    #[serde(skip)]
    pub meaning: Option<Cow<'a, str>>,
    /// DWARF's discriminator of several blocks on one line; 0 for none.
    #[serde(skip)]
    pub discriminator: u32,
    /// Where its function starts, if that was requested.
    #[serde(skip)]
    pub start: FunctionStart<'a>,
}

/// Where a function starts in its source, and its first address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionStart<'a> {
    /// The source path of its declaration.
    pub file: Option<&'a str>,
    /// The line of its declaration, from 1.
    pub line: Option<u32>,
    /// Its first address, if the debug information states one.
    pub address: Option<u64>,
}

impl<'a> FunctionStart<'a> {
    /// Creates the start of a function.
    pub fn new(file: Option<&'a str>, line: Option<u32>, address: Option<u64>) -> Self {
        FunctionStart {
            file,
            line,
            address,
        }
    }
}

impl FrameObject<'_> {
    /// Returns a frame with nothing but an address.
    pub fn at(address: u64) -> Self {
        FrameObject {
            address: Some(HexNumber(address)),
            ..FrameObject::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_of_a_file_steers_a_terminal() {
        let hostile = "a\u{1b}\u{9b}\u{7f}\u{202e}\u{200b}\n\"\\z";
        let escaped = r#""a\u001b\u009b\u007f\u202e\u200b\n\"\\z""#;
        assert_eq!(to_string(hostile).unwrap(), escaped);
        let raw = to_raw_value(hostile).unwrap();
        assert_eq!(to_string(&[raw]).unwrap(), format!("[{escaped}]"));
        let back: String = serde_json::from_str(escaped).unwrap();
        assert_eq!(back, hostile);
    }

    #[test]
    fn numbers_that_programs_would_round_are_texts() {
        let rva = |rva| {
            let mut frame = FrameObject::at(0x10);
            frame.rva = Some(rva);
            to_string(&frame).unwrap()
        };
        assert_eq!(rva(1 << 53), r#"{"address":"0x10","rva":9007199254740992}"#);
        assert_eq!(
            rva((1 << 53) + 1),
            r#"{"address":"0x10","rva":"0x20000000000001"}"#
        );
    }
}
