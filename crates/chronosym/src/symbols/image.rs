//! A native image's symbols: a Windows PDB, an ELF file, or what the PE image itself says.

use std::path::Path;
use std::sync::{OnceLock, PoisonError, RwLock};

use chronosym_pdb::windows::{Frames, FunctionKind};
use chronosym_symbols::demangle::demangle;
use chronosym_symbols::identity::{BuildId, FileIdentity, PdbFormat, PeId, Wanted};
use chronosym_symbols::{Address, Answer, Answers, Missing, Query, Source};
use rustc_hash::FxHashMap;

use super::managed::{Clues, PdbFile};
use super::module::precompiled_at;
use super::open::{ManagedPdb, NativeFile, OpenFiles, WindowsFile};
use super::search::{FoundFile, Search, SymbolFile, distinct, identity, pdb_names, pdb_paths};
use crate::evidence::{Evidence, LineReason, NameReason};
use crate::expand::{ImageRef, NativeFrame};
use crate::frame::SourceLine;
use crate::images::file_name;

/// The files of one image.
pub(super) struct ImageFiles {
    /// The symbol file: a PDB, or an ELF file.
    pub symbols: SymbolFile,
    /// The PE image itself.
    pub image: SymbolFile,
    is_elf: bool,
    /// The PDB of a precompiled image's IL.
    managed: OnceLock<PdbFile>,
    /// Answers that were worked out beforehand.
    ready: RwLock<FxHashMap<u64, Result<Vec<NativeFrame>, NameReason>>>,
}

impl ImageFiles {
    pub(super) fn find(image: &ImageRef<'_>, search: &Search) -> Self {
        let mut symbols = SymbolFile::unidentified();
        let mut own = SymbolFile::unidentified();
        let names = distinct(vec![file_name(image.path).to_owned()]);
        let paths = distinct(vec![image.path.to_owned()]);
        if let Some(id) = image.build_id.and_then(BuildId::parse) {
            let debug = Wanted::ElfDebug(id.clone());
            search.everywhere(&mut symbols, &debug, &names, &paths);
            if symbols.found.is_err() {
                // Without debug information the image still has its dynamic symbols.
                search.everywhere(&mut symbols, &Wanted::ElfImage(id), &names, &paths);
            }
            return ImageFiles {
                symbols,
                image: own,
                is_elf: true,
                managed: OnceLock::new(),
                ready: RwLock::default(),
            };
        }
        if let Some(id) = identity(image.pdb) {
            let wanted = Wanted::Pdb {
                id,
                stamp: None,
                format: PdbFormat::Any,
            };
            let path = image.pdb.map_or("", |pdb| &pdb.path);
            let names = pdb_names(path, image.path);
            let paths = pdb_paths(path, image.path);
            search.everywhere(&mut symbols, &wanted, &names, &paths);
        }
        let pe = image.timestamp.and_then(|timestamp| {
            let size_of_image = u32::try_from(image.size).ok()?;
            Some(PeId {
                timestamp,
                size_of_image,
            })
        });
        if let Some(pe) = pe.filter(|_| {
            // The PDB of managed code knows nothing of native addresses.
            let is_portable = matches!(symbols.id, Some(FileIdentity::PortablePdb(_)));
            symbols.found.is_err() || is_portable || image.il_pdb.is_some()
        }) {
            let wanted = Wanted::Image {
                pe: Some(pe),
                pdb: None,
            };
            search.everywhere(&mut own, &wanted, &names, &paths);
        }
        ImageFiles {
            symbols,
            image: own,
            is_elf: false,
            managed: OnceLock::new(),
            ready: RwLock::default(),
        }
    }

    /// The object file that answers, if one does: PDBs are as fast without being told beforehand.
    fn object_path(&self) -> Option<&Path> {
        if self.is_elf {
            self.symbols.path()
        } else {
            self.image.path().filter(|_| self.symbols.found.is_err())
        }
    }

    fn address(&self, rva: u64) -> Address {
        if self.is_elf {
            // The trace says where in the file's own addresses a mapping begins.
            Address::VirtualAddress(rva)
        } else {
            Address::Rva(rva)
        }
    }

    /// Works out the answers for many addresses.
    pub(super) fn prepare(&self, files: &OpenFiles, rvas: &[u64]) {
        let Some(path) = self.object_path() else {
            return;
        };
        let addresses: Vec<Address> = rvas.iter().map(|&rva| self.address(rva)).collect();
        let answers = files.native(path, |file| Ok(object_frames(file, &addresses, 0)));
        let mut ready = self.ready.write().unwrap_or_else(PoisonError::into_inner);
        ready.extend(rvas.iter().copied().zip(answers.into_iter().flatten()));
    }

    fn object(
        &self,
        files: &OpenFiles,
        path: &Path,
        rva: u64,
    ) -> Result<Vec<NativeFrame>, NameReason> {
        let ready = self.ready.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = ready.get(&rva) {
            return answer.clone();
        }
        drop(ready);
        let address = self.address(rva);
        let answer = files.native(path, |file| Ok(object_frames(file, &[address], 1).pop()));
        match answer {
            Ok(answer) => answer.unwrap_or(Ok(Vec::new())),
            Err(_) => Err(NameReason::SymbolFileDamaged),
        }
    }

