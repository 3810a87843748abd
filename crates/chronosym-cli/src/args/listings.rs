//! The arguments of the commands that list what a trace contains.

use chronosym_export::Pattern;
use clap::{Args, ValueEnum};

use super::parts::{AddressQuery, EventFilters, Filters, InfoFormat, Input, PlainInput};
use super::values::rows;

#[derive(Debug, Args)]
pub struct Info {
    #[command(flatten)]
    pub input: Input,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}

#[derive(Debug, Args)]
pub struct Events {
    #[command(flatten)]
    pub input: PlainInput,
    #[command(flatten)]
    pub filters: EventFilters,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: EventFormat,
    /// Print at most N events [default: all].
    #[arg(long = "most", short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub max_lines: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EventFormat {
    Text,
    Jsonl,
}

#[derive(Debug, Args)]
pub struct Listing {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub filters: Filters,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
    /// List at most N entries of each process [default: all].
    #[arg(long = "most", short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = rows)]
    pub max_lines: Option<usize>,
}

#[derive(Debug, Args)]
pub struct Methods {
    #[command(flatten)]
    pub listing: Listing,
    /// Show only bodies that match PATTERN.
    #[arg(long = "match", value_name = "PATTERN", value_parser = Pattern::new)]
    pub matching: Option<Pattern>,
}

#[derive(Debug, Args)]
pub struct Explain {
    #[command(flatten)]
    pub input: Input,
    /// Address: 0x… or decimal.
    #[arg(value_name = "ADDR")]
    pub address: String,
    #[command(flatten)]
    pub query: AddressQuery,
    /// Output format.
    #[arg(long, value_enum, default_value = "text")]
    pub format: InfoFormat,
}
