//! Markers: collections, pauses, exceptions, waits for locks and compilations. Stored only if
//! [`Options::markers`](crate::Options::markers) requests them.
//!
//! Fields are those of the CLR's manifest, `ClrEtwAll.man`.

use std::cmp::Reverse;
use std::io::Write as _;
use std::ops::RangeInclusive;

use chronosym_events::{Event, FieldList, RawEvent, Value};
use chronosym_timeline::time_order;
use chronosym_types::hash::HashMap;

use crate::ids::{EventTypeId, ProcessIndex, ThreadIndex};
use crate::marker_kind::{Mark, MarkerKind, Phase};
use crate::names::NameTable;
use crate::strings::StringId;
use crate::strings::Strings;
use crate::suspensions::SuspensionPairs;

/// One activity of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Marker<'t> {
    /// The kind of activity.
    pub kind: MarkerKind,
    /// The thread that collected, threw, waited or compiled.
    pub thread: ThreadIndex,
    /// ns since the trace began.
    pub start_ns: u64,
    /// When it ended; absent for exceptions, which are instants, and for activities whose end is
    /// not in the trace.
    pub end_ns: Option<u64>,
    /// For how long after its start a suspension waited for another one to end, ns.
    pub waited_ns: u64,
    /// Generation and cause, type and message, or the method.
    pub text: Option<&'t str>,
}

/// An event that starts, ends or is a marker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub time_ns: u64,
    pub thread: ThreadIndex,
    pub mark: Mark,
    /// Identifies the start and end of one activity, together with the thread.
    pub key: u64,
    pub text: StringId,
}

/// The marker events of a session.
#[derive(Debug, Default)]
pub(crate) struct Markers {
    pub seen: Vec<Seen>,
    pub left_out: u64,
    last_thrown: Option<Thrown>,
    /// Buffer for texts.
    text: Vec<u8>,
}

/// The event of an exception, and its text: the same exception is often thrown many times.
#[derive(Debug)]
struct Thrown {
    event_type: EventTypeId,
    payload: Vec<u8>,
    text: StringId,
}

impl Markers {
    /// Stores an event, which is decoded if it is typed, unless its fields cannot be read or there
    /// are `max` already.
    pub fn push(
        &mut self,
        (event_type, mark): (EventTypeId, Mark),
        (time_ns, thread): (u64, ThreadIndex),
        (event, decoded): (&RawEvent<'_>, Option<&Event<'_>>),
        max: usize,
        names: &mut NameTable,
    ) {
        let thrown = self.last_thrown.as_ref();
        let thrown = thrown.filter(|it| it.event_type == event_type && it.payload == event.payload);
        let (key, text) = match thrown.map(|thrown| thrown.text) {
            Some(text) => (0, Some(text)),
            None => match self.read(mark, event, decoded) {
                Some(key) => (key, None),
                None => return,
            },
        };
        if self.seen.len() >= max {
            self.left_out += 1;
            return;
        }
        let text = text.unwrap_or_else(|| {
            let text = match self.text.as_slice() {
                [] => StringId::EMPTY,
                text => names
                    .strings
                    .intern(str::from_utf8(text).unwrap_or_default()),
            };
            if mark.kind == MarkerKind::Exception {
                self.last_thrown = Some(Thrown {
                    event_type,
                    payload: event.payload.to_vec(),
                    text,
                });
            }
            text
        });
        self.seen.push(Seen {
            time_ns,
            thread,
            mark,
            key,
            text,
        });
    }

    /// Reads an event, whose text is then in the buffer. Returns its key.
    fn read(
        &mut self,
        Mark { kind, phase }: Mark,
        event: &RawEvent<'_>,
        decoded: Option<&Event<'_>>,
    ) -> Option<u64> {
        self.text.clear();
        let text = &mut self.text;
        match decoded {
            Some(Event::Method(method)) => Some(method.method_id),
            Some(Event::MethodJittingStarted(method)) => {
                let (namespace, name) = (method.names.namespace, method.names.name);
                join(
                    text,
                    ".",
                    [Value::Wide(namespace), Value::Wide(name)].iter(),
                );
                Some(method.method_id)
            }
            _ => {
                let fields = event.fields().ok()??;
                if phase != Phase::End {
                    append_text(text, kind, &fields);
                }
                let key = (kind == MarkerKind::Collection).then(|| number(&fields, "Count"));
                Some(key.flatten().unwrap_or(0))
            }
        }
    }
}

