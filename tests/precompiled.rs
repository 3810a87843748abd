//! Precompiled code without events: named by the perf map alone, in files mapped section by
//! section, in composites.

mod mapped;
mod workload;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chronosym::symbols::{
    Attempt, AttemptResult, ManagedModule, NoFile, StoreConfig, SymbolOptions, Symbolizer,
};
use chronosym::{
    Certainty, Code, Evidence, Frame, LineReason, ModuleRef, NameReason, Position, ProcessIndex,
    SymbolSource, Timeline,
};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::r2r::{R2rImage, R2rMap};

use mapped::MappedFile;
use workload::{load, testdata};

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn built(target: &str) -> PathBuf {
    testdata().join("clr10/r2r").join(target)
}

/// A folder with some files, each a copy or given bytes.
fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    }
    folder
}

fn symbols(folder: &Path) -> Symbolizer {
    symbols_in(&[folder])
}

fn symbols_in(folders: &[&Path]) -> Symbolizer {
    let mut config = StoreConfig::new();
    config.folders = folders.iter().map(|&folder| folder.to_owned()).collect();
    Symbolizer::new(config, SymbolOptions::default())
}

/// `Return Owner[A, B]::Method(Parameters)` as frames show it.
fn shown(row: &str) -> String {
    let map = format!("FFFFFFFF 00 {}\n00000000 1 {row}\n", "0".repeat(32));
    let map = R2rMap::parse(map.as_bytes()).expect("a map");
    let (owner, name) = map.methods()[0].owner_and_name().expect("a name");
    format!("{}.{name}", owner.replace(", ", ","))
}

/// The managed process of a trace, and the workload's module in it.
fn workload_module(timeline: &Timeline) -> (ProcessIndex, ModuleRef<'_>) {
    let process = timeline.processes().find(|p| p.is_managed);
    let process = process.expect("a process").index;
    let module = timeline.modules(process).find(|m| m.name == "Workload");
    let module = timeline.module_ref(process, module.expect("the module").index);
    (process, module.expect("the module"))
}

#[test]
fn a_perf_map_alone_names_code_without_events() {
    let text = read(&built("linux-x64").join("Workload.ni.r2rmap"));
    let map = R2rMap::parse(&text).expect("a map");
    let found = folder(&[("Workload.ni.r2rmap", &text)]);
    let symbols = symbols(found.path());
    let trace = load("clr10/traces/r2r.nettrace.zip");
    let timeline = &trace.timeline;
    let (process, module) = workload_module(timeline);
    let range = symbols.precompiled_range(&module).expect("a base");
    let time = timeline.facts().duration_ns / 2;
    let (mut told, mut by_map) = (0, 0);
    for row in map.methods() {
        let address = range.start + u64::from(row.rva) + u64::from(row.size) / 2;
        let ask = |symbols| {
            let frames = timeline.frames(process, address, time, Position::Exact, symbols);
            frames.into_iter().next_back().expect("a frame")
        };
        let frame = ask(Some(&symbols as &dyn SymbolSource));
        assert_eq!(frame.name().ok(), Some(&*shown(&row.name)));
        if ask(None).name().is_ok() {
            told += 1;
            continue;
        }
        by_map += 1;
        assert_eq!(frame.evidence, Some(Evidence::PerfMap), "{frame:?}");
        assert_eq!(frame.certainty, Some(Certainty::Inferred));
        assert_eq!(frame.line_reason(), Some(LineReason::NoILMap));
        assert_eq!(frame.offset, Some(u64::from(row.size) / 2));
    }
    println!("{told} methods told of, {by_map} named by the map");
    assert!(told > 30 && by_map > 10);
}

