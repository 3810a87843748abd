//! Records: their framing and their headers.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "positions in a record, which has at most 64 KiB, and bytes of its marker"
)]

use chronosym_types::{Guid, PointerSize, bytes};

use crate::extended::ExtendedItems;

/// Which of ETW's headers a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordKind {
    /// `SYSTEM_TRACE_HEADER`: kernel event with process, thread and CPU times.
    System,
    /// The same without CPU times.
    Compact,
    /// `PERFINFO_TRACE_HEADER`: kernel event without process and thread.
    PerfInfo,
    /// `EVENT_HEADER`: manifest, TraceLogging and EventSource events.
    Event,
    /// `EVENT_TRACE_HEADER`: classic (MOF) events.
    Classic,
    /// `EVENT_INSTANCE_GUID_HEADER`: classic events that carry instance ids.
    Instance,
    /// WPP software tracing (`TRACE_MESSAGE`). The payload is undecoded.
    Message,
    /// Any other header type, by its number. The payload is everything after the first four bytes.
    Other(u8),
}

/// The event type of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKey {
    /// Classic event: class (MOF) GUID, opcode and version. Kernel groups are mapped to their
    /// classes.
    Classic {
        /// Event class GUID.
        class: Guid,
        /// Event type within the class.
        opcode: u8,
        /// Version of the payload.
        version: u16,
    },
    /// Event of a provider that registered with a GUID. TraceLogging events have their name in
    /// [`ExtendedItem::SchemaTl`](crate::ExtendedItem::SchemaTl).
    Manifest {
        /// Provider GUID.
        provider: Guid,
        /// Event id.
        id: u16,
        /// Version of the payload.
        version: u8,
        /// Opcode: 1 start, 2 stop, or the provider's own.
        opcode: u8,
        /// Level: 1 critical to 5 verbose, 0 always.
        level: u8,
        /// Task.
        task: u16,
        /// Keyword bits.
        keyword: u64,
        /// Channel: 11 for TraceLogging.
        channel: u8,
    },
    /// Kernel event of a group that has no known class.
    Group {
        /// Group.
        group: u8,
        /// Event type within the group.
        opcode: u8,
        /// Version of the payload.
        version: u16,
    },
    /// WPP message.
    Message {
        /// Message GUID; zero if the message has none.
        guid: Guid,
        /// Message number.
        number: u16,
    },
    /// A record of [`RecordKind::Other`], by its header type byte.
    Unknown(u8),
}

/// One record, borrowed from the reader's buffer.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Record<'a> {
    /// Nanoseconds since the start of the trace.
    pub time_ns: u64,
    /// Time in ticks of the trace's clock, as other records refer to it (stack walks).
    pub raw_time: i64,
    /// Process that logged the event; the subject of the event is in its payload.
    pub process_id: Option<u32>,
    /// Thread that logged the event.
    pub thread_id: Option<u32>,
    /// Processor that logged the event.
    pub cpu: u16,
    /// Width of pointers in the payload.
    pub pointer_size: PointerSize,
    /// Which header the record has.
    pub kind: RecordKind,
    /// The record's event type.
    pub key: EventKey,
    /// Activity of the event (`EVENT_HEADER` only; zeros are `None`).
    pub activity_id: Option<Guid>,
    /// The event's own data.
    pub payload: &'a [u8],
    bytes: &'a [u8],
    /// Extended items between header and payload.
    extended: &'a [u8],
}

const UNKNOWN_ID: u32 = u32::MAX;

const MESSAGE_SEQUENCE: u16 = 1;
const MESSAGE_GUID: u16 = 2;
const MESSAGE_COMPONENT: u16 = 4;
const MESSAGE_TIME: u16 = 8 | 0x10;
const MESSAGE_IDS: u16 = 0x20;
const MESSAGE_POINTER64: u16 = 0x80;

