//! What has been found in a text.

use std::ops::Range;

use super::forms::Kind;
use super::images::Image;
use super::target::{Form, Target};

/// Code that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found<'a> {
    /// What a name replaces, in bytes of the text.
    pub range: Range<usize>,
    /// The code.
    pub target: Target<'a>,
    /// How it is replaced.
    pub form: Form,
    /// Whether the one before is the same code: only the first that can be resolved is replaced.
    pub is_alternative: bool,
}

pub(super) fn placed(range: Range<usize>, target: Target<'_>, form: Form) -> Found<'_> {
    Found {
        range,
        target,
        form,
        is_alternative: false,
    }
}

/// Where a part of a text is in it.
pub(super) fn range_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    start..start.saturating_add(part.len())
}

/// What has been found so far.
#[derive(Debug, Default)]
pub(super) struct Sink<'a> {
    pub(super) found: Vec<Found<'a>>,
    pub(super) images: Vec<Image>,
    /// The module of the lines that follow.
    pub(super) module: Option<&'a str>,
    /// What the value of the next line states.
    pub(super) next: Option<Kind>,
    /// Steps of matching so far.
    pub(super) steps: usize,
}
