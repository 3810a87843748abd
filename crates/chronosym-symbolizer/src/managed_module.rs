//! A managed module without a trace: looks up lines and names by token and IL offset, by name, or
//! by RVA in precompiled code.

use std::hash::BuildHasher;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use chronosym_pdb::Guid;
use chronosym_pdb::metadata::{Metadata, Table, Token};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::r2r::{AssemblyId, DefiningModule};
use chronosym_symbols::identity::PdbId;
use chronosym_symbols::store::StoreConfig;
use chronosym_types::hash::{HashMap, RandomState};

use crate::file_symbols::with_folder_of;
use crate::files::{FileError, Files};
use crate::managed::{PdbFile, PdbRequest, belongs};
use crate::method_text::{plain_name, takes};
use crate::module::ModuleFiles;
use crate::open_error::OpenError;
use crate::options::SymbolOptions;
use crate::pdb::Pdb;
use crate::pe::{CompositeFile, ImageFile, ImageParts};
use crate::precompiled;
use crate::search::{FileAt, FoundFile, SymbolFile};
use chronosym_core::IlOffset;
use chronosym_core::LineReason;
use chronosym_core::PrecompiledCode;
use chronosym_core::SourceLine;
use chronosym_core::file_name;

/// The files of a managed module: its image, its PDB, or both.
pub struct ManagedModule {
    files: Files,
    lines: bool,
    image: Option<Image>,
    of: ModuleFiles,
    /// PDBs of a composite's components, by name.
    components: Mutex<HashMap<String, Arc<PdbFile>>>,
    named: OnceLock<Named>,
    /// A note that the PDB belongs to another build.
    other_build: Option<String>,
}

/// The image, and values of it that are read repeatedly.
struct Image {
    base: u64,
    is_precompiled: bool,
    is_composite: bool,
    mvid: Option<Guid>,
    pdb: Option<PdbId>,
}

impl std::fmt::Debug for ManagedModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ManagedModule")
            .field("image", &self.of.image.found)
            .field("pdb", &self.of.pdb.file.found)
            .finish_non_exhaustive()
    }
}

impl ManagedModule {
    /// Opens the module of an image. Its PDB is `pdb`, or is searched for in the image itself and
    /// in the locations of `config`. A missing PDB is not an error: [`ManagedModule::pdb`] states
    /// the reason.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: a file cannot be read, is not managed, or does not belong to the image.
    pub fn of_image(
        path: &Path,
        pdb: Option<&Path>,
        config: StoreConfig,
        options: &SymbolOptions,
    ) -> Result<Self, OpenError> {
        let files = Files::new(with_folder_of(Some(path), config), options);
        let at = unidentified(path);
        let file = files.open::<ImageFile>(&at).map_err(|why| match why {
            FileError::Pdb(chronosym_pdb::Error::NotA { .. }) => OpenError::not_managed(path),
            why => unreadable(path, why),
        })?;
        let (image, pdb_path) = file
            .with(image_of)
            .ok_or_else(|| OpenError::not_managed(path))?;
        let mut other_build = None;
        let pdb = match pdb {
            Some(given) => {
                let fits = |pdb: &Pdb| image.pdb.is_none_or(|id| belongs(pdb, id));
                match given_pdb(given, &files, fits)? {
                    Some(pdb) => pdb,
                    None => {
                        let error = OpenError::OtherBuild {
                            pdb: given.to_owned(),
                            image: path.to_owned(),
                        };
                        let any = given_pdb(given, &files, |_| options.any_pdb)?;
                        other_build = Some(error.to_string());
                        any.ok_or(error)?
                    }
                }
            }
            None => pdb_of(&image, &pdb_path, &at, &files),
        };
        let found = SymbolFile::at(FoundFile::File(path.to_owned()), at);
        let of = ModuleFiles { image: found, pdb };
        let mut module = Self::new(files, options, Some(image), of);
        module.other_build = other_build;
        Ok(module)
    }

