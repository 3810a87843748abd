//! A native image's symbols: a Windows PDB, an ELF file, or what the PE image itself says.

use std::path::Path;
use std::sync::{OnceLock, PoisonError, RwLock};

use chronosym_pdb::r2r::R2rMap;
use chronosym_pdb::windows::{Frames, FunctionKind};
use chronosym_symbols::demangle::demangle;
use chronosym_symbols::identity::{BuildId, FileIdentity, PdbFormat, PeId, Wanted};
use chronosym_symbols::store::NoFile;
use chronosym_symbols::{Address, Answer, Answers, Missing, Query, Source};
use rustc_hash::FxHashMap;

use super::managed::{Clues, PdbFile};
use super::open::{ImageParts, ManagedPdb, NativeFile, OpenFiles, WindowsFile};
use super::parts;
use super::precompiled::{code_at, row_at};
use super::search::{ANY, FoundFile, Search, SymbolFile, distinct, identity, pdb_names, pdb_paths};
use super::target::Target;
use crate::evidence::{Evidence, LineReason, NameReason};
use crate::frame::SourceLine;
use crate::images::{file_name, simple_name};
use crate::symbol_source::{ImageRef, NativeFrame, PartRef};

/// The files of one image.
pub(super) struct ImageFiles {
    /// The symbol file: a PDB, or an ELF file.
    pub symbols: SymbolFile,
    /// The PE image itself.
    pub image: SymbolFile,
    kind: Kind,
    /// The PDB of a precompiled image's IL.
    managed: OnceLock<PdbFile>,
    /// Answers that were worked out beforehand.
    ready: RwLock<FxHashMap<u64, Result<Vec<NativeFrame>, NameReason>>>,
}

/// How addresses of an image are found in its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pe,
    Elf,
    /// A PE file that the runtime mapped piece by piece: its symbol file is the perf map, and RVAs are offsets in the file
    /// plus this.
    Part {
        code_delta: u64,
    },
}

impl ImageFiles {
    fn new(kind: Kind, symbols: SymbolFile, image: SymbolFile) -> Self {
        ImageFiles {
            symbols,
            image,
            kind,
            managed: OnceLock::new(),
            ready: RwLock::default(),
        }
    }

    pub(super) fn find(image: &ImageRef<'_>, search: &Search, files: &OpenFiles) -> Self {
        if let Some(part) = &image.part {
            return Self::find_part(image, part, search, files);
        }
        let mut symbols = SymbolFile::unidentified();
        let mut own = SymbolFile::unidentified();
        let names = distinct(vec![file_name(image.path).to_owned()]);
        let paths = distinct(vec![image.path.to_owned()]);
        if let Some(id) = image.build_id.and_then(BuildId::parse) {
            let debug = Wanted::ElfDebug(id.clone());
            search.everywhere(&mut symbols, &debug, &names, &paths, ANY);
            if symbols.found.is_err() {
                // Without debug information the image still has its dynamic symbols.
                search.everywhere(&mut symbols, &Wanted::ElfImage(id), &names, &paths, ANY);
            }
            return Self::new(Kind::Elf, symbols, own);
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
            search.everywhere(&mut symbols, &wanted, &names, &paths, ANY);
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
            // Images for several machines can have one time stamp: their IL's.
            let trace = Target::of_trace(image.machine);
            let check = |path: &Path| {
                let target = files.image(path, |parts| Target::of_image(&parts.image));
                // One that does not open says so when it is asked.
                match target {
                    Ok(target) => target.must_agree(trace),
                    Err(_) => Ok(()),
                }
            };
            search.everywhere(&mut own, &wanted, &names, &paths, &check);
        }
        Self::new(Kind::Pe, symbols, own)
    }

