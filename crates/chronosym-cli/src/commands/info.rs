//! `chronosym info`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use chronosym::Options;
use chronosym::runtime::keep_counters;
use chronosym::symbols::Symbolizer;
use chronosym_export::{Json, Overview};

use crate::args::{Info, Symbols};
use crate::load::Loaded;
use crate::profiled::note_limit;
use crate::{load, output, symbolizer, symbols};

/// Maximum width of sentences.
const WIDTH: usize = 100;

/// Reads traces with their markers, for a first look that downloads nothing on its own.
pub fn look(traces: &[PathBuf], options: &Symbols) -> Result<(Loaded, Arc<Symbolizer>)> {
    let mut selection = Options::default();
    selection.markers = crate::limits::get().markers;
    keep_counters(&mut selection);
    let loaded = load::load(traces, selection, options)?;
    let config = symbols::config_for_a_look(options)?;
    let symbols = symbolizer::open_with(options, config, &loaded)?;
    Ok((loaded, symbols))
}

/// Returns the width of sentences in columns.
pub fn width(output: Option<&Path>) -> usize {
    output::width(output).unwrap_or(WIDTH).clamp(40, WIDTH)
}

pub fn run(args: &Info) -> Result<()> {
    let (loaded, symbols) = look(&args.input.traces, &args.input.symbols)?;
    let overview = Overview::new(&loaded.timeline, &loaded.diagnostics, &symbols);
    note_limit(overview.limit());
    let path = args.input.output.as_deref();
    let out = output::open_for(args.format, path);
    output::write(args.format, out, &Json(&overview), |out| {
        overview.write(width(path), out)?;
        writeln!(out)?;
        let next = overview.next_command();
        output::text_line!(
            out,
            "next: chronosym {next} {}",
            load::shell_words(&args.input.traces)
        )
    })
}
