//! Cases that no available trace has, and damage of every kind.

#[allow(dead_code, reason = "other tests use the rest")]
mod cases;

use cases::{all, raw};
use chronosym_events::universal::{ElfMetadata, PeMetadata, SampleKind, SymbolMetadata};
use chronosym_events::{
    Action, DecodeError, Event, EventKey, EventSchema, Extent, Field, FieldType, Guid, InlineTree,
    InlineTreeError, KernelEvent, MarkerPhase, MethodFlags, OptimizationTier, Provider,
    RichDebugChunks, UniversalEvent, kernel,
};
use chronosym_support::payload::{self, ILMap, Method, Payload, universal};
use proptest::prelude::*;

fn manifest(provider: Provider, id: u32, version: u32) -> EventSchema {
    EventSchema::new(EventKey::Manifest {
        provider,
        id,
        version,
    })
}

fn classic(class: Guid, opcode: u8, version: u16) -> EventSchema {
    EventSchema::new(EventKey::Classic {
        class,
        opcode,
        version,
    })
}

#[test]
fn method_flags_and_actions() {
    let flags = |flags, provider, id| {
        let method = Method {
            flags,
            names: Some(("N", "M", "S")),
            ..Method::default()
        }
        .encode(1);
        let schema = manifest(provider, id, 1);
        match raw(&schema, &method, 8).decode() {
            Ok(Some(Event::Method(m))) => (
                m.action,
                m.flags.tier(),
                m.flags.extent(),
                m.flags.is_dynamic(),
            ),
            other => panic!("{other:?}"),
        }
    };
    let (action, tier, extent, dynamic) = flags(0x8 | 5 << 7, Provider::Runtime, 143);
    assert_eq!(
        (action, tier),
        (Action::Load, Some(OptimizationTier::OptimizedTier1OSR))
    );
    assert_eq!((extent, dynamic), (Extent::Hot, false));
    assert_eq!(tier.unwrap().to_string(), "OptimizedTier1OSR");
    // Precompiled code carries a stale tier; a jitted body of an old runtime has none.
    assert_eq!(flags(2 << 7, Provider::Rundown, 144).1, None);
    assert_eq!(flags(0x8, Provider::Rundown, 143).1, None);
    assert_eq!(
        flags(0x1000_0009, Provider::Runtime, 144),
        (Action::Unload, None, Extent::Cold, true)
    );
    // Flags that are made are flags that are read.
    for tier in [
        None,
        Some(OptimizationTier::QuickJitted),
        Some(OptimizationTier::OptimizedTier1),
    ] {
        let made = MethodFlags::jitted(tier);
        assert_eq!((made.tier(), made.is_jitted()), (tier, true));
    }
    assert_eq!(
        MethodFlags::jitted(Some(OptimizationTier::PreJIT)).tier(),
        None
    );
    assert_eq!(flags(8, Provider::Rundown, 143).0, Action::DCStart);
    assert_eq!(flags(8, Provider::Rundown, 144).0, Action::DCEnd);
    assert_eq!(flags(8, Provider::Runtime, 139).0, Action::DCStart);
    assert_eq!(flags(8, Provider::Runtime, 140).0, Action::DCEnd);
}

#[test]
fn the_method_of_a_started_compilation_needs_a_whole_payload() {
    let payload =
        |version| payload::jitting_started(version, 7, 2, 3, 33, ("N.T", "M", "void ()"), 9);
    let (whole, schema) = (payload(1), manifest(Provider::Runtime, 145, 1));
    assert_eq!(raw(&schema, &whole, 8).jitted_method(), Some(7));
    for end in 0..whole.len() {
        let cut = raw(&schema, &whole[..end], 8);
        assert!(cut.decode().is_err());
        assert_eq!(cut.jitted_method(), None, "cut at {end}");
    }
    // Without names, as an x86 runtime wrote it.
    let without_names = [&whole[..24], &[9, 0]].concat();
    assert_eq!(raw(&schema, &without_names, 8).jitted_method(), None);
    for (id, version, payload) in [(145, 0, payload(0)), (143, 1, whole)] {
        let schema = manifest(Provider::Runtime, id, version);
        assert_eq!(raw(&schema, &payload, 8).jitted_method(), None);
    }
}

