//! Method events: loads, unloads, rundown, IL maps, JIT decisions.

use std::fmt;

use crate::array::{I32s, Ids, U32s};
use crate::cursor::Cursor;
use crate::part::{Part, Style, payload};
use crate::value::{FieldList, Value};
use crate::{Action, DecodeError, WStr};

payload! {
    /// A code body: MethodLoad, MethodUnload, MethodDCStart, MethodDCEnd, verbose or not.
    ///
    /// A trace mixes versions: runtimes write V1 when the native code version is 0 and V2
    /// otherwise. The runtime provider logs jitted code; precompiled code appears in the rundown
    /// only.
    MethodEvent<'a> {
        /// The action on the body.
        action: Action = "",
        /// The method's id (its MethodDesc), unique in a runtime instance while the method lives.
        method_id: u64 = "MethodID" as hex,
        /// The id of its module.
        module_id: u64 = "ModuleID" as hex,
        /// The start of the code.
        start: u64 = "MethodStartAddress" as hex,
        /// The size of the code in bytes.
        size: u32 = "MethodSize",
        /// The metadata token; 0x06000000 for methods without one.
        token: u32 = "MethodToken" as hex,
        /// The flags.
        flags: MethodFlags = "MethodFlags" as hex,
        /// The names, in verbose events.
        names: MethodNames<'a> = "MethodNameSpace" if verbose,
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID" if since 1,
        /// The native code version (published as ReJITID).
        native_code_version: u64 = "ReJITID" as hex if since 2,
    }
}

/// The names of a method, in the runtime's spelling.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
#[non_exhaustive]
pub struct MethodNames<'a> {
    /// The full name of the type, nested types after `+`, generic arguments in brackets.
    pub namespace: WStr<'a>,
    /// The name of the method.
    pub name: WStr<'a>,
    /// The signature in IL spelling.
    pub signature: WStr<'a>,
}

impl MethodNames<'_> {
    /// Returns the published names of a triple whose first field is called `first`.
    fn labels(first: &'static str) -> [&'static str; 3] {
        let (name, signature) = match first {
            "ManagedInteropMethodNamespace" => {
                ("ManagedInteropMethodName", "ManagedInteropMethodSignature")
            }
            _ => ("MethodName", "MethodSignature"),
        };
        [first, name, signature]
    }
}

impl<'a> Part<'a> for MethodNames<'a> {
    #[inline]
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            namespace: c.wide()?,
            name: c.wide()?,
            signature: c.wide()?,
        })
    }

    fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
        for (label, text) in
            Self::labels(name)
                .into_iter()
                .zip([self.namespace, self.name, self.signature])
        {
            out.push(label, Value::Wide(text));
        }
    }
}

/// The MethodFlags field: 1 dynamic, 2 generic, 4 code shared by instantiations, 8 jitted, 0x10 a
/// helper of the JIT.
///
/// # Examples
///
/// ```
/// use chronosym_events::{MethodFlags, OptimizationTier};
///
/// // Dynamic, jitted, and tier 4 of bits 7 to 9.
/// let flags = MethodFlags(0x9 | 4 << 7);
/// assert!(flags.is_dynamic());
/// assert_eq!(flags.tier(), Some(OptimizationTier::OptimizedTier1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MethodFlags(pub u32);

/// The tiers of jitted code, by the value of bits 7 to 9 less 1.
const JITTED_TIERS: [OptimizationTier; 7] = [
    OptimizationTier::MinOptJitted,
    OptimizationTier::Optimized,
    OptimizationTier::QuickJitted,
    OptimizationTier::OptimizedTier1,
    OptimizationTier::OptimizedTier1OSR,
    OptimizationTier::QuickJittedInstrumented,
    OptimizationTier::OptimizedTier1Instrumented,
];

impl MethodFlags {
    const JITTED: u32 = 0x8;
    /// A generic method, or a method of a generic type.
    pub const GENERIC: u32 = 0x2;

