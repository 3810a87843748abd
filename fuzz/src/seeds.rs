//! Seeds from the writers of the tests, and small files of the test data.

use std::io::{Cursor, Write};
use std::path::Path;

use chronosym::{Action, Filter, Session, facts};
use chronosym_export::{Granularity, write_otlp};
use chronosym_support::ctf::{CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};
use chronosym_support::etl::{At, EtlWriter, Options, Stack};
use chronosym_support::msf;
use chronosym_support::netperf::NetperfWriter;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{Method, inline_tree};
use chronosym_support::perf::{JitdumpWriter, PerfAttr, PerfWriter};
use chronosym_support::trace::{EventSpec, FieldKind, LabelSpec, TypeSpec};

use crate::made::{go, object};

const BREAKPAD: &[u8] = b"MODULE Linux x86_64 9D4B3B1A2C8F00D1838ED98914E9B7FF0 libapp.so\n\
    INFO CODE_ID 1A3B4B9D8F2CD100838ED98914E9B7FF01234567\nFILE 0 /src/app/a.cc\nFILE 7 b.h\n\
    INLINE_ORIGIN 0 inner(int)\nINLINE_ORIGIN 3 innermost()\nPUBLIC f00 0 _start\n\
    FUNC 0 40 0 outer(int)\nINLINE 0 7 0 0 10 10 30 8\nINLINE 1 12 7 3 18 4 34 2\n\
    0 10 5 0\n10 10 11 7\n20 20 9 0\nFUNC m 1040 8 0 shared\n1040 8 20 0\nPUBLIC m 1080 0 tail\n";

const SCRIPT: &[u8] = b"app 32633/7 [003]  4710.772860:     250000 cpu-clock: \n\
    \tffffffff815a2001 f+0xc1 ([kernel.kallsyms])\n\t           13608 [unknown] (/lib/a (deleted))\n\n";

const MANIFEST: &[u8] =
    br#"<instrumentationManifest><instrumentation><events><provider name="P" guid="{a8a71ac1-040f-54a2-07ca-00a89b5ab761}">
<tasks><task name="Work" value="1"/></tasks><opcodes><opcode name="Push" value="11"/></opcodes>
<keywords><keyword name="A" mask="0x1"/></keywords>
<events><event value="2" version="3" level="win:Verbose" task="Work" opcode="win:Start" template="T" keywords="A"/></events>
<templates><template tid="T"><data name="size" inType="win:UInt32"/><data name="blob" inType="win:Binary" length="size"/>
<struct name="s" count="2"><data name="t" inType="win:UnicodeString"/></struct></template></templates>
</provider></events></instrumentation></instrumentationManifest>"#;

fn go_table(layout: u8) -> (String, Vec<u8>) {
    let (table, tree) = go::table(layout);
    let bytes = [&(tree.len() as u16).to_le_bytes()[..], &tree, &table].concat();
    (format!("layout-{layout:x}"), bytes)
}

/// The profiles that chronosym itself writes.
fn otlp() -> Vec<u8> {
    let mut session = Session::new(chronosym::Options::default());
    let at = facts::At::new(1).process(42).thread(7);
    let method = facts::Method::new(Action::Load, 1, 0x1000, 64);
    session.apply(at, method.named("Ns.Type", "Run", "void ()"));
    session.sample(at, &[0x1010, 0x1020], facts::Sample::cpu());
    let profile = session.finish().profile(&Filter::default(), None);
    let mut bytes = Vec::new();
    write_otlp(&profile, Granularity::default(), &mut bytes).expect("memory");
    bytes
}

