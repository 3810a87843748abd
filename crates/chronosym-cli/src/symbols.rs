//! The configuration of symbol stores.

use std::path::Path;

use anyhow::{Result, bail};
use chronosym::symbols::{
    CacheUse, StoreConfig, SymbolOptions, SymbolPath, Symbolizer, parse_debuginfod_urls,
};

use crate::args::{SymbolCache, Symbols};
use crate::limits;

/// Returns the configuration from options and environment.
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
    config.symbol_cache = match args.symbol_cache {
        SymbolCache::Auto => CacheUse::Auto,
        SymbolCache::Always => CacheUse::Always,
        SymbolCache::Off => CacheUse::Off,
    };
    config.offline = args.offline;
    config.fetch.max_bytes = limits::get().download_bytes;
    config.trust_trace_paths = args.trust_trace_paths;
    Ok(config)
}

/// Returns a configuration that fetches only from a symbol path on this command line, for a first
/// look at a trace.
pub fn config_for_a_look(args: &Symbols) -> Result<StoreConfig> {
    let mut config = config(args)?;
    config.offline |= args.symbol_path.is_none();
    Ok(config)
}

/// Returns files of images for unwinding: local ones, and those of a symbol path on this command
/// line.
pub fn for_unwinding(args: &Symbols) -> Result<Symbolizer> {
    let config = config_for_a_look(args)?;
    Ok(Symbolizer::new(
        config,
        SymbolOptions::within(&limits::get()),
    ))
}

/// Returns the invalid parts of the symbol path.
pub fn path_problems(config: &StoreConfig) -> Vec<String> {
    let problems = config.path.problems.iter();
    problems.map(|p| format!("symbol path: {p}")).collect()
}

/// Returns the invalid parts of the symbol path, and a cache folder that is not writable.
pub fn problems(config: &StoreConfig) -> Vec<String> {
    let mut problems = path_problems(config);
    if config.may_fetch()
        && let Some(cache) = &config.cache
        && let Err(error) = can_write(cache)
    {
        problems.push(format!(
            "cannot write to the cache folder {}, so downloaded files are kept for this run only: {error}",
            cache.display()
        ));
    }
    problems
}

/// Returns whether a folder, or the one that would contain it, is writable.
fn can_write(folder: &Path) -> std::io::Result<()> {
    let existing = folder.ancestors().find(|f| f.exists());
    let existing = existing.unwrap_or(Path::new("."));
    tempfile::tempfile_in(existing).map(drop)
}
