//! What CLR events say: they become facts of code, or facts of the runtime that only the CLR knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use chronosym_events::{
    CodeSymbols, Event, MarkerPhase, MethodDetails, MethodEvent, MethodNames, ModuleEvent,
    RichDebugChunks, RichDebugInfo, RuntimeInformation, Text,
};
use rustc_hash::FxHashMap;

use crate::body::{EntryPoint, PdbId};
use crate::facts::{At, Fact, IlMap, InlineTree, Method, Module, Stub};
use crate::layers::Layers;
use crate::machine::Machine;
use crate::process::ProcessIndex;
use crate::strings::StringId;
use crate::symbol_source::InMemoryPdb;

/// What a process's CLR events say beside its code.
#[derive(Debug, Default)]
pub(crate) struct ClrState {
    /// Method id → what `MethodDetails` said of it, oldest first.
    details: Layers<u64, (u64, Details)>,
    /// Type id → its names, oldest first.
    type_names: Layers<u64, StringId>,
    /// In-memory symbols: module id → its PDB.
    code_symbols: Arc<FxHashMap<(u16, u64), SymbolChunks>>,
    /// Inline trees that are not complete yet, by the thread that writes them.
    open_trees: FxHashMap<u64, RichDebugChunks>,
}

/// A PDB that arrives in chunks.
#[derive(Clone, Debug)]
enum SymbolChunks {
    /// How many there are, and those that came, by their numbers.
    Open(u16, BTreeMap<u16, Vec<u8>>),
    Joined(InMemoryPdb),
}

/// `MethodDetails`: what a method is an instance of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Details {
    pub type_id: u64,
    pub token: u32,
    pub loader_module_id: u64,
}

/// The runtime of .NET Core and .NET 5 and later.
const CORE: u16 = 2;

impl ClrState {
    /// The PDB of an in-memory module, once all its chunks are there.
    pub fn in_memory_pdb(&self, clr_instance: u16, module_id: u64) -> Option<&InMemoryPdb> {
        match self.code_symbols.get(&(clr_instance, module_id))? {
            SymbolChunks::Joined(pdb) => Some(pdb),
            SymbolChunks::Open(..) => None,
        }
    }

    /// What `MethodDetails` said of a method last before a time, or first.
    pub fn details(&self, method_id: u64, time: u64) -> Option<Details> {
        let mut known = self.details.of(method_id);
        let before = known.rfind(|&(at, _)| at <= time);
        let details = before.or_else(|| self.details.of(method_id).next());
        details.map(|(_, details)| details)
    }

    /// The name of a type, as it was stated last.
    pub fn type_name(&self, type_id: u64) -> Option<StringId> {
        self.type_names.of(type_id).next_back()
    }

    /// What answers need, as it is now.
    pub fn snapshot(&mut self) -> Self {
        ClrState {
            details: self.details.snapshot(),
            type_names: self.type_names.snapshot(),
            code_symbols: self.code_symbols.clone(),
            open_trees: FxHashMap::default(),
        }
    }

    /// Drops the details of methods whose loader module has gone: `keep` says of (time, module id) what stays.
    pub fn forget(&mut self, keep: impl Fn(u64, u64) -> bool) {
        self.details
            .retain(|(time, details)| keep(time, details.loader_module_id));
    }

    /// The number of methods' details.
    #[cfg(test)]
    pub fn details_len(&self) -> usize {
        self.details.len()
    }

    fn method_details(&mut self, time: u64, event: &MethodDetails<'_>) {
        let details = Details {
            type_id: event.type_id,
            token: event.token,
            loader_module_id: event.loader_module_id,
        };
        let last = self.details.of(event.method_id).next_back();
        if last.is_none_or(|(_, last)| last != details) {
            self.details.push(event.method_id, (time, details));
        }
    }

    /// Keeps a chunk of an in-memory PDB, and joins them all once the last is there.
    fn symbols(&mut self, event: &CodeSymbols<'_>) {
        let key = (event.clr_instance_id, event.module_id);
        let symbols = Arc::make_mut(&mut self.code_symbols)
            .entry(key)
            .or_insert_with(|| SymbolChunks::Open(0, BTreeMap::new()));
        if let SymbolChunks::Open(total, chunks) = symbols {
            *total = event.total_chunks.max(*total);
            chunks
                .entry(event.chunk_number)
                .or_insert_with(|| event.chunk.to_vec());
            if chunks.keys().copied().eq(0..*total) {
                let joined: Vec<u8> = chunks.values().flatten().copied().collect();
                *symbols = SymbolChunks::Joined(InMemoryPdb::new(joined));
            }
        }
    }