/// Returns the seeds of a target, each with its name; none for an unknown target.
#[must_use]
pub fn of(target: &str) -> Vec<(String, Vec<u8>)> {
    let named = |name: &str, bytes: &[u8]| (name.to_owned(), bytes.to_vec());
    match target {
        "nettrace" => event_pipe(),
        "etl" => etw(),
        "perf_data" => perf(),
        "ctf" => [false, true].map(ctf).into(),
        "jitdump" => vec![named("two", &jitdump())],
        "perf_script" => vec![named("two", SCRIPT)],
        "otlp" => vec![named("stacks", &otlp())],
        "converted" => vec![named("inlined", &crate::converted::seed())],
        "saved" => vec![named("session", &crate::saved::seed())],
        "perf_map" => vec![named(
            "rows",
            b"1000 10 void [a] T::M()[Tier0]\n1010 20 stub<1>\n0x1008 8 inner\nzz\n",
        )],
        "wrapped" => {
            let (_, trace) = event_pipe().swap_remove(1);
            let twice = gzipped(&zipped(&[("x/a.nettrace", &trace), ("a.txt", b"text")]));
            let inside = [&[7][..], &trace].concat();
            vec![
                named("gzip", &gzipped(&trace)),
                named("zip", &zipped(&[("a.nettrace", &trace)])),
                named("both", &twice),
                named("inside", &inside),
            ]
        }
        "event_payload" => {
            let method = Method {
                start: 0x1000,
                size: 64,
                names: Some(("T", "M", "void ()")),
                ..Method::default()
            };
            (0..40)
                .map(|index| {
                    let bytes = [&[index, 0][..], &method.encode(2)].concat();
                    (format!("row-{index}"), bytes)
                })
                .collect()
        }
        "trace_logging" => {
            let item = b"\0Event\0Count\x08\0Text\x01\0Struct\x9f\x02Inner\x88\0List\x48\0";
            let head = (item.len() as u16).to_le_bytes();
            vec![named(
                "fields",
                &[&head[..], item, b"\x01\0\0\0a\0b\0\0\0"].concat(),
            )]
        }
        "event_description" => vec![named("one", &description())],
        "manifest" => vec![named("one", MANIFEST)],
        "inline_tree" => {
            let nodes = [(1, 0, 1, 0), (2, 5, 2, 3), (3, 1, 0, 0), (4, 9, 0, 0)];
            let mappings = [(0, 0, 0), (5, 1, 8), (1, 2, 16)];
            vec![named("four", &inline_tree(&nodes, &mappings))]
        }
        "elf" => {
            let mut seeds = vec![named("program", &object::elf(&object::program()))];
            seeds.extend(test_data(&["pdb-small/x86_64/small.exe"]));
            seeds
        }
        "mach_o" => test_data(&[
            "macho/x86_64/app.dSYM/Contents/Resources/DWARF/app",
            "macho/arm64/app",
            "macho/universal/app",
        ]),
        "unwind" => vec![named("one", &call_frames())],
        "go_table" => go::LAYOUTS.iter().map(|&layout| go_table(layout)).collect(),
        "breakpad" => vec![named("app", BREAKPAD)],
        "dwarf" => vec![named("program", &debug_sections())],
        "pe" => test_data(&[
            "clr10/workload/PluginA.dll",
            "clr10/workload/Workload.dll",
            "clr10/r2r/linux-x64/Workload.dll",
            "pdb-small/x86_64/small.exe",
        ]),
        "kallsyms" => vec![named(
            "rows",
            b"ffffffff81000000 T _text\nffffffff81000000 T _stext\nffffffff81000100 t f\n\
              ffffffff81002000 T _etext\nffffffffc0000000 t g\t[module]\nffffffffc0000010 d x\t[module]\n",
        )],
        "r2r_map" => test_data(&["clr10/r2r/linux-x64/Workload.ni.r2rmap"]),
        "portable_pdb" => test_data(&["clr10/workload/PluginA.pdb", "clr10/workload/Workload.pdb"]),
        "windows_pdb" => {
            let whole = test_data(&["pdb-small/x86_64/small.pdb", "pdb-small/i686/small.pdb"]);
            // Small pages, and no types: the minimum around names and lines.
            let few = |(name, file): &(String, Vec<u8>)| {
                let mut streams = msf::take_apart(file);
                streams[2].iter_mut().for_each(|types| types.truncate(56));
                (format!("{name}-few"), msf::put_together(&streams, 512, 1))
            };
            whole.iter().map(few).chain(whole.clone()).collect()
        }
        "symbol_path" => vec![
            named(
                "server",
                b"cache*C:\\c;srv*D:\\store*https://user:word@host/s;symsrv*symsrv.dll*/a*b",
            ),
            named("folders", b"/usr/lib/debug;~/x;;SRV**http://h/"),
        ],
        "crash_log" => vec![
            named("text", CRASH_LOG.as_bytes()),
            named(
                "json",
                br#"{"frames":[{"imageOffset":4545,"imageIndex":0,"symbol":"f","symbolLocation":2}],"usedImages":[{"base":4096,"size":64,"uuid":"ab","path":"/a"}]}"#,
            ),
        ],
        "packed" => vec![
            named("cabinet", &cabinet(&[7; 5_000])),
            named("gzip", &gzipped(&[7; 100])),
        ],
        "names_itanium" => names(&[
            "_ZN3foo3barEv",
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            "_ZZ4mainENKUlT_E_clIiEEDaS_",
            "_ZTv0_n24_N1A1BEv",
            "_ZNK3fooIXadL_Z3barvEEE3bazEDpT_",
            "_ZN4core3ptr18real_drop_in_place17h1234567890abcdefE",
        ]),
        "names_msvc" => names(&[
            "?foo@Bar@@QEAAHPEBD@Z",
            "??$make@V?$vector@HV?$allocator@H@std@@@std@@@@YAXXZ",
            "??0Class@@QEAA@AEBV0@@Z",
            "?f@@YAXP6AHH@ZQEAH00@Z",
            "??_R0?AVtype_info@@@8",
        ]),
        "names_rust" => names(&[
            "_RNvC6_123foo3bar",
            "_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
            "_RNCNvC5crate4main0",
            "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
        ]),
        "pipeline" => [event_pipe(), etw(), perf()].concat(),
        "map" | "made_nettrace" | "made_etl" | "made_perf" => (1..9).map(choices).collect(),
        _ => Vec::new(),
    }
}

