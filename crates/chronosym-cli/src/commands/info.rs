//! `chronosym info`.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use chronosym::Options;
use chronosym_export::{Json, Overview};

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
    let overview = Overview::new(&loaded.timeline, &loaded.diagnostics, &symbols);
    let path = args.input.output.as_deref();
    let out = output::open_for(args.format, path);
    output::write(args.format, out, &Json(&overview), |out| {
        let width = output::width(path).unwrap_or(WIDTH).clamp(40, WIDTH);
        overview.write(width, out)?;
        writeln!(out)?;
        let next = overview.next_command();
        output::text_line!(out, "next: chronosym {next} {}", load::shell_words(traces))
    })
}
