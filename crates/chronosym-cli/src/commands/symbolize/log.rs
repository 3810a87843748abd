//! Copies a log with names in place of its addresses, or lists them as JSON.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Read, Write};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use chronosym::file_name;
use chronosym_symbols::log::{self, Context as LogContext, Found, Images};
use chronosym_symbols::mmap::FileData;
use serde::Serialize;

use super::lines::next_lines;
use super::process::Process;
use super::shown::{self, Layout, Unknown};
use super::source::Source;
use crate::request::{AddressRequest, Target};

/// Bytes of a log that are resolved in one batch.
const BATCH: usize = 4 << 20;

/// A text whose addresses are resolved.
pub struct Log<'a> {
    /// Usually UTF-8.
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
    /// UTF-16 with a byte order mark, converted to UTF-8.
    Utf16(String, ByteOrder),
    Read(Vec<u8>),
}

/// The byte order of UTF-16.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl Content {
    /// Opens a log.
    ///
    /// # Errors
    ///
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

    /// Writes text in the encoding of this content.
    ///
    /// # Errors
    ///
    /// The writer's.
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

/// Decodes UTF-16 with a byte order mark, which is kept. `None` for other text.
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

/// Writes a whole log; the images that it lists apply to all of it.
///
/// # Errors
/// Those of the source and the writer.
pub fn rewrite(
    content: &Content,
    process: &Process<'_>,
    source: &mut dyn Source,
    layout: Layout,
    out: &mut dyn Write,
) -> Result<Unanswered> {
    let log = Log::new(content.bytes());
    let process = &process.or_of(log.images());
    // JSON objects may have any length.
    let is_json = log.bytes.trim_ascii_start().starts_with(b"{");
    let mut rest = log.bytes;
    let mut line = 1;
    let mut text = Vec::new();
    let mut unanswered = Unanswered::default();
    let mut context = LogContext::default();
    while !rest.is_empty() {
        let head = &rest[..rest.len().min(BATCH)];
        let end = head.iter().rposition(|&b| b == b'\n');
        let end = end.map_or(head.len(), |at| at + 1);
        let end = if is_json { rest.len() } else { end };
        let (batch, after) = rest.split_at(end);
        text.clear();
        let scan = log::scan_after(&context, batch);
        let mut writer = BatchWriter {
            line,
            layout,
            unanswered: &mut unanswered,
            out: &mut text,
        };
        writer.write(batch, scan.found, process, source)?;
        line = writer.line;
        context = scan.context;
        match layout {
            Layout::Objects => out.write_all(&text)?,
            _ => content.write(&text, out)?,
        }
        rest = after;
    }
    Ok(unanswered)
}

/// Writes a text while it is read. Images that it lists apply to the batch in which they are
/// listed.
///
/// # Errors
///
/// Those of the input, the source and the writer.
pub fn rewrite_stream<R: Read>(
    mut input: BufReader<R>,
    process: &Process<'_>,
    source: &mut dyn Source,
    layout: Layout,
    out: &mut dyn Write,
) -> Result<Unanswered> {
    let mut unanswered = Unanswered::default();
    let (mut lines, mut text) = (Vec::new(), Vec::new());
    let mut line = 1;
    let mut context = LogContext::default();
    while next_lines(&mut input, &mut lines)? {
        if matches!(*lines, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) && line == 1 {
            // Lines of UTF-16 end with two bytes.
            input.read_to_end(&mut lines)?;
            let content = Content::new(std::mem::take(&mut lines));
            return rewrite(&content, process, source, layout, out);
        }
        let scan = log::scan_after(&context, &lines);
        let process = process.or_of(&scan.images);
        text.clear();
        let mut writer = BatchWriter {
            line,
            layout,
            unanswered: &mut unanswered,
            out: &mut text,
        };
        writer.write(&lines, scan.found, &process, source)?;
        line = writer.line;
        context = scan.context;
        out.write_all(&text)?;
        out.flush()?;
    }
    Ok(unanswered)
}

/// The unresolved addresses of a log, by module and reason.
#[derive(Debug, Default)]
pub struct Unanswered {
    reasons: BTreeMap<(String, Unknown), Example>,
}

#[derive(Debug)]
struct Example {
    count: usize,
    text: String,
}

/// Maximum number of modules and reasons that are kept.
const MAX_REASONS: usize = 256;

/// Maximum length in bytes of a text that a note repeats.
const MAX_EXAMPLE: usize = 80;

