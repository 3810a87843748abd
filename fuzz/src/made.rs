//! Valid traces of any content: the bytes determine the events and their values. The writers of the
//! tests add correct lengths and checksums, so that the content is reached; the last choices change
//! single bytes afterwards.

use chronosym_support::etl::{
    At, CLR_RUNDOWN, CLR_RUNTIME, EtlWriter, Event, Image, Op, Options, Process, Stack, StackMode,
    stack_item,
};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{ILMap, Method, Module};
use chronosym_support::perf::{PerfAttr, PerfWriter};
use chronosym_support::trace::{EventSpec, FieldKind, TypeSpec};

use crate::choices::Choices;
use crate::pipeline;

#[path = "../../crates/chronosym-symbols/tests/made/mod.rs"]
pub mod object;

#[path = "../../crates/chronosym-symbols/tests/made/go.rs"]
pub mod go;

/// Events that a trace has at most.
const MOST: usize = 200;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const RUNDOWN: &str = "Microsoft-Windows-DotNETRuntimeRundown";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";

/// An address: mostly one of few, so that code meets code.
fn address(choices: &mut Choices<'_>) -> u64 {
    match choices.byte() {
        at @ 0..0xe0 => 0x1000 + u64::from(at & 63) * 16,
        0xe0..0xf0 => 0xffff_f800_0000_0000 + choices.below(64) * 16,
        _ => choices.number(),
    }
}

fn stack(choices: &mut Choices<'_>) -> Vec<u64> {
    let depth = choices.below(12);
    (0..depth).map(|_| address(choices)).collect()
}

struct Names(String, String, String);

impl Names {
    fn of(choices: &mut Choices<'_>) -> Self {
        Names(choices.text(), choices.text(), choices.text())
    }
}

fn method<'n>(choices: &mut Choices<'_>, names: &'n Names) -> Method<'n> {
    Method {
        id: choices.below(16),
        module: choices.below(4),
        start: address(choices),
        size: choices.word() & 0xfff,
        token: 0x0600_0000 + choices.below(8) as u32,
        flags: choices.word(),
        names: (choices.below(4) > 0).then_some((&names.0, &names.1, &names.2)),
        clr: choices.below(2) as u16,
        code_version: choices.below(3),
    }
}

/// Changes as many bytes as there are choices left, three choices each; few, or nothing would be
/// left to read.
fn damage(choices: &mut Choices<'_>, mut bytes: Vec<u8>) -> (Vec<u8>, bool) {
    let mut is_whole = true;
    for _ in 0..4 {
        if choices.is_done() || bytes.is_empty() {
            break;
        }
        let at = usize::from(choices.u16()) % bytes.len();
        bytes[at] ^= choices.byte();
        is_whole = false;
    }
    (bytes, is_whole)
}

/// Reads the trace. A whole trace has all its samples.
fn check(choices: &mut Choices<'_>, bytes: Vec<u8>, samples: u64) {
    let (bytes, is_whole) = damage(choices, bytes);
    let found = pipeline::check(&pipeline::timeline(&bytes));
    if is_whole {
        assert_eq!(found, samples, "samples of a whole trace");
    }
}

/// EventPipe, versions 4 to 6.
pub fn nettrace(data: &[u8]) {
    let mut choices = Choices::new(data);
    let c = &mut choices;
    let mut writer = match c.below(3) {
        0 => NettraceWriter::v4(),
        1 => NettraceWriter::v5(),
        _ => NettraceWriter::v6(),
    };
    if c.below(2) == 0 {
        writer = writer.uncompressed();
    }
    writer = writer.block_size(256 + c.byte() as usize * 16);
    let sample = writer.event_type(SAMPLER, 0, 0);
    let load = writer.event_type(RUNTIME, 143, 2);
    let unload = writer.event_type(RUNTIME, 144, 2);
    let listed = writer.event_type(RUNDOWN, 144, 2);
    let module = writer.event_type(RUNTIME, 152, 2);
    let map = writer.event_type(RUNTIME, 190, 1);
    let other = writer.event_type(RUNTIME, u32::from(c.byte()), c.below(4) as u32);
    let own = TypeSpec::new("Own", 1, 0).field("Text", FieldKind::UTF16);
    let own = writer.define(own.field("List", FieldKind::array_of(FieldKind::U32)));
    let (mut samples, mut time) = (0, 0);
    for _ in 0..MOST {
        let kind = c.byte();
        if kind >= 0xf0 || c.is_done() {
            break;
        }
        time += c.below(64) as i64;
        let thread = 1 + c.below(4);
        match kind & 15 {
            0..6 => {
                // Without a stack it would be an event, and no sample.
                let mut stack = stack(c);
                stack.push(address(c));
                writer.event(sample, time, thread, &stack, &c.word().to_le_bytes());
                samples += 1;
            }
            kind @ 6..9 => {
                let names = Names::of(c);
                let kind = [load, unload, listed][usize::from(kind - 6)];
                let payload = method(c, &names).encode(2);
                writer.event(kind, time, thread, &[], &payload);
            }
            9 => {
                let path = c.text();
                let loaded = Module {
                    id: c.below(4),
                    il_path: &path,
                    native_path: &path,
                    managed_pdb: ([c.byte(); 16], 1, &path),
                    ..Module::default()
                };
                writer.event(module, time, thread, &[], &loaded.encode(2));
            }
            10 => {
                let entries: Vec<_> = (0..c.below(8))
                    .map(|_| (c.word() as i32, c.word()))
                    .collect();
                let map_of = ILMap {
                    id: c.below(16),
                    entries: &entries,
                    ..ILMap::default()
                };
                writer.event(map, time, thread, &[], &map_of.encode(1));
            }
            11 => writer.lose(thread, c.below(4) as u32),
            12 => writer.sequence_point(),
            13 => writer.flush(),
            14 => writer.record(&EventSpec::new(own, time, thread).payload(c.bytes())),
            _ => writer.event(other, time, thread, &[], c.bytes()),
        }
    }
    check(&mut choices, writer.finish(), samples);
}

