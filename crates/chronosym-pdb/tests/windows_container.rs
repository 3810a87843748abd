//! The MSF container in layouts that no available linker writes: the self-made PDBs, split into
//! streams and rebuilt with other page sizes, scattered pages, added streams and damage.

use chronosym_pdb::Error;
use chronosym_pdb::windows::{Frames, Function, FunctionKind, Limitation, WindowsPdb};
use chronosym_support::msf::{
    DBI, DBI_SIZES, part_of_dbi as part, put, put_together, take_apart, without_section_headers,
    word,
};
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::LazyLock;

static SMALL: LazyLock<Vec<u8>> = LazyLock::new(|| read("x86_64/small.pdb"));
static STREAMS: LazyLock<Vec<Option<Vec<u8>>>> = LazyLock::new(|| take_apart(&SMALL));

const PDB: usize = 1;

fn read(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/pdb-small");
    std::fs::read(folder.join(name)).unwrap()
}

fn rebuilt(change: impl FnOnce(&mut Vec<Option<Vec<u8>>>)) -> Vec<u8> {
    let mut streams = STREAMS.clone();
    change(&mut streams);
    put_together(&streams, 4096, 1)
}

/// Every answer of a file, as text.
fn answers(data: &[u8]) -> Vec<String> {
    let pdb = WindowsPdb::open(data).unwrap();
    let mut frames = Frames::new();
    (0x1000..0x1700)
        .map(|rva| {
            let function = pdb.find(rva, &mut frames).unwrap();
            let symbol = pdb.public_symbol(rva).unwrap();
            format!("{rva:#x} {function:?} {:?} {symbol:?}", &*frames)
        })
        .collect()
}

#[test]
fn page_sizes_and_scattered_pages_change_no_answer() {
    let expect = answers(&SMALL);
    for page_size in [512, 1024, 4096, 16384, 65536] {
        for step in [1, 7] {
            let file = put_together(&STREAMS, page_size, step);
            assert!(
                answers(&file) == expect,
                "pages of {page_size}, step {step}"
            );
        }
    }
}

#[test]
fn types_without_index_offsets_are_walked() {
    let file = rebuilt(|streams| {
        for stream in [2, 4] {
            // The hash stream's number, in the TPI and IPI headers.
            streams[stream].as_mut().unwrap()[20..22].fill(0xFF);
        }
    });
    assert!(answers(&file) == answers(&SMALL));
}

/// As PDBs of precompiled .NET Framework images are.
#[test]
fn sections_without_headers_follow_each_other() {
    for machine in ["x86_64", "i686", "aarch64"] {
        let whole = read(&format!("{machine}/small.pdb"));
        let image = read(&format!("{machine}/small.exe"));
        let image = chronosym_pdb::pe::PeImage::parse(&image).unwrap();
        let file = put_together(&without_section_headers(&take_apart(&whole)), 4096, 1);
        let pdb = WindowsPdb::open(&file).unwrap();
        assert_eq!(pdb.assumed_image_size(), Some(image.size_of_image()));
        assert_eq!(WindowsPdb::open(&whole).unwrap().assumed_image_size(), None);
        assert!(answers(&file) == answers(&whole), "{machine}");
    }
}

#[test]
fn publics_of_precompiled_images_lose_their_tokens() {
    for (own, shown) in [
        ("A.B(Int32)$##600001", "A.B(Int32)"),
        ("A.B(Int)$#C.D#60001", "A.B(Int)"),
        ("A.B(Int32)$##60000x", "A.B(Int32)$##60000x"),
        ("A.B(Int32)$#6000001", "A.B(Int32)$#6000001"),
    ] {
        let file = rebuilt(|streams| {
            *streams = without_section_headers(streams);
            let dbi = streams[DBI].as_mut().unwrap();
            let records = u16::from_le_bytes([dbi[20], dbi[21]]);
            let (modules, contributions) = (part(dbi, 0), part(dbi, 1));
            dbi.drain(modules.start..contributions.end);
            put(dbi, DBI_SIZES[0], 0);
            put(dbi, DBI_SIZES[1], 0);
            let records = streams[usize::from(records)].as_mut().unwrap();
            let name = b"?panic_path@@YAXH@Z";
            let at = records.windows(name.len()).position(|w| w == name);
            records[at.unwrap()..][..name.len()].copy_from_slice(own.as_bytes());
        });
        let pdb = WindowsPdb::open(&file).unwrap();
        let mut frames = Frames::new();
        let found = pdb.find(0x1646, &mut frames).unwrap().unwrap();
        assert_eq!(found.name.unwrap().to_string(), shown);
    }
}

