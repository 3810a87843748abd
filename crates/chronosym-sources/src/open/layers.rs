//! Diagnostics of archives and compression layers.

use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chronosym_core::DiagnosticKind::{Damage, Limit};
use chronosym_core::{Diagnostic, LimitReached};

/// Diagnostics of archives and compression layers, which are collected while their content is read,
/// perhaps on another thread.
#[derive(Clone, Debug, Default)]
pub struct LayerDiagnostics(Arc<Mutex<Vec<Diagnostic>>>);

impl LayerDiagnostics {
    pub(super) fn push(&self, diagnostic: Diagnostic) {
        self.list().push(diagnostic);
    }

    /// Reports that a limit was reached, beyond which data is skipped.
    pub(super) fn limit(&self, file: &str, limit: LimitReached) {
        let what = format!("{limit}; data beyond the limit is ignored");
        self.push(Diagnostic::of_file(Limit, file, what));
    }

    /// Reports that a file cannot be used, or not completely.
    pub(super) fn damage(&self, file: &str, what: impl Display) {
        self.push(Diagnostic::of_file(Damage, file, what));
    }

    /// Reports that a compression layer is damaged from some byte on; the data before is used.
    pub(super) fn damaged_from_here(&self, file: &str, error: impl Display) {
        let text = format!("{file} is damaged: {error}; reading the intact part");
        self.push(Diagnostic::new(Damage, text).about(file));
    }

    /// Takes the diagnostics so far.
    pub fn take(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.list())
    }

    fn list(&self) -> MutexGuard<'_, Vec<Diagnostic>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
