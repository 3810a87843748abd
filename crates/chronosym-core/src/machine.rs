//! The machine that was recorded: its processes, and what stands in each of them.

use chronosym_events::Action;
use chronosym_timeline::Start;

use crate::counters::Counters;
use crate::facts::{self, At, Fact};
use crate::ids::{ImageIndex, ProcessIndex};
use crate::images::{Image, simple_name};
use crate::life::{floor, has_ended};
use crate::names::Names;
use crate::process::Processes;
use crate::recording::TraceFacts;
use crate::state::{ProcessState, States};
use crate::strings::StringId;

/// Everything that is known of the machine.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    pub facts: TraceFacts,
    pub counters: Counters,
    pub names: Names,
    pub processes: Processes,
    /// Of each process.
    pub states: States,
    /// Mappings that were looked at and copied for processes that began as copies.
    looked_at: usize,
    copied: usize,
}

/// Mappings that may be copied for processes that begin as copies of others, about 1 GB, and looked at for that.
#[cfg(not(test))]
const MOST_COPIED: usize = 4 << 20;
#[cfg(test)]
const MOST_COPIED: usize = 1000;
const MOST_LOOKED_AT: usize = 1 << 30;

impl Machine {
    /// The process that a fact is of. What names none is of the trace's only process, or of one without an id.
    pub fn process_at(&mut self, at: At) -> ProcessIndex {
        self.process(at.process.or(self.facts.process_id), at.time_ns)
    }

    /// The incarnation of `pid` at a time, with its state.
    pub fn process(&mut self, pid: Option<u32>, time_ns: u64) -> ProcessIndex {
        let process = self.processes.at(pid, time_ns);
        self.ensure_states();
        process
    }

    /// Each process has a state from now on.
    pub fn ensure_states(&mut self) {
        let count = self.processes.all.len();
        self.states.ensure(count);
    }

    pub fn state(&mut self, process: ProcessIndex) -> &mut ProcessState {
        &mut self.states[process.index()]
    }

    /// Applies what is stated of a process.
    pub fn apply(&mut self, at: At, fact: Fact<'_>) {
        match fact {
            Fact::Process(process) => self.apply_process(at, &process),
            fact => {
                let process = self.process_at(at);
                self.apply_to(process, at, fact);
            }
        }
    }

    /// As [`Machine::apply`], where it is known which process that is.
    pub fn apply_to(&mut self, process: ProcessIndex, at: At, fact: Fact<'_>) {
        let Machine { names, states, .. } = self;
        let state = &mut states[process.index()];
        match fact {
            Fact::Process(process) => self.apply_process(at, &process),
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
            self.names.text(fact.command_line),
        );
        let known = &mut self.processes.all[process.index()];
        if name != StringId::EMPTY {
            known.name = name;
        }
        if command != StringId::EMPTY {
            known.command_line = command;
        }
        known.is_wow64 |= fact.is_wow64;
        if fact.action == Action::Unload {
            known.end = Some(at.time_ns);
            self.states[process.index()].close(at.time_ns);
        }
        if name == StringId::EMPTY && command != StringId::EMPTY {
            self.name_by_command(process, command);
        }
    }

    /// Remembers the command line of a process, and its name unless the system gave one.
    pub fn name_by_command(&mut self, process: ProcessIndex, command: StringId) {
        if command == StringId::EMPTY {
            return;
        }
        let name = process_name(self.names.strings.get(command)).to_owned();
        let name = self.names.strings.intern(&name);
        let known = &mut self.processes.all[process.index()];
        if known.command_line == StringId::EMPTY {
            known.command_line = command;
        }
        if known.name == StringId::EMPTY {
            known.name = name;
        }
    }

    /// Applies an image event; returns the image that it speaks of, and whether it is a new one.
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
        if is_new && let Start::At(at) = image.begin {
            let (first, last) = (image.base, image.last());
            state.code.image_mapped(first, last, at);
        }
        Some((index, is_new))
    }

    /// Maps what stands in one process in another.
    fn fork(&mut self, parent: ProcessIndex, child: ProcessIndex, time: u64) {
        let stood = |image: &&Image| floor(image.begin) <= time && !has_ended(image.end, time);
        let known = &self.states[parent.index()].images;
        self.looked_at = self.looked_at.saturating_add(known.len());
        if self.looked_at > MOST_LOOKED_AT || self.copied > MOST_COPIED {
            self.counters.copies_left_out += 1;
            return;
        }
        let images: Vec<Image> = known.iter().filter(stood).cloned().collect();
        self.copied += images.len();
        let mapped = &mut self.states[child.index()];
        for image in images {
            mapped.mapped.inherit(&mut mapped.images, image, time);
        }
    }

    /// Ends what was compiled where an image was mapped later (rule 5), for sources that told of images first.
    pub fn map_images_over_code(&mut self) {
        for state in self.states.iter_mut() {
            for image in &state.images {
                if let Start::At(at) = image.begin {
                    state.code.image_mapped(image.base, image.last(), at);
                }
            }
        }
    }

    /// What was stated of a process after its end does not outlive it either.
    pub fn close_ended(&mut self) {
        self.ensure_states();
        let processes = self.processes.all.iter();
        for (process, state) in processes.zip(self.states.iter_mut()) {
            if let Some(end) = process.end {
                state.close(end);
            }
        }
    }
}

/// What a person calls the program of a command line: the file name, or for `dotnet app.dll` the application's.
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

/// The words of a command line; quoted ones can hold blanks.
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
    fn copies_of_processes_take_bounded_room() {
        let mut machine = Machine::default();
        for base in 1..=50 {
            let image = facts::Image::new(Action::Load, base << 12, 0x1000, Text::from("/lib/a"));
            machine.apply(At::new(1).process(7), image.into());
        }
        for pid in 100..200 {
            let at = At::new(2).process(pid);
            machine.apply(at, Fact::Fork { parent: 7 });
        }
        let states = machine.states.into_states();
        let images: usize = states.map(|state| state.images.len()).sum();
        assert_eq!(images, 50 + MOST_COPIED + 50);
        assert_eq!(machine.counters.copies_left_out, 100 - 21);
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
