//! Precompiled code of a CLR module: finds the file that describes it, and where that file's image
//! is loaded.
//!
//! Sources, in order: the image's own tables, those of the composite that the image names as the
//! owner of its code, and the perf map (`r2rmap`) that the compiler wrote, which has names only.
//! Each must contain every start address that the trace states for a method of the module.

use std::ops::Range;
use std::sync::Arc;

use chronosym_pdb::metadata::Token;
use chronosym_pdb::r2r::{
    AssemblyResolver, BaseMatch, DefiningModule, IlMapping, MethodStart, NamedMethodStart,
    NoAssemblies, R2rImage, R2rMap,
};
use chronosym_symbols::identity::{Guid, Wanted};

use crate::files::{FileError, Files};
use crate::module::{ModuleFiles, find_image};
use crate::pe::{CompositeFile, ImageFile, MapFile};
use crate::search::{FileAt, FileRequest, SymbolFile, beside};
use crate::target::{Target, Unfit};
use chronosym_core::{CodeStart, ModuleRef, PrecompiledCode};
use chronosym_core::{Evidence, LineReason};
use chronosym_core::{IlOffset, IlSource};
use chronosym_core::{file_name, simple_name};

/// The base and, if known, the size of a precompiled image, and the source that describes its code.
#[derive(Clone, Debug)]
pub(super) struct PrecompiledImage {
    pub range: Range<u64>,
    source: Source,
}

/// Or why methods without an IL map have no line: no file has that identity, or the one that has it
/// is not the one that ran.
pub(super) type PrecompiledResult = Result<PrecompiledImage, LineReason>;

const NOTHING: LineReason = LineReason::NoILMap;
const MISMATCH: LineReason = LineReason::SymbolFileMismatch;

#[derive(Clone, Debug)]
enum Source {
    Image(Arc<FileAt>),
    Composite(Arc<FileAt>, Component),
    Map(Arc<FileAt>),
}

/// A module within a composite.
#[derive(Clone, Debug)]
struct Component {
    name: String,
    mvid: Guid,
}

/// Finds the source that describes a module's precompiled code in its process; `known` are the
/// module's files.
pub(super) fn find(
    module: &ModuleRef<'_>,
    known: &ModuleFiles,
    files: &Files,
) -> PrecompiledResult {
    let starts: Vec<CodeStart<'_>> = module.precompiled_starts().collect();
    if starts.is_empty() {
        return Err(NOTHING);
    }
    let machine = Target::of_trace(module.machine);
    let own = match known.image.file() {
        Some(at) => in_image(at, machine, &starts, files),
        None => Err(NOTHING),
    };
    if let Err(MISMATCH) = own {
        // Builds for several machines share the id by which the image was found.
        let fits = |at: &Arc<FileAt>| match in_image(at, machine, &starts, files) {
            Ok(_) => Ok(()),
            Err(_) => Err(Unfit::NotWhatRan.into()),
        };
        if let Some(at) = find_image(module, files, &fits).file() {
            return in_image(at, machine, &starts, files);
        }
    }
    own.or_else(|why| in_map(module, machine, &starts, files).ok_or(why))
}

