//! Frames of precompiled code without events, in images whose bases follow from other methods.

use std::ops::Range;

use chronosym_timeline::End;

use super::FrameBuilder;
use crate::evidence::{Certainty, NameReason};
use crate::frame::{Code, Frame};
use crate::ids::ModuleIndex;
use crate::lifetime::floor;
use crate::resolve::{AddressAt, CodeAt, Location};
use crate::terms::Position;

impl FrameBuilder<'_> {
    /// Returns the frame of a precompiled method with the lifetime of its module, if no body with
    /// known bounds covers the address, but the image's method table does.
    pub(super) fn precompiled_frame(
        &mut self,
        at: AddressAt,
        location: &Location,
    ) -> Option<(Frame, Range<u64>)> {
        let symbols = self.symbols?;
        let timeline = self.timeline;
        let code = &timeline.space(at.process)?.state.code;
        let guessed = match location.code {
            CodeAt::Body(body) => {
                let body = &code.bodies[body.index()];
                Some(body.start).filter(|_| body.approximate)
            }
            _ => None,
        };
        if guessed.is_none()
            && !matches!(location.code, CodeAt::Nothing(_) | CodeAt::Untimed { .. })
        {
            return None;
        }
        let back = u64::from(at.position == Position::Return);
        let looked_up = timeline.normalise(at.address).checked_sub(back)?;
        for (index, module) in code.modules.indexed() {
            let from = floor(module.loaded);
            let to = match module.end {
                End::At(at) => at,
                End::After(_) | End::Open => u64::MAX,
            };
            if !(from..to).contains(&at.time) {
                continue;
            }
            let index = ModuleIndex(index as u32);
            let range = self.functions.precompiled_range(at.process, index, || {
                let module = timeline.module_of(at.process, index);
                symbols.precompiled_range(&module).unwrap_or_default()
            });
            if !range.contains(&looked_up) {
                continue;
            }
            let module_ref = timeline.module_of(at.process, index);
            let Some(code) = symbols.precompiled(&module_ref, looked_up) else {
                continue;
            };
            let offset = u64::from(code.offset) + back;
            if guessed.is_some_and(|start| at.address.checked_sub(start) == Some(offset)) {
                return None;
            }
            let binary = self.module_binary(at.process, index);
            let function = match &code.name {
                Some(name) => {
                    self.managed_function(binary.as_ref(), name, code.signature.as_deref())
                }
                None => self.functions.unnamed(binary.as_ref(), None, at.address),
            };
            let method = code.token.map(|token| (module_ref, token));
            let frame = Frame {
                code: Code::Precompiled(at.process, index),
                offset: Some(offset),
                il_offset: code.il,
                line: self.managed_line(&function, method.as_ref(), code.il),
                tier: Some(timeline.precompiled_tier(at.process, module.clr_instance)),
                evidence: Some(code.evidence),
                certainty: Some(Certainty::Inferred),
                ..Frame::bare(at.address, function, NameReason::NoName)
            };
            return Some((frame, from..to));
        }
        None
    }
}
