//! Splits Windows PDBs into streams, and builds them from streams.

/// The stream with the debug information.
pub const DBI: usize = 3;
/// Offsets in the DBI header: sizes of its substreams in file order, except for the debug header,
/// which is last.
pub const DBI_SIZES: [usize; 7] = [24, 28, 32, 36, 40, 52, 48];
const DBI_HEADER: usize = 64;

/// The range of substream `index` of the DBI stream.
pub fn part_of_dbi(dbi: &[u8], index: usize) -> std::ops::Range<usize> {
    let size = |i: usize| word(dbi, DBI_SIZES[i]) as usize;
    let start = DBI_HEADER + (0..index).map(size).sum::<usize>();
    start..start + size(index)
}

/// The number at an offset.
pub fn word(data: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([data[at], data[at + 1], data[at + 2], data[at + 3]])
}

/// Writes a number at an offset.
pub fn put(data: &mut [u8], at: usize, value: u32) {
    data[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// The streams, as the PDB of a precompiled .NET Framework image has them: no section headers, but
/// a section map.
pub fn without_section_headers(streams: &[Option<Vec<u8>>]) -> Vec<Option<Vec<u8>>> {
    let mut streams = streams.to_vec();
    if let Some(dbi) = &mut streams[DBI] {
        let header = part_of_dbi(dbi, 6);
        dbi[header.start + 10..][..2].fill(0xFF);
    }
    streams
}

/// Returns the streams of a container whose directory fits one list page.
pub fn take_apart(file: &[u8]) -> Vec<Option<Vec<u8>>> {
    let page_size = word(file, 32) as usize;
    let gather = |list: &[u8], len: usize| {
        let mut data = Vec::new();
        for page in list.chunks_exact(4).take(len.div_ceil(page_size)) {
            let at = word(page, 0) as usize * page_size;
            data.extend_from_slice(&file[at..at + page_size]);
        }
        data.truncate(len);
        data
    };
    let directory = gather(
        &file[word(file, 52) as usize * page_size..],
        word(file, 44) as usize,
    );
    let count = word(&directory, 0) as usize;
    let mut list = 4 + 4 * count;
    let take = |index| {
        let size = word(&directory, 4 + 4 * index);
        (size != u32::MAX).then(|| {
            let data = gather(&directory[list..], size as usize);
            list += data.len().div_ceil(page_size) * 4;
            data
        })
    };
    (0..count).map(take).collect()
}

/// Returns a container of these streams. `step` scatters their pages: 1 keeps each stream
/// contiguous.
pub fn put_together(streams: &[Option<Vec<u8>>], page_size: usize, step: usize) -> Vec<u8> {
    let pages = |len: usize| len.div_ceil(page_size);
    let total: usize = streams
        .iter()
        .flatten()
        .map(|stream| pages(stream.len()))
        .sum();
    // Page 0 is the superblock, 1 and 2 the free maps. With a prime number of slots, any step
    // visits each slot once.
    let prime = (total.max(2)..)
        .find(|n| (2..*n).all(|d| n % d != 0))
        .unwrap();
    let slot = |index: usize| {
        3 + if step == 1 {
            index
        } else {
            index * step % prime
        }
    };
    let mut file = vec![0; page_size * (3 + prime)];
    let mut directory = (streams.len() as u32).to_le_bytes().to_vec();
    for stream in streams {
        let size = stream
            .as_ref()
            .map_or(u32::MAX, |stream| stream.len() as u32);
        directory.extend_from_slice(&size.to_le_bytes());
    }
    let pieces = streams
        .iter()
        .flatten()
        .flat_map(|stream| stream.chunks(page_size));
    for (index, piece) in pieces.enumerate() {
        let page = slot(index);
        file[page * page_size..][..piece.len()].copy_from_slice(piece);
        directory.extend_from_slice(&(page as u32).to_le_bytes());
    }
    let first = file.len() / page_size;
    let list = first + pages(directory.len());
    file.resize((list + 1) * page_size, 0);
    file[first * page_size..][..directory.len()].copy_from_slice(&directory);
    for i in 0..pages(directory.len()) {
        put(&mut file, list * page_size + 4 * i, (first + i) as u32);
    }
    file[..32].copy_from_slice(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS\0\0\0");
    let count = (file.len() / page_size) as u32;
    let header = [
        page_size as u32,
        1,
        count,
        directory.len() as u32,
        0,
        list as u32,
    ];
    for (i, value) in header.into_iter().enumerate() {
        put(&mut file, 32 + 4 * i, value);
    }
    file
}
