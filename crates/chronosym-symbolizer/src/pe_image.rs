//! Names of code in a PE image, from its PDB and from the image itself.

use std::error::Error;
use std::sync::{Arc, OnceLock};

use chronosym_core::{ImageRef, LineReason, NameReason, NativeFrame, file_name};
use chronosym_symbols::Address;
use chronosym_symbols::identity::{FileIdentity, Wanted};

use crate::files::{Files, Frames};
use crate::managed::{PdbFile, PdbRequest};
use crate::object;
use crate::pdb::Pdb;
use crate::pe::ImageFile;
use crate::precompiled::code_at;
use crate::search::{ANY, FileAt, FileRequest, SymbolFile, identity};
use crate::target::{Target, Unfit};

/// The files of a PE image.
pub(super) struct PeFiles {
    pdb: SymbolFile,
    image: PrecompiledFile,
}

impl PeFiles {
    pub(super) fn find(image: &ImageRef<'_>, files: &Files) -> Self {
        let pdb = find_pdb(image, files);
        let fits = |at: &_| fits(at, image, files);
        let mut own = SymbolFile::unidentified();
        // The PDB of managed code has no native addresses.
        if let Some(request) = FileRequest::image(image) {
            match pdb.is_native_pdb() && image.il_pdb.is_none() {
                true => files.search.folders(&mut own, &request, &fits),
                false => files.search.everywhere(&mut own, &request, &fits),
            }
        }
        let image = PrecompiledFile::new(own);
        PeFiles { pdb, image }
    }

    /// Returns the approximate size in bytes, with an allowance for the PDB of the IL.
    pub(super) fn weight(&self) -> u64 {
        2 * self.pdb.weight() + self.image.file.weight()
    }

    /// Returns the file that supplies names, or the one with the most specific reason for having
    /// none.
    pub(super) fn best(&self) -> &SymbolFile {
        let (pdb, image) = (&self.pdb, &self.image.file);
        match pdb.found.is_err() && (image.found.is_ok() || pdb.wanted.is_none()) {
            true => image,
            false => pdb,
        }
    }

    /// Returns the frames at an RVA, innermost first; none if the files have no name for it.
    pub(super) fn frames(&self, files: &Files, rva: u64) -> Frames {
        let pdb = match self.pdb_frames(files, rva) {
            Some(Ok(frames)) if !frames.is_empty() => return Ok(frames),
            pdb => pdb,
        };
        let Some(at) = self.image.file.file() else {
            return pdb.unwrap_or_else(|| Err(self.best().name_reason()));
        };
        let own = object::frames(files, at, Address::Rva(rva));
        let Some(none) = pdb else {
            return own;
        };
        let mut frames = own.unwrap_or_default();
        // An approximate name replaces only the result of a damaged PDB.
        let is_guess = frames.iter().any(|frame| frame.approximate);
        if frames.is_empty() || is_guess && none.is_ok() {
            return none;
        }
        let path = object::path_text(at);
        for frame in &mut frames {
            frame.symbol_file = Some(Arc::clone(&path));
        }
        Ok(frames)
    }

    /// Resolves many addresses in advance. PDBs gain nothing from it.
    pub(super) fn prepare(&self, files: &Files, rvas: &[u64]) {
        let breakpad = self.pdb.file().filter(|_| self.is_breakpad());
        let image = self.image.file.file();
        if let Some(at) = breakpad.or(image.filter(|_| self.pdb.found.is_err())) {
            object::prepare(files, at, rvas.iter().map(|&rva| Address::Rva(rva)));
        }
    }

    /// Returns whether the symbol file is Breakpad's instead of a PDB.
    fn is_breakpad(&self) -> bool {
        matches!(self.pdb.id, Some(FileIdentity::Breakpad(_)))
    }

    /// Returns the frames that the image's tables and its PDB have at an RVA; `None` if only the
    /// symbols of the image remain to be searched.
    fn pdb_frames(&self, files: &Files, rva: u64) -> Option<Frames> {
        let rva = u32::try_from(rva).ok()?;
        if let Some(frame) = self.image.frame(files, rva) {
            return Some(Ok(vec![frame]));
        }
        if self.is_breakpad() {
            let address = Address::Rva(rva.into());
            return Some(object::frames(files, self.pdb.file()?, address));
        }
        match files.open::<Pdb>(self.pdb.file()?).as_deref() {
            Ok(Pdb::Windows(pdb)) => Some(pdb.frames(rva)),
            // The PDB of managed code has no native addresses.
            Ok(Pdb::Portable(_)) if self.image.file.file().is_some() => None,
            Ok(Pdb::Portable(_)) => Some(Ok(Vec::new())),
            Err(_) => Some(Err(NameReason::SymbolFileDamaged)),
        }
    }
}

