//! Metadata of managed code (ECMA-335), portable PDBs and images around them, built by hand to
//! allow any content.

/// Returns a `#~` stream: sizes of heap indexes, tables and their stated row counts, sorted tables,
/// and the rows' bytes.
#[must_use]
pub fn stream(heaps: u8, tables: &[(u8, u32)], sorted: u64, rows: &[u8]) -> Vec<u8> {
    let mask = tables.iter().fold(0u64, |mask, table| mask | 1 << table.0);
    let mut out = vec![0, 0, 0, 0, 2, 0, heaps, 1];
    out.extend(mask.to_le_bytes());
    out.extend(sorted.to_le_bytes());
    out.extend(tables.iter().flat_map(|table| table.1.to_le_bytes()));
    if heaps & 0x40 != 0 {
        out.extend(0x7777_7777u32.to_le_bytes());
    }
    out.extend(rows);
    out
}

/// Returns a `#~` stream with 16-bit indexes: table number, stated row count, rows.
#[must_use]
pub fn tables(tables: &[(u8, u32, &[u16])], sorted: u64) -> Vec<u8> {
    let counts: Vec<_> = tables.iter().map(|table| (table.0, table.1)).collect();
    let cells = tables.iter().flat_map(|table| table.2);
    let rows: Vec<u8> = cells.flat_map(|cell| cell.to_le_bytes()).collect();
    stream(0, &counts, sorted, &rows)
}

/// Metadata of these streams.
#[must_use]
pub fn root(streams: &[(&str, &[u8])]) -> Vec<u8> {
    let mut out = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v1\0\0\0\0".to_vec();
    out.extend((streams.len() as u16).to_le_bytes());
    let padded = |name: &str| (name.len() + 4) & !3;
    let names = streams.iter().map(|(name, _)| 8 + padded(name));
    let mut offset = out.len() + names.sum::<usize>();
    for (name, data) in streams {
        out.extend((offset as u32).to_le_bytes());
        out.extend((data.len() as u32).to_le_bytes());
        let end = out.len() + padded(name);
        out.extend(name.bytes());
        out.resize(end, 0);
        offset += data.len();
    }
    out.extend(streams.iter().flat_map(|(_, data)| *data));
    out
}

/// A blob heap that returns indexes.
#[derive(Debug)]
pub struct Blobs(pub Vec<u8>);

impl Default for Blobs {
    fn default() -> Self {
        Self(vec![0])
    }
}

impl Blobs {
    /// Adds a blob; returns its offset.
    pub fn add(&mut self, blob: &[u8]) -> u32 {
        let index = self.0.len() as u32;
        match blob.len() as u32 {
            length @ ..0x80 => self.0.push(length as u8),
            length @ 0x80..0x4000 => self.0.extend((length as u16 | 0x8000).to_be_bytes()),
            length => self.0.extend((length | 0xc000_0000).to_be_bytes()),
        }
        self.0.extend(blob);
        index
    }
}

/// Offsets of the headers of an [`image`]: COFF's, and the optional one.
pub const COFF: usize = 0x44;
const OPTIONAL: usize = 0x58;
const DIRECTORIES: usize = OPTIONAL + 96;
const SECTIONS: usize = OPTIONAL + 0xe0;
/// File offset of the section's bytes.
pub const DATA: usize = 0x200;

/// Returns a PE32 for x86 with one section at RVA 0x1000 that holds `data`, and data directories
/// {index, RVA, size}.
#[must_use]
pub fn image(data: &[u8], directories: &[(usize, u32, u32)]) -> Vec<u8> {
    let mut out = vec![0u8; DATA];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"MZ");
    put(0x3c, &0x40u32.to_le_bytes());
    put(0x40, b"PE\0\0\x4c\x01\x01\0");
    put(COFF + 4, &0x1234_5678u32.to_le_bytes());
    put(COFF + 16, &0xe0u16.to_le_bytes());
    put(OPTIONAL, &[0x0b, 0x01]);
    put(OPTIONAL + 56, &0x3000u32.to_le_bytes());
    put(OPTIONAL + 92, &16u32.to_le_bytes());
    for &(index, rva, size) in directories {
        let place = [rva, size].map(u32::to_le_bytes).concat();
        put(DIRECTORIES + index * 8, &place);
    }
    let size = data.len() as u32;
    put(SECTIONS, b".text\0\0\0");
    let place = [size, 0x1000, size, DATA as u32].map(u32::to_le_bytes);
    put(SECTIONS + 8, &place.concat());
    [out, data.to_vec()].concat()
}

/// Returns an image of managed code with this metadata and more content: a header of precompiled
/// code, at `native`.
#[must_use]
pub fn managed_image(metadata: &[u8], more: &[u8]) -> Vec<u8> {
    const HEADER: u32 = 72;
    let mut cor = vec![0; HEADER as usize];
    let mut put = |at: usize, value: u32| cor[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let (rva, size) = (0x1000 + HEADER, metadata.len() as u32);
    put(0, HEADER);
    put(8, rva);
    put(12, size);
    put(16, 1);
    put(64, rva + size);
    put(68, more.len() as u32);
    image(&[&cor, metadata, more].concat(), &[(14, 0x1000, HEADER)])
}
