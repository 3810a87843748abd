//! What CLR events say: methods, modules, runtimes.

use std::collections::BTreeMap;
use std::sync::Arc;

use chronosym_events::{
    Action, AppDomain, Event, EventSchema, ILToNativeMap, MarkerPhase, MethodDetails, MethodEvent,
    ModuleEvent, RichDebugChunks, RichDebugInfo, RuntimeInformation,
};
use chronosym_timeline::{Begin, End};
use rustc_hash::FxHashMap;

use crate::body::{EntryPoint, MethodFact, Module, ModuleIndex, PdbId};
use crate::chunked::Chunked;
use crate::evidence::{Evidence, EvidenceSet};
use crate::il_map::IlMap;
use crate::images::simple_name;
use crate::inline_tree::InlineTree;
use crate::names::NameId;
use crate::neighbours::MapFact;
use crate::process::ProcessIndex;
use crate::session::{Session, life_of};
use crate::strings::StringId;

/// What a process's CLR events say beside its code.
#[derive(Debug, Default)]
pub(crate) struct ClrState {
    /// Method id → what `MethodDetails` said of it, oldest first.
    pub details: Arc<FxHashMap<u64, Vec<(u64, Details)>>>,
    /// Type id → name.
    pub type_names: Arc<FxHashMap<u64, StringId>>,
    /// In-memory symbols: module id → its PDB.
    pub code_symbols: Arc<FxHashMap<(u16, u64), SymbolChunks>>,
    /// Inline trees that are not complete yet, by the thread that writes them.
    open_trees: FxHashMap<u64, RichDebugChunks>,
}

/// A PDB that arrives in chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct SymbolChunks {
    total: u16,
    /// By their numbers, until all are there.
    chunks: BTreeMap<u16, Vec<u8>>,
    whole: Option<Arc<[u8]>>,
}

impl SymbolChunks {
    fn add(&mut self, total: u16, number: u16, bytes: &[u8]) {
        if self.whole.is_some() {
            return;
        }
        self.total = self.total.max(total);
        self.chunks.entry(number).or_insert_with(|| bytes.to_vec());
        if self.chunks.keys().copied().eq(0..self.total) {
            let chunks = std::mem::take(&mut self.chunks);
            self.whole = Some(chunks.into_values().flatten().collect());
        }
    }
}

/// `MethodDetails`: what a method is an instance of.
#[derive(Clone, Debug)]
pub(crate) struct Details {
    pub type_id: u64,
    pub token: u32,
    pub loader_module_id: u64,
}

/// The runtime of .NET Core and .NET 5 and later.
const CORE: u16 = 2;

impl ClrState {
    /// The PDB of an in-memory module, once all its chunks are there.
    pub(crate) fn in_memory_pdb(&self, clr_instance: u16, module_id: u64) -> Option<&Arc<[u8]>> {
        let symbols = self.code_symbols.get(&(clr_instance, module_id))?;
        symbols.whole.as_ref()
    }

    /// What answers need, as it is now.
    pub(crate) fn snapshot(&self) -> Self {
        ClrState {
            details: self.details.clone(),
            type_names: self.type_names.clone(),
            code_symbols: self.code_symbols.clone(),
            open_trees: FxHashMap::default(),
        }
    }
}

