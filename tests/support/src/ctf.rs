//! Writes LTTng traces: metadata and streams.
//!
//! ```
//! use chronosym_support::ctf::{CtfEvent, CtfLayout, CtfTrace, CtfType, CtfValue};
//!
//! let mut trace = CtfTrace::new(CtfLayout::default(), &[("vpid", CtfType::Signed(32))]);
//! let id = trace.event("P:Event", &[("text", CtfType::Text)]);
//! let event = CtfEvent {
//!     time: 10,
//!     id,
//!     context: vec![CtfValue::Number(7)],
//!     fields: vec![CtfValue::Text("hello")],
//! };
//! assert!(trace.text().contains("P:Event"));
//! assert_eq!(trace.packet(0, 0, 0, &[event]).len(), 512);
//! ```

/// ns since 1970 at the 0 of the clock of these traces.
pub const CLOCK_OFFSET: i64 = 1_584_479_919_502_699_645;

/// The declared type of a field.
#[derive(Clone, Copy, Debug)]
pub enum CtfType {
    /// A number of this many bits, a multiple of 8.
    Unsigned(u32),
    /// The same, with a sign.
    Signed(u32),
    /// Text up to a NUL.
    Text,
    /// This many characters.
    Chars(usize),
    /// Bytes, preceded by a field with their number.
    Bytes,
    /// Numbers of 32 bits, preceded by a field with their number.
    Words,
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub enum CtfValue<'a> {
    /// A number.
    Number(u64),
    /// Text, for [`CtfType::Text`] and [`CtfType::Chars`].
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// Numbers.
    Words(&'a [u32]),
}

/// How a trace is laid out.
#[derive(Clone, Copy, Debug)]
pub struct CtfLayout {
    /// Recorded in the kernel: short headers of events, and other words in the metadata.
    pub is_kernel: bool,
    /// Numbers have their high byte first.
    pub is_big: bool,
    /// Numbers are aligned to their size, as on arm64.
    pub is_aligned: bool,
    /// The trace.
    pub uuid: [u8; 16],
}

impl Default for CtfLayout {
    fn default() -> Self {
        CtfLayout {
            is_kernel: false,
            is_big: false,
            is_aligned: false,
            uuid: *b"0123456789abcdef",
        }
    }
}

/// A trace: the declarations in its metadata.
#[derive(Clone, Debug)]
pub struct CtfTrace {
    layout: CtfLayout,
    context: Vec<(String, CtfType)>,
    events: Vec<(String, Vec<(String, CtfType)>)>,
}

/// An event to be written.
#[derive(Clone, Debug)]
pub struct CtfEvent<'a> {
    /// In ticks.
    pub time: u64,
    /// As [`CtfTrace::event`] returned it.
    pub id: u32,
    /// The values of the context.
    pub context: Vec<CtfValue<'a>>,
    /// The values of its fields.
    pub fields: Vec<CtfValue<'a>>,
}

impl CtfTrace {
    /// A trace whose events have a context of these fields.
    pub fn new(layout: CtfLayout, context: &[(&str, CtfType)]) -> Self {
        CtfTrace {
            layout,
            context: own(context),
            events: Vec::new(),
        }
    }

    /// Declares an event; returns its id.
    pub fn event(&mut self, name: &str, fields: &[(&str, CtfType)]) -> u32 {
        self.events.push((name.to_owned(), own(fields)));
        self.events.len() as u32 - 1
    }

