//! The symbolizer: finds and reads the symbol files of modules and images.

use std::path::PathBuf;
use std::sync::Arc;

use crate::files::Files;
use crate::image::ImageFiles;
use chronosym_core::{ImageRef, NativeFrame, SymbolIdentity, SymbolSource};
use chronosym_core::{LineReason, NameReason};
use chronosym_symbols::lru::WeightedLru;
use {
    crate::module::ModuleFiles,
    crate::precompiled::{self, PrecompiledResult},
    chronosym_core::IlOffset,
    chronosym_core::SourceLine,
    chronosym_core::{ModuleRef, PrecompiledCode, SnapshotKey},
    std::ops::Range,
};

use crate::kallsyms::Kallsyms;
use crate::options::SymbolOptions;
use crate::search::SymbolFile;
use chronosym_symbols::store::StoreConfig;

/// A [`SymbolSource`] over symbol folders, stores and servers, for any number of timelines
/// (including live ones) on any thread.
///
/// Results are cached by the identity of a module or image, so a missing file is searched for again
/// once the trace states more about its owner.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use chronosym_core::facts::{At, Method, Module};
/// use chronosym_core::{Action, Position, Session};
/// use chronosym_symbolizer::{StoreConfig, SymbolOptions, Symbolizer};
///
/// let mut config = StoreConfig::default();
/// config.folders.push("../../testdata/clr10/workload".into());
/// let symbols = Symbolizer::new(config, SymbolOptions::default());
///
/// // The runtime reported a method without a name.
/// let mut session = Session::new(chronosym_core::Options::default());
/// let at = At::new(0).process(42);
/// session.apply(at, Module::new(Action::Load, 5, "/app/PluginA.dll"));
/// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).in_module(5, 0x0600_0001));
/// let timeline = session.finish();
/// let process = timeline.find_process(42, None).unwrap();
/// let frames = timeline.frames(process, 0x1010, 100, Position::Exact, Some(&symbols));
/// // A module without an identity proves no file: the name is not taken from a file of the same name.
/// assert!(frames[0].name().is_err());
/// ```
pub struct Symbolizer {
    pub(super) files: Files,
    options: SymbolOptions,
    modules: WeightedLru<Key<SymbolIdentity>, ModuleFiles>,
    /// The base of a module's code differs between processes.
    precompiled: WeightedLru<Key<SnapshotKey>, PrecompiledResult>,
    images: WeightedLru<Key<SymbolIdentity>, ImageFiles>,
}

/// With the generation of the search locations: files that were not found are searched for again in
/// new locations.
type Key<T> = (u64, T);

impl std::fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbolizer")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl Symbolizer {
    /// Creates a symbolizer that searches the given locations. Opens no file or connection before
    /// the first request.
    pub fn new(config: StoreConfig, options: SymbolOptions) -> Self {
        Symbolizer {
            files: Files::new(config, &options),
            modules: WeightedLru::new(options.memory_bytes / 8),
            precompiled: WeightedLru::new(options.memory_bytes / 16),
            images: WeightedLru::new(options.memory_bytes / 16),
            options,
        }
    }

    /// Adds a folder of symbol files that came with a trace ([`StoreConfig::trace_folders`]), next
    /// to it or extracted from its archive, to the locations searched from now on.
    pub fn add_trace_folder(&self, folder: impl Into<PathBuf>) {
        self.files.search.add_trace_folder(folder.into());
    }

    /// Converts the symbol files that are open, where that is due ([`StoreConfig::symbol_cache`]),
    /// and stores them in the cache folder, so that other processes need not decode them. Call it
    /// when there is nothing else to do: it takes up to 3 s for each file, and 1 s more for each 8
    /// MB of it. Returns the number of bytes stored.
    pub fn convert_symbols(&self) -> u64 {
        self.files.convert()
    }

    /// Returns the symbol file of an image: where it was searched for, and the result.
    pub fn image_symbols(&self, image: &ImageRef<'_>) -> SymbolFile {
        let mut file = self.image(image, |files| files.best().clone());
        if let (Err(_), Some(kallsyms)) = (&file.found, self.kallsyms_of(image)) {
            file.try_kallsyms(kallsyms.path(), kallsyms.fits(image));
        }
        file
    }

    fn kallsyms_of(&self, image: &ImageRef<'_>) -> Option<&Kallsyms> {
        let kallsyms = self.options.kallsyms.as_deref();
        kallsyms.filter(|it| it.is_about(image))
    }

    fn image<R>(&self, image: &ImageRef<'_>, ask: impl FnOnce(&ImageFiles) -> R) -> R {
        let key = (self.files.search.generation(), image.identity());
        ask(&self.images.get_or_make(&key, || {
            let files = ImageFiles::find(image, &self.files);
            let weight = files.weight();
            (Arc::new(files), weight)
        }))
    }
}

