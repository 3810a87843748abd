//! What one process's events say of its code: bodies and their lives, before anything is frozen (rules 1 to 7).

mod entry_points;
mod modules;
mod neighbours;
mod stubs;

use std::collections::BTreeMap;
use std::sync::Arc;

use chronosym_events::{Action, MethodFlags, OptimizationTier};
use chronosym_timeline::{Begin, End};
use rustc_hash::{FxHashMap, FxHashSet};

use self::neighbours::{Pending, ThreadState};
use crate::body::{
    BodyIndex, CodeBody, EntryPoint, LineTable, MethodFact, Module, ModuleIndex, StubTargets,
};
use crate::chunked::Chunked;
use crate::evidence::{Evidence, EvidenceSet};
use crate::facts;
use crate::il_map::IlMap;
use crate::inline_tree::InlineTree;
use crate::layers::Layers;
use crate::life::has_ended;
use crate::names::{NameId, Names};
use crate::strings::StringId;
use crate::untimed::SymbolText;

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
    pub line_tables: Chunked<Arc<LineTable>>,
    /// The bodies of each method: (clr, method id) → bodies.
    pub by_method: Layers<(u16, u64), BodyIndex>,
    module_by_id: Arc<FxHashMap<(u16, u64), ModuleIndex>>,
    /// The modules that were said to be in a domain: (clr, domain) → modules.
    by_domain: FxHashMap<(u16, u64), Vec<ModuleIndex>>,
    /// The bodies that the end of a module closes, unless they ended before.
    open_bodies: FxHashMap<ModuleIndex, Vec<BodyIndex>>,
    stub_by_method: FxHashMap<(u16, u64), u32>,
    /// The targets that a stub has already.
    stub_targets: FxHashSet<(u32, NameId)>,
    /// Who was last said to occupy a range: start → (last byte, body).
    occupied: BTreeMap<u64, (u64, BodyIndex)>,
    threads: FxHashMap<u64, ThreadState>,
    /// Bodies whose module was not known when they were stated: (clr, module id) → bodies.
    orphans: FxHashMap<(u16, u64), Vec<BodyIndex>>,
    /// V1 maps whose body has not been stated.
    waiting_maps: Vec<Pending>,
    /// Bodies that are new or have another end, for whoever mirrors them; `None` where nobody does.
    changes: Option<Vec<BodyIndex>>,
}

/// Where MethodFlags keep a tier.
fn tier_bits(tier: Option<OptimizationTier>) -> u32 {
    let of_jitted = |&bits: &u32| MethodFlags(8 | bits << 7).tier() == tier;
    (1..8).find(of_jitted).unwrap_or(0) << 7
}

/// Without a `MethodJittingStarted`, code may run this long before its load event is logged (rule 8).
const LOAD_LAG_NS: u64 = 1_000_000;

impl ProcessCode {
    /// Applies a method event that `thread` wrote.
    pub fn apply_method(
        &mut self,
        time: u64,
        thread: u64,
        method: &facts::Method<'_>,
        names: &mut Names,
    ) {
        let standing = self.standing(method.clr_instance, method.id, method.start);
        let [namespace, name, _] = &method.names;
        let name = if namespace.is_empty() && name.is_empty() {
            NameId::NONE
        } else {
            // Unloads and rundowns say again what a load said.
            let known = standing.map(|body| self.bodies[body.index()].name);
            known
                .filter(|&known| names.is(known, method.names))
                .unwrap_or_else(|| names.method(method.names))
        };
        let fact = MethodFact {
            time,
            clr_instance: method.clr_instance,
            method_id: method.id,
            start: method.start,
            size: method.size,
            token: method.token,
            flags: method.flags,
            native_code_version: method.native_code_version,
            name,
            module_id: method.module_id,
            module: self.module(method.clr_instance, method.module_id),
            standing,
        };
        match method.action {
            Action::Load => self.load(fact, thread),
            Action::Unload => self.unload(fact, thread),
            Action::DCStart => self.dc_start(fact, thread),
            Action::DCEnd => self.dc_end(fact, thread),
        };
    }

