//! Restores code from a saved timeline.

use super::ProcessCode;
use crate::body::CodeBody;
use crate::ids::{BodyIndex, NameId};

impl ProcessCode {
    /// Adds a body of a module that was added before, with its targets if it is a stub.
    pub fn restore_body(&mut self, mut body: CodeBody, targets: Option<Vec<NameId>>) {
        if let Some(targets) = targets {
            body.rare_mut().stub = Some(self.stubs.push(targets) as u32);
        }
        let (method, module) = ((body.clr_instance, body.method_id), body.module);
        let index = BodyIndex(self.bodies.push(body) as u32);
        self.by_method.push(method, index);
        if let Some(module) = module {
            self.module_mut(module).bodies.push(index);
        }
    }
}
