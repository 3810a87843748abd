//! What the engine asks of symbol files, and what it tells of the modules and images that it asks about.

use std::ops::Range;
use std::sync::Arc;

use crate::body::{ModuleIndex, PdbId};
use crate::evidence::{Evidence, LineReason, NameReason};
use crate::frame::SourceLine;
use crate::il_map::IlOffset;
use crate::images::{Image, ImageIndex, PerfMapId};
use crate::process::ProcessIndex;
use crate::timeline::Timeline;

/// A CLR module, as a symbol source needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct ModuleRef<'t> {
    /// The process and the module's position in it: the same pair is the same module.
    pub key: (ProcessIndex, ModuleIndex),
    /// Path of the IL image, as the trace names it.
    pub il_path: &'t str,
    /// Path of the precompiled image, where it is another file.
    pub native_path: &'t str,
    /// Identity of the managed PDB.
    pub managed_pdb: Option<&'t PdbId>,
    /// Identity of the native PDB.
    pub native_pdb: Option<&'t PdbId>,
    /// The PDB itself, where the trace carries it (CodeSymbols).
    pub in_memory_pdb: Option<&'t [u8]>,
    pub(crate) timeline: &'t Timeline,
}

/// The start of a precompiled body, as events give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The starts of all precompiled bodies of the module: what tells an image of it from another build.
    pub fn precompiled_starts(&self) -> impl Iterator<Item = CodeStart<'t>> + use<'t> {
        let names = &self.timeline.names;
        let code = &self.timeline.spaces[self.key.0.index()].state.code;
        let bodies = code.modules[self.key.1.index()].bodies.iter();
        bodies
            .map(|body| &code.bodies[body.index()])
            .filter(|body| !body.is_jitted() && !body.flags.is_dynamic() && body.start != 0)
            .map(move |body| CodeStart {
                address: body.start,
                size: Some(body.size).filter(|&size| size > 0 && !body.approximate),
                token: Some(body.token).filter(|&token| token != 0),
                name: names.get(body.name).map(|name| {
                    let text = |id| names.strings.get(id);
                    (text(name.namespace), text(name.name))
                }),
            })
    }

    /// Operating system and processor, as the trace states them.
    pub fn machine(&self) -> Option<&'t str> {
        self.timeline.facts.machine.as_deref()
    }
}

/// A native image, as a symbol source needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct ImageRef<'t> {
    /// The process and the image's position in it: the same pair is the same mapping.
    pub key: (ProcessIndex, ImageIndex),
    /// Its path, as the trace names it.
    pub path: &'t str,
    /// Bytes.
    pub size: u64,
    /// The PE header's time stamp.
    pub timestamp: Option<u32>,
    /// Identity of the PDB.
    pub pdb: Option<&'t PdbId>,
    /// Identity of the IL's PDB, for precompiled images.
    pub il_pdb: Option<&'t PdbId>,
    /// Build id in hex.
    pub build_id: Option<&'t str>,
    /// Which part of a PE file this is, where the runtime mapped it piece by piece: then neither base nor size are the
    /// image's, and RVAs are those of the section with the code.
    pub part: Option<PartRef<'t>>,
    /// Operating system and processor, as the trace states them.
    pub machine: Option<&'t str>,
}

/// A piece of a PE file that the runtime mapped itself.
#[derive(Clone, Copy, Debug)]
pub struct PartRef<'t> {
    /// Where in the file the piece begins, in bytes.
    pub file_offset: u64,
    /// The RVA of the section with the code minus its offset in the file.
    pub code_delta: u64,
    /// The perf map that the image was compiled with.
    pub perf_map: Option<&'t PerfMapId>,
    /// All images of the process.
    pub(crate) images: &'t [Image],
    pub(crate) index: ImageIndex,
}

/// Where a piece of a file stands in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let image = &self.images[self.index.index()];
        MappedPiece {
            start: image.base,
            size: image.size,
            file_offset: self.file_offset,
        }
    }

    /// Every piece of the same file that the process ever mapped, this one among them.
    pub fn pieces(&self) -> impl Iterator<Item = MappedPiece> {
        let own = &self.images[self.index.index()];
        let is_same = |image: &&Image| image.path == own.path && image.pdb == own.pdb;
        self.images.iter().filter(is_same).filter_map(|image| {
            Some(MappedPiece {
                start: image.base,
                size: image.size,
                file_offset: image.part.as_ref()?.file_offset,
            })
        })
    }
}

/// A frame that a symbol file knows.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeFrame {
    /// The demangled symbol.
    pub name: Arc<str>,
    /// Bytes from the start of the function, for the outermost frame.
    pub offset: Option<u64>,
    /// The source line, or why there is none.
    pub line: Result<SourceLine, LineReason>,
    /// Nearest symbol without a known extent, or another guess.
    pub approximate: bool,
    /// What says so: [`Evidence::Image`] or [`Evidence::ImageTable`].
    pub evidence: Evidence,
}

/// What a precompiled image says of an address in it.
#[derive(Clone, Debug, PartialEq)]
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

/// Where names and lines beyond the trace come from. The engine without one answers what the trace alone says.
pub trait SymbolSource: Send + Sync {
    /// The line of an IL offset of a method (rule 14).
    fn managed_line(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        il: IlOffset,
    ) -> Result<SourceLine, LineReason>;

    /// Namespace-qualified type and method of a token.
    fn method_name(&self, module: &ModuleRef<'_>, token: u32) -> Option<(String, String)>;

    /// The addresses of a module's precompiled image, as its precompiled methods give them away.
    fn precompiled_range(&self, module: &ModuleRef<'_>) -> Option<Range<u64>>;

    /// The precompiled method at an address of that image: for a return address that of the call before it.
    fn precompiled(&self, module: &ModuleRef<'_>, address: u64) -> Option<PrecompiledCode>;

    /// Why the precompiled image at hand says nothing of this module's code: it is another build's.
    fn precompiled_reason(&self, module: &ModuleRef<'_>) -> Option<LineReason> {
        let _ = module;
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
    ) -> Option<u32>;

    /// What to show in place of the name that a compiler gave managed code, such as `Program+<>c.<Main>b__0_1`.
    fn display_name(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Addresses of an image that [`SymbolSource::native`] will be asked for, ascending: a source that answers many at
    /// once faster can do so now.
    fn prepare(&self, image: &ImageRef<'_>, rvas: &[u64]) {
        let _ = (image, rvas);
    }

    /// The frames at an RVA of an image, innermost first.
    fn native(&self, image: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason>;
}