    /// Applies a body of another compiler than the CLR's. It ends where something else comes to stand.
    pub fn native_method(
        &mut self,
        time: u64,
        method: &facts::NativeMethod<'_>,
        names: &mut Names,
    ) {
        const JITTED: u32 = 8;
        let text = method.name.to_text();
        let text = SymbolText::parse(&text);
        let fact = MethodFact {
            time,
            clr_instance: 0,
            method_id: 0,
            start: method.start,
            size: method.size,
            token: 0,
            flags: MethodFlags(JITTED | tier_bits(text.tier)),
            native_code_version: 0,
            name: text.intern(names),
            module_id: 0,
            module: None,
            standing: self.standing(0, 0, method.start),
        };
        let body = match self.known(&fact) {
            Some(body) if self.bodies[body.index()].is_alive() => body,
            _ => self.add(&fact, Evidence::JitDump, Begin::At(time), End::Open, time),
        };
        if !method.lines.is_empty() {
            let offset = |address: u64| u32::try_from(address.checked_sub(method.start)?).ok();
            let lines = method.lines.iter().filter_map(|&(address, file, line)| {
                Some((offset(address)?, names.strings.intern(file), line))
            });
            self.bodies[body.index()].lines = Some(self.line_tables.len() as u32);
            self.line_tables.push(Arc::new(LineTable::new(lines)));
        }
    }

    /// Code of such a compiler was moved: the two places may overlap.
    pub fn native_move(&mut self, time: u64, from: u64, to: u64) {
        let Some(old) = self.occupant(from) else {
            return;
        };
        let moved = CodeBody {
            start: (self.bodies[old.index()].start)
                .wrapping_sub(from)
                .wrapping_add(to),
            begin: Begin::At(time),
            end: End::Open,
            earliest: time,
            ..self.bodies[old.index()].clone()
        };
        self.occupied.remove(&self.bodies[old.index()].start);
        self.close(old, time);
        let body = BodyIndex(self.bodies.len() as u32);
        self.bodies.push(moved);
        self.by_method.push((0, 0), body);
        self.occupy(body);
        self.changed(body);
    }

    /// Whether an event of a runtime was the last to say what stands at an address.
    pub fn is_told_by_events(&self, address: u64) -> bool {
        let body = self
            .occupant(address)
            .map(|body| &self.bodies[body.index()]);
        body.is_some_and(|body| body.evidence != EvidenceSet::of(Evidence::JitDump))
    }

    /// A live load.
    fn load(&mut self, fact: MethodFact, thread: u64) -> BodyIndex {
        let state = self.threads.entry(thread).or_default();
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
        self.follow(thread, &fact, body, true);
        body
    }

    /// A live unload.
    fn unload(&mut self, fact: MethodFact, thread: u64) -> BodyIndex {
        let body = match self.known(&fact) {
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
        };
        self.follow(thread, &fact, body, false);
        body
    }

    /// A rundown at the start lists the body.
    fn dc_start(&mut self, fact: MethodFact, thread: u64) -> BodyIndex {
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
        self.follow(thread, &fact, body, true);
        body
    }

