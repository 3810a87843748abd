//! Windows PDBs crafted to take time quadratic in their size or excessive memory: each is resolved
//! within limits.
#![cfg(target_os = "linux")]

mod bounded;
mod common;

use bounded::holds;
use chronosym_support::msf::{self, DBI, part_of_dbi, put, put_together, take_apart};
use common::*;

const ASK: &[&str] = &["symbolize", "0x1010", "0x1020", "0x1030", "--pdb"];

/// Type and id streams.
const IPI: usize = 4;
/// The first id of a stream that has some.
const FIRST: u32 = 0x1000;

/// A record of symbols, types or ids: its length, its kind, its body.
fn record(kind: u16, body: &[u8]) -> Vec<u8> {
    let len = (body.len() + 2) as u16;
    [&len.to_le_bytes()[..], &kind.to_le_bytes(), body].concat()
}

/// A procedure of the first section; `end` is where its scope ends.
fn procedure(offset: u32, len: u32, end: u32) -> Vec<u8> {
    let mut body = [0, end, 0, len, 0, 0, 0, offset]
        .map(u32::to_le_bytes)
        .concat();
    body.extend(b"\x01\0\0f\0");
    record(0x1110, &body)
}

fn inline_site(inlinee: u32) -> Vec<u8> {
    // From the start of the procedure on, 0x3fff bytes.
    let annotations = [3, 0, 4, 0xbf, 0xff];
    let body = [0, 0, inlinee].map(u32::to_le_bytes).concat();
    record(0x114d, &[&body[..], &annotations].concat())
}

/// Returns the symbols of a compiland: records after their signature.
fn symbols(records: &[Vec<u8>]) -> Vec<u8> {
    [&4_u32.to_le_bytes()[..], &records.concat()].concat()
}

/// A stream of these ids, its pairs of index and offset in the stream of that number, if in any.
fn ids(records: &[Vec<u8>], hash: Option<u16>) -> Vec<u8> {
    let mut out = vec![0; 56];
    let bytes = records.concat();
    put(&mut out, 4, 56);
    put(&mut out, 8, FIRST);
    put(&mut out, 12, FIRST + records.len() as u32);
    put(&mut out, 16, bytes.len() as u32);
    out[20..22].copy_from_slice(&hash.unwrap_or(u16::MAX).to_le_bytes());
    put(&mut out, 44, if hash.is_some() { 8 } else { 0 });
    [out, bytes].concat()
}

/// The small PDB with other symbols and lines in the compiland that has the code at 0x1010.
fn pdb(symbols: Vec<u8>, lines: Vec<u8>, ids: Option<Vec<u8>>) -> Vec<u8> {
    let mut streams = take_apart(&std::fs::read(testdata("pdb-small/x86_64/small.pdb")).unwrap());
    let dbi = streams[DBI].as_mut().unwrap();
    // All code is the first compiland's.
    let contributions = part_of_dbi(dbi, 1);
    for one in dbi[contributions][4..].chunks_exact_mut(28) {
        one[16..18].fill(0);
    }
    let module = part_of_dbi(dbi, 0).start;
    let stream = usize::from(u16::from_le_bytes([dbi[module + 34], dbi[module + 35]]));
    for (at, size) in [(36, symbols.len()), (40, 0), (44, lines.len())] {
        put(dbi, module + at, size as u32);
    }
    streams[stream] = Some([symbols, lines].concat());
    if let Some(ids) = ids {
        streams[IPI] = Some(ids);
        // Offset of the first record, for streams that state it.
        streams.push(Some([FIRST, 0].map(u32::to_le_bytes).concat()));
    }
    put_together(&streams, 4096, 1)
}

