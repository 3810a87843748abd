//! One thread of a Firefox profile: its tables, samples and markers.

use std::io::{self, Write};

use chronosym::{Code, FrameId, Marker, ResolvedStack};
use chronosym_types::escape::push_json;
use rustc_hash::FxHashMap;

use super::{Names, begin_table, column, firefox_address, markers, or_null};
use crate::kind::CodeKind;
use crate::measure::Measure;
use crate::series::{Series, Track, millis};
use crate::tables::Table;

/// A function of an image, whose code a viewer can ask for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Symbol {
    lib: usize,
    address: u64,
    name: usize,
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
    frame_symbols: Vec<Option<usize>>,
    depths: Vec<u32>,
    symbols: Table<Symbol>,
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
        let symbol = self.symbol(id);
        self.frames.push(id);
        self.frame_functions.push(function);
        self.frame_symbols.push(symbol);
        self.depths.push(depth);
        self.frame_index.insert((id, depth), self.frames.len() - 1);
        self.frames.len() - 1
    }

    /// The function of an image that the frame's code is of, in whole: of an inlined frame what it is inlined into.
    fn symbol(&mut self, id: FrameId) -> Option<usize> {
        let frames = &self.series.resolver.frames()[id.index()..];
        // Those inlined stand before what they are inlined into.
        let host = frames.iter().find(|frame| !frame.inlined)?;
        let (Code::Image { rva, .. }, Some(offset)) = (host.code, host.offset) else {
            return None;
        };
        let lib = host.function.binary()?.id().index();
        let row = self.names.rows.of[host.function.id().index()] as usize;
        let names = self.names;
        let name = self.text(&names.labels[row]);
        let address = rva.checked_sub(offset)?;
        Some(self.symbols.id(Symbol { lib, address, name }))
    }
}

/// Writes a thread, or all of a process.
pub(super) fn write(
    series: &Series,
    names: &Names,
    track: &Track<'_>,
    markers: &[Marker<'_>],
    is_main: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let (thread, samples) = (track.thread, &track.samples);
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
        frame_symbols: Vec::new(),
        symbols: Table::default(),
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
    let begin = millis(start.unwrap_or(0));
    let end = end.map_or("null".to_owned(), millis);
    let tid = view.map_or(0, |thread| thread.tid);
    write!(
        out,
        ",\"tid\":{tid},\"isMainThread\":{is_main},\"processType\":\"default\",\"processStartupTime\":{begin},\
         \"processShutdownTime\":{end},\"registerTime\":{begin},\"unregisterTime\":{end},\"pausedRanges\":[],\
         \"showMarkersInTimeline\":{}",
        !markers.is_empty()
    )?;
    markers::write(markers, |text| tables.text(text), out)?;

    let symbols = &tables.symbols.rows;
    begin_table(out, "nativeSymbols", symbols.len())?;
    column(out, "address", symbols.iter().map(|s| s.address))?;
    column(out, "functionSize", symbols.iter().map(|_| "null"))?;
    column(out, "libIndex", symbols.iter().map(|s| s.lib))?;
    column(out, "name", symbols.iter().map(|s| s.name))?;
    out.write_all(b"}")?;

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
    column(
        out,
        "nativeSymbol",
        tables.frame_symbols.iter().map(|symbol| or_null(*symbol)),
    )?;
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
    column(out, "time", samples.iter().map(|s| millis(s.time_ns)))?;
    let is_time = series.measure == Measure::Time;
    let weight = |weight| {
        if is_time {
            millis(weight)
        } else {
            weight.to_string()
        }
    };
    column(out, "weight", samples.iter().map(|s| weight(s.weight)))?;
    let unit = match series.measure {
        Measure::Time => "tracing-ms",
        Measure::Bytes => "bytes",
        Measure::Samples => "samples",
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
