//! Writes `perf.data` files and jitdumps, in either order of bytes.
//!
//! ```
//! use chronosym_support::perf::{PerfAttr, PerfWriter};
//!
//! let mut trace = PerfWriter::new(PerfAttr::default());
//! trace.comm(10, 7, 7, "worker");
//! trace.mmap2(20, 7, 0x1000, 0x2000, 0, "/bin/worker");
//! trace.sample(30, 7, 8, &[0x1234, 0x1300]);
//! assert!(trace.file().starts_with(b"PERFILE2"));
//! assert_eq!(trace.pipe()[8], 16);
//! ```

/// Bytes in either byte order.
#[derive(Clone, Default)]
pub struct Bytes {
    /// The bytes written.
    pub bytes: Vec<u8>,
    /// Big-endian.
    pub big: bool,
}

impl Bytes {
    fn put<const N: usize>(mut self, little: [u8; N]) -> Self {
        let start = self.bytes.len();
        self.bytes.extend(little);
        if self.big {
            self.bytes[start..].reverse();
        }
        self
    }

    /// Appends a value.
    pub fn u16(self, value: u16) -> Self {
        self.put(value.to_le_bytes())
    }

    /// Appends a value.
    pub fn u32(self, value: u32) -> Self {
        self.put(value.to_le_bytes())
    }

    /// Appends a value.
    pub fn u64(self, value: u64) -> Self {
        self.put(value.to_le_bytes())
    }

    /// Appends values.
    pub fn words(self, values: &[u64]) -> Self {
        values.iter().fold(self, |bytes, &value| bytes.u64(value))
    }

    /// Appends bytes.
    pub fn raw(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend(bytes);
        self
    }

    /// Appends bytes, a NUL and padding to a multiple of eight.
    pub fn name(self, name: &str) -> Self {
        self.raw(name.as_bytes()).raw(&[0]).padded()
    }

    fn padded(mut self) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self
    }
}

/// The recorded event, as in `perf_event_attr`.
#[derive(Clone, Debug)]
pub struct PerfAttr {
    /// `PERF_TYPE_*`: 1 software, 2 tracepoint.
    pub kind: u32,
    /// The event within its type.
    pub config: u64,
    /// Events between two samples.
    pub period: u64,
    /// Bits `PERF_SAMPLE_*`.
    pub sample_type: u64,
    /// Bits `PERF_FORMAT_*`.
    pub read_format: u64,
    /// Flags; bit 18 gives every record a trailer.
    pub flags: u64,
    /// Bits `PERF_SAMPLE_BRANCH_*`.
    pub branch_sample_type: u64,
    /// Registers of user space: a bit each.
    pub regs_user: u64,
    /// Registers at the interrupt: a bit each.
    pub regs_intr: u64,
    /// Ids of the event.
    pub ids: Vec<u64>,
}

impl Default for PerfAttr {
    /// Samples of the instruction pointer, thread, time, processor, period and call chain by
    /// `CLOCK_MONOTONIC`.
    fn default() -> Self {
        Self {
            kind: 1,
            config: 0,
            period: 1_000_000,
            sample_type: 0x1a7,
            read_format: 0,
            flags: 1 << 18 | 1 << 25,
            branch_sample_type: 0,
            regs_user: 0,
            regs_intr: 0,
            ids: vec![1],
        }
    }
}

const ATTR_SIZE: u32 = 120;
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Builds a recording in memory. Records are written in the order in which they are given.
#[derive(Clone)]
pub struct PerfWriter {
    big: bool,
    attrs: Vec<PerfAttr>,
    features: Vec<(u32, Vec<u8>)>,
    data: Vec<u8>,
}

impl PerfWriter {
    /// Creates an empty recording of one event.
    pub fn new(attr: PerfAttr) -> Self {
        Self {
            big: false,
            attrs: vec![attr],
            features: Vec::new(),
            data: Vec::new(),
        }
    }

    /// Makes it big-endian; call it before anything is written.
    pub fn big_endian(mut self) -> Self {
        self.big = true;
        self
    }

    /// Records another event, too.
    pub fn attr(&mut self, attr: PerfAttr) {
        self.attrs.push(attr);
    }

    /// Adds a feature section by its number.
    pub fn feature(&mut self, number: u32, payload: Vec<u8>) {
        self.features.push((number, payload));
        self.features.sort();
    }

    /// An empty body of a record, in the recording's order of bytes.
    pub fn body(&self) -> Bytes {
        Bytes {
            bytes: Vec::new(),
            big: self.big,
        }
    }

