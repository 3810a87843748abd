//! perf.data files without some of their records, as the kernel loses them.

use std::ops::Range;

use chronosym_support::perf::{PerfAttr, PerfWriter};

use super::Random;

const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const USER_TYPES: u32 = 64;

/// The records of a file, in its order.
pub struct Records<'a> {
    bytes: &'a [u8],
    data: Range<usize>,
    sample_type: u64,
    list: Vec<Record>,
}

struct Record {
    at: Range<usize>,
    kind: u32,
    time: u64,
    cpu: u32,
}

impl Record {
    /// Returns whether the kernel wrote it while recording.
    fn is_live(&self) -> bool {
        self.kind < USER_TYPES && self.time > 0
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl<'a> Records<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let field = |at| word(bytes, at) as usize;
        let (attrs, data) = (field(24), field(40)..field(40) + field(48));
        let mut records = Records {
            bytes,
            sample_type: word(bytes, attrs + 24),
            list: Vec::new(),
            data: data.clone(),
        };
        let mut at = data.start;
        while at < data.end {
            let head = word(bytes, at);
            let (kind, size) = (head as u32, (head >> 48) as usize);
            let record = records.record(kind, at..at + size);
            records.list.push(record);
            at += size;
        }
        records
    }

    /// Offset of a field of the trailer, from the end of a record.
    fn trailer_at(&self, bit: u32) -> Option<usize> {
        const TRAILER: [u32; 6] = [1, 2, 6, 9, 7, 16];
        let has = |bit: &u32| self.sample_type >> bit & 1 == 1;
        let after = TRAILER.iter().skip_while(|it| **it != bit);
        has(&bit).then(|| after.filter(|bit| has(bit)).count() * 8)
    }

    fn record(&self, kind: u32, at: Range<usize>) -> Record {
        let of_sample = |bit: u32| {
            const ORDER: [u32; 9] = [16, 0, 1, 2, 3, 6, 9, 7, 8];
            let before = ORDER.iter().take_while(|it| **it != bit);
            let before = before
                .filter(|bit| self.sample_type >> **bit & 1 == 1)
                .count();
            (self.sample_type >> bit & 1 == 1).then(|| at.start + 8 + before * 8)
        };
        let field = |bit| match kind {
            SAMPLE => of_sample(bit),
            ..USER_TYPES => self.trailer_at(bit).map(|back| at.end - back),
            _ => None,
        };
        Record {
            time: field(2).map_or(0, |at| word(self.bytes, at)),
            cpu: field(7).map_or(0, |at| word(self.bytes, at) as u32),
            kind,
            at,
        }
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Returns whether a record describes processes or their mappings.
    pub fn is_description(&self, number: usize) -> bool {
        self.list[number].is_live() && self.list[number].kind != SAMPLE
    }

    /// The file without up to `count` records of one processor from `number` on, and with a record
    /// of the loss before that processor's next one; `None` if none follows.
    pub fn lossy(&self, number: usize, count: usize) -> Option<Vec<u8>> {
        let first = self.list.get(number).filter(|first| first.is_live())?;
        let numbers = number..self.list.len();
        let mut same = numbers.filter(|&it| {
            let record = &self.list[it];
            record.is_live() && record.cpu == first.cpu
        });
        let lost: Vec<usize> = same.by_ref().take(count).collect();
        let next = same.next()?;
        let mut data = Vec::new();
        for (it, record) in self.list.iter().enumerate() {
            if it == next {
                data.extend(self.lost_record(record, lost.len()));
            }
            if !lost.contains(&it) {
                data.extend_from_slice(&self.bytes[record.at.clone()]);
            }
        }
        Some(self.with_data(&data))
    }

    /// A record of a loss that is noticed before a record.
    fn lost_record(&self, next: &Record, count: usize) -> Vec<u8> {
        let size = |bit: u32| self.trailer_at(bit).unwrap_or_default();
        let trailer = [1, 2, 6, 9, 7, 16]
            .map(size)
            .into_iter()
            .max()
            .unwrap_or_default();
        let mut bytes = vec![0; 24 + trailer];
        let end = bytes.len();
        let head = u64::from(LOST) | (end as u64) << 48;
        let mut put =
            |at: usize, value: u64| bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        put(0, head);
        put(16, count as u64);
        for (bit, value) in [(2, next.time), (7, next.cpu.into())] {
            if let Some(back) = self.trailer_at(bit) {
                put(end - back, value);
            }
        }
        bytes
    }

    /// The file with other records. Sections after them have moved.
    fn with_data(&self, data: &[u8]) -> Vec<u8> {
        let mut bytes = self.bytes[..self.data.start].to_vec();
        bytes.extend_from_slice(data);
        bytes[48..56].copy_from_slice(&(data.len() as u64).to_le_bytes());
        let mut tail = self.bytes[self.data.end..].to_vec();
        let features = (72..104)
            .step_by(8)
            .map(|at| word(self.bytes, at).count_ones());
        let moved = (data.len() as u64).wrapping_sub(self.data.len() as u64);
        for row in 0..features.sum::<u32>() as usize {
            let at = word(&tail, row * 16).wrapping_add(moved);
            tail[row * 16..row * 16 + 8].copy_from_slice(&at.to_le_bytes());
        }
        bytes.extend(tail);
        bytes
    }
}

/// A recording of processes that map libraries at the same addresses, fork and run other programs.
pub fn remapping() -> Vec<u8> {
    let mut perf = PerfWriter::new(PerfAttr::default());
    let mut random = Random::new(2);
    for pid in 10..14 {
        perf.comm(1_000, pid, pid, "app");
    }
    for step in 0..6_000u64 {
        let time = 2_000 + step * 10;
        let pid = 10 + random.below(4) as u32;
        let slot = 0x7f00_0000_0000 + random.below(3) as u64 * 0x1_0000;
        match random.below(40) {
            0..4 => perf.mmap2(time, pid, slot, 0x1_0000, 0, &format!("/lib/lib{step}.so")),
            4 => perf.exec(time, pid, "other"),
            5 => {
                perf.exit(time, pid, pid);
                perf.fork(time + 1, pid, 10 + random.below(4) as u32, pid);
            }
            _ => perf.sample(time, pid, pid, &[slot + 0x10, slot + 0x20]),
        }
        if step % 200 == 199 {
            perf.round();
        }
    }
    perf.file()
}