/// Extent of a record, without reading its fields.
pub(crate) struct Frame {
    /// Bytes of header and payload, without padding.
    pub(crate) size: u32,
    pub(crate) time: Option<i64>,
}

pub(crate) enum FrameError {
    /// The rest of the buffer is unused.
    End,
    /// Not a record, or one that is cut off: the next one cannot be found.
    Damaged,
}

/// The kind and layout of a record's header.
#[derive(Clone, Copy)]
struct Header {
    kind: RecordKind,
    /// Width of pointers in the payload, if the header states it.
    width: Option<PointerSize>,
    size_at: u8,
    length: u8,
    /// Offset of the time; 0 if there is none, or none at a fixed offset.
    time_at: u8,
}

/// The headers of trace records by type.
static HEADERS: [Header; 256] = headers(true);
/// The headers of other records.
static OTHERS: [Header; 256] = headers(false);
static MESSAGE: Header = Header {
    length: 8,
    ..other(RecordKind::Message)
};

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const fn headers(known: bool) -> [Header; 256] {
    let mut headers = [other(RecordKind::Other(0)); 256];
    let mut kind = 0;
    while kind < headers.len() {
        headers[kind] = match known_header(kind as u8) {
            Some(header) if known => header,
            _ => other(RecordKind::Other(kind as u8)),
        };
        kind += 1;
    }
    headers
}

const fn other(kind: RecordKind) -> Header {
    Header {
        kind,
        width: None,
        size_at: 0,
        length: 4,
        time_at: 0,
    }
}

const fn known_header(kind: u8) -> Option<Header> {
    use RecordKind::{Classic, Compact, Event, Instance, PerfInfo, System};
    const FOUR: Option<PointerSize> = Some(PointerSize::Four);
    const EIGHT: Option<PointerSize> = Some(PointerSize::Eight);
    let (kind, width, size_at, length, time_at) = match kind {
        0x01 => (System, FOUR, 4, 32, 16),
        0x02 => (System, EIGHT, 4, 32, 16),
        0x03 => (Compact, FOUR, 4, 24, 16),
        0x04 => (Compact, EIGHT, 4, 24, 16),
        0x0a => (Classic, FOUR, 0, 48, 16),
        0x0b => (Instance, FOUR, 0, 72, 16),
        0x10 => (PerfInfo, FOUR, 4, 16, 8),
        0x11 => (PerfInfo, EIGHT, 4, 16, 8),
        0x12 => (Event, FOUR, 0, 80, 16),
        0x13 => (Event, EIGHT, 0, 80, 16),
        0x14 => (Classic, EIGHT, 0, 48, 16),
        0x15 => (Instance, EIGHT, 0, 72, 16),
        _ => return None,
    };
    Some(Header {
        kind,
        width,
        size_at,
        length,
        time_at,
    })
}

impl Header {
    #[inline]
    fn time(&self, bytes: &[u8]) -> Option<i64> {
        let at = match self.time_at {
            0 if self.kind == RecordKind::Message => message_time_at(bytes)?,
            0 => return None,
            at => at,
        };
        bytes::i64(bytes, at.into())
    }
}

#[inline]
fn header(marker: u32) -> Option<&'static Header> {
    let [.., kind, class] = marker.to_le_bytes();
    match class {
        0xc0 => HEADERS.get(usize::from(kind)),
        0x90 => Some(&MESSAGE),
        0x80.. => OTHERS.get(usize::from(kind)),
        _ => None,
    }
}

/// Frames the record at the start of `bytes`, which extend to the end of the buffer's valid part.
#[inline]
pub(crate) fn frame(bytes: &[u8]) -> Result<Frame, FrameError> {
    let Some(marker) = bytes::u32(bytes, 0) else {
        return Err(FrameError::Damaged);
    };
    if marker == 0 || marker == u32::MAX {
        return Err(FrameError::End);
    }
    let header = header(marker).ok_or(FrameError::Damaged)?;
    let size = bytes::u16(bytes, header.size_at.into()).map_or(0, usize::from);
    let record = bytes.get(..size).ok_or(FrameError::Damaged)?;
    if size < usize::from(header.length) {
        return Err(FrameError::Damaged);
    }
    Ok(Frame {
        size: size as u32,
        time: header.time(record),
    })
}