impl Markers {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.seen.len()
    }

    /// Returns whether any event is about a suspension.
    pub fn have_pauses(&self) -> bool {
        let mut marks = self.seen.iter().map(|seen| seen.mark.kind);
        marks.any(|kind| kind == MarkerKind::Pause)
    }

    /// Pairs starts and ends, and returns markers by time. `process_of` returns the process of a
    /// thread, `sampled` whether any thread of a process was sampled in a range of times. An end
    /// without a start is dropped.
    pub fn paired<'t>(
        &self,
        strings: &'t Strings,
        process_of: impl Fn(ThreadIndex) -> ProcessIndex,
        sampled: impl Fn(ProcessIndex, RangeInclusive<u64>) -> bool,
    ) -> Vec<Marker<'t>> {
        // Events of one time keep their order of arrival.
        let order = time_order(self.seen.iter().map(|seen| seen.time_ns));
        let seen = order.iter().map(|&at| &self.seen[at as usize]);
        let ends = self.seen.iter().filter(|it| it.mark.phase == Phase::End);
        let mut markers: Vec<Marker<'t>> =
            Vec::with_capacity(self.seen.len().saturating_sub(ends.count()));
        // The text of the last marker: the same exception is often thrown many times.
        let mut last = (StringId::EMPTY, "");
        let mut open: HashMap<(MarkerKind, usize, u64), usize> = HashMap::default();
        let mut pauses: SuspensionPairs<usize> = SuspensionPairs::default();
        for seen in seen {
            let kind = seen.mark.kind;
            let process = process_of(seen.thread);
            // A collection may end on another thread than it started on.
            let owner = match kind {
                MarkerKind::Collection => process.index(),
                _ => seen.thread.index(),
            };
            let key = (kind, owner, seen.key);
            if seen.mark.phase == Phase::End {
                let ended = match kind {
                    MarkerKind::Pause => pauses
                        .end(process, seen.thread, seen.time_ns)
                        .map(|it| (it.data, it.start_ns.saturating_sub(it.requested_ns))),
                    _ => open.remove(&key).map(|start| (start, 0)),
                };
                let Some((start, waited_ns)) = ended else {
                    continue;
                };
                let marker = &mut markers[start];
                (marker.end_ns, marker.waited_ns) = (Some(seen.time_ns), waited_ns);
                // The sampler suspends all threads without a reason of its own.
                let times = marker.start_ns..=seen.time_ns;
                if kind == MarkerKind::Pause
                    && marker.text.is_none_or(|text| text == PAUSES[0])
                    && sampled(process, times)
                {
                    (marker.kind, marker.text) = (MarkerKind::SamplerPause, None);
                }
                continue;
            }
            if seen.mark.phase == Phase::Start {
                // .NET Framework logs the start of a collection in two versions.
                if kind == MarkerKind::Collection && open.contains_key(&key) {
                    continue;
                }
                if kind == MarkerKind::Pause {
                    pauses.start(process, seen.thread, seen.time_ns, markers.len());
                } else {
                    open.insert(key, markers.len());
                }
            }
            if last.0 != seen.text {
                last = (seen.text, strings.get(seen.text));
            }
            let text = last.1;
            markers.push(Marker {
                kind,
                thread: seen.thread,
                start_ns: seen.time_ns,
                end_ns: None,
                waited_ns: 0,
                text: Some(text).filter(|text| !text.is_empty()),
            });
        }
        // Of several markers that start at one time, the longest contains the others.
        for same in markers.chunk_by_mut(|a, b| a.start_ns == b.start_ns) {
            same.sort_by_key(|marker| Reverse(marker.end_ns));
        }
        markers
    }

    /// Number of events dropped because the limit was reached.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

fn number(fields: &FieldList<'_>, name: &str) -> Option<u64> {
    match fields.get(name)? {
        Value::U64(n) | Value::Hex(n) => Some(*n),
        _ => None,
    }
}

/// Appends the values that are not empty, with a separator between them.
fn join<'v>(out: &mut Vec<u8>, separator: &str, values: impl Iterator<Item = &'v Value<'v>>) {
    for value in values {
        let before = out.len();
        if before > 0 {
            out.extend_from_slice(separator.as_bytes());
        }
        let start = out.len();
        match value {
            Value::Wide(text) => text.append_to(out),
            // Writing to memory does not fail.
            other => _ = write!(out, "{other}"),
        }
        if out.len() == start {
            out.truncate(before);
        }
    }
}

