//! `chronosym inlining`.

use std::path::PathBuf;

use anyhow::{Result, bail};
use chronosym::runtime::JitDecisions;
use chronosym_export::{Inlining, Json, Pattern};

use crate::args::{self, Selection, Usage};
use crate::profiled::{Sampled, shown};
use crate::{load, output};

pub fn run(args: &args::Inlining) -> Result<()> {
    let input = &args.input;
    let (traces, method) = method(&input.traces);
    let method = method.map(Pattern::new).transpose();
    let method = method.map_err(|error| Usage(error.to_string()))?;
    // Names and bodies as they are: nothing is folded or charged to callers.
    let selection = Selection {
        filters: args.filters.clone(),
        samples: args.samples.clone(),
        ..Selection::default()
    };
    let kept = JitDecisions::options();
    let sampled = Sampled::read_with(traces, &input.symbols, &selection, kept)?;
    load::refuse_without_events(&sampled.loaded.timeline)?;
    let decisions = JitDecisions::new(&sampled.loaded.timeline, &sampled.filter);
    let inlining = Inlining::new(&mut sampled.profile(), decisions, method.as_ref());
    if let Some(method) = method.filter(|_| inlining.lacks_method()) {
        bail!(
            "no JIT decisions about methods that match '{method}'; `chronosym inlining TRACE` lists all methods"
        );
    }
    let path = input.output.as_deref();
    output::write(args.format, output::open(path), &Json(&inlining), |out| {
        inlining.write(shown(args.max_lines, path), out)
    })
}

/// Separates the method from the traces: the last word, if it is not a file.
fn method(words: &[PathBuf]) -> (&[PathBuf], Option<&str>) {
    match words {
        [traces @ .., last] if !traces.is_empty() && !last.exists() => (traces, last.to_str()),
        traces => (traces, None),
    }
}
