//! Inputs made to take the square of their size, or far more memory: each runs within bounds, and
//! eight times as much of it takes no more than linear growth allows.
#![cfg(target_os = "linux")]

mod bounded;
mod common;

use std::io::Write;

use bounded::{bounded, holds, path};
use chronosym_support::ctf::{CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};
use chronosym_support::etl::{At, CLR_RUNTIME, EtlWriter, Event, Op, Options, Process, guid};
use chronosym_support::netperf::NetperfWriter;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::perf::{Bytes, JitdumpWriter, PerfAttr, PerfWriter};
use chronosym_support::trace::{FieldKind, FieldSpec, TraceInfo, TypeSpec};
use common::*;

const INFO: &[&str] = &["info"];
const EVENTS: &[&str] = &["events"];
const STACKS: &[&str] = &["stacks", "--format", "folded"];

/// The beginning of a V4 object, with a size that need not be true.
fn object(name: &str, size: u32) -> Vec<u8> {
    let mut out = vec![5, 5, 1];
    out.extend(1u32.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend((name.len() as u32).to_le_bytes());
    out.extend(name.as_bytes());
    out.push(6);
    out.extend(size.to_le_bytes());
    out
}

#[test]
fn nettrace() {
    let started = || {
        let mut writer = NettraceWriter::v4();
        let kind = writer.event_type("P", 1, 0);
        writer.event(kind, 1, 1, &[1], &[]);
        writer.flush();
        writer.finish_here()
    };
    for block in ["StackBlock", "EventBlock", "SPBlock", "FutureBlock"] {
        holds("objects that claim what follows", INFO, 4_000, |n| {
            [started(), object(block, 1 << 20).repeat(n)].concat()
        });
    }
    holds("V6 blocks in each other", INFO, 50_000, |n| {
        let mut writer = NettraceWriter::v6();
        let kind = writer.event_type("P", 1, 0);
        writer.event(kind, 1, 1, &[1], &[]);
        writer.flush();
        [writer.finish_here(), [0xff, 0, 0, 5].repeat(n)].concat()
    });
    holds("a type that is defined again and again", EVENTS, 300, |n| {
        let mut writer = NettraceWriter::v5();
        let deep = (0..12).fold(FieldKind::U32, |inner, _| {
            let name = "x".to_owned();
            FieldKind::Object(vec![FieldSpec { name, kind: inner }])
        });
        for i in 0..n {
            let kind = writer.define(TypeSpec::new("P", 1, i as u32).field("A", deep.clone()));
            writer.event(kind, i as i64, 1, &[], &[1, 2, 3, 4]);
        }
        writer.finish()
    });
    holds("threads that are seen once", INFO, 3_000, |n| {
        let mut writer = NettraceWriter::v6();
        let kind = writer.event_type("P", 1, 0);
        for i in 0..n {
            writer.event(kind, i as i64, i as u64, &[i as u64], &[]);
            writer.remove_thread(None, i as u64);
        }
        writer.finish()
    });
}

#[test]
fn netperf() {
    for writer in [NetperfWriter::v1, NetperfWriter::v2, NetperfWriter::v3] {
        holds("a type an event", EVENTS, 1_000, |n| {
            let mut writer = writer().info(TraceInfo::default());
            for i in 0..n {
                let kind = writer.event_type("P", i as u32, 0);
                writer.event(kind, i as i64, 1, &[1, 2, 3], &[]);
            }
            writer.finish()
        });
    }
    holds("blocks that claim what follows", INFO, 4_000, |n| {
        let mut writer = NetperfWriter::v3();
        let kind = writer.event_type("P", 1, 0);
        writer.event(kind, 1, 1, &[1], &[]);
        writer.flush();
        let whole = writer.finish();
        [
            &whole[..whole.len() - 1],
            &object("EventBlock", 1 << 20).repeat(n),
        ]
        .concat()
    });
    holds("events of a deep stack each", STACKS, 30, |n| {
        let mut writer = NetperfWriter::v3().info(TraceInfo::default());
        let kind = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
        for i in 0..n as u64 {
            let stack: Vec<u64> = (0..2_000).map(|at| 0x1000 + 16 * (at + i)).collect();
            writer.event(kind, i as i64 * 1_000, 1, &stack, &[2, 0, 0, 0]);
        }
        writer.finish()
    });
}

/// The header buffer of a log of compressed buffers.
fn etl_head() -> Vec<u8> {
    let options = Options {
        compress: true,
        ..Options::default()
    };
    let mut w = EtlWriter::new(Vec::new(), options).unwrap();
    w.flush(0).unwrap();
    w.finish().unwrap()
}

/// A buffer header.
fn buffer(stored: u32, valid: u32, compressed: bool) -> Vec<u8> {
    let mut out = vec![0; 72];
    out[..4].copy_from_slice(&stored.to_le_bytes());
    out[0x30..0x34].copy_from_slice(&valid.to_le_bytes());
    out[0x34] = if compressed { 0x40 } else { 0 };
    out
}

#[test]
fn etl() {
    holds("buffers that unpack to 16 MiB each", INFO, 500, |n| {
        // A record of the kernel, then the same again and again.
        let mut packed = 0x0000_0001_u32.reverse_bits().to_le_bytes().to_vec();
        packed = [0u32.to_le_bytes().to_vec(), packed].concat();
        packed.extend([0x07, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 1]);
        let mut one = buffer(72 + packed.len() as u32, 16 << 20, true);
        one.extend(packed);
        [etl_head(), one.repeat(n)].concat()
    });
    for (stored, valid) in [(16 << 20, 100), (73, 73), (200, 144)] {
        for compressed in [false, true] {
            holds("buffers in each other", INFO, 3_000, |n| {
                [etl_head(), buffer(stored, valid, compressed).repeat(n)].concat()
            });
        }
    }
    holds(
        "a process id that is used again and again",
        INFO,
        3_000,
        |n| {
            let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
            let process = Process {
                pid: 5,
                image: "a.exe",
                ..Process::default()
            };
            for us in 0..n as i64 {
                let at = |part: i64| At::ns(us * 1_000 + part * 100).pid(5).tid(6);
                w.process(at(0), Op::Start, &process).unwrap();
                w.thread(at(1), Op::Start, 5, 6).unwrap();
                w.sample(at(2), 0x1000, 6).unwrap();
                w.process(at(3), Op::Stop, &process).unwrap();
            }
            w.finish().unwrap()
        },
    );
    holds("a processor an event, all at once", INFO, 300, |n| {
        let options = Options {
            cpus: n as u16,
            buffer_size: 1024,
            ..Options::default()
        };
        let mut w = EtlWriter::new(Vec::new(), options).unwrap();
        for cpu in 0..n as u16 {
            w.sample(At::ms(1).cpu(cpu), 0x1000, 7).unwrap();
        }
        w.finish().unwrap()
    });
}

#[test]
fn descriptions_of_events() {
    let source = guid(0xa8a7_1ac1, 0x040f, 0x54a2, 0x07ca_00a8_9b5a_b761);
    let manifest = |n: usize, inner: String| {
        let xml = format!(
            "<m><provider name='P' guid='{{a8a71ac1-040f-54a2-07ca-00a89b5ab761}}'>{inner}</provider></m>"
        );
        let pieces: Vec<_> = xml.as_bytes().chunks(30_000).collect();
        let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
        for (i, text) in pieces.iter().enumerate() {
            let mut payload = vec![1, 1, 0, 0x5b];
            payload.extend((pieces.len() as u16).to_le_bytes());
            payload.extend((i as u16).to_le_bytes());
            payload.extend(*text);
            let event = Event {
                provider: source,
                id: 0xfffe,
                payload: &payload,
                ..Event::default()
            };
            w.event(At::us(i as i64), &event).unwrap();
        }
        assert!(n > 0);
        w.finish().unwrap()
    };
    holds("a template that all events share", INFO, 500, |n| {
        let events = (0..n).map(|id| format!("<event value='{id}' template='T'/>"));
        let fields = (0..n).map(|i| format!("<data name='f{i}' inType='win:Int32'/>"));
        let inner = events.collect::<String>() + "<template tid='T'>" + &fields.collect::<String>();
        manifest(n, inner + "</template>")
    });
    holds("elements in elements", INFO, 4_000, |n| {
        manifest(n, "<a>".repeat(n) + &"</a>".repeat(n))
    });
    holds("an element of many attributes", INFO, 3_000, |n| {
        let attributes = (0..n).map(|i| format!(" a{i}=''"));
        manifest(n, format!("<a{}/>", attributes.collect::<String>()))
    });
    holds("structs that share their members", INFO, 60, |n| {
        const STRUCT: u32 = 1;
        let properties = n.min(2_000);
        let mut info = vec![0; 112 + 24 * properties];
        info[..16].copy_from_slice(&source);
        for at in [100, 104] {
            info[at..at + 4].copy_from_slice(&(properties as u32).to_le_bytes());
        }
        for property in 0..properties {
            let at = 112 + 24 * property;
            info[at..at + 4].copy_from_slice(&STRUCT.to_le_bytes());
            info[at + 10..at + 12].copy_from_slice(&(properties as u16).to_le_bytes());
        }
        let class = guid(0xbbcc_f6c1, 0x6cd1, 0x48c4, 0x80ff_8394_82e3_7671);
        let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
        for i in 0..20u16 {
            info[32..34].copy_from_slice(&i.to_le_bytes());
            w.classic(At::us(i.into()), class, 32, 0, &info).unwrap();
        }
        w.finish().unwrap()
    });
    holds("TraceLogging arrays of nothing", EVENTS, 100, |n| {
        // A fixed array of 65,535 structs without fields, in structs.
        let mut item = b"\0\0\0E\0".to_vec();
        item.extend(b"s\0\x98\x01".repeat(8));
        item.extend(b"a\0\xb8\0\xff\xff");
        let size = item.len() as u16;
        item[..2].copy_from_slice(&size.to_le_bytes());
        let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
        for i in 0..n {
            let event = Event {
                provider: source,
                channel: 11,
                extended: &[(11, &item)],
                payload: &[0; 8],
                ..Event::default()
            };
            w.event(At::us(i as i64), &event).unwrap();
        }
        w.finish().unwrap()
    });
    holds("stacks of one event each", STACKS, 200, |n| {
        let mut w = EtlWriter::new(Vec::new(), Options::default()).unwrap();
        for i in 0..n as u64 {
            let stack: Vec<u64> = (0..180).map(|at| 0x1000 + 16 * (at * i)).collect();
            let at = At::us(i as i64).pid(7).tid(7);
            w.clr(at, CLR_RUNTIME, 82, 0, &[1; 20], &stack).unwrap();
        }
        w.finish().unwrap()
    });
}

#[test]
fn perf() {
    holds("mappings in mappings", STACKS, 1_000, |n| {
        let mut writer = PerfWriter::new(PerfAttr::default());
        let n = n as u64;
        for i in 0..n {
            writer.mmap2(
                i + 1,
                7,
                0x10_0000 + i * 4096,
                (2 * n - i) * 4096,
                0,
                "/lib/a.so",
            );
            writer.sample(i + 1, 7, 7, &[0x10_0000 + i * 4096]);
        }
        writer.file()
    });
    holds("a process begets a process", INFO, 1_000, |n| {
        let mut writer = PerfWriter::new(PerfAttr::default());
        writer.mmap2(1, 1, 0x10_0000, 4096, 0, "/bin/a");
        for pid in 1..n as u32 {
            writer.fork(pid.into(), pid + 1, pid, pid + 1);
            writer.sample(u64::from(pid) + 1, pid + 1, pid + 1, &[0x10_0000]);
        }
        writer.file()
    });
    holds(
        "records that unpack to many times their size",
        INFO,
        2_000,
        |n| {
            let mut writer = PerfWriter::new(PerfAttr::default());
            for i in 0..n as u64 {
                writer.sample(i, 7, 7, &[0x1000; 50]);
            }
            writer.compressed(1 << 15).file()
        },
    );
    holds("events that share their ids", INFO, 80, |n| {
        let mut writer = PerfWriter::new(PerfAttr {
            ids: (1..=100 * n as u64).collect(),
            ..PerfAttr::default()
        });
        for _ in 0..n {
            writer.attr(PerfAttr::default());
        }
        let mut out = writer.file();
        let at = u64::from_le_bytes(out[24..32].try_into().unwrap()) as usize;
        let ids = out[at + 120..at + 136].to_vec();
        for row in out[at..][..136 * n].chunks_mut(136) {
            row[120..].copy_from_slice(&ids);
        }
        out
    });
    holds("zeros in a window that is never full", INFO, 25, |n| {
        let mut writer = PerfWriter::new(PerfAttr::default());
        let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 16 << 3];
        for _ in 0..20 * n {
            // 128 KiB of one byte.
            stream.extend(&((128u32 << 10) << 3 | 2).to_le_bytes()[..3]);
            stream.push(0);
        }
        writer.record(81, 0, Bytes::default().raw(&stream));
        writer.file()
    });
    holds("features that say nothing new", INFO, 3_000, |n| {
        let mut writer = PerfWriter::new(PerfAttr::default());
        for number in 2..60 {
            writer.feature(number, [1, 0, 0, 0].repeat(n));
        }
        writer.file()
    });
    holds("names of events without end", INFO, 2_000, |n| {
        let mut writer = PerfWriter::new(PerfAttr::default());
        for _ in 0..n {
            writer.record(80, 0, Bytes::default().raw(&[0xff; 64]));
        }
        writer.pipe()
    });
}

