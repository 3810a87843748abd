//! Drops code of a process in a live session.

use std::sync::Arc;

use chronosym_timeline::End;
use chronosym_types::hash::HashSet;

use super::ProcessCode;
use crate::body::Module;
use crate::ids::BodyIndex;
use crate::lifetime::has_ended;

impl ProcessCode {
    /// Drops bodies, and state that ended or was logged by `horizon_ns` and does not belong to a
    /// remaining body.
    pub fn forget(&mut self, dead: &[BodyIndex], horizon_ns: u64) {
        for body in dead {
            let Some(gone) = self.bodies.remove(body.index()) else {
                continue;
            };
            if self.occupied.starting_at(gone.start) == Some(*body) {
                self.occupied.remove(gone.start);
            }
            let ended = match gone.end {
                End::At(time) => time,
                End::After(_) | End::Open => gone.first_seen(),
            };
            self.forget_entry_points(gone.start, gone.last(), ended);
        }
        if !dead.is_empty() {
            self.forget_references();
        }
        self.forget_modules(horizon_ns);
        self.forget_stubs();
        self.forget_threads(horizon_ns);
        let before = self.waiting_maps.len();
        self.waiting_maps.retain(|map| map.time > horizon_ns);
        self.unbound_maps += (before - self.waiting_maps.len()) as u64;
    }

    /// Drops the entry points in a range, logged up to a time, whose code or image ended then.
    pub fn forget_entry_points(&mut self, start: u64, last: u64, time: u64) {
        let points = self.entry_points.range(start..=last);
        let gone = points.filter(|(_, point)| point.time <= time);
        for start in gone.map(|(&start, _)| start).collect::<Vec<_>>() {
            self.entry_points.remove(&start);
        }
    }

    /// Drops the ids of dropped bodies.
    fn forget_references(&mut self) {
        let bodies = &self.bodies;
        let keep = |body: BodyIndex| bodies.contains(body.index());
        self.by_method.retain(|_, body| keep(body));
        let prune = |bodies: &mut Vec<BodyIndex>| {
            bodies.retain(|&body| keep(body));
            bodies.shrink_to(2 * bodies.len());
            !bodies.is_empty()
        };
        self.orphans.retain(|_, bodies| prune(bodies));
        self.orphans.shrink_to(2 * self.orphans.len());
        let lacks = |module: &Module| !module.bodies.iter().all(|&body| keep(body));
        let modules = self.modules.indexed().filter(|(_, module)| lacks(module));
        for index in modules.map(|(index, _)| index).collect::<Vec<_>>() {
            let module = Arc::make_mut(&mut self.modules[index]);
            module.bodies.retain(|&body| keep(body));
            module.open_bodies.retain(|&body| keep(body));
        }
        for thread in self.threads.all_mut() {
            thread.last_method = thread.last_method.filter(|&(_, body)| keep(body));
        }
    }

    /// Drops modules that have ended and have no bodies.
    fn forget_modules(&mut self, horizon_ns: u64) {
        let keep = |_, module: &Arc<Module>| {
            !has_ended(module.end, horizon_ns) || !module.bodies.is_empty()
        };
        if self.modules.retain(keep) == 0 {
            return;
        }
        let modules = &self.modules;
        let by_id = Arc::make_mut(&mut self.module_by_id);
        by_id.retain(|_, module| modules.contains(module.index()));
        by_id.shrink_to(2 * by_id.len());
        self.by_domain.retain(|_, of_domain| {
            of_domain.sort_unstable();
            of_domain.dedup();
            of_domain.retain(|module| modules.contains(module.index()));
            of_domain.shrink_to_fit();
            !of_domain.is_empty()
        });
    }

    /// Drops stubs without a body, unless they are so new that their body may still come.
    fn forget_stubs(&mut self) {
        let used: HashSet<u32> = self.bodies.iter().filter_map(|body| body.stub()).collect();
        let old = self.old_stubs;
        let keep = |index: usize| index >= old || used.contains(&(index as u32));
        if self.stubs.retain(|index, _| keep(index)) > 0 {
            self.stub_by_method.retain(|_, stub| keep(*stub as usize));
            self.stub_by_method.shrink_to(2 * self.stub_by_method.len());
            self.stub_targets.retain(|&(stub, _)| keep(stub as usize));
            self.stub_targets.shrink_to(2 * self.stub_targets.len());
        }
        self.old_stubs = self.stubs.end();
    }

    /// Drops the last events of threads that have logged nothing since.
    fn forget_threads(&mut self, horizon_ns: u64) {
        let gone = self.threads.remove_until(horizon_ns);
        for pending in gone.into_iter().filter_map(|state| state.pending) {
            self.bind_alone(pending);
        }
    }
}