#[test]
fn the_perf_map_of_another_build_names_nothing() {
    let text = String::from_utf8(read(&built("linux-x64").join("Workload.ni.r2rmap")));
    let text = text.expect("text");
    // As with other compiler options: the signature is the same, but a method that the trace states
    // has moved.
    let moved = text.replace("00011DD0 ", "00011DE0 ");
    assert_ne!(moved, text);
    let other = |target: &str| read(&built(target).join("Workload.ni.r2rmap"));
    let trace = load("clr10/traces/r2r.nettrace.zip");
    let timeline = &trace.timeline;
    let (_, module) = workload_module(timeline);
    for map in [
        moved.into_bytes(),
        other("linux-arm64"),
        other("windows-x64"),
        text.replace("FFFFFFFD 00 2", "FFFFFFFD 00 3").into_bytes(),
        text.replace("FFFFFFFC 00 3", "FFFFFFFC 00 2").into_bytes(),
        b"FFFFFFFF 00 broken".to_vec(),
    ] {
        let found = folder(&[("Workload.ni.r2rmap", &map)]);
        assert!(symbols(found.path()).precompiled_range(&module).is_err());
    }
    let found = folder(&[("Workload.ni.r2rmap", text.as_bytes())]);
    assert!(symbols(found.path()).precompiled_range(&module).is_ok());
}

/// An image for another machine has its own reason, which listings of files show.
#[test]
fn an_image_for_another_machine_is_a_reason() {
    let trace = load("clr10/traces/r2r.nettrace.zip");
    let timeline = &trace.timeline;
    let (_, module) = workload_module(timeline);
    assert_eq!(module.machine, Some("Linux x64"));
    for (target, reason) in [
        ("linux-x64", None),
        ("linux-arm64", Some(LineReason::SymbolFileMismatch)),
        ("windows-x64", Some(LineReason::SymbolFileMismatch)),
    ] {
        let found = folder(&[("Workload.dll", &read(&built(target).join("Workload.dll")))]);
        assert_eq!(
            symbols(found.path()).precompiled_range(&module).err(),
            reason
        );
    }
}

const BASE: u64 = 0x7f00_1000_0000;
const PAGE: u64 = 0x1000;

/// A recorder's description of a mapped image.
struct Mapped(MappedFile);

impl Mapped {
    /// Maps an image as the runtime does: the whole file, then headers and sections at their RVAs.
    fn new(file: &[u8]) -> Self {
        let image = PeImage::parse(file).expect("an image");
        let pages = |at: u64| at.div_ceil(PAGE) * PAGE;
        let mut pieces = vec![
            (
                BASE - 0x100_0000,
                BASE - 0x100_0000 + pages(file.len() as u64),
                0,
            ),
            (BASE, BASE + PAGE, 0),
        ];
        for section in image.sections() {
            let (rva, offset) = (u64::from(section.rva), u64::from(section.file_offset));
            let end = pages(rva + u64::from(section.file_size));
            pieces.push((BASE + rva / PAGE * PAGE, BASE + end, offset / PAGE * PAGE));
        }
        Mapped(MappedFile {
            path: "/opt/workload/Workload.dll".to_owned(),
            metadata: mapped::metadata(file).expect("a managed image"),
            pieces,
        })
    }

    fn trace(&self) -> (Arc<Timeline>, ProcessIndex) {
        mapped::trace(std::slice::from_ref(&self.0))
    }

    fn frame(&self, rva: u64, symbols: &Symbolizer) -> Frame {
        let (timeline, process) = self.trace();
        frame(&timeline, process, rva, symbols)
    }
}

fn frame(timeline: &Timeline, process: ProcessIndex, rva: u64, symbols: &Symbolizer) -> Frame {
    let address = BASE + rva;
    let frames = timeline.frames(process, address, 1_000_000, Position::Exact, Some(symbols));
    frames.into_iter().next_back().expect("a frame")
}

