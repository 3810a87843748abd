//! Code bodies and modules.

use std::sync::Arc;

use chronosym_events::MethodFlags;
use chronosym_timeline::{End, Start};

use crate::evidence::EvidenceSet;
use crate::ids::NameId;
use crate::ids::{BodyIndex, ModuleIndex};
use crate::il_map::IlMap;
use crate::inline_tree::InlineTree;
use crate::lifetime::is_over;
use crate::strings::StringId;
use crate::symbol_identity::PdbReference;
use chronosym_types::ByOffset;
use chronosym_types::Chunked;

/// One native code body, from one load to its end.
#[derive(Clone, Debug)]
pub(crate) struct CodeBody {
    pub clr_instance: u16,
    pub start: u64,
    /// Bytes; 0 while only the entry point is known.
    pub size: u32,
    pub token: u32,
    pub flags: MethodFlags,
    pub method_id: u64,
    /// The `ReJITID` field; 0 is the default version.
    pub native_code_version: u64,
    pub name: NameId,
    pub module: Option<ModuleIndex>,
    pub evidence: EvidenceSet,
    pub loaded: Start,
    pub end: End,
    /// Time of the body's own latest event; its end may be that of its container.
    pub confirmed: u64,
    /// Rule 8: earliest sample before the load event that may be in this body.
    pub earliest: u64,
    pub il_map: Option<Arc<IlMap>>,
    pub rare: Option<Arc<Rare>>,
    /// The extent is a guess (rule 15).
    pub approximate: bool,
}

/// Fields that few bodies have, allocated on demand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    pub inline_tree: Option<InlineTree>,
    /// Index of the stub's interop targets.
    pub stub: Option<u32>,
    pub lines: Option<LineTable>,
}

impl CodeBody {
    /// A body without any known property.
    pub const NONE: CodeBody = CodeBody {
        clr_instance: 0,
        start: 0,
        size: 0,
        token: 0,
        flags: MethodFlags(0),
        method_id: 0,
        native_code_version: 0,
        name: NameId::NONE,
        module: None,
        evidence: EvidenceSet::NONE,
        loaded: Start::At(0),
        end: End::At(0),
        confirmed: 0,
        earliest: 0,
        il_map: None,
        rare: None,
        approximate: false,
    };

    /// Returns the address of the last byte.
    #[inline]
    pub fn last(&self) -> u64 {
        self.start.saturating_add(u64::from(self.size.max(1)) - 1)
    }

    pub fn inline_tree(&self) -> Option<&InlineTree> {
        self.rare.as_ref()?.inline_tree.as_ref()
    }

    pub fn stub(&self) -> Option<u32> {
        self.rare.as_ref()?.stub
    }

    pub fn lines(&self) -> Option<&LineTable> {
        self.rare.as_ref()?.lines.as_ref()
    }

    pub fn rare_mut(&mut self) -> &mut Rare {
        Arc::make_mut(self.rare.get_or_insert_default())
    }

    /// Time of the first event about the body.
    pub fn first_seen(&self) -> u64 {
        match self.loaded {
            Start::At(at) | Start::Before(at) => at,
            Start::Unbounded => 0,
        }
    }

    /// Returns whether the code is that of an image.
    pub fn is_precompiled(&self) -> bool {
        !self.flags.is_jitted() && !self.flags.is_dynamic()
    }

    /// Returns whether no event has ended the body.
    pub fn is_alive(&self) -> bool {
        !is_over(self.end)
    }

    /// Returns whether size, name and version of an event may be those of the body.
    pub fn agrees(&self, size: u32, name: NameId, native_code_version: u64) -> bool {
        let name_agrees = self.name == name || self.name == NameId::NONE || name == NameId::NONE;
        let version_agrees = self.native_code_version == native_code_version
            || self.native_code_version == 0
            || native_code_version == 0;
        self.size == size && name_agrees && version_agrees
    }
}

/// File and line by offset, as stated by the compiler of the body.
pub(crate) type LineTable = ByOffset<(StringId, u32)>;

/// A CLR module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Module {
    pub clr_instance: u16,
    pub module_id: u64,
    pub assembly_id: u64,
    pub il_path: StringId,
    pub native_path: StringId,
    /// Simple name, no folder, no extension.
    pub simple_name: StringId,
    pub managed_pdb: Option<PdbReference>,
    pub native_pdb: Option<PdbReference>,
    pub loaded: Start,
    pub end: End,
    /// Unloads before `end`: a trace may repeat an unload, or list the module again.
    pub unloads: Vec<u64>,
    pub evidence: EvidenceSet,
    pub bodies: Chunked<BodyIndex>,
    /// Bodies that end with it, unless they ended before.
    pub open_bodies: Chunked<BodyIndex>,
    pub app_domain: Option<u64>,
}

impl Module {
    /// Time of the first event about the module.
    pub fn first_seen(&self) -> u64 {
        match self.loaded {
            Start::At(at) | Start::Before(at) => at,
            Start::Unbounded => 0,
        }
    }

    /// Sets the end that an event states.
    pub fn set_end(&mut self, end: End) {
        if let End::At(time) = self.end
            && self.end != end
        {
            self.unloads.push(time);
        }
        self.end = end;
    }
}

/// The entry point of a precompiled method of unknown size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryPoint {
    pub time: u64,
    pub clr_instance: u16,
    pub method_id: u64,
    pub name: NameId,
}
