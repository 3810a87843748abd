//! Text of either width.

use std::borrow::Cow;
use std::fmt;

use crate::{AStr, WStr};

/// Text in eight bits or in UTF-16.
///
/// Closed: these are the two encodings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Text<'a> {
    /// Eight-bit text.
    Narrow(AStr<'a>),
    /// UTF-16 text.
    Wide(WStr<'a>),
}

impl<'a> Text<'a> {
    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Narrow(text) => text.is_empty(),
            Self::Wide(text) => text.is_empty(),
        }
    }

    /// Appends the text to `out` as UTF-8.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Narrow(text) => out.extend_from_slice(text.to_text().as_bytes()),
            Self::Wide(text) => text.append_to(out),
        }
    }

    /// Returns the text; borrowed if it is UTF-8.
    pub fn to_text(&self) -> Cow<'a, str> {
        match self {
            Self::Narrow(text) => text.to_text(),
            Self::Wide(text) => text.to_string().into(),
        }
    }
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::Wide(WStr::default())
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::Narrow(AStr::new(text.as_bytes()))
    }
}

impl<'a> From<WStr<'a>> for Text<'a> {
    fn from(text: WStr<'a>) -> Self {
        Self::Wide(text)
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        match self {
            Self::Narrow(text) => text.to_text() == other,
            Self::Wide(text) => text == other,
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Narrow(text) => text.fmt(f),
            Self::Wide(text) => text.fmt(f),
        }
    }
}