#[test]
fn files_that_are_mapped_piece_by_piece() {
    for target in ["linux-x64", "linux-arm64"] {
        let dll = read(&built(target).join("Workload.dll"));
        let text = read(&built(target).join("Workload.ni.r2rmap"));
        let (image, map) = (R2rImage::parse(&dll), R2rMap::parse(&text));
        let (image, map) = (image.expect("an image"), map.expect("a map"));
        let (timeline, process) = Mapped::new(&dll).trace();
        let by_image = folder(&[
            ("Workload.dll", &dll),
            (
                "Workload.pdb",
                &read(&testdata().join("clr10/workload/Workload.pdb")),
            ),
        ]);
        let by_image = symbols(by_image.path());
        let by_map = folder(&[("Workload.ni.r2rmap", &text)]);
        let by_map = symbols(by_map.path());
        let mut lines = BTreeSet::new();
        for row in map.methods() {
            let rva = u64::from(row.rva) + u64::from(row.size) / 2;
            let name = shown(&row.name);
            let ours = frame(&timeline, process, rva, &by_image);
            assert_eq!(ours.name().ok(), Some(&*name));
            assert_eq!(ours.evidence, Some(Evidence::ImageTable));
            assert!(matches!(ours.code, Code::Image { rva: found, .. } if found == rva));
            lines.extend(ours.line.clone().ok().map(|line| (line.file, line.line)));
            let ours = frame(&timeline, process, rva, &by_map);
            assert_eq!(ours.name().ok(), Some(&*name));
            assert_eq!(ours.evidence, Some(Evidence::PerfMap));
            // Compiler options can change without the signature.
            assert_eq!(ours.certainty, Some(Certainty::Approximate));
        }
        assert!(lines.len() > 50, "{}", lines.len());
        // The data section holds no code.
        let data = image.image().sections().nth(1).expect("data").rva;
        let ours = frame(&timeline, process, u64::from(data) + 8, &by_image);
        assert_eq!(ours.name().err(), Some(NameReason::NoName), "{ours:?}");
        // Nor does the copy of the file that is mapped as a whole.
        let copy = 0u64.wrapping_sub(0x100_0000).wrapping_add(0x1800);
        let (timeline, process) = Mapped::new(&dll).trace();
        let address = BASE.wrapping_add(copy);
        let frames = timeline.frames(process, address, 1_000_000, Position::Exact, Some(&by_map));
        assert_eq!(frames[0].name().ok(), None, "{frames:?}");
    }
}

/// Time stamp and PDB are those of the IL, whatever it was compiled for and with.
#[test]
fn another_build_of_a_mapped_file_is_a_reason() {
    let dll = read(&built("linux-x64").join("Workload.dll"));
    let rva = 0x11dd0;
    let own = folder(&[("Workload.dll", &dll)]);
    let named = Mapped::new(&dll).frame(rva, &symbols(own.path()));
    assert_eq!(named.name().ok(), Some("Workload.Program.Main"));
    let reason = |mapped: &Mapped, files: &[(&str, &[u8])]| {
        let found = folder(files);
        let symbols = symbols(found.path());
        let (timeline, process) = mapped.trace();
        let ours = frame(&timeline, process, rva, &symbols);
        assert_eq!(ours.name().ok(), None, "{ours:?}");
        let covers = |base: u64, size| (base..base + size).contains(&(BASE + rva));
        let image = timeline
            .images(process)
            .find(|i| covers(i.image.base, i.image.size));
        let image = image.expect("an image").index;
        let file = symbols.image_symbols(&timeline.image_ref(process, image).expect("an image"));
        if ours.name().err() == Some(NameReason::SymbolFileMismatch) {
            assert!(
                matches!(file.found, Err(NoFile::SymbolFileMismatch { .. })),
                "{file:?}"
            );
        }
        ours.name().err()
    };
    let mapped = Mapped::new(&dll);
    let mismatch = Some(NameReason::SymbolFileMismatch);
    for other in [
        built("linux-arm64").join("Workload.dll"),
        built("windows-x64").join("Workload.dll"),
        testdata().join("clr10/workload/Workload.dll"),
    ] {
        assert_eq!(
            reason(&mapped, &[("Workload.dll", &read(&other))]),
            mismatch
        );
    }
    // Another time stamp; sections of another size; no headers at the base that the code implies.
    let mut other = Mapped::new(&dll);
    other.0.metadata = other.0.metadata.replace("3817683848", "3817683849");
    assert_eq!(reason(&other, &[("Workload.dll", &dll)]), mismatch);
    let mut other = Mapped::new(&dll);
    other.0.pieces[2].1 += PAGE;
    assert_eq!(reason(&other, &[("Workload.dll", &dll)]), mismatch);
    let mut other = Mapped::new(&dll);
    other.0.pieces.remove(1);
    assert_eq!(reason(&other, &[("Workload.dll", &dll)]), mismatch);

    let map = String::from_utf8(read(&built("linux-x64").join("Workload.ni.r2rmap")));
    let map = map.expect("text");
    for (from, to) in [
        ("FFFFFFFF 00 FFF0", "FFFFFFFF 00 EFF0"),
        ("FFFFFFFD 00 2", "FFFFFFFD 00 1"),
        ("00014600 2E", "00094600 2E"),
    ] {
        let other = map.replace(from, to);
        assert_ne!(other, map);
        assert_eq!(
            reason(&mapped, &[("Workload.ni.r2rmap", other.as_bytes())]),
            mismatch,
            "{to}"
        );
    }
    // The path that the trace states is not tried.
    assert_eq!(reason(&mapped, &[]), Some(NameReason::PathNotTrusted));
}

