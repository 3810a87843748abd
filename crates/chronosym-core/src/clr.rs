//! Applies CLR events: as facts about code, or to the CLR's own state.

use chronosym_events::{
    Action, Event, MarkerPhase, MethodEvent, MethodNames, ModuleEvent, RuntimeInformation, Text,
};

use crate::body::EntryPoint;
use crate::facts::{At, Fact, IlMap, Method, Module, Stub};
use crate::ids::ProcessIndex;
use crate::machine::Machine;
use crate::symbol_identity::PdbReference;
use chronosym_types::PdbId;

/// The runtime of .NET Core and .NET 5 and later.
const CORE: u16 = 2;

/// Applies an event of the runtime in `process`.
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
                // Before V1 the version field is 0 for every tier.
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
        Event::RichDebugInfo(event) => {
            match state.clr.rich_debug_info((at.writer(), at.time_ns), event) {
                Ok(None) => {}
                Ok(Some(tree)) => machine.apply_to(process, at, tree.into()),
                Err(_) => machine.counters.unbound_inline_trees += 1,
            }
        }
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
        Event::Assembly(event) => {
            let id = (event.clr_instance_id.unwrap_or(0), event.assembly_id);
            let code = &mut state.code;
            match event.action {
                Action::Load | Action::DCStart => {
                    code.assembly(id, at.time_ns, event.is_collectible());
                }
                Action::Unload | Action::DCEnd => {}
            }
        }
        Event::DomainModule(event) => {
            let clr = event.clr_instance_id.unwrap_or(0);
            state
                .code
                .in_domain(clr, event.app_domain_id, event.module_id);
        }
        Event::AppDomain(event) if event.action == Action::Unload => {
            let clr = event.clr_instance_id.unwrap_or(0);
            state
                .code
                .domain_unloaded(at.time_ns, clr, event.app_domain_id);
        }
        Event::MethodDetails(event) => state.clr.method_details(at.time_ns, event),
        Event::BulkType(event) => {
            for t in event.types.iter().filter(|t| !t.name.is_empty()) {
                let name = names.text(t.name);
                state.clr.name_type(at.time_ns, t.type_id, name);
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
    [
        Text::Wide(names.namespace),
        Text::Wide(names.name),
        Text::Wide(names.signature),
    ]
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
        info.as_ref()
            .filter(|i| i.is_present())
            .map(|i| PdbReference {
                id: PdbId {
                    guid: i.guid,
                    age: i.age,
                },
                path: i.path.to_string(),
            })
    };
    Module {
        clr_instance: event.clr_instance_id.unwrap_or(0),
        assembly_id: event.assembly_id,
        native_path: event.native_path.into(),
        managed_pdb: pdb(&event.managed_pdb),
        native_pdb: pdb(&event.native_pdb),
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
    // Since .NET 5 the class library's version is the product's; earlier, only the path has it.
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

/// Returns the version in a shared framework's path:
/// `…/Microsoft.NETCore.App/3.1.23/libcoreclr.so`.
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
    fn the_path_of_a_shared_framework_has_its_version() {
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
