//! Modules and domains, and the bodies in them (rule 6).

use std::sync::Arc;

use chronosym_events::Action;
use chronosym_timeline::End;

use super::ProcessCode;
use crate::body::Module;
use crate::evidence::{Evidence, EvidenceSet};
use crate::facts;
use crate::ids::ModuleIndex;
use crate::images::simple_name;
use crate::lifetime::{is_over, lifetime_of};
use crate::names::NameTable;
use crate::strings::StringId;
use chronosym_types::Chunked;

impl ProcessCode {
    /// Applies a module event.
    pub fn apply_module(&mut self, time: u64, module: &facts::Module<'_>, names: &mut NameTable) {
        let il_path = names.text(module.il_path);
        let native_path = names.text(module.native_path);
        let path = if il_path == StringId::EMPTY {
            native_path
        } else {
            il_path
        };
        let simple = simple_name(names.strings.get(path)).to_owned();
        let simple_name = names.strings.intern(&simple);
        let (loaded, end) = lifetime_of(module.action, time);
        let evidence = Evidence::of(module.action);
        let same = self.module(module.clr_instance, module.id).filter(|m| {
            let old = &self.modules[m.index()];
            old.il_path == il_path && old.assembly_id == module.assembly_id
        });
        let ended = |m: ModuleIndex| is_over(self.modules[m.index()].end);
        let index = match same {
            // A module loaded again after its unload is another one; a rundown may list one just
            // unloaded.
            Some(index) if !(module.action == Action::Load && ended(index)) => {
                if index.index() < self.closed.modules {
                    self.closed.reopened_modules.push(index);
                }
                let old = self.module_mut(index);
                old.evidence.insert(evidence);
                match module.action {
                    Action::Load | Action::DCStart => {}
                    Action::Unload | Action::DCEnd => old.set_end(end),
                }
                if old.managed_pdb.is_none() {
                    old.managed_pdb.clone_from(&module.managed_pdb);
                }
                if old.native_pdb.is_none() {
                    old.native_pdb.clone_from(&module.native_pdb);
                }
                let domain = old.app_domain;
                if let (Action::DCEnd, Some(domain)) = (module.action, domain) {
                    // It is alive again: its domain ends it once more.
                    let of_domain = self.by_domain.entry((module.clr_instance, domain));
                    of_domain.or_default().push(index);
                }
                index
            }
            _ => self.add_module(Module {
                clr_instance: module.clr_instance,
                module_id: module.id,
                assembly_id: module.assembly_id,
                il_path,
                native_path,
                simple_name,
                managed_pdb: module.managed_pdb.clone(),
                native_pdb: module.native_pdb.clone(),
                loaded,
                end,
                unloads: Vec::new(),
                evidence: EvidenceSet::of(evidence),
                bodies: Chunked::default(),
                open_bodies: Chunked::default(),
                app_domain: None,
            }),
        };
        match module.action {
            // Bodies with this id so far belong to another module.
            Action::Load => self.disown(module.clr_instance, module.id),
            // A rundown lists methods before their module.
            Action::DCStart | Action::DCEnd => self.adopt(index),
            Action::Unload => {
                self.adopt(index);
                self.close_module(index, time);
            }
        }
    }

    /// Records the domain of a module.
    pub fn in_domain(&mut self, clr_instance: u16, domain: u64, module_id: u64) {
        if let Some(module) = self.module(clr_instance, module_id) {
            self.module_mut(module).app_domain = Some(domain);
            let of_domain = self.by_domain.entry((clr_instance, domain));
            of_domain.or_default().push(module);
        }
    }

    /// Ends the modules of an unloaded domain.
    pub fn domain_unloaded(&mut self, time: u64, clr_instance: u16, domain: u64) {
        let modules = self.by_domain.remove(&(clr_instance, domain));
        for index in modules.unwrap_or_default() {
            let Some(module) = self.modules.get(index.index()) else {
                continue;
            };
            if module.app_domain == Some(domain) && !is_over(module.end) {
                self.module_mut(index).end = End::At(time);
                self.close_module(index, time);
            }
        }
    }

    /// Returns the module that `module_id` identifies now.
    pub fn module(&self, clr_instance: u16, module_id: u64) -> Option<ModuleIndex> {
        self.module_by_id.get(&(clr_instance, module_id)).copied()
    }

    /// Adds a module in place of an older one with the same id.
    pub fn add_module(&mut self, module: Module) -> ModuleIndex {
        let id = (module.clr_instance, module.module_id);
        let index = ModuleIndex(self.modules.push(Arc::new(module)) as u32);
        Arc::make_mut(&mut self.module_by_id).insert(id, index);
        index
    }

    /// Detaches bodies from an id that now identifies another module: ids are reused.
    fn disown(&mut self, clr_instance: u16, module_id: u64) {
        self.orphans.remove(&(clr_instance, module_id));
    }

    /// Attaches bodies that named a module before its own event.
    fn adopt(&mut self, module: ModuleIndex) {
        let (clr, id) = (
            self.modules[module.index()].clr_instance,
            self.modules[module.index()].module_id,
        );
        for body in self.orphans.remove(&(clr, id)).unwrap_or_default() {
            if self.bodies[body.index()].module.is_none() {
                self.bodies[body.index()].module = Some(module);
                self.contain(module, body);
            }
        }
    }

    /// Ends the bodies in a module (rule 6).
    fn close_module(&mut self, module: ModuleIndex, time: u64) {
        let bodies = std::mem::take(&mut self.module_mut(module).open_bodies);
        for body in bodies.iter() {
            self.close(*body, time);
        }
    }
}
