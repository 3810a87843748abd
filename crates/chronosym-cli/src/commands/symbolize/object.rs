//! Addresses of an ELF or PE file: DWARF, symbol tables, exports.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use chronosym_symbols::style::{Image, Printer};
use chronosym_symbols::{Address, Answers, Error, NativeSymbols, Query};

use super::question::{Place, Question};
use super::{Source, companion, ordered, shown};
use crate::args::{Style, Symbolize};

pub struct ObjectSource {
    symbols: NativeSymbols,
    names: [String; 2],
    module: String,
    style: Style,
    query: Query,
    caller: bool,
    rva: bool,
    answers: Answers,
    damage: HashSet<String>,
    found: companion::Found,
    /// Why code has no name, where nothing else says so.
    no_name: &'static str,
}

impl ObjectSource {
    pub fn open(path: &Path, args: &Symbolize, mut found: companion::Found) -> Result<Self> {
        let places = companion::places(path, args)?;
        let mut symbols =
            NativeSymbols::open_path_with(path, places).map_err(|error| no_file(error, path))?;
        companion::add_files(&mut symbols, path, &args.symbols, &mut found);
        found.notes.extend(unread(args));
        let missing = symbols.is_stripped() || symbols.missing_supplement().is_some();
        let no_name = match found.reason {
            _ if !missing => "NoName",
            Some("NoSymbolFile") | None if symbols.met_other_build() => "SymbolFileMismatch",
            Some(reason) => reason,
            None => "NoSymbolFile",
        };
        let mut query = Query::default();
        query.lines = !args.symbols.no_lines;
        query.symbol_names = style(args.style).wants_symbol_names() && !args.filter;
        Ok(ObjectSource {
            symbols,
            names: names(path),
            module: chronosym::simple_name(&path.to_string_lossy()).to_owned(),
            style: args.style,
            query,
            caller: args.caller,
            rva: args.rva,
            answers: Answers::new(),
            damage: HashSet::new(),
            found,
            no_name,
        })
    }

    /// The address to look up, and the one to show.
    fn address(&self, question: &Question<'_>) -> Option<(Address, u64)> {
        let back = u64::from(self.caller);
        match question.place? {
            Place::Address(at) if self.rva => Some((Address::Rva(at.wrapping_sub(back)), at)),
            Place::Address(at) => Some((Address::VirtualAddress(at.wrapping_sub(back)), at)),
            Place::Rva(name, at) if self.names.contains(&name.to_lowercase()) => {
                Some((Address::Rva(at.wrapping_sub(back)), at))
            }
            Place::Rva(section, at) => {
                let start = self.symbols.section(section)?.start;
                let address = start.checked_add(at)?.wrapping_sub(back);
                Some((Address::VirtualAddress(address), at))
            }
        }
    }

    /// Looks all questions up; the answers stay in `self.answers`.
    fn find(&mut self, questions: &[Question<'_>]) -> Vec<Option<Asked>> {
        let mut addresses = Vec::with_capacity(questions.len());
        let asked = questions
            .iter()
            .map(|question| {
                let (address, shown) = self.address(question)?;
                addresses.push(address);
                let answer = addresses.len() - 1;
                Some(Asked { shown, answer })
            })
            .collect();
        self.symbols
            .find_all(&addresses, &self.query, &mut self.answers);
        self.damage.extend(self.answers.damage().iter().cloned());
        asked
    }
}

/// A question that was put to the file.
#[derive(Clone, Copy)]
struct Asked {
    /// The address to print.
    shown: u64,
    /// Which of the answers is its.
    answer: usize,
}

/// An error in opening a file, which is named once.
pub fn no_file(error: Error, path: &Path) -> anyhow::Error {
    match error {
        Error::Io { source, .. } => anyhow::Error::new(source),
        other => anyhow::Error::new(other),
    }
    .context(path.display().to_string())
}

/// Options that mean nothing for a file.
pub fn unread(args: &Symbolize) -> Option<String> {
    let perf_map = !args.symbols.perf_map.is_empty();
    perf_map.then(|| "--perf-map is for the addresses of a trace: it is not read".to_owned())
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
    fn print(&mut self, questions: &[Question<'_>], out: &mut dyn Write) -> Result<()> {
        let asked = self.find(questions);
        let answers = &self.answers;
        let printer = Printer::new(style(self.style), answers).image(Image {
            module: &self.module,
            base: self.symbols.base(),
            build_id: self.symbols.build_id(),
            pdb_id: self.found.pdb_id.as_deref(),
            no_name: self.no_name,
            taken_off: u64::from(self.caller),
        });
        let print = |index: usize, text: &mut Vec<u8>| {
            let answer = asked[index].and_then(|a| Some((a.shown, answers.get(a.answer)?)));
            let question = &questions[index];
            let _infallible = match (answer, question.place) {
                (Some((shown, answer)), _) => printer.print(text, shown, &answer),
                (None, None) => {
                    shown::print_unknown(self.style, question.text, shown::NO_ADDRESS, text)
                }
                (None, Some(_)) => {
                    shown::print_unknown(self.style, question.text, shown::OTHER_FILE, text)
                }
            };
        };
        Ok(ordered::write(questions.len(), print, out)?)
    }

    fn labels(&mut self, questions: &[Question<'_>]) -> Result<Vec<Option<String>>> {
        let asked = self.find(questions);
        let label = |asked: Asked| {
            let answer = self.answers.get(asked.answer)?;
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
        Ok(asked.into_iter().map(|a| a.and_then(label)).collect())
    }

    fn notes(&self) -> Vec<String> {
        let mut damage: Vec<String> = self.damage.iter().cloned().collect();
        damage.sort();
        let mut notes = self.found.notes.clone();
        notes.extend(self.symbols.missed());
        notes.extend(damage);
        notes
    }
}
