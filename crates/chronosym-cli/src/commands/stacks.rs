//! `chronosym stacks`.

use std::io::Write;

use anyhow::Result;
use chronosym::LimitReached;
use chronosym_export::{CallTree, Measure, Series, TreeOptions};

use super::pictures;
use crate::args::{StackFormat, StackWeight, Stacks};
use crate::output;
use crate::profiled::{open_samples, shown};
use crate::progress::tell;

pub fn run(args: &Stacks, quiet: bool) -> Result<()> {
    let shape = args.shaping.shape()?;
    let (loaded, symbols, filter) = open_samples(
        &args.input.traces,
        &args.input.symbols,
        &args.filters,
        &args.samples,
        quiet,
    )?;
    let timeline = &loaded.timeline;
    let path = args.input.output.as_deref();
    let format = args.format.or_else(|| pictures::format_of(path?));
    let format = format.unwrap_or(StackFormat::Text);
    let mut out = output::open(path);
    let is_empty = if format == StackFormat::Jsonl {
        chronosym_export::write_json_lines(timeline, &filter, Some(symbols), &shape, &mut out)? == 0
    } else if pictures::is_picture(format) {
        let mut series = Series::new(timeline, &filter, Some(symbols), &shape);
        series.addresses = args.samples.addresses;
        pictures::write(format, &series, &args.input.traces, &loaded.notes, &mut out)?;
        series.samples.is_empty()
    } else {
        let mut profile = timeline.profile(&filter, Some(symbols));
        profile.shape(&shape);
        let limits = crate::limits::get();
        let tree = CallTree::new(
            &profile,
            TreeOptions {
                threads: !args.no_threads,
                lines: args.lines,
                files: format == StackFormat::Text,
                addresses: args.samples.addresses,
                measure: match (format, args.weight) {
                    (StackFormat::Text, _) => Measure::of(&profile),
                    (_, StackWeight::Samples) => Measure::Samples,
                    (_, StackWeight::Time) => Measure::Time,
                    (_, StackWeight::Bytes) => Measure::Bytes,
                },
                max_nodes: limits.tree_nodes,
            },
        );
        match format {
            StackFormat::Folded => chronosym_export::write_folded(&tree, &mut out)?,
            _ => {
                let options = shown(usize::MAX, path);
                chronosym_export::write_text(&profile, &tree, options, &mut out)?;
            }
        }
        if tree.left_out() > 0 {
            let limit = LimitReached::TreeNodes(limits.tree_nodes);
            let (count, all) = (tree.left_out(), profile.samples());
            tell(&format!(
                "{limit}: the innermost frames of {count} of {all} samples are left out"
            ));
        }
        tree.is_empty()
    };
    out.flush()?;
    if is_empty {
        super::tell_nothing_passes("sample", quiet);
    }
    Ok(())
}
