//! The processed format of Firefox Profiler, version 55 (github.com/firefox-devtools/profiler, src/types/profile.js).

use std::fmt::Display;
use std::io::{self, Write};

use chronosym::{Code, FrameId, ResolvedStack, ThreadIndex};
use chronosym_types::escape::push_json;
use rustc_hash::FxHashMap;
use serde_json::json;

use crate::kind::CodeKind;
use crate::rows::Rows;
use crate::series::{Series, TimedSample, Unit, millis};
use crate::tables::Table;

/// Writes each thread with its samples, by time, their weights and stacks; inlined frames, source lines and the kind of
/// code stand with each frame.
pub fn write_firefox(series: &Series, out: &mut impl Write) -> io::Result<()> {
    let resolver = &series.resolver;
    let facts = resolver.timeline().facts();
    let rows = series.rows();
    let names = Names {
        labels: series.labels(&rows),
        rows,
    };
    let categories = CodeKind::ALL.map(|kind| {
        json!({"name": category(kind).0, "color": category(kind).1, "subcategories": ["Other"]})
    });
    let start = facts.start_unix_ns.unwrap_or(0) as f64 / 1e6;
    let interval = facts.sample_interval_ns.unwrap_or(1_000_000) as f64 / 1e6;
    let meta = json!({
        "categories": categories,
        "debug": false,
        "extensions": {"length": 0, "baseURL": [], "id": [], "name": []},
        "importedFrom": "chronosym",
        "interval": interval,
        "markerSchema": [],
        "oscpu": facts.machine,
        "pausedRanges": [],
        "preprocessedProfileVersion": 55,
        "processType": 0,
        "product": series.title(),
        "sampleUnits": {"time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns"},
        "sourceCodeIsNotOnSearchfox": true,
        "startTime": start,
        "symbolicated": true,
        "usesOnlyOneStackType": true,
        "version": 24,
    });
    let mut text = String::from("{\"meta\":");
    text.push_str(&meta.to_string());
    text.push_str(",\"libs\":[");
    for (index, binary) in resolver.binaries().iter().enumerate() {
        text.push_str(if index > 0 { ",\n" } else { "\n" });
        let path = binary.path().unwrap_or(binary.name());
        let identity = binary.identity().unwrap_or_default();
        let fields = [
            ("{\"name\":", binary.name()),
            (",\"path\":", path),
            (",\"debugName\":", binary.name()),
            (",\"debugPath\":", path),
            (",\"breakpadId\":", identity),
        ];
        for (key, value) in fields {
            text.push_str(key);
            push_json(value, &mut text);
        }
        text.push_str(",\"codeId\":null,\"arch\":null}");
    }
    text.push_str("],\"pages\":[],\"profilerOverhead\":[],\"counters\":[],\"threads\":[");
    out.write_all(text.as_bytes())?;
    let mut main = FxHashMap::default();
    for (index, (thread, samples)) in series.by_thread().into_iter().enumerate() {
        out.write_all(if index > 0 { b",\n" } else { b"\n" })?;
        let process = resolver.timeline().thread_view(thread).map(|t| t.process);
        let is_main = *main.entry(process).or_insert(thread) == thread;
        write_thread(series, &names, thread, is_main, &samples, out)?;
    }
    writeln!(out, "]}}")
}

struct Names {
    rows: Rows,
    labels: Vec<String>,
}

/// What a kind of code is called, and one of the viewer's colours.
fn category(kind: CodeKind) -> (&'static str, &'static str) {
    match kind {
        CodeKind::Managed => ("Managed", "blue"),
        CodeKind::Framework => ("Framework", "lightblue"),
        CodeKind::Runtime => ("Runtime", "purple"),
        CodeKind::Native => ("Native", "orange"),
        CodeKind::Kernel => ("Kernel", "red"),
        CodeKind::Stub => ("Stub", "yellow"),
        // One category has to be grey: the viewer's default.
        CodeKind::Unnamed => ("Unnamed", "grey"),
    }
}

/// The tables of one thread.
struct Tables<'s> {
    series: &'s Series,
    names: &'s Names,
    strings: Table<String>,
    /// Name, file, binary.
    functions: Table<(usize, Option<usize>, Option<usize>)>,
    frames: Vec<FrameId>,
    frame_functions: Vec<usize>,
    depths: Vec<u32>,
    /// Frame, caller.
    stacks: Vec<(usize, Option<usize>)>,
    frame_index: FxHashMap<(FrameId, u32), usize>,
    stack_index: FxHashMap<ResolvedStack, usize>,
}

