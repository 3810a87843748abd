//! The ReadyToRun header (`READYTORUN_HEADER`) and its sections.

use super::native::NativeArray;
use crate::bytes::Cursor;
use crate::metadata::Metadata;
use crate::pe::{CorHeader, PeImage, RvaRange};
use crate::{Error, Result};

pub(super) const WHAT: &str = "ReadyToRun image";

pub(super) mod section {
    pub(in crate::r2r) const RUNTIME_FUNCTIONS: u32 = 102;
    pub(in crate::r2r) const METHOD_DEF_ENTRY_POINTS: u32 = 103;
    pub(in crate::r2r) const DEBUG_INFO: u32 = 105;
    pub(in crate::r2r) const INSTANCE_ENTRY_POINTS: u32 = 109;
    pub(in crate::r2r) const MANIFEST_METADATA: u32 = 112;
    pub(in crate::r2r) const COMPONENT_ASSEMBLIES: u32 = 115;
    pub(in crate::r2r) const OWNER_COMPOSITE: u32 = 116;
    pub(in crate::r2r) const MANIFEST_MVIDS: u32 = 118;
    pub(in crate::r2r) const HOT_COLD_MAP: u32 = 120;
}

fn rva_range(cursor: &mut Cursor<'_>) -> Result<RvaRange> {
    let (rva, size) = (cursor.u32()?, cursor.u32()?);
    Ok(RvaRange { rva, size })
}

/// The sections of the header, or of a component's core header.
#[derive(Debug, Clone, Default)]
pub(super) struct Sections(Vec<(u32, RvaRange)>);

impl Sections {
    /// Reads {count, count × {type, RVA, size}}.
    pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        let mut sections = Vec::new();
        for _ in 0..cursor.u32()? {
            sections.push((cursor.u32()?, rva_range(cursor)?));
        }
        Ok(Self(sections))
    }

    pub(super) fn get(&self, kind: u32) -> Option<RvaRange> {
        self.0
            .iter()
            .find(|section| section.0 == kind)
            .map(|section| section.1)
    }

    /// Returns the bytes of a section; empty if it is absent.
    pub(super) fn data<'d>(&self, kind: u32, image: &PeImage<'d>) -> Result<&'d [u8]> {
        match self.get(kind) {
            None | Some(RvaRange { size: 0, .. }) => Ok(&[]),
            Some(range) => image.required(range, WHAT),
        }
    }

    pub(super) fn array<'d>(&self, kind: u32, image: &PeImage<'d>) -> Result<NativeArray<'d>> {
        let data = self.data(kind, image)?;
        if data.is_empty() {
            return Ok(NativeArray::default());
        }
        NativeArray::parse(data).ok_or(Error::damaged(WHAT, kind.into(), "bad array"))
    }
}

/// Returns the ReadyToRun header: referenced by the CLI header of a single image or a component,
/// exported as `RTR_HEADER` by a composite image.
pub(super) fn find<'d>(image: &PeImage<'d>) -> Option<&'d [u8]> {
    const SIGNATURE: &[u8] = b"RTR\0";
    let named = image.cor_header().map(|cor| cor.managed_native_header.rva);
    let at = |rva| {
        image
            .data_at(rva)
            .filter(|data| data.starts_with(SIGNATURE))
    };
    named
        .and_then(at)
        .or_else(|| image.export(b"RTR_HEADER").and_then(at))
}

/// An assembly in a composite image.
#[derive(Debug, Clone)]
pub(super) struct Component<'d> {
    pub(super) entry_points: NativeArray<'d>,
    /// The metadata, if the composite image embeds it.
    pub(super) metadata: Option<Metadata<'d>>,
}

/// Returns the component assemblies: 16-byte entries of the ranges of a CLI header and a core
/// header.
pub(super) fn components<'d>(data: &'d [u8], image: &PeImage<'d>) -> Result<Vec<Component<'d>>> {
    let mut components = Vec::new();
    for entry in data.chunks_exact(16) {
        let mut cursor = Cursor::new(entry, WHAT);
        let (cor, core) = (rva_range(&mut cursor)?, rva_range(&mut cursor)?);
        let header = image.required(core, WHAT)?;
        // The core header has flags and sections, but no signature and version.
        let sections = Sections::parse(&mut Cursor::at(header, 4, WHAT))?;
        let embedded = |cor: CorHeader| Metadata::parse(image.slice(cor.metadata)?).ok();
        components.push(Component {
            entry_points: sections.array(section::METHOD_DEF_ENTRY_POINTS, image)?,
            metadata: Some(cor.rva)
                .filter(|&rva| rva != 0)
                .and_then(|rva| image.cor_header_at(rva))
                .and_then(embedded),
        });
    }
    Ok(components)
}
