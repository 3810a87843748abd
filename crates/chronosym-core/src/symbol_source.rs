//! What the engine asks of symbol files, and what it tells of the modules and images that it asks about.

use std::ops::Range;
use std::sync::Arc;

use crate::code::ProcessCode;
use crate::evidence::{Evidence, LineReason, NameReason};
use crate::ids::ProcessIndex;
use crate::il_map::IlOffset;
use crate::images::{Image, PerfMapId};
use crate::names::Names;
use crate::source_line::SourceLine;
use crate::strings::Strings;
use crate::symbol_identity::PdbReference;
use crate::symbol_identity::{InMemoryPdb, SymbolIdentity};
use crate::terms::Addressing;

/// Names a module or an image of one snapshot of one timeline, of all that this process ever makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotKey {
    pub(crate) snapshot: u64,
    pub(crate) process: ProcessIndex,
    /// Of the module or the image.
    pub(crate) index: u32,
}

/// A CLR module, as a symbol source needs to know it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ModuleRef<'t> {
    /// Path of the IL image, as the trace names it.
    pub il_path: &'t str,
    /// Path of the precompiled image, where it is another file.
    pub native_path: &'t str,
    /// Identity of the managed PDB.
    pub managed_pdb: Option<&'t PdbReference>,
    /// Identity of the native PDB.
    pub native_pdb: Option<&'t PdbReference>,
    /// The PDB itself, where the trace carries it (CodeSymbols).
    pub in_memory_pdb: Option<&'t InMemoryPdb>,
    /// Operating system and processor, as the trace states them.
    pub machine: Option<&'t str>,
    pub(crate) code: Option<ModuleCode<'t>>,
}

/// A module's code in one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModuleCode<'t> {
    pub key: SnapshotKey,
    pub names: &'t Names,
    pub code: &'t ProcessCode,
}

/// The start of a precompiled body, as events give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeStart<'t> {
    /// Its first address.
    pub address: u64,
    /// Bytes, where an event says so.
    pub size: Option<u32>,
    /// Metadata token of the method, where an event says so.
    pub token: Option<u32>,
    /// Namespace with type, and name, where an event says so.
    pub name: Option<(&'t str, &'t str)>,
}

impl<'t> ModuleRef<'t> {
    /// A module of no timeline, of which only this is known: more can be set.
    pub fn new(il_path: &'t str) -> Self {
        ModuleRef {
            il_path,
            ..ModuleRef::default()
        }
    }

    /// Which module of which snapshot of a timeline it is, if of any.
    pub fn snapshot_key(&self) -> Option<SnapshotKey> {
        self.code.map(|code| code.key)
    }

    /// What its files are found by.
    pub fn identity(&self) -> SymbolIdentity {
        let in_memory = self.in_memory_pdb.map(|pdb| pdb.content);
        SymbolIdentity::of((self.il_path, self.managed_pdb, in_memory))
    }

    /// The starts of all precompiled bodies of the module: what tells an image of it from another build.
    pub fn precompiled_starts(&self) -> impl Iterator<Item = CodeStart<'t>> + use<'t> {
        self.code
            .into_iter()
            .flat_map(|ModuleCode { key, names, code }| {
                let bodies = code.modules[key.index as usize].bodies.iter();
                bodies
                    .map(|body| &code.bodies[body.index()])
                    .filter(|body| {
                        !body.flags.is_jitted() && !body.flags.is_dynamic() && body.start != 0
                    })
                    .map(move |body| CodeStart {
                        address: body.start,
                        size: Some(body.size).filter(|&size| size > 0 && !body.approximate),
                        token: Some(body.token).filter(|&token| token != 0),
                        name: names.get(body.name).map(|name| {
                            let text = |id| names.strings.get(id);
                            (text(name.namespace), text(name.name))
                        }),
                    })
            })
    }
}

