//! Reads a whole trace into owned values, to compare with what was written.
#![allow(dead_code)]

use std::io::Read;

use chronosym_nettrace::{Diagnostics, EventType, Label, Options, Reader, TraceHeader};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub event_type: usize,
    pub time_ns: u64,
    pub raw_time: i64,
    pub thread: u64,
    pub process: Option<u32>,
    pub capture_thread: u64,
    pub sequence: u32,
    pub processor: Option<u32>,
    pub stack: Option<Vec<u64>>,
    pub activity: Option<[u8; 16]>,
    pub related: Option<[u8; 16]>,
    pub labels: Vec<Label>,
    pub payload: Vec<u8>,
}

pub struct Trace {
    pub header: TraceHeader,
    pub types: Vec<EventType>,
    /// A list a region.
    pub regions: Vec<Vec<Event>>,
    pub diagnostics: Diagnostics,
}

impl Trace {
    pub fn events(&self) -> Vec<Event> {
        self.regions.concat()
    }
}

pub fn read(bytes: &[u8]) -> Trace {
    read_from(bytes, Options::default())
}

pub fn read_from(source: impl Read, options: Options) -> Trace {
    let mut reader = Reader::new(source, options).expect("a trace");
    let mut regions = Vec::new();
    while let Some(region) = reader.next_region().expect("no failure of the source") {
        let events = region.records().map(|record| Event {
            event_type: record.event_type.index(),
            time_ns: record.time_ns,
            raw_time: record.raw_time,
            thread: record.thread_id,
            process: record.process_id,
            capture_thread: record.capture_thread,
            sequence: record.sequence,
            processor: record.processor,
            stack: record.stack.map(|row| region.stack(row).iter().collect()),
            activity: record.activity_id().map(|id| id.0),
            related: record.related_activity_id().map(|id| id.0),
            labels: record.labels().collect(),
            payload: record.payload.to_vec(),
        });
        regions.push(events.collect());
    }
    Trace {
        header: reader.header().clone(),
        types: reader.event_types().to_vec(),
        regions,
        diagnostics: reader.diagnostics().clone(),
    }
}

/// A source that gives its bytes out a few at a time, as a socket may.
pub struct Dribble<'a> {
    pub bytes: &'a [u8],
    pub step: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.step.min(self.bytes.len()).min(out.len());
        out[..count].copy_from_slice(&self.bytes[..count]);
        self.bytes = &self.bytes[count..];
        Ok(count)
    }
}
