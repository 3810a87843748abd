//! Open PDBs of either format.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chronosym_pdb::metadata::Token;
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::portable::PortablePdb;
use chronosym_pdb::pretty::split_name;
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::{Answers, PdbSymbols, Query};
use chronosym_types::hash::HashMap;

use crate::files::{FileError, Frames, Open};
use crate::object::native_frames;
use crate::parsed::parsed;
use crate::search::{FileAt, Search};
use crate::texts::Texts;
use chronosym_core::SourceLine;
use chronosym_core::{IlOffset, IlSource};

/// Maximum size of an embedded PDB after decompression, in bytes.
const MAX_EMBEDDED: usize = 256 << 20;

parsed! {
    /// A portable PDB, parsed.
    Portable, PortableCell: FileData => PortablePdb
}

/// A PDB of either format.
pub(super) enum Pdb {
    Portable(PortableFile),
    Windows(WindowsFile),
}

impl Open for Pdb {
    fn open(_: &FileAt, data: FileData, search: &Search) -> Result<Self, FileError> {
        let mut pdb = Pdb::parse(data)?;
        if let (Pdb::Windows(pdb), Some(cache)) = (&mut pdb, search.config().symbol_cache()) {
            pdb.symbols.use_cache(cache);
        }
        Ok(pdb)
    }

    fn convert(&self) -> u64 {
        match self {
            Pdb::Portable(_) => 0,
            Pdb::Windows(pdb) => pdb.symbols.convert(),
        }
    }
}

impl Pdb {
    /// Parses a PDB; the format is detected from the content.
    pub(super) fn parse(data: FileData) -> chronosym_pdb::Result<Self> {
        if PortablePdb::sniff(&data) {
            Ok(Pdb::Portable(PortableFile {
                pdb: Portable(PortableCell::try_new(data, |data| {
                    PortablePdb::parse(data)
                })?),
                documents: Mutex::default(),
                rows: OnceLock::new(),
            }))
        } else {
            Ok(Pdb::Windows(WindowsFile {
                symbols: PdbSymbols::open(data)?,
                texts: Texts::default(),
            }))
        }
    }

    /// Returns whether it describes managed code.
    pub(super) fn is_managed(&self) -> bool {
        match self {
            Pdb::Portable(_) => true,
            Pdb::Windows(file) => file.symbols.with(|pdb| pdb.is_managed()),
        }
    }

    /// Returns the line of an IL offset (rule 14), if the PDB has one.
    pub(super) fn line(
        &self,
        token: Token,
        il: IlOffset,
    ) -> chronosym_pdb::Result<Option<SourceLine>> {
        match self {
            Pdb::Portable(pdb) => Ok(pdb.line(token, il)),
            Pdb::Windows(pdb) => pdb.managed_line(token, il),
        }
    }
}

/// The PDB embedded in an image.
pub(super) struct EmbeddedPdb(pub Pdb);

impl Open for EmbeddedPdb {
    fn open(_: &FileAt, data: FileData, _: &Search) -> Result<Self, FileError> {
        let pdb = PeImage::parse(&data)?.embedded_portable_pdb(MAX_EMBEDDED)?;
        let pdb = pdb.ok_or(FileError::NoPdb)?;
        Ok(EmbeddedPdb(Pdb::parse(FileData::from(pdb))?))
    }
}

/// Average bytes budgeted for reading one document name, valid or not.
const NAME: usize = 1 << 10;
const LONGEST_NAME: usize = 32 << 10;

/// A portable PDB.
pub(super) struct PortableFile {
    pub pdb: Portable,
    /// By document row: building a path takes longer than finding a line.
    documents: Mutex<HashMap<u32, Option<Arc<str>>>>,
    /// Document rows by the hash of the document's name.
    rows: OnceLock<HashMap<u64, u32>>,
}

