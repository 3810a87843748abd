//! Diagnostics: defects of a recording, counted and reported.

use std::fmt;

use chronosym_types::{Gap, GapCause, Gaps};

/// A defect of a recording. Everything that it does not affect was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// Effect on the answers.
    pub kind: DiagnosticKind,
    /// Number of occurrences, or the amount lost.
    pub count: u64,
    /// The file affected, if it is one: a path or, in an archive, `x.zip (inside.etl)`.
    pub file: Option<String>,
    /// What happened, with the count and the file.
    pub text: String,
}

/// Effect of a defect on the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The recorder lost `count` events.
    LostEvents,
    /// The recorder lost samples, buffers or an unknown number of events.
    Loss,
    /// The recording is truncated.
    CutShort,
    /// Parts of the recording cannot be read.
    Damage,
    /// A limit of this library was reached.
    Limit,
    /// Data was read but could not be used.
    Unused,
}

impl Diagnostic {
    /// Creates a diagnostic that occurred once.
    pub fn new(kind: DiagnosticKind, text: impl Into<String>) -> Self {
        Diagnostic {
            kind,
            count: 1,
            file: None,
            text: text.into(),
        }
    }

    /// Creates a diagnostic that occurred `count` times; the text is the number and `what`.
    pub fn counted(kind: DiagnosticKind, count: u64, what: impl fmt::Display) -> Self {
        Diagnostic {
            count,
            ..Diagnostic::new(kind, format!("{count} {what}"))
        }
    }

    /// Creates a diagnostic for each non-zero count of (count, kind, text).
    pub fn of_counts(counts: &[(u64, DiagnosticKind, &str)]) -> impl Iterator<Item = Diagnostic> {
        let counts = counts.iter().filter(|(count, ..)| *count > 0);
        counts.map(|&(count, kind, what)| Diagnostic::counted(kind, count, what))
    }

    /// Creates a diagnostic about a file; the text is `file: what`.
    pub fn of_file(kind: DiagnosticKind, file: impl Into<String>, what: impl fmt::Display) -> Self {
        let file = file.into();
        Diagnostic::new(kind, format!("{file}: {what}")).about(file)
    }

    /// Sets the file that the text names.
    #[must_use]
    pub fn about(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// All defects of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Those of archives and compression layers first, then in the order in which files were read.
    pub list: Vec<Diagnostic>,
    /// Unusable ranges by file and offset; at most [`Gaps::MOST_LISTED`] for each recording.
    pub gaps: Vec<FileGap>,
    /// Number of gaps that are not listed.
    pub gaps_left_out: u64,
}

/// A range of a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct FileGap {
    /// The file; empty if the reader does not know its name.
    pub file: String,
    /// Offset, length and cause.
    pub gap: Gap,
}

impl Diagnostics {
    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds diagnostics for counts; see [`Diagnostic::of_counts`].
    pub fn add_counts(&mut self, counts: &[(u64, DiagnosticKind, &str)]) {
        self.list.extend(Diagnostic::of_counts(counts));
    }

    /// Adds the gaps of files that were read as one; [`name_files`](Self::name_files) names the
    /// files.
    pub fn add_gaps(&mut self, gaps: &Gaps) {
        self.list.extend(of_gaps(gaps));
        let mut listed: Vec<Gap> = gaps.listed().to_vec();
        // Readers find some gaps only when the records around them are due.
        listed.sort_unstable();
        self.gaps.extend(listed.into_iter().map(|gap| FileGap {
            file: String::new(),
            gap,
        }));
        self.gaps_left_out += gaps.total().count - gaps.listed().len() as u64;
    }

    /// Sets the file names of the gaps of a recording that was read from `files`, in this order.
    pub fn name_files(&mut self, files: &[String]) {
        for FileGap { file, gap } in &mut self.gaps {
            let name = files.get(gap.file as usize);
            *file = name.cloned().unwrap_or_default();
        }
    }

    /// Adds the diagnostics of another recording.
    pub fn append(&mut self, mut other: Diagnostics) {
        self.list.append(&mut other.list);
        self.gaps.append(&mut other.gaps);
        self.gaps_left_out += other.gaps_left_out;
    }

    /// Number of events that recorders report as lost.
    pub fn lost_events(&self) -> u64 {
        let lost = self.of(DiagnosticKind::LostEvents);
        lost.fold(0, |sum, diagnostic| sum.saturating_add(diagnostic.count))
    }

    /// Returns whether the recording is truncated.
    pub fn is_cut_short(&self) -> bool {
        self.of(DiagnosticKind::CutShort).next().is_some()
    }

    /// Returns whether parts of the recording are unreadable.
    pub fn is_damaged(&self) -> bool {
        self.is_cut_short() || self.of(DiagnosticKind::Damage).next().is_some()
    }

    fn of(&self, kind: DiagnosticKind) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter().filter(move |it| it.kind == kind)
    }
}

fn of_gaps(gaps: &Gaps) -> impl Iterator<Item = Diagnostic> {
    let cut = gaps.listed().iter().rev();
    let cut = cut.clone().find(|gap| gap.cause == GapCause::CutShort);
    let of_cut = cut.map(|gap| {
        let text = format!(
            "the trace is cut short at byte {}: {} bytes of an unfinished part were dropped, all before them is used",
            gap.offset, gap.length
        );
        Diagnostic::new(DiagnosticKind::CutShort, text)
    });
    // The offset of a gap that is not listed is unknown.
    let is_listed = of_cut.is_some();
    let others = GapCause::ALL.into_iter().filter_map(move |cause| {
        let total = gaps.of(cause);
        let is_cut = cause == GapCause::CutShort;
        let (parts, were) = match total.count {
            0 => return None,
            _ if is_cut && is_listed => return None,
            1 => ("part", "was"),
            _ => ("parts", "were"),
        };
        let kind = match is_cut {
            true => DiagnosticKind::CutShort,
            false => DiagnosticKind::Damage,
        };
        let what = format!("{parts} of {} bytes {were} left out: {cause}", total.bytes);
        Some(Diagnostic::counted(kind, total.count, what))
    });
    of_cut.into_iter().chain(others)
}