fn names(names: &[&str]) -> Vec<(String, Vec<u8>)> {
    let seed = |(index, name): (usize, &&str)| (index.to_string(), name.as_bytes().to_vec());
    names.iter().enumerate().map(seed).collect()
}

/// Choices without a plan.
fn choices(seed: u64) -> (String, Vec<u8>) {
    let mut random = crate::mutate::Random::new(seed);
    let len = 200 + random.below(400);
    (
        seed.to_string(),
        (0..len).map(|_| random.next() as u8).collect(),
    )
}

/// Files of the test data that are there.
fn test_data(paths: &[&str]) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let read = |path: &&str| {
        Some((
            path.replace('/', "-"),
            std::fs::read(folder.join(path)).ok()?,
        ))
    };
    paths.iter().filter_map(read).collect()
}

fn event_pipe() -> Vec<(String, Vec<u8>)> {
    let spec = || {
        TypeSpec::new("Source", 1, 2)
            .named("Event")
            .at_level(3, 4)
            .with_opcode(5)
            .field("Count", FieldKind::U32)
    };
    let nettrace = |mut writer: NettraceWriter, v6: bool| {
        let described = writer.define(spec().field("List", FieldKind::array_of(FieldKind::UTF16)));
        let native = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
        let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
        let method = Method {
            start: 0x1000,
            size: 64,
            names: Some(("T", "M", "void ()")),
            ..Method::default()
        };
        for time in 0..4 {
            writer.event(native, time, 7, &[0x1000, 0x2000], &method.encode(2));
            writer.event(sample, time, 7, &[0x1010, 0x2000], &[2, 0, 0, 0]);
            let labels = [
                LabelSpec::Text("key".into(), "value".into()),
                LabelSpec::Number("n".into(), -1),
            ];
            writer.record(&EventSpec {
                activity: [1; 16],
                labels: if v6 { &labels } else { &[] },
                ..EventSpec::new(described, time - 1, 8).captured_by(9)
            });
            if time == 1 {
                writer.lose(7, 1);
                writer.sequence_point_with(if v6 { 3 } else { 0 });
            }
        }
        if v6 {
            writer.remove_thread(None, 7);
        }
        writer.finish()
    };
    let netperf = |mut writer: NetperfWriter| {
        let described = writer.define(&spec());
        for time in 0..3 {
            writer.event(described, time, 7, &[0x1000, 0x2000], b"payload");
        }
        writer.finish()
    };
    vec![
        ("v4".into(), nettrace(NettraceWriter::v4(), false)),
        (
            "v4-plain".into(),
            nettrace(NettraceWriter::v4().uncompressed(), false),
        ),
        ("v5".into(), nettrace(NettraceWriter::v5(), false)),
        ("v6".into(), nettrace(NettraceWriter::v6(), true)),
        (
            "v6-plain".into(),
            nettrace(NettraceWriter::v6().uncompressed(), true),
        ),
        ("netperf-1".into(), netperf(NetperfWriter::v1())),
        ("netperf-2".into(), netperf(NetperfWriter::v2())),
        ("netperf-3".into(), netperf(NetperfWriter::v3())),
    ]
}

