//! Lists of addresses: the arguments, or lines of standard input.

use std::io::{BufReader, Read, Write};

use anyhow::{Context, Result, bail};
use chronosym_symbols::style::Style;

use super::lines::next_lines;
use super::llvm_json::Array;
use super::log::{self, Content};
use super::ordered;
use super::process::Process;
use super::shown::Layout;
use super::source::Source;
use crate::args::{Symbolize, Usage};
use crate::protocol::is_command;
use crate::request::{AddressRequest, Numbers};

/// Parses addresses in the syntax that the options select, and prints their answers.
pub struct AddressList<'a> {
    args: &'a Symbolize,
    process: Process<'a>,
    numbers: Numbers,
    /// The syntax of another tool.
    lines: Option<Lines<'a>>,
}

impl<'a> AddressList<'a> {
    pub fn new(args: &'a Symbolize, process: Process<'a>) -> Self {
        AddressList {
            args,
            process,
            numbers: Numbers::new(args.radix),
            lines: Lines::of(args),
        }
    }

    /// Parses the arguments.
    ///
    /// # Errors
    ///
    /// One of them is no address. Another tool answers such arguments, too.
    pub fn arguments<'t>(&mut self, words: &[&'t str]) -> Result<Vec<AddressRequest<'t>>>
    where
        'a: 't,
    {
        if let Some(lines) = self.lines {
            return Ok(lines.read(words));
        }
        let requests = self.numbers.read(words);
        if let Some(invalid) = requests.iter().find(|request| request.target.is_none()) {
            let word = invalid.text;
            let usage = format!(
                "'{word}' is not an address (expected 0x…, a number, module+0x…, or the path of a log)"
            );
            bail!(Usage(usage));
        }
        Ok(requests)
    }

    /// Prints the answers to the arguments, in their order.
    pub fn answer_arguments<'t>(
        &'t self,
        requests: Vec<AddressRequest<'t>>,
        source: &mut dyn Source,
        out: &mut dyn Write,
    ) -> Result<()> {
        let Layout::LlvmObjects(shape) = self.layout() else {
            return self.answer(requests, source, out);
        };
        let array = Array {
            is_pretty: shape.is_pretty,
        };
        out.write_all(array.start().as_bytes())?;
        let complete = |index, from, out: &mut Vec<u8>| array.add(index, from, out);
        self.answer_each(requests, source, complete, out)?;
        Ok(out.write_all(array.end().as_bytes())?)
    }

    /// Prints the answers in the order of the requests.
    fn answer<'t>(
        &'t self,
        requests: Vec<AddressRequest<'t>>,
        source: &mut dyn Source,
        out: &mut dyn Write,
    ) -> Result<()> {
        let is_object = matches!(self.layout(), Layout::LlvmObjects(_));
        let complete = |_, _, out: &mut Vec<u8>| {
            if is_object {
                out.push(b'\n');
            }
        };
        self.answer_each(requests, source, complete, out)
    }

    /// Prints each answer after `complete` got its index and where it starts in the text.
    fn answer_each<'t>(
        &'t self,
        mut requests: Vec<AddressRequest<'t>>,
        source: &mut dyn Source,
        complete: impl Fn(usize, usize, &mut Vec<u8>) + Sync,
        out: &mut dyn Write,
    ) -> Result<()> {
        for request in &mut requests {
            self.process.locate(request);
        }
        let count = requests.len();
        let answers = source.answer(requests, self.layout())?;
        let answer = |index, out: &mut Vec<u8>| {
            let start = out.len();
            answers(index, out);
            complete(index, start, out);
        };
        Ok(ordered::write(count, answer, out)?)
    }

    fn layout(&self) -> Layout {
        let tool = self.args.tool.as_ref();
        let shape = self.args.shape();
        match tool.is_some_and(|tool| tool.is_json) {
            true => Layout::LlvmObjects(shape),
            false => Layout::Lines(self.args.style, shape),
        }
    }

    /// Answers the lines of a text as they become available, or all of it as a log if it starts like
    /// one. Returns notes.
    pub fn answer_lines<R: Read>(
        &mut self,
        mut input: BufReader<R>,
        source: &mut dyn Source,
        out: &mut dyn Write,
    ) -> Result<Vec<String>> {
        let mut lines = Vec::new();
        let mut is_first = true;
        while next_lines(&mut input, &mut lines)? {
            if is_first && self.is_log(&lines) {
                input
                    .read_to_end(&mut lines)
                    .context("cannot read the text")?;
                let content = Content::new(lines);
                let layout = Layout::of_log(self.args.style);
                let unanswered = log::rewrite(&content, &self.process, source, layout, out)?;
                let note = "standard input is not a list of addresses: resolved as a log, as with --filter";
                return Ok([note.to_owned()]
                    .into_iter()
                    .chain(unanswered.notes())
                    .collect());
            }
            is_first = false;
            let text = String::from_utf8_lossy(&lines);
            let requests = match self.lines {
                Some(lines) => lines.read(&text.lines().collect::<Vec<_>>()),
                None => self.numbers.read_next(&words(&text)),
            };
            self.answer(requests, source, out)?;
            out.flush()?;
        }
        Ok(Vec::new())
    }

    /// Returns a note on the radix of the numbers.
    pub fn note(&self) -> Option<String> {
        self.numbers.note()
    }

    /// Returns whether a text is a log: it has a line of several words that are not all addresses.
    fn is_log(&self, text: &[u8]) -> bool {
        if !matches!(self.args.style, Style::Text | Style::Json) {
            return false;
        }
        let is_utf16 = matches!(*text, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
        let text = String::from_utf8_lossy(text);
        let is_address = |word: &str| AddressRequest::parse(word).target.is_some();
        let mut lines = text.lines().filter(|line| !is_command(line));
        is_utf16
            || lines.any(|line| {
                let mut words = line.split_whitespace();
                words.clone().count() > 1 && !words.all(is_address)
            })
    }
}

/// Splits a list of addresses into words; a command of llvm-symbolizer is a whole line.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = Vec::new();
    for line in text.lines() {
        if is_command(line) {
            words.push(line.trim_end());
        } else {
            words.extend(line.split_whitespace());
        }
    }
    words
}

/// Input lines in the syntax of another tool, each of which has an answer.
#[derive(Clone, Copy)]
enum Lines<'a> {
    Gnu,
    /// Whether an option states the file, and its build ID.
    Llvm(bool, Option<&'a str>),
}

impl<'a> Lines<'a> {
    fn of(args: &'a Symbolize) -> Option<Self> {
        let build_id = || args.tool.as_ref()?.build_id.as_deref();
        match args.style {
            // The tool has no numbers of another radix.
            _ if args.radix.is_some() => None,
            Style::Gnu => Some(Lines::Gnu),
            Style::Llvm => Some(Lines::Llvm(
                args.has_source() || build_id().is_some(),
                build_id(),
            )),
            _ => None,
        }
    }

    fn read<'t>(self, lines: &[&'t str]) -> Vec<AddressRequest<'t>>
    where
        'a: 't,
    {
        let read = lines.iter().map(|line| match self {
            Lines::Gnu => AddressRequest::of_gnu(line),
            Lines::Llvm(has_file, build_id) => {
                let mut request = AddressRequest::of_llvm(line, has_file);
                if let Some(target) = request.target.as_mut().filter(|t| t.file.is_none()) {
                    target.id = target.id.or(build_id);
                }
                request
            }
        });
        read.collect()
    }
}
