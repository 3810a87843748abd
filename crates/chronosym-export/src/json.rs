//! JSON: frames, and one object a sample.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use chronosym::{
    Code, Filter, Frame, PdbId, ResolvedStack, Resolver, Shape, Shaper, SymbolSource, ThreadIndex,
    Timeline, Weight,
};
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// A number as `"0x…"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hex(pub u64);

impl Display for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The JSON object of a frame: what is absent is left out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FrameObject<'a> {
    /// The address, as the stack has it.
    pub address: Hex,
    /// Namespace, type and method, or the symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<&'a str>,
    /// The method's signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<&'a str>,
    /// Simple name of the module or image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<&'a str>,
    /// Bytes from the start of the code body, where there is a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Bytes from the image's base, where there is no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rva: Option<u64>,
    /// Signature and age of the image's PDB, where there is no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdb_id: Option<String>,
    /// The image's build id, where there is no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<&'a str>,
    /// Bytes from the start of the IL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub il_offset: Option<u32>,
    /// The source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<&'a str>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Whether it is inlined into the next one; left out if it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub inlined: bool,
    /// How the code was compiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<&'a str>,
    /// What says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<&'a str>,
    /// How sure that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certainty: Option<&'a str>,
    /// By what it was found as a caller, where the recorder did not walk the stack itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<&'a str>,
    /// Why there is no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name_reason: Option<&'a str>,
    /// Why there is a name but no line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_reason: Option<&'a str>,
}

impl<'a> FrameObject<'a> {
    /// The object of a frame of a timeline.
    pub fn new(frame: &'a Frame, timeline: &'a Timeline) -> Self {
        let (name, line) = (frame.name(), frame.line.as_ref().ok());
        let image = match frame.code {
            Code::Image {
                process,
                image,
                rva,
            } if name.is_err() => timeline.image(process, image).map(|image| (image, rva)),
            _ => None,
        };
        let pdb = image.as_ref().and_then(|(image, _)| image.pdb);
        FrameObject {
            address: Hex(frame.address),
            name: name.ok(),
            signature: frame.signature(),
            module: frame.module(),
            offset: frame.offset.filter(|_| name.is_ok()),
            rva: image.as_ref().map(|(_, rva)| *rva),
            pdb_id: pdb.map(PdbId::to_string),
            build_id: image.and_then(|(image, _)| image.build_id),
            il_offset: frame.il_offset.map(|il| il.offset),
            file: line.map(|line| &*line.file),
            line: line.map(|line| line.line),
            column: line.and_then(|line| line.column),
            inlined: frame.inlined,
            tier: frame.tier.map(|tier| tier.name()),
            evidence: frame.evidence.map(|evidence| evidence.as_str()),
            certainty: frame.certainty.map(|certainty| certainty.as_str()),
            proof: frame.proof.map(|proof| proof.as_str()),
            name_reason: name.err().map(|reason| reason.as_str()),
            line_reason: frame.line_reason().map(|reason| reason.as_str()),
        }
    }
}

#[derive(Serialize)]
struct SampleObject<'a> {
    time_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    tid: u64,
    event: &'a str,
    kind: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_ns: Option<u64>,
    weight: u64,
    frames: Frames<'a>,
}

/// The frames of a stack, each of which was rendered once.
struct Frames<'a> {
    stack: ResolvedStack,
    resolver: &'a Resolver,
    rendered: &'a [Option<Box<RawValue>>],
}

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let frames = self.resolver.stack(self.stack);
        serializer.collect_seq(frames.map(|frame| &self.rendered[frame.index()]))
    }
}

/// Writes one object for every sample that passes `filter`, in time order, of its stack as `shape` makes it. Gives their number.
pub fn write_json_lines(
    timeline: &Arc<Timeline>,
    filter: &Filter,
    symbols: Option<Arc<dyn SymbolSource>>,
    shape: &Shape,
    out: &mut impl Write,
) -> io::Result<u64> {
    let mut shaper = Shaper::new(shape);
    let mut resolver = Resolver::new(timeline, symbols);
    resolver.prepare(filter);
    let labels: Vec<String> = timeline.event_types().iter().map(|t| t.label()).collect();
    let mut threads: FxHashMap<ThreadIndex, Option<(Option<u32>, u64)>> = FxHashMap::default();
    let mut rendered: Vec<Option<Box<RawValue>>> = Vec::new();
    let mut line = Vec::new();
    let mut result = Ok(0);
    timeline.for_each_weighed_sample(filter, |class, time, weight| {
        let ids = threads.entry(class.thread).or_insert_with(|| {
            let thread = timeline.thread_view(class.thread)?;
            Some((timeline.process_view(thread.process)?.pid, thread.tid))
        });
        let (Ok(written), Some((pid, tid)), Some((stack, _))) =
            (&mut result, *ids, resolver.resolve(class, time))
        else {
            return;
        };
        let Some(stack) = shaper.shape(&mut resolver, stack) else {
            return;
        };
        rendered.resize_with(resolver.frames().len(), || None);
        let mut write = || -> io::Result<()> {
            for frame in resolver.stack(stack) {
                let known = &mut rendered[frame.index()];
                if known.is_none() {
                    let object = FrameObject::new(resolver.frame(frame), timeline);
                    *known = Some(serde_json::value::to_raw_value(&object)?);
                }
            }
            let (weight_ns, weight) = match weight {
                Weight::Ns(ns) => (Some(ns), 1),
                Weight::Count(n) | Weight::Bytes(n) => (None, n),
                _ => (None, 1),
            };
            let object = SampleObject {
                time_ns: time,
                pid,
                tid,
                event: &labels[class.event.index()],
                kind: class.kind.as_str(),
                weight_ns,
                weight,
                frames: Frames {
                    stack,
                    resolver: &resolver,
                    rendered: &rendered,
                },
            };
            line.clear();
            serde_json::to_writer(&mut line, &object)?;
            line.push(b'\n');
            out.write_all(&line)
        };
        match write() {
            Ok(()) => *written += 1,
            Err(error) => result = Err(error),
        }
    });
    result
}
