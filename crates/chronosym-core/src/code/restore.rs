//! Restores code from a saved timeline.

use super::ProcessCode;
use crate::body::CodeBody;
use crate::ids::{BodyIndex, NameId};

impl ProcessCode {
    /// Adds a body of a module that was added before, or the id of its module if that is not known,
    /// with its targets if it is a stub.
    pub fn restore_body(
        &mut self,
        mut body: CodeBody,
        targets: Option<Vec<NameId>>,
        module_id: Option<u64>,
    ) -> BodyIndex {
        if let Some(targets) = targets {
            body.rare_mut().stub = Some(self.stubs.push(targets) as u32);
        }
        let (method, module) = ((body.clr_instance, body.method_id), body.module);
        let index = BodyIndex(self.bodies.push(body) as u32);
        self.by_method.push(method, index);
        match (module, module_id) {
            (Some(module), _) => self.module_mut(module).bodies.push(index),
            (None, Some(id)) => self.orphans.entry((method.0, id)).or_default().push(index),
            (None, None) => {}
        }
        index
    }

    /// Returns the module ids of the bodies whose module is not known.
    pub fn unknown_modules(&self) -> impl Iterator<Item = (BodyIndex, u64)> {
        let orphans = self.orphans.iter();
        orphans.flat_map(|(&(_, id), bodies)| bodies.iter().map(move |&body| (body, id)))
    }
}