#[test]
fn contributions_in_any_order() {
    let file = rebuilt(|streams| {
        let dbi = streams[DBI].as_mut().unwrap();
        let range = part(dbi, 1);
        let entries = &mut dbi[range][4..];
        let mut all: Vec<_> = entries.chunks_exact(28).map(<[u8]>::to_vec).collect();
        all.reverse();
        entries.copy_from_slice(&all.concat());
    });
    assert!(answers(&file) == answers(&SMALL));
}

#[test]
fn without_modules_publics_answer() {
    let file = rebuilt(|streams| {
        let dbi = streams[DBI].as_mut().unwrap();
        let (modules, contributions) = (part(dbi, 0), part(dbi, 1));
        dbi.drain(modules.start..contributions.end);
        put(dbi, DBI_SIZES[0], 0);
        put(dbi, DBI_SIZES[1], 0);
    });
    let pdb = WindowsPdb::open(&file).unwrap();
    assert_eq!(
        pdb.limitations().collect::<Vec<_>>(),
        [Limitation::PublicsOnly]
    );
    let mut frames = Frames::new();
    let function = pdb.find(0x1020, &mut frames).unwrap().unwrap();
    assert_eq!(function.kind, FunctionKind::Public);
    assert_eq!((function.rva, function.len), (0x1010, 0x100));
    assert_eq!(
        function.name.unwrap().to_string(),
        "?twice_inlined@@YAHAEAUVec@geo@@H@Z"
    );
    assert_eq!((frames.len(), frames[0].line), (1, None));
    // The last one ends with its section; data is not code but has names, too.
    let last = pdb.find(0x1646, &mut frames).unwrap().unwrap();
    assert_eq!(last.name.unwrap().to_string(), "?panic_path@@YAXH@Z");
    assert_eq!(pdb.find(0xFFF, &mut frames).unwrap(), None);
    assert!(frames.is_empty());
}

#[test]
fn omap_moves_code() {
    // The optimiser swapped [0x1010, 0x1106) (twice_inlined) to 0x9010 and dropped `filter`.
    let pairs = |pairs: &[(u32, u32)]| {
        let words = pairs.iter().flat_map(|pair| [pair.0, pair.1]);
        Some(words.flat_map(u32::to_le_bytes).collect::<Vec<u8>>())
    };
    let file = rebuilt(|streams| {
        let next = streams.len() as u16;
        streams.push(pairs(&[
            (0x1000, 0x1000),
            (0x1010, 0),
            (0x1150, 0x1150),
            (0x9010, 0x1010),
            (0x9106, 0),
        ]));
        streams.push(pairs(&[
            (0x1000, 0x1000),
            (0x1010, 0x9010),
            (0x1106, 0),
            (0x1150, 0x1150),
        ]));
        let dbi = streams[DBI].as_mut().unwrap();
        let header = part(dbi, 6);
        let sections: [u8; 2] = dbi[header.start + 10..][..2].try_into().unwrap();
        dbi.resize(header.start + 22, 0xFF);
        for (slot, number) in [
            (3, next.to_le_bytes()),
            (4, (next + 1).to_le_bytes()),
            (10, sections),
        ] {
            dbi[header.start + 2 * slot..][..2].copy_from_slice(&number);
        }
        put(dbi, DBI_SIZES[6], 22);
    });
    let (moved, plain) = (
        WindowsPdb::open(&file).unwrap(),
        WindowsPdb::open(&SMALL).unwrap(),
    );
    let (mut frames, mut expect) = (Frames::new(), Frames::new());
    for rva in 0x1010..0x1106 {
        let before = plain.find(rva, &mut expect).unwrap().unwrap();
        let after = moved.find(rva + 0x8000, &mut frames).unwrap().unwrap();
        assert_eq!((after.rva, after.len), (before.rva + 0x8000, before.len));
        assert_eq!(*frames, *expect);
        assert_eq!(moved.find(rva, &mut frames).unwrap(), None);
    }
    assert_eq!(moved.find(0x1110, &mut frames).unwrap(), None);
    let entry = moved.find(0x1160, &mut frames).unwrap().unwrap();
    assert_eq!(
        (entry.rva, entry.name.unwrap().to_string()),
        (0x1160, "entry".to_owned())
    );
}