    /// Returns the flags of jitted code; a tier of precompiled code counts as unknown.
    pub fn jitted(tier: Option<OptimizationTier>) -> Self {
        let numbers = (1..).zip(JITTED_TIERS);
        let mut of_tier = numbers.filter(|(_, own)| Some(*own) == tier);
        let number: u32 = of_tier.next().map_or(0, |(number, _)| number);
        Self(Self::JITTED | number << 7)
    }

    /// A dynamic (LCG) method or a stub.
    pub fn is_dynamic(self) -> bool {
        self.0 & 0x1 != 0
    }

    /// Compiled at run time; precompiled otherwise.
    pub fn is_jitted(self) -> bool {
        self.0 & Self::JITTED != 0
    }

    /// Returns the optimization tier of jitted code, from bits 7 to 9. Precompiled methods
    /// (ReadyToRun or NGEN) carry a stale 2 there and have `None`, as have runtimes that write no
    /// tier.
    pub fn tier(self) -> Option<OptimizationTier> {
        let number = (self.0 >> 7 & 7) as usize;
        let tier = JITTED_TIERS.get(number.checked_sub(1)?);
        tier.copied().filter(|_| self.is_jitted())
    }

    /// Returns the hot or cold part of the method, from bits 28 to 31.
    pub fn extent(self) -> Extent {
        Extent::from_bits((self.0 >> 28) as u8)
    }
}

impl<'a> Part<'a> for MethodFlags {
    #[inline]
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(Self(c.u32()?))
    }
    fn list(&self, name: &'static str, style: Style, out: &mut FieldList<'a>) {
        self.0.list(name, style, out);
    }
}

macro_rules! tiers {
    ($($(#[$meta:meta])* $tier:ident,)*) => {
        /// How native code was compiled.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum OptimizationTier {
            $($(#[$meta])* $tier,)*
        }

        impl OptimizationTier {
            /// Every tier, in order.
            pub const ALL: &[Self] = &[$(Self::$tier),*];

            /// Returns the tier's name in the spelling of runtimes and perf maps.
            pub fn name(self) -> &'static str {
                match self { $(Self::$tier => stringify!($tier),)* }
            }
        }
    };
}

tiers! {
    /// Jitted with minimal optimization, for debugging.
    MinOptJitted,
    /// Jitted with full optimization, without tiers.
    Optimized,
    /// Jitted quickly: tier 0.
    QuickJitted,
    /// Rejitted with full optimization: tier 1.
    OptimizedTier1,
    /// Tier 1 by on-stack replacement.
    OptimizedTier1OSR,
    /// Tier 0 with instrumentation.
    QuickJittedInstrumented,
    /// Tier 1 with instrumentation.
    OptimizedTier1Instrumented,
    /// Precompiled (ReadyToRun).
    ReadyToRun,
    /// Precompiled, as perf maps call it.
    PreJIT,
}

impl fmt::Display for OptimizationTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The hot or cold part of a method's code; a split method has two bodies with one method id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Extent {
    /// The hot part, or the whole method.
    #[default]
    Hot,
    /// The cold part.
    Cold,
}

impl Extent {
    fn from_bits(bits: u8) -> Self {
        if bits == 0 { Self::Hot } else { Self::Cold }
    }
}

impl<'a> Part<'a> for Extent {
    fn read(c: &mut Cursor<'a>) -> Result<Self, DecodeError> {
        Ok(Self::from_bits(c.u8()?))
    }
    fn list(&self, name: &'static str, _: Style, out: &mut FieldList<'a>) {
        out.push(name, Value::U64(*self as u64));
    }
}

payload! {
    /// The JIT starts to compile a method; logged on the thread that compiles.
    MethodJittingStarted<'a> {
        /// The method's id.
        method_id: u64 = "MethodID" as hex,
        /// The id of its module.
        module_id: u64 = "ModuleID" as hex,
        /// Its metadata token.
        token: u32 = "MethodToken" as hex,
        /// The size of its IL in bytes.
        il_size: u32 = "MethodILSize",
        /// The names.
        names: MethodNames<'a> = "MethodNameSpace",
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID" if since 1,
    }

    /// The entry point of a precompiled method, looked up on its first call. It has no size.
    R2RGetEntryPoint<'a> {
        /// The method's id.
        method_id: u64 = "MethodID" as hex,
        /// The names.
        names: MethodNames<'a> = "MethodNamespace",
        /// The start of the code.
        entry_point: u64 = "EntryPoint" as hex,
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID",
    }

    /// The IL-to-native map of a body: MethodILToNativeMap, or its rundown forms
    /// MethodDCStartILToNativeMap and MethodDCEndILToNativeMap.
    ///
    /// A live map follows the load event of its body on the same thread, a rundown map precedes it.
    /// Before V1 (.NET 7) the version field is always 0, so only adjacency identifies the body.
    ILToNativeMap<'a> {
        /// Load for the live event.
        action: Action = "",
        /// The method's id.
        method_id: u64 = "MethodID" as hex,
        /// The native code version, from V1 on (published as ReJITID).
        version_id: u64 = "ReJITID" as hex,
        /// The part of the code that the map covers.
        extent: Extent = "MethodExtent",
        /// The number of entries.
        count: u16 = "CountOfMapEntries",
        /// IL offsets; −1 no mapping, −2 prolog, −3 epilog.
        il_offsets: I32s<'a> = "ILOffsets" as list(count),
        /// Native offsets in bytes from the start of the body, in no particular order.
        native_offsets: U32s<'a> = "NativeOffsets" as list(count),
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID",
        /// The version of the IL.
        il_version_id: u64 = "ILVersionID" as hex if since 1,
    }
}

