//! An open PDB: its streams and the cache of decoded modules.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::address_map::AddressMap;
use super::dbi::{Dbi, ModuleInfo, ModuleList};
use super::inline;
use super::module::Module;
use super::msf::{MAGIC, Msf};
use super::pdb_stream::{PdbStream, StringTable};
use super::publics::Publics;
use super::types::Types;
use crate::{Error, PdbId, Result};

/// A Windows PDB.
#[derive(Debug)]
pub struct WindowsPdb<'a> {
    pub(super) msf: Msf<'a>,
    pub(super) info: PdbStream,
    pub(super) dbi: Option<Dbi<'a>>,
    pub(super) addresses: AddressMap,
    pub(super) publics: Option<Publics>,
    pub(super) types: Types,
    modules: OnceLock<Result<Modules<'a>>>,
    names: OnceLock<Result<StringTable<'a>>>,
    pub(super) methods: OnceLock<Box<[MethodRecord]>>,
    /// Bytes left for decoded inline sites.
    pub(super) budget: inline::Budget,
    /// See [`WindowsPdb::bytes_read`].
    read: AtomicU64,
}

/// The record of a managed method.
#[derive(Debug, Clone, Copy)]
pub(super) struct MethodRecord {
    pub(super) token: u32,
    pub(super) module: u32,
    pub(super) procedure: u32,
}

/// A module that has been read; `None` if it has no symbols.
type ModuleSlot<'a> = OnceLock<Result<Option<Box<Module<'a>>>>>;

/// The module list and the modules read so far.
#[derive(Debug)]
pub(super) struct Modules<'a> {
    pub(super) list: ModuleList<'a>,
    read: Box<[ModuleSlot<'a>]>,
    /// Index by lower-case name, made for the first import.
    by_name: OnceLock<HashMap<Box<[u8]>, usize>>,
}

/// Information that a PDB lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Limitation {
    /// Made with `/DEBUG:FASTLINK`: procedures and lines are in the object files.
    #[error("made with /DEBUG:FASTLINK, its procedures and lines are in the object files")]
    FastLink,
    /// No DBI stream: the file has types only.
    #[error("holds types only, no debug information")]
    NoDebugInformation,
    /// No section headers: RVAs cannot be converted.
    #[error("has no section headers, so addresses cannot be resolved")]
    NoSectionHeaders,
    /// Section sizes but no section headers: RVAs are those of the usual layout
    /// ([`WindowsPdb::assumed_image_size`]).
    #[error("has no section headers, its sections are assumed to be contiguous pages")]
    AssumedSections,
    /// No section contributions: a stripped PDB, with public symbols only.
    #[error("stripped, holds public symbols only")]
    PublicsOnly,
}

impl<'a> WindowsPdb<'a> {
    /// Returns whether `data` starts with the signature of an MSF 7.00 file.
    pub fn sniff(data: &[u8]) -> bool {
        data.starts_with(MAGIC)
    }

    /// Opens a PDB from its bytes.
    ///
    /// # Errors
    ///
    /// [`Error::NotA`] for another format (its text distinguishes portable PDBs, MSFZ containers
    /// and MSF 2.00 files); [`Error::Truncated`] if the file is shorter than its header states;
    /// [`Error::Damaged`] and [`Error::Unsupported`] for an invalid header or directory.
    pub fn open(data: &'a [u8]) -> Result<Self> {
        let msf = Msf::open(data)?;
        let info = PdbStream::read(&msf)?;
        let dbi = Dbi::read(&msf)?;
        let (mut addresses, mut publics) = (AddressMap::default(), None);
        if let Some(dbi) = &dbi {
            addresses = AddressMap::read(&msf, &dbi.debug_header, &dbi.section_map)?;
            if let (Some(stream), Some(records)) = (dbi.publics, dbi.symbol_records) {
                publics = Publics::read(&msf, stream, records)?;
            }
        }
        Ok(Self {
            types: Types::read(&msf)?,
            msf,
            info,
            dbi,
            addresses,
            publics,
            modules: OnceLock::new(),
            names: OnceLock::new(),
            methods: OnceLock::new(),
            budget: inline::Budget::default(),
            read: AtomicU64::new(0),
        })
    }

