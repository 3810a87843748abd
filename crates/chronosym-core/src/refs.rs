//! References to a timeline's modules and images, for symbol sources.

use crate::ids::{ImageIndex, ModuleIndex, ProcessIndex};
use crate::symbol_source::{ImageRef, ModuleCode, ModuleRef, PartRef, SnapshotKey};
use crate::timeline::Timeline;

impl Timeline {
    /// Returns a reference to a module.
    pub fn module_ref(&self, process: ProcessIndex, module: ModuleIndex) -> Option<ModuleRef<'_>> {
        let modules = &self.space(process)?.state.code.modules;
        (modules.contains(module.index())).then(|| self.module_of(process, module))
    }

    /// Returns a reference to a module that is in the timeline.
    pub(crate) fn module_of(&self, process: ProcessIndex, module: ModuleIndex) -> ModuleRef<'_> {
        let state = &self.spaces[process.index()].state;
        let m = &state.code.modules[module.index()];
        ModuleRef {
            native_path: self.names.strings.get(m.native_path),
            managed_pdb: m.managed_pdb.as_ref(),
            native_pdb: m.native_pdb.as_ref(),
            in_memory_pdb: state.clr.in_memory_pdb(m.clr_instance, m.module_id),
            machine: self.facts.machine.as_deref(),
            code: Some(ModuleCode {
                key: self.key_of(process, module.0),
                names: &self.names,
                code: &state.code,
            }),
            ..ModuleRef::new(self.names.strings.get(m.il_path))
        }
    }

    fn key_of(&self, process: ProcessIndex, index: u32) -> SnapshotKey {
        SnapshotKey {
            snapshot: self.snapshot,
            process,
            index,
        }
    }

    /// Returns a reference to an image.
    pub fn image_ref(&self, owner: ProcessIndex, index: ImageIndex) -> Option<ImageRef<'_>> {
        let images = &self.space(owner)?.state.images;
        (images.contains(index.index())).then(|| self.image_of(owner, index))
    }

    /// Returns a reference to an image that is in the timeline.
    pub(crate) fn image_of(&self, owner: ProcessIndex, index: ImageIndex) -> ImageRef<'_> {
        let images = &self.spaces[owner.index()].state.images;
        let image = &images[index.index()];
        ImageRef {
            part: image.part.as_ref().map(|part| PartRef {
                file_offset: part.file_offset,
                code_delta: part.code_delta,
                perf_map: part.perf_map.as_ref(),
                images,
                key: self.key_of(owner, index.0),
            }),
            machine: self.facts.machine.as_deref(),
            ..ImageRef::of(image, &self.names.strings)
        }
    }
}
