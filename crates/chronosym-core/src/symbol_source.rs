//! The interface of symbol sources, and the references to modules and images that it takes.

use std::ops::Range;
use std::sync::Arc;

use crate::code::ProcessCode;
use crate::evidence::{Evidence, LineReason, NameReason};
use crate::ids::ProcessIndex;
use crate::il_map::IlOffset;
use crate::images::{FileMapping, Image, PerfMapId};
use crate::names::NameTable;
use crate::source_line::SourceLine;
use crate::strings::Strings;
use crate::symbol_identity::PdbReference;
use crate::symbol_identity::{InMemoryPdb, SymbolIdentity};
use crate::terms::Addressing;
use chronosym_types::{MappedFile, SparseVec};

/// Identifies a module or image of one snapshot of a timeline, unique in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotKey {
    pub(crate) snapshot: u64,
    pub(crate) process: ProcessIndex,
    /// Index of the module or image.
    pub(crate) index: u32,
}

/// A CLR module.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ModuleRef<'t> {
    /// Path of the IL image, as in the trace.
    pub il_path: &'t str,
    /// Path of the precompiled image, if it is another file.
    pub native_path: &'t str,
    /// Identity of the managed PDB.
    pub managed_pdb: Option<&'t PdbReference>,
    /// Identity of the native PDB.
    pub native_pdb: Option<&'t PdbReference>,
    /// The PDB itself, if the trace contains it (CodeSymbols).
    pub in_memory_pdb: Option<&'t InMemoryPdb>,
    /// Operating system and architecture, as in the trace.
    pub machine: Option<&'t str>,
    pub(crate) code: Option<ModuleCode<'t>>,
}

/// A module's code in one process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModuleCode<'t> {
    pub key: SnapshotKey,
    pub names: &'t NameTable,
    pub code: &'t ProcessCode,
}

/// The start of a precompiled body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeStart<'t> {
    /// Its first address.
    pub address: u64,
    /// Bytes, if an event states them.
    pub size: Option<u32>,
    /// Metadata token of the method, if an event states it.
    pub token: Option<u32>,
    /// Namespace with type, and name, if an event states them.
    pub name: Option<(&'t str, &'t str)>,
}

impl<'t> ModuleRef<'t> {
    /// Creates a module without a timeline; other fields can be set.
    pub fn new(il_path: &'t str) -> Self {
        ModuleRef {
            il_path,
            ..ModuleRef::default()
        }
    }

    /// Returns the key of the module in its snapshot, if it has one.
    pub fn snapshot_key(&self) -> Option<SnapshotKey> {
        self.code.map(|code| code.key)
    }

    /// Returns the identity of its symbol files.
    pub fn identity(&self) -> SymbolIdentity {
        let in_memory = self.in_memory_pdb.map(|pdb| pdb.content);
        SymbolIdentity::of((self.il_path, self.managed_pdb, in_memory))
    }