impl Symbolizer {
    /// Returns the PDB of a module: where it was searched for, and the result.
    pub fn module_pdb(&self, module: &ModuleRef<'_>) -> SymbolFile {
        self.module(module).pdb.file.clone()
    }

    /// Returns the IL image of a module: where it was searched for, and the result.
    pub fn module_image(&self, module: &ModuleRef<'_>) -> SymbolFile {
        self.module(module).image.clone()
    }

    pub(super) fn module(&self, module: &ModuleRef<'_>) -> Arc<ModuleFiles> {
        let key = (self.files.search.generation(), module.identity());
        self.modules.get_or_make(&key, || {
            let (files, weight) = ModuleFiles::find(module, &self.files);
            (Arc::new(files), weight)
        })
    }

    /// Returns the source that describes the module's precompiled code.
    fn precompiled_in(&self, module: &ModuleRef<'_>) -> Arc<PrecompiledResult> {
        let Some(snapshot) = module.snapshot_key() else {
            return Arc::new(Err(LineReason::NoILMap));
        };
        let key = (self.files.search.generation(), snapshot);
        self.precompiled.get_or_make(&key, || {
            let found = precompiled::find(module, &self.module(module), &self.files);
            (Arc::new(found), 512)
        })
    }
}

impl SymbolSource for Symbolizer {
    fn wants_lines(&self) -> bool {
        self.options.lines
    }

    fn managed_line(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        il: IlOffset,
    ) -> Result<SourceLine, LineReason> {
        if !self.options.lines {
            return Err(LineReason::LinesDisabled);
        }
        self.module(module).pdb.line(&self.files, token, il)
    }

    fn method_name(&self, module: &ModuleRef<'_>, token: u32) -> Option<(String, String)> {
        self.module(module).method_name(&self.files, token)
    }

    fn precompiled_range(&self, module: &ModuleRef<'_>) -> Result<Range<u64>, LineReason> {
        let found = self.precompiled_in(module);
        match &*found {
            Ok(place) => Ok(place.range.clone()),
            Err(why) => Err(*why),
        }
    }

    fn precompiled(&self, module: &ModuleRef<'_>, address: u64) -> Option<PrecompiledCode> {
        let found = self.precompiled_in(module);
        found.as_ref().as_ref().ok()?.code(&self.files, address)
    }

    fn call_site(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        stated: Option<u32>,
        callee: &str,
    ) -> Option<u32> {
        let files = self.module(module);
        files.call_site(&self.files, token, stated, callee)
    }

    fn display_name(&self, name: &str) -> Option<String> {
        if self.options.source_names {
            let spelled = chronosym_pdb::csharp::SourceName::managed(name, None).to_string();
            return (spelled != name).then_some(spelled);
        }
        if !self.options.pretty {
            return None;
        }
        let (owner, method) = chronosym_pdb::pretty::split_name(name)?;
        chronosym_pdb::pretty::method_name(owner, method)
    }

    fn display_signature(&self, signature: &str) -> Option<String> {
        let at = signature.find('(').filter(|_| self.options.source_names)?;
        let arguments = chronosym_pdb::csharp::arguments(signature)?;
        Some(format!("{}{arguments}", &signature[..at]))
    }

    fn prepare(&self, image: &ImageRef<'_>, rvas: &[u64]) {
        self.image(image, |files| files.prepare(&self.files, rvas));
    }

    fn native(&self, image: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason> {
        let found = self.image(image, |files| files.frames(&self.files, rva));
        let mut frames = match (found, self.kallsyms_of(image)) {
            (Err(_), Some(kallsyms)) => match kallsyms.fits(image) {
                Ok(()) => kallsyms.frame(image, rva).into_iter().collect(),
                Err(_) => return Err(NameReason::SymbolFileMismatch),
            },
            (found, _) => found?,
        };
        if !self.options.lines {
            for frame in &mut frames {
                frame.line = Err(LineReason::LinesDisabled);
            }
        }
        Ok(frames)
    }
}
