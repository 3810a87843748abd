//! Limits of time and memory, in one place.

use std::fmt;

/// Bounds on the cost of hostile or corrupt input. Data beyond a limit is left out; a diagnostic or
/// error names the limit, and everything read before stays valid.
///
/// `let mut limits = Limits::default(); limits.layers = 2;` sets one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum size in bytes to which the compression layers of one recording (zip, gzip) may
    /// decompress, and of a pipe's copy in a temporary file. 64 GiB: more than the largest traces
    /// in use; streamed data takes neither memory nor disk.
    pub unpacked_bytes: u64,
    /// Maximum ratio of unpacked to packed size. 200: real traces compress five- to tenfold,
    /// crafted input a thousandfold. The first 512 MiB are exempt, for preallocated files that are
    /// mostly zeros. For data held in memory at once (perf maps, open packets of LTTng) the ratio
    /// is a quarter, and 16 MiB are exempt.
    pub unpacked_ratio: u64,
    /// Files in a zip archive. 65,536: archives of PerfView and perfcollect have hundreds.
    pub zip_entries: usize,
    /// Nested archives and compression layers. 8: real traces have at most two.
    pub layers: u32,
    /// Bytes of an unpacked perf map, held in memory at once. 256 MiB: about three million methods.
    pub perf_map_bytes: u64,
    /// Maximum memory in bytes for reading and resolving a recording ([`Budget`](crate::Budget)).
    /// `None` is the default: 256 MiB, or 16 times the input if that is more, where compressed
    /// input counts eightfold; 1 GiB for a pipe.
    pub memory: Option<u64>,
    /// Nodes of a call tree in one output: a small file with a stack shared by thousands of threads
    /// unfolds to a tree of any size. `None` is the default: [`REPORT_NODES`](Self::REPORT_NODES) in
    /// a report, and elsewhere as many as [`memory`](Self::memory) permits.
    pub tree_nodes: Option<u32>,
    /// Runtime events (collections, exceptions, compilations, …) in one output. 1,000,000, about 40
    /// MB and their text: a service that compiles 100,000 methods has a quarter of that.
    pub markers: usize,
    /// Samples in one report. 2,000,000, which take about 8 MB: further ones are merged. `serve` has
    /// all of them.
    pub report_samples: usize,
    /// Bytes of one file from a symbol server, packed or unpacked. 4 GiB: no PDB in common use is
    /// larger.
    pub download_bytes: u64,
    /// Bytes of symbol files that are mapped at a time. 4 GiB, mostly of address space; the least
    /// recently used file is closed.
    pub open_symbol_bytes: u64,
    /// Bytes of decoded symbol data that are cached. 512 MiB: the tables of a browser's debug
    /// information. Data beyond it is decoded again.
    pub symbol_memory_bytes: u64,
    /// Average number of units for which each DWARF line table is read. 4: a table belongs to one
    /// unit or a few; thousands of units in a small file that name one large table would take
    /// hours.
    pub line_share: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            unpacked_bytes: 64 << 30,
            unpacked_ratio: 200,
            zip_entries: 1 << 16,
            layers: 8,
            perf_map_bytes: 256 << 20,
            memory: None,
            tree_nodes: None,
            markers: 1_000_000,
            report_samples: 2_000_000,
            download_bytes: 4 << 30,
            open_symbol_bytes: 4 << 30,
            symbol_memory_bytes: 512 << 20,
            line_share: 4,
        }
    }
}

impl Limits {
    /// Nodes of the call trees of a report by default: a browser takes too long for more.
    pub const REPORT_NODES: u32 = 1_500_000;

    /// Returns the number of unpacked bytes of `packed` that may be held in memory at once.
    pub fn held_of(&self, packed: u64) -> u64 {
        const FREE: u64 = 16 << 20;
        packed.saturating_mul(self.held_ratio()).max(FREE)
    }

    /// Returns the ratio of unpacked to packed size for data held in memory at once. Real input
    /// with little padding unpacks to ten or twenty times its size.
    pub fn held_ratio(&self) -> u64 {
        self.unpacked_ratio / 4
    }
}

/// Unpacked bytes exempt from [`Limits::unpacked_ratio`].
pub const FREE_OF_RATIO: u64 = 512 << 20;

/// A limit that was reached, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitReached {
    /// [`Limits::unpacked_bytes`].
    UnpackedBytes(u64),
    /// [`Limits::unpacked_ratio`].
    UnpackedRatio(u64),
    /// [`Limits::zip_entries`].
    ZipEntries(usize),
    /// [`Limits::layers`].
    Layers(u32),
    /// [`Limits::perf_map_bytes`].
    PerfMapBytes(u64),
    /// [`Limits::memory`].
    Memory(u64),
    /// [`Limits::tree_nodes`].
    TreeNodes(u32),
    /// [`Limits::markers`].
    Markers(usize),
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, what, most, unit) = self.row();
        let option = name.replace('_', "-");
        write!(
            f,
            "{what} more than {most} {unit} (limit {name}: --max-{option} raises it)"
        )
    }
}

impl LimitReached {
    /// Returns the limit's name and the parts of its message.
    fn row(&self) -> (&'static str, &'static str, u64, &'static str) {
        match *self {
            Self::UnpackedBytes(n) => ("unpacked_bytes", "it unpacks to", n, "bytes"),
            Self::UnpackedRatio(n) => ("unpacked_ratio", "it unpacks to", n, "times its size"),
            Self::ZipEntries(n) => ("zip_entries", "it has", n as u64, "entries"),
            Self::Layers(n) => ("layers", "it is wrapped", n.into(), "times"),
            Self::PerfMapBytes(n) => ("perf_map_bytes", "the perf map has", n, "bytes"),
            Self::Memory(n) => ("memory", "it takes", n, "bytes of memory"),
            Self::TreeNodes(n) => ("tree_nodes", "the call tree has", n.into(), "nodes"),
            Self::Markers(n) => ("markers", "there are", n as u64, "events to mark"),
        }
    }
}

impl std::error::Error for LimitReached {}
