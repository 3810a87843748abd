//! From entry points to names.

use std::borrow::Cow;

use super::header::section;
use super::{MethodId, R2rImage, R2rMethod};
use crate::Guid;
use crate::metadata::{
    BlobReader, Budget, Metadata, MethodName, Modules, SignatureReader, Table, Token, Type,
};

/// Flags of a method signature.
mod flag {
    pub(super) const METHOD_INSTANTIATION: u32 = 0x04;
    pub(super) const MEMBER_REF: u32 = 0x10;
    pub(super) const OWNER_TYPE: u32 = 0x40;
    pub(super) const UPDATE_CONTEXT: u32 = 0x80;
    pub(super) const CONSTRAINED: u32 = 0x20;
}

const MODULE_OVERRIDE: u8 = 0x3f;

/// An assembly whose metadata a name needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssemblyId<'a> {
    /// Its simple name: the file is `name.dll`.
    pub name: Cow<'a, str>,
    /// The module version id that its metadata must have, if the image states it.
    pub mvid: Option<Guid>,
}

/// Finds the metadata of other assemblies, for composites and for images that were compiled together.
pub trait ModuleSource {
    /// The metadata of an assembly; nothing if it is not at hand. A wrong version need not be sorted
    /// out here: an id that differs is refused.
    fn metadata<'s>(&'s self, assembly: &AssemblyId<'_>) -> Option<&'s Metadata<'s>>;
}

/// No other assembly is at hand.
#[derive(Debug, Clone, Copy)]
pub struct NoModules;

impl ModuleSource for NoModules {
    fn metadata<'s>(&'s self, _: &AssemblyId<'_>) -> Option<&'s Metadata<'s>> {
        None
    }
}

/// The module that a token belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModuleRef<'a> {
    /// The image's own IL.
    Image,
    /// The metadata that the compiler added to the image.
    Manifest,
    /// Another assembly.
    Assembly(AssemblyId<'a>),
}

/// Where the name or the metadata of a module stands.
enum Place {
    Image,
    Manifest,
    /// A row of the image's own assembly references.
    Reference(u32),
    /// A row of the manifest's.
    ManifestReference(u32),
}

/// Who a method is in metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Definition<'a> {
    /// The module of the token: its portable PDB has the lines.
    pub module: ModuleRef<'a>,
    /// A MethodDef; a MemberRef for some methods compiled out of other modules.
    pub token: Token,
}

/// The head of an instance's signature.
struct Instance {
    /// Index of the module that the row belongs to.
    module: u32,
    owner: Option<Type>,
    token: Token,
}

impl R2rImage<'_> {
    /// The name of a method: owner with its instantiation, plain name, signature. `modules` gives the
    /// metadata of other assemblies; a single image hardly ever asks for any. Nothing if the module
    /// that defines the method is not at hand or damaged; types out of missing modules are
    /// [`Type::Unknown`].
    pub fn method_name(
        &self,
        method: &R2rMethod,
        modules: &dyn ModuleSource,
    ) -> Option<MethodName> {
        match method.id {
            MethodId::Definition { component, row } => {
                let metadata = match &self.metadata {
                    Some(metadata) => metadata,
                    None => self.manifest_module(component.checked_add(1)?, modules)?,
                };
                metadata.method(Token::new(Table::METHOD_DEF, row))
            }
            MethodId::Instance { signature } => {
                let find = |index| self.module(index, modules);
                let instance = self.instance(signature, &find)?;
                let mut name = find(instance.module)?.method(instance.token)?;
                if let Some(owner) = instance.owner {
                    name.owner = owner;
                }
                Some(name)
            }
        }
    }

    /// The token of a method, and the module that it belongs to.
    pub fn definition(&self, method: &R2rMethod) -> Option<Definition<'_>> {
        match method.id {
            MethodId::Definition { component, row } => {
                let module = match &self.metadata {
                    Some(_) => ModuleRef::Image,
                    None => ModuleRef::Assembly(self.manifest_assembly(component.checked_add(1)?)?),
                };
                Some(Definition {
                    module,
                    token: Token::new(Table::METHOD_DEF, row),
                })
            }
            MethodId::Instance { signature } => {
                let instance = self.instance(signature, &|_| None)?;
                Some(Definition {
                    module: self.module_ref(instance.module)?,
                    token: instance.token,
                })
            }
        }
    }

    fn instance<'r>(&'r self, signature: u32, modules: Modules<'r>) -> Option<Instance> {
        let blob = BlobReader::new(self.instances.get(signature as usize..)?);
        let mut reader = SignatureReader {
            blob,
            module: None,
            modules,
        };
        let flags = reader.blob.unsigned()?;
        let mut module = if flags & flag::UPDATE_CONTEXT != 0 {
            reader.blob.unsigned()?
        } else {
            0
        };
        reader.module = modules(module);
        let mut owner = None;
        if flags & flag::OWNER_TYPE != 0 {
            if flags & flag::UPDATE_CONTEXT == 0 && reader.blob.peek() == Some(MODULE_OVERRIDE) {
                let mut ahead = reader.blob.clone();
                ahead.byte();
                module = ahead.unsigned()?;
            }
            owner = Some(reader.read_type(&mut Budget::new())?);
        }
        let table = if flags & flag::MEMBER_REF != 0 {
            Table::MEMBER_REF
        } else {
            Table::METHOD_DEF
        };
        let token = Token::new(table, reader.blob.unsigned()?);
        Some(Instance {
            module,
            owner,
            token,
        })
    }

    /// What a module index means: 0 the image; then the assembly references of its IL metadata, the
    /// manifest metadata, the assembly references of the manifest.
    fn place(&self, index: u32) -> Option<Place> {
        let own = self.metadata.as_ref();
        let references = own.map_or(0, |own| own.rows(Table::ASSEMBLY_REF));
        Some(match index.checked_sub(references) {
            _ if index == 0 => Place::Image,
            None | Some(0) => Place::Reference(index),
            Some(1) => Place::Manifest,
            Some(after) => Place::ManifestReference(after.checked_sub(1)?),
        })
    }

    fn reference(&self, row: u32) -> Option<AssemblyId<'_>> {
        let name = self.metadata.as_ref()?.assembly_ref_name(row)?;
        Some(AssemblyId { name, mvid: None })
    }

    fn module_ref(&self, index: u32) -> Option<ModuleRef<'_>> {
        Some(match self.place(index)? {
            Place::Image => ModuleRef::Image,
            Place::Manifest => ModuleRef::Manifest,
            Place::Reference(row) => ModuleRef::Assembly(self.reference(row)?),
            Place::ManifestReference(row) => ModuleRef::Assembly(self.manifest_assembly(row)?),
        })
    }

    fn module<'r>(&'r self, index: u32, modules: &'r dyn ModuleSource) -> Option<&'r Metadata<'r>> {
        match self.place(index)? {
            Place::Image => self.metadata.as_ref(),
            Place::Manifest => self.manifest.as_ref(),
            Place::Reference(row) => modules.metadata(&self.reference(row)?),
            Place::ManifestReference(row) => self.manifest_module(row, modules),
        }
    }

    /// The assembly of a row of the manifest's references.
    fn manifest_module<'r>(
        &'r self,
        row: u32,
        modules: &'r dyn ModuleSource,
    ) -> Option<&'r Metadata<'r>> {
        let component = self.components.get((row as usize).checked_sub(1)?);
        if let Some(embedded) = component.and_then(|component| component.metadata.as_ref()) {
            return Some(embedded);
        }
        let assembly = self.manifest_assembly(row)?;
        let found = modules.metadata(&assembly)?;
        (assembly.mvid.is_none() || assembly.mvid == found.mvid()).then_some(found)
    }

    pub(super) fn manifest_assembly(&self, row: u32) -> Option<AssemblyId<'_>> {
        let name = self.manifest.as_ref()?.assembly_ref_name(row)?;
        let mvids = self
            .sections
            .data(section::MANIFEST_MVIDS, &self.image)
            .unwrap_or_default();
        let at = (row as usize).checked_sub(1)?.checked_mul(16)?;
        let mvid = crate::bytes::array(mvids, at)
            .map(Guid)
            .filter(|&mvid| mvid != Guid::default());
        Some(AssemblyId { name, mvid })
    }
}

