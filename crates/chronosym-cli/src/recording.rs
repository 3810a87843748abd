//! From the files on the command line to the one recording that they hold.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use chronosym_etl::{EtlError, EtlReader, ReadAt};

use crate::input::{self, Source, Trace};
use crate::output::is_same_file;
use crate::progress::Counted;
use crate::salvage::Notes;

/// A recording, ready to be read.
pub enum Recording {
    /// nettrace or netperf, and what it is called.
    Nettrace(Source, String),
    /// All .etl files of one recording.
    Etl(Box<EtlReader<Counted<File>>>),
}

/// Opens what is named together. Only .etl files can be of one recording; anything else together would be shown as
/// one program's run though it was never one.
pub fn open(paths: &[PathBuf], notes: &Notes) -> Result<Recording> {
    refuse_twins(paths)?;
    let mut nettrace = Vec::new();
    let mut etl = Vec::new();
    for path in paths {
        for (name, trace) in input::open(path, notes)? {
            match trace {
                Trace::Nettrace(source) => nettrace.push((name, source)),
                Trace::Etl(file) => etl.push((name, file)),
            }
        }
    }
    if nettrace.len() + etl.len() > 1
        && let Some((first, _)) = nettrace.first()
    {
        let other = nettrace.get(1).map(|(name, _)| name);
        let other = other.or(etl.first().map(|(name, _)| name));
        bail!(
            "{first} and {} are recordings of their own: read them one by one; only .etl files of one recording can be \
             read together",
            other.map_or("the other", |name| name)
        );
    }
    match nettrace.pop() {
        Some((name, source)) => Ok(Recording::Nettrace(source, name)),
        None => Ok(Recording::Etl(Box::new(merge(etl)?))),
    }
}

/// A file that is named twice would be counted twice.
fn refuse_twins(paths: &[PathBuf]) -> Result<()> {
    for (i, a) in paths.iter().enumerate() {
        if let Some(b) = paths[..i].iter().find(|b| a == *b || is_same_file(a, b)) {
            bail!("{} and {} are the same file", b.display(), a.display());
        }
    }
    Ok(())
}

fn merge(files: Vec<(String, Counted<File>)>) -> Result<EtlReader<Counted<File>>> {
    for (i, (a, a_file)) in files.iter().enumerate() {
        if let Some((b, _)) = files[..i].iter().find(|(_, file)| is_copy(a_file, file)) {
            bail!("{b} and {a} are copies of the same file");
        }
    }
    let (names, files): (Vec<String>, Vec<_>) = files.into_iter().unzip();
    let mut readers = Vec::with_capacity(files.len());
    for (name, file) in names.iter().zip(files) {
        readers.push(EtlReader::open(file).with_context(|| name.clone())?);
    }
    EtlReader::merge(readers).map_err(|error| match error {
        EtlError::NotOneRecording { index, what } => anyhow::anyhow!(
            "{} and {} are not of one recording: their {what} differs; read them one by one",
            names[0],
            names[index]
        ),
        error => error.into(),
    })
}

/// Whether two files hold the same; files that do not differ early on.
fn is_copy(a: &impl ReadAt, b: &impl ReadAt) -> bool {
    const PIECE: usize = 1 << 16;
    let piece = |file: &dyn ReadAt, at: u64| {
        let mut bytes = vec![0; PIECE];
        let n = file.read_at(at, &mut bytes).ok()?;
        bytes.truncate(n);
        Some(bytes)
    };
    let (Ok(size), Ok(other)) = (a.size(), b.size()) else {
        return false;
    };
    size == other
        && (0..size).step_by(PIECE).all(|at| {
            let a = piece(a, at);
            a.is_some() && a == piece(b, at)
        })
}
