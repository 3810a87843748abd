//! Addresses in crash logs and backtraces, in the forms in which runtimes and tools write them.
//!
//! [`scan`] finds them, with the module that each line states, and the lists of images that logs
//! have. It opens no files. Lines that have one of the forms of the table (`forms.rs`) have
//! addresses of code only where the form has them; in other lines, words such as `0x401136` or
//! `app+0x1136` are addresses if the words around them do not say otherwise. JSON is read object by
//! object.

mod code_files;
mod forms;
mod found;
mod images;
mod json;
mod line;
mod number;
mod pattern;
mod target;
mod words;

use std::ops::Range;

pub use code_files::is_code_file;
pub use found::Found;
pub use images::{Image, Images};
pub use number::{hex, is_prefixed, method_token, parse_address};
pub use target::{At, Form, Method, Symbol, Target, split};

use forms::Kind;
use found::Sink;
use line::find_in_line;

/// The code and images in a text.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Scan<'a> {
    /// Code, in the order of the text except for alternatives.
    pub found: Vec<Found<'a>>,
    /// Images of the process.
    pub images: Images,
    /// What the text states for the lines that follow it.
    pub context: Context,
}

/// What the lines before a text state for it: the kind of log, and the module of a frame that takes
/// several lines.
#[derive(Clone, Debug, Default)]
pub struct Context {
    only_forms: bool,
    module: Option<String>,
    next: Option<Kind>,
}

/// The context of the first lines of a log.
const START: &Context = &Context {
    only_forms: false,
    module: None,
    next: None,
};

/// Finds the code that a text names, and the images that it lists. Bytes that are not UTF-8 are
/// skipped. Takes time linear in the text.
///
/// # Examples
///
/// ```
/// use chronosym_symbols::log::{At, scan};
///
/// let log = b"#3 0x55e04a1401c1 (/usr/bin/app+0x11c1) (BuildId: 5f0d1a2b)\n";
/// let scan = scan(log);
/// let found = &scan.found[0];
/// assert_eq!(found.target.file, Some("/usr/bin/app"));
/// assert_eq!(found.target.id, Some("5f0d1a2b"));
/// assert!(matches!(found.target.at, At::Rva(0x11c1) | At::Address(0x11c1)));
/// ```
pub fn scan(text: &[u8]) -> Scan<'_> {
    scan_after(START, text)
}

/// Does the same for the lines that follow those of a context.
pub fn scan_after<'a>(context: &'a Context, text: &'a [u8]) -> Scan<'a> {
    let sink = read(context, text, false);
    Scan {
        found: sink.found,
        images: Images::new(sink.images),
        context: Context {
            only_forms: sink.only_forms,
            module: sink.module.map(str::to_owned),
            next: sink.next,
        },
    }
}

/// Returns the images that a text lists, as [`scan`] finds them.
pub fn images(text: &[u8]) -> Images {
    Images::new(read(START, text, true).images)
}

fn read<'a>(context: &'a Context, text: &'a [u8], images_only: bool) -> Sink<'a> {
    let mut sink = Sink {
        module: context.module.as_deref(),
        next: context.next,
        only_forms: context.only_forms,
        images_only,
        ..Sink::default()
    };
    let mut start = 0_usize;
    for chunk in text.utf8_chunks() {
        find_in_text(chunk.valid(), start, &mut sink);
        let len = chunk.valid().len().saturating_add(chunk.invalid().len());
        start = start.saturating_add(len);
    }
    sink
}

/// Text of several lines, at `start` in the whole.
fn find_in_text<'a>(text: &'a str, start: usize, sink: &mut Sink<'a>) {
    let (mut at, mut line_end) = (0_usize, 0_usize);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if sink.images_only {
            sink.found.clear();
        }
        // Test once per line, which can have many objects.
        if at >= line_end {
            let len = memchr::memchr(b'\n', rest.as_bytes());
            let len = len.map_or(rest.len(), |at| at.saturating_add(1));
            line_end = at.saturating_add(len);
        }
        let line = text.get(at..line_end).unwrap_or_default();
        let offset = start.saturating_add(at);
        let brace = line.find('{');
        let brace = brace.filter(|&brace| rest.get(brace..).is_some_and(json::starts_object));
        let Some(brace) = brace else {
            find_in_line(line, offset, sink);
            at = line_end;
            continue;
        };
        find_in_line(line.get(..brace).unwrap_or_default(), offset, sink);
        let first = sink.found.len();
        let object = rest.get(brace..).unwrap_or_default();
        let len = json::read(object, sink);
        let shift = offset.saturating_add(brace);
        for found in sink.found.get_mut(first..).unwrap_or_default() {
            let Range { start, end } = found.range;
            found.range = start.saturating_add(shift)..end.saturating_add(shift);
        }
        at = at.saturating_add(brace).saturating_add(len.max(1));
    }
}

#[cfg(test)]
mod form_tests;
#[cfg(test)]
mod image_tests;
#[cfg(test)]
mod tests;
