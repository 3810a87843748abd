//! Compares ReadyToRun images of the workload with the perf maps that the compiler wrote next to
//! them.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use chronosym_pdb::Error;
use chronosym_pdb::metadata::{Metadata, Table, Token};
use chronosym_pdb::pe::{Machine, PeImage, TargetOs};
use chronosym_pdb::portable::PortablePdb;
use chronosym_pdb::r2r::{
    AssemblyId, AssemblyResolver, BaseMatch, DefiningModule, MethodStart, NamedMethodStart,
    NoAssemblies, R2rImage, R2rMap, R2rMethod,
};

use common::{positions, read, unzip};
use proptest::prelude::*;

const IMAGES: [(&str, Machine, TargetOs); 3] = [
    ("linux-x64", Machine::X64, TargetOs::Linux),
    ("windows-x64", Machine::X64, TargetOs::Windows),
    ("linux-arm64", Machine::Arm64, TargetOs::Linux),
];

/// arm64 methods with constants after their code: the map includes those bytes, the unwind record
/// and the runtime do not.
const CONSTANTS_BEHIND: [(&str, u32); 4] = [
    ("System.Double Workload.Spin::Work(System.Double)", 8),
    (
        "System.Double Workload.Spin::Step(System.Double, System.Int32)",
        8,
    ),
    ("System.Double Workload.Spin::Damp(System.Double)", 12),
    (
        "System.Double Workload.Shapes+Circle::Workload.Shapes.IArea.Area()",
        8,
    ),
];

#[test]
fn the_image_alone_yields_every_row_of_the_maps() {
    for (folder, machine, os) in IMAGES {
        let dll = read(&format!("clr10/r2r/{folder}/Workload.dll"));
        let text = read(&format!("clr10/r2r/{folder}/Workload.ni.r2rmap"));
        let image = R2rImage::parse(&dll).unwrap();
        let map = R2rMap::parse(&text).unwrap();
        assert_eq!(
            (image.machine(), image.image().target_os(), image.version()),
            (machine, os, (16, 0))
        );
        let signature = image.image().perf_map_id().map(|id| id.signature);
        assert_eq!(
            (signature, map.machine, map.target_os),
            (Some(map.signature), Some(machine), Some(os))
        );
        assert_eq!(map.methods().len(), 90);
        let found: Vec<_> = image
            .methods()
            .map(|method| {
                (
                    method.start,
                    method.hot_size,
                    image.method_name(&method, &NoAssemblies).unwrap(),
                )
            })
            .collect();
        let wanted: Vec<_> = map
            .methods()
            .iter()
            .map(|row| (row.rva, row.size, row.name.to_string()))
            .collect();
        assert_eq!(found.len(), wanted.len());
        for (found, row) in found.iter().zip(map.methods()) {
            let owner = found.2.owner_text().replace(',', ", ");
            let name = (&*owner, &*found.2.name);
            assert_eq!((found.0, Some(name)), (row.rva, row.owner_and_name()));
        }
        let longer: Vec<_> = found
            .iter()
            .zip(&wanted)
            .filter(|(found, wanted)| found.1 != wanted.1)
            .map(|(found, wanted)| (wanted.2.as_str(), wanted.1 - found.1))
            .collect();
        assert_eq!(
            longer,
            if machine == Machine::Arm64 {
                &CONSTANTS_BEHIND[..]
            } else {
                &[]
            }
        );
    }
}

