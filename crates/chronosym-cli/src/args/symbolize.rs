//! The arguments of `symbolize`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chronosym_symbols::style::{Functions, Shape, Style};
use clap::Args;

use super::parts::{AddressQuery, Symbols};
use super::tools::Tool;
use super::values::{meant, one_of};
use crate::units::parse_address;

/// Output styles of `symbolize`.
const STYLES: [(&str, &str); 4] = [
    ("text", "Readable text"),
    ("json", "One JSON object per address"),
    (
        "llvm",
        "Like llvm-symbolizer; accepts its options and input lines",
    ),
    (
        "gnu",
        "Like addr2line; accepts its options, and assumes -f -i -C if none is given",
    ),
];

fn radix(text: &str) -> Result<u32> {
    match text {
        "10" => Ok(10),
        "16" => Ok(16),
        _ => bail!("expected 10 or 16"),
    }
}

/// Returns whether an argument of `symbolize` is the path of a log.
pub fn is_log(text: &str) -> bool {
    Path::new(text).is_file()
}

fn load_address(text: &str) -> Result<u64> {
    parse_address(text).context("expected 0x… or decimal")
}

#[derive(Debug, Args)]
pub struct Symbolize {
    /// Resolve addresses of this trace's processes.
    #[arg(long, value_name = "TRACE", conflicts_with_all = ["obj", "pdb", "rva"])]
    pub trace: Option<PathBuf>,
    /// Resolve addresses in this ELF, PE or Mach-O file, as linked (repeatable; FILE+0x… selects
    /// one of several files, FILE:PROCESSOR one image of a universal file), or in the image of a
    /// PDB. The PDB of a PE file, the dSYM bundle of a Mach-O file, and the debug file of a stripped ELF file are searched for
    /// in its folder, in --symbols, on the symbol path and, for ELF, on debuginfod servers.
    #[arg(long, value_name = "FILE")]
    pub obj: Vec<PathBuf>,
    /// Resolve addresses in the image of this Windows PDB: RVAs or, with --obj, addresses as
    /// linked. For a PDB of managed code, resolve metadata tokens with IL offsets.
    #[arg(long, value_name = "FILE")]
    pub pdb: Option<PathBuf>,
    /// Treat plain addresses of --obj as RVAs (bytes from the image's base).
    #[arg(long)]
    pub rva: bool,
    /// Load address of --obj or --pdb; plain addresses are then addresses in the process.
    #[arg(long, value_name = "ADDR", value_parser = load_address, conflicts_with_all = ["rva", "trace"])]
    pub base: Option<u64>,
    /// Read load addresses from FILE, in the format of /proc/PID/maps (also within a log); plain
    /// addresses are then addresses in the process.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["base", "trace", "rva"])]
    pub maps: Option<PathBuf>,
    /// Resolve addresses of a running process, with its mappings and its files (Linux).
    #[arg(long, value_name = "PID", conflicts_with_all = ["base", "maps", "trace", "rva"])]
    pub process_maps: Option<u32>,
    /// Use --pdb even if it belongs to another build than --obj. Its names and lines may be wrong
    /// and are marked as such.
    #[arg(long, requires_all = ["obj", "pdb"])]
    pub any_pdb: bool,
    /// Do not open other files, such as split debug information, at paths recorded in --obj.
    #[arg(long, requires = "obj")]
    pub no_recorded_paths: bool,
    #[command(flatten)]
    pub query: AddressQuery,
    /// Radix of numbers without 0x [default: 16 with --style gnu; 10 with --style llvm; otherwise 16
    /// if an argument, or the first number of standard input, has hexadecimal digits or leading
    /// zeros, else 10].
    #[arg(long, value_parser = radix, value_name = "10|16")]
    pub radix: Option<u32>,
    /// Do not show inlined functions: print one function per address, with the line of the
    /// innermost inlined call.
    #[arg(long)]
    pub no_inlines: bool,
    /// Print file names without folders (not in JSON).
    #[arg(long)]
    pub basenames: bool,
    /// Replace addresses in the text on standard input with names.
    #[arg(long, conflicts_with = "addresses")]
    pub filter: bool,
    /// Output style.
    #[arg(long, value_parser = one_of::<Style>(STYLES.map(meant)), default_value = "text")]
    pub style: Style,
    /// Write output to FILE (must not be an input file).
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub symbols: Symbols,
    /// Addresses: 0x…, decimal, module+0xrva or module!0xrva; for managed code 0x06……+0xil or
    /// Type.Method+0xil; for objects .section+0x…. Read from standard input if none is given. An
    /// existing file is read as a log and printed with names in place of addresses.
    #[arg(value_name = "ADDR|LOG")]
    pub addresses: Vec<String>,
    /// Settings from the options of another tool.
    #[arg(skip)]
    pub tool: Option<Tool>,
}

impl Symbolize {
    /// Returns what is printed of each answer.
    pub fn shape(&self) -> Shape {
        let mut shape = self
            .tool
            .as_ref()
            .map_or_else(Shape::default, |tool| tool.shape);
        shape.has_base_names |= self.basenames;
        if self.no_recorded_paths {
            shape.context_lines = 0;
        }
        shape
    }

    /// Returns whether inlined functions are looked up. Without them, llvm-symbolizer prints the
    /// symbol's name with the innermost line; otherwise the tools print the innermost function.
    pub fn wants_inlines(&self) -> bool {
        let shape = self.shape();
        let is_symbol = self.style == Style::Llvm && shape.functions == Functions::Linkage;
        !(self.no_inlines || is_symbol && shape.is_innermost)
    }

    /// Returns whether anything states where addresses are resolved, or names files to search.
    pub fn has_source(&self) -> bool {
        let is_named = self.trace.is_some() || self.pdb.is_some() || self.process_maps.is_some();
        let is_searched = self.symbols.trust_trace_paths || !self.symbols.symbols.is_empty();
        is_named || is_searched || !self.obj.is_empty() || self.maps.is_some()
    }
}
