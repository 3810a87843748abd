//! `chronosym diff`.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use chronosym::Profile;
use chronosym_export::{CallTree, PageFacts, TreeOptions, WeightUnit};

use super::pictures;
use crate::args::{Diff, DiffFormat, StackFormat, Usage};
use crate::output;
use crate::profiled::{self, Sampled, shown};

pub fn run(args: &Diff) -> Result<()> {
    let (before, after) = args.sides()?;
    let has_pipe = |paths: &[PathBuf]| paths.iter().any(|path| path.as_os_str() == "-");
    if has_pipe(before) && has_pipe(after) {
        bail!(Usage("standard input is one trace, not two".to_owned()));
    }
    let path = args.output.as_deref();
    let named = path.and_then(pictures::format_of);
    let format = args.format.unwrap_or(match named {
        Some(StackFormat::Svg) => DiffFormat::Svg,
        Some(StackFormat::Html) => DiffFormat::Html,
        _ => DiffFormat::Text,
    });
    let raw = args.selection.samples.raw || format == DiffFormat::Json;
    let before = Side::read(args, before, raw)?;
    let after = Side::read(args, after, raw)?;
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
        DiffFormat::Svg | DiffFormat::Html => {
            let (old, new) = (&before.profile, &after.profile);
            // A unit can be compared only if both profiles have it.
            let unit = WeightUnit::of_both(old, new);
            let (old_tree, new_tree) = (before.tree(unit), after.tree(unit));
            let (old_facts, new_facts) = (&before.facts, &after.facts);
            if format == DiffFormat::Svg {
                chronosym_export::write_diff_svg((old, &old_tree), (new, &new_tree), &mut out)?;
            } else {
                let old = (old, &old_tree, old_facts);
                let new = (new, &new_tree, new_facts);
                chronosym_export::write_diff_html(&diff, old, new, &mut out)?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// One of the two profiles.
struct Side {
    profile: Profile,
    facts: PageFacts,
    addresses: bool,
}

impl Side {
    fn read(args: &Diff, traces: &[PathBuf], raw: bool) -> Result<Self> {
        let sampled = Sampled::read(traces, &args.symbols, &args.selection, 0)?;
        Ok(Side {
            profile: sampled.presented(raw).0,
            facts: pictures::facts(traces, &sampled.loaded.diagnostics),
            addresses: args.selection.samples.addresses,
        })
    }

    /// Process and thread ids differ between traces.
    fn tree(&self, unit: WeightUnit) -> CallTree {
        let options = TreeOptions {
            threads: false,
            addresses: self.addresses,
            unit,
            ..TreeOptions::default()
        };
        profiled::tree(&self.profile, options)
    }
}
