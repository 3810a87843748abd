//! Frames of methods that may be inlined at an address, which no inline tree states.

use super::FrameBuilder;
use crate::evidence::{Certainty, LineReason, NameReason};
use crate::frame::{Code, Frame};
use crate::ids::ModuleIndex;

impl FrameBuilder<'_> {
    /// Returns the frame of a method that may be inlined into another one at its address.
    pub(crate) fn candidate_inlinee(
        &mut self,
        into: &Frame,
        name: &str,
        module: Option<ModuleIndex>,
    ) -> Frame {
        let binary = match into.code {
            Code::Body(process, _) => module.and_then(|m| self.module_binary(process, m)),
            _ => None,
        };
        let function = self.managed_function(binary.as_ref(), name, None);
        Frame {
            code: into.code,
            offset: into.offset,
            line: Err(LineReason::NoILMap),
            inlined: true,
            evidence: into.evidence,
            certainty: Some(Certainty::Approximate),
            after_loss: into.after_loss,
            ..Frame::bare(into.address, function, NameReason::NoName)
        }
    }
}
