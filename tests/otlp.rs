//! OTLP profiles as the OpenTelemetry eBPF profiler writes them, made by hand from its source: no
//! profile of a real program was available.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use chronosym::open::Format;
use chronosym::source::otlp::symbolize;
use chronosym::symbols::{StoreConfig, SymbolOptions, Symbolizer};
use chronosym::{
    Diagnostics, Evidence, Filter, Frame, Input, Opener, Options, Profile, SampleSelection,
    Timeline,
};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::r2r::R2rImage;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::profiles::v1development as proto;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;

#[path = "../crates/chronosym-symbols/tests/made/mod.rs"]
mod made;

const BUILD_ID: [u8; 20] = [0xab; 20];
const BEGAN: u64 = 1_700_000_000_000_000_000;

fn testdata(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../testdata")
        .join(path)
}

/// Makes profiles: every table has an empty first element.
#[derive(Default)]
struct Maker {
    dictionary: proto::ProfilesDictionary,
    samples: Vec<proto::Sample>,
}

impl Maker {
    fn new() -> Self {
        let mut maker = Maker::default();
        maker.text("");
        let dictionary = &mut maker.dictionary;
        dictionary.mapping_table.push(Default::default());
        dictionary.location_table.push(Default::default());
        dictionary.function_table.push(Default::default());
        dictionary.link_table.push(Default::default());
        dictionary.attribute_table.push(Default::default());
        dictionary.stack_table.push(Default::default());
        maker
    }

    fn text(&mut self, text: &str) -> i32 {
        let strings = &mut self.dictionary.string_table;
        let at = strings.iter().position(|it| it == text);
        at.unwrap_or_else(|| {
            strings.push(text.to_owned());
            strings.len() - 1
        }) as i32
    }

    fn attribute(&mut self, key: &str, value: any_value::Value) -> i32 {
        let key_strindex = self.text(key);
        let value = Some(AnyValue { value: Some(value) });
        let attributes = &mut self.dictionary.attribute_table;
        attributes.push(proto::KeyValueAndUnit {
            key_strindex,
            value,
            unit_strindex: 0,
        });
        attributes.len() as i32 - 1
    }

    fn named(&mut self, key: &str, value: &str) -> i32 {
        self.attribute(key, any_value::Value::StringValue(value.to_owned()))
    }

    fn mapping(&mut self, name: &str, gnu: &str, hash: &str, range: (u64, u64, u64)) -> i32 {
        let ids = [
            ("process.executable.build_id.gnu", gnu),
            ("process.executable.build_id.htlhash", hash),
        ];
        let ids = ids.into_iter().filter(|(_, id)| !id.is_empty());
        let attribute_indices = ids.map(|(key, id)| self.named(key, id)).collect();
        let filename_strindex = self.text(name);
        let (memory_start, memory_limit, file_offset) = range;
        self.dictionary.mapping_table.push(proto::Mapping {
            memory_start,
            memory_limit,
            file_offset,
            filename_strindex,
            attribute_indices,
        });
        self.dictionary.mapping_table.len() as i32 - 1
    }

    /// A location with one function, unless its name is empty.
    fn location(
        &mut self,
        (mapping_index, address): (i32, u64),
        kind: &str,
        (name, file, line): (&str, &str, i64),
    ) -> i32 {
        let mut lines = Vec::new();
        if !name.is_empty() {
            let function = proto::Function {
                name_strindex: self.text(name),
                filename_strindex: self.text(file),
                ..Default::default()
            };
            self.dictionary.function_table.push(function);
            lines.push(proto::Line {
                function_index: self.dictionary.function_table.len() as i32 - 1,
                line,
                column: 0,
            });
        }
        let attribute_indices = vec![self.named("profile.frame.type", kind)];
        self.dictionary.location_table.push(proto::Location {
            mapping_index,
            address,
            lines,
            attribute_indices,
        });
        self.dictionary.location_table.len() as i32 - 1
    }

