//! Encoders of typed event payloads, written from the layout tables, independently of the decoders.
//!
//! Most take the event's version and omit fields that the version lacks.

pub mod kernel;
pub mod universal;

/// A payload under construction, little-endian and packed.
#[derive(Clone, Debug, Default)]
pub struct Payload(Vec<u8>);

impl Payload {
    /// An empty payload.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
    /// Appends a byte.
    #[must_use]
    pub fn u8(self, value: u8) -> Self {
        self.bytes(&[value])
    }
    /// Appends two bytes.
    #[must_use]
    pub fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_le_bytes())
    }
    /// Appends four bytes.
    #[must_use]
    pub fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_le_bytes())
    }
    /// Appends eight bytes.
    #[must_use]
    pub fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_le_bytes())
    }
    /// Appends a pointer of 4 or 8 bytes.
    #[must_use]
    pub fn pointer(self, width: usize, value: u64) -> Self {
        self.bytes(&value.to_le_bytes()[..width])
    }
    /// Appends bytes.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }
    /// Appends UTF-16 text and its NUL.
    #[must_use]
    pub fn wide(mut self, text: &str) -> Self {
        for unit in text.encode_utf16().chain([0]) {
            self.0.extend(unit.to_le_bytes());
        }
        self
    }
    /// Appends 8-bit text and its NUL.
    #[must_use]
    pub fn narrow(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).u8(0)
    }
    /// Appends a variable-length integer.
    #[must_use]
    pub fn varint(mut self, mut value: u64) -> Self {
        while value > 0x7f {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8)
    }
    /// Appends the three texts of a method's name.
    #[must_use]
    pub fn names(self, names: Names<'_>) -> Self {
        self.wide(names.0).wide(names.1).wide(names.2)
    }
    /// Appends `write`'s fields if `there`.
    #[must_use]
    pub fn when(self, there: bool, write: impl FnOnce(Self) -> Self) -> Self {
        if there { write(self) } else { self }
    }
    /// The bytes.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Namespace, name and signature of a method.
pub type Names<'a> = (&'a str, &'a str, &'a str);

/// Signature, age and path of a PDB.
pub type Pdb<'a> = ([u8; 16], u32, &'a str);

/// A method event; with names it is a verbose one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Method<'a> {
    /// MethodID.
    pub id: u64,
    /// ModuleID.
    pub module: u64,
    /// MethodStartAddress.
    pub start: u64,
    /// MethodSize.
    pub size: u32,
    /// MethodToken.
    pub token: u32,
    /// MethodFlags.
    pub flags: u32,
    /// The names of verbose events.
    pub names: Option<Names<'a>>,
    /// ClrInstanceID.
    pub clr: u16,
    /// ReJITID.
    pub code_version: u64,
}

impl Method<'_> {
    /// The payload of this version.
    #[must_use]
    pub fn encode(&self, version: u32) -> Vec<u8> {
        let mut p = Payload::new()
            .u64(self.id)
            .u64(self.module)
            .u64(self.start)
            .u32(self.size)
            .u32(self.token)
            .u32(self.flags);
        if let Some(names) = self.names {
            p = p.names(names);
        }
        p.when(version >= 1, |p| p.u16(self.clr))
            .when(version >= 2, |p| p.u64(self.code_version))
            .finish()
    }
}

/// An IL-to-native map.
#[derive(Clone, Copy, Debug, Default)]
pub struct ILMap<'a> {
    /// MethodID.
    pub id: u64,
    /// ReJITID.
    pub code_version: u64,
    /// 0 hot, 1 cold.
    pub extent: u8,
    /// IL offset and native offset of each entry.
    pub entries: &'a [(i32, u32)],
    /// ClrInstanceID.
    pub clr: u16,
    /// ILVersionID.
    pub il_version: u64,
}

impl ILMap<'_> {
    /// The payload of this version.
    #[must_use]
    pub fn encode(&self, version: u32) -> Vec<u8> {
        let mut p = Payload::new()
            .u64(self.id)
            .u64(self.code_version)
            .u8(self.extent)
            .u16(u16::try_from(self.entries.len()).expect("at most 65,535 entries"));
        for (il, _) in self.entries {
            p = p.u32(*il as u32);
        }
        for (_, native) in self.entries {
            p = p.u32(*native);
        }
        p.u16(self.clr)
            .when(version >= 1, |p| p.u64(self.il_version))
            .finish()
    }
}

