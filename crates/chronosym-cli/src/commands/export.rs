//! `chronosym export`.

use anyhow::Result;

use crate::args::Export;

/// Without the feature `fleet`, there is no encoder.
#[cfg(not(feature = "fleet"))]
pub fn run(_: &Export) -> Result<()> {
    anyhow::bail!(crate::output::WITHOUT_FLEET)
}

#[cfg(feature = "fleet")]
pub fn run(args: &Export) -> Result<()> {
    use std::path::PathBuf;

    let recordings: Vec<&[PathBuf]> = match args.join {
        true => vec![&args.traces],
        false => args.traces.chunks(1).collect(),
    };
    let mut unreadable = 0;
    for traces in &recordings {
        unreadable += usize::from(!with_fleet::export(args, traces)?);
    }
    if unreadable > 0 {
        let all = recordings.len();
        anyhow::bail!("{unreadable} of {all} recordings cannot be read; see the table diagnostics");
    }
    Ok(())
}

#[cfg(feature = "fleet")]
mod with_fleet {
    use std::path::PathBuf;

    use anyhow::Result;
    use chronosym::Host;
    use chronosym_fleet::{Detail, Exporter, Format, FrameNames, Trace};

    use crate::args::{Export, ExportFormat, Selection};
    use crate::profiled::Sampled;
    use crate::progress;

    /// Exports a recording. Returns false if it cannot be read, which is then its diagnostic.
    pub fn export(args: &Export, traces: &[PathBuf]) -> Result<bool> {
        let exporter = Exporter::new(&args.output_dir)
            .format(match args.format {
                ExportFormat::Parquet => Format::Parquet,
                ExportFormat::Arrow => Format::Arrow,
            })
            .names(match args.addresses {
                true => FrameNames::Addresses,
                false => FrameNames::Named,
            })
            .detail(match args.sums {
                true => Detail::Sums,
                false => Detail::Samples,
            });
        let names: Vec<_> = traces.iter().map(|path| path.to_string_lossy()).collect();
        let name = names.join(", ");
        let selection = Selection {
            filters: args.filters.clone(),
            ..Selection::default()
        };
        let sampled = match Sampled::read(traces, &args.symbols, &selection, 0) {
            Ok(sampled) => sampled,
            Err(error) => {
                let reason = format!("{error:#}");
                progress::note(&format!("{name}: {reason}"));
                exporter.unreadable(&name, &reason)?;
                return Ok(false);
            }
        };
        let mut trace = Trace::new(&name, &sampled.loaded.timeline);
        trace.symbols = Some(sampled.symbols.clone());
        trace.filter = sampled.filter.clone();
        trace.diagnostics = &sampled.loaded.diagnostics.list;
        if args.host.is_some() || args.boot.is_some() {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            trace.host = Some(Host::new(text(&args.host), text(&args.boot)));
        }
        let exported = exporter.export(&trace)?;
        if exported.samples == 0 {
            sampled.note_empty();
        }
        Ok(true)
    }
}
