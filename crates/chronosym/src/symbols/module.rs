//! A CLR module's files: its image, its PDB, and what they say.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use chronosym_pdb::metadata::{Metadata, Table, Token};
use chronosym_pdb::r2r::{
    BaseMatch, IlMapping, KnownStart, ModuleRef as DefiningModule, NoModules, R2rImage,
};
use chronosym_symbols::identity::{PdbFormat, PdbId, Wanted};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{NoFile, Place};

use super::open::{ManagedPdb, OpenFiles};
use super::search::{FoundFile, Search, SymbolFile, distinct, identity, pdb_names, pdb_paths};
use crate::evidence::LineReason;
use crate::expand::{CodeStart, ModuleRef, PrecompiledCode};
use crate::frame::SourceLine;
use crate::il_map::{IlOffset, IlSource};
use crate::images::{file_name, simple_name};

/// The files of one module.
pub(super) struct ModuleFiles {
    /// The image, where it is at hand.
    pub image: SymbolFile,
    /// The PDB.
    pub pdb: SymbolFile,
    /// The PDB that came in the trace, if that is the one used.
    in_trace: Option<Arc<ManagedPdb>>,
    base: OnceLock<Option<Base>>,
}

/// Where a precompiled image stands in memory.
#[derive(Clone, Copy, Debug)]
struct Base {
    address: u64,
    size: u32,
}

impl ModuleFiles {
    pub(super) fn find(module: &ModuleRef<'_>, search: &Search, files: &OpenFiles) -> Self {
        let id = identity(module.managed_pdb);
        let image = match id {
            Some(id) => find_image(module, id, search),
            None => SymbolFile::unidentified(),
        };
        let (pdb, in_trace) = find_pdb(module, id, image.path(), search, files);
        ModuleFiles {
            image,
            pdb,
            in_trace,
            base: OnceLock::new(),
        }
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
        let line = match (&self.pdb.found, &self.in_trace) {
            (Err(_), _) => return Err(self.pdb.line_reason()),
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

    /// Where the precompiled image stands: what makes every start that the trace gives an entry point of it.
    fn base(&self, module: &ModuleRef<'_>, files: &OpenFiles) -> Option<Base> {
        *self.base.get_or_init(|| {
            let path = self.image.path()?;
            let find = |r2r: &R2rImage<'_>| {
                let starts: Vec<KnownStart> = module.precompiled_starts().map(known).collect();
                match r2r.base_of(&starts) {
                    BaseMatch::Base(address) => Some(Base {
                        address,
                        size: r2r.image().size_of_image(),
                    }),
                    _ => None,
                }
            };
            let base = files.image(path, |parts| parts.r2r().and_then(find));
            base.ok().flatten()
        })
    }

    /// The addresses of the precompiled image.
    pub(super) fn range(
        &self,
        module: &ModuleRef<'_>,
        files: &OpenFiles,
    ) -> Option<std::ops::Range<u64>> {
        let base = self.base(module, files)?;
        Some(base.address..base.address.checked_add(base.size.into())?)
    }

    /// The precompiled method at an address.
    pub(super) fn precompiled(
        &self,
        module: &ModuleRef<'_>,
        files: &OpenFiles,
        address: u64,
    ) -> Option<PrecompiledCode> {
        let base = self.base(module, files)?;
        let rva = u32::try_from(address.checked_sub(base.address)?).ok()?;
        let answer = files.image(self.image.path()?, |parts| {
            precompiled_at(parts.r2r()?, rva)
        });
        answer.ok().flatten()
    }
}

fn known(start: CodeStart) -> KnownStart {
    KnownStart {
        address: start.address,
        size: start.size,
        token: start.token.map(Token),
    }
}

/// The method at an RVA of a precompiled image.
pub(super) fn precompiled_at(image: &R2rImage<'_>, rva: u32) -> Option<PrecompiledCode> {
    let method = image.method_at(rva)?;
    let offset = method.native_offset(rva)?;
    let name = image.method_name(&method, &NoModules);
    let own = image
        .definition(&method)
        .filter(|d| d.module == DefiningModule::Image);
    let il = image.il_offset(&method, offset, false).and_then(|answer| {
        let source = match answer.mapping {
            IlMapping::Offset(_) => IlSource::Mapped,
            IlMapping::Prolog => IlSource::Prolog,
            IlMapping::NoMapping | IlMapping::Epilog => IlSource::Nearest,
        };
        answer.il_offset.map(|offset| IlOffset { offset, source })
    });
    let signature = name.as_ref().map(|name| name.signature_text());
    Some(PrecompiledCode {
        name: name.map(|name| name.to_string().into()),
        signature: signature.filter(|text| !text.is_empty()).map(Arc::from),
        token: own.map(|definition| definition.token.0),
        offset,
        il,
    })
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

fn find_image(module: &ModuleRef<'_>, id: PdbId, search: &Search) -> SymbolFile {
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
    let mut image = SymbolFile {
        wanted: Some(wanted.clone()),
        ..SymbolFile::unidentified()
    };
    // No store has a key made of a PDB's id, so there is no use in asking one.
    if let Some(outcome) = search.find(&wanted, &names, &paths, false).get() {
        image.or(outcome);
    }
    image
}

fn find_pdb(
    module: &ModuleRef<'_>,
    id: Option<PdbId>,
    image: Option<&Path>,
    search: &Search,
    files: &OpenFiles,
) -> (SymbolFile, Option<Arc<ManagedPdb>>) {
    let mut file = SymbolFile::unidentified();
    let pdb_path = module.managed_pdb.map_or("", |pdb| &pdb.path);
    let names = pdb_names(pdb_path, module.il_path);
    let paths = pdb_paths(pdb_path, module.il_path);
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
    if let Some(bytes) = module.in_memory_pdb {
        match ManagedPdb::open(FileData::from(bytes)) {
            // Without an id in the module's event, the runtime's own word ties it to the module.
            Ok(pdb) if id.is_none_or(|id| belongs(&pdb, id)) => {
                file.found = Ok(FoundFile::InTrace);
                return (file, Some(Arc::new(pdb)));
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

fn image_facts(parts: &super::open::ImageParts<'_>) -> ImageFacts {
    let image = &parts.image;
    let codeview = image.portable_codeview();
    ImageFacts {
        stamp: codeview.map(|codeview| codeview.stamp),
        checksum: image
            .pdb_checksum()
            .map(|sum| (sum.algorithm.into_owned(), sum.value.to_vec())),
        embeds: image
            .debug_directory()
            .any(|entry| entry.kind == chronosym_pdb::pe::DebugKind::EmbeddedPortablePdb),
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
