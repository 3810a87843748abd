//! Addresses of an ELF or PE file: DWARF, symbol tables, exports.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use chronosym_symbols::style::Printer;
use chronosym_symbols::{Address, Answers, Companions, ObjectSymbols, Query};

use super::question::{Place, Question};
use super::{Source, shown};
use crate::args::{Style, Symbolize};

pub struct ObjectSource {
    symbols: ObjectSymbols,
    names: [String; 2],
    style: Style,
    query: Query,
    caller: bool,
    rva: bool,
    answers: Answers,
    damage: HashSet<String>,
}

impl ObjectSource {
    pub fn open(path: &Path, args: &Symbolize) -> Result<Self> {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let symbols = ObjectSymbols::open_path(path, Companions::Beside(folder))
            .with_context(|| path.display().to_string())?;
        let mut query = Query::default();
        query.symbol_names = style(args.style).wants_symbol_names() && !args.filter;
        Ok(ObjectSource {
            symbols,
            names: names(path),
            style: args.style,
            query,
            caller: args.caller,
            rva: args.rva,
            answers: Answers::new(),
            damage: HashSet::new(),
        })
    }

    /// The address to look up, and the one to show.
    fn address(&self, question: &Question<'_>) -> Option<(Address, u64)> {
        let back = u64::from(self.caller);
        match question.place? {
            Place::Address(at) if self.rva => Some((Address::Rva(at.wrapping_sub(back)), at)),
            Place::Address(at) => Some((Address::VirtualAddress(at.wrapping_sub(back)), at)),
            Place::Rva(name, at) => self
                .names
                .contains(&name.to_lowercase())
                .then(|| (Address::Rva(at.wrapping_sub(back)), at)),
        }
    }

    fn find(&mut self, questions: &[Question<'_>]) -> Vec<Option<u64>> {
        let asked: Vec<Option<(Address, u64)>> =
            questions.iter().map(|q| self.address(q)).collect();
        let addresses: Vec<Address> = asked.iter().flatten().map(|(a, _)| *a).collect();
        self.symbols
            .find_all(&addresses, &self.query, &mut self.answers);
        self.damage.extend(self.answers.damage().iter().cloned());
        asked.iter().map(|a| a.map(|(_, shown)| shown)).collect()
    }
}

/// What `module+0xrva` may call a file: its name with and without its ending, in lower case.
pub fn names(path: &Path) -> [String; 2] {
    let part = |part: Option<&std::ffi::OsStr>| {
        part.map_or(String::new(), |p| p.to_string_lossy().to_lowercase())
    };
    [part(path.file_name()), part(path.file_stem())]
}

fn style(style: Style) -> chronosym_symbols::style::Style {
    match style {
        Style::Text => chronosym_symbols::style::Style::Text,
        Style::Json => chronosym_symbols::style::Style::Json,
        Style::Llvm => chronosym_symbols::style::Style::Llvm,
        Style::Gnu => chronosym_symbols::style::Style::Gnu,
    }
}

impl Source for ObjectSource {
    fn print(&mut self, questions: &[Question<'_>], mut out: &mut dyn Write) -> Result<()> {
        let asked = self.find(questions);
        let printer = Printer::new(style(self.style), &self.answers);
        let mut answers = self.answers.iter();
        for (question, shown_as) in questions.iter().zip(asked) {
            match shown_as {
                Some(address) => {
                    if let Some(answer) = answers.next() {
                        printer.print(&mut out, address, &answer)?;
                    }
                }
                None => {
                    let why = match question.place {
                        None => "not an address",
                        Some(_) => "not this file",
                    };
                    shown::print_unknown(self.style, question.text, why, &mut out)?;
                }
            }
        }
        Ok(())
    }

    fn labels(&mut self, questions: &[Question<'_>]) -> Result<Vec<Option<String>>> {
        let asked = self.find(questions);
        let mut answers = self.answers.iter();
        let mut label = |_| {
            let answer = answers.next()?;
            let frames: Vec<shown::Shown> = answer
                .frames()
                .map(|frame| {
                    let name = frame.demangled().map(str::to_owned);
                    shown::Shown {
                        label: name.clone().unwrap_or("??".to_owned()),
                        name,
                        file: frame.file().map(str::to_owned),
                        line: frame.line().map(|l| l.get()),
                        ..shown::Shown::default()
                    }
                })
                .collect();
            shown::in_text(&frames)
        };
        Ok(asked.into_iter().map(|a| a.and_then(&mut label)).collect())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.damage.iter().cloned().collect();
        notes.sort();
        notes
    }
}
