//! The second step: what stands at an address → frames, with names, IL offsets, inlined methods and lines.

use std::ops::Range;
use std::sync::Arc;

use chronosym_timeline::End;

use crate::body::{BodyIndex, CodeBody, ModuleIndex, PdbId};
use crate::evidence::{Certainty, Evidence, LineReason, NameReason};
use crate::frame::{Frame, Position};
use crate::il_map::{IlOffset, IlSource};
use crate::images::ImageIndex;
use crate::names::NameId;
use crate::process::ProcessIndex;
use crate::resolve::{Found, Location};
use crate::strings::StringId;
use crate::symbol_source::{ImageRef, ModuleCode, ModuleRef, PartRef, SnapshotKey, SymbolSource};
use crate::timeline::Timeline;

/// The frames of one address: innermost inlined first, the method itself last.
#[derive(Clone, Debug)]
pub(crate) struct Expansion {
    pub frames: Vec<Frame>,
    pub valid: Range<u64>,
}

impl Timeline {
    /// The frames at an address of a process, at a time.
    ///
    /// `time_ns` is counted from the begin of the trace. Frames come innermost first: those that are inlined, then the
    /// method which they are inlined into. Nothing is ever left out: an address without a name is a frame with a reason.
    pub fn frames(
        &self,
        process: ProcessIndex,
        address: u64,
        time_ns: u64,
        position: Position,
        symbols: Option<&dyn SymbolSource>,
    ) -> Vec<Frame> {
        self.expand(process, address, time_ns, position, symbols)
            .frames
    }

    pub(crate) fn expand(
        &self,
        process: ProcessIndex,
        address: u64,
        time: u64,
        position: Position,
        symbols: Option<&dyn SymbolSource>,
    ) -> Expansion {
        let mut expansion = self.expand_raw(process, address, time, position, symbols);
        let Some(symbols) = symbols else {
            return expansion;
        };
        for frame in &mut expansion.frames {
            // Names of native code are their authors' own, however odd.
            if let Some(name) = &frame.name
                && frame.evidence != Some(Evidence::Image)
                && name.contains(['<', '@', '$'])
                && let Some(shown) = symbols.display_name(name)
            {
                frame.name = Some(shown.into());
            }
        }
        expansion
    }

    fn expand_raw(
        &self,
        process: ProcessIndex,
        address: u64,
        time: u64,
        position: Position,
        symbols: Option<&dyn SymbolSource>,
    ) -> Expansion {
        let location = self.locate(process, address, time, position);
        // Where no body has known bounds, a precompiled image's own table does.
        let guessed = match location.found {
            Found::Body(body) => {
                Some(self.spaces[process.index()].body(body)).filter(|body| body.approximate)
            }
            _ => None,
        };
        if (guessed.is_some() || matches!(location.found, Found::Nothing(_) | Found::Untimed(_)))
            && let Some(symbols) = symbols
            && let Some((frame, life)) =
                self.precompiled_frame(process, address, time, position, symbols)
            && guessed.is_none_or(|body| frame.offset != address.checked_sub(body.start))
        {
            let valid = location.valid.start.max(life.start)..location.valid.end.min(life.end);
            let frames = vec![frame];
            return Expansion { frames, valid };
        }
        let frames = match location.found {
            Found::Body(body) => self.body_frames(process, address, time, body, &location, symbols),
            Found::Untimed(row) => vec![self.untimed_frame(process, address, row)],
            Found::Image(owner, image) => {
                self.image_frames(owner, address, image, &location, symbols)
            }
            Found::Nothing(reason) => vec![Frame::unnamed(address, reason)],
        };
        Expansion {
            frames,
            valid: location.valid,
        }
    }

    fn text(&self, id: StringId) -> Option<Arc<str>> {
        Some(self.names.strings.get(id))
            .filter(|t| !t.is_empty())
            .map(Arc::from)
    }

    fn full_name(&self, id: NameId) -> Option<Arc<str>> {
        let mut text = String::new();
        (self.names.push_full(id, &mut text) && !text.is_empty()).then(|| text.into())
    }