impl Session {
    pub(crate) fn clr(&mut self, process: ProcessIndex, time: u64, writer: u64, event: &Event<'_>) {
        match event {
            Event::Method(event) => self.method(process, time, writer, event),
            Event::MethodJittingStarted(event) => {
                self.code(process)
                    .jitting_started(event.method_id, time, writer);
            }
            Event::ILToNativeMap(event) => self.il_map(process, time, writer, event),
            Event::RichDebugInfo(event) => self.rich_debug_info(process, time, writer, event),
            Event::R2RGetEntryPoint(event) => {
                let n = &event.names;
                let name = self.names.intern_wide(n.namespace, n.name, n.signature);
                let point = EntryPoint {
                    time,
                    clr_instance: event.clr_instance_id,
                    method_id: event.method_id,
                    name,
                };
                self.code(process)
                    .entry_points
                    .entry(event.entry_point)
                    .or_insert(point);
            }
            Event::ILStubGenerated(event) => {
                let n = &event.target;
                let target = self.names.intern_wide(n.namespace, n.name, n.signature);
                if target != NameId::NONE {
                    self.code(process).stub_generated(
                        event.clr_instance_id,
                        event.stub_method_id,
                        target,
                    );
                }
            }
            Event::ILStubCacheHit(event) => {
                let n = &event.target;
                let target = self.names.intern_wide(n.namespace, n.name, n.signature);
                if target != NameId::NONE {
                    self.code(process).stub_shared(
                        event.clr_instance_id,
                        event.stub_method_id,
                        target,
                    );
                }
            }
            Event::Module(event) => self.module(process, time, event),
            Event::DomainModule(event) => {
                let (clr, domain) = (event.clr_instance_id.unwrap_or(0), event.app_domain_id);
                let code = self.code(process);
                if let Some(module) = code.module(clr, event.module_id) {
                    code.modules[module.index()].app_domain = Some(domain);
                    code.by_domain
                        .entry((clr, domain))
                        .or_default()
                        .push(module);
                }
            }
            Event::AppDomain(event) => self.app_domain(process, time, event),
            Event::MethodDetails(event) => self.method_details(process, time, event),
            Event::BulkType(event) => {
                for t in event.types.iter().filter(|t| !t.name.is_empty()) {
                    let name = self.names.wide(t.name);
                    let names = &mut self.states[process.index()].clr.type_names;
                    Arc::make_mut(names).insert(t.type_id, name);
                }
            }
            Event::CodeSymbols(event) => {
                let symbols = Arc::make_mut(&mut self.states[process.index()].clr.code_symbols);
                let held = symbols
                    .entry((event.clr_instance_id, event.module_id))
                    .or_default();
                held.add(event.total_chunks, event.chunk_number, event.chunk);
            }
            Event::RuntimeInformation(event) => self.runtime_information(process, event),
            Event::RundownMarker(event) if event.phase == MarkerPhase::Complete => {
                self.processes
                    .runtime(process, event.clr_instance_id.unwrap_or(0))
                    .rundown = true;
            }
            Event::ProcessInfo(event) => {
                let command = self.names.wide(event.command_line);
                self.command_line(process, command);
                let words = [event.os, event.arch]
                    .into_iter()
                    .flatten()
                    .map(|text| text.to_string());
                let machine = words.collect::<Vec<_>>().join(" ");
                self.facts.machine = Some(machine).filter(|machine| !machine.is_empty());
            }
            _ => {}
        }
    }

    fn code(&mut self, process: ProcessIndex) -> &mut crate::code::ProcessCode {
        &mut self.states[process.index()].code
    }

    fn method(&mut self, process: ProcessIndex, time: u64, writer: u64, event: &MethodEvent<'_>) {
        let clr_instance = event.clr_instance_id.unwrap_or(0);
        let code = &mut self.states[process.index()].code;
        let standing = code.standing(clr_instance, event.method_id, event.start);
        let name = event.names.map_or(NameId::NONE, |n| {
            // Unloads and rundowns say again what a load said.
            let known = standing.map(|body| code.bodies[body.index()].name);
            let said = [n.namespace, n.name, n.signature];
            known
                .filter(|&known| self.names.is(known, said))
                .unwrap_or_else(|| self.names.intern_wide(n.namespace, n.name, n.signature))
        });
        let fact = MethodFact {
            time,
            clr_instance,
            method_id: event.method_id,
            start: event.start,
            size: event.size,
            token: event.token,
            flags: event.flags,
            native_code_version: event.native_code_version.unwrap_or(0),
            name,
            module_id: event.module_id,
            module: code.module(clr_instance, event.module_id),
            standing,
        };
        match event.action {
            Action::Load => code.load(fact, writer),
            Action::Unload => code.unload(fact, writer),
            Action::DCStart => code.dc_start(fact, writer),
            Action::DCEnd => code.dc_end(fact, writer),
        };
    }

    fn il_map(&mut self, process: ProcessIndex, time: u64, writer: u64, event: &ILToNativeMap<'_>) {
        // Before V1 the version field is 0 whatever the tier.
        let version = event.il_version_id.map(|_| event.version_id);
        let fact = MapFact {
            time,
            map: IlMap::new(event.entries()),
            action: event.action,
            clr_instance: event.clr_instance_id,
            method_id: event.method_id,
            version,
            extent: event.extent,
        };
        self.code(process).il_map(fact, writer);
    }