    /// Returns the starts of all precompiled bodies of the module, which distinguish its image from
    /// other builds.
    pub fn precompiled_starts(&self) -> impl Iterator<Item = CodeStart<'t>> + use<'t> {
        self.code
            .into_iter()
            .flat_map(|ModuleCode { key, names, code }| {
                let bodies = code.modules[key.index as usize].bodies.iter();
                bodies
                    .map(|body| &code.bodies[body.index()])
                    .filter(|body| body.is_precompiled() && body.start != 0)
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

/// A native image.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ImageRef<'t> {
    /// Its path, as in the trace.
    pub path: &'t str,
    /// The address of its first byte, or of the first byte of the [part](ImageRef::part).
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
    /// The file's number in the kernel, if the recorder states it.
    pub file: Option<MappedFile>,
    /// How its RVAs correspond to addresses of an ELF file.
    pub addressing: Addressing,
    /// File offset of the mapping, in bytes.
    pub file_offset: u64,
    /// The mapped part of a PE file, if the runtime mapped it section by section: base and size are
    /// then the part's, and RVAs those of the code section.
    pub part: Option<PartRef<'t>>,
    /// Operating system and architecture, as in the trace.
    pub machine: Option<&'t str>,
    /// Its identity, if it was computed before.
    pub(crate) identity: Option<SymbolIdentity>,
}

impl<'t> ImageRef<'t> {
    /// Creates an image without a timeline; other fields can be set.
    pub fn new(path: &'t str) -> Self {
        ImageRef {
            path,
            ..ImageRef::default()
        }
    }

    /// Creates a reference to an image of a timeline.
    pub(crate) fn of(image: &'t Image, strings: &'t Strings) -> Self {
        ImageRef {
            base: image.base,
            size: image.size,
            timestamp: image.timestamp,
            pdb: image.pdb.as_ref(),
            il_pdb: image.il_pdb.as_ref(),
            build_id: Some(strings.get(image.build_id)).filter(|id| !id.is_empty()),
            file: image.file,
            addressing: image.addressing,
            file_offset: image.file_offset,
            ..ImageRef::new(strings.get(image.path))
        }
    }

    /// Returns the identity of its symbol files.
    pub fn identity(&self) -> SymbolIdentity {
        self.identity.unwrap_or_else(|| {
            SymbolIdentity::of((
                (self.path, self.size, self.timestamp, self.pdb, self.il_pdb),
                (self.build_id, self.file, self.addressing, self.file_offset),
                self.machine,
                // A file that is mapped in parts is checked against all parts of the process.
                self.part.map(|part| part.key),
            ))
        })
    }
}

/// A part of a PE file mapped by the runtime itself.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PartRef<'t> {
    /// File offset of the part, in bytes.
    pub file_offset: u64,
    /// The RVA of the section with the code minus its offset in the file.
    pub code_delta: u64,
    /// The perf map that the image was compiled with.
    pub perf_map: Option<&'t PerfMapId>,
    /// All images of the process.
    pub(crate) images: &'t SparseVec<Image>,
    pub(crate) key: SnapshotKey,
}

impl PartRef<'_> {
    /// Returns the mapping of this part.
    pub fn mapping(&self) -> FileMapping {
        self.images[self.key.index as usize].mapping(self.file_offset)
    }

    /// Returns every mapping of the same file that the process ever had, this one included.
    pub fn mappings(&self) -> impl Iterator<Item = FileMapping> {
        let own = &self.images[self.key.index as usize];
        let is_same = |image: &&Image| image.path == own.path && image.pdb == own.pdb;
        self.images.iter().filter(is_same).filter_map(|image| {
            let part = image.part.as_ref()?;
            Some(image.mapping(part.file_offset))
        })
    }
}

/// A frame from a symbol file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NativeFrame {
    /// The demangled symbol.
    pub name: Arc<str>,
    /// Whether the name is truncated by a limit.
    pub name_limited: bool,
    /// Bytes from the start of the code body or symbol; for an inlinee, of the body that contains
    /// it.
    pub offset: Option<u64>,
    /// The source line, or why there is none.
    pub line: Result<SourceLine, LineReason>,
    /// A guess, such as the nearest symbol of unknown extent.
    pub approximate: bool,
    /// [`Evidence::Image`] or [`Evidence::ImageTable`].
    pub evidence: Evidence,
    /// A method of managed code: its name is as method events have it, and is shown as theirs are.
    pub managed: bool,
    /// Path of the file with the name, if the image's first symbol file had no answer.
    pub symbol_file: Option<Arc<str>>,
}

impl NativeFrame {
    /// Creates a frame with a name only; other fields can be set.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        NativeFrame {
            name: name.into(),
            name_limited: false,
            offset: None,
            line: Err(LineReason::NoLineInfo),
            approximate: false,
            evidence: Evidence::Image,
            managed: false,
            symbol_file: None,
        }
    }
}