/// A native image, as a symbol source needs to know it.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ImageRef<'t> {
    /// Its path, as the trace names it.
    pub path: &'t str,
    /// The address of its first byte, or of the first byte of the [part](ImageRef::part) that this is.
    pub base: u64,
    /// Bytes.
    pub size: u64,
    /// The PE header's time stamp.
    pub timestamp: Option<u32>,
    /// Identity of the PDB.
    pub pdb: Option<&'t PdbReference>,
    /// Identity of the IL's PDB, for precompiled images.
    pub il_pdb: Option<&'t PdbReference>,
    /// Build id in hex.
    pub build_id: Option<&'t str>,
    /// What its RVAs are in an ELF file.
    pub addressing: Addressing,
    /// Where in an ELF file the mapping starts, in bytes.
    pub file_offset: u64,
    /// Which part of a PE file this is, where the runtime mapped it piece by piece: then neither base nor size are the
    /// image's, and RVAs are those of the section with the code.
    pub part: Option<PartRef<'t>>,
    /// Operating system and processor, as the trace states them.
    pub machine: Option<&'t str>,
}

impl<'t> ImageRef<'t> {
    /// An image of no timeline, of which only this is known: more can be set.
    pub fn new(path: &'t str) -> Self {
        ImageRef {
            path,
            ..ImageRef::default()
        }
    }

    /// What a trace says of an image.
    pub(crate) fn of(image: &'t Image, strings: &'t Strings) -> Self {
        ImageRef {
            base: image.base,
            size: image.size,
            timestamp: image.timestamp,
            pdb: image.pdb.as_ref(),
            il_pdb: image.il_pdb.as_ref(),
            build_id: Some(strings.get(image.build_id)).filter(|id| !id.is_empty()),
            addressing: image.addressing,
            file_offset: image.file_offset,
            ..ImageRef::new(strings.get(image.path))
        }
    }

    /// What its files are found by.
    pub fn identity(&self) -> SymbolIdentity {
        SymbolIdentity::of((
            (self.path, self.size, self.timestamp, self.pdb, self.il_pdb),
            (self.build_id, self.addressing, self.file_offset),
            self.machine,
            // Files of what is mapped piece by piece are held to all pieces of the process.
            self.part.map(|part| part.key),
        ))
    }
}

/// A piece of a PE file that the runtime mapped itself.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PartRef<'t> {
    /// Where in the file the piece begins, in bytes.
    pub file_offset: u64,
    /// The RVA of the section with the code minus its offset in the file.
    pub code_delta: u64,
    /// The perf map that the image was compiled with.
    pub perf_map: Option<&'t PerfMapId>,
    /// All images of the process.
    pub(crate) images: &'t [Image],
    pub(crate) key: SnapshotKey,
}

/// Where a piece of a file stands in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedPiece {
    /// Its first address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Where in the file it begins, in bytes.
    pub file_offset: u64,
}

impl PartRef<'_> {
    /// The piece itself.
    pub fn piece(&self) -> MappedPiece {
        MappedPiece::of(&self.images[self.key.index as usize], self.file_offset)
    }

    /// Every piece of the same file that the process ever mapped, this one among them.
    pub fn pieces(&self) -> impl Iterator<Item = MappedPiece> {
        let own = &self.images[self.key.index as usize];
        let is_same = |image: &&Image| image.path == own.path && image.pdb == own.pdb;
        self.images.iter().filter(is_same).filter_map(|image| {
            let part = image.part.as_ref()?;
            Some(MappedPiece::of(image, part.file_offset))
        })
    }
}

impl MappedPiece {
    fn of(image: &Image, file_offset: u64) -> Self {
        MappedPiece {
            start: image.base,
            size: image.size,
            file_offset,
        }
    }
}

