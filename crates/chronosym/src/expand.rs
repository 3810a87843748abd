//! The second step: what stands at an address → frames, with names, IL offsets, inlined methods and lines.

use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use crate::code::{BodyIndex, CodeBody, ModuleIndex, PdbId};
use crate::evidence::{Certainty, Evidence, LineReason, NameReason};
use crate::frame::{Frame, Position, SourceLine};
use crate::il_map::{IlOffset, IlSource};
use crate::images::ImageIndex;
use crate::names::NameId;
use crate::process::ProcessIndex;
use crate::resolve::{Found, Location};
use crate::strings::StringId;
use crate::timeline::Timeline;

/// A CLR module, as a symbol source needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct ModuleRef<'t> {
    /// The process and the module's position in it: the same pair is the same module.
    pub key: (ProcessIndex, ModuleIndex),
    /// Path of the IL image, as the trace names it.
    pub il_path: &'t str,
    /// Path of the precompiled image, where it is another file.
    pub native_path: &'t str,
    /// Identity of the managed PDB.
    pub managed_pdb: Option<&'t PdbId>,
    /// Identity of the native PDB.
    pub native_pdb: Option<&'t PdbId>,
    /// The PDB itself, where the trace carries it (CodeSymbols).
    pub in_memory_pdb: Option<&'t [u8]>,
}

/// A native image, as a symbol source needs to know it.
#[derive(Clone, Copy, Debug)]
pub struct ImageRef<'t> {
    /// The process and the image's position in it: the same pair is the same mapping.
    pub key: (ProcessIndex, ImageIndex),
    /// Its path, as the trace names it.
    pub path: &'t str,
    /// Bytes.
    pub size: u64,
    /// The PE header's time stamp.
    pub timestamp: Option<u32>,
    /// Identity of the PDB.
    pub pdb: Option<&'t PdbId>,
    /// Identity of the IL's PDB, for precompiled images.
    pub il_pdb: Option<&'t PdbId>,
    /// Build id in hex.
    pub build_id: Option<&'t str>,
}

/// A frame that a symbol file knows.
#[derive(Clone, Debug)]
pub struct NativeFrame {
    /// The demangled symbol.
    pub name: Arc<str>,
    /// Bytes from the start of the function, for the outermost frame.
    pub offset: Option<u64>,
    /// The source line.
    pub line: Option<SourceLine>,
    /// Nearest symbol without a known extent, or another guess.
    pub approximate: bool,
    /// What says so: [`Evidence::Image`] or [`Evidence::ImageTable`].
    pub evidence: Evidence,
}

/// Where names and lines beyond the trace come from. The engine without one answers what the trace alone says.
pub trait SymbolSource: Sync {
    /// The line of an IL offset of a method (rule 14).
    fn managed_line(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        il_offset: u32,
    ) -> Result<SourceLine, LineReason>;

