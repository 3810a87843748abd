//! Changes between timelines of a live session that invalidate resolved frames.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::body::{CodeBody, Module};
use crate::evidence::Certainty;
use crate::frame::{Code, Frame};
use crate::ids::{BodyIndex, ProcessIndex};
use crate::resolve::{CodeAt, Location};
use crate::space::AddressSpace;
use crate::timeline::Timeline;

/// The epochs of a resolver, counted from 1, of the last changes.
#[derive(Default)]
pub(crate) struct Changes {
    /// Changes on which frames of any process depend.
    all: u32,
    /// Modules, images or runtimes of a process.
    processes: FxHashMap<ProcessIndex, u32>,
    /// Bodies that existed before.
    bodies: FxHashMap<(ProcessIndex, BodyIndex), u32>,
}

impl Changes {
    /// Adds the changes from one timeline to the next; returns whether modules or images may
    /// differ.
    pub fn add(&mut self, epoch: u32, before: &Timeline, after: &Timeline) -> bool {
        let facts = |timeline: &Timeline| {
            let facts = &timeline.facts;
            (
                facts.clock_error_ns,
                facts.pointer_size,
                facts.machine.clone(),
            )
        };
        let is_other = before.session != after.session
            || before.losses != after.losses
            || before.address_mask != after.address_mask
            || facts(before) != facts(after);
        if is_other {
            self.all = epoch;
            return true;
        }
        let mut any = false;
        for (index, space) in after.spaces.changes_since(&before.spaces) {
            let process = ProcessIndex(index as u32);
            let Some(old) = before
                .spaces
                .get(index)
                .filter(|old| !Arc::ptr_eq(old, space))
            else {
                continue;
            };
            let [old_runtimes, runtimes] = [before, after].map(|it| &it.process(process).runtimes);
            if modules_differ(old, space) || old_runtimes != runtimes {
                self.processes.insert(process, epoch);
                any = true;
            }
            let old = &old.state.code.bodies;
            for (index, body) in space.state.code.bodies.changes_since(old) {
                if old.get(index).is_some_and(|old| !is_same_method(old, body)) {
                    self.bodies
                        .insert((process, BodyIndex(index as u32)), epoch);
                }
            }
        }
        any
    }

    /// Returns whether the only frame of an address, built in an epoch, is still that of a
    /// location.
    pub fn holds(
        &self,
        epoch: u32,
        frame: &Frame,
        location: &Location,
        process: ProcessIndex,
    ) -> bool {
        let is_changed = |changed: Option<&u32>| changed.is_some_and(|&changed| changed > epoch);
        if self.all > epoch || is_changed(self.processes.get(&process)) {
            return false;
        }
        let is_as_certain =
            frame.certainty == Some(location.certainty) && frame.after_loss == location.after_loss;
        match (frame.code, location.code) {
            (Code::Body(process, old), CodeAt::Body(new)) => {
                old == new
                    && is_as_certain
                    && location.certainty != Certainty::Approximate
                    && !is_changed(self.bodies.get(&(process, new)))
            }
            (Code::Image { process, image, .. }, CodeAt::Image(owner, new)) => {
                (process, image) == (owner, new)
                    && is_as_certain
                    && !is_changed(self.processes.get(&owner))
            }
            _ => false,
        }
    }
}

/// Returns whether existing images, modules, stubs or in-memory symbols changed.
fn modules_differ(before: &AddressSpace, after: &AddressSpace) -> bool {
    let (before, after) = (&before.state, &after.state);
    let mut images = after.images.changes_since(&before.images);
    let mut modules = after.code.modules.changes_since(&before.code.modules);
    let mut stubs = after.code.stubs.changes_since(&before.code.stubs);
    let other_image = images.any(|(index, image)| {
        match before.images.get(index) {
            Some(old) => !old.is_same_file(image),
            // Its file is checked against all parts.
            None => image.part.is_some(),
        }
    });
    let other_module = modules.any(|(index, module)| {
        let old = before.code.modules.get(index);
        old.is_some_and(|old| !is_same_module(old, module))
    });
    let other_stub = stubs.any(|(index, targets)| {
        let old = before.code.stubs.get(index);
        old.is_some_and(|old| old != targets)
    });
    other_image || other_module || other_stub || !before.clr.has_same_symbols(&after.clr)
}

fn is_same_module(a: &Module, b: &Module) -> bool {
    (a.il_path, a.native_path, a.simple_name) == (b.il_path, b.native_path, b.simple_name)
        && (&a.managed_pdb, &a.native_pdb) == (&b.managed_pdb, &b.native_pdb)
}

/// Returns whether a body has the same frames, ignoring its lifetime.
fn is_same_method(a: &CodeBody, b: &CodeBody) -> bool {
    let is_same_map = match (&a.il_map, &b.il_map) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let is_same_rest = match (&a.rare, &b.rare) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let same = (a.name, a.module, a.evidence) == (b.name, b.module, b.evidence);
    same && is_same_map && is_same_rest
}
