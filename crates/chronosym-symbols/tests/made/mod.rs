//! Object files made by hand.
#![allow(dead_code)]

/// Bytes after their length, in four bytes.
pub fn with_length(body: Vec<u8>) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// A 64-bit little-endian ELF program of these sections: name, type, flags, address, bytes. The
/// names of a symbol table are in the section after it; relocations (`.rela` and a section's name)
/// are by the first symbol table.
pub fn elf(sections: &[(&str, u32, u64, u64, Vec<u8>)]) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut out = vec![0u8; 64];
    let mut headers = vec![[0u64; 10]];
    for (name, kind, flags, address, bytes) in sections {
        let at = names.len() as u64;
        names.extend(name.as_bytes());
        names.push(0);
        let (offset, size) = (out.len() as u64, bytes.len() as u64);
        let index = |is_it: &dyn Fn(u32, &str) -> bool| {
            let at = sections.iter().position(|s| is_it(s.1, s.0));
            at.map_or(0, |at| at as u64 + 1)
        };
        let (link, info, entry) = match kind {
            2 | 11 => (headers.len() as u64 + 1, 0, 24),
            4 => {
                let target = name.trim_start_matches(".rela");
                let symbols = index(&|kind, _| matches!(kind, 2 | 11));
                (symbols, index(&|_, name| name == target), 24)
            }
            _ => (0, 0, 0),
        };
        headers.push([
            at,
            u64::from(*kind),
            *flags,
            *address,
            offset,
            size,
            link,
            info,
            1,
            entry,
        ]);
        out.extend(bytes);
    }
    let at = names.len() as u64;
    names.extend(b".shstrtab\0");
    let (offset, size) = (out.len() as u64, names.len() as u64);
    headers.push([at, 3, 0, 0, offset, size, 0, 0, 1, 0]);
    out.extend(&names);
    let table = out.len() as u64;
    for h in &headers {
        out.extend((h[0] as u32).to_le_bytes());
        out.extend((h[1] as u32).to_le_bytes());
        for field in &h[2..6] {
            out.extend(field.to_le_bytes());
        }
        out.extend((h[6] as u32).to_le_bytes());
        out.extend((h[7] as u32).to_le_bytes());
        out.extend(h[8].to_le_bytes());
        out.extend(h[9].to_le_bytes());
    }
    out[..16].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    out[16..20].copy_from_slice(&[2, 0, 62, 0]);
    out[20] = 1;
    out[40..48].copy_from_slice(&table.to_le_bytes());
    out[52] = 64;
    out[54] = 56;
    out[58] = 64;
    out[60] = headers.len() as u8;
    out[62] = headers.len() as u8 - 1;
    out
}

/// The sections of a small program with debug information: one unit, one function with one inlined
/// into it, four lines.
pub fn program() -> Vec<(&'static str, u32, u64, u64, Vec<u8>)> {
    let abbrev = [
        &[
            1, 0x11, 1, 0x03, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x07, 0, 0,
        ][..],
        &[2, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0],
        &[
            3, 0x1d, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x58, 0x0b, 0x59, 0x0b, 0, 0,
        ],
        &[4, 0x2e, 0, 0x03, 0x08, 0x20, 0x0b, 0, 0],
        &[0],
    ]
    .concat();
    let mut info = Vec::new();
    info.extend([4, 0, 0, 0, 0, 0, 8]);
    info.extend(b"\x01unit.c\0");
    info.extend(0u32.to_le_bytes());
    info.extend(0x1000u64.to_le_bytes());
    info.extend(0x40u64.to_le_bytes());
    let inner = info.len() as u32 + 4;
    info.extend(b"\x04inner\0\x01");
    info.extend(b"\x02outer\0");
    info.extend(0x1000u64.to_le_bytes());
    info.extend(0x40u64.to_le_bytes());
    info.push(3);
    info.extend(inner.to_le_bytes());
    info.extend(0x1010u64.to_le_bytes());
    info.extend(0x10u64.to_le_bytes());
    info.extend([1, 7, 0, 0]);
    let info = with_length(info);

    let mut header = vec![1, 1, 1, 0xfb, 14, 13];
    header.extend([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    header.extend(b"\0unit.c\0\0\0\0\0");
    let mut line = 4u16.to_le_bytes().to_vec();
    line.extend((header.len() as u32).to_le_bytes());
    line.extend(header);
    line.extend([0, 9, 2]);
    line.extend(0x1000u64.to_le_bytes());
    // Line 1; 16 bytes on line 11 for 16 bytes; line 3 to the end.
    line.extend([1, 2, 16, 3, 10, 1, 2, 16, 3, 0x78, 1, 2, 32, 0, 1, 1]);
    let line = with_length(line);
    vec![
        (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
        (".debug_abbrev", 1, 0, 0, abbrev),
        (".debug_info", 1, 0, 0, info),
        (".debug_line", 1, 0, 0, line),
    ]
}

/// A symbol in `.text`, the first section, with the offset of its name.
pub fn symbol(name: u32, info: u8, value: u64, size: u64) -> Vec<u8> {
    let mut out = name.to_le_bytes().to_vec();
    out.extend([info, 0, 1, 0]);
    out.extend(value.to_le_bytes());
    out.extend(size.to_le_bytes());
    out
}