impl<'a> ILToNativeMap<'a> {
    /// Returns pairs of IL offset and native offset, in the order of the event.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (i32, u32)> + Clone + use<'a> {
        self.il_offsets.iter().zip(self.native_offsets.iter())
    }
}

payload! {
    /// The generic arguments and the type of a method, by ids; [`BulkType`](crate::BulkType) names
    /// the types.
    MethodDetails<'a> {
        /// The method's id.
        method_id: u64 = "MethodID" as hex,
        /// The id of its type.
        type_id: u64 = "TypeID" as hex,
        /// Its metadata token.
        token: u32 = "MethodToken" as hex,
        /// The number of generic arguments of the method itself.
        type_parameter_count: u32 = "TypeParameterCount",
        /// The id of the module that the code was loaded for.
        loader_module_id: u64 = "LoaderModuleID" as hex,
        /// The ids of the generic arguments.
        type_parameters: Ids<'a> = "TypeParameters" as list(type_parameter_count),
    }
}

payload! {
    /// A chunk of a body's inline tree (JittedMethodRichDebugInfo of the private provider); see
    /// [`RichDebugChunks`](crate::RichDebugChunks).
    RichDebugInfo<'a> {
        /// The runtime instance in the process.
        clr_instance_id: u16 = "ClrInstanceID",
        /// The method's id.
        method_id: u64 = "MethodID" as hex,
        /// The native code version: that of the body's load event.
        native_code_version: u64 = "ReJITID" as hex,
        /// The version of the IL.
        il_version_id: u64 = "ILVersionID" as hex,
        /// The chunk's number from 0; the highest bit marks the last one.
        chunk: u32 = "ChunkIndex" as hex,
        /// The chunk's length in bytes.
        length: u32 = "ChunkLength",
        /// The chunk.
        data: &'a [u8] = "Data" as list(length),
    }
}

impl RichDebugInfo<'_> {
    /// Returns the chunk's number from 0.
    pub fn chunk_index(&self) -> u32 {
        self.chunk & 0x7fff_ffff
    }

    /// Returns whether this is the last chunk.
    pub fn is_last(&self) -> bool {
        self.chunk & 0x8000_0000 != 0
    }
}
