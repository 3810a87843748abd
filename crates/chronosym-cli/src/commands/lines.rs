//! `chronosym lines`.

use std::path::Path;

use anyhow::{Result, bail};
use chronosym::runtime::JitDecisions;
use chronosym_export::{FileLines, MethodLines, write_lines};

use crate::args::{InfoFormat, Lines, Usage};
use crate::output;
use crate::profiled::{Sampled, shown};

pub fn run(args: &Lines) -> Result<()> {
    super::report::check_sources(&args.sources)?;
    let input = &args.input;
    if let [trace] = &*input.traces
        && !trace.exists()
        && Path::new(&args.method.to_string()).is_file()
    {
        bail!(Usage(format!(
            "the trace comes first: chronosym lines {} {}",
            args.method,
            trace.display()
        )));
    }
    let kept = JitDecisions::options();
    let raw = args.selection.samples.raw || args.format != InfoFormat::Text;
    let symbols = input.symbols.spelled(!raw);
    let sampled = Sampled::read_with(&input.traces, &symbols, &args.selection, kept)?;
    sampled.check_samples()?;
    let (profile, _) = sampled.presented(raw);
    if profile.entries.is_empty() {
        sampled.note_empty();
    }
    let Some(mut lines) = MethodLines::new(&profile, &args.method) else {
        bail!(
            "no method on any stack matches '{}'; `chronosym top` lists the methods",
            args.method
        );
    };
    let (timeline, symbols) = (&sampled.loaded.timeline, &sampled.symbols);
    let decisions = JitDecisions::new(timeline, &sampled.filter);
    lines.mark_calls(&profile, &args.method, &decisions);
    let source = |file: &FileLines| {
        let module = file.module;
        let module = module.and_then(|(process, module)| timeline.module_ref(process, module));
        match symbols.source(module.as_ref(), &file.file, &args.sources) {
            Ok(source) => {
                let from = match (&source.file, &source.url) {
                    (None, None) => "embedded in the PDB".to_owned(),
                    (None, Some(url)) => format!("{url}, checksum matches"),
                    (Some(path), _) if source.checked => {
                        format!("{}, checksum agrees", path.display())
                    }
                    (Some(path), _) => format!("{}, checksum unknown", path.display()),
                };
                (Some(source.text), from)
            }
            Err(reason) => (None, format!("{reason}; see --sources")),
        }
    };
    let path = input.output.as_deref();
    output::write(args.format, output::open(path), &lines, |out| {
        write_lines(&profile, &lines, source, shown(usize::MAX, path), out)
    })
}
