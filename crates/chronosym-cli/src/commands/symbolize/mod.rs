//! `chronosym symbolize`: addresses to names, lines and inlined functions.

mod element;
mod file_names;
mod lines;
mod list;
mod llvm_json;
mod log;
mod managed;
mod markup;
mod modules;
mod native;
mod ordered;
mod process;
mod shown;
mod source;
mod trace;
mod variables;

use std::io::{self, BufReader, Write};
use std::path::Path;

use anyhow::{Result, bail};
use chronosym_symbols::log::Images;
use chronosym_symbols::style::Style;

use self::lines::INPUT_BUFFER;
use self::list::AddressList;
use self::log::Content;
use self::process::Process;
use self::shown::Layout;
use self::source::Source;
use crate::args::{self, Symbolize, Usage};
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
        is_traced: args.trace.is_some(),
    };
    let mut list = AddressList::new(args, process);
    let requests = list.arguments(&words)?;
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
    let layout = Layout::of_log(args.style);
    let mut notes = Vec::new();
    if !requests.is_empty() {
        list.answer_arguments(requests, &mut *source, &mut out)?;
    } else if !logs.is_empty() {
        for log in &logs {
            let content = Content::open(Path::new(log))?;
            let unanswered = log::rewrite(&content, &process, &mut *source, layout, &mut out)?;
            notes.extend(unanswered.notes());
        }
    } else {
        let stdin = BufReader::with_capacity(INPUT_BUFFER, io::stdin().lock());
        if args.tool.as_ref().is_some_and(|tool| tool.filters_markup) {
            notes.extend(markup::rewrite(stdin, &mut *source, &mut out)?);
        } else if args.filter {
            let unanswered = log::rewrite_stream(stdin, &process, &mut *source, layout, &mut out)?;
            notes.extend(unanswered.notes());
        } else {
            notes.extend(list.answer_lines(stdin, &mut *source, &mut out)?);
        }
    }
    out.flush()?;
    notes.extend(list.note());
    notes.extend(source.notes());
    progress::notes(&notes);
    output::close();
    source.convert();
    Ok(())
}

/// Returns the images that the options state.
fn stated_images(args: &Symbolize) -> Result<Images> {
    let maps = args.process_maps.map(|pid| format!("/proc/{pid}/maps"));
    let maps = maps.as_ref().map(Path::new).or(args.maps.as_deref());
    let content = maps.map(Content::open).transpose()?;
    let bytes = content.as_ref().map_or(&[][..], Content::bytes);
    Ok(chronosym_symbols::log::images(bytes))
}