    fn sample(&mut self, tid: i64, thread: &str, locations: &[i32], times: &[u64]) {
        let attribute_indices = vec![
            self.named("thread.name", thread),
            self.attribute("thread.id", any_value::Value::IntValue(tid)),
        ];
        self.dictionary.stack_table.push(proto::Stack {
            location_indices: locations.to_vec(),
        });
        self.samples.push(proto::Sample {
            stack_index: self.dictionary.stack_table.len() as i32 - 1,
            attribute_indices,
            timestamps_unix_nano: times.iter().map(|time| BEGAN + time).collect(),
            ..Default::default()
        });
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Option<proto::ValueType> {
        Some(proto::ValueType {
            type_strindex: self.text(name),
            unit_strindex: self.text(unit),
        })
    }

    fn finish(mut self) -> proto::ProfilesData {
        let attribute = |key: &str, value| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
            ..Default::default()
        };
        let text = |text: &str| any_value::Value::StringValue(text.to_owned());
        let resource = Resource {
            attributes: vec![
                attribute("process.pid", any_value::Value::IntValue(42)),
                attribute("process.executable.name", text("app")),
            ],
            ..Default::default()
        };
        let profile = proto::Profile {
            sample_type: self.value_type("samples", "count"),
            period_type: self.value_type("cpu", "nanoseconds"),
            period: 50_000_000,
            time_unix_nano: BEGAN,
            duration_nano: 5_000_000_000,
            samples: self.samples,
            ..Default::default()
        };
        let scope = proto::ScopeProfiles {
            profiles: vec![profile],
            ..Default::default()
        };
        proto::ProfilesData {
            resource_profiles: vec![proto::ResourceProfiles {
                resource: Some(resource),
                scope_profiles: vec![scope],
                ..Default::default()
            }],
            dictionary: Some(self.dictionary),
        }
    }
}

/// A folder with a native program that has DWARF, and a symbolizer of it and of the workload.
fn files() -> (tempfile::TempDir, Arc<Symbolizer>) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sections = made::program();
    let mut note = [4u32, 20, 3].map(u32::to_le_bytes).concat();
    note.extend(b"GNU\0");
    note.extend(BUILD_ID);
    sections.push((".note.gnu.build-id", 7, 2, 0x200, note));
    std::fs::write(folder.path().join("native"), made::elf(&sections)).expect("a file");
    let r2r = std::fs::read(testdata("clr10/r2r/linux-x64/Workload.dll")).expect("testdata");
    std::fs::write(folder.path().join("Precompiled.dll"), r2r).expect("a file");
    let mut config = StoreConfig::new();
    config.folders = vec![folder.path().to_owned(), testdata("clr10/workload")];
    let symbols = Symbolizer::new(config, SymbolOptions::default());
    (folder, Arc::new(symbols))
}

/// The RVA of a precompiled method, and its name.
fn precompiled() -> (u32, String) {
    let bytes = std::fs::read(testdata("clr10/r2r/linux-x64/Workload.dll")).expect("testdata");
    let image = PeImage::parse(&bytes)
        .and_then(R2rImage::open)
        .expect("an image");
    let methods: Vec<_> = image.methods().collect();
    let name = |method| image.method_name(method, &chronosym_pdb::r2r::NoAssemblies);
    let main = methods.iter().find_map(|method| {
        let name = name(method)?.to_string();
        name.contains("Spin.Work")
            .then_some((method.start + 1, name))
    });
    main.expect("the method")
}

/// The file hash and the module version id of an assembly, by independent means.
fn htlhash(path: &Path) -> String {
    let script = "import hashlib,sys;b=open(sys.argv[1],'rb').read();\
        print(hashlib.sha256(b[:4096]+b[-4096:]+len(b).to_bytes(8,'big')).hexdigest()[:32])";
    let out = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(path)
        .output();
    String::from_utf8(out.expect("python3").stdout)
        .expect("hex")
        .trim()
        .to_owned()
}

