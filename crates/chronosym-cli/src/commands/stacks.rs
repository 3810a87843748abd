//! `chronosym stacks`.

use std::io::Write;

use anyhow::{Result, bail};
use chronosym::{LimitReached, Profile};
use chronosym_export::{Granularity, TreeOptions, WeightUnit};

use super::report;
use crate::args::{StackFormat, Stacks, Usage};
use crate::profiled::{Sampled, shown, tree, write_note};
use crate::{output, progress};

pub fn run(args: &Stacks) -> Result<()> {
    let path = args.input.output.as_deref();
    let format = args.format.unwrap_or(StackFormat::Text);
    if args.weight.is_some() && !has_weight(format) {
        bail!(Usage(
            "--weight is for folded, text, svg and html: other formats have all that is known of samples".to_owned()
        ));
    }
    if args.max_lines.is_some() && !matches!(format, StackFormat::Text | StackFormat::Jsonl) {
        bail!(Usage(
            "-n is for text and jsonl: other formats have all samples; --from, --to and --include select some".to_owned()
        ));
    }
    report::check_sources(&args.source.sources)?;
    let limits = crate::limits::get();
    let markers = match format {
        StackFormat::Firefox | StackFormat::Html => limits.markers,
        _ => 0,
    };
    let (input, selection) = (&args.input, &args.selection);
    let sampled = Sampled::read(&input.traces, &input.symbols, selection, markers)?;
    let timeline = &sampled.loaded.timeline;
    let granularity = Granularity {
        threads: !args.no_threads,
        lines: args.lines,
        addresses: selection.samples.addresses,
    };
    let mut out = output::open(path);
    let is_empty = match format {
        StackFormat::Jsonl => {
            let symbols = sampled.symbols.clone();
            let (filter, shape) = (&sampled.filter, &sampled.shape);
            let written = chronosym_export::write_json_lines(
                timeline,
                filter,
                Some(symbols),
                shape,
                &mut output::FirstLines::new(&mut out, args.max_lines),
            )?;
            written == 0
        }
        StackFormat::Speedscope | StackFormat::Firefox | StackFormat::Html => {
            let mut series = sampled.series(granularity);
            match format {
                StackFormat::Html => {
                    if args.weight == Some(WeightUnit::Samples) {
                        series.count_samples();
                    }
                    report::write(
                        &series,
                        &sampled,
                        &input.traces,
                        &args.source,
                        selection.samples.raw,
                        &mut out,
                    )?;
                }
                StackFormat::Firefox => chronosym_export::write_firefox(&series, &mut out)?,
                _ => chronosym_export::write_speedscope(&series, &mut out)?,
            }
            if timeline.markers_left_out() > 0 {
                let limit = LimitReached::Markers(limits.markers);
                let count = timeline.markers_left_out();
                progress::note(&format!("{limit}: {count} are left out"));
            }
            series.samples.is_empty()
        }
        _ => {
            let unit = args.weight.unwrap_or_default();
            let mut note = None;
            let profile = match (format, unit) {
                (StackFormat::Folded, WeightUnit::Samples) => sampled.counts(),
                (StackFormat::Text | StackFormat::Svg | StackFormat::Html, _) => {
                    let presented = sampled.presented(selection.samples.raw);
                    note = presented.1;
                    presented.0
                }
                _ => sampled.profile(),
            };
            match format {
                StackFormat::Pprof => {
                    chronosym_export::write_pprof(&profile, granularity, &mut out)?
                }
                StackFormat::Otlp => chronosym_export::write_otlp(&profile, granularity, &mut out)?,
                _ => write_tree(args, format, granularity, &profile, &mut out)?,
            }
            if format == StackFormat::Text {
                write_note(note.as_deref(), shown(usize::MAX, path).width, &mut out)?;
            }
            profile.entries.is_empty()
        }
    };
    out.flush()?;
    if is_empty {
        sampled.note_empty();
    }
    Ok(())
}

/// Whether `--weight` has an effect on a format.
fn has_weight(format: StackFormat) -> bool {
    matches!(
        format,
        StackFormat::Folded | StackFormat::Text | StackFormat::Svg | StackFormat::Html
    )
}

fn write_tree(
    args: &Stacks,
    format: StackFormat,
    granularity: Granularity,
    profile: &Profile,
    out: &mut impl Write,
) -> Result<()> {
    let path = args.input.output.as_deref();
    let unit = match (args.weight, format) {
        (Some(unit), _) => unit,
        (None, StackFormat::Folded) => WeightUnit::Samples,
        (None, _) => WeightUnit::of(profile),
    };
    let options = TreeOptions {
        threads: granularity.threads,
        lines: granularity.lines,
        files: format != StackFormat::Folded,
        addresses: granularity.addresses,
        unit,
        ..TreeOptions::default()
    };
    let tree = tree(profile, options);
    match format {
        StackFormat::Svg => chronosym_export::write_svg(profile, &tree, out)?,
        StackFormat::Text => {
            let options = shown(args.max_lines.unwrap_or(usize::MAX), path);
            chronosym_export::write_text(profile, &tree, options, out)?;
        }
        _ => chronosym_export::write_folded(&tree, out)?,
    }
    Ok(())
}
