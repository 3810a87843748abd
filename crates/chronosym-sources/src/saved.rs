//! Reads saved timelines, and deltas of live sessions, in place of a trace.

use std::io::Read;

use chronosym_core::{
    DeltaReader, Diagnostic, DiagnosticKind, Diagnostics, RecordingId, SavedTimeline, Session,
};

use crate::error::ReadError;
use crate::stream::{EventStream, StreamEvent};

/// A saved timeline, or the deltas of a live session. It has no events, but all data that a session
/// derives from them.
pub struct SavedStream<R> {
    source: R,
    diagnostics: Diagnostics,
}

impl<R: Read> SavedStream<R> {
    /// Creates a stream of the bytes of a saved timeline.
    pub fn new(source: R) -> Self {
        SavedStream {
            source,
            diagnostics: Diagnostics::default(),
        }
    }
}

impl<R: Read> EventStream for SavedStream<R> {
    fn next_event(&mut self) -> Result<Option<StreamEvent<'_>>, ReadError> {
        Err(ReadError::NoEvents)
    }

    fn diagnostics(&self) -> Diagnostics {
        self.diagnostics.clone()
    }

    fn read_batch(&mut self, session: &mut Session) -> Result<Option<u64>, ReadError> {
        let mut bytes = Vec::new();
        let read = self.source.read_to_end(&mut bytes);
        read.map_err(|error| ReadError::Other(error.into()))?;
        if bytes.is_empty() {
            return Ok(None);
        }
        session.admit(RecordingId::Whole)?;
        if DeltaReader::is_delta(&bytes) {
            let read = DeltaReader::new().read(&bytes, session)?;
            if read < bytes.len() {
                let text = format!("the file ends in the middle of a delta, at byte {read}");
                let cut_short = Diagnostic::new(DiagnosticKind::CutShort, text);
                self.diagnostics.push(cut_short);
            }
            session.facts().lacks_samples = true;
            session.facts().lacks_events = true;
            return Ok(Some(u64::MAX));
        }
        let saved = SavedTimeline::open(&bytes)?;
        self.diagnostics = saved.read_into(session)?;
        session.facts().lacks_events = true;
        Ok(Some(u64::MAX))
    }
}
