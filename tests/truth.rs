//! The expected stacks in traces: every frame of every `Workload-Truth` event has the right name,
//! offset and IL offset.

mod workload;

use chronosym::{Filter, Resolver};

use workload::{Report, check, load, name_of};

fn assert_truth(traces: &[&str], caller_offset: u64, least_frames: u64) {
    let mut report = Report::default();
    for name in traces {
        check(&load(name), caller_offset, &mut report);
    }
    println!(
        "{} frames, {} IL offsets, {} P/Invoke frames",
        report.frames, report.il, report.stubs
    );
    let faults = report.faults();
    assert!(
        faults.is_empty(),
        "{} of {} frames are wrong:\n{}",
        faults.len(),
        report.frames,
        faults.join("\n")
    );
    assert!(
        report.frames >= least_frames,
        "only {} frames were compared",
        report.frames
    );
}

#[test]
fn truth_of_net_10() {
    let traces = [
        "all", "reuse", "rich", "entry", "default", "attach", "r2r", "memory",
    ];
    let paths = traces.map(|t| format!("clr10/traces/{t}.nettrace.zip"));
    assert_truth(&paths.each_ref().map(String::as_str), 1, 9_000);
}

#[test]
fn truth_of_net_9() {
    assert_truth(&["clr10/traces/net9-rich.nettrace.zip"], 1, 300);
}

#[test]
fn truth_of_net_core_3_1() {
    assert_truth(
        &[
            "clr31/workload/traces/all.nettrace.zip",
            "clr31/workload/traces/reuse.nettrace.zip",
        ],
        0,
        7_000,
    );
}

#[test]
fn truth_of_inlined_frames() {
    for name in [
        "clr10/traces/rich.nettrace.zip",
        "clr10/traces/net9-rich.nettrace.zip",
    ] {
        let trace = load(name);
        let mut resolver = Resolver::new(&trace.timeline, None);
        let mut checked = 0;
        trace
            .timeline
            .for_each_sample(&Filter::default(), |class, time| {
                let tid = trace
                    .timeline
                    .thread_view(class.thread)
                    .expect("a thread")
                    .tid;
                let Some(event) = trace.logical.get(&(time, tid)) else {
                    return;
                };
                let stack = resolver.resolve(class, time).expect("a stack").0;
                let names: Vec<String> = resolver
                    .stack(stack)
                    .map(|id| name_of(resolver.frame(id)))
                    .collect();
                let above = names
                    .iter()
                    .position(|n| n.ends_with("Truth.Inlined"))
                    .expect("the frame that wrote the event");
                let wanted: Vec<&str> =
                    event.frames.iter().map(|(name, _)| name.as_str()).collect();
                let found: Vec<&str> = names[above + 1..]
                    .iter()
                    .take(wanted.len())
                    .map(|n| n.rsplit('.').next().unwrap_or_default())
                    .collect();
                assert_eq!(found, wanted, "{name} {} at {time}", event.site);
                checked += 1;
            });
        assert!(checked >= 27, "{name}: only {checked} chains");
    }
}