    /// Keeps a piece of an inline tree; returns the tree when it is complete, an error if the pieces make none.
    fn rich_debug_info(
        &mut self,
        writer: u64,
        event: &RichDebugInfo<'_>,
    ) -> Result<Option<InlineTree>, chronosym_events::InlineTreeError> {
        let tree = self.open_trees.entry(writer).or_default().push(event)?;
        Ok(tree.map(|tree| InlineTree {
            clr_instance: event.clr_instance_id,
            version: event.native_code_version,
            ..InlineTree::new(event.method_id, tree)
        }))
    }
}

/// Applies an event of the runtime to the process that it is of.
pub(crate) fn apply(machine: &mut Machine, process: ProcessIndex, at: At, event: &Event<'_>) {
    let Machine { names, states, .. } = machine;
    let state = &mut states[process.index()];
    match event {
        Event::Method(event) => {
            state.code.apply_method(at, &method(event), names);
        }
        Event::ILToNativeMap(event) => {
            let map = IlMap {
                clr_instance: event.clr_instance_id,
                // Before V1 the version field is 0 whatever the tier.
                version: event.il_version_id.map(|_| event.version_id),
                extent: event.extent,
                ..IlMap::new(event.action, event.method_id, &[])
            };
            state.code.il_map(at, &map, event.entries());
        }
        Event::MethodJittingStarted(event) => {
            let method_id = event.method_id;
            machine.apply_to(process, at, Fact::JitStart { method_id });
        }
        Event::RichDebugInfo(event) => match state.clr.rich_debug_info(at.writer(), event) {
            Ok(None) => {}
            Ok(Some(tree)) => machine.apply_to(process, at, tree.into()),
            Err(_) => machine.diagnostics.unbound_inline_trees += 1,
        },
        Event::R2RGetEntryPoint(event) => {
            let point = EntryPoint {
                time: at.time_ns,
                clr_instance: event.clr_instance_id,
                method_id: event.method_id,
                name: names.method(parts(&event.names)),
            };
            let points = &mut state.code.entry_points;
            points.entry(event.entry_point).or_insert(point);
        }
        Event::ILStubGenerated(event) => {
            let stub = Stub::new(event.stub_method_id, parts(&event.target));
            let clr_instance = event.clr_instance_id;
            machine.apply_to(
                process,
                at,
                Stub {
                    clr_instance,
                    ..stub
                }
                .into(),
            );
        }
        Event::ILStubCacheHit(event) => {
            let stub = Stub {
                clr_instance: event.clr_instance_id,
                is_shared: true,
                ..Stub::new(event.stub_method_id, parts(&event.target))
            };
            machine.apply_to(process, at, stub.into());
        }
        Event::Module(event) => machine.apply_to(process, at, module(event).into()),
        Event::DomainModule(event) => {
            let clr = event.clr_instance_id.unwrap_or(0);
            state
                .code
                .in_domain(clr, event.app_domain_id, event.module_id);
        }
        Event::AppDomain(event) if event.action == chronosym_events::Action::Unload => {
            let clr = event.clr_instance_id.unwrap_or(0);
            state
                .code
                .domain_unloaded(at.time_ns, clr, event.app_domain_id);
        }
        Event::MethodDetails(event) => state.clr.method_details(at.time_ns, event),
        Event::BulkType(event) => {
            for t in event.types.iter().filter(|t| !t.name.is_empty()) {
                let name = names.text(t.name);
                if state.clr.type_name(t.type_id) != Some(name) {
                    state.clr.type_names.push(t.type_id, name);
                }
            }
        }
        Event::CodeSymbols(event) => state.clr.symbols(event),
        Event::RuntimeInformation(event) => runtime_information(machine, process, event),
        Event::RundownMarker(event) if event.phase == MarkerPhase::Complete => {
            let clr_instance = event.clr_instance_id.unwrap_or(0);
            machine.apply_to(process, at, Fact::RundownComplete { clr_instance });
        }
        Event::ProcessInfo(event) => {
            let command = names.text(event.command_line);
            machine.name_by_command(process, command);
            let words = [event.os, event.arch]
                .into_iter()
                .flatten()
                .map(|text| text.to_string());
            let words = words.collect::<Vec<_>>().join(" ");
            machine.facts.machine = Some(words).filter(|words| !words.is_empty());
        }
        _ => {}
    }
}

fn parts<'a>(names: &MethodNames<'a>) -> [Text<'a>; 3] {
    [names.namespace, names.name, names.signature].map(Text::Wide)
}

