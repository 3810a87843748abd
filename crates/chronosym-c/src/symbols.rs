//! Sources of symbol files.

use std::ffi::c_char;
use std::sync::Arc;

use chronosym::symbols::{
    StoreConfig, SymbolOptions, SymbolPath, Symbolizer, parse_debuginfod_urls,
};

use crate::boundary::call;
use crate::handles::{self, handle};
use crate::pointers::{self, Versioned};
use crate::status::{Failure, chronosym_status};
use crate::text;

/// A handle of a source of names and lines outside the trace. Any number of threads and resolvers
/// can use one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct chronosym_symbols {
    /// Zero is the null handle.
    pub id: u64,
}

handle!(chronosym_symbols, 2, "symbol source", Arc<Symbolizer>);

/// Bits of `chronosym_symbol_options.flags`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum chronosym_symbol_flags {
    /// Search folders and caches only; contact no server.
    Offline = 1,
    /// Open files at the paths in the trace; use for traces recorded on this machine.
    TrustTracePaths = 2,
    /// Do not look up lines.
    WithoutLines = 4,
    /// Show compiler-generated names in source form.
    PrettyNames = 8,
    /// Use PDBs in `folders` even if they belong to another build.
    AnyPdb = 16,
}

/// Locations in which symbol files are searched; none by default. Zero bytes are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct chronosym_symbol_options {
    /// Set to `sizeof(chronosym_symbol_options)`.
    pub size: usize,
    /// Folders or files, searched first; null if there are none.
    pub folders: *const *const c_char,
    /// Number of `folders`.
    pub folder_count: usize,
    /// As `_NT_SYMBOL_PATH`, or null.
    pub symbol_path: *const c_char,
    /// As `DEBUGINFOD_URLS`, or null.
    pub debuginfod_urls: *const c_char,
    /// The folder for downloaded files, or null.
    pub cache: *const c_char,
    /// Maximum number of bytes of cached results; 0 for the default.
    pub memory_bytes: u64,
    /// `chronosym_symbol_flags`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

impl Versioned for chronosym_symbol_options {}

const FLAGS: u32 = 31;

/// # Safety
///
/// The pointers of `options` are as documented.
unsafe fn symbolizer(options: &chronosym_symbol_options) -> Result<Symbolizer, Failure> {
    let has = |flag: chronosym_symbol_flags| options.flags & flag as u32 != 0;
    if options.flags & !FLAGS != 0 || options.reserved != 0 {
        return Err(Failure::argument(
            "unknown flags of chronosym_symbol_options",
        ));
    }
    let mut stores = StoreConfig::new();
    // SAFETY: as the caller states.
    let folders = unsafe { pointers::array(options.folders, options.folder_count, "folders")? };
    for &folder in folders {
        // SAFETY: as the caller states.
        stores
            .folders
            .push(unsafe { text::path(folder, "a folder")? });
    }
    // SAFETY: as the caller states.
    if let Some(path) = unsafe { text::optional(options.symbol_path, "symbol_path")? } {
        stores.path = SymbolPath::parse(path);
    }
    // SAFETY: as the caller states.
    if let Some(urls) = unsafe { text::optional(options.debuginfod_urls, "debuginfod_urls")? } {
        let (urls, wrong) = parse_debuginfod_urls(urls);
        if let Some(problem) = wrong.first() {
            return Err(Failure::argument(format!("debuginfod_urls: {problem}")));
        }
        stores.debuginfod = urls;
    }
    if !options.cache.is_null() {
        // SAFETY: as the caller states.
        stores.cache = Some(unsafe { text::path(options.cache, "cache")? });
    }
    stores.offline = has(chronosym_symbol_flags::Offline);
    stores.trust_trace_paths = has(chronosym_symbol_flags::TrustTracePaths);
    let mut symbols = SymbolOptions::default();
    symbols.lines = !has(chronosym_symbol_flags::WithoutLines);
    symbols.pretty = has(chronosym_symbol_flags::PrettyNames);
    symbols.any_pdb = has(chronosym_symbol_flags::AnyPdb);
    if options.memory_bytes > 0 {
        symbols.memory_bytes = options.memory_bytes;
    }
    Ok(Symbolizer::new(stores, symbols))
}

/// Creates a source of symbols. Null `options` are the defaults. Free it with `chronosym_symbols_free`.
///
/// # Safety
///
/// `options` is null or points to options whose pointers are valid; `symbols` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_symbols_new(
    options: *const chronosym_symbol_options,
    symbols: *mut chronosym_symbols,
) -> chronosym_status {
    call(|| {
        // SAFETY: as the caller states.
        let symbols = unsafe { pointers::check_out(symbols, "symbols")? };
        // SAFETY: as the caller states.
        let symbolizer = match unsafe { pointers::read_versioned(options)? } {
            // SAFETY: as the caller states.
            Some(options) => unsafe { symbolizer(&options)? },
            None => Symbolizer::new(StoreConfig::new(), SymbolOptions::default()),
        };
        symbols.write(handles::add(Arc::new(symbolizer))?);
        Ok(())
    })
}

/// Frees a handle. Resolvers that use the source keep it.
#[unsafe(no_mangle)]
pub extern "C" fn chronosym_symbols_free(symbols: chronosym_symbols) -> chronosym_status {
    call(|| handles::free(symbols))
}
