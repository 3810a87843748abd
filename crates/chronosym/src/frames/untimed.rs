//! Frames of symbols that have no time (rule 18).

use super::FrameBuilder;
use crate::evidence::{Certainty, LineReason, NameReason};
use crate::frame::{Code, Frame};
use crate::functions::BinarySource;
use crate::resolve::AddressAt;

impl FrameBuilder<'_> {
    pub(super) fn untimed_frame(&mut self, at: AddressAt, row: usize, looked_up: u64) -> Frame {
        let space = &self.timeline.spaces[at.process.index()];
        let rows = &space.state.untimed.rows;
        let symbol = &rows[row];
        let module = self.text(symbol.module);
        let source = BinarySource::Name(symbol.module);
        let binary = self.functions.binary(source, || (module, "", None));
        let function = self
            .timeline_function(binary.as_ref(), symbol.name)
            .unwrap_or_else(|| self.functions.unnamed(binary.as_ref(), None, at.address));
        // Which of several names was right at the time, nothing says.
        let others = space.untimed.occupants(looked_up);
        let is_contested = others
            .iter()
            .any(|(id, _)| rows[id.index()].name != symbol.name);
        Frame {
            code: Code::Untimed(at.process, row as u32),
            offset: Some(self.distance(at.address, symbol.start)),
            line: Err(LineReason::NoILMap),
            tier: symbol.tier,
            evidence: Some(symbol.evidence),
            certainty: Some(if is_contested {
                Certainty::Approximate
            } else {
                Certainty::Inferred
            }),
            ..Frame::bare(at.address, function, NameReason::NoName)
        }
    }
}
