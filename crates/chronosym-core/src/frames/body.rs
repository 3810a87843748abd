//! Frames of code bodies.

use std::sync::Arc;

use super::{FrameBuilder, Method};
use crate::body::CodeBody;
use crate::evidence::{LineReason, NameReason};
use crate::frame::{Code, Frame};
use crate::functions::{Binary, Function};
use crate::ids::{BodyIndex, ModuleIndex, NameId};
use crate::names::is_cut;
use crate::resolve::{AddressAt, Location};
use crate::source_line::SourceLine;

impl FrameBuilder<'_> {
    /// Appends the frames of a body: the inlinees at the address, then its method.
    pub(super) fn body_frames(
        &mut self,
        at: AddressAt,
        index: BodyIndex,
        location: &Location,
        out: &mut Vec<Frame>,
    ) {
        let timeline = self.timeline;
        let process = at.process;
        let code = &timeline.spaces[process.index()].state.code;
        let body = &code.bodies[index.index()];
        // The looked-up address is inside the body, so this is below 4 GiB.
        let native = (location.looked_up - body.start) as u32;
        let module = body.module.map(|m| timeline.module_of(process, m));
        let own_il = body.il_map.as_ref().and_then(|map| map.lookup(native));
        let mut il = self.inlined_frames(at, index, location, own_il, out);

        let mut no_map = LineReason::NoILMap;
        if il.is_none()
            && !body.flags.is_jitted()
            && let (Some(module), Some(symbols)) = (&module, self.symbols)
        {
            let code = symbols.precompiled(module, location.looked_up);
            il = code.and_then(|code| code.il);
            if il.is_none()
                && let Err(reason) = symbols.precompiled_range(module)
            {
                no_map = reason;
            }
        }
        let binary = body.module.and_then(|m| self.module_binary(process, m));
        let function = self.body_function(at, body, binary.as_ref());
        let method = module.map(|module| (module, body.token));
        let wants_lines = self.symbols.is_none_or(|symbols| symbols.wants_lines());
        let line = match self.managed_line(&function, method.as_ref(), il) {
            Err(_) if body.lines().is_some() && !wants_lines => Err(LineReason::LinesDisabled),
            Err(reason) if body.lines().is_some() => {
                match timeline.stated_line(process, index, native) {
                    Some((file, line)) => Ok(self.functions.line(SourceLine {
                        file: file.into(),
                        line,
                        column: None,
                    })),
                    None => Err(reason),
                }
            }
            Err(LineReason::NoILMap) => Err(no_map),
            line => line,
        };
        let parts = timeline.names.get(body.name).unwrap_or_default();
        let is_cut = [parts.namespace, parts.name].map(|part| is_cut(self.text(part)));
        let reason = match is_cut.contains(&true) {
            true => NameReason::LimitReached,
            false => NameReason::NoName,
        };
        out.push(Frame {
            code: Code::Body(process, index),
            offset: Some(self.distance(at.address, body.start)),
            token: unnamed_token(&function, method.as_ref()),
            il_offset: il,
            line,
            tier: timeline.tier(process, body),
            evidence: body.evidence.strongest(),
            certainty: Some(location.certainty),
            after_loss: location.after_loss,
            ..Frame::bare(at.address, function, reason)
        });
    }

    /// Returns the function of a body; a stub with a single target is named after it (rule 16).
    fn body_function(
        &mut self,
        at: AddressAt,
        body: &CodeBody,
        binary: Option<&Arc<Binary>>,
    ) -> Arc<Function> {
        let timeline = self.timeline;
        let code = &timeline.spaces[at.process.index()].state.code;
        let named = self.method_function(at, body, binary);
        let targets = body.stub().and_then(|stub| code.stubs.get(stub as usize));
        let targets = targets.map(Vec::as_slice);
        let (Some([target]), Some(name)) = (targets, timeline.names.get(body.name)) else {
            return named;
        };
        let mut name = self.text(name.name).to_owned();
        name.push_str(" \u{2192} ");
        match timeline.names.push_full(*target, &mut name) {
            true => self.managed_function(binary, &name, self.signature(body.name)),
            false => self.functions.unnamed(binary, None, at.address),
        }
    }

    /// Returns the function of a body's method, by its name or, after an event without names, by
    /// its token.
    pub(super) fn method_function(
        &mut self,
        at: AddressAt,
        body: &CodeBody,
        binary: Option<&Arc<Binary>>,
    ) -> Arc<Function> {
        match body.module {
            Some(module) if body.name == NameId::NONE && is_method(body.token) => {
                let state = &self.timeline.spaces[at.process.index()].state;
                let details = state.clr.details(body.method_id, at.time);
                // A reused id has another token.
                let details = details.filter(|(_, details)| details.token == body.token);
                let type_id = details.map(|(_, details)| details.type_id);
                self.token_function(at, module, body.token, type_id)
            }
            _ => self.timeline_function(binary, body.name, at.address),
        }
    }

    /// Returns the function of a token: named by the metadata of its module or, if that is not
    /// available, `module!0x06000001`.
    pub(super) fn token_function(
        &mut self,
        at: AddressAt,
        index: ModuleIndex,
        token: u32,
        type_id: Option<u64>,
    ) -> Arc<Function> {
        let timeline = self.timeline;
        let binary = self.module_binary(at.process, index);
        let module = timeline.module_of(at.process, index);
        let clr = &timeline.spaces[at.process.index()].state.clr;
        let type_name = type_id.and_then(|id| clr.type_name(id));
        let type_name = type_name.map(|id| self.text(id)).filter(|t| !t.is_empty());
        let name = self.symbols.and_then(|s| s.method_name(&module, token));
        match name {
            Some((owner, method)) => {
                let name = match type_name.unwrap_or(&owner) {
                    "" => method,
                    owner => format!("{owner}.{method}"),
                };
                self.managed_function(binary.as_ref(), &name, None)
            }
            None => match &binary {
                Some(binary) if is_method(token) => self.functions.of_token(binary, token),
                _ => self.functions.unnamed(binary.as_ref(), None, at.address),
            },
        }
    }
}

/// Returns the token of a method, if the function has no name.
pub(super) fn unnamed_token(function: &Function, method: Option<&Method<'_>>) -> Option<u32> {
    let token = method
        .map(|(_, token)| *token)
        .filter(|&token| is_method(token));
    token.filter(|_| function.name().is_none())
}

/// Returns whether a token has a row of the MethodDef table (ECMA-335 II.22.26).
fn is_method(token: u32) -> bool {
    token >> 24 == 6 && token & 0xff_ffff != 0
}
