//! Code bodies and their lifetimes in one process, before the timeline is frozen (rules 1 to 7).

mod entry_points;
mod forget;
pub(crate) mod join;
mod modules;
mod neighbours;
mod occupied;
mod permanent;
mod restore;
mod stubs;
mod threads;

use std::collections::BTreeMap;
use std::sync::Arc;

use chronosym_events::{Action, Extent, MethodFlags};
use chronosym_timeline::{End, Start};
use chronosym_types::hash::{HashMap, HashSet};

use crate::body::{CodeBody, EntryPoint, LineTable, Module};
use crate::evidence::{Evidence, EvidenceSet};
use crate::facts::{self, At};
use crate::ids::NameId;
use crate::ids::{BodyIndex, ModuleIndex};
use crate::il_map::IlMap;
use crate::layers::Layers;
use crate::lifetime::{has_ended, lifetime_of};
use crate::names::NameTable;
use crate::strings::StringId;
use crate::symbol_text::SymbolText;
use chronosym_types::SparseVec;
use occupied::{Occupied, Range};
use threads::{Pending, Threads};

/// The code of one process.
#[derive(Debug, Default)]
pub(crate) struct ProcessCode {
    pub bodies: SparseVec<CodeBody>,
    pub modules: SparseVec<Arc<Module>>,
    /// The targets of each interop stub, in order of arrival.
    pub stubs: SparseVec<Vec<NameId>>,
    /// Number of stubs at the last call of `forget`.
    old_stubs: usize,
    pub entry_points: BTreeMap<u64, EntryPoint>,
    /// Number of IL maps without a body, including lone ones.
    pub unbound_maps: u64,
    /// Those whose body another recording may have, by time.
    pub lone_maps: Arc<Vec<LoneMap>>,
    /// The bodies of each method: (clr, method id) → bodies.
    pub by_method: Layers<(u16, u64), BodyIndex>,
    module_by_id: Arc<HashMap<(u16, u64), ModuleIndex>>,
    /// The modules of each domain: (clr, domain) → modules.
    by_domain: HashMap<(u16, u64), Vec<ModuleIndex>>,
    /// Since when an assembly is loaded that is never unloaded: (clr, assembly id) → time.
    permanent: HashMap<(u16, u64), u64>,
    stub_by_method: HashMap<(u16, u64), u32>,
    /// The targets recorded for each stub.
    stub_targets: HashSet<(u32, NameId)>,
    /// The latest body at each address.
    occupied: Occupied,
    threads: Threads,
    /// Bodies whose module was unknown at their first event: (clr, module id) → bodies.
    orphans: HashMap<(u16, u64), Vec<BodyIndex>>,
    /// Number of IL maps.
    il_maps: usize,
    /// Bytes of IL maps, inline trees and line tables.
    pub details_bytes: usize,
    /// V1 maps whose body is not yet known.
    waiting_maps: Vec<Pending>,
    /// State that ended with the process.
    closed: Closed,
}

/// Bodies and modules that had ended at a time, which are not visited again. A process may end
/// repeatedly: with each program it runs, or in a trace that repeats its end.
#[derive(Clone, Debug, Default)]
struct Closed {
    time: u64,
    /// All with a lower index had ended, except the reopened ones.
    bodies: usize,
    modules: usize,
    reopened_bodies: Vec<BodyIndex>,
    reopened_modules: Vec<ModuleIndex>,
}

/// A map whose body had no event in the recording.
#[derive(Clone, Debug)]
pub(crate) struct LoneMap {
    pub time: u64,
    pub clr_instance: u16,
    pub method_id: u64,
    pub version: u64,
    pub extent: Extent,
    pub map: Arc<IlMap>,
}

/// Without a `MethodJittingStarted`, code may run this long before its load event is logged (rule
/// 8).
const LOAD_LAG_NS: u64 = 1_000_000;

