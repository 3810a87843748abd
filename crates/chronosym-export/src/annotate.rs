//! A method's source with the samples on each line.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use chronosym::{Code, Frame, ModuleIndex, ProcessIndex, Profile};
use chronosym_types::escape::terminal;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::butterfly::METHODS;
use crate::header::describe;
use crate::rows::Rows;
use crate::text::write_line;
use crate::top::TopOptions;

/// Samples of a line or of a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LineSamples {
    /// Samples whose innermost frame is there.
    #[serde(rename = "self")]
    pub own: u64,
    /// Samples on whose stack it is, each counted once.
    pub total: u64,
}

/// The lines of a method that have samples.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MethodLines {
    /// What was asked for: several, if the text fits several.
    pub methods: Vec<String>,
    /// All samples of the profile.
    pub samples: u64,
    /// Those of the methods.
    #[serde(flatten)]
    pub method: LineSamples,
    /// Those of frames that have no line.
    pub without_line: LineSamples,
    /// The lines, by source file.
    pub files: Vec<FileLines>,
}

/// The lines of a source file.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FileLines {
    /// The file, as the symbols name it.
    pub file: String,
    /// Lines that have samples, in their order.
    pub lines: Vec<Line>,
    /// A module that the code is of.
    #[serde(skip)]
    pub module: Option<(ProcessIndex, ModuleIndex)>,
}

/// A line that has samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// From 1.
    pub line: u32,
    /// Its samples.
    #[serde(flatten)]
    pub samples: LineSamples,
}

impl MethodLines {
    /// The lines of the methods that `text` means, as for [`Butterfly::new`](crate::Butterfly::new). `None` if there is none on any
    /// stack.
    pub fn new(profile: &Profile, text: &str) -> Option<Self> {
        let resolver = &profile.resolver;
        let rows = Rows::new(resolver, false);
        let wanted = rows.matching(text);
        let row = |frame: &Frame| rows.of[frame.function.id().index()] as usize;
        let mut met = vec![false; wanted.len()];
        let mut method = LineSamples::default();
        let mut of: FxHashMap<Option<(Arc<str>, u32)>, LineSamples> = FxHashMap::default();
        let mut modules: FxHashMap<Arc<str>, Option<(ProcessIndex, ModuleIndex)>> =
            FxHashMap::default();
        let mut seen = FxHashSet::default();
        for entry in &profile.entries {
            seen.clear();
            for (depth, frame) in resolver.stack(entry.stack).enumerate() {
                let frame = resolver.frame(frame);
                let row = row(frame);
                if !wanted[row] {
                    continue;
                }
                met[row] = true;
                let line = frame.line.as_ref().ok();
                let line = line.map(|line| (Arc::clone(&line.file), line.line));
                if let Some((file, _)) = &line {
                    let module = || module(frame, profile);
                    modules.entry(Arc::clone(file)).or_insert_with(module);
                }
                let first = seen.is_empty();
                let counts = of.entry(line.clone()).or_default();
                if depth == 0 {
                    counts.own += entry.samples;
                    method.own += entry.samples;
                }
                if first {
                    method.total += entry.samples;
                }
                if seen.insert(line) {
                    counts.total += entry.samples;
                }
            }
        }
        let without_line = of.remove(&None).unwrap_or_default();
        let mut files: BTreeMap<Arc<str>, FileLines> = BTreeMap::new();
        for (place, samples) in of {
            let Some((file, line)) = place else {
                continue;
            };
            let module = modules.get(&file).copied().flatten();
            let lines = files.entry(Arc::clone(&file)).or_insert(FileLines {
                file: file.to_string(),
                lines: Vec::new(),
                module,
            });
            lines.lines.push(Line { line, samples });
        }
        for file in files.values_mut() {
            file.lines.sort_by_key(|line| line.line);
        }
        let mut methods: Vec<String> = (0..met.len())
            .filter(|&row| met[row])
            .map(|row| rows.label(row as u32))
            .collect();
        methods.sort();
        (method.total > 0).then(|| MethodLines {
            methods,
            samples: profile.samples(),
            method,
            without_line,
            files: files.into_values().collect(),
        })
    }
}

impl FileLines {
    fn at(&self, line: u32) -> Option<&LineSamples> {
        let at = self.lines.binary_search_by_key(&line, |line| line.line);
        at.ok().map(|at| &self.lines[at].samples)
    }
}

