//! What reading may cost, in one place.

use std::fmt;

/// The most that hostile or broken input may cost. A limit that is reached costs what lies beyond it: that is said in a
/// note or an error that names the limit, and what was read before stays.
///
/// `let mut limits = Limits::default(); limits.layers = 2;` sets one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes that the wrappers of one recording (zip, gzip) may unpack to, and that are kept of a pipe in a temporary
    /// file. 64 GiB: more than the largest traces that people keep; what streams through takes neither memory nor disk.
    pub unpacked_bytes: u64,
    /// How many times as large as what was read the unpacked may be. 200: traces shrink to a fifth or a tenth, made-up
    /// input to a thousandth. The first 512 MiB are free, for files of a size given in advance that are mostly zeros. Of what
    /// has to be held at once (perf maps, open packets of LTTng) it is a quarter, and 16 MiB are free.
    pub unpacked_ratio: u64,
    /// Entries of a zip file that are looked at. 65,536: what PerfView and perfcollect write has hundreds.
    pub zip_entries: usize,
    /// Wrappers in wrappers. 8: people make two.
    pub layers: u32,
    /// Bytes of a perf map, unpacked, all of which are held at once. 256 MiB: some three million methods.
    pub perf_map_bytes: u64,
    /// Nodes of a call tree that is made to be written. 1,500,000, some 150 MB: a stack that thousands of threads share is a
    /// small file and a tree of any size.
    pub tree_nodes: u32,
    /// Events of what runtimes did (collections, exceptions, compilations, …) that pictures show. 1,000,000, some 40 MB and their
    /// texts: a service that compiles 100,000 methods has a quarter of that.
    pub markers: usize,
    /// Bytes of one file from a symbol server, packed or not. 4 GiB: no PDB in common use is larger.
    pub download_bytes: u64,
    /// Bytes of symbol files that are open at a time. 4 GiB: they are mapped, so it is address space more than memory; the
    /// one that was used least lately is closed.
    pub open_symbol_bytes: u64,
    /// Bytes that are kept of what was found out of symbol files. 512 MiB: the tables of a browser's debug information; what
    /// does not fit is found out again.
    pub symbol_memory_bytes: u64,
    /// For how many units each line table of DWARF is read, on average. 4: tables are a unit's own, or shared by a few; thousands
    /// of units in a small file that name one large table would take hours.
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
            tree_nodes: 1_500_000,
            markers: 1_000_000,
            download_bytes: 4 << 30,
            open_symbol_bytes: 4 << 30,
            symbol_memory_bytes: 512 << 20,
            line_share: 4,
        }
    }
}

impl Limits {
    /// How much may be held at once of what so many bytes unpack to. What streams through may be more.
    pub fn held_of(&self, packed: u64) -> u64 {
        const FREE: u64 = 16 << 20;
        packed.saturating_mul(self.held_ratio()).max(FREE)
    }

    /// How many times its packed size may be held at once. Real input unpacks to ten or twenty times its size where most of
    /// it is no padding.
    pub fn held_ratio(&self) -> u64 {
        self.unpacked_ratio / 4
    }
}

/// Unpacked bytes for which [`Limits::unpacked_ratio`] does not count.
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
    /// The limit's name, and what is said of it.
    fn row(&self) -> (&'static str, &'static str, u64, &'static str) {
        match *self {
            Self::UnpackedBytes(n) => ("unpacked_bytes", "it unpacks to", n, "bytes"),
            Self::UnpackedRatio(n) => ("unpacked_ratio", "it unpacks to", n, "times its size"),
            Self::ZipEntries(n) => ("zip_entries", "it has", n as u64, "entries"),
            Self::Layers(n) => ("layers", "it is wrapped", n.into(), "times"),
            Self::PerfMapBytes(n) => ("perf_map_bytes", "the perf map has", n, "bytes"),
            Self::TreeNodes(n) => ("tree_nodes", "the call tree has", n.into(), "nodes"),
            Self::Markers(n) => ("markers", "there are", n as u64, "events to mark"),
        }
    }
}

impl std::error::Error for LimitReached {}
