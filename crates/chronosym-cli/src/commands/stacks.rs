//! `chronosym stacks`.

use std::io::Write;

use anyhow::Result;
use chronosym_export::{CallTree, TextOptions, TreeOptions};

use crate::args::{StackFormat, Stacks};
use crate::output;

pub fn run(args: &Stacks, quiet: bool) -> Result<()> {
    let shape = args.shaping.shape()?;
    let (loaded, symbols, filter) = super::open_samples(&args.input, &args.filters, quiet)?;
    let timeline = &loaded.timeline;
    let filter = chronosym::Filter {
        managed_only: args.managed_only,
        idle: args.idle,
        ..filter
    };
    let path = args.input.output.as_deref();
    let terminal = output::is_terminal(path);
    let format = args.format.unwrap_or(if terminal {
        StackFormat::Text
    } else {
        StackFormat::Folded
    });
    let mut out = output::open(path);
    let is_empty = if format == StackFormat::Jsonl {
        chronosym_export::write_json_lines(timeline, &filter, Some(symbols), &shape, &mut out)? == 0
    } else {
        let mut profile = timeline.profile(&filter, Some(symbols));
        profile.shape(&shape);
        let tree = CallTree::new(
            &profile,
            TreeOptions {
                threads: !args.no_threads,
                lines: args.lines,
                files: format == StackFormat::Text,
            },
        );
        match format {
            StackFormat::Folded => chronosym_export::write_folded(&tree, &mut out)?,
            _ => {
                let options = TextOptions {
                    width: output::width(path),
                    color: output::is_coloured(path),
                    ..TextOptions::default()
                };
                chronosym_export::write_text(&profile, &tree, options, &mut out)?;
            }
        }
        tree.is_empty()
    };
    out.flush()?;
    if is_empty {
        super::tell_nothing_passes("sample", quiet);
    }
    Ok(())
}