    /// The text of the metadata.
    pub fn text(&self) -> String {
        let layout = self.layout;
        let order = if layout.is_big { "be" } else { "le" };
        let align = |bits: u32| if layout.is_aligned { bits } else { 8 };
        let mut text = String::new();
        if !layout.is_kernel {
            text.push_str("/* CTF 1.8 */\n\n");
        }
        for bits in [8, 16, 32, 64] {
            let align = align(bits);
            text += &format!(
                "typealias integer {{ size = {bits}; align = {align}; signed = false; }} := uint{bits}_t;\n"
            );
        }
        text += &format!(
            "typealias integer {{ size = 64; align = {}; signed = false; }} := unsigned long;\n\
             typealias integer {{ size = 5; align = 1; signed = false; }} := uint5_t;\n",
            align(64)
        );
        let hex: Vec<String> = layout
            .uuid
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let hex = hex.concat();
        let uuid = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ]
        .join("-");
        text += &format!(
            "trace {{\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"{uuid}\";\n\tbyte_order = {order};\n\
             \tpacket.header := struct {{\n\t\tuint32_t magic;\n\t\tuint8_t  uuid[16];\n\
             \t\tuint32_t stream_id;\n\t\tuint64_t stream_instance_id;\n\t}};\n}};\n\n"
        );
        let domain = if layout.is_kernel { "kernel" } else { "ust" };
        text += &format!(
            "env {{\n\thostname = \"machine\";\n\tdomain = \"{domain}\";\n\tsysname = \"Linux\";\n\
             \tkernel_release = \"6.1.0-test\";\n\ttracer_major = 2;\n\tarchitecture_bit_width = 64;\n}};\n\n\
             clock {{\n\tname = \"monotonic\";\n\tuuid = \"19dc2db9-887d-4b4c-811b-312165376836\";\n\
             \tfreq = 1000000000; /* Hz */\n\toffset = {CLOCK_OFFSET};\n}};\n\n"
        );
        for (bits, align) in [(27, 1), (32, align(32)), (64, align(64))] {
            text += &format!(
                "typealias integer {{\n\tsize = {bits}; align = {align}; signed = false;\n\
                 \tmap = clock.monotonic.value;\n}} := uint{bits}_clock_monotonic_t;\n\n"
            );
        }
        text += "struct packet_context {\n\tuint64_clock_monotonic_t timestamp_begin;\n\
                 \tuint64_clock_monotonic_t timestamp_end;\n\tuint64_t content_size;\n\
                 \tuint64_t packet_size;\n\tuint64_t packet_seq_num;\n\
                 \tunsigned long events_discarded;\n\tuint32_t cpu_id;\n};\n\n";
        for (name, id, last, short, align) in [
            ("compact", "uint5_t", 31, "uint27", align(32)),
            ("large", "uint16_t", 65535, "uint32", align(16)),
        ] {
            text += &format!(
                "struct event_header_{name} {{\n\tenum : {id} {{ compact = 0 ... {}, extended = {last} }} id;\n\
                 \tvariant <id> {{\n\t\tstruct {{\n\t\t\t{short}_clock_monotonic_t timestamp;\n\t\t}} compact;\n\
                 \t\tstruct {{\n\t\t\tuint32_t id;\n\t\t\tuint64_clock_monotonic_t timestamp;\n\t\t}} extended;\n\
                 \t}} v;\n}} align({align});\n\n",
                last - 1
            );
        }
        let header = if layout.is_kernel { "compact" } else { "large" };
        text += &format!(
            "stream {{\n\tid = 0;\n\tevent.header := struct event_header_{header};\n\
             \tpacket.context := struct packet_context;\n\tevent.context := struct {{\n{}\t}};\n}};\n\n",
            self.declared(&self.context)
        );
        for (id, (name, fields)) in self.events.iter().enumerate() {
            text += &format!(
                "event {{\n\tname = \"{name}\";\n\tid = {id};\n\tstream_id = 0;\n\tloglevel = 13;\n\
                 \tfields := struct {{\n{}\t}};\n}};\n\n",
                self.declared(fields)
            );
        }
        text
    }

    fn declared(&self, fields: &[(String, CtfType)]) -> String {
        let integer = |bits: u32, signed: u8, encoding: &str| {
            let align = if self.layout.is_aligned { bits } else { 8 };
            format!(
                "\t\tinteger {{ size = {bits}; align = {align}; signed = {signed}; encoding = {encoding}; base = 10; }}"
            )
        };
        let declare = |(name, ty): &(String, CtfType)| match ty {
            CtfType::Unsigned(bits) => format!("{} _{name};\n", integer(*bits, 0, "none")),
            CtfType::Signed(bits) => format!("{} _{name};\n", integer(*bits, 1, "none")),
            CtfType::Text => format!("\t\tstring _{name};\n"),
            CtfType::Chars(count) => format!("{} _{name}[{count}];\n", integer(8, 1, "UTF8")),
            CtfType::Bytes => format!(
                "{} __{name}_length;\n{} _{name}[ __{name}_length ];\n",
                integer(32, 0, "none"),
                integer(8, 1, "none")
            ),
            CtfType::Words => format!(
                "{} __{name}_length;\n{} _{name}[ __{name}_length ];\n",
                integer(32, 0, "none"),
                integer(32, 0, "none")
            ),
        };
        fields.iter().map(declare).collect()
    }

    /// The metadata, in packets of 4,096 bytes.
    pub fn metadata(&self) -> Vec<u8> {
        const PACKET: usize = 4096;
        const HEADER: usize = 37;
        let mut all = Vec::new();
        for text in self.text().as_bytes().chunks(PACKET - HEADER) {
            let from = all.len();
            self.u32(&mut all, 0x75d1_1d57);
            all.extend_from_slice(&self.layout.uuid);
            self.u32(&mut all, 0);
            self.u32(&mut all, ((HEADER + text.len()) * 8) as u32);
            self.u32(&mut all, (PACKET * 8) as u32);
            all.extend_from_slice(&[0, 0, 0, 1, 8]);
            all.extend_from_slice(text);
            all.resize(from + PACKET, 0);
        }
        all
    }

    fn u32(&self, out: &mut Vec<u8>, value: u32) {
        self.number(out, value.into(), 4);
    }

    fn number(&self, out: &mut Vec<u8>, value: u64, size: usize) {
        let bytes = value.to_le_bytes();
        let mut bytes = bytes[..size].to_vec();
        if self.layout.is_big {
            bytes.reverse();
        }
        out.extend_from_slice(&bytes);
    }

    /// Writes a number at the next aligned position.
    fn aligned(&self, out: &mut Vec<u8>, value: u64, size: usize) {
        if self.layout.is_aligned {
            out.resize(out.len().next_multiple_of(size), 0);
        }
        self.number(out, value, size);
    }

    /// Writes a packet of a stream, padded to 512 bytes: its number, the number of events discarded
    /// up to its end, its processor, its events.
    pub fn packet(
        &self,
        number: u64,
        discarded: u64,
        cpu: u32,
        events: &[CtfEvent<'_>],
    ) -> Vec<u8> {
        let first = events.first().map_or(0, |event| event.time);
        let last = events.last().map_or(0, |event| event.time);
        let mut out = Vec::new();
        self.u32(&mut out, 0xc1fc_1fc1);
        out.extend_from_slice(&self.layout.uuid);
        self.u32(&mut out, 0);
        self.aligned(&mut out, cpu.into(), 8);
        let sizes = out.len() + 16;
        for value in [first, last, 0, 0, number, discarded] {
            self.aligned(&mut out, value, 8);
        }
        self.aligned(&mut out, cpu.into(), 4);
        let mut before = first;
        for event in events {
            self.header(&mut out, event, before);
            before = event.time;
            self.fields(&mut out, &self.context, &event.context);
            self.fields(&mut out, &self.events[event.id as usize].1, &event.fields);
        }
        let content = out.len();
        let size = content.next_multiple_of(512);
        out.resize(size, 0);
        for (at, value) in [(sizes, content), (sizes + 8, size)] {
            let mut bytes = Vec::new();
            self.number(&mut bytes, value as u64 * 8, 8);
            out[at..at + 8].copy_from_slice(&bytes);
        }
        out
    }

    /// Short where id and time fit.
    fn header(&self, out: &mut Vec<u8>, event: &CtfEvent<'_>, before: u64) {
        let (id, time) = (u64::from(event.id), event.time);
        let (bits, most) = if self.layout.is_kernel {
            (27, 31)
        } else {
            (32, 65535)
        };
        let is_short = id < most && time - before < 1 << bits;
        let low = time & ((1 << bits) - 1);
        match (self.layout.is_kernel, is_short) {
            (true, true) if self.layout.is_big => self.aligned(out, id << 27 | low, 4),
            (true, true) => self.aligned(out, low << 5 | id, 4),
            (true, false) => {
                if self.layout.is_aligned {
                    out.resize(out.len().next_multiple_of(4), 0);
                }
                out.push(if self.layout.is_big { 31 << 3 } else { 31 });
            }
            (false, true) => {
                self.aligned(out, id, 2);
                self.aligned(out, low, 4);
            }
            (false, false) => self.aligned(out, 65535, 2),
        }
        if !is_short {
            if self.layout.is_aligned {
                out.resize(out.len().next_multiple_of(8), 0);
            }
            self.aligned(out, id, 4);
            self.aligned(out, time, 8);
        }
    }

    /// Writes a struct, aligned like its widest number.
    fn fields(&self, out: &mut Vec<u8>, types: &[(String, CtfType)], values: &[CtfValue<'_>]) {
        let bytes = |ty: CtfType| match ty {
            CtfType::Unsigned(bits) | CtfType::Signed(bits) => bits as usize / 8,
            CtfType::Text | CtfType::Chars(_) => 1,
            CtfType::Bytes | CtfType::Words => 4,
        };
        let widest = types.iter().map(|(_, ty)| bytes(*ty)).max();
        if let Some(widest) = widest.filter(|_| self.layout.is_aligned) {
            out.resize(out.len().next_multiple_of(widest), 0);
        }
        for ((_, ty), value) in types.iter().zip(values) {
            self.field(out, *ty, *value);
        }
    }

    fn field(&self, out: &mut Vec<u8>, ty: CtfType, value: CtfValue<'_>) {
        match (ty, value) {
            (CtfType::Unsigned(bits) | CtfType::Signed(bits), CtfValue::Number(number)) => {
                self.aligned(out, number, bits as usize / 8);
            }
            (CtfType::Text, CtfValue::Text(text)) => {
                out.extend_from_slice(text.as_bytes());
                out.push(0);
            }
            (CtfType::Chars(count), CtfValue::Text(text)) => {
                let end = out.len() + count;
                out.extend_from_slice(&text.as_bytes()[..text.len().min(count)]);
                out.resize(end, 0);
            }
            (CtfType::Bytes, CtfValue::Bytes(bytes)) => {
                self.aligned(out, bytes.len() as u64, 4);
                out.extend_from_slice(bytes);
            }
            (CtfType::Words, CtfValue::Words(words)) => {
                self.aligned(out, words.len() as u64, 4);
                for &word in words {
                    self.aligned(out, word.into(), 4);
                }
            }
            (ty, value) => panic!("{value:?} is no {ty:?}"),
        }
    }
}

fn own(fields: &[(&str, CtfType)]) -> Vec<(String, CtfType)> {
    let own = |&(name, ty): &(&str, CtfType)| (name.to_owned(), ty);
    fields.iter().map(own).collect()
}
