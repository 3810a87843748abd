//! A trace in which everything has a hostile name.

use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{Method, Module, Payload};

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";

/// Hostile names of methods.
pub const NAMES: [&str; 15] = [
    // Terminals: colours, the title, the screen; by C1 codes, too.
    "\u{1b}[31mred\u{1b}]0;title\u{7}",
    "\u{9b}2J\u{7f}\u{8}",
    // Text that deceives readers: reordered, and invisible.
    "\u{202e}gnp.exe\u{2066}x\u{2069}",
    "in\u{200b}vi\u{feff}si\u{200f}b\u{61c}l\u{2060}e\u{fffe}",
    "so\u{ad}ft\u{115f}\u{180e}\u{3164}\u{fe0f}\u{fff9}\u{e0041}",
    // Lines.
    "a\r\nb\tc",
    "a\u{2028}b\u{2029}c",
    // Browsers.
    "</script><script>alert(1)</script>",
    "\" onload=\"alert(1)\" x='",
    "]]></text><image href=x onerror=alert(1)>",
    "--><!--&lt;&#60;script&#62;",
    // Programs that read values.
    "\",\"x\":\"\\",
    "x;y;z 7",
    // Spreadsheets and shells.
    "=cmd|' /C calc'!A0",
    "$(touch x)`touch x`%n%s",
];

/// Hostile names; the last are empty and very long.
pub fn names() -> Vec<String> {
    let long = "</script>\u{1b}[2J\u{202e}\"'".repeat(300);
    let others = [String::new(), long];
    NAMES.map(str::to_owned).into_iter().chain(others).collect()
}

/// The address of a method.
pub fn start(index: usize) -> u64 {
    0x1_0000 + 0x1000 * index as u64
}

/// Everything that has a name is called one of them, and each method is sampled once.
pub fn event_pipe() -> Vec<u8> {
    let mut writer = NettraceWriter::v4();
    let module = writer.event_type(RUNTIME, 152, 2);
    let load = writer.event_type(RUNTIME, 143, 2);
    let sample = writer.event_type("Microsoft-DotNETCore-SampleProfiler", 0, 0);
    let thrown = writer.event_type(RUNTIME, 80, 1);
    let allocated = writer.event_type(RUNTIME, 10, 4);
    let rejected = writer.event_type(RUNTIME, 192, 0);
    for (index, name) in names().iter().enumerate() {
        let name = &**name;
        let (id, time) = (index as u64 + 1, 100 * index as i64);
        let path = format!("/{name}/{name}.dll");
        let loaded = Module {
            id,
            il_path: &path,
            native_path: &path,
            managed_pdb: ([1; 16], 1, &path),
            ..Module::default()
        };
        let other = writer.event_type(name, 1, 0);
        writer.event(other, time, 1, &[], &[]);
        writer.event(module, time, 1, &[], &loaded.encode(2));
        let method = Method {
            id,
            module: id,
            start: start(index),
            size: 0x100,
            token: 0x0600_0001,
            flags: 1,
            names: Some((name, name, name)),
            ..Method::default()
        };
        writer.event(load, time + 1, 1, &[], &method.encode(2));
        let exception = Payload::new().wide(name).wide(name).u64(0).u32(0);
        let exception = exception.u16(0).u16(0).finish();
        writer.event(thrown, time + 2, 1, &[start(index)], &exception);
        let tick = Payload::new().u32(1).u32(0).u16(0).u64(1).u64(7);
        let tick = tick.wide(name).u32(0).u64(0).u64(8).finish();
        writer.event(allocated, time + 2, 1, &[start(index)], &tick);
        // The method being compiled, the caller, the callee, and the reason.
        let mut decision = Payload::new();
        for _ in 0..9 {
            decision = decision.wide(name);
        }
        let decision = decision.u32(0).wide(name).u16(0).finish();
        writer.event(rejected, time, 1, &[], &decision);
        writer.event(sample, time + 2, 1, &[start(index) + 0x10], &[2, 0, 0, 0]);
    }
    writer.finish()
}
