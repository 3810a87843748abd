//! What belongs to a body because the runtime wrote it beside the body's event on the same thread (rule 12): IL maps,
//! inline trees, and when the JIT began.

use std::sync::Arc;

use chronosym_events::Extent;

use crate::body::{BodyIndex, MethodFact};
use crate::code::ProcessCode;
use crate::il_map::IlMap;
use crate::inline_tree::InlineTree;

/// A map or tree that waits for the event which it belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending {
    method_id: u64,
    version: u64,
    extent: Extent,
    map: u32,
}

/// What a thread said last: maps belong to their neighbours (rule 12).
#[derive(Debug, Default)]
pub(crate) struct ThreadState {
    pub last_load: Option<(u64, BodyIndex)>,
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

    pub fn forget_neighbours(&mut self, thread: u64) {
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

    pub fn bind_pending(&mut self, thread: u64, fact: &MethodFact, body: BodyIndex) {
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

    /// Binds what waited for a neighbour that never came.
    pub fn settle_neighbours(&mut self) {
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
    }
}
