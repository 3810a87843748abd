//! What one process's events say of its code: bodies and their lives, before anything is frozen (rules 1 to 7).

mod entry_points;
mod modules;
mod neighbours;
mod stubs;

use std::collections::BTreeMap;
use std::sync::Arc;

use chronosym_events::{Action, Extent, MethodFlags};
use chronosym_timeline::{End, Start};
use chronosym_types::hash::{HashMap, HashSet};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::body::{CodeBody, EntryPoint, LineTable, Module};
use crate::evidence::{Evidence, EvidenceSet};
use crate::facts::{self, At};
use crate::ids::NameId;
use crate::ids::{BodyIndex, ModuleIndex};
use crate::il_map::IlMap;
use crate::layers::Layers;
use crate::life::{has_ended, life_of};
use crate::names::Names;
use crate::symbol_text::SymbolText;
use chronosym_types::Chunked;

/// The code of one process.
#[derive(Debug, Default)]
pub(crate) struct ProcessCode {
    pub bodies: Chunked<CodeBody>,
    pub modules: Vec<Module>,
    /// What each interop stub serves, in the order in which it was stated.
    pub stubs: Vec<Vec<NameId>>,
    pub entry_points: BTreeMap<u64, EntryPoint>,
    /// IL maps that no body could be found for.
    pub unbound_maps: u64,
    /// The bodies of each method: (clr, method id) → bodies.
    pub by_method: Layers<(u16, u64), BodyIndex>,
    module_by_id: Arc<HashMap<(u16, u64), ModuleIndex>>,
    /// The modules that were said to be in a domain: (clr, domain) → modules.
    by_domain: HashMap<(u16, u64), Vec<ModuleIndex>>,
    /// The bodies that the end of a module closes, unless they ended before.
    open_bodies: FxHashMap<ModuleIndex, Vec<BodyIndex>>,
    stub_by_method: HashMap<(u16, u64), u32>,
    /// The targets that a stub has already.
    stub_targets: HashSet<(u32, NameId)>,
    /// Who was last said to occupy a range: start → (last byte, body).
    occupied: BTreeMap<u64, (u64, BodyIndex)>,
    threads: HashMap<u64, ThreadState>,
    /// Bodies whose module was not known when they were stated: (clr, module id) → bodies.
    orphans: HashMap<(u16, u64), Vec<BodyIndex>>,
    /// IL maps that came.
    il_maps: usize,
    /// V1 maps whose body has not been stated.
    waiting_maps: Vec<Pending>,
    /// Bodies that are new or have another end, for whoever mirrors them; `None` where nobody does.
    changes: Option<Vec<BodyIndex>>,
}

/// Runtime instance, method, native code version, extent.
type VersionKey = (u16, u64, u64, Extent);

/// A map that waits for the event which it belongs to.
#[derive(Debug)]
struct Pending {
    time: u64,
    method_id: u64,
    extent: Extent,
    /// Where the event has the native code version (V1).
    version: Option<VersionKey>,
    map: Arc<IlMap>,
    /// How many maps came before it.
    before: usize,
}

/// What a thread said last: maps belong to their neighbours (rule 12).
#[derive(Debug, Default)]
struct ThreadState {
    /// The method that it stated, unless that was the last word on it.
    last_method: Option<(u64, BodyIndex)>,
    pending: Option<Pending>,
    jitting: Vec<(u64, u64)>,
}

/// Without a `MethodJittingStarted`, code may run this long before its load event is logged (rule 8).
const LOAD_LAG_NS: u64 = 1_000_000;

impl ProcessCode {
    /// Applies what is stated of a body of the CLR's.
    pub fn apply_method(&mut self, at: At, method: &facts::Method<'_>, names: &mut Names) {
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
        let (time, thread) = (at.time_ns, at.writer());
        let (begin, end) = life_of(method.action, time);
        let stated = CodeBody {
            clr_instance: method.clr_instance,
            start: method.start,
            size: method.size,
            token: method.token,
            flags: method.flags,
            method_id: method.id,
            native_code_version: method.native_code_version,
            name,
            module: self.module(method.clr_instance, method.module_id),
            evidence: EvidenceSet::of(Evidence::of(method.action)),
            begin,
            end,
            earliest: match method.action {
                Action::Load => self.jitted_from(method.id, time, thread),
                _ => time,
            },
            ..CodeBody::NONE
        };
        let opens = matches!(method.action, Action::Load | Action::DCStart);
        let known = self.known(standing, &stated);
        // What has ended and comes again is another body.
        let known = known.filter(|body| !opens || self.bodies[body.index()].is_alive());
        let body = match known {
            Some(body) => {
                match method.action {
                    Action::Load | Action::DCStart => {}
                    Action::Unload => self.close(body, time),
                    Action::DCEnd => self.extend(body, time),
                }
                self.confirm(body, &stated);
                body
            }
            None => self.add(stated, method.module_id),
        };
        self.follow(thread, (method.id, method.flags.extent()), body, opens);
    }

    /// From when on code may run that is loaded now (rule 8).
    fn jitted_from(&mut self, method_id: u64, time: u64, thread: u64) -> u64 {
        let jitting = &mut self.threads.entry(thread).or_default().jitting;
        let started = jitting.iter().rposition(|&(id, _)| id == method_id);
        started.map_or(time.saturating_sub(LOAD_LAG_NS), |i| {
            jitting.swap_remove(i).1
        })
    }

