//! Converted symbols: files of any content, with correct lengths and checksums.

use chronosym_symbols::Answers;
use chronosym_symbols::converted::Converted;
use flate2::Crc;

/// Bytes of the header, and those that a checksum covers.
const BLOCK: usize = 4096;
/// Values in a row of ranges, scopes, functions, locations and texts.
const VALUES: [usize; 5] = [3, 3, 5, 4, 1];

/// Reads the data as a file, and then a valid file that is built from it: one byte for the number of
/// rows of each table, two for the length of the text, and the body.
pub fn any(data: &[u8]) {
    look(data);
    look(&assemble(data));
}

fn look(file: &[u8]) {
    let Ok(file) = Converted::open(file) else {
        return;
    };
    let all = file.addresses();
    let near = all.start..all.end.min(all.start.saturating_add(300));
    let addresses: Vec<u64> = near.chain([all.end, u64::MAX, 0]).rev().collect();
    let mut answers = Answers::new();
    if file.find_all(&addresses, &mut answers).is_err() {
        assert!(answers.is_empty());
        return;
    }
    assert_eq!(answers.len(), addresses.len());
    for (answer, address) in answers.iter().zip(addresses) {
        assert_eq!(answer.address(), address);
        assert!(answer.frames().len() <= 260);
        for frame in answer.frames() {
            std::hint::black_box((frame.demangled(), frame.file(), frame.line()));
        }
    }
}

/// The file that `docs/symbol-cache.md` describes.
fn assemble(data: &[u8]) -> Vec<u8> {
    let byte = |index: usize| data.get(index).copied().unwrap_or(0);
    let rows: Vec<u32> = (0..5).map(|index| byte(index).into()).collect();
    let text = u16::from_le_bytes([byte(5), byte(6)]);
    let words: usize = rows
        .iter()
        .zip(VALUES)
        .map(|(&rows, n)| rows as usize * n)
        .sum();
    let len = (words * 4 + usize::from(text)).next_multiple_of(BLOCK);
    let mut body = data.get(7..).unwrap_or_default().to_vec();
    body.resize(len, 0);
    let sums: Vec<u8> = body.chunks(BLOCK).flat_map(crc).collect();
    let mut file = b"chronsym\x02\0\0\0".to_vec();
    file.extend([7; 32]);
    file.extend(0x1000_u64.to_le_bytes());
    file.extend(0x2000_u64.to_le_bytes());
    file.extend(rows.iter().flat_map(|rows| rows.to_le_bytes()));
    file.extend(u32::from(text).to_le_bytes());
    file.extend(crc(&sums));
    file.extend(crc(&file));
    file.resize(BLOCK, 0);
    file.extend(body);
    file.extend(sums);
    file
}

fn crc(bytes: &[u8]) -> [u8; 4] {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum().to_le_bytes()
}

/// Two ranges with a function that is inlined into another.
pub fn seed() -> Vec<u8> {
    let rows: [&[u32]; 12] = [
        &[0, 2, 2],
        &[16, 1, 1],
        &[32, 0, 0],
        &[1, 0, 0],
        &[2, 1, 1],
        &[1, 0, 0x1000, 0, 1],
        &[2, 2, 0x1000, 0, 3],
        &[3, 5, 1, 0],
        &[3, 9, 0, 0],
        &[5],
        &[10],
        &[17],
    ];
    let mut seed = vec![3, 2, 2, 2, 3, 17, 0];
    let words = rows.into_iter().flatten();
    seed.extend(words.flat_map(|word| word.to_le_bytes()));
    seed.extend(b"outerinner/src/a.");
    let file = Converted::open(assemble(&seed)).expect("a file");
    let mut answers = Answers::new();
    file.find_all(&[0x1000], &mut answers).expect("an answer");
    assert_eq!(answers.get(0).map(|answer| answer.frames().len()), Some(2));
    seed
}