#[test]
fn a_truncated_method_is_read_up_to_its_end() {
    let whole = Method {
        start: 0x1000,
        size: 8,
        names: Some(("N", "M", "S")),
        ..Method::default()
    }
    .encode(2);
    let schema = manifest(Provider::Runtime, 143, 2);
    let cut = raw(&schema, &whole[..36], 8);
    assert_eq!(cut.decode(), Err(DecodeError::BadString { offset: 36 }));
    let method = cut.method_in_part().unwrap();
    assert_eq!((method.start, method.size, method.names), (0x1000, 8, None));
    // Two bytes of the runtime instance and eight of the code version follow the strings.
    let strings_end = whole.len() - 10;
    for (cut, instance) in [(1, Some(0)), (8, Some(0)), (9, None), (10, None)] {
        let cut = raw(&schema, &whole[..whole.len() - cut], 8);
        assert!(cut.decode().is_err());
        let method = cut.method_in_part().unwrap();
        let names = method.names.unwrap();
        assert_eq!(
            (names.namespace.to_string(), names.name.to_string()),
            ("N".into(), "M".into())
        );
        assert_eq!(method.clr_instance_id, instance);
    }
    let cut = raw(&schema, &whole[..strings_end - 1], 8);
    assert_eq!(cut.method_in_part().unwrap().names, None);
    let without_strings = [&whole[..36], &[9, 0], &[5, 0, 0, 0, 0, 0, 0, 0]].concat();
    let method = raw(&schema, &without_strings, 8).method_in_part().unwrap();
    assert_eq!((method.start, method.names), (0x1000, None));
    assert_eq!(raw(&schema, &whole[..35], 8).method_in_part(), None);
    let module = manifest(Provider::Runtime, 152, 2);
    assert_eq!(raw(&module, &[0; 99], 8).method_in_part(), None);
}

#[test]
fn il_maps_pair_their_two_lists() {
    let payload = ILMap {
        entries: &[(-2, 0), (0, 4), (7, 4), (-3, 30)],
        extent: 1,
        ..ILMap::default()
    }
    .encode(1);
    let schema = manifest(Provider::Rundown, 150, 1);
    let Ok(Some(Event::ILToNativeMap(map))) = raw(&schema, &payload, 8).decode() else {
        panic!()
    };
    assert_eq!(
        map.entries().collect::<Vec<_>>(),
        [(-2, 0), (0, 4), (7, 4), (-3, 30)]
    );
    assert_eq!(
        (map.action, map.extent, map.entries().len()),
        (Action::DCEnd, Extent::Cold, 4)
    );
    // A count beyond the payload is an error, not an allocation.
    let mut bad = payload.clone();
    bad[17..19].copy_from_slice(&[0xff, 0xff]);
    assert!(matches!(
        raw(&schema, &bad, 8).decode(),
        Err(DecodeError::Short { .. })
    ));
}

#[test]
fn markers_identify_the_end_of_each_rundown() {
    let marker = |provider, id| match raw(&manifest(provider, id, 1), &[9, 0], 8).decode() {
        Ok(Some(Event::RundownMarker(m))) => (m.action, m.phase),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        marker(Provider::Rundown, 145),
        (Action::DCStart, MarkerPhase::Complete)
    );
    assert_eq!(
        marker(Provider::Rundown, 146),
        (Action::DCEnd, MarkerPhase::Complete)
    );
    assert_eq!(
        marker(Provider::Rundown, 147),
        (Action::DCStart, MarkerPhase::Init)
    );
    assert_eq!(
        marker(Provider::Rundown, 148),
        (Action::DCEnd, MarkerPhase::Init)
    );
    assert_eq!(
        marker(Provider::Runtime, 136),
        (Action::DCEnd, MarkerPhase::Complete)
    );
}