    fn rich_debug_info(
        &mut self,
        process: ProcessIndex,
        time: u64,
        writer: u64,
        event: &RichDebugInfo<'_>,
    ) {
        let state = &mut self.states[process.index()];
        let bound = match state.clr.open_trees.entry(writer).or_default().push(event) {
            Ok(None) => true,
            Ok(Some(tree)) => state.code.inline_tree(
                InlineTree(tree),
                event.clr_instance_id,
                event.method_id,
                event.native_code_version,
                time,
                writer,
            ),
            Err(_) => false,
        };
        self.diagnostics.unbound_inline_trees += u64::from(!bound);
    }

    fn module(&mut self, process: ProcessIndex, time: u64, event: &ModuleEvent<'_>) {
        let clr_instance = event.clr_instance_id.unwrap_or(0);
        let il_path = self.names.wide(event.il_path);
        let native_path = self.names.wide(event.native_path);
        let path = if il_path == StringId::EMPTY {
            native_path
        } else {
            il_path
        };
        let simple = simple_name(self.names.strings.get(path)).to_owned();
        let simple_name = self.names.strings.intern(&simple);
        let build_id = event
            .native_build_id
            .map_or(StringId::EMPTY, |id| self.names.wide(id));
        let pdb = |info: &Option<chronosym_events::PdbInfo<'_>>| {
            info.as_ref().filter(|i| i.is_present()).map(|i| PdbId {
                guid: i.guid,
                age: i.age,
                path: i.path.to_string(),
            })
        };
        let (begin, end) = life_of(event.action, time);
        let evidence = match event.action {
            Action::Load => Evidence::Load,
            Action::Unload => Evidence::Unload,
            Action::DCStart => Evidence::DCStart,
            Action::DCEnd => Evidence::DCEnd,
        };
        let code = self.code(process);
        let known = code.module(clr_instance, event.module_id).filter(|m| {
            let known = &code.modules[m.index()];
            known.il_path == il_path && known.assembly_id == event.assembly_id
        });
        let ended = |m: ModuleIndex| matches!(code.modules[m.index()].end, End::At(_));
        let index = match known {
            // A module that was unloaded and is loaded again is another one; a rundown may list one just unloaded.
            Some(index) if !(event.action == Action::Load && ended(index)) => {
                let known = &mut code.modules[index.index()];
                known.evidence.insert(evidence);
                match event.action {
                    Action::Load | Action::DCStart => {}
                    Action::Unload | Action::DCEnd => known.end = end,
                }
                known.managed_pdb = known.managed_pdb.take().or_else(|| pdb(&event.managed_pdb));
                known.native_pdb = known.native_pdb.take().or_else(|| pdb(&event.native_pdb));
                if let (Action::DCEnd, Some(domain)) = (event.action, known.app_domain) {
                    // It lives on: its domain closes it once more.
                    let of_domain = code.by_domain.entry((clr_instance, domain));
                    of_domain.or_default().push(index);
                }
                index
            }
            _ => code.add_module(Module {
                clr_instance,
                module_id: event.module_id,
                assembly_id: event.assembly_id,
                flags: event.flags.0,
                il_path,
                native_path,
                simple_name,
                managed_pdb: pdb(&event.managed_pdb),
                native_pdb: pdb(&event.native_pdb),
                native_build_id: build_id,
                begin,
                end,
                evidence: EvidenceSet::of(evidence),
                bodies: Chunked::default(),
                app_domain: None,
            }),
        };
        match event.action {
            // What named its id before was another module's.
            Action::Load => code.disown(clr_instance, event.module_id),
            // A rundown lists methods before their module.
            Action::DCStart | Action::DCEnd => code.adopt(index),
            Action::Unload => {
                code.adopt(index);
                code.close_module(index, time);
            }
        }
    }

    fn app_domain(&mut self, process: ProcessIndex, time: u64, event: &AppDomain<'_>) {
        if event.action != Action::Unload {
            return;
        }
        let clr = event.clr_instance_id.unwrap_or(0);
        let code = self.code(process);
        let domain = (clr, event.app_domain_id);
        for index in code.by_domain.remove(&domain).unwrap_or_default() {
            let module = &mut code.modules[index.index()];
            let inside = module.app_domain == Some(event.app_domain_id);
            if inside && !matches!(module.end, End::At(_)) {
                module.end = End::At(time);
                code.close_module(index, time);
            }
        }
    }

    fn method_details(&mut self, process: ProcessIndex, time: u64, event: &MethodDetails<'_>) {
        let details = Details {
            type_id: event.type_id,
            token: event.token,
            loader_module_id: event.loader_module_id,
        };
        let known = Arc::make_mut(&mut self.states[process.index()].clr.details);
        known
            .entry(event.method_id)
            .or_default()
            .push((time, details));
    }

    fn runtime_information(&mut self, process: ProcessIndex, event: &RuntimeInformation<'_>) {
        let command = self.names.wide(event.command_line);
        self.command_line(process, command);
        let runtime = self.processes.runtime(process, event.clr_instance_id);
        runtime.sku = event.sku;
        // Since .NET 5 the class library's version is the product's; before, only the path may tell it.
        let library = [
            event.bcl_major,
            event.bcl_minor,
            event.bcl_build,
            event.bcl_qfe,
        ];
        let machine = [event.vm_major, event.vm_minor, event.vm_build, event.vm_qfe];
        runtime.version = if event.sku == CORE && library[0] >= 5 {
            library
        } else {
            shared_framework(&event.runtime_dll_path.to_string()).unwrap_or(machine)
        };
    }

    /// Remembers the command line of a process, and its name unless the system told one.
    pub(crate) fn command_line(&mut self, process: ProcessIndex, command: StringId) {
        if command == StringId::EMPTY {
            return;
        }
        let name = process_name(self.names.strings.get(command)).to_owned();
        let name = self.names.strings.intern(&name);
        let known = &mut self.processes.all[process.index()];
        if known.command_line == StringId::EMPTY {
            known.command_line = command;
        }
        if known.name == StringId::EMPTY {
            known.name = name;
        }
    }
}

