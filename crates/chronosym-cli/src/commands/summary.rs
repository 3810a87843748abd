//! `chronosym summary`, which `chronosym TRACE` is short for.

use std::sync::Arc;

use anyhow::Result;
use chronosym::{Filter, Options, SymbolSource};
use chronosym_export::{TraceSummary, charge_helpers};

use crate::args::Info;
use crate::{load, output, symbolizer, symbols};

/// Maximum width of sentences.
const WIDTH: usize = 100;

pub fn run(args: &Info) -> Result<()> {
    let (traces, options) = (&args.input.traces, &args.input.symbols);
    let mut selection = Options::default();
    selection.markers = crate::limits::get().markers;
    let loaded = load::load(traces, selection, options)?;
    let config = symbols::config_for_a_look(options)?;
    let symbols = Arc::new(symbolizer::open_with(options, config, &loaded)?);
    let source: Arc<dyn SymbolSource> = symbols;
    let mut profile = loaded.timeline.profile(&Filter::default(), Some(source));
    charge_helpers(&mut profile);
    let summary = TraceSummary::new(&profile, &loaded.diagnostics);
    let path = args.input.output.as_deref();
    let out = output::open_for(args.format, path);
    output::write(args.format, out, &summary, |out| {
        let width = output::width(path).unwrap_or(WIDTH).clamp(40, WIDTH);
        summary.write(&load::shell_words(traces), width, out)
    })
}
