//! A trace format for this test only: complete in this file, except for its variant and entry in
//! `format.rs`.
//!
//! Lines of text, the first of which is `TEXT TRACE`: `method TIME PID TID START SIZE NAME`, and
//! `sample TIME PID TID ADDRESS…`, leaf first.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use chronosym_core::{Diagnostic, DiagnosticKind, Diagnostics, Filter, Options};
use chronosym_events::{EventKey, EventSchema, PointerSize, Provider, RawEvent};

use super::{Format, FormatRow, Source};
use crate::error::ReadError;
use crate::open::{Input, OpenError, Opener, Recording};
use crate::stream::{EventStream, StreamEvent};

pub(super) const ROW: FormatRow = FormatRow {
    format: Format::Text,
    label: "text",
    is: |head| head.starts_with(b"TEXT TRACE\n"),
    source: Source::Stream {
        open: |stream, _| Ok(Box::new(TextStream::new(stream))),
        is_of_runtime: false,
    },
};

struct TextStream<R> {
    lines: BufReader<R>,
    line: String,
    method: Arc<EventSchema>,
    sample: Arc<EventSchema>,
    payload: Vec<u8>,
    stack: Vec<u64>,
    bad_lines: u64,
}

impl<R: Read> TextStream<R> {
    fn new(source: R) -> Self {
        let schema = |provider, id, version| {
            let key = EventKey::Manifest {
                provider,
                id,
                version,
            };
            Arc::new(EventSchema::new(key))
        };
        TextStream {
            lines: BufReader::new(source),
            line: String::new(),
            method: schema(Provider::Runtime, 143, 2),
            sample: schema(Provider::SampleProfiler, 0, 0),
            payload: Vec::new(),
            stack: Vec::new(),
            bad_lines: 0,
        }
    }

    /// Parses the line: whether it is a method, its time, process and thread.
    fn parse(&mut self) -> Option<(bool, u64, u32, u64)> {
        self.payload.clear();
        self.stack.clear();
        let mut words = self.line.split_ascii_whitespace();
        let is_method = match words.next()? {
            "method" => true,
            "sample" => false,
            _ => return None,
        };
        let (time, pid) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let tid = words.next()?.parse().ok()?;
        if is_method {
            let start: u64 = words.next()?.parse().ok()?;
            let size: u32 = words.next()?.parse().ok()?;
            // MethodLoadVerbose: id, module, start, size, token, flags, three names, runtime,
            // ReJIT.
            for number in [start, 1, start] {
                self.payload.extend(number.to_le_bytes());
            }
            for number in [size, 0x0600_0001, 8] {
                self.payload.extend(number.to_le_bytes());
            }
            for name in ["", words.next()?, ""] {
                let units = name.encode_utf16().chain([0]);
                self.payload.extend(units.flat_map(u16::to_le_bytes));
            }
            self.payload.extend([0; 10]);
        } else {
            self.payload.extend([2, 0, 0, 0]);
            self.stack
                .extend(words.map_while(|word| word.parse::<u64>().ok()));
        }
        Some((is_method, time, pid, tid))
    }
}

impl<R: Read> EventStream for TextStream<R> {
    fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, ReadError> {
        let (is_method, time_ns, process, thread) = loop {
            self.line.clear();
            let length = self.lines.read_line(&mut self.line);
            if length.map_err(|error| ReadError::Other(error.into()))? == 0 {
                return Ok(None);
            }
            match self.parse() {
                Some(parsed) => break parsed,
                None if self.line == "TEXT TRACE\n" => {}
                None => self.bad_lines += 1,
            }
        };
        let schema = match is_method {
            true => &self.method,
            false => &self.sample,
        };
        let event = RawEvent {
            time_ns,
            process_id: Some(process),
            thread_id: Some(thread),
            processor: None,
            pointer_size: PointerSize::Eight,
            schema,
            payload: &self.payload,
        };
        Ok(Some(StreamEvent::new(event, schema, &self.stack)))
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        diagnostics.add_counts(&[(self.bad_lines, DiagnosticKind::Damage, "lines are unknown")]);
        diagnostics
    }
}

const TRACE: &str = "TEXT TRACE\nmethod 1 42 7 4096 64 Run\nmethod 2 42 7 8192 64 Main\nnonsense\n\
    sample 5 42 7 4100 8200\nsample 6 42 7 8200\n";

fn open(text: &'static str) -> Result<Recording, OpenError> {
    Opener::new().open([Input::stream("a.txt", text.as_bytes())])
}

fn is_bad_line(list: &[Diagnostic]) -> bool {
    list.iter()
        .map(ToString::to_string)
        .eq(["1 lines are unknown"])
}

#[test]
fn a_format_is_read_into_a_timeline() {
    let recording = open(TRACE).expect("a trace");
    assert_eq!(recording.format().to_string(), "text");
    let (timeline, diagnostics) = recording.timeline(Options::default()).expect("a trace");
    assert!(is_bad_line(&diagnostics.list), "{diagnostics:?}");
    let profile = timeline.profile(&Filter::default(), None);
    assert_eq!(profile.samples(), 2);
    let stacks = profile.entries.iter().map(|entry| {
        // Leaf first.
        let frames = profile.resolver.stack(entry.stack);
        let names = frames.map(|frame| profile.resolver.frame(frame).label().to_string());
        names.collect::<Vec<_>>().join(";")
    });
    let mut stacks: Vec<String> = stacks.collect();
    stacks.sort();
    assert_eq!(stacks, ["Main", "Run;Main"]);
}

#[test]
fn a_format_has_events() {
    let mut events = open(TRACE).expect("a trace").into_events();
    let events = events.as_mut().expect("it opens").as_mut().expect("events");
    let mut seen = Vec::new();
    while let Some(event) = events.next_event().expect("bytes") {
        assert!(event.event.decode().is_ok_and(|decoded| decoded.is_some()));
        seen.push((event.event.time_ns, event.stack.to_vec()));
    }
    let expected = [
        (1, vec![]),
        (2, vec![]),
        (5, vec![4100, 8200]),
        (6, vec![8200]),
    ];
    assert_eq!(seen, expected);
    assert!(is_bad_line(&events.diagnostics().list));
}

#[test]
fn a_format_that_cannot_be_joined_is_refused_with_others() {
    let inputs = ["a.txt", "b.txt"].map(|name| Input::stream(name, TRACE.as_bytes()));
    let refused = Opener::new().open(inputs).err();
    assert!(matches!(refused, Some(OpenError::SeveralRecordings { .. })));
}