    /// Returns a note that the PDB belongs to another build, which [`SymbolOptions::any_pdb`]
    /// allows.
    pub fn other_build(&self) -> Option<&str> {
        self.other_build.as_deref()
    }

    /// Opens the module that a PDB describes. The PDB may be portable or a Windows PDB.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: the file cannot be read, or describes no managed code.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use chronosym_core::IlOffset;
    /// use chronosym_symbolizer::{ManagedModule, SymbolOptions};
    ///
    /// let pdb = Path::new("../../testdata/clr10/workload/PluginA.pdb");
    /// let module = ManagedModule::of_pdb(pdb, &SymbolOptions::default())?;
    /// let line = module.line(0x0600_0002, IlOffset::mapped(0)).unwrap();
    /// assert!(line.file.ends_with("PluginA.cs"));
    /// assert_eq!(line.line, 9);
    /// # Ok::<(), chronosym_symbolizer::OpenError>(())
    /// ```
    pub fn of_pdb(path: &Path, options: &SymbolOptions) -> Result<Self, OpenError> {
        let files = Files::new(StoreConfig::new(), options);
        let pdb = given_pdb(path, &files, Pdb::is_managed)?
            .ok_or_else(|| OpenError::not_managed(path))?;
        let image = SymbolFile::unidentified();
        Ok(Self::new(files, options, None, ModuleFiles { image, pdb }))
    }

    fn new(files: Files, options: &SymbolOptions, image: Option<Image>, of: ModuleFiles) -> Self {
        ManagedModule {
            files,
            lines: options.lines,
            image,
            of,
            components: Mutex::default(),
            named: OnceLock::new(),
            other_build: None,
        }
    }

    /// Returns the PDB: where it was searched for, and the result.
    pub fn pdb(&self) -> &SymbolFile {
        &self.of.pdb.file
    }

    /// Returns whether the image holds the precompiled code of several modules, whose images and
    /// PDBs are in the same folder.
    pub fn is_composite(&self) -> bool {
        let image = self.image.as_ref();
        image.is_some_and(|image| image.is_composite)
    }

    /// Returns the module version id in the image.
    pub fn mvid(&self) -> Option<Guid> {
        self.image.as_ref()?.mvid
    }

    /// Returns the id of the PDB that the image records.
    pub fn pdb_id(&self) -> Option<PdbId> {
        self.image.as_ref()?.pdb
    }

    /// Returns the preferred base of the image, if it has precompiled code.
    pub fn precompiled_base(&self) -> Option<u64> {
        let image = self.image.as_ref();
        image
            .filter(|image| image.is_precompiled)
            .map(|image| image.base)
    }

    /// Returns the line of an IL offset of a method.
    ///
    /// # Errors
    ///
    /// Why there is no line.
    pub fn line(&self, token: u32, il: IlOffset) -> Result<SourceLine, LineReason> {
        if !self.lines {
            return Err(LineReason::LinesDisabled);
        }
        self.of.pdb.line(&self.files, token, il)
    }

    /// Returns the line of precompiled code at an RVA. In a composite, it is read from the PDB of
    /// the component to which the method belongs.
    ///
    /// # Errors
    ///
    /// Why there is no line.
    pub fn precompiled_line(
        &self,
        rva: u64,
        code: &PrecompiledCode,
    ) -> Result<SourceLine, LineReason> {
        let il = code.il.ok_or(LineReason::NoILMap);
        if let Some(token) = code.token {
            return self.line(token, il?);
        }
        if !self.lines {
            return Err(LineReason::LinesDisabled);
        }
        let (token, pdb) = self.component_of(rva).ok_or(LineReason::NoLineInfo)?;
        pdb.line(&self.files, token.0, il?)
    }

