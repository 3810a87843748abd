//! The recorded machine: its processes and their states.

use chronosym_events::Action;
use chronosym_timeline::Start;

use crate::budget::{Budget, Share};
use crate::counters::Counters;
use crate::facts::{self, At, Fact};
use crate::ids::{ImageIndex, ProcessIndex, ThreadIndex};
use crate::images::{Image, simple_name};
use crate::lifetime::{floor, has_ended};
use crate::names::NameTable;
use crate::process::Processes;
use crate::recording::TraceFacts;
use crate::state::{ProcessState, States};
use crate::strings::StringId;

/// State of the machine and all its processes.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    pub facts: TraceFacts,
    pub counters: Counters,
    pub names: NameTable,
    pub processes: Processes,
    /// One state for each process.
    pub states: States,
    /// Number of mappings visited and copied for forks.
    visited: usize,
    copied: usize,
    /// The memory that the session may take.
    pub budget: Budget,
}

/// Bytes that mappings copied for forks may take in a session without a memory budget.
const COPIES: u64 = 256 << 20;
/// Bytes of a copy, with its entries in the maps of addresses.
const COPY: u64 = size_of::<Image>() as u64 + 200;
/// Mappings that may be visited for each one that may be copied.
const VISITS: usize = 256;

impl Machine {
    /// Returns the number of mappings that may still be copied for forks.
    fn copies_left(&self) -> usize {
        let bytes = match self.budget.is_unlimited() {
            true => COPIES.saturating_sub(self.copied as u64 * COPY),
            false => self.budget.left(Share::Recording),
        };
        usize::try_from(bytes / COPY).unwrap_or(usize::MAX)
    }

    /// Returns the process of a fact. A fact without a pid belongs to the trace's only process, or
    /// to one without an id.
    #[inline]
    pub fn process_at(&mut self, at: At) -> ProcessIndex {
        self.process(at.process.or(self.facts.process_id), at.time_ns)
    }

    /// Returns the thread of an event.
    pub fn thread_at(&mut self, at: At) -> ThreadIndex {
        let process = self.process_at(at);
        self.processes.thread(process, at.thread.unwrap_or(0))
    }

    /// Returns the incarnation of `pid` at a time, with its state.
    #[inline]
    pub fn process(&mut self, pid: Option<u32>, time_ns: u64) -> ProcessIndex {
        let process = self.processes.at(pid, time_ns);
        self.ensure_states();
        process
    }

    /// Adds states until every process has one.
    #[inline]
    pub fn ensure_states(&mut self) {
        let count = self.processes.all.end();
        if count > self.states.end() {
            self.states.ensure(count);
        }
    }

    pub fn state(&mut self, process: ProcessIndex) -> &mut ProcessState {
        &mut self.states[process.index()]
    }

    /// Applies a fact.
    pub fn apply(&mut self, at: At, fact: Fact<'_>) {
        match fact {
            Fact::Process(process) => self.apply_process(at, &process),
            fact => {
                let process = self.process_at(at);
                self.apply_to(process, at, fact);
            }
        }
    }

    /// Applies a fact of a process that is already determined.
    pub fn apply_to(&mut self, process: ProcessIndex, at: At, fact: Fact<'_>) {
        let Machine { names, states, .. } = self;
        let state = &mut states[process.index()];
        match fact {
            Fact::Process(process) => self.apply_process(at, &process),
            Fact::ProcessKey(key) => {
                let process = &mut self.processes.all[process.index()];
                process.started_unix_ns = key.started_unix_ns.or(process.started_unix_ns);
                process.pid_namespace = key.pid_namespace.or(process.pid_namespace);
            }
            Fact::Fork { parent } => {
                let parent = self.process(Some(parent), at.time_ns);
                self.fork(parent, process, at.time_ns);
            }
            Fact::Exec => state.end_all(at.time_ns),
            Fact::ThreadName(name) => {
                let thread = self
                    .processes
                    .thread(process, at.thread.unwrap_or_default());
                self.processes.threads[thread.index()].rename(names.text(name), at.time_ns);
            }
            Fact::Image(image) => {
                self.apply_image(process, at.time_ns, &image);
            }
            Fact::Module(module) => state.code.apply_module(at.time_ns, &module, names),
            Fact::Method(method) => state.code.apply_method(at, &method, names),
            Fact::JitStart { method_id } => {
                state
                    .code
                    .jitting_started(method_id, at.time_ns, at.writer())
            }
            Fact::IlMap(map) => {
                let entries = map.entries.iter().copied();
                state.code.il_map(at, &map, entries);
            }
            Fact::InlineTree(tree) => {
                let bound = state.code.inline_tree(at, tree);
                self.counters.unbound_inline_trees += u64::from(!bound);
            }
            Fact::RundownComplete { clr_instance } => {
                let runtime = self.processes.runtime(process, clr_instance);
                runtime.rundown = true;
            }
            Fact::Stub(stub) => state.code.stub(&stub, names),
            Fact::NativeMethod(method) => state.code.native_method(at.time_ns, &method, names),
            Fact::NativeMove { from, to } => state.code.native_move(at.time_ns, from, to),
            Fact::Symbol(symbol) => {
                state.untimed.add(&symbol, names);
            }
        }
    }

