//! From the command line's options to a symbol source.

use std::io::Write;

use anyhow::{Result, bail};
use chronosym::symbols::{
    StoreConfig, SymbolFile, SymbolOptions, SymbolPath, Symbolizer, parse_debuginfod_urls,
};

use crate::args::Symbols;
use crate::output::text_line;

/// Where to look, as the options and the environment say.
pub fn config(args: &Symbols) -> Result<StoreConfig> {
    let mut config = StoreConfig::from_env();
    if let Some(path) = &args.symbol_path {
        config.path = SymbolPath::parse(path);
        config.debuginfod = parse_debuginfod_urls("").0;
    }
    for folder in &args.symbols {
        if !folder.exists() {
            bail!("--symbols {}: there is no such folder", folder.display());
        }
    }
    config.folders.clone_from(&args.symbols);
    if let Some(cache) = &args.cache {
        config.cache = Some(cache.clone());
    }
    config.offline = args.offline;
    config.trust_trace_paths = args.trust_trace_paths;
    Ok(config)
}

fn symbolizer(args: &Symbols, config: StoreConfig) -> Symbolizer {
    let mut options = SymbolOptions::default();
    options.lines = !args.no_lines;
    options.pretty = args.pretty;
    Symbolizer::new(config, options)
}

/// The symbol source that the options describe. Says on standard error which parts of the symbol path mean nothing.
pub fn open(args: &Symbols, quiet: bool) -> Result<Symbolizer> {
    let config = config(args)?;
    if !quiet {
        for problem in &config.path.problems {
            eprintln!("chronosym: note: symbol path: {problem}");
        }
    }
    Ok(symbolizer(args, config))
}

/// As [`open`], but fetches nothing unless this command line names a symbol path: for a first look at a trace.
pub fn open_for_a_look(args: &Symbols) -> Result<Symbolizer> {
    let mut config = config(args)?;
    config.offline |= args.symbol_path.is_none();
    Ok(symbolizer(args, config))
}

/// Says where a symbol file was found, or why there is none and where it was looked for.
pub fn describe(
    what: &str,
    file: &SymbolFile,
    indent: &str,
    out: &mut impl Write,
) -> std::io::Result<()> {
    match &file.found {
        Ok(found) => text_line!(out, "{indent}{what} found: {found}")?,
        Err(_) if file.wanted.is_none() => {
            text_line!(
                out,
                "{indent}no {what}: the trace has no identity to look for"
            )?;
        }
        Err(reason) => text_line!(out, "{indent}no {what}: {}: {reason}", reason.name())?,
    }
    if file.found.is_err() {
        for attempt in &file.attempts {
            text_line!(out, "{indent}  {attempt}")?;
        }
    }
    Ok(())
}