/// Sections of an image before an optimiser moved code are used only if there are tables that
/// describe the move.
#[test]
fn original_sections_without_omap_mean_nothing() {
    let file = rebuilt(|streams| {
        let next = streams.len() as u16;
        let moved = streams.iter().flatten().find(|s| s.starts_with(b".text\0"));
        let mut moved = moved.unwrap().clone();
        let rva = word(&moved, 12);
        put(&mut moved, 12, rva + 0x1000);
        streams.push(Some(moved));
        let dbi = streams[DBI].as_mut().unwrap();
        let header = part(dbi, 6);
        dbi.resize(header.start + 22, 0xFF);
        dbi[header.start + 20..][..2].copy_from_slice(&next.to_le_bytes());
        put(dbi, DBI_SIZES[6], 22);
    });
    assert!(answers(&file) == answers(&SMALL));
}

/// A section ends with its last byte: bytes after it belong to no function in it.
#[test]
fn the_byte_after_a_section_belongs_to_no_function() {
    let image = read("x86_64/small.exe");
    let image = chronosym_pdb::pe::PeImage::parse(&image).unwrap();
    let pdb = WindowsPdb::open(&SMALL).unwrap();
    let text = image
        .sections()
        .find(|s| s.name.starts_with(b".text"))
        .unwrap();
    let end = text.rva + text.virtual_size;
    assert!(pdb.public_symbol(end - 1).unwrap().is_some());
    assert_eq!(pdb.public_symbol(end).unwrap(), None);
    assert_eq!(pdb.find(end, &mut Frames::new()).unwrap(), None);
}

/// A stream that lists one page again and again would be unpacked to far more than the file has.
#[test]
fn a_stream_larger_than_the_file_is_damage() {
    const PAGE: usize = 512;
    let mut file = put_together(&STREAMS, PAGE, 1);
    let pages = 2 * file.len() / PAGE;
    // A directory of two streams: none, and one of a single page that is listed all over.
    let mut directory = [2, u32::MAX, (pages * PAGE) as u32]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect::<Vec<u8>>();
    directory.extend((0..pages).flat_map(|_| 3_u32.to_le_bytes()));
    let len = directory.len();
    directory.resize(len.next_multiple_of(PAGE), 0);
    let first = file.len() / PAGE;
    file.extend(&directory);
    let list = file.len() / PAGE;
    let numbers = (first..list).flat_map(|page| (page as u32).to_le_bytes());
    file.extend(numbers.collect::<Vec<u8>>());
    file.resize(file.len().next_multiple_of(PAGE), 0);
    let count = file.len() / PAGE;
    for (at, value) in [(40, count), (44, len), (52, list)] {
        put(&mut file, at, value as u32);
    }
    let error = WindowsPdb::open(&file).map(drop).unwrap_err();
    assert!(
        error.to_string().contains("larger than the file"),
        "{error}"
    );
}

/// Returns the offset of a record (`S_GPROC32`) with this name, and those of the line tables of
/// code at an offset.
fn record_and_tables(stream: &[u8], name: &[u8], offset: u32) -> (Option<usize>, Vec<usize>) {
    let words = || (0..stream.len().saturating_sub(14)).step_by(4);
    let record = words().find(|&at| {
        stream[at + 2..at + 4] == 0x1110u16.to_le_bytes()
            && stream[at + 4 + 35..].starts_with(name)
            && stream[at + 4 + 35 + name.len()] == 0
    });
    let tables = words().filter(|&at| {
        word(stream, at) == 0xF2
            && word(stream, at + 8) == offset
            && stream[at + 12..at + 14] == [1, 0]
    });
    (record, tables.collect())
}

fn named<'f>(functions: &'f [Function], name: &str) -> &'f Function {
    let is = |known: &&Function| known.name.as_ref().is_some_and(|known| known.base == name);
    functions.iter().find(is).unwrap()
}

