//! Applies events of the Universal providers of nettrace V6 (Linux): processes, mappings, symbols,
//! samples.

use chronosym_events::universal::{
    ProcessMapping, ProcessSymbol, SampleKind, SymbolMetadata, UniversalEvent,
};
use chronosym_events::{Action, Text};
use chronosym_types::hash::HashMap;

use crate::evidence::Evidence;
use crate::facts::{At, Image, Process, Symbol};
use crate::ids::{ImageIndex, ProcessIndex};
use crate::images::{PePart, PerfMapId, simple_name};
use crate::machine::Machine;
use crate::strings::StringId;
use crate::symbol_identity::PdbReference;
use chronosym_types::PdbId;

/// State of Universal events other than processes, images and symbols.
#[derive(Debug, Default)]
pub(crate) struct UniversalState {
    /// Mapping id → its module.
    modules: HashMap<(ProcessIndex, u64), MappedModule>,
    metadata: HashMap<u64, SymbolMetadata>,
    /// Mappings whose metadata has not been read yet: metadata id → (process, image).
    waiting: HashMap<u64, Vec<(ProcessIndex, ImageIndex)>>,
}

/// The module of a mapping.
#[derive(Debug)]
struct MappedModule {
    /// Module name of its symbols.
    name: StringId,
    /// Its image; anonymous memory has none.
    image: Option<ImageIndex>,
    time_ns: u64,
}

impl UniversalState {
    /// Returns the number of mappings, and of files with metadata.
    pub fn len(&self) -> usize {
        self.modules.len() + 3 * self.metadata.len() + self.waiting.len()
    }

    /// Drops mappings whose image a live session has dropped, and those of anonymous memory logged
    /// by `horizon_ns`.
    pub fn forget(&mut self, machine: &Machine, horizon_ns: u64) {
        let has_image = |process: ProcessIndex, image: ImageIndex| {
            let state = machine.states.get(process);
            state.is_some_and(|state| state.images.contains(image.index()))
        };
        self.modules
            .retain(|&(process, _), module| match module.image {
                Some(image) => has_image(process, image),
                None => module.time_ns > horizon_ns && machine.states.get(process).is_some(),
            });
        self.modules.shrink_to(2 * self.modules.len());
        self.waiting.retain(|_, images| {
            images.retain(|&(process, image)| has_image(process, image));
            !images.is_empty()
        });
        self.waiting.shrink_to(2 * self.waiting.len());
    }

    /// Returns the strings in use.
    pub fn strings(&self) -> impl Iterator<Item = StringId> {
        self.modules.values().map(|module| module.name)
    }

    /// Applies an event. Returns true for a CPU sample.
    pub fn apply(&mut self, machine: &mut Machine, at: At, event: &UniversalEvent<'_>) -> bool {
        match event {
            UniversalEvent::ExistingProcess(event) => {
                machine.apply(at, Process::new(Action::DCStart, event.name).into());
            }
            // Facts about a pid before a process creation belong to the previous incarnation.
            UniversalEvent::ProcessCreate(event) => {
                machine.apply(at, Process::new(Action::Load, event.name).into());
            }
            UniversalEvent::ProcessExit => {
                machine.apply(at, Process::new(Action::Unload, "").into());
            }
            UniversalEvent::ProcessMapping(event) => self.mapping(machine, at, event),
            UniversalEvent::ProcessSymbol(event) => self.symbol(machine, at, event),
            UniversalEvent::ProcessMappingMetadata(event) => {
                if let Ok(Some(metadata)) =
                    SymbolMetadata::parse(&event.symbol_metadata.to_string())
                {
                    for (process, image) in self.waiting.remove(&event.id).unwrap_or_default() {
                        identify(machine, process, image, &metadata);
                    }
                    self.metadata.insert(event.id, metadata);
                }
            }
            UniversalEvent::Sample(sample) => return sample.kind == SampleKind::Cpu,
            _ => {}
        }
        false
    }

    fn mapping(&mut self, machine: &mut Machine, at: At, event: &ProcessMapping<'_>) {
        let process = machine.process_at(at);
        let path = event.file_name.to_text();
        let name = machine.names.short(simple_name(&path));
        let module = MappedModule {
            name,
            image: None,
            time_ns: at.time_ns,
        };
        self.modules.insert((process, event.id), module);
        let Some(size) = event.end.checked_sub(event.start).filter(|&size| size > 0) else {
            return;
        };
        if path.is_empty() {
            return;
        }
        // When they start, recorders write the mappings of processes that are already running.
        let start = machine.processes.all[process.index()].start;
        let action = if start.is_some_and(|start| start <= at.time_ns) {
            Action::Load
        } else {
            Action::DCStart
        };
        let fact = Image {
            file_offset: event.file_offset,
            ..Image::new(action, event.start, size, event.file_name)
        };
        let Some((index, is_new)) = machine.apply_image(process, at.time_ns, &fact) else {
            return;
        };
        if let Some(module) = self.modules.get_mut(&(process, event.id)) {
            module.image = Some(index);
        }
        if let Some(id) = event.metadata_id
            && is_new
        {
            match self.metadata.get(&id) {
                Some(metadata) => identify(machine, process, index, metadata),
                None => self.waiting.entry(id).or_default().push((process, index)),
            }
        }
    }

    fn symbol(&mut self, machine: &mut Machine, at: At, event: &ProcessSymbol<'_>) {
        let process = machine.process_at(at);
        let module = self.modules.get(&(process, event.mapping_id));
        let module = module.map_or("", |module| machine.names.strings.get(module.name));
        // Double-mapped JIT pages are code of the runtime, not a module.
        let module = match module.contains("doublemapper") {
            true => String::new(),
            false => module.to_owned(),
        };
        let symbol = Symbol {
            module: Text::from(&*module),
            evidence: Evidence::ProcessSymbol,
            ..Symbol::new(event.start, event.end, event.name)
        };
        machine.apply_to(process, at, symbol.into());
    }
}

/// Records the identity of an image's file.
fn identify(
    machine: &mut Machine,
    process: ProcessIndex,
    image: ImageIndex,
    metadata: &SymbolMetadata,
) {
    let Machine { names, states, .. } = machine;
    let image = &mut states[process.index()].images[image.index()];
    match metadata {
        SymbolMetadata::Elf(elf) => {
            if let Some(build_id) = &elf.build_id {
                image.build_id = names.strings.intern(build_id);
            }
            // Converts a file offset to an address of the file.
            let (address, offset) = (elf.p_vaddr.unwrap_or(0), elf.p_offset.unwrap_or(0));
            let delta = address.wrapping_sub(offset);
            image.rva_bias = image.rva_bias.wrapping_add(delta);
        }
        SymbolMetadata::Pe(pe) => {
            image.timestamp = pe.time_date_stamp.or(image.timestamp);
            let pdb = pe.signature.map(|guid| PdbReference {
                id: PdbId {
                    guid,
                    age: pe.age.unwrap_or(1),
                },
                path: pe.name.clone().unwrap_or_default(),
            });
            image.pdb = pdb.or(image.pdb.take());
            let code_delta = pe.text_offset.unwrap_or(0);
            let perf_map = pe.perfmap_signature.map(|signature| PerfMapId {
                signature: signature.0,
                version: pe.perfmap_version.unwrap_or(1),
                name: pe.perfmap_name.clone().unwrap_or_default(),
            });
            image.part = Some(PePart {
                file_offset: image.rva_bias,
                code_delta,
                perf_map,
            });
            image.rva_bias = image.rva_bias.wrapping_add(code_delta);
        }
        _ => {}
    }
}
