//! Call frame information of jitdumps next to a perf.data, for stacks that are walked while it is
//! read: the jitdumps themselves are read after it.

use chronosym_core::unwind::{EhFrame, JittedFrames};
use chronosym_perf::TimeConversion;
use chronosym_perf::jitdump::{Reader, Record};
use chronosym_types::hash::HashMap;

use super::code::open_companion;
use crate::jitdump::nanoseconds;
use crate::open::companions::Beside;

/// Maximum bytes of call frame information of all processes.
const MAX_BYTES: usize = 64 << 20;
/// Code at one address that is compared: its runtime reuses memory.
const MAX_AT_ADDRESS: usize = 64;

/// The jitdumps of the sampled processes; each is read when an address of the process is looked up
/// for the first time.
pub(super) struct Dumps {
    pub beside: Beside,
    /// Maximum size of a decompressed jitdump in bytes.
    pub limit: u64,
    /// Conversion of cycle counts, if the recording states it.
    pub cycles: Option<TimeConversion>,
    /// ns to add to times of the runtimes' clock, if it is known.
    pub offset_ns: Option<i128>,
    mapped: Vec<(u32, String)>,
    dumps: HashMap<u32, Vec<Code>>,
    bytes: Vec<u8>,
}

/// Code with its call frame information.
#[derive(Clone, Copy)]
struct Code {
    address: u64,
    size: u64,
    /// 0 if the clock is unknown.
    time_ns: u64,
    /// In the bytes of all.
    start: usize,
    len: usize,
}

impl Dumps {
    pub fn new(
        beside: Beside,
        limit: u64,
        cycles: Option<TimeConversion>,
        offset_ns: Option<i128>,
    ) -> Self {
        Dumps {
            beside,
            limit,
            cycles,
            offset_ns,
            mapped: Vec::new(),
            dumps: HashMap::default(),
            bytes: Vec::new(),
        }
    }

    /// Reads the jitdump of a process. What cannot be read is reported when its code is read.
    fn read(&mut self, process: u32) -> Vec<Code> {
        let mut all = Vec::new();
        let path = self.beside.jitdump(process, &self.mapped);
        let stream = path.and_then(|path| open_companion(&path, self.limit).ok());
        let reader = stream.and_then(|stream| Reader::new(stream, Default::default()).ok());
        let Some(mut reader) = reader else {
            return all;
        };
        let has_cycles = reader.header().has_cycles;
        if self.beside.pid(reader.header().pid) != process {
            return all;
        }
        while let Ok(Some(record)) = reader.next_record() {
            let Record::Load(load) = record else {
                continue;
            };
            let len = load.eh_frame.len();
            if len == 0 || self.bytes.len().saturating_add(len) > MAX_BYTES {
                continue;
            }
            let time = nanoseconds(load.time, has_cycles, self.cycles);
            let offset = match has_cycles {
                true => self.cycles.map(|_| 0),
                false => self.offset_ns,
            };
            let time = offset.map(|offset| i128::from(time).saturating_add(offset));
            all.push(Code {
                address: load.address,
                size: load.size,
                time_ns: time.map_or(0, |time| u64::try_from(time).unwrap_or(0)),
                start: self.bytes.len(),
                len,
            });
            self.bytes.extend_from_slice(load.eh_frame);
        }
        all.sort_by_key(|code| (code.address, code.time_ns));
        all
    }
}

impl JittedFrames for Dumps {
    fn mapped(&mut self, process: u32, path: &str) {
        // Without trust such a path is not used, and a process maps one.
        if self.beside.trusts_paths
            && !self
                .mapped
                .iter()
                .any(|(of, it)| *of == process && it == path)
        {
            self.mapped.push((process, path.to_owned()));
        }
    }

    fn find(&mut self, process: u32, time_ns: u64, address: u64) -> Option<EhFrame<'_>> {
        if !self.dumps.contains_key(&process) {
            let dump = self.read(process);
            self.dumps.insert(process, dump);
        }
        let dump = self.dumps.get(&process)?;
        let end = dump.partition_point(|code| code.address <= address);
        let before = dump.get(..end)?.iter().rev().take(MAX_AT_ADDRESS);
        // The last one that was compiled before the sample.
        let covering = before.filter(|code| address - code.address < code.size);
        let code = covering
            .filter(|code| code.time_ns <= time_ns)
            .max_by_key(|code| code.time_ns)?;
        let bytes = self
            .bytes
            .get(code.start..code.start.checked_add(code.len)?)?;
        let behind = code
            .address
            .checked_add(code.size)?
            .checked_next_multiple_of(8)?;
        Some(EhFrame::new(bytes, behind))
    }
}
