//! Copies a log with names in place of its addresses, or lists them as JSON.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use chronosym_symbols::log::{self, Found, Images};
use chronosym_symbols::mmap::FileData;
use serde::Serialize;

use super::lines::next_lines;
use super::process::Process;
use super::shown::Layout;
use super::source::Source;
use crate::request::AddressRequest;

/// Bytes of a log that are answered at once.
const BATCH: usize = 4 << 20;

/// A text whose addresses are resolved.
pub struct Log<'a> {
    /// UTF-8 for the most part.
    bytes: &'a [u8],
    images: Images,
}

impl<'a> Log<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        let images = log::images(bytes);
        Log { bytes, images }
    }

    pub fn images(&self) -> &Images {
        &self.images
    }
}

/// The content of a log.
pub enum Content {
    Plain(FileData),
    /// UTF-16 with a byte order mark, as UTF-8.
    Utf16(String, ByteOrder),
    Read(Vec<u8>),
}

/// The order of the bytes of UTF-16.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl Content {
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        // Files of /proc and pipes cannot be mapped.
        let is_plain = fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() > 0);
        if !is_plain {
            return Ok(Self::new(fs::read(path).with_context(name)?));
        }
        let data = FileData::map(path).with_context(name)?;
        Ok(match utf16(&data) {
            Some((text, order)) => Content::Utf16(text, order),
            None => Content::Plain(data),
        })
    }

    pub fn new(bytes: Vec<u8>) -> Self {
        match utf16(&bytes) {
            Some((text, order)) => Content::Utf16(text, order),
            None => Content::Read(bytes),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Content::Plain(data) => data,
            Content::Utf16(text, _) => text.as_bytes(),
            Content::Read(bytes) => bytes,
        }
    }

    /// Writes text of this content, in its encoding.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, text: &[u8], out: &mut dyn Write) -> Result<()> {
        let Content::Utf16(_, order) = self else {
            return Ok(out.write_all(text)?);
        };
        for unit in String::from_utf8_lossy(text).encode_utf16() {
            out.write_all(&match order {
                ByteOrder::Little => unit.to_le_bytes(),
                ByteOrder::Big => unit.to_be_bytes(),
            })?;
        }
        Ok(())
    }
}

/// The text of whole UTF-16 with a byte order mark, which it keeps.
fn utf16(bytes: &[u8]) -> Option<(String, ByteOrder)> {
    let (order, of_bytes): (_, fn([u8; 2]) -> u16) = match bytes {
        [0xff, 0xfe, ..] => (ByteOrder::Little, u16::from_le_bytes),
        [0xfe, 0xff, ..] => (ByteOrder::Big, u16::from_be_bytes),
        _ => return None,
    };
    let pairs = bytes.chunks_exact(2);
    let is_whole = pairs.remainder().is_empty();
    let units = pairs.map(|pair| of_bytes([pair[0], pair[1]]));
    let text = char::decode_utf16(units).collect::<Result<String, _>>();
    Some((text.ok().filter(|_| is_whole)?, order))
}

/// Writes a whole log.
///
/// # Errors
/// Those of the source and the writer.
pub fn rewrite(
    log: &Log<'_>,
    content: &Content,
    process: &Process<'_>,
    source: &mut dyn Source,
    layout: Layout,
    out: &mut dyn Write,
) -> Result<()> {
    // Objects of JSON may be of any length.
    let is_json = log.bytes.trim_ascii_start().starts_with(b"{");
    let mut rest = log.bytes;
    let mut line = 1;
    let mut text = Vec::new();
    while !rest.is_empty() {
        let head = &rest[..rest.len().min(BATCH)];
        let end = head.iter().rposition(|&b| b == b'\n');
        let end = end.map_or(head.len(), |at| at + 1);
        let end = if is_json { rest.len() } else { end };
        let (batch, after) = rest.split_at(end);
        text.clear();
        let scan = log::scan(batch);
        line = batch_of(batch, scan.found, line, process, source, layout, &mut text)?;
        match layout {
            Layout::Objects => out.write_all(&text)?,
            _ => content.write(&text, out)?,
        }
        rest = after;
    }
    Ok(())
}

