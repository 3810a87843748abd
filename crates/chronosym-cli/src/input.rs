//! Opens the traces named on the command line as one recording.

use std::fs::File;
use std::io::{self, Read as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use chronosym::open::Format;
use chronosym::{Input, LimitReached, OpenError, Opener, Recording};
use tempfile::{NamedTempFile, TempPath};

use crate::args::{InputFormat, Symbols};
use crate::{interrupt, limits, progress, symbols};

/// Opens traces as one recording; `-` is standard input.
pub fn open(paths: &[PathBuf], args: &Symbols) -> Result<Recording, OpenError> {
    let mut opener = Opener::new().limits(limits::get()).watch(|progress| {
        progress::show(progress.read, progress.total);
        ControlFlow::Continue(())
    });
    if args.trust_trace_paths {
        opener = opener.trust_trace_paths();
    }
    if let Ok(files) = symbols::for_unwinding(args) {
        opener = opener.unwind_with(Arc::new(files));
    }
    if let Some(InputFormat::Otlp) = args.input_format {
        opener = opener.read_as(Format::Otlp);
    }
    for &(own, pid) in &args.map_pid {
        opener = opener.map_pid(own, pid);
    }
    opener.open(paths.iter().map(|path| input(path)))
}

fn input(path: &Path) -> Input {
    if path.as_os_str() == "-" {
        Input::stdin()
    } else {
        Input::file(path)
    }
}

/// Traces that can be opened repeatedly: data from a pipe is stored in a temporary file.
pub struct Rereadable {
    paths: Vec<PathBuf>,
    _kept: Vec<TempPath>,
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
            let source: Box<dyn io::Read> = if is_stdin {
                Box::new(io::stdin())
            } else {
                Box::new(File::open(path).with_context(|| format!("cannot open {name}"))?)
            };
            let mut kept = interrupt::make(NamedTempFile::new, |file| Some(file.path()))
                .context("cannot make a temporary file")?;
            let max = limits::get().unpacked_bytes;
            let copied = io::copy(&mut source.take(max.saturating_add(1)), &mut kept)
                .with_context(|| format!("cannot read {name}"))?;
            if copied > max {
                bail!("{name}: {}", LimitReached::UnpackedBytes(max));
            }
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
