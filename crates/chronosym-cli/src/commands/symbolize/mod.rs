//! `chronosym symbolize`: addresses to names, lines and inlined functions.

mod companion;
mod object;
mod ordered;
mod pdb;
mod question;
mod shown;
mod trace;

use std::io::{self, BufRead, BufReader, Read, Write};

use anyhow::{Context, Result, bail};

use self::question::Numbers;
pub use self::question::Question;
use crate::args::{Symbolize, Usage};
use crate::output;

/// Answers come in batches: a file's parts are read once a batch, and whoever sends one address at a time is answered at once.
const INPUT_BUFFER: usize = 4 << 20;

/// Something that knows what stands at addresses.
trait Source {
    /// Prints the answers in the order of the questions.
    fn print(&mut self, questions: &[Question<'_>], out: &mut dyn Write) -> Result<()>;

    /// What replaces each address in a text; `None` leaves it as it is.
    fn labels(&mut self, questions: &[Question<'_>]) -> Result<Vec<Option<String>>>;

    /// What was damaged.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

pub fn run(args: &Symbolize, quiet: bool) -> Result<()> {
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
    let mut found = match (&args.obj, &args.pdb) {
        (Some(image), None) => companion::pdb_of(image, &args.symbols)?,
        _ => companion::Found::default(),
    };
    super::tell(&std::mem::take(&mut found.notes), quiet);
    match (
        &args.trace,
        &args.obj,
        args.pdb.as_ref().or(found.pdb.as_ref()),
    ) {
        (Some(trace), None, None) => {
            let mut source = trace::TraceSource::open(trace, args, quiet)?;
            answer(args, &questions, numbers, &mut source, &mut out, quiet)
        }
        (None, Some(object), None) => {
            let mut source = object::ObjectSource::open(object, args, found)?;
            answer(args, &questions, numbers, &mut source, &mut out, quiet)
        }
        (None, object, Some(pdb)) => {
            let files = pdb::Files::open(pdb, object.as_deref())?;
            let parsed = files.parse()?;
            let mut source = pdb::PdbSource::new(&files, &parsed, args);
            answer(args, &questions, numbers, &mut source, &mut out, quiet)
        }
        _ => bail!("whose addresses? Say --trace TRACE, --obj FILE or --pdb FILE"),
    }
}

fn answer(
    args: &Symbolize,
    questions: &[Question<'_>],
    mut numbers: Numbers,
    source: &mut dyn Source,
    out: &mut dyn Write,
    quiet: bool,
) -> Result<()> {
    if questions.is_empty() {
        let stdin = BufReader::with_capacity(INPUT_BUFFER, io::stdin().lock());
        if args.filter {
            rewrite(stdin, source, out)?;
        } else {
            list(stdin, &mut numbers, source, out)?;
        }
    } else {
        source.print(questions, out)?;
    }
    out.flush()?;
    let mut notes = Vec::from_iter(numbers.note());
    notes.extend(source.notes());
    super::tell(&notes, quiet);
    Ok(())
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
        let words: Vec<&str> = text.split_whitespace().collect();
        let questions = numbers.read(&words);
        source.print(&questions, out)?;
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
        let found = question::find_all(&lines);
        let questions: Vec<Question<'_>> = found.iter().map(|(_, q)| q.clone()).collect();
        let labels = source.labels(&questions)?;
        let mut copied = 0;
        for ((range, _), label) in found.iter().zip(labels) {
            if let Some(label) = label {
                out.write_all(&lines[copied..range.start])?;
                out.write_all(label.as_bytes())?;
                copied = range.end;
            }
        }
        out.write_all(&lines[copied..])?;
        out.flush()?;
    }
    Ok(())
}