impl PortableFile {
    /// Returns the row of a document; the first of several with one name.
    pub fn row(&self, pdb: &PortablePdb<'_>, name: &str) -> Option<u32> {
        let rows = self.rows.get_or_init(|| {
            let mut rows = HashMap::default();
            // All documents may share one long name.
            let mut room = pdb.documents().count().saturating_mul(NAME).max(1 << 20);
            for row in pdb.documents() {
                let name = pdb.document(row).map(|document| document.name);
                let len = name.as_ref().map_or(LONGEST_NAME, String::len);
                let Some(left) = room.checked_sub(len) else {
                    break;
                };
                room = left;
                if let Some(name) = name {
                    let hash = rows.hasher().hash_one(&*name);
                    rows.entry(hash).or_insert(row);
                }
            }
            rows
        });
        rows.get(&rows.hasher().hash_one(name)).copied()
    }

    fn line(&self, token: Token, il: IlOffset) -> Option<SourceLine> {
        self.pdb.with(|pdb| {
            let answer = pdb.line_at(token.row(), il.offset).or_else(|| {
                // A prolog maps to the method's first sequence point, at any offset.
                let prolog = il.source == IlSource::Prolog;
                prolog.then(|| pdb.first_line(token.row())).flatten()
            })?;
            let mut documents = self
                .documents
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let file = documents
                .entry(answer.document)
                .or_insert_with(|| Some(pdb.document(answer.document)?.name.into()))
                .clone()?;
            let column = Some(answer.start_column).filter(|&column| column > 0);
            Some(SourceLine::new(file, answer.start_line, column))
        })
    }
}

/// A Windows PDB.
pub(super) struct WindowsFile {
    pub symbols: PdbSymbols,
    texts: Texts,
}

impl WindowsFile {
    fn managed_line(
        &self,
        token: Token,
        il: IlOffset,
    ) -> chronosym_pdb::Result<Option<SourceLine>> {
        self.symbols.with(|pdb| {
            let found = pdb.managed_line(token.0, il.offset)?;
            Ok(found.and_then(|found| {
                let path = found.file.as_deref()?;
                Some(self.texts.line(path, found.line, found.column))
            }))
        })
    }

    /// Returns the frames at an RVA, innermost first.
    pub(super) fn frames(&self, rva: u32) -> Frames {
        let mut query = Query::default();
        query.threads = 1;
        let mut answers = Answers::new();
        self.symbols.find_all(&[rva.into()], &query, &mut answers);
        let answer = answers.get(0);
        let mut frames = answer.map_or(Ok(Vec::new()), |answer| {
            native_frames(answer, &self.texts, |_| None)
        })?;
        // Only PDBs of precompiled .NET Framework images have no section headers.
        if self.symbols.with(|pdb| pdb.assumed_image_size().is_some()) {
            for frame in &mut frames {
                if let Some(name) = event_name(&frame.name) {
                    (frame.name, frame.managed) = (self.texts.get(name), true);
                }
            }
        }
        Ok(frames)
    }
}

/// Returns the name that method events have for a public of a precompiled .NET Framework image: no
/// parameters, and no type arguments of the method. `None` for code that is not a method.
fn event_name(public: &str) -> Option<&str> {
    let (name, _) = public.split_once('(')?;
    let (_, method) = split_name(name)?;
    let arguments = method.find('[').map_or(0, |at| method.len() - at);
    Some(&name[..name.len() - arguments])
}

#[cfg(test)]
mod tests {
    use super::event_name;

    #[test]
    fn publics_of_precompiled_images_are_named_as_in_events() {
        for (public, name) in [
            ("N.T.M(Int32, System.String)", "N.T.M"),
            ("N.T..ctor()", "N.T..ctor"),
            (
                "N.O`1+I[System.__Canon].M(Int32)",
                "N.O`1+I[System.__Canon].M",
            ),
            ("N.T`1[[A, B]].M[System.__Canon](!!0)", "N.T`1[[A, B]].M"),
            (
                "N.T.System.IDisposable.Dispose()",
                "N.T.System.IDisposable.Dispose",
            ),
            ("N.T+<>c.<M>b__0_0(N.T)", "N.T+<>c.<M>b__0_0"),
        ] {
            assert_eq!(event_name(public), Some(name));
        }
        for other in ["JIT_New", "", "(", "a(b"] {
            assert_eq!(event_name(other), None);
        }
    }
}