    fn apply_process(&mut self, at: At, fact: &facts::Process<'_>) {
        let pid = at.process.or(self.facts.process_id);
        let process = match fact.action {
            Action::Load => self.processes.start(pid, at.time_ns),
            _ => self.processes.at(pid, at.time_ns),
        };
        self.ensure_states();
        let (name, command) = (
            self.names.text(fact.name),
            self.names.whole(fact.command_line),
        );
        let state = &mut self.processes.all[process.index()];
        if name != StringId::EMPTY {
            state.name = name;
        }
        if command != StringId::EMPTY {
            state.command_line = command;
        }
        state.is_wow64 |= fact.is_wow64;
        if fact.action == Action::Unload {
            state.end = Some(at.time_ns);
            self.states[process.index()].close(at.time_ns);
        }
        if name == StringId::EMPTY && command != StringId::EMPTY {
            self.name_by_command(process, command);
        }
    }

    /// Sets the command line of a process, and its name unless the system stated one.
    pub fn name_by_command(&mut self, process: ProcessIndex, command: StringId) {
        if command == StringId::EMPTY {
            return;
        }
        let name = process_name(self.names.strings.get(command)).to_owned();
        let name = self.names.short(&name);
        let state = &mut self.processes.all[process.index()];
        if state.command_line == StringId::EMPTY {
            state.command_line = command;
        }
        if state.name == StringId::EMPTY {
            state.name = name;
        }
    }

    /// Applies an image event. Returns its image, and whether it is new.
    pub fn apply_image(
        &mut self,
        process: ProcessIndex,
        time: u64,
        fact: &facts::Image<'_>,
    ) -> Option<(ImageIndex, bool)> {
        let state = &mut self.states[process.index()];
        let ProcessState { images, mapped, .. } = state;
        let (index, is_new) = mapped.apply(images, time, fact, &mut self.names)?;
        let image = &state.images[index.index()];
        if is_new && let Start::At(at) = image.loaded {
            let (first, last) = (image.base, image.last());
            state.code.image_mapped(first, last, at);
        }
        Some((index, is_new))
    }

    /// Copies the mappings of a process to its child.
    fn fork(&mut self, parent: ProcessIndex, child: ProcessIndex, time: u64) {
        let is_alive = |image: &&Image| floor(image.loaded) <= time && !has_ended(image.end, time);
        let mapped = &self.states[parent.index()].images;
        self.visited = self.visited.saturating_add(mapped.count());
        let left = self.copies_left();
        let most = left.saturating_add(self.copied);
        if self.visited > most.saturating_mul(VISITS) || left == 0 {
            self.counters.copies_left_out += 1;
            return;
        }
        let images: Vec<Image> = mapped.iter().filter(is_alive).cloned().collect();
        self.copied += images.len();
        self.budget.charge(images.len() as u64 * COPY);
        let state = &mut self.states[child.index()];
        for image in images {
            state.mapped.inherit(&mut state.images, image, time);
        }
    }

    /// Ends code over which an image was mapped later (rule 5), for sources that state images
    /// first.
    pub fn map_images_over_code(&mut self) {
        self.states.update_each(|_, state| {
            let ProcessState { images, code, .. } = state;
            for image in images.iter() {
                if let Start::At(at) = image.loaded {
                    code.image_mapped(image.base, image.last(), at);
                }
            }
            !images.is_empty()
        });
    }

    /// Ends facts about a process that followed its end.
    pub fn close_ended(&mut self) {
        self.ensure_states();
        let Machine {
            processes, states, ..
        } = self;
        states.update_each(|process, state| {
            let end = processes
                .all
                .get(process.index())
                .and_then(|process| process.end);
            end.inspect(|&end| state.close(end)).is_some()
        });
    }
}

/// Returns the usual name of a command's program: its file name, or for `dotnet app.dll` the
/// application's.
fn process_name(command: &str) -> &str {
    let mut words = Words(command);
    let first = words.next().map_or("", simple_name);
    let is_host = first.eq_ignore_ascii_case("dotnet") || first.eq_ignore_ascii_case("corerun");
    let application = |word: &&str| {
        let extension = word.len().checked_sub(4).and_then(|at| word.get(at..));
        extension.is_some_and(|e| e.eq_ignore_ascii_case(".dll") || e.eq_ignore_ascii_case(".exe"))
    };
    if is_host && let Some(application) = words.find(application) {
        return simple_name(application);
    }
    first
}

/// The words of a command line; quoted words may contain spaces.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start();
        if rest.is_empty() {
            return None;
        }
        let (word, tail) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        self.0 = tail;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chronosym_events::Text;

    #[test]
    fn forked_processes_use_bounded_memory() {
        let mut machine = Machine::default();
        machine.copied = machine.copies_left() - 1000;
        for base in 1..=50 {
            let image = facts::Image::new(Action::Load, base << 12, 0x1000, Text::from("/lib/a"));
            machine.apply(At::new(1).process(7), image.into());
        }
        for pid in 100..200 {
            let at = At::new(2).process(pid);
            machine.apply(at, Fact::Fork { parent: 7 });
        }
        let states = machine.states.into_states();
        let images: usize = states.map(|state| state.images.count()).sum();
        assert_eq!(images, 50 + 1000);
        assert_eq!(machine.counters.copies_left_out, 100 - 20);
    }

    #[test]
    fn a_host_is_called_after_its_application() {
        assert_eq!(
            process_name("/usr/bin/dotnet exec Workload.dll a.dll"),
            "Workload"
        );
        assert_eq!(
            process_name(r#""C:\Program Files\App\My App.exe" --x"#),
            "My App"
        );
        assert_eq!(process_name("dotnet build"), "dotnet");
        assert_eq!(process_name("./server"), "server");
        assert_eq!(process_name(""), "");
    }
}
