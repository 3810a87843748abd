//! Modules and domains, and the bodies that they contain (rule 6).

use std::sync::Arc;

use chronosym_events::Action;
use chronosym_timeline::End;

use super::ProcessCode;
use crate::body::Module;
use crate::evidence::{Evidence, EvidenceSet};
use crate::facts;
use crate::ids::ModuleIndex;
use crate::images::simple_name;
use crate::life::{has_ended, is_over, life_of};
use crate::names::Names;
use crate::strings::StringId;
use chronosym_types::Chunked;

impl ProcessCode {
    /// Applies a module event.
    pub fn apply_module(&mut self, time: u64, module: &facts::Module<'_>, names: &mut Names) {
        let il_path = names.text(module.il_path);
        let native_path = names.text(module.native_path);
        let path = if il_path == StringId::EMPTY {
            native_path
        } else {
            il_path
        };
        let simple = simple_name(names.strings.get(path)).to_owned();
        let simple_name = names.strings.intern(&simple);
        let (begin, end) = life_of(module.action, time);
        let evidence = Evidence::of(module.action);
        let known = self.module(module.clr_instance, module.id).filter(|m| {
            let known = &self.modules[m.index()];
            known.il_path == il_path && known.assembly_id == module.assembly_id
        });
        let ended = |m: ModuleIndex| is_over(self.modules[m.index()].end);
        let index = match known {
            // A module that was unloaded and is loaded again is another one; a rundown may list one just unloaded.
            Some(index) if !(module.action == Action::Load && ended(index)) => {
                let known = &mut self.modules[index.index()];
                known.evidence.insert(evidence);
                match module.action {
                    Action::Load | Action::DCStart => {}
                    Action::Unload | Action::DCEnd => known.end = end,
                }
                if known.managed_pdb.is_none() {
                    known.managed_pdb.clone_from(&module.managed_pdb);
                }
                if known.native_pdb.is_none() {
                    known.native_pdb.clone_from(&module.native_pdb);
                }
                if let (Action::DCEnd, Some(domain)) = (module.action, known.app_domain) {
                    // It lives on: its domain closes it once more.
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
                begin,
                end,
                evidence: EvidenceSet::of(evidence),
                bodies: Chunked::default(),
                app_domain: None,
            }),
        };
        match module.action {
            // What named its id before was another module's.
            Action::Load => self.disown(module.clr_instance, module.id),
            // A rundown lists methods before their module.
            Action::DCStart | Action::DCEnd => self.adopt(index),
            Action::Unload => {
                self.adopt(index);
                self.close_module(index, time);
            }
        }
    }

    /// A module is in a domain.
    pub fn in_domain(&mut self, clr_instance: u16, domain: u64, module_id: u64) {
        if let Some(module) = self.module(clr_instance, module_id) {
            self.modules[module.index()].app_domain = Some(domain);
            let of_domain = self.by_domain.entry((clr_instance, domain));
            of_domain.or_default().push(module);
        }
    }

    /// A domain was unloaded: so were the modules in it.
    pub fn domain_unloaded(&mut self, time: u64, clr_instance: u16, domain: u64) {
        let modules = self.by_domain.remove(&(clr_instance, domain));
        for index in modules.unwrap_or_default() {
            let module = &mut self.modules[index.index()];
            if module.app_domain == Some(domain) && !is_over(module.end) {
                module.end = End::At(time);
                self.close_module(index, time);
            }
        }
    }

    /// The module that `module_id` means now.
    pub fn module(&self, clr_instance: u16, module_id: u64) -> Option<ModuleIndex> {
        self.module_by_id.get(&(clr_instance, module_id)).copied()
    }

    /// Whether no runtime has a module of this id that was alive after `time`.
    pub fn module_ended(&self, module_id: u64, time: u64) -> bool {
        let mut modules = self.modules.iter().filter(|m| m.module_id == module_id);
        !modules.any(|m| !has_ended(m.end, time))
    }

    /// Puts a module in place of an older one of the same id.
    fn add_module(&mut self, module: Module) -> ModuleIndex {
        let index = ModuleIndex(self.modules.len() as u32);
        Arc::make_mut(&mut self.module_by_id)
            .insert((module.clr_instance, module.module_id), index);
        self.modules.push(module);
        index
    }

    /// Leaves the bodies that named a module before it was loaded without one: ids are used again.
    fn disown(&mut self, clr_instance: u16, module_id: u64) {
        self.orphans.remove(&(clr_instance, module_id));
    }

    /// Gives a module that was listed late the bodies that named it before.
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

    /// Closes what a module contained (rule 6).
    fn close_module(&mut self, module: ModuleIndex, time: u64) {
        for body in self.open_bodies.remove(&module).unwrap_or_default() {
            self.close(body, time);
        }
    }
}
