//! The meaning of addresses of locations, as the OpenTelemetry eBPF profiler writes them.
//!
//! Sources: `interpreter/dotnet/instance.go`, `processmanager` and `reporter/internal/pdata` of
//! open-telemetry/opentelemetry-ebpf-profiler. No profile of a real program was available.

use crate::profiles::{AttributeValue, Location, Mapping};

/// What the address of a location means.
///
/// Closed: other frames have no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address of an ELF file's own address space; of a caller, within the call.
    Virtual(u64),
    /// An offset in a file; of a caller, within the call.
    FileOffset(u64),
    /// Code that the .NET JIT compiled: the row of its method in the metadata, and an IL offset; of
    /// a caller, that of the call.
    Il {
        /// Row of the MethodDef table (ECMA-335 II.22.26).
        method: u32,
        /// The IL offset.
        offset: u32,
    },
    /// An RVA of a ReadyToRun image; of a caller, the return address.
    Rva(u32),
    /// No address of code in a file.
    None,
}

/// The type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameType {
    /// Native code.
    Native,
    /// The kernel.
    Kernel,
    /// .NET.
    Dotnet,
    /// Another language, or unknown.
    Other,
}

/// Identities of a mapped file.
///
/// Closed: the attributes that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileIds {
    /// The GNU build ID in hex. Of an assembly, the profiler writes its module version id here.
    pub gnu: Option<String>,
    /// The hash of the file's head, tail and length, in hex ("htlhash").
    pub htlhash: Option<String>,
}

impl Mapping<'_> {
    /// Returns the identities that its attributes state.
    pub fn ids(&self) -> FileIds {
        let mut ids = FileIds::default();
        for attribute in self.attributes() {
            let AttributeValue::Text(value) = attribute.value else {
                continue;
            };
            let id = match &*attribute.key {
                "process.executable.build_id.gnu" => &mut ids.gnu,
                "process.executable.build_id.htlhash" => &mut ids.htlhash,
                _ => continue,
            };
            *id = Some(value.into_owned()).filter(|id| !id.is_empty());
        }
        ids
    }
}

impl Location<'_> {
    /// Returns the type of its frame.
    pub fn frame_type(&self) -> FrameType {
        let mut found = FrameType::Other;
        for attribute in self.attributes() {
            if let ("profile.frame.type", AttributeValue::Text(name)) =
                (&*attribute.key, &attribute.value)
            {
                found = match &**name {
                    "native" => FrameType::Native,
                    "kernel" => FrameType::Kernel,
                    "dotnet" => FrameType::Dotnet,
                    _ => FrameType::Other,
                };
            }
        }
        found
    }

    /// Returns what its address means.
    pub fn meaning(&self, mapping: Option<&Mapping<'_>>) -> Address {
        let address = self.address;
        match self.frame_type() {
            FrameType::Dotnet => match address >> 60 {
                0xf => Address::Il {
                    method: (address >> 32) as u32 & 0x0fff_ffff,
                    offset: address as u32,
                },
                _ => u32::try_from(address).map_or(Address::None, Address::Rva),
            },
            FrameType::Kernel => Address::None,
            FrameType::Other if self.address == 0 => Address::None,
            FrameType::Native | FrameType::Other => match mapping {
                // The format's own meaning: an address of the process.
                Some(it) if (it.start..it.limit).contains(&address) => {
                    Address::FileOffset((address - it.start).saturating_add(it.file_offset))
                }
                Some(_) => Address::Virtual(address),
                None => Address::None,
            },
        }
    }
}
