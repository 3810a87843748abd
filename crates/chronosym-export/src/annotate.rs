//! The source of a method, with the samples of each line.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use chronosym_core::{
    Code, Frame, LineReason, ModuleIndex, ProcessIndex, Profile, SourceLine, Timeline,
};
use chronosym_runtime::JitDecisions;
use chronosym_types::escape::terminal;
use chronosym_types::hash::HashMap;
use serde::{Serialize, Serializer};

use crate::function_groups::{FunctionGroups, Label};
use crate::line_calls::{LineCall, line_calls};
use crate::pattern::Pattern;
use crate::reasons::line_reason;
use crate::table::{Table, TableOptions};
use crate::weight::{Amount, Counts, tally};

/// The lines of a method that have samples.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct MethodLines {
    /// The methods that match the query.
    pub methods: Vec<Label>,
    /// All samples of the profile.
    #[serde(flatten)]
    pub all: Amount,
    /// The samples of the methods.
    #[serde(flatten)]
    pub counts: Counts,
    /// The samples of frames without a line.
    pub without_line: Counts,
    /// Why frames have no line, most frames first.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "reason_names")]
    pub line_reasons: Vec<LineReason>,
    /// The lines, by source file.
    pub files: Vec<FileLines>,
}

/// The lines of a source file.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FileLines {
    /// The path, as the symbol file states it.
    pub file: String,
    /// Lines that have samples, in order.
    pub lines: Vec<Line>,
    /// Calls on these lines that the JIT inlined or rejected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<LineCall>,
    /// A module that contains the code.
    #[serde(skip)]
    pub module: Option<(ProcessIndex, ModuleIndex)>,
}

/// A line that has samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// The line number, from 1.
    pub line: u32,
    /// The sum of its samples.
    #[serde(flatten)]
    pub counts: Counts,
}

impl MethodLines {
    /// Returns the lines of the methods that match a pattern, as
    /// [`Butterfly::new`](crate::Butterfly::new) matches it; `None` if none is on any stack.
    pub fn new(profile: &Profile, pattern: &Pattern) -> Option<Self> {
        let resolver = &profile.resolver;
        let groups = FunctionGroups::new(resolver, false);
        let wanted = groups.matching(pattern);
        let group =
            |frame| Some(groups.of_frame(resolver.frame(frame))).filter(|&group| wanted[group]);
        // Numbers the lines of the methods' frames.
        let mut source_lines: Vec<Option<&SourceLine>> = Vec::new();
        let mut index: HashMap<Option<(&str, u32)>, usize> = HashMap::default();
        let mut modules: HashMap<&str, Option<(ProcessIndex, ModuleIndex)>> = HashMap::default();
        let mut reasons: HashMap<LineReason, usize> = HashMap::default();
        let mut line_of = Vec::with_capacity(resolver.frames().len());
        for frame in resolver.frames() {
            let line = frame.line.as_ref().ok();
            let reason = frame.line_reason();
            if let Some(reason) = reason.filter(|_| wanted[groups.of_frame(frame)]) {
                *reasons.entry(reason).or_default() += 1;
            }
            line_of.push(wanted[groups.of_frame(frame)].then(|| {
                if let Some(line) = line {
                    let module = || module_of(frame, resolver.timeline());
                    modules.entry(&line.file).or_insert_with(module);
                }
                let key = line.map(|line| (&*line.file, line.line));
                *index.entry(key).or_insert_with(|| {
                    source_lines.push(line);
                    source_lines.len() - 1
                })
            }));
        }
        let by_line = tally(profile, source_lines.len(), |frame| line_of[frame.index()]);
        let by_method = tally(profile, wanted.len(), group);
        let counts = tally(profile, 1, |frame| group(frame).map(|_| 0))[0];
        let mut without_line = Counts::default();
        let mut files: BTreeMap<&str, FileLines> = BTreeMap::new();
        let counted = source_lines.into_iter().zip(by_line);
        for (source_line, counts) in counted.filter(|(_, counts)| counts.total.samples > 0) {
            let Some(SourceLine { file, line, .. }) = source_line else {
                without_line = counts;
                continue;
            };
            let lines = files.entry(file).or_insert_with(|| FileLines {
                file: file.to_string(),
                lines: Vec::new(),
                calls: Vec::new(),
                module: modules.get(&**file).copied().flatten(),
            });
            let line = *line;
            lines.lines.push(Line { line, counts });
        }
        for file in files.values_mut() {
            file.lines.sort_by_key(|line| line.line);
        }
        let counted = (0..wanted.len()).filter(|&group| by_method[group].total.samples > 0);
        let mut line_reasons: Vec<_> = reasons.into_iter().collect();
        line_reasons.sort_by_key(|&(reason, frames)| (Reverse(frames), reason.as_str()));
        (counts.total.samples > 0).then(|| MethodLines {
            methods: groups.labels(counted),
            all: Amount::all(profile),
            counts,
            without_line,
            line_reasons: line_reasons.into_iter().map(|(reason, _)| reason).collect(),
            files: files.into_values().collect(),
        })
    }
}