fn method<'a>(event: &MethodEvent<'a>) -> Method<'a> {
    Method {
        action: event.action,
        clr_instance: event.clr_instance_id.unwrap_or(0),
        id: event.method_id,
        module_id: event.module_id,
        start: event.start,
        size: event.size,
        token: event.token,
        flags: event.flags,
        names: event.names.as_ref().map(parts).unwrap_or_default(),
        native_code_version: event.native_code_version.unwrap_or(0),
    }
}

fn module<'a>(event: &ModuleEvent<'a>) -> Module<'a> {
    let pdb = |info: &Option<chronosym_events::PdbInfo<'_>>| {
        info.as_ref().filter(|i| i.is_present()).map(|i| PdbId {
            guid: i.guid,
            age: i.age,
            path: i.path.to_string(),
        })
    };
    Module {
        clr_instance: event.clr_instance_id.unwrap_or(0),
        assembly_id: event.assembly_id,
        flags: event.flags.0,
        native_path: event.native_path.into(),
        managed_pdb: pdb(&event.managed_pdb),
        native_pdb: pdb(&event.native_pdb),
        native_build_id: event.native_build_id.map_or(Text::default(), Text::Wide),
        ..Module::new(event.action, event.module_id, event.il_path)
    }
}

fn runtime_information(
    machine: &mut Machine,
    process: ProcessIndex,
    event: &RuntimeInformation<'_>,
) {
    let command = machine.names.text(event.command_line);
    machine.name_by_command(process, command);
    let runtime = machine.processes.runtime(process, event.clr_instance_id);
    runtime.sku = event.sku;
    // Since .NET 5 the class library's version is the product's; before, only the path may tell it.
    let library = [
        event.bcl_major,
        event.bcl_minor,
        event.bcl_build,
        event.bcl_qfe,
    ];
    let vm = [event.vm_major, event.vm_minor, event.vm_build, event.vm_qfe];
    runtime.version = if event.sku == CORE && library[0] >= 5 {
        library
    } else {
        shared_framework(&event.runtime_dll_path.to_string()).unwrap_or(vm)
    };
}

/// The version of the shared framework that a runtime library lies in: `…/Microsoft.NETCore.App/3.1.23/libcoreclr.so`.
fn shared_framework(path: &str) -> Option<[u16; 4]> {
    let mut parts = path.rsplit(['/', '\\']).skip(1);
    let (version, framework) = (parts.next()?, parts.next()?);
    if framework != "Microsoft.NETCore.App" {
        return None;
    }
    let numbers = version.split('-').next().unwrap_or(version).split('.');
    let mut parsed = [0; 4];
    for (number, text) in parsed.iter_mut().zip(numbers) {
        *number = text.parse().ok()?;
    }
    Some(parsed)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::facts::Action;

    #[test]
    fn details_of_methods_go_with_their_loader() {
        let mut machine = Machine::default();
        let process = machine.process(Some(1), 0);
        for n in 0..100u64 {
            let at = At::new(n * 10);
            let mut path = String::from("/app/plugin");
            let _ = write!(path, "{n}.dll");
            machine.apply_to(process, at, Module::new(Action::Load, n, &*path).into());
            let state = machine.state(process);
            for method in 0..10 {
                let details = Details {
                    type_id: 1,
                    token: 2,
                    loader_module_id: n,
                };
                let known = &mut state.clr.details;
                known.push(n * 10 + method, (at.time_ns, details));
            }
            let before = state.clr.snapshot();
            let at = At::new(n * 10 + 5);
            machine.apply_to(process, at, Module::new(Action::Unload, n, &*path).into());
            let state = machine.state(process);
            state.forget_details(n * 10);
            assert!(state.clr.details_len() <= 20, "{n}");
            assert!(state.clr.details(n * 10, at.time_ns).is_some());
            assert!(before.details(n * 10, at.time_ns).is_some());
        }
    }

    #[test]
    fn a_shared_framework_tells_its_version() {
        let unix = "/usr/share/dotnet/shared/Microsoft.NETCore.App/3.1.23/libcoreclr.so";
        assert_eq!(shared_framework(unix), Some([3, 1, 23, 0]));
        let windows = r"C:\dotnet\shared\Microsoft.NETCore.App\3.0.0-preview6-27804-01\coreclr.dll";
        assert_eq!(shared_framework(windows), Some([3, 0, 0, 0]));
        assert_eq!(shared_framework("/opt/app/2.1.0/libcoreclr.so"), None);
        assert_eq!(
            shared_framework("/x/Microsoft.NETCore.App/new/libcoreclr.so"),
            None
        );
        assert_eq!(shared_framework(""), None);
    }
}
