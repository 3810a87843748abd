//! Native symbols in a trace's frames: an image's identity leads to its symbol file, and to no
//! other build's.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronosym::symbols::{FoundFile, NoFile, StoreConfig, SymbolOptions, Symbolizer};
use chronosym::{
    Addressing, Certainty, Code, Evidence, Frame, ImageRef, NameReason, NativeFrame, Position,
    ProcessIndex, SampleSelection, Session, SymbolSource, Timeline,
};
use chronosym_etl::Reader as EtlReader;
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::r2r::R2rMap;
use chronosym_support::etl::{At, EtlWriter, Image, Op, Options as FileOptions, Process};
use chronosym_support::msf;
use chronosym_symbols::{Address, Answers, NativeSymbols, Query};

const PID: u32 = 100;
const BASE: u64 = 0x7ff0_0000_0000;

fn small(machine: &str) -> PathBuf {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    testdata.join("pdb-small").join(machine)
}

/// The description of an image in a trace.
struct Told {
    name: &'static str,
    timestamp: u32,
    size: u64,
    signature: [u8; 16],
    age: u32,
}

impl Told {
    fn of(image: &PeImage<'_>) -> Self {
        let codeview = image.native_codeview().expect("a PDB id");
        Told {
            name: "small.exe",
            timestamp: image.timestamp(),
            size: image.size_of_image().into(),
            signature: codeview.id.guid.0,
            age: codeview.id.age,
        }
    }
}

/// Returns a trace of one process with one image.
fn trace(told: &Told) -> (Arc<Timeline>, ProcessIndex) {
    let mut w = EtlWriter::new(Vec::new(), FileOptions::default()).expect("a file");
    let process = Process {
        pid: PID,
        image: "small.exe",
        command_line: "small.exe",
        ..Process::default()
    };
    w.process(At::ns(1), Op::DCStart, &process)
        .expect("a record");
    let at = At::ms(1).pid(PID);
    w.image_id(at, BASE, told.size, told.timestamp, told.name)
        .expect("a record");
    w.rsds(
        at,
        BASE,
        PID,
        told.signature,
        told.age,
        r"c:\build\small.pdb",
    )
    .expect("a record");
    let path = format!(r"\Device\HarddiskVolume2\bin\{}", told.name);
    let image = Image {
        base: BASE,
        size: told.size,
        pid: PID,
        path: &path,
        ..Image::default()
    };
    w.image(at, Op::Load, &image).expect("a record");
    let file = w.finish().expect("a file");
    let mut session = Session::new(SampleSelection::Profilers);
    let reader = EtlReader::merge(vec![
        EtlReader::new(file.as_slice(), Default::default()).expect("a trace"),
    ]);
    chronosym::source::etl::read(reader.expect("a trace"), &mut session).expect("the first");
    let timeline = session.finish();
    let process = timeline.find_process(PID, None).expect("the process");
    (timeline, process)
}

fn symbols(folder: &Path) -> Symbolizer {
    let mut config = StoreConfig::new();
    config.folders = vec![folder.to_owned()];
    Symbolizer::new(config, SymbolOptions::default())
}

