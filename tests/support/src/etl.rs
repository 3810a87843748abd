//! Writes `.etl` files from typed records.
//!
//! All times are nanoseconds since the start of the trace (negative ones lie before it); the writer
//! turns them into ticks of the clock that its [`Options`] name. Each CPU fills a buffer of its
//! own, which goes to the file when it is full, so a gigabyte is written with little memory.
//!
//! ```
//! use chronosym_support::etl::{At, EtlWriter, Image, Op, Options, Process, Stack};
//!
//! let mut w = EtlWriter::new(Vec::new(), Options::default())?;
//! let at = At::ms(1).pid(42).tid(7);
//! w.process(at, Op::Start, &Process { pid: 42, image: "app.exe", ..Default::default() })?;
//! w.thread(at, Op::Start, 42, 7)?;
//! w.image(at, Op::Load, &Image { base: 0x40_0000, size: 0x1_0000, pid: 42, path: r"C:\app.exe", ..Default::default() })?;
//! w.sample(At::ms(2), 0x40_1234, 7)?;
//! w.stack(At::ms(2), &Stack { event: At::ms(2), pid: 42, tid: 7, addresses: &[0x40_1234, 0x40_2000] })?;
//! let file: Vec<u8> = w.finish()?;
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, Write};

mod kernel;
mod xpress;

pub use kernel::{Image, Op, Process, Stack, StackMode};
pub use xpress::compress;

/// Bytes of a buffer header.
pub const BUFFER_HEADER: usize = 72;

/// The content of the log file header, and how buffers are written.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the kernel is a 64-bit one: width of kernel payloads.
    pub wide: bool,
    /// Number of CPUs.
    pub cpus: u16,
    /// Bytes of an uncompressed buffer.
    pub buffer_size: u32,
    /// Whether buffers except the first are compressed.
    pub compress: bool,
    /// Clock type: 1 performance counter, 2 system time, 3 CPU cycles.
    pub clock: u32,
    /// Performance counter ticks a second.
    pub perf_freq: u64,
    /// CPU speed, the frequency of clock 3.
    pub cpu_mhz: u32,
    /// Raw time of the start; for clock 2 it is `start_time`.
    pub start_raw: i64,
    /// Start as FILETIME.
    pub start_time: u64,
    /// End in ns since the start; `None` for a trace that was not stopped.
    pub end_ns: Option<u64>,
    /// Boot time as FILETIME.
    pub boot_time: u64,
    /// Log file mode bits, without the compression bit.
    pub log_file_mode: u32,
    /// Events lost, as the header has it.
    pub events_lost: u32,
    /// Buffers lost, as the header has it.
    pub buffers_lost: u32,
    /// Name of the session.
    pub session_name: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wide: true,
            cpus: 1,
            buffer_size: 64 << 10,
            compress: false,
            clock: 1,
            perf_freq: 10_000_000,
            cpu_mhz: 3_000,
            start_raw: 5_000_000_000,
            start_time: 133_500_000_000_000_000,
            end_ns: Some(3_600_000_000_000),
            boot_time: 133_499_000_000_000_000,
            log_file_mode: 0,
            events_lost: 0,
            buffers_lost: 0,
            session_name: "synthetic".into(),
        }
    }
}

/// When and where something is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Nanoseconds since the start of the trace.
    pub ns: i64,
    /// Processor to whose buffer it is written.
    pub cpu: u16,
    /// Process in the record header.
    pub pid: u32,
    /// Thread in the record header.
    pub tid: u32,
}

impl At {
    /// Nanoseconds since the start, CPU 0, process and thread unknown.
    pub fn ns(ns: i64) -> Self {
        Self {
            ns,
            cpu: 0,
            pid: u32::MAX,
            tid: u32::MAX,
        }
    }

    /// Microseconds since the start.
    pub fn us(us: i64) -> Self {
        Self::ns(us * 1_000)
    }

    /// Milliseconds since the start.
    pub fn ms(ms: i64) -> Self {
        Self::ns(ms * 1_000_000)
    }

    /// On this CPU.
    pub fn cpu(self, cpu: u16) -> Self {
        Self { cpu, ..self }
    }

    /// Logged by this process.
    pub fn pid(self, pid: u32) -> Self {
        Self { pid, ..self }
    }

    /// Logged by this thread.
    pub fn tid(self, tid: u32) -> Self {
        Self { tid, ..self }
    }
}