#[test]
fn addresses_lead_to_their_methods() {
    for (folder, ..) in IMAGES {
        let dll = read(&format!("clr10/r2r/{folder}/Workload.dll"));
        let image = R2rImage::parse(&dll).unwrap();
        let mut last_end = 0;
        for method in image.methods() {
            let end = method.start + method.hot_size;
            assert!(method.start >= last_end && method.hot_size > 0);
            for rva in [method.start, method.start + method.hot_size / 2, end - 1] {
                assert_eq!(image.method_at(rva), Some(method));
                assert_eq!(method.native_offset(rva), Some(rva - method.start));
            }
            assert_ne!(image.method_at(end), Some(method));
            assert_eq!(image.method_starting_at(method.start), Some(method));
            last_end = end;
        }
        assert_eq!(image.method_at(0), None);
        assert_eq!(image.method_at(u32::MAX), None);
        assert_eq!(image.method_count(), image.methods().count());
        assert!(image.owner_composite().is_none() && !image.is_composite());
        let metadata = image.metadata().unwrap();
        let mut defined = 0;
        for method in image.methods() {
            if let Some(token) = method.token() {
                let name = image.method_name(&method, &NoAssemblies).unwrap().name;
                assert_eq!(metadata.method(token).unwrap().name, name);
                defined += 1;
            }
        }
        assert!(defined > 20, "{defined}");
    }
}

#[test]
fn names_are_split_as_in_events() {
    let dll = read("clr10/r2r/linux-x64/Workload.dll");
    let image = R2rImage::parse(&dll).unwrap();
    let name = |rva| {
        image
            .method_name(&image.method_at(rva).unwrap(), &NoAssemblies)
            .unwrap()
    };
    let pair = name(0x14350);
    assert_eq!(
        pair.owner_text(),
        "Workload.Shapes+Box`1+Inner`1[System.Int32,System.__Canon]"
    );
    assert_eq!(pair.name, "Pair");
    assert_eq!(
        pair.signature_text(),
        "instance class System.String  (!0,!1)"
    );
    assert_eq!(
        name(0x145a0).signature_text(),
        "instance generic !!0  (class System.Func`2<!0,!!0>)"
    );
}

/// The frames that the runtime itself wrote into the trace of this very image. The text blocks of
/// `Workload-Truth` have a line a frame: handle, type, method, native offset, IL offset, file,
/// line, column.
#[test]
fn il_offsets_and_lines_are_those_of_the_runtime() {
    let (dll, pdb) = (
        read("clr10/r2r/linux-x64/Workload.dll"),
        read("clr10/workload/Workload.pdb"),
    );
    let image = R2rImage::parse(&dll).unwrap();
    let pdb = PortablePdb::parse(&pdb).unwrap();
    assert_eq!(
        image.image().portable_codeview().unwrap().portable_id(),
        Some(pdb.id())
    );
    let mut frames: BTreeSet<Vec<String>> = BTreeSet::new();
    let trace = unzip("clr10/traces/r2r.nettrace.zip");
    let marker: Vec<u8> = "\tWorkload."
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for at in positions(&trace, &marker) {
        let units = trace[at + 2..]
            .chunks_exact(2)
            .map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        let line: Vec<u16> = units.take_while(|&unit| unit != 0 && unit != 10).collect();
        frames.insert(
            String::from_utf16(&line)
                .unwrap()
                .split('\t')
                .map(str::to_owned)
                .collect(),
        );
    }
    let (mut precompiled, mut jitted) = (BTreeSet::new(), BTreeSet::new());
    for frame in frames.iter().filter(|frame| frame.len() == 7) {
        let number = |at: usize| frame[at].parse::<u32>().unwrap();
        let fits = |method: &R2rMethod| {
            let answer = image.il_offset(method, number(2), true)?;
            let definition = image.definition(method)?;
            assert_eq!(
                (definition.module, definition.token.table()),
                (DefiningModule::Image, Table::METHOD_DEF)
            );
            let line = pdb.line_at(definition.token.row(), answer.il_offset?)?;
            let file = pdb.document(line.document)?.name;
            let found = (file, line.start_line, line.start_column);
            (found == (frame[4].clone(), number(5), number(6))).then_some(())
        };
        // The truth names the open type; all instances of a method are candidates.
        let is_named = |method: &R2rMethod| {
            let name = image.method_name(method, &NoAssemblies).unwrap();
            name.open_owner_text() == frame[0] && name.name == frame[1]
        };
        let methods: Vec<_> = image.methods().filter(is_named).collect();
        assert!(!methods.is_empty(), "{frame:?}");
        let text = format!("{}.{}+{}", frame[0], frame[1], frame[2]);
        if methods.iter().any(|method| fits(method).is_some()) {
            &mut precompiled
        } else {
            &mut jitted
        }
        .insert(text);
    }
    // These bodies the JIT made later: their loads are in the trace, the offset beyond the
    // precompiled body or another line's.
    let later = [
        "Workload.Async+<Level>d__1.MoveNext+377",
        "Workload.Async+<Level>d__1.MoveNext+495",
        "Workload.Truth.Emit+110",
        "Workload.Truth.Emit+56",
    ];
    assert_eq!(jitted, BTreeSet::from(later.map(str::to_owned)));
    assert!(precompiled.len() >= 7, "{precompiled:?}");
}