    /// Returns the token of a method in a composite, and the PDB of its component.
    fn component_of(&self, rva: u64) -> Option<(Token, Arc<PdbFile>)> {
        let rva = u32::try_from(rva).ok()?;
        let at = self.of.image.file().filter(|_| self.is_composite())?;
        let composite = self.files.open::<CompositeFile>(at).ok()?;
        composite.with(|parts| {
            let found = parts.image.definition(&parts.image.method_at(rva)?)?;
            let DefiningModule::Assembly(assembly) = found.module else {
                return None;
            };
            Some((found.token, self.component(&at.path, &assembly)))
        })
    }

    fn component(&self, composite: &Path, assembly: &AssemblyId) -> Arc<PdbFile> {
        let components = self.components.lock();
        let mut components = components.unwrap_or_else(PoisonError::into_inner);
        let find = || {
            // The name is read from a file: accept only a file name in the same folder.
            let plain = file_name(&assembly.name) == assembly.name;
            let at = unidentified(&composite.with_file_name(format!("{}.dll", assembly.name)));
            let open = || self.files.open::<ImageFile>(&at).ok();
            let file = plain.then(open).flatten();
            let own = file.and_then(|file| file.with(image_of));
            let own = own.filter(|(own, _)| assembly.mvid.is_none() || own.mvid == assembly.mvid);
            Arc::new(match own {
                Some((image, path)) => pdb_of(&image, &path, &at, &self.files),
                None => PdbFile::unknown(),
            })
        };
        let found = components.entry(assembly.name.clone());
        Arc::clone(found.or_insert_with(find))
    }

    /// Returns the precompiled method at an RVA.
    pub fn precompiled(&self, rva: u64) -> Option<PrecompiledCode> {
        let rva = u32::try_from(rva).ok()?;
        let image = self.image.as_ref().filter(|image| image.is_precompiled)?;
        if image.is_composite {
            let at = self.of.image.file()?;
            let composite = self.files.open::<CompositeFile>(at).ok()?;
            return composite.with(|parts| precompiled::code_in(&parts.image, parts, rva));
        }
        self.of
            .with_image(&self.files, |parts| precompiled::code_at(parts.r2r()?, rva))
    }

    /// Returns type and method of a token. If only a PDB is available, the type is empty.
    pub fn method_name(&self, token: u32) -> Option<(String, String)> {
        self.of.method_name(&self.files, token).or_else(|| {
            let name = self.of.pdb.with_pdb(&self.files, |pdb| match pdb {
                Pdb::Windows(pdb) => pdb
                    .symbols
                    .with(|pdb| pdb.managed_name(token).ok().flatten()),
                Pdb::Portable(_) => None,
            });
            Some((String::new(), name?.ok()??))
        })
    }

    /// Returns the tokens of the methods with a name as stack traces write it:
    /// `Ns.Type+Nested.Method`, with the parameters in brackets if known. Returns several if the
    /// text does not distinguish overloads.
    pub fn methods_named(&self, method: &str) -> Vec<u32> {
        let named = self.named.get_or_init(|| {
            let all = self.with_metadata(|metadata| Some(Named::all(metadata)));
            all.unwrap_or_default()
        });
        let name = plain_name(method);
        let fitting = self.with_metadata(|metadata| {
            let takes = |row: &u32| {
                let signature = metadata.method_signature(metadata.method_def(*row)?.signature);
                takes(method, signature.as_ref()).then_some(())
            };
            let rows = named.rows(&name, metadata);
            let rows = rows.filter(|row| takes(row).is_some());
            Some(
                rows.map(|row| Token::new(Table::METHOD_DEF, row).0)
                    .collect(),
            )
        });
        fitting.unwrap_or_default()
    }

