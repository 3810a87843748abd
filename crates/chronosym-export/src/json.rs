//! JSON: frames, and one object a sample.

use std::fmt::Write as _;
use std::io::{self, Write};

pub use chronosym_types::escape::push_json as push_json_string;

use chronosym::{Filter, Frame, Resolver, SampleKind, SymbolSource, Timeline};

/// Builds one JSON object, member by member; absent values are left out.
#[derive(Debug)]
pub struct JsonObject<'a> {
    out: &'a mut String,
    first: bool,
}

impl<'a> JsonObject<'a> {
    /// Begins an object at the end of `out`.
    pub fn begin(out: &'a mut String) -> Self {
        out.push('{');
        JsonObject { out, first: true }
    }

    /// Begins a member; its value must be written to the returned string.
    pub fn key(&mut self, key: &str) -> &mut String {
        if !self.first {
            self.out.push(',');
        }
        self.first = false;
        push_json_string(key, self.out);
        self.out.push(':');
        self.out
    }

    /// A member with text, unless absent.
    pub fn text(&mut self, key: &str, value: Option<&str>) -> &mut Self {
        if let Some(value) = value {
            push_json_string(value, self.key(key));
        }
        self
    }

    /// A member with a number or another value whose text is JSON, unless absent.
    pub fn value(&mut self, key: &str, value: Option<impl std::fmt::Display>) -> &mut Self {
        if let Some(value) = value {
            let _ = write!(self.key(key), "{value}");
        }
        self
    }

    /// Ends the object.
    pub fn end(self) {
        self.out.push('}');
    }
}

/// Writes frames as JSON objects.
#[derive(Debug, Default)]
pub struct FrameWriter;

impl FrameWriter {
    /// Appends the object of one frame.
    pub fn push(frame: &Frame, out: &mut String) {
        let mut object = JsonObject::begin(out);
        let _ = write!(object.key("address"), "\"{:#x}\"", frame.address);
        object
            .text("name", frame.name.as_deref())
            .text("signature", frame.signature.as_deref())
            .text("module", frame.module.as_deref())
            .value("offset", frame.offset.filter(|_| frame.name.is_some()))
            .value("rva", frame.rva.filter(|_| frame.name.is_none()))
            .text(
                "pdb_id",
                frame.pdb_id.as_deref().filter(|_| frame.name.is_none()),
            )
            .text(
                "build_id",
                frame.build_id.as_deref().filter(|_| frame.name.is_none()),
            )
            .value("il_offset", frame.il_offset.map(|(offset, _)| offset))
            .text("file", frame.line.as_ref().map(|l| &*l.file))
            .value("line", frame.line.as_ref().map(|l| l.line))
            .value("column", frame.line.as_ref().and_then(|l| l.column))
            .value("inlined", frame.inlined.then_some(true))
            .text("tier", frame.tier.map(|t| t.name()))
            .text("evidence", frame.evidence.map(|e| e.as_str()))
            .text("certainty", frame.certainty.map(|c| c.as_str()))
            .text("name_reason", frame.name_reason.map(|r| r.as_str()))
            .text("line_reason", frame.line_reason.map(|r| r.as_str()));
        object.end();
    }
}

/// Writes one object for every sample that passes `filter`, in time order. Gives their number.
pub fn write_json_lines(
    timeline: &Timeline,
    filter: &Filter,
    symbols: Option<&dyn SymbolSource>,
    out: &mut impl Write,
) -> io::Result<u64> {
    if let Some(symbols) = symbols {
        timeline.prepare_symbols(filter, symbols);
    }
    let mut resolver = Resolver::new(timeline, symbols);
    // Each frame's object is made once.
    let mut rendered: Vec<Option<Box<str>>> = Vec::new();
    let mut line = String::new();
    let mut result = Ok(0);
    timeline.for_each_sample(filter, |class, time| {
        let Ok(&written) = result.as_ref() else {
            return;
        };
        let thread = timeline.thread_view(class.thread);
        let process = timeline.process_view(thread.process);
        let interval = timeline
            .facts()
            .sample_interval_at(time)
            .filter(|_| class.kind != SampleKind::Event);
        let (stack, _) = resolver.resolve(class, time);
        rendered.resize(resolver.frames().len(), None);
        line.clear();
        let mut object = JsonObject::begin(&mut line);
        object
            .value("time_ns", Some(time))
            .value("pid", Some(process.pid))
            .value("tid", Some(thread.tid));
        push_json_string(
            &timeline.event_types()[class.event.index()].label(),
            object.key("event"),
        );
        object
            .text("kind", Some(class.kind.as_str()))
            .value("weight", interval);
        let frames = object.key("frames");
        frames.push('[');
        for (i, frame) in resolver.stack(stack).enumerate() {
            if i > 0 {
                frames.push(',');
            }
            frames.push_str(rendered[frame.index()].get_or_insert_with(|| {
                let mut text = String::new();
                FrameWriter::push(resolver.frame(frame), &mut text);
                text.into()
            }));
        }
        frames.push(']');
        object.end();
        line.push('\n');
        result = out.write_all(line.as_bytes()).map(|()| written + 1);
    });
    result
}
