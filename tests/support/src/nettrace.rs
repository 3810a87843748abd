//! Writes `.nettrace` files: V4, V4 with the metadata tags of .NET 5 ("V5"), V6.
//!
//! ```
//! use chronosym_support::nettrace::NettraceWriter;
//!
//! let mut trace = NettraceWriter::v4();
//! let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
//! trace.event(sample, 1_000, 7, &[0x7f00_1234, 0x7f00_5678], &2u32.to_le_bytes());
//! trace.sequence_point();
//! let file: Vec<u8> = trace.finish();
//! assert!(file.starts_with(b"Nettrace"));
//! ```

use std::collections::{BTreeMap, HashMap};

use crate::bytes::{Put, stack_bytes};
use crate::metadata;
use crate::trace::{EventSpec, LabelSpec, TraceInfo, TypeId, TypeSpec};

/// Builds a trace in memory. Events are written in the order in which they are given.
pub struct NettraceWriter {
    info: TraceInfo,
    version: Version,
    compressed: bool,
    block_size: usize,
    out: Vec<u8>,
    types: Vec<TypeSpec>,
    types_written: usize,
    events: Vec<Event>,
    payloads: Vec<u8>,
    stacks: Interned<Vec<u8>>,
    labels: Interned<Vec<LabelSpec>>,
    /// V6: (process, thread) and its index.
    threads: HashMap<(u32, u64), u64>,
    next_thread: u64,
    thread_rows: Vec<u8>,
    sequences: BTreeMap<u64, u32>,
    latest: i64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V4,
    V5,
    V6,
}

/// Values that get an id when they first occur; written before the events that refer to them.
struct Interned<T> {
    ids: HashMap<T, u32>,
    first_new: u32,
    new: Vec<T>,
}

impl<T: Clone + Eq + std::hash::Hash> Interned<T> {
    fn new() -> Self {
        Self {
            ids: HashMap::new(),
            first_new: 1,
            new: Vec::new(),
        }
    }

    fn id(&mut self, value: T) -> u32 {
        let next = self.first_new + self.new.len() as u32;
        *self.ids.entry(value).or_insert_with_key(|value| {
            self.new.push(value.clone());
            next
        })
    }

    fn take_new(&mut self) -> (u32, Vec<T>) {
        let first = self.first_new;
        let new = std::mem::take(&mut self.new);
        self.first_new += new.len() as u32;
        (first, new)
    }

    /// Ids restart after a sequence point.
    fn forget(&mut self) {
        *self = Self::new();
    }
}

#[derive(Clone, Copy, Default)]
struct Event {
    metadata_id: u32,
    sequence: u32,
    thread: u64,
    capture: u64,
    processor: u32,
    stack: u32,
    time: i64,
    activity: [u8; 16],
    related: [u8; 16],
    labels: u32,
    payload_at: usize,
    payload_size: u32,
}

impl NettraceWriter {
    /// Version 4 as .NET Core 3 writes it.
    pub fn v4() -> Self {
        Self::with_info(Version::V4, TraceInfo::default())
    }

    /// Version 4 with the metadata tags of .NET 5 and later.
    pub fn v5() -> Self {
        Self::with_info(Version::V5, TraceInfo::default())
    }

    /// Version 6.
    pub fn v6() -> Self {
        Self::with_info(Version::V6, TraceInfo::default())
    }

    /// Sets the header. Call it first.
    pub fn info(self, info: TraceInfo) -> Self {
        Self {
            compressed: self.compressed,
            block_size: self.block_size,
            ..Self::with_info(self.version, info)
        }
    }

    /// Writes event headers in full.
    pub fn uncompressed(mut self) -> Self {
        self.compressed = false;
        self
    }

    /// Ends a block when it has this many payload bytes (default 100,000).
    pub fn block_size(mut self, bytes: usize) -> Self {
        self.block_size = bytes;
        self
    }