/// Where a method signature ends and its entry value starts.
pub(super) fn signature_end(data: &[u8], at: usize) -> Option<usize> {
    let mut blob = BlobReader::new(data.get(at..)?);
    let flags = blob.unsigned()?;
    if flags & flag::UPDATE_CONTEXT != 0 {
        blob.unsigned()?;
    }
    // Skipping needs no module: every token is one compressed integer.
    let mut reader = SignatureReader {
        blob,
        module: None,
        modules: &|_| None,
    };
    let budget = &mut Budget::new();
    if flags & flag::OWNER_TYPE != 0 {
        reader.read_type(&mut Budget::new())?;
    }
    reader.blob.unsigned()?;
    if flags & flag::METHOD_INSTANTIATION != 0 {
        let count = reader.blob.unsigned()?;
        reader.read_types(count, budget)?;
    }
    if flags & flag::CONSTRAINED != 0 {
        reader.read_type(&mut Budget::new())?;
    }
    data.len().checked_sub(reader.blob.rest().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of methods without a type around them, of one's own or another module's type, of a stated module.
    #[test]
    fn signatures_of_instances() {
        let image = "/../../testdata/clr10/r2r/linux-x64/Workload.dll";
        let image = std::fs::read([env!("CARGO_MANIFEST_DIR"), image].concat()).unwrap();
        let mut image = R2rImage::parse(&image).unwrap();
        let class = &[0x12, 2 << 2, 5];
        for (signature, module, has_owner) in [
            (vec![0, 5], 0, false),
            ([&[0x40][..], class].concat(), 0, true),
            ([&[0x40, 0x3f, 2][..], class].concat(), 2, true),
            ([&[0x80, 0xc0, 3, 0x3f, 2][..], class].concat(), 3, true),
        ] {
            let longer = [&signature[..], &[0x77; 4]].concat();
            assert_eq!(signature_end(&longer, 0), Some(signature.len()));
            image.instances = longer.leak();
            let found = image.instance(0, &|_| None).unwrap();
            let token = Token::new(Table::METHOD_DEF, 5);
            assert_eq!((found.module, found.token), (module, token));
            assert_eq!(found.owner.is_some(), has_owner);
            let definition = image.definition(&R2rMethod {
                begin: 0,
                hot_size: 0,
                cold: None,
                id: MethodId::Instance { signature: 0 },
                function: 0,
            });
            let wanted = match module {
                0 => ModuleRef::Image,
                row => ModuleRef::Assembly(image.reference(row).unwrap()),
            };
            assert_eq!(definition.unwrap().module, wanted);
        }
    }
}
