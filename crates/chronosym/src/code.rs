//! What one process's events say of its code: bodies and their lives, before anything is frozen (rules 1 to 8 and 12).

use std::collections::BTreeMap;
use std::sync::Arc;

use chronosym_events::{Extent, MethodFlags, OptimizationTier};
use chronosym_timeline::{Begin, End};
use rustc_hash::FxHashMap;

use crate::chunked::Chunked;
use crate::evidence::{Evidence, EvidenceSet};
use crate::il_map::IlMap;
use crate::inline_tree::InlineTree;
use crate::names::NameId;
use crate::process::index_type;

index_type! {
    /// Names a code body of one process, dense from 0 in the order in which events told of them.
    BodyIndex
}
index_type! {
    /// Names a CLR module of one process.
    ModuleIndex
}

/// One native body, from one load occurrence to its end.
#[derive(Clone, Debug)]
pub(crate) struct CodeBody {
    pub clr_instance: u16,
    pub start: u64,
    /// Bytes; 0 while it is known by its entry point only.
    pub size: u32,
    pub token: u32,
    pub flags: MethodFlags,
    pub method_id: u64,
    /// The `ReJITID` field; 0 is the default version.
    pub native_code_version: u64,
    pub name: NameId,
    pub module: Option<ModuleIndex>,
    pub evidence: EvidenceSet,
    pub begin: Begin,
    pub end: End,
    /// Rule 8: from when on samples before the load event may be in it.
    pub earliest: u64,
    pub il_map: Option<u32>,
    pub inline_tree: Option<u32>,
    /// Index of its interop targets.
    pub stub: Option<u32>,
    /// Its extent is a guess (rule 15).
    pub approximate: bool,
}

impl CodeBody {
    /// The address of the last byte.
    pub fn last(&self) -> u64 {
        self.start.saturating_add(u64::from(self.size.max(1)) - 1)
    }

    pub fn is_jitted(&self) -> bool {
        self.flags.is_jitted()
    }

    /// The tier as the runtime names it; precompiled code carries a tier value without the jitted flag.
    pub fn tier(&self) -> Option<OptimizationTier> {
        self.flags.tier()
    }

    /// When the first event told of it.
    pub fn told_by(&self) -> u64 {
        match self.begin {
            Begin::At(at) | Begin::Before(at) => at,
            Begin::Unbounded => 0,
        }
    }

    /// Alive as far as its own events say.
    fn is_alive(&self) -> bool {
        !matches!(self.end, End::At(_))
    }
}

/// What one method event says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MethodFact {
    pub time: u64,
    pub clr_instance: u16,
    pub method_id: u64,
    pub start: u64,
    pub size: u32,
    pub token: u32,
    pub flags: MethodFlags,
    pub native_code_version: u64,
    /// `NameId::NONE` where the event carries no names.
    pub name: NameId,
    pub module_id: u64,
    /// The module of that id, where it is known by now.
    pub module: Option<ModuleIndex>,
}

/// A CLR module.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub clr_instance: u16,
    pub module_id: u64,
    pub assembly_id: u64,
    pub flags: u32,
    pub il_path: crate::strings::StringId,
    pub native_path: crate::strings::StringId,
    /// Simple name, no folder, no extension.
    pub simple_name: crate::strings::StringId,
    pub managed_pdb: Option<PdbId>,
    pub native_pdb: Option<PdbId>,
    pub native_build_id: crate::strings::StringId,
    pub begin: Begin,
    pub end: End,
    pub evidence: EvidenceSet,
    pub bodies: Vec<BodyIndex>,
    pub app_domain: Option<u64>,
}

/// Identity of a symbol file as a trace names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PdbId {
    /// The signature in wire order.
    pub guid: chronosym_events::Guid,
    /// The age; portable PDBs ignore it.
    pub age: u32,
    /// Where it was written when the module was built.
    pub path: String,
}

/// Entry points of precompiled methods, known without a size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryPoint {
    pub time: u64,
    pub clr_instance: u16,
    pub method_id: u64,
    pub name: NameId,
}