/// A module event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Module<'a> {
    /// ModuleID.
    pub id: u64,
    /// AssemblyID.
    pub assembly: u64,
    /// ModuleFlags.
    pub flags: u32,
    /// ModuleILPath.
    pub il_path: &'a str,
    /// ModuleNativePath.
    pub native_path: &'a str,
    /// ClrInstanceID.
    pub clr: u16,
    /// The PDB of the IL.
    pub managed_pdb: Pdb<'a>,
    /// The PDB of the native image.
    pub native_pdb: Pdb<'a>,
    /// NativeBuildID.
    pub build_id: &'a str,
}

impl Module<'_> {
    /// The payload of this version.
    #[must_use]
    pub fn encode(&self, version: u32) -> Vec<u8> {
        let pdb = |p: Payload, pdb: Pdb<'_>| p.bytes(&pdb.0).u32(pdb.1).wide(pdb.2);
        Payload::new()
            .u64(self.id)
            .u64(self.assembly)
            .u32(self.flags)
            .u32(0)
            .wide(self.il_path)
            .wide(self.native_path)
            .when(version >= 1, |p| p.u16(self.clr))
            .when(version >= 2, |p| {
                pdb(pdb(p, self.managed_pdb), self.native_pdb)
            })
            .when(version >= 3, |p| p.wide(self.build_id))
            .finish()
    }
}

/// DomainModuleLoad, DCStart, DCEnd; `paths` are those of the IL and of the native image.
#[must_use]
pub fn domain_module(
    version: u32,
    module: u64,
    assembly: u64,
    domain: u64,
    flags: u32,
    paths: (&str, &str),
    clr: u16,
) -> Vec<u8> {
    Payload::new()
        .u64(module)
        .u64(assembly)
        .u64(domain)
        .u32(flags)
        .u32(0)
        .wide(paths.0)
        .wide(paths.1)
        .when(version >= 1, |p| p.u16(clr))
        .finish()
}

/// AssemblyLoad, Unload, DCStart, DCEnd.
#[must_use]
pub fn assembly(
    version: u32,
    id: u64,
    domain: u64,
    binding: u64,
    flags: u32,
    name: &str,
    clr: u16,
) -> Vec<u8> {
    Payload::new()
        .u64(id)
        .u64(domain)
        .when(version >= 1, |p| p.u64(binding))
        .u32(flags)
        .wide(name)
        .when(version >= 1, |p| p.u16(clr))
        .finish()
}

/// AppDomainLoad, Unload, DCStart, DCEnd.
#[must_use]
pub fn app_domain(version: u32, id: u64, flags: u32, name: &str, index: u32, clr: u16) -> Vec<u8> {
    Payload::new()
        .u64(id)
        .u32(flags)
        .wide(name)
        .when(version >= 1, |p| p.u32(index).u16(clr))
        .finish()
}

/// ModuleRangeLoad and related events; `private` holds IBC type and section type.
#[must_use]
pub fn module_range(
    clr: u16,
    module: u64,
    begin: u32,
    size: u32,
    kind: u8,
    private: Option<(u8, u16)>,
) -> Vec<u8> {
    let p = Payload::new()
        .u16(clr)
        .u64(module)
        .u32(begin)
        .u32(size)
        .u8(kind);
    match private {
        Some((ibc, section)) => p.u8(ibc).u16(section).finish(),
        None => p.finish(),
    }
}

/// MethodJittingStarted.
#[must_use]
pub fn jitting_started(
    version: u32,
    id: u64,
    module: u64,
    token: u32,
    il_size: u32,
    names: Names<'_>,
    clr: u16,
) -> Vec<u8> {
    Payload::new()
        .u64(id)
        .u64(module)
        .u32(token)
        .u32(il_size)
        .names(names)
        .when(version >= 1, |p| p.u16(clr))
        .finish()
}

/// R2RGetEntryPoint.
#[must_use]
pub fn r2r_entry_point(id: u64, names: Names<'_>, entry_point: u64, clr: u16) -> Vec<u8> {
    Payload::new()
        .u64(id)
        .names(names)
        .u64(entry_point)
        .u16(clr)
        .finish()
}

/// R2RGetEntryPointStart.
#[must_use]
pub fn r2r_entry_point_start(id: u64, clr: u16) -> Vec<u8> {
    Payload::new().u64(id).u16(clr).finish()
}

/// ILStubGenerated; the last three texts are native signature, stub signature and stub IL.
#[must_use]
pub fn il_stub_generated(
    clr: u16,
    module: u64,
    stub: u64,
    flags: u32,
    token: u32,
    target: Names<'_>,
    rest: Names<'_>,
) -> Vec<u8> {
    Payload::new()
        .u16(clr)
        .u64(module)
        .u64(stub)
        .u32(flags)
        .u32(token)
        .names(target)
        .names(rest)
        .finish()
}

