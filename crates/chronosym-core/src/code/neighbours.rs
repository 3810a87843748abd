//! Binds IL maps, inline trees and the start of compilation to the adjacent method event of the
//! same thread (rule 12).

use std::cmp::Reverse;
use std::sync::Arc;

use chronosym_events::{Action, Extent};
use chronosym_timeline::Start;
use chronosym_types::hash::HashMap;
use smallvec::SmallVec;

use super::threads::{Pending, VersionKey};
use super::{LoneMap, ProcessCode};
use crate::facts::{self, At};
use crate::ids::BodyIndex;
use crate::il_map::IlMap;
use crate::inline_tree::InlineTree;
use crate::lifetime::has_ended;

impl ProcessCode {
    /// `MethodJittingStarted`.
    pub fn jitting_started(&mut self, method_id: u64, time: u64, thread: u64) {
        let jitting = &mut self.threads.logging(thread, time).jitting;
        // Bounds the number of methods that were started and never loaded.
        if jitting.len() >= 64 {
            jitting.remove(0);
        }
        jitting.push((method_id, time));
    }

    /// Applies an IL map, in the order of events. Maps of loads and of a start rundown follow the
    /// event of their method; those of an end rundown precede it.
    pub fn il_map(
        &mut self,
        at: At,
        fact: &facts::IlMap<'_>,
        entries: impl Iterator<Item = (i32, u32)>,
    ) {
        let (method_id, extent) = (fact.method_id, fact.extent);
        let key = |version| (fact.clr_instance, method_id, version, extent);
        let pending = Pending {
            time: at.time_ns,
            method_id,
            extent,
            version: fact.version.map(key),
            map: Arc::new(IlMap::new(entries)),
            before: self.il_maps,
        };
        self.il_maps += 1;
        self.details_bytes += pending.map.memory_bytes();
        let last_method = self.threads.logging(at.writer(), at.time_ns).last_method;
        let neighbour = last_method.filter(|&(id, body)| {
            id == method_id && self.bodies[body.index()].flags.extent() == extent
        });
        match (fact.action, neighbour) {
            (Action::Load | Action::DCStart, Some((_, body))) => self.bind(body, pending),
            (Action::Load, None) => self.bind_alone(pending),
            (Action::DCStart | Action::DCEnd | Action::Unload, _) => {
                let state = self.threads.logging(at.writer(), at.time_ns);
                if let Some(orphan) = state.pending.replace(pending) {
                    self.bind_alone(orphan);
                }
            }
        }
    }

    /// Binds a map that the thread wrote directly before a method event. `more` may follow.
    pub(super) fn follow(
        &mut self,
        (thread, time): (u64, u64),
        method: (u64, Extent),
        body: BodyIndex,
        more: bool,
    ) {
        let state = self.threads.logging(thread, time);
        state.last_method = more.then_some((method.0, body));
        if let Some(pending) = state.pending.take() {
            if (pending.method_id, pending.extent) == method {
                self.bind(body, pending);
            } else {
                self.bind_alone(pending);
            }
        }
    }

    fn bind(&mut self, body: BodyIndex, pending: Pending) {
        let il_map = &mut self.bodies[body.index()].il_map;
        il_map.get_or_insert(pending.map);
    }

    /// Binds a map without an adjacent event by its version (V1). V0 has none, and a guess would
    /// swap the maps of tiers.
    pub(super) fn bind_alone(&mut self, pending: Pending) {
        match pending
            .version
            .map(|key| self.by_version(key, pending.time))
        {
            Some(Some(body)) => self.bind(body, pending),
            Some(None) => self.waiting_maps.push(pending),
            None => self.unbound_maps += 1,
        }
    }

    /// Returns the body of this version that was alive at a time.
    fn by_version(&self, key: VersionKey, time: u64) -> Option<BodyIndex> {
        let bodies = self.by_method.of((key.0, key.1)).rev();
        bodies
            .take(VERSIONS_SEARCHED)
            .find(|&b| self.bodies[b.index()].first_seen() <= time && self.version(b) == key)
            .filter(|b| !has_ended(self.bodies[b.index()].end, time))
    }

    fn version(&self, body: BodyIndex) -> VersionKey {
        let body = &self.bodies[body.index()];
        let extent = body.flags.extent();
        (
            body.clr_instance,
            body.method_id,
            body.native_code_version,
            extent,
        )
    }

