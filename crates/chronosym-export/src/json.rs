//! JSON: an object for each frame and sample.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use crate::async_chains::AsyncStacks;
use crate::shape::{Shape, Shaper};
use chronosym_core::{
    ActivityIdIndex, Code, Filter, Frame, ResolvedStack, Resolver, SymbolSource, ThreadIndex,
    Timeline, Weight,
};
use chronosym_runtime::TailCallers;
use chronosym_types::append;
use chronosym_types::closed_list;
use chronosym_types::escape;
use chronosym_types::json::{self, FrameObject, Token};
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::value::RawValue;

/// A JSON string with its quotes.
pub(crate) struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", escape::json(self.0))
    }
}

/// Writes values separated by commas.
pub(crate) fn write_list<T>(
    out: &mut impl Write,
    values: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        write(out, value)?;
    }
    Ok(())
}

/// Writes values separated by commas, which `append` appends to a buffer: millions of small writes
/// take longer.
pub(crate) fn write_parts<T>(
    out: &mut (impl Write + ?Sized),
    values: impl IntoIterator<Item = T>,
    mut append: impl FnMut(&mut Vec<u8>, T),
) -> io::Result<()> {
    const PART: usize = 1 << 16;
    let mut part = Vec::new();
    for (index, value) in values.into_iter().enumerate() {
        if index > 0 {
            part.push(b',');
        }
        append(&mut part, value);
        if part.len() >= PART {
            out.write_all(&part)?;
            part.clear();
        }
    }
    out.write_all(&part)
}

/// Returns the JSON object of a frame of a timeline.
pub fn frame_object<'a>(frame: &'a Frame, timeline: &'a Timeline) -> FrameObject<'a> {
    let (name, line) = (frame.name(), frame.line.as_ref().ok());
    let image = match frame.code {
        Code::Image {
            process,
            image,
            rva,
        } if name.is_err() => timeline.image_ref(process, image).map(|image| (image, rva)),
        _ => None,
    };
    let pdb = image.as_ref().and_then(|(image, _)| image.pdb);
    let mut object = FrameObject::at(frame.address);
    if frame.is_left_out() {
        object.address = None;
    }
    object.token = frame.token.map(Token);
    object.name = name.ok();
    object.signature = frame.signature();
    object.module = frame.module();
    object.offset = frame.offset.filter(|_| name.is_ok());
    object.rva = image.as_ref().map(|(_, rva)| *rva);
    object.pdb_id = pdb.map(|pdb| format!("{:#}", pdb.id).into());
    object.build_id = image.and_then(|(image, _)| Some(image.build_id?.into()));
    object.il_offset = frame.il_offset.map(|il| il.offset);
    object.file = line.map(|line| &*line.file);
    object.line = line.map(|line| line.line);
    object.column = line.and_then(|line| line.column);
    object.inlined = frame.inlined;
    object.tier = frame.tier.map(|tier| tier.name());
    object.evidence = frame.evidence.map(|evidence| evidence.as_str());
    object.certainty = frame.certainty.map(|certainty| certainty.as_str());
    object.proof = frame.proof.map(|proof| proof.as_str());
    object.symbol_file = frame.symbol_file.as_deref();
    object.name_reason = frame.name_reason().map(|reason| reason.as_str());
    object.line_reason = frame.line_reason().map(|reason| reason.as_str());
    object
}

/// A sample; what is `None` is left out.
struct SampleObject<'a> {
    time_ns: u64,
    pid: Option<u32>,
    tid: u64,
    event: &'a str,
    kind: &'a str,
    activity: &'a str,
    activity_evidence: Option<&'a str>,
    weight_ns: Option<u64>,
    weight: u64,
    stack: Option<u32>,
    frames: Option<Frames<'a>>,
    async_stack: Option<u32>,
    async_frames: Option<Frames<'a>>,
    activity_id: Option<&'a str>,
}

impl SampleObject<'_> {
    /// Appends its JSON, without a serializer, since there are millions of samples.
    fn append(&self, out: &mut Vec<u8>) {
        let number = |out: &mut Vec<u8>, name: &str, value: Option<u64>| {
            if let Some(value) = value {
                append::member(out, name, |out| append::number(out, value));
            }
        };
        let text = |out: &mut Vec<u8>, name: &str, value: Option<&str>| {
            if let Some(value) = value {
                append::member(out, name, |out| append::text(out, value));
            }
        };
        let frames = |out: &mut Vec<u8>, name: &str, value: &Option<Frames<'_>>| {
            if let Some(value) = value {
                append::member(out, name, |out| value.append(out));
            }
        };
        out.extend_from_slice(br#"{"time_ns":"#);
        append::number(out, self.time_ns);
        number(out, "pid", self.pid.map(u64::from));
        number(out, "tid", Some(self.tid));
        text(out, "event", Some(self.event));
        text(out, "kind", Some(self.kind));
        text(out, "activity", Some(self.activity));
        text(out, "activity_evidence", self.activity_evidence);
        number(out, "weight_ns", self.weight_ns);
        number(out, "weight", Some(self.weight));
        number(out, "stack", self.stack.map(u64::from));
        frames(out, "frames", &self.frames);
        number(out, "async_stack", self.async_stack.map(u64::from));
        frames(out, "async_frames", &self.async_frames);
        text(out, "activity_id", self.activity_id);
        out.extend_from_slice(b"}\n");
    }
}

