//! Payloads that real runtimes wrote: every typed event of the project's own traces decodes, to its
//! last byte.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;

use chronosym_events::universal::{SampleKind, SymbolMetadata};
use chronosym_events::{
    Event, EventKey, EventSchema, Guid, PointerSize, Provider, RawEvent, RichDebugChunks,
    UniversalEvent,
};
use chronosym_nettrace::{EventType, Options, Reader};

fn traces() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata"))
}

/// The single trace inside a zip.
fn unzip(path: &str) -> Vec<u8> {
    let file = std::fs::File::open(traces().join(path)).unwrap();
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let mut bytes = Vec::new();
    archive
        .by_index(0)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

fn schema(ty: &EventType) -> EventSchema {
    let key = EventKey::Manifest {
        provider: Provider::from_name(&ty.provider),
        id: ty.id,
        version: ty.version,
    };
    let described = ty.fields.as_deref().unwrap_or_default();
    EventSchema::new(key)
        .with_name(&ty.name)
        .with_fields(described)
}

/// Calls `visit` with every event of a trace.
fn for_each(trace: &[u8], mut visit: impl FnMut(&RawEvent<'_>)) {
    let mut reader = Reader::new(trace, Options::default()).unwrap();
    let mut schemas: Vec<EventSchema> = Vec::new();
    while let Some(region) = reader.next_region().unwrap() {
        for ty in &region.event_types()[schemas.len()..] {
            schemas.push(schema(ty));
        }
        for record in region.records() {
            visit(&RawEvent {
                time_ns: record.time_ns,
                process_id: record.process_id,
                thread_id: Some(record.thread_id),
                processor: record.processor,
                pointer_size: PointerSize::Eight,
                schema: &schemas[record.event_type.index()],
                payload: record.payload,
            });
        }
    }
}

const TRACES: &[&str] = &[
    "clr10/traces/all.nettrace.zip",
    "clr10/traces/reuse.nettrace.zip",
    "clr10/traces/rich.nettrace.zip",
    "clr10/traces/net9-rich.nettrace.zip",
    "clr10/traces/entry.nettrace.zip",
    "clr10/traces/default.nettrace.zip",
    "clr10/traces/memory.nettrace.zip",
    "clr10/traces/linux.nettrace.zip",
    "clr8/known/events.nettrace.zip",
];

#[test]
fn events_without_a_decoder_have_their_published_fields() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    let mut in_hex: BTreeMap<String, u64> = BTreeMap::new();
    let mut types: BTreeMap<String, u64> = BTreeMap::new();
    for trace in TRACES {
        for_each(&unzip(trace), |raw| {
            let of_runtime = matches!(
                raw.schema.key(),
                EventKey::Manifest {
                    provider: Provider::Runtime,
                    ..
                }
            );
            if !of_runtime || raw.schema.is_typed() {
                return;
            }
            let name = format!("{} V{}", raw.schema.name(), raw.schema.version());
            let Some(fields) = raw.fields().unwrap() else {
                *in_hex.entry(name).or_default() += 1;
                return;
            };
            assert!(fields.get("Rest").is_none(), "{trace}: {name}: {fields:?}");
            if let Some(text) = fields.get("ExceptionType") {
                *types.entry(text.to_string()).or_default() += 1;
            }
            *seen.entry(name).or_default() += 1;
        });
    }
    println!("{seen:?}\n{in_hex:?}\n{types:?}");
    for name in [
        "GCStart V2",
        "ExceptionThrown V1",
        "GCAllocationTick V4",
        "GCFitBucketInfo V0",
    ] {
        assert!(seen.contains_key(name), "{name}");
    }
}

#[test]
fn every_typed_event_decodes_to_its_last_byte() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for trace in TRACES {
        for_each(&unzip(trace), |raw| {
            let name = format!("{} V{}", raw.schema.name(), raw.schema.version());
            let event = raw
                .decode()
                .unwrap_or_else(|e| panic!("{trace}: {name}: {e}"));
            if event.is_none() {
                return;
            }
            // Recorders append two undeclared strings to mappings.
            let open = matches!(
                event,
                Some(Event::Universal(UniversalEvent::ProcessMapping(_)))
            );
            if let [rest @ .., _] = raw.payload
                && !open
            {
                let cut = RawEvent {
                    payload: rest,
                    ..*raw
                };
                assert!(
                    cut.decode().is_err(),
                    "{trace}: {name} does not need its last byte"
                );
            }
            *seen.entry(raw.schema.name().into_owned()).or_default() += 1;
        });
    }
    for name in [
        "MethodLoadVerbose",
        "MethodUnloadVerbose",
        "MethodDCEndVerbose",
        "MethodILToNativeMap",
        "MethodDCEndILToNativeMap",
        "MethodJittingStarted",
        "MethodDetails",
        "JittedMethodRichDebugInfo",
        "R2RGetEntryPoint",
        "ModuleLoad",
        "ModuleDCEnd",
        "DomainModuleLoad",
        "AppDomainDCEnd",
        "RuntimeInformationStart",
        "BulkType",
        "DCEndComplete",
        "ThreadSample",
        "ProcessInfo",
        "cpu",
        "ProcessSymbol",
    ] {
        assert!(seen.contains_key(name), "no {name} in {seen:#?}");
    }
}