/// Folds a function that no source line made into another one: lines and name stay the other's,
/// whichever has the first record.
#[test]
fn functions_without_lines_take_none_of_those_they_are_folded_with() {
    const TEXT: u32 = 0x1000;
    let plain = WindowsPdb::open(&SMALL).unwrap();
    let functions: Vec<_> = plain.functions().map(Result::unwrap).collect();
    let named = |name: &str| named(&functions, name);
    for (made, into) in [("filter", "entry"), ("BigInt::operator+", "twice_inlined")] {
        let (from, to) = (named(made), named(into));
        let mut changed = 0;
        let file = rebuilt(|streams| {
            for stream in streams.iter_mut().flatten() {
                let found = record_and_tables(stream, made.as_bytes(), from.rva - TEXT);
                if let (Some(record), [table]) = (found.0, &found.1[..]) {
                    // Length and offset of the code; the bit that makes readers skip the record.
                    put(stream, record + 4 + 12, to.len);
                    put(stream, record + 4 + 28, to.rva - TEXT);
                    stream[table + 3] |= 0x80;
                    changed += 1;
                }
            }
        });
        assert_eq!(changed, 1, "{made}");
        let folded = WindowsPdb::open(&file).unwrap();
        let both = folded
            .functions()
            .filter(|found| found.as_ref().unwrap().rva == to.rva);
        assert_eq!(both.count(), 2);
        let (mut frames, mut expect) = (Frames::new(), Frames::new());
        for rva in to.rva..to.rva + to.len {
            let before = plain.find(rva, &mut expect).unwrap();
            assert_eq!(folded.find(rva, &mut frames).unwrap(), before, "{rva:#x}");
            assert_eq!(*frames, *expect, "{rva:#x}");
        }
    }
}

/// Records that no available linker writes, made from a procedure's.
#[test]
fn other_kinds_of_code_records() {
    const TEXT: u32 = 0x1000;
    let plain = WindowsPdb::open(&SMALL).unwrap();
    let functions: Vec<_> = plain.functions().map(Result::unwrap).collect();
    let named = |name: &str| named(&functions, name);
    let (made, other) = (named("from_line_directive"), named("filter"));
    let remade = |kind: u16, fields: &[(usize, u32)]| {
        let mut changed = 0;
        let file = rebuilt(|streams| {
            for stream in streams.iter_mut().flatten() {
                let (record, tables) =
                    record_and_tables(stream, b"from_line_directive", made.rva - TEXT);
                if let (Some(record), [_]) = (record, &tables[..]) {
                    stream[record + 2..record + 4].copy_from_slice(&kind.to_le_bytes());
                    for &(at, value) in fields {
                        put(stream, record + 4 + at, value);
                    }
                    changed += 1;
                }
            }
        });
        assert_eq!(changed, 1);
        file
    };
    let (code, target) = (made.rva - TEXT, other.rva - TEXT);
    // S_SEPCODE: length, offset, the parent's offset, both sections. S_TRAMPOLINE: kind and length,
    // offset, the target's offset, both sections.
    let separated = [(8, made.len), (16, code), (20, target), (24, 0x1_0001)];
    let trampoline = [(0, made.len << 16), (4, code), (8, target), (12, 0x1_0001)];
    for (kind, fields, name, shown) in [
        (0x1132, &separated[..], "filter", FunctionKind::Separated),
        (0x112C, &trampoline[..], "filter", FunctionKind::Trampoline),
        (0x1147, &[], "from_line_directive", FunctionKind::Procedure),
        (0x1146, &[], "from_line_directive", FunctionKind::Procedure),
        (0x1155, &[], "from_line_directive", FunctionKind::Procedure),
        (0x1156, &[], "from_line_directive", FunctionKind::Procedure),
    ] {
        let file = remade(kind, fields);
        let pdb = WindowsPdb::open(&file).unwrap();
        let (mut frames, mut expect) = (Frames::new(), Frames::new());
        for rva in made.rva..made.rva + made.len {
            let found = pdb.find(rva, &mut frames).unwrap().unwrap();
            assert_eq!(
                (found.rva, found.len, found.kind),
                (made.rva, made.len, shown)
            );
            assert_eq!(found.name.unwrap().to_string(), name, "{kind:#x}");
            // The lines are those of the address, whatever record names the code.
            plain.find(rva, &mut expect).unwrap();
            assert_eq!(
                (&frames[0].file, frames[0].line),
                (&expect[0].file, expect[0].line)
            );
        }
    }
}

