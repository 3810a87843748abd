//! The arguments of the commands that write and use timelines and tables.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::parts::{EventFilters, Input, PlainInput, Symbols};
use super::values::rows;

/// `chronosym save`.
#[derive(Debug, Args)]
pub struct Save {
    #[command(flatten)]
    pub input: Input,
    /// Save samples and their stacks, too.
    #[arg(long)]
    pub with_samples: bool,
}

/// `chronosym merge`.
#[derive(Debug, Args)]
pub struct Merge {
    #[command(flatten)]
    pub input: PlainInput,
    /// Save samples and their stacks, too; each input must have them.
    #[arg(long)]
    pub with_samples: bool,
}

/// `chronosym export`.
#[derive(Debug, Args)]
pub struct Export {
    /// Traces to read, each a recording of its own, unless --join.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Write the tables to DIR, which need not exist.
    #[arg(long = "output", short, value_name = "DIR", required = true)]
    pub output_dir: PathBuf,
    /// Format of the files.
    #[arg(long, value_enum, default_value = "parquet")]
    pub format: ExportFormat,
    /// Write names and lines of frames (default).
    #[arg(long)]
    pub named: bool,
    /// Write addresses of frames only: those in images with the image's identity.
    #[arg(long, conflicts_with = "named")]
    pub addresses: bool,
    /// Write the sums of samples that differ in time and weight only, with their stacks: one table,
    /// profiles, in place of all but diagnostics.
    #[arg(long)]
    pub sums: bool,
    /// Read all traces as one recording of one machine and time.
    #[arg(long)]
    pub join: bool,
    /// Name of the machine, unless the recording states it.
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// Id of the machine's boot, unless the recording states it.
    #[arg(long, value_name = "ID")]
    pub boot: Option<String>,
    #[command(flatten)]
    pub filters: EventFilters,
    #[command(flatten)]
    pub symbols: Symbols,
}

/// `chronosym resolve`.
#[derive(Debug, Args)]
pub struct Resolve {
    /// Format of standard input and standard output.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub stdin: AddressFormat,
    /// Folder of timelines: files of `chronosym save`, deltas, or traces.
    #[arg(long, value_name = "DIR")]
    pub timelines: PathBuf,
    /// Treat addresses as return addresses, as all but the innermost of a stack are.
    #[arg(long)]
    pub caller: bool,
    /// Keep at most N timelines open; the one that was not used for longest is closed.
    #[arg(long = "max-open", default_value_t = 256, value_name = "N", value_parser = rows)]
    pub max_open: usize,
    #[command(flatten)]
    pub symbols: Symbols,
}

/// The format of a stream of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AddressFormat {
    /// Arrow's stream format (IPC): columns key, time, address; column names, a list.
    Arrow,
    /// ClickHouse's RowBinary: String, Int64, UInt64; Array(String).
    Rowbinary,
}

/// The format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Parquet, compressed by gzip.
    Parquet,
    /// Arrow's file format (IPC).
    Arrow,
}
