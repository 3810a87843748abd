//! Detects formats by their first bytes.

#[cfg(test)]
#[path = "text_format.rs"]
mod text_format;

use std::fmt;
use std::sync::Arc;

use chronosym_etl::is_etl;
use chronosym_perf::script::is_script;

use chronosym_core::unwind::ImageFiles;
use chronosym_core::{DeltaReader, SavedTimeline, file_name};

use super::bytes::ByteStream;
use crate::error::ReadError;
use crate::nettrace::NettraceStream;
use crate::otlp::OtlpStream;
use crate::saved::SavedStream;
use crate::stream::EventStream;

use Content::{CtfMetadata, Gzip, ImageMap, Known, PerfInfo, PerfMap, Trace, Zip};

/// A supported trace format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// EventPipe of .NET Core 3.0 and later.
    Nettrace,
    /// EventPipe of .NET Core 2.
    Netperf,
    /// Event Tracing for Windows.
    Etl,
    /// A CPU profile of Linux.
    PerfData,
    /// Code that a runtime on Linux compiled.
    JitDump,
    /// LTTng traces.
    Ctf,
    /// The text of `perf script`.
    PerfScript,
    /// A saved timeline.
    Chrono,
    /// OTLP profiles. They have no signature: see [`Opener::read_as`](super::Opener::read_as).
    Otlp,
    /// Several recordings of one machine.
    Joined,
    /// The text format of a test.
    #[cfg(test)]
    Text,
}

/// Opens a recording of one format. The files identify and unwind images.
pub(super) type Open =
    fn(ByteStream, Option<Arc<dyn ImageFiles>>) -> Result<Box<dyn EventStream + Send>, ReadError>;

/// An entry of [`FORMATS`]. To add a format, add a variant of [`Format`] and an entry.
pub(super) struct FormatRow {
    pub format: Format,
    pub label: &'static str,
    /// Returns whether a file with these first bytes has the format.
    pub is: fn(&[u8]) -> bool,
    pub source: Source,
}

/// The source from which a recording of a format is read.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A stream of bytes, and the function that opens it. `is_of_runtime` states whether it can be
    /// joined with other recordings.
    Stream { open: Open, is_of_runtime: bool },
    /// Several files, which [`Parts`](super::join::Parts) opens and joins.
    Parts,
}

/// The trace formats. Formats without a signature are last, because others may resemble them.
#[rustfmt::skip]
const FORMATS: &[FormatRow] = &[
    FormatRow { format: Format::Nettrace, label: "nettrace", is: |head| head.starts_with(b"Nettrace"), source: RUNTIME },
    FormatRow { format: Format::Netperf, label: "netperf", is: |head| head.starts_with(FAST_SERIALIZATION), source: RUNTIME },
    FormatRow { format: Format::PerfData, label: "perf.data", is: is_perf_data, source: Source::Parts },
    FormatRow { format: Format::JitDump, label: "jitdump", is: |head| head.starts_with(b"JiTD") || head.starts_with(b"DTiJ"), source: Source::Parts },
    FormatRow { format: Format::Chrono, label: "chrono", is: |head| SavedTimeline::is_saved(head) || DeltaReader::is_delta(head), source: Source::Stream { open: |stream, _| Ok(Box::new(SavedStream::new(stream))), is_of_runtime: false } },
    FormatRow { format: Format::Ctf, label: "ctf", is: is_ctf_stream, source: Source::Parts },
    #[cfg(test)]
    text_format::ROW,
    FormatRow { format: Format::Otlp, label: "otlp", is: |_| false, source: Source::Stream { open: |stream, files| Ok(Box::new(OtlpStream::new(stream, files))), is_of_runtime: false } },
    FormatRow { format: Format::Etl, label: "etl", is: is_etl, source: Source::Parts },
    FormatRow { format: Format::PerfScript, label: "perf script", is: is_script, source: Source::Parts },
];

const RUNTIME: Source = Source::Stream {
    open: |stream, _| Ok(Box::new(NettraceStream::new(stream, Default::default())?)),
    is_of_runtime: true,
};

fn is_perf_data(head: &[u8]) -> bool {
    let magics: [&[u8]; 3] = [b"PERFILE2", b"PERFFILE", b"2ELIFREP"];
    magics.iter().any(|magic| head.starts_with(magic))
}

