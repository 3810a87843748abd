//! What belongs to a body because the runtime wrote it beside the body's event on the same thread (rule 12): IL maps,
//! inline trees, and when the JIT began.

use std::sync::Arc;

use chronosym_events::{Action, Extent};

use crate::body::{BodyIndex, MethodFact};
use crate::code::ProcessCode;
use crate::il_map::IlMap;
use crate::inline_tree::InlineTree;

/// A map that waits for the event which it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    clr_instance: u16,
    method_id: u64,
    /// The native code version, where the event has it (V1).
    version: Option<u64>,
    extent: Extent,
    map: u32,
}

/// What an IL map event says.
#[derive(Debug)]
pub(crate) struct MapFact {
    pub map: IlMap,
    pub action: Action,
    pub clr_instance: u16,
    pub method_id: u64,
    /// The native code version, where the event has it (V1).
    pub version: Option<u64>,
    pub extent: Extent,
}

/// What a thread said last: maps belong to their neighbours (rule 12).
#[derive(Debug, Default)]
pub(crate) struct ThreadState {
    /// The method that it told of, unless that was the last word on it.
    pub last_told: Option<(u64, BodyIndex)>,
    pub pending: Option<Pending>,
    pub jitting: Vec<(u64, u64)>,
}

impl ProcessCode {
    /// `MethodJittingStarted`.
    pub fn jitting_started(&mut self, method_id: u64, time: u64, thread: u64) {
        let jitting = &mut self.threads.entry(thread).or_default().jitting;
        // Methods that are started and never loaded must not pile up.
        if jitting.len() >= 64 {
            jitting.remove(0);
        }
        jitting.push((method_id, time));
    }

    /// An IL map. Those of loads and of a rundown at the start follow the event of their method, those of a rundown at
    /// the end precede it.
    pub fn il_map(&mut self, fact: MapFact, thread: u64) {
        let pending = Pending {
            clr_instance: fact.clr_instance,
            method_id: fact.method_id,
            version: fact.version,
            extent: fact.extent,
            map: self.il_maps.len() as u32,
        };
        self.il_maps.push(Arc::new(fact.map));
        let state = self.threads.entry(thread).or_default();
        let told = state.last_told.filter(|&(id, body)| {
            id == pending.method_id && self.bodies[body.index()].flags.extent() == pending.extent
        });
        match (fact.action, told) {
            (Action::Load | Action::DCStart, Some((_, body))) => self.bind(body, pending),
            (Action::Load, None) => self.bind_alone(pending),
            (Action::DCStart | Action::DCEnd | Action::Unload, _) => {
                if let Some(orphan) = state.pending.replace(pending) {
                    self.bind_alone(orphan);
                }
            }
        }
    }

    /// A thread told of a method: a map that it wrote just before belongs to it. `more` may follow.
    pub fn told(&mut self, thread: u64, fact: &MethodFact, body: BodyIndex, more: bool) {
        let state = self.threads.entry(thread).or_default();
        state.last_told = more.then_some((fact.method_id, body));
        if let Some(pending) = state.pending.take() {
            if pending.method_id == fact.method_id && fact.flags.extent() == pending.extent {
                self.bind(body, pending);
            } else {
                self.bind_alone(pending);
            }
        }
    }

    fn bind(&mut self, body: BodyIndex, pending: Pending) {
        self.bodies[body.index()].il_map.get_or_insert(pending.map);
    }

    /// A map without its neighbour: V1 says which version it is of. V0 does not, and guessing would give tiers each
    /// other's maps.
    fn bind_alone(&mut self, pending: Pending) {
        let Some(version) = pending.version else {
            self.unbound_maps += 1;
            return;
        };
        match self.by_version(
            pending.clr_instance,
            pending.method_id,
            version,
            pending.extent,
        ) {
            Some(body) => self.bind(body, pending),
            None => self.waiting_maps.push(pending),
        }
    }

    fn by_version(
        &self,
        clr_instance: u16,
        method_id: u64,
        version: u64,
        extent: Extent,
    ) -> Option<BodyIndex> {
        self.by_method
            .of((clr_instance, method_id))
            .rev()
            .find(|b| {
                let body = &self.bodies[b.index()];
                body.native_code_version == version && body.flags.extent() == extent
            })
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
            .and_then(|s| s.last_told)
            .filter(|&(id, _)| id == method_id);
        let body = neighbour
            .map(|(_, body)| body)
            .or_else(|| self.by_version(clr_instance, method_id, version, Extent::Hot));
        let Some(body) = body else { return false };
        let index = self.inline_trees.len() as u32;
        self.inline_trees.push(Arc::new(tree));
        self.bodies[body.index()].inline_tree.get_or_insert(index);
        true
    }

    /// Binds what waited for a neighbour that never came.
    pub fn settle_neighbours(&mut self) {
        let pending: Vec<_> = self
            .threads
            .values_mut()
            .filter_map(|state| state.pending.take())
            .collect();
        for pending in std::mem::take(&mut self.waiting_maps)
            .into_iter()
            .chain(pending)
        {
            self.bind_alone(pending);
        }
        // What waits again waits for ever.
        self.unbound_maps += std::mem::take(&mut self.waiting_maps).len() as u64;
    }
}