closed_list! {
    /// Placement of the frames of samples.
    #[derive(Default)]
    #[non_exhaustive]
    JsonStacks {
        /// In every sample.
        #[default]
        Inline = "inline",
        /// Each frame and each stack in a line of its own, before the first sample that refers to it.
        Table = "table",
    }
}

#[derive(Serialize)]
struct FrameLine<'a> {
    frame_id: usize,
    frame: &'a RawValue,
}

#[derive(Serialize)]
struct StackLine<'a> {
    stack_id: u32,
    frames: &'a [usize],
}

/// The stacks that have lines of their own.
#[derive(Default)]
struct StackLines {
    /// The number of each; 0 if it has no line yet, else one more.
    numbers: Vec<u32>,
    count: u32,
    frames: Vec<usize>,
}

impl StackLines {
    /// Returns the number of a stack, and whether it is new.
    fn number(&mut self, stack: ResolvedStack) -> (u32, bool) {
        let at = stack.index();
        if at >= self.numbers.len() {
            self.numbers.resize(at + 1, 0);
        }
        let number = &mut self.numbers[at];
        let is_new = *number == 0;
        if is_new {
            self.count += 1;
            *number = self.count;
        }
        (*number - 1, is_new)
    }
}

/// Appends an object and a line feed.
fn push_line(line: &mut Vec<u8>, object: &impl Serialize) -> io::Result<()> {
    json::to_writer(&mut *line, object)?;
    line.push(b'\n');
    Ok(())
}

/// A frame of a stack.
#[derive(Serialize)]
struct StackFrame<'a> {
    #[serde(flatten)]
    frame: FrameObject<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tail_callers: Vec<&'a str>,
}

/// Returns the methods whose frames may be missing after a frame.
fn tail_callers_of<'t>(tail_callers: &'t TailCallers, frame: &Frame) -> Vec<&'t str> {
    match (frame.code, frame.function.recorded_name()) {
        (Code::Body(process, _) | Code::Precompiled(process, _), Some(name)) if !frame.inlined => {
            tail_callers.of(process, name).collect()
        }
        _ => Vec::new(),
    }
}

/// The frames of a stack, each rendered once.
struct Frames<'a> {
    stack: ResolvedStack,
    resolver: &'a Resolver,
    rendered: &'a [Option<Box<RawValue>>],
}

impl Frames<'_> {
    fn append(&self, out: &mut Vec<u8>) {
        append::list(out, b"[]", self.resolver.stack(self.stack), |out, frame| {
            let rendered = self.rendered[frame.index()].as_ref();
            out.extend_from_slice(rendered.map_or("null", |it| it.get()).as_bytes());
        });
    }
}