fn frames(
    timeline: &Timeline,
    process: ProcessIndex,
    rva: u64,
    symbols: &dyn SymbolSource,
) -> Vec<Frame> {
    timeline.frames(
        process,
        BASE + rva,
        2_000_000,
        Position::Exact,
        Some(symbols),
    )
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Lines at every byte of code, innermost first, as llvm-symbolizer has them.
fn truth(machine: &str) -> BTreeMap<u64, Vec<(String, String, u32)>> {
    let packed = read(&small(machine).join("llvm-symbolizer-22.json.gz"));
    let mut json = String::new();
    flate2::read::GzDecoder::new(&packed[..])
        .read_to_string(&mut json)
        .expect("text");
    let raw: BTreeMap<String, Vec<(String, String, u32)>> =
        serde_json::from_str(&json).expect("JSON");
    raw.into_iter()
        .map(|(rva, frames)| (u64::from_str_radix(&rva[2..], 16).expect("hex"), frames))
        .collect()
}

#[test]
fn frames_of_an_image_with_a_pdb() {
    let exe = read(&small("x86_64").join("small.exe"));
    let image = PeImage::parse(&exe).expect("an image");
    let (timeline, process) = trace(&Told::of(&image));
    let symbols = symbols(&small("x86_64"));
    let (mut lines, mut inlined) = (0, 0);
    for (rva, expected) in truth("x86_64") {
        let ours = frames(&timeline, process, rva, &symbols);
        if expected.iter().any(|(_, _, line)| *line == 0) {
            // Padding, or code without a line.
            continue;
        }
        assert_eq!(ours.len(), expected.len(), "{rva:#x}: {ours:?}");
        let outermost = ours.len() - 1;
        for (i, (frame, (_, file, line))) in ours.iter().zip(&expected).enumerate() {
            let found = frame.line.as_ref().expect("a line");
            // A body shared by two functions has the lines of either.
            let is_folded = frame.name().ok() == Some("fold_a");
            assert!(found.line == *line || is_folded, "{rva:#x}: {frame:?}");
            assert_eq!(
                chronosym::file_name(&found.file),
                chronosym::file_name(file)
            );
            assert_eq!(frame.inlined, i != outermost);
            assert_eq!(
                (frame.evidence, frame.certainty),
                (Some(Evidence::Image), Some(Certainty::Exact))
            );
            assert_eq!(frame.module(), Some("small"));
        }
        lines += 1;
        inlined += usize::from(ours.len() > 1);
    }
    assert!(
        lines > 1_000 && inlined > 100,
        "{lines} with a line, {inlined} with inlining"
    );
}

/// Precompiled code in a trace without events of the runtime: the image's own tables supply names,
/// its PDB the lines.
#[test]
fn frames_of_a_precompiled_image() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let folder = testdata.join("clr10/r2r/windows-x64");
    let dll = read(&folder.join("Workload.dll"));
    let image = PeImage::parse(&dll).expect("an image");
    let codeview = image.portable_codeview().expect("a PDB id");
    let (timeline, process) = trace(&Told {
        name: "Workload.dll",
        timestamp: image.timestamp(),
        size: image.size_of_image().into(),
        signature: codeview.id.guid.0,
        age: codeview.id.age,
    });
    let mut config = StoreConfig::new();
    config.folders = vec![folder.clone(), testdata.join("clr10/workload")];
    let symbols = Symbolizer::new(config, SymbolOptions::default());
    let map = read(&folder.join("Workload.ni.r2rmap"));
    let map = R2rMap::parse(&map).expect("a map");
    let mut with_line = 0;
    for row in map.methods() {
        let rva = u64::from(row.rva) + u64::from(row.size) / 2;
        let ours = frames(&timeline, process, rva, &symbols);
        assert_eq!(ours.len(), 1);
        assert!(ours[0].name().is_ok(), "{}: {:?}", row.name, ours[0]);
        assert_eq!(ours[0].evidence, Some(Evidence::ImageTable));
        assert_eq!(ours[0].offset, Some(u64::from(row.size) / 2));
        if let Ok(line) = &ours[0].line {
            assert!(line.file.ends_with(".cs"), "{line:?}");
            with_line += 1;
        }
    }
    assert!(with_line > 50, "{with_line} of {}", map.methods().len());
}

#[test]
fn another_build_is_a_reason_and_never_a_name() {
    let exe = read(&small("x86_64").join("small.exe"));
    let image = PeImage::parse(&exe).expect("an image");
    let right = Told::of(&image);
    let folder = symbols(&small("x86_64"));
    // Neither the PDB nor the image matches the trace: another age, another time stamp.
    let (timeline, process) = trace(&Told {
        age: right.age + 1,
        timestamp: right.timestamp ^ 1,
        ..right
    });
    for rva in (0x1000..0x1600).step_by(16) {
        let ours = frames(&timeline, process, rva, &folder);
        assert_eq!(ours.len(), 1);
        assert!(ours[0].name().is_err());
        assert_eq!(ours[0].name().err(), Some(NameReason::SymbolFileMismatch));
        assert!(matches!(ours[0].code, Code::Image { rva: found, .. } if found == rva));
        assert_eq!(ours[0].module(), Some("small"));
    }
    let image = timeline.images(process).next().expect("the image").index;
    let file = folder.image_symbols(&timeline.image_ref(process, image).expect("an image"));
    let text = file.found.expect_err("a reason").to_string();
    let ids = [right.age, right.age + 1].map(|age| format!("age {age}"));
    assert!(ids.iter().all(|id| text.contains(id)), "both ids: {text}");
}

