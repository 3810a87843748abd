//! Formats by their first bytes.

use std::fmt;

use chronosym_perf::script::is_script;

use chronosym_core::file_name;

use Content::{CtfMetadata, Gzip, ImageMap, Known, PerfInfo, PerfMap, Trace, Zip};

/// A format of traces that is read.
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
    /// What a runtime on Linux compiled.
    JitDump,
    /// Traces of LTTng.
    Ctf,
    /// The text of `perf script`.
    PerfScript,
    /// Several recordings of one machine.
    Joined,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Format::Nettrace => "nettrace",
            Format::Netperf => "netperf",
            Format::Etl => "etl",
            Format::PerfData => "perf.data",
            Format::JitDump => "jitdump",
            Format::Ctf => "ctf",
            Format::PerfScript => "perf script",
            Format::Joined => "joined",
        })
    }
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Trace(Format),
    /// What describes the streams of a trace of LTTng; [`Format::Ctf`] is one of them.
    CtfMetadata,
    /// Names of what a process compiled.
    PerfMap(u32),
    /// What images a process had.
    PerfInfo(u32),
    /// Names of an image's code: `mscorlib.ni.{3fd6c14e-…}.map`.
    ImageMap,
    Zip,
    Gzip,
    Empty,
    /// Something else that has a name.
    Known(&'static str),
    Unknown,
}

impl Content {
    /// Whether it is a trace, or a part of one.
    pub fn is_of_trace(self) -> bool {
        matches!(
            self,
            Trace(_) | CtfMetadata | PerfMap(_) | PerfInfo(_) | ImageMap
        )
    }
}

/// Bytes that tell contents apart.
pub(super) const HEAD: usize = 512;

const FAST_SERIALIZATION: &[u8] = b"\x14\0\0\0!FastSerialization.1";

/// What begins a file, words one of which must stand among its first bytes (none: no matter), and what it then is. The
/// first row that fits says it.
type Signature = (&'static [u8], &'static [&'static [u8]], Content);
#[rustfmt::skip]
const SIGNATURES: &[Signature] = &[
    (b"Nettrace", &[], Trace(Format::Nettrace)),
    (FAST_SERIALIZATION, &[b"TraceLog"], Known("a PerfView .etlx file; open the .etl or .nettrace that it was made of")),
    (FAST_SERIALIZATION, &[b"GCHeapDump", b"MemoryGraph"], Known("a .gcdump heap snapshot")),
    (FAST_SERIALIZATION, &[], Trace(Format::Netperf)),
    (b"PK\x03\x04", &[], Zip),
    (b"PK\x05\x06", &[], Zip),
    (b"\x1f\x8b", &[], Gzip),
    (b"version https://git-lfs", &[], Known("a Git LFS pointer; fetch the file itself with git lfs pull")),
    (b"PERFILE2", &[], Trace(Format::PerfData)),
    (b"PERFFILE", &[], Trace(Format::PerfData)),
    (b"2ELIFREP", &[], Trace(Format::PerfData)),
    (b"JiTD", &[], Trace(Format::JitDump)),
    (b"DTiJ", &[], Trace(Format::JitDump)),
    (b"\xc1\x1f\xfc\xc1", &[], Trace(Format::Ctf)),
    (b"\xc1\xfc\x1f\xc1", &[], Trace(Format::Ctf)),
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

/// Tells what a file holds by its first bytes, of which [`HEAD`] are enough. Maps have none of their own, but names.
pub(super) fn sniff(head: &[u8], name: &str) -> Content {
    if head.is_empty() {
        return Content::Empty;
    }
    let has = |word: &&[u8]| head.windows(word.len()).any(|w| w == *word);
    let fits = |(magic, words, _): &&Signature| {
        head.starts_with(magic) && (words.is_empty() || words.iter().any(has))
    };
    match SIGNATURES.iter().find(fits) {
        Some((_, _, content)) => *content,
        None if is_etl(head) => Content::Trace(Format::Etl),
        None if is_script(head) => Content::Trace(Format::PerfScript),
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

/// Of something in wrappers, the path in the innermost one.
pub(super) fn innermost(name: &str) -> &str {
    let name = name.strip_suffix(" (gzip)").unwrap_or(name);
    let name = name.trim_end_matches(')');
    name.rsplit('(').next().unwrap_or(name)
}

/// The process of a file called `perf-PID.map` or the like, whatever it is in.
pub(super) fn pid_in_name(name: &str, before: &str, after: &str) -> Option<u32> {
    let name = innermost(name).rsplit(['/', '\\']).next()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let pid = name.strip_prefix(before)?.strip_suffix(after)?;
    pid.parse().ok()
}

/// An .etl file has no signature: its first buffer is of the type of headers, and its first record is one.
fn is_etl(head: &[u8]) -> bool {
    let byte = |at: usize| head.get(at).copied();
    (byte(0x36), byte(0x37)) == (Some(4), Some(0))
        && byte(0x4b) == Some(0xc0)
        && matches!(byte(0x4a), Some(1 | 2))
        && (byte(0x4e), byte(0x4f)) == (Some(0), Some(0))
}

/// What a file that is no trace holds, for people.
pub(super) fn describe(content: Content, head: &[u8]) -> String {
    match content {
        Content::Known(what) => what.to_owned(),
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
