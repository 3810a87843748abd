//! Traces of the runtime's events, written by hand.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::Arc;

use chronosym::runtime::Report;
use chronosym::{Filter, Options, Session, Timeline};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::Payload;
use chronosym_support::trace::TypeId;

pub const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// A trace of the runtime's events.
pub struct Trace {
    pub writer: NettraceWriter,
    types: BTreeMap<(u32, u32), TypeId>,
}

impl Trace {
    pub fn new() -> Self {
        Trace {
            writer: NettraceWriter::v4(),
            types: BTreeMap::new(),
        }
    }

    /// An event: id and version, time and thread, payload.
    pub fn event(
        &mut self,
        (id, version): (u32, u32),
        (time, thread): (i64, u64),
        payload: Payload,
    ) {
        self.event_with(&[], (id, version), (time, thread), &payload.finish());
    }

    pub fn event_with(
        &mut self,
        stack: &[u64],
        key: (u32, u32),
        (time, thread): (i64, u64),
        bytes: &[u8],
    ) {
        let types = self.types.entry(key);
        let id = *types.or_insert_with(|| self.writer.event_type(RUNTIME, key.0, key.1));
        self.writer.event(id, time, thread, stack, bytes);
    }

    pub fn read(self, report: Report) -> Arc<Timeline> {
        read(&self.writer.finish(), report.options())
    }
}

pub fn read(bytes: &[u8], options: Options) -> Arc<Timeline> {
    let mut session = Session::new(options);
    chronosym::source::nettrace::read(Cursor::new(bytes), &mut session).expect("a trace");
    session.finish()
}

pub fn all() -> Filter {
    Filter::default()
}

pub fn clr() -> Payload {
    Payload::new().u16(7)
}
