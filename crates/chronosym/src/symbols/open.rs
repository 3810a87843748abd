//! Symbol files that are open: parsed over their bytes, and kept up to a number of bytes.

use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chronosym_pdb::metadata::{Metadata, Token};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::portable::PortablePdb;
use chronosym_pdb::r2r::{AssemblyId, ModuleSource, R2rImage, R2rMap};
use chronosym_pdb::windows::WindowsPdb;
use chronosym_symbols::NativeSymbols;
use chronosym_symbols::lru::WeightedLru;
use chronosym_symbols::mmap::FileData;
use rustc_hash::FxHashMap;

use crate::frame::SourceLine;
use crate::il_map::{IlOffset, IlSource};

/// The most that a PDB inside an image may unpack to, in bytes.
const MAX_EMBEDDED: usize = 256 << 20;

self_cell::self_cell! {
    struct PortableCell {
        owner: FileData,
        #[not_covariant]
        dependent: PortablePdb,
    }
}

self_cell::self_cell! {
    struct WindowsCell {
        owner: FileData,
        #[not_covariant]
        dependent: WindowsPdb,
    }
}

self_cell::self_cell! {
    struct MapCell {
        owner: FileData,
        #[covariant]
        dependent: R2rMap,
    }
}

self_cell::self_cell! {
    struct CompositeCell {
        owner: Vec<FileData>,
        #[not_covariant]
        dependent: CompositeParts,
    }
}

/// A composite image, with the metadata of those of its components that stand beside it.
pub(super) struct CompositeParts<'d> {
    pub image: R2rImage<'d>,
    modules: Vec<(String, Metadata<'d>)>,
}

impl ModuleSource for CompositeParts<'_> {
    fn metadata<'s>(&'s self, assembly: &AssemblyId<'_>) -> Option<&'s Metadata<'s>> {
        let is_it = |(name, _): &&(String, Metadata<'_>)| *name == assembly.name;
        self.modules
            .iter()
            .find(is_it)
            .map(|(_, metadata)| metadata)
    }
}

impl CompositeCell {
    fn open(path: &Path, data: FileData) -> Result<Self, String> {
        let text = |error: chronosym_pdb::Error| error.to_string();
        let folder = path.parent().unwrap_or(Path::new(""));
        // Names out of the file: plain ones only.
        let names: Vec<String> = R2rImage::parse(&data)
            .map_err(text)?
            .components()
            .map(|assembly| assembly.name.into_owned())
            .filter(|name| !name.contains(['/', '\\', '\0', ':']))
            .collect();
        let mut files = vec![data];
        let mut found = Vec::new();
        for name in names {
            if let Ok(file) = FileData::map(&folder.join(format!("{name}.dll"))) {
                files.push(file);
                found.push(name);
            }
        }
        CompositeCell::try_new(files, |files| {
            let modules = found.into_iter().zip(&files[1..]);
            let metadata = |data| PeImage::parse(data).and_then(|image| image.metadata());
            Ok(CompositeParts {
                image: R2rImage::parse(&files[0]).map_err(text)?,
                modules: modules
                    .filter_map(|(name, data)| Some((name, metadata(data).ok()?)))
                    .collect(),
            })
        })
    }
}

self_cell::self_cell! {
    struct ImageCell {
        owner: FileData,
        #[not_covariant]
        dependent: ImageParts,
    }
}

/// What a PE image holds for a symboliser; the dearer parts are read when first asked for.
pub(super) struct ImageParts<'d> {
    pub image: PeImage<'d>,
    metadata: OnceLock<Option<Metadata<'d>>>,
    r2r: OnceLock<Option<R2rImage<'d>>>,
}

impl<'d> ImageParts<'d> {
    pub(super) fn metadata(&self) -> Option<&Metadata<'d>> {
        self.metadata
            .get_or_init(|| self.image.metadata().ok())
            .as_ref()
    }

    pub(super) fn r2r(&self) -> Option<&R2rImage<'d>> {
        self.r2r
            .get_or_init(|| R2rImage::open(self.image.clone()).ok())
            .as_ref()
    }
}

/// File paths and names, each once.
#[derive(Default)]
struct Texts(Mutex<FxHashMap<Box<str>, Arc<str>>>);

impl Texts {
    fn get(&self, text: &str) -> Arc<str> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(text) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = text.into();
        known.insert(text.into(), Arc::clone(&shared));
        shared
    }
}

/// A managed PDB of either format.
pub(super) enum ManagedPdb {
    Portable(PortableFile),
    Windows(WindowsFile),
}

