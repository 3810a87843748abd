//! The profiled program, as typed calls: each becomes the event that a runtime would have written.

use std::sync::Arc;

use chronosym::{EventKey, EventSchema, EventTypeId, LiveSession, PointerSize, Provider, RawEvent};

/// The process that is profiled.
pub const PID: u32 = 42;

/// A method that the JIT compiles.
pub struct Method<'a> {
    pub id: u64,
    pub module: u64,
    pub start: u64,
    /// Bytes.
    pub size: u32,
    pub namespace: &'a str,
    pub name: &'a str,
}

/// An event type that is pushed often.
struct Type {
    id: EventTypeId,
    schema: Arc<EventSchema>,
}

/// Feeds a live session.
pub struct Feed {
    pub live: LiveSession,
    load: Type,
    unload: Type,
    module: Type,
    payload: Vec<u8>,
}

impl Feed {
    pub fn new() -> Self {
        let mut live = LiveSession::new();
        let mut event = |id| {
            let key = EventKey::Manifest {
                provider: Provider::Runtime,
                id,
                version: 2,
            };
            let schema = Arc::new(EventSchema::new(key));
            let id = live.event_type(schema.clone());
            Type { id, schema }
        };
        let (load, unload, module) = (event(143), event(144), event(152));
        Feed {
            live,
            load,
            unload,
            module,
            payload: Vec::new(),
        }
    }

    pub fn method_load(&mut self, time_ns: u64, method: &Method<'_>) {
        encode(&mut self.payload, method);
        push(&mut self.live, &self.load, time_ns, &self.payload);
    }

    pub fn method_unload(&mut self, time_ns: u64, method: &Method<'_>) {
        encode(&mut self.payload, method);
        push(&mut self.live, &self.unload, time_ns, &self.payload);
    }

    pub fn module_load(&mut self, time_ns: u64, module: u64, path: &str) {
        let payload = &mut self.payload;
        payload.clear();
        payload.extend(module.to_le_bytes());
        // Its assembly, then flags and what is reserved.
        payload.extend(module.to_le_bytes());
        payload.extend([0; 8]);
        wide(payload, path);
        wide(payload, "");
        payload.extend(0_u16.to_le_bytes());
        // The identities of its PDBs (GUID, age, path): none.
        for _ in 0..2 {
            payload.extend([0; 20]);
            wide(payload, "");
        }
        push(&mut self.live, &self.module, time_ns, payload);
    }
}

fn push(live: &mut LiveSession, event: &Type, time_ns: u64, payload: &[u8]) {
    let raw = RawEvent {
        time_ns,
        process_id: Some(PID),
        thread_id: Some(1),
        processor: None,
        pointer_size: PointerSize::Eight,
        schema: &event.schema,
        payload,
    };
    live.push(event.id, &raw, None);
}

/// `MethodLoadVerbose` and `MethodUnloadVerbose`, version 2.
fn encode(payload: &mut Vec<u8>, method: &Method<'_>) {
    const JITTED: u32 = 8;
    payload.clear();
    for word in [method.id, method.module, method.start] {
        payload.extend(word.to_le_bytes());
    }
    for half in [method.size, 0x0600_0001, JITTED] {
        payload.extend(half.to_le_bytes());
    }
    wide(payload, method.namespace);
    wide(payload, method.name);
    wide(payload, "void  ()");
    payload.extend(0_u16.to_le_bytes());
    payload.extend(0_u64.to_le_bytes());
}

fn wide(payload: &mut Vec<u8>, text: &str) {
    payload.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
}