/// Writes an object for each sample that passes `filter`, in time order, with its stack shaped by
/// `shape`; frames are where `stacks` says. If `async_stacks` is given, samples of resumed async
/// methods also have their logical stacks. Frames have their tail callers if the session kept the
/// events ([`TailCallers::keep`]). Returns the number of samples.
///
/// # Errors
///
/// Errors of writing to `out`.
///
/// # Examples
///
/// ```
/// # use chronosym_core::facts::{At, Method, Sample};
/// # use chronosym_core::{Action, Filter, Options, Session};
/// # let mut session = Session::new(Options::default());
/// # let at = At::new(0).process(42).thread(7);
/// # session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
/// # session.sample(at.at(100), &[0x1010], Sample::cpu());
/// # let timeline = session.finish();
/// use chronosym_export::{JsonStacks, Shape, write_json_lines};
///
/// let mut lines = Vec::new();
/// let samples = write_json_lines(
///     &timeline,
///     &Filter::default(),
///     None,
///     &Shape::default(),
///     JsonStacks::Inline,
///     None,
///     &mut lines,
/// )?;
/// assert_eq!(samples, 1);
/// assert!(String::from_utf8_lossy(&lines).contains("Ns.Type.Run"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_json_lines(
    timeline: &Arc<Timeline>,
    filter: &Filter,
    symbols: Option<Arc<dyn SymbolSource>>,
    shape: &Shape,
    stacks: JsonStacks,
    mut async_stacks: Option<&mut AsyncStacks>,
    out: &mut impl Write,
) -> io::Result<u64> {
    let mut shaper = Shaper::new(shape);
    let mut resolver = Resolver::new(timeline, symbols);
    resolver.prepare(filter);
    let labels: Vec<String> = timeline.event_types().iter().map(|t| t.label()).collect();
    let mut threads: FxHashMap<ThreadIndex, Option<(Option<u32>, u64)>> = FxHashMap::default();
    let mut rendered: Vec<Option<Box<RawValue>>> = Vec::new();
    let tail_callers = TailCallers::new(timeline, filter);
    let mut activity_ids: FxHashMap<ActivityIdIndex, String> = FxHashMap::default();
    let (mut line, mut lines) = (Vec::new(), StackLines::default());
    let has_tasks = async_stacks.as_ref().is_some_and(|it| it.has_tasks());
    let mut result = Ok(0);
    timeline.for_each_weighed_sample(filter, |sample| {
        let (class, time) = (sample.class, sample.time_ns);
        let ids = threads.entry(class.thread).or_insert_with(|| {
            let thread = timeline.thread_view(class.thread)?;
            Some((timeline.process_view(thread.process)?.pid, thread.tid))
        });
        let (Ok(written), Some((pid, tid)), Some((stack, _))) =
            (&mut result, *ids, resolver.resolve(class, time))
        else {
            return;
        };
        let logical = match &mut async_stacks {
            None => Some(stack),
            Some(stacks) => stacks.stack(&mut resolver, &sample, stack),
        };
        let Some(logical) = logical else { return };
        let Some(shaped) = shaper.shape(&mut resolver, stack) else {
            return;
        };
        let carried = timeline.activity_id_at(class.thread, time);
        let carried = carried.map(|of| {
            let id = || {
                timeline
                    .activity_id(of)
                    .map_or(String::new(), |of| of.id.to_string())
            };
            &**activity_ids.entry(of).or_insert_with(id)
        });
        let logical = match logical == stack || !has_tasks {
            true => None,
            false => shaper.shape(&mut resolver, logical),
        };
        let resolver = &resolver;
        rendered.resize_with(resolver.frames().len(), || None);
        let mut write = || -> io::Result<()> {
            line.clear();
            let mut render = |stack| -> io::Result<Option<u32>> {
                let number = (stacks == JsonStacks::Table).then(|| lines.number(stack));
                let is_known = matches!(number, Some((_, false)));
                for frame in resolver.stack(stack).filter(|_| !is_known) {
                    let slot = &mut rendered[frame.index()];
                    if slot.is_none() {
                        let resolved = resolver.frame(frame);
                        let mut object = StackFrame {
                            frame: frame_object(resolved, timeline),
                            tail_callers: tail_callers_of(&tail_callers, resolved),
                        };
                        object.frame.stands_for = resolver.stands_for(frame);
                        let frame_id = frame.index();
                        let frame: &RawValue = slot.insert(json::to_raw_value(&object)?);
                        if number.is_some() {
                            push_line(&mut line, &FrameLine { frame_id, frame })?;
                        }
                    }
                }
                if let Some((stack_id, true)) = number {
                    lines.frames.clear();
                    lines
                        .frames
                        .extend(resolver.stack(stack).map(|frame| frame.index()));
                    let frames = &lines.frames;
                    push_line(&mut line, &StackLine { stack_id, frames })?;
                }
                Ok(number.map(|(number, _)| number))
            };
            let number = render(shaped)?;
            let async_number = logical.map(&mut render).transpose()?.flatten();
            let frames = |stack| Frames {
                stack,
                resolver,
                rendered: &rendered,
            };
            let is_inline = stacks == JsonStacks::Inline;
            let (weight_ns, weight) = match sample.weight {
                Weight::Ns(ns) => (Some(ns), 1),
                Weight::Count(n) | Weight::Bytes(n) => (None, n),
                _ => (None, 1),
            };
            let activity = timeline.activity(&sample);
            let object = SampleObject {
                time_ns: time,
                pid,
                tid,
                event: &labels[class.event.index()],
                kind: class.kind.as_str(),
                activity: activity.activity.as_str(),
                activity_evidence: activity.evidence.map(|evidence| evidence.as_str()),
                weight_ns,
                weight,
                stack: number,
                frames: is_inline.then(|| frames(shaped)),
                async_stack: async_number,
                async_frames: logical.filter(|_| is_inline).map(frames),
                activity_id: carried,
            };
            object.append(&mut line);
            out.write_all(&line)
        };
        match write() {
            Ok(()) => *written += 1,
            Err(error) => result = Err(error),
        }
    });
    result
}
