//! Limits from the command line.

use std::sync::OnceLock;

use chronosym::Limits;
use clap::Args;

macro_rules! limits {
    ($($unit:literal $option:ident $limit:ident: $type:ty, $help:literal;)*) => {
        /// Limits on the cost of hostile or damaged input. The message about a reached limit names
        /// its option.
        #[derive(Clone, Debug, Default, Args)]
        #[command(next_help_heading = "Limits")]
        pub struct LimitOptions {
            $(
                #[doc = $help]
                #[arg(long, global = true, value_name = $unit, hide_short_help = true)]
                $option: Option<$type>,
            )*
            /// Limit the memory of a trace and of what is made of it. The default is 256 MiB, or 16
            /// times the size of the traces if that is more; 1 GiB for standard input.
            #[arg(long, global = true, value_name = "BYTES", hide_short_help = true)]
            max_memory: Option<u64>,
            /// Read symbol files completely instead of mapping them, so that a file that is
            /// truncated meanwhile causes a reason instead of SIGBUS.
            #[arg(long, global = true, hide_short_help = true)]
            no_mmap: bool,
        }

        impl LimitOptions {
            fn limits(&self) -> Limits {
                let mut limits = Limits::default();
                $(limits.$limit = self.$option.unwrap_or(limits.$limit);)*
                limits.memory = self.max_memory;
                limits
            }
        }
    };
}

limits! {
    "BYTES" max_unpacked_bytes unpacked_bytes: u64, "Limit the decompressed size of archives (zip, gzip).";
    "N" max_unpacked_ratio unpacked_ratio: u64, "Limit the ratio of decompressed to compressed size.";
    "N" max_zip_entries zip_entries: usize, "Limit the entries of a zip file.";
    "N" max_layers layers: u32, "Limit nested archives.";
    "BYTES" max_perf_map_bytes perf_map_bytes: u64, "Limit the size of a perf map.";
    "N" max_tree_nodes tree_nodes: u32, "Limit the nodes of a call tree.";
    "N" max_markers markers: usize, "Limit runtime events in pictures.";
    "BYTES" max_download_bytes download_bytes: u64, "Limit the size of a download.";
    "BYTES" max_open_symbol_bytes open_symbol_bytes: u64, "Limit the total size of open symbol files.";
    "BYTES" max_symbol_memory_bytes symbol_memory_bytes: u64, "Limit the cache of decoded symbol data.";
    "N" max_line_share line_share: usize, "Limit how often each DWARF line table is read, on average.";
}

static LIMITS: OnceLock<Limits> = OnceLock::new();

/// Sets the limits of this run; call once.
pub fn set(options: &LimitOptions) {
    let _ = LIMITS.set(options.limits());
    if options.no_mmap {
        chronosym_symbols::mmap::map_nothing();
    }
}

/// Returns the limits of this run.
pub fn get() -> Limits {
    LIMITS.get().cloned().unwrap_or_default()
}
