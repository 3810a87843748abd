//! Symbol files and their containers, crafted to take time quadratic in their size or excessive
//! memory: each is used within limits.
#![cfg(target_os = "linux")]

mod bounded;
mod common;
#[path = "../../chronosym-symbols/tests/made/mod.rs"]
mod made;

use std::io::{Read, Write};
use std::net::TcpListener;

use bounded::{bounded, bytes_in, holds, path};
use chronosym_support::perf::{PerfAttr, PerfWriter};
use common::*;

const OBJ: &[&str] = &["symbolize", "0x1000", "0x1010", "--obj"];
const MIB: usize = 1 << 20;

type Section = (&'static str, u32, u64, u64, Vec<u8>);

/// Returns a compressed section of debug information: its ELF type and size, and its bytes.
fn packed(name: &'static str, kind: u32, size: usize, bytes: &[u8]) -> Section {
    const COMPRESSED: u64 = 0x800;
    let mut all = [kind, 0].map(u32::to_le_bytes).concat();
    all.extend([size as u64, 1].map(u64::to_le_bytes).concat());
    all.extend(bytes);
    (name, 1, COMPRESSED, 0, all)
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A frame of zstd that repeats a byte: its window in powers of two, blocks of 128 KiB.
fn zstd(window: u8, blocks: usize) -> Vec<u8> {
    const RUN: u32 = 1;
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0, (window - 10) << 3];
    for left in (0..blocks).rev() {
        let header = (128 << 10) << 3 | RUN << 1 | u32::from(left == 0);
        out.extend(&header.to_le_bytes()[..3]);
        out.push(0);
    }
    out
}

/// A MiB of zeros as xz packs it.
fn xz() -> Vec<u8> {
    const HEX: &str = "fd377a585a0000016922de360200210116000000742fe5a3efffff00d95d00006ffdffffa3b7ff473e481572396151b89228\
        e6a38607f9eee41e82d32fc53a3c014bb17ec98a8a4d2fa30dd97fa6e38c231153e05918c5758ae277f8b6947f0c6ac0de744964e2e95c53b204d8\
        f7440cab5f0d6d46e9e5c37688b79657acb64de1691d6ffb4b88106c42cb883f5c008fd04eaf262894711f3d8f24e1709ea7235fec28cb85d19598\
        8a7e2a91f22775f719c006984d98fdd8afd5900fc42553f8f591363105a5b0ee6fc1704d470cd19111aaad601dbaceb127185c5986e9665258bee9\
        76ac59e4e55b0508f9c7daadfcfb522af7e4952500000000001cea38a70001f101808040006fd5eedc3e300d8b020000000001595a";
    let digits = HEX.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

/// The sections of a small program, and more.
fn program(more: impl IntoIterator<Item = Section>) -> Vec<u8> {
    let sections: Vec<_> = made::program().into_iter().chain(more).collect();
    made::elf(&sections)
}

#[test]
fn debug_sections_of_zeros() {
    let zeros = |n: usize| vec![0; n * MIB];
    holds("packed by zlib", OBJ, 8, |n| {
        program([packed(".debug_str", 1, n * MIB, &zlib(&zeros(n)))])
    });
    for window in [20, 26] {
        holds("packed by zstd", OBJ, 100, |n| {
            let size = n * (128 << 10);
            program([packed(".debug_str", 2, size, &zstd(window, n))])
        });
    }
    let runs = holds("many of them", OBJ, 12, |n| {
        const NAMES: [&str; 5] = [
            ".debug_str",
            ".debug_line_str",
            ".debug_rnglists",
            ".debug_aranges",
            ".debug_addr",
        ];
        let zeros = zlib(&zeros(n));
        program(NAMES.map(|name| packed(name, 1, n * MIB, &zeros)))
    });
    assert!(runs[0].stdout.contains("outer"), "{}", runs[0].stdout);
    // Units and line tables are decompressed on demand.
    for name in [".debug_info", ".debug_line"] {
        holds("in parts", OBJ, 8, |n| {
            let own = made::program()
                .into_iter()
                .filter(|section| section.0 != name);
            let sections: Vec<_> = own
                .chain([packed(name, 1, n * MIB, &zlib(&zeros(n)))])
                .collect();
            made::elf(&sections)
        });
    }
}

#[test]
fn whole_files_of_zeros() {
    let runs = holds("gzip", OBJ, 8, |n| gzipped(&vec![0; n * MIB]));
    assert!(runs[1].stderr.contains("limit"), "{}", runs[1].stderr);
    let xz = xz();
    let runs = holds("xz", OBJ, 40, |n| xz.repeat(n));
    assert!(runs[1].stderr.contains("limit"), "{}", runs[1].stderr);
    for window in [20, 26] {
        let runs = holds("zstd", OBJ, 500, |n| zstd(window, n));
        assert!(runs[1].stderr.contains("limit"), "{}", runs[1].stderr);
    }
    holds("a packed table of symbols", OBJ, 40, |n| {
        program([(".gnu_debugdata", 1, 0, 0, xz.repeat(n))])
    });
    holds("frames of zstd that hold nothing", OBJ, 10_000, |n| {
        zstd(10, 1)[..6]
            .iter()
            .copied()
            .chain([1, 0, 0])
            .collect::<Vec<_>>()
            .repeat(n)
    });
}

/// A recording with samples in the kernel.
fn kernel() -> tempfile::TempPath {
    const BASE: u64 = 0xffff_ffff_8100_0000;
    let mut perf = PerfWriter::new(PerfAttr::default());
    let body = perf.body().u32(u32::MAX).u32(0).words(&[BASE, 0x1000, 0]);
    perf.kernel_record(1, 1, body.name("[kernel.kallsyms]_text"), 1, u32::MAX);
    for i in 0..100 {
        let chain = [0xffff_ffff_ffff_ff80, BASE + i];
        perf.sample(2 + i, 7, 7, &chain);
    }
    file(&perf.file())
}

#[test]
fn lists_of_the_kernels_functions() {
    let trace = kernel();
    let command = [
        "stacks",
        "--format",
        "folded",
        path(&trace),
        "--kallsyms",
        "{}",
    ];
    let rows = |name: &str, row: &dyn Fn(usize) -> String| {
        let runs = holds(name, &command, 6_000, |n| {
            let rows = (0..n).map(row);
            let head = "ffffffff81000000 T _text\n".to_owned();
            (head + &rows.collect::<String>()).into_bytes()
        });
        assert_eq!(runs[1].status, 0, "{name}: {}", runs[1].stderr);
    };
    rows("one address", &|i| format!("ffffffff81000000 t f{i}\n"));
    rows("backwards", &|i| {
        format!("{:x} t f\n", 0xffff_ffff_8200_0000_u64 - i as u64)
    });
    rows("the kernel again and again", &|i| {
        format!("{:x} T _text\n", 0xffff_ffff_8000_0000_u64 + i as u64)
    });
    rows("a module a row", &|i| {
        format!("ffffffffc0000000 t f\t[m{i}]\n")
    });
    rows("underscores", &|_| {
        format!("ffffffff81000000 t {}\n", "_".repeat(100))
    });
}

/// A server that answers everything with this, until the test ends.
fn server(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(&answer);
        }
    });
    address
}

