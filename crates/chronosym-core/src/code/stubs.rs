//! Interop stubs and their targets (rule 16).

use super::ProcessCode;
use crate::evidence::Evidence;
use crate::facts;
use crate::ids::NameId;
use crate::names::NameTable;

impl ProcessCode {
    /// Applies the target of an interop stub.
    pub fn stub(&mut self, stub: &facts::Stub<'_>, names: &mut NameTable) {
        let target = names.method(stub.target);
        if target != NameId::NONE {
            if stub.is_shared {
                self.stub_shared(stub.clr_instance, stub.method_id, target);
            } else {
                self.stub_generated(stub.clr_instance, stub.method_id, target);
            }
        }
    }

    /// Adds a stub generated for `target`.
    fn stub_generated(&mut self, clr_instance: u16, stub_method_id: u64, target: NameId) {
        let index = self.stubs.push(vec![target]) as u32;
        self.stub_targets.insert((index, target));
        self.stub_by_method
            .insert((clr_instance, stub_method_id), index);
        // The event may follow the load of its stub.
        let mut bodies = self.by_method.of((clr_instance, stub_method_id));
        if let Some(body) = bodies.next_back()
            && let body = &mut self.bodies[body.index()]
            && body.stub().is_none()
            && body.is_alive()
        {
            body.rare_mut().stub = Some(index);
            body.evidence.insert(Evidence::Stub);
        }
    }

    /// Adds a target to an existing stub.
    fn stub_shared(&mut self, clr_instance: u16, stub_method_id: u64, target: NameId) {
        match self.stub_by_method.get(&(clr_instance, stub_method_id)) {
            None => self.stub_generated(clr_instance, stub_method_id, target),
            Some(&index) => {
                if self.stub_targets.insert((index, target)) {
                    self.stubs[index as usize].push(target);
                }
            }
        }
    }
}