#[test]
fn named_and_described_events_give_their_fields() {
    let mut truths = 0;
    let mut unknown = BTreeMap::new();
    for_each(&unzip("clr10/traces/all.nettrace.zip"), |raw| {
        let fields = raw.fields().unwrap();
        if raw.schema.provider_name().as_ref() == "Workload-Truth" && raw.schema.id() == Some(1) {
            let fields = fields.expect("described");
            let frames = fields.iter().nth(1).expect("two fields").1.to_string();
            assert!(frames.contains('\t'), "{frames}");
            assert!(fields.get("Rest").is_none());
            truths += 1;
        } else if fields.is_none() && raw.schema.name().starts_with("Event(") {
            *unknown
                .entry(format!(
                    "{} {}",
                    raw.schema.provider_name(),
                    raw.schema.name()
                ))
                .or_insert(0) += 1;
        }
    });
    assert!(truths > 0);
    assert!(unknown.is_empty(), "events without a name: {unknown:?}");
}

#[test]
fn inline_trees_of_real_runtimes_are_whole() {
    for trace in [
        "clr10/traces/rich.nettrace.zip",
        "clr10/traces/net9-rich.nettrace.zip",
    ] {
        let mut chunks: BTreeMap<u64, RichDebugChunks> = BTreeMap::new();
        let (mut trees, mut inlined) = (0, 0);
        for_each(&unzip(trace), |raw| {
            let Ok(Some(Event::RichDebugInfo(piece))) = raw.decode() else {
                return;
            };
            let joined = chunks
                .entry(raw.thread_id.unwrap())
                .or_default()
                .push(&piece)
                .unwrap();
            let Some(tree) = joined else { return };
            assert_eq!(tree.faults(), 0, "{trace}: {:#x}", piece.method_id);
            assert_eq!(tree.nodes()[0].method_id, piece.method_id);
            trees += 1;
            inlined += tree.nodes().len() - 1;
            for mapping in tree.mappings() {
                let parent = |&node: &u32| tree.nodes()[node as usize].parent;
                let nodes = std::iter::successors(Some(mapping.node), parent);
                assert_eq!(nodes.last(), Some(0));
            }
        });
        assert!(
            trees > 500 && inlined > 500,
            "{trace}: {trees} trees, {inlined} inlined calls"
        );
    }
}

#[test]
fn linux_recorders_describe_processes_mappings_and_symbols() {
    // The PDBs of the same modules that the runtime itself states, by file name.
    let mut signatures: BTreeMap<String, Guid> = BTreeMap::new();
    for_each(&unzip("clr10/traces/all.nettrace.zip"), |raw| {
        if let Ok(Some(Event::Module(module))) = raw.decode()
            && let Some(pdb) = module.managed_pdb.filter(|p| p.is_present())
        {
            let path = pdb.path.to_string();
            let name = path.rsplit('/').next().unwrap_or_default();
            signatures.insert(name.to_owned(), pdb.guid);
        }
    });
    let mut matching = 0;
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for_each(&unzip("clr10/traces/linux.nettrace.zip"), |raw| {
        let Ok(Some(Event::Universal(event))) = raw.decode() else {
            return;
        };
        let kind = match event {
            UniversalEvent::Sample(sample) => match sample.kind {
                SampleKind::Cpu => "cpu",
                SampleKind::CSwitch => "cswitch",
                _ => "other",
            },
            UniversalEvent::ProcessMapping(mapping) => {
                assert!(mapping.start <= mapping.end, "{mapping:?}");
                "mapping"
            }
            UniversalEvent::ProcessSymbol(symbol) => {
                assert!(
                    symbol.start <= symbol.end && !symbol.name.to_string().is_empty(),
                    "{symbol:?}"
                );
                "symbol"
            }
            UniversalEvent::ProcessMappingMetadata(metadata) => {
                match SymbolMetadata::parse(&metadata.symbol_metadata.to_string()).unwrap() {
                    Some(SymbolMetadata::Pe(pe)) => {
                        assert!(pe.text_offset.is_some(), "{pe:?}");
                        let name = pe.name.unwrap();
                        if let Some(signature) = signatures.get(&name) {
                            assert_eq!(pe.signature, Some(*signature), "{name}");
                            matching += 1;
                        }
                        "pe"
                    }
                    Some(SymbolMetadata::Elf(elf)) => {
                        assert!(elf.build_id.is_some(), "{elf:?}");
                        "elf"
                    }
                    _ => "no metadata",
                }
            }
            UniversalEvent::ExistingProcess(process) | UniversalEvent::ProcessCreate(process) => {
                assert!(!process.name.to_string().is_empty());
                "process"
            }
            _ => "other",
        };
        *counts.entry(kind).or_default() += 1;
    });
    for kind in ["cpu", "mapping", "symbol", "pe", "elf", "process"] {
        assert!(counts.contains_key(kind), "no {kind} in {counts:?}");
    }
    assert!(matching > 0, "no module of both traces in {signatures:?}");
}