/// Interop targets of a stub, in the order in which they were told.
#[derive(Clone, Debug, Default)]
pub(crate) struct StubTargets {
    pub targets: Vec<NameId>,
}

/// A map or tree that waits for the event which it belongs to.
#[derive(Clone, Copy, Debug)]
struct Pending {
    method_id: u64,
    version: u64,
    extent: Extent,
    map: u32,
}

/// What a thread said last: maps belong to their neighbours (rule 12).
#[derive(Debug, Default)]
struct ThreadState {
    last_load: Option<(u64, BodyIndex)>,
    pending: Option<Pending>,
    jitting: Vec<(u64, u64)>,
}

/// The code of one process.
#[derive(Debug, Default)]
pub(crate) struct ProcessCode {
    pub bodies: Chunked<CodeBody>,
    pub modules: Vec<Module>,
    pub il_maps: Chunked<Arc<IlMap>>,
    pub inline_trees: Chunked<Arc<InlineTree>>,
    pub stubs: Vec<StubTargets>,
    pub entry_points: BTreeMap<u64, EntryPoint>,
    /// IL maps that no body could be found for.
    pub unbound_maps: u64,
    by_key: FxHashMap<(u16, u64, u64), BodyIndex>,
    by_method: Arc<FxHashMap<(u16, u64), Vec<BodyIndex>>>,
    module_by_id: Arc<FxHashMap<(u16, u64), ModuleIndex>>,
    stub_by_method: FxHashMap<(u16, u64), u32>,
    /// Who was last said to occupy a range: start → (last byte, body).
    occupied: BTreeMap<u64, (u64, BodyIndex)>,
    threads: FxHashMap<u64, ThreadState>,
    /// Bodies whose module was not known when they were told of: (clr, module id) → bodies.
    orphans: FxHashMap<(u16, u64), Vec<BodyIndex>>,
    /// V1 maps without a neighbour: (clr, method, version, extent) → map.
    waiting_maps: Vec<(u16, Pending)>,
    /// Bodies that are new or have another end, for whoever mirrors them; `None` where nobody does.
    changes: Option<Vec<BodyIndex>>,
}

/// Without a `MethodJittingStarted`, code may run this long before its load event is logged (rule 8).
const LOAD_LAG_NS: u64 = 1_000_000;

impl ProcessCode {
    /// A live load.
    pub fn load(&mut self, fact: MethodFact, thread: u64) -> BodyIndex {
        let state = self.threads.entry(thread).or_default();
        state.pending = None;
        let started = state
            .jitting
            .iter()
            .rposition(|&(id, _)| id == fact.method_id);
        let earliest = started.map_or(fact.time.saturating_sub(LOAD_LAG_NS), |i| {
            state.jitting.swap_remove(i).1
        });
        let body = match self.known(&fact) {
            Some(body) if self.bodies[body.index()].is_alive() => {
                self.confirm(body, &fact, Evidence::Load);
                body
            }
            _ => self.add(
                &fact,
                Evidence::Load,
                Begin::At(fact.time),
                End::Open,
                earliest,
            ),
        };
        self.threads.entry(thread).or_default().last_load = Some((fact.method_id, body));
        body
    }

    /// A live unload.
    pub fn unload(&mut self, fact: MethodFact, thread: u64) -> BodyIndex {
        self.forget_neighbours(thread);
        match self.known(&fact) {
            Some(body) => {
                self.close(body, fact.time);
                self.confirm(body, &fact, Evidence::Unload);
                body
            }
            None => self.add(
                &fact,
                Evidence::Unload,
                Begin::Before(fact.time),
                End::At(fact.time),
                fact.time,
            ),
        }
    }

