//! Joins the code of one process from two recordings.

use std::cmp::Reverse;
use std::sync::Arc;

use chronosym_timeline::{End, Start};
use chronosym_types::hash::HashMap;

use super::ProcessCode;
use crate::body::{CodeBody, Module};
use crate::ids::{BodyIndex, ModuleIndex, NameId};
use crate::images::Image;
use crate::known::{Known, first_seen, join_lifetimes};
use crate::lifetime::{floor, has_ended};
use crate::strings::StringId;

/// Runtime instance, module id, path, assembly.
type ModuleKey = (u16, u64, StringId, u64);

/// A body of another recording, its targets if it is a stub, and the id of its module if that is
/// not known there.
#[derive(Debug)]
pub(crate) struct OtherBody {
    pub body: CodeBody,
    pub targets: Option<Vec<NameId>>,
    pub module_id: Option<u64>,
}

/// The modules of a process before those of another recording are joined to them.
#[derive(Debug)]
pub(crate) struct KnownModules {
    modules: Known<ModuleKey, ModuleIndex>,
    slack_ns: u64,
}

fn module_key(module: &Module) -> ModuleKey {
    let Module {
        clr_instance,
        module_id,
        il_path,
        assembly_id,
        ..
    } = *module;
    (clr_instance, module_id, il_path, assembly_id)
}

impl KnownModules {
    /// Lists the modules of a process. Times that differ by up to `slack_ns` may be the same.
    pub fn of(code: &ProcessCode, slack_ns: u64) -> Self {
        let modules = code.modules.indexed().map(|(index, module)| {
            let index = ModuleIndex(index as u32);
            (module_key(module), first_seen(module.loaded), index)
        });
        let modules = Known::of(modules);
        KnownModules { modules, slack_ns }
    }

    /// Adds a module, or joins it to the one that it is.
    pub fn join(&self, code: &mut ProcessCode, module: Module) -> ModuleIndex {
        let own = (module.loaded, module.end);
        let near = self
            .modules
            .near(&module_key(&module), first_seen(module.loaded));
        for index in near {
            let old = &code.modules[index.index()];
            let old = (old.loaded, old.end);
            let joined = join_lifetimes(old, own, self.slack_ns)
                .or_else(|| repeated(old, own))
                .or_else(|| repeated(own, old));
            let Some((loaded, end)) = joined else {
                continue;
            };
            let old = code.module_mut(index);
            let unloads = old.unloads.iter().chain(&module.unloads).copied();
            let ends = [old.end, module.end].into_iter().filter_map(unloaded_at);
            old.unloads = unloads
                .chain(ends.filter(|&at| end != End::At(at)))
                .collect();
            (old.loaded, old.end) = (loaded, end);
            old.evidence = old.evidence.and(module.evidence);
            old.managed_pdb = old.managed_pdb.take().or(module.managed_pdb);
            old.native_pdb = old.native_pdb.take().or(module.native_pdb);
            if old.native_path == StringId::EMPTY {
                old.native_path = module.native_path;
            }
            return index;
        }
        code.add_module(module)
    }
}

/// Returns the lifetime of a module that one recording unloads, and that another has without a
/// load later: a trace may repeat an unload, or list the module again.
fn repeated((loaded, end): (Start, End), later: (Start, End)) -> Option<(Start, End)> {
    let (End::At(ended), Start::Before(seen)) = (end, later.0) else {
        return None;
    };
    let end = match later.1 {
        End::Open => end,
        stated => stated,
    };
    (ended <= seen).then_some((loaded, end))
}

/// Returns the times of all unloads of a module.
fn ends(module: &Module) -> impl Iterator<Item = u64> + '_ {
    let ends = module.unloads.iter().copied();
    ends.chain(unloaded_at(module.end))
}

fn unloaded_at(end: End) -> Option<u64> {
    match end {
        End::At(time) => Some(time),
        End::After(_) | End::Open => None,
    }
}

