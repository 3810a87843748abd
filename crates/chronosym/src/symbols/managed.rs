//! The PDB of managed code: where it is found, and the lines in it.

use std::path::Path;

use chronosym_pdb::metadata::{Table, Token};
use chronosym_pdb::pe::DebugKind;
use chronosym_symbols::identity::{PdbFormat, PdbId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{NoFile, Place};

use super::open::{ImageParts, ManagedPdb, OpenFiles};
use super::search::{FoundFile, Search, SymbolFile, pdb_names, pdb_paths};
use crate::evidence::LineReason;
use crate::frame::SourceLine;
use crate::il_map::IlOffset;

/// What is known of a PDB that is to be found.
pub(super) struct Clues<'a> {
    pub id: Option<PdbId>,
    /// Where it was written when the module was built.
    pub pdb_path: &'a str,
    /// Where the module's image was.
    pub image_path: &'a str,
    /// The image, where it is at hand.
    pub image: Option<&'a Path>,
    /// The PDB itself, where the trace carries it.
    pub in_trace: Option<&'a [u8]>,
}

/// The PDB of a module.
pub(super) struct PdbFile {
    pub file: SymbolFile,
    /// The PDB that came in the trace, if that is the one used.
    in_trace: Option<ManagedPdb>,
}

impl PdbFile {
    /// Looks in the folders, in the image, in the trace, in the stores.
    pub(super) fn find(clues: &Clues<'_>, search: &Search, files: &OpenFiles) -> Self {
        let (file, in_trace) = find(clues, search, files);
        PdbFile { file, in_trace }
    }

    /// The line of an IL offset.
    pub(super) fn line(
        &self,
        files: &OpenFiles,
        token: u32,
        il: IlOffset,
    ) -> Result<SourceLine, LineReason> {
        let token = Token(token);
        if token.table() != Table::METHOD_DEF || token.row() == 0 {
            return Err(LineReason::NoLineInfo);
        }
        let ask = |pdb: &ManagedPdb| pdb.line(token, il);
        let line = match (&self.file.found, &self.in_trace) {
            (Err(_), _) => return Err(self.file.line_reason()),
            (Ok(FoundFile::File(path)), _) => files.pdb(path, ask),
            (Ok(FoundFile::Embedded(path)), _) => files.embedded_pdb(path, ask),
            (Ok(FoundFile::InTrace), Some(pdb)) => ask(pdb),
            (Ok(FoundFile::InTrace), None) => Ok(None),
        };
        match line {
            Ok(Some(line)) => Ok(line),
            Ok(None) => Err(LineReason::NoSequencePoint),
            Err(_) => Err(LineReason::SymbolFileDamaged),
        }
    }
}

fn find(clues: &Clues<'_>, search: &Search, files: &OpenFiles) -> (SymbolFile, Option<ManagedPdb>) {
    let Clues { id, image, .. } = *clues;
    let mut file = SymbolFile::unidentified();
    let names = pdb_names(clues.pdb_path, clues.image_path);
    let paths = pdb_paths(clues.pdb_path, clues.image_path);
    let facts = image
        .and_then(|path| files.image(path, image_facts).ok())
        .unwrap_or_default();
    let wanted = id.map(|id| Wanted::Pdb {
        id,
        stamp: facts.stamp,
        format: PdbFormat::Any,
    });
    file.wanted.clone_from(&wanted);

    let look = |file: &mut SymbolFile, stores| {
        let Some(wanted) = &wanted else { return };
        if let Some(outcome) = search.find(wanted, &names, &paths, stores).get() {
            file.or(outcome);
        }
        verify(file, &facts, files);
    };
    look(&mut file, false);
    if file.found.is_ok() {
        return (file, None);
    }
    if let (Some(image), Some(id)) = (image, id) {
        match files.embedded_pdb(image, |pdb| Ok(belongs(pdb, id))) {
            Ok(true) => file.found = Ok(FoundFile::Embedded(image.to_owned())),
            Err(why) if facts.embeds => file.damaged(image, why),
            _ => {}
        }
        if file.found.is_ok() {
            return (file, None);
        }
    }
    if let Some(bytes) = clues.in_trace {
        match ManagedPdb::open(FileData::from(bytes)) {
            // Without an id in the module's event, the runtime's own word ties it to the module.
            Ok(pdb) if id.is_none_or(|id| belongs(&pdb, id)) => {
                file.found = Ok(FoundFile::InTrace);
                return (file, Some(pdb));
            }
            Ok(_) => {}
            Err(why) => {
                let place = Place::Request;
                file.found = Err(NoFile::SymbolFileDamaged { place, why });
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
            .map(|sum| (sum.algorithm.into_owned(), sum.value.to_vec())),
        embeds: image
            .debug_directory()
            .any(|entry| entry.kind == DebugKind::EmbeddedPortablePdb),
    }
}

/// Holds the PDB that was found to the checksum in the image; one that does not parse is none.
fn verify(file: &mut SymbolFile, facts: &ImageFacts, files: &OpenFiles) {
    let Some(path) = file.path().map(Path::to_owned) else {
        return;
    };
    let verdict = files.pdb(&path, |pdb| {
        if let (ManagedPdb::Portable(pdb), Some((algorithm, sum))) = (pdb, &facts.checksum)
            && pdb.with(|pdb| pdb.verify_checksum(algorithm, sum)) == Some(false)
        {
            return Err("its checksum is not the one in the image".to_owned());
        }
        Ok(())
    });
    if let Err(why) = verdict {
        file.damaged(&path, why);
    }
}

/// Whether a PDB is the wanted one; the age of portable ones means nothing.
fn belongs(pdb: &ManagedPdb, id: PdbId) -> bool {
    match pdb {
        ManagedPdb::Portable(pdb) => pdb.with(|pdb| pdb.id().guid == id.guid),
        ManagedPdb::Windows(pdb) => pdb.with(|pdb| pdb.matches(id.guid.0, id.age)),
    }
}
