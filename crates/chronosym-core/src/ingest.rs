//! The session's interface for trace adapters beyond events, facts and samples: deferred stacks,
//! walks over copied stacks, and state from earlier events.

use std::sync::Arc;

use chronosym_events::{DecodeError, EventSchema};

use crate::activity_ids::{ActivityPhase, EventActivity};
use crate::facts::{Action, At, IlMap, Method, Symbol};
use crate::ids::{EventTypeId, ProcessIndex, StackId, ThreadIndex};
use crate::images::FileMapping;
use crate::machine::Machine;
use crate::meaning::Role;
use crate::recording::LossScope;
use crate::samples::{ClassIndex, SampleClass, Wakeup};
use crate::session::Session;
use crate::stacks::Walked;
use crate::strings::StringId;
use crate::task_activities::TaskStep;
use crate::terms::{SampleKind, Weight};
use crate::thread_time::OffCpu;
use crate::unwind::{Thread, Unwinder};

impl Session {
    /// Returns the role of an event type.
    pub fn role(&self, id: EventTypeId) -> Role {
        self.info(id).map_or(Role::Other, |info| info.meaning.role)
    }

    /// Returns the weight of an event's stack: the bytes allocated according to the event, or one.
    pub fn weight(&self, id: EventTypeId, payload: &[u8]) -> Weight {
        let field = self.info(id).and_then(|info| info.meaning.bytes);
        field.map_or(Weight::One, |field| {
            field.read(payload).map_or(Weight::Unknown, Weight::Bytes)
        })
    }

    /// Returns whether the options select the stacks of this event type.
    pub fn is_selected(&self, id: EventTypeId) -> bool {
        self.info(id).is_some_and(|info| info.selected)
    }

    /// Counts a payload that does not decode.
    pub fn undecodable(&mut self, id: EventTypeId, error: DecodeError) {
        self.machine.counters.undecodable(id, error);
    }

    /// Replaces the schema of an event type by one that arrived after its first event.
    pub fn redescribe(&mut self, id: EventTypeId, schema: &Arc<EventSchema>) {
        self.types.redescribe(id, schema);
    }

    /// Returns the process incarnation of a fact.
    pub fn process_at(&mut self, at: At) -> ProcessIndex {
        self.machine.process_at(at)
    }

    /// Returns the thread of a process incarnation.
    pub fn thread(&mut self, pid: Option<u32>, tid: u64, time_ns: u64) -> ThreadIndex {
        let process = self.machine.process(pid, time_ns);
        self.machine.processes.thread(process, tid)
    }

    /// Returns the thread of an event.
    pub(crate) fn thread_at(&mut self, at: At) -> ThreadIndex {
        self.machine.thread_at(at)
    }

    /// Names a process that has no name.
    pub fn name_process(&mut self, pid: u32, name: &[u8]) {
        if let Some(journal) = &mut self.journal {
            journal.process_name(pid, name);
        }
        let Machine {
            names, processes, ..
        } = &mut self.machine;
        if let Some(process) = processes.find(Some(pid), u64::MAX) {
            let current = &mut processes.all[process.index()].name;
            if *current == StringId::EMPTY {
                *current = names.short(&String::from_utf8_lossy(name));
            }
        }
    }

    /// Returns all mappings of a file that a process ever had.
    pub fn mappings_of(
        &self,
        process: ProcessIndex,
        path: &str,
    ) -> impl Iterator<Item = FileMapping> {
        let names = &self.machine.names.strings;
        let images = self.machine.states[process.index()].images.iter();
        let images = images.filter(move |image| names.get(image.path) == path);
        images.map(|image| image.mapping(image.file_offset))
    }

    /// Adds a symbol without a lifetime (rule 18).
    pub fn name_untimed(&mut self, process: ProcessIndex, symbol: Symbol<'_>) {
        self.machine.apply_to(process, At::new(0), symbol.into());
    }

