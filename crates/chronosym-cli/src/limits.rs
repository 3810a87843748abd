//! Options that set limits.

use std::ffi::OsString;
use std::sync::OnceLock;

use chronosym::Limits;
use clap::{Args, Command};

macro_rules! limits {
    ($($unit:literal $option:ident $limit:ident: $type:ty, $help:literal;)*) => {
        /// Limits on the cost of hostile or damaged input. The message about a reached limit names
        /// its option.
        #[derive(Clone, Debug, Default, Args)]
        pub struct LimitOptions {
            $(
                #[doc = $help]
                #[arg(long, global = true, value_name = $unit, hide = true)]
                $option: Option<$type>,
            )*
            /// Limit the memory for a trace and for results computed from it. The default is 256
            /// MiB or 16 times the size of the traces, whichever is larger; 1 GiB for standard
            /// input.
            #[arg(long, global = true, value_name = "BYTES", hide = true)]
            max_memory: Option<u64>,
            /// Read symbol files completely instead of mapping them. A file that another program
            /// truncates then causes an error instead of SIGBUS.
            #[arg(long, global = true, hide = true)]
            no_mmap: bool,
            /// Print the options that limit memory and the cost of damaged input.
            #[arg(long, global = true)]
            help_limits: bool,
        }

        impl LimitOptions {
            fn limits(&self) -> Limits {
                let mut limits = Limits::default();
                $(limits.$limit = self.$option.map_or(limits.$limit, Into::into);)*
                limits.memory = self.max_memory;
                limits
            }
        }
    };
}

limits! {
    "BYTES" max_unpacked_bytes unpacked_bytes: u64, "Limit the decompressed size of archives (zip, gzip).";
    "N" max_unpacked_ratio unpacked_ratio: u64, "Limit the ratio of decompressed to compressed size.";
    "N" max_zip_entries zip_entries: usize, "Limit the number of entries in a zip file.";
    "N" max_layers layers: u32, "Limit the nesting of archives.";
    "BYTES" max_perf_map_bytes perf_map_bytes: u64, "Limit the size of a perf map.";
    "N" max_tree_nodes tree_nodes: u32, "Limit the number of nodes in a call tree.";
    "N" max_markers markers: usize, "Limit the number of runtime events in pictures.";
    "N" max_report_samples report_samples: usize, "Limit the number of samples in a report; further ones are merged.";
    "BYTES" max_download_bytes download_bytes: u64, "Limit the size of a download.";
    "BYTES" max_open_symbol_bytes open_symbol_bytes: u64, "Limit the total size of open symbol files.";
    "BYTES" max_symbol_memory_bytes symbol_memory_bytes: u64, "Limit the cache of decoded symbol data.";
    "N" max_line_share line_share: usize, "Limit the average number of times each DWARF line table is read.";
}

/// Returns whether words of the command line request the limits.
pub fn is_help(words: &[OsString]) -> bool {
    let mut options = words.iter().take_while(|word| *word != "--");
    options.any(|word| word == "--help-limits")
}

/// Returns the options of limits.
pub fn command() -> Command {
    let command = Command::new("chronosym").disable_help_flag(true);
    let command = LimitOptions::augment_args(command);
    let shown = command.mut_args(|arg| {
        let is_itself = arg.get_id() == "help_limits";
        arg.hide(is_itself)
    });
    shown.help_template("Limits, accepted by every command:\n\n{options}\n")
}

/// Returns the help of the options.
pub fn help() -> impl std::fmt::Display {
    command().render_long_help()
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
