//! What is wrong with a recording: counted, and reported in words.

use std::fmt;

use chronosym_types::{Gap, GapCause, Gaps};

/// Something that is wrong with a recording. Everything that it does not concern was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// What it means for the answers.
    pub kind: DiagnosticKind,
    /// How often it happened, or how much was lost.
    pub count: u64,
    /// The file that it concerns, where it is one: a path or, in an archive, `x.zip (inside.etl)`.
    pub file: Option<String>,
    /// What happened, with the count and the file.
    pub text: String,
}

/// What a diagnostic means for the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DiagnosticKind {
    /// The recorder lost events: as many as the count states.
    LostEvents,
    /// The recorder lost something else: samples, buffers, an unknown number of events.
    Loss,
    /// The recording ends in the middle.
    CutShort,
    /// Parts of the recording cannot be read.
    Damage,
    /// A limit of this library was reached.
    Limit,
    /// Something was read, and could not be used.
    Unused,
}

impl Diagnostic {
    /// Something that happened once.
    pub fn new(kind: DiagnosticKind, text: impl Into<String>) -> Self {
        Diagnostic {
            kind,
            count: 1,
            file: None,
            text: text.into(),
        }
    }

    /// Something that happened several times: the number, and `what`.
    pub fn counted(kind: DiagnosticKind, count: u64, what: impl fmt::Display) -> Self {
        Diagnostic {
            count,
            ..Diagnostic::new(kind, format!("{count} {what}"))
        }
    }

    /// What happened at least once, of what is counted: how often, what it means, and what it is.
    pub fn of_counts(counts: &[(u64, DiagnosticKind, &str)]) -> impl Iterator<Item = Diagnostic> {
        let counts = counts.iter().filter(|(count, ..)| *count > 0);
        counts.map(|&(count, kind, what)| Diagnostic::counted(kind, count, what))
    }

    /// Something that concerns a file: `file: what`.
    pub fn of_file(kind: DiagnosticKind, file: impl Into<String>, what: impl fmt::Display) -> Self {
        let file = file.into();
        Diagnostic::new(kind, format!("{file}: {what}")).about(file)
    }

    /// The same, about a file that the text names.
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

/// Everything that is wrong with a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Those of archives and compression layers first, then in the order in which the files were read.
    pub list: Vec<Diagnostic>,
    /// Where parts of files could not be used, by file and offset; of each recording at most [`Gaps::MOST_LISTED`].
    pub gaps: Vec<FileGap>,
    /// Gaps that are counted and not listed.
    pub gaps_left_out: u64,
}

/// A part of a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct FileGap {
    /// The file; empty where the reader does not know its name.
    pub file: String,
    /// Where in it, and why.
    pub gap: Gap,
}

impl Diagnostics {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds what happened, as [`Diagnostic::of_counts`].
    pub fn add_counts(&mut self, counts: &[(u64, DiagnosticKind, &str)]) {
        self.list.extend(Diagnostic::of_counts(counts));
    }

    /// Adds the gaps of files that were read as one; [`name_files`](Self::name_files) names them.
    pub fn add_gaps(&mut self, gaps: &Gaps) {
        self.list.extend(of_gaps(gaps));
        let mut listed: Vec<Gap> = gaps.listed().to_vec();
        // Readers find some of them when their records are due.
        listed.sort_unstable();
        self.gaps.extend(listed.into_iter().map(|gap| FileGap {
            file: String::new(),
            gap,
        }));
        self.gaps_left_out += gaps.total().count - gaps.listed().len() as u64;
    }

    /// Names the files of the gaps: of a recording that was read from these, in this order.
    pub fn name_files(&mut self, files: &[String]) {
        for FileGap { file, gap } in &mut self.gaps {
            let name = files.get(gap.file as usize);
            *file = name.cloned().unwrap_or_default();
        }
    }

    /// Adds those of another recording.
    pub fn append(&mut self, mut other: Diagnostics) {
        self.list.append(&mut other.list);
        self.gaps.append(&mut other.gaps);
        self.gaps_left_out += other.gaps_left_out;
    }

    /// Events that recorders state to have lost.
    pub fn lost_events(&self) -> u64 {
        let lost = self.of(DiagnosticKind::LostEvents);
        lost.fold(0, |sum, diagnostic| sum.saturating_add(diagnostic.count))
    }

    /// Whether a recording ends in the middle.
    pub fn is_cut_short(&self) -> bool {
        self.of(DiagnosticKind::CutShort).next().is_some()
    }

    /// Whether parts of a recording cannot be read.
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
    // The offset of one that is not listed is unknown.
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