    fn with_metadata<R>(&self, ask: impl FnOnce(&Metadata<'_>) -> Option<R>) -> Option<R> {
        self.of
            .with_metadata(&self.files, |_, metadata| ask(metadata))
    }
}

fn unidentified(path: &Path) -> Arc<FileAt> {
    Arc::new(FileAt::new(path.to_owned(), None))
}

fn unreadable(path: &Path, why: FileError) -> OpenError {
    match why {
        // The error of a file includes its path.
        FileError::Symbols(error) => OpenError::unreadable(path, &error),
        other => OpenError::damaged(path, other),
    }
}

/// Opens the PDB that a user names; `None` if `fits` rejects it.
fn given_pdb(
    path: &Path,
    files: &Files,
    fits: impl Fn(&Pdb) -> bool,
) -> Result<Option<PdbFile>, OpenError> {
    let at = unidentified(path);
    let pdb = files.open::<Pdb>(&at);
    let pdb = pdb.map_err(|why| unreadable(path, why))?;
    let found = || PdbFile::at(FoundFile::File(path.to_owned()), at);
    Ok(fits(&pdb).then(found))
}

/// Finds the PDB that an image records, at a path.
fn pdb_of(image: &Image, pdb_path: &str, at: &Arc<FileAt>, files: &Files) -> PdbFile {
    let request = PdbRequest {
        id: image.pdb,
        pdb_path,
        image_path: &at.path.to_string_lossy(),
        image: Some(at),
        in_trace: None,
    };
    PdbFile::find(&request, files)
}

/// Returns the image, if it is managed, and the path of its PDB.
fn image_of(parts: &ImageParts<'_>) -> Option<(Image, String)> {
    let image = &parts.image;
    let r2r = parts.r2r();
    if r2r.is_none() && !is_managed(image) {
        return None;
    }
    let codeview = image
        .portable_codeview()
        .or_else(|| image.native_codeview());
    let id = codeview.as_ref().map(|codeview| codeview.id);
    let path = codeview.map_or(String::new(), |codeview| codeview.path);
    let of_image = Image {
        base: image.image_base(),
        is_precompiled: r2r.is_some_and(|r2r| r2r.method_count() > 0),
        is_composite: r2r.is_some_and(|r2r| r2r.is_composite()),
        mvid: parts.metadata().and_then(Metadata::mvid),
        pdb: id.filter(|id| !id.guid.is_zero()),
    };
    Some((of_image, path))
}

/// Returns whether an image holds IL only. C++/CLI images mix it with machine code, which their PDB
/// describes.
fn is_managed(image: &PeImage<'_>) -> bool {
    const IL_ONLY: u32 = 1;
    image
        .cor_header()
        .is_some_and(|cor| cor.flags & IL_ONLY != 0)
}

/// Maximum number of methods with one name whose parameters are compared.
const MOST_OVERLOADS: usize = 256;

/// MethodDef rows by the hash of the method's name in the form of [`plain_name`]. Hashes bound the
/// memory: long names may share one string in the file.
#[derive(Default)]
struct Named {
    hash: RandomState,
    rows: HashMap<u64, Vec<u32>>,
}

impl Named {
    fn all(metadata: &Metadata<'_>) -> Self {
        let mut named = Self::default();
        for row in 1..=metadata.rows(Table::METHOD_DEF) {
            if let Some(name) = name_of(row, metadata) {
                let hash = named.hash.hash_one(name);
                named.rows.entry(hash).or_default().push(row);
            }
        }
        named
    }

    fn rows(&self, name: &str, metadata: &Metadata<'_>) -> impl Iterator<Item = u32> {
        let rows = self.rows.get(&self.hash.hash_one(name));
        let rows = rows.into_iter().flatten().copied().take(MOST_OVERLOADS);
        rows.filter(move |&row| name_of(row, metadata).is_some_and(|own| own == name))
    }
}

fn name_of(row: u32, metadata: &Metadata<'_>) -> Option<String> {
    let owner = Token::new(Table::TYPE_DEF, metadata.method_owner(row)?);
    let name = metadata.method_def(row)?.name;
    Some(plain_name(&format!(
        "{}.{name}",
        metadata.type_name(owner)?.full()
    )))
}
