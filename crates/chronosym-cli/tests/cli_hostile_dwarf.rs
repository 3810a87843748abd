//! Debug information and unwind tables made to take the square of their size or far more memory.
#![cfg(target_os = "linux")]

mod bounded;
mod common;
#[path = "../../chronosym-symbols/tests/made/mod.rs"]
mod made;

use bounded::{holds, holds_in};
use chronosym_support::perf::{PerfAttr, PerfWriter};

const OBJ: &[&str] = &["symbolize", "0x1000", "0x1010", "--obj"];

/// Returns a unit: its header and entries; `abbreviations` is the offset of its abbreviations.
fn unit(abbreviations: u32, entries: &[u8]) -> Vec<u8> {
    let mut body = vec![4, 0];
    body.extend(abbreviations.to_le_bytes());
    body.push(8);
    body.extend(entries);
    made::with_length(body)
}

fn dwarf(abbreviations: Vec<u8>, info: Vec<u8>) -> Vec<u8> {
    made::elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x10000]),
        (".debug_abbrev", 1, 0, 0, abbreviations),
        (".debug_info", 1, 0, 0, info),
    ])
}

/// Returns a unit with code from 0x1000 on, and these entries.
fn root(entries: &[u8]) -> Vec<u8> {
    let mut out = vec![1];
    out.extend(0x1000u64.to_le_bytes());
    out.extend(0x4000u64.to_le_bytes());
    out.extend(entries);
    out
}

/// Abbreviation 1: a unit with children, from an address on, so long.
const UNIT: &[u8] = &[1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0];

#[test]
fn debug_information() {
    holds("attributes without bytes", OBJ, 4_000, |n| {
        // A function whose address is in its abbreviation.
        let mut abbreviations = [UNIT, &[2, 0x2e, 0, 0x11, 0x21, 1]].concat();
        abbreviations.extend([0x34, 0x19].repeat(n));
        abbreviations.extend([0, 0, 0]);
        dwarf(abbreviations, unit(0, &root(&vec![2; n])))
    });
    holds("units in one long list of abbreviations", OBJ, 500, |n| {
        let abbreviations = UNIT.repeat(n);
        let units = (0..n).flat_map(|at| unit((at * UNIT.len()) as u32, &root(&[0])));
        dwarf(abbreviations, units.collect())
    });
    let nested = |n: usize| {
        // A function, and in it others inlined into each other.
        let abbreviations = [
            UNIT,
            &[2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0],
            &[3, 0x1d, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, 0],
        ];
        let range = [0x1000u64, 0x4000].map(u64::to_le_bytes).concat();
        let mut entries = [&b"\x02outer\0"[..], &range].concat();
        for at in 0..n {
            entries.extend(format!("\x03in{at}\0").bytes());
            entries.extend(&range);
        }
        dwarf(abbreviations.concat(), unit(0, &root(&entries)))
    };
    let mut ask = OBJ.to_vec();
    let addresses: Vec<String> = (0..500)
        .map(|at| format!("{:#x}", 0x1000 + 4 * at))
        .collect();
    ask.splice(1..1, addresses.iter().map(String::as_str));
    let runs = holds("functions inlined into each other", &ask, 500, nested);
    // The innermost ones, and the function that they are in.
    assert!(runs[1].stdout.contains("in3999"), "{:.300}", runs[1].stdout);
    assert!(runs[1].stdout.contains("outer"), "{:.300}", runs[1].stdout);
    holds("references to each other", OBJ, 2_000, |n| {
        let abbreviations = [
            UNIT,
            &[2, 0x2e, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0, 0],
        ];
        let entry = |at: usize| {
            let next = (28 + 21 * ((at + 1) % n)) as u32;
            let range = [0x1000 + at as u64 % 64, 1].map(u64::to_le_bytes).concat();
            [&[2][..], &next.to_le_bytes(), &range].concat()
        };
        let entries: Vec<u8> = (0..n).flat_map(entry).collect();
        dwarf(abbreviations.concat(), unit(0, &root(&entries)))
    });
}

/// A file of 10 MB whose one function has a name of that length, printed for each address.
#[test]
fn a_long_name_of_a_function() {
    const QUERIES: usize = 4_000;
    let named = |n: usize| {
        let abbreviations = [
            UNIT,
            &[2, 0x2e, 0, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, 0],
        ];
        let range = [0x1000u64, 0x10000].map(u64::to_le_bytes).concat();
        let entries = [&[2], &*vec![b'n'; n], &[0], &range, &[0]].concat();
        dwarf(abbreviations.concat(), unit(0, &root(&entries)))
    };
    let ask = many(QUERIES);
    let ask: Vec<&str> = ask.iter().map(String::as_str).collect();
    for run in holds("a long name of a function", &ask, 10 << 17, named) {
        assert_eq!(run.stdout.matches("nnn\u{2026}").count(), QUERIES);
        assert!(run.stdout.len() < QUERIES * 4_200, "{}", run.stdout.len());
    }
}

