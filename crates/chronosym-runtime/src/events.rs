//! The kept events of a timeline, decoded and in time order.

use chronosym_core::{EventTypeId, Filter, KeptEvent, ProcessIndex, ThreadIndex, Timeline};
use chronosym_events::{EventSchema, FieldList, RawEvent, Value};

use crate::report::id_of;
use crate::unused::Unused;

/// An event of the runtime, or of an EventSource of the class library.
#[derive(Debug)]
pub(crate) struct RuntimeEvent<'t> {
    pub time_ns: u64,
    pub process: ProcessIndex,
    pub thread: ThreadIndex,
    pub event_type: EventTypeId,
    /// Its id in the manifest.
    pub id: u32,
    fields: FieldList<'t>,
}

impl RuntimeEvent<'_> {
    /// Returns a number; `None` if the event has no such field.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.fields.get(name)? {
            Value::U64(n) | Value::Hex(n) => Some(*n),
            Value::I64(n) => u64::try_from(*n).ok(),
            _ => None,
        }
    }

    pub fn u32(&self, name: &str) -> Option<u32> {
        self.number(name)?.try_into().ok()
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.fields.get(name)? {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn float(&self, name: &str) -> Option<f64> {
        match self.fields.get(name)? {
            Value::F64(n) => Some(*n),
            _ => None,
        }
    }

    /// Returns all fields.
    pub fn fields(&self) -> &FieldList<'_> {
        &self.fields
    }

    /// Returns a text that is not empty.
    pub fn text(&self, name: &str) -> Option<String> {
        text_of(&self.fields, name)
    }
}

/// Returns the text of a field if it is not empty.
pub(crate) fn text_of(fields: &FieldList<'_>, name: &str) -> Option<String> {
    let text = fields.get(name)?.to_string();
    Some(text).filter(|text| !text.is_empty())
}

/// Calls `each` with the kept events of the runtime's provider that have one of these ids, and those of
/// the class library that are read as them, as
/// [`for_each_of`].
pub(crate) fn for_each<'t>(
    timeline: &'t Timeline,
    filter: &Filter,
    ids: &[u32],
    unused: &mut Unused,
    each: impl FnMut(&RuntimeEvent<'t>, &mut Unused),
) {
    let id_of = |schema: &EventSchema| id_of(schema).filter(|id| ids.contains(id));
    for_each_of(timeline, filter, id_of, unused, each);
}

/// Calls `each` with the kept events for whose type `id_of` returns an id, if they are of a selected
/// process, in time order; those of one time in order of arrival. Activities are paired before
/// [`passes`] applies the rest of the filter.
pub(crate) fn for_each_of<'t>(
    timeline: &'t Timeline,
    filter: &Filter,
    id_of: impl Fn(&EventSchema) -> Option<u32>,
    unused: &mut Unused,
    mut each: impl FnMut(&RuntimeEvent<'t>, &mut Unused),
) {
    let types = timeline.event_types();
    let wanted: Vec<Option<u32>> = types.iter().map(|info| id_of(&info.schema)).collect();
    let processes: Vec<ProcessIndex> = (timeline.processes())
        .map(|process| process.index)
        .filter(|&process| filter.has_process(timeline, process))
        .collect();
    let id_of = |event: &KeptEvent<'_>| wanted.get(event.event_type.index()).copied().flatten();
    let mut events: Vec<KeptEvent<'t>> = timeline
        .kept_events()
        .filter(|event| id_of(event).is_some())
        .collect();
    events.sort_by_key(|event| event.time_ns);
    unused.left_out = timeline.kept_events_left_out();
    for event in events {
        let (Some(id), Some(thread)) = (id_of(&event), timeline.thread_view(event.thread)) else {
            continue;
        };
        if processes.binary_search(&thread.process).is_err() {
            continue;
        }
        let raw = RawEvent {
            time_ns: event.time_ns,
            process_id: None,
            thread_id: Some(thread.tid),
            processor: None,
            pointer_size: event.pointer_size,
            schema: &types[event.event_type.index()].schema,
            payload: event.payload,
        };
        // Some events have no published fields.
        let Ok(fields) = raw.fields() else {
            unused.incomplete += 1;
            continue;
        };
        let fields = fields.unwrap_or_default();
        unused.newer += u64::from(is_newer(&fields));
        let event = RuntimeEvent {
            time_ns: event.time_ns,
            process: thread.process,
            thread: event.thread,
            event_type: event.event_type,
            id,
            fields,
        };
        each(&event, unused);
    }
}

/// Returns whether a payload has bytes after its published fields, the last of which is complete.
fn is_newer(fields: &FieldList<'_>) -> bool {
    // A truncated field is left over, too, but then nothing follows that a newer version could
    // have added: `ClrInstanceID` or a later field is missing.
    fields.get("Rest").is_some() && fields.get("ClrInstanceID").is_some()
}

/// Returns whether an activity that a thread started at a time passes a filter.
pub(crate) fn passes(
    filter: &Filter,
    timeline: &Timeline,
    thread: ThreadIndex,
    time_ns: u64,
) -> bool {
    let tid = || timeline.thread_view(thread).map(|thread| thread.tid);
    filter.from_ns.is_none_or(|from| time_ns >= from)
        && filter.to_ns.is_none_or(|to| time_ns < to)
        && (filter.tid.is_none() || filter.tid == tid())
}