/// What a person calls the program of a command line: the file name, or for `dotnet app.dll` the application's.
fn process_name(command: &str) -> &str {
    let mut words = Words(command);
    let first = words.next().map_or("", simple_name);
    let is_host = first.eq_ignore_ascii_case("dotnet") || first.eq_ignore_ascii_case("corerun");
    let application = |word: &&str| {
        let extension = word.len().checked_sub(4).and_then(|at| word.get(at..));
        extension.is_some_and(|e| e.eq_ignore_ascii_case(".dll") || e.eq_ignore_ascii_case(".exe"))
    };
    if is_host && let Some(application) = words.find(application) {
        return simple_name(application);
    }
    first
}

/// The words of a command line; quoted ones can hold blanks.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start();
        if rest.is_empty() {
            return None;
        }
        let (word, tail) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        self.0 = tail;
        Some(word)
    }
}

/// Whether an event type has a decoder, but nothing to say to a session.
pub(crate) fn is_unused(schema: &EventSchema) -> bool {
    matches!(
        &*schema.name(),
        "MemoryAllocatedForJitCode"
            | "MethodJitInliningSucceeded"
            | "MethodJitInliningFailed"
            | "MethodJitInliningFailedAnsi"
            | "MethodJitTailCallSucceeded"
            | "MethodJitTailCallFailed"
            | "MethodJitTailCallFailedAnsi"
            | "R2RGetEntryPointStart"
            | "TieredCompilationBackgroundJitStart"
            | "TieredCompilationBackgroundJitStop"
    )
}

/// Begin and end of a module's life as bounds for what it contains.
pub(crate) fn module_floor(module: &Module) -> u64 {
    match module.begin {
        Begin::At(time) => time,
        Begin::Before(_) | Begin::Unbounded => 0,
    }
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
    use super::*;

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

    #[test]
    fn a_host_is_called_after_its_application() {
        assert_eq!(
            process_name("/usr/bin/dotnet exec Workload.dll a.dll"),
            "Workload"
        );
        assert_eq!(
            process_name(r#""C:\Program Files\App\My App.exe" --x"#),
            "My App"
        );
        assert_eq!(process_name("dotnet build"), "dotnet");
        assert_eq!(process_name("./server"), "server");
        assert_eq!(process_name(""), "");
    }
}
