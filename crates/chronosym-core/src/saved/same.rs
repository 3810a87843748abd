//! Processes that two files have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::rows::Of;
use crate::body::Module;
use crate::ids::ProcessIndex;
use crate::images::Image;
use crate::known::{first_seen, join_lifetimes};
use crate::machine::Machine;
use crate::process::{Process, Thread};
use crate::state::ProcessState;
use crate::strings::StringId;

/// Resolution of the start of a process: a tick of Linux's `/proc/PID/stat`.
const START_TICK_NS: u64 = 10_000_000;

/// The rows of a file that identify its processes. Times are those of the session.
pub(super) struct Candidates<'r> {
    pub processes: &'r [Process],
    pub modules: &'r [Of<Module>],
    pub images: &'r [Of<Image>],
}

impl Candidates<'_> {
    /// Returns for each process of the file the one of the session that it is.
    ///
    /// Process ids are reused, and those of containers repeat. They are the same process if nothing
    /// contradicts it, and if their starts are equal, or if both have a module or an image at the
    /// same address.
    pub fn find(&self, machine: &Machine, slack_ns: u64) -> Vec<Option<ProcessIndex>> {
        let processes = self.processes.iter().enumerate();
        let found = processes.map(|(number, process)| {
            let incarnations = machine.processes.incarnations(process.pid);
            incarnations.rev().find(|&index| {
                let other = &machine.processes.all[index.index()];
                match same_key(process, other, slack_ns) {
                    Some(is_same) => is_same,
                    None => self.has_code_of(number as u32, &machine.states[index.index()]),
                }
            })
        });
        let mut taken = BTreeSet::new();
        found
            .map(|index| index.filter(|&index| taken.insert(index)))
            .collect()
    }

    fn has_code_of(&self, process: u32, state: &ProcessState) -> bool {
        let modules = self.modules.iter().filter(|row| row.process == process);
        let images = self.images.iter().filter(|row| row.process == process);
        let mut modules = modules.map(|row| &row.it);
        let mut images = images.map(|row| &row.it);
        let own_images: BTreeSet<(u64, StringId)> = (state.images.iter())
            .map(|image| (image.base, image.path))
            .collect();
        modules.any(|module| {
            let index = state.code.module(module.clr_instance, module.module_id);
            index.is_some_and(|index| {
                let old = &state.code.modules[index.index()];
                old.il_path == module.il_path && old.assembly_id == module.assembly_id
            })
        }) || images.any(|image| own_images.contains(&(image.base, image.path)))
    }
}

/// Returns whether two processes with one id are the same, if their keys state it.
fn same_key(a: &Process, b: &Process, slack_ns: u64) -> Option<bool> {
    let namespaces = a.pid_namespace.zip(b.pid_namespace);
    if namespaces.is_some_and(|(a, b)| a != b) {
        return Some(false);
    }
    if let Some((a, b)) = a.started_unix_ns.zip(b.started_unix_ns) {
        return Some(a.abs_diff(b) <= START_TICK_NS);
    }
    if let Some((a, b)) = a.start.zip(b.start) {
        return Some(a.abs_diff(b) <= slack_ns);
    }
    let ended_before = |a: &Process, b: &Process| {
        let times = a.end.zip(b.start);
        times.is_some_and(|(end, start)| end <= start)
    };
    (ended_before(a, b) || ended_before(b, a)).then_some(false)
}

/// Adds the properties of a process that another file states.
pub(super) fn join_process(old: &mut Process, new: Process) {
    if new.name != StringId::EMPTY {
        old.name = new.name;
    }
    if new.command_line != StringId::EMPTY {
        old.command_line = new.command_line;
    }
    old.start = old.start.or(new.start);
    old.end = old.end.max(new.end);
    old.is_wow64 |= new.is_wow64;
    old.is_managed |= new.is_managed;
    old.started_unix_ns = old.started_unix_ns.or(new.started_unix_ns);
    old.pid_namespace = old.pid_namespace.or(new.pid_namespace);
    for runtime in new.runtimes {
        let mut known = old.runtimes.iter_mut();
        match known.find(|it| it.clr_instance == runtime.clr_instance) {
            Some(known) => {
                known.rundown |= runtime.rundown;
                if known.version == [0; 4] {
                    (known.version, known.sku) = (runtime.version, runtime.sku);
                }
            }
            None => old.runtimes.push(runtime),
        }
    }
    let forgotten = Arc::make_mut(&mut old.forgotten);
    for (first, last) in new.forgotten.ranges() {
        forgotten.insert(first, last);
    }
}

/// Adds the names of a thread that another file states, whose recording began at a time.
pub(super) fn join_thread(old: &mut Thread, new: &Thread, began_ns: u64) {
    let first = new.earlier.first().map_or(new.name, |&(_, name)| name);
    if first != StringId::EMPTY {
        old.rename(first, began_ns);
    }
    for (&(until, _), name) in new.earlier.iter().zip(names_after(new)) {
        old.rename(name, until);
    }
}

fn names_after(thread: &Thread) -> impl Iterator<Item = StringId> {
    let names = thread.earlier.iter().skip(1).map(|&(_, name)| name);
    names.chain([thread.name])
}

/// Adds the images of another recording, or joins them to those that they are.
pub(super) fn join_images(state: &mut ProcessState, images: Vec<Image>, slack_ns: u64) {
    let own = state.images.indexed();
    let own = own.map(|(index, image)| (first_seen(image.loaded), Ok(index)));
    let mut steps: Vec<(u64, Result<usize, Image>)> = own.collect();
    let other = images.into_iter();
    steps.extend(other.map(|image| (first_seen(image.loaded), Err(image))));
    steps.sort_by_key(|(time, _)| *time);
    // The latest image of each range: start → (last address, index).
    let mut latest: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (_, step) in steps {
        let index = match step {
            Ok(index) => index,
            Err(image) => {
                let at = latest.get(&image.base).map(|&(_, at)| at);
                match at.filter(|&at| join_image(&mut state.images[at], &image, slack_ns)) {
                    Some(_) => continue,
                    None => state.images.push(image),
                }
            }
        };
        let (start, last) = (state.images[index].base, state.images[index].last());
        let covered = latest.range(..=last).rev();
        let covered = covered.take_while(|&(_, &(end, _))| end >= start);
        for other in covered.map(|(&other, _)| other).collect::<Vec<_>>() {
            latest.remove(&other);
        }
        latest.insert(start, (last, index));
    }
}

/// Adds the properties of the same image to one. Returns false if it is another one.
fn join_image(old: &mut Image, new: &Image, slack_ns: u64) -> bool {
    let mapping = |image: &Image| (image.size, image.file_offset, image.path);
    let lifetimes = [&*old, new].map(|image| (image.loaded, image.end));
    let joined = join_lifetimes(lifetimes[0], lifetimes[1], slack_ns);
    let Some(lifetime) = joined.filter(|_| mapping(old) == mapping(new)) else {
        return false;
    };
    (old.loaded, old.end) = lifetime;
    old.confirmed = old.confirmed.max(new.confirmed);
    old.pdb = old.pdb.take().or_else(|| new.pdb.clone());
    old.il_pdb = old.il_pdb.take().or_else(|| new.il_pdb.clone());
    old.timestamp = old.timestamp.or(new.timestamp);
    if old.build_id == StringId::EMPTY {
        old.build_id = new.build_id;
    }
    true
}
