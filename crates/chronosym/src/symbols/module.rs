//! A CLR module's files: its image, its PDB, and what they say.

use std::sync::OnceLock;

use chronosym_pdb::metadata::{Metadata, Table, Token};
use chronosym_symbols::identity::Wanted;

use super::managed::{Clues, PdbFile};
use super::open::OpenFiles;
use super::precompiled;
use super::search::{ANY, Check, Search, SymbolFile, distinct, identity};
use crate::evidence::LineReason;
use crate::images::{file_name, simple_name};
use crate::symbol_source::{ModuleRef, PrecompiledCode};

/// The files of one module.
pub(super) struct ModuleFiles {
    /// The image, where it is at hand.
    pub image: SymbolFile,
    /// The PDB.
    pub pdb: PdbFile,
    precompiled: OnceLock<precompiled::Found>,
}

impl ModuleFiles {
    pub(super) fn find(module: &ModuleRef<'_>, search: &Search, files: &OpenFiles) -> Self {
        let id = identity(module.managed_pdb);
        let image = find_image(module, search, ANY);
        let clues = Clues {
            id,
            pdb_path: module.managed_pdb.map_or("", |pdb| &pdb.path),
            image_path: module.il_path,
            image: image.path(),
            in_trace: module.in_memory_pdb,
        };
        ModuleFiles {
            pdb: PdbFile::find(&clues, search, files),
            image,
            precompiled: OnceLock::new(),
        }
    }

    fn with_metadata<R>(
        &self,
        files: &OpenFiles,
        ask: impl FnOnce(&chronosym_pdb::pe::PeImage<'_>, &Metadata<'_>) -> Option<R>,
    ) -> Option<R> {
        let path = self.image.path()?;
        let answer = files.image(path, |parts| ask(&parts.image, parts.metadata()?));
        answer.ok().flatten()
    }

    /// Type and method of a token.
    pub(super) fn method_name(&self, files: &OpenFiles, token: u32) -> Option<(String, String)> {
        self.with_metadata(files, |_, metadata| {
            let name = metadata.method(Token(token))?;
            Some((name.owner_text(), name.name))
        })
    }

    /// Where the method calls `callee`: at `stated`, if there is such a call there, else at the only one.
    pub(super) fn call_site(
        &self,
        files: &OpenFiles,
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
                && body
                    .call_at(stated)
                    .is_some_and(|call| calls_it(call.token))
            {
                return Some(stated);
            }
            let mut calls = body.calls().filter(|(_, call)| calls_it(call.token));
            match (calls.next(), calls.next()) {
                (Some((offset, _)), None) => Some(offset),
                _ => None,
            }
        })
    }

    /// What tells of the module's precompiled code.
    fn precompiled_in(
        &self,
        module: &ModuleRef<'_>,
        search: &Search,
        files: &OpenFiles,
    ) -> &precompiled::Found {
        self.precompiled.get_or_init(|| {
            // Builds for several machines share the id by which the image was found.
            let fitting = |fits: Check<'_>| find_image(module, search, fits);
            precompiled::find(module, self.image.path(), fitting, search, files)
        })
    }

    /// The addresses of the precompiled image.
    pub(super) fn range(
        &self,
        module: &ModuleRef<'_>,
        search: &Search,
        files: &OpenFiles,
    ) -> Option<std::ops::Range<u64>> {
        self.precompiled_in(module, search, files).place()?.range()
    }

    /// The precompiled method at an address.
    pub(super) fn precompiled(
        &self,
        module: &ModuleRef<'_>,
        search: &Search,
        files: &OpenFiles,
        address: u64,
    ) -> Option<PrecompiledCode> {
        let found = self.precompiled_in(module, search, files);
        found.place()?.code(files, address)
    }

    /// Why the image at hand says nothing of the module's precompiled code.
    pub(super) fn precompiled_reason(
        &self,
        module: &ModuleRef<'_>,
        search: &Search,
        files: &OpenFiles,
    ) -> Option<LineReason> {
        let found = self.precompiled_in(module, search, files);
        matches!(found, precompiled::Found::Mismatch).then_some(LineReason::SymbolFileMismatch)
    }
}

/// A name without its instantiation: ``Ns.Type`1[System.Int32].Get`` → ``Ns.Type`1.Get``.
fn open_name(name: &str) -> String {
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

fn find_image(module: &ModuleRef<'_>, search: &Search, fits: Check<'_>) -> SymbolFile {
    let mut image = SymbolFile::unidentified();
    let Some(id) = identity(module.managed_pdb) else {
        return image;
    };
    let wanted = Wanted::Image {
        pe: None,
        pdb: Some(id),
    };
    let simple = simple_name(module.il_path);
    let names = distinct(vec![
        file_name(module.il_path).to_owned(),
        format!("{simple}.dll"),
        format!("{simple}.exe"),
    ]);
    let paths = distinct(vec![module.il_path.to_owned()]);
    // No store has a key made of a PDB's id, so there is no use in asking one.
    search.folders(&mut image, &wanted, &names, &paths, fits);
    image
}
