//! `chronosym save` and `chronosym merge`.

use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use chronosym::{Diagnostics, Options, SampleSelection, SaveOptions, SavedTimeline, Session};

use crate::args::{Merge, Save, Symbols, Usage};
use crate::{input, output, progress};

pub fn run(args: &Save) -> Result<()> {
    run_with(args, |_| ())
}

/// Saves a timeline after `complete` has added to it what its traces do not state.
pub fn run_with(args: &Save, complete: impl FnOnce(&mut Session)) -> Result<()> {
    let path = args.input.output.as_deref();
    refuse_terminal(path)?;
    let mut read = read(&args.input.traces, &args.input.symbols, args.with_samples)?;
    complete(&mut read.0);
    write(&saved(read, args.with_samples)?, path)
}

/// Joins timelines of one machine.
pub fn merge(args: &Merge) -> Result<()> {
    let path = args.input.output.as_deref();
    refuse_terminal(path)?;
    let symbols = Symbols::default();
    let mut all = Vec::new();
    for trace in &args.input.traces {
        let read = read(std::slice::from_ref(trace), &symbols, args.with_samples)?;
        all.push((trace.display().to_string(), saved(read, args.with_samples)?));
    }
    let mut files = Vec::new();
    for (name, bytes) in &all {
        files.push((name.as_str(), SavedTimeline::open(bytes)?));
    }
    let mut session = Session::new(options(args.with_samples));
    let diagnostics = chronosym::merge(&files, &mut session).context("cannot merge")?;
    write(&saved((session, diagnostics), args.with_samples)?, path)
}

fn refuse_terminal(path: Option<&Path>) -> Result<()> {
    if path.is_none() && stdout().is_terminal() {
        bail!(Usage("say -o FILE.chrono".to_owned()));
    }
    Ok(())
}

fn options(with_samples: bool) -> Options {
    let mut options = Options::from(match with_samples {
        true => SampleSelection::All,
        false => SampleSelection::None,
    });
    if with_samples {
        options.markers = crate::limits::get().markers;
    }
    options
}

/// Reads a recording, which must have samples if they are to be saved.
fn read(
    traces: &[PathBuf],
    symbols: &Symbols,
    with_samples: bool,
) -> Result<(Session, Diagnostics)> {
    let mut session = Session::new(options(with_samples));
    let recording = input::open(traces, symbols)?;
    let diagnostics = recording.read(&mut session)?;
    progress::notes(&diagnostics.list);
    if with_samples && session.facts().lacks_samples {
        bail!(
            "the samples of the trace were not saved in {}",
            traces[0].display()
        );
    }
    Ok((session, diagnostics))
}

fn saved((session, diagnostics): (Session, Diagnostics), with_samples: bool) -> Result<Vec<u8>> {
    let mut save = SaveOptions::new().with_diagnostics(&diagnostics);
    save.samples = with_samples;
    let saved = session.finish().save(Vec::new(), &save);
    saved.context("cannot save the timeline")
}

fn write(saved: &[u8], path: Option<&Path>) -> Result<()> {
    let mut out = output::open(path);
    out.write_all(saved)?;
    out.flush()?;
    Ok(())
}
