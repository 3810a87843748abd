//! Functions and binaries of frames, each stored once, with their labels.

use std::fmt::Write;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

use chronosym_types::hash::{HashSet, RandomState};
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

use crate::ids::NameId;
use crate::ids::{BinaryId, FunctionId, ImageIndex, ModuleIndex, ProcessIndex};
use crate::source_line::SourceLine;
use crate::strings::StringId;
use crate::symbol_identity::SymbolIdentity;

/// A module or image: a file, the same in all processes.
#[derive(Debug)]
pub struct Binary {
    id: BinaryId,
    name: Box<str>,
    path: Box<str>,
    identity: Option<Box<str>>,
}

impl Binary {
    /// Returns its number.
    pub fn id(&self) -> BinaryId {
        self.id
    }

    /// Returns the simple name: no folder, no extension.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path, if known.
    pub fn path(&self) -> Option<&str> {
        Some(&*self.path).filter(|path| !path.is_empty())
    }

    /// Returns the id of the PDB (for precompiled images, of the IL's PDB), or the build id.
    pub fn identity(&self) -> Option<&str> {
        self.identity.as_deref()
    }
}

/// Binaries of any two resolvers are equal if name, path and identity are equal.
impl Binary {
    fn hash(&self, state: &RandomState) -> u64 {
        state.hash_one((&self.name, &self.path, &self.identity))
    }
}

impl PartialEq for Binary {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.path, &self.identity) == (&other.name, &other.path, &other.identity)
    }
}

/// A function: binary, name and signature. Each address of code without a name is a function.
#[derive(Debug)]
pub struct Function {
    id: FunctionId,
    binary: Option<Arc<Binary>>,
    label: Box<str>,
    /// Start of the name in the label, in bytes.
    name_at: Option<u32>,
    signature: Option<Box<str>>,
    compiled_as: Option<Box<str>>,
}

impl Function {
    /// Placeholder for a function that does not exist; no table contains it.
    pub(crate) fn nothing() -> Arc<Self> {
        Arc::new(Function {
            id: FunctionId(u32::MAX),
            binary: None,
            label: "0x0".into(),
            name_at: None,
            signature: None,
            compiled_as: None,
        })
    }

    /// Returns its number.
    pub fn id(&self) -> FunctionId {
        self.id
    }

    /// Returns the module or image of the function.
    pub fn binary(&self) -> Option<&Binary> {
        self.binary.as_deref()
    }

    /// Returns namespace, type and method; for native code the demangled symbol.
    pub fn name(&self) -> Option<&str> {
        self.name_at.map(|at| &self.label[at as usize..])
    }

    /// Returns the method's signature as the runtime spells it.
    pub fn signature(&self) -> Option<&str> {
        self.signature.as_deref()
    }

    /// Returns the compiler-generated name if [`Function::name`] is the name in the source.
    pub fn compiled_as(&self) -> Option<&str> {
        self.compiled_as.as_deref()
    }

    /// Returns the name as it was recorded.
    pub fn recorded_name(&self) -> Option<&str> {
        self.compiled_as().or(self.name())
    }

    /// Returns `module!name`, `module!0x06000001`, `module!+0xrva`, or the bare address.
    pub fn label(&self) -> &str {
        &self.label
    }

    fn key(&self) -> FunctionKey<'_> {
        FunctionKey {
            binary: self.binary.as_ref().map(|binary| binary.id),
            label: &self.label,
            name_at: self.name_at,
            signature: self.signature(),
            compiled_as: self.compiled_as(),
        }
    }
}

/// Functions of any two resolvers are equal if binary, name and signature are equal.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        let (own, others) = (self.key(), other.key());
        self.binary == other.binary
            && own
                == FunctionKey {
                    binary: own.binary,
                    ..others
                }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct FunctionKey<'a> {
    binary: Option<BinaryId>,
    label: &'a str,
    name_at: Option<u32>,
    signature: Option<&'a str>,
    compiled_as: Option<&'a str>,
}

/// Appends `module!name`, or the name alone. Returns the start of the name in bytes.
pub(crate) fn push_label(module: Option<&str>, name: &str, out: &mut String) -> usize {
    if let Some(module) = module {
        out.push_str(module);
        out.push('!');
    }
    let at = out.len();
    out.push_str(name);
    at
}

/// The source of a binary's name, path and identity in a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BinarySource {
    Module(ProcessIndex, ModuleIndex),
    Image(ProcessIndex, ImageIndex),
    /// The module name of an untimed symbol.
    Name(StringId),
}