/// The times of the unloads of all modules with an id in a runtime instance, in order.
type Unloads = HashMap<(u16, u64), Vec<u64>>;

/// What happens at a time, in the order of one recording.
enum Step<'i> {
    Own(BodyIndex),
    Other(OtherBody),
    Image(&'i Image),
}

impl ProcessCode {
    /// Adds the bodies of another recording whose modules were added before, or joins them to those
    /// that they are. Applies the rules to both: bodies end where others are loaded or images
    /// mapped over them (rule 5), and with their modules (rule 6).
    pub fn join<'i>(
        &mut self,
        bodies: Vec<OtherBody>,
        images: impl Iterator<Item = &'i Image>,
        slack_ns: u64,
    ) {
        let own = self.bodies.indexed().map(|(index, body)| {
            let index = BodyIndex(index as u32);
            (body.first_seen(), Step::Own(index))
        });
        let mut steps: Vec<(u64, Step<'i>)> = own.collect();
        let other = bodies.into_iter();
        steps.extend(other.map(|it| (it.body.first_seen(), Step::Other(it))));
        steps.extend(images.filter_map(|image| match image.loaded {
            Start::At(at) => Some((at, Step::Image(image))),
            _ => None,
        }));
        steps.sort_by_key(|(time, _)| *time);
        let mut unloads = Unloads::default();
        for (_, module) in self.modules.indexed() {
            let id = (module.clr_instance, module.module_id);
            unloads.entry(id).or_default().extend(ends(module));
        }
        unloads.values_mut().for_each(|times| times.sort_unstable());
        for (time, step) in steps {
            match step {
                Step::Own(index) => self.own_body(index, &unloads, slack_ns),
                Step::Other(other) => self.other_body(other, &unloads, slack_ns),
                Step::Image(image) => self.image_mapped(image.base, image.last(), time),
            }
        }
        let modules = self.modules.indexed();
        let mut modules: Vec<_> = modules
            .map(|(index, module)| (first_seen(module.loaded), ModuleIndex(index as u32)))
            .collect();
        // Of the modules with one id, the latest one before a body has it.
        modules.sort_by_key(|&(time, _)| Reverse(time));
        for (_, index) in modules {
            self.adopt_since(index);
            let module = &self.modules[index.index()];
            let mut ends: Vec<u64> = ends(module).collect();
            ends.sort_unstable();
            let bodies: Vec<_> = module.bodies.iter().copied().collect();
            for body in bodies.iter().filter(|_| !ends.is_empty()) {
                let CodeBody { confirmed, end, .. } = self.bodies[body.index()];
                // An image may have been mapped over it later.
                if let Some(&time) = ends.iter().find(|&&time| confirmed <= time)
                    && !has_ended(end, time)
                {
                    self.bodies[body.index()].end = End::At(time);
                }
            }
        }
    }

    /// Attaches bodies whose module the other recording states, unless they are older than it: ids
    /// are reused.
    fn adopt_since(&mut self, module: ModuleIndex) {
        let Module {
            clr_instance,
            module_id,
            loaded,
            ..
        } = *self.modules[module.index()];
        let orphans = self.orphans.remove(&(clr_instance, module_id));
        let is_older = |body: &BodyIndex| self.bodies[body.index()].first_seen() < floor(loaded);
        let (older, own): (Vec<_>, Vec<_>) = orphans.into_iter().flatten().partition(is_older);
        for body in own {
            self.bodies[body.index()].module = Some(module);
            self.contain(module, body);
        }
        if !older.is_empty() {
            self.orphans.insert((clr_instance, module_id), older);
        }
    }

    /// Returns whether a body was loaded after the module of an older one had been unloaded.
    fn is_loaded_again(
        &self,
        old: &CodeBody,
        body: &CodeBody,
        module_id: Option<u64>,
        (unloads, slack_ns): (&Unloads, u64),
    ) -> bool {
        let Start::At(loaded) = body.loaded else {
            return false;
        };
        let module = body.module.or(old.module);
        let module_id = module_id.or_else(|| Some(self.modules.get(module?.index())?.module_id));
        let ends = module_id.and_then(|id| unloads.get(&(body.clr_instance, id)));
        let first = |ends: &Vec<u64>| {
            let at = ends.partition_point(|&end| end < old.first_seen());
            ends.get(at).copied()
        };
        let end = ends.and_then(first);
        end.is_some_and(|end| end.saturating_add(slack_ns) < loaded)
    }

    /// Returns the body that was loaded last at a start, if it is this one, and both lifetimes
    /// joined.
    fn same(
        &self,
        body: &CodeBody,
        module_id: Option<u64>,
        unloads: &Unloads,
        slack_ns: u64,
    ) -> Option<(BodyIndex, (Start, End))> {
        let (index, old) = self.current(body.clr_instance, body.method_id, body.start)?;
        let agrees = old.agrees(body.size, body.name, body.native_code_version);
        let lifetimes = [old, body].map(|it| (it.loaded, it.end));
        let joined = join_lifetimes(lifetimes[0], lifetimes[1], slack_ns);
        // A second unload of the same load states nothing.
        let is_repeated = !old.is_alive() && is_only_unloaded(body);
        let joined = joined.or(is_repeated.then_some(lifetimes[0]))?;
        let is_it = agrees && !self.is_loaded_again(old, body, module_id, (unloads, slack_ns));
        is_it.then_some((index, joined))
    }

    fn own_body(&mut self, index: BodyIndex, unloads: &Unloads, slack_ns: u64) {
        let body = &self.bodies[index.index()];
        // The other recording stated it first.
        if let Some((other, lifetime)) = self.same(body, None, unloads, slack_ns)
            && (is_only_unloaded(body) || body.is_alive() != self.bodies[other.index()].is_alive())
        {
            for body in [index, other] {
                let body = &mut self.bodies[body.index()];
                (body.loaded, body.end) = lifetime;
            }
        }
        self.occupy(index);
    }

    fn other_body(&mut self, other: OtherBody, unloads: &Unloads, slack_ns: u64) {
        let OtherBody {
            body,
            targets,
            module_id,
        } = other;
        let Some((index, lifetime)) = self.same(&body, module_id, unloads, slack_ns) else {
            let index = self.restore_body(body, targets, module_id);
            self.occupy(index);
            return;
        };
        let by_id = module_id.and_then(|id| self.module(body.clr_instance, id));
        let by_id = by_id.filter(|it| floor(self.modules[it.index()].loaded) <= body.first_seen());
        let old = &mut self.bodies[index.index()];
        (old.loaded, old.end) = lifetime;
        old.confirmed = old.confirmed.max(body.confirmed);
        old.earliest = old.earliest.min(body.earliest);
        old.evidence = old.evidence.and(body.evidence);
        old.il_map = old.il_map.take().or(body.il_map);
        if old.name == NameId::NONE {
            old.name = body.name;
        }
        if old.native_code_version == 0 {
            old.native_code_version = body.native_code_version;
        }
        if let Some(rare) = body.rare {
            let rare = Arc::unwrap_or_clone(rare);
            let own = old.rare_mut();
            own.inline_tree = own.inline_tree.take().or(rare.inline_tree);
            own.lines = own.lines.take().or(rare.lines);
        }
        let module = body.module.or(by_id).filter(|_| old.module.is_none());
        old.module = old.module.or(module);
        let has_targets = old.stub().is_some();
        if let Some(module) = module {
            self.module_mut(module).bodies.push(index);
        }
        if let Some(targets) = targets.filter(|_| !has_targets) {
            let stub = self.stubs.push(targets) as u32;
            self.bodies[index.index()].rare_mut().stub = Some(stub);
        }
    }
}

/// Returns whether an unload is the only event about the lifetime of a body.
fn is_only_unloaded(body: &CodeBody) -> bool {
    matches!((body.loaded, body.end), (Start::Before(seen), End::At(ended)) if seen == ended)
}
