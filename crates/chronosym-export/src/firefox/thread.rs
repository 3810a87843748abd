//! One thread of a Firefox profile: its tables, samples and markers.

use std::io::{self, Write};

use chronosym_core::{
    Activity, Code, Frame, FrameId, Marker, ProcessIndex, ProcessView, ResolvedStack, SampleKind,
    Timeline,
};
use rustc_hash::FxHashMap;

use super::markers;
use super::table::{Cell, Column, begin_table};
use crate::function_groups::FunctionGroups;
use crate::json::{Quoted, write_list};
use crate::kind::CodeKind;
use crate::series::{Series, TimedSample, Track, gap, millis};
use crate::tables::Numbered;
use crate::weight::WeightUnit;

/// The groups of functions of a series, the label of each, and the ids of processes.
pub(super) struct Labels {
    pub pids: Pids,
    pub groups: FunctionGroups,
    pub labels: Vec<String>,
}

/// A function of an image, whose code a viewer can request.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct NativeSymbol {
    lib: usize,
    address: u64,
    name: usize,
}

/// Name, file, binary.
type Function = (usize, Option<usize>, Option<usize>);

struct TableFrame {
    id: FrameId,
    function: usize,
    symbol: Option<usize>,
    /// The number of frames that contain it.
    depth: u32,
    /// Whether it is the leaf of a blocked thread.
    is_idle: bool,
}

/// The tables of one thread.
struct Tables<'s> {
    series: &'s Series,
    labels: &'s Labels,
    strings: Numbered<String>,
    functions: Numbered<Function>,
    frames: Vec<TableFrame>,
    symbols: Numbered<NativeSymbol>,
    /// Frame and caller.
    stacks: Vec<(usize, Option<usize>)>,
    frame_index: FxHashMap<(FrameId, u32, bool), usize>,
    stack_index: FxHashMap<ResolvedStack, usize>,
    /// The stacks of blocked threads, whose leaves have another category.
    idle_index: FxHashMap<ResolvedStack, usize>,
}

impl Tables<'_> {
    fn text(&mut self, text: &str) -> usize {
        let known = self.strings.get_index_of(text);
        known.unwrap_or_else(|| self.strings.insert_full(text.to_owned()).0)
    }

    /// Returns the stack of a sample.
    fn sampled(&mut self, sample: &TimedSample) -> usize {
        if sample.activity != Activity::Blocked {
            return self.stack(sample.stack);
        }
        if let Some(&index) = self.idle_index.get(&sample.stack) {
            return index;
        }
        let plain = self.stack(sample.stack);
        let (frame, caller) = self.stacks[plain];
        let (id, depth) = (self.frames[frame].id, self.frames[frame].depth);
        let frame = self.frame(id, depth, true);
        self.stacks.push((frame, caller));
        self.idle_index.insert(sample.stack, self.stacks.len() - 1);
        self.stacks.len() - 1
    }

    fn stack(&mut self, stack: ResolvedStack) -> usize {
        let resolver = &self.series.resolver;
        let (mut path, mut index, mut at) = (Vec::new(), None, Some(stack));
        while let Some(stack) = at {
            index = self.stack_index.get(&stack).copied();
            if index.is_some() {
                break;
            }
            path.push(stack);
            at = resolver.caller(stack);
        }
        while let Some(stack) = path.pop() {
            // The viewer's depth of a frame that is not inlined is 0.
            let caller = index.map(|caller| self.stacks[caller].0);
            let frame = resolver.leaf(stack);
            let depth = if resolver.frame(frame).inlined {
                caller.map_or(1, |caller| self.frames[caller].depth + 1)
            } else {
                0
            };
            let frame = self.frame(frame, depth, false);
            self.stacks.push((frame, index));
            index = Some(self.stacks.len() - 1);
            self.stack_index.insert(stack, self.stacks.len() - 1);
        }
        index.unwrap_or_default()
    }

    fn frame(&mut self, id: FrameId, depth: u32, is_idle: bool) -> usize {
        if let Some(&index) = self.frame_index.get(&(id, depth, is_idle)) {
            return index;
        }
        let labels = self.labels;
        let frame = self.series.resolver.frame(id);
        let group = labels.groups.of[frame.function.id().index()] as usize;
        let name = self.text(&labels.labels[group]);
        let file = frame.line.as_ref().ok().map(|line| self.text(&line.file));
        let binary = frame.function.binary().map(|binary| binary.id().index());
        let function = self.functions.insert_full((name, file, binary)).0;
        let symbol = self.symbol(id);
        self.frames.push(TableFrame {
            id,
            function,
            symbol,
            depth,
            is_idle,
        });
        let index = self.frames.len() - 1;
        self.frame_index.insert((id, depth, is_idle), index);
        self.frames.len() - 1
    }

    /// Returns the function of an image that contains a frame's code; for an inlinee, the function
    /// that contains it.
    fn symbol(&mut self, id: FrameId) -> Option<usize> {
        let frames = &self.series.resolver.frames()[id.index()..];
        // Inlined frames precede the frame that they are inlined into.
        let host = frames.iter().find(|frame| !frame.inlined)?;
        let (Code::Image { rva, .. }, Some(offset)) = (host.code, host.offset) else {
            return None;
        };
        let lib = host.function.binary()?.id().index();
        let group = self.labels.groups.of[host.function.id().index()] as usize;
        let labels = self.labels;
        let name = self.text(&labels.labels[group]);
        let address = rva.checked_sub(offset)?;
        Some(
            self.symbols
                .insert_full(NativeSymbol { lib, address, name })
                .0,
        )
    }
}

