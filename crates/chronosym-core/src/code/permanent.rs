//! Code that is never unloaded while its process lives.
//!
//! The runtime frees code of collectible assemblies, and that of dynamic methods and stubs. All other
//! code stays: a new version of a method (tiered compilation, ReJIT) is another body, and the old
//! one remains at its address. Code of generic methods and types may belong to a collectible
//! assembly of one of their arguments.

use chronosym_events::MethodFlags;
use chronosym_timeline::End;

use super::ProcessCode;
use crate::body::CodeBody;

impl ProcessCode {
    /// Records that an assembly is loaded at a time.
    pub fn assembly(&mut self, id: (u16, u64), time: u64, is_collectible: bool) {
        if is_collectible {
            self.permanent.remove(&id);
        } else {
            self.permanent.entry(id).or_insert(time);
        }
    }

    /// Number of assemblies that are never unloaded.
    pub fn permanent_assemblies(&self) -> usize {
        self.permanent.len()
    }

    /// Confirms the bodies that nothing unloads while the process lives, until a time or their end.
    pub fn confirm_permanent(&mut self, time: u64) {
        let is_permanent = |body: &CodeBody| {
            let MethodFlags(flags) = body.flags;
            let is_own = !body.flags.is_dynamic() && flags & MethodFlags::GENERIC == 0;
            is_own && self.is_in_permanent_module(body)
        };
        let bodies = self.bodies.indexed();
        let permanent = bodies.filter(|(_, body)| body.first_seen() <= time && is_permanent(body));
        let permanent: Vec<_> = permanent.map(|(index, _)| index).collect();
        for index in permanent {
            let body = &mut self.bodies[index];
            let until = match body.end {
                End::At(end) => end.min(time),
                End::After(_) | End::Open => time,
            };
            body.confirmed = body.confirmed.max(until);
        }
    }

    /// Ids are reused only after what they identified was unloaded: from the load of the assembly on
    /// its id identifies it, and from the first event of the module on the module's id identifies
    /// that one.
    fn is_in_permanent_module(&self, body: &CodeBody) -> bool {
        let module = body.module.and_then(|it| self.modules.get(it.index()));
        module.is_some_and(|module| {
            let assembly = (module.clr_instance, module.assembly_id);
            let since = self.permanent.get(&assembly);
            let first = module.first_seen();
            since.is_some_and(|&since| since <= first) && first <= body.first_seen()
        })
    }
}