    /// Of a PE file that is mapped piece by piece neither base nor size are told: see [`parts`].
    fn find_part(
        image: &ImageRef<'_>,
        part: &PartRef<'_>,
        search: &Search,
        files: &OpenFiles,
    ) -> Self {
        let mut own = SymbolFile::unidentified();
        let mut map = SymbolFile::unidentified();
        if let Some(id) = identity(image.pdb) {
            let wanted = Wanted::Image {
                pe: None,
                pdb: Some(id),
            };
            let names = distinct(vec![file_name(image.path).to_owned()]);
            let paths = distinct(vec![image.path.to_owned()]);
            let check = |path: &Path| {
                let check = |parts: &ImageParts<'_>| parts::check_image(&parts.image, image, part);
                files.image(path, check).and_then(|verdict| verdict)
            };
            search.folders(&mut own, &wanted, &names, &paths, &check);
        }
        if let Some(id) = part.perf_map.filter(|_| own.found.is_err()) {
            let wanted = Wanted::R2rMap {
                signature: Some(id.signature),
                version: id.version,
            };
            let usual = format!("{}.ni.r2rmap", simple_name(image.path));
            let names = distinct(vec![file_name(&id.name).to_owned(), usual]);
            let folder = &image.path[..image.path.len() - file_name(image.path).len()];
            let paths: Vec<String> = names.iter().map(|name| format!("{folder}{name}")).collect();
            let check = |path: &Path| {
                let check = |map: &R2rMap<'_>| parts::check_map(map, image, part);
                files.map(path, check).and_then(|verdict| verdict)
            };
            search.everywhere(&mut map, &wanted, &names, &paths, &check);
        }
        let code_delta = part.code_delta;
        Self::new(Kind::Part { code_delta }, map, own)
    }

    /// The frames at an RVA of a PE file that is mapped piece by piece.
    fn part_frames(
        &self,
        search: &Search,
        files: &OpenFiles,
        rva: u64,
        code_delta: u64,
    ) -> Result<Vec<NativeFrame>, NameReason> {
        if let Some(path) = self.image.path() {
            // The RVA as told is that of the section with the code: the file knows better.
            let rva = files.image(path, |parts| {
                parts::rva_of(&parts.image, rva.wrapping_sub(code_delta))
            });
            let frame = rva
                .ok()
                .flatten()
                .and_then(|rva| self.precompiled_frame(path, search, files, rva));
            return Ok(frame.into_iter().collect());
        }
        let Some(path) = self.symbols.path() else {
            let (image, map) = (self.image.name_reason(), self.symbols.name_reason());
            return Err(match map {
                NameReason::NoSymbolFile => image,
                map => map,
            });
        };
        let row = u32::try_from(rva)
            .ok()
            .map(|rva| files.map(path, |map| row_at(map, rva)));
        let Some(Ok(Some(code))) = row else {
            return Ok(Vec::new());
        };
        let frame = code.name.map(|name| NativeFrame {
            name,
            offset: Some(code.offset.into()),
            line: Err(LineReason::NoILMap),
            // Compiler options change the code and not the map's signature, and no event says where methods begin.
            approximate: true,
            evidence: code.evidence,
        });
        Ok(frame.into_iter().collect())
    }

    /// The precompiled method at an RVA of the image at `path`.
    fn precompiled_frame(
        &self,
        path: &Path,
        search: &Search,
        files: &OpenFiles,
        rva: u32,
    ) -> Option<NativeFrame> {
        let code = files
            .image(path, |parts| code_at(parts.r2r()?, rva))
            .ok()??;
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
        Some(NativeFrame {
            name: code.name?,
            offset: Some(code.offset.into()),
            line,
            approximate: false,
            evidence: code.evidence,
        })
    }

    /// The file that answers, or the one whose reason says most.
    pub(super) fn told(&self) -> &SymbolFile {
        let (symbols, image) = (&self.symbols, &self.image);
        let image_first = match self.kind {
            Kind::Part { .. } => matches!(symbols.found, Err(NoFile::NoSymbolFile)),
            _ => image.found.is_ok() || symbols.wanted.is_none(),
        };
        if symbols.found.is_err() && image_first {
            image
        } else {
            symbols
        }
    }

    /// The object file that answers, if one does: PDBs are as fast without being told beforehand.
    fn object_path(&self) -> Option<&Path> {
        match self.kind {
            Kind::Elf => self.symbols.path(),
            Kind::Pe => self.image.path().filter(|_| self.symbols.found.is_err()),
            Kind::Part { .. } => None,
        }
    }

    fn address(&self, rva: u64) -> Address {
        if self.kind == Kind::Elf {
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
        if let Kind::Part { code_delta } = self.kind {
            return self.part_frames(search, files, rva, code_delta);
        }
        if let (Some(path), Ok(rva)) = (own, u32::try_from(rva))
            && let Some(frame) = self.precompiled_frame(path, search, files, rva)
        {
            return Ok(vec![frame]);
        }
        let symbols = match &self.symbols.found {
            Ok(FoundFile::File(path)) if self.kind == Kind::Elf => {
                return self.object(files, path, rva);
            }
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
