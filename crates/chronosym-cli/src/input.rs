//! Opens traces: by content, never by name; in zip and gzip wrappers; from standard input.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use zip::read::ZipFile;

use crate::progress::Counted;
use crate::salvage::{Notes, Salvaged};

/// What a file holds, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Nettrace,
    Etl,
    Zip,
    Gzip,
    Empty,
    Other,
}

/// Bytes that tell the kinds apart.
const SNIFFED: usize = 0x58;

/// Something that is read from front to back, on whatever thread.
pub type Source = Box<dyn Read + Send>;

/// A trace that was opened.
pub enum Trace {
    /// nettrace or netperf.
    Nettrace(Source),
    /// One .etl.
    Etl(Counted<File>),
}

/// Tells a format by its first bytes.
pub fn sniff(head: &[u8]) -> Kind {
    let u16_at = |at: usize| {
        head.get(at..at + 2)
            .map(|b| u16::from_le_bytes([b[0], b[1]]))
    };
    if head.is_empty() {
        Kind::Empty
    } else if head.starts_with(b"Nettrace") || head.starts_with(b"\x14\0\0\0!FastSerialization.1") {
        Kind::Nettrace
    } else if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        Kind::Zip
    } else if head.starts_with(&[0x1f, 0x8b]) {
        Kind::Gzip
    } else if u16_at(0x36) == Some(4)
        && head.get(0x4b) == Some(&0xc0)
        && matches!(head.get(0x4a), Some(1 | 2))
        && u16_at(0x4e) == Some(0)
    {
        Kind::Etl
    } else {
        Kind::Other
    }
}

const EXPECTED: &str =
    "expected a .nettrace, .netperf or .etl trace, or a zip or gzip file with one";

/// Opens the traces of a file, each with what it is called; `-` is standard input.
pub fn open(path: &Path, notes: &Notes) -> Result<Vec<(String, Trace)>> {
    if path.as_os_str() == "-" {
        let source = Counted::new(io::stdin(), None);
        return open_stream(Box::new(source), "standard input", notes);
    }
    let name = path.display().to_string();
    let mut file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        bail!("{name} is a directory: {EXPECTED}");
    }
    let mut head = Vec::new();
    (&mut file)
        .take(SNIFFED as u64)
        .read_to_end(&mut head)
        .with_context(|| format!("cannot read {name}"))?;
    match sniff(&head) {
        Kind::Zip => {
            file.rewind()
                .with_context(|| format!("cannot read {name}"))?;
            open_zip(file, &name, notes)
        }
        // A pipe cannot go back: what was read of it is put before the rest.
        _ if file.seek(SeekFrom::Start(0)).is_err() => {
            open_head(head, Box::new(Counted::new(file, None)), &name, notes)
        }
        Kind::Etl => Ok(vec![(name, Trace::Etl(counted(file)))]),
        _ => open_head(Vec::new(), Box::new(counted(file)), &name, notes),
    }
}

fn counted(file: File) -> Counted<File> {
    let total = file.metadata().ok().map(|m| m.len());
    Counted::new(file, total)
}

/// Traces that can be opened more than once: what comes through a pipe is kept in a temporary file.
pub struct Rereadable {
    paths: Vec<PathBuf>,
    _kept: Vec<tempfile::TempPath>,
}

impl Rereadable {
    pub fn new(paths: &[PathBuf]) -> Result<Self> {
        let mut all = Rereadable {
            paths: Vec::new(),
            _kept: Vec::new(),
        };
        for path in paths {
            let is_stdin = path.as_os_str() == "-";
            if !is_stdin && path.metadata().is_ok_and(|m| m.is_file() || m.is_dir()) {
                all.paths.push(path.clone());
                continue;
            }
            let name = path.display();
            let mut source: Source = if is_stdin {
                Box::new(io::stdin())
            } else {
                Box::new(File::open(path).with_context(|| format!("cannot open {name}"))?)
            };
            let mut kept =
                tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
            io::copy(&mut source, &mut kept).with_context(|| format!("cannot read {name}"))?;
            let kept = kept.into_temp_path();
            all.paths.push(kept.to_path_buf());
            all._kept.push(kept);
        }
        Ok(all)
    }

    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }
}

fn open_stream(mut source: Source, name: &str, notes: &Notes) -> Result<Vec<(String, Trace)>> {
    let mut head = Vec::new();
    (&mut source)
        .take(SNIFFED as u64)
        .read_to_end(&mut head)
        .with_context(|| format!("cannot read {name}"))?;
    open_head(head, source, name, notes)
}

