//! What PDBs, precompiled code and perf maps say of a PE image.

use std::error::Error;
use std::sync::Arc;

use chronosym_symbols::identity::Wanted;

use crate::files::{FileError, Files};
use crate::image::{ImageFiles, Kind};
use crate::managed::{PdbFile, PdbRequest};
use crate::parts;
use crate::pdb::Pdb;
use crate::pe::{ImageFile, MapFile};
use crate::precompiled::{code_at, row_at};
use crate::search::{ANY, FileAt, FileRequest, SymbolFile, beside, identity};
use crate::target::{Target, Unfit};
use chronosym_core::{ImageRef, NativeFrame, PartRef};
use chronosym_core::{LineReason, NameReason};
use chronosym_core::{file_name, simple_name};

/// The PDB of an image.
pub(super) fn find_pdb(image: &ImageRef<'_>, files: &Files) -> SymbolFile {
    let mut symbols = SymbolFile::unidentified();
    let Some(id) = identity(image.pdb) else {
        return symbols;
    };
    let wanted = Wanted::pdb(id);
    let path = image.pdb.map_or("", |pdb| &pdb.path);
    let request = FileRequest::pdb(wanted, path, image.path);
    files.search.everywhere(&mut symbols, &request, ANY);
    // A PDB that does not say where its sections are is of use only for an image that they fill.
    if let Some(at) = symbols.file().cloned()
        && let Ok(pdb) = files.open::<Pdb>(&at)
        && let Pdb::Windows(pdb) = &*pdb
        && let Some(assumed) = pdb.pdb.with(|pdb| pdb.assumed_image_size())
        && image.size != 0
        && image.size.next_multiple_of(0x1000) != u64::from(assumed)
    {
        let size = image.size;
        symbols.damaged(&at.path, Unfit::Size { assumed, size });
    }
    symbols
}

/// Images for several machines can have one time stamp: their IL's.
pub(super) fn fits(
    at: &Arc<FileAt>,
    image: &ImageRef<'_>,
    files: &Files,
) -> Result<(), Box<dyn Error>> {
    // One that does not open says so when it is asked.
    let Ok(file) = files.open::<ImageFile>(at) else {
        return Ok(());
    };
    let target = file.with(|parts| Target::of_image(&parts.image));
    Ok(target.must_agree(Target::of_trace(image.machine))?)
}

impl ImageFiles {
    /// Of a PE file that is mapped piece by piece neither base nor size are stated: see [`parts`].
    pub(super) fn find_part(image: &ImageRef<'_>, part: &PartRef<'_>, files: &Files) -> Self {
        let mut own = SymbolFile::unidentified();
        let mut map = SymbolFile::unidentified();
        let search = &files.search;
        if let Some(id) = identity(image.pdb) {
            let wanted = Wanted::Image {
                pe: None,
                pdb: Some(id),
            };
            let check = |at: &Arc<FileAt>| -> Result<(), Box<dyn Error>> {
                let file = files.open::<ImageFile>(at)?;
                Ok(file.with(|parts| parts::check_image(&parts.image, image, part))?)
            };
            search.folders(&mut own, &FileRequest::at(wanted, image.path), &check);
        }
        if let Some(id) = part.perf_map.filter(|_| own.found.is_err()) {
            let wanted = Wanted::R2rMap {
                signature: Some(id.signature),
                version: id.version,
            };
            let usual = format!("{}.ni.r2rmap", simple_name(image.path));
            let names = [file_name(&id.name), &usual];
            let paths = names.map(|name| beside(image.path, name).unwrap_or_default());
            let request = FileRequest::new(wanted, names, paths.each_ref().map(String::as_str));
            let check = |at: &Arc<FileAt>| -> Result<(), Box<dyn Error>> {
                let file = files.open::<MapFile>(at)?;
                Ok(parts::check_map(file.map(), image, part)?)
            };
            search.everywhere(&mut map, &request, &check);
        }
        let code_delta = part.code_delta;
        Self::new(Kind::Part { code_delta }, map, own)
    }