/// Raw time of the record at the start of `bytes`, even if only its header is there.
pub(crate) fn time_of_cut(bytes: &[u8]) -> Option<i64> {
    header(bytes::u32(bytes, 0)?)?.time(bytes)
}

/// Offset of a WPP message's time. Its optional items come in the order sequence, GUID or
/// component, time, ids.
fn message_time_at(bytes: &[u8]) -> Option<u8> {
    let flags = bytes::u16(bytes, 6)?;
    (flags & MESSAGE_TIME != 0).then(|| 8 + message_prefix(flags))
}

fn message_prefix(flags: u16) -> u8 {
    let sequence = if flags & MESSAGE_SEQUENCE != 0 { 4 } else { 0 };
    let sender = match flags & (MESSAGE_GUID | MESSAGE_COMPONENT) {
        0 => 0,
        MESSAGE_COMPONENT => 4,
        _ => 16,
    };
    sequence + sender
}

/// Properties of a record that its buffer states.
#[derive(Clone, Copy)]
pub(crate) struct RecordContext {
    pub(crate) time_ns: u64,
    pub(crate) raw_time: i64,
    pub(crate) cpu: u16,
    /// For records that do not state it.
    pub(crate) pointer_size: PointerSize,
}

impl<'a> Record<'a> {
    /// Reads the header of a record that [`frame`] accepted; `bytes` start with it and may be
    /// longer.
    #[inline(always)]
    pub(crate) fn read(bytes: &'a [u8], context: RecordContext) -> Option<Self> {
        let marker = bytes::u32(bytes, 0)?;
        let header = header(marker)?;
        let bytes = bytes.get(..usize::from(bytes::u16(bytes, header.size_at.into())?))?;
        // Made where it is returned: copies of it are large.
        let mut read = Some(Self {
            time_ns: context.time_ns,
            raw_time: context.raw_time,
            process_id: None,
            thread_id: None,
            cpu: context.cpu,
            pointer_size: header.width.unwrap_or(context.pointer_size),
            kind: header.kind,
            key: EventKey::Unknown((marker >> 16) as u8),
            activity_id: None,
            payload: bytes.get(header.length.into()..)?,
            bytes,
            extended: &[],
        });
        read.as_mut()?.fields()?;
        read
    }

    /// Reads the fields that depend on the kind of the record.
    #[inline(always)]
    fn fields(&mut self) -> Option<()> {
        match self.kind {
            RecordKind::System | RecordKind::Compact => {
                self.ids()?;
                self.kernel()
            }
            RecordKind::PerfInfo => self.kernel(),
            RecordKind::Event => {
                self.ids()?;
                self.event()
            }
            RecordKind::Classic | RecordKind::Instance => {
                self.ids()?;
                let (class, version) = (bytes::guid(self.bytes, 24)?, bytes::u16(self.bytes, 6)?);
                self.key = EventKey::Classic {
                    class,
                    opcode: self.bytes.get(4).copied().unwrap_or(0),
                    version,
                };
                Some(())
            }
            RecordKind::Message => self.message(),
            RecordKind::Other(_) => Some(()),
        }
    }

    #[inline(always)]
    fn ids(&mut self) -> Option<()> {
        let valid = |id: u32| (id != UNKNOWN_ID).then_some(id);
        self.thread_id = valid(bytes::u32(self.bytes, 8)?);
        self.process_id = valid(bytes::u32(self.bytes, 12)?);
        Some(())
    }