    /// Returns the number of bytes of records so far.
    pub fn written(&self) -> usize {
        self.data.len()
    }

    /// Returns the records so far.
    pub fn records(&self) -> &[u8] {
        &self.data
    }

    /// Writes a record whose body is there.
    pub fn record(&mut self, kind: u32, misc: u16, body: Bytes) {
        let size = u16::try_from(8 + body.bytes.len()).expect("a record has at most 64 KiB");
        let header = self.body().u32(kind).u16(misc).u16(size);
        self.data.extend(header.raw(&body.bytes).bytes);
    }

    /// Writes bytes that no record counts.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.data.extend(bytes);
    }

    /// Writes a record of the kernel, with the trailer of the event that describes processes, or of
    /// the first one.
    pub fn kernel_record(&mut self, kind: u32, misc: u16, body: Bytes, time: u64, pid: u32) {
        const DESCRIBES: u64 = 1 << 8 | 1 << 9 | 1 << 13;
        let mut attrs = self.attrs.iter();
        let describes = attrs.find(|attr| attr.flags & DESCRIBES != 0);
        let attr = describes.unwrap_or(&self.attrs[0]);
        let id = attr.ids.first().copied().unwrap_or(0);
        self.record_of(id, kind, misc, body, (time, pid));
    }

    /// Writes a record of the event with an id, at a time of a process.
    pub fn record_of(&mut self, id: u64, kind: u32, misc: u16, body: Bytes, at: (u64, u32)) {
        let ((time, pid), attr) = (at, &self.attrs[0]);
        let has = |bit: u32| attr.flags & SAMPLE_ID_ALL != 0 && attr.sample_type >> bit & 1 != 0;
        let mut body = body;
        if has(1) {
            body = body.u32(pid).u32(pid);
        }
        let words = [(2, time), (6, id), (9, id), (7, 0), (16, id)];
        for (_, value) in words.into_iter().filter(|&(bit, _)| has(bit)) {
            body = body.u64(value);
        }
        self.record(kind, misc, body);
    }

    /// Names a thread.
    pub fn comm(&mut self, time: u64, pid: u32, tid: u32, name: &str) {
        let body = self.body().u32(pid).u32(tid).name(name);
        self.kernel_record(3, 0, body, time, pid);
    }

    /// Runs another program in a process.
    pub fn exec(&mut self, time: u64, pid: u32, name: &str) {
        const EXEC: u16 = 1 << 13;
        let body = self.body().u32(pid).u32(pid).name(name);
        self.kernel_record(3, EXEC, body, time, pid);
    }

    /// Begins a thread or, with another pid, a process.
    pub fn fork(&mut self, time: u64, pid: u32, parent: u32, tid: u32) {
        let body = self.body().u32(pid).u32(parent).u32(tid).u32(parent);
        self.kernel_record(7, 0, body.u64(time), time, pid);
    }

    /// Ends a thread.
    pub fn exit(&mut self, time: u64, pid: u32, tid: u32) {
        let body = self.body().u32(pid).u32(pid).u32(tid).u32(tid);
        self.kernel_record(4, 0, body.u64(time), time, pid);
    }

    /// Maps code.
    pub fn mmap2(&mut self, time: u64, pid: u32, start: u64, size: u64, offset: u64, name: &str) {
        let body = self.body().u32(pid).u32(pid).words(&[start, size, offset]);
        let body = body.u32(8).u32(1).words(&[77, 5]).u32(5).u32(2).name(name);
        self.kernel_record(10, 2, body, time, pid);
    }

    /// Records that the buffer of the event with an id lost records.
    pub fn lost(&mut self, time: u64, pid: u32, id: u64, records: u64) {
        let body = self.body().words(&[id, records]);
        self.record_of(id, 2, 0, body, (time, pid));
    }

    /// States how many records of the event with an id were lost, as the recorder does at the end.
    pub fn lost_of_event(&mut self, id: u64, records: u64) {
        let body = self.body().u64(records);
        self.record_of(id, 13, 0, body, (0, 0));
    }

    /// States the buffer of each id: a processor or else a thread.
    pub fn id_index(&mut self, ids: &[(u64, Result<u64, u64>)]) {
        let body = self.body().u64(ids.len() as u64);
        let body = ids.iter().fold(body, |body, &(id, buffer)| {
            let (cpu, tid) = match buffer {
                Ok(cpu) => (cpu, u64::MAX),
                Err(tid) => (u64::MAX, tid),
            };
            body.words(&[id, cpu.min(tid), cpu, tid])
        });
        self.record(69, 0, body);
    }

    /// Adds a sample of the first event in user mode, in the layout of [`PerfAttr::default`]. The id
    /// of the event may precede it (bit 16).
    pub fn sample(&mut self, time: u64, pid: u32, tid: u32, chain: &[u64]) {
        let ip = chain.first().copied().unwrap_or(0);
        let attr = &self.attrs[0];
        let has_id = attr.sample_type >> 16 & 1 != 0;
        let id = attr.ids.first().filter(|_| has_id);
        let body = self.body().words(id.map_or(&[], std::slice::from_ref));
        let body = body.u64(ip).u32(pid).u32(tid).u64(time);
        let body = body.u32(tid % 4).u32(0).u64(1_000_000);
        let body = body.u64(chain.len() as u64 + 1).u64(-512i64 as u64);
        self.record(9, 2, body.words(chain));
    }

    /// Names the events, each with its attributes.
    pub fn name_events(&mut self, names: &[&str]) {
        let mut body = self.body().u32(names.len() as u32).u32(ATTR_SIZE);
        for (attr, name) in self.attrs.iter().zip(names) {
            let mut text = name.as_bytes().to_vec();
            text.resize(64, 0);
            body = body.raw(&self.attr_bytes(attr).bytes);
            body = body
                .u32(attr.ids.len() as u32)
                .u32(64)
                .raw(&text)
                .words(&attr.ids);
        }
        self.feature(12, body.bytes);
    }

    /// Ends a pass over all processors.
    pub fn round(&mut self) {
        let body = self.body();
        self.record(68, 0, body);
    }

    fn attr_bytes(&self, attr: &PerfAttr) -> Bytes {
        let body = self.body().u32(attr.kind).u32(ATTR_SIZE);
        let body = body.words(&[attr.config, attr.period]);
        let body = body.words(&[attr.sample_type, attr.read_format, attr.flags]);
        let body = body.words(&[0, 0, 0, attr.branch_sample_type, attr.regs_user]);
        let body = body.u32(0).u32(1).u64(attr.regs_intr);
        body.words(&[0, 0])
    }

    /// The recording as `perf record -o FILE` writes it: the records, features last.
    pub fn file(&self) -> Vec<u8> {
        let mut rows = self.body();
        let mut ids = self.body();
        for attr in &self.attrs {
            let at = 104 + ids.bytes.len() as u64;
            rows = rows.raw(&self.attr_bytes(attr).bytes);
            rows = rows.words(&[at, attr.ids.len() as u64 * 8]);
            ids = ids.words(&attr.ids);
        }
        let attrs = 104 + ids.bytes.len() as u64;
        let data = attrs + rows.bytes.len() as u64;
        let mut features = [0u64; 4];
        for &(number, _) in &self.features {
            features[number as usize / 64] |= 1 << (number % 64);
        }
        let magic = if self.big { b"2ELIFREP" } else { b"PERFILE2" };
        let header = self
            .body()
            .raw(magic)
            .u64(104)
            .u64(u64::from(ATTR_SIZE) + 16);
        let header = header.words(&[attrs, rows.bytes.len() as u64]);
        let header = header
            .words(&[data, self.data.len() as u64, 0, 0])
            .words(&features);
        let file = header.raw(&ids.bytes).raw(&rows.bytes).raw(&self.data);
        let mut at = file.bytes.len() as u64 + self.features.len() as u64 * 16;
        let mut table = self.body();
        for (_, payload) in &self.features {
            table = table.words(&[at, payload.len() as u64]);
            at += payload.len() as u64;
        }
        let payloads = self.features.iter().flat_map(|(_, payload)| payload);
        file.raw(&table.bytes)
            .raw(&payloads.copied().collect::<Vec<_>>())
            .bytes
    }

    /// The recording as `perf record -o -` writes it.
    pub fn pipe(&self) -> Vec<u8> {
        let mut head = Self {
            data: Vec::new(),
            ..self.clone()
        };
        for attr in &self.attrs {
            head.record(64, 0, self.attr_bytes(attr).words(&attr.ids));
        }
        for (number, payload) in &self.features {
            let body = self.body().u64((*number).into()).raw(payload).padded();
            head.record(80, 0, body);
        }
        let magic = if self.big { b"2ELIFREP" } else { b"PERFILE2" };
        let file = self.body().raw(magic).u64(16);
        file.raw(&head.data).raw(&self.data).bytes
    }

    /// Returns this recording with the kernel's records in compressed ones of at most `piece` bytes
    /// each, of one zstd stream without an end. The stream stores them uncompressed; the recorder's
    /// own records are in between.
    pub fn compressed(&self, piece: usize) -> Self {
        let mut packed = Self {
            data: Vec::new(),
            ..self.clone()
        };
        // The magic, no options, a window of 1 KiB.
        let mut stream = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0];
        let mut pending = Vec::new();
        let mut rest = self.data.as_slice();
        loop {
            let number = |bytes: &[u8]| match self.big {
                true => bytes
                    .iter()
                    .fold(0, |all, &byte| all << 8 | usize::from(byte)),
                false => (bytes.iter().rev()).fold(0, |all, &byte| all << 8 | usize::from(byte)),
            };
            let head = rest
                .get(..8)
                .map(|head| (number(&head[..4]), number(&head[6..])));
            let (kind, size) = head.unwrap_or((64, 0));
            let size = if size < 8 {
                rest.len()
            } else {
                size.min(rest.len())
            };
            let (record, behind) = rest.split_at(size);
            if kind < 64 {
                pending.extend(record);
            } else {
                for block in pending.chunks(1_000) {
                    stream.extend(&(block.len() as u32 * 8).to_le_bytes()[..3]);
                    stream.extend(block);
                }
                for piece in stream.chunks(piece) {
                    packed.record(81, 0, self.body().raw(piece));
                }
                (pending, stream) = (Vec::new(), Vec::new());
                packed.raw(record);
            }
            if rest.is_empty() {
                return packed;
            }
            rest = behind;
        }
    }
}

