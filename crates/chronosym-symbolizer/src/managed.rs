//! The PDB of a managed module: finds it, and reads lines from it.

use std::sync::Arc;

use chronosym_pdb::metadata::{Table, Token};
use chronosym_symbols::identity::{PdbFormat, PdbId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{NoFile, SearchLocation};

use crate::files::{FileError, Files};
use crate::pdb::{EmbeddedPdb, Pdb};
use crate::pe::{ImageFile, ImageParts};
use crate::search::{FileAt, FileRequest, FoundFile, SymbolFile};
use chronosym_core::IlOffset;
use chronosym_core::InMemoryPdb;
use chronosym_core::LineReason;
use chronosym_core::SourceLine;

/// The known properties of a PDB to search for.
pub(super) struct PdbRequest<'a> {
    pub id: Option<PdbId>,
    /// The path to which the compiler wrote it.
    pub pdb_path: &'a str,
    /// The path of the module's image.
    pub image_path: &'a str,
    /// The image, if available.
    pub image: Option<&'a Arc<FileAt>>,
    /// The PDB itself, if the trace contains it.
    pub in_trace: Option<&'a InMemoryPdb>,
}

/// The PDB of a module.
pub(super) struct PdbFile {
    pub file: SymbolFile,
    /// The PDB contained in the trace, if that is the one used.
    in_trace: Option<Pdb>,
}

impl PdbFile {
    /// Searches the folders, the image, the trace and the stores, in this order.
    pub(super) fn find(request: &PdbRequest<'_>, files: &Files) -> Self {
        let (file, in_trace) = find(request, files);
        PdbFile { file, in_trace }
    }

    /// Returns a PDB without identity, which cannot be searched for.
    pub(super) fn unknown() -> Self {
        PdbFile {
            file: SymbolFile::unidentified(),
            in_trace: None,
        }
    }

    /// Returns a PDB that is known to be the right one.
    pub(super) fn at(found: FoundFile, at: Arc<FileAt>) -> Self {
        PdbFile {
            file: SymbolFile::at(found, at),
            in_trace: None,
        }
    }

    /// Calls a function with the open PDB, if it is available.
    pub(super) fn with_pdb<R>(
        &self,
        files: &Files,
        ask: impl FnOnce(&Pdb) -> R,
    ) -> Option<Result<R, FileError>> {
        let (found, at) = (self.file.found.as_ref().ok()?, self.file.at.as_ref());
        Some(match (found, at, &self.in_trace) {
            (FoundFile::File(_), Some(at), _) => files.open::<Pdb>(at).map(|pdb| ask(&pdb)),
            (FoundFile::Embedded(_), Some(at), _) => {
                files.open::<EmbeddedPdb>(at).map(|pdb| ask(&pdb.0))
            }
            (FoundFile::InTrace, _, Some(pdb)) => Ok(ask(pdb)),
            _ => return None,
        })
    }

    /// Returns the line of an IL offset.
    pub(super) fn line(
        &self,
        files: &Files,
        token: u32,
        il: IlOffset,
    ) -> Result<SourceLine, LineReason> {
        let token = Token(token);
        if token.table() != Table::METHOD_DEF || token.row() == 0 {
            return Err(LineReason::NoLineInfo);
        }
        match self.with_pdb(files, |pdb| pdb.line(token, il)) {
            Some(Ok(Ok(line))) => line.ok_or(LineReason::NoSequencePoint),
            Some(_) => Err(LineReason::SymbolFileDamaged),
            None => Err(self.file.line_reason()),
        }
    }
}

fn find(request: &PdbRequest<'_>, files: &Files) -> (SymbolFile, Option<Pdb>) {
    let PdbRequest { id, image, .. } = *request;
    let mut file = SymbolFile::unidentified();
    let facts = image
        .and_then(|at| files.open::<ImageFile>(at).ok())
        .map(|image| image.with(image_facts))
        .unwrap_or_default();
    let wanted = id.map(|id| {
        let wanted = Wanted::Pdb {
            id,
            stamp: facts.stamp,
            format: PdbFormat::Any,
        };
        FileRequest::pdb(wanted, request.pdb_path, request.image_path)
    });
    file.wanted = wanted.as_ref().map(|wanted| wanted.wanted.clone());

    let look = |file: &mut SymbolFile, stores| {
        let Some(wanted) = &wanted else { return };
        file.or(&files.search.find(wanted, stores));
        verify(file, &facts, files);
    };
    look(&mut file, false);
    if file.found.is_ok() {
        return (file, None);
    }
    if let (Some(image), Some(id)) = (image, id) {
        match files.open::<EmbeddedPdb>(image) {
            Ok(pdb) if belongs(&pdb.0, id) => {
                file.found = Ok(FoundFile::Embedded(image.path.clone()));
                file.at = Some(Arc::clone(image));
                return (file, None);
            }
            Err(why) if facts.embeds => file.damaged(&image.path, why),
            _ => {}
        }
    }
    if let Some(bytes) = request.in_trace {
        match Pdb::parse(FileData::from(bytes.shared())) {
            // Without an id in the module's event, the PDB matches because the runtime itself
            // supplied it.
            Ok(pdb) if id.is_none_or(|id| belongs(&pdb, id)) => {
                file.found = Ok(FoundFile::InTrace);
                return (file, Some(pdb));
            }
            Ok(_) => {}
            Err(why) => {
                file.found = Err(NoFile::SymbolFileDamaged {
                    location: SearchLocation::Request,
                    why: why.to_string(),
                });
            }
        }
    }
    look(&mut file, true);
    (file, None)
}

/// The properties of a PDB that its image records.
#[derive(Default)]
struct ImageFacts {
    stamp: Option<u32>,
    checksum: Option<(String, Vec<u8>)>,
    embeds: bool,
}

fn image_facts(parts: &ImageParts<'_>) -> ImageFacts {
    let image = &parts.image;
    let codeview = image.portable_codeview();
    ImageFacts {
        stamp: codeview.map(|codeview| codeview.stamp),
        checksum: image
            .pdb_checksum()
            .map(|sum| (sum.algorithm, sum.value.to_vec())),
        embeds: image.embeds_portable_pdb(),
    }
}

/// Checks the PDB against the checksum in the image. A PDB that cannot be parsed is rejected.
fn verify(file: &mut SymbolFile, facts: &ImageFacts, files: &Files) {
    let Some(at) = file.file().cloned() else {
        return;
    };
    let check = || {
        if let (Pdb::Portable(pdb), Some((algorithm, sum))) =
            (&*files.open::<Pdb>(&at)?, &facts.checksum)
            && pdb.pdb.with(|pdb| pdb.verify_checksum(algorithm, sum)) == Some(false)
        {
            return Err(FileError::Checksum);
        }
        Ok(())
    };
    if let Err(why) = check() {
        file.damaged(&at.path, why);
    }
}

/// Returns whether a PDB has an id. The age of portable PDBs is ignored.
pub(super) fn belongs(pdb: &Pdb, id: PdbId) -> bool {
    match pdb {
        Pdb::Portable(pdb) => pdb.pdb.with(|pdb| pdb.id().guid == id.guid),
        Pdb::Windows(pdb) => pdb.symbols.with(|pdb| pdb.id() == id),
    }
}