    /// Adds a managed method at an IL offset, as a profile states it: its code at `method.start`
    /// has this IL offset only.
    pub fn profiled_method(&mut self, at: At, method: Method<'_>, il_offset: u32) {
        let (id, start) = (method.id, method.start);
        self.apply(at, method);
        let entries = [(il_offset.min(i32::MAX as u32) as i32, 0)];
        self.apply(at, IlMap::new(Action::Load, id, &entries));
        let process = self.machine.process_at(at);
        self.machine.state(process).code.profiled(start);
    }

    /// Returns whether the latest event about an address is a runtime's, not a jitdump's.
    pub fn is_stated_by_events(&mut self, at: At, address: u64) -> bool {
        let process = self.machine.process_at(at);
        let code = &self.machine.state(process).code;
        code.is_stated_by_events(address)
    }

    /// Ends code over which an image was mapped later (rule 5), for sources that state images
    /// first.
    pub fn map_images_over_code(&mut self) {
        self.machine.map_images_over_code();
    }

    /// Walks the copied stack of a thread and appends its frames, innermost first. Returns false if
    /// the walk ended before a frame that is marked as outermost.
    pub fn walk_stack(
        &mut self,
        at: At,
        thread: Thread<'_>,
        unwinder: &mut Unwinder,
        frames: &mut Vec<Walked>,
    ) -> bool {
        let process = self.machine.process(at.process, at.time_ns);
        self.machine.state(process);
        let state = &self.machine.states[process.index()];
        unwinder.walk(thread, state, &self.machine.names, frames)
    }

    /// Returns the process that a Windows thread belongs to now.
    pub fn process_of_thread(&self, tid: u32) -> Option<u32> {
        self.kernel.process_of(tid)
    }

    /// Returns the base of the lowest kernel image of a 32-bit Windows.
    pub fn lowest_kernel_image(&self) -> Option<u64> {
        self.kernel.lowest_kernel_image
    }

    /// Converts NT device paths of Windows images to DOS paths: volume mappings often come last.
    pub fn rename_volumes(&mut self) {
        self.kernel.finish(&mut self.machine);
    }

    /// Adds a sample class whose stack, and perhaps thread, are still unknown.
    pub fn open_class(&mut self, class: SampleClass) -> ClassIndex {
        self.samples.open_class(class)
    }

    /// Logs a sample of a class.
    pub fn log_sample(&mut self, class: ClassIndex, time_ns: u64, weight: Weight) {
        self.samples.log(class, time_ns, weight);
    }

    /// Sets the stack of an open class.
    pub fn set_stack(&mut self, class: ClassIndex, stack: StackId) {
        self.samples.class_mut(class).stack = stack;
    }

    /// Sets the thread of an open class to a Windows thread whose process only later events state.
    pub fn set_early_thread(&mut self, class: ClassIndex, tid: u32) {
        let process = match self.kernel.owner_before(tid) {
            Some(process) => process,
            None => self.machine.process(None, 0),
        };
        let thread = self.machine.processes.thread(process, tid.into());
        self.samples.class_mut(class).thread = thread;
    }

    /// Returns the class of the wake-ups by a thread with a stack.
    pub fn waker_class(
        &mut self,
        waker: At,
        event: EventTypeId,
        stack: Option<StackId>,
    ) -> Option<ClassIndex> {
        let class = SampleClass {
            thread: self.thread(waker.process, waker.thread.unwrap_or(0), waker.time_ns),
            stack: stack?,
            event,
            kind: SampleKind::Wakeup,
            idle: false,
            on_cpu: false,
        };
        Some(self.samples.class(class))
    }

    /// Records that a wake-up ended a wait, both by their classes.
    pub fn wakeup(&mut self, wait: ClassIndex, off: OffCpu, waker: ClassIndex) {
        let OffCpu { start_ns, ns, .. } = off;
        self.samples.wakeup(Wakeup {
            wait,
            start_ns,
            ns,
            waker,
        });
    }

