//! Names and lines beyond the trace: the symbol stage, from the identity of a module or image to what its files say.
//!
//! A [`Symbolizer`] is a [`SymbolSource`] that looks for files in the places of a [`StoreConfig`]. Each file is looked
//! for once, used only if its identity is the one in the trace, and kept open as long as there is room.

mod image;
mod managed;
mod module;
mod open;
mod parts;
mod precompiled;
mod search;
mod target;

use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use crate::body::ModuleIndex;
use crate::evidence::{LineReason, NameReason};
use crate::frame::SourceLine;
use crate::il_map::IlOffset;
use crate::images::ImageIndex;
use crate::process::ProcessIndex;
use crate::symbol_source::{ImageRef, ModuleRef, NativeFrame, PrecompiledCode, SymbolSource};
use image::ImageFiles;
use module::ModuleFiles;
use open::OpenFiles;
use search::Search;

pub use chronosym_symbols::cache;
pub use chronosym_symbols::path::{SymbolPath, parse_debuginfod_urls};
pub use chronosym_symbols::store::{Attempt, NoFile, Place, StoreConfig, Trial};
pub use search::{FoundFile, SymbolFile};

/// What a [`Symbolizer`] does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SymbolOptions {
    /// Whether lines are looked up. Without them frames say [`LineReason::LinesDisabled`].
    pub lines: bool,
    /// Whether names that a compiler gave are shown as what the user wrote: `Program.Main.Local`.
    pub pretty: bool,
    /// How many bytes of files are kept open at most.
    pub open_bytes: u64,
}

impl Default for SymbolOptions {
    fn default() -> Self {
        SymbolOptions {
            lines: true,
            pretty: false,
            open_bytes: 4 << 30,
        }
    }
}

/// What is known of an item, made when it is first asked for.
type Once<T> = Arc<OnceLock<T>>;

/// A [`SymbolSource`] over symbol folders, stores and servers, for one timeline. `Sync`.
pub struct Symbolizer {
    search: Search,
    files: OpenFiles,
    options: SymbolOptions,
    modules: RwLock<FxHashMap<(ProcessIndex, ModuleIndex), Once<ModuleFiles>>>,
    images: RwLock<FxHashMap<(ProcessIndex, ImageIndex), Once<ImageFiles>>>,
}

impl std::fmt::Debug for Symbolizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbolizer")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The item of a key, which is looked up far more often than made.
fn item<K: std::hash::Hash + Eq, T>(items: &RwLock<FxHashMap<K, Once<T>>>, key: K) -> Once<T> {
    let known = items.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(item) = known.get(&key) {
        return Arc::clone(item);
    }
    drop(known);
    let mut items = items.write().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(items.entry(key).or_default())
}

impl Symbolizer {
    /// A symboliser that looks in the given places. Nothing is touched until something is asked for.
    pub fn new(config: StoreConfig, options: SymbolOptions) -> Self {
        Symbolizer {
            search: Search::new(config),
            files: OpenFiles::new(options.open_bytes),
            options,
            modules: RwLock::default(),
            images: RwLock::default(),
        }
    }

    fn module<R>(&self, module: &ModuleRef<'_>, ask: impl FnOnce(&ModuleFiles) -> R) -> R {
        let item = item(&self.modules, module.key);
        ask(item.get_or_init(|| ModuleFiles::find(module, &self.search, &self.files)))
    }

    fn image<R>(&self, image: &ImageRef<'_>, ask: impl FnOnce(&ImageFiles) -> R) -> R {
        let item = item(&self.images, image.key);
        ask(item.get_or_init(|| ImageFiles::find(image, &self.search, &self.files)))
    }

    /// The PDB of a module: where it was looked for, and what came of it.
    pub fn module_pdb(&self, module: &ModuleRef<'_>) -> SymbolFile {
        self.module(module, |files| files.pdb.file.clone())
    }

    /// The IL image of a module: where it was looked for, and what came of it.
    pub fn module_image(&self, module: &ModuleRef<'_>) -> SymbolFile {
        self.module(module, |files| files.image.clone())
    }

    /// The symbol file of an image: where it was looked for, and what came of it.
    pub fn image_symbols(&self, image: &ImageRef<'_>) -> SymbolFile {
        self.image(image, |files| files.told().clone())
    }
}

impl SymbolSource for Symbolizer {
    fn managed_line(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        il: IlOffset,
    ) -> Result<SourceLine, LineReason> {
        if !self.options.lines {
            return Err(LineReason::LinesDisabled);
        }
        self.module(module, |files| files.pdb.line(&self.files, token, il))
    }

    fn method_name(&self, module: &ModuleRef<'_>, token: u32) -> Option<(String, String)> {
        self.module(module, |files| files.method_name(&self.files, token))
    }

    fn precompiled_range(&self, module: &ModuleRef<'_>) -> Option<Range<u64>> {
        self.module(module, |files| {
            files.range(module, &self.search, &self.files)
        })
    }

    fn precompiled(&self, module: &ModuleRef<'_>, address: u64) -> Option<PrecompiledCode> {
        self.module(module, |files| {
            files.precompiled(module, &self.search, &self.files, address)
        })
    }

    fn precompiled_reason(&self, module: &ModuleRef<'_>) -> Option<LineReason> {
        self.module(module, |files| {
            files.precompiled_reason(module, &self.search, &self.files)
        })
    }

    fn call_site(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        stated: Option<u32>,
        callee: &str,
    ) -> Option<u32> {
        self.module(module, |files| {
            files.call_site(&self.files, token, stated, callee)
        })
    }

    fn display_name(&self, name: &str) -> Option<String> {
        let (owner, method) = split_name(name).filter(|_| self.options.pretty)?;
        chronosym_pdb::pretty::method_name(owner, method)
    }

    fn prepare(&self, image: &ImageRef<'_>, rvas: &[u64]) {
        self.image(image, |files| files.prepare(&self.files, rvas));
    }

    fn native(&self, image: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason> {
        let mut frames = self.image(image, |files| files.frames(&self.search, &self.files, rva))?;
        if !self.options.lines {
            for frame in &mut frames {
                frame.line = Err(LineReason::LinesDisabled);
            }
        }
        Ok(frames)
    }
}

/// Type and method of a full name: they meet at the last dot outside of brackets, and constructors begin with one.
fn split_name(name: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let dot = name.char_indices().rev().find(|&(_, c)| {
        match c {
            '>' | ']' => depth += 1,
            '<' | '[' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '.' && depth == 0
    });
    let (at, _) = dot?;
    let at = if name[..at].ends_with('.') {
        at - 1
    } else {
        at
    };
    Some((&name[..at], &name[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_outside_of_brackets() {
        for (name, parts) in [
            (
                "A.Program+<>c.<Main>b__0_1",
                Some(("A.Program+<>c", "<Main>b__0_1")),
            ),
            (
                "A.B+<X>d__1[System.Int32].MoveNext",
                Some(("A.B+<X>d__1[System.Int32]", "MoveNext")),
            ),
            (
                "A.B.<System.I.Get>g__Local|0",
                Some(("A.B", "<System.I.Get>g__Local|0")),
            ),
            ("A.B+<>c..ctor", Some(("A.B+<>c", ".ctor"))),
            ("plain", None),
        ] {
            assert_eq!(split_name(name), parts, "{name}");
        }
    }
}