    /// Namespace-qualified type and method of a token.
    fn method_name(&self, module: &ModuleRef<'_>, token: u32) -> Option<(String, String)>;

    /// IL offset in precompiled code, from the image's own debug info. `is_call` for return addresses: `offset` is then
    /// already that of the call.
    fn precompiled_il(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        size: u32,
        offset: u32,
    ) -> Option<(u32, IlSource)>;

    /// Whether the IL of `token` calls the method named `callee` at an offset; `None` where the IL is not at hand.
    fn is_call(
        &self,
        module: &ModuleRef<'_>,
        token: u32,
        il_offset: u32,
        callee: &str,
    ) -> Option<bool>;

    /// The frames at an RVA of an image, innermost first.
    fn native(&self, image: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason>;
}

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
        let location = self.locate(process, address, time, position);
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

    pub(crate) fn module_ref(&self, process: ProcessIndex, module: ModuleIndex) -> ModuleRef<'_> {
        let state = &self.spaces[process.index()].state;
        let m = &state.code.modules[module.index()];
        ModuleRef {
            key: (process, module),
            il_path: self.names.strings.get(m.il_path),
            native_path: self.names.strings.get(m.native_path),
            managed_pdb: m.managed_pdb.as_ref(),
            native_pdb: m.native_pdb.as_ref(),
            in_memory_pdb: state.clr.joined_symbols(m.clr_instance, m.module_id),
        }
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
        let mut frames = Vec::new();

        let calls_are_valid = self.call_offsets_are_valid(process, body.clr_instance);
        let tree = body.inline_tree.map(|t| &code.inline_trees[t as usize]);
        for inlined in tree
            .map(|t| t.chain(native, calls_are_valid))
            .unwrap_or_default()
        {
            if inlined.is_root {
                il = il.or(inlined.il_offset.map(|offset| IlOffset {
                    offset,
                    source: IlSource::Mapped,
                }));
                break;
            }
            let approximate = inlined.approximate || location.certainty == Certainty::Approximate;
            let certainty = if approximate {
                Certainty::Approximate
            } else {
                location.certainty
            };
            let mut frame =
                self.inlined_frame(process, body.clr_instance, inlined.method_id, time, symbols);
            frame.0.il_offset = inlined.il_offset.map(|offset| (offset, IlSource::Mapped));
            frame.0.certainty = Some(certainty);
            self.add_line(&mut frame.0, frame.1, inlined.il_offset, symbols);
            frames.push(Frame {
                address,
                offset: Some(address.saturating_sub(body.start)),
                inlined: true,
                evidence: body.evidence.strongest(),
                ..frame.0
            });
        }

        let mut il_offset = il.map(|il| (il.offset, il.source));
        if il_offset.is_none()
            && !body.is_jitted()
            && let (Some(module), Some(symbols)) = (&module, symbols)
        {
            il_offset = symbols.precompiled_il(module, body.token, body.size, native);
        }
        let tier = body.tier().or_else(|| {
            let precompiled =
                !body.is_jitted() && !body.flags.is_dynamic() && body.name != NameId::NONE;
            precompiled.then(|| self.precompiled_tier(process, body))
        });
        let mut own = Frame {
            signature: self
                .names
                .get(body.name)
                .and_then(|n| self.text(n.signature)),
            module: body
                .module
                .and_then(|m| self.text(code.modules[m.index()].simple_name)),
            offset: Some(address.saturating_sub(body.start)),
            il_offset,
            tier,
            evidence: body.evidence.strongest(),
            certainty: Some(location.certainty),
            name_reason: own_name.is_none().then_some(NameReason::NoName),
            name: own_name,
            ..Frame::unnamed(address, NameReason::NoName)
        };
        self.add_line(
            &mut own,
            module.map(|m| (m, body.token)),
            il_offset.map(|(offset, _)| offset),
            symbols,
        );
        frames.push(own);
        frames
    }

    /// Before .NET Core precompiled code was NGEN's; since then it is ReadyToRun.
    fn precompiled_tier(
        &self,
        process: ProcessIndex,
        body: &CodeBody,
    ) -> chronosym_events::OptimizationTier {
        const DESKTOP: u16 = 1;
        let runtime = self
            .process(process)
            .runtimes
            .iter()
            .find(|r| r.clr_instance == body.clr_instance);
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
        let told = |b: &&BodyIndex| state.code.bodies[b.index()].told_by() <= time;
        let bodies = state.code.bodies_of(clr_instance, method_id);
        if let Some(&index) = bodies.iter().rev().find(told).or(bodies.first()) {
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
        il_offset: Option<u32>,
        symbols: Option<&dyn SymbolSource>,
    ) {
        if frame.name.is_none() {
            return;
        }
        let line = match (symbols, il_offset, method) {
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
            offset: Some(address.saturating_sub(symbol.start)),
            tier: symbol.tier,
            evidence: Some(symbol.evidence),
            certainty: Some(Certainty::Inferred),
            ..Frame::unnamed(address, NameReason::NoName)
        }
    }

    pub(crate) fn image_ref(&self, owner: ProcessIndex, index: ImageIndex) -> ImageRef<'_> {
        let image = &self.spaces[owner.index()].state.images[index.index()];
        let text = |id| Some(self.names.strings.get(id)).filter(|t| !t.is_empty());
        ImageRef {
            key: (owner, index),
            path: self.names.strings.get(image.path),
            size: image.size,
            timestamp: image.timestamp,
            pdb: image.pdb.as_ref(),
            il_pdb: image.il_pdb.as_ref(),
            build_id: text(image.build_id),
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
            rva: Some(image.rva(address)),
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
                let frames = found.into_iter().enumerate().map(|(i, native)| Frame {
                    name: Some(native.name),
                    offset: native.offset,
                    line_reason: native.line.is_none().then_some(LineReason::NoLineInfo),
                    line: native.line,
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
        for c in self.guid.to_string().chars().filter(|c| *c != '-') {
            f.write_char(c.to_ascii_uppercase())?;
        }
        write!(f, "{:x}", self.age)
    }
}
