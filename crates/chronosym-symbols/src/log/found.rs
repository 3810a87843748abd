//! Code found in a text.

use std::ops::Range;

use super::forms::Kind;
use super::images::Image;
use super::target::{Form, Target};

/// Code that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found<'a> {
    /// The bytes of the text that a name replaces.
    pub range: Range<usize>,
    /// The code.
    pub target: Target<'a>,
    /// The form of the replacement.
    pub form: Form,
    /// Whether this is an alternative for the preceding code: only the first that can be resolved
    /// is replaced.
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

/// Returns the range of a part within a text.
pub(super) fn range_of(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    start..start.saturating_add(part.len())
}

/// The code and images found so far.
#[derive(Debug, Default)]
pub(super) struct Sink<'a> {
    pub(super) found: Vec<Found<'a>>,
    pub(super) images: Vec<Image>,
    /// The module of the lines that follow.
    pub(super) module: Option<&'a str>,
    /// The meaning of the next line's value.
    pub(super) next: Option<Kind>,
    /// Whether only lines of known forms have addresses of code.
    pub(super) only_forms: bool,
    /// Whether only images are wanted.
    pub(super) images_only: bool,
    /// Steps of matching so far.
    pub(super) steps: usize,
}