impl MethodLines {
    /// Adds to each line the calls that are inlined there, and those that are not: `pattern` is
    /// that of [`MethodLines::new`].
    pub fn mark_calls(&mut self, profile: &Profile, pattern: &Pattern, decisions: &JitDecisions) {
        let mut calls = line_calls(profile, Some(pattern), decisions);
        for file in &mut self.files {
            file.calls = calls.remove(&file.file).into_iter().flatten().collect();
        }
    }
}

impl FileLines {
    fn at(&self, line: u32) -> Option<&Counts> {
        let at = self.lines.binary_search_by_key(&line, |line| line.line);
        at.ok().map(|at| &self.lines[at].counts)
    }
}

/// Returns the module that contains a frame's code.
pub fn module_of(frame: &Frame, timeline: &Timeline) -> Option<(ProcessIndex, ModuleIndex)> {
    match frame.code {
        Code::Body(process, body) => {
            let body = timeline.body_view(process, body)?;
            Some((process, body.module_index?))
        }
        Code::Precompiled(process, module) => Some((process, module)),
        _ => None,
    }
}

fn reason_names<S: Serializer>(reasons: &[LineReason], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(reasons.iter().map(|reason| reason.as_str()))
}

/// The text of a source file, if available, and its source or the reason why it is missing.
pub type Source = (Option<String>, String);

/// Lines of context before and after those that have samples.
const AROUND: u32 = 2;

/// Writes the lines that have samples, with context where the file's text was found.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_lines(
    profile: &Profile,
    lines: &MethodLines,
    mut source: impl FnMut(&FileLines) -> Source,
    options: TableOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(mut table) = Table::start(profile, options, out)? else {
        return Ok(());
    };
    table.head("", "line")?;
    let head = table.counts(&lines.counts);
    let blank = " ".repeat(head.len());
    table.methods(&head, &lines.methods)?;
    for file in &lines.files {
        let (text, said) = source(file);
        writeln!(table.out)?;
        table.text(&terminal(&format!("{}  ({said})", file.file)))?;
        let text: Vec<&str> = text.as_deref().unwrap_or_default().lines().collect();
        let mut next = 0;
        for line in shown(file, text.len()) {
            if next != 0 && line != next {
                writeln!(table.out, "{blank}    …")?;
            }
            next = line + 1;
            let counts = file.at(line);
            let cells = counts.map_or_else(|| blank.clone(), |counts| table.counts(counts));
            let share = counts.map_or(0.0, |counts| table.share_of(&counts.own));
            let text = text.get(line as usize - 1).copied().unwrap_or_default();
            let text = text.replace('\t', "    ");
            table.source(&cells, share, &format!("{line:>5} {}", text.trim_end()))?;
            for call in file.calls.iter().filter(|call| call.line == line) {
                table.source(&blank, share, &format!("      ^ {call}"))?;
            }
        }
    }
    if lines.without_line.total.samples > 0 {
        let cells = table.counts(&lines.without_line);
        writeln!(table.out, "\n{cells}  no line known")?;
        for &reason in &lines.line_reasons {
            let (what, help) = line_reason(reason);
            table.text(&format!("{what}: {help}"))?;
        }
    }
    Ok(())
}

/// Returns the lines that have samples and, as far as the file's text has lines, those around them.
fn shown(file: &FileLines, text_lines: usize) -> Vec<u32> {
    let text_lines = u32::try_from(text_lines).unwrap_or(u32::MAX);
    let mut shown: Vec<u32> = Vec::new();
    for line in file
        .lines
        .iter()
        .map(|line| line.line)
        .filter(|&line| line > 0)
    {
        let from = line.saturating_sub(AROUND).max(1).min(line);
        let to = line.saturating_add(AROUND).min(text_lines);
        let from = if line <= text_lines { from } else { line };
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
                    counts: Counts::default(),
                })
                .collect(),
            calls: Vec::new(),
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