    #[inline(always)]
    fn kernel(&mut self) -> Option<()> {
        let (version, [opcode, group]) = (bytes::u16(self.bytes, 0)?, bytes::array(self.bytes, 6)?);
        // High bits of the version count 8-byte words before the payload: a PEBS index, up to seven
        // counters.
        let words = usize::from(version >> 15) + usize::from(version >> 8 & 7);
        if words != 0
            && let Some(payload) = self.payload.get(8 * words..)
        {
            self.payload = payload;
        }
        // An image load is logged in the group of processes.
        let group = if (group, opcode) == (3, 10) {
            0x14
        } else {
            group
        };
        let version = version & 0xff;
        self.key = match GROUP_CLASSES.get(usize::from(group)) {
            Some(&class) => EventKey::Classic {
                class,
                opcode,
                version,
            },
            None => EventKey::Group {
                group,
                opcode,
                version,
            },
        };
        Some(())
    }

    #[inline(always)]
    fn event(&mut self) -> Option<()> {
        let bytes = self.bytes;
        let [version, channel, level, opcode] = bytes::array(bytes, 42)?;
        self.key = EventKey::Manifest {
            provider: bytes::guid(bytes, 24)?,
            id: bytes::u16(bytes, 40)?,
            version,
            opcode,
            level,
            task: bytes::u16(bytes, 46)?,
            keyword: bytes::u64(bytes, 48)?,
            channel,
        };
        self.activity_id = bytes::guid(bytes, 64).filter(|guid| !guid.is_zero());
        const EXTENDED_INFO: u16 = 1;
        if bytes::u16(bytes, 4)? & EXTENDED_INFO != 0 {
            let end = ExtendedItems::length(self.payload);
            (self.extended, self.payload) = self.payload.split_at(end);
        }
        Some(())
    }

    fn message(&mut self) -> Option<()> {
        let options = bytes::u16(self.bytes, 6)?;
        let mut at = usize::from(message_prefix(options));
        let guid = at.checked_sub(16);
        let guid = guid.and_then(|at| bytes::guid(self.payload, at));
        self.key = EventKey::Message {
            guid: guid.unwrap_or_default(),
            number: bytes::u16(self.bytes, 4)?,
        };
        at += if options & MESSAGE_TIME != 0 { 8 } else { 0 };
        if options & MESSAGE_IDS != 0 {
            self.thread_id = bytes::u32(self.payload, at);
            self.process_id = bytes::u32(self.payload, at + 4);
            at += 8;
        }
        self.pointer_size = if options & MESSAGE_POINTER64 != 0 {
            PointerSize::Eight
        } else {
            PointerSize::Four
        };
        self.payload = self.payload.get(at..).unwrap_or_default();
        Some(())
    }

    /// Returns the whole record: header, extended items, payload.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Extended data items (`EVENT_HEADER` only).
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_etl::{ExtendedItem, Options, Reader};
    /// # use chronosym_support::etl::{At, CLR_RUNTIME, EtlWriter, Event, stack_item};
    /// # let mut writer = EtlWriter::new(Vec::new(), Default::default()).unwrap();
    /// # let item = stack_item(0, &[0x7ff6_1010, 0x7ff6_2020], false);
    /// # let event = Event { provider: CLR_RUNTIME, id: 80, extended: &[(6, &item)], ..Default::default() };
    /// # writer.event(At::us(5), &event).unwrap();
    /// # let log = writer.finish().unwrap();
    ///
    /// let mut reader = Reader::new(&log[..], Options::default())?;
    /// let mut stacks = 0;
    /// while let Some(record) = reader.next_record()? {
    ///     for item in record.extended_items() {
    ///         if let ExtendedItem::Stack(stack) = item {
    ///             assert_eq!(stack.addresses.iter().collect::<Vec<_>>(), [0x7ff6_1010, 0x7ff6_2020]);
    ///             stacks += 1;
    ///         }
    ///     }
    /// }
    /// assert_eq!(stacks, 1);
    /// # Ok::<(), chronosym_etl::Error>(())
    /// ```
    pub fn extended_items(&self) -> ExtendedItems<'a> {
        ExtendedItems::new(self.extended)
    }
}