/// What the profiler writes for a program with native, kernel and .NET frames.
fn ebpf_profile() -> proto::ProfilesData {
    let mut maker = Maker::new();
    let gnu: String = BUILD_ID.iter().map(|byte| format!("{byte:02x}")).collect();
    let native = maker.mapping("native", &gnu, "", (0x7f00_0000_0000, 0x7f00_0010_0000, 0));
    let workload = testdata("clr10/workload/Workload.dll");
    let bytes = std::fs::read(&workload).expect("testdata");
    let mvid = PeImage::parse(&bytes)
        .unwrap()
        .metadata()
        .unwrap()
        .mvid()
        .unwrap();
    let managed = maker.mapping(
        "Workload.dll",
        &mvid.to_string(),
        &htlhash(&workload),
        (0, 0, 0),
    );
    let r2r_hash = htlhash(&testdata("clr10/r2r/linux-x64/Workload.dll"));
    let r2r = maker.mapping("Precompiled.dll", "", &r2r_hash, (0, 0, 0));
    let lost = maker.mapping("libunknown.so", &"cd".repeat(20), "", (0, 0x1000, 0));
    let (rva, _) = precompiled();
    let jit = maker.location(
        (managed, 0xf000_0005_0000_0000),
        "dotnet",
        ("Workload.Plugins.RunOnce", "Workload.dll", 0),
    );
    let locations = [
        maker.location(
            (0, 0xffff_8111_0000_1234),
            "kernel",
            ("do_syscall_64", "vmlinux", 0),
        ),
        maker.location((native, 0x1014), "native", ("", "", 0)),
        jit,
        maker.location((r2r, rva.into()), "dotnet", ("UNRESOLVED", "dotnet", 0)),
        maker.location((lost, 0x123), "native", ("", "", 0)),
        maker.location((0, 7), "python", ("handle", "/srv/app.py", 7)),
    ];
    maker.sample(7, "worker", &locations, &[1_000, 3_000_000]);
    maker.sample(8, "main", &[jit], &[2_000]);
    maker.finish()
}

fn read(bytes: &[u8], files: Option<Arc<Symbolizer>>) -> (Arc<Timeline>, Diagnostics) {
    let mut opener = Opener::new().read_as(Format::Otlp);
    if let Some(files) = files {
        opener = opener.unwind_with(files);
    }
    let input = Input::stream("it", Cursor::new(bytes.to_vec()));
    let recording = opener.open([input]).expect("profiles");
    recording.timeline(Options::default()).expect("profiles")
}

fn frames(profile: &Profile, entry: usize) -> Vec<Frame> {
    let frames = profile.resolver.stack(profile.entries[entry].stack);
    frames
        .map(|id| profile.resolver.frame(id).clone())
        .collect()
}

fn shown(frame: &Frame) -> String {
    let line = frame.line.as_ref().map(|line| {
        let file = line.file.rsplit(['/', '\\']).next().unwrap_or_default();
        format!(" {file}:{}", line.line)
    });
    let module = frame.module().unwrap_or("-");
    let name = frame.name().unwrap_or("?");
    format!("{module} {name}{}", line.unwrap_or_default())
}

#[test]
fn profiles_of_the_ebpf_profiler_are_named() {
    let (_folder, symbols) = files();
    let (timeline, diagnostics) = read(&ebpf_profile().encode_to_vec(), Some(symbols.clone()));
    assert!(diagnostics.list.is_empty(), "{diagnostics:?}");
    assert_eq!(timeline.facts().start_unix_ns, Some(BEGAN.into()));
    assert_eq!(timeline.facts().duration_ns, 5_000_000_000);
    let process = timeline.find_process(42, None).expect("the process");
    assert_eq!(timeline.process_view(process).unwrap().name, Some("app"));

    let profile = timeline.profile(&Filter::default(), Some(symbols));
    assert_eq!(
        (profile.samples(), profile.time_ns()),
        (3, Some(150_000_000))
    );
    let thread = |entry: usize| timeline.thread_view(profile.entries[entry].thread).unwrap();
    let of = |tid| {
        (0..2)
            .find(|&entry| thread(entry).tid == tid)
            .expect("the thread")
    };
    assert_eq!(thread(of(7)).name, Some("worker"));
    let (_, precompiled) = precompiled();
    let all = frames(&profile, of(7));
    let text: Vec<String> = all.iter().map(shown).collect();
    let expected = [
        "- do_syscall_64".to_owned(),
        "native inner unit.c:11".to_owned(),
        "native outer unit.c:7".to_owned(),
        "Workload Workload.Plugins.RunOnce Plugins.cs:21".to_owned(),
        format!("Precompiled {precompiled} Program.cs:101"),
        "libunknown ?".to_owned(),
        "- handle app.py:7".to_owned(),
    ];
    assert_eq!(text, expected);
    assert!(all[1].inlined && !all[2].inlined);
    let evidence: Vec<_> = all.iter().map(|frame| frame.evidence.unwrap()).collect();
    use Evidence::{Image, ImageTable, Profile};
    assert_eq!(
        evidence,
        [Profile, Image, Image, Profile, ImageTable, Image, Profile]
    );
    assert_eq!(shown(&frames(&profile, of(8))[0]), expected[3]);
}

