//! Hot methods.

use std::io::{self, Write};

use chronosym::{FrameId, Profile};
use chronosym_types::escape::terminal;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::text::{describe, write_line};

/// A method and its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct HotMethod {
    /// `module!name`, `module!+0xrva` or an address.
    pub label: String,
    /// Samples whose innermost frame it is.
    pub own: u64,
    /// Samples on whose stack it is, each counted once.
    pub total: u64,
    /// The source line where most of its own samples are: file, line.
    pub line: Option<(String, u32)>,
}

/// The methods of a profile, the one with the most own samples first.
pub fn hot_methods(profile: &Profile<'_>) -> Vec<HotMethod> {
    let mut index: FxHashMap<String, usize> = FxHashMap::default();
    let mut methods: Vec<HotMethod> = Vec::new();
    let mut lines: Vec<FxHashMap<(String, u32), u64>> = Vec::new();
    let mut of_frame: Vec<Option<usize>> = vec![None; profile.resolver.frames().len()];
    let mut method_of = |frame: FrameId, methods: &mut Vec<HotMethod>, lines: &mut Vec<_>| {
        *of_frame[frame.index()].get_or_insert_with(|| {
            let label = profile.resolver.frame(frame).label();
            *index.entry(label).or_insert_with_key(|label| {
                methods.push(HotMethod {
                    label: label.clone(),
                    own: 0,
                    total: 0,
                    line: None,
                });
                lines.push(FxHashMap::default());
                methods.len() - 1
            })
        })
    };
    let mut seen = FxHashSet::default();
    for entry in &profile.entries {
        seen.clear();
        for (depth, frame) in profile.resolver.stack(entry.stack).enumerate() {
            let method = method_of(frame, &mut methods, &mut lines);
            if depth == 0 {
                methods[method].own += entry.samples;
                if let Some(line) = &profile.resolver.frame(frame).line {
                    *lines[method]
                        .entry((line.file.to_string(), line.line))
                        .or_insert(0) += entry.samples;
                }
            }
            if seen.insert(method) {
                methods[method].total += entry.samples;
            }
        }
    }
    for (method, lines) in methods.iter_mut().zip(lines) {
        let hottest = lines
            .into_iter()
            .max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
        method.line = hottest.map(|(line, _)| line);
    }
    methods.sort_by(|a, b| {
        b.own
            .cmp(&a.own)
            .then(b.total.cmp(&a.total))
            .then_with(|| a.label.cmp(&b.label))
    });
    methods
}

/// How much of a table is shown.
#[derive(Clone, Copy, Debug)]
pub struct TopOptions {
    /// At most this many methods.
    pub most: usize,
    /// Columns of the terminal; longer lines are cut. `None`: no limit.
    pub width: Option<usize>,
    /// Whether hot lines stand out in colour.
    pub color: bool,
}

impl Default for TopOptions {
    fn default() -> Self {
        TopOptions {
            most: 30,
            width: None,
            color: false,
        }
    }
}

/// Writes what the samples are, and the hottest methods.
pub fn write_top(
    profile: &Profile<'_>,
    options: TopOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{}", describe(profile))?;
    let methods = hot_methods(profile);
    let all = profile.samples();
    if all == 0 {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:>7} {:>9} {:>7} {:>9}  method",
        "self %", "self", "total %", "total"
    )?;
    for method in methods.iter().take(options.most) {
        let share = |n: u64| n as f64 * 100.0 / all as f64;
        let mut line = format!(
            "{:>6.1}% {:>9} {:>6.1}% {:>9}  {}",
            share(method.own),
            method.own,
            share(method.total),
            method.total,
            terminal(&method.label)
        );
        if let Some((file, number)) = &method.line {
            line.push_str(&format!(
                "  {}:{number}",
                terminal(chronosym::file_name(file))
            ));
        }
        write_line(out, &line, share(method.own), options.width, options.color)?;
    }
    match methods.len().saturating_sub(options.most) {
        0 => Ok(()),
        1 => writeln!(out, "\n1 more method: see -n"),
        more => writeln!(out, "\n{more} more methods: see -n"),
    }
}
