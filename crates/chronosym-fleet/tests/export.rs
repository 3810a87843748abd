//! Exports have the samples of the recording, with its totals to the nanosecond.

mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use chronosym::facts::{At, Image, Method, Sample};
use chronosym::{
    Action, Diagnostics, Filter, Options, SampleKind, Session, SymbolSource, Timeline, Weight,
};
use chronosym_fleet::{Detail, Exporter, Format, FrameNames, Trace};
use parquet::file::reader::{FileReader, SerializedFileReader};
use tables::{Rows, Value};

fn open(name: &str) -> (Arc<Timeline>, Diagnostics) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/clr10/traces");
    let recording = chronosym::open(folder.join(name)).unwrap();
    recording.timeline(Options::default()).unwrap()
}

fn export(folder: &Path, format: Format, name: &str, timeline: &Arc<Timeline>) {
    let exporter = Exporter::new(folder).format(format);
    exporter.export(&Trace::new(name, timeline)).unwrap();
}

/// Samples and time by label: in the innermost frame, and in any frame of the stack.
type Totals = BTreeMap<(bool, String), (u64, u64)>;

fn add(totals: &mut Totals, stack: &[String], samples: u64, time: u64) {
    let mut add = |is_self, label: &String| {
        let total = totals.entry((is_self, label.clone())).or_default();
        *total = (total.0 + samples, total.1 + time);
    };
    if let Some(leaf) = stack.first() {
        add(true, leaf);
    }
    for label in stack.iter().collect::<BTreeSet<_>>() {
        add(false, label);
    }
}

fn totals_of(timeline: &Arc<Timeline>) -> Totals {
    let profile = timeline.profile(&Filter::default(), None);
    let mut totals = Totals::new();
    for entry in &profile.entries {
        let frames = profile.resolver.stack(entry.stack);
        let labels = frames.map(|frame| profile.resolver.frame(frame).label().to_owned());
        let labels: Vec<String> = labels.collect();
        add(&mut totals, &labels, entry.samples, entry.time_ns);
    }
    totals
}

fn totals_in(folder: &Path) -> Totals {
    let labels: BTreeMap<i64, String> = tables::read(folder, "frames")
        .into_iter()
        .map(|row| (row["frame_id"].number(), row["label"].text().to_owned()))
        .collect();
    let stacks: BTreeMap<i64, (Option<i64>, i64)> = tables::read(folder, "stacks")
        .into_iter()
        .map(|row| {
            let caller = row["caller_id"].some_number();
            (row["stack_id"].number(), (caller, row["frame_id"].number()))
        })
        .collect();
    let mut totals = Totals::new();
    for row in tables::read(folder, "samples") {
        let mut stack = Vec::new();
        let mut next = row["stack_id"].some_number();
        while let Some((caller, frame)) = next.map(|id| stacks[&id]) {
            stack.push(labels[&frame].clone());
            next = caller;
        }
        let is_time = row["unit"] == Value::Text("ns".to_owned());
        let weight = row["weight"].some_number().filter(|_| is_time);
        add(&mut totals, &stack, 1, weight.unwrap_or(0) as u64);
    }
    totals
}

#[test]
fn totals_are_those_of_the_trace() {
    for name in ["all", "linux", "memory", "rich", "reuse", "norundown"] {
        let (timeline, _) = open(&format!("{name}.nettrace.zip"));
        let expected = totals_of(&timeline);
        assert!(expected.values().any(|total| total.1 > 0), "{name}");
        for format in [Format::Parquet, Format::Arrow] {
            let folder = tempfile::tempdir().unwrap();
            export(folder.path(), format, name, &timeline);
            assert_eq!(totals_in(folder.path()), expected, "{name}, {format:?}");
        }
    }
}

fn export_sums(folder: &Path, format: Format, timeline: &Arc<Timeline>) {
    let exporter = Exporter::new(folder).format(format).detail(Detail::Sums);
    exporter.export(&Trace::new("x", timeline)).unwrap();
}

#[test]
fn sums_have_the_totals_of_the_trace_in_one_table() {
    for name in ["all", "linux", "memory", "rich", "reuse", "norundown"] {
        let (timeline, _) = open(&format!("{name}.nettrace.zip"));
        for format in [Format::Parquet, Format::Arrow] {
            let folder = tempfile::tempdir().unwrap();
            export_sums(folder.path(), format, &timeline);
            let mut totals = Totals::new();
            let rows = tables::read(folder.path(), "profiles");
            for row in &rows {
                let labels = match &row["stack"] {
                    Value::List(labels) => labels.as_slice(),
                    _ => &[],
                };
                let labels: Vec<String> = labels.iter().map(|it| it.text().to_owned()).collect();
                let is_time = row["unit"] == Value::Text("ns".to_owned());
                let weight = row["weight"].some_number().filter(|_| is_time);
                let samples = row["count"].number() as u64;
                add(&mut totals, &labels, samples, weight.unwrap_or(0) as u64);
            }
            assert_eq!(totals, totals_of(&timeline), "{name}, {format:?}");
            let keys = rows.iter().map(|row| {
                let mut row = row.clone();
                row.remove("weight");
                row.remove("count");
                format!("{row:?}")
            });
            let keys: BTreeSet<String> = keys.collect();
            assert_eq!(keys.len(), rows.len(), "a row for each sum");
            let mut folders: Vec<_> = std::fs::read_dir(folder.path())
                .unwrap()
                .map(|it| it.unwrap().file_name())
                .collect();
            folders.sort();
            assert_eq!(folders, ["diagnostics", "profiles"]);
        }
    }
}