impl ManagedPdb {
    /// Opens a PDB, told apart by content; the text says what is wrong with it.
    pub(super) fn open(data: FileData) -> Result<Self, String> {
        if PortablePdb::sniff(&data) {
            PortableFile::open(data).map(ManagedPdb::Portable)
        } else {
            WindowsFile::open(data).map(ManagedPdb::Windows)
        }
    }

    /// The line of an IL offset (rule 14), if the PDB has one; the text says what is damaged.
    pub(super) fn line(&self, token: Token, il: IlOffset) -> Result<Option<SourceLine>, String> {
        match self {
            ManagedPdb::Portable(pdb) => Ok(pdb.line(token, il)),
            ManagedPdb::Windows(pdb) => pdb.managed_line(token, il),
        }
    }
}

/// A portable PDB.
pub(super) struct PortableFile {
    cell: PortableCell,
    /// By document row: putting a path together takes longer than finding a line.
    documents: Mutex<FxHashMap<u32, Option<Arc<str>>>>,
}

impl PortableFile {
    pub(super) fn open(data: FileData) -> Result<Self, String> {
        let cell = PortableCell::try_new(data, |data| PortablePdb::parse(data));
        Ok(PortableFile {
            cell: cell.map_err(|error| error.to_string())?,
            documents: Mutex::default(),
        })
    }

    pub(super) fn with<R>(&self, ask: impl FnOnce(&PortablePdb<'_>) -> R) -> R {
        self.cell.with_dependent(|_, pdb| ask(pdb))
    }

    fn line(&self, token: Token, il: IlOffset) -> Option<SourceLine> {
        self.with(|pdb| {
            let answer = pdb.line_at(token.row(), il.offset).or_else(|| {
                // A prolog stands for the method's first sequence point, wherever that is.
                let prolog = il.source == IlSource::Prolog;
                prolog.then(|| pdb.first_line(token.row())).flatten()
            })?;
            let mut documents = self
                .documents
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let file = documents
                .entry(answer.document)
                .or_insert_with(|| Some(pdb.document(answer.document)?.name.into()))
                .clone()?;
            Some(SourceLine {
                file,
                line: answer.start_line,
                column: Some(answer.start_column).filter(|&column| column > 0),
            })
        })
    }
}

/// A Windows PDB.
pub(super) struct WindowsFile {
    cell: WindowsCell,
    paths: Texts,
}

impl WindowsFile {
    pub(super) fn open(data: FileData) -> Result<Self, String> {
        let cell = WindowsCell::try_new(data, |data| WindowsPdb::open(data));
        Ok(WindowsFile {
            cell: cell.map_err(|error| error.to_string())?,
            paths: Texts::default(),
        })
    }

    pub(super) fn with<R>(&self, ask: impl FnOnce(&WindowsPdb<'_>) -> R) -> R {
        self.cell.with_dependent(|_, pdb| ask(pdb))
    }

    pub(super) fn path(&self, path: &str) -> Arc<str> {
        self.paths.get(path)
    }

    fn managed_line(&self, token: Token, il: IlOffset) -> Result<Option<SourceLine>, String> {
        self.with(|pdb| {
            let found = pdb
                .managed_line(token.0, il.offset)
                .map_err(|error| error.to_string())?;
            Ok(found.and_then(|found| {
                Some(SourceLine {
                    file: self.paths.get(found.file.as_deref()?),
                    line: found.line,
                    column: found.column.map(u32::from),
                })
            }))
        })
    }
}

/// A PE image, managed or precompiled.
pub(super) struct ImageFile(ImageCell);

impl ImageFile {
    fn open(data: FileData) -> Result<Self, String> {
        let cell = ImageCell::try_new(data, |data| {
            PeImage::parse(data).map(|image| ImageParts {
                image,
                metadata: OnceLock::new(),
                r2r: OnceLock::new(),
            })
        });
        cell.map(ImageFile).map_err(|error| error.to_string())
    }

    pub(super) fn with<R>(&self, ask: impl FnOnce(&ImageParts<'_>) -> R) -> R {
        self.0.with_dependent(|_, parts| ask(parts))
    }
}

/// A native object file, and the paths it names.
pub(super) struct NativeFile {
    pub symbols: NativeSymbols,
    texts: Texts,
}

impl NativeFile {
    /// A path or name, shared.
    pub(super) fn text(&self, text: &str) -> Arc<str> {
        self.texts.get(text)
    }
}

/// In which way a file is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum As {
    Pdb,
    EmbeddedPdb,
    Image,
    Composite,
    Map,
    Native,
}

/// An open file, or why it cannot be read: that is remembered as well.
enum Open {
    Pdb(ManagedPdb),
    Image(ImageFile),
    Composite(CompositeCell),
    Map(MapCell),
    Native(Box<NativeFile>),
    Damaged(String),
}

/// Open files, the least recently used of which are closed when they are too many bytes.
pub(super) struct OpenFiles(WeightedLru<(PathBuf, As), Open>);

/// What a file costs beside its bytes: tables of contents and what was decoded.
const OVERHEAD: u64 = 64 << 10;

impl OpenFiles {
    pub(super) fn new(budget: u64) -> Self {
        OpenFiles(WeightedLru::new(budget))
    }

