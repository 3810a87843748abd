//! Advice for missing names: each file has commands that get it, and no two commands refer to each
//! other.

mod common;

use chronosym_support::etl::{At, EtlWriter, Op, Options, Process};
use chronosym_support::perf::{PerfAttr, PerfWriter};
use common::{LINUX, arg, run};

const TEXT: u64 = 0xffff_ffff_8100_0000;
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libwork.so.1";

/// A tenth of the samples are in the kernel, the others in a library without a build id.
fn recording(folder: &std::path::Path) -> String {
    let mut perf = PerfWriter::new(PerfAttr::default());
    let body = perf.body().u32(u32::MAX).u32(0);
    let body = body.words(&[TEXT, 0x1000, TEXT]);
    perf.kernel_record(1, 1, body.name("[kernel.kallsyms]_text"), 0, 0);
    perf.comm(1_000, 42, 42, "app");
    perf.mmap2(1_100, 42, 0x7000_0000, 0x2000, 0, LIBRARY);
    for at in 0..10 {
        let address = if at == 0 {
            TEXT + 0x110
        } else {
            0x7000_1000 + at
        };
        perf.sample(2_000 + at, 42, 42, &[address]);
    }
    let path = folder.join("it's.data");
    std::fs::write(&path, perf.file()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn each_missing_file_has_commands_that_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let trace = recording(folder.path());
    let symbols = run(&["symbols", "--format", "json", "--offline", &trace]);
    let symbols: serde_json::Value = serde_json::from_str(&symbols.stdout).unwrap();
    let files = symbols["rows"].as_array().expect("rows");
    let commands = |index: usize| {
        let commands = files[index]["commands"].as_array().expect("commands");
        let commands = commands.iter().map(|it| it.as_str().expect("text"));
        commands.collect::<Vec<_>>().join("\n")
    };
    let quoted = trace.replace('\'', "'\\''");
    assert_eq!(files[0]["module"], "libwork", "the most self time first");
    assert_eq!(files[0]["reason"], "PathNotTrusted");
    let trusting = format!("chronosym top --trust-trace-paths '{quoted}'");
    assert!(commands(0).contains(&trusting), "{}", commands(0));
    assert!(
        commands(0).contains("--symbols libwork.so.1 "),
        "{}",
        commands(0)
    );
    assert!(
        commands(1).contains("--kallsyms kallsyms"),
        "{}",
        commands(1)
    );
    assert_eq!(files.len(), 2);
    let text = run(&["symbols", "--offline", &trace]).stdout;
    assert!(!text.contains("no identity"), "{text}");
}

#[test]
fn no_two_commands_refer_to_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let trace = recording(folder.path());
    let info = run(&["info", &trace]).stdout;
    assert!(info.contains("next: chronosym symbols "), "{info}");
    assert!(info.contains("NO CALL STACKS"), "{info}");
    let top = run(&["top", &trace]).stdout;
    assert!(top.contains("next: `chronosym symbols TRACE`"), "{top}");
    let symbols = run(&["symbols", &trace]).stdout;
    for (name, text) in [("top", top), ("symbols", symbols)] {
        assert!(!text.contains("chronosym info"), "{name}: {text}");
    }
}

/// What records the runtime's events depends on the recorder.
#[test]
fn missing_events_are_recorded_by_the_tool_of_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let mut etw = EtlWriter::new(Vec::new(), Options::default()).unwrap();
    let process = Process {
        pid: 42,
        image: "app.exe",
        ..Process::default()
    };
    etw.process(At::us(10).pid(42).tid(1), Op::Start, &process)
        .unwrap();
    let path = folder.path().join("app.etl");
    std::fs::write(&path, etw.finish().unwrap()).unwrap();
    let trace = path.to_str().unwrap();
    for report in [vec!["runtime", trace], vec!["runtime", "gc", trace]] {
        let text = run(&report).stdout;
        let advice = "to record them: enable the provider Microsoft-Windows-DotNETRuntime:0x1:4";
        assert!(
            text.contains(advice) && !text.contains("dotnet-trace"),
            "{text}"
        );
    }
    let linux = run(&["runtime", "gc", &arg(LINUX)]).stdout;
    assert!(
        linux.contains("dotnet-trace collect --providers "),
        "{linux}"
    );
}