impl Unanswered {
    fn add(&mut self, target: Option<Target<'_>>, text: &str, why: Unknown) {
        // The source adds notes about missing modules.
        if [shown::OTHER_FILE.0, shown::WHICH_FILE.0].contains(&&*why) {
            return;
        }
        // The first page of a process never holds code.
        let address = target.and_then(|target| target.address());
        if why == shown::NO_FILE_THERE.0 && address.is_some_and(|address| address < 4096) {
            return;
        }
        let file = target.and_then(|target| target.file).unwrap_or_default();
        let file = if why == shown::NO_FILE_THERE.0 {
            ""
        } else {
            file_name(file)
        };
        let key = (file.to_owned(), why);
        if self.reasons.len() >= MAX_REASONS && !self.reasons.contains_key(&key) {
            return;
        }
        let example = self.reasons.entry(key).or_insert_with(|| Example {
            count: 0,
            text: text.chars().take(MAX_EXAMPLE).collect(),
        });
        example.count += 1;
    }

    /// Returns a note per module and reason.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        self.reasons
            .iter()
            .map(|((file, why), Example { count, text })| {
                let file = if file.is_empty() {
                    String::new()
                } else {
                    format!("{file}: ")
                };
                let count = match count {
                    1 => "1 address".to_owned(),
                    count => format!("{count} addresses"),
                };
                // It is usually an address of a process.
                let hint = match &**why {
                    "outside the image" | "the log states no load address of the file" => {
                        "; add the load addresses with --base or --maps"
                    }
                    _ => "",
                };
                format!("{file}{count} not resolved, such as {text}: {why}{hint}")
            })
    }
}

/// Writes one batch of a log.
struct BatchWriter<'o> {
    /// The number of the batch's first line, later that of the line after it.
    line: usize,
    layout: Layout,
    unanswered: &'o mut Unanswered,
    out: &'o mut Vec<u8>,
}

impl BatchWriter<'_> {
    fn write<'s>(
        &mut self,
        bytes: &'s [u8],
        found: Vec<Found<'s>>,
        process: &'s Process<'_>,
        source: &mut dyn Source,
    ) -> Result<()> {
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
        let asked: Vec<_> = requests
            .iter()
            .map(|asked| (asked.target, asked.text))
            .collect();
        let answers = source.answer(requests, self.layout)?;
        // If a line has alternatives for the same code, the first with a name is used.
        let mut replaced: Vec<(usize, Range<usize>, Vec<u8>)> = Vec::new();
        let (mut first, mut why) = (0, None);
        for (index, (range, is_alternative)) in places.into_iter().enumerate() {
            if !is_alternative {
                self.note(asked.get(first), why.take());
                first = index;
            } else if why.is_none() {
                continue;
            }
            let mut answer = Vec::new();
            let unknown = answers(index, &mut answer);
            if is_alternative && self.layout == Layout::Objects {
                if unknown.is_some() {
                    continue;
                }
                replaced.pop();
            }
            // The first alternative is the best one.
            why = match unknown {
                Some(unknown) => why.or(Some(unknown)),
                None => None,
            };
            if !answer.is_empty() {
                replaced.push((index, range, answer));
            }
        }
        self.note(asked.get(first), why);
        replaced.sort_by_key(|(_, range, _)| range.start);
        self.copy(bytes, replaced, &asked)
    }

    fn note(&mut self, asked: Option<&(Option<Target<'_>>, &str)>, why: Option<Unknown>) {
        if let (Some(&(target, text)), Some(why)) = (asked, why) {
            self.unanswered.add(target, text, why);
        }
    }

    /// Appends the text with the answers inserted, or the answers alone.
    fn copy(
        &mut self,
        bytes: &[u8],
        replaced: Vec<(usize, Range<usize>, Vec<u8>)>,
        asked: &[(Option<Target<'_>>, &str)],
    ) -> Result<()> {
        let mut copied = 0;
        for (index, range, answer) in replaced {
            if range.start < copied {
                continue;
            }
            let before = &bytes[copied..range.start];
            self.line += count_lines(before);
            if self.layout == Layout::Objects {
                let (target, _) = asked[index];
                let place = LogPlace {
                    log_line: self.line,
                    text: &String::from_utf8_lossy(&bytes[range.clone()]),
                    log_module: target.and_then(|target| target.file),
                    log_id: target.and_then(|target| target.id),
                };
                let place = serde_json::to_string(&place)?;
                // Merge two objects into one.
                self.out
                    .extend(place.strip_suffix('}').unwrap_or(&place).bytes());
                self.out.push(b',');
                self.out
                    .extend(answer.strip_prefix(b"{").unwrap_or(&answer));
                copied = range.start;
            } else {
                self.out.extend(before);
                self.out.extend(answer);
                copied = range.end;
            }
        }
        if self.layout != Layout::Objects {
            self.out.extend(&bytes[copied..]);
        }
        self.line += count_lines(&bytes[copied..]);
        Ok(())
    }
}

fn count_lines(text: &[u8]) -> usize {
    text.iter().filter(|&&b| b == b'\n').count()
}

/// The position of an address in a log, and what the log states about its module.
#[derive(Serialize)]
struct LogPlace<'a> {
    log_line: usize,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_module: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    log_id: Option<&'a str>,
}