/// The method events of precompiled code in the trace of this image: start address, size, token and
/// flags precede the namespace. Minus one base they are entry points of this image, and of no other
/// build.
#[test]
fn the_trace_gives_the_base_away() {
    let trace = unzip("clr10/traces/r2r.nettrace.zip");
    let marker: Vec<u8> = "Workload."
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let mut starts = BTreeMap::new();
    for at in positions(&trace, &marker) {
        let word =
            |back: usize| u32::from_le_bytes(trace[at - back..at - back + 4].try_into().unwrap());
        let (size, token, flags) = (word(12), word(8), word(4));
        let address = u64::from(word(20)) | u64::from(word(16)) << 32;
        let is_jitted = flags & 8 != 0;
        if token >> 24 == 6 && !is_jitted && size < 0x1_0000 && address >> 40 == 0x7f {
            starts.insert(
                (token, address),
                MethodStart {
                    address,
                    size: Some(size),
                    token: Some(Token(token)),
                },
            );
        }
    }
    let dlls = IMAGES.map(|(folder, ..)| read(&format!("clr10/r2r/{folder}/Workload.dll")));
    let [linux, windows, arm] = dlls.each_ref().map(|dll| R2rImage::parse(dll).unwrap());
    let known: Vec<_> = starts.values().copied().collect();
    let BaseMatch::Base(base) = linux.base_of(&known) else {
        panic!("{known:?}")
    };
    assert!(known.len() > 30, "{}", known.len());
    for (token, address) in starts.keys() {
        let method = linux.method_starting_at((address - base) as u32).unwrap();
        assert_eq!(linux.definition(&method).unwrap().token, Token(*token));
    }
    // With its token, any one start is enough.
    for start in &known {
        assert_eq!(linux.base_of(&[*start]), BaseMatch::Base(base));
    }
    assert_eq!(windows.base_of(&known), BaseMatch::Mismatch);
    assert_eq!(arm.base_of(&known), BaseMatch::Mismatch);
}

#[test]
fn starts_determine_the_base_and_distinguish_builds() {
    let dlls = IMAGES.map(|(folder, ..)| read(&format!("clr10/r2r/{folder}/Workload.dll")));
    let [linux, windows, arm] = dlls.each_ref().map(|dll| R2rImage::parse(dll).unwrap());
    let base = 0x7f12_3456_7000;
    let starts: Vec<_> = linux
        .methods()
        .map(|m| MethodStart {
            address: base + u64::from(m.start),
            size: Some(m.hot_size),
            token: None,
        })
        .collect();
    assert_eq!(linux.base_of(&starts), BaseMatch::Base(base));
    assert_eq!(windows.base_of(&starts), BaseMatch::Mismatch);
    assert_eq!(arm.base_of(&starts), BaseMatch::Mismatch);
    assert_eq!(linux.base_of(&[]), BaseMatch::NoStarts);
    // Without sizes a few starts are enough, too.
    let mut bare = starts;
    bare.iter_mut().for_each(|start| start.size = None);
    assert_eq!(linux.base_of(&bare), BaseMatch::Base(base));
    assert_eq!(linux.base_of(&bare[..6]), BaseMatch::Base(base));
    // Sizes and tokens that are not the method's are another build's.
    let method = linux.methods().next().unwrap();
    let own = linux.definition(&method).unwrap().token;
    for (more, token, wanted) in [
        (0, own, BaseMatch::Base(base)),
        (0, Token(own.0 + 1), BaseMatch::Mismatch),
        (1, own, BaseMatch::Mismatch),
    ] {
        let mut starts = bare.clone();
        starts[0].size = Some(method.hot_size + more);
        starts[0].token = Some(token);
        assert_eq!(linux.base_of(&starts), wanted);
    }
    let mut other = bare[0];
    other.address = base + 0x11741;
    bare.push(other);
    assert_eq!(linux.base_of(&bare), BaseMatch::Mismatch);
}