fn is_ctf_stream(head: &[u8]) -> bool {
    head.starts_with(b"\xc1\x1f\xfc\xc1") || head.starts_with(b"\xc1\xfc\x1f\xc1")
}

impl Format {
    /// Returns how recordings of the format are opened.
    pub(super) fn source(self) -> Source {
        let row = FORMATS.iter().find(|row| row.format == self);
        row.map_or(Source::Parts, |row| row.source)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = FORMATS.iter().find(|row| row.format == *self);
        f.write_str(row.map_or("joined", |row| row.label))
    }
}

/// The content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Trace(Format),
    /// The metadata of an LTTng trace; [`Format::Ctf`] is one of its streams.
    CtfMetadata,
    /// Names of the code that a process compiled.
    PerfMap(u32),
    /// The images of a process.
    PerfInfo(u32),
    /// Names of an image's code: `mscorlib.ni.{3fd6c14e-…}.map`.
    ImageMap,
    Zip,
    Gzip,
    Empty,
    /// Another format that can be named.
    Known(&'static str),
    Unknown,
}

impl Content {
    /// Returns whether it is a trace, or a part of one.
    pub fn is_of_trace(self) -> bool {
        matches!(
            self,
            Trace(_) | CtfMetadata | PerfMap(_) | PerfInfo(_) | ImageMap
        )
    }
}

/// Number of bytes that suffice to detect the content.
pub(super) const HEAD: usize = 512;

const FAST_SERIALIZATION: &[u8] = b"\x14\0\0\0!FastSerialization.1";