    /// Returns the id, which equals the one in the image's CodeView entry. The age is that of the
    /// DBI stream: the age of the PDB stream also grows when a tool writes to the file, such as
    /// source indexing.
    pub fn id(&self) -> PdbId {
        PdbId {
            guid: self.info.guid,
            age: self.dbi.as_ref().map_or(self.info.age, |dbi| dbi.age),
        }
    }

    /// Returns the size in bytes of the image that the PDB assumes, if it has no section headers
    /// and its sections are assumed to follow each other page by page, as in precompiled .NET
    /// Framework images. An image of another size has another layout, and its RVAs cannot be looked
    /// up.
    pub fn assumed_image_size(&self) -> Option<u32> {
        self.addresses.assumed_end
    }

    /// Returns the information that the file lacks.
    pub fn limitations(&self) -> impl Iterator<Item = Limitation> + use<> {
        let modules = self.dbi.as_ref().is_some_and(Dbi::has_contributions);
        [
            (self.info.fastlink, Limitation::FastLink),
            (self.dbi.is_none(), Limitation::NoDebugInformation),
            (self.addresses.is_empty(), Limitation::NoSectionHeaders),
            (
                self.addresses.assumed_end.is_some(),
                Limitation::AssumedSections,
            ),
            (!modules, Limitation::PublicsOnly),
        ]
        .into_iter()
        .filter_map(|(lacks, limit)| lacks.then_some(limit))
    }

    /// Returns the size in bytes of all modules read so far: nearly all of the mapping that lookups
    /// make resident. To keep a sorted batch over a large file small, release the pages
    /// (`MADV_DONTNEED`) whenever this has grown by about 100 MB; they remain in the page cache.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Relaxed)
    }

    pub(super) fn modules(&self) -> Result<&Modules<'a>> {
        let read = || {
            let list = match &self.dbi {
                Some(dbi) => dbi.modules(&self.msf)?,
                None => ModuleList::default(),
            };
            Ok(Modules {
                read: (0..list.len()).map(|_| OnceLock::new()).collect(),
                by_name: OnceLock::new(),
                list,
            })
        };
        self.modules
            .get_or_init(read)
            .as_ref()
            .map_err(Error::clone)
    }

    /// Returns the module `index`; `None` if it does not exist or has no symbols.
    pub(super) fn module(&self, index: usize) -> Result<Option<&Module<'a>>> {
        let modules = self.modules()?;
        let Some(slot) = modules.read.get(index) else {
            return Ok(None);
        };
        let read = || {
            let Some(info) = modules.list.get(index) else {
                return Ok(None);
            };
            Ok(self.read_module(&info)?.map(Box::new))
        };
        match slot.get_or_init(read) {
            Ok(module) => Ok(module.as_deref()),
            Err(error) => Err(error.clone()),
        }
    }

    /// Reads a module without caching it.
    pub(super) fn read_module(&self, info: &ModuleInfo<'_>) -> Result<Option<Module<'a>>> {
        let size = u64::from(info.symbols).saturating_add(info.c13.into());
        self.read.fetch_add(size, Relaxed);
        Module::read(&self.msf, info)
    }

    pub(super) fn string_table(&self) -> Result<&StringTable<'a>> {
        let read = || StringTable::read(&self.msf, &self.info);
        self.names.get_or_init(read).as_ref().map_err(Error::clone)
    }
}

impl Modules<'_> {
    pub(super) fn position(&self, name: &[u8]) -> Option<usize> {
        let make = || {
            let name = |index| {
                Some((
                    self.list.get(index)?.name.to_ascii_lowercase().into(),
                    index,
                ))
            };
            (0..self.list.len()).rev().filter_map(name).collect()
        };
        let by_name = self.by_name.get_or_init(make);
        by_name.get(&*name.to_ascii_lowercase()).copied()
    }
}