    /// A rundown at the start lists the body.
    pub fn dc_start(&mut self, fact: MethodFact, thread: u64) -> BodyIndex {
        let body = match self.known(&fact) {
            Some(body) if self.bodies[body.index()].is_alive() => {
                self.confirm(body, &fact, Evidence::DCStart);
                body
            }
            _ => self.add(
                &fact,
                Evidence::DCStart,
                Begin::Before(fact.time),
                End::Open,
                fact.time,
            ),
        };
        self.bind_pending(thread, &fact, body);
        body
    }

    /// A rundown at the end lists the body: it extends the life of one that the same shutdown had unloaded before.
    pub fn dc_end(&mut self, fact: MethodFact, thread: u64) -> BodyIndex {
        let body = match self.known(&fact) {
            Some(body) => {
                self.bodies[body.index()].end = End::After(fact.time);
                self.changed(body);
                self.confirm(body, &fact, Evidence::DCEnd);
                body
            }
            None => self.add(
                &fact,
                Evidence::DCEnd,
                Begin::Before(fact.time),
                End::After(fact.time),
                fact.time,
            ),
        };
        self.bind_pending(thread, &fact, body);
        body
    }

    /// The latest occurrence that the fact can speak of: nothing was put over it since, and size and name agree.
    fn known(&self, fact: &MethodFact) -> Option<BodyIndex> {
        let &body = self
            .by_key
            .get(&(fact.clr_instance, fact.method_id, fact.start))?;
        let known = &self.bodies[body.index()];
        let agrees = known.size == fact.size
            && (known.name == fact.name || known.name == NameId::NONE || fact.name == NameId::NONE)
            && (known.native_code_version == fact.native_code_version
                || known.native_code_version == 0
                || fact.native_code_version == 0);
        let stands = self
            .occupied
            .get(&fact.start)
            .is_some_and(|&(_, top)| top == body);
        (agrees && stands).then_some(body)
    }

    fn confirm(&mut self, body: BodyIndex, fact: &MethodFact, evidence: Evidence) {
        let known = &mut self.bodies[body.index()];
        known.evidence.insert(evidence);
        if known.name == NameId::NONE {
            known.name = fact.name;
        }
        if known.native_code_version == 0 {
            known.native_code_version = fact.native_code_version;
        }
        if known.module.is_none()
            && let Some(module) = fact.module
        {
            known.module = Some(module);
            self.modules[module.index()].bodies.push(body);
        }
    }

    fn add(
        &mut self,
        fact: &MethodFact,
        evidence: Evidence,
        begin: Begin,
        end: End,
        earliest: u64,
    ) -> BodyIndex {
        let body = BodyIndex(self.bodies.len() as u32);
        let stub = self
            .stub_by_method
            .get(&(fact.clr_instance, fact.method_id))
            .copied();
        self.bodies.push(CodeBody {
            clr_instance: fact.clr_instance,
            start: fact.start,
            size: fact.size,
            token: fact.token,
            flags: fact.flags,
            method_id: fact.method_id,
            native_code_version: fact.native_code_version,
            name: fact.name,
            module: fact.module,
            evidence: EvidenceSet::of(evidence),
            begin,
            end,
            earliest,
            il_map: None,
            inline_tree: None,
            stub,
            approximate: false,
        });
        self.by_key
            .insert((fact.clr_instance, fact.method_id, fact.start), body);
        Arc::make_mut(&mut self.by_method)
            .entry((fact.clr_instance, fact.method_id))
            .or_default()
            .push(body);
        match fact.module {
            Some(module) => self.modules[module.index()].bodies.push(body),
            None => self
                .orphans
                .entry((fact.clr_instance, fact.module_id))
                .or_default()
                .push(body),
        }
        self.occupy(body);
        self.changed(body);
        body
    }

    /// Notes that `body` was last said to stand at its range; whatever overlaps it stands there no more.
    fn occupy(&mut self, body: BodyIndex) {
        let (start, last) = (
            self.bodies[body.index()].start,
            self.bodies[body.index()].last(),
        );
        while let Some((&older, _)) = self
            .occupied
            .range(..=last)
            .next_back()
            .filter(|(_, (end, _))| *end >= start)
        {
            self.occupied.remove(&older);
        }
        self.occupied.insert(start, (last, body));
    }