/// Kernel event group → class GUID (`ntwmi.h` groups, evntrace class GUIDs).
pub(crate) const GROUP_CLASSES: [Guid; 31] = [
    Guid::from_u128(0x68fdd900_4a3e_11d1_84f4_0000f80464e3), // EventTrace
    Guid::from_u128(0x3d6fa8d4_fe05_11d0_9dda_00c04fd7ba7c), // DiskIo
    Guid::from_u128(0x3d6fa8d3_fe05_11d0_9dda_00c04fd7ba7c), // PageFault
    Guid::from_u128(0x3d6fa8d0_fe05_11d0_9dda_00c04fd7ba7c), // Process
    Guid::from_u128(0x90cbdc39_4a3e_11d1_84f4_0000f80464e3), // FileIo
    Guid::from_u128(0x3d6fa8d1_fe05_11d0_9dda_00c04fd7ba7c), // Thread
    Guid::from_u128(0x9a280ac0_c8e0_11d1_84e2_00c04fb998a2), // TcpIp
    Guid::from_u128(0x3282fc76_feed_498e_8aa7_e70f459d430e), // Job
    Guid::from_u128(0xbf3a50c5_a9c9_4988_a005_2df0b7c80f80), // UdpIp
    Guid::from_u128(0xae53722e_c863_11d2_8659_00c04fa321a1), // Registry
    Guid::from_u128(0x13976d09_a327_438c_950b_7f03192815c7), // DbgPrint
    Guid::from_u128(0x01853a65_418f_4f36_aefc_dc0f1d2fd235), // SystemConfig
    Guid::from_u128(0x99134383_5248_43fc_834b_529454e75df3), // Spare (last branch records)
    Guid::from_u128(0x42695762_ea50_497a_9068_5cbbb35e0b95), // Wnf
    Guid::from_u128(0x0268a8b6_74fd_4302_9dd0_6e8f1795c0cf), // Pool
    Guid::from_u128(0xce1dbfb4_137e_4da6_87b0_3f59aa102cbc), // PerfInfo
    Guid::from_u128(0x222962ab_6180_4b88_a825_346b75f2a24a), // Heap
    Guid::from_u128(0x89497f50_effe_4440_8cf2_ce6b1cdcaca7), // Object
    Guid::from_u128(0xe43445e0_0903_48c3_b878_ff0fccebdd04), // Power
    Guid::from_u128(0xa9152f00_3f58_4bee_92a1_70c7d079d5dd), // ModBound
    Guid::from_u128(0x2cb15d1d_5fc1_11d2_abe1_00a0c911f518), // Image
    Guid::from_u128(0xb2d14872_7c5b_463d_8419_ee9bf7d23e04), // Dpc
    Guid::from_u128(0x7687a439_f752_45b8_b741_321aec0f8df9), // Cc
    Guid::from_u128(0x3ac66736_cc59_4cff_8115_8df50e39816b), // CritSec
    Guid::from_u128(0xdef2fe46_7bd6_4b80_bd94_f57fe20d0ce3), // StackWalk
    Guid::from_u128(0x9aec974b_5b8e_4118_9b92_3186d8002ce5), // Ums
    Guid::from_u128(0x45d8cccd_539f_4b72_a8b7_5c683142609a), // Alpc
    Guid::from_u128(0xd837ca92_12b9_44a5_ad6a_3a65b3578ad8), // SplitIo
    Guid::from_u128(0xc861d0e2_a2c1_4d36_9f9c_970bab943a12), // ThreadPool
    Guid::from_u128(0x7f2a405c_69b5_4bf9_a1f5_30e8f1afab5e), // Hypervisor
    Guid::from_u128(0x2ce9a149_effe_42f0_a635_a1d39e26c8f2), // HypervisorX
];