/// Returns the metadata of an LTTng trace with one kind of event, and a packet of one event.
fn lttng() -> (String, Vec<u8>) {
    let mut trace = CtfTrace::new(CtfLayout::default(), &[]);
    trace.event("P:One", &[("n", CtfType::Unsigned(8))]);
    let event = CtfEvent {
        time: 1,
        id: 0,
        context: Vec::new(),
        fields: vec![CtfValue::Number(1)],
    };
    (trace.text(), trace.packet(0, 0, 0, &[event]))
}

#[test]
fn ctf() {
    let (text, packet) = lttng();
    let declares = |name: &str, size: usize, more: &dyn Fn(usize) -> String| {
        let runs = holds(name, INFO, size, |n| {
            let text = format!("{text}{}", more(n));
            zipped(&[("metadata", text.as_bytes()), ("stream", &packet)])
        });
        assert_eq!(runs[1].status, 0, "{name}: {}", runs[1].stderr);
    };
    const BYTE: &str = "integer { size = 8; }";
    declares("labels", 100_000, &|n| {
        let labels: String = (0..n).map(|i| format!("l{i},")).collect();
        format!("enum e : {BYTE} {{ {labels} }};\n")
    });
    declares("variants of many options", 700, &|n| {
        let labels: String = (0..n).map(|i| format!("l{i},")).collect();
        let options: String = (0..n).map(|i| format!("{BYTE} l{i};")).collect();
        let uses: String = (0..n).map(|i| format!("variant v <t> u{i};")).collect();
        format!(
            "variant v {{ {options} }};\nstruct s {{ enum : {BYTE} {{ {labels} }} t; {uses} }};\n"
        )
    });
    declares("events of the same many fields", 500, &|n| {
        let fields: String = (0..4_000).map(|i| format!("{BYTE} f{i};")).collect();
        let event = |i| {
            format!("event {{ id = {i}; name = \"e{i}\"; stream_id = 0; fields := struct s; }};\n")
        };
        format!("struct s {{ {fields} }};\n") + &(1..n).map(event).collect::<String>()
    });
    declares("fields that name one far away", 500, &|n| {
        let outer: String = (0..3_900).map(|i| format!("{BYTE} f{i};")).collect();
        let inner = format!("struct {{ {BYTE} a[f0]; }} i;");
        format!("struct s {{ {outer} {} }};\n", inner.repeat(8 * n))
    });
    holds("much metadata, packed", INFO, 1, |n| {
        let long = format!("env {{ {} }};\n", "a = 1;".repeat(n << 20));
        let text = format!("{text}{long}");
        let entries: Vec<_> = (0..6).map(|_| text.as_bytes()).collect();
        let names = ["a", "b", "c", "d", "e", "f"];
        let entries: Vec<_> = names.into_iter().zip(entries).collect();
        zipped(&entries)
    });
    holds("packets of zeros", INFO, 4, |n| {
        const CONTENT: usize = 48;
        let mut packet = packet.clone();
        packet.resize(8 << 20, 0);
        for at in [CONTENT, CONTENT + 8] {
            packet[at..at + 8].copy_from_slice(&(64u64 << 20).to_le_bytes());
        }
        let names: Vec<String> = (0..n).map(|i| format!("stream_{i}")).collect();
        let mut entries = vec![("metadata", text.as_bytes())];
        entries.extend(names.iter().map(|name| (&**name, &*packet)));
        zipped(&entries)
    });
    holds("streams of one event", INFO, 400, |n| {
        let names: Vec<String> = (0..n).map(|i| format!("stream_{i}")).collect();
        let mut entries = vec![("metadata", text.as_bytes())];
        entries.extend(names.iter().map(|name| (&**name, &*packet)));
        zipped(&entries)
    });
    holds("events of many fields without bits", INFO, 4_000, |n| {
        let fields: String = (0..4_000).map(|i| format!("struct none f{i};")).collect();
        let text = format!(
            "/* CTF 1.8 */\ntrace {{ major = 1; minor = 8; byte_order = le; }};\n\
             stream {{ event.header := struct {{ integer {{ size = 1; align = 1; }} x; }}; }};\n\
             struct none {{ }};\nevent {{ id = 0; name = \"e\"; stream_id = 0; fields := struct {{ {fields} }}; }};\n"
        );
        let mut stream = 0xc1fc_1fc1_u32.to_le_bytes().to_vec();
        stream.resize(n, 0);
        zipped(&[("metadata", text.as_bytes()), ("stream", &stream)])
    });
}