/// Returns arguments for every fourth address of the code, with a placeholder for the file.
fn many(count: usize) -> Vec<String> {
    let addresses = (0..count).map(|at| format!("{:#x}", 0x1000 + 4 * at));
    [
        vec!["symbolize".to_owned()],
        addresses.collect(),
        vec!["--obj".to_owned()],
    ]
    .concat()
}

/// Returns units of four bytes of code each; `one` makes the entry of each from its address.
fn small_units(n: usize, one: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    (0..n).flat_map(one).collect()
}

fn places(at: usize) -> Vec<u8> {
    [0x1000 + 4 * at as u64, 4].map(u64::to_le_bytes).concat()
}

#[test]
fn abbreviations() {
    let ask = many(2_000);
    let ask: Vec<&str> = ask.iter().map(String::as_str).collect();
    holds(
        "a list that each unit has from its own place on",
        &ask,
        500,
        |n| {
            let abbreviations = [UNIT, &[2, 0x34, 0, 0x49, 0x13, 0, 0].repeat(20)].concat();
            let units = small_units(n, |at| {
                unit(
                    (at * abbreviations.len()) as u32,
                    &[&[1][..], &places(at), &[0]].concat(),
                )
            });
            dwarf(abbreviations.repeat(n), units)
        },
    );
    holds("numbers whose hashes are one", OBJ, 4_000, |n| {
        // Inverts the usual multiplier of hash maps with integer keys.
        let inverse = (0..6).fold(1_u64, |x, _| {
            x.wrapping_mul(2_u64.wrapping_sub(x.wrapping_mul(0xf135_7aea_2e62_a9c5)))
        });
        let mut abbreviations = Vec::new();
        for at in 1..n as u64 {
            let mut code = at.wrapping_mul(inverse);
            while code >= 0x80 {
                abbreviations.push(code as u8 | 0x80);
                code >>= 7;
            }
            abbreviations.extend([code as u8, 0x34, 0, 0, 0]);
        }
        abbreviations.extend(UNIT);
        dwarf(abbreviations, unit(0, &root(&[0])))
    });
}

/// Returns the header of a DWARF 5 split unit or skeleton, and its entry.
fn half_of_unit(kind: u8, id: u64, entry: &[u8]) -> Vec<u8> {
    let head = [5, 0, kind, 8, 0, 0, 0, 0];
    made::with_length([&head[..], &id.to_le_bytes(), entry].concat())
}

#[test]
fn split_units() {
    let ask = many(8_000);
    let mut ask: Vec<&str> = ask.iter().map(String::as_str).collect();
    ask.push("{}/input");
    // Each with the name of its file, and where its code is.
    let skeleton = [1, 0x4a, 0, 0x76, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, 0];
    let skeletons = |n: usize| {
        let units = small_units(n, |at| {
            half_of_unit(4, 1 + at as u64, &[b"\x01a.dwo\0", &*places(at)].concat())
        });
        dwarf(skeleton.to_vec(), units)
    };
    let package = |n: usize, index: Vec<u8>| {
        let units = small_units(n, |at| half_of_unit(5, 1 + at as u64, b"\x01"));
        made::elf(&[
            (".text", 1, 6, 0x1000, vec![0x90; 0x10000]),
            (".debug_abbrev.dwo", 1, 0, 0, vec![1, 0x11, 0, 0, 0, 0]),
            (".debug_info.dwo", 1, 0, 0, units),
            (".debug_cu_index", 1, 0, 0, index),
        ])
    };
    let write = |folder: &std::path::Path, name: &str, bytes: Vec<u8>| {
        std::fs::write(folder.join(name), bytes).unwrap();
    };
    holds_in("a package without an index", &ask, 1_500, |folder, n| {
        write(folder, "input", skeletons(n));
        write(folder, "input.dwp", package(n, Vec::new()));
    });
    holds_in(
        "an index that is full of others",
        &ask,
        1_500,
        |folder, n| {
            let slots = (8 * n).next_power_of_two();
            // DWARF 5, no sections, one unit.
            let mut index = [5, 0, 1, slots as u32].map(u32::to_le_bytes).concat();
            index.extend((0..slots as u64).flat_map(|slot| (slot | 1 << 63).to_le_bytes()));
            index.extend(1_u32.to_le_bytes().repeat(slots));
            write(folder, "input", skeletons(n));
            write(folder, "input.dwp", package(n, index));
        },
    );
    holds_in("one file for all", &ask, 1_500, |folder, n| {
        write(folder, "input", skeletons(n));
        write(folder, "a.dwo", package(n, vec![0; 1 << 20]));
    });
}