/// A stream whose first bytes may have been read already.
fn open_head(
    mut head: Vec<u8>,
    mut rest: Source,
    name: &str,
    notes: &Notes,
) -> Result<Vec<(String, Trace)>> {
    if head.is_empty() {
        (&mut rest)
            .take(SNIFFED as u64)
            .read_to_end(&mut head)
            .with_context(|| format!("cannot read {name}"))?;
    }
    let kind = sniff(&head);
    let whole = Cursor::new(head.clone()).chain(rest);
    match kind {
        Kind::Nettrace => Ok(vec![(name.to_owned(), Trace::Nettrace(Box::new(whole)))]),
        Kind::Gzip => {
            let name = format!("{name} (gzip)");
            let inside = Salvaged::new(flate2::read::MultiGzDecoder::new(whole), &name, notes);
            open_stream(Box::new(inside), &name, notes)
        }
        Kind::Etl => {
            let file = spool(Salvaged::new(whole, name, notes))?;
            Ok(vec![(name.to_owned(), Trace::Etl(counted(file)))])
        }
        Kind::Zip => open_zip(spool(Salvaged::new(whole, name, notes))?, name, notes),
        Kind::Empty => bail!("{name} is empty: {EXPECTED}"),
        Kind::Other => bail!(
            "{name} is not a trace: {EXPECTED}, found {}",
            describe(&head)
        ),
    }
}

fn describe(head: &[u8]) -> String {
    let known: [(&[u8], &str); 8] = [
        (b"\x7fELF", "an ELF file"),
        (b"MZ", "a Windows executable"),
        (b"PERFILE2", "a perf.data file"),
        (b"Microsoft C/C++ MSF", "a Windows PDB"),
        (b"BSJB", "a portable PDB"),
        (b"JiTD", "a jitdump file"),
        (b"{", "JSON"),
        (b"<", "XML"),
    ];
    match known.iter().find(|(magic, _)| head.starts_with(magic)) {
        Some((_, what)) => (*what).to_owned(),
        None => {
            let bytes: Vec<String> = head.iter().take(8).map(|b| format!("{b:02x}")).collect();
            format!("a file that begins with the bytes {}", bytes.join(" "))
        }
    }
}

/// Keeps a stream where it can be read at any position.
fn spool(mut source: impl Read) -> Result<File> {
    let mut file = tempfile::tempfile().context("cannot make a temporary file")?;
    io::copy(&mut source, &mut file).context("cannot write a temporary file")?;
    file.rewind().context("cannot read a temporary file")?;
    Ok(file)
}

fn open_zip(mut file: File, name: &str, notes: &Notes) -> Result<Vec<(String, Trace)>> {
    let mut traces = Vec::new();
    match zip::ZipArchive::new(&mut file) {
        Ok(mut archive) => {
            for index in 0..archive.len() {
                match archive.by_index(index) {
                    Ok(entry) => traces.extend(open_entry(entry, name, notes)?),
                    Err(error) => {
                        notes.push(format!("{name}: entry {index} is damaged: {error}"));
                    }
                }
            }
        }
        // The list of entries stands at the end of a zip file; what is cut short has only the entries themselves.
        Err(error) => {
            notes.push(format!(
                "{name} is damaged or cut short ({error}); reading what is there"
            ));
            file.rewind()
                .with_context(|| format!("cannot read {name}"))?;
            while let Ok(Some(entry)) = zip::read::read_zipfile_from_stream(&mut file) {
                traces.extend(open_entry(entry, name, notes)?);
            }
        }
    }
    if traces.is_empty() {
        bail!("{name} is a zip file without a readable trace in it: {EXPECTED}");
    }
    Ok(traces)
}

/// Unpacks an entry of a zip file if it is a trace.
fn open_entry<R: Read>(
    entry: ZipFile<'_, R>,
    zip: &str,
    notes: &Notes,
) -> Result<Option<(String, Trace)>> {
    let inside = entry.name().unwrap_or("unnamed entry".into());
    let name = format!("{zip} ({inside})");
    let mut entry = Salvaged::new(entry, &name, notes);
    let mut head = Vec::new();
    let sniffed = (&mut entry).take(SNIFFED as u64).read_to_end(&mut head);
    if let Err(error) = sniffed {
        notes.push(format!("{name} is damaged: {error}"));
        return Ok(None);
    }
    let kind = sniff(&head);
    if !matches!(kind, Kind::Nettrace | Kind::Etl) {
        return Ok(None);
    }
    let unpacked = spool(head.as_slice().chain(entry))?;
    let trace = match kind {
        Kind::Etl => Trace::Etl(counted(unpacked)),
        _ => Trace::Nettrace(Box::new(counted(unpacked))),
    };
    Ok(Some((name, trace)))
}