impl ProcessCode {
    /// Confirms the bodies that are alive at a time.
    pub fn confirm_all(&mut self, time: u64) {
        let is_alive = |body: &CodeBody| body.first_seen() <= time && !has_ended(body.end, time);
        let alive = self.bodies.indexed().filter(|(_, body)| is_alive(body));
        let alive: Vec<_> = alive.map(|(index, _)| index).collect();
        for index in alive {
            let body = &mut self.bodies[index];
            body.confirmed = body.confirmed.max(time);
        }
    }

    /// Applies a method event of the CLR.
    pub fn apply_method(&mut self, at: At, method: &facts::Method<'_>, names: &mut NameTable) {
        let current = self.occupied.approach(method.start);
        let current = current.and_then(|body| self.of(body, (method.clr_instance, method.id)));
        let [namespace, name, _] = &method.names;
        let name = if namespace.is_empty() && name.is_empty() {
            NameId::NONE
        } else {
            // Unloads and rundowns repeat the load's name.
            let name = current.map(|(_, body)| body.name);
            name.filter(|&name| names.is(name, method.names))
                .unwrap_or_else(|| names.method(method.names))
        };
        let opens = matches!(method.action, Action::Load | Action::DCStart);
        let is_same = |body: &CodeBody| {
            body.agrees(method.size, name, method.native_code_version)
                // Code loaded again after its end is another body.
                && (!opens || body.is_alive())
        };
        let same = current.filter(|(_, body)| is_same(body));
        let same = same.map(|(index, body)| (index, body.module));
        let (time, thread) = (at.time_ns, at.writer());
        let (loaded, end) = lifetime_of(method.action, time);
        let earliest = match method.action {
            Action::Load => self.jitted_from(method.id, time, thread),
            _ => time,
        };
        let module = match same {
            Some((_, Some(_))) => None,
            _ => self.module(method.clr_instance, method.module_id),
        };
        let body = match same {
            Some((body, _)) => {
                self.confirm(body, method, (time, end), (name, module));
                body
            }
            None => {
                let stated = CodeBody {
                    clr_instance: method.clr_instance,
                    start: method.start,
                    size: method.size,
                    token: method.token,
                    flags: method.flags,
                    method_id: method.id,
                    native_code_version: method.native_code_version,
                    name,
                    module,
                    evidence: EvidenceSet::of(Evidence::of(method.action)),
                    loaded,
                    end,
                    confirmed: time,
                    earliest,
                    ..CodeBody::NONE
                };
                self.add(stated, method.module_id)
            }
        };
        let method = (method.id, method.flags.extent());
        self.follow((thread, time), method, body, opens);
    }

    /// Rule 8: earliest time at which code loaded now may run.
    fn jitted_from(&mut self, method_id: u64, time: u64, thread: u64) -> u64 {
        let jitting = &mut self.threads.logging(thread, time).jitting;
        let started = jitting.iter().rposition(|&(id, _)| id == method_id);
        started.map_or(time.saturating_sub(LOAD_LAG_NS), |i| {
            jitting.swap_remove(i).1
        })
    }

    /// Applies a body of another compiler than the CLR's. It ends where other code is loaded over
    /// it.
    pub fn native_method(
        &mut self,
        time: u64,
        method: &facts::NativeMethod<'_>,
        names: &mut NameTable,
    ) {
        let text = method.name.to_text();
        let text = SymbolText::parse(&text);
        let stated = CodeBody {
            start: method.start,
            size: method.size,
            flags: MethodFlags::jitted(text.tier),
            name: names.intern(text.namespace, text.name, &text.signature()),
            evidence: EvidenceSet::of(Evidence::JitDump),
            loaded: Start::At(time),
            end: End::Open,
            confirmed: time,
            earliest: time,
            ..CodeBody::NONE
        };
        let same = self.current(0, 0, method.start).filter(|(_, body)| {
            body.agrees(stated.size, stated.name, stated.native_code_version) && body.is_alive()
        });
        let body = match same {
            Some((body, _)) => body,
            None => self.add(stated, 0),
        };
        if !method.lines.is_empty() {
            let offset = |address: u64| u32::try_from(address.checked_sub(method.start)?).ok();
            let lines = method.lines.iter().filter_map(|&(address, file, line)| {
                Some((offset(address)?, (names.short(file), line)))
            });
            let lines = LineTable::new(lines);
            self.details_bytes += lines.len() * size_of::<(u32, (StringId, u32))>();
            self.bodies[body.index()].rare_mut().lines = Some(lines);
        }
    }