    /// A rundown at the end lists the body: it extends the life of one that the same shutdown had unloaded before.
    fn dc_end(&mut self, fact: MethodFact, thread: u64) -> BodyIndex {
        let body = match self.known(&fact) {
            Some(body) => {
                let known = &mut self.bodies[body.index()];
                let had_ended = !known.is_alive();
                known.end = End::After(fact.time);
                if had_ended && let Some(module) = known.module {
                    self.open_bodies.entry(module).or_default().push(body);
                }
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
        self.follow(thread, &fact, body, false);
        body
    }

    /// File and line at `native` bytes from the start of a body, where whoever compiled it said so.
    pub fn line_at(&self, body: BodyIndex, native: u32) -> Option<(StringId, u32)> {
        let lines = self.bodies[body.index()].lines?;
        self.line_tables[lines as usize].lookup(native)
    }

    /// The body of a method that was last said to stand at a start, unless something was put over it since.
    fn standing(&self, clr_instance: u16, method_id: u64, start: u64) -> Option<BodyIndex> {
        let &(_, body) = self.occupied.get(&start)?;
        let known = &self.bodies[body.index()];
        (known.method_id == method_id && known.clr_instance == clr_instance).then_some(body)
    }

    /// The body that the fact can speak of: it stands, and size and name agree.
    fn known(&self, fact: &MethodFact) -> Option<BodyIndex> {
        fact.standing.filter(|body| {
            let known = &self.bodies[body.index()];
            known.size == fact.size
                && (known.name == fact.name
                    || known.name == NameId::NONE
                    || fact.name == NameId::NONE)
                && (known.native_code_version == fact.native_code_version
                    || known.native_code_version == 0
                    || fact.native_code_version == 0)
        })
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
            self.contain(module, body);
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
            evidence: match stub {
                Some(_) => EvidenceSet::of(evidence).with(Evidence::Stub),
                None => EvidenceSet::of(evidence),
            },
            begin,
            end,
            earliest,
            il_map: None,
            inline_tree: None,
            stub,
            lines: None,
            approximate: false,
        });
        self.by_method
            .push((fact.clr_instance, fact.method_id), body);
        match fact.module {
            Some(module) => self.contain(module, body),
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
        let known = &self.bodies[body.index()];
        let (start, last) = (known.start, known.last());
        while let Some((&other, &(end, _))) = self.occupied.range(..=last).next_back()
            && end >= start
        {
            self.occupied.remove(&other);
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
            if known.is_jitted() && known.first_seen() <= time {
                self.occupied.remove(&known.start);
                self.close(body, time);
            }
        }
    }

    /// Who was last said to be at an address.
    pub fn occupant(&self, address: u64) -> Option<BodyIndex> {
        let (_, &(last, body)) = self.occupied.range(..=address).next_back()?;
        (address <= last).then_some(body)
    }

    fn contain(&mut self, module: ModuleIndex, body: BodyIndex) {
        self.modules[module.index()].bodies.push(body);
        self.open_bodies.entry(module).or_default().push(body);
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
            if !has_ended(self.bodies[index].end, time) {
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

    /// Binds what waited for a neighbour that never came, and places what has no size; call once after the last event.
    pub fn finish(&mut self) {
        self.bind_waiting();
        self.place_entry_points();
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
    pub fn snapshot(&mut self) -> Self {
        ProcessCode {
            bodies: self.bodies.clone(),
            modules: self.modules.clone(),
            il_maps: self.il_maps.clone(),
            inline_trees: self.inline_trees.clone(),
            stubs: self.stubs.clone(),
            line_tables: self.line_tables.clone(),
            by_method: self.by_method.snapshot(),
            module_by_id: self.module_by_id.clone(),
            unbound_maps: self.unbound_maps,
            ..ProcessCode::default()
        }
    }

    /// Drops bodies that are long gone, and all that hangs on them.
    pub fn forget(&mut self, dead: &[BodyIndex]) {
        for &body in dead {
            let known = std::mem::replace(&mut self.bodies[body.index()], CodeBody::FORGOTTEN);
            if let Some(map) = known.il_map {
                self.il_maps[map as usize] = Arc::default();
            }
            if let Some(tree) = known.inline_tree {
                self.inline_trees[tree as usize] = Arc::default();
            }
            if let Some(lines) = known.lines {
                self.line_tables[lines as usize] = Arc::default();
            }
            if let Some(&(_, top)) = self.occupied.get(&known.start)
                && top == body
            {
                self.occupied.remove(&known.start);
            }
        }
        let touched = dead.iter().map(|body| body.index());
        self.bodies.share_where(touched, CodeBody::is_forgotten);
        let bodies = &self.bodies;
        let keep = |body: BodyIndex| !bodies[body.index()].is_forgotten();
        self.by_method.retain(keep);
        for module in &mut self.modules {
            module.bodies.retain(|&body| keep(body));
        }
        let prune = |bodies: &mut Vec<BodyIndex>| {
            bodies.retain(|&body| keep(body));
            !bodies.is_empty()
        };
        self.orphans.retain(|_, bodies| prune(bodies));
        self.open_bodies.retain(|_, bodies| prune(bodies));
    }
}