/// ILStubCacheHit.
#[must_use]
pub fn il_stub_cache_hit(
    clr: u16,
    module: u64,
    stub: u64,
    token: u32,
    target: Names<'_>,
) -> Vec<u8> {
    Payload::new()
        .u16(clr)
        .u64(module)
        .u64(stub)
        .u32(token)
        .names(target)
        .finish()
}

/// MethodDetails.
#[must_use]
pub fn method_details(
    id: u64,
    type_id: u64,
    token: u32,
    loader_module: u64,
    parameters: &[u64],
) -> Vec<u8> {
    let p = Payload::new()
        .u64(id)
        .u64(type_id)
        .u32(token)
        .u32(parameters.len() as u32)
        .u64(loader_module);
    parameters.iter().fold(p, |p, id| p.u64(*id)).finish()
}

/// RuntimeInformationStart: flavour, runtime version, command line, path of the runtime.
#[must_use]
pub fn runtime_information(
    clr: u16,
    sku: u16,
    version: [u16; 4],
    command_line: &str,
    path: &str,
) -> Vec<u8> {
    let p = Payload::new().u16(clr).u16(sku);
    let p = version.iter().chain(&version).fold(p, |p, n| p.u16(*n));
    p.u32(0x11)
        .u8(1)
        .wide(command_line)
        .bytes(&[0x5a; 16])
        .wide(path)
        .finish()
}

/// One type of a BulkType event: id, module, name, ids of the type arguments.
pub type BulkTypeEntry<'a> = (u64, u64, &'a str, &'a [u64]);

/// BulkType.
#[must_use]
pub fn bulk_type(clr: u16, types: &[BulkTypeEntry<'_>]) -> Vec<u8> {
    let mut p = Payload::new().u32(types.len() as u32).u16(clr);
    for (id, module, name, parameters) in types {
        p = p
            .u64(*id)
            .u64(*module)
            .u32(0x0200_0001)
            .u32(8)
            .u8(0x12)
            .wide(name)
            .u32(parameters.len() as u32);
        p = parameters.iter().fold(p, |p, id| p.u64(*id));
    }
    p.finish()
}

/// ClrStackWalk.
#[must_use]
pub fn clr_stack_walk(clr: u16, width: usize, frames: &[u64]) -> Vec<u8> {
    let p = Payload::new().u16(clr).u16(0).u32(frames.len() as u32);
    frames.iter().fold(p, |p, a| p.pointer(width, *a)).finish()
}

/// CodeSymbols.
#[must_use]
pub fn code_symbols(module: u64, total: u16, number: u16, bytes: &[u8], clr: u16) -> Vec<u8> {
    Payload::new()
        .u64(module)
        .u16(total)
        .u16(number)
        .u32(bytes.len() as u32)
        .bytes(bytes)
        .u16(clr)
        .finish()
}

/// A node of an inline tree: MethodID, IL offset of the call, first child, next sibling.
pub type TreeNode = (u64, u32, u32, u32);

/// A mapping of an inline tree: IL offset, node, native offset.
pub type TreeMapping = (u32, u32, u32);

/// Returns the bytes of an inline tree, before they are split into chunks.
#[must_use]
pub fn inline_tree(nodes: &[TreeNode], mappings: &[TreeMapping]) -> Vec<u8> {
    let mut p = Payload::new()
        .u32(nodes.len() as u32)
        .u32(mappings.len() as u32);
    for (id, il, child, sibling) in nodes {
        p = p.u64(*id).u32(*il).u32(*child).u32(*sibling);
    }
    for (il, node, native) in mappings {
        p = p.u32(*il).u32(*node).u32(*native).u8(2);
    }
    p.finish()
}

/// Returns the JittedMethodRichDebugInfo events of one body, in chunks of `piece` bytes.
#[must_use]
pub fn rich_debug_info(
    clr: u16,
    id: u64,
    code_version: u64,
    tree: &[u8],
    piece: usize,
) -> Vec<Vec<u8>> {
    let pieces: Vec<_> = tree.chunks(piece).collect();
    let last = pieces.len() - 1;
    let piece = |(i, bytes): (usize, &&[u8])| {
        let index = i as u32 | if i == last { 0x8000_0000 } else { 0 };
        Payload::new()
            .u16(clr)
            .u64(id)
            .u64(code_version)
            .u64(1)
            .u32(index)
            .u32(bytes.len() as u32)
            .bytes(bytes)
            .finish()
    };
    pieces.iter().enumerate().map(piece).collect()
}

/// A thread sample of the SampleProfiler: 0 error, 1 external, 2 managed.
#[must_use]
pub fn thread_sample(kind: u32) -> Vec<u8> {
    Payload::new().u32(kind).finish()
}
