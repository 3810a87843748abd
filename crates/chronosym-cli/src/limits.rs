//! What reading may cost, as the command line says.

use std::sync::OnceLock;

use chronosym::Limits;
use clap::Args;

/// What hostile or broken input may cost. What goes beyond is said, with the option that raises the limit.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitOptions {
    /// Bytes that wrappers (zip, gzip) may unpack to.
    #[arg(long, global = true, value_name = "BYTES", hide_short_help = true)]
    max_unpacked_bytes: Option<u64>,
    /// How many times its size a wrapper may unpack to.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    max_unpacked_ratio: Option<u64>,
    /// Entries of a zip file.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    max_zip_entries: Option<usize>,
    /// Wrappers in wrappers.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    max_layers: Option<u32>,
    /// Bytes of a perf map.
    #[arg(long, global = true, value_name = "BYTES", hide_short_help = true)]
    max_perf_map_bytes: Option<u64>,
    /// Nodes of a call tree.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    max_tree_nodes: Option<u32>,
    /// Events of what runtimes did, in pictures.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    max_markers: Option<usize>,
    /// Bytes of a file from a symbol server.
    #[arg(long, global = true, value_name = "BYTES", hide_short_help = true)]
    max_download_bytes: Option<u64>,
    /// Bytes of symbol files that are open at a time.
    #[arg(long, global = true, value_name = "BYTES", hide_short_help = true)]
    max_open_symbol_bytes: Option<u64>,
    /// Bytes that are kept of what was found out of symbol files.
    #[arg(long, global = true, value_name = "BYTES", hide_short_help = true)]
    max_symbol_memory_bytes: Option<u64>,
    /// Units for which each DWARF line table is read, on average.
    #[arg(long, global = true, value_name = "N", hide_short_help = true)]
    max_line_share: Option<usize>,
    /// Read symbol files whole: one that is cut short or changed meanwhile gives a wrong answer or a reason, never a signal.
    #[arg(long, global = true, hide_short_help = true)]
    no_mmap: bool,
}

static LIMITS: OnceLock<Limits> = OnceLock::new();

/// Says once what the command line asks for.
pub fn set(options: &LimitOptions) {
    fn given<T: Copy>(limit: &mut T, option: Option<T>) {
        *limit = option.unwrap_or(*limit);
    }
    let mut limits = Limits::default();
    given(&mut limits.unpacked_bytes, options.max_unpacked_bytes);
    given(&mut limits.unpacked_ratio, options.max_unpacked_ratio);
    given(&mut limits.zip_entries, options.max_zip_entries);
    given(&mut limits.layers, options.max_layers);
    given(&mut limits.perf_map_bytes, options.max_perf_map_bytes);
    given(&mut limits.tree_nodes, options.max_tree_nodes);
    given(&mut limits.markers, options.max_markers);
    given(&mut limits.download_bytes, options.max_download_bytes);
    given(&mut limits.open_symbol_bytes, options.max_open_symbol_bytes);
    given(
        &mut limits.symbol_memory_bytes,
        options.max_symbol_memory_bytes,
    );
    given(&mut limits.line_share, options.max_line_share);
    let _ = LIMITS.set(limits);
    if options.no_mmap {
        chronosym_symbols::mmap::map_nothing();
    }
}

/// The limits of this run.
pub fn get() -> Limits {
    LIMITS.get().cloned().unwrap_or_default()
}