/// MSVC leaves the names of functions for `__finally` blocks empty.
#[test]
fn inlinees_without_a_name_stay_unnamed() {
    let named = |data: &[u8]| {
        let pdb = WindowsPdb::open(data).unwrap();
        let mut frames = Frames::new();
        let mut inlined = [0, 0];
        for rva in 0x1000..0x1700 {
            pdb.find(rva, &mut frames).unwrap();
            for frame in frames.iter() {
                let name = frame.name.as_ref().map(ToString::to_string);
                assert_ne!(name.as_deref(), Some(""));
                inlined[usize::from(name.is_some())] += usize::from(frame.inlined);
            }
        }
        inlined
    };
    let [0, count] = named(&SMALL) else {
        panic!("a name is missing from the start");
    };
    assert!(count > 0);
    let file = rebuilt(|streams| {
        let ids = streams[4].as_mut().unwrap();
        let mut at = word(ids, 4) as usize;
        while at + 4 <= ids.len() {
            let len = 2 + usize::from(u16::from_le_bytes([ids[at], ids[at + 1]]));
            // LF_FUNC_ID and LF_MFUNC_ID: scope, type, name.
            if matches!(word(ids, at) >> 16, 0x1601 | 0x1602) {
                ids[at + 12] = 0;
            }
            at += len;
        }
    });
    assert_eq!(named(&file), [count, 0]);
}

#[test]
fn files_of_managed_and_native_code_are_distinguished() {
    assert!(!WindowsPdb::open(&SMALL).unwrap().is_managed());
    let file = rebuilt(|streams| {
        for stream in streams.iter_mut().skip(5).flatten() {
            for at in (0..stream.len().saturating_sub(4)).step_by(4) {
                // S_GPROC32, S_LPROC32, S_THUNK32 and related records, except for bytes that only
                // look like them.
                let (len, kind) = (word(stream, at) & 0xFFFF, word(stream, at) >> 16);
                if len > 36
                    && len < 256
                    && matches!(kind, 0x1102 | 0x110F | 0x1110 | 0x1146 | 0x1147)
                {
                    stream[at + 2..at + 4].copy_from_slice(&0x112Au16.to_le_bytes());
                }
            }
        }
    });
    let pdb = WindowsPdb::open(&file).unwrap();
    assert!(pdb.is_managed());
    // Values in managed methods are not addresses: none of them resolves.
    let mut frames = Frames::new();
    for rva in 0x1000..0x1700 {
        let found = pdb.find(rva, &mut frames).unwrap();
        let kind = found.map(|found| found.kind);
        assert!(
            matches!(kind, None | Some(FunctionKind::Public)),
            "{kind:?}"
        );
    }
}

#[test]
fn fastlink_and_missing_parts_are_reported() {
    let limits = |file: &[u8]| {
        WindowsPdb::open(file)
            .unwrap()
            .limitations()
            .collect::<Vec<_>>()
    };
    let fastlink = rebuilt(|streams| {
        let info = streams[PDB].as_mut().unwrap();
        info.extend_from_slice(b"MINI");
    });
    assert_eq!(limits(&fastlink), [Limitation::FastLink]);
    let types_only = rebuilt(|streams| streams[DBI] = None);
    assert_eq!(
        limits(&types_only),
        [
            Limitation::NoDebugInformation,
            Limitation::NoSectionHeaders,
            Limitation::PublicsOnly
        ]
    );
    let pdb = WindowsPdb::open(&types_only).unwrap();
    assert_eq!(pdb.find(0x1020, &mut Frames::new()).unwrap(), None);
    assert_eq!(pdb.public_symbol(0x1020).unwrap(), None);
    let no_headers = put_together(&without_section_headers(&STREAMS), 4096, 1);
    assert_eq!(limits(&no_headers), [Limitation::AssumedSections]);
    let no_sections = rebuilt(|streams| {
        *streams = without_section_headers(streams);
        let dbi = streams[DBI].as_mut().unwrap();
        let map = part(dbi, 2);
        dbi.drain(map);
        put(dbi, DBI_SIZES[2], 0);
    });
    assert_eq!(limits(&no_sections), [Limitation::NoSectionHeaders]);
}

#[test]
fn the_dbi_age_counts() {
    let file = rebuilt(|streams| put(streams[PDB].as_mut().unwrap(), 8, 9));
    let pdb = WindowsPdb::open(&file).unwrap();
    assert_eq!(pdb.id(), WindowsPdb::open(&SMALL).unwrap().id());
    assert_eq!(pdb.id().age, 1);
}

