//! The input of a report in addition to its samples.

use std::collections::{BTreeMap, BTreeSet};

use chronosym_core::{Diagnostic, Limits, Profile};
use chronosym_runtime::JitDecisions;
use serde::Serialize;

use crate::header::describe;
use crate::line_calls::{LineCall, line_calls};

/// Facts about a trace in a report, and the limits of the report.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReportFacts {
    /// The name of the trace.
    pub name: String,
    /// Description of the samples, in lines.
    pub summary: Vec<String>,
    /// Diagnostics of the trace.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the report starts with raw frames: plumbing of async methods is shown, and the time
    /// of the runtime's helpers is not charged to their callers.
    pub raw: bool,
    /// The maximum number of samples. Beyond it, samples of one thread with equal stacks are merged
    /// in slices of up to a thousandth of the time; if too many remain, some of the samples of each
    /// thread are kept with the weight of all. The default is [`Limits::report_samples`].
    pub max_samples: usize,
    /// The maximum number of distinct stacks with their callers; the default is
    /// [`Limits::REPORT_NODES`].
    pub max_nodes: u32,
    /// By source file, calls that the JIT inlined or rejected.
    pub calls: BTreeMap<String, BTreeSet<LineCall>>,
}

impl ReportFacts {
    /// Returns the facts of a trace by name.
    pub fn new(name: impl Into<String>, profile: &Profile, diagnostics: Vec<Diagnostic>) -> Self {
        let limits = Limits::default();
        ReportFacts {
            name: name.into(),
            summary: describe(profile).lines().map(str::to_owned).collect(),
            diagnostics,
            raw: false,
            max_samples: limits.report_samples,
            max_nodes: Limits::REPORT_NODES,
            calls: BTreeMap::new(),
        }
    }

    /// Sets the calls of the methods on the stacks of a profile.
    pub fn mark_calls(&mut self, profile: &Profile, decisions: &JitDecisions) {
        self.calls = line_calls(profile, None, decisions);
    }
}

/// The text of a file, and its source.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ReportSource {
    /// The text.
    pub text: String,
    /// The location of the text.
    pub from: String,
}

impl ReportSource {
    /// Creates a text with its location.
    pub fn new(text: impl Into<String>, from: impl Into<String>) -> Self {
        let (text, from) = (text.into(), from.into());
        ReportSource { text, from }
    }
}