/// Header of a manifest, TraceLogging or EventSource event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Event<'a> {
    /// Provider GUID, as stored in the file.
    pub provider: [u8; 16],
    /// Event id.
    pub id: u16,
    /// Version.
    pub version: u8,
    /// Channel.
    pub channel: u8,
    /// Level.
    pub level: u8,
    /// Opcode.
    pub opcode: u8,
    /// Task.
    pub task: u16,
    /// Keyword bits.
    pub keyword: u64,
    /// Activity GUID.
    pub activity: [u8; 16],
    /// Whether a 32-bit process logs it.
    pub narrow: bool,
    /// Extended data items: type and data.
    pub extended: &'a [(u16, &'a [u8])],
    /// The event's data.
    pub payload: &'a [u8],
}

/// Returns the bytes of a GUID as stored in a file, from the usual notation: `guid(0xe13c0d23,
/// 0xccbc, 0x4e12, 0x931b_d9cc2eee27e4)`.
pub const fn guid(a: u32, b: u16, c: u16, d: u64) -> [u8; 16] {
    let (a, b, c, d) = (
        a.to_le_bytes(),
        b.to_le_bytes(),
        c.to_le_bytes(),
        d.to_be_bytes(),
    );
    [
        a[0], a[1], a[2], a[3], b[0], b[1], c[0], c[1], d[0], d[1], d[2], d[3], d[4], d[5], d[6],
        d[7],
    ]
}

/// Microsoft-Windows-DotNETRuntime.
pub const CLR_RUNTIME: [u8; 16] = guid(0xe13c0d23, 0xccbc, 0x4e12, 0x931b_d9cc2eee27e4);
/// Microsoft-Windows-DotNETRuntimeRundown.
pub const CLR_RUNDOWN: [u8; 16] = guid(0xa669021c, 0xc450, 0x4609, 0xa035_5af59af4df18);

/// UTF-16LE with its NUL, as payloads have it.
pub fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// Data of a stack trace item: type 6 (or 5 if `narrow`) for [`Event::extended`].
pub fn stack_item(match_id: u64, addresses: &[u64], narrow: bool) -> Vec<u8> {
    let mut data = match_id.to_le_bytes().to_vec();
    for address in addresses {
        put_pointer(&mut data, *address, !narrow);
    }
    data
}

fn put_pointer(out: &mut Vec<u8>, value: u64, wide: bool) {
    out.extend_from_slice(&value.to_le_bytes()[..if wide { 8 } else { 4 }]);
}

/// Writes one `.etl` file.
pub struct EtlWriter<W: Write> {
    out: W,
    options: Options,
    /// The buffer that each CPU fills, header space included.
    buffers: Vec<Vec<u8>>,
    /// Flags for the next buffer that a CPU writes.
    flags: Vec<u16>,
    sequence: u64,
    /// The record and the payload being written.
    record: Vec<u8>,
    payload: Vec<u8>,
    packed: Vec<u8>,
}

impl<W: Write> EtlWriter<W> {
    /// Starts a file: writes its first buffer, which holds only the log file header.
    pub fn new(out: W, options: Options) -> io::Result<Self> {
        let cpus = usize::from(options.cpus.max(1));
        let mut writer = Self {
            out,
            buffers: vec![vec![0; BUFFER_HEADER]; cpus],
            flags: vec![0; cpus],
            sequence: 0,
            record: Vec::new(),
            payload: Vec::new(),
            packed: Vec::new(),
            options,
        };
        let header = writer.log_file_header();
        writer.system(At::ns(0).pid(4).tid(8), 0, 0, 2, &header)?;
        writer.flush(0)?;
        Ok(writer)
    }

    fn log_file_header(&self) -> Vec<u8> {
        let o = &self.options;
        let pointer = if o.wide { 8 } else { 4 };
        let end = o.end_ns.map_or(0, |ns| o.start_time + ns / 100);
        let mode = o.log_file_mode | if o.compress { 0x0400_0000 } else { 0 };
        let mut p = Vec::new();
        p.extend_from_slice(&o.buffer_size.to_le_bytes());
        let layout = if o.compress { [2, 0] } else { [1, 5] };
        p.extend_from_slice(&[10, 0, layout[0], layout[1]]);
        p.extend_from_slice(&19_045u32.to_le_bytes());
        p.extend_from_slice(&u32::from(o.cpus).to_le_bytes());
        p.extend_from_slice(&end.to_le_bytes());
        for word in [156_250, 0, mode, 0, 1, pointer, o.events_lost, o.cpu_mhz] {
            p.extend_from_slice(&u32::to_le_bytes(word));
        }
        p.resize(p.len() + 2 * pointer as usize, 0);
        p.resize(p.len() + 172 + 4, 0);
        for word in [o.boot_time, o.perf_freq, o.start_time] {
            p.extend_from_slice(&word.to_le_bytes());
        }
        p.extend_from_slice(&o.clock.to_le_bytes());
        p.extend_from_slice(&o.buffers_lost.to_le_bytes());
        p.extend_from_slice(&utf16(&o.session_name));
        p.extend_from_slice(&utf16("synthetic.etl"));
        p
    }

