//! `chronosym save`.

use std::io::{IsTerminal, stdout};

use anyhow::{Context, Result, bail};
use chronosym::{Options, SampleSelection, SaveOptions, Session};

use crate::args::{Save, Usage};
use crate::{input, output, progress};

pub fn run(args: &Save) -> Result<()> {
    let path = args.input.output.as_deref();
    if path.is_none() && stdout().is_terminal() {
        bail!(Usage("say -o FILE.chrono".to_owned()));
    }
    let mut options = Options::from(match args.with_samples {
        true => SampleSelection::All,
        false => SampleSelection::None,
    });
    if args.with_samples {
        options.markers = crate::limits::get().markers;
    }
    let mut session = Session::new(options);
    let recording = input::open(&args.input.traces, &args.input.symbols)?;
    let diagnostics = recording.read(&mut session)?;
    progress::notes(&diagnostics.list);
    let is_complete = !session.facts().lacks_samples;
    if args.with_samples && !is_complete {
        bail!(
            "the samples of the trace were not saved in {}",
            args.input.traces[0].display()
        );
    }
    let timeline = session.finish();
    let mut save = SaveOptions::new().with_diagnostics(&diagnostics);
    save.samples = args.with_samples;
    let saved = timeline
        .save(Vec::new(), &save)
        .context("cannot save the timeline")?;
    let mut out = output::open(path);
    out.write_all(&saved)?;
    out.flush()?;
    Ok(())
}