#[test]
fn other_formats_are_named() {
    let what = |data: &[u8]| WindowsPdb::open(data).unwrap_err().to_string();
    assert!(what(b"Microsoft MSFZ Container\r\n\x1aALD\0\0").contains("MSFZ"));
    assert!(what(b"Microsoft C/C++ program database 2.00\r\n\x1aJG\0\0").contains("2.00"));
    assert!(what(b"BSJB\x01\0\x01\0").contains("portable"));
    for data in [&b""[..], b"MZ", &SMALL[..31]] {
        assert_eq!(
            WindowsPdb::open(data).unwrap_err(),
            Error::NotA {
                what: "Windows PDB"
            }
        );
    }
}

#[test]
fn a_truncated_file_is_an_error_at_every_length() {
    for len in (32..SMALL.len()).step_by(97) {
        let error = WindowsPdb::open(&SMALL[..len]).unwrap_err();
        assert!(matches!(error, Error::Truncated { .. }), "{len}: {error}");
    }
}

#[test]
fn absurd_directories() {
    let open = |at: usize, value: u32| {
        let mut file = SMALL.clone();
        put(&mut file, at, value);
        WindowsPdb::open(&file).map(drop)
    };
    for (at, value) in [
        (32, 0),
        (32, 3000),
        (32, 1 << 31),
        (40, u32::MAX),
        (44, 0),
        (44, u32::MAX),
        (52, u32::MAX),
    ] {
        let error = open(at, value).unwrap_err().to_string();
        assert_eq!(at == 32, error.contains("page size"), "{at} {value:#x}");
    }
    let directory = word(&SMALL, word(&SMALL, 52) as usize * 4096) as usize * 4096;
    // The number of streams, and the size of one of them.
    assert!(open(directory, u32::MAX).is_err());
    assert!(open(directory + 4 + 4 * DBI, u32::MAX - 1).is_err());
}

#[test]
fn streams_that_share_pages_end() {
    // Every page list names the same page repeatedly: the streams are their own neighbours.
    let count = STREAMS.len();
    let directory = word(&SMALL, word(&SMALL, 52) as usize * 4096) as usize * 4096;
    let end = directory + word(&SMALL, 44) as usize;
    for page in 0..(SMALL.len() / 4096) as u32 {
        let mut file = SMALL.clone();
        for at in (directory + 4 + 4 * count..end).step_by(4) {
            put(&mut file, at, page);
        }
        ask(&file);
    }
}

/// Asks everything of a damaged file; the answers may be errors, but must come.
fn ask(file: &[u8]) {
    let Ok(pdb) = WindowsPdb::open(file) else {
        return;
    };
    let mut frames = Frames::new();
    for rva in (0x1000..0x1700).step_by(23).chain([0, 0x2080, u32::MAX]) {
        let _ = pdb.find(rva, &mut frames);
        let _ = pdb.public_symbol(rva);
    }
    assert!(pdb.functions().take(100_000).count() < 100_000);
    let _ = pdb.managed_line(0x0600_0001, 3);
    let _ = (pdb.limitations().count(), pdb.id());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn flipped_bits_never_panic(flips in prop::collection::vec((0usize..90112, 0u8..8), 1..40)) {
        let mut file = SMALL.clone();
        for (at, bit) in flips {
            let at = at % file.len();
            file[at] ^= 1 << bit;
        }
        ask(&file);
    }

    /// Damage in the streams that are read, with a valid container.
    #[test]
    fn damaged_streams_never_panic(
        damage in prop::collection::vec((0usize..24, any::<prop::sample::Index>(), any::<u32>()), 1..12),
        cut in prop::option::of((0usize..24, any::<prop::sample::Index>())),
    ) {
        let file = rebuilt(|streams| {
            let count = streams.len();
            for (stream, at, value) in damage {
                if let Some(data) = streams[stream % count].as_mut().filter(|data| data.len() >= 4) {
                    let at = at.index(data.len() - 3);
                    put(data, at, value);
                }
            }
            if let Some((stream, at)) = cut
                && let Some(data) = streams[stream % count].as_mut().filter(|data| !data.is_empty())
            {
                data.truncate(at.index(data.len()));
            }
        });
        ask(&file);
    }

    #[test]
    fn bytes_of_any_kind_never_panic(tail in prop::collection::vec(any::<u8>(), 0..2048)) {
        let mut file = b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0".to_vec();
        file.extend_from_slice(&512u32.to_le_bytes());
        file.extend_from_slice(&1u32.to_le_bytes());
        file.extend_from_slice(&2u32.to_le_bytes());
        file.extend_from_slice(&tail);
        ask(&file);
    }
}
