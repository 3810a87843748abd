//! Writes .etl traces for cases that no available real trace has, and reads them back through the
//! engine.
// Each suite uses a part.
#![allow(dead_code)]

use std::sync::Arc;

use chronosym::source::etl::read;
use chronosym::{Diagnostics, EventSelector, Filter, Resolver, SampleSelection, Session, Timeline};
use chronosym_etl::Reader as EtlReader;
use chronosym_support::etl::{
    At, CLR_RUNTIME, EtlWriter, Image, Op, Options as FileOptions, Process, Stack,
};
use chronosym_support::payload::Method;

pub type Writer = EtlWriter<Vec<u8>>;

pub const PID: u32 = 100;
pub const TID: u32 = 7;
pub const KERNEL: u64 = 0xffff_f800_0000_0000;
pub const APP: u64 = 0x1_4000_0000;

pub fn writer(options: FileOptions) -> Writer {
    let mut w = EtlWriter::new(Vec::new(), options).unwrap();
    let kernel = if w.options().wide {
        KERNEL
    } else {
        0x8280_0000
    };
    image(&mut w, At::ns(0), Op::DCStart, kernel, 0, "ntoskrnl.exe");
    w
}

/// Returns a trace with one process, one thread and one image.
pub fn with_process(options: FileOptions) -> Writer {
    let mut w = writer(options);
    let process = Process {
        pid: PID,
        image: "app.exe",
        command_line: "app.exe --fast",
        ..Process::default()
    };
    w.process(At::ns(1), Op::DCStart, &process).unwrap();
    w.thread(At::ns(1), Op::DCStart, PID, TID).unwrap();
    let base = if w.options().wide { APP } else { 0x40_0000 };
    image(&mut w, At::ns(1), Op::DCStart, base, PID, "app.exe");
    w
}

pub fn image(w: &mut Writer, at: At, op: Op, base: u64, pid: u32, name: &str) {
    let path = format!(r"\Device\HarddiskVolume2\bin\{name}");
    let image = Image {
        base,
        size: 0x1_0000,
        pid,
        path: &path,
        ..Image::default()
    };
    w.image(at, op, &image).unwrap();
}

pub fn stack(w: &mut Writer, at: At, event: At, tid: u32, addresses: &[u64]) {
    let stack = Stack {
        event,
        pid: PID,
        tid,
        addresses,
    };
    w.stack(at, &stack).unwrap();
}

/// Writes a sample of the only thread, and its stack a little later.
pub fn sampled(w: &mut Writer, at: At, addresses: &[u64]) {
    w.sample(at, addresses[0], TID).unwrap();
    let later = At::ns(at.ns + 1_000).cpu(at.cpu);
    stack(w, later, at, TID, addresses);
}

pub fn method(w: &mut Writer, at: At, id: u16, start: u64, name: &str) {
    method_of(w, CLR_RUNTIME, at, id, start, name);
}

pub fn method_of(w: &mut Writer, provider: [u8; 16], at: At, id: u16, start: u64, name: &str) {
    let method = Method {
        id: 0x7000,
        module: 0x9000,
        start,
        size: 0x100,
        token: 0x0600_0001,
        flags: 8,
        names: Some(("Type", name, "void ()")),
        ..Method::default()
    };
    let at = at.pid(PID).tid(TID);
    w.clr(at, provider, id, 1, &method.encode(1), &[]).unwrap();
}

pub fn timeline_of(files: &[Vec<u8>], selection: SampleSelection) -> (Arc<Timeline>, Diagnostics) {
    let readers = files
        .iter()
        .map(|f| EtlReader::new(f.as_slice(), Default::default()).unwrap());
    let reader = EtlReader::merge(readers.collect()).unwrap();
    let mut session = Session::new(selection);
    let diagnostics = read(reader, &mut session).expect("the first");
    (session.finish(), diagnostics)
}

pub fn timeline(w: Writer) -> Arc<Timeline> {
    timeline_of(&[w.finish().unwrap()], SampleSelection::Profilers).0
}

pub fn events(w: Writer, selector: &str) -> Arc<Timeline> {
    let selector = EventSelector::parse(selector).unwrap();
    let selection = SampleSelection::Events(vec![selector]);
    timeline_of(&[w.finish().unwrap()], selection).0
}

/// Every sample: ms, process, thread, frames from the outermost to the innermost.
pub fn samples(timeline: &Arc<Timeline>) -> Vec<String> {
    samples_that(timeline, &Filter::default())
}

pub fn samples_that(timeline: &Arc<Timeline>, filter: &Filter) -> Vec<String> {
    let mut resolver = Resolver::new(timeline, None);
    let mut all = Vec::new();
    timeline.for_each_sample(filter, |class, time| {
        let thread = timeline.thread_view(class.thread).expect("a thread");
        let process = timeline.process_view(thread.process).expect("a process");
        let (stack, _) = resolver.resolve(class, time).expect("a stack");
        let mut frames: Vec<&str> = resolver
            .stack(stack)
            .map(|f| resolver.frame(f).label())
            .collect();
        frames.reverse();
        all.push(format!(
            "{} {} {} {}",
            time / 1_000_000,
            process.name.unwrap_or("?"),
            thread.tid,
            frames.join(";")
        ));
    });
    all
}