fn response(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n{head}\r\n");
    [head.as_bytes(), body].concat()
}

/// Returns a cabinet with this many files of zeros.
fn cabinet(files: usize, size: usize) -> Vec<u8> {
    let mut builder = cab::CabinetBuilder::new();
    let folder = builder.add_folder(cab::CompressionType::MsZip);
    for at in 0..files {
        folder.add_file(format!("{at}.pdb"));
    }
    let mut writer = builder.build(std::io::Cursor::new(Vec::new())).unwrap();
    while let Some(mut file) = writer.next_file().unwrap() {
        file.write_all(&vec![0; size]).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn answers_of_servers() {
    let trace = arg(LINUX);
    let best = flate2::Compression::best();
    let mut zeros = flate2::write::GzEncoder::new(Vec::new(), best);
    zeros.write_all(&vec![0; 64 * MIB]).unwrap();
    let zeros = zeros.finish().unwrap();
    let without_length = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n\r\n";
    let answers = [
        (
            "packed on the way",
            response("Content-Encoding: gzip\r\n", &zeros),
        ),
        (
            "of no stated length",
            [without_length.as_bytes(), &zeros].concat(),
        ),
        ("a packed file", response("", &zeros)),
        ("a file of xz", response("", &xz().repeat(512))),
        ("a cabinet", response("", &cabinet(1, 64 * MIB))),
        (
            "a cabinet of many files",
            response("", &cabinet(20_000, 10)),
        ),
        ("a cabinet of nothing", response("", &cabinet(1, 0))),
        (
            "the head of a cabinet again and again",
            response("", &cabinet(1, 1)[..44].repeat(10_000)),
        ),
        ("nothing at all", Vec::new()),
        ("no HTTP", b"220 mail.example ESMTP\r\n".repeat(1_000)),
        (
            "headers without end",
            [
                b"HTTP/1.1 200 OK\r\n".as_slice(),
                &b"A: b\r\n".repeat(1 << 20),
            ]
            .concat(),
        ),
    ];
    for (name, answer) in answers {
        let cache = tempfile::tempdir().unwrap();
        let path = format!("srv*{}*{}", cache.path().display(), server(answer));
        let run = bounded(&["symbols", "--symbol-path", &path, &trace]);
        run.assert_ended_well(name);
        // Nothing of it is kept.
        let kept = bytes_in(cache.path());
        assert!(kept < 64 << 20, "{name}: {kept}");
    }
}