    /// An image was mapped at `time` over [start, last]: what was jitted there before has gone (rule 5).
    pub fn image_mapped(&mut self, start: u64, last: u64, time: u64) {
        let covered: Vec<_> = self
            .occupied
            .range(..=last)
            .rev()
            .take_while(|(_, (end, _))| *end >= start)
            .map(|(_, (_, body))| *body)
            .collect();
        for body in covered {
            let known = &self.bodies[body.index()];
            if known.is_jitted() && matches!(known.begin, Begin::At(t) if t <= time) {
                self.occupied.remove(&known.start);
                self.close(body, time);
            }
        }
    }

    /// `MethodJittingStarted`.
    pub fn jitting_started(&mut self, method_id: u64, time: u64, thread: u64) {
        let jitting = &mut self.threads.entry(thread).or_default().jitting;
        // Methods that are started and never loaded must not pile up.
        if jitting.len() >= 64 {
            jitting.remove(0);
        }
        jitting.push((method_id, time));
    }

    fn forget_neighbours(&mut self, thread: u64) {
        if let Some(state) = self.threads.get_mut(&thread) {
            state.last_load = None;
            state.pending = None;
        }
    }

    /// An IL map. `live` ones follow their load; those of a rundown precede the event that lists the method.
    #[allow(clippy::too_many_arguments)]
    pub fn il_map(
        &mut self,
        map: IlMap,
        clr_instance: u16,
        method_id: u64,
        version: Option<u64>,
        extent: Extent,
        live: bool,
        thread: u64,
    ) {
        let index = self.il_maps.len() as u32;
        self.il_maps.push(Arc::new(map));
        let pending = Pending {
            method_id,
            version: version.unwrap_or(0),
            extent,
            map: index,
        };
        let state = self.threads.entry(thread).or_default();
        if !live {
            if let Some(orphan) = state.pending.replace(pending) {
                // Two in a row: the older one's neighbour is missing, and a V0 map says nothing else of its body.
                let _ = orphan;
                self.unbound_maps += 1;
            }
            return;
        }
        if let Some((id, body)) = state.last_load
            && id == method_id
            && self.bodies[body.index()].flags.extent() == extent
        {
            self.bodies[body.index()].il_map.get_or_insert(index);
        } else if version.is_some() {
            match self.by_version(clr_instance, &pending) {
                Some(body) => {
                    self.bodies[body.index()].il_map.get_or_insert(index);
                }
                None => self.waiting_maps.push((clr_instance, pending)),
            }
        } else {
            self.unbound_maps += 1;
        }
    }

    fn by_version(&self, clr_instance: u16, pending: &Pending) -> Option<BodyIndex> {
        let bodies = self.by_method.get(&(clr_instance, pending.method_id))?;
        bodies.iter().rev().copied().find(|b| {
            let body = &self.bodies[b.index()];
            body.native_code_version == pending.version && body.flags.extent() == pending.extent
        })
    }

    fn bind_pending(&mut self, thread: u64, fact: &MethodFact, body: BodyIndex) {
        let Some(state) = self.threads.get_mut(&thread) else {
            return;
        };
        state.last_load = None;
        let Some(pending) = state.pending.take() else {
            return;
        };
        if pending.method_id == fact.method_id && fact.flags.extent() == pending.extent {
            self.bodies[body.index()].il_map.get_or_insert(pending.map);
        } else {
            self.unbound_maps += 1;
        }
    }

    /// The inline tree of the body of `method_id` that this thread loaded last.
    pub fn inline_tree(
        &mut self,
        tree: InlineTree,
        clr_instance: u16,
        method_id: u64,
        version: u64,
        thread: u64,
    ) -> bool {
        let neighbour = self
            .threads
            .get(&thread)
            .and_then(|s| s.last_load)
            .filter(|&(id, _)| id == method_id);
        let body = neighbour.map(|(_, body)| body).or_else(|| {
            self.by_version(
                clr_instance,
                &Pending {
                    method_id,
                    version,
                    extent: Extent::Hot,
                    map: 0,
                },
            )
        });
        let Some(body) = body else { return false };
        let index = self.inline_trees.len() as u32;
        self.inline_trees.push(Arc::new(tree));
        self.bodies[body.index()].inline_tree.get_or_insert(index);
        true
    }