fn etw() -> Vec<(String, Vec<u8>)> {
    let trace = |wide: bool, compress: bool| {
        let options = Options {
            wide,
            compress,
            buffer_size: 2048,
            ..Options::default()
        };
        let mut w = EtlWriter::new(Vec::new(), options)?;
        for us in 1..8 {
            let at = At::us(us * 10).pid(4).tid(10);
            w.sample(at, 0x1000, 10)?;
            let stack = Stack {
                event: at,
                pid: 4,
                tid: 10,
                addresses: &[0x1000, 0x2000],
            };
            w.stack(At::us(us * 10 + 1), &stack)?;
            w.cswitch(At::us(us * 10 + 2), 10, 11)?;
        }
        w.finish()
    };
    let forms = [
        ("wide", true, false),
        ("narrow", false, false),
        ("compressed", true, true),
    ];
    let made = forms.map(|(name, wide, compress)| {
        let made: std::io::Result<Vec<u8>> = trace(wide, compress);
        (name.to_owned(), made.expect("memory"))
    });
    made.into()
}

fn perf() -> Vec<(String, Vec<u8>)> {
    let fill = |mut writer: PerfWriter| {
        writer.comm(1_000, 4, 4, "app");
        writer.mmap2(1_001, 4, 0x1000, 0x1000, 0, "/bin/app");
        for time in 0..5 {
            writer.sample(2_000 + time, 4, 4, &[0x1010, 0x1020]);
        }
        writer.round();
        writer.exit(3_000, 4, 4);
        writer
    };
    let little = fill(PerfWriter::new(PerfAttr::default()));
    let big = fill(PerfWriter::new(PerfAttr::default()).big_endian());
    vec![
        ("file".into(), little.file()),
        ("pipe".into(), little.pipe()),
        ("compressed".into(), little.compressed(128).file()),
        ("big-endian".into(), big.file()),
    ]
}

/// A cabinet of one file.
fn cabinet(bytes: &[u8]) -> Vec<u8> {
    let mut builder = cab::CabinetBuilder::new();
    let folder = builder.add_folder(cab::CompressionType::MsZip);
    folder.add_file("foo.pdb");
    let mut writer = builder.build(Cursor::new(Vec::new())).expect("a cabinet");
    while let Some(mut file) = writer.next_file().expect("a file of it") {
        file.write_all(bytes).expect("room for it");
    }
    writer.finish().expect("its end").into_inner()
}

/// Metadata as text, and a packet of two events.
fn ctf(is_kernel: bool) -> (String, Vec<u8>) {
    let layout = CtfLayout {
        is_kernel,
        ..CtfLayout::default()
    };
    let mut trace = CtfTrace::new(layout, &[("vpid", CtfType::Signed(32))]);
    let id = trace.event("P:E", &[("data", CtfType::Bytes), ("text", CtfType::Text)]);
    let events = [1_000, 2_000].map(|time| CtfEvent {
        time,
        id,
        context: vec![CtfValue::Number(7)],
        fields: vec![CtfValue::Bytes(b"abc"), CtfValue::Text("text")],
    });
    let bytes = [
        trace.text().as_bytes(),
        &[0],
        &trace.packet(0, 0, 0, &events),
    ]
    .concat();
    let name = if is_kernel { "kernel" } else { "user" };
    (name.to_owned(), bytes)
}