    /// The frames at an RVA of a PE file that is mapped piece by piece.
    pub(super) fn part_frames(
        &self,
        files: &Files,
        rva: u64,
        code_delta: u64,
    ) -> Result<Vec<NativeFrame>, NameReason> {
        if let Some(at) = self.image.file() {
            // The RVA as stated is that of the section with the code: the file knows better.
            let offset = rva.wrapping_sub(code_delta);
            let file = files.open::<ImageFile>(at).ok();
            let rva = file.and_then(|file| file.with(|parts| parts::rva_of(&parts.image, offset)));
            let frame = rva.and_then(|rva| self.precompiled_frame(at, files, rva));
            return Ok(frame.into_iter().collect());
        }
        let Some(at) = self.symbols.file() else {
            let (image, map) = (self.image.name_reason(), self.symbols.name_reason());
            return Err(match map {
                NameReason::NoSymbolFile => image,
                map => map,
            });
        };
        let (Ok(rva), Ok(file)) = (u32::try_from(rva), files.open::<MapFile>(at)) else {
            return Ok(Vec::new());
        };
        let frame = row_at(file.map(), rva).and_then(|code| {
            let mut frame = NativeFrame::new(code.name?);
            frame.offset = Some(code.offset.into());
            frame.line = Err(LineReason::NoILMap);
            // Compiler options change the code and not the map's signature, and no event says where methods begin.
            frame.approximate = true;
            frame.evidence = code.evidence;
            Some(frame)
        });
        Ok(frame.into_iter().collect())
    }

    /// What the image's tables and its PDB say of an RVA; nothing where only the object file is left to be asked.
    pub(super) fn pe_frames(
        &self,
        files: &Files,
        rva: u64,
    ) -> Option<Result<Vec<NativeFrame>, NameReason>> {
        let own = self.image.file();
        let rva = u32::try_from(rva).ok()?;
        if let Some(at) = own
            && let Some(frame) = self.precompiled_frame(at, files, rva)
        {
            return Some(Ok(vec![frame]));
        }
        let at = self.symbols.file()?;
        let frames = match files.open::<Pdb>(at).as_deref() {
            Ok(Pdb::Windows(pdb)) => pdb.frames(rva).map_err(FileError::from),
            // The PDB of managed code: it knows no native addresses.
            Ok(Pdb::Portable(_)) if own.is_some() => return None,
            Ok(Pdb::Portable(_)) => Ok(Vec::new()),
            Err(why) => Err(why.clone()),
        };
        Some(frames.map_err(|_| NameReason::SymbolFileDamaged))
    }

    /// The precompiled method at an RVA of the image.
    fn precompiled_frame(&self, at: &Arc<FileAt>, files: &Files, rva: u32) -> Option<NativeFrame> {
        let image = files.open::<ImageFile>(at).ok()?;
        let code = image.with(|parts| code_at(parts.r2r()?, rva))?;
        let line = match (code.token, code.il) {
            (Some(token), Some(il)) => {
                let pdb = self.managed.get_or_init(|| managed_pdb(at, &image, files));
                pdb.line(files, token, il)
            }
            (_, None) => Err(LineReason::NoILMap),
            (None, _) => Err(LineReason::NoLineInfo),
        };
        let mut frame = NativeFrame::new(code.name?);
        frame.offset = Some(code.offset.into());
        frame.line = line;
        frame.evidence = code.evidence;
        Some(frame)
    }
}

/// The PDB that a precompiled image names as that of its IL.
fn managed_pdb(at: &Arc<FileAt>, image: &ImageFile, files: &Files) -> PdbFile {
    let named = image.with(|parts| {
        let codeview = parts.image.portable_codeview()?;
        Some((codeview.id, codeview.path))
    });
    let path = at.path.to_string_lossy();
    let request = PdbRequest {
        id: named.as_ref().map(|(id, _)| *id),
        pdb_path: named.as_ref().map_or("", |(_, path)| path),
        // Where the file was found is no path of the trace.
        image_path: file_name(&path),
        image: Some(at),
        in_trace: None,
    };
    PdbFile::find(&request, files)
}