/// Time stamp, PDB and names of files are those of the IL, so builds for several machines can be in
/// one folder.
#[test]
fn a_build_for_another_machine_does_not_hide_later_files() {
    let files = ["Workload.dll", "Workload.ni.r2rmap"];
    let trace = load("clr10/traces/r2r.nettrace.zip");
    let (_, module) = workload_module(&trace.timeline);
    for name in files {
        let build = |target: &str| folder(&[(name, &read(&built(target).join(name)))]);
        let [other, windows, own] = ["linux-arm64", "windows-x64", "linux-x64"].map(build);
        let folders = [other.path(), windows.path(), own.path()];
        let both = symbols_in(&folders);
        assert!(both.precompiled_range(&module).is_ok(), "{name}");
        let neither = symbols_in(&folders[..2]);
        assert!(neither.precompiled_range(&module).is_err(), "{name}");

        let mapped = Mapped::new(&read(&built("linux-x64").join("Workload.dll")));
        let named = mapped.frame(0x11dd0, &both);
        assert_eq!(named.name(), Ok("Workload.Program.Main"), "{name}");
        let ours = mapped.frame(0x11dd0, &neither);
        assert_eq!(ours.name().err(), Some(NameReason::SymbolFileMismatch));
        // Each file that was examined is reported once.
        let (timeline, process) = mapped.trace();
        let image = timeline
            .images(process)
            .find(|image| image.image.base <= BASE + 0x11dd0);
        let image = timeline.image_ref(process, image.expect("an image").index);
        let image = image.expect("an image");
        let attempts = neither.image_symbols(&image).attempts;
        let refused = |attempt: &&Attempt| {
            matches!(
                attempt.result,
                AttemptResult::Refused(_) | AttemptResult::Mismatch(_)
            )
        };
        assert_eq!(attempts.iter().filter(refused).count(), 2, "{attempts:#?}");
    }
}

/// The precompiled workload converted to a composite and its component, each of which has a part of
/// the other: the compiler produces these layouts only on request.
struct Patched {
    bytes: Vec<u8>,
    header: usize,
}

impl Patched {
    fn new() -> Self {
        let bytes = read(&built("linux-x64").join("Workload.dll"));
        let header = bytes.windows(4).position(|w| w == b"RTR\0");
        let header = header.expect("a header");
        Self { bytes, header }
    }

    fn put(&mut self, at: usize, words: &[u32]) {
        let new: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes[at..at + new.len()].copy_from_slice(&new);
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }

    /// Returns the position of a header section in its table.
    fn row(&self, kind: u32) -> usize {
        let rows = (0..self.word(self.header + 12) as usize).map(|k| self.header + 16 + k * 12);
        rows.into_iter()
            .find(|&at| self.word(at) == kind)
            .expect("a section")
    }

