//! `chronosym symbolize`: addresses to names, lines and inlined functions.

mod lines;
mod log;
mod managed;
mod modules;
mod native;
mod ordered;
mod process;
mod shown;
mod source;
mod trace;
mod variables;

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use chronosym_symbols::log::Images;
use chronosym_symbols::style::Style;

use self::lines::{INPUT_BUFFER, next_lines};
use self::log::{Content, Log, Unanswered};
use self::process::Process;
use self::shown::Layout;
use self::source::Source;
use crate::args::{self, Symbolize, Usage};
use crate::protocol::is_command;
use crate::request::{AddressRequest, Numbers};
use crate::{output, progress};

/// Error for addresses without a file or trace in which to resolve them.
const NO_SOURCE: &str =
    "addresses need a source: --obj, --pdb, --trace or --process-maps (only a log needs none)";

pub fn run(args: &Symbolize) -> Result<()> {
    let words = args.addresses.iter().map(String::as_str);
    let (logs, words): (Vec<&str>, Vec<&str>) = words.partition(|word| args::is_log(word));
    if !logs.is_empty() && !words.is_empty() {
        let usage = format!(
            "'{}' is a log and '{}' is not: give either logs or addresses",
            logs[0], words[0]
        );
        bail!(Usage(usage));
    }
    let images = stated_images(args)?;
    let process = Process {
        base: args.base,
        images: &images,
    };
    let mut numbers = Numbers::new(args.radix);
    let reader = Lines::of(args);
    let mut requests = match reader {
        Some(lines) => lines.read(&words),
        None => numbers.read(&words),
    };
    let invalid = requests.iter().find(|request| request.target.is_none());
    if let Some(invalid) = invalid.filter(|_| reader.is_none()) {
        let word = invalid.text;
        let usage = format!(
            "'{word}' is not an address (expected 0x…, a number, module+0x…, or the path of a log)"
        );
        bail!(Usage(usage));
    }
    let reads_trace = args.trace.as_ref().is_some_and(|t| t.as_os_str() == "-");
    if reads_trace && requests.is_empty() && logs.is_empty() {
        bail!(Usage(
            "standard input is the trace: give the addresses as arguments".to_owned()
        ));
    }
    // Input lines in the style of llvm-symbolizer name files.
    if !requests.is_empty() && !args.has_source() && args.style != Style::Llvm {
        bail!(Usage(NO_SOURCE.to_owned()));
    }
    let mut out = output::open(args.output.as_deref());
    let mut source: Box<dyn Source> = match &args.trace {
        Some(trace) => Box::new(trace::TraceSource::open(trace, args, &requests)?),
        None => Box::new(modules::Modules::open(args)?),
    };
    let mut notes = Vec::new();
    if !logs.is_empty() {
        for log in &logs {
            let content = Content::open(Path::new(log))?;
            let unanswered = whole_log(&content, args, &process, &mut *source, &mut out)?;
            notes.extend(unanswered.notes());
        }
    } else if requests.is_empty() {
        let stdin = BufReader::with_capacity(INPUT_BUFFER, io::stdin().lock());
        if args.filter {
            let layout = Layout::of_log(args.style);
            let unanswered = log::rewrite_stream(stdin, &process, &mut *source, layout, &mut out)?;
            notes.extend(unanswered.notes());
        } else {
            let input = Input { args, process };
            notes.extend(input.list(stdin, &mut numbers, &mut *source, &mut out)?);
        }
    } else {
        requests
            .iter_mut()
            .for_each(|request| process.locate(request));
        print(&mut *source, requests, args, &mut out)?;
    }
    out.flush()?;
    notes.extend(numbers.note());
    notes.extend(source.notes());
    progress::notes(&notes);
    output::close();
    source.convert();
    Ok(())
}

/// Resolves a complete log: the images that it lists apply to all of it.
fn whole_log(
    content: &Content,
    args: &Symbolize,
    process: &Process<'_>,
    source: &mut dyn Source,
    out: &mut dyn Write,
) -> Result<Unanswered> {
    let log = Log::new(content.bytes());
    // A trace records the load addresses itself.
    let process = match args.trace {
        None => process.or_of(log.images()),
        Some(_) => *process,
    };
    log::rewrite(
        &log,
        content,
        &process,
        source,
        Layout::of_log(args.style),
        out,
    )
}

/// Returns the images that the options state.
fn stated_images(args: &Symbolize) -> Result<Images> {
    let maps = args.process_maps.map(|pid| format!("/proc/{pid}/maps"));
    let maps = maps.as_ref().map(Path::new).or(args.maps.as_deref());
    let content = maps.map(Content::open).transpose()?;
    let bytes = content.as_ref().map_or(&[][..], Content::bytes);
    Ok(chronosym_symbols::log::images(bytes))
}

/// Prints the answers in the order of the requests.
fn print(
    source: &mut dyn Source,
    questions: Vec<AddressRequest<'_>>,
    args: &Symbolize,
    out: &mut dyn Write,
) -> Result<()> {
    let layout = Layout::Lines(args.style, args.shape());
    let count = questions.len();
    let answers = source.answer(questions, layout)?;
    let answer = |index, out: &mut Vec<u8>| _ = answers(index, out);
    Ok(ordered::write(count, answer, out)?)
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

/// Standard input without `--filter`.
struct Input<'a> {
    args: &'a Symbolize,
    process: Process<'a>,
}

impl Input<'_> {
    /// Resolves a list of addresses, or a log if the text starts like one. Returns notes.
    fn list<R: Read>(
        &self,
        mut input: BufReader<R>,
        numbers: &mut Numbers,
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
                let unanswered = whole_log(&content, self.args, &self.process, source, out)?;
                let note = "standard input is not a list of addresses: resolved as a log, as with --filter";
                return Ok([note.to_owned()]
                    .into_iter()
                    .chain(unanswered.notes())
                    .collect());
            }
            is_first = false;
            let text = String::from_utf8_lossy(&lines);
            let mut requests = match Lines::of(self.args) {
                Some(reader) => reader.read(&text.lines().collect::<Vec<_>>()),
                None => numbers.read_next(&words(&text)),
            };
            let process = &self.process;
            requests
                .iter_mut()
                .for_each(|request| process.locate(request));
            print(source, requests, self.args, out)?;
            out.flush()?;
        }
        Ok(Vec::new())
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
