//! The start of a stream: magic and trace header.

use std::io::Read;

use chronosym_types::{Cursor, Window};

use crate::error::Error;
use crate::fault::{Fault, Parsed};
use crate::framing::{Framing, NETTRACE};
use crate::header::{Format, TraceHeader};
use crate::netperf::MetadataForm;
use crate::objects::{self, Object};

pub(crate) struct Opened {
    pub(crate) header: TraceHeader,
    pub(crate) framing: Framing,
    /// Position after the header.
    pub(crate) at: usize,
    /// The stream ends inside the header.
    pub(crate) cut: bool,
}

const FAST_SERIALIZATION: &[u8] = b"\x14\0\0\0!FastSerialization.1";

pub(crate) fn open<R: Read>(window: &mut Window<R>) -> Result<Opened, Error> {
    window.fill_to(FAST_SERIALIZATION.len());
    if let Some(source) = window.take_failure() {
        return Err(Error::Io {
            offset: window.end_offset(),
            source,
        });
    }
    let bytes = window.bytes();
    let (format, after_magic) = if bytes.starts_with(NETTRACE) {
        (Format::Nettrace, NETTRACE.len())
    } else if bytes.starts_with(FAST_SERIALIZATION) {
        (Format::Netperf, FAST_SERIALIZATION.len())
    } else {
        return Err(Error::NotATrace {
            found: describe(bytes),
        });
    };
    let mut opened = Opened {
        header: TraceHeader::unknown(format, (0, 0)),
        framing: Framing::Objects,
        at: after_magic,
        cut: false,
    };
    loop {
        let mut cursor = Cursor::starting_at(window.bytes(), after_magic);
        let read = read_header(&mut cursor, format, &mut opened);
        let position = cursor.position();
        match read {
            Ok(checked) => {
                checked?;
                opened.at = position;
                return Ok(opened);
            }
            Err(Fault::Short) if window.read_more() => {}
            Err(Fault::Short) => {
                if let Some(source) = window.take_failure() {
                    return Err(Error::Io {
                        offset: window.end_offset(),
                        source,
                    });
                }
                opened.header = TraceHeader::unknown(format, opened.header.version);
                opened.at = 0;
                opened.cut = true;
                return Ok(opened);
            }
            Err(Fault::Bad) => {
                return Err(Error::DamagedHeader {
                    offset: window.offset(position),
                });
            }
        }
    }
}

type Checked = Result<(), Error>;

fn read_header(cursor: &mut Cursor<'_>, format: Format, opened: &mut Opened) -> Parsed<Checked> {
    if format == Format::Netperf {
        return read_object_header(cursor, format, opened);
    }
    let mut ahead = *cursor;
    if ahead.u32()? == 0 {
        *cursor = ahead;
        return read_block_header(cursor, opened);
    }
    if cursor.take(FAST_SERIALIZATION.len())? != FAST_SERIALIZATION {
        return Err(Fault::Bad);
    }
    read_object_header(cursor, format, opened)
}

fn read_object_header(
    cursor: &mut Cursor<'_>,
    format: Format,
    opened: &mut Opened,
) -> Parsed<Checked> {
    let Object::Begin { name, version } = objects::begin(cursor)? else {
        return Err(Fault::Bad);
    };
    if name != b"Trace" && name != b"Microsoft.DotNet.Runtime.EventPipeFile" {
        return Err(Fault::Bad);
    }
    opened.framing = match (format, version) {
        (Format::Netperf, 1) => Framing::Events(MetadataForm::OffsetAndGuid),
        (Format::Netperf, 2) => Framing::Events(MetadataForm::Offset),
        (Format::Netperf, 3) => Framing::NetperfObjects,
        (Format::Nettrace, 4 | 5) => Framing::Objects,
        (Format::Netperf, _) => return Ok(Err(unsupported("netperf", version, "1 to 3"))),
        (Format::Nettrace, _) => return Ok(Err(unsupported("nettrace", version, "4 to 6"))),
    };
    let mut header = TraceHeader::unknown(format, (version, 0));
    let offset = cursor.position() as u64;
    let bare = matches!(opened.framing, Framing::Events(_));
    if bare {
        // A forward reference to the end of the events, which is recognized without it.
        cursor.u32()?;
    }
    header.read_clock(cursor)?;
    let pointer_size = if bare {
        8
    } else {
        header.read_process(cursor)?
    };
    if !bare {
        objects::end(cursor)?;
    }
    let checked = header.check(pointer_size, offset);
    opened.header = header;
    Ok(checked)
}

fn read_block_header(cursor: &mut Cursor<'_>, opened: &mut Opened) -> Parsed<Checked> {
    const NEWEST_MAJOR: u32 = 6;
    const TRACE_BLOCK: u32 = 1;
    let (major, minor) = (cursor.u32()?, cursor.u32()?);
    opened.header.version = (major, minor);
    opened.framing = Framing::Blocks;
    if major != NEWEST_MAJOR {
        return Ok(Err(unsupported("nettrace", major, "4 to 6")));
    }
    let word = cursor.u32()?;
    if word >> 24 != TRACE_BLOCK {
        return Err(Fault::Bad);
    }
    let offset = cursor.position() as u64;
    let content = cursor.take((word & 0xff_ffff) as usize)?;
    let mut content = Cursor::new(content);
    let mut header = TraceHeader::unknown(Format::Nettrace, (major, minor));
    let mut read = || {
        header.read_clock(&mut content)?;
        header.read_pairs(&mut content)
    };
    // The whole block is in memory: bytes it lacks do not follow.
    let pointer_size = read().map_err(|_| Fault::Bad)?;
    let checked = header.check(pointer_size, offset);
    opened.header = header;
    Ok(checked)
}

fn unsupported(format: &'static str, version: u32, known: &'static str) -> Error {
    Error::UnsupportedVersion {
        format,
        version,
        known,
    }
}

fn describe(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "an empty file".to_owned();
    }
    let start = bytes.get(..8).unwrap_or(bytes);
    if start
        .iter()
        .all(|byte| byte.is_ascii_graphic() || *byte == b' ')
    {
        return format!("{:?}", String::from_utf8_lossy(start));
    }
    let hex: Vec<String> = start.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("bytes {}", hex.join(" "))
}
