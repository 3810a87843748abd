//! perf.data files without some of their records, as the kernel loses them: consecutive records of
//! one ring buffer. A `LOST` record precedes the buffer's next one; a recorder that counts them
//! states at the end how many records each event lost.

use std::collections::BTreeMap;
use std::ops::Range;

use chronosym_support::perf::{PerfAttr, PerfWriter};

use super::Random;

const LOST: u32 = 2;
const SAMPLE: u32 = 9;
const LOST_SAMPLES: u32 = 13;
const USER_TYPES: u32 = 64;
const FINISHED_ROUND: u32 = 68;
const ID_INDEX: u32 = 69;
/// Bits of an attribute's flags that request records of processes and mappings.
const DESCRIBES: u64 = 0x2_7082_2300;
/// Fields of samples, as bits of `sample_type`.
const TIME: u32 = 2;
const ID: u32 = 6;
const CPU: u32 = 7;
const IDENTIFIER: u32 = 16;
/// The bit of `read_format` that makes the recorder count lost records.
const COUNTS_LOST: u64 = 1 << 4;

/// The records of a file, in its order.
pub struct Records<'a> {
    bytes: &'a [u8],
    data: Range<usize>,
    sample_type: u64,
    counts_lost: bool,
    first_id: u64,
    list: Vec<Record>,
}

struct Record {
    at: Range<usize>,
    kind: u32,
    time: u64,
    cpu: u32,
    /// The id of its event.
    id: u64,
}