    /// Replaces section `old` by one of type `new` with this content, in its entry; returns its
    /// RVA.
    fn section(&mut self, old: u32, new: u32, content: &[u8]) -> u32 {
        let row = self.row(old);
        let (rva, room) = (self.word(row + 4), self.word(row + 8) as usize);
        assert!(
            content.len() <= room,
            "{} bytes, {room} free",
            content.len()
        );
        self.put(row, &[new, rva, content.len() as u32]);
        let image = PeImage::parse(&self.bytes).expect("an image");
        let offset = image.sections().find_map(|section| {
            let within = rva.checked_sub(section.rva)?;
            (within < section.file_size).then(|| (section.file_offset + within) as usize)
        });
        let offset = offset.expect("in a section");
        self.bytes[offset..offset + content.len()].copy_from_slice(content);
        rva
    }
}

const CROSS_MODULE_INLINING: u32 = 119;
const DELAY_LOAD_THUNKS: u32 = 106;

/// Returns metadata with one assembly reference.
fn manifest(name: &str) -> Vec<u8> {
    let mut strings = [b"\0", name.as_bytes(), b"\0"].concat();
    strings.resize(strings.len().next_multiple_of(4), 0);
    let mut tables = vec![0, 0, 0, 0, 2, 0, 0, 1];
    tables.extend((1u64 << 0x23).to_le_bytes());
    tables.extend([0; 8]);
    tables.extend(1u32.to_le_bytes());
    let row = [0u16, 0, 0, 0, 0, 0, 0, 1, 0, 0];
    tables.extend(row.iter().flat_map(|cell| cell.to_le_bytes()));
    let mut out = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v1\0\0\0\0\x02\0".to_vec();
    let heads = [
        (&b"#~\0\0"[..], tables),
        (&b"#Strings\0\0\0\0"[..], strings),
    ];
    let mut at = 56u32;
    for (name, content) in &heads {
        out.extend(at.to_le_bytes());
        out.extend((content.len() as u32).to_le_bytes());
        out.extend(*name);
        at += content.len() as u32;
    }
    assert_eq!(out.len(), 56);
    heads
        .into_iter()
        .fold(out, |out, (_, content)| [out, content].concat())
}

/// A composite of the workload: its entry points belong to a component, its IL is elsewhere.
fn composite(component: &str, mvid: [u8; 16]) -> Vec<u8> {
    let mut composite = Patched::new();
    let entry_points = composite.row(103);
    let own: Vec<u32> = (0..3)
        .map(|k| composite.word(entry_points + 4 * k))
        .collect();
    composite.put(entry_points, &[9999]);
    let row = composite.row(CROSS_MODULE_INLINING);
    let core = composite.word(row + 4) + 16;
    let words = [0, 0, core, 20, 0, 1, own[0], own[1], own[2]];
    let content: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    composite.section(CROSS_MODULE_INLINING, 115, &content);
    let row = composite.row(115);
    composite.put(row + 8, &[16]);
    composite.section(112, 112, &manifest(component));
    let rva = composite.section(DELAY_LOAD_THUNKS, DELAY_LOAD_THUNKS, &mvid);
    let row = composite.row(118);
    composite.put(row + 4, &[rva, 16]);
    composite.bytes
}

/// Returns what the compiler leaves of an assembly whose code is in a composite.
fn component(owner: &str) -> Vec<u8> {
    let mut component = Patched::new();
    let flags = component.word(component.header + 8);
    component.put(component.header + 8, &[flags | 0x20]);
    let owner = [owner.as_bytes(), b"\0"].concat();
    component.section(112, 116, &owner);
    let row = component.row(116);
    let words: Vec<u32> = (0..3).map(|k| component.word(row + 4 * k)).collect();
    component.put(component.header + 12, &[1, words[0], words[1], words[2]]);
    component.bytes
}