fn in_image(
    at: &Arc<FileAt>,
    machine: Target,
    starts: &[CodeStart<'_>],
    files: &Files,
) -> PrecompiledResult {
    let known = starts.iter().map(|start| MethodStart {
        address: start.address,
        size: start.size,
        token: start.token.map(Token),
    });
    let starts: Vec<MethodStart> = known.collect();
    let Ok(image) = files.open::<ImageFile>(at) else {
        return Err(NOTHING);
    };
    image.with(|parts| {
        let Some(r2r) = parts.r2r() else {
            return Err(NOTHING);
        };
        if let Some(owner) = r2r.owner_composite() {
            let mvid = r2r.metadata().and_then(|metadata| metadata.mvid());
            let name = at.path.file_stem().map(|name| name.to_string_lossy());
            return match (mvid, name) {
                (Some(mvid), Some(name)) => {
                    let name = name.into_owned();
                    let own = Component { name, mvid };
                    in_composite(at, &owner, own, machine, &starts, files)
                }
                _ => Err(NOTHING),
            };
        }
        if !machine.agrees(Target::of_code(r2r.image())) {
            return Err(MISMATCH);
        }
        placed(r2r.base_of(&starts), r2r, Source::Image(Arc::clone(at)))
    })
}

fn placed(base: BaseMatch, image: &R2rImage<'_>, source: Source) -> PrecompiledResult {
    match base {
        BaseMatch::Base(base) => {
            PrecompiledImage::new(base, image.image().size_of_image().into(), source)
        }
        BaseMatch::Mismatch => Err(MISMATCH),
        BaseMatch::Ambiguous | BaseMatch::NoStarts => Err(NOTHING),
    }
}

/// Finds a composite, which is in the folder of its components. Its only identity is the version
/// ids of its components.
fn in_composite(
    component: &FileAt,
    owner: &str,
    own: Component,
    machine: Target,
    starts: &[MethodStart],
    files: &Files,
) -> PrecompiledResult {
    // The name is read from a file: accept only a file name in the same folder.
    if owner.is_empty() || owner.contains('\0') || file_name(owner) != owner || owner == ".." {
        return Err(NOTHING);
    }
    let at = Arc::new(FileAt::new(component.path.with_file_name(owner), None));
    let Ok(composite) = files.open::<CompositeFile>(&at) else {
        return Err(NOTHING);
    };
    composite.with(|parts| {
        let image = &parts.image;
        let is_own = image
            .components()
            .any(|part| part.name == own.name && part.mvid == Some(own.mvid));
        if !is_own || !machine.agrees(Target::of_code(image.image())) {
            return Err(MISMATCH);
        }
        let source = Source::Composite(Arc::clone(&at), own);
        placed(image.base_of(starts), image, source)
    })
}

/// Finds the perf map. A module's events do not identify it: they state only the addresses and
/// names of its methods.
fn in_map(
    module: &ModuleRef<'_>,
    machine: Target,
    starts: &[CodeStart<'_>],
    files: &Files,
) -> Option<PrecompiledImage> {
    let wanted = Wanted::R2rMap {
        signature: None,
        version: 1,
    };
    let name = format!("{}.ni.r2rmap", simple_name(module.il_path));
    let path = beside(module.il_path, &name).unwrap_or_default();
    let sought = FileRequest::new(wanted, [&name], [&path]);
    let starts: Vec<NamedMethodStart<'_>> = starts
        .iter()
        .map(|start| NamedMethodStart {
            address: start.address,
            size: start.size,
            name: start.name,
        })
        .collect();
    let place = |at: &Arc<FileAt>| {
        let file = files.open::<MapFile>(at)?;
        let map = file.map();
        let of_map = Target {
            os: map.target_os,
            machine: map.machine,
        };
        of_map.must_agree(machine)?;
        let BaseMatch::Base(base) = map.base_of(&starts) else {
            return Err(Unfit::Methods);
        };
        let last = map.methods().last().ok_or(Unfit::Empty)?;
        let size = u64::from(last.rva) + u64::from(last.size);
        PrecompiledImage::new(base, size, Source::Map(Arc::clone(at))).map_err(|_| Unfit::Methods)
    };
    // Stores have no key without a signature.
    let mut map = SymbolFile::unidentified();
    let fits = |at: &Arc<FileAt>| place(at).map(|_| ()).map_err(Into::into);
    files.search.folders(&mut map, &sought, &fits);
    place(map.file()?).ok()
}

impl PrecompiledImage {
    fn new(base: u64, size: u64, source: Source) -> PrecompiledResult {
        let end = base.checked_add(size).ok_or(NOTHING)?;
        let range = base..end;
        Ok(PrecompiledImage { range, source })
    }

    /// Returns the precompiled method at an address.
    pub fn code(&self, files: &Files, address: u64) -> Option<PrecompiledCode> {
        let rva = u32::try_from(address.checked_sub(self.range.start)?).ok()?;
        let code = || match &self.source {
            Source::Image(at) => {
                let image = files.open::<ImageFile>(at)?;
                Ok(image.with(|parts| code_at(parts.r2r()?, rva)))
            }
            Source::Composite(at, own) => {
                let is_own = |module: &DefiningModule| {
                    matches!(module, DefiningModule::Assembly(of)
                        if of.name == own.name && of.mvid == Some(own.mvid))
                };
                let composite = files.open::<CompositeFile>(at)?;
                Ok(composite.with(|parts| code_of(&parts.image, parts, rva, is_own)))
            }
            Source::Map(at) => Ok(row_at(files.open::<MapFile>(at)?.map(), rva)),
        };
        let code: Result<_, FileError> = code();
        code.ok().flatten()
    }
}

/// Returns the method at an RVA of a precompiled image of one module.
pub(super) fn code_at(image: &R2rImage<'_>, rva: u32) -> Option<PrecompiledCode> {
    let is_own = |module: &DefiningModule| *module == DefiningModule::Image;
    code_of(image, &NoAssemblies, rva, is_own)
}

/// Returns the method at an RVA of an image of several modules. No token states to which of them it
/// belongs.
pub(super) fn code_in(
    image: &R2rImage<'_>,
    modules: &dyn AssemblyResolver,
    rva: u32,
) -> Option<PrecompiledCode> {
    code_of(image, modules, rva, |_| false)
}

/// Returns the method at an RVA. Its token refers to the module that `is_own`.
fn code_of(
    image: &R2rImage<'_>,
    modules: &dyn AssemblyResolver,
    rva: u32,
    is_own: impl Fn(&DefiningModule) -> bool,
) -> Option<PrecompiledCode> {
    let method = image.method_at(rva)?;
    let offset = method.native_offset(rva)?;
    let name = image.method_name(&method, modules);
    let own = image
        .definition(&method)
        .filter(|definition| is_own(&definition.module));
    let il = image.il_offset(&method, offset, false).and_then(|answer| {
        let source = match answer.mapping {
            IlMapping::Offset(_) => IlSource::Mapped,
            IlMapping::Prolog => IlSource::Prolog,
            IlMapping::NoMapping | IlMapping::Epilog => IlSource::Nearest,
        };
        answer.il_offset.map(|offset| IlOffset::new(offset, source))
    });
    let signature = name.as_ref().map(|name| name.signature_text());
    let mut code = PrecompiledCode::new(offset);
    code.name = name.map(|name| name.to_string().into());
    code.signature = signature.filter(|text| !text.is_empty()).map(Arc::from);
    code.token = own.map(|definition| definition.token.0);
    code.il = il;
    Some(code)
}

/// Returns the method at an RVA of an image for which only the perf map is available.
pub(super) fn row_at(map: &R2rMap, rva: u32) -> Option<PrecompiledCode> {
    let row = map.method_at(rva)?;
    let name = match row.owner_and_name() {
        Some((owner, name)) => format!("{}.{name}", owner.replace(", ", ",")),
        None => row.name.to_string(),
    };
    let mut code = PrecompiledCode::new(rva - row.rva);
    code.name = Some(name.into());
    code.evidence = Evidence::PerfMap;
    Some(code)
}