/// PDBs of precompiled .NET Framework images do not state their section addresses: they name code
/// of an image that they fill.
#[test]
fn a_pdb_without_section_headers_names_an_image_of_its_size() {
    let exe = read(&small("x86_64").join("small.exe"));
    let right = Told::of(&PeImage::parse(&exe).expect("an image"));
    let streams = msf::take_apart(&read(&small("x86_64").join("small.pdb")));
    let pdb = msf::put_together(&msf::without_section_headers(&streams), 4096, 1);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("small.pdb"), pdb).expect("a file");
    let (found, whole) = (symbols(folder.path()), symbols(&small("x86_64")));
    let (timeline, process) = trace(&right);
    for rva in (0x1000..0x1600).step_by(16) {
        let ours = frames(&timeline, process, rva, &found);
        assert_eq!(ours, frames(&timeline, process, rva, &whole), "{rva:#x}");
    }
    let (timeline, process) = trace(&Told {
        size: right.size + 0x1000,
        ..right
    });
    let ours = frames(&timeline, process, 0x1020, &found);
    assert_eq!(ours[0].name(), Err(NameReason::SymbolFileDamaged));
    let image = timeline.images(process).next().expect("the image").index;
    let image = timeline.image_ref(process, image).expect("an image");
    let file = found.image_symbols(&image);
    let text = file.found.expect_err("a reason").to_string();
    assert!(text.contains("the image ends at 0x"), "{text}");
}

/// Method events have no parameters: with them a method would have two rows in `top`.
#[test]
fn methods_of_precompiled_images_are_named_as_in_events() {
    let exe = read(&small("x86_64").join("small.exe"));
    let mut streams = msf::take_apart(&read(&small("x86_64").join("small.pdb")));
    streams = msf::without_section_headers(&streams);
    let dbi = streams[msf::DBI].as_mut().expect("a stream");
    let records = usize::from(u16::from_le_bytes([dbi[20], dbi[21]]));
    let parts = [0, 1].map(|part| msf::part_of_dbi(dbi, part));
    dbi.drain(parts[0].start..parts[1].end);
    msf::put(dbi, msf::DBI_SIZES[0], 0);
    msf::put(dbi, msf::DBI_SIZES[1], 0);
    let records = streams[records].as_mut().expect("a stream");
    let name = b"?panic_path@@YAXH@Z";
    let at = records.windows(name.len()).position(|w| w == name);
    records[at.expect("the name")..][..name.len()].copy_from_slice(b"A.B[T](I)$##6000001");
    let folder = tempfile::tempdir().expect("a folder");
    let pdb = msf::put_together(&streams, 4096, 1);
    std::fs::write(folder.path().join("small.pdb"), pdb).expect("a file");
    let (timeline, process) = trace(&Told::of(&PeImage::parse(&exe).expect("an image")));
    let ours = frames(&timeline, process, 0x1646, &symbols(folder.path()));
    assert_eq!(ours[0].label(), "small!A.B");
}

#[test]
fn damaged_and_missing_files_are_reasons() {
    let exe = read(&small("x86_64").join("small.exe"));
    let (timeline, process) = trace(&Told::of(&PeImage::parse(&exe).expect("an image")));
    let ask = |folder: &Path| {
        let mut all = frames(&timeline, process, 0x15e0, &symbols(folder));
        all.pop().expect("a frame")
    };
    let empty = tempfile::tempdir().expect("a folder");
    assert_eq!(
        ask(empty.path()).name().err(),
        Some(NameReason::NoSymbolFile)
    );

    let pdb = read(&small("x86_64").join("small.pdb"));
    let cut = tempfile::tempdir().expect("a folder");
    std::fs::write(cut.path().join("small.pdb"), &pdb[..pdb.len() / 2]).expect("a file");
    assert_eq!(
        ask(cut.path()).name().err(),
        Some(NameReason::SymbolFileDamaged)
    );

    // The image without its PDB: its exports are the last resort, and their names are approximate.
    let alone = tempfile::tempdir().expect("a folder");
    std::fs::write(alone.path().join("small.exe"), &exe).expect("a file");
    let frame = ask(alone.path());
    let is_guess = frame.certainty == Some(Certainty::Approximate);
    assert!(frame.name().is_err() || is_guess, "{frame:?}");
    assert!(frame.line.is_err());
}