#[test]
fn kernel_events_have_kinds() {
    use kernel::classes::{IMAGE, IMAGE_ID, PERF_INFO, PROCESS, STACK_WALK};
    let decode = |schema: &EventSchema, payload: &[u8]| match raw(schema, payload, 4).decode() {
        Ok(Some(Event::Kernel(event))) => format!("{event:?}"),
        other => panic!("{other:?}"),
    };
    let key = payload::kernel::stack_key(4, 1, 2, 3, 4);
    assert!(decode(&classic(STACK_WALK, 37, 2), &key).contains("mode: Kernel"));
    assert!(decode(&classic(STACK_WALK, 38, 2), &key).contains("mode: User"));
    let rsds = payload::kernel::rsds(4, 1, 2, [3; 16], 4, "a");
    assert!(decode(&classic(IMAGE_ID, 36, 2), &rsds).contains("of: Image"));
    assert!(decode(&classic(IMAGE_ID, 37, 2), &rsds).contains("of: Il"));
    let interval = Payload::new().u32(0).u32(1).u32(2).finish();
    assert!(decode(&classic(PERF_INFO, 73, 3), &interval).contains("event: Start"));
    assert!(decode(&classic(PERF_INFO, 74, 3), &interval).contains("event: End"));
    assert!(decode(&classic(PERF_INFO, 72, 3), &interval).contains("event: Set"));
    let process = payload::kernel::Process {
        sid: &[],
        image: "x",
        flags: 2,
        ..Default::default()
    };
    assert!(decode(&classic(PROCESS, 39, 4), &process.encode(4, 4)).contains("Defunct"));
    let schema = classic(PROCESS, 3, 4);
    let bytes = process.encode(4, 8);
    let Ok(Some(Event::Kernel(KernelEvent::Process(started)))) = raw(&schema, &bytes, 8).decode()
    else {
        panic!()
    };
    assert_eq!(
        (started.is_wow64(), started.user_sid.to_string()),
        (Some(true), String::new())
    );
    let image = payload::kernel::Image {
        file: "a",
        ..Default::default()
    }
    .encode(2, 4);
    for (opcode, action) in [(10, "Load"), (2, "Unload"), (3, "DCStart"), (4, "DCEnd")] {
        assert!(decode(&classic(IMAGE, opcode, 2), &image).contains(&format!("action: {action}")));
    }
    // The layouts of the first version are not known.
    assert_eq!(
        raw(&classic(PROCESS, 1, 0), &bytes, 8).decode(),
        Err(DecodeError::UnknownVersion(0))
    );
    let idle = payload::kernel::sampled_profile(8, 1, 0, 1, 0, 0);
    let schema = classic(PERF_INFO, 46, 2);
    let Ok(Some(Event::Kernel(KernelEvent::SampledProfile(idle)))) =
        raw(&schema, &idle, 8).decode()
    else {
        panic!()
    };
    assert!(idle.is_idle());
}

#[test]
fn names_come_from_tables_then_from_the_trace() {
    use kernel::classes::{DISK_IO, IMAGE_ID};
    assert_eq!(manifest(Provider::Runtime, 80, 1).name(), "ExceptionThrown");
    assert_eq!(manifest(Provider::Private, 188, 0).name(), "NgenBindEvent");
    assert_eq!(manifest(Provider::Runtime, 9999, 0).name(), "Event(9999)");
    assert_eq!(
        manifest(Provider::Name("Mine".into()), 1, 0)
            .with_name("Hi")
            .name(),
        "Hi"
    );
    assert_eq!(
        manifest(Provider::Runtime, 143, 0)
            .with_name("Other")
            .name(),
        "MethodLoadVerbose"
    );
    assert_eq!(
        manifest(Provider::Guid(Guid::from_u128(1)), 65534, 1).name(),
        "ManifestData"
    );
    let schema = classic(DISK_IO, 10, 2);
    assert_eq!(
        (schema.provider_name().as_ref(), &*schema.name()),
        ("Windows Kernel", "DiskIO/Read")
    );
    assert_eq!(classic(DISK_IO, 200, 2).name(), "DiskIO/Opcode(200)");
    assert_eq!(
        classic(IMAGE_ID, 36, 2).provider_name().as_ref(),
        "KernelTraceControl"
    );
    assert_eq!(classic(Guid::ZERO, 3, 0).name(), "Event(3)");
    // Without a layout or a description the caller shows the bytes.
    let schema = manifest(Provider::Runtime, 270, 0).with_fields(Vec::new());
    assert_eq!(raw(&schema, &[1, 2], 8).fields(), Ok(None));
}

