//! What is exported.

use std::sync::Arc;

use chronosym_core::{Diagnostic, Filter, Host, SymbolSource, Timeline};

/// A recording to export.
#[derive(Clone)]
#[non_exhaustive]
pub struct Trace<'a> {
    /// Identifies the recording in all tables: its path or key in a store.
    pub name: &'a str,
    /// What was read.
    pub timeline: &'a Arc<Timeline>,
    /// Names and lines beyond the trace.
    pub symbols: Option<Arc<dyn SymbolSource>>,
    /// Selects samples, processes and modules.
    pub filter: Filter,
    /// Defects of the recording.
    pub diagnostics: &'a [Diagnostic],
    /// The machine, if the recording does not state it.
    pub host: Option<Host>,
}

impl<'a> Trace<'a> {
    /// Creates a recording with the default filter, and without symbols and diagnostics.
    pub fn new(name: &'a str, timeline: &'a Arc<Timeline>) -> Self {
        Trace {
            name,
            timeline,
            symbols: None,
            filter: Filter::default(),
            diagnostics: &[],
            host: None,
        }
    }
}
