//! The PDB of managed code: where it is found, and the lines in it.

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

/// What is known of a PDB that is to be found.
pub(super) struct PdbRequest<'a> {
    pub id: Option<PdbId>,
    /// Where it was written when the module was built.
    pub pdb_path: &'a str,
    /// Where the module's image was.
    pub image_path: &'a str,
    /// The image, where it is at hand.
    pub image: Option<&'a Arc<FileAt>>,
    /// The PDB itself, where the trace carries it.
    pub in_trace: Option<&'a InMemoryPdb>,
}

/// The PDB of a module.
pub(super) struct PdbFile {
    pub file: SymbolFile,
    /// The PDB that came in the trace, if that is the one used.
    in_trace: Option<Pdb>,
}

impl PdbFile {
    /// Looks in the folders, in the image, in the trace, in the stores.
    pub(super) fn find(request: &PdbRequest<'_>, files: &Files) -> Self {
        let (file, in_trace) = find(request, files);
        PdbFile { file, in_trace }
    }

    /// None: nothing says which it would be.
    pub(super) fn unknown() -> Self {
        PdbFile {
            file: SymbolFile::unidentified(),
            in_trace: None,
        }
    }

    /// A PDB that is known to be the right one.
    pub(super) fn at(found: FoundFile, at: Arc<FileAt>) -> Self {
        PdbFile {
            file: SymbolFile::at(found, at),
            in_trace: None,
        }
    }

    /// What is asked of the PDB, if it is at hand.
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

    /// The line of an IL offset.
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
            // Without an id in the module's event, the runtime's own word ties it to the module.
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

/// What an image says of its PDB.
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

/// Holds the PDB that was found to the checksum in the image; one that does not parse is none.
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

/// Whether a PDB is the wanted one; the age of portable ones means nothing.
pub(super) fn belongs(pdb: &Pdb, id: PdbId) -> bool {
    match pdb {
        Pdb::Portable(pdb) => pdb.pdb.with(|pdb| pdb.id().guid == id.guid),
        Pdb::Windows(pdb) => pdb.symbols.with(|pdb| pdb.id() == id),
    }
}
