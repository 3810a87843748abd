//! Payloads of events, and descriptions of their layout in traces.

use std::sync::OnceLock;

use chronosym_events::{
    EventKey, EventSchema, InlineTree, ManifestChunks, PointerSize, RawEvent, TraceLoggingSchema,
    catalog,
};

use crate::choices::Choices;

fn read(schema: &EventSchema, payload: &[u8]) {
    for pointer_size in [PointerSize::Four, PointerSize::Eight] {
        let event = RawEvent {
            time_ns: 1,
            process_id: Some(1),
            thread_id: Some(1),
            processor: None,
            pointer_size,
            schema,
            payload,
        };
        let decoded = event.decode().is_ok_and(|event| event.is_some());
        if let Ok(fields) = event.fields() {
            assert!(!decoded || fields.is_some(), "a decoded event has fields");
            std::hint::black_box(format!("{fields:?}"));
        }
        std::hint::black_box(event.method_in_part().is_some());
    }
}

/// Any payload of any event that is known: two bytes choose the event and its version.
pub fn payload(data: &[u8]) {
    static KEYS: OnceLock<Vec<EventKey>> = OnceLock::new();
    let keys = KEYS.get_or_init(|| catalog().map(|entry| entry.key).collect());
    let mut choices = Choices::new(data);
    let index = usize::from(choices.byte()) % keys.len();
    let mut key = keys[index].clone();
    let older = choices.below(8) as u32;
    match &mut key {
        EventKey::Manifest { version, .. } => *version = version.saturating_sub(older),
        EventKey::Classic { version, .. } => *version = version.saturating_sub(older as u16),
        _ => {}
    }
    read(&EventSchema::new(key), choices.rest());
}

/// Decodes a TraceLogging record's description of its payload, then the payload.
pub fn trace_logging(data: &[u8]) {
    let mut choices = Choices::new(data);
    let len = usize::from(choices.u16());
    let (item, payload) = choices.rest().split_at(len.min(choices.rest().len()));
    // As it is, and with the length that it has.
    let sized = [&(item.len() as u16 + 2).to_le_bytes()[..], item].concat();
    for item in [item, &sized] {
        let Ok(schema) = TraceLoggingSchema::parse(item) else {
            continue;
        };
        let key = EventKey::Manifest {
            provider: chronosym_events::Provider::Name("P".into()),
            id: 1,
            version: 0,
        };
        let schema = EventSchema::new(key)
            .with_name(&schema.name)
            .with_fields(schema.fields);
        read(&schema, payload);
    }
}

/// A TRACE_EVENT_INFO, then a payload of the event.
pub fn description(data: &[u8]) {
    let mut choices = Choices::new(data);
    let len = usize::from(choices.u16());
    let (info, payload) = choices.rest().split_at(len.min(choices.rest().len()));
    if let Ok(schema) = EventSchema::from_event_info(info) {
        read(&schema, payload);
    }
}

/// Reads chunks of a manifest: the bytes as they are, and one built from the text.
pub fn manifest(data: &[u8]) {
    let mut pieces = ManifestChunks::default();
    for piece in data.split(|&byte| byte == 0xff) {
        let _ = std::hint::black_box(pieces.push(piece));
    }
    let piece = [&[1, 0, 0, 0x5b, 1, 0, 0, 0][..], data].concat();
    for schema in pieces.push(&piece).ok().flatten().unwrap_or_default() {
        read(&schema, &[0; 64]);
    }
}

/// An inline tree.
pub fn inline_tree(data: &[u8]) {
    if let Ok(tree) = InlineTree::parse(data) {
        for mapping in tree.mappings() {
            let parent = |&node: &u32| tree.nodes().get(node as usize)?.parent;
            let frames = std::iter::successors(Some(mapping.node), parent).count();
            assert!(frames <= tree.nodes().len() + 1, "{frames} frames");
        }
        std::hint::black_box((tree.faults(), tree.mapping_at(u32::MAX).is_some()));
    }
}
