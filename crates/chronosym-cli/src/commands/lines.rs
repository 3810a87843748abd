//! `chronosym lines`.

use std::io::Write;
use std::path::Path;
use std::slice::from_ref;

use anyhow::{Result, bail};
use chronosym_export::{FileLines, MethodLines};

use crate::args::{InfoFormat, Usage};
use crate::output;
use crate::profiled::{OfMethod, shown};

pub fn run(args: &OfMethod, quiet: bool) -> Result<()> {
    for folder in &args.sources {
        if !folder.exists() {
            bail!("--sources {}: there is no such folder", folder.display());
        }
    }
    if !args.trace.exists() && Path::new(&args.method).is_file() {
        bail!(Usage(format!(
            "the trace comes first: chronosym lines {} {}",
            args.method,
            args.trace.display()
        )));
    }
    let question = &args.question;
    let (profile, symbols) = question.profile(from_ref(&args.trace), &args.symbols, quiet)?;
    let Some(lines) = MethodLines::new(&profile, &args.method) else {
        bail!(
            "no method on any stack is called '{}'; `chronosym top` shows which there are",
            args.method
        );
    };
    let timeline = profile.resolver.timeline();
    let source = |file: &FileLines| {
        let module = file.module;
        let module = module.and_then(|(process, module)| timeline.module_ref(process, module));
        match symbols.source(module.as_ref(), &file.file, &args.sources) {
            Ok(source) => {
                let said = match (&source.file, source.checked) {
                    (None, _) => match &source.url {
                        Some(url) => format!("{url}, checksum agrees"),
                        None => "out of the PDB".to_owned(),
                    },
                    (Some(path), true) => format!("{}, checksum agrees", path.display()),
                    (Some(path), false) => {
                        format!("{}, of which no checksum is known", path.display())
                    }
                };
                (Some(source.text), said)
            }
            Err(reason) => (None, format!("{reason}; see --sources")),
        }
    };
    let path = args.output.as_deref();
    let mut out = output::open(path);
    match question.format {
        InfoFormat::Text => {
            let options = shown(usize::MAX, path);
            chronosym_export::write_lines(&profile, &lines, source, options, &mut out)?;
        }
        InfoFormat::Json => output::write_json(&lines, &mut out)?,
    }
    out.flush()?;
    Ok(())
}