impl Record {
    /// Returns whether the kernel wrote it while recording.
    fn is_live(&self) -> bool {
        self.kind < USER_TYPES && self.time > 0
    }
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl<'a> Records<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let field = |at| word(bytes, at) as usize;
        let (attrs, data) = (field(24), field(40)..field(40) + field(48));
        let ids = word(bytes, attrs + field(16) - 16) as usize;
        let mut records = Records {
            bytes,
            sample_type: word(bytes, attrs + 24),
            counts_lost: word(bytes, attrs + 32) & COUNTS_LOST != 0,
            first_id: word(bytes, ids),
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
        let id = field(IDENTIFIER).or_else(|| field(ID));
        Record {
            time: field(TIME).map_or(0, |at| word(self.bytes, at)),
            cpu: field(CPU).map_or(0, |at| word(self.bytes, at) as u32),
            id: id.map_or(self.first_id, |at| word(self.bytes, at)),
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

    /// The file without up to `count` records of one buffer from `number` on, and with a record of
    /// the loss before that buffer's next one; `None` if none follows.
    pub fn lossy(&self, number: usize, count: usize) -> Option<Vec<u8>> {
        let first = self.list.get(number).filter(|first| first.is_live())?;
        let rest = self.list[number..].iter().enumerate();
        // Without processors, one buffer's records are consecutive as long as their times grow.
        let is_stated = self.trailer_at(CPU).is_some();
        let mut latest = first.time;
        let piece = rest.take_while(|(_, record)| {
            let is_later = record.is_live() && record.time >= latest;
            latest = latest.max(record.time);
            is_stated || is_later
        });
        let is_same = |record: &Record| record.is_live() && record.cpu == first.cpu;
        let mut same = piece.filter(|(_, record)| is_same(record));
        let lost: Vec<usize> = same
            .by_ref()
            .take(count)
            .map(|(it, _)| number + it)
            .collect();
        let next = number + same.next()?.0;
        let mut data = Vec::new();
        let mut counts = BTreeMap::new();
        for (it, record) in self.list.iter().enumerate() {
            if it == next {
                let body = [record.id, lost.len() as u64];
                data.extend(self.kernel_record(LOST, &body, record.id, (record.time, record.cpu)));
            }
            match lost.contains(&it) {
                true => *counts.entry(record.id).or_insert(0) += 1,
                false => data.extend_from_slice(&self.bytes[record.at.clone()]),
            }
        }
        for (id, count) in counts.into_iter().filter(|_| self.counts_lost) {
            data.extend(self.kernel_record(LOST_SAMPLES, &[count], id, (0, 0)));
        }
        Some(self.with_data(&data))
    }

    /// A record of the event with an id, at a time of a processor.
    fn kernel_record(&self, kind: u32, body: &[u64], id: u64, at: (u64, u32)) -> Vec<u8> {
        let backs = (0..=IDENTIFIER).filter_map(|bit| self.trailer_at(bit));
        let size = 8 + body.len() * 8 + backs.max().unwrap_or_default();
        let mut words = vec![u64::from(kind) | (size as u64) << 48];
        words.extend(body);
        words.resize(size / 8, 0);
        for (bit, value) in [(TIME, at.0), (CPU, at.1.into()), (ID, id), (IDENTIFIER, id)] {
            if let Some(back) = self.trailer_at(bit) {
                words[(size - back) / 8] = value;
            }
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The file with other records. Sections after them have moved.
    fn with_data(&self, data: &[u8]) -> Vec<u8> {
        self.with(self.bytes[..self.data.start].to_vec(), data)
    }

    /// The file with other records after a header with attributes.
    fn with(&self, mut bytes: Vec<u8>, data: &[u8]) -> Vec<u8> {
        let data_at = bytes.len() as u64;
        put(&mut bytes, 40, data_at);
        put(&mut bytes, 48, data.len() as u64);
        bytes.extend_from_slice(data);
        let mut tail = self.bytes[self.data.end..].to_vec();
        let features = (72..104)
            .step_by(8)
            .map(|at| word(self.bytes, at).count_ones());
        let moved = (bytes.len() as u64).wrapping_sub(self.data.end as u64);
        for row in 0..features.sum::<u32>() as usize {
            let at = word(&tail, row * 16).wrapping_add(moved);
            put(&mut tail, row * 16, at);
        }
        bytes.extend(tail);
        bytes
    }

    /// A recording of one event as `perf record -e EVENT,dummy` makes it: another event describes
    /// processes, and records state the id of their event.
    pub fn with_dummy(&self) -> Vec<u8> {
        const IDS: [[u64; 2]; 2] = [[1, 2], [3, 4]];
        let (row_size, row_at) = (word(self.bytes, 16) as usize, word(self.bytes, 24) as usize);
        let mut head = self.bytes[..104].to_vec();
        head.extend(IDS.as_flattened().iter().flat_map(|id| id.to_le_bytes()));
        let rows = head.len();
        put(&mut head, 24, rows as u64);
        put(&mut head, 32, 2 * row_size as u64);
        for (number, at) in [104_u64, 120].into_iter().enumerate() {
            let mut row = self.bytes[row_at..row_at + row_size].to_vec();
            put(&mut row, 24, self.sample_type | 1 << IDENTIFIER);
            let (format, flags) = (word(&row, 32), word(&row, 40));
            put(&mut row, 32, format | COUNTS_LOST);
            put(
                &mut row,
                40,
                if number == 0 {
                    flags & !DESCRIBES
                } else {
                    flags
                },
            );
            put(&mut row, row_size - 16, at);
            put(&mut row, row_size - 8, 16);
            head.extend(row);
        }
        let (mut data, mut buffer, mut latest) = (Vec::new(), 0, 0);
        for record in &self.list {
            let bytes = &self.bytes[record.at.clone()];
            let longer = (word(bytes, 0) + (8 << 48)).to_le_bytes();
            // Each round has the records of one buffer after those of the other.
            if record.kind == FINISHED_ROUND {
                (buffer, latest) = (0, 0);
            } else if record.is_live() {
                buffer = if record.time < latest { 1 } else { buffer };
                latest = record.time;
            }
            match record.kind {
                ID_INDEX => {
                    let rows = IDS.map(|ids| [[ids[0], 0, 0, 0], [ids[1], 1, 1, 0]]);
                    let head = u64::from(ID_INDEX) | 144 << 48;
                    let rows = rows.as_flattened().as_flattened();
                    let words = [head, 4].into_iter().chain(rows.iter().copied());
                    data.extend(words.flat_map(u64::to_le_bytes));
                }
                SAMPLE => {
                    data.extend(longer);
                    data.extend(IDS[0][buffer].to_le_bytes());
                    data.extend_from_slice(&bytes[8..]);
                }
                ..USER_TYPES => {
                    let id = if record.is_live() { IDS[1][buffer] } else { 0 };
                    data.extend(longer);
                    data.extend_from_slice(&bytes[8..]);
                    data.extend(id.to_le_bytes());
                }
                _ => data.extend_from_slice(bytes),
            }
        }
        self.with(head, &data)
    }
}

/// The recording with an event for samples and one for processes, whose lost records are counted, as
/// `perf record -a` makes it.
pub fn remapping_of_two_events() -> Vec<u8> {
    let samples = PerfAttr {
        sample_type: PerfAttr::default().sample_type | 1 << IDENTIFIER,
        read_format: COUNTS_LOST,
        ids: vec![1, 2, 3, 4],
        ..PerfAttr::default()
    };
    let processes = PerfAttr {
        flags: samples.flags | 1 << 8 | 1 << 9 | 1 << 13,
        ids: vec![5, 6, 7, 8],
        ..samples.clone()
    };
    let mut perf = PerfWriter::new(samples);
    perf.attr(processes);
    let index: Vec<_> = (1..=8).map(|id| (id, Ok((id - 1) % 4))).collect();
    perf.id_index(&index);
    remap(perf)
}

/// A recording of processes that map libraries at the same addresses, fork and run other programs.
pub fn remapping() -> Vec<u8> {
    remap(PerfWriter::new(PerfAttr::default()))
}

fn remap(mut perf: PerfWriter) -> Vec<u8> {
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