/// Functions, binaries and source file names, each stored once.
#[derive(Debug, Default)]
pub(crate) struct FunctionTable {
    functions: Vec<Arc<Function>>,
    index: HashTable<u32>,
    /// Functions by the timeline's name ids: most functions occur at many addresses.
    by_name: FxHashMap<(Option<BinaryId>, NameId), Arc<Function>>,
    binaries: Vec<Arc<Binary>>,
    binary_index: HashTable<u32>,
    by_source: FxHashMap<BinarySource, Option<Arc<Binary>>>,
    identities: FxHashMap<(ProcessIndex, ImageIndex), SymbolIdentity>,
    /// Addresses of the precompiled code of modules.
    precompiled: FxHashMap<(ProcessIndex, ModuleIndex), Range<u64>>,
    files: HashSet<Arc<str>>,
    hash: RandomState,
    scratch: String,
    /// Bytes of labels and signatures.
    text_bytes: usize,
}

impl FunctionTable {
    pub(crate) fn functions(&self) -> &[Arc<Function>] {
        &self.functions
    }

    pub(crate) fn binaries(&self) -> &[Arc<Binary>] {
        &self.binaries
    }

    /// Bytes of all functions, with their entries in the index.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.functions.len() * (size_of::<Function>() + 96) + self.text_bytes
    }

    /// Returns an image's identity, computed on first use: its texts are long.
    pub(crate) fn identity_of(
        &mut self,
        process: ProcessIndex,
        index: ImageIndex,
        make: impl FnOnce() -> SymbolIdentity,
    ) -> SymbolIdentity {
        let identity = self.identities.entry((process, index));
        *identity.or_insert_with(make)
    }

    /// Returns the addresses of a module's precompiled code, determined on first use: an address
    /// without a body is looked for in those of all modules.
    pub(crate) fn precompiled_range(
        &mut self,
        process: ProcessIndex,
        index: ModuleIndex,
        find: impl FnOnce() -> Range<u64>,
    ) -> &Range<u64> {
        let range = self.precompiled.entry((process, index));
        range.or_insert_with(find)
    }

    /// Forgets what the next snapshot may have changed of images and precompiled code.
    pub(crate) fn forget_snapshot(&mut self) {
        self.identities.clear();
        self.precompiled.clear();
    }

    /// Returns the binary of `source`, created from (name, path, identity) on first use; `None`
    /// without a name.
    pub(crate) fn binary<'t>(
        &mut self,
        source: BinarySource,
        make: impl FnOnce() -> (&'t str, &'t str, Option<String>),
    ) -> Option<Arc<Binary>> {
        if let Some(binary) = self.by_source.get(&source) {
            return binary.clone();
        }
        let (name, path, identity) = make();
        let binary = (!name.is_empty()).then(|| {
            let new = Binary {
                id: BinaryId(self.binaries.len() as u32),
                name: name.into(),
                path: path.into(),
                identity: identity.map(String::into_boxed_str),
            };
            let (hash, all) = (new.hash(&self.hash), &mut self.binaries);
            let same = self.binary_index.find(hash, |&at| *all[at as usize] == new);
            let at = same.copied().unwrap_or_else(|| {
                let at = all.len() as u32;
                all.push(Arc::new(new));
                let rehash = |&at: &u32| all[at as usize].hash(&self.hash);
                self.binary_index.insert_unique(hash, at, rehash);
                at
            });
            Arc::clone(&all[at as usize])
        });
        self.by_source.insert(source, binary.clone());
        binary
    }

    /// Forgets the timeline's binaries, which are looked up again when next needed: in a later
    /// timeline they may have identities.
    pub(crate) fn forget_sources(&mut self) {
        self.by_source.clear();
    }

    /// Returns the function cached for a name of the timeline.
    pub(crate) fn cached(
        &self,
        binary: Option<&Arc<Binary>>,
        name: NameId,
    ) -> Option<Arc<Function>> {
        let key = (binary.map(|binary| binary.id), name);
        self.by_name.get(&key).cloned()
    }

    /// Caches a function for [`FunctionTable::cached`].
    pub(crate) fn cache(&mut self, name: NameId, function: &Arc<Function>) {
        let binary = function.binary.as_ref().map(|binary| binary.id);
        self.by_name.insert((binary, name), Arc::clone(function));
    }

    /// Returns the function with a name.
    pub(crate) fn named(
        &mut self,
        binary: Option<&Arc<Binary>>,
        name: &str,
        signature: Option<&str>,
        compiled_as: Option<&str>,
    ) -> Arc<Function> {
        let mut label = std::mem::take(&mut self.scratch);
        label.clear();
        let module = binary.map(|binary| binary.name());
        let name_at = push_label(module, name, &mut label) as u32;
        self.intern(binary, label, Some(name_at), signature, compiled_as)
    }

    /// Returns the function for code without a name.
    pub(crate) fn unnamed(
        &mut self,
        binary: Option<&Arc<Binary>>,
        rva: Option<u64>,
        address: u64,
    ) -> Arc<Function> {
        let mut label = std::mem::take(&mut self.scratch);
        label.clear();
        // Writing to a String does not fail.
        let _ = match (binary, rva) {
            (Some(binary), Some(rva)) => write!(label, "{}!+{rva:#x}", binary.name),
            _ => write!(label, "{address:#x}"),
        };
        self.intern(binary, label, None, None, None)
    }

    /// Returns the function for a method known by its token only: `module!0x06000001`.
    pub(crate) fn of_token(&mut self, binary: &Arc<Binary>, token: u32) -> Arc<Function> {
        let label = format!("{}!{token:#010x}", binary.name);
        self.intern(Some(binary), label, None, None, None)
    }

    /// Returns the function for a group of functions: its label is its name.
    pub(crate) fn collapsed(&mut self, label: &str, binary: Option<&Arc<Binary>>) -> Arc<Function> {
        self.intern(binary, label.to_owned(), Some(0), None, None)
    }

    /// Returns the function for frames that are left out, whatever their code: it has no name.
    pub(crate) fn left_out(&mut self, label: &str) -> Arc<Function> {
        self.intern(None, label.to_owned(), None, None, None)
    }

    fn intern(
        &mut self,
        binary: Option<&Arc<Binary>>,
        label: String,
        name_at: Option<u32>,
        signature: Option<&str>,
        compiled_as: Option<&str>,
    ) -> Arc<Function> {
        let key = FunctionKey {
            binary: binary.map(|binary| binary.id),
            label: &label,
            name_at,
            signature,
            compiled_as,
        };
        let hash = self.hash.hash_one(key);
        let same = |&id: &u32| self.functions[id as usize].key() == key;
        let function = match self.index.find(hash, same) {
            Some(&id) => Arc::clone(&self.functions[id as usize]),
            None => {
                let id = self.functions.len() as u32;
                let function = Arc::new(Function {
                    id: FunctionId(id),
                    binary: binary.cloned(),
                    label: label.as_str().into(),
                    name_at,
                    signature: signature.map(Box::from),
                    compiled_as: compiled_as.map(Box::from),
                });
                self.functions.push(Arc::clone(&function));
                self.text_bytes += label.len() + signature.map_or(0, str::len);
                let functions = &self.functions;
                let rehash = |&id: &u32| self.hash.hash_one(functions[id as usize].key());
                self.index.insert_unique(hash, id, rehash);
                function
            }
        };
        self.scratch = label;
        function
    }

    /// Shares the file name of a line with all other lines in that file.
    pub(crate) fn line(&mut self, line: SourceLine) -> SourceLine {
        let file = match self.files.get(&line.file) {
            Some(file) => Arc::clone(file),
            None => {
                self.files.insert(Arc::clone(&line.file));
                line.file
            }
        };
        SourceLine { file, ..line }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chronosym_support::growth::{Size, Stopwatch, assert_growth};

    use super::*;

    #[test]
    fn many_binaries_take_time_linear_in_their_number() {
        let timed = |many: u32| {
            let paths: Vec<String> = (0..many).map(|n| format!("/lib/{n}.so")).collect();
            let watch = Stopwatch::start();
            let mut table = FunctionTable::default();
            for source in 0..2 {
                for (at, path) in (0..many).zip(&paths) {
                    let source = BinarySource::Image(ProcessIndex(source), ImageIndex(at));
                    let binary = table.binary(source, || ("lib", path, None));
                    assert_eq!(binary.expect("it has a name").path(), Some(&**path));
                }
            }
            assert_eq!(table.binaries().len(), paths.len());
            watch.used()
        };
        // The input is 16 times as large: a walk over all elements for each would take 256 times as
        // long.
        assert_growth("binaries", 60.0, Duration::from_millis(20), |size| {
            timed(if size == Size::Small { 2_000 } else { 32_000 })
        });
    }
}
