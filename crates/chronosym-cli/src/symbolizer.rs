//! The symbol source of a trace.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use chronosym::symbols::{Kallsyms, StoreConfig, SymbolOptions, Symbolizer};

use crate::args::Symbols;
use crate::load::Loaded;
use crate::progress::note;
use crate::{limits, symbols};

/// The symbol sources of this run.
static OPENED: Mutex<Vec<Arc<Symbolizer>>> = Mutex::new(Vec::new());

/// Opens a symbol source that searches the locations of the options, the traces' folders and the
/// trace's own zip archive. Reports options without effect on standard error.
pub fn open(args: &Symbols, loaded: &Loaded) -> Result<Arc<Symbolizer>> {
    open_with(args, symbols::config(args)?, loaded)
}

/// Opens a symbol source with another configuration.
pub fn open_with(args: &Symbols, config: StoreConfig, loaded: &Loaded) -> Result<Arc<Symbolizer>> {
    symbols::problems(&config)
        .iter()
        .for_each(|problem| note(problem));
    let mut options = SymbolOptions::within(&limits::get());
    options.lines = !args.no_lines;
    options.pretty = args.pretty;
    options.source_names = args.source_names;
    if let Some(path) = &args.kallsyms {
        options.kallsyms = Some(Arc::new(kallsyms(path, loaded)?));
    }
    let symbolizer = Arc::new(Symbolizer::new(config, options));
    let (unpacked, errors) = loaded.symbol_entries.unpack_for(&loaded.timeline);
    let beside = loaded.folders.iter().map(PathBuf::as_path);
    for folder in beside.chain(unpacked) {
        symbolizer.add_trace_folder(folder);
    }
    for (name, error) in errors {
        note(&format!(
            "{name} in the trace's zip file cannot be unpacked: {error}"
        ));
    }
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened.push(Arc::clone(&symbolizer));
    Ok(symbolizer)
}

/// Converts the symbol files that this run used, where that is due. Called last: a reader of the
/// output does not wait for it.
pub fn convert_used() {
    let opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    for symbolizer in &*opened {
        symbolizer.convert_symbols();
    }
}

/// Reads the kernel's symbols. Reports on standard error if they belong to another kernel.
fn kallsyms(path: &Path, loaded: &Loaded) -> Result<Kallsyms> {
    let name = || format!("--kallsyms {}", path.display());
    let kallsyms = Kallsyms::open(path).with_context(name)?;
    let timeline = &loaded.timeline;
    for process in timeline.processes() {
        let images = timeline.images(process.index).map(|view| view.image);
        let kernels = images.filter(|image| image.path.starts_with("[kernel"));
        for why in kernels.filter_map(|kernel| kallsyms.fits(&kernel).err()) {
            note(&format!("{} is not used: {why}", name()));
        }
    }
    Ok(kallsyms)
}