    /// The options that the file was begun with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the output.
    pub fn output(&self) -> &W {
        &self.out
    }

    /// Returns the raw time of a time in ns, as stored in records and stack walks.
    pub fn raw(&self, ns: i64) -> i64 {
        let o = &self.options;
        let (start, frequency) = match o.clock {
            2 => (o.start_time as i64, 10_000_000),
            3 => (o.start_raw, u64::from(o.cpu_mhz) * 1_000_000),
            _ => (o.start_raw, o.perf_freq),
        };
        // Rounded up, so that the reader, which rounds down, does not get an earlier time.
        let ticks = i128::from(ns) * i128::from(frequency);
        start
            + (ticks.div_euclid(1_000_000_000) + i128::from(ticks.rem_euclid(1_000_000_000) != 0))
                as i64
    }

    /// Appends a whole record (header and payload, without padding) to a CPU's buffer.
    pub fn raw_record(&mut self, cpu: u16, record: &[u8]) -> io::Result<()> {
        let cpu = usize::from(cpu);
        let limit = self.options.buffer_size as usize;
        assert!(
            BUFFER_HEADER + record.len() <= limit,
            "a record of {} bytes fits no buffer",
            record.len()
        );
        if self.buffers[cpu].len() + record.len() > limit {
            self.flush(cpu as u16)?;
        }
        let buffer = &mut self.buffers[cpu];
        buffer.extend_from_slice(record);
        buffer.resize(buffer.len().next_multiple_of(8), 0);
        Ok(())
    }

    /// Finishes a record whose header is in `self.record`, and whose size belongs at `size_at`.
    fn end(&mut self, cpu: u16, size_at: usize, payload: &[u8]) -> io::Result<()> {
        let mut record = std::mem::take(&mut self.record);
        record.extend_from_slice(payload);
        let size = u16::try_from(record.len()).expect("records are shorter than 64 KiB");
        record[size_at..size_at + 2].copy_from_slice(&size.to_le_bytes());
        let done = self.raw_record(cpu, &record);
        record.clear();
        self.record = record;
        done
    }

    fn ids_and_time(&mut self, at: At) {
        let raw = self.raw(at.ns);
        self.record.extend_from_slice(&at.tid.to_le_bytes());
        self.record.extend_from_slice(&at.pid.to_le_bytes());
        self.record.extend_from_slice(&raw.to_le_bytes());
    }

    /// A kernel event with process and thread in its header.
    pub fn system(
        &mut self,
        at: At,
        group: u8,
        opcode: u8,
        version: u16,
        payload: &[u8],
    ) -> io::Result<()> {
        let kind = if self.options.wide { 2 } else { 1 };
        let [v0, v1] = version.to_le_bytes();
        self.record
            .extend_from_slice(&[v0, v1, kind, 0xc0, 0, 0, opcode, group]);
        self.ids_and_time(at);
        self.record.extend_from_slice(&[0; 8]);
        self.end(at.cpu, 4, payload)
    }

    /// The same without CPU times.
    pub fn compact(
        &mut self,
        at: At,
        group: u8,
        opcode: u8,
        version: u16,
        payload: &[u8],
    ) -> io::Result<()> {
        let kind = if self.options.wide { 4 } else { 3 };
        let [v0, v1] = version.to_le_bytes();
        self.record
            .extend_from_slice(&[v0, v1, kind, 0xc0, 0, 0, opcode, group]);
        self.ids_and_time(at);
        self.end(at.cpu, 4, payload)
    }

    /// A kernel event without process and thread in its header.
    pub fn perfinfo(
        &mut self,
        at: At,
        group: u8,
        opcode: u8,
        version: u16,
        payload: &[u8],
    ) -> io::Result<()> {
        let kind = if self.options.wide { 0x11 } else { 0x10 };
        let [v0, v1] = version.to_le_bytes();
        let raw = self.raw(at.ns);
        self.record
            .extend_from_slice(&[v0, v1, kind, 0xc0, 0, 0, opcode, group]);
        self.record.extend_from_slice(&raw.to_le_bytes());
        self.end(at.cpu, 4, payload)
    }

    /// A classic event, as user-mode providers and the merging of traces write it.
    pub fn classic(
        &mut self,
        at: At,
        class: [u8; 16],
        opcode: u8,
        version: u16,
        payload: &[u8],
    ) -> io::Result<()> {
        let kind = if self.options.wide { 0x14 } else { 0x0a };
        let [v0, v1] = version.to_le_bytes();
        self.record
            .extend_from_slice(&[0, 0, kind, 0xc0, opcode, 0, v0, v1]);
        self.ids_and_time(at);
        self.record.extend_from_slice(&class);
        self.record.extend_from_slice(&[0; 8]);
        self.end(at.cpu, 0, payload)
    }

