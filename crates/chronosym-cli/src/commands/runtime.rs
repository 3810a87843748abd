//! `chronosym runtime`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use chronosym::runtime::Report;
use chronosym_export::{Json, RuntimeOverview, RuntimeReport};

use crate::args::{Runtime, Usage};
use crate::profiled::shown;
use crate::{absent, load, output, progress, symbolizer};

pub fn run(args: &Runtime) -> Result<()> {
    let (report, traces) = kind(&args.input.traces)?;
    let options = match report {
        Some(report) => report.options(),
        None => Report::options_of(&Report::ALL),
    };
    absent::refuse_empty_span(&args.filters)?;
    let loaded = load::load(traces, options, &args.input.symbols)?;
    progress::notes(&loaded.diagnostics.list);
    let timeline = &loaded.timeline;
    load::refuse_without_events(timeline)?;
    absent::refuse_late(&args.filters, timeline)?;
    let filter = load::filter(&args.filters, timeline)?;
    let path = args.input.output.as_deref();
    let (out, size) = (output::open(path), shown(args.max_lines, path));
    match report {
        None => {
            let overview = RuntimeOverview::new(timeline, &filter);
            output::write(args.format, out, &Json(&overview), |out| {
                overview.write(size, out)
            })
        }
        Some(report) => {
            let symbols = symbolizer::open(&args.input.symbols, &loaded)?;
            let report = RuntimeReport::new(report, timeline, &filter, Some(symbols));
            output::write(args.format, out, &Json(&report), |out| {
                report.write(size, out)
            })
        }
    }
}

/// Separates the kind of report from the traces. A file of that name is `./gc`.
fn kind(words: &[PathBuf]) -> Result<(Option<Report>, &[PathBuf])> {
    let named = |word: &PathBuf| word.to_str().and_then(|word| word.parse().ok());
    match words {
        [first, traces @ ..] if named(first).is_some() => {
            if traces.is_empty() {
                let kind = first.display();
                bail!(Usage(format!(
                    "no trace given: chronosym runtime {kind} TRACE"
                )));
            }
            Ok((named(first), traces))
        }
        traces => Ok((None, traces)),
    }
}