/// Writes a text while it is read; the images that it lists count for what is read together with them.
///
/// # Errors
/// Those of the input, the source and the writer.
pub fn rewrite_stream<R: Read>(
    mut input: BufReader<R>,
    process: &Process<'_>,
    source: &mut dyn Source,
    layout: Layout,
    out: &mut dyn Write,
) -> Result<()> {
    let (mut lines, mut text) = (Vec::new(), Vec::new());
    let mut line = 1;
    while next_lines(&mut input, &mut lines)? {
        if matches!(*lines, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) && line == 1 {
            // Lines of UTF-16 end with two bytes.
            input.read_to_end(&mut lines)?;
            let content = Content::new(std::mem::take(&mut lines));
            let log = Log::new(content.bytes());
            let process = process.or_of(log.images());
            return rewrite(&log, &content, &process, source, layout, out);
        }
        let scan = log::scan(&lines);
        let process = process.or_of(&scan.images);
        text.clear();
        line = batch_of(
            &lines, scan.found, line, &process, source, layout, &mut text,
        )?;
        out.write_all(&text)?;
        out.flush()?;
    }
    Ok(())
}

/// Appends a part of a text that starts with the given line; returns the number of the line after it.
fn batch_of<'s>(
    bytes: &'s [u8],
    found: Vec<Found<'s>>,
    first_line: usize,
    process: &'s Process<'_>,
    source: &mut dyn Source,
    layout: Layout,
    out: &mut Vec<u8>,
) -> Result<usize> {
    let mut places = Vec::with_capacity(found.len());
    let mut requests = Vec::with_capacity(found.len());
    for found in found {
        let text = std::str::from_utf8(&bytes[found.range.clone()]).unwrap_or_default();
        let mut request = AddressRequest::at(text, Some(found.target));
        request.form = found.form;
        process.locate(&mut request);
        places.push((found.range, found.is_alternative));
        requests.push(request);
    }
    let targets: Vec<_> = requests.iter().map(|request| request.target).collect();
    let answers = source.answer(requests, layout)?;
    // Of code that a line has in several ways, the first with a name.
    let mut replaced: Vec<(usize, std::ops::Range<usize>, Vec<u8>)> = Vec::new();
    let mut is_answered = false;
    for (index, (range, is_alternative)) in places.into_iter().enumerate() {
        is_answered &= is_alternative;
        if is_answered {
            continue;
        }
        let mut answer = Vec::new();
        answers(index, &mut answer);
        is_answered = match layout {
            Layout::Objects => String::from_utf8_lossy(&answer).contains(r#""name":"#),
            _ => !answer.is_empty(),
        };
        if is_alternative && layout == Layout::Objects {
            if !is_answered {
                continue;
            }
            replaced.pop();
        }
        if !answer.is_empty() {
            replaced.push((index, range, answer));
        }
    }
    replaced.sort_by_key(|(_, range, _)| range.start);
    let mut copied = 0;
    let mut line = first_line;
    for (index, range, answer) in replaced {
        if range.start < copied {
            continue;
        }
        let before = &bytes[copied..range.start];
        line += count_lines(before);
        if layout == Layout::Objects {
            let target = targets[index];
            let place = LogPlace {
                log_line: line,
                text: &String::from_utf8_lossy(&bytes[range.clone()]),
                log_module: target.and_then(|target| target.file),
                log_id: target.and_then(|target| target.id),
            };
            let place = serde_json::to_string(&place)?;
            // Two objects become one.
            out.extend(place.strip_suffix('}').unwrap_or(&place).bytes());
            out.push(b',');
            out.extend(answer.strip_prefix(b"{").unwrap_or(&answer));
            copied = range.start;
        } else {
            out.extend(before);
            out.extend(answer);
            copied = range.end;
        }
    }
    if layout != Layout::Objects {
        out.extend(&bytes[copied..]);
    }
    Ok(line + count_lines(&bytes[copied..]))
}

fn count_lines(text: &[u8]) -> usize {
    text.iter().filter(|&&b| b == b'\n').count()
}

/// Where in a log an address is, and what the log states about its module.
#[derive(Serialize)]
struct LogPlace<'a> {
    log_line: usize,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_module: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_id: Option<&'a str>,
}