/// Returns `.eh_frame` of one function, the only code: its frame is 8 above the stack pointer, the
/// return address is there, and the instructions repeat that.
fn call_frames(instructions: &[u8]) -> Vec<u8> {
    let mut common = [
        &[0; 4][..],
        b"\x01zR\0\x01\x78\x10\x01\0\x0c\x07\x08\x90\x01",
    ]
    .concat();
    common.resize(common.len().next_multiple_of(8) + 4, 0);
    let mut section = made::with_length(common);
    let mut own = (section.len() as u32 + 4).to_le_bytes().to_vec();
    own.extend([0x1000, 0x4000].map(u64::to_le_bytes).concat());
    own.push(0);
    own.extend(instructions);
    section.extend(made::with_length(own));
    section.extend([0; 4]);
    section
}

/// An image with its code, which is mapped, a build id, and these tables.
fn mapped(table: Vec<u8>) -> Vec<u8> {
    let note = [
        &[4_u32, 4, 3].map(u32::to_le_bytes).concat()[..],
        b"GNU\0",
        &[0xaa; 4],
    ]
    .concat();
    let mut file = made::elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x4000]),
        (".eh_frame", 1, 2, 0x10_0000, table),
        (".note.gnu.build-id", 7, 2, 0x400, note),
    ]);
    let at = (file.len() as u64).to_le_bytes();
    file[32..40].copy_from_slice(&at);
    file[56] = 1;
    file.extend([1_u32, 5].map(u32::to_le_bytes).concat());
    file.extend(
        [64_u64, 0x1000, 0x1000, 0x4000, 0x4000, 0x1000]
            .map(u64::to_le_bytes)
            .concat(),
    );
    file
}

#[test]
fn unwind_tables() {
    const STACK: u64 = 0x7ffc_0000;
    let ask = [
        "stacks",
        "--format",
        "folded",
        "--trust-trace-paths",
        "{}/perf.data",
    ];
    let walked = |name: &str,
                  size: usize,
                  words: usize,
                  table: &dyn Fn(usize) -> Vec<u8>,
                  samples: &dyn Fn(usize) -> usize| {
        holds_in(name, &ask, size, |folder, n| {
            let image = folder.join("a.so");
            std::fs::write(&image, mapped(table(n))).unwrap();
            let mut perf = PerfWriter::new(PerfAttr {
                sample_type: 0x7 | 1 << 12 | 1 << 13,
                regs_user: 0xff_0fff,
                ..PerfAttr::default()
            });
            perf.comm(1, 7, 7, "app");
            let file = perf
                .body()
                .u32(7)
                .u32(7)
                .words(&[0x1000, 0x4000, 64])
                .u32(4);
            let file = file.raw(&[0xaa; 4]).raw(&[0; 16]).u32(5).u32(2);
            perf.kernel_record(10, 2 | 1 << 14, file.name(bounded::path(&image)), 2, 7);
            for at in 0..samples(n) as u64 {
                let stack: Vec<u64> = (0..words as u64)
                    .map(|word| 0x1001 + (at + word) % 0x3000)
                    .collect();
                let mut registers = [0; 20];
                (registers[7], registers[8]) = (STACK, 0x1010);
                let body = perf.body().u64(0x1010).u32(7).u32(7).u64(3 + at);
                let size = 8 * words as u64;
                let body = body.u64(2).words(&registers).u64(size);
                perf.record(9, 2, body.words(&stack).u64(size));
            }
            std::fs::write(folder.join("perf.data"), perf.file()).unwrap();
        })
    };
    let runs = walked(
        "a long table and many frames",
        2,
        7_000,
        &|_| call_frames(&[0x0e, 8].repeat(30_000)),
        &|n| n,
    );
    let lines = runs[0].stdout.lines();
    let frames = lines.map(|line| line.split(';').count()).max();
    assert!(frames > Some(1_000), "{frames:?}: {}", runs[0].stderr);
    // An expression that jumps back to its own start.
    let endless = [&[0x16, 3, 3][..], &[0x2f, 0xfd, 0xff]].concat();
    walked(
        "expressions that never end",
        2,
        7_000,
        &|_| call_frames(&endless.repeat(15)),
        &|n| n,
    );
    walked(
        "functions without end",
        4_000,
        10,
        &|n| call_frames(&[]).repeat(n),
        &|_| 1,
    );
    walked(
        "heads that all share",
        4_000,
        10,
        &|n| {
            let mut one = call_frames(&[]);
            let own = one.split_off(28);
            let entry = &own[..own.len() - 4];
            let mut all = one;
            for _ in 0..n {
                let back = (all.len() as u32 + 4).to_le_bytes();
                all.extend(&entry[..4]);
                all.extend(back);
                all.extend(&entry[8..]);
            }
            all
        },
        &|_| 1,
    );
}
