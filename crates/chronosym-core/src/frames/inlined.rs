//! Frames of inlinees (rule 17).

use std::sync::Arc;

use super::body::unnamed_token;
use super::{FrameBuilder, Method};
use crate::evidence::{Certainty, NameReason};
use crate::frame::{Code, Frame};
use crate::functions::Function;
use crate::ids::BodyIndex;
use crate::il_map::{IlOffset, IlSource};
use crate::resolve::{AddressAt, Location};

impl<'a> FrameBuilder<'a> {
    /// Appends the frames of the inlinees at an address of a body. Returns the IL offset of the
    /// method itself: its own map's, or that of the inlined call.
    pub(super) fn inlined_frames(
        &mut self,
        at: AddressAt,
        index: BodyIndex,
        location: &Location,
        own: Option<IlOffset>,
        out: &mut Vec<Frame>,
    ) -> Option<IlOffset> {
        let timeline = self.timeline;
        let code = &timeline.spaces[at.process.index()].state.code;
        let body = &code.bodies[index.index()];
        let native = (location.looked_up - body.start) as u32;
        let calls_are_valid = timeline.call_offsets_are_valid(at.process, body.clr_instance);
        let chain = body
            .inline_tree()
            .map(|tree| tree.chain(native, calls_are_valid));
        let first = out.len();
        for inlined in chain.unwrap_or_default() {
            let (function, method, reused) = if inlined.is_root {
                let module = body.module.map(|m| timeline.module_of(at.process, m));
                (None, module.map(|module| (module, body.token)), false)
            } else {
                let (clr_instance, compiled) = (body.clr_instance, body.first_seen());
                let (function, method, reused) =
                    self.inlined_function(at, clr_instance, inlined.method_id, compiled);
                (Some(function), method, reused)
            };
            let (mut call, mut approximate) = (inlined.il_offset, inlined.approximate);
            // Rule 17: a call confirmed by the IL is not a guess.
            if approximate
                && let (Some(symbols), Some((module, token))) = (self.symbols, &method)
                && let Some(callee) = out[first..].last().map(|child| &child.function)
                && let Some(callee) = callee.compiled_as().or(callee.name())
                && let Some(at) = symbols.call_site(module, *token, inlined.stated, callee)
            {
                (call, approximate) = (Some(at), false);
            }
            let il = call.map(IlOffset::mapped);
            let Some(function) = function else {
                // The body's own map comes first; inside inlined code, without an entry of its own,
                // the call's offset does.
                let is_mapped = own.is_some_and(|own| own.source != IlSource::Nearest);
                let is_call = !is_mapped && (own.is_none() || !approximate);
                return il.filter(|_| is_call).or(own);
            };
            out.push(Frame {
                code: Code::Body(at.process, index),
                offset: Some(self.distance(at.address, body.start)),
                token: unnamed_token(&function, method.as_ref()),
                il_offset: il,
                line: self.managed_line(&function, method.as_ref(), il),
                inlined: true,
                evidence: body.evidence.strongest(),
                certainty: Some(match reused {
                    true if location.certainty == Certainty::Exact && !approximate => {
                        Certainty::Inferred
                    }
                    _ => location.certainty.or_guess(approximate),
                }),
                after_loss: location.after_loss || reused,
                ..Frame::bare(at.address, function, NameReason::NoName)
            });
        }
        own
    }

    /// Returns the function of a method id: named by one of its bodies, or by `MethodDetails`. The
    /// last value is whether lost events may have reused the id before `compiled`, when the body
    /// that contains it was compiled.
    pub(super) fn inlined_function(
        &mut self,
        at: AddressAt,
        clr_instance: u16,
        method_id: u64,
        compiled: u64,
    ) -> (Arc<Function>, Option<Method<'a>>, bool) {
        let timeline = self.timeline;
        let state = &timeline.spaces[at.process.index()].state;
        let reused = |first: u64, last: u64| match first <= compiled {
            true => timeline.lost_between(at.process, last, compiled),
            false => timeline.lost_between(at.process, compiled, first),
        };
        // Method ids are reused: use the last body that was loaded before the one with the tree, or
        // else the first after it.
        let stated = |b: &BodyIndex| state.code.bodies[b.index()].first_seen() <= compiled;
        let bodies = || state.code.by_method.of((clr_instance, method_id));
        if let Some(index) = bodies().rev().find(stated).or_else(|| bodies().next()) {
            let body = &state.code.bodies[index.index()];
            let binary = body.module.and_then(|m| self.module_binary(at.process, m));
            let function = self.method_function(at, body, binary.as_ref());
            let module = body.module.map(|m| timeline.module_of(at.process, m));
            let method = module.map(|module| (module, body.token));
            return (function, method, reused(body.first_seen(), body.confirmed));
        }
        let module = state
            .clr
            .details(method_id, compiled)
            .and_then(|(time, details)| {
                let module = state.code.module(clr_instance, details.loader_module_id)?;
                Some((time, details, module))
            });
        let Some((time, details, index)) = module else {
            return (self.functions.unnamed(None, None, at.address), None, false);
        };
        let function = self.token_function(at, index, details.token, Some(details.type_id));
        let module = timeline.module_of(at.process, index);
        (function, Some((module, details.token)), reused(time, time))
    }
}
