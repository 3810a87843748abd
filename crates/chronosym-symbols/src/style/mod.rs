//! Answers as text: for people, as JSON, or as llvm-symbolizer and addr2line lay them out.

mod gnu;
mod json;
mod llvm;
mod text;

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::OnceLock;

use chronosym_types::escape::terminal;

use crate::answer::{Answer, Answers, NameId};
use crate::demangle::{Dialect, demangle_as};
use crate::identity::BuildId;

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

impl FromStr for Style {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "llvm" => Ok(Self::Llvm),
            "gnu" => Ok(Self::Gnu),
            _ => Err(format!("{name}: not one of text, json, llvm, gnu")),
        }
    }
}

/// The image that the answers are of, for what JSON says of frames without a name.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// Its simple name.
    pub module: &'a str,
    /// What RVAs count from.
    pub base: u64,
    /// Its build id, if it has one.
    pub build_id: Option<&'a BuildId>,
    /// The id of the PDB that a PE image asks for.
    pub pdb_id: Option<&'a str>,
    /// Why code of the image has no name, where nothing else says so: one of the closed list of reasons.
    pub no_name: &'a str,
    /// What was taken off the addresses before they were looked up: 1 for those that calls return to.
    pub taken_off: u64,
}

/// Prints the answers of one batch, from any number of threads. Every name is demangled at most once.
#[derive(Debug)]
pub struct Printer<'a> {
    style: Style,
    answers: &'a Answers,
    demangle: bool,
    image: Option<Image<'a>>,
    readable: Vec<OnceLock<Option<Box<str>>>>,
}

impl<'a> Printer<'a> {
    /// For one batch of answers.
    pub fn new(style: Style, answers: &'a Answers) -> Self {
        Self {
            style,
            answers,
            demangle: true,
            image: None,
            readable: if style.wants_symbol_names() {
                vec![OnceLock::new(); answers.name_count()]
            } else {
                // The buffer keeps its own.
                Vec::new()
            },
        }
    }

    /// Whether names are printed readable (the default) or as the file has them.
    pub fn demangle(mut self, demangle: bool) -> Self {
        self.demangle = demangle;
        self
    }

    /// Says which image the answers are of.
    pub fn image(mut self, image: Image<'a>) -> Self {
        self.image = Some(image);
        self
    }

    /// Prints one answer. `address` is what it is printed as having been asked for.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn print(&self, out: &mut impl Write, address: u64, answer: &Answer<'a>) -> io::Result<()> {
        match self.style {
            Style::Text => text::print(self, out, address, answer),
            Style::Json => json::print(self, out, address, answer),
            Style::Llvm => llvm::print(self, out, answer),
            Style::Gnu => gnu::print(self, out, answer),
        }
    }

    /// Prints all answers, each under its virtual address.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn print_all(&self, out: &mut impl Write) -> io::Result<()> {
        self.answers
            .iter()
            .try_for_each(|answer| self.print(out, answer.address(), &answer))
    }

    fn name(&self, id: NameId) -> &str {
        let raw = self.answers.name(id);
        if !self.demangle {
            return raw;
        }
        let dialect = match self.style {
            Style::Llvm => Dialect::Llvm,
            Style::Gnu => Dialect::Gnu,
            Style::Text | Style::Json => return self.answers.demangled(id),
        };
        self.readable
            .get(id.index())
            .and_then(|cell| {
                cell.get_or_init(|| demangle_as(raw, dialect).map(String::into_boxed_str))
                    .as_deref()
            })
            .unwrap_or(raw)
    }
}

/// Writes a name or a path.
fn put(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(terminal(text).as_bytes())
}

/// Writes a number: what the formatting of the standard library makes of it takes longer than all else of a frame.
fn number(out: &mut impl Write, number: impl itoa::Integer) -> io::Result<()> {
    out.write_all(itoa::Buffer::new().format(number).as_bytes())
}

/// Writes a number, 0 for none: how both tools print what they do not know.
fn or_zero(out: &mut impl Write, value: Option<NonZeroU32>) -> io::Result<()> {
    number(out, value.map_or(0, NonZeroU32::get))
}