#[test]
fn published_fields_replace_a_missing_description() {
    let payload = Payload::new()
        .wide("System.Exception")
        .wide("no")
        .u32(0x40_1234)
        .u32(0x8013_1500)
        .u16(16)
        .u16(1);
    let mut payload = payload.finish();
    let text = "ExceptionType=System.Exception, ExceptionMessage=no, ExceptionEIP=0x401234, \
                ExceptionHRESULT=0x80131500, ExceptionFlags=16, ClrInstanceID=1";
    let schema = manifest(Provider::NativeRuntime, 80, 1).with_fields(Vec::new());
    let fields = |payload: &[u8]| {
        raw(&schema, payload, 4)
            .fields()
            .unwrap()
            .unwrap()
            .to_string()
    };
    assert_eq!(fields(&payload), text);
    // A newer runtime appends something.
    payload.push(7);
    assert_eq!(fields(&payload), format!("{text}, Rest=07"));
    // The trace's own description counts more.
    let own = Field::new("Own", FieldType::U8);
    let schema = manifest(Provider::Runtime, 80, 1).with_fields(vec![own]);
    assert_eq!(
        raw(&schema, &[3], 8).fields().unwrap().unwrap().to_string(),
        "Own=3"
    );
}

/// Schemas as the recorders of nettrace V6 write them.
fn universal_schema(provider: &str, name: &str, fields: &[(&str, FieldType)]) -> EventSchema {
    let fields: Vec<_> = fields
        .iter()
        .map(|(n, t)| Field::new(*n, t.clone()))
        .collect();
    EventSchema::new(EventKey::Named {
        provider: provider.into(),
        name: name.into(),
    })
    .with_fields(fields)
}

const NUMBER: FieldType = FieldType::VarUInt;
const TEXT: FieldType = FieldType::Char8;

#[test]
fn universal_events_are_read_by_field_names() {
    let show = |schema: &EventSchema, payload: &[u8]| {
        let event = raw(schema, payload, 8);
        for cut in 0..payload.len() {
            let result = raw(schema, &payload[..cut], 8).decode();
            assert!(
                matches!(result, Err(DecodeError::Short { .. })),
                "{result:?}"
            );
        }
        event.fields().unwrap().unwrap().to_string()
    };
    let process = [
        ("NamespaceId", NUMBER),
        ("Name", TEXT),
        ("NamespaceName", TEXT),
    ];
    for name in ["ExistingProcess", "ProcessCreate"] {
        let schema = universal_schema("Universal.System", name, &process);
        assert_eq!(
            show(&schema, &universal::process(300, "dotnet", "ns")),
            "NamespaceId=300, Name=dotnet, NamespaceName=ns"
        );
    }
    let mapping = [
        ("Id", NUMBER),
        ("StartAddress", NUMBER),
        ("EndAddress", NUMBER),
        ("FileOffset", NUMBER),
        ("FileName", TEXT),
        ("MetadataId", NUMBER),
    ];
    let schema = universal_schema("Universal.System", "ProcessMapping", &mapping);
    let payload = universal::mapping(1, 0x7f00_0000_0000, 0x7f00_0000_1000, 0x200, "/lib/é.so", 4);
    assert_eq!(
        show(&schema, &payload),
        "Id=1, StartAddress=0x7f0000000000, EndAddress=0x7f0000001000, FileOffset=0x200, FileName=/lib/é.so, MetadataId=4"
    );
    // Recorders append two undeclared strings.
    let longer = [&payload[..], b"\x01\0a\0\0"].concat();
    assert_eq!(
        raw(&schema, &longer, 8).decode(),
        raw(&schema, &payload, 8).decode()
    );
    // The description of the format has shorter names, another order, and a process id.
    let described = [
        ("ProcessId", NUMBER),
        ("Id", NUMBER),
        ("MappingId", NUMBER),
        ("Start", NUMBER),
        ("End", NUMBER),
        ("Name", TEXT),
    ];
    let schema = universal_schema("universal.system", "ProcessSymbol", &described);
    let payload = [&[77], universal::symbol(1, 2, 0x10, 0x1f, "f").as_slice()].concat();
    assert_eq!(
        show(&schema, &payload),
        "Id=1, MappingId=2, StartAddress=0x10, EndAddress=0x1f, Name=f"
    );
    let schema = universal_schema("Universal.System", "ProcessExit", &[]);
    assert_eq!(
        raw(&schema, &[], 8).decode(),
        Ok(Some(Event::Universal(UniversalEvent::ProcessExit)))
    );
    let metadata = [
        ("Id", NUMBER),
        ("SymbolMetadata", TEXT),
        ("VersionMetadata", TEXT),
    ];
    let schema = universal_schema("Universal.System", "ProcessMappingMetadata", &metadata);
    assert_eq!(
        show(&schema, &universal::mapping_metadata(3, "{}", "v")),
        "Id=3, SymbolMetadata={}, VersionMetadata=v"
    );
    for (name, kind) in [
        ("cpu", SampleKind::Cpu),
        ("cswitch", SampleKind::CSwitch),
        ("", SampleKind::Other),
    ] {
        let schema = universal_schema("Universal.Events", name, &[("Value", NUMBER)]);
        let payload = universal::sample(1_000_000);
        let Ok(Some(Event::Universal(UniversalEvent::Sample(sample)))) =
            raw(&schema, &payload, 8).decode()
        else {
            panic!()
        };
        assert_eq!((sample.kind, sample.value), (kind, Some(1_000_000)));
    }
    let schema = universal_schema("Universal.System", "ProcessMapping", &[("Id", NUMBER)]);
    assert_eq!(
        raw(&schema, &[1], 8).decode(),
        Err(DecodeError::MissingField("StartAddress"))
    );
    let schema = universal_schema("Universal.Events", "cpu", &[("Value", NUMBER)]);
    assert_eq!(
        raw(&schema, &[0xff; 11], 8).decode(),
        Err(DecodeError::BadValue { offset: 0 })
    );
}