    /// Applies the inline tree of the body of its method that the thread loaded last. Returns false
    /// if there is none.
    pub fn inline_tree(&mut self, at: At, fact: facts::InlineTree) -> bool {
        let thread = self.threads.get(at.writer());
        let neighbour = thread
            .and_then(|thread| thread.last_method)
            .filter(|&(id, _)| id == fact.method_id);
        let key = (fact.clr_instance, fact.method_id, fact.version, Extent::Hot);
        let body = neighbour
            .map(|(_, body)| body)
            .or_else(|| self.by_version(key, at.time_ns));
        let Some(body) = body else { return false };
        let tree = &fact.tree;
        self.details_bytes += size_of_val(tree.nodes()) + size_of_val(tree.mappings());
        let rare = self.bodies[body.index()].rare_mut();
        rare.inline_tree.get_or_insert(InlineTree(fact.tree));
        true
    }

    /// Binds maps without an adjacent event, when all bodies and their ends are known.
    pub(super) fn bind_waiting(&mut self) {
        let pending = self
            .threads
            .all_mut()
            .filter_map(|state| state.pending.take());
        let mut waiting = std::mem::take(&mut self.waiting_maps);
        waiting.extend(pending);
        // The latest map before a body belongs to it; earlier ones belong to bodies without an
        // event.
        waiting.sort_by_key(|pending| Reverse((pending.time, pending.before)));
        let versions = self.versions(&waiting);
        let mut lone = Vec::new();
        for pending in waiting {
            let bodies = pending.version.and_then(|key| versions.get(&key));
            match bodies.and_then(|bodies| self.alive_then(bodies.as_slice(), pending.time)) {
                Some(body) => {
                    let il_map = &mut self.bodies[body.index()].il_map;
                    let is_other = *il_map.get_or_insert(Arc::clone(&pending.map)) != pending.map;
                    self.unbound_maps += u64::from(is_other);
                }
                None => {
                    self.unbound_maps += 1;
                    lone.extend(pending.lone());
                }
            }
        }
        lone.reverse();
        Arc::make_mut(&mut self.lone_maps).extend(lone);
    }

    /// Applies a map whose body had no event in the recording that has it. Call it in the order of
    /// times, when the bodies of other recordings are known.
    pub fn restore_map(&mut self, lone: LoneMap) {
        let LoneMap {
            time,
            clr_instance,
            method_id,
            version,
            extent,
            map,
        } = lone;
        let pending = Pending {
            time,
            method_id,
            extent,
            version: Some((clr_instance, method_id, version, extent)),
            map,
            before: self.il_maps,
        };
        self.il_maps += 1;
        self.bind_alone(pending);
    }

    /// Returns the bodies of the versions of these maps, in the order of their first events.
    fn versions(&self, maps: &[Pending]) -> HashMap<VersionKey, SmallVec<[BodyIndex; 1]>> {
        let keys = maps.iter().filter_map(|pending| pending.version);
        let mut versions: HashMap<_, _> = keys.map(|key| (key, SmallVec::default())).collect();
        let mut methods: Vec<_> = versions.keys().map(|key| (key.0, key.1)).collect();
        methods.sort_unstable();
        methods.dedup();
        for (clr, method) in methods {
            for index in self.by_method.of((clr, method)) {
                if let Some(bodies) = versions.get_mut(&self.version(index)) {
                    bodies.push(index);
                }
            }
        }
        versions
    }

    /// Of the bodies of one version, the one alive at a time: the last before it, or the next one
    /// if that may have been alive already.
    fn alive_then(&self, bodies: &[BodyIndex], time: u64) -> Option<BodyIndex> {
        let body = |at: usize| bodies.get(at).map(|b| (*b, &self.bodies[b.index()]));
        let after = bodies.partition_point(|b| self.bodies[b.index()].first_seen() <= time);
        let last = after.checked_sub(1).and_then(body);
        let last = last.filter(|(_, body)| !has_ended(body.end, time));
        let next = body(after).filter(|(_, body)| matches!(body.loaded, Start::Before(_)));
        last.or(next).map(|(index, _)| index)
    }
}

impl Pending {
    /// Returns the map for another recording, if its version is known.
    fn lone(self) -> Option<LoneMap> {
        let (clr_instance, method_id, version, extent) = self.version?;
        Some(LoneMap {
            time: self.time,
            clr_instance,
            method_id,
            version,
            extent,
            map: self.map,
        })
    }
}

/// Maximum number of a method's bodies to search; methods have a few.
const VERSIONS_SEARCHED: usize = 32;
