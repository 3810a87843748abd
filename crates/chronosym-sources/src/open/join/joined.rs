//! The state of joining recordings.

use std::sync::Arc;

use chronosym_perf::TimeConversion;

use crate::open::clocks::{Clock, Offset};
use crate::open::companions::Beside;
use crate::open::format::Format;
use crate::open::meter::Meter;
use crate::perf::Outcome;
use chronosym_core::unwind::ImageFiles;
use chronosym_core::{Diagnostic, DiagnosticKind, Diagnostics, JoinedRecording, Session};

/// The recordings being joined, and what is known so far.
pub(super) struct Join<'a> {
    pub session: &'a mut Session,
    pub meter: &'a Meter,
    /// The format of the result.
    pub format: Format,
    pub diagnostics: Diagnostics,
    pub beside: Beside,
    /// The clock to which all others are converted, with the name of its recording.
    pub reference: Option<(String, Clock)>,
    pub files: Option<Arc<dyn ImageFiles>>,
    /// The reference clock's time at the session's time 0, in ns.
    pub began_ns: i128,
    /// Offset of the runtimes' clock to the reference.
    pub of_runtimes: Option<Offset>,
    pub cycles: Option<TimeConversion>,
    pub perf: Outcome,
    /// For each recording of a runtime its process, and the time until which it is complete unless
    /// events were lost.
    pub complete: Vec<(u32, Option<u64>)>,
}

impl Join<'_> {
    pub(super) fn came_from(&mut self, recording: JoinedRecording) {
        self.session.facts().recordings.push(recording);
    }

    pub(super) fn cannot_read(&mut self, name: String, error: &str) {
        let damage = Diagnostic::of_file(DiagnosticKind::Damage, name, error);
        self.diagnostics.push(damage);
    }

    /// Confirms the code of processes of which no runtime's recording lost an event.
    pub(super) fn confirm_code(&mut self) {
        for (pid, until) in &self.complete {
            let is_own = |&&(of, _): &&(u32, _)| of == *pid;
            let mut all = self.complete.iter().filter(is_own);
            if let Some(until) = until.filter(|_| all.all(|(_, until)| until.is_some())) {
                self.session.confirm_code(*pid, until);
            }
        }
    }

    /// Adds diagnostics of a file.
    pub(super) fn found_in(&mut self, name: &str, mut diagnostics: Diagnostics) {
        diagnostics.name_files(&[name.to_owned()]);
        self.diagnostics.append(diagnostics);
    }
}