/// The module that a frame's code is of.
fn module(frame: &Frame, profile: &Profile) -> Option<(ProcessIndex, ModuleIndex)> {
    match frame.code {
        Code::Body(process, body) => {
            let body = profile.resolver.timeline().body_view(process, body)?;
            Some((process, body.module_index?))
        }
        Code::Precompiled(process, module) => Some((process, module)),
        _ => None,
    }
}

/// The text of a source file, and what is to be said of it; or just that.
pub type Source = (Option<String>, String);

/// Lines around those that have samples.
const AROUND: u32 = 2;

/// Writes the lines that have samples, and those around them where the file's text is at hand.
pub fn write_lines(
    profile: &Profile,
    lines: &MethodLines,
    mut source: impl FnMut(&FileLines) -> Source,
    options: TopOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{}\n", describe(profile))?;
    let share = |n: u64| n as f64 * 100.0 / lines.samples.max(1) as f64;
    let counts = |samples: &LineSamples| {
        format!(
            "{:>6.1}% {:>9} {:>6.1}% {:>9}",
            share(samples.own),
            samples.own,
            share(samples.total),
            samples.total
        )
    };
    writeln!(
        out,
        "{:>7} {:>9} {:>7} {:>9}  line",
        "self %", "self", "total %", "total"
    )?;
    let blank = " ".repeat(counts(&LineSamples::default()).len());
    for (at, method) in lines.methods.iter().take(METHODS).enumerate() {
        let head = match at {
            0 => counts(&lines.method),
            _ => blank.clone(),
        };
        let line = format!("{head}  {}", terminal(method));
        write_line(
            out,
            &line,
            share(lines.method.own),
            options.width,
            options.color,
        )?;
    }
    if lines.methods.len() > METHODS {
        let more = lines.methods.len() - METHODS;
        writeln!(out, "{blank}  and {more} more of that name")?;
    }
    for file in &lines.files {
        let (text, said) = source(file);
        writeln!(out, "\n{}  ({})", terminal(&file.file), terminal(&said))?;
        let text: Vec<&str> = text.as_deref().unwrap_or_default().lines().collect();
        let mut next = 0;
        for line in shown(file, text.len()) {
            if next != 0 && line != next {
                writeln!(out, "{blank}    …")?;
            }
            next = line + 1;
            let samples = file.at(line);
            let head = samples.map_or_else(|| blank.clone(), counts);
            let text = text.get(line as usize - 1).copied().unwrap_or_default();
            let text = text.replace('\t', "    ");
            let row = format!("{head}  {line:>5} {}", terminal(text.trim_end()));
            let own = share(samples.map_or(0, |samples| samples.own));
            write_line(out, row.trim_end(), own, options.width, options.color)?;
        }
    }
    if lines.without_line.total > 0 {
        writeln!(out, "\n{}  no line known", counts(&lines.without_line))?;
    }
    Ok(())
}

/// The lines to show: those that have samples and, of a text that is at hand, their neighbours.
fn shown(file: &FileLines, known: usize) -> Vec<u32> {
    let known = u32::try_from(known).unwrap_or(u32::MAX);
    let mut shown: Vec<u32> = Vec::new();
    for line in file
        .lines
        .iter()
        .map(|line| line.line)
        .filter(|&line| line > 0)
    {
        let from = line.saturating_sub(AROUND).max(1).min(line);
        let to = line.saturating_add(AROUND).min(known);
        let from = if line <= known { from } else { line };
        let after = shown.last().map_or(0, |&last| last + 1);
        shown.extend(from.max(after)..=to.max(line));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: &[u32]) -> FileLines {
        FileLines {
            file: "a.cs".into(),
            lines: lines
                .iter()
                .map(|&line| Line {
                    line,
                    samples: LineSamples::default(),
                })
                .collect(),
            module: None,
        }
    }

    #[test]
    fn neighbours_are_shown_where_there_is_text() {
        assert_eq!(shown(&file(&[1, 4, 9]), 0), [1, 4, 9]);
        assert_eq!(
            shown(&file(&[1, 4, 9]), 10),
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
        );
        assert_eq!(
            shown(&file(&[2, 20, u32::MAX]), 21),
            [1, 2, 3, 4, 18, 19, 20, 21, u32::MAX]
        );
    }
}
