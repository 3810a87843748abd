//! `chronosym stacks`.

use std::io::{self, Write};

use anyhow::{Result, bail};
use chronosym::runtime::TailCallers;
use chronosym::{LimitReached, Options, Profile};
use chronosym_export::{Granularity, JsonStacks, TreeOptions, WeightUnit};

use super::report;
use crate::args::{StackFormat, StackGroup, Stacks, Usage};
use crate::profiled::{Sampled, note_no_activities, shown, tree, write_note};
use crate::{output, progress, thinning};

pub fn run(args: &Stacks) -> Result<()> {
    let path = args.input.output.as_deref();
    let format = args.format.unwrap_or(StackFormat::Text);
    if args.weight.is_some() && !has_weight(format) {
        bail!(Usage(
            "--weight applies to folded, text, svg and html; other formats contain every weight"
                .to_owned()
        ));
    }
    if args.max_lines.is_some() && !matches!(format, StackFormat::Text | StackFormat::Jsonl) {
        bail!(Usage(
            "-n applies to text and jsonl; for other formats, select samples with --from, --to or --include".to_owned()
        ));
    }
    if args.no_threads && format == StackFormat::Perfetto {
        bail!(Usage(
            "--no-threads does not apply to Perfetto traces, which have a track per thread"
                .to_owned()
        ));
    }
    report::check_sources(&args.source.sources)?;
    let limits = crate::limits::get();
    // Of folded stacks, neither times nor activities matter.
    let counts_samples = format == StackFormat::Folded
        && args.weight.unwrap_or_default() == WeightUnit::Samples
        && !(args.async_chains || args.by.is_some());
    let mut options = match format {
        StackFormat::Html => report::options(),
        _ => Options::default(),
    };
    options.skip_outside = counts_samples;
    if format == StackFormat::Jsonl {
        TailCallers::keep(&mut options);
    }
    if matches!(format, StackFormat::Firefox | StackFormat::Perfetto) {
        options.markers = limits.markers;
    }
    let mut selection = args.selection.with_async(args.async_chains);
    selection.samples.activity_ids = args.by == Some(StackGroup::Activity);
    let (input, selection) = (&args.input, &selection);
    let is_presented = matches!(format, StackFormat::Text | StackFormat::Svg);
    let mut symbols = input
        .symbols
        .spelled(is_presented && !selection.samples.raw);
    // No line is looked up for a format without lines.
    symbols.no_lines |= format == StackFormat::Folded && !args.lines;
    let sampled = Sampled::read_with(&input.traces, &symbols, selection, options)?;
    sampled.check_samples()?;
    let timeline = &sampled.loaded.timeline;
    let granularity = Granularity {
        threads: !args.no_threads,
        lines: args.lines,
        addresses: selection.samples.addresses,
        activities: selection.samples.activity_ids,
    };
    if granularity.activities && !sampled.has_activities() {
        note_no_activities();
    }
    let is_inline = format == StackFormat::Jsonl && args.stacks == JsonStacks::Inline;
    let mut out = Large {
        out: output::Limited::new(output::open(path), timeline.budget()),
        noted: is_inline.then_some(LARGE_JSON),
    };
    let is_empty = match format {
        StackFormat::Jsonl => {
            let mut first = output::FirstLines::new(&mut out, args.max_lines);
            sampled.write_json_lines(args.stacks, &mut first)? == 0
        }
        StackFormat::Speedscope
        | StackFormat::Firefox
        | StackFormat::Perfetto
        | StackFormat::Html => {
            let mut series = sampled.series(granularity);
            match format {
                StackFormat::Speedscope | StackFormat::Firefox => {
                    thinning::thin(&mut series, args, format)?;
                    thinning::write(&series, format, &mut out)?;
                }
                StackFormat::Html => {
                    match args.weight {
                        Some(WeightUnit::Samples) => series.count_samples(),
                        Some(unit) if unit != series.unit && !series.samples.is_empty() => bail!(
                            "--weight {unit}: a report of this trace has {} or samples",
                            series.unit
                        ),
                        _ => {}
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
                _ => chronosym_export::write_perfetto(&series, &mut out)?,
            }
            if timeline.markers_left_out() > 0 {
                let limit = LimitReached::Markers(limits.markers);
                let count = timeline.markers_left_out();
                progress::note(&format!("{limit}: {count} are left out"));
            }
            series.samples.is_empty()
        }
        _ => {
            let mut note = None;
            let mut profile = match format {
                StackFormat::Folded if counts_samples => sampled.counts(),
                StackFormat::Text | StackFormat::Svg | StackFormat::Html => {
                    let presented = sampled.presented(selection.samples.raw);
                    note = presented.1;
                    presented.0
                }
                _ => sampled.profile(),
            };
            if granularity.activities {
                chronosym_export::root_by_activity(&mut profile);
            }
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

/// JSON with frames in every sample beyond this many bytes is large.
const LARGE_JSON: u64 = 1 << 30;

/// An output that reports once that it has become large.
struct Large<W> {
    out: W,
    /// Bytes until it is large; `None` if that is not to be reported.
    noted: Option<u64>,
}

impl<W: Write> Write for Large<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(bytes)?;
        if let Some(left) = &mut self.noted {
            *left = left.saturating_sub(bytes.len() as u64);
            if *left == 0 {
                self.noted = None;
                progress::note(
                    "the output exceeds 1 GB because every sample repeats its frames; --stacks table writes each stack once",
                );
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns whether `--weight` has an effect on a format.
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
        drawn: format != StackFormat::Folded,
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