#[test]
fn sums_keep_threads_and_activities_apart() {
    let mut session = Session::new(Options::default());
    let at = |thread, time| At::new(time).process(42).thread(thread);
    let run = Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", "");
    session.apply(at(1, 0), run);
    let sample = |kind, ns| Sample::new(kind).weighing(Weight::Ns(ns));
    for (thread, time, kind, ns) in [
        (1, 10, SampleKind::Cpu, 5),
        (2, 20, SampleKind::Cpu, 7),
        (1, 30, SampleKind::Cpu, 11),
    ] {
        session.sample(at(thread, time), &[0x1010], sample(kind, ns));
    }
    let folder = tempfile::tempdir().unwrap();
    export_sums(folder.path(), Format::Parquet, &session.finish());
    let rows = tables::read(folder.path(), "profiles");
    let shown = rows.iter().map(|row| {
        let of = |name: &str| row[name].number();
        [
            of("tid"),
            of("weight"),
            of("count"),
            of("last") - of("first"),
        ]
    });
    assert_eq!(shown.collect::<Vec<_>>(), [[1, 16, 2, 20], [2, 7, 1, 20]]);
    assert_eq!(
        rows[0]["stack"],
        Value::List(vec![Value::Text("Ns.Type.Run".to_owned())])
    );
}

#[test]
fn both_formats_have_the_same_rows() {
    let (timeline, _) = open("all.nettrace.zip");
    let folders = [Format::Parquet, Format::Arrow].map(|format| {
        let folder = tempfile::tempdir().unwrap();
        export(folder.path(), format, "all", &timeline);
        folder
    });
    for table in [
        "samples",
        "stacks",
        "frames",
        "processes",
        "modules",
        "diagnostics",
    ] {
        let [parquet, arrow]: [Rows; 2] =
            folders.each_ref().map(|it| tables::read(it.path(), table));
        assert_eq!(parquet, arrow, "{table}");
        assert_eq!(parquet.is_empty(), table == "diagnostics", "{table}");
    }
}

/// A process whose code is at `base`, with samples in two methods and an image.
fn session(pid: u32, base: u64) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    session.facts().start_unix_ns = Some(1_700_000_000_000_000_000 + i128::from(pid));
    let at = At::new(0).process(pid).thread(7);
    let mut image = Image::new(Action::Load, base + 0x10_0000, 0x1000, "/lib/libc.so.6");
    image.build_id = "c0ffee";
    session.apply(at, image);
    let method = |id, start| Method::new(Action::Load, id, start, 64);
    session.apply(at, method(1, base).named("Ns.Type", "Run", "void ()"));
    session.apply(at, method(2, base + 64).named("Ns.Type", "Main", "void ()"));
    let sample = Sample::new(SampleKind::Cpu).weighing(Weight::Ns(1000));
    for time in [100, 300, 200] {
        let stack = [base + 0x10_0010, base + 8, base + 70];
        session.sample(at.at(time), &stack, sample);
    }
    session.finish()
}

fn ids(rows: &Rows, column: &str) -> BTreeSet<i64> {
    rows.iter().map(|row| row[column].number()).collect()
}

#[test]
fn equal_stacks_have_equal_ids_in_all_files() {
    let folders = [(1, 0x10_0000), (2, 0x7f00_0000)].map(|(pid, base)| {
        let folder = tempfile::tempdir().unwrap();
        export(folder.path(), Format::Parquet, "x", &session(pid, base));
        folder
    });
    let [first, second] = folders
        .each_ref()
        .map(|folder| ids(&tables::read(folder.path(), "stacks"), "stack_id"));
    assert_eq!(first.len(), 3);
    assert_eq!(first, second);
}