#[test]
fn inlined_functions() {
    let runs = holds("sites in sites", ASK, 4_000, |n| {
        let sites = (0..n).map(|_| inline_site(FIRST));
        let all: Vec<_> = [procedure(0, 0x4000, u32::MAX)]
            .into_iter()
            .chain(sites)
            .collect();
        let id = record(0x1601, b"\0\0\0\0\0\0\0\0inlined\0");
        pdb(symbols(&all), Vec::new(), Some(ids(&[id], None)))
    });
    assert!(
        runs[1].stdout.contains("inlined"),
        "{:.300}",
        runs[1].stdout
    );
    let runs = holds("one long name for all", ASK, 1_000, |n| {
        let sites = (0..n).map(|_| inline_site(FIRST));
        let all: Vec<_> = [procedure(0, 0x4000, u32::MAX)]
            .into_iter()
            .chain(sites)
            .collect();
        let id = [&[0; 8][..], &[b'n'; 60_000], &[0]].concat();
        pdb(
            symbols(&all),
            Vec::new(),
            Some(ids(&[record(0x1601, &id)], None)),
        )
    });
    assert!(runs[1].stdout.len() < 1 << 20, "{}", runs[1].stdout.len());
    let runs = holds("scopes of nothing in each other", ASK, 500, |n| {
        // Each lists the one before it again and again; the first is an empty text.
        let list = |scope: u32| {
            let body = [
                (n as u32).to_le_bytes().to_vec(),
                scope.to_le_bytes().repeat(n),
            ];
            record(0x1604, &body.concat())
        };
        let mut all = vec![record(0x1605, &[0; 5])];
        all.extend((0..14).map(|at| list(FIRST + at)));
        let scope = FIRST + all.len() as u32 - 1;
        all.push(record(
            0x1601,
            &[&scope.to_le_bytes()[..], b"\0\0\0\0f\0"].concat(),
        ));
        let site = inline_site(scope + 1);
        let code = symbols(&[procedure(0, 0x4000, u32::MAX), site]);
        pdb(code, Vec::new(), Some(ids(&all, None)))
    });
    assert!(
        runs[1].stdout.contains("inlined into f+0x10"),
        "{}",
        runs[1].stdout
    );
    holds("ids of which one place is said", ASK, 4_000, |n| {
        let id = record(0x1601, b"\0\0\0\0\0\0\0\0inlined\0");
        let sites = (0..n as u32).map(|at| inline_site(FIRST + n as u32 - 1 - at));
        let all: Vec<_> = [procedure(0, 0x4000, u32::MAX)]
            .into_iter()
            .chain(sites)
            .collect();
        let last =
            take_apart(&std::fs::read(testdata("pdb-small/x86_64/small.pdb")).unwrap()).len();
        let ids = ids(&vec![id; n], Some(last as u16));
        pdb(symbols(&all), Vec::new(), Some(ids))
    });
}

/// Lines of the code at an offset of the first section.
fn lines(offset: u32) -> Vec<u8> {
    let head = [offset, 1, 0x10].map(u32::to_le_bytes).concat();
    let block = [0, 1, 20, 0, 7].map(u32::to_le_bytes).concat();
    let body = [head, block].concat();
    [
        &[0xf2_u32, body.len() as u32].map(u32::to_le_bytes).concat()[..],
        &body,
    ]
    .concat()
}

#[test]
fn procedures() {
    let addresses: Vec<String> = (0..500).map(|at| format!("{:#x}", 0x1000 + at)).collect();
    let mut many = vec!["symbolize"];
    many.extend(addresses.iter().map(String::as_str));
    many.push("--pdb");
    holds("at one place, each but one with lines", ASK, 3_000, |n| {
        let all = vec![procedure(0, 0x4000, 0); n];
        let tables = lines(0).repeat(n - 1);
        pdb(symbols(&all), tables, None)
    });
    holds("pieces that lie apart", &many, 3_000, |n| {
        // Each chunk of two bytes claims to belong to the first procedure.
        let piece = |at: u32| {
            let mut body = [0, 0, 1, 0, 0x1000 + at, 0].map(u32::to_le_bytes).concat();
            body.extend([1, 0, 1, 0]);
            record(0x1132, &body)
        };
        let own = (0..500).map(|at| procedure(at, 1, 0));
        let all: Vec<_> = own.chain((0..n as u32).map(piece)).collect();
        pdb(symbols(&all), Vec::new(), None)
    });
    holds("lines again and again", &many, 3_000, |n| {
        pdb(
            symbols(&[procedure(0, 0x4000, 0)]),
            lines(0).repeat(n),
            None,
        )
    });
}

#[test]
fn headers_that_lie() {
    for offset in [0x20, 0x28, 0x2c, 0x34] {
        let ask = ["symbolize", "0x1000", "--pdb"];
        holds("a number of the first page", &ask, 1_000, |n| {
            let mut pdb = std::fs::read(testdata("pdb-small/x86_64/small.pdb")).unwrap();
            let end = pdb.len();
            pdb.resize(end + 512 * n, 1);
            msf::put(&mut pdb, offset, n as u32);
            pdb
        });
    }
    holds("a stream of one page again and again", ASK, 200, |n| {
        let mut streams =
            take_apart(&std::fs::read(testdata("pdb-small/x86_64/small.pdb")).unwrap());
        let one = streams[DBI].clone();
        streams.extend(vec![one; n]);
        put_together(&streams, 4096, 1)
    });
}