#[test]
fn code_of_a_component_is_in_its_composite() {
    let dll = read(&built("linux-x64").join("Workload.dll"));
    let image = R2rImage::parse(&dll).expect("an image");
    let mvid = image.metadata().and_then(|metadata| metadata.mvid());
    let mvid = mvid.expect("an id").0;
    let pdb = read(&testdata().join("clr10/workload/Workload.pdb"));
    let trace = load("clr10/traces/r2r.nettrace.zip");
    let timeline = &trace.timeline;
    let (process, module) = workload_module(timeline);
    let time = timeline.facts().duration_ns / 2;

    let whole = composite("Workload", mvid);
    assert!(R2rImage::parse(&whole).expect("an image").is_composite());
    let part = component("whole.r2r.dll");
    let found = folder(&[
        ("whole.r2r.dll", &whole),
        ("Workload.dll", &part),
        ("Workload.pdb", &pdb),
    ]);
    let found_symbols = symbols(found.path());
    let range = found_symbols.precompiled_range(&module).expect("a base");
    let (mut by_composite, mut lines) = (0, 0);
    for method in image.methods() {
        let address = range.start + u64::from(method.start) + u64::from(method.hot_size) / 2;
        let ask = |symbols| {
            let frames = timeline.frames(process, address, time, Position::Exact, symbols);
            frames.into_iter().next_back().expect("a frame")
        };
        if ask(None).name().is_ok() || method.token().is_none() {
            continue;
        }
        let frame = ask(Some(&found_symbols as &dyn SymbolSource));
        let name = image.method_name(&method, &chronosym_pdb::r2r::NoAssemblies);
        assert_eq!(frame.name().ok(), Some(&*name.expect("a name").to_string()));
        assert_eq!(frame.evidence, Some(Evidence::ImageTable));
        by_composite += 1;
        lines += usize::from(frame.line.is_ok());
    }
    println!("{by_composite} methods named by the composite, {lines} of them with a line");
    assert!(by_composite > 5 && lines > 5);

    // Without a trace, the composite and the image of one module have the same result for an RVA.
    let single = folder(&[("Workload.dll", &dll), ("Workload.pdb", &pdb)]);
    let open = |folder: &Path, name| {
        let mut config = StoreConfig::new();
        config.folders = vec![folder.to_owned()];
        let options = SymbolOptions::default();
        ManagedModule::of_image(&folder.join(name), None, config, &options)
            .expect("a managed image")
    };
    let one = open(single.path(), "Workload.dll");
    let all = open(found.path(), "whole.r2r.dll");
    assert!(all.is_composite() && !one.is_composite());
    let mut lines = 0;
    for method in image.methods().filter(|method| method.token().is_some()) {
        let rva = u64::from(method.start) + u64::from(method.hot_size) / 2;
        let of = |module: &ManagedModule| {
            let code = module.precompiled(rva).expect("a method");
            let line = module.precompiled_line(rva, &code);
            (code.name, line.map(|line| (line.file, line.line)))
        };
        assert_eq!(of(&all), of(&one), "{rva:#x}");
        lines += usize::from(of(&all).1.is_ok());
    }
    assert!(lines > 50, "{lines}");

    // Another build's, another assembly's, another file's, elsewhere, damaged.
    let escaping = component("../whole.r2r.dll");
    let (mismatch, nothing) = (LineReason::SymbolFileMismatch, LineReason::NoILMap);
    let reasons: [(&[u8], &[u8], LineReason); 5] = [
        (&composite("Workload", [7; 16]), &part, mismatch),
        (&composite("Workfoad", mvid), &part, mismatch),
        (&dll, &part, mismatch),
        (&whole, &escaping, nothing),
        (&whole[..whole.len() / 2], &part, nothing),
    ];
    for (whole, part, reason) in reasons {
        let found = folder(&[("whole.r2r.dll", whole), ("Workload.dll", part)]);
        let symbols = symbols(found.path());
        assert_eq!(symbols.precompiled_range(&module), Err(reason));
    }
}
