//! Which process of a profile a recording belongs to.

use chronosym::{Opener, ProcessMatch};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::Method;
use chronosym_support::perf::PerfWriter;
use chronosym_support::trace::{EventSpec, TraceInfo};

use super::{JIT, PID, SECOND, frame, name, open, open_with, profile, runtime, started_at};

#[test]
fn a_process_of_a_container_is_the_given_one() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let info = TraceInfo {
        process_id: 1,
        ..started_at(SECOND)
    };
    let runtime = runtime(info, &[("Run", JIT, 100, None)]);
    let files: [(&str, &[u8]); 2] = [("perf.data", &perf.file()), ("a.nettrace", &runtime)];
    let plain = open(&files);
    assert_eq!(name(&plain, JIT, 300), None);
    let (mapped, _) = open_with(Opener::new().map_pid(1, PID), &files).expect("both");
    assert_eq!(name(&mapped, JIT, 300).as_deref(), Some("N.T.Run"));
    assert_eq!(mapped.processes().filter(|p| p.pid == Some(1)).count(), 0);
}

#[test]
fn processes_of_containers_are_found_by_their_mappings() {
    let info = TraceInfo {
        process_id: 1,
        ..started_at(SECOND)
    };
    let runtime = runtime(info, &[("Run", JIT, 100, None)]);
    let with = |change: &dyn Fn(&mut PerfWriter)| {
        let mut perf = profile();
        perf.sample(SECOND + 900, PID, PID, &[JIT]);
        change(&mut perf);
        let timeline = open(&[("perf.data", &perf.file()), ("a.nettrace", &runtime)]);
        let own = timeline.facts().recordings[1].own_pid;
        (name(&timeline, JIT, 950), own)
    };
    let named = (Some("N.T.Run".to_owned()), Some((1, PID)));
    let dump = "/tmp/jit-1.dump";
    let mapped = |perf: &mut PerfWriter| perf.mmap2(SECOND + 2, PID, JIT, 0x1000, 0, dump);
    assert_eq!(with(&mapped), named);
    let contain = |perf: &mut PerfWriter, pid, inode| {
        let links = [4, 1, 4, 2, 4, 3, 4, inode];
        let body = perf.body().u32(pid).u32(pid).u64(4).words(&links);
        perf.kernel_record(16, 0, body, SECOND + 2, pid);
        let library = "/usr/share/dotnet/libcoreclr.so";
        perf.mmap2(SECOND + 3, pid, 0x50_0000, 0x1000, 0, library);
    };
    assert_eq!(with(&|perf| contain(perf, PID, 0xf000_0152)), named);
    // Two candidates are ambiguous; a process outside containers is not a candidate, and if process
    // 1 itself runs .NET, it matches.
    for (pids, inode) in [
        (&[PID, 99][..], 0xf000_0152),
        (&[PID], 0xefff_fffc),
        (&[PID, 1], 0xf000_0152),
    ] {
        let found = with(&|perf| pids.iter().for_each(|&pid| contain(perf, pid, inode)));
        assert_eq!(found, (None, None), "{pids:?}");
    }
}

/// A recording of process 1 of a container, with precompiled methods from an address on.
fn contained(start: u64, qpc_start: u64) -> Vec<u8> {
    let info = TraceInfo {
        process_id: 1,
        ..started_at(qpc_start)
    };
    let mut writer = NettraceWriter::v4().info(info);
    let load = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
    for id in 0..10 {
        let method = Method {
            id: id + 1,
            start: start + 0x100 * id,
            size: 0x100,
            flags: 0,
            names: Some(("N.T", "Precompiled", "void ()")),
            ..Method::default()
        };
        writer.event(load, 100, 7, &[], &method.encode(2));
    }
    writer.finish()
}

/// Maps a runtime and an assembly, the latter at an address.
fn map_dotnet(perf: &mut PerfWriter, pid: u32, assembly: u64) {
    let runtime = "/usr/share/dotnet/libcoreclr.so";
    perf.mmap2(SECOND + 3, pid, 0x50_0000, 0x1000, 0, runtime);
    perf.mmap2(SECOND + 3, pid, assembly, 0x1_0000, 0, "/app/App.dll");
}

// Rule 23.
#[test]
fn recordings_are_of_the_process_that_has_their_code_mapped() {
    const OTHER: u32 = 99;
    const FIRST: u64 = 0x7f11_0000_0000;
    const SECOND_CODE: u64 = 0x7f22_0000_0000;
    let mut perf = profile();
    // The machine's own first process, which runs another program.
    perf.comm(SECOND, 1, 1, "systemd");
    perf.mmap2(
        SECOND + 1,
        1,
        0x10_0000,
        0x1000,
        0,
        "/usr/lib/systemd/systemd",
    );
    perf.comm(SECOND, OTHER, OTHER, "other");
    map_dotnet(&mut perf, PID, FIRST);
    map_dotnet(&mut perf, OTHER, SECOND_CODE);
    for (pid, address) in [(PID, FIRST), (OTHER, SECOND_CODE), (1, 0x10_0010)] {
        perf.sample(SECOND + 900, pid, pid, &[address + 0x10]);
    }
    let (first, second) = (contained(FIRST, SECOND), contained(SECOND_CODE, SECOND + 1));
    let files: [(&str, &[u8]); 3] = [
        ("perf.data", &perf.file()),
        ("first.nettrace", &first),
        ("second.nettrace", &second),
    ];
    for files in [&files[..2], &files[..], &[files[0], files[2]]] {
        let timeline = open(files);
        for part in &timeline.facts().recordings[1..] {
            let (pid, start) = match part.name.as_str() {
                "first.nettrace" => (PID, FIRST),
                _ => (OTHER, SECOND_CODE),
            };
            assert_eq!(part.own_pid, Some((1, pid)));
            assert_eq!(part.process_match, Some(ProcessMatch::MappedCode));
            let frame = frame(&timeline, pid, start + 0x10, 900);
            assert_eq!(frame.name(), Ok("N.T.Precompiled"));
        }
        let first = timeline.process_of(1, 900).expect("it was sampled");
        assert_eq!(timeline.bodies(first).count(), 0);
    }
}

