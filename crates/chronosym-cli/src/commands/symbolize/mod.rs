//! `chronosym symbolize`: addresses to names, lines and inlined functions.

mod log_json;
mod log_lines;
mod managed;
mod modules;
mod native;
mod ordered;
mod shown;
mod source;
mod text;
mod trace;

use std::io::{self, BufRead, BufReader, Read, Write};

use anyhow::{Context, Result, bail};

use self::source::Source;
use crate::args::{Symbolize, Usage};
use crate::request::{self, AddressRequest, Numbers};
use crate::{output, progress};

/// Answers come in batches: a file's parts are read once a batch, and whoever sends one address at a time is answered at once.
const INPUT_BUFFER: usize = 4 << 20;

pub fn run(args: &Symbolize) -> Result<()> {
    let words: Vec<&str> = args.addresses.iter().map(String::as_str).collect();
    let mut numbers = Numbers::new(args.radix);
    let questions = numbers.read(&words);
    let reads_trace = args.trace.as_ref().is_some_and(|t| t.as_os_str() == "-");
    if reads_trace && questions.is_empty() {
        bail!(Usage(
            "standard input is the trace: say the addresses as arguments".to_owned()
        ));
    }
    let mut out = output::open(args.output.as_deref());
    let mut source: Box<dyn Source> = match &args.trace {
        Some(trace) => Box::new(trace::TraceSource::open(trace, args)?),
        None => Box::new(modules::Modules::open(args)?),
    };
    if questions.is_empty() {
        let stdin = BufReader::with_capacity(INPUT_BUFFER, io::stdin().lock());
        if args.filter {
            rewrite(stdin, &mut *source, &mut out)?;
        } else {
            list(stdin, &mut numbers, &mut *source, &mut out)?;
        }
    } else {
        print(&mut *source, questions, &mut out)?;
    }
    out.flush()?;
    let mut notes = Vec::from_iter(numbers.note());
    notes.extend(source.notes());
    progress::notes(&notes);
    Ok(())
}

/// Prints the answers in the order of the questions.
fn print(
    source: &mut dyn Source,
    questions: Vec<AddressRequest<'_>>,
    out: &mut dyn Write,
) -> Result<()> {
    let count = questions.len();
    let answers = source.answer(questions)?;
    Ok(ordered::write(count, answers, out)?)
}

/// Reads what input there is without waiting for more, up to the end of a line; false at the end.
fn next_lines<R: Read>(input: &mut BufReader<R>, lines: &mut Vec<u8>) -> Result<bool> {
    lines.clear();
    input
        .read_until(b'\n', lines)
        .context("cannot read standard input")?;
    let ready = input.buffer();
    let whole = ready
        .iter()
        .rposition(|&b| b == b'\n')
        .map_or(0, |at| at + 1);
    lines.extend_from_slice(&ready[..whole]);
    input.consume(whole);
    Ok(!lines.is_empty())
}

fn list<R: Read>(
    mut input: BufReader<R>,
    numbers: &mut Numbers,
    source: &mut dyn Source,
    out: &mut dyn Write,
) -> Result<()> {
    let mut lines = Vec::new();
    while next_lines(&mut input, &mut lines)? {
        let text = String::from_utf8_lossy(&lines);
        let mut words: Vec<&str> = Vec::new();
        for line in text.lines() {
            if request::is_command(line) {
                words.push(line.trim_end());
            } else {
                words.extend(line.split_whitespace());
            }
        }
        print(source, numbers.read(&words), out)?;
        out.flush()?;
    }
    Ok(())
}

fn rewrite<R: Read>(
    mut input: BufReader<R>,
    source: &mut dyn Source,
    out: &mut dyn Write,
) -> Result<()> {
    let mut lines = Vec::new();
    while next_lines(&mut input, &mut lines)? {
        // Bytes that are no text pass as they are: only ASCII is looked at.
        let (ranges, questions): (Vec<_>, Vec<_>) = text::find_all(&lines).into_iter().unzip();
        let answers = source.answer(questions)?;
        let (mut copied, mut answer) = (0, Vec::new());
        for (index, range) in ranges.iter().enumerate() {
            answer.clear();
            answers(index, &mut answer);
            if !answer.is_empty() {
                out.write_all(&lines[copied..range.start])?;
                out.write_all(&answer)?;
                copied = range.end;
            }
        }
        out.write_all(&lines[copied..])?;
        out.flush()?;
    }
    Ok(())
}