fn starts_of_nothing() -> [MethodStart; 2] {
    [0x1000_0000, 0x1000_0010].map(|address| MethodStart {
        address,
        size: None,
        token: None,
    })
}

#[test]
fn rows_of_a_map_may_be_in_any_order() {
    let text = String::from_utf8(read("clr10/r2r/linux-x64/Workload.ni.r2rmap")).unwrap();
    let parse = |text: &str| R2rMap::parse(text.as_bytes()).unwrap();
    let mut backwards: Vec<&str> = text.lines().collect();
    let rows = backwards.iter().position(|row| !row.starts_with("FFFFFF"));
    backwards[rows.unwrap()..].reverse();
    let backwards = backwards.join("\n");
    assert_eq!(parse(&backwards), parse(&text));
    let map = R2rMap::parse(backwards.as_bytes()).unwrap();
    assert_eq!(
        map.method_at(0x13d50 + 0x32).map(|row| row.rva),
        Some(0x13d50)
    );
    assert_eq!(map.method_at(0x13d50 + 0x33), None);
    for bad in [
        "",
        "00011740 10E x\n",
        "FFFFFFFF 00 12\n",
        "FFFFFFFF 00 FFF0CE0E08877FFB3A76BE3397296CAE00\n",
        "FFFFFFFF 00 FFF0CE0E08877FFB3A76BE3397296CAE\nzz\n",
    ] {
        assert!(R2rMap::parse(bad.as_bytes()).is_err(), "{bad}");
    }
    let version = text.replace("FFFFFFFE 00 1", "FFFFFFFE 00 7");
    assert_eq!(
        R2rMap::parse(version.as_bytes()),
        Err(Error::Unsupported {
            what: "r2rmap",
            version: 7
        })
    );
}

/// A copy of the image whose sections can be given other types, offsets and contents: layouts that
/// the compiler's default options do not produce.
struct Patched {
    bytes: Vec<u8>,
    header: usize,
}

impl Patched {
    fn new() -> Self {
        let bytes = read("clr10/r2r/linux-x64/Workload.dll");
        let header = bytes
            .windows(4)
            .position(|window| window == b"RTR\0")
            .unwrap();
        Self { bytes, header }
    }