/// A frame that a symbol file knows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NativeFrame {
    /// The demangled symbol.
    pub name: Arc<str>,
    /// Whether that is only the beginning of a symbol that would be too long.
    pub name_limited: bool,
    /// Bytes from the start of the code body or symbol; of an inlined frame, of the body that it is inlined into.
    pub offset: Option<u64>,
    /// The source line, or why there is none.
    pub line: Result<SourceLine, LineReason>,
    /// Nearest symbol without a known extent, or another guess.
    pub approximate: bool,
    /// What says so: [`Evidence::Image`] or [`Evidence::ImageTable`].
    pub evidence: Evidence,
    /// Path of the file that the name is from, if the image's first symbol file had no answer.
    pub symbol_file: Option<Arc<str>>,
}

impl NativeFrame {
    /// A frame of which only the name is known: more can be set.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        NativeFrame {
            name: name.into(),
            name_limited: false,
            offset: None,
            line: Err(LineReason::NoLineInfo),
            approximate: false,
            evidence: Evidence::Image,
            symbol_file: None,
        }
    }
}

/// What a precompiled image says of an address in it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PrecompiledCode {
    /// Namespace, type and method.
    pub name: Option<Arc<str>>,
    /// The method's signature as the runtime spells it.
    pub signature: Option<Arc<str>>,
    /// The method's token, where it is one of the image's own.
    pub token: Option<u32>,
    /// Bytes from the method's first byte.
    pub offset: u32,
    /// The IL offset by the image's own debug info.
    pub il: Option<IlOffset>,
    /// What says so: [`Evidence::ImageTable`], or [`Evidence::PerfMap`] where only the image's perf map was at hand.
    pub evidence: Evidence,
}

impl PrecompiledCode {
    /// Code this many bytes into a method of which nothing else is known: more can be set.
    pub fn new(offset: u32) -> Self {
        PrecompiledCode {
            name: None,
            signature: None,
            token: None,
            offset,
            il: None,
            evidence: Evidence::ImageTable,
        }
    }
}

/// Where names and lines beyond the trace come from. The engine without one answers what the trace alone says.
///
/// One source serves any number of timelines, also those of live sessions, on any thread: what it remembers it should
/// remember by [`ModuleRef::identity`] and [`ImageRef::identity`]. Each method may be left out: then the source knows nothing
/// of that kind.
#[expect(unused_variables)]
pub trait SymbolSource: Send + Sync {
    /// Whether lines are wanted at all. If not, those that a recording itself states are left out, too.
    fn wants_lines(&self) -> bool {
        true
    }

    /// The line of an IL offset of a method (rule 14).
    fn managed_line(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        il: IlOffset,
    ) -> Result<SourceLine, LineReason> {
        Err(LineReason::NoSymbolFile)
    }

    /// Namespace-qualified type and method of a token.
    fn method_name(&self, module: &ModuleRef<'_>, token: u32) -> Option<(String, String)> {
        None
    }

    /// The addresses of a module's precompiled image, as its precompiled methods give them away. Or why its methods have no
    /// lines where there is no IL map: the image at hand may be another build's.
    fn precompiled_range(&self, module: &ModuleRef<'_>) -> Result<Range<u64>, LineReason> {
        Err(LineReason::NoILMap)
    }

    /// The precompiled method at an address of that image: for a return address that of the call before it.
    fn precompiled(&self, module: &ModuleRef<'_>, address: u64) -> Option<PrecompiledCode> {
        None
    }

    /// The IL offset at which the method `token` calls the method named `callee`: `stated` if there is such a call,
    /// else the only such call. `None` where the IL is not at hand or does not tell.
    fn call_site(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        stated: Option<u32>,
        callee: &str,
    ) -> Option<u32> {
        None
    }

    /// What to show in place of the name that a compiler gave managed code, such as `Program+<>c.<Main>b__0_1`.
    fn display_name(&self, name: &str) -> Option<String> {
        None
    }

    /// Addresses of an image that [`SymbolSource::native`] will be asked for, ascending: a source that answers many at
    /// once faster can do so now.
    fn prepare(&self, image: &ImageRef<'_>, rvas: &[u64]) {}

    /// The frames at an RVA of an image, innermost first.
    fn native(&self, image: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason> {
        Err(NameReason::NoSymbolFile)
    }
}