/// Finds the PDB of an image.
fn find_pdb(image: &ImageRef<'_>, files: &Files) -> SymbolFile {
    let mut symbols = SymbolFile::unidentified();
    let Some(id) = identity(image.pdb) else {
        return symbols;
    };
    let wanted = Wanted::pdb(id);
    let path = image.pdb.map_or("", |pdb| &pdb.path);
    let request = FileRequest::pdb(wanted, path, image.path);
    files.search.everywhere(&mut symbols, &request, ANY);
    if symbols.found.is_err() {
        let mut other = SymbolFile::unidentified();
        let request = FileRequest::pdb(Wanted::Breakpad(id), path, image.path);
        files.search.everywhere(&mut other, &request, ANY);
        if other.found.is_ok() {
            other.attempts.splice(0..0, symbols.attempts);
            return other;
        }
        symbols.attempts.append(&mut other.attempts);
    }
    // A PDB that does not state its section addresses is useful only if the image supplies them.
    if let Some(at) = symbols.file().cloned()
        && let Ok(pdb) = files.open::<Pdb>(&at)
        && let Pdb::Windows(pdb) = &*pdb
        && let Some(assumed) = pdb.symbols.with(|pdb| pdb.assumed_image_size())
        && image.size != 0
        && image.size.next_multiple_of(0x1000) != u64::from(assumed)
    {
        let size = image.size;
        symbols.damaged(&at.path, Unfit::Size { assumed, size });
    }
    symbols
}

/// Checks the machine of an image: images for several machines can share the time stamp of their
/// IL.
fn fits(at: &Arc<FileAt>, image: &ImageRef<'_>, files: &Files) -> Result<(), Box<dyn Error>> {
    // A file that does not open is reported when it is used.
    let Ok(file) = files.open::<ImageFile>(at) else {
        return Ok(());
    };
    let target = file.with(|parts| Target::of_image(&parts.image));
    Ok(target.must_agree(Target::of_trace(image.machine))?)
}

/// An image that may have precompiled code, and the PDB of its IL.
pub(super) struct PrecompiledFile {
    pub file: SymbolFile,
    pdb: OnceLock<PdbFile>,
}

impl PrecompiledFile {
    pub(super) fn new(file: SymbolFile) -> Self {
        PrecompiledFile {
            file,
            pdb: OnceLock::new(),
        }
    }

    /// Returns the precompiled method at an RVA of the image.
    pub(super) fn frame(&self, files: &Files, rva: u32) -> Option<NativeFrame> {
        let at = self.file.file()?;
        let image = files.open::<ImageFile>(at).ok()?;
        let code = image.with(|parts| code_at(parts.r2r()?, rva))?;
        let line = match (code.token, code.il) {
            (Some(token), Some(il)) => {
                let pdb = self.pdb.get_or_init(|| il_pdb(at, &image, files));
                pdb.line(files, token, il)
            }
            (_, None) => Err(LineReason::NoILMap),
            (None, _) => Err(LineReason::NoLineInfo),
        };
        let mut frame = NativeFrame::new(code.name?);
        frame.offset = Some(code.offset.into());
        frame.line = line;
        frame.evidence = code.evidence;
        frame.managed = true;
        Some(frame)
    }
}

/// Finds the PDB of the IL that a precompiled image names.
fn il_pdb(at: &Arc<FileAt>, image: &ImageFile, files: &Files) -> PdbFile {
    let named = image.with(|parts| {
        let codeview = parts.image.portable_codeview()?;
        Some((codeview.id, codeview.path))
    });
    let path = at.path.to_string_lossy();
    let request = PdbRequest {
        id: named.as_ref().map(|(id, _)| *id),
        pdb_path: named.as_ref().map_or("", |(_, path)| path),
        // The location of the file found is not a path of the trace.
        image_path: file_name(&path),
        image: Some(at),
        in_trace: None,
    };
    PdbFile::find(&request, files)
}