    fn put(&mut self, at: usize, words: &[u32]) {
        let new: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes[at..at + new.len()].copy_from_slice(&new);
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    /// Returns the position of section `kind` in the header's table.
    fn section(&self, kind: u32) -> usize {
        let sections = (0..self.word(self.header + 12) as usize).map(|k| self.header + 16 + k * 12);
        sections
            .into_iter()
            .find(|&at| self.word(at) == kind)
            .unwrap()
    }

    /// The file offset of an RVA.
    fn offset(&self, rva: u32) -> usize {
        let image = PeImage::parse(&self.bytes).unwrap();
        image.data_at(rva).unwrap().as_ptr().addr() - self.bytes.as_ptr().addr()
    }

    /// Makes section `old` one of type `new` with these words; its RVA.
    fn replace(&mut self, old: u32, new: u32, words: &[u32]) -> u32 {
        let at = self.section(old);
        let rva = self.word(at + 4);
        assert!(words.len() * 4 <= self.word(at + 8) as usize);
        self.put(at, &[new, rva, words.len() as u32 * 4]);
        let data = self.offset(rva);
        self.put(data, words);
        rva
    }
}

const CROSS_MODULE_INLINING: u32 = 119;

#[test]
fn a_cold_part_belongs_to_its_hot_method() {
    let mut patched = Patched::new();
    // Method b with a funclet, and an earlier method a: cut the table after the funclet, and make
    // it a's cold part.
    let plain = patched.bytes.clone();
    let plain = R2rImage::parse(&plain).unwrap();
    let functions = patched.section(102);
    let table = patched.offset(patched.word(functions + 4));
    let begin = |k: usize| patched.word(table + k * 12);
    let funclet = (2..)
        .find(|&k| plain.method_starting_at(begin(k)).is_none())
        .unwrap();
    let (a, b) = (begin(0), begin(funclet - 1));
    let (cold, cold_end) = (begin(funclet), patched.word(table + funclet * 12 + 4));
    let size = plain.method_starting_at(b).unwrap().hot_size;
    patched.put(functions + 8, &[(funclet as u32 + 1) * 12]);
    patched.replace(CROSS_MODULE_INLINING, 120, &[funclet as u32, 0]);

    let image = R2rImage::parse(&patched.bytes).unwrap();
    let (hot, other) = (
        image.method_starting_at(a).unwrap(),
        image.method_starting_at(b).unwrap(),
    );
    assert_eq!(image.method_at(cold + 1), Some(hot));
    assert_eq!(hot.native_offset(cold + 1), Some(hot.hot_size + 1));
    assert_eq!(
        hot.cold.map(|cold| (cold.rva, cold.size)),
        Some((cold, cold_end - cold))
    );
    assert_eq!(image.method_at(cold_end), None);
    assert_eq!(image.method_at(a), Some(hot));
    assert!(other.hot_size < size && other.cold.is_none());
    // Both parts of a split method have an event each.
    let start = |rva: u32, size| MethodStart {
        address: 0x10_0000 + u64::from(rva),
        size: Some(size),
        token: None,
    };
    let known: Vec<_> = image
        .methods()
        .map(|method| start(method.start, method.hot_size))
        .collect();
    for (rva, size, wanted) in [
        (cold, cold_end - cold, BaseMatch::Base(0x10_0000)),
        (cold, cold_end - cold + 1, BaseMatch::Mismatch),
        (cold + 1, cold_end - cold, BaseMatch::Mismatch),
    ] {
        let with_cold = [&known[..], &[start(rva, size)]].concat();
        assert_eq!(image.base_of(&with_cold), wanted);
    }
}

#[test]
fn a_component_names_its_composite() {
    let mut patched = Patched::new();
    // The compiler identifier section becomes the owner composite section.
    let section = patched.section(100);
    let text = patched.offset(patched.word(section + 4));
    patched.put(section, &[116]);
    patched.bytes[text..text + 6].copy_from_slice(b"all.r\0");
    let image = R2rImage::parse(&patched.bytes).unwrap();
    assert_eq!(image.owner_composite().as_deref(), Some("all.r"));
}

/// Metadata with one assembly reference, `Part`.
fn manifest() -> Vec<u8> {
    let row = [0u16, 0, 0, 0, 0, 0, 0, 1, 0, 0];
    let mut tables = vec![0, 0, 0, 0, 2, 0, 0, 1];
    tables.extend((1u64 << Table::ASSEMBLY_REF.0).to_le_bytes());
    tables.extend([0; 8]);
    tables.extend(1u32.to_le_bytes());
    tables.extend(row.iter().flat_map(|cell| cell.to_le_bytes()));
    let strings = b"\0Part\0\0\0";
    let mut out = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v1\0\0\0\0\x02\0".to_vec();
    out.extend(56u32.to_le_bytes());
    out.extend((tables.len() as u32).to_le_bytes());
    out.extend(b"#~\0\0");
    out.extend((56 + tables.len() as u32).to_le_bytes());
    out.extend((strings.len() as u32).to_le_bytes());
    out.extend(b"#Strings\0\0\0\0");
    assert_eq!(out.len(), 56);
    [out, tables, strings.to_vec()].concat()
}

struct One<'d>(&'static str, Metadata<'d>);

impl AssemblyResolver for One<'_> {
    fn metadata<'s>(&'s self, assembly: &AssemblyId) -> Option<&'s Metadata<'s>> {
        (assembly.name == self.0).then_some(&self.1)
    }
}