    /// An event of a provider that registered with a GUID.
    pub fn event(&mut self, at: At, event: &Event<'_>) -> io::Result<()> {
        let kind = if event.narrow { 0x12 } else { 0x13 };
        self.record.extend_from_slice(&[
            0,
            0,
            kind,
            0xc0,
            u8::from(!event.extended.is_empty()),
            0,
            0,
            0,
        ]);
        self.ids_and_time(at);
        let r = &mut self.record;
        r.extend_from_slice(&event.provider);
        r.extend_from_slice(&event.id.to_le_bytes());
        r.extend_from_slice(&[event.version, event.channel, event.level, event.opcode]);
        r.extend_from_slice(&event.task.to_le_bytes());
        r.extend_from_slice(&event.keyword.to_le_bytes());
        r.extend_from_slice(&[0; 8]);
        r.extend_from_slice(&event.activity);
        for (i, (kind, data)) in event.extended.iter().enumerate() {
            let more = u16::from(i + 1 < event.extended.len());
            let total = (8 + data.len()).next_multiple_of(8);
            for word in [total as u16, *kind, more, data.len() as u16] {
                r.extend_from_slice(&word.to_le_bytes());
            }
            r.extend_from_slice(data);
            r.resize(r.len() + total - 8 - data.len(), 0);
        }
        self.end(at.cpu, 0, event.payload)
    }

    /// An event of the runtime ([`CLR_RUNTIME`], [`CLR_RUNDOWN`]) with the given payload and, if
    /// not empty, stack.
    pub fn clr(
        &mut self,
        at: At,
        provider: [u8; 16],
        id: u16,
        version: u8,
        payload: &[u8],
        stack: &[u64],
    ) -> io::Result<()> {
        let item = stack_item(0, stack, false);
        let items = [(6, item.as_slice())];
        let extended = if stack.is_empty() {
            &[]
        } else {
            items.as_slice()
        };
        self.event(
            at,
            &Event {
                provider,
                id,
                version,
                level: 4,
                extended,
                payload,
                ..Event::default()
            },
        )
    }

    /// Sets flag bits in the header of the buffer that a CPU is filling: 2 events lost, 4 buffer
    /// lost.
    pub fn flag_buffer(&mut self, cpu: u16, flags: u16) {
        self.flags[usize::from(cpu)] |= flags;
    }

    /// Writes a processor's buffer, unless it is empty.
    pub fn flush(&mut self, cpu: u16) -> io::Result<()> {
        const COMPRESSED: u16 = 0x40;
        let at = usize::from(cpu);
        let mut buffer = std::mem::take(&mut self.buffers[at]);
        if buffer.len() > BUFFER_HEADER {
            let valid = buffer.len() as u32;
            let mut flags = std::mem::take(&mut self.flags[at]) | 0x21;
            let first = self.sequence == 0;
            if self.options.compress && !first {
                flags |= COMPRESSED;
                self.packed.clear();
                compress(&buffer[BUFFER_HEADER..], &mut self.packed);
                buffer.truncate(BUFFER_HEADER);
                buffer.extend_from_slice(&self.packed);
            } else {
                buffer.resize(self.options.buffer_size as usize, 0xff);
            }
            let stored = buffer.len() as u32;
            buffer[0..4].copy_from_slice(&stored.to_le_bytes());
            buffer[0x18..0x20].copy_from_slice(&self.sequence.to_le_bytes());
            buffer[0x28..0x2a].copy_from_slice(&cpu.to_le_bytes());
            buffer[0x30..0x34].copy_from_slice(&valid.to_le_bytes());
            buffer[0x34..0x36].copy_from_slice(&flags.to_le_bytes());
            buffer[0x36..0x38].copy_from_slice(&(if first { 4u16 } else { 0 }).to_le_bytes());
            self.out.write_all(&buffer)?;
            self.sequence += 1;
        }
        buffer.clear();
        buffer.resize(BUFFER_HEADER, 0);
        self.buffers[at] = buffer;
        Ok(())
    }

    /// Writes the remaining buffers and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        for cpu in 0..self.buffers.len() {
            self.flush(cpu as u16)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Splits a whole file into its buffers, to drop, repeat or permute them. The first one holds the
/// log file header.
pub fn buffers(file: &[u8]) -> Vec<&[u8]> {
    let mut rest = file;
    let mut found = Vec::new();
    while let Some(size) = rest
        .first_chunk()
        .map(|size| u32::from_le_bytes(*size) as usize)
    {
        let (buffer, after) = rest.split_at_checked(size.max(1)).unwrap_or((rest, &[]));
        found.push(buffer);
        rest = after;
    }
    found
}