    /// Sets the evidence of the body at an address: a profile states it, and no event does.
    pub fn profiled(&mut self, address: u64) {
        if let Some(body) = self.occupant(address) {
            self.bodies[body.index()].evidence = EvidenceSet::of(Evidence::Profile);
        }
    }

    /// Moves a body of another compiler; the old and new range may overlap.
    pub fn native_move(&mut self, time: u64, from: u64, to: u64) {
        let Some(old) = self.occupant(from) else {
            return;
        };
        let body = &self.bodies[old.index()];
        let moved = CodeBody {
            start: body.start.wrapping_sub(from).wrapping_add(to),
            loaded: Start::At(time),
            end: End::Open,
            confirmed: time,
            earliest: time,
            ..body.clone()
        };
        self.occupied.remove(body.start);
        self.close(old, time);
        self.push((0, 0), moved);
    }

    /// Returns whether the latest event about an address is a runtime's, not a jitdump's.
    pub fn is_stated_by_events(&self, address: u64) -> bool {
        let body = self
            .occupant(address)
            .map(|body| &self.bodies[body.index()]);
        body.is_some_and(|body| body.evidence != EvidenceSet::of(Evidence::JitDump))
    }

    /// Returns the latest body at a start, if it is of the method and nothing was loaded over it.
    fn current(
        &self,
        clr_instance: u16,
        method_id: u64,
        start: u64,
    ) -> Option<(BodyIndex, &CodeBody)> {
        let body = self.occupied.starting_at(start)?;
        self.of(body, (clr_instance, method_id))
    }

    /// Returns a body, if it is of a method: (clr, method id).
    fn of(&self, index: BodyIndex, method: (u16, u64)) -> Option<(BodyIndex, &CodeBody)> {
        let body = &self.bodies[index.index()];
        ((body.clr_instance, body.method_id) == method).then_some((index, body))
    }

    /// Merges the properties in an event into an existing body. `joined` is its module if it had
    /// none.
    fn confirm(
        &mut self,
        body: BodyIndex,
        method: &facts::Method<'_>,
        (time, end): (u64, End),
        (name, joined): (NameId, Option<ModuleIndex>),
    ) {
        let old = &mut self.bodies[body.index()];
        let had_ended = !old.is_alive();
        match method.action {
            Action::Load | Action::DCStart => {}
            Action::Unload if had_ended => {}
            // An end rundown lists code that the same shutdown may have unloaded before.
            Action::Unload | Action::DCEnd => old.end = end,
        }
        let reopened = (method.action == Action::DCEnd && had_ended).then_some(old.module);
        old.evidence.insert(Evidence::of(method.action));
        old.confirmed = old.confirmed.max(time);
        if old.name == NameId::NONE {
            old.name = name;
        }
        if old.native_code_version == 0 {
            old.native_code_version = method.native_code_version;
        }
        old.module = old.module.or(joined);
        if let Some(module) = reopened.flatten() {
            self.module_mut(module).open_bodies.push(body);
        }
        if reopened.is_some() && body.index() < self.closed.bodies {
            self.closed.reopened_bodies.push(body);
        }
        if let Some(module) = joined {
            self.contain(module, body);
        }
    }

    /// Adds a body; `module_id` identifies its module, now or later.
    fn add(&mut self, mut body: CodeBody, module_id: u64) -> BodyIndex {
        let method = (body.clr_instance, body.method_id);
        if let Some(&stub) = self.stub_by_method.get(&method) {
            body.rare_mut().stub = Some(stub);
            body.evidence.insert(Evidence::Stub);
        }
        let index = BodyIndex(self.bodies.end() as u32);
        match body.module {
            Some(module) => self.contain(module, index),
            None => {
                let orphans = self.orphans.entry((body.clr_instance, module_id));
                orphans.or_default().push(index);
            }
        }
        self.push(method, body)
    }

