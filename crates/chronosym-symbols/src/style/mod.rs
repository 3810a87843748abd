//! Answers as text: for people, as JSON, or as llvm-symbolizer and addr2line lay them out.

mod gnu;
mod json;
mod llvm;
mod text;

use std::cell::OnceCell;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use crate::answer::{Answer, Answers, NameId};
use crate::demangle::{Dialect, demangle_as};

/// How answers are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
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

/// Prints the answers of one batch. Every name is demangled at most once.
#[derive(Debug)]
pub struct Printer<'a> {
    style: Style,
    answers: &'a Answers,
    demangle: bool,
    readable: Vec<OnceCell<Option<Box<str>>>>,
}

impl<'a> Printer<'a> {
    /// For one batch of answers.
    pub fn new(style: Style, answers: &'a Answers) -> Self {
        Self {
            style,
            answers,
            demangle: true,
            readable: vec![OnceCell::new(); answers.name_count()],
        }
    }

    /// Whether names are printed readable (the default) or as the file has them.
    pub fn demangle(mut self, demangle: bool) -> Self {
        self.demangle = demangle;
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
            // The buffer's own.
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

/// A number or nothing, as both tools print what they do not know.
struct OrZero<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for OrZero<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(value) => value.fmt(f),
            None => f.write_str("0"),
        }
    }
}