#[test]
fn names_are_added_and_everything_else_is_kept() {
    let (_folder, symbols) = files();
    let before = ebpf_profile();
    let mut bytes = before.encode_to_vec();
    // A field of a later version.
    bytes.extend(b"\xfa\x3e\x03new");
    let done = symbolize(bytes, Some(&*symbols), &*symbols).expect("profiles");
    assert!(done.bytes.windows(6).any(|it| it == b"\xfa\x3e\x03new"));
    assert_eq!((done.locations, done.changed, done.unnamed), (6, 3, 1));
    let mut after = proto::ProfilesData::decode(&*done.bytes).expect("profiles");
    let own = before.dictionary.as_ref().unwrap();
    let dictionary = after.dictionary.as_mut().unwrap();
    let mut named = BTreeMap::new();
    for (index, location) in dictionary.location_table.iter_mut().enumerate() {
        let lines = location.lines.iter().map(|line| {
            let function = &dictionary.function_table[line.function_index as usize];
            let text = |index: i32| &*dictionary.string_table[index as usize];
            let file = text(function.filename_strindex).rsplit('/').next().unwrap();
            format!("{} {file}:{}", text(function.name_strindex), line.line)
        });
        named.insert(index, lines.collect::<Vec<_>>());
        location.lines.clone_from(&own.location_table[index].lines);
    }
    let (_, precompiled) = precompiled();
    assert_eq!(named[&1], ["Workload.Plugins.RunOnce Plugins.cs:21"]);
    assert_eq!(named[&2], ["do_syscall_64 vmlinux:0"]);
    assert_eq!(named[&3], ["inner unit.c:11", "outer unit.c:7"]);
    assert_eq!(named[&4], [format!("{precompiled} Program.cs:101")]);
    assert_eq!(named[&5], [""; 0]);
    assert_eq!(named[&6], ["handle app.py:7"]);
    dictionary.string_table.truncate(own.string_table.len());
    dictionary.function_table.truncate(own.function_table.len());
    assert_eq!(after, before);

    // A second pass has nothing to add.
    let again = symbolize(done.bytes.clone(), Some(&*symbols), &*symbols).expect("profiles");
    assert_eq!((again.changed, again.bytes == done.bytes), (0, true));
}

#[test]
fn a_file_of_another_build_names_nothing() {
    let (folder, symbols) = files();
    let path = folder.path().join("Precompiled.dll");
    let mut bytes = std::fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let done = symbolize(ebpf_profile().encode_to_vec(), Some(&*symbols), &*symbols);
    let done = done.expect("profiles");
    assert_eq!((done.changed, done.unnamed), (2, 2));
}