/// Appends the text of a marker.
fn append_text(out: &mut Vec<u8>, kind: MarkerKind, fields: &FieldList<'_>) {
    let named = |name, names: &[&'static str]| -> Option<Value<'_>> {
        let number = usize::try_from(number(fields, name)?).ok()?;
        names.get(number).map(|&name| Value::Text(name.into()))
    };
    match kind {
        MarkerKind::Collection => {
            let generation = number(fields, "Depth").map(|depth| format!("generation {depth}"));
            let generation = generation.map(|text| Value::Text(text.into()));
            let concurrent = named("Type", &["blocking", "background", "foreground"]);
            let cause = named("Reason", &CAUSES);
            join(out, ", ", [generation, concurrent, cause].iter().flatten());
        }
        MarkerKind::Pause => join(out, ", ", named("Reason", &PAUSES).iter()),
        MarkerKind::Exception => {
            let parts = ["ExceptionType", "ExceptionMessage"];
            join(out, ": ", parts.iter().filter_map(|name| fields.get(name)));
        }
        MarkerKind::Contention | MarkerKind::SamplerPause | MarkerKind::Compilation => {}
    }
}

/// `GCReasonMap`.
const CAUSES: [&str; 11] = [
    "small objects",
    "induced",
    "low memory",
    "empty",
    "large objects",
    "out of space for small objects",
    "out of space for large objects",
    "induced, not forced",
    "internal",
    "induced by low memory",
    "induced, compacting",
];

/// `GCSuspendEEReasonMap`.
const PAUSES: [&str; 8] = [
    "for another reason",
    "for a collection",
    "to unload code",
    "to drop code",
    "to end the process",
    "for a debugger",
    "to prepare a collection",
    "for a debugger's sweep",
];

#[cfg(test)]
mod tests {
    use crate::facts::At;
    use crate::selection::Options;
    use crate::session::{Payload, Session};
    use chronosym_events::{EventKey, EventSchema, PointerSize, Provider};
    use std::sync::Arc;

    struct Feed(Session);

    impl Feed {
        fn push(&mut self, (id, version): (u32, u32), time: u64, thread: u64, bytes: &[u8]) {
            let schema = EventSchema::new(EventKey::Manifest {
                provider: Provider::Runtime,
                id,
                version,
            });
            let id = self.0.event_type(Arc::new(schema));
            let payload = Payload {
                pointer_size: PointerSize::Eight,
                bytes,
            };
            let at = At::new(time).process(7).thread(thread);
            self.0.push(id, at, payload, None);
        }
    }

    fn numbers(numbers: &[u32]) -> Vec<u8> {
        let bytes = numbers.iter().flat_map(|n| n.to_le_bytes());
        bytes.chain([0, 0]).collect()
    }

    fn feed(markers: usize) -> Session {
        let mut feed = Feed(Session::new(Options {
            markers,
            ..Options::default()
        }));
        // Two collections, the first in the background and ended on another thread; its end
        // precedes it in the trace.
        feed.push((2, 1), 50, 2, &numbers(&[3, 2]));
        feed.push((1, 1), 10, 1, &numbers(&[3, 2, 1, 1]));
        feed.push((1, 1), 20, 1, &numbers(&[4, 0, 0, 0]));
        feed.push((1, 2), 21, 1, &numbers(&[4, 0, 0, 0]));
        feed.push((2, 1), 25, 1, &numbers(&[4, 0]));
        let wide = |text: &str| -> Vec<u8> {
            let units = text.encode_utf16().chain([0]);
            units.flat_map(u16::to_le_bytes).collect()
        };
        let mut thrown = wide("System.TimeoutException");
        thrown.extend(wide("late"));
        thrown.extend([0; 16]);
        feed.push((80, 1), 30, 1, &thrown);
        // A wait that started before the trace, and one that does not end.
        feed.push((91, 0), 31, 3, &[0, 0, 0]);
        feed.push((81, 1), 32, 3, &[0, 0, 0]);
        // Truncated: the thrown object is unknown.
        feed.push((80, 1), 33, 1, &[b'S', 0]);
        feed.0
    }

    #[test]
    fn begins_find_their_ends() {
        let timeline = feed(100).finish();
        let markers: Vec<_> = timeline
            .markers()
            .iter()
            .map(|m| (m.kind.as_str(), m.start_ns, m.end_ns, m.text))
            .collect();
        let expected = [
            (
                "GC",
                10,
                Some(50),
                Some("generation 2, background, induced"),
            ),
            (
                "GC",
                20,
                Some(25),
                Some("generation 0, blocking, small objects"),
            ),
            ("exception", 30, None, Some("System.TimeoutException: late")),
            ("contention", 32, None, None),
            ("exception", 33, None, None),
        ];
        assert_eq!(markers, expected);
        assert_eq!(timeline.markers_left_out(), 0);
        assert_eq!(timeline.diagnostics(), []);
    }

    #[test]
    fn exceptions_that_repeat_have_their_own_texts() {
        let mut feed = Feed(Session::new(Options {
            markers: 100,
            ..Options::default()
        }));
        let thrown = |texts: [&str; 2]| -> Vec<u8> {
            let texts = texts.iter().flat_map(|text| text.encode_utf16().chain([0]));
            texts.flat_map(u16::to_le_bytes).chain([0; 16]).collect()
        };
        let payloads = [thrown(["A", "late"]), thrown(["A", "early"])];
        for (time, payload) in [0, 0, 1, 1, 0].into_iter().enumerate() {
            feed.push((80, 1), time as u64, 1, &payloads[payload]);
        }
        // The same bytes in another event: a wait.
        feed.push((81, 1), 5, 1, &payloads[0]);
        let timeline = feed.0.finish();
        let texts: Vec<_> = timeline.markers().iter().map(|it| it.text).collect();
        let [late, early] = [Some("A: late"), Some("A: early")];
        assert_eq!(texts, [late, late, early, early, late, None]);
    }

    #[test]
    fn the_requested_number_is_returned() {
        let timeline = feed(3).finish();
        assert_eq!(timeline.markers().len(), 2);
        assert!(timeline.markers_left_out() > 3);
        assert!(feed(0).finish().markers().is_empty());
    }
}
