//! Writes a small trace of every EventPipe format into a folder: seeds for the fuzz target `nettrace`.

use std::path::Path;

use chronosym_support::netperf::NetperfWriter;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::trace::{EventSpec, FieldKind, LabelSpec, TypeSpec};

fn spec() -> TypeSpec {
    TypeSpec::new("Source", 1, 2)
        .named("Event")
        .at_level(3, 4)
        .with_opcode(5)
        .field("Count", FieldKind::U32)
}

fn nettrace(mut writer: NettraceWriter, v6: bool) -> Vec<u8> {
    let described = writer.define(spec().field("List", FieldKind::array_of(FieldKind::UTF16)));
    let native = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
    for time in 0..4 {
        writer.event(native, time, 7, &[0x1000, 0x2000], b"payload");
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
}

fn netperf(mut writer: NetperfWriter) -> Vec<u8> {
    let described = writer.define(&spec());
    for time in 0..3 {
        writer.event(described, time, 7, &[0x1000, 0x2000], b"payload");
    }
    writer.finish()
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args_os()
        .nth(1)
        .expect("usage: eventpipe_seeds FOLDER");
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for (name, bytes) in [
        ("v4.nettrace", nettrace(NettraceWriter::v4(), false)),
        (
            "v4-uncompressed.nettrace",
            nettrace(NettraceWriter::v4().uncompressed(), false),
        ),
        ("v5.nettrace", nettrace(NettraceWriter::v5(), false)),
        ("v6.nettrace", nettrace(NettraceWriter::v6(), true)),
        (
            "v6-uncompressed.nettrace",
            nettrace(NettraceWriter::v6().uncompressed(), true),
        ),
        ("v1.netperf", netperf(NetperfWriter::v1())),
        ("v2.netperf", netperf(NetperfWriter::v2())),
        ("v3.netperf", netperf(NetperfWriter::v3())),
    ] {
        std::fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}
