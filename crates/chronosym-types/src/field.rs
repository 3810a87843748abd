use std::sync::Arc;

/// A field of a self-describing event.
///
/// Closed: callers build it as a literal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Field {
    /// Name.
    pub name: Arc<str>,
    /// Encoding of its bytes.
    pub ty: FieldType,
}

impl Field {
    /// Returns a field.
    pub fn new(name: impl Into<Arc<str>>, ty: FieldType) -> Self {
        Self {
            name: name.into(),
            ty,
        }
    }
}

/// The type of a field of a self-describing event. Covers EventPipe type codes and TraceLogging
/// in-types.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum FieldType {
    /// A four-byte Boolean (EventPipe 3, TraceLogging 13).
    Bool32,
    /// A one-byte Boolean (EventPipe 26).
    Bool8,
    /// One UTF-16 code unit (EventPipe 4).
    Char16,
    /// One UTF-8 code unit (EventPipe 23).
    Char8,
    /// Eight bits, signed.
    I8,
    /// Eight bits.
    U8,
    /// Sixteen bits, signed.
    I16,
    /// Sixteen bits.
    U16,
    /// Thirty-two bits, signed.
    I32,
    /// Thirty-two bits.
    U32,
    /// Sixty-four bits, signed.
    I64,
    /// Sixty-four bits.
    U64,
    /// Eight bits, shown in hex.
    Hex8,
    /// Sixteen bits, shown in hex.
    Hex16,
    /// Thirty-two bits, shown in hex (TraceLogging 20).
    Hex32,
    /// Sixty-four bits, shown in hex (TraceLogging 21).
    Hex64,
    /// An address of the payload's pointer width (TraceLogging 16).
    Pointer,
    /// Single-precision floating point.
    F32,
    /// Double-precision floating point.
    F64,
    /// A .NET decimal of sixteen bytes (EventPipe 15).
    Decimal,
    /// A FILETIME: 100 ns since 1601, UTC (EventPipe 16, TraceLogging 17).
    FileTime,
    /// A SYSTEMTIME of sixteen bytes (TraceLogging 18).
    SystemTime,
    /// A GUID.
    Guid,
    /// UTF-16 text up to a NUL (EventPipe 18, TraceLogging 1).
    Utf16,
    /// Eight-bit text up to a NUL (TraceLogging 2).
    Ansi,
    /// UTF-16 text up to a NUL in a field of this many code units (kernel events).
    FixedUtf16(u16),
    /// UTF-16 text with a u16 length prefix in bytes (TraceLogging 22).
    CountedUtf16,
    /// Eight-bit text with a u16 length prefix in bytes (TraceLogging 23, and type 23 of the
    /// Universal providers).
    CountedAnsi,
    /// Bytes with a u16 count prefix (TraceLogging 14 and 25).
    Binary,
    /// A security identifier (TraceLogging 19).
    Sid,
    /// An IPv4 address, four bytes (kernel events).
    Ipv4,
    /// An IPv6 address, sixteen bytes (kernel events).
    Ipv6,
    /// A big-endian port number of two bytes (kernel events).
    Port,
    /// A signed variable-length integer, zigzag (EventPipe 20).
    VarInt,
    /// An unsigned variable-length integer (EventPipe 21).
    VarUInt,
    /// Elements with a u16 count prefix (EventPipe 19).
    Array(Box<FieldType>),
    /// A fixed number of elements (EventPipe 22).
    FixedArray(Box<FieldType>, u16),
    /// Elements elsewhere in the payload: a u32 with their offset from the end of this field in the
    /// low half and their size in bytes in the high half (EventPipe 24).
    RelLoc(Box<FieldType>),
    /// As [`RelLoc`](Self::RelLoc), with an offset from the start of the payload (EventPipe 25).
    DataLoc(Box<FieldType>),
    /// Nested fields (EventPipe 1, TraceLogging 24).
    Object(Vec<Field>),
    /// A number at the next multiple of its size from the start of its struct, where a C compiler
    /// places it (structs that the CLR copies into a payload).
    Aligned(Box<FieldType>),
    /// This many bytes.
    Bytes(u16),
    /// As many elements as an earlier field states, given by its index among the outermost fields
    /// (manifests).
    CountedBy(Box<FieldType>, u16),
    /// An unknown type: the field and all that follow are shown in hex.
    Unknown,
}

impl FieldType {
    /// Returns the type with this EventPipe type code; `None` for codes with parameters (1, 19, 22,
    /// 24, 25) and unknown ones.
    pub fn from_eventpipe_code(code: u32) -> Option<Self> {
        Some(match code {
            3 => Self::Bool32,
            4 => Self::Char16,
            5 => Self::I8,
            6 => Self::U8,
            7 => Self::I16,
            8 => Self::U16,
            9 => Self::I32,
            10 => Self::U32,
            11 => Self::I64,
            12 => Self::U64,
            13 => Self::F32,
            14 => Self::F64,
            15 => Self::Decimal,
            16 => Self::FileTime,
            17 => Self::Guid,
            18 => Self::Utf16,
            20 => Self::VarInt,
            21 => Self::VarUInt,
            23 => Self::Char8,
            26 => Self::Bool8,
            _ => return None,
        })
    }

    /// Returns whether neither the type nor a nested one is unknown.
    pub fn is_known(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Object(fields) => fields.iter().all(|field| field.ty.is_known()),
            Self::Array(element)
            | Self::FixedArray(element, _)
            | Self::RelLoc(element)
            | Self::DataLoc(element)
            | Self::CountedBy(element, _) => element.is_known(),
            _ => true,
        }
    }
}