/// The image as a composite whose only component is `Part`.
fn composite() -> Patched {
    composite_with(false)
}

/// The same, which may embed the component's metadata.
fn composite_with(embedded: bool) -> Patched {
    let mut patched = Patched::new();
    // The CLR header, among a PE32+ image's directories.
    let directory = patched.word(0x3c) as usize + 24 + 112 + 14 * 8;
    let cor = [patched.word(directory), patched.word(directory + 4)];
    let cor = if embedded { cor } else { [0; 2] };
    let entry_points = patched.section(103);
    let own = [
        103,
        patched.word(entry_points + 4),
        patched.word(entry_points + 8),
    ];
    patched.put(entry_points, &[9999]);
    // {CLR header, core header}, then the core header: flags, one section.
    let at = patched.section(CROSS_MODULE_INLINING);
    let core = patched.word(at + 4) + 16;
    patched.replace(
        CROSS_MODULE_INLINING,
        115,
        &[cor[0], cor[1], core, 20, 0, 1, own[0], own[1], own[2]],
    );
    let at = patched.section(115);
    patched.put(at + 8, &[16]);
    let manifest: Vec<u32> = manifest()
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
        .collect();
    patched.replace(112, 112, &manifest);
    patched
}

#[test]
fn a_composite_names_its_methods_by_its_components() {
    let patched = composite();
    let dll = read("clr10/workload/Workload.dll");
    let metadata = PeImage::parse(&dll).unwrap().metadata().unwrap();
    let with_mvid = |patched: &Patched, mvid: [u8; 16]| {
        let mut bytes = patched.bytes.clone();
        let delayed = patched.section(106);
        let place = patched.offset(patched.word(delayed + 4));
        bytes[place..place + 16].copy_from_slice(&mvid);
        let mvids = patched.section(118);
        bytes[mvids + 4..mvids + 8].copy_from_slice(&patched.word(delayed + 4).to_le_bytes());
        bytes[mvids + 8..mvids + 12].copy_from_slice(&16u32.to_le_bytes());
        bytes
    };

    let bytes = with_mvid(&patched, metadata.mvid().unwrap().0);
    let image = R2rImage::parse(&bytes).unwrap();
    assert!(image.is_composite() && image.metadata().is_none());
    let component = image.components().next().unwrap();
    assert_eq!(component.mvid, metadata.mvid());
    let source = One("Part", metadata.clone());
    let main = image.method_at(0x11dd0).unwrap();
    let found = image.method_name(&main, &source).unwrap();
    assert_eq!(found.to_string(), "Workload.Program.Main");
    assert_eq!(found.signature_text(), "int32  (class System.String[])");
    assert_eq!(
        image.definition(&main).unwrap().module,
        DefiningModule::Assembly(component)
    );
    assert_eq!(image.method_name(&main, &NoAssemblies), None);
    assert_eq!(
        image.method_name(&main, &One("Other", metadata.clone())),
        None
    );
    // Metadata that the composite embeds needs no file.
    let embedding = composite_with(true);
    let image = R2rImage::parse(&embedding.bytes).unwrap();
    let main = image.method_at(0x11dd0).unwrap();
    let found = image.method_name(&main, &NoAssemblies).unwrap();
    assert_eq!(found.to_string(), "Workload.Program.Main");
    // An assembly of that name, but another build.
    let bytes = with_mvid(&patched, [7; 16]);
    let image = R2rImage::parse(&bytes).unwrap();
    assert_eq!(
        image.method_name(&image.method_at(0x11dd0).unwrap(), &source),
        None
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Reading everything from damaged tables of a composite ends in results or errors.
    #[test]
    fn damaged_composites_do_not_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        tables in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        static WHOLE: LazyLock<(Vec<u8>, usize)> = LazyLock::new(|| {
            let patched = composite();
            (patched.bytes, patched.header)
        });
        let (mut bytes, header) = WHOLE.clone();
        for (at, value) in edits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        // The header's table of sections, where little damage does much.
        for (at, value) in tables {
            bytes[header + at.index(200)] = value;
        }
        let dll = read("clr10/workload/Workload.dll");
        let metadata = PeImage::parse(&dll).unwrap().metadata().unwrap();
        let source = One("Part", metadata);
        if let Ok(image) = R2rImage::parse(&bytes) {
            for method in image.methods() {
                image.method_name(&method, &source);
                image.definition(&method);
                image.il_offset(&method, method.hot_size / 2, true);
            }
            image.components().count();
            image.base_of(&starts_of_nothing());
        }
    }
}