    fn with_info(version: Version, info: TraceInfo) -> Self {
        let mut out = b"Nettrace".to_vec();
        if version == Version::V6 {
            out.put_u32(0);
            out.put_u32(6);
            out.put_u32(0);
            let mut trace = clock(&info);
            trace.put_u32(info.pointer_size.into());
            let pairs = [
                ("HardwareThreadCount", info.processors),
                ("ProcessId", info.process_id),
                ("ExpectedCPUSamplingRate", info.sample_rate_ns),
            ];
            // A recording of the whole machine has no process id.
            let has = |&(key, value): &(&str, u32)| key != "ProcessId" || value != 0;
            let pairs: Vec<_> = pairs.into_iter().filter(has).collect();
            trace.put_u32(pairs.len() as u32);
            for (key, value) in pairs {
                trace.put_utf8(key);
                trace.put_utf8(&value.to_string());
            }
            put_block(&mut out, 1, &trace);
        } else {
            out.put_u32(20);
            out.put(b"!FastSerialization.1");
            begin_object(&mut out, 5, "Trace", 4, 4);
            out.put(&clock(&info));
            out.put_u32(info.pointer_size.into());
            out.put_u32(info.process_id);
            out.put_u32(info.processors);
            out.put_u32(info.sample_rate_ns);
            out.put_u8(6);
        }
        Self {
            info,
            version,
            compressed: true,
            block_size: 100_000,
            out,
            types: Vec::new(),
            types_written: 0,
            events: Vec::new(),
            payloads: Vec::new(),
            stacks: Interned::new(),
            labels: Interned::new(),
            threads: HashMap::new(),
            next_thread: 1,
            thread_rows: Vec::new(),
            sequences: BTreeMap::new(),
            latest: 0,
        }
    }

    /// Defines an event type as the native runtime does: no name, no fields.
    pub fn event_type(&mut self, provider: &str, id: u32, version: u32) -> TypeId {
        self.define(TypeSpec::new(provider, id, version))
    }