/// Writes a thread, or all threads of a process.
pub(super) fn write<'m>(
    series: &Series,
    labels: &Labels,
    track: &Track<'_>,
    markers: impl ExactSizeIterator<Item = &'m Marker<'m>>,
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
        labels,
        strings: Numbered::from_iter([String::new()]),
        functions: Numbered::from_iter([(0, None, None)]),
        frames: Vec::new(),
        symbols: Numbered::default(),
        stacks: Vec::new(),
        frame_index: FxHashMap::default(),
        stack_index: FxHashMap::default(),
        idle_index: FxHashMap::default(),
    };
    let stacks: Vec<usize> = samples
        .iter()
        .map(|sample| tables.sampled(sample))
        .collect();
    let used = tables.functions.iter().filter_map(|function| function.2);
    let mut libs: Vec<usize> = used.collect();
    libs.sort_unstable();
    libs.dedup();
    let lib_names: Vec<usize> = libs
        .iter()
        .map(|&lib| tables.text(resolver.binaries()[lib].name()))
        .collect();

    let (process_name, thread_name) = series.thread_labels(thread);
    let pid = labels
        .pids
        .text(process.as_ref().map(|process| process.index));
    let (start, end) = process
        .as_ref()
        .map_or((None, None), |p| (p.start_ns, p.end_ns));
    let started = millis(start.unwrap_or(0));
    let end = end.map_or("null".to_owned(), millis);
    let tid = view.map_or(0, |thread| thread.tid);
    write!(
        out,
        "{{\"name\":{},\"processName\":{},\"pid\":{},\"tid\":{tid},\"isMainThread\":{is_main},\
         \"processType\":\"default\",\"processStartupTime\":{started},\"processShutdownTime\":{end},\
         \"registerTime\":{started},\"unregisterTime\":{end},\"pausedRanges\":[],\"showMarkersInTimeline\":{}",
        Quoted(&thread_name),
        Quoted(&process_name),
        Quoted(pid),
        markers.len() > 0
    )?;
    markers::write(markers, |text| tables.text(text), out)?;

    let columns: [Column<'_, NativeSymbol>; 4] = [
        ("address", &|s| Cell::Number(s.address)),
        ("functionSize", &|_| Cell::Null),
        ("libIndex", &|s| Cell::index(s.lib)),
        ("name", &|s| Cell::index(s.name)),
    ];
    begin_table(out, "nativeSymbols", &tables.symbols, &columns)?;
    out.write_all(b"}")?;

    let frame = |it: &TableFrame| resolver.frame(it.id);
    let line = |it: &TableFrame| frame(it).line.as_ref().ok();
    let address = |it: &TableFrame| firefox_address(it.id, frame(it));
    let columns: [Column<'_, TableFrame>; 9] = [
        ("address", &|it| Cell::Number(address(it))),
        ("inlineDepth", &|it| Cell::Number(it.depth.into())),
        ("category", &|it| {
            Cell::index(match it.is_idle {
                true => CodeKind::ALL.len(),
                false => CodeKind::of(frame(it)) as usize,
            })
        }),
        ("subcategory", &|_| Cell::Number(0)),
        ("func", &|it| Cell::index(it.function)),
        ("nativeSymbol", &|it| {
            it.symbol.map_or(Cell::Null, Cell::index)
        }),
        ("innerWindowID", &|_| Cell::Number(0)),
        ("line", &|it| Cell::or_null(line(it).map(|line| line.line))),
        ("column", &|it| {
            Cell::or_null(line(it).and_then(|line| line.column))
        }),
    ];
    begin_table(out, "frameTable", &tables.frames, &columns)?;
    out.write_all(b"}")?;

    let resource = |lib: Option<usize>| lib.and_then(|lib| libs.binary_search(&lib).ok());
    let columns: [Column<'_, Function>; 7] = [
        ("name", &|f| Cell::index(f.0)),
        ("isJS", &|_| Cell::No),
        ("relevantForJS", &|_| Cell::No),
        ("resource", &|f| {
            resource(f.2).map_or(Cell::NoIndex, Cell::index)
        }),
        ("fileName", &|f| f.1.map_or(Cell::Null, Cell::index)),
        ("lineNumber", &|_| Cell::Null),
        ("columnNumber", &|_| Cell::Null),
    ];
    begin_table(out, "funcTable", &tables.functions, &columns)?;
    out.write_all(b"}")?;

    let named_libs: Vec<(usize, usize)> = libs.iter().copied().zip(lib_names).collect();
    let columns: [Column<'_, (usize, usize)>; 4] = [
        ("lib", &|(lib, _)| Cell::index(*lib)),
        ("name", &|(_, name)| Cell::index(*name)),
        ("host", &|_| Cell::Null),
        // The type of a library is 1.
        ("type", &|_| Cell::Number(1)),
    ];
    begin_table(out, "resourceTable", &named_libs, &columns)?;
    out.write_all(b"}")?;

    let columns: [Column<'_, (usize, Option<usize>)>; 2] = [
        ("frame", &|(frame, _)| Cell::index(*frame)),
        ("prefix", &|(_, caller)| {
            caller.map_or(Cell::Null, Cell::index)
        }),
    ];
    begin_table(out, "stackTable", &tables.stacks, &columns)?;
    out.write_all(b"}")?;

    let (unit, is_time) = match series.unit {
        WeightUnit::Time => ("tracing-ms", true),
        WeightUnit::Bytes => ("bytes", false),
        // Events have no type of their own.
        WeightUnit::Samples | WeightUnit::Events => ("samples", false),
    };
    let weight = |weight: u64| match is_time {
        true => Cell::Millis(weight),
        false => Cell::Number(weight),
    };
    let rows = rows(series, samples, &stacks);
    let columns: [Column<'_, SampleRow>; 4] = [
        ("stack", &|row| row.stack.map_or(Cell::Null, Cell::index)),
        ("time", &|row| Cell::Millis(row.time_ns)),
        ("weight", &|row| weight(row.weight)),
        ("threadCPUDelta", &|row| Cell::or_null(row.cpu_ns)),
    ];
    // Without processor times, the viewer draws every sample in full height.
    let has_cpu = rows.iter().any(|row| row.cpu_ns.is_some());
    let columns = &columns[..columns.len() - usize::from(!has_cpu)];
    begin_table(out, "samples", &rows, columns)?;
    write!(out, ",\"weightType\":\"{unit}\"}},\"stringArray\":[")?;
    write_list(out, &tables.strings, |out, text| {
        write!(out, "{}", Quoted(text))
    })?;
    out.write_all(b"]}")
}