#[test]
fn il_only_images_are_refused() {
    let dll = read("clr10/workload/Workload.dll");
    assert!(matches!(R2rImage::parse(&dll), Err(Error::NotA { .. })));
}

/// The methods in a trace identify a map, without the image: addresses, sizes and names.
#[test]
fn maps_are_distinguished_by_method_starts() {
    let files = IMAGES.map(|(folder, ..)| {
        let path = |file| format!("clr10/r2r/{folder}/{file}");
        let text = String::from_utf8(read(&path("Workload.ni.r2rmap"))).unwrap();
        (read(&path("Workload.dll")), text)
    });
    let base = 0x7f12_3456_7000;
    for (k, (dll, text)) in files.iter().enumerate() {
        let image = R2rImage::parse(dll).unwrap();
        let names: Vec<_> = image
            .methods()
            .map(|method| image.method_name(&method, &NoAssemblies).unwrap())
            .map(|name| (name.owner_text(), name.name))
            .collect();
        let starts: Vec<_> = image
            .methods()
            .zip(&names)
            .map(|(method, (owner, name))| NamedMethodStart {
                address: base + u64::from(method.start),
                size: Some(method.hot_size),
                name: Some((owner.as_str(), name.as_str())),
            })
            .collect();
        for (l, (_, text)) in files.iter().enumerate() {
            let map = R2rMap::parse(text.as_bytes()).unwrap();
            let found = map.base_of(&starts);
            if k == l {
                assert_eq!(found, BaseMatch::Base(base));
                // One method is enough, as long as its name is known.
                for start in &starts {
                    let alone = map.base_of(&[*start]);
                    assert!(
                        [BaseMatch::Base(base), BaseMatch::Ambiguous].contains(&alone),
                        "{start:?}: {alone:?}"
                    );
                }
            } else {
                assert_eq!(found, BaseMatch::Mismatch);
            }
        }
        let map = R2rMap::parse(text.as_bytes()).unwrap();
        assert_eq!(map.base_of(&[]), BaseMatch::NoStarts);
        let mut changed = starts.clone();
        changed[3].size = changed[3].size.map(|size| size + 1);
        assert_eq!(map.base_of(&changed), BaseMatch::Mismatch);
        changed[3] = starts[3];
        let own = starts[3].name.unwrap();
        for name in [starts[4].name.unwrap(), (own.0, "Other"), ("Other", own.1)] {
            changed[3].name = Some(name);
            assert_eq!(map.base_of(&changed), BaseMatch::Mismatch);
        }
        for start in &mut changed {
            start.name = None;
        }
        assert_eq!(map.base_of(&changed), BaseMatch::Ambiguous);
    }
}

