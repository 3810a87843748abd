//! Writes `.netperf` files, V1 to V3.

use crate::bytes::{Put, stack_bytes};
use crate::metadata;
use crate::nettrace::{begin_object, clock, pad, put_object_block};
use crate::trace::{EventSpec, TraceInfo, TypeId, TypeSpec};

/// Builds a trace in memory. Event times should not decrease: the format has no other order.
pub struct NetperfWriter {
    info: TraceInfo,
    version: Version,
    out: Vec<u8>,
    /// Metadata id of each type.
    types: Vec<u32>,
    /// V3: events of the block that is open.
    block: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Version {
    V1 = 1,
    V2,
    V3,
}

impl NetperfWriter {
    /// Version 1: providers by GUID.
    pub fn v1() -> Self {
        Self::with_info(Version::V1, TraceInfo::default())
    }

    /// Version 2.
    pub fn v2() -> Self {
        Self::with_info(Version::V2, TraceInfo::default())
    }

    /// Version 3.
    pub fn v3() -> Self {
        Self::with_info(Version::V3, TraceInfo::default())
    }

    /// Sets the header. Call it first.
    pub fn info(self, info: TraceInfo) -> Self {
        Self::with_info(self.version, info)
    }

    fn with_info(version: Version, info: TraceInfo) -> Self {
        let mut out = Vec::new();
        out.put_u32(20);
        out.put(b"!FastSerialization.1");
        if version == Version::V3 {
            begin_object(&mut out, 4, "Trace", 3, 0);
        } else {
            begin_object(
                &mut out,
                4,
                "Microsoft.DotNet.Runtime.EventPipeFile",
                version as u32,
                0,
            );
            // Index of the forward reference to the end of the events.
            out.put_u32(0);
        }
        out.put(&clock(&info));
        if version == Version::V3 {
            out.put_u32(info.pointer_size.into());
            out.put_u32(info.process_id);
            out.put_u32(info.processors);
            out.put_u32(info.sample_rate_ns);
            out.put_u8(6);
        }
        Self {
            info,
            version,
            out,
            types: Vec::new(),
            block: Vec::new(),
        }
    }

    /// Defines an event type without name and fields.
    pub fn event_type(&mut self, provider: &str, id: u32, version: u32) -> TypeId {
        self.define(&TypeSpec::new(provider, id, version))
    }

    /// Defines an event type, which is written at once.
    pub fn define(&mut self, spec: &TypeSpec) -> TypeId {
        let (id, payload) = if self.version == Version::V3 {
            let id = self.types.len() as u32 + 1;
            (id, metadata::v3(id, spec, false))
        } else {
            (
                self.out.len() as u32,
                metadata::v2(spec, self.version == Version::V1),
            )
        };
        self.types.push(id);
        let placeholder = EventSpec::new(TypeId(0), 0, 0).payload(&payload);
        self.put_event(0, &placeholder);
        TypeId(self.types.len() - 1)
    }

    /// Adds an event: time in ns since the start, OS thread id, addresses leaf first (empty: no
    /// stack).
    pub fn event(
        &mut self,
        event_type: TypeId,
        time_ns: i64,
        thread: u64,
        stack: &[u64],
        payload: &[u8],
    ) {
        self.record(
            &EventSpec::new(event_type, time_ns, thread)
                .stack(stack)
                .payload(payload),
        );
    }

    /// Adds an event with activity ids.
    pub fn record(&mut self, spec: &EventSpec<'_>) {
        self.put_event(self.types[spec.event_type.0], spec);
    }

    fn put_event(&mut self, metadata_id: u32, spec: &EventSpec<'_>) {
        let mut body = Vec::new();
        body.put_u32(metadata_id);
        body.put_u32(spec.thread as u32);
        body.put_i64(self.info.ticks(spec.time_ns));
        body.put(&spec.activity);
        body.put(&spec.related_activity);
        body.put_u32(spec.payload.len() as u32);
        body.put(spec.payload);
        let pointer_size = if self.version == Version::V3 {
            self.info.pointer_size
        } else {
            8
        };
        let stack = stack_bytes(spec.stack, pointer_size);
        body.put_u32(stack.len() as u32);
        body.put(&stack);
        if self.version == Version::V3 {
            pad(&mut body);
        }
        let out = if self.version == Version::V3 {
            &mut self.block
        } else {
            &mut self.out
        };
        out.put_u32(body.len() as u32);
        out.put(&body);
        if self.block.len() > 100_000 {
            self.flush();
        }
    }

    /// V3: ends the block that is open.
    pub fn flush(&mut self) {
        if !self.block.is_empty() {
            begin_object(&mut self.out, 4, "EventBlock", 1, 0);
            put_object_block(&mut self.out, &std::mem::take(&mut self.block));
        }
    }

    /// Returns the number of bytes written so far, without an open V3 block.
    pub fn written(&self) -> usize {
        self.out.len()
    }

    /// Ends the trace.
    pub fn finish(mut self) -> Vec<u8> {
        self.flush();
        if self.version == Version::V3 {
            self.out.put_u8(1);
            return self.out;
        }
        let events_end = self.out.len() as u32;
        self.out.put(&[6, 1]);
        let references = self.out.len() as u32;
        self.out.put_u32(1);
        self.out.put_u32(events_end);
        let trailer = self.out.len() as u32;
        self.out.put_u32(references);
        self.out.put_u32(trailer);
        self.out
    }
}