impl Tables<'_> {
    fn text(&mut self, text: &str) -> usize {
        self.strings.id(text.to_owned())
    }

    fn stack(&mut self, stack: ResolvedStack) -> usize {
        let resolver = &self.series.resolver;
        let (mut path, mut known, mut at) = (Vec::new(), None, Some(stack));
        while let Some(stack) = at {
            known = self.stack_index.get(&stack).copied();
            if known.is_some() {
                break;
            }
            path.push(stack);
            at = resolver.caller(stack);
        }
        while let Some(stack) = path.pop() {
            // The viewer counts from what is not inlined: 0.
            let caller = known.map(|caller| self.stacks[caller].0);
            let frame = resolver.leaf(stack);
            let depth = if resolver.frame(frame).inlined {
                caller.map_or(1, |caller| self.depths[caller] + 1)
            } else {
                0
            };
            let frame = self.frame(frame, depth);
            self.stacks.push((frame, known));
            known = Some(self.stacks.len() - 1);
            self.stack_index.insert(stack, self.stacks.len() - 1);
        }
        known.unwrap_or_default()
    }

    fn frame(&mut self, id: FrameId, depth: u32) -> usize {
        if let Some(&known) = self.frame_index.get(&(id, depth)) {
            return known;
        }
        let names = self.names;
        let frame = self.series.resolver.frame(id);
        let row = names.rows.of[frame.function.id().index()] as usize;
        let name = self.text(&names.labels[row]);
        let file = frame.line.as_ref().ok().map(|line| self.text(&line.file));
        let binary = frame.function.binary().map(|binary| binary.id().index());
        let function = self.functions.id((name, file, binary));
        self.frames.push(id);
        self.frame_functions.push(function);
        self.depths.push(depth);
        self.frame_index.insert((id, depth), self.frames.len() - 1);
        self.frames.len() - 1
    }
}