#[test]
fn mapping_metadata_json() {
    let pe = r#"{"type": "PE","name": "A.pdb","date_time": 3919574696,"age": 1,
        "signature": "54de503a88fd5d7150f9d95bc0468d8d","perfmap_signature": "00000000000000000000000000000000",
        "perfmap_version": 0,"perfmap_name": "","text_offset": 7680}"#;
    let mut expected = PeMetadata::default();
    expected.name = Some("A.pdb".into());
    expected.time_date_stamp = Some(3_919_574_696);
    expected.age = Some(1);
    expected.signature = Some("3a50de54-fd88-715d-50f9-d95bc0468d8d".parse().unwrap());
    expected.perfmap_version = Some(0);
    expected.text_offset = Some(7680);
    assert_eq!(
        SymbolMetadata::parse(pe).unwrap(),
        Some(SymbolMetadata::Pe(expected))
    );
    let elf = r#"{"type": "ELF","debug_link": "","build_id": "a751","p_vaddr": "0xc410","p_offset": "0xb410"}"#;
    let mut expected = ElfMetadata::default();
    expected.build_id = Some("a751".into());
    expected.p_vaddr = Some(0xc410);
    expected.p_offset = Some(0xb410);
    assert_eq!(
        SymbolMetadata::parse(elf).unwrap(),
        Some(SymbolMetadata::Elf(expected))
    );
    assert_eq!(SymbolMetadata::parse(" ").unwrap(), None);
    assert!(SymbolMetadata::parse("{").is_err());
    assert!(SymbolMetadata::parse(r#"{"type": "Mach-O"}"#).is_err());
    assert!(matches!(
        SymbolMetadata::parse(r#"{"type": "PE", "age": "x", "name": 3, "signature": "zz"}"#),
        Ok(Some(SymbolMetadata::Pe(pe))) if pe == PeMetadata::default()
    ));
}

/// Root 0 with children 1 and 3; 1 has child 2.
const NODES: &[payload::TreeNode] = &[
    (100, u32::MAX, 1, 0),
    (101, 10, 2, 3),
    (102, 20, 0, 0),
    (103, 30, 0, 0),
];
const MAPPINGS: &[payload::TreeMapping] =
    &[(0, 0, 4), (5, 2, 8), (6, 1, 12), (7, 3, 16), (9, 0, 20)];

/// Returns method and IL offset of the tree's chain at a native offset, innermost first.
fn frames_at(tree: &InlineTree, native_offset: u32) -> impl Iterator<Item = (u64, i32)> + '_ {
    let found = tree.mapping_at(native_offset);
    let innermost = found.map(|mapping| (mapping.node, mapping.il_offset));
    let caller = |&(node, _): &(u32, i32)| {
        let node = &tree.nodes()[node as usize];
        node.parent.map(|parent| (parent, node.il_offset as i32))
    };
    std::iter::successors(innermost, caller)
        .map(|(node, il_offset)| (tree.nodes()[node as usize].method_id, il_offset))
}

#[test]
fn inline_trees_join_and_answer() {
    let tree = payload::inline_tree(NODES, MAPPINGS);
    let schema = manifest(Provider::Private, 189, 0);
    let mut chunks = RichDebugChunks::default();
    let mut whole = None;
    for piece in payload::rich_debug_info(9, 100, 1, &tree, 50) {
        assert!(whole.is_none());
        let Ok(Some(Event::RichDebugInfo(piece))) = raw(&schema, &piece, 8).decode() else {
            panic!()
        };
        whole = chunks.push(&piece).unwrap();
    }
    let tree = whole.expect("the last piece ends the tree");
    assert_eq!(tree.faults(), 0);
    let frames = |offset| frames_at(&tree, offset).collect::<Vec<_>>();
    assert_eq!(frames(3), []);
    assert_eq!(frames(4), [(100, 0)]);
    assert_eq!(frames(11), [(102, 5), (101, 20), (100, 10)]);
    assert_eq!(frames(12), [(101, 6), (100, 10)]);
    assert_eq!(frames(17), [(103, 7), (100, 30)]);
    assert_eq!(frames(9999), [(100, 9)]);
}

#[test]
fn chunks_out_of_order_form_no_tree() {
    let tree = payload::inline_tree(NODES, MAPPINGS);
    let pieces = payload::rich_debug_info(9, 100, 1, &tree, 50);
    let other = payload::rich_debug_info(9, 200, 1, &tree, 50);
    let schema = manifest(Provider::Private, 189, 0);
    let mut chunks = RichDebugChunks::default();
    let mut push = |payload: &[u8]| match raw(&schema, payload, 8).decode() {
        Ok(Some(Event::RichDebugInfo(piece))) => chunks.push(&piece),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        push(&pieces[1]),
        Err(InlineTreeError::MissingChunk {
            expected: 0,
            found: 1
        })
    );
    assert_eq!(push(&pieces[0]), Ok(None));
    assert_eq!(
        push(&pieces[2]),
        Err(InlineTreeError::MissingChunk {
            expected: 1,
            found: 2
        })
    );
    assert_eq!(push(&pieces[0]), Ok(None));
    assert_eq!(
        push(&other[1]),
        Err(InlineTreeError::MissingChunk {
            expected: 1,
            found: 1
        })
    );
    // A first chunk discards the open ones.
    assert_eq!(push(&other[0]), Ok(None));
    for piece in &pieces[..pieces.len() - 1] {
        assert_eq!(push(piece), Ok(None));
    }
    assert!(matches!(push(pieces.last().unwrap()), Ok(Some(_))));
}

#[test]
fn damaged_inline_trees_end() {
    // Node 1 is its own sibling, node 2 its own child; node 3's child is out of range, as is a
    // mapping's node.
    let nodes = &[
        (100, u32::MAX, 1, 0),
        (101, 1, 2, 1),
        (102, 2, 2, 0),
        (103, 3, 99, 0),
    ];
    let tree = InlineTree::parse(&payload::inline_tree(
        nodes,
        &[(0, 2, 4), (0, 77, 8), (0, 3, 12)],
    ))
    .unwrap();
    let frames = |offset| frames_at(&tree, offset).map(|frame| frame.0);
    assert_eq!(frames(4).collect::<Vec<_>>(), [102, 101, 100]);
    assert_eq!(
        frames(12).collect::<Vec<_>>(),
        [103],
        "not reached from the root"
    );
    assert_eq!(
        tree.faults(),
        4,
        "two cycles, one node that is not reached, one mapping"
    );
    // A child list that leads back to the root.
    let tree =
        InlineTree::parse(&payload::inline_tree(&[(1, 0, 1, 0), (2, 0, 0, 0)], &[])).unwrap();
    assert_eq!((tree.faults(), tree.nodes()[1].parent), (0, Some(0)));
    assert_eq!(
        InlineTree::parse(&payload::inline_tree(&[], &[])).unwrap(),
        InlineTree::default()
    );
    let whole = payload::inline_tree(NODES, MAPPINGS);
    for cut in 0..whole.len() {
        assert!(
            matches!(
                InlineTree::parse(&whole[..cut]),
                Err(InlineTreeError::Short { .. })
            ),
            "{cut}"
        );
    }
    assert!(matches!(
        InlineTree::parse(&[0xff; 64]),
        Err(InlineTreeError::Short { .. })
    ));
}

#[test]
fn values_as_json() {
    let fields = vec![
        Field::new("id", FieldType::Hex64),
        Field::new("text", FieldType::Utf16),
        Field::new("list", FieldType::Array(Box::new(FieldType::I8))),
        Field::new("f", FieldType::F32),
        Field::new("g", FieldType::Guid),
        Field::new(
            "o",
            FieldType::Object(vec![Field::new("b", FieldType::Bool8)]),
        ),
        Field::new("bytes", FieldType::Binary),
    ];
    let schema = manifest(Provider::Name("Mine".into()), 1, 0).with_fields(fields);
    let payload = Payload::new()
        .u64(0xabcd)
        .wide("say \"é\"\n")
        .u16(2)
        .bytes(&[1, 0xff])
        .bytes(&0.1f32.to_le_bytes())
        .bytes(&[0x11; 16])
        .u8(1)
        .u16(2)
        .bytes(&[0xbe, 0xef])
        .finish();
    let fields = raw(&schema, &payload, 8).fields().unwrap().unwrap();
    assert_eq!(
        serde_json::to_string(&fields).unwrap(),
        "{\"id\":\"0xabcd\",\"text\":\"say \\\"é\\\"\\n\",\"list\":[1,-1],\"f\":0.1,\
         \"g\":\"11111111-1111-1111-1111-111111111111\",\"o\":{\"b\":true},\"bytes\":\"beef\"}"
    );
}

proptest! {
    /// No bytes make any decoder panic, and listed fields can be displayed.
    #[test]
    fn any_bytes_decode_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..200), wide in any::<bool>(), version in 0u32..8) {
        let width = if wide { 8 } else { 4 };
        for case in all() {
            let schema = EventSchema::new((case.key)(version));
            if let Ok(Some(fields)) = raw(&schema, &bytes, width).fields() {
                let _ = fields.to_string();
            }
        }
    }

    /// Real payloads with flipped bytes: wrong lengths and counts.
    #[test]
    fn flipped_bytes_decode_or_fail(at in any::<prop::sample::Index>(), value in any::<u8>()) {
        for case in all() {
            let version = *case.versions.end();
            let mut payload = (case.encode)(version, 8);
            if payload.is_empty() {
                continue;
            }
            let at = at.index(payload.len());
            payload[at] = value;
            let schema = EventSchema::new((case.key)(version));
            let _ = raw(&schema, &payload, 8).fields();
        }
    }

    /// Random links: parsing ends, and no walk is longer than the tree.
    #[test]
    fn any_inline_tree_ends(
        nodes in prop::collection::vec((any::<u64>(), any::<u32>(), 0u32..12, 0u32..12), 0..10),
        mappings in prop::collection::vec((any::<u32>(), 0u32..12, 0u32..100), 0..10),
    ) {
        let tree = InlineTree::parse(&payload::inline_tree(&nodes, &mappings)).unwrap();
        for offset in 0..100 {
            prop_assert!(frames_at(&tree, offset).count() <= nodes.len());
        }
    }
}