#[test]
fn samples_are_in_time_order_with_their_process() {
    let folder = tempfile::tempdir().unwrap();
    let timeline = session(42, 0x10_0000);
    let mut trace = Trace::new("s3://x/a.nettrace", &timeline);
    trace.host = Some(chronosym::Host::new("web-1", "b00t"));
    Exporter::new(folder.path()).export(&trace).unwrap();
    let rows = tables::read(folder.path(), "samples");
    let times: Vec<i64> = rows.iter().map(|row| row["time"].number()).collect();
    let start = 1_700_000_000_000_000_042;
    assert_eq!(times, [100, 200, 300].map(|ns| start + ns));
    let first = &rows[0];
    assert_eq!(first["trace"].text(), "s3://x/a.nettrace");
    assert_eq!(
        (first["host"].text(), first["boot"].text()),
        ("web-1", "b00t")
    );
    assert_eq!((first["pid"].number(), first["tid"].number()), (42, 7));
    assert_eq!(
        (first["weight"].number(), first["unit"].text()),
        (1000, "ns")
    );
    assert_eq!(
        (first["kind"].text(), first["activity"].text()),
        ("cpu", "on_cpu")
    );
}

#[test]
fn addresses_are_those_in_images_or_in_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::new(folder.path()).names(FrameNames::Addresses);
    let timeline = session(42, 0x10_0000);
    exporter.export(&Trace::new("x", &timeline)).unwrap();
    let rows = tables::read(folder.path(), "frames");
    let shown = rows.iter().map(|row| {
        assert_eq!((&row["method"], &row["file"]), (&Value::None, &Value::None));
        let identity = (row["identity"] != Value::None).then(|| row["identity"].text().to_owned());
        (
            identity,
            row["rva"].some_number(),
            row["address"].some_number(),
        )
    });
    let expected = [
        (None, None, Some(0x10_0000 + 70)),
        (None, None, Some(0x10_0000 + 8)),
        (Some("c0ffee".to_owned()), Some(0x10), None),
    ];
    assert_eq!(shown.collect::<BTreeSet<_>>(), expected.into());
}

#[test]
fn row_groups_can_be_skipped_by_time() {
    let mut session = Session::new(Options::default());
    let at = At::new(0).process(1).thread(1);
    for time in 0..300_000 {
        session.sample(at.at(time * 1000), &[0x1000 + time % 50], Sample::cpu());
    }
    let folder = tempfile::tempdir().unwrap();
    export(folder.path(), Format::Parquet, "x", &session.finish());
    let file = tables::files(folder.path(), "samples").remove(0);
    let reader = SerializedFileReader::new(std::fs::File::open(file).unwrap()).unwrap();
    let metadata = reader.metadata();
    let column = metadata.file_metadata().schema_descr().columns().iter();
    let time = column
        .enumerate()
        .find(|it| it.1.name() == "time")
        .unwrap()
        .0;
    let bounds = metadata.row_groups().iter().map(|group| {
        assert_eq!(group.sorting_columns().unwrap()[0].column_idx, time as i32);
        let statistics = group.column(time).statistics().unwrap();
        let of = |bytes: Option<&[u8]>| i64::from_le_bytes(bytes.unwrap().try_into().unwrap());
        [
            of(statistics.min_bytes_opt()),
            of(statistics.max_bytes_opt()),
        ]
    });
    let bounds: Vec<[i64; 2]> = bounds.collect();
    assert!(bounds.len() >= 3, "{bounds:?}");
    assert!(bounds.concat().is_sorted(), "{bounds:?}");
}

#[test]
fn an_unreadable_recording_is_a_diagnostic() {
    let folder = tempfile::tempdir().unwrap();
    let exporter = Exporter::new(folder.path());
    exporter
        .unreadable("x.nettrace", "it is not a trace")
        .unwrap();
    let rows = tables::read(folder.path(), "diagnostics");
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0]["kind"].text(), rows[0]["text"].text()),
        ("damage", "it is not a trace")
    );
    assert!(!folder.path().join("samples").exists());
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("samples"), "").unwrap();
    let timeline = session(1, 0x10_0000);
    let error = Exporter::new(folder.path()).export(&Trace::new("x", &timeline));
    assert!(error.unwrap_err().to_string().contains("samples"));
}

/// Symbols are used for names, and left alone where only addresses are wanted.
#[test]
fn symbols_name_frames() {
    struct Symbols;
    impl SymbolSource for Symbols {
        fn native(
            &self,
            _: &chronosym::ImageRef<'_>,
            _: u64,
        ) -> Result<Vec<chronosym::NativeFrame>, chronosym::NameReason> {
            Ok(vec![chronosym::NativeFrame::new("malloc")])
        }
    }
    let timeline = session(1, 0x10_0000);
    for (names, expected) in [(FrameNames::Named, 1), (FrameNames::Addresses, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let mut trace = Trace::new("x", &timeline);
        trace.symbols = Some(Arc::new(Symbols));
        Exporter::new(folder.path())
            .names(names)
            .export(&trace)
            .unwrap();
        let rows = tables::read(folder.path(), "frames");
        let named = rows
            .iter()
            .filter(|row| row["label"].text() == "libc!malloc");
        assert_eq!(named.count(), expected, "{rows:?}");
    }
}