    /// Applies a body of another compiler than the CLR's. It ends where something else comes to stand.
    pub fn native_method(
        &mut self,
        time: u64,
        method: &facts::NativeMethod<'_>,
        names: &mut Names,
    ) {
        let text = method.name.to_text();
        let text = SymbolText::parse(&text);
        let stated = CodeBody {
            start: method.start,
            size: method.size,
            flags: MethodFlags::jitted(text.tier),
            name: names.intern(text.namespace, text.name, &text.signature()),
            evidence: EvidenceSet::of(Evidence::JitDump),
            begin: Start::At(time),
            end: End::Open,
            earliest: time,
            ..CodeBody::NONE
        };
        let body = match self.known(self.standing(0, 0, method.start), &stated) {
            Some(body) if self.bodies[body.index()].is_alive() => body,
            _ => self.add(stated, 0),
        };
        if !method.lines.is_empty() {
            let offset = |address: u64| u32::try_from(address.checked_sub(method.start)?).ok();
            let lines = method.lines.iter().filter_map(|&(address, file, line)| {
                Some((offset(address)?, (names.strings.intern(file), line)))
            });
            self.bodies[body.index()].rare_mut().lines = Some(LineTable::new(lines));
        }
    }

    /// Code of such a compiler was moved: the two places may overlap.
    pub fn native_move(&mut self, time: u64, from: u64, to: u64) {
        let Some(old) = self.occupant(from) else {
            return;
        };
        let known = &self.bodies[old.index()];
        let moved = CodeBody {
            start: known.start.wrapping_sub(from).wrapping_add(to),
            begin: Start::At(time),
            end: End::Open,
            earliest: time,
            ..known.clone()
        };
        self.occupied.remove(&known.start);
        self.close(old, time);
        self.push((0, 0), moved);
    }

    /// Whether an event of a runtime was the last to say what stands at an address.
    pub fn is_stated_by_events(&self, address: u64) -> bool {
        let body = self
            .occupant(address)
            .map(|body| &self.bodies[body.index()]);
        body.is_some_and(|body| body.evidence != EvidenceSet::of(Evidence::JitDump))
    }

    /// A rundown at the end lists the body: that extends the life of one that the same shutdown had unloaded before.
    fn extend(&mut self, body: BodyIndex, time: u64) {
        let known = &mut self.bodies[body.index()];
        let had_ended = !known.is_alive();
        known.end = End::After(time);
        if had_ended && let Some(module) = known.module {
            self.open_bodies.entry(module).or_default().push(body);
        }
        self.changed(body);
    }

    /// The body of a method that was last said to stand at a start, unless something was put over it since.
    fn standing(&self, clr_instance: u16, method_id: u64, start: u64) -> Option<BodyIndex> {
        let &(_, body) = self.occupied.get(&start)?;
        let known = &self.bodies[body.index()];
        (known.method_id == method_id && known.clr_instance == clr_instance).then_some(body)
    }

    /// The body that a statement can be of: it stands, and size and name agree.
    fn known(&self, standing: Option<BodyIndex>, stated: &CodeBody) -> Option<BodyIndex> {
        standing.filter(|body| {
            let known = &self.bodies[body.index()];
            known.size == stated.size
                && (known.name == stated.name
                    || known.name == NameId::NONE
                    || stated.name == NameId::NONE)
                && (known.native_code_version == stated.native_code_version
                    || known.native_code_version == 0
                    || stated.native_code_version == 0)
        })
    }

    fn confirm(&mut self, body: BodyIndex, stated: &CodeBody) {
        let known = &mut self.bodies[body.index()];
        known.evidence = known.evidence.and(stated.evidence);
        if known.name == NameId::NONE {
            known.name = stated.name;
        }
        if known.native_code_version == 0 {
            known.native_code_version = stated.native_code_version;
        }
        if known.module.is_none()
            && let Some(module) = stated.module
        {
            known.module = Some(module);
            self.contain(module, body);
        }
    }

    /// Adds a body; `module_id` is what its module is or will be known by.
    fn add(&mut self, mut body: CodeBody, module_id: u64) -> BodyIndex {
        let method = (body.clr_instance, body.method_id);
        if let Some(&stub) = self.stub_by_method.get(&method) {
            body.rare_mut().stub = Some(stub);
            body.evidence.insert(Evidence::Stub);
        }
        let index = BodyIndex(self.bodies.len() as u32);
        match body.module {
            Some(module) => self.contain(module, index),
            None => {
                let orphans = self.orphans.entry((body.clr_instance, module_id));
                orphans.or_default().push(index);
            }
        }
        self.push(method, body)
    }

    fn push(&mut self, method: (u16, u64), body: CodeBody) -> BodyIndex {
        let index = BodyIndex(self.bodies.len() as u32);
        self.bodies.push(body);
        self.by_method.push(method, index);
        self.occupy(index);
        self.changed(index);
        index
    }

    /// Notes that `body` was last said to stand at its range; whatever overlaps it stands there no more.
    fn occupy(&mut self, body: BodyIndex) {
        let known = &self.bodies[body.index()];
        let (start, last) = (known.start, known.last());
        let below = self.occupied.range(..=last).rev();
        let covered = below.take_while(|&(_, &(end, _))| end >= start);
        let covered: SmallVec<[u64; 4]> = covered.map(|(&other, _)| other).collect();
        for other in covered {
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
            if known.flags.is_jitted() && known.first_seen() <= time {
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
            stubs: self.stubs.clone(),
            by_method: self.by_method.snapshot(),
            module_by_id: self.module_by_id.clone(),
            unbound_maps: self.unbound_maps,
            ..ProcessCode::default()
        }
    }

    /// Drops bodies that are long gone, and all that hangs on them.
    pub fn forget(&mut self, dead: &[BodyIndex]) {
        for &body in dead {
            let known = std::mem::replace(&mut self.bodies[body.index()], CodeBody::NONE);
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