/// The name and line of a caller's frame are those of the call before its address, which is
/// reported unchanged.
#[test]
fn frames_of_callers_keep_their_return_addresses() {
    let exe = read(&small("x86_64").join("small.exe"));
    let (timeline, process) = trace(&Told::of(&PeImage::parse(&exe).expect("an image")));
    let symbols = symbols(&small("x86_64"));
    let at =
        |rva, position| timeline.frames(process, BASE + rva, 2_000_000, position, Some(&symbols));
    let mut compared = 0;
    for rva in truth("x86_64").into_keys() {
        let (call, caller) = (at(rva, Position::Exact), at(rva + 1, Position::Return));
        let outermost = |frames: &[Frame]| frames.last().and_then(|frame| frame.offset);
        if let Some(offset) = outermost(&call) {
            assert_eq!(outermost(&caller), Some(offset + 1), "{rva:#x}");
            compared += 1;
        }
        let named = |frames: Vec<Frame>| -> Vec<_> {
            frames
                .into_iter()
                .map(|f| (f.name().ok().map(str::to_owned), f.line))
                .collect()
        };
        assert_eq!(named(caller), named(call), "{rva:#x}");
    }
    assert!(compared > 500, "{compared}");
}

/// This test's own program, by its build ID.
#[test]
#[cfg(target_os = "linux")]
fn frames_of_an_elf_image() {
    let path = std::env::current_exe().expect("a program");
    let native = NativeSymbols::open_path(&path).expect("an ELF file");
    let Some(build_id) = native.build_id().map(ToString::to_string) else {
        // If the linker writes no build ID, the file cannot be found.
        return;
    };
    let exe = read(&small("x86_64").join("small.exe"));
    let (timeline, process) = trace(&Told::of(&PeImage::parse(&exe).expect("an image")));
    let some = timeline.images(process).next().expect("the image").index;
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    let mut image = timeline.image_ref(process, some).expect("an image");
    image.path = name;
    image.build_id = Some(&build_id);
    image.pdb = None;
    image.timestamp = None;
    let found = symbols(path.parent().expect("a folder"));
    let code = native.code()[0].clone();
    let addresses: Vec<u64> = (code.start..code.end).step_by(4_099).take(500).collect();
    let told = symbols(path.parent().expect("a folder"));
    told.prepare(&image, &addresses);
    let mut answers = Answers::new();
    let (mut named, mut with_line) = (0, 0);
    for address in addresses {
        let ours = found.native(&image, address).expect("the file");
        assert_eq!(
            told.native(&image, address),
            Ok(ours.clone()),
            "{address:#x}"
        );
        native.find(
            Address::VirtualAddress(address),
            &Query::default(),
            &mut answers,
        );
        let theirs = answers.get(0).expect("an answer");
        let names: Vec<&str> = theirs.frames().filter_map(|f| f.demangled()).collect();
        assert_eq!(
            ours.iter().map(|f| &*f.name).collect::<Vec<_>>(),
            names,
            "{address:#x}"
        );
        named += ours.len();
        with_line += ours.iter().filter(|f| f.line.is_ok()).count();
    }
    assert!(
        named > 100 && with_line > 50,
        "{named} frames, {with_line} lines"
    );

    let other = build_id.chars().rev().collect::<String>();
    image.build_id = Some(&other);
    let reason = found.native(&image, code.start).expect_err("a reason");
    assert_eq!(reason, NameReason::SymbolFileMismatch);
}

/// A symbol file of Breakpad for a module, with one function at RVA 0x1000.
fn breakpad(module: &str) -> String {
    format!(
        "MODULE {module}\nFILE 0 /src/a.c\nFUNC 1000 40 0 work(int)\n1000 20 7 0\n1020 20 8 0\n"
    )
}

/// The name and the line of the only frame.
fn only(frames: Result<Vec<NativeFrame>, NameReason>) -> (String, u32) {
    let frames = frames.expect("frames");
    let [frame] = &*frames else {
        panic!("{frames:?}");
    };
    let line = frame.line.as_ref().expect("a line");
    (frame.name.to_string(), line.line)
}

