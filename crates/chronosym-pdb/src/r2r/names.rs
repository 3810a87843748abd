//! Names and tokens of precompiled methods.

use super::header::section;
use super::image::{R2rImage, R2rMethod, R2rMethodId};
use super::instance::Instance;
use crate::Guid;
use crate::metadata::{Metadata, MethodName, Modules, Table, Token};

/// An assembly, as a reference names it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssemblyId {
    /// The simple name: the file is `name.dll`.
    pub name: String,
    /// The module version id of its metadata, if the image states it.
    pub mvid: Option<Guid>,
}

/// Provides the metadata of other assemblies, which composite images and images compiled with a
/// larger version bubble need.
pub trait AssemblyResolver {
    /// Returns the metadata of an assembly; `None` if it is unavailable. The caller checks the
    /// module version id.
    fn metadata<'s>(&'s self, assembly: &AssemblyId) -> Option<&'s Metadata<'s>>;
}

/// Resolves no assembly.
#[derive(Debug, Clone, Copy)]
pub struct NoAssemblies;

impl AssemblyResolver for NoAssemblies {
    fn metadata<'s>(&'s self, _: &AssemblyId) -> Option<&'s Metadata<'s>> {
        None
    }
}

/// The module that defines a method.
///
/// Closed: callers find the metadata of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefiningModule {
    /// The image's own IL.
    Image,
    /// The manifest metadata, which the compiler added to the image.
    Manifest,
    /// Another assembly.
    Assembly(AssemblyId),
}

/// A module index of a signature, decoded.
enum ModuleIndex {
    Image,
    Manifest,
    /// A row of the AssemblyRef table of the image's IL metadata.
    Reference(u32),
    /// A row of the AssemblyRef table of the manifest metadata.
    ManifestReference(u32),
}

/// A method's token and the module that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodDefinition {
    /// The module of the token; its portable PDB has the lines.
    pub module: DefiningModule,
    /// A MethodDef; a MemberRef for some methods of other modules.
    pub token: Token,
}

impl R2rImage<'_> {
    /// Returns the assemblies of a composite image, by [`R2rMethodId::Definition::component`].
    pub fn components(&self) -> impl Iterator<Item = AssemblyId> {
        (1..)
            .zip(&self.components)
            .filter_map(|(row, _)| self.manifest_assembly(row))
    }

    /// Returns the name of a method: instantiated declaring type, plain name, signature. `None` if
    /// the metadata of the defining module is unavailable or malformed; types of unavailable
    /// modules are [`Type::Unknown`](crate::metadata::Type::Unknown). A single image rarely needs
    /// `modules`.
    pub fn method_name(
        &self,
        method: &R2rMethod,
        modules: &dyn AssemblyResolver,
    ) -> Option<MethodName> {
        match method.id {
            R2rMethodId::Definition { component, row } => {
                let metadata = match &self.metadata {
                    Some(metadata) => metadata,
                    None => self.manifest_module(component.checked_add(1)?, modules)?,
                };
                metadata.method(Token::new(Table::METHOD_DEF, row))
            }
            R2rMethodId::Instance { signature } => {
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

    /// Returns the token of a method, and the module that it belongs to.
    pub fn definition(&self, method: &R2rMethod) -> Option<MethodDefinition> {
        match method.id {
            R2rMethodId::Definition { component, row } => {
                let module = match &self.metadata {
                    Some(_) => DefiningModule::Image,
                    None => {
                        DefiningModule::Assembly(self.manifest_assembly(component.checked_add(1)?)?)
                    }
                };
                Some(MethodDefinition {
                    module,
                    token: Token::new(Table::METHOD_DEF, row),
                })
            }
            R2rMethodId::Instance { signature } => {
                let instance = self.instance(signature, &|_| None)?;
                Some(MethodDefinition {
                    module: self.module_ref(instance.module)?,
                    token: instance.token,
                })
            }
        }
    }

    fn instance<'r>(&'r self, signature: u32, modules: Modules<'r>) -> Option<Instance> {
        Instance::parse(self.instances.get(signature as usize..)?, modules)
    }

    /// Decodes a module index: 0 is the image; the AssemblyRef rows of its IL metadata, the
    /// manifest metadata, and the AssemblyRef rows of the manifest follow.
    fn module_index(&self, index: u32) -> Option<ModuleIndex> {
        let metadata = self.metadata.as_ref();
        let references = metadata.map_or(0, |metadata| metadata.rows(Table::ASSEMBLY_REF));
        Some(match index.checked_sub(references) {
            _ if index == 0 => ModuleIndex::Image,
            None | Some(0) => ModuleIndex::Reference(index),
            Some(1) => ModuleIndex::Manifest,
            Some(after) => ModuleIndex::ManifestReference(after.checked_sub(1)?),
        })
    }

    fn reference(&self, row: u32) -> Option<AssemblyId> {
        let name = self.metadata.as_ref()?.assembly_ref_name(row)?;
        Some(AssemblyId { name, mvid: None })
    }

    fn module_ref(&self, index: u32) -> Option<DefiningModule> {
        Some(match self.module_index(index)? {
            ModuleIndex::Image => DefiningModule::Image,
            ModuleIndex::Manifest => DefiningModule::Manifest,
            ModuleIndex::Reference(row) => DefiningModule::Assembly(self.reference(row)?),
            ModuleIndex::ManifestReference(row) => {
                DefiningModule::Assembly(self.manifest_assembly(row)?)
            }
        })
    }

    fn module<'r>(
        &'r self,
        index: u32,
        modules: &'r dyn AssemblyResolver,
    ) -> Option<&'r Metadata<'r>> {
        match self.module_index(index)? {
            ModuleIndex::Image => self.metadata.as_ref(),
            ModuleIndex::Manifest => self.manifest.as_ref(),
            ModuleIndex::Reference(row) => modules.metadata(&self.reference(row)?),
            ModuleIndex::ManifestReference(row) => self.manifest_module(row, modules),
        }
    }

    /// Returns the metadata of an AssemblyRef row of the manifest.
    fn manifest_module<'r>(
        &'r self,
        row: u32,
        modules: &'r dyn AssemblyResolver,
    ) -> Option<&'r Metadata<'r>> {
        let component = self.components.get((row as usize).checked_sub(1)?);
        if let Some(embedded) = component.and_then(|component| component.metadata.as_ref()) {
            return Some(embedded);
        }
        let assembly = self.manifest_assembly(row)?;
        let metadata = modules.metadata(&assembly)?;
        (assembly.mvid.is_none() || assembly.mvid == metadata.mvid()).then_some(metadata)
    }

    pub(super) fn manifest_assembly(&self, row: u32) -> Option<AssemblyId> {
        let name = self.manifest.as_ref()?.assembly_ref_name(row)?;
        let mvids = self
            .sections
            .data(section::MANIFEST_MVIDS, &self.image)
            .unwrap_or_default();
        let at = (row as usize).checked_sub(1)?.checked_mul(16)?;
        let mvid = crate::bytes::guid(mvids, at).filter(|mvid| !mvid.is_zero());
        Some(AssemblyId { name, mvid })
    }
}

#[cfg(test)]
mod tests {
    use super::super::instance::signature_end;
    use super::*;

    /// Methods without an enclosing type, of the own or another module's type, of a stated module.
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
                start: 0,
                hot_size: 0,
                cold: None,
                id: R2rMethodId::Instance { signature: 0 },
                function: 0,
            });
            let wanted = match module {
                0 => DefiningModule::Image,
                row => DefiningModule::Assembly(image.reference(row).unwrap()),
            };
            assert_eq!(definition.unwrap().module, wanted);
        }
    }
}
