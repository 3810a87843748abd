//! What the Universal providers of nettrace V6 recorders say (Linux): processes, mappings, symbols, samples.

use chronosym_events::Text;
use chronosym_events::universal::{
    ProcessMapping, ProcessSymbol, SampleKind, SymbolMetadata, UniversalEvent, UniversalProcess,
};
use chronosym_timeline::{Begin, End};
use rustc_hash::FxHashMap;

use crate::body::PdbId;
use crate::evidence::Evidence;
use crate::images::{Image, ImageIndex, PePart, PerfMapId, simple_name};
use crate::process::ProcessIndex;
use crate::session::Session;
use crate::strings::StringId;
use crate::untimed::{SymbolText, UntimedSymbol};

/// What the Universal events of a process say beside its code.
#[derive(Debug, Default)]
pub(crate) struct UniversalState {
    /// Mapping id → image.
    images: FxHashMap<u64, ImageIndex>,
    /// Mapping id → the name that its symbols' module has.
    modules: FxHashMap<u64, StringId>,
}

/// What is known of the files behind mappings, machine-wide.
#[derive(Debug, Default)]
pub(crate) struct MappingFiles {
    metadata: FxHashMap<u64, SymbolMetadata>,
    /// Mappings whose metadata has not come yet: metadata id → (process, image).
    waiting: FxHashMap<u64, Vec<(ProcessIndex, ImageIndex)>>,
}

impl Session {
    /// True if the event is a CPU sample.
    pub(crate) fn universal(
        &mut self,
        process: ProcessIndex,
        time: u64,
        event: &UniversalEvent<'_>,
    ) -> bool {
        match event {
            UniversalEvent::ExistingProcess(event) => self.universal_name(process, event),
            UniversalEvent::ProcessCreate(event) => {
                let pid = self.processes.all[process.index()].pid;
                // The first word of a process that was seen before its creation is that of the one before.
                let process = self.processes.start(pid, time);
                self.ensure_states();
                self.universal_name(process, event);
            }
            UniversalEvent::ProcessExit => self.process_ended(process, time),
            UniversalEvent::ProcessMapping(event) => self.mapping(process, time, event),
            UniversalEvent::ProcessSymbol(event) => self.symbol(process, event),
            #[cfg(feature = "nettrace")]
            UniversalEvent::ProcessMappingMetadata(event) => {
                if let Ok(Some(metadata)) =
                    SymbolMetadata::parse(&event.symbol_metadata.to_string())
                {
                    for (process, image) in self
                        .mapping_files
                        .waiting
                        .remove(&event.id)
                        .unwrap_or_default()
                    {
                        self.identify(process, image, &metadata);
                    }
                    self.mapping_files.metadata.insert(event.id, metadata);
                }
            }
            UniversalEvent::Sample(sample) => return sample.kind == SampleKind::Cpu,
            _ => {}
        }
        false
    }

    fn text(&mut self, text: &Text<'_>) -> StringId {
        self.names.strings.intern(&text.to_string())
    }

    fn universal_name(&mut self, process: ProcessIndex, event: &UniversalProcess<'_>) {
        let name = self.text(&event.name);
        if name != StringId::EMPTY {
            self.processes.all[process.index()].name = name;
        }
    }

    fn mapping(&mut self, process: ProcessIndex, time: u64, event: &ProcessMapping<'_>) {
        let path = self.text(&event.file_name);
        let simple = simple_name(self.names.strings.get(path)).to_owned();
        let name = self.names.strings.intern(&simple);
        let state = &mut self.states[process.index()];
        state.universal.modules.insert(event.id, name);
        // Memory that no file stands behind names nothing; jitted code can lie in it, and the perf map knows that.
        let text = self.names.strings.get(path);
        let anonymous = text.is_empty()
            || text.starts_with("/memfd:")
            || text.starts_with("//anon")
            || text.starts_with('[');
        let kernel = text.starts_with("[kernel") || text.contains("vmlinux");
        let Some(size) = event.end.checked_sub(event.start).filter(|&size| size > 0) else {
            return;
        };
        if anonymous && !kernel {
            return;
        }
        // Recorders write the mappings of processes that ran before at their own start.
        let began = self.processes.all[process.index()]
            .start
            .is_some_and(|start| start <= time);
        let begin = if began {
            Begin::At(time)
        } else {
            Begin::Before(time)
        };
        let index = ImageIndex(state.images.len() as u32);
        state.images.push(Image {
            base: event.start,
            size,
            rva_bias: event.file_offset,
            path,
            simple_name: name,
            timestamp: None,
            checksum: None,
            pdb: None,
            il_pdb: None,
            build_id: StringId::EMPTY,
            part: None,
            begin,
            end: End::Open,
        });
        state.universal.images.insert(event.id, index);
        if let Begin::At(at) = begin {
            let last = event.start.saturating_add(size - 1);
            state.code.image_mapped(event.start, last, at);
        }
        if let Some(id) = event.metadata_id {
            match self.mapping_files.metadata.get(&id).cloned() {
                Some(metadata) => self.identify(process, index, &metadata),
                None => self
                    .mapping_files
                    .waiting
                    .entry(id)
                    .or_default()
                    .push((process, index)),
            }
        }
    }

    /// Notes what the file behind an image is.
    fn identify(&mut self, process: ProcessIndex, image: ImageIndex, metadata: &SymbolMetadata) {
        let build_id = match metadata {
            SymbolMetadata::Elf(elf) => elf
                .build_id
                .as_deref()
                .map(|id| self.names.strings.intern(id)),
            _ => None,
        };
        let image = &mut self.states[process.index()].images[image.index()];
        match metadata {
            SymbolMetadata::Elf(elf) => {
                image.build_id = build_id.unwrap_or(image.build_id);
                // From an offset in the file to an address in it.
                let delta = elf
                    .p_vaddr
                    .unwrap_or(0)
                    .wrapping_sub(elf.p_offset.unwrap_or(0));
                image.rva_bias = image.rva_bias.wrapping_add(delta);
            }
            SymbolMetadata::Pe(pe) => {
                image.timestamp = pe.time_date_stamp.or(image.timestamp);
                if let Some(guid) = pe.signature {
                    let path = pe.name.clone().unwrap_or_default();
                    image.pdb = Some(PdbId {
                        guid,
                        age: pe.age.unwrap_or(1),
                        path,
                    });
                }
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

    fn symbol(&mut self, process: ProcessIndex, event: &ProcessSymbol<'_>) {
        let text = event.name.to_string();
        let parsed = SymbolText::parse(&text);
        let module = self.states[process.index()]
            .universal
            .modules
            .get(&event.mapping_id)
            .copied();
        let module = match parsed.module {
            "" => module
                .filter(|&m| !self.names.strings.get(m).contains("doublemapper"))
                .unwrap_or(StringId::EMPTY),
            named => self.names.strings.intern(named),
        };
        let symbol = UntimedSymbol {
            start: event.start,
            last: event.end.max(event.start),
            name: parsed.intern(&mut self.names),
            module,
            tier: parsed.tier,
            evidence: Evidence::ProcessSymbol,
        };
        self.states[process.index()].untimed.rows.push(symbol);
    }
}