fn write_thread(
    series: &Series,
    names: &Names,
    thread: ThreadIndex,
    is_main: bool,
    samples: &[&TimedSample],
    out: &mut impl Write,
) -> io::Result<()> {
    let resolver = &series.resolver;
    let timeline = resolver.timeline();
    let view = timeline.thread_view(thread);
    let process = view
        .as_ref()
        .and_then(|thread| timeline.process_view(thread.process));
    let mut tables = Tables {
        series,
        names,
        strings: Table::starting_with(String::new()),
        functions: Table::starting_with((0, None, None)),
        frames: Vec::new(),
        frame_functions: Vec::new(),
        depths: Vec::new(),
        stacks: Vec::new(),
        frame_index: FxHashMap::default(),
        stack_index: FxHashMap::default(),
    };
    let stacks: Vec<usize> = samples
        .iter()
        .map(|sample| tables.stack(sample.stack))
        .collect();
    let used = tables.functions.rows.iter().filter_map(|row| row.2);
    let mut libs: Vec<usize> = used.collect();
    libs.sort_unstable();
    libs.dedup();
    let lib_names: Vec<usize> = libs
        .iter()
        .map(|&lib| tables.text(resolver.binaries()[lib].name()))
        .collect();

    let (process_name, thread_name) = series.places(thread);
    let mut head = String::from("{\"name\":");
    push_json(&thread_name, &mut head);
    head.push_str(",\"processName\":");
    push_json(&process_name, &mut head);
    let pid = process.as_ref().and_then(|process| process.pid);
    head.push_str(",\"pid\":");
    // Two processes that had one id are two.
    let index = process.as_ref().map_or(0, |process| process.index.index());
    push_json(
        &pid.map_or(format!("?{index}"), |pid| pid_text(timeline, pid, index)),
        &mut head,
    );
    out.write_all(head.as_bytes())?;
    let (start, end) = process
        .as_ref()
        .map_or((None, None), |p| (p.start_ns, p.end_ns));
    let begin = millis(start.unwrap_or(0), 6);
    let end = end.map_or("null".to_owned(), |ns| millis(ns, 6));
    let tid = view.map_or(0, |thread| thread.tid);
    write!(
        out,
        ",\"tid\":{tid},\"isMainThread\":{is_main},\"processType\":\"default\",\"processStartupTime\":{begin},\
         \"processShutdownTime\":{end},\"registerTime\":{begin},\"unregisterTime\":{end},\"pausedRanges\":[],\
         \"showMarkersInTimeline\":false,\"markers\":{{\"length\":0,\"category\":[],\"data\":[],\"endTime\":[],\
         \"name\":[],\"phase\":[],\"startTime\":[]}},\
         \"nativeSymbols\":{{\"length\":0,\"address\":[],\"functionSize\":[],\"libIndex\":[],\"name\":[]}}"
    )?;

    let frame = |id: &FrameId| resolver.frame(*id);
    let line = |id: &FrameId| frame(id).line.as_ref().ok();
    let frames = &tables.frames;
    begin_table(out, "frameTable", frames.len())?;
    column(
        out,
        "address",
        frames.iter().map(|id| firefox_address(*id, frame(id))),
    )?;
    column(out, "inlineDepth", &tables.depths)?;
    column(
        out,
        "category",
        frames.iter().map(|id| CodeKind::of(frame(id)) as usize),
    )?;
    column(out, "subcategory", frames.iter().map(|_| 0))?;
    column(out, "func", &tables.frame_functions)?;
    column(out, "nativeSymbol", frames.iter().map(|_| "null"))?;
    column(out, "innerWindowID", frames.iter().map(|_| 0))?;
    column(
        out,
        "line",
        frames
            .iter()
            .map(|id| or_null(line(id).map(|line| line.line))),
    )?;
    column(
        out,
        "column",
        frames
            .iter()
            .map(|id| or_null(line(id).and_then(|line| line.column))),
    )?;

    let functions = &tables.functions.rows;
    let resource = |lib: Option<usize>| lib.and_then(|lib| libs.binary_search(&lib).ok());
    out.write_all(b"}")?;
    begin_table(out, "funcTable", functions.len())?;
    column(out, "name", functions.iter().map(|f| f.0))?;
    column(out, "isJS", functions.iter().map(|_| false))?;
    column(out, "relevantForJS", functions.iter().map(|_| false))?;
    column(
        out,
        "resource",
        functions
            .iter()
            .map(|f| resource(f.2).map_or(-1, |at| at as i64)),
    )?;
    column(out, "fileName", functions.iter().map(|f| or_null(f.1)))?;
    column(out, "lineNumber", functions.iter().map(|_| "null"))?;
    column(out, "columnNumber", functions.iter().map(|_| "null"))?;

    out.write_all(b"}")?;
    begin_table(out, "resourceTable", libs.len())?;
    column(out, "lib", &libs)?;
    column(out, "name", &lib_names)?;
    column(out, "host", libs.iter().map(|_| "null"))?;
    // 1: a library.
    column(out, "type", libs.iter().map(|_| 1))?;

    out.write_all(b"}")?;
    begin_table(out, "stackTable", tables.stacks.len())?;
    column(out, "frame", tables.stacks.iter().map(|s| s.0))?;
    column(out, "prefix", tables.stacks.iter().map(|s| or_null(s.1)))?;

    out.write_all(b"}")?;
    begin_table(out, "samples", samples.len())?;
    column(out, "stack", &stacks)?;
    column(out, "time", samples.iter().map(|s| millis(s.time_ns, 6)))?;
    let is_time = series.unit == Unit::Nanoseconds;
    let weight = |weight| {
        if is_time {
            millis(weight, 6)
        } else {
            weight.to_string()
        }
    };
    column(out, "weight", samples.iter().map(|s| weight(s.weight)))?;
    let unit = match series.unit {
        Unit::Nanoseconds => "tracing-ms",
        Unit::Bytes => "bytes",
        Unit::Samples => "samples",
    };
    write!(out, ",\"weightType\":\"{unit}\"}},\"stringArray\":[")?;
    let mut text = String::new();
    for (index, string) in tables.strings.rows.iter().enumerate() {
        text.clear();
        text.push_str(if index > 0 { "," } else { "" });
        push_json(string, &mut text);
        out.write_all(text.as_bytes())?;
    }
    out.write_all(b"]}")
}

/// The viewer tells processes apart by this text: of several that had one id it says which.
fn pid_text(timeline: &chronosym::Timeline, pid: u32, index: usize) -> String {
    let mut of_pid = timeline.processes().filter(|p| p.pid == Some(pid));
    match of_pid.position(|p| p.index.index() == index) {
        None | Some(0) => pid.to_string(),
        Some(nth) => format!("{pid}.{nth}"),
    }
}

/// The address of a frame, as [`write_firefox`] has it: bytes from the image's base. Code that belongs to no image has none
/// that a viewer could use: its number stands there, so that the viewer takes the function for one whose source can be
/// asked for.
pub fn firefox_address(id: FrameId, frame: &chronosym::Frame) -> u64 {
    match frame.code {
        Code::Image { rva, .. } => rva,
        _ => id.index() as u64,
    }
}

fn or_null(value: Option<impl Display>) -> String {
    value.map_or_else(|| "null".to_owned(), |value| value.to_string())
}

fn begin_table(out: &mut impl Write, name: &str, length: usize) -> io::Result<()> {
    write!(out, ",\n\"{name}\":{{\"length\":{length}")
}

/// A column of numbers or of what looks as it does in JSON.
fn column<T: Display>(
    out: &mut impl Write,
    name: &str,
    values: impl IntoIterator<Item = T>,
) -> io::Result<()> {
    write!(out, ",\"{name}\":[")?;
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        write!(out, "{value}")?;
    }
    out.write_all(b"]")
}