/// A sample, or the start of a gap between samples: it has neither stack nor weight.
struct SampleRow {
    stack: Option<usize>,
    time_ns: u64,
    weight: u64,
    /// The time on processors since the row before.
    cpu_ns: Option<u64>,
}

fn rows(series: &Series, samples: &[&TimedSample], stacks: &[usize]) -> Vec<SampleRow> {
    let is_time = series.unit == WeightUnit::Time;
    // Threads of a process overlap.
    let has_gaps = is_time && series.granularity.threads;
    let is_cpu = is_time && samples.iter().all(|sample| sample.kind == SampleKind::Cpu);
    let mut rows = Vec::with_capacity(samples.len());
    let next = samples.iter().skip(1).map(Some).chain([None]);
    for ((sample, &stack), next) in samples.iter().zip(stacks).zip(next) {
        rows.push(SampleRow {
            stack: Some(stack),
            time_ns: sample.time_ns,
            weight: sample.weight,
            cpu_ns: is_cpu.then_some(sample.weight),
        });
        let until = sample.time_ns.saturating_add(sample.weight);
        let gap = next
            .filter(|_| has_gaps)
            .and_then(|next| gap(until, sample, next));
        if let Some(gap) = gap {
            rows.push(SampleRow {
                stack: None,
                time_ns: gap.start,
                weight: 0,
                cpu_ns: is_cpu.then_some(0),
            });
        }
    }
    rows
}

/// Returns the address of a frame as [`write_firefox`](super::write_firefox) writes it: bytes from
/// the image's base. Code outside an image has no such address; the frame's index replaces it,
/// because the viewer requests source only of functions that have an address.
pub fn firefox_address(id: FrameId, frame: &Frame) -> u64 {
    match frame.code {
        Code::Image { rva, .. } => rva,
        _ => id.index() as u64,
    }
}

/// The viewer's process identifiers: process ids, with a suffix for all but the first process that
/// had an id.
pub(super) struct Pids(FxHashMap<ProcessIndex, String>);

impl Pids {
    pub fn of(timeline: &Timeline) -> Self {
        let mut with_pid: FxHashMap<Option<u32>, u32> = FxHashMap::default();
        let text = |process: ProcessView<'_>| {
            let count = with_pid.entry(process.pid).or_default();
            let nth = std::mem::replace(count, *count + 1);
            let text = match (process.pid, nth) {
                (None, _) => format!("?{}", process.index.index()),
                (Some(pid), 0) => pid.to_string(),
                (Some(pid), nth) => format!("{pid}.{nth}"),
            };
            (process.index, text)
        };
        Pids(timeline.processes().map(text).collect())
    }

    fn text(&self, process: Option<ProcessIndex>) -> &str {
        let text = process.and_then(|process| self.0.get(&process));
        text.map_or("?0", String::as_str)
    }
}