#[test]
fn packed_perf_maps() {
    let mut trace = NettraceWriter::v5().info(TraceInfo::default());
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    trace.event(sample, 1_000, 1, &[0x1000], &[2, 0, 0, 0]);
    let trace = file(&trace.finish());
    let pid = TraceInfo::default().process_id;
    let map = format!("{pid}={{}}");
    let command = ["info", path(&trace), "--perf-map", &map];
    holds("one row again and again", &command, 100_000, |n| {
        gzipped("1000 40 a\n".repeat(n * 10).as_bytes())
    });
    let mut perf = PerfWriter::new(PerfAttr::default());
    for pid in 0..50 {
        perf.sample(1, pid, pid, &[0x1000]);
    }
    let perf = perf.file();
    holds("a map a process", INFO, 3, |n| {
        let rows = "1000 40 a\n".repeat(1 << 19);
        let names: Vec<String> = (0..n).map(|pid| format!("perf-{pid}.map")).collect();
        let mut entries = vec![("perf.data", &*perf)];
        entries.extend(names.iter().map(|name| (&**name, rows.as_bytes())));
        zipped(&entries)
    });
}

#[test]
fn jitdumps_and_perf_maps() {
    holds("code that moves onto itself", INFO, 2_000, |n| {
        let mut writer = JitdumpWriter::new(false, 7, 0);
        let index = writer.load(1, 7, 0x1000, "m", &[0x90; 64]);
        for i in 0..n as u64 {
            writer.moved(2 + i, 7, 0x1000 + i % 2, 0x1000 + (i + 1) % 2, 64, index);
        }
        writer.file().to_vec()
    });
    holds("code in code", INFO, 1_000, |n| {
        let mut writer = JitdumpWriter::new(false, 7, 0);
        for i in 0..n as u64 {
            writer.load(1 + i, 7, 0x1000 + i, "m", &[0x90; 256]);
        }
        writer.file().to_vec()
    });
    holds("lines of code that never comes", INFO, 1_000, |n| {
        let mut writer = JitdumpWriter::new(false, 7, 0);
        for i in 0..n as u64 {
            writer.lines(
                1 + i,
                0x1000,
                &[(0x1000, 1, Some("a.js")), (0x1001, 2, None)],
            );
        }
        writer.file().to_vec()
    });
    let mut trace = NettraceWriter::v5().info(TraceInfo::default());
    let sample = trace.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    for i in 0..50 {
        trace.event(sample, i * 1_000, 1, &[0x1000 + i as u64], &[2, 0, 0, 0]);
    }
    let trace = file(&trace.finish());
    type Map = (&'static str, fn(usize) -> String);
    let maps: [Map; 4] = [
        ("one start", |n| {
            (0..n).map(|i| format!("1000 40 m{i}\n")).collect()
        }),
        ("backwards", |n| {
            (0..n)
                .map(|i| format!("{:x} 40 m{i}\n", 0x1000 + n - i))
                .collect()
        }),
        ("all there is", |n| {
            (0..n)
                .map(|i| format!("{i:x} {:x} m\n", u64::MAX >> (i % 8)))
                .collect()
        }),
        ("long names", |n| {
            (0..n / 500)
                .map(|i| format!("{:x} 1 {}\n", 0x1000 + i, "T".repeat(30_000)))
                .collect()
        }),
    ];
    let pid = TraceInfo::default().process_id;
    let (map, trace) = (format!("{pid}={{}}"), path(&trace));
    let command = ["stacks", "--format", "folded", "--perf-map", &map, trace];
    for (name, make) in maps {
        for run in holds(name, &command, 3_000, |n| make(n).into_bytes()) {
            assert_eq!(run.status, 0, "{name}: {}", run.stderr);
        }
    }
}

#[test]
fn wrappers() {
    let gzip_member = gzipped(b"");
    holds("empty members", INFO, 10_000, |n| gzip_member.repeat(n));
    holds("entries that nothing is in", INFO, 500, |n| {
        let names: Vec<String> = (0..n).map(|i| format!("{i}.txt")).collect();
        let entries: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &b""[..])).collect();
        zipped(&entries)
    });
    holds("headers of entries without a list", INFO, 4_000, |n| {
        let mut header = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0".to_vec();
        header.extend([0xff; 8]);
        header.extend([1, 0, 0, 0, b'a']);
        header.repeat(n)
    });
    holds("zeros packed twice", INFO, 1, |n| {
        let mut once = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for _ in 0..4 * n {
            once.write_all(&vec![0; 1 << 20]).unwrap();
        }
        gzipped(&once.finish().unwrap())
    });
}