/// ETW: plain and compressed, wide and narrow.
pub fn etl(data: &[u8]) {
    let mut choices = Choices::new(data);
    let (bytes, samples) = made_etl(&mut choices).expect("memory");
    check(&mut choices, bytes, samples);
}

fn made_etl(c: &mut Choices<'_>) -> std::io::Result<(Vec<u8>, u64)> {
    let options = Options {
        wide: c.below(4) > 0,
        cpus: 2,
        compress: c.below(2) == 0,
        events_lost: c.below(4) as u32,
        ..Options::default()
    };
    let mut w = EtlWriter::new(Vec::new(), options)?;
    let (mut samples, mut ns, mut latest) = (0, 0, At::ns(0));
    for _ in 0..MOST {
        let kind = c.byte();
        if kind >= 0xf0 || c.is_done() {
            break;
        }
        ns += 1_000 * (1 + c.below(64) as i64);
        let (pid, tid) = (4 + c.below(3) as u32, 10 + c.below(4) as u32);
        let at = At::ns(ns).cpu(c.below(2) as u16).pid(pid).tid(tid);
        match kind & 15 {
            0..4 => {
                w.sample(at, address(c), tid)?;
                (samples, latest) = (samples + 1, at);
            }
            4..6 => {
                let addresses = stack(c);
                let stack = Stack {
                    event: latest,
                    pid,
                    tid,
                    addresses: &addresses,
                };
                w.stack(at, &stack)?;
            }
            6 => {
                let mode = [StackMode::Kernel, StackMode::User][c.below(2) as usize];
                w.stack_key(at, mode, latest, pid, tid, c.below(4))?;
            }
            7 => {
                let addresses = stack(c);
                w.stack_definition(at, 35 + c.below(2) as u8, c.below(4), &addresses)?;
            }
            8 => {
                let (image, line) = (c.text(), c.text());
                let process = Process {
                    pid,
                    image: &image,
                    command_line: &line,
                    ..Process::default()
                };
                let op = [Op::Start, Op::Stop, Op::DCStart, Op::DCStop][c.below(4) as usize];
                w.process(at, op, &process)?;
            }
            9 => {
                let op = [Op::Start, Op::Stop, Op::DCStart, Op::DCStop][c.below(4) as usize];
                w.thread(at, op, pid, tid)?;
            }
            10 => {
                let path = c.text();
                let image = Image {
                    base: address(c),
                    size: c.number(),
                    pid,
                    path: &path,
                    ..Image::default()
                };
                let op = [Op::Load, Op::Unload, Op::DCStart, Op::DCStop][c.below(4) as usize];
                w.image(at, op, &image)?;
            }
            11 | 12 => {
                let names = Names::of(c);
                let payload = method(c, &names).encode(2);
                let (provider, id) = [(CLR_RUNTIME, 143), (CLR_RUNTIME, 144), (CLR_RUNDOWN, 144)]
                    [c.below(3) as usize];
                w.clr(at, provider, id, 2, &payload, &[])?;
            }
            13 => w.cswitch(at, tid, 10 + c.below(4) as u32)?,
            14 => own_event(&mut w, at, c)?,
            _ => w.flush(at.cpu)?,
        }
    }
    Ok((w.finish()?, samples))
}

/// An event that describes itself, with a stack.
fn own_event(w: &mut EtlWriter<Vec<u8>>, at: At, c: &mut Choices<'_>) -> std::io::Result<()> {
    let item = c.bytes();
    let sized = [&(item.len() as u16 + 2).to_le_bytes()[..], item].concat();
    let stack = stack_item(c.below(4), &stack(c), c.below(2) == 0);
    let event = Event {
        provider: [c.byte(); 16],
        id: u16::from(c.byte()),
        extended: &[(11, &sized), (6, &stack)],
        payload: c.bytes(),
        ..Event::default()
    };
    w.event(at, &event)
}

/// perf.data: as a file, as a pipe, compressed, in either byte order.
pub fn perf(data: &[u8]) {
    let mut choices = Choices::new(data);
    let c = &mut choices;
    let mut writer = PerfWriter::new(PerfAttr::default());
    if c.below(4) == 0 {
        writer = writer.big_endian();
    }
    let form = c.below(3);
    let (mut samples, mut time) = (0, 1_000_000);
    for _ in 0..MOST {
        let kind = c.byte();
        if kind >= 0xf0 || c.is_done() {
            break;
        }
        time += c.below(64);
        let (pid, tid) = (4 + c.below(3) as u32, 10 + c.below(4) as u32);
        match kind & 7 {
            0..3 => {
                let mut chain = stack(c);
                chain.push(address(c));
                // The last page of addresses holds markers for the mode of the following ones;
                // addresses of a guest are skipped.
                chain.iter_mut().for_each(|at| *at = (*at).min(!0xffff));
                writer.sample(time, pid, tid, &chain);
                samples += 1;
            }
            3 => writer.comm(time, pid, tid, &c.text()),
            4 => writer.fork(time, pid, 4, tid),
            5 => writer.exit(time, pid, tid),
            6 => writer.mmap2(time, pid, address(c), c.number(), c.number(), &c.text()),
            _ => writer.round(),
        }
    }
    let bytes = match form {
        0 => writer.file(),
        1 => writer.compressed(64 + c.byte() as usize).file(),
        _ => writer.pipe(),
    };
    check(&mut choices, bytes, samples);
}
