//! `chronosym otlp`.

use std::fs::File;
use std::io::{self, IsTerminal, Read, stdout};
use std::path::Path;

use anyhow::{Context, Result, bail};
use chronosym::source::chronosym_otlp::MAX_BYTES;
use chronosym::source::otlp::symbolize;
use chronosym::symbols::{SymbolOptions, Symbolizer};

use crate::args::{Otlp, Usage};
use crate::progress::note;
use crate::{limits, output, symbols};

pub fn run(args: &Otlp) -> Result<()> {
    if args.output.is_none() && stdout().is_terminal() {
        bail!(Usage("say -o FILE.otlp".to_owned()));
    }
    let name = match args.trace.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => args.trace.display().to_string(),
    };
    let bytes = read(&args.trace).with_context(|| format!("cannot read {name}"))?;
    let config = symbols::config(&args.symbols)?;
    for problem in symbols::problems(&config) {
        note(&problem);
    }
    let mut options = SymbolOptions::within(&limits::get());
    options.lines = !args.symbols.no_lines;
    options.pretty = args.symbols.pretty;
    let source = Symbolizer::new(config, options);
    let done = symbolize(bytes, Some(&source), &source).context(name)?;
    let mut out = output::open(args.output.as_deref());
    out.write_all(&done.bytes)?;
    out.flush()?;
    note(&format!(
        "{} of {} locations have more names or lines; {} have no name",
        done.changed, done.locations, done.unnamed
    ));
    Ok(())
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut bytes = Vec::new();
    source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