    /// The name of a body; a stub is named after what it serves, if that is one method (rule 16).
    fn body_name(&self, process: ProcessIndex, body: &CodeBody) -> Option<Arc<str>> {
        let code = &self.spaces[process.index()].state.code;
        let name = self.full_name(body.name)?;
        match body.stub.map(|s| code.stubs[s as usize].targets.as_slice()) {
            Some([target]) => {
                let stub = self
                    .names
                    .get(body.name)
                    .map_or("", |n| self.names.strings.get(n.name));
                self.full_name(*target)
                    .map(|target| format!("{stub} \u{2192} {target}").into())
            }
            _ => Some(name),
        }
    }

    /// A module, as a symbol source needs to know it.
    pub fn module_ref(&self, process: ProcessIndex, module: ModuleIndex) -> ModuleRef<'_> {
        let state = &self.spaces[process.index()].state;
        let m = &state.code.modules[module.index()];
        ModuleRef {
            native_path: self.names.strings.get(m.native_path),
            managed_pdb: m.managed_pdb.as_ref(),
            native_pdb: m.native_pdb.as_ref(),
            in_memory_pdb: state.clr.in_memory_pdb(m.clr_instance, m.module_id),
            machine: self.facts.machine.as_deref(),
            code: Some(ModuleCode {
                key: self.key_of(process, module.0),
                names: &self.names,
                code: &state.code,
            }),
            ..ModuleRef::new(self.names.strings.get(m.il_path))
        }
    }

    fn key_of(&self, process: ProcessIndex, index: u32) -> SnapshotKey {
        SnapshotKey {
            snapshot: self.snapshot,
            process,
            index,
        }
    }

    /// Bytes from a start to an address as a stack has it.
    fn distance(&self, address: u64, start: u64) -> u64 {
        self.address_mask.apply(address).saturating_sub(start)
    }

    fn body_frames(
        &self,
        process: ProcessIndex,
        address: u64,
        time: u64,
        index: BodyIndex,
        location: &Location,
        symbols: Option<&dyn SymbolSource>,
    ) -> Vec<Frame> {
        let code = &self.spaces[process.index()].state.code;
        let body = &code.bodies[index.index()];
        // The looked-up address is inside the body, so this is below 4 GiB.
        let native = (location.looked_up - body.start) as u32;
        let module = body.module.map(|m| self.module_ref(process, m));
        let own_name = self.body_name(process, body);
        let mut il = body
            .il_map
            .and_then(|m| code.il_maps[m as usize].lookup(native));
        let mut no_map = None;
        let mut frames = Vec::new();

        let calls_are_valid = self.call_offsets_are_valid(process, body.clr_instance);
        let tree = body.inline_tree.map(|t| &code.inline_trees[t as usize]);
        for inlined in tree
            .map(|t| t.chain(native, calls_are_valid))
            .unwrap_or_default()
        {
            let (mut frame, method) = if inlined.is_root {
                let own = module.map(|module| (module, body.token));
                (Frame::unnamed(address, NameReason::NoName), own)
            } else {
                self.inlined_frame(process, body.clr_instance, inlined.method_id, time, symbols)
            };
            let mut at = inlined.il_offset;
            let mut approximate = inlined.approximate;
            // Rule 17: a call that the IL at hand shows is no guess.
            if approximate
                && let (Some(symbols), Some((module, token))) = (symbols, &method)
                && let Some(callee) = frames.last().and_then(|child: &Frame| child.name.clone())
                && let Some(call) = symbols.call_site(module, *token, inlined.stated, &callee)
            {
                (at, approximate) = (Some(call), false);
            }
            if inlined.is_root {
                // The body's own map comes first, but where inlined code has no place in it the call has one.
                let is_mapped = il.is_some_and(|il| il.source != IlSource::Nearest);
                if !is_mapped && (il.is_none() || !approximate) {
                    il = at.map(IlOffset::mapped).or(il);
                }
                break;
            }
            let il = at.map(IlOffset::mapped);
            frame.il_offset = il.map(|il| (il.offset, il.source));
            frame.certainty = Some(if approximate {
                Certainty::Approximate
            } else {
                location.certainty
            });
            self.add_line(&mut frame, method, il, symbols);
            frames.push(Frame {
                address,
                offset: Some(self.distance(address, body.start)),
                inlined: true,
                evidence: body.evidence.strongest(),
                ..frame
            });
        }

        if il.is_none()
            && !body.is_jitted()
            && let (Some(module), Some(symbols)) = (&module, symbols)
        {
            let code = symbols.precompiled(module, location.looked_up);
            il = code.and_then(|code| code.il);
            if il.is_none() {
                no_map = symbols.precompiled_reason(module);
            }
        }
        let mut own = Frame {
            signature: self
                .names
                .get(body.name)
                .and_then(|n| self.text(n.signature)),
            module: body
                .module
                .and_then(|m| self.text(code.modules[m.index()].simple_name)),
            offset: Some(self.distance(address, body.start)),
            il_offset: il.map(|il| (il.offset, il.source)),
            tier: self.tier(process, body),
            evidence: body.evidence.strongest(),
            certainty: Some(location.certainty),
            name_reason: own_name.is_none().then_some(NameReason::NoName),
            name: own_name,
            ..Frame::unnamed(address, NameReason::NoName)
        };
        self.add_line(&mut own, module.map(|m| (m, body.token)), il, symbols);
        if own.line_reason == Some(LineReason::NoILMap) {
            own.line_reason = no_map.or(own.line_reason);
        }
        frames.push(own);
        frames
    }

    /// How a body was compiled.
    pub(crate) fn tier(
        &self,
        process: ProcessIndex,
        body: &CodeBody,
    ) -> Option<chronosym_events::OptimizationTier> {
        body.tier().or_else(|| {
            let precompiled =
                !body.is_jitted() && !body.flags.is_dynamic() && body.name != NameId::NONE;
            precompiled.then(|| self.precompiled_tier(process, body.clr_instance))
        })
    }

    /// Before .NET Core precompiled code was NGEN's; since then it is ReadyToRun.
    fn precompiled_tier(
        &self,
        process: ProcessIndex,
        clr_instance: u16,
    ) -> chronosym_events::OptimizationTier {
        const DESKTOP: u16 = 1;
        let runtime = self
            .process(process)
            .runtimes
            .iter()
            .find(|r| r.clr_instance == clr_instance);
        match runtime {
            Some(runtime) if runtime.sku == DESKTOP => chronosym_events::OptimizationTier::PreJIT,
            _ => chronosym_events::OptimizationTier::ReadyToRun,
        }
    }

    /// .NET 10 leaves the call offsets of inline trees uninitialised; 8 and 9 are known to fill them in.
    fn call_offsets_are_valid(&self, process: ProcessIndex, clr_instance: u16) -> bool {
        let runtime = self
            .process(process)
            .runtimes
            .iter()
            .find(|r| r.clr_instance == clr_instance);
        runtime.is_some_and(|r| r.version[0] > 0 && r.version[0] < 10)
    }

    /// A frame for a method known by its id only: the name of a body of it, or what `MethodDetails` leads to.
    fn inlined_frame(
        &self,
        process: ProcessIndex,
        clr_instance: u16,
        method_id: u64,
        time: u64,
        symbols: Option<&dyn SymbolSource>,
    ) -> (Frame, Option<(ModuleRef<'_>, u32)>) {
        let state = &self.spaces[process.index()].state;
        let blank = Frame::unnamed(0, NameReason::NoName);
        // Method ids are used again: the body that was told of last before the time counts, else the first after it.
        let told = |b: &BodyIndex| state.code.bodies[b.index()].told_by() <= time;
        let bodies = || state.code.by_method.of((clr_instance, method_id));
        if let Some(index) = bodies().rev().find(told).or_else(|| bodies().next()) {
            let body = &state.code.bodies[index.index()];
            let name = self.full_name(body.name);
            let frame = Frame {
                name_reason: name.is_none().then_some(NameReason::NoName),
                name,
                signature: self
                    .names
                    .get(body.name)
                    .and_then(|n| self.text(n.signature)),
                module: body
                    .module
                    .and_then(|m| self.text(state.code.modules[m.index()].simple_name)),
                ..blank
            };
            return (
                frame,
                body.module
                    .map(|m| (self.module_ref(process, m), body.token)),
            );
        }
        let details = state.clr.details.get(&method_id);
        let details =
            details.and_then(|d| d.iter().rev().find(|(at, _)| *at <= time).or(d.first()));
        let Some((_, details)) = details else {
            return (blank, None);
        };
        let Some(module) = state.code.module(clr_instance, details.loader_module_id) else {
            return (blank, None);
        };
        let module_ref = self.module_ref(process, module);
        let type_name = state
            .clr
            .type_names
            .get(&details.type_id)
            .map(|&id| self.names.strings.get(id));
        let name = symbols
            .and_then(|s| s.method_name(&module_ref, details.token))
            .map(|(owner, method)| {
                let owner = type_name.filter(|t| !t.is_empty()).unwrap_or(&owner);
                if owner.is_empty() {
                    method
                } else {
                    format!("{owner}.{method}")
                }
            });
        let frame = Frame {
            name_reason: name.is_none().then_some(NameReason::NoName),
            name: name.map(Arc::from),
            module: self.text(state.code.modules[module.index()].simple_name),
            ..blank
        };
        (frame, Some((module_ref, details.token)))
    }

    fn add_line(
        &self,
        frame: &mut Frame,
        method: Option<(ModuleRef<'_>, u32)>,
        il: Option<IlOffset>,
        symbols: Option<&dyn SymbolSource>,
    ) {
        if frame.name.is_none() {
            return;
        }
        let line = match (symbols, il, method) {
            (None, ..) => Err(LineReason::LinesDisabled),
            (_, None, _) => Err(LineReason::NoILMap),
            (_, _, None) => Err(LineReason::NoSymbolFile),
            (Some(symbols), Some(il), Some((module, token))) => {
                symbols.managed_line(&module, token, il)
            }
        };
        match line {
            Ok(line) => frame.line = Some(line),
            Err(reason) => frame.line_reason = Some(reason),
        }
    }

    /// Code that no event tells of, in a precompiled image whose base its other methods give away.
    fn precompiled_frame(
        &self,
        process: ProcessIndex,
        address: u64,
        time: u64,
        position: Position,
        symbols: &dyn SymbolSource,
    ) -> Option<(Frame, Range<u64>)> {
        let back = u64::from(position == Position::Return);
        let looked_up = self.address_mask.apply(address).checked_sub(back)?;
        let modules = &self.spaces[process.index()].state.code.modules;
        for (index, module) in modules.iter().enumerate() {
            let from = crate::clr::module_floor(module);
            let to = match module.end {
                End::At(at) => at,
                End::After(_) | End::Open => u64::MAX,
            };
            if time < from || (time >= to && to != u64::MAX) {
                continue;
            }
            let module_ref = self.module_ref(process, ModuleIndex(index as u32));
            let range = symbols.precompiled_range(&module_ref);
            if !range.is_some_and(|range| range.contains(&looked_up)) {
                continue;
            }
            let Some(code) = symbols.precompiled(&module_ref, looked_up) else {
                continue;
            };
            let mut frame = Frame {
                name_reason: code.name.is_none().then_some(NameReason::NoName),
                name: code.name,
                signature: code.signature,
                module: self.text(module.simple_name),
                offset: Some(u64::from(code.offset) + back),
                il_offset: code.il.map(|il| (il.offset, il.source)),
                tier: Some(self.precompiled_tier(process, module.clr_instance)),
                evidence: Some(code.evidence),
                certainty: Some(Certainty::Inferred),
                ..Frame::unnamed(address, NameReason::NoName)
            };
            let method = code.token.map(|token| (module_ref, token));
            self.add_line(&mut frame, method, code.il, Some(symbols));
            return Some((frame, from..to));
        }
        None
    }

    fn untimed_frame(&self, process: ProcessIndex, address: u64, row: usize) -> Frame {
        let symbol = &self.spaces[process.index()].state.untimed.rows[row];
        let name = self.full_name(symbol.name);
        Frame {
            name_reason: name.is_none().then_some(NameReason::NoName),
            line_reason: name.is_some().then_some(LineReason::NoILMap),
            name,
            signature: self
                .names
                .get(symbol.name)
                .and_then(|n| self.text(n.signature)),
            module: self.text(symbol.module),
            offset: Some(self.distance(address, symbol.start)),
            tier: symbol.tier,
            evidence: Some(symbol.evidence),
            certainty: Some(Certainty::Inferred),
            ..Frame::unnamed(address, NameReason::NoName)
        }
    }

    /// An image, as a symbol source needs to know it.
    pub fn image_ref(&self, owner: ProcessIndex, index: ImageIndex) -> ImageRef<'_> {
        let images = &self.spaces[owner.index()].state.images;
        let image = &images[index.index()];
        let text = |id| Some(self.names.strings.get(id)).filter(|t| !t.is_empty());
        ImageRef {
            base: image.base,
            size: image.size,
            timestamp: image.timestamp,
            pdb: image.pdb.as_ref(),
            il_pdb: image.il_pdb.as_ref(),
            build_id: text(image.build_id),
            part: image.part.as_ref().map(|part| PartRef {
                file_offset: part.file_offset,
                code_delta: part.code_delta,
                perf_map: part.perf_map.as_ref(),
                images,
                key: self.key_of(owner, index.0),
            }),
            machine: self.facts.machine.as_deref(),
            ..ImageRef::new(self.names.strings.get(image.path))
        }
    }

    fn image_frames(
        &self,
        owner: ProcessIndex,
        address: u64,
        index: ImageIndex,
        location: &Location,
        symbols: Option<&dyn SymbolSource>,
    ) -> Vec<Frame> {
        let image = &self.spaces[owner.index()].state.images[index.index()];
        let base = Frame {
            module: self.text(image.simple_name),
            rva: Some(image.rva(self.address_mask.apply(address))),
            pdb_id: image.pdb.as_ref().map(|pdb| pdb.to_string().into()),
            build_id: self.text(image.build_id),
            evidence: Some(Evidence::Image),
            certainty: Some(location.certainty),
            ..Frame::unnamed(address, NameReason::NoSymbolFile)
        };
        let Some(symbols) = symbols else {
            return vec![base];
        };
        match symbols.native(&self.image_ref(owner, index), image.rva(location.looked_up)) {
            Err(reason) => vec![Frame {
                name_reason: Some(reason),
                ..base
            }],
            Ok(frames) if frames.is_empty() => vec![Frame {
                name_reason: Some(NameReason::NoName),
                ..base
            }],
            Ok(found) => {
                let outermost = found.len() - 1;
                // A frame stands at its own address, the call before it is what was looked up.
                let back = self.distance(address, location.looked_up);
                let frames = found.into_iter().enumerate().map(|(i, native)| Frame {
                    name: Some(native.name),
                    offset: native.offset.map(|offset| offset + back),
                    line_reason: native.line.as_ref().err().copied(),
                    line: native.line.ok(),
                    inlined: i != outermost,
                    evidence: Some(native.evidence),
                    certainty: Some(if native.approximate {
                        Certainty::Approximate
                    } else {
                        location.certainty
                    }),
                    name_reason: None,
                    ..base.clone()
                });
                frames.collect()
            }
        }
    }
}

impl std::fmt::Display for PdbId {
    /// Signature and age in the form of symbol servers: 32 hex digits, then the age in hex.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g, h, i, rest @ ..] = self.guid.0;
        let (first, second) = (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, g]));
        let (third, rest) = (u16::from_le_bytes([h, i]), u64::from_be_bytes(rest));
        write!(
            f,
            "{first:08X}{second:04X}{third:04X}{rest:016X}{:x}",
            self.age
        )
    }
}
