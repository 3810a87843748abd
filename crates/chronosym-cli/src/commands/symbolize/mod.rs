//! `chronosym symbolize`: addresses to names, lines and inlined functions.

mod log_json;
mod log_lines;
mod managed;
mod mappings;
mod modules;
mod native;
mod ordered;
mod shown;
mod source;
mod text;
mod trace;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use self::mappings::Mappings;
use self::source::Source;
use crate::args::{self, Symbolize, Usage};
use crate::request::{self, AddressRequest, Numbers};
use crate::{output, progress};

/// Answers come in batches: a file's parts are read once a batch, and whoever sends one address at a time is answered at once.
const INPUT_BUFFER: usize = 4 << 20;

pub fn run(args: &Symbolize) -> Result<()> {
    let words = args.addresses.iter().map(String::as_str);
    let (logs, words): (Vec<&str>, Vec<&str>) = words.partition(|word| args::is_log(word));
    if !logs.is_empty() && !words.is_empty() {
        let usage = format!(
            "'{}' is a log and '{}' is none: addresses and logs do not mix",
            logs[0], words[0]
        );
        bail!(Usage(usage));
    }
    let mappings = mappings(args, &logs)?;
    let mut numbers = Numbers::new(args.radix);
    let questions = numbers.read(&words);
    let reads_trace = args.trace.as_ref().is_some_and(|t| t.as_os_str() == "-");
    if reads_trace && questions.is_empty() && logs.is_empty() {
        bail!(Usage(
            "standard input is the trace: say the addresses as arguments".to_owned()
        ));
    }
    let mut out = output::open(args.output.as_deref());
    let mut source: Box<dyn Source> = match &args.trace {
        Some(trace) => Box::new(trace::TraceSource::open(trace, args, &questions)?),
        None => Box::new(modules::Modules::open(args, &mappings)?),
    };
    for log in &logs {
        let file = File::open(log).with_context(|| (*log).to_owned())?;
        let input = BufReader::with_capacity(INPUT_BUFFER, file);
        rewrite(input, &mut *source, &mut out)?;
    }
    if questions.is_empty() && logs.is_empty() {
        let stdin = BufReader::with_capacity(INPUT_BUFFER, io::stdin().lock());
        if args.filter {
            rewrite(stdin, &mut *source, &mut out)?;
        } else {
            list(stdin, &mut numbers, &mut *source, &mut out)?;
        }
    } else if logs.is_empty() {
        print(&mut *source, questions, &mut out)?;
    }
    out.flush()?;
    let mut notes = Vec::from_iter(numbers.note());
    notes.extend(source.notes());
    progress::notes(&notes);
    Ok(())
}

/// The mappings that the options state, or else the logs themselves.
fn mappings(args: &Symbolize, logs: &[&str]) -> Result<Mappings> {
    match (&args.maps, args.process_maps) {
        (Some(path), _) => Mappings::read(path),
        (None, Some(pid)) => Mappings::read(&Path::new("/proc").join(pid.to_string()).join("maps")),
        (None, None) => match logs {
            [log] if args.trace.is_none() => Mappings::read(Path::new(log)),
            _ => Ok(Mappings::default()),
        },
    }
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
        .context("cannot read the text")?;
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

/// Copies a text with names in place of addresses. UTF-16 with a byte order mark stays UTF-16.
fn rewrite<R: Read>(
    mut input: BufReader<R>,
    source: &mut dyn Source,
    out: &mut dyn Write,
) -> Result<()> {
    let head = input.fill_buf().context("cannot read the text")?;
    let of_bytes: Option<fn([u8; 2]) -> u16> = match head {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    };
    let Some(of_bytes) = of_bytes else {
        return rewrite_bytes(input, source, out);
    };
    let mut bytes = Vec::new();
    input
        .read_to_end(&mut bytes)
        .context("cannot read the text")?;
    let units = bytes
        .chunks_exact(2)
        .map(|pair| of_bytes([pair[0], pair[1]]));
    let Some(text) = char::decode_utf16(units)
        .collect::<Result<String, _>>()
        .ok()
        .filter(|_| bytes.len() % 2 == 0)
    else {
        return Ok(out.write_all(&bytes)?);
    };
    let mut answered = Vec::new();
    rewrite_bytes(
        BufReader::with_capacity(INPUT_BUFFER, text.as_bytes()),
        source,
        &mut answered,
    )?;
    for unit in String::from_utf8_lossy(&answered).encode_utf16() {
        let unit = if bytes[0] == 0xff {
            unit.to_le_bytes()
        } else {
            unit.to_be_bytes()
        };
        out.write_all(&unit)?;
    }
    Ok(())
}

fn rewrite_bytes<R: Read>(
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
