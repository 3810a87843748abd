//! Loader events: modules, domain modules, app domains.

use crate::cursor::Cursor;
use crate::part::{Part, Style, payload};
use crate::value::{FieldList, Value};
use crate::{Action, DecodeError, Guid, WStr};

payload! {
    /// A CLR module: ModuleLoad, ModuleUnload, ModuleDCStart, ModuleDCEnd. Only image events have
    /// an address.
    ModuleEvent<'a> {
        /// The action on the module.
        action: Action = "",
        /// The module's id, unique in a runtime instance while the module lives.
        module_id: u64 = "ModuleID" as hex,
        /// The id of its assembly.
        assembly_id: u64 = "AssemblyID" as hex,
        /// Flags: 1 domain neutral, 2 native, 4 dynamic, 8 the assembly's manifest, 0x10 optimized
        /// by profile data, 0x20 ReadyToRun, 0x40 partial ReadyToRun.
        flags: u32 = "ModuleFlags" as hex,
        /// Always 0.
        reserved: u32 = "Reserved1",
        /// The path of the IL; the simple name for modules without a file.
        il_path: WStr<'a> = "ModuleILPath",
        /// The path of the native image; often empty.
        native_path: WStr<'a> = "ModuleNativePath",
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID" if since 1,
        /// The PDB of the IL.
        managed_pdb: PdbInfo<'a> = "Managed" if since 2,
        /// The PDB of the native image.
        native_pdb: PdbInfo<'a> = "Native" if since 2,
        /// The build ID of the native image.
        native_build_id: WStr<'a> = "NativeBuildID" if since 3,
    }
}

/// The identity of a module's PDB.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct PdbInfo<'a> {
    /// The PDB's signature; zero when there is no PDB.
    pub guid: Guid,
    /// The PDB's age; 1 for portable PDBs.
    pub age: u32,
    /// The path of the PDB when the module was built.
    pub path: WStr<'a>,
}

impl PdbInfo<'_> {
    /// Returns whether there is a PDB.
    pub fn is_present(&self) -> bool {
        !self.guid.is_zero()
    }

    fn labels(side: &'static str) -> [&'static str; 3] {
        if side == "Managed" {
            [
                "ManagedPdbSignature",
                "ManagedPdbAge",
                "ManagedPdbBuildPath",
            ]
        } else {
            ["NativePdbSignature", "NativePdbAge", "NativePdbBuildPath"]
        }
    }
}

impl<'a> Part<'a> for PdbInfo<'a> {
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            guid: c.guid()?,
            age: c.u32()?,
            path: c.wide()?,
        })
    }

    fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
        let [guid, age, path] = Self::labels(name);
        out.push(guid, Value::Guid(self.guid));
        out.push(age, Value::U64(self.age.into()));
        out.push(path, Value::Wide(self.path));
    }
}

payload! {
    /// A module in an app domain: DomainModuleLoad, DomainModuleDCStart, DomainModuleDCEnd.
    DomainModule<'a> {
        /// The action on the module.
        action: Action = "",
        /// The module's id.
        module_id: u64 = "ModuleID" as hex,
        /// The id of its assembly.
        assembly_id: u64 = "AssemblyID" as hex,
        /// The id of the app domain.
        app_domain_id: u64 = "AppDomainID" as hex,
        /// Flags, as in [`ModuleEvent`].
        flags: u32 = "ModuleFlags" as hex,
        /// Always 0.
        reserved: u32 = "Reserved1",
        /// The path of the IL.
        il_path: WStr<'a> = "ModuleILPath",
        /// The path of the native image.
        native_path: WStr<'a> = "ModuleNativePath",
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID" if since 1,
    }

    /// An assembly: AssemblyLoad, AssemblyUnload, AssemblyDCStart, AssemblyDCEnd.
    Assembly<'a> {
        /// The action on the assembly.
        action: Action = "",
        /// The assembly's id.
        assembly_id: u64 = "AssemblyID" as hex,
        /// The id of its app domain.
        app_domain_id: u64 = "AppDomainID" as hex,
        /// The id of its binding context.
        binding_id: u64 = "BindingID" as hex if since 1,
        /// Flags: 1 domain-neutral, 2 dynamic, 4 native, 8 collectible, 0x10 ReadyToRun.
        flags: u32 = "AssemblyFlags" as hex,
        /// The full name.
        name: WStr<'a> = "FullyQualifiedAssemblyName",
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID" if since 1,
    }

    /// An app domain: AppDomainLoad, AppDomainUnload, AppDomainDCStart, AppDomainDCEnd.
    AppDomain<'a> {
        /// The action on the app domain.
        action: Action = "",
        /// The app domain's id.
        app_domain_id: u64 = "AppDomainID" as hex,
        /// Flags: 1 default, 2 executable, 4 shared.
        flags: u32 = "AppDomainFlags" as hex,
        /// The name.
        name: WStr<'a> = "AppDomainName",
        /// The number in the process.
        index: u32 = "AppDomainIndex" if since 1,
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID" if since 1,
    }
}

impl Assembly<'_> {
    /// Returns whether the assembly can be unloaded while its process lives.
    pub fn is_collectible(&self) -> bool {
        self.flags & 0x8 != 0
    }
}
