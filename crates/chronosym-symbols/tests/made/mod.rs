//! Object files made by hand.
#![allow(dead_code)]

/// Bytes after their length, in four bytes.
pub fn with_length(body: Vec<u8>) -> Vec<u8> {
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// A 64-bit little-endian ELF program of these sections: name, type, flags, address, bytes. The names of a symbol table are
/// in the section after it.
pub fn elf(sections: &[(&str, u32, u64, u64, Vec<u8>)]) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut out = vec![0u8; 64];
    let mut headers = vec![[0u64; 10]];
    for (name, kind, flags, address, bytes) in sections {
        let at = names.len() as u64;
        names.extend(name.as_bytes());
        names.push(0);
        let (offset, size) = (out.len() as u64, bytes.len() as u64);
        let (link, entry) = match kind {
            2 => (headers.len() as u64 + 1, 24),
            _ => (0, 0),
        };
        headers.push([
            at,
            u64::from(*kind),
            *flags,
            *address,
            offset,
            size,
            link,
            0,
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

/// A symbol in `.text`, the first section, with the place of its name.
pub fn symbol(name: u32, info: u8, value: u64, size: u64) -> Vec<u8> {
    let mut out = name.to_le_bytes().to_vec();
    out.extend([info, 0, 1, 0]);
    out.extend(value.to_le_bytes());
    out.extend(size.to_le_bytes());
    out
}