    /// Records the activity ids of an event that was pushed, or of one without any. Those of a thread
    /// must be in time order. `payload` is the bytes of the event.
    pub fn event_activity(
        &mut self,
        id: EventTypeId,
        at: At,
        activity: EventActivity,
        payload: &[u8],
    ) {
        let is_wanted = self.options.activity_ids;
        let Some(info) = self.info(id).filter(|_| is_wanted) else {
            return;
        };
        // Wall-clock samples and rundown events are written by other threads, and state none.
        if info.meaning.role == Role::ThreadSample
            || info.schema.provider_name().ends_with("Rundown")
        {
            return;
        }
        let phase = ActivityPhase::of(&info.schema);
        let step = TaskStep::of(&info.schema, payload);
        let thread = self.thread_at(at);
        let process = self.machine.processes.threads[thread.index()].process;
        let types = &self.types.all;
        let subject = |id: EventTypeId| ActivityPhase::subject(&types[id.index()].schema);
        let at = (process, thread, at.time_ns);
        let event = (id, phase, step);
        self.activity_ids
            .event(at, event, activity, |by| subject(by) == subject(id));
    }

    /// Returns whether CPU samples that are not stored are evidence of the activity of wall-clock
    /// samples: only the latter are selected.
    pub fn wants_on_cpu(&self) -> bool {
        self.on_cpu.is_wanted
    }

    /// Records a CPU sample as evidence that a thread was on a processor, if it is wanted.
    pub fn on_cpu(&mut self, at: At) {
        if self.on_cpu.is_wanted {
            let thread = self.thread_at(at);
            self.on_cpu.seen.push((thread, at.time_ns));
        }
    }

    /// Records that context switches before a time are missing, which the following ones prove.
    pub fn switches_lost(&mut self, until_ns: u64) {
        if self.options.switches {
            self.thread_times.lost(until_ns);
        }
    }

    /// Confirms the code of a process that is alive at a time: the recordings of its runtime last
    /// until then and lost no event, so losses of processes and images do not concern it. Does
    /// nothing if events of any kind were lost, as code may be known by other recordings.
    pub fn confirm_code(&mut self, pid: u32, until_ns: u64) {
        let mut losses = self.losses.iter();
        if losses.any(|loss| loss.scope == LossScope::Anything) {
            return;
        }
        let process = self.machine.process(Some(pid), until_ns);
        self.machine.state(process).code.confirm_all(until_ns);
    }

    /// Confirms the code of a process that nothing unloads while it lives, until a time at which it
    /// wrote an event: lost events do not concern that code.
    pub fn confirm_permanent_code(&mut self, pid: Option<u32>, until_ns: u64) {
        let process = self.machine.process(pid, until_ns);
        self.machine.state(process).code.confirm_permanent(until_ns);
    }

    /// Counts stacks that could not be stored.
    pub fn stacks_dropped(&mut self, count: u64) {
        self.machine.counters.stacks_dropped += count;
    }
}

#[cfg(test)]
mod tests {
    use chronosym_events::{EventKey, Provider};

    use super::*;
    use crate::selection::Options;

    #[test]
    fn allocations_weigh_their_bytes() {
        let mut session = Session::new(Options::default());
        let mut weight = |id, version, payload: &[u8]| {
            let provider = Provider::Runtime;
            let key = EventKey::Manifest {
                provider,
                id,
                version,
            };
            let id = session.event_type(Arc::new(EventSchema::new(key)));
            session.weight(id, payload)
        };
        let mut payload = vec![0xff; 10];
        payload.extend((1u64 << 33).to_le_bytes());
        assert_eq!(weight(10, 4, &payload), Weight::Bytes(1 << 33));
        assert_eq!(weight(10, 1, &[8, 1, 0, 0, 0]), Weight::Bytes(264));
        assert_eq!(weight(10, 4, &payload[..17]), Weight::Unknown, "cut off");
        let sampled: Vec<u8> = [7u64, 1000, 400]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        assert_eq!(weight(303, 0, &sampled), Weight::Bytes(103_000));
        assert_eq!(weight(303, 0, &sampled[..15]), Weight::Unknown, "cut off");
        assert_eq!(weight(303, 1, &sampled), Weight::One, "another layout");
    }
}
