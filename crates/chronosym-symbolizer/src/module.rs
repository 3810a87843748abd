//! The image and the PDB of a CLR module, and lookups in them.

use chronosym_pdb::metadata::{Metadata, Table, Token};
use chronosym_symbols::identity::Wanted;

use crate::files::Files;
use crate::managed::{PdbFile, PdbRequest};
use crate::pe::{ImageFile, ImageParts};
use crate::search::{ANY, Check, FileRequest, SymbolFile, identity};
use chronosym_core::ModuleRef;
use chronosym_core::{file_name, simple_name};

/// The files of one module.
pub(super) struct ModuleFiles {
    /// The image, if available.
    pub image: SymbolFile,
    /// The PDB.
    pub pdb: PdbFile,
}

impl ModuleFiles {
    /// Finds the files. Also returns their approximate size in bytes.
    pub(super) fn find(module: &ModuleRef<'_>, files: &Files) -> (Self, u64) {
        let image = find_image(module, files, ANY);
        let request = PdbRequest {
            id: identity(module.managed_pdb),
            pdb_path: module.managed_pdb.map_or("", |pdb| &pdb.path),
            image_path: module.il_path,
            image: image.file(),
            in_trace: module.in_memory_pdb,
        };
        let pdb = PdbFile::find(&request, files);
        let in_memory = module.in_memory_pdb.map_or(0, |bytes| bytes.len() as u64);
        let weight = image.weight() + pdb.file.weight() + in_memory;
        (ModuleFiles { pdb, image }, weight)
    }

    pub(super) fn with_metadata<R>(
        &self,
        files: &Files,
        ask: impl FnOnce(&chronosym_pdb::pe::PeImage<'_>, &Metadata<'_>) -> Option<R>,
    ) -> Option<R> {
        self.with_image(files, |parts| ask(&parts.image, parts.metadata()?))
    }

    pub(super) fn with_image<R>(
        &self,
        files: &Files,
        ask: impl FnOnce(&ImageParts<'_>) -> Option<R>,
    ) -> Option<R> {
        let image = files.open::<ImageFile>(self.image.file()?).ok()?;
        image.with(ask)
    }

    /// Returns type and method of a token.
    pub(super) fn method_name(&self, files: &Files, token: u32) -> Option<(String, String)> {
        self.with_metadata(files, |_, metadata| {
            let name = metadata.method(Token(token))?;
            Some((name.owner_text(), name.name))
        })
    }

    /// Returns the IL offset of the call of `callee` in a method: `stated` if there is such a call,
    /// else the only call.
    pub(super) fn call_site(
        &self,
        files: &Files,
        token: u32,
        stated: Option<u32>,
        callee: &str,
    ) -> Option<u32> {
        let token = Token(token);
        if token.table() != Table::METHOD_DEF {
            return None;
        }
        let callee = open_name(callee);
        self.with_metadata(files, |image, metadata| {
            let body = image.il_body(metadata, token.row())?;
            let calls_it = |called: Token| {
                let name = metadata.method(called);
                name.is_some_and(|name| {
                    format!("{}.{}", name.open_owner_text(), name.name) == callee
                })
            };
            if let Some(stated) = stated
                && body.call_at(stated).is_some_and(calls_it)
            {
                return Some(stated);
            }
            let mut calls = body.calls().filter(|&(_, call)| calls_it(call));
            match (calls.next(), calls.next()) {
                (Some((offset, _)), None) => Some(offset),
                _ => None,
            }
        })
    }
}

/// Removes the instantiation from a name: ``Ns.Type`1[System.Int32].Get`` → ``Ns.Type`1.Get``.
pub(super) fn open_name(name: &str) -> String {
    let mut depth = 0_usize;
    let mut open = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            c if depth == 0 => open.push(c),
            _ => {}
        }
    }
    open
}

/// Finds the IL image, which may be precompiled.
pub(super) fn find_image(module: &ModuleRef<'_>, files: &Files, fits: Check<'_>) -> SymbolFile {
    let mut image = SymbolFile::unidentified();
    let Some(id) = identity(module.managed_pdb) else {
        return image;
    };
    let wanted = Wanted::Image {
        pe: None,
        pdb: Some(id),
    };
    let simple = simple_name(module.il_path);
    let (dll, exe) = (format!("{simple}.dll"), format!("{simple}.exe"));
    let names = [file_name(module.il_path), &dll, &exe];
    let request = FileRequest::new(wanted, names, [module.il_path]);
    // Stores have no key for an image that is derived from a PDB's id.
    files.search.folders(&mut image, &request, fits);
    image
}