#[test]
fn files_of_many_messages_are_read_and_written() {
    let (_folder, symbols) = files();
    let message = ebpf_profile().encode_to_vec();
    let one = [&(message.len() as u32).to_be_bytes()[..], &message].concat();
    let two = [&*one, &one].concat();
    let (timeline, _) = read(&two, Some(symbols.clone()));
    let profile = timeline.profile(&Filter::default(), Some(symbols.clone()));
    assert_eq!(profile.samples(), 6);
    let done = symbolize(two, Some(&*symbols), &*symbols).expect("profiles");
    assert_eq!((done.changed, done.locations), (6, 12));
    let (timeline, _) = read(&done.bytes, None);
    let profile = timeline.profile(&Filter::default(), None);
    let named = |entry: usize| {
        frames(&profile, entry)
            .iter()
            .filter(|it| it.name().is_ok())
            .count()
    };
    let named: usize = (0..profile.entries.len()).map(named).sum();
    assert_eq!((profile.samples(), named), (6, 14));
}

#[test]
fn values_without_times_are_samples() {
    let mut maker = Maker::new();
    let location = maker.location((0, 0), "native", ("work", "", 0));
    maker.sample(7, "t", &[location], &[]);
    maker.samples[0].values = vec![3];
    let mut data = maker.finish();
    let dictionary = data.dictionary.as_mut().unwrap();
    dictionary.string_table.extend(["wall".to_owned()]);
    let wall = dictionary.string_table.len() as i32 - 1;
    let profiles = &mut data.resource_profiles[0].scope_profiles[0].profiles;
    let unit = profiles[0].period_type.unwrap();
    let mut times = profiles[0].clone();
    times.sample_type = Some(proto::ValueType {
        type_strindex: wall,
        ..unit
    });
    times.samples[0].values = vec![100];
    profiles.push(times);
    let (timeline, _) = read(&data.encode_to_vec(), None);
    let profile = timeline.profile(&Filter::default(), None);
    // The second profile has the time of the same samples.
    assert_eq!((profile.samples(), profile.time_ns()), (3, Some(100)));

    let large = &mut data.resource_profiles[0].scope_profiles[0].profiles[0];
    large.samples[0].values = vec![i64::MAX];
    let (timeline, diagnostics) = read(&data.encode_to_vec(), None);
    assert_eq!(diagnostics.list.len(), 1, "{diagnostics:?}");
    assert!(timeline.profile(&Filter::default(), None).samples() > 1 << 20);
}

#[test]
fn work_is_bounded_by_the_length_of_the_file() {
    let mut maker = Maker::new();
    let location = maker.location((0, 0), "native", ("work", "", 0));
    maker.sample(7, "t", &[location; 400], &[1]);
    let stack = maker.samples[0].stack_index;
    // Every process has the stack, which is stated to each.
    for pid in 0..300 {
        let pid = maker.attribute("process.pid", any_value::Value::IntValue(pid));
        maker.samples.push(proto::Sample {
            stack_index: stack,
            attribute_indices: vec![pid],
            ..Default::default()
        });
    }
    // Every frame is a location with many functions.
    let lines = maker.dictionary.location_table[location as usize]
        .lines
        .clone();
    let long = "x".repeat(1 << 16);
    maker.dictionary.string_table.push(long);
    let name_strindex = maker.dictionary.string_table.len() as i32 - 1;
    maker.dictionary.function_table[1].name_strindex = name_strindex;
    maker.dictionary.location_table[location as usize].lines = lines.repeat(1_000);
    let bytes = maker.finish().encode_to_vec();
    let (timeline, diagnostics) = read(&bytes, None);
    let texts: Vec<String> = diagnostics.list.iter().map(ToString::to_string).collect();
    assert!(
        texts.iter().any(|it| it.contains("8 for each byte")),
        "{texts:?}"
    );
    let profile = timeline.profile(&Filter::default(), None);
    let depth = |entry: usize| frames(&profile, entry).len() as u64;
    let depth: u64 = (0..profile.entries.len()).map(depth).sum();
    assert!((1..=8 * bytes.len() as u64).contains(&depth), "{depth}");
}