/// Addresses of Thumb code have the lowest bit set; rows of Arm64 may include constants after the
/// code.
#[test]
fn sizes_and_addresses_differ_from_a_map_by_processor() {
    let base = |machine: usize, at: u64, size: u32| {
        let head = format!("FFFFFFFF 00 {}\nFFFFFFFC 00 {machine}\n", "0".repeat(32));
        let text = head + "00001000 60 C::M()\n00002001 60 C::N()\n";
        let map = R2rMap::parse(text.as_bytes()).unwrap();
        let name = if at < 0x2000 { "M" } else { "N" };
        map.base_of(&[NamedMethodStart {
            address: 0x10_0000 + at,
            size: Some(size),
            name: Some(("C", name)),
        }])
    };
    const FOUND: BaseMatch = BaseMatch::Base(0x10_0000);
    let (arm, arm64, x64) = (1, 2, 3);
    for (machine, at, size, wanted) in [
        (arm, 0x1001, 0x60, FOUND),
        (x64, 0x1001, 0x60, BaseMatch::Mismatch),
        (x64, 0x2001, 0x60, FOUND),
        (x64, 0x1000, 0x58, BaseMatch::Mismatch),
        (arm64, 0x1000, 0x58, FOUND),
        (arm64, 0x1000, 0x20, FOUND),
        (arm64, 0x1000, 0x1F, BaseMatch::Mismatch),
        (arm64, 0x1000, 0x61, BaseMatch::Mismatch),
    ] {
        let found = base(machine, at, size);
        assert_eq!(found, wanted, "{machine} {at:#x} {size:#x}");
    }
}

#[test]
fn maps_state_system_and_processor() {
    let parse = |kind: &str, number: usize| {
        let text = format!("FFFFFFFF 00 {}\n{kind} 00 {number}\n", "0".repeat(32));
        R2rMap::parse(text.as_bytes()).unwrap()
    };
    let systems = [
        TargetOs::Windows,
        TargetOs::Linux,
        TargetOs::Apple,
        TargetOs::FreeBsd,
        TargetOs::NetBsd,
        TargetOs::SunOs,
    ];
    for (number, system) in (1..).zip(systems) {
        assert_eq!(parse("FFFFFFFD", number).target_os, Some(system));
    }
    let machines = [Machine::Arm, Machine::Arm64, Machine::X64, Machine::X86];
    for (number, machine) in (1..).zip(machines) {
        assert_eq!(parse("FFFFFFFC", number).machine, Some(machine));
    }
    let unknown = (parse("FFFFFFFD", 7).target_os, parse("FFFFFFFC", 5).machine);
    assert_eq!(unknown, (None, None));
}

#[test]
fn rows_of_maps_name_owner_and_method() {
    for (row, owner, name) in [
        ("Ns.C::M()", "Ns.C", "M"),
        ("Ns.C::.ctor(System.Int32)", "Ns.C", ".ctor"),
        (
            "System.Func`2[A, System.Action`1[B]] Ns.D`2+E[A, B]::F(System.Func`1[C], D)",
            "Ns.D`2+E[A, B]",
            "F",
        ),
        (
            "System.Double Workload.Shapes+Circle::Workload.Shapes.IArea.Area()",
            "Workload.Shapes+Circle",
            "Workload.Shapes.IArea.Area",
        ),
    ] {
        let text = format!("FFFFFFFF 00 {}\n00001000 10 {row}\n", "0".repeat(32));
        let map = R2rMap::parse(text.as_bytes()).unwrap();
        assert_eq!(
            map.methods()[0].owner_and_name(),
            Some((owner, name)),
            "{row}"
        );
    }
    let text = format!("FFFFFFFF 00 {}\n00001000 10 none\n", "0".repeat(32));
    assert_eq!(
        R2rMap::parse(text.as_bytes()).unwrap().methods()[0].owner_and_name(),
        None
    );
}