    /// Defines an event type.
    pub fn define(&mut self, spec: TypeSpec) -> TypeId {
        self.types.push(spec);
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

    /// Adds an event with everything that it can have.
    pub fn record(&mut self, spec: &EventSpec<'_>) {
        let thread = self.thread(spec.process, spec.thread);
        let capture = match spec.capture_thread {
            Some(capture) => self.thread(spec.process, capture),
            None => thread,
        };
        let sequence = self.sequences.entry(capture).or_default();
        *sequence = sequence.wrapping_add(1);
        let sequence = *sequence;
        let stack = match spec.stack {
            [] => 0,
            stack => self.stacks.id(stack_bytes(stack, self.info.pointer_size)),
        };
        let time = self.info.ticks(spec.time_ns);
        self.latest = self.latest.max(time);
        let event = Event {
            metadata_id: spec.event_type.0 as u32 + 1,
            sequence,
            thread,
            capture,
            processor: spec.processor,
            stack,
            time,
            activity: spec.activity,
            related: spec.related_activity,
            labels: self.label_list(spec),
            payload_at: self.payloads.len(),
            payload_size: spec.payload.len() as u32,
        };
        self.payloads.extend_from_slice(spec.payload);
        self.events.push(event);
        if self.payloads.len() >= self.block_size {
            self.flush();
        }
    }

    fn label_list(&mut self, spec: &EventSpec<'_>) -> u32 {
        if self.version != Version::V6 {
            return 0;
        }
        let mut list = spec.labels.to_vec();
        if spec.activity != [0; 16] {
            list.push(LabelSpec::Activity(spec.activity));
        }
        if spec.related_activity != [0; 16] {
            list.push(LabelSpec::RelatedActivity(spec.related_activity));
        }
        if list.is_empty() {
            0
        } else {
            self.labels.id(list)
        }
    }

    /// How events name a thread: by its id, in V6 by an index.
    fn thread(&mut self, process: Option<u32>, thread: u64) -> u64 {
        if self.version != Version::V6 {
            return thread;
        }
        let process = process.unwrap_or(self.info.process_id);
        if let Some(&index) = self.threads.get(&(process, thread)) {
            return index;
        }
        let index = self.next_thread;
        self.next_thread += 1;
        let mut row = Vec::new();
        row.put_var(index);
        row.put_u8(1);
        row.put_utf8(&format!("thread {thread}"));
        row.put_u8(2);
        row.put_var(process.into());
        row.put_u8(3);
        row.put_var(thread);
        self.thread_rows.put_sized16(&row);
        self.threads.insert((process, thread), index);
        index
    }

    /// Lets a thread's next events look as if `count` events before them had been dropped.
    pub fn lose(&mut self, thread: u64, count: u32) {
        let thread = self.thread(None, thread);
        let sequence = self.sequences.entry(thread).or_default();
        *sequence = sequence.wrapping_add(count);
    }

    /// V6: the thread has ended; its id may identify another one from here on.
    pub fn remove_thread(&mut self, process: Option<u32>, thread: u64) {
        let index = self.thread(process, thread);
        self.flush();
        self.threads
            .remove(&(process.unwrap_or(self.info.process_id), thread));
        let mut row = Vec::new();
        row.put_var(index);
        row.put_var(self.sequences.remove(&index).unwrap_or(0).into());
        self.block(7, &row);
    }

    /// Writes pending events to a separate block.
    pub fn flush(&mut self) {
        if self.types_written < self.types.len() {
            self.put_metadata();
        }
        if !self.thread_rows.is_empty() {
            let rows = std::mem::take(&mut self.thread_rows);
            self.block(6, &rows);
        }
        let (first, stacks) = self.stacks.take_new();
        if !stacks.is_empty() {
            let mut block = Vec::new();
            block.put_u32(first);
            block.put_u32(stacks.len() as u32);
            for stack in stacks {
                block.put_u32(stack.len() as u32);
                block.put(&stack);
            }
            self.content("StackBlock", 5, &block);
        }
        let (first, lists) = self.labels.take_new();
        if !lists.is_empty() {
            let mut block = Vec::new();
            block.put_u32(first);
            block.put_u32(lists.len() as u32);
            for list in lists {
                put_labels(&mut block, &list);
            }
            self.block(8, &block);
        }
        if !self.events.is_empty() {
            let events = std::mem::take(&mut self.events);
            let payloads = std::mem::take(&mut self.payloads);
            let block = self.blobs(&events, &payloads);
            self.content("EventBlock", 2, &block);
        }
    }

    fn put_metadata(&mut self) {
        let new = self.types_written..self.types.len();
        self.types_written = self.types.len();
        if self.version == Version::V6 {
            let mut block = Vec::new();
            block.put_u16(0);
            for index in new {
                block.put_sized16(&metadata::v6(index as u32 + 1, &self.types[index]));
            }
            self.block(3, &block);
            return;
        }
        let (mut events, mut payloads) = (Vec::new(), Vec::new());
        for index in new {
            let payload = metadata::v3(
                index as u32 + 1,
                &self.types[index],
                self.version == Version::V5,
            );
            events.push(Event {
                payload_at: payloads.len(),
                payload_size: payload.len() as u32,
                time: self.info.qpc_start,
                ..Event::default()
            });
            payloads.extend_from_slice(&payload);
        }
        let block = self.blobs(&events, &payloads);
        self.object("MetadataBlock", &block);
    }

    /// An event or metadata block: header and blobs.
    fn blobs(&self, events: &[Event], payloads: &[u8]) -> Vec<u8> {
        let mut block = Vec::new();
        block.put_u16(20);
        block.put_u16(u16::from(self.compressed));
        block.put_i64(events.iter().map(|event| event.time).min().unwrap_or(0));
        block.put_i64(events.iter().map(|event| event.time).max().unwrap_or(0));
        let mut previous = Event::default();
        for event in events {
            let payload = &payloads[event.payload_at..][..event.payload_size as usize];
            if self.compressed {
                put_compressed(&mut block, event, &previous, self.version);
                block.put(payload);
                previous = *event;
            } else {
                put_uncompressed(&mut block, event, payload, self.version);
            }
        }
        block
    }

    /// Ends the ordering region.
    pub fn sequence_point(&mut self) {
        self.sequence_point_with(0);
    }

    /// Ends the ordering region; V6 flags: 1 forgets threads, 2 event types.
    pub fn sequence_point_with(&mut self, flags: u32) {
        self.flush();
        let mut block = Vec::new();
        block.put_i64(self.latest.max(self.info.qpc_start));
        if self.version == Version::V6 {
            block.put_u32(flags);
        }
        block.put_u32(self.sequences.len() as u32);
        for (&thread, &sequence) in &self.sequences {
            if self.version == Version::V6 {
                block.put_var(thread);
                block.put_var(sequence.into());
            } else {
                block.put_u64(thread);
                block.put_u32(sequence);
            }
        }
        self.content("SPBlock", 4, &block);
        self.stacks.forget();
        self.labels.forget();
        if flags & 1 != 0 {
            self.threads.clear();
            self.sequences.clear();
        }
        if flags & 2 != 0 {
            self.types_written = 0;
        }
    }

    fn content(&mut self, object: &str, kind: u8, content: &[u8]) {
        if self.version == Version::V6 {
            self.block(kind, content);
        } else {
            self.object(object, content);
        }
    }

    /// Writes an object with a given block (V4), for unknown kinds and for damaged ones.
    pub fn object(&mut self, name: &str, content: &[u8]) {
        assert!(self.version != Version::V6, "V6 has blocks, not objects");
        begin_object(&mut self.out, 5, name, 2, 2);
        put_object_block(&mut self.out, content);
    }

    /// Writes a given block (V6).
    pub fn block(&mut self, kind: u8, content: &[u8]) {
        assert!(self.version == Version::V6, "V4 has objects, not blocks");
        put_block(&mut self.out, kind, content);
    }

    /// Returns the number of bytes written so far, without pending ones.
    pub fn written(&self) -> usize {
        self.out.len()
    }

    /// Returns the bytes written since the last call, without pending events: a trace of any
    /// length can be written to a file part by part.
    pub fn take(&mut self) -> Vec<u8> {
        // Blocks are aligned to four bytes of the file.
        let rest = self.out.split_off(self.out.len() & !3);
        std::mem::replace(&mut self.out, rest)
    }

    /// Ends the trace with a sequence point and its end mark; returns the bytes that were not
    /// taken.
    pub fn finish(mut self) -> Vec<u8> {
        self.sequence_point();
        self.finish_here()
    }

    /// Writes pending events and the end mark, without a sequence point.
    pub fn finish_here(mut self) -> Vec<u8> {
        self.flush();
        if self.version == Version::V6 {
            self.block(0, &[]);
        } else {
            self.out.put_u8(1);
        }
        self.out
    }
}

/// SYSTEMTIME, clock and frequency.
pub(crate) fn clock(info: &TraceInfo) -> Vec<u8> {
    let mut out = Vec::new();
    for part in info.start {
        out.put_u16(part);
    }
    out.put_i64(info.qpc_start);
    out.put_u64(info.frequency);
    out
}

/// Writes the start of an object, up to its payload.
pub(crate) fn begin_object(out: &mut Vec<u8>, tag: u8, name: &str, version: u32, least: u32) {
    out.put(&[tag, tag, 1]);
    out.put_u32(version);
    out.put_u32(least);
    out.put_u32(name.len() as u32);
    out.put(name.as_bytes());
    out.put_u8(6);
}

/// Size, padding to a file offset that four divides, content, end tag.
pub(crate) fn put_object_block(out: &mut Vec<u8>, content: &[u8]) {
    out.put_u32(content.len() as u32);
    pad(out);
    out.put(content);
    out.put_u8(6);
}

pub(crate) fn pad(out: &mut Vec<u8>) {
    while !out.len().is_multiple_of(4) {
        out.push(0);
    }
}

fn put_block(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    assert!(content.len() < 1 << 24, "a V6 block is smaller than 16 MiB");
    out.put_u32(content.len() as u32 | u32::from(kind) << 24);
    out.put(content);
}

fn put_compressed(out: &mut Vec<u8>, event: &Event, previous: &Event, version: Version) {
    let is_metadata = event.metadata_id == 0;
    let follows = is_metadata || event.sequence == previous.sequence.wrapping_add(1);
    let v6 = version == Version::V6;
    let given = [
        (1, event.metadata_id != previous.metadata_id),
        (
            2,
            !follows || event.capture != previous.capture || event.processor != previous.processor,
        ),
        (4, event.thread != previous.thread),
        (8, event.stack != previous.stack),
        (
            16,
            if v6 {
                event.labels != previous.labels
            } else {
                event.activity != previous.activity
            },
        ),
        (32, !v6 && event.related != previous.related),
        (128, event.payload_size != previous.payload_size),
    ];
    let flags: u8 = given
        .iter()
        .filter(|(_, given)| *given)
        .map(|(flag, _)| flag)
        .sum();
    out.put_u8(flags);
    if flags & 1 != 0 {
        out.put_var(event.metadata_id.into());
    }
    if flags & 2 != 0 {
        out.put_var(
            event
                .sequence
                .wrapping_sub(previous.sequence)
                .wrapping_sub(1)
                .into(),
        );
        out.put_var(event.capture);
        out.put_var(event.processor.into());
    }
    if flags & 4 != 0 {
        out.put_var(event.thread);
    }
    if flags & 8 != 0 {
        out.put_var(event.stack.into());
    }
    out.put_var(event.time.wrapping_sub(previous.time) as u64);
    if flags & 16 != 0 && v6 {
        out.put_var(event.labels.into());
    } else if flags & 16 != 0 {
        out.put(&event.activity);
    }
    if flags & 32 != 0 {
        out.put(&event.related);
    }
    if flags & 128 != 0 {
        out.put_var(event.payload_size.into());
    }
}

fn put_uncompressed(out: &mut Vec<u8>, event: &Event, payload: &[u8], version: Version) {
    const NOT_SORTED: u32 = 1 << 31;
    let mut body = Vec::new();
    body.put_u32(event.metadata_id | NOT_SORTED);
    body.put_u32(event.sequence);
    body.put_u64(event.thread);
    body.put_u64(event.capture);
    body.put_u32(event.processor);
    body.put_u32(event.stack);
    body.put_i64(event.time);
    if version == Version::V6 {
        body.put_u32(event.labels);
    } else {
        body.put(&event.activity);
        body.put(&event.related);
    }
    body.put_u32(payload.len() as u32);
    body.put(payload);
    if version != Version::V6 {
        pad(&mut body);
    }
    out.put_u32(body.len() as u32);
    out.put(&body);
}

fn put_labels(out: &mut Vec<u8>, list: &[LabelSpec]) {
    for (position, label) in list.iter().enumerate() {
        let last = if position + 1 == list.len() { 0x80 } else { 0 };
        match label {
            LabelSpec::Activity(id) => {
                out.put_u8(1 | last);
                out.put(id);
            }
            LabelSpec::RelatedActivity(id) => {
                out.put_u8(2 | last);
                out.put(id);
            }
            LabelSpec::Trace(id) => {
                out.put_u8(3 | last);
                out.put(id);
            }
            LabelSpec::Span(id) => {
                out.put_u8(4 | last);
                out.put_u64(*id);
            }
            LabelSpec::Text(key, text) => {
                out.put_u8(5 | last);
                out.put_utf8(key);
                out.put_utf8(text);
            }
            LabelSpec::Number(key, number) => {
                out.put_u8(6 | last);
                out.put_utf8(key);
                out.put_var(((number << 1) ^ (number >> 63)) as u64);
            }
            LabelSpec::Opcode(opcode) => out.put(&[7 | last, *opcode]),
            LabelSpec::Keywords(keywords) => {
                out.put_u8(8 | last);
                out.put_u64(*keywords);
            }
            LabelSpec::Level(level) => out.put(&[9 | last, *level]),
            LabelSpec::Version(version) => out.put(&[10 | last, *version]),
        }
    }
}
