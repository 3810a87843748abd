//! `chronosym diff`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use chronosym::Profile;
use chronosym_export::{CallTree, Granularity, ReportFacts, Series, TreeOptions, WeightUnit};

use super::report;
use crate::args::{Diff, DiffFormat, Usage};
use crate::output;
use crate::profiled::{self, Sampled, shown};

pub fn run(args: &Diff) -> Result<()> {
    let (before, after) = args.sides()?;
    let has_pipe = |paths: &[PathBuf]| paths.iter().any(|path| path.as_os_str() == "-");
    if has_pipe(before) && has_pipe(after) {
        bail!(Usage("standard input is one trace, not two".to_owned()));
    }
    let path = args.output.as_deref();
    let format = args.format.unwrap_or(DiffFormat::Text);
    let raw = args.selection.samples.raw || format == DiffFormat::Json;
    let markers = match format {
        DiffFormat::Html => crate::limits::get().markers,
        _ => 0,
    };
    let before = Side::read(args, before, raw, markers)?;
    let after = Side::read(args, after, raw, markers)?;
    let mut diff = chronosym_export::Diff::new(&before.profile, &after.profile);
    let options = shown(args.max_lines, path);
    let mut out = output::open(path);
    match format {
        DiffFormat::Text => chronosym_export::write_diff(&diff, options, &mut out)?,
        DiffFormat::Json => {
            diff.methods.truncate(options.max_lines);
            chronosym_types::json::to_writer(&mut out, &diff)?;
            writeln!(out)?;
        }
        DiffFormat::Svg => {
            let (old, new) = (&before.profile, &after.profile);
            // A unit can be compared only if both profiles have it.
            let unit = WeightUnit::of_both(old, new);
            let (old_tree, new_tree) = (before.tree(unit), after.tree(unit));
            chronosym_export::write_diff_svg((old, &old_tree), (new, &new_tree), &mut out)?;
        }
        DiffFormat::Html => {
            let [old, new] = [&before, &after].map(Side::series);
            let (old_facts, new_facts) = (before.facts(), after.facts());
            let (old, new) = ((&old, &old_facts), (&new, &new_facts));
            chronosym_export::write_diff_report(old, new, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// One of the two profiles.
struct Side<'a> {
    traces: &'a [PathBuf],
    sampled: Sampled,
    profile: Profile,
    raw: bool,
    addresses: bool,
}

impl<'a> Side<'a> {
    fn read(args: &Diff, traces: &'a [PathBuf], raw: bool, markers: usize) -> Result<Self> {
        // Reports spell names themselves.
        let symbols = args
            .symbols
            .spelled(!raw && args.format != Some(DiffFormat::Html));
        let sampled = Sampled::read(traces, &symbols, &args.selection, markers)?;
        let (profile, _) = sampled.presented(raw);
        if profile.entries.is_empty() {
            sampled.note_empty();
        }
        Ok(Side {
            traces,
            profile,
            sampled,
            raw,
            addresses: args.selection.samples.addresses,
        })
    }

    fn series(&self) -> Series {
        self.sampled.series(Granularity {
            addresses: self.addresses,
            ..Granularity::default()
        })
    }

    fn facts(&self) -> ReportFacts {
        report::facts(self.traces, &self.sampled, &self.profile, self.raw)
    }

    /// Process and thread ids differ between traces.
    fn tree(&self, unit: WeightUnit) -> CallTree {
        let options = TreeOptions {
            threads: false,
            addresses: self.addresses,
            unit,
            drawn: true,
            ..TreeOptions::default()
        };
        profiled::tree(&self.profile, options)
    }
}