    fn open(
        &self,
        path: &Path,
        form: As,
        open: impl FnOnce(FileData) -> Result<Open, String>,
    ) -> Arc<Open> {
        let load = || -> Result<(Arc<Open>, u64), std::convert::Infallible> {
            let (open, weight) = match FileData::map(path) {
                Ok(data) => {
                    let weight = data.len() as u64;
                    (open(data), weight)
                }
                Err(error) => (Err(error.to_string()), 0),
            };
            let open = open.unwrap_or_else(Open::Damaged);
            Ok((Arc::new(open), weight.saturating_add(OVERHEAD)))
        };
        match self.0.get_or_load(&(path.to_owned(), form), load) {
            Ok(open) => open,
        }
    }

    /// Asks a managed or native PDB.
    pub(super) fn pdb<R>(
        &self,
        path: &Path,
        ask: impl FnOnce(&ManagedPdb) -> Result<R, String>,
    ) -> Result<R, String> {
        let open = self.open(path, As::Pdb, |data| ManagedPdb::open(data).map(Open::Pdb));
        match &*open {
            Open::Pdb(pdb) => ask(pdb),
            other => Err(other.why()),
        }
    }

    /// Asks the PDB inside an image.
    pub(super) fn embedded_pdb<R>(
        &self,
        image: &Path,
        ask: impl FnOnce(&ManagedPdb) -> Result<R, String>,
    ) -> Result<R, String> {
        let open = self.open(image, As::EmbeddedPdb, |data| {
            let pdb = PeImage::parse(&data)
                .and_then(|image| image.embedded_portable_pdb(MAX_EMBEDDED))
                .map_err(|error| error.to_string())?;
            let pdb = pdb.ok_or("no PDB in it")?;
            ManagedPdb::open(FileData::from(pdb)).map(Open::Pdb)
        });
        match &*open {
            Open::Pdb(pdb) => ask(pdb),
            other => Err(other.why()),
        }
    }

    /// Asks a PE image.
    pub(super) fn image<R>(
        &self,
        path: &Path,
        ask: impl FnOnce(&ImageParts<'_>) -> R,
    ) -> Result<R, String> {
        let open = self.open(path, As::Image, |data| {
            ImageFile::open(data).map(Open::Image)
        });
        match &*open {
            Open::Image(image) => Ok(image.with(ask)),
            other => Err(other.why()),
        }
    }

    /// Asks a composite image.
    pub(super) fn composite<R>(
        &self,
        path: &Path,
        ask: impl FnOnce(&CompositeParts<'_>) -> R,
    ) -> Result<R, String> {
        let open = self.open(path, As::Composite, |data| {
            CompositeCell::open(path, data).map(Open::Composite)
        });
        match &*open {
            Open::Composite(composite) => Ok(composite.with_dependent(|_, parts| ask(parts))),
            other => Err(other.why()),
        }
    }

    /// Asks the perf map of a precompiled image.
    pub(super) fn map<R>(
        &self,
        path: &Path,
        ask: impl FnOnce(&R2rMap<'_>) -> R,
    ) -> Result<R, String> {
        let open = self.open(path, As::Map, |data| {
            let cell = MapCell::try_new(data, |data| R2rMap::parse(data));
            cell.map(Open::Map).map_err(|error| error.to_string())
        });
        match &*open {
            Open::Map(map) => Ok(ask(map.borrow_dependent())),
            other => Err(other.why()),
        }
    }

    /// Asks a native object file.
    pub(super) fn native<R>(
        &self,
        path: &Path,
        ask: impl FnOnce(&NativeFile) -> Result<R, String>,
    ) -> Result<R, String> {
        let open = self.open(path, As::Native, |_| {
            let symbols = NativeSymbols::open_path(path);
            Ok(Open::Native(Box::new(NativeFile {
                symbols: symbols.map_err(|error| error.to_string())?,
                texts: Texts::default(),
            })))
        });
        match &*open {
            Open::Native(native) => ask(native),
            other => Err(other.why()),
        }
    }
}

impl Open {
    fn why(&self) -> String {
        match self {
            Open::Damaged(why) => why.clone(),
            _ => "it is of another kind".to_owned(),
        }
    }
}
