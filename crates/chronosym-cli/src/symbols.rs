//! From the command line's options to a symbol source.

use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use chronosym::symbols::{
    StoreConfig, SymbolFile, SymbolOptions, SymbolPath, Symbolizer, parse_debuginfod_urls,
};

use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::args::Symbols;
use crate::limits;
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
    config.fetch.max_bytes = limits::get().download_bytes;
    config.trust_trace_paths = args.trust_trace_paths;
    Ok(config)
}

/// As [`config`], but fetches nothing unless this command line names a symbol path: for a first look at a trace.
pub fn config_for_a_look(args: &Symbols) -> Result<StoreConfig> {
    let mut config = config(args)?;
    config.offline |= args.symbol_path.is_none();
    Ok(config)
}

/// Files of images for unwinding while the trace is read: those at hand, or of a symbol path that this command line names.
pub fn for_unwinding(args: &Symbols) -> Result<Symbolizer> {
    let config = config_for_a_look(args)?;
    Ok(Symbolizer::new(
        config,
        SymbolOptions::within(&limits::get()),
    ))
}

/// Parts of the symbol path that mean nothing.
pub fn path_problems(config: &StoreConfig) -> Vec<String> {
    let problems = config.path.problems.iter();
    problems.map(|p| format!("symbol path: {p}")).collect()
}

/// Those, and a cache folder that cannot keep what is fetched.
pub fn problems(config: &StoreConfig) -> Vec<String> {
    let mut problems = path_problems(config);
    if config.may_fetch()
        && let Some(cache) = &config.cache
        && let Err(error) = can_write(cache)
    {
        problems.push(format!(
            "the cache folder {} cannot be written, so that what would be kept there is not fetched: {error}",
            cache.display()
        ));
    }
    problems
}

/// Whether a folder, or the one in which it would be made, can be written to.
fn can_write(folder: &Path) -> std::io::Result<()> {
    let existing = folder.ancestors().find(|f| f.exists());
    let existing = existing.unwrap_or(Path::new("."));
    tempfile::tempfile_in(existing).map(drop)
}

/// Where a symbol file was found, or why there is none and where it was looked for.
#[skip_serializing_none]
#[derive(Serialize)]
pub struct SymbolFileObject {
    /// What it must be; absent where the trace gives no identity.
    wanted: Option<String>,
    found: Option<String>,
    reason: Option<&'static str>,
    /// The reason in words.
    #[serde(skip)]
    meaning: String,
    /// Places that were looked at in vain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attempts: Vec<String>,
}

impl From<SymbolFile> for SymbolFileObject {
    fn from(file: SymbolFile) -> Self {
        let attempts = file.attempts.iter().filter(|_| file.found.is_err());
        SymbolFileObject {
            wanted: file.wanted.as_ref().map(ToString::to_string),
            found: file.found.as_ref().ok().map(ToString::to_string),
            reason: file.found.as_ref().err().map(|reason| reason.name()),
            meaning: match &file.found {
                Ok(_) => String::new(),
                Err(reason) => reason.to_string(),
            },
            attempts: attempts.map(ToString::to_string).collect(),
        }
    }
}

impl SymbolFileObject {
    /// For people.
    pub fn write(&self, what: &str, indent: &str, out: &mut dyn Write) -> std::io::Result<()> {
        match (&self.found, self.reason) {
            (Some(found), _) => text_line!(out, "{indent}{what} found: {found}")?,
            (None, Some(reason)) if self.wanted.is_some() => {
                text_line!(out, "{indent}no {what}: {reason}: {}", self.meaning)?;
            }
            _ => text_line!(
                out,
                "{indent}no {what}: the trace has no identity to look for"
            )?,
        }
        for attempt in &self.attempts {
            text_line!(out, "{indent}  {attempt}")?;
        }
        Ok(())
    }
}