/// Stores of Breakpad have `NAME/ID/NAME.sym`.
#[test]
fn images_have_symbol_files_of_breakpad() {
    let exe = read(&small("x86_64").join("small.exe"));
    let pe = PeImage::parse(&exe).expect("an image");
    let (timeline, process) = trace(&Told::of(&pe));
    let index = timeline.images(process).next().expect("the image").index;
    let mut image = timeline.image_ref(process, index).expect("an image");
    let store = |name: &str, id: &str, file: &str, text: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join(name).join(id);
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::write(own.join(file), text).expect("a file");
        folder
    };
    // By the id of the PDB.
    let id = pe.native_codeview().expect("a PDB id").id;
    let id = format!("{:#}{:X}", id.guid, id.age);
    let module = format!("windows x86_64 {id} small.pdb");
    let folder = store("small.pdb", &id, "small.sym", &breakpad(&module));
    let found = symbols(folder.path());
    assert_eq!(only(found.native(&image, 0x1024)), ("work(int)".into(), 8));
    found.prepare(&image, &[0x1004]);
    assert_eq!(only(found.native(&image, 0x1004)), ("work(int)".into(), 7));
    // By a build ID.
    image.path = "/srv/libapp.so";
    (image.pdb, image.timestamp) = (None, None);
    image.build_id = Some("1a3b4b9d8f2cd100838ed98914e9b7ff01234567");
    let id = "9D4B3B1A2C8F00D1838ED98914E9B7FF0";
    let text = breakpad(&format!("Linux x86_64 {id} libapp.so"));
    let folder = store("libapp.so", id, "libapp.so.sym", &text);
    let found = symbols(folder.path());
    assert_eq!(only(found.native(&image, 0x1024)), ("work(int)".into(), 8));
    // By a UUID.
    image.path = "/Applications/App.app/Contents/MacOS/App";
    image.build_id = Some("3dcf5bf3a1b2c3d4838ed98914e9b7ff");
    let id = "3DCF5BF3A1B2C3D4838ED98914E9B7FF0";
    let text = breakpad(&format!("mac arm64 {id} App"));
    let folder = store("App", id, "App.sym", &text);
    let found = symbols(folder.path());
    assert_eq!(only(found.native(&image, 0x1004)), ("work(int)".into(), 7));
    image.build_id = Some("3dcf5bf3a1b2c3d4838ed98914e9b700");
    assert!(found.native(&image, 0x1004).is_err());
}

/// A universal file has an image for each processor, each with its UUID.
#[test]
fn frames_of_an_image_in_a_universal_file() {
    let macho = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/macho");
    for processor in ["arm64", "x86_64"] {
        let dsym = "app.dSYM/Contents/Resources/DWARF/app";
        let path = macho.join(format!("universal/{dsym}:{processor}"));
        let own = NativeSymbols::open_path(&path).expect("an image");
        let id = own.build_id().expect("a UUID").to_string();
        let mut image = ImageRef::new("/srv/app");
        image.build_id = Some(&id);
        image.addressing = Addressing::Rva;
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::copy(
            macho.join("universal").join(dsym),
            folder.path().join("app"),
        )
        .expect("a file");
        let found = symbols(folder.path());
        let start = own.code()[0].start;
        let mut answers = Answers::new();
        let mut named = 0;
        for address in (start..start + 0x400).step_by(4) {
            own.find(
                Address::VirtualAddress(address),
                &Query::default(),
                &mut answers,
            );
            let answer = answers.get(0).expect("an answer");
            let names: Vec<&str> = answer.frames().filter_map(|f| f.demangled()).collect();
            let ours = found
                .native(&image, address - own.base())
                .expect("the file");
            assert_eq!(ours.iter().map(|f| &*f.name).collect::<Vec<_>>(), names);
            named += names.len();
        }
        assert!(named > 50, "{processor}: {named} names");
    }
}

/// A file at a path in the trace is reported, and opened only if paths of the trace are trusted.
#[test]
#[cfg(unix)]
fn paths_of_the_trace_are_not_opened_without_trust() {
    let exe = read(&small("x86_64").join("small.exe"));
    let (timeline, process) = trace(&Told::of(&PeImage::parse(&exe).expect("an image")));
    let some = timeline.images(process).next().expect("the image").index;
    let known = timeline.image_ref(process, some).expect("an image");
    let pdb_path = std::fs::canonicalize(small("x86_64").join("small.pdb")).expect("a path");
    let pdb = chronosym::PdbReference {
        path: pdb_path.to_str().expect("text").to_owned(),
        ..known.pdb.expect("an id").clone()
    };
    let mut image = known;
    image.pdb = Some(&pdb);
    let mut config = StoreConfig::new();
    let unasked = Symbolizer::new(config.clone(), SymbolOptions::default());
    let reason = unasked.native(&image, 0x15e0).expect_err("a reason");
    assert_eq!(reason, NameReason::PathNotTrusted);
    let file = unasked.image_symbols(&image);
    assert!(
        matches!(file.found, Err(NoFile::PathNotTrusted { .. })),
        "{file:?}"
    );

    config.trust_trace_paths = true;
    let trusted = Symbolizer::new(config, SymbolOptions::default());
    assert_eq!(trusted.native(&image, 0x15e0).expect("frames").len(), 4);
    assert_eq!(
        trusted.image_symbols(&image).found,
        Ok(FoundFile::File(pdb_path))
    );
}