/// Magic bytes at the start of a file, alternative words, and the content of such a file. If any
/// words are listed, the first bytes must contain one of them. The first match is used, before
/// [`FORMATS`].
type Signature = (&'static [u8], &'static [&'static [u8]], Content);
#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    (FAST_SERIALIZATION, &[b"TraceLog"], Known("a PerfView .etlx file; open the .etl or .nettrace that it was made of")),
    (FAST_SERIALIZATION, &[b"GCHeapDump", b"MemoryGraph"], Known("a .gcdump heap snapshot")),
    (b"PK\x03\x04", &[], Zip),
    (b"PK\x05\x06", &[], Zip),
    (b"\x1f\x8b", &[], Gzip),
    (b"version https://git-lfs", &[], Known("a Git LFS pointer; fetch the file itself with git lfs pull")),
    (b"\x57\x1d\xd1\x75", &[], CtfMetadata),
    (b"\x75\xd1\x1d\x57", &[], CtfMetadata),
    (b"/* CTF 1.", &[], CtfMetadata),
    (b"\x7fELF", &[], Known("an ELF file")),
    (b"MZ", &[], Known("a Windows executable")),
    (b"Microsoft C/C++ MSF", &[], Known("a Windows PDB")),
    (b"BSJB", &[], Known("a portable PDB")),
    (b"MDMP", &[], Known("a Windows minidump")),
    (b"\x28\xb5\x2f\xfd", &[], Known("a zstd file; unpack it first")),
    (b"\xfd7zXZ", &[], Known("an xz file; unpack it first")),
    (b"BZh", &[], Known("a bzip2 file; unpack it first")),
    (b"7z\xbc\xaf\x27\x1c", &[], Known("a 7-Zip file; unpack it first")),
    (b"MSCF", &[], Known("a cabinet file; unpack it first")),
    (b"{", &[b"speedscope"], Known("a speedscope profile (JSON), no trace")),
    (b"{", &[b"traceEvents"], Known("a Chromium trace (JSON)")),
    (b"{", &[], Known("JSON")),
    (b"[", &[b"\"ph\""], Known("a Chromium trace (JSON)")),
    (b"<", &[b"StackWindow", b"StackSource"], Known("stacks that PerfView saved (XML)")),
    (b"\xef\xbb\xbf<", &[b"StackWindow", b"StackSource"], Known("stacks that PerfView saved (XML)")),
    (b"<", &[], Known("XML")),
    (b"\xef\xbb\xbf<", &[], Known("XML")),
];

/// Detects the content of a file by its first bytes, of which [`HEAD`] suffice. Maps have no
/// signature and are detected by name.
pub(super) fn sniff(head: &[u8], name: &str) -> Content {
    if head.is_empty() {
        return Content::Empty;
    }
    let has = |word: &&[u8]| head.windows(word.len()).any(|w| w == *word);
    let fits = |(magic, words, _): &&Signature| {
        head.starts_with(magic) && (words.is_empty() || words.iter().any(has))
    };
    let format = || FORMATS.iter().find(|row| (row.is)(head));
    let signature = SIGNATURES.iter().find(fits);
    let content = signature.map(|(_, _, content)| *content);
    match content.or_else(|| format().map(|row| Trace(row.format))) {
        Some(content) => content,
        None => {
            let map = pid_in_name(name, "perf-", ".map").map(PerfMap);
            let info = || pid_in_name(name, "perfinfo-", ".map").map(PerfInfo);
            let image =
                innermost(name).ends_with("}.map") && file_name(innermost(name)).contains(".{");
            let image = image.then_some(ImageMap);
            map.or_else(info).or(image).unwrap_or(Content::Unknown)
        }
    }
}

/// Returns the path within the innermost archive.
pub(super) fn innermost(name: &str) -> &str {
    let name = name.strip_suffix(" (gzip)").unwrap_or(name);
    let name = name.trim_end_matches(')');
    name.rsplit('(').next().unwrap_or(name)
}

/// Returns the process of a file named `perf-PID.map` or the like, in any archive.
pub(super) fn pid_in_name(name: &str, before: &str, after: &str) -> Option<u32> {
    let name = innermost(name).rsplit(['/', '\\']).next()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let pid = name.strip_prefix(before)?.strip_suffix(after)?;
    pid.parse().ok()
}

/// Describes the content of a file that is not a trace, for messages.
pub(super) fn describe(content: Content, head: &[u8]) -> String {
    match content {
        Content::Known(what) => what.to_owned(),
        // The key of the first field of OTLP profiles.
        _ if head.starts_with(b"\n") && !head.is_ascii() => {
            "perhaps a file of OTLP profiles, which cannot be detected: state that format (--input otlp)".to_owned()
        }
        _ => {
            let bytes: Vec<String> = head.iter().take(8).map(|b| format!("{b:02x}")).collect();
            format!("a file that begins with the bytes {}", bytes.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast(type_name: &str) -> Vec<u8> {
        let mut bytes = FAST_SERIALIZATION.to_vec();
        bytes.extend(b"\x05\x05\x01\x01\0\0\0\x01\0\0\0");
        bytes.extend((type_name.len() as u32).to_le_bytes());
        bytes.extend(type_name.bytes());
        bytes
    }

    #[test]
    fn one_container_three_formats() {
        assert_eq!(sniff(&fast("Trace"), ""), Content::Trace(Format::Netperf));
        assert_eq!(
            sniff(&fast("Microsoft.DotNet.Runtime.EventPipeFile"), ""),
            Content::Trace(Format::Netperf)
        );
        let is_known = |bytes: &[u8], word: &str| {
            assert!(describe(sniff(bytes, ""), bytes).contains(word), "{word}");
        };
        is_known(&fast("Microsoft.Diagnostics.Tracing.Etlx.TraceLog"), "etlx");
        is_known(&fast("GCHeapDump"), "gcdump");
        is_known(
            br#"{"$schema":"https://www.speedscope.app/x"}"#,
            "speedscope",
        );
        is_known(br#"{"a":1}"#, "JSON");
        is_known(b"<?xml version=\"1.0\"?>\n<StackWindow>", "PerfView");
        is_known(b"version https://git-lfs.github.com/spec/v1\n", "LFS");
        is_known(b"Microsoft C/C++ MSF 7.00\r\n\x1aDS", "Windows PDB");
        is_known(&[7; 20], "07 07 07 07");
        let map = |name| sniff(b"1000 10 name\n", name);
        assert_eq!(map("x.zip (tmp/perf-12.map) (gzip)"), PerfMap(12));
        assert_eq!(map("perfinfo-7.map"), PerfInfo(7));
        assert_eq!(map("x.zip (mscorlib.ni.{1-2}.map)"), ImageMap);
        assert_eq!(map("perf.map"), Content::Unknown);
    }

    #[test]
    fn every_row_can_be_reached() {
        for (i, (magic, words, content)) in SIGNATURES.iter().enumerate() {
            let mut head = magic.to_vec();
            head.extend(words.iter().take(1).flat_map(|word| word.iter()));
            assert_eq!(sniff(&head, ""), *content, "row {i}");
            assert!(head.len() <= HEAD);
        }
    }
}