/// Returns an ELF program with code at 0x1000 and these symbols: value, size, offset of the name in
/// `names`.
fn elf(symbols: &[(u64, u64, u32)], names: &[u8]) -> Vec<u8> {
    const CODE: u64 = 0x1000;
    let sections = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";
    let mut out = vec![0; 64];
    let mut headers = vec![[0u64; 10]];
    let mut add =
        |name: u64, kind: u64, flags: u64, address: u64, bytes: &[u8], link: u64, entry: u64| {
            headers.push([
                name,
                kind,
                flags,
                address,
                out.len() as u64,
                bytes.len() as u64,
                link,
                0,
                8,
                entry,
            ]);
            out.extend(bytes);
            out.resize(out.len().next_multiple_of(8), 0);
        };
    let mut table = vec![0; 24];
    for (value, size, name) in symbols {
        table.extend(name.to_le_bytes());
        table.extend([0x12, 0, 1, 0]);
        table.extend(value.to_le_bytes());
        table.extend(size.to_le_bytes());
    }
    add(1, 1, 6, CODE, &[0x90; 4096], 0, 0);
    add(7, 2, 0, 0, &table, 3, 24);
    add(15, 3, 0, 0, names, 0, 0);
    add(23, 3, 0, 0, sections, 0, 0);
    let table_at = out.len() as u64;
    for header in &headers {
        let [name, kind, rest @ ..] = header;
        out.extend((*name as u32).to_le_bytes());
        out.extend((*kind as u32).to_le_bytes());
        for (i, word) in rest.iter().enumerate() {
            match i {
                4 | 5 => out.extend((*word as u32).to_le_bytes()),
                _ => out.extend(word.to_le_bytes()),
            }
        }
    }
    out[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0");
    out[20] = 1;
    out[40..48].copy_from_slice(&table_at.to_le_bytes());
    out[52] = 64;
    out[58] = 64;
    out[60] = headers.len() as u8;
    out[62] = 4;
    out
}

#[test]
fn object_files() {
    const ASK: &[&str] = &["symbolize", "0x1010", "0x1020", "0x1ff0", "--obj"];
    // Half of each file is not symbols; an answer shows that the tables were read.
    let found = file(&elf(&[(0x1000, 0x40, 1)], b"\0main\0"));
    let run = bounded(&[ASK, &[path(&found)]].concat());
    assert!(run.stdout.contains("main"), "{}{}", run.stdout, run.stderr);
    holds("symbols at one address", ASK, 3_000, |n| {
        elf(&vec![(0x1000, 0x40, 1); n], b"\0main\0")
    });
    holds("symbols in symbols", ASK, 3_000, |n| {
        let nested: Vec<_> = (0..n as u64)
            .map(|i| (0x1000 + i % 16, 4000 - i % 2000, 1))
            .collect();
        elf(&nested, b"\0main\0")
    });
    holds("one long name for all", ASK, 1_000, |n| {
        let mut name = b"\0_ZN".to_vec();
        name.extend(b"1aIS_".repeat(n));
        name.push(0);
        let symbols: Vec<_> = (0..n as u64).map(|i| (0x1000 + i, 1, 1)).collect();
        elf(&symbols, &name)
    });
    let image = std::fs::read(testdata("pdb-small/x86_64/small.exe")).unwrap();
    let header = u32::from_le_bytes(image[0x3c..0x40].try_into().unwrap()) as usize;
    holds(
        "more sections than the file has room for",
        ASK,
        8_000,
        |n| {
            let mut image = image.clone();
            image[header + 6..header + 8].copy_from_slice(&(n as u16).to_le_bytes());
            let section = image[header + 24 + 240..][..40].to_vec();
            image.truncate(header + 24 + 240);
            image.extend(section.repeat(n));
            image
        },
    );
    for (name, value, aux) in [
        ("COFF symbols at one place", 0, 0),
        ("COFF symbols of symbols", 1, 0xff),
    ] {
        holds(name, ASK, 3_000, |n| {
            let mut image = image.clone();
            let (table, count) = (image.len() as u32, n as u32);
            image[header + 12..header + 16].copy_from_slice(&table.to_le_bytes());
            image[header + 16..header + 20].copy_from_slice(&count.to_le_bytes());
            for at in 0..count {
                // The name of all is the one in the table of texts.
                image.extend([0, 4, 0x10 + at * value].map(u32::to_le_bytes).concat());
                image.extend([1, 0, 0x20, 0, 2, aux]);
            }
            let text = [b'n'; 50_000];
            image.extend((4 + text.len() as u32).to_le_bytes());
            image.extend(text);
            image
        });
    }
    holds("a debug directory without end", ASK, 4_000, |n| {
        let mut image = image.clone();
        // The seventh directory: by its size, all following bytes belong to it.
        let at = header + 24 + 112 + 6 * 8;
        let place = image.len() as u32;
        image[at + 4..at + 8].copy_from_slice(&u32::MAX.to_le_bytes());
        let mut entry = [0; 28];
        entry[12] = 2;
        entry[16..20].copy_from_slice(&100u32.to_le_bytes());
        entry[24..28].copy_from_slice(&place.to_le_bytes());
        image.extend(entry.repeat(n));
        image
    });
}