/// Builds a jitdump in memory.
pub struct JitdumpWriter {
    out: Bytes,
    next_index: u64,
}

impl JitdumpWriter {
    /// An empty dump of a process. `reserved` is 0 but for V8.
    pub fn new(big: bool, pid: u32, reserved: u32) -> Self {
        let bytes = Vec::new();
        let out = Bytes { bytes, big };
        let out = out.u32(0x4a69_5444).u32(1).u32(40).u32(62).u32(reserved);
        Self {
            out: out.u32(pid).u64(1).u64(0),
            next_index: 1,
        }
    }

    /// An empty body of a record.
    pub fn body(&self) -> Bytes {
        Bytes {
            bytes: Vec::new(),
            big: self.out.big,
        }
    }

    /// Writes a record whose body is there.
    pub fn record(&mut self, kind: u32, time: u64, body: Bytes) {
        let size = 16 + body.bytes.len() as u32;
        let out = std::mem::take(&mut self.out);
        let out = Bytes {
            big: body.big,
            ..out
        };
        self.out = out.u32(kind).u32(size).u64(time).raw(&body.bytes);
    }

    /// Loads code; its index.
    pub fn load(&mut self, time: u64, pid: u32, address: u64, name: &str, code: &[u8]) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        let body = self.body().u32(pid).u32(pid);
        let body = body.words(&[address, address, code.len() as u64, index]);
        self.record(0, time, body.raw(name.as_bytes()).raw(&[0]).raw(code));
        index
    }

    /// Moves code.
    pub fn moved(&mut self, time: u64, pid: u32, from: u64, to: u64, size: u64, index: u64) {
        let body = self.body().u32(pid).u32(pid);
        self.record(1, time, body.words(&[to, from, to, size, index]));
    }

    /// States the lines of the code that is loaded next; a path of `None` is that of the preceding
    /// row.
    pub fn lines(&mut self, time: u64, address: u64, rows: &[(u64, u32, Option<&str>)]) {
        let mut body = self.body().words(&[address, rows.len() as u64]);
        for &(address, line, path) in rows {
            let path = path.map_or(&b"\xff"[..], str::as_bytes);
            body = body.u64(address).u32(line).u32(0).raw(path).raw(&[0]);
        }
        self.record(2, time, body.padded());
    }

    /// Says how to unwind the code that is loaded next.
    pub fn unwinding(&mut self, time: u64, eh_frame: &[u8], header: &[u8]) {
        let size = (eh_frame.len() + header.len()) as u64;
        let body = self.body().words(&[size, header.len() as u64, 0]);
        self.record(4, time, body.raw(eh_frame).raw(header).padded());
    }

    /// Returns the dump so far.
    pub fn file(&self) -> &[u8] {
        &self.out.bytes
    }
}