// Rule 23.
#[test]
fn recordings_of_all_processes_state_which_have_their_code_mapped() {
    const OTHER: u32 = 99;
    const GONE: u32 = 98;
    const CODE: u64 = 0x7f11_0000_0000;
    let mut perf = profile();
    perf.comm(SECOND, OTHER, OTHER, "other");
    for pid in [PID, OTHER] {
        map_dotnet(&mut perf, pid, CODE);
        perf.sample(SECOND + 900, pid, pid, &[CODE + 0x10]);
    }
    // Recorders of whole machines have another clock than perf: wall time joins them.
    let info = TraceInfo {
        process_id: 0,
        ..started_at(SECOND)
    };
    let wall = 1_772_690_828_009_000_000;
    let clock = perf.body().u32(1).u32(1).words(&[wall, SECOND]);
    perf.feature(29, clock.bytes);
    let mut writer = NettraceWriter::v6().info(info);
    let load = writer.event_type("Microsoft-Windows-DotNETRuntime", 143, 2);
    // Another process had the id of the second one, and the third one is not in the perf.data.
    for (pid, start) in [(PID, CODE), (OTHER, CODE + 0x100_0000), (GONE, CODE)] {
        for id in 0..10 {
            let method = Method {
                id: id + 1,
                start: start + 0x100 * id,
                size: 0x100,
                names: Some(("N.T", "Precompiled", "void ()")),
                ..Method::default()
            };
            let payload = method.encode(2);
            writer.record(&EventSpec {
                process: Some(pid),
                ..EventSpec::new(load, 100, u64::from(pid)).payload(&payload)
            });
        }
    }
    let files: [(&str, &[u8]); 2] = [
        ("perf.data", &perf.file()),
        ("all.nettrace", &writer.finish()),
    ];
    let (timeline, diagnostics) = open_with(Opener::new(), &files).expect("they are joined");
    let part = &timeline.facts().recordings[1];
    assert_eq!(
        part.gives,
        "code of all processes, found by their ids; 1 of 3 processes with methods have them mapped"
    );
    assert_eq!(part.process_match, Some(ProcessMatch::ProcessId));
    assert_eq!(
        frame(&timeline, PID, CODE + 0x10, 900).name(),
        Ok("N.T.Precompiled")
    );
    let texts: Vec<&str> = diagnostics.list.iter().map(|it| &*it.text).collect();
    assert_eq!(
        texts,
        [
            "all.nettrace: the process 99 has none of its precompiled methods mapped in perf.data: it may be another one"
        ]
    );
}

// Rule 23.
#[test]
fn recordings_that_contradict_the_process_of_their_id_are_refused() {
    let refusal = |perf: &PerfWriter, runtime: &[u8]| {
        let files: [(&str, &[u8]); 2] = [("perf.data", &perf.file()), ("a.nettrace", runtime)];
        let Err(error) = open_with(Opener::new(), &files) else {
            panic!("it is joined");
        };
        let text = error.to_string();
        assert!(text.contains("--map-pid 1=PID"), "{text}");
        let (mapped, _) = open_with(Opener::new().map_pid(1, 1), &files).expect("as named");
        let evidence = mapped.facts().recordings[1].process_match;
        assert_eq!(evidence, Some(ProcessMatch::MapPid));
        text
    };
    let info = TraceInfo {
        process_id: 1,
        ..started_at(SECOND)
    };
    let mut perf = profile();
    perf.comm(SECOND, 1, 1, "systemd");
    map_dotnet(&mut perf, PID, JIT);
    let text = refusal(&perf, &runtime(info, &[]));
    assert!(text.contains("does not run .NET"), "{text}");
    // Another run of the same container.
    let mut perf = profile();
    perf.comm(SECOND, 1, 1, "app");
    map_dotnet(&mut perf, 1, JIT);
    let text = refusal(&perf, &contained(JIT + 0x100_0000, SECOND));
    assert!(text.contains("precompiled"), "{text}");
}

#[test]
fn a_recording_of_a_process_that_perf_did_not_see_is_reported() {
    let mut perf = profile();
    perf.sample(SECOND + 900, PID, PID, &[JIT]);
    let files: [(&str, &[u8]); 2] = [
        ("perf.data", &perf.file()),
        ("a.nettrace", &contained(JIT, SECOND)),
    ];
    let (_, diagnostics) = open_with(Opener::new(), &files).expect("both");
    let texts: Vec<String> = diagnostics.list.iter().map(ToString::to_string).collect();
    assert!(
        texts.iter().any(|text| text.contains("--map-pid 1=PID")),
        "{texts:?}"
    );
}