    /// The frames at an RVA, innermost first; none where the file names nothing there.
    pub(super) fn frames(
        &self,
        search: &Search,
        files: &OpenFiles,
        rva: u64,
    ) -> Result<Vec<NativeFrame>, NameReason> {
        let damaged = |_| NameReason::SymbolFileDamaged;
        let own = self.image.path();
        if let (Some(path), Ok(rva)) = (own, u32::try_from(rva)) {
            let code = files.image(path, |parts| precompiled_at(parts.r2r()?, rva));
            if let Ok(Some(code)) = code
                && let Some(name) = code.name
            {
                let line = match (code.token, code.il) {
                    (Some(token), Some(il)) => {
                        let pdb = self
                            .managed
                            .get_or_init(|| managed_pdb(path, search, files));
                        pdb.line(files, token, il)
                    }
                    (_, None) => Err(LineReason::NoILMap),
                    (None, _) => Err(LineReason::NoLineInfo),
                };
                return Ok(vec![NativeFrame {
                    name,
                    offset: Some(code.offset.into()),
                    line,
                    approximate: false,
                    evidence: Evidence::ImageTable,
                }]);
            }
        }
        let symbols = match &self.symbols.found {
            Ok(FoundFile::File(path)) if self.is_elf => return self.object(files, path, rva),
            Ok(FoundFile::File(path)) => Some(path),
            _ => None,
        };
        if let (Some(path), Ok(rva)) = (symbols, u32::try_from(rva)) {
            let frames = files.pdb(path, |pdb| match pdb {
                ManagedPdb::Windows(pdb) => pdb_frames(pdb, rva).map(Some),
                // The PDB of managed code: it knows no native addresses.
                ManagedPdb::Portable(_) => Ok(None),
            });
            match frames.map_err(damaged)? {
                Some(frames) => return Ok(frames),
                None if own.is_none() => return Ok(Vec::new()),
                None => {}
            }
        }
        match own {
            Some(path) => self.object(files, path, rva),
            None if self.symbols.wanted.is_none() => Err(self.image.name_reason()),
            None => Err(self.symbols.name_reason()),
        }
    }
}

/// The PDB that a precompiled image names as that of its IL.
fn managed_pdb(image: &Path, search: &Search, files: &OpenFiles) -> PdbFile {
    let named = files.image(image, |parts| {
        let codeview = parts.image.portable_codeview()?;
        Some((codeview.id, codeview.path.into_owned()))
    });
    let named = named.ok().flatten();
    let path = image.to_string_lossy();
    let clues = Clues {
        id: named.as_ref().map(|(id, _)| *id),
        pdb_path: named.as_ref().map_or("", |(_, path)| path),
        // Where the file was found is no path of the trace.
        image_path: file_name(&path),
        image: Some(image),
        in_trace: None,
    };
    PdbFile::find(&clues, search, files)
}

fn pdb_frames(file: &WindowsFile, rva: u32) -> Result<Vec<NativeFrame>, String> {
    file.with(|pdb| {
        let mut frames = Frames::new();
        let found = pdb
            .find(rva, &mut frames)
            .map_err(|error| error.to_string())?;
        let Some(function) = found else {
            return Ok(Vec::new());
        };
        let approximate = function.kind == FunctionKind::Public;
        let last = frames.len().saturating_sub(1);
        let frames = frames.iter().enumerate().filter_map(|(i, frame)| {
            let name = frame.name.as_ref()?.to_string();
            let line = frame.file.as_deref().zip(frame.line);
            Some(NativeFrame {
                name: demangle(&name).unwrap_or(name).into(),
                offset: (i == last).then(|| u64::from(rva.saturating_sub(function.rva))),
                line: line
                    .map(|(path, line)| SourceLine {
                        file: file.path(path),
                        line,
                        column: frame.column.map(u32::from),
                    })
                    .ok_or(LineReason::NoLineInfo),
                approximate,
                evidence: Evidence::Image,
            })
        });
        Ok(frames.collect())
    })
}

/// What an object file says of addresses, in the order asked.
fn object_frames(
    file: &NativeFile,
    addresses: &[Address],
    threads: usize,
) -> Vec<Result<Vec<NativeFrame>, NameReason>> {
    let mut query = Query::default();
    query.threads = threads;
    let mut answers = Answers::new();
    file.symbols.find_all(addresses, &query, &mut answers);
    let frames = |answer: Answer<'_>| {
        if answer.missing() == Some(Missing::Damaged) {
            return Err(NameReason::SymbolFileDamaged);
        }
        let at = answer.address();
        let frames = answer.frames().filter_map(|frame| {
            let line = frame.file().zip(frame.line());
            Some(NativeFrame {
                name: file.text(frame.demangled()?),
                offset: frame
                    .function_start()
                    .filter(|_| !frame.inlined())
                    .map(|start| at.saturating_sub(start)),
                line: line
                    .map(|(path, line)| SourceLine {
                        file: file.text(path),
                        line: line.get(),
                        column: frame.column().map(u32::from),
                    })
                    .ok_or(LineReason::NoLineInfo),
                // Exported names say where functions begin, not where they end.
                approximate: matches!(frame.source(), Source::DynamicSymbols | Source::Export),
                evidence: Evidence::Image,
            })
        });
        Ok(frames.collect())
    };
    answers.iter().map(frames).collect()
}