/// How a function at 0x1000 keeps its caller: a common entry, and one of its own.
fn call_frames() -> Vec<u8> {
    let sized = |mut body: Vec<u8>| {
        body.resize(body.len().next_multiple_of(8) + 4, 0);
        [&(body.len() as u32).to_le_bytes()[..], &body].concat()
    };
    // Version 1, absolute addresses; steps of 1 and -8, the return address in column 16; the frame
    // is the stack pointer plus 8, and the return address is 8 before it.
    let common = [
        &[0; 4][..],
        b"\x01zR\0\x01\x78\x10\x01\x00",
        &[0x0c, 7, 8, 0x90, 1],
    ];
    let common = sized(common.concat());
    let back = (common.len() as u32 + 4).to_le_bytes();
    let own = [
        &back[..],
        &0x1000_u64.to_le_bytes(),
        &0x40_u64.to_le_bytes(),
        // A push at 1, its register, and an expression.
        &[0, 0x41, 0x0e, 16, 0x86, 2, 0x10, 3, 2, 0x77, 8],
    ];
    [common, sized(own.concat()), vec![0; 4]].concat()
}

fn jitdump() -> Vec<u8> {
    let mut dump = JitdumpWriter::new(false, 4, 0);
    dump.lines(1, 0x1000, &[(0x1000, 7, Some("a.js")), (0x1004, 8, None)]);
    dump.unwinding(1, &[1; 8], &[2; 4]);
    let index = dump.load(2, 4, 0x1000, "f", &[0x90; 16]);
    dump.moved(3, 4, 0x1000, 0x2000, 16, index);
    dump.file().to_vec()
}

/// A TRACE_EVENT_INFO with one field, after its length, and a payload.
fn description() -> Vec<u8> {
    let mut info = vec![0_u8; 112 + 24];
    info[40] = 1;
    // Counts of properties, all and on the top level.
    info[100] = 1;
    info[104] = 1;
    let name = info.len() as u32;
    info[112 + 4..][..4].copy_from_slice(&name.to_le_bytes());
    info[112 + 8] = 8;
    info.extend(chronosym_support::etl::utf16("Count"));
    [&(info.len() as u16).to_le_bytes()[..], &info, &[7, 0, 0, 0]].concat()
}

/// The lengths of the sections of a program, and the sections.
fn debug_sections() -> Vec<u8> {
    let sections = object::program();
    let mut lens: Vec<u16> = sections[1..].iter().map(|s| s.4.len() as u16).collect();
    lens.resize(8, 0);
    let lens = lens.into_iter().flat_map(u16::to_le_bytes);
    lens.chain(sections[1..].iter().flat_map(|s| s.4.clone()))
        .collect()
}

/// These bytes in a gzip file.
#[must_use]
pub fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// These entries in a zip file.
#[must_use]
pub fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, zip::write::SimpleFileOptions::default())
            .expect("memory");
        zip.write_all(bytes).expect("memory");
    }
    zip.finish().expect("memory").into_inner()
}

/// Lines of crash logs in several forms.
const CRASH_LOG: &str = "./prog(+0x11c1)[0x55d0c0a011c1]\n\
    #1 0x55d0 in f (/srv/prog+0x11c1) (BuildId: c0ffee)\n\
    #01 pc 00000000000011c1  /lib/prog (f(int)+32) (BuildId: c0ffee)\n\
    func+0x1f/0x60 [mod]\n\
    prog[1]: segfault at 0 ip 11c1 sp 7ffd error 4 in prog[11c1,55d0+a000]\n\
    2   prog  0x55d0c0a011c1 0x55d0c0a00000 + 4545\n\
    \x1b[31mprog!f+0x20\x1b[0m\n\
    55d0c0a00000-55d0c0a04000 r-xp 00001000 fe:01 1234 /srv/prog\n\
    at N.T.M() in App.dll:token 0x6000001+0x1a\n";