/// A method of a precompiled image.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PrecompiledCode {
    /// Namespace, type and method.
    pub name: Option<Arc<str>>,
    /// The method's signature as the runtime spells it.
    pub signature: Option<Arc<str>>,
    /// The method's token, if the method is the image's own.
    pub token: Option<u32>,
    /// Bytes from the start of the method.
    pub offset: u32,
    /// The IL offset from the image's debug info.
    pub il: Option<IlOffset>,
    /// [`Evidence::ImageTable`], or [`Evidence::PerfMap`] from the image's perf map.
    pub evidence: Evidence,
}

impl PrecompiledCode {
    /// Creates code this many bytes into an unknown method; other fields can be set.
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

/// Supplies names and lines that are not in the trace. Without a source, the engine uses the trace
/// alone.
///
/// One source serves any number of timelines, live ones included, on any thread: its caches should
/// be keyed by [`ModuleRef::identity`] and [`ImageRef::identity`]. Every method has a default that
/// returns nothing.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use chronosym_core::facts::{At, Method, Module};
/// use chronosym_core::{Action, ModuleRef, Options, Position, Session, SymbolSource};
///
/// /// Names from a profiler's own metadata reader.
/// struct Metadata;
///
/// impl SymbolSource for Metadata {
///     fn method_name(&self, module: &ModuleRef<'_>, token: u32) -> Option<(String, String)> {
///         (module.il_path == "app.dll" && token == 0x0600_0001).then(|| ("Ns.Type".into(), "Main".into()))
///     }
/// }
///
/// let mut session = Session::new(Options::default());
/// let at = At::new(0).process(42);
/// session.apply(at, Module::new(Action::Load, 5, "app.dll"));
/// // A method event without names, as non-verbose events are.
/// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).in_module(5, 0x0600_0001));
/// let timeline = session.finish();
/// let process = timeline.find_process(42, None).unwrap();
/// let frames = timeline.frames(process, 0x1010, 100, Position::Exact, Some(&Metadata));
/// assert_eq!(frames[0].name(), Ok("Ns.Type.Main"));
/// ```
#[expect(unused_variables)]
pub trait SymbolSource: Send + Sync {
    /// Returns whether lines are requested. If not, lines stated by a recording are omitted, too.
    fn wants_lines(&self) -> bool {
        true
    }

    /// Returns the line of an IL offset of a method (rule 14).
    fn managed_line(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        il: IlOffset,
    ) -> Result<SourceLine, LineReason> {
        Err(LineReason::NoSymbolFile)
    }

    /// Returns the namespace-qualified type and the method of a token.
    fn method_name(&self, module: &ModuleRef<'_>, token: u32) -> Option<(String, String)> {
        None
    }

    /// Returns the addresses of a module's precompiled image, inferred from its precompiled
    /// methods; or why its methods have no lines without an IL map: the available image may belong
    /// to another build.
    fn precompiled_range(&self, module: &ModuleRef<'_>) -> Result<Range<u64>, LineReason> {
        Err(LineReason::NoILMap)
    }

    /// Returns the precompiled method at an address of that image; for a return address, at the
    /// call before it.
    fn precompiled(&self, module: &ModuleRef<'_>, address: u64) -> Option<PrecompiledCode> {
        None
    }

    /// Returns the IL offset at which the method `token` calls `callee`: `stated` if there is such
    /// a call, or else the only such call. `None` if the IL is not available or ambiguous.
    fn call_site(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        stated: Option<u32>,
        callee: &str,
    ) -> Option<u32> {
        None
    }

    /// Returns the source name for a compiler-generated one such as `Program+<>c.<Main>b__0_1`.
    fn display_name(&self, name: &str) -> Option<String> {
        None
    }

    /// Returns how to show a signature of managed code; `None` as it was recorded.
    fn display_signature(&self, signature: &str) -> Option<String> {
        None
    }

    /// Passes the addresses of an image for which [`SymbolSource::native`] will be called, in
    /// ascending order, so that a source can resolve them as a batch.
    fn prepare(&self, image: &ImageRef<'_>, rvas: &[u64]) {}

    /// Returns the frames at an RVA of an image, innermost first.
    fn native(&self, image: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason> {
        Err(NameReason::NoSymbolFile)
    }
}