#[test]
fn indices_and_addresses_may_be_anything() {
    let values = [0, 1, 2, 6, i64::from(i32::MAX), -1];
    let base = ebpf_profile();
    let (_folder, symbols) = files();
    for value in values {
        let index = value as i32;
        let mut cases = Vec::new();
        let mut case = |change: &dyn Fn(&mut proto::ProfilesData)| {
            let mut data = base.clone();
            change(&mut data);
            cases.push(data);
        };
        let dictionary = |data: &mut proto::ProfilesData| data.dictionary.take().unwrap();
        case(&|data| {
            let mut it = dictionary(data);
            it.stack_table
                .iter_mut()
                .for_each(|stack| stack.location_indices.push(index));
            data.dictionary = Some(it);
        });
        case(&|data| {
            let mut it = dictionary(data);
            for location in &mut it.location_table {
                location.mapping_index = index;
                location.address = value as u64;
                location.lines.iter_mut().for_each(|line| {
                    (line.function_index, line.line) = (index, value);
                });
            }
            data.dictionary = Some(it);
        });
        case(&|data| {
            let mut it = dictionary(data);
            for mapping in &mut it.mapping_table {
                (mapping.memory_start, mapping.memory_limit) = (value as u64, u64::MAX);
                (mapping.file_offset, mapping.filename_strindex) = (value as u64, index);
                mapping.attribute_indices.push(index);
            }
            data.dictionary = Some(it);
        });
        case(&|data| {
            let mut it = dictionary(data);
            it.function_table
                .iter_mut()
                .for_each(|function| function.name_strindex = index);
            it.attribute_table
                .iter_mut()
                .for_each(|attribute| attribute.key_strindex = index);
            data.dictionary = Some(it);
        });
        case(&|data| {
            let profile = &mut data.resource_profiles[0].scope_profiles[0].profiles[0];
            for sample in &mut profile.samples {
                sample.stack_index = index;
                sample.attribute_indices.push(index);
                sample.values = vec![value; 3];
                sample.timestamps_unix_nano.push(value as u64);
            }
            profile.time_unix_nano = value as u64;
            (profile.period, profile.duration_nano) = (value, value as u64);
        });
        case(&|data| data.dictionary = None);
        for data in cases {
            let bytes = data.encode_to_vec();
            let (timeline, _) = read(&bytes, Some(symbols.clone()));
            let profile = timeline.profile(&Filter::default(), Some(symbols.clone()));
            assert!(profile.samples() <= 9);
            let done = symbolize(bytes, Some(&*symbols), &*symbols).expect("profiles");
            proto::ProfilesData::decode(&*done.bytes).expect("profiles");
        }
    }
}

#[test]
fn a_saved_timeline_keeps_names_and_lines() {
    let (timeline, _) = read(&ebpf_profile().encode_to_vec(), None);
    let mut save = chronosym::SaveOptions::new();
    save.samples = true;
    let saved = timeline.save(Vec::new(), &save).expect("memory");
    let recording = Opener::new()
        .open([Input::stream("it", Cursor::new(saved))])
        .unwrap();
    let (again, _) = recording
        .timeline(Options::from(SampleSelection::All))
        .unwrap();
    let text = |timeline: &Arc<Timeline>| {
        let profile = timeline.profile(&Filter::default(), None);
        let all = (0..profile.entries.len()).map(|entry| frames(&profile, entry));
        let mut all: Vec<Vec<String>> = all
            .map(|frames| frames.iter().map(shown).collect())
            .collect();
        all.sort();
        all
    };
    let names = text(&timeline);
    assert!(
        names.iter().flatten().any(|it| it == "- handle app.py:7"),
        "{names:?}"
    );
    assert_eq!(text(&again), names);
}

#[test]
fn other_files_are_refused() {
    for (bytes, expected) in [
        (&b"{\"resourceProfiles\":[]}"[..], "JSON"),
        (b"hello world", "not OTLP"),
        (b"\n\n\n", "not OTLP"),
    ] {
        let input = Input::stream("it", bytes);
        let recording = Opener::new().read_as(Format::Otlp).open([input]).unwrap();
        let error = recording
            .timeline(Options::default())
            .expect_err("an error");
        let text = format!("{:#}", std::error::Error::source(&error).unwrap());
        assert!(text.contains(expected), "{text}");
    }
}
