//! A Go binary made by hand: `main.outer` with `main.inner` inlined into it, and `main.leaf`.
#![allow(dead_code)]

/// Addresses: of the code, the function table, the data that inline trees are in, the description
/// of the program.
const TEXT: u64 = 0x1000;
const TABLE: u64 = 0x2000;
const DATA: u64 = 0x3000;
const MODULE: u64 = 0x4000;

/// Low bytes of the magic numbers of Go 1.2, 1.16, 1.18 and 1.20.
pub const LAYOUTS: [u8; 4] = [0xfb, 0xfa, 0xf0, 0xf1];

fn word(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_le_bytes());
}

fn half(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

/// Ranges of code with the same value: their length and value.
fn values(ranges: &[(u8, i32)]) -> Vec<u8> {
    let mut last = -1;
    let mut out = Vec::new();
    for &(len, value) in ranges {
        let difference = value - last;
        last = value;
        let zigzag = (difference << 1) ^ (difference >> 31);
        assert!((0..128).contains(&zigzag));
        out.extend([zigzag as u8, len]);
    }
    out.push(0);
    out
}

/// The function table of a layout, and the inline tree of its first function.
pub fn table(magic: u8) -> (Vec<u8>, Vec<u8>) {
    let since_116 = magic != 0xfb;
    let since_118 = magic == 0xf0 || magic == 0xf1;
    let mut names: Vec<u8> = Vec::new();
    let mut name = |text: &str| {
        let at = names.len() as u32;
        names.extend(text.as_bytes());
        names.push(0);
        at
    };
    let [outer, inner, leaf] = ["main.outer", "main.inner", "main.leaf"].map(&mut name);
    let files = b"app/a.go\0app/b.go\0";
    // Since Go 1.16 files are numbered from 0, before from 1.
    let (a, b) = if since_116 { (0, 1) } else { (1, 2) };
    let mut pool = vec![0u8];
    let mut put = |ranges: &[(u8, i32)]| {
        let at = pool.len() as u32;
        pool.extend(values(ranges));
        at
    };
    let outer_files = put(&[(16, a), (16, b), (32, a)]);
    let outer_lines = put(&[(8, 1), (8, 7), (16, 11), (32, 3)]);
    let outer_calls = put(&[(16, -1), (16, 0), (32, -1)]);
    let leaf_files = put(&[(32, b)]);
    let leaf_lines = put(&[(32, 20)]);

    let pointer = 8u64;
    let header = match magic {
        0xfb => 16,
        0xfa => 8 + 7 * 8,
        _ => 8 + 8 * 8,
    };
    let number = if since_118 { 4 } else { 8 };
    let function_table = 5 * number + if since_116 { 0 } else { 4 };
    let fixed = match magic {
        0xfb => 40,
        0xfa => 44,
        0xf0 => 40,
        _ => 44,
    };
    // Order: header, [names, units, files, values since Go 1.16], functions and descriptions, [the
    // rest before].
    let pad = |out: &mut Vec<u8>| out.resize(out.len().next_multiple_of(8), 0);
    let mut out = vec![magic, 0xff, 0xff, 0xff, 0, 0, 1, pointer as u8];
    out.resize(header, 0);
    let mut at = Vec::new();
    let mut units = Vec::new();
    half(&mut units, 0);
    half(&mut units, 9);
    if since_116 {
        for part in [&names[..], &units, files, &pool] {
            at.push(out.len() as u64);
            out.extend(part);
            pad(&mut out);
        }
    }
    let functions = out.len();
    let base = if since_116 { functions } else { 0 };
    let descriptions = (functions + function_table).next_multiple_of(8);
    let lists = if since_118 { 4 * 4 } else { 5 * 8 + 4 };
    let second = (descriptions + fixed + 3 * 4 + lists).next_multiple_of(8);
    // The tables of Go 1.2 follow the descriptions.
    let rest = second + fixed;
    let (names_at, pool_at) = match since_116 {
        true => (0, 0),
        false => (rest as u32, (rest + names.len()) as u32),
    };
    let files_at = pool_at as usize + pool.len();
    let start = |address: u64| if since_118 { address - TEXT } else { address };
    let entry = |out: &mut Vec<u8>, address: u64, description: Option<usize>| {
        let mut numbers = vec![start(address)];
        numbers.extend(description.map(|at| (at - base) as u64));
        for value in numbers {
            match since_118 {
                true => half(out, value as u32),
                false => word(out, value),
            }
        }
    };
    entry(&mut out, TEXT, Some(descriptions));
    entry(&mut out, TEXT + 0x40, Some(second));
    entry(&mut out, TEXT + 0x70, None);
    if !since_116 {
        half(
            &mut out,
            (files_at + files.len()).next_multiple_of(4) as u32,
        );
    }
    for (at, address, name, files, lines, calls) in [
        (
            descriptions,
            TEXT,
            outer,
            outer_files,
            outer_lines,
            Some(outer_calls),
        ),
        (second, TEXT + 0x40, leaf, leaf_files, leaf_lines, None),
    ] {
        out.resize(at, 0);
        match since_118 {
            true => half(&mut out, start(address) as u32),
            false => word(&mut out, start(address)),
        }
        let tables = [files, lines].map(|table| table + pool_at);
        for field in [names_at + name, 0, 0, 0, tables[0], tables[1]] {
            half(&mut out, field);
        }
        half(&mut out, if calls.is_some() { 3 } else { 0 });
        out.resize(at + fixed, 0);
        let Some(calls) = calls else { continue };
        let tree = if magic == 0xfb { 4 } else { 3 };
        *out.last_mut().unwrap() = tree + 1;
        for list in [0, 0, calls + pool_at] {
            half(&mut out, list);
        }
        if !since_118 {
            pad(&mut out);
        }
        for index in 0..=tree {
            match (since_118, index == tree) {
                (true, true) => half(&mut out, 8),
                (true, false) => half(&mut out, u32::MAX),
                (false, true) => word(&mut out, DATA + 8),
                (false, false) => word(&mut out, 0),
            }
        }
    }
    out.resize(rest, 0);
    if !since_116 {
        out.extend(&names);
        out.extend(&pool);
        out.extend(files);
        out.resize(out.len().next_multiple_of(4), 0);
        half(&mut out, 3);
        half(&mut out, files_at as u32);
        half(&mut out, files_at as u32 + 9);
    }
    let mut fields = vec![2, 2];
    if since_118 {
        fields.push(0);
    }
    fields.extend(&at);
    fields.push(functions as u64);
    if !since_116 {
        fields.truncate(1);
    }
    for (slot, field) in out[8..].chunks_mut(8).zip(fields) {
        slot.copy_from_slice(&field.to_le_bytes());
    }
    let mut tree = Vec::new();
    match magic {
        0xf1 => {
            half(&mut tree, 0);
            half(&mut tree, inner);
            half(&mut tree, 15);
            half(&mut tree, 9);
        }
        _ => {
            half(&mut tree, 0xffff);
            half(&mut tree, a as u32);
            half(&mut tree, 7);
            half(&mut tree, names_at + inner);
            half(&mut tree, 15);
        }
    }
    (out, tree)
}

/// A 64-bit program of this layout: its code, function table, inline trees and description.
pub fn program(magic: u8, with_sections: bool) -> Vec<u8> {
    let (table, tree) = table(magic);
    program_of(&table, &tree, with_sections)
}

/// The same of any table and tree.
pub fn program_of(table: &[u8], tree: &[u8], with_sections: bool) -> Vec<u8> {
    let names = table
        .get(32..40)
        .map_or(0, |at| u64::from_le_bytes(at.try_into().unwrap()));
    let mut module = Vec::new();
    for index in 0..48 {
        let value = match index {
            0 => TABLE,
            1 => TABLE.wrapping_add(names),
            20 | 22 => TEXT,
            // Other releases have another value there.
            36 => TEXT,
            38 => DATA,
            _ => 0,
        };
        word(&mut module, value);
    }
    let mut data = vec![0xff; 8];
    data.extend(tree);
    let parts: [(&str, u32, u64, Vec<u8>); 4] = [
        (".text", 5, TEXT, vec![0x90; 0x80]),
        (".gopclntab", 4, TABLE, table.to_vec()),
        (".rodata", 4, DATA, data),
        (".go.module", 6, MODULE, module),
    ];
    let mut out = vec![0u8; 64 + 56 * parts.len()];
    let mut names = vec![0u8];
    let mut sections = vec![[0u64; 10]];
    for (index, (name, flags, address, bytes)) in parts.iter().enumerate() {
        let offset = out.len() as u64;
        let header = &mut out[64 + 56 * index..][..56];
        header[..4].copy_from_slice(&1u32.to_le_bytes());
        header[4..8].copy_from_slice(&flags.to_le_bytes());
        let size = bytes.len() as u64;
        let fields = [offset, *address, *address, size, size, 1];
        for (slot, field) in header[8..].chunks_mut(8).zip(fields) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        out.extend(bytes);
        let executable = if *flags == 5 { 4 } else { 0 };
        let name_at = names.len() as u64;
        names.extend(name.as_bytes());
        names.push(0);
        sections.push([
            name_at,
            1,
            2 | executable,
            *address,
            offset,
            size,
            0,
            0,
            1,
            0,
        ]);
    }
    let name_at = names.len() as u64;
    names.extend(b".shstrtab\0");
    sections.push([
        name_at,
        3,
        0,
        0,
        out.len() as u64,
        names.len() as u64,
        0,
        0,
        1,
        0,
    ]);
    out[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    out[16..20].copy_from_slice(&[2, 0, 62, 0]);
    out[20] = 1;
    out[32] = 64;
    out[52] = 64;
    out[54] = 56;
    out[56] = parts.len() as u8;
    if with_sections {
        out.extend(&names);
        let at = out.len() as u64;
        for header in &sections {
            half(&mut out, header[0] as u32);
            half(&mut out, header[1] as u32);
            header[2..6].iter().for_each(|&field| word(&mut out, field));
            half(&mut out, 0);
            half(&mut out, 0);
            word(&mut out, header[8]);
            word(&mut out, header[9]);
        }
        out[40..48].copy_from_slice(&at.to_le_bytes());
        out[58] = 64;
        out[60] = sections.len() as u8;
        out[62] = sections.len() as u8 - 1;
    }
    out
}
