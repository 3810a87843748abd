//! Code that jitdump files and perf maps describe.

use chronosym::{
    Certainty, ClockMatch, Evidence, LineReason, OpenError, Opener, Position, SymbolSource,
};
use chronosym_support::perf::JitdumpWriter;

use super::{JIT, PID, SECOND, frame, name, open, open_with, profile, runtime, started_at};

#[test]
fn a_jitdump_has_lifetimes_lines_and_moves() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let mut dump = JitdumpWriter::new(false, PID, 0);
    dump.lines(
        SECOND + 50,
        JIT,
        &[(JIT, 3, Some("a.js")), (JIT + 8, 4, None)],
    );
    dump.load(SECOND + 100, PID, JIT, "first", &[0x90; 32]);
    let index = dump.load(SECOND + 200, PID, JIT + 16, "second", &[0x90; 32]);
    // Onto itself.
    dump.moved(SECOND + 300, PID, JIT + 16, JIT + 32, 32, index);
    let files: [(&str, &[u8]); 2] = [("perf.data", &perf.file()), ("jit-1.dump", dump.file())];
    let timeline = open(&files);
    assert_eq!(name(&timeline, JIT + 4, 50), None);
    let first = frame(&timeline, PID, JIT + 9, 150);
    assert_eq!(
        (first.name(), first.evidence),
        (Ok("first"), Some(Evidence::JitDump))
    );
    let line = first.line.expect("it has a line");
    assert_eq!((&*line.file, line.line), ("a.js", 4));
    assert_eq!(name(&timeline, JIT + 20, 250).as_deref(), Some("second"));
    assert_eq!(name(&timeline, JIT + 20, 350), None);
    assert_eq!(name(&timeline, JIT + 60, 350).as_deref(), Some("second"));
    let recordings = &timeline.facts().recordings;
    assert_eq!(recordings.len(), 2);
    assert_eq!(recordings[1].clock, ClockMatch::Same);
    struct WithoutLines;
    impl SymbolSource for WithoutLines {
        fn wants_lines(&self) -> bool {
            false
        }
    }
    let process = timeline.process_of(PID, 150).expect("the process");
    let without = timeline.frames(process, JIT + 9, 150, Position::Exact, Some(&WithoutLines));
    assert_eq!(without[0].line, Err(LineReason::LinesDisabled));
    // By itself, too.
    let alone = open(&[("jit-1.dump", dump.file())]);
    assert_eq!(name(&alone, JIT + 4, 20).as_deref(), Some("first"));
}

#[test]
fn perf_maps_are_the_last_resort_and_contradictions_are_reported() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let map = format!(
        "{JIT:x} 20 once\n{:x} 20 other\n{:x} 8 alone\n",
        JIT + 16,
        JIT + 64
    );
    let runtime = runtime(started_at(SECOND), &[("Known", JIT, 100, Some(500))]);
    let timeline = open(&[
        ("perf.data", &perf.file()),
        ("perf-4242.map", map.as_bytes()),
        ("app.nettrace", &runtime),
    ]);
    assert_eq!(name(&timeline, JIT + 20, 300).as_deref(), Some("N.T.Known"));
    let guess = frame(&timeline, PID, JIT + 20, 600);
    assert_eq!(
        (guess.name(), guess.certainty),
        (Ok("other"), Some(Certainty::Approximate))
    );
    let alone = frame(&timeline, PID, JIT + 64, 600);
    assert_eq!(
        (alone.name(), alone.certainty),
        (Ok("alone"), Some(Certainty::Inferred))
    );
    // A map alone has no process.
    let map: &[u8] = map.as_bytes();
    let refused = open_with(Opener::new(), &[("perf-4242.map", map)]);
    assert!(matches!(refused, Err(OpenError::NotATrace { .. })));
}