    /// Adds a body as the latest one of its range, in place of all bodies that overlap it.
    fn push(&mut self, method: (u16, u64), body: CodeBody) -> BodyIndex {
        let body = BodyIndex(self.bodies.push(body) as u32);
        self.by_method.push(method, body);
        self.occupy(body);
        body
    }

    /// Makes a body the latest one of its range.
    fn occupy(&mut self, index: BodyIndex) {
        let body = &self.bodies[index.index()];
        self.occupied.replace(Range {
            start: body.start,
            last: body.last(),
            body: index,
        });
    }

    /// Rule 5: an image mapped at `time` over [start, last] ends the jitted code there.
    pub fn image_mapped(&mut self, start: u64, last: u64, time: u64) {
        for Range { body, start, .. } in self.occupied.overlapping(start, last) {
            let old = &self.bodies[body.index()];
            if old.flags.is_jitted() && old.first_seen() <= time {
                self.occupied.remove(start);
                self.close(body, time);
            }
        }
    }

    /// Returns the latest body at an address.
    pub fn occupant(&self, address: u64) -> Option<BodyIndex> {
        self.occupied.at(address)
    }

    fn module_mut(&mut self, module: ModuleIndex) -> &mut Module {
        Arc::make_mut(&mut self.modules[module.index()])
    }

    fn contain(&mut self, module: ModuleIndex, body: BodyIndex) {
        let module = self.module_mut(module);
        module.bodies.push(body);
        module.open_bodies.push(body);
    }

    /// Ends a body, unless it has ended.
    fn close(&mut self, body: BodyIndex, time: u64) {
        if self.bodies[body.index()].is_alive() {
            self.bodies[body.index()].end = End::At(time);
        }
    }

    /// Ends all bodies and modules with their process.
    pub fn close_all(&mut self, time: u64) {
        let Closed {
            bodies,
            modules,
            reopened_bodies,
            reopened_modules,
            ..
        } = match time >= self.closed.time {
            true => std::mem::take(&mut self.closed),
            // The end is earlier: everything that ended later ends with the process.
            false => Closed::default(),
        };
        let reopened = reopened_bodies.into_iter().map(|body| body.index());
        for index in (bodies..self.bodies.end()).chain(reopened) {
            let body = self.bodies.get(index);
            if body.is_some_and(|body| !has_ended(body.end, time)) {
                self.bodies[index].end = End::At(time);
            }
        }
        let reopened = reopened_modules.into_iter().map(|module| module.index());
        for index in (modules..self.modules.end()).chain(reopened) {
            let module = self.modules.get(index);
            if module.is_some_and(|module| !has_ended(module.end, time)) {
                Arc::make_mut(&mut self.modules[index]).end = End::At(time);
            }
        }
        self.closed = Closed {
            time,
            bodies: self.bodies.end(),
            modules: self.modules.end(),
            ..Closed::default()
        };
    }

    /// Binds maps without an adjacent event, and gives bodies without a size an extent. Call once
    /// after the last event.
    pub fn finish(&mut self) {
        self.bind_waiting();
        self.place_entry_points();
    }

    /// Returns the number of threads, stubs and IL maps that wait for a body.
    pub fn small_entries(&self) -> usize {
        self.threads.len() + self.stubs.count() + self.waiting_maps.len()
    }

    /// Returns a copy of the state that queries need; later events do not change it. Cheap.
    pub fn snapshot(&mut self) -> Self {
        ProcessCode {
            bodies: self.bodies.clone(),
            modules: self.modules.clone(),
            stubs: self.stubs.clone(),
            by_method: self.by_method.snapshot(),
            module_by_id: self.module_by_id.clone(),
            unbound_maps: self.unbound_maps,
            lone_maps: self.lone_maps.clone(),
            ..ProcessCode::default()
        }
    }
}