    /// An interop stub was made for `target`.
    pub fn stub_generated(&mut self, clr_instance: u16, stub_method_id: u64, target: NameId) {
        let index = self.stubs.len() as u32;
        self.stubs.push(StubTargets {
            targets: vec![target],
        });
        self.stub_by_method
            .insert((clr_instance, stub_method_id), index);
        // The event can also follow the load of its stub.
        if let Some(body) = self.latest(clr_instance, stub_method_id)
            && self.bodies[body.index()].stub.is_none()
            && self.bodies[body.index()].is_alive()
        {
            self.bodies[body.index()].stub = Some(index);
        }
    }

    /// A stub that exists already serves another target.
    pub fn stub_shared(&mut self, clr_instance: u16, stub_method_id: u64, target: NameId) {
        match self.stub_by_method.get(&(clr_instance, stub_method_id)) {
            None => self.stub_generated(clr_instance, stub_method_id, target),
            Some(&index) => {
                let targets = &mut self.stubs[index as usize].targets;
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
    }

    /// The body of a method that was told of last.
    pub fn latest(&self, clr_instance: u16, method_id: u64) -> Option<BodyIndex> {
        self.by_method
            .get(&(clr_instance, method_id))?
            .last()
            .copied()
    }

    /// All bodies of a method, in the order in which they were told of.
    pub fn bodies_of(&self, clr_instance: u16, method_id: u64) -> &[BodyIndex] {
        self.by_method
            .get(&(clr_instance, method_id))
            .map_or(&[], Vec::as_slice)
    }

    /// The module that `module_id` means now.
    pub fn module(&self, clr_instance: u16, module_id: u64) -> Option<ModuleIndex> {
        self.module_by_id.get(&(clr_instance, module_id)).copied()
    }

    /// Puts a module in place of an older one of the same id.
    pub fn add_module(&mut self, module: Module) -> ModuleIndex {
        let index = ModuleIndex(self.modules.len() as u32);
        Arc::make_mut(&mut self.module_by_id)
            .insert((module.clr_instance, module.module_id), index);
        self.modules.push(module);
        index
    }

    /// Gives a module that was listed late the bodies that named it before.
    pub fn adopt(&mut self, module: ModuleIndex) {
        let (clr, id) = (
            self.modules[module.index()].clr_instance,
            self.modules[module.index()].module_id,
        );
        for body in self.orphans.remove(&(clr, id)).unwrap_or_default() {
            if self.bodies[body.index()].module.is_none() {
                self.bodies[body.index()].module = Some(module);
                self.modules[module.index()].bodies.push(body);
            }
        }
    }

    /// Ends the life of a body, unless it has ended.
    fn close(&mut self, body: BodyIndex, time: u64) {
        if self.bodies[body.index()].is_alive() {
            self.bodies[body.index()].end = End::At(time);
            self.changed(body);
        }
    }

    /// The process ended: nothing lives on.
    pub fn close_all(&mut self, time: u64) {
        for index in 0..self.bodies.len() {
            if !matches!(self.bodies[index].end, End::At(at) if at <= time) {
                self.bodies[index].end = End::At(time);
                self.changed(BodyIndex(index as u32));
            }
        }
    }

    fn changed(&mut self, body: BodyIndex) {
        if let Some(changes) = &mut self.changes {
            changes.push(body);
        }
    }

    /// From now on keeps a list of bodies that are new or have another end; returns what came on it since the last call.
    pub fn take_changes(&mut self) -> Vec<BodyIndex> {
        match &mut self.changes {
            Some(changes) => std::mem::take(changes),
            None => {
                self.changes = Some(Vec::new());
                (0..self.bodies.len() as u32).map(BodyIndex).collect()
            }
        }
    }

    /// What answers need, as it is now; cheap, and later events do not change it.
    pub fn snapshot(&self) -> Self {
        ProcessCode {
            bodies: self.bodies.clone(),
            modules: self.modules.clone(),
            il_maps: self.il_maps.clone(),
            inline_trees: self.inline_trees.clone(),
            stubs: self.stubs.clone(),
            by_method: self.by_method.clone(),
            module_by_id: self.module_by_id.clone(),
            unbound_maps: self.unbound_maps,
            ..ProcessCode::default()
        }
    }

    /// Drops what hangs on bodies that are long gone.
    pub fn forget(&mut self, bodies: impl Iterator<Item = BodyIndex>) {
        for body in bodies {
            let known = &mut self.bodies[body.index()];
            let key = (known.clr_instance, known.method_id, known.start);
            let method = (known.clr_instance, known.method_id);
            let start = known.start;
            let (map, tree) = (known.il_map.take(), known.inline_tree.take());
            if let Some(map) = map {
                self.il_maps[map as usize] = Arc::default();
            }
            if let Some(tree) = tree {
                self.inline_trees[tree as usize] = Arc::default();
            }
            if self.by_key.get(&key) == Some(&body) {
                self.by_key.remove(&key);
            }
            if self
                .occupied
                .get(&start)
                .is_some_and(|&(_, top)| top == body)
            {
                self.occupied.remove(&start);
            }
            let by_method = Arc::make_mut(&mut self.by_method);
            if let Some(bodies) = by_method.get_mut(&method) {
                bodies.retain(|&b| b != body);
                if bodies.is_empty() {
                    by_method.remove(&method);
                }
            }
        }
    }

    /// Closes what a module contained (rule 6).
    pub fn close_module(&mut self, module: ModuleIndex, time: u64) {
        for i in 0..self.modules[module.index()].bodies.len() {
            self.close(self.modules[module.index()].bodies[i], time);
        }
    }

    /// Binds what waited for a neighbour that never came; call once after the last event.
    pub fn settle(&mut self) {
        for (clr_instance, pending) in std::mem::take(&mut self.waiting_maps) {
            match self.by_version(clr_instance, &pending) {
                Some(body) => {
                    self.bodies[body.index()].il_map.get_or_insert(pending.map);
                }
                None => self.unbound_maps += 1,
            }
        }
        for state in self.threads.values_mut() {
            if state.pending.take().is_some() {
                self.unbound_maps += 1;
            }
        }
        self.place_entry_points();
    }

    /// Rule 15: gives an extent to precompiled methods of which only the entry point is known.
    fn place_entry_points(&mut self) {
        const FURTHEST: u64 = 4096;
        let points: Vec<_> = std::mem::take(&mut self.entry_points).into_iter().collect();
        let mut starts: Vec<u64> = self
            .bodies
            .iter()
            .map(|b| b.start)
            .chain(points.iter().map(|p| p.0))
            .collect();
        starts.sort_unstable();
        starts.dedup();
        for (start, point) in points {
            if let Some(&body) = self
                .by_key
                .get(&(point.clr_instance, point.method_id, start))
            {
                self.bodies[body.index()]
                    .evidence
                    .insert(Evidence::EntryPoint);
                continue;
            }
            let next = starts
                .get(starts.partition_point(|&s| s <= start))
                .copied()
                .unwrap_or(u64::MAX);
            let size = (next - start).min(FURTHEST) as u32;
            let fact = MethodFact {
                time: point.time,
                clr_instance: point.clr_instance,
                method_id: point.method_id,
                start,
                size,
                token: 0,
                flags: MethodFlags(0),
                native_code_version: 0,
                name: point.name,
                module_id: 0,
                module: None,
            };
            let body = self.add(
                &fact,
                Evidence::EntryPoint,
                Begin::Before(point.time),
                End::Open,
                point.time,
            );
            self.bodies[body.index()].approximate = true;
        }
    }
}
