//! A session that resolves while events arrive: one writer, readers that never wait (rule 20).

use std::sync::Arc;

use arc_swap::ArcSwap;
use chronosym_events::EventSchema;
use chronosym_timeline::{End, Id, LiveMap};
use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::event_types::EventTypeInfo;
use crate::facts::{At, Fact, Sample};
use crate::ids::{BodyIndex, EventTypeId, ImageIndex, ProcessIndex};
use crate::index::Index;
use crate::machine::Machine;
use crate::pending_samples::{LiveSample, PendingSamples};
use crate::process::Process;
use crate::ranges::ForgottenCode;
use crate::recording::{Loss, TraceFacts};
use crate::room::Room;
use crate::selection::SampleSelection;
use crate::session::{Payload, Session};
use crate::space::{AddressSpace, body_occupant, image_occupant};
use crate::state::ProcessState;
use crate::terms::Position;
use crate::timeline::Timeline;
use crate::untimed_index::UntimedIndex;
use chronosym_types::SparseVec;

/// A [`Session`] that resolves addresses while events still arrive.
///
/// Push events into it as into a [`Session`], and [`publish`](LiveSession::publish) regularly:
/// readers, on any thread, see all that was pushed before. After [`finish`](LiveSession::finish)
/// the answers are those of [`Session::finish`]. Call [`forget_before`](LiveSession::forget_before)
/// regularly, too: memory then follows what is alive and what ended since, however long the session
/// lasts.
///
/// It has no [`StackId`](crate::StackId)s: [`drain_samples`](LiveSession::drain_samples) returns
/// samples with the addresses of their stacks, if requested. Events of several EventPipe sessions
/// of one process can be pushed into one live session; facts that several of them report are
/// applied once.
///
/// The inner session cannot be moved out or replaced, so that readers always see a consistent
/// state:
///
/// ```compile_fail,E0614
/// let mut live = chronosym_core::LiveSession::new();
/// let taken = std::mem::take(&mut *live);
/// ```
pub struct LiveSession {
    session: Session,
    /// By process.
    spaces: FxHashMap<ProcessIndex, LiveSpace>,
    published: SparseVec<Arc<AddressSpace>>,
    watermark: u64,
    /// The watermark of the last publish.
    published_watermark: u64,
    finished: bool,
    latest: Arc<ArcSwap<Timeline>>,
    samples: PendingSamples,
}

/// The maps of one process, and its state when they were last changed.
#[derive(Default)]
struct LiveSpace {
    state: Arc<ProcessState>,
    bodies: LiveMap,
    images: LiveMap,
    untimed: UntimedIndex,
    forgotten: Arc<ForgottenCode>,
}

/// A handle for readers, which returns the latest published timeline. Cheap to clone.
#[derive(Clone)]
pub struct LiveReader {
    latest: Arc<ArcSwap<Timeline>>,
}

impl LiveReader {
    /// Returns the latest published timeline. Never waits for the writer.
    pub fn timeline(&self) -> Arc<Timeline> {
        self.latest.load_full()
    }
}

impl Default for LiveSession {
    fn default() -> Self {
        LiveSession::new()
    }
}

impl LiveSession {
    /// Creates a live session without events.
    pub fn new() -> Self {
        let mut session = Session::new(SampleSelection::None);
        session.is_live = true;
        let empty = Timeline::of(&mut session, SparseVec::default(), 0);
        LiveSession {
            session,
            spaces: FxHashMap::default(),
            published: SparseVec::default(),
            watermark: 0,
            published_watermark: 0,
            finished: false,
            latest: Arc::new(ArcSwap::from_pointee(empty)),
            samples: PendingSamples::default(),
        }
    }

    /// Limits the estimated memory of the session. Without a call it has no budget, and
    /// [`forget_before`](Self::forget_before) alone bounds its memory.
    ///
    /// When the budget is reached, samples that wait are dropped first. Then events are left out
    /// and counted ([`Timeline::diagnostics`]): from seven eighths of the budget on all but ends of
    /// code, images and processes, at the budget all. They are a [loss](Timeline::losses), so an
    /// answer that they could change is not exact. The session takes events again once
    /// `forget_before` has freed memory. [Deltas](Self::keep_deltas) that wait are not counted.
    pub fn limit_memory(&mut self, budget: Budget) {
        self.session.machine.budget = budget;
        self.session.room = (!budget.is_unlimited()).then(|| Box::new(Room::new()));
    }

    /// Takes one event, like [`Session::push`], but without a stack, which would not be kept.
    pub fn push(&mut self, id: EventTypeId, at: At, payload: Payload<'_>) {
        self.session.push(id, at, payload, None);
    }

    /// Like [`Session::apply`].
    pub fn apply<'a>(&mut self, at: At, fact: impl Into<Fact<'a>>) {
        self.session.apply(at, fact);
    }

    /// Calls `read` with the session, for adapters of trace formats, which push events into a
    /// [`Session`]. Then advances the watermark to the time that `read` returns, and publishes.
    ///
    /// # Errors
    ///
    /// Those of `read`; events that it pushed before are published with the next batch.
    ///
    /// # Panics
    ///
    /// If `read` replaces the session.
    pub fn read_batch<E>(
        &mut self,
        read: impl FnOnce(&mut Session) -> Result<Option<u64>, E>,
    ) -> Result<Option<u64>, E> {
        let serial = self.session.serial;
        let watermark_ns = read(&mut self.session);
        assert_eq!(serial, self.session.serial, "the session was replaced");
        self.samples.limit(&mut self.session);
        if let Ok(Some(watermark_ns)) = watermark_ns {
            self.advance(watermark_ns);
            self.publish();
        }
        watermark_ns
    }

    /// Returns a handle for readers.
    pub fn reader(&self) -> LiveReader {
        LiveReader {
            latest: self.latest.clone(),
        }
    }

    /// States that no event of an earlier time follows: answers for earlier times are then final if
    /// they name code.
    ///
    /// Code that follows nevertheless is applied, and counted ([`Timeline::diagnostics`]).
    pub fn advance(&mut self, watermark_ns: u64) {
        self.watermark = self.watermark.max(watermark_ns);
    }

    /// Returns the time up to which answers that name code are final, in ns since the trace began.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Publishes all events pushed so far to readers.
    ///
    /// Takes time linear in the changes since the last call, and independent of the total state
    /// unless a sixteenth of the code of a process has changed since its index was built: then
    /// about 0.2 µs for each of its bodies, to build the index again.
    pub fn publish(&mut self) {
        let machine = &mut self.session.machine;
        machine.ensure_states();
        let Machine {
            processes,
            states,
            counters,
            ..
        } = machine;
        states.take_changes(|index, state| {
            let space = self.spaces.entry(index).or_default();
            for map in [&mut space.bodies, &mut space.images] {
                map.advance(self.published_watermark);
            }
            let late = space.late();
            space.update(&processes.all[index.index()], state);
            counters.late += (space.late() - late) as u64;
            let space = Arc::new(space.snapshot());
            match self.published.get_mut(index.index()) {
                Some(published) => *published = space,
                None => {
                    self.published.push(space);
                }
            }
        });
        self.published_watermark = self.watermark;
        let watermark = match self.finished {
            true => u64::MAX,
            false => self.watermark,
        };
        let timeline = Timeline::of(&mut self.session, self.published.clone(), watermark);
        self.latest.store(Arc::new(timeline));
    }

    /// Publishes final answers after the last event. Events pushed later are late.
    pub fn finish(&mut self) {
        let machine = &mut self.session.machine;
        machine.close_ended();
        machine.states.update_each(|_, state| {
            state.code.finish();
            true
        });
        self.finished = true;
        self.publish();
    }

    /// Stores samples of profilers from now on, for [`drain_samples`](Self::drain_samples): at most
    /// `most` between two calls, and one batch beyond that; if more come, all are dropped. Call it
    /// before the first event.
    pub fn keep_samples(&mut self, most: u64) {
        self.samples.keep(&mut self.session, most);
    }

    /// Adds a sample, as [`Session::sample`], if samples are stored.
    pub fn sample(&mut self, at: At, leaf_first: &[u64], sample: Sample) {
        self.session.sample(at, leaf_first, sample);
        self.samples.limit(&mut self.session);
    }

    /// Calls `each` with the samples that came since the last call, in their order of arrival, and
    /// drops them. Returns the number of samples that were dropped because too many came.
    ///
    /// Their stacks are resolved in the timeline that was [published](Self::publish) last, with a
    /// [`Resolver`](crate::Resolver) that [advances](crate::Resolver::advance_to) to it. Answers
    /// for times from the [watermark](Self::watermark) on are provisional.
    pub fn drain_samples(&mut self, each: impl FnMut(LiveSample<'_>)) -> u64 {
        self.samples.drain(&mut self.session, each)
    }

    /// Publishes, and returns the timeline with the samples that came since the last call, for
    /// [`Timeline::profile`] of them; and the number of samples that were dropped because too many
    /// came. They are those that [`drain_samples`](Self::drain_samples) would pass.
    pub fn take_samples(&mut self) -> (Arc<Timeline>, u64) {
        self.publish();
        let published = self.published.clone();
        let mut timeline = Timeline::of(&mut self.session, published, self.watermark);
        let dropped = self.samples.move_to(&mut self.session, &mut timeline);
        (Arc::new(timeline), dropped)
    }

    /// Keeps what is pushed from now on, for [`take_delta`](Self::take_delta). Call it before the
    /// first event.
    pub fn keep_deltas(&mut self) {
        self.session.journal.get_or_insert_default();
    }

    /// Returns what was pushed about code since the last call, as bytes to append to a file or
    /// stream that [`DeltaReader`](crate::DeltaReader) reads; empty if nothing was, or nothing is
    /// kept. Until then it takes memory.
    ///
    /// A reader of all deltas answers as this session without
    /// [`forget_before`](Self::forget_before). What a crash loses is what was pushed since the last
    /// call.
    pub fn take_delta(&mut self) -> Vec<u8> {
        let Session {
            journal, machine, ..
        } = &mut self.session;
        let journal = journal.as_mut();
        journal.map_or(Vec::new(), |it| it.take(&machine.facts, self.watermark))
    }

    /// Drops code, images and modules that ended by `horizon_ns`, processes that ended by then with
    /// all their state, and names that are no longer used. Returns the number of code bodies
    /// dropped.
    ///
    /// Memory then follows what is alive and what ended since. Answers for later times do not
    /// change, except for the reason of addresses without code; earlier times may have no code.
    /// Readers see the change with the next [`publish`](LiveSession::publish).
    ///
    /// Takes time linear in the remaining state.
    pub fn forget_before(&mut self, horizon_ns: u64) -> usize {
        self.publish();
        let mut dropped = 0;
        for (process, state) in self.session.forget_processes(horizon_ns) {
            dropped += state.code.bodies.count();
            self.spaces.remove(&process);
            self.published.remove(process.index());
        }
        self.spaces.shrink_to(2 * self.spaces.len());
        let spaces = &mut self.spaces;
        self.session.machine.states.update_each(|process, state| {
            let Some(space) = spaces.get_mut(&process) else {
                return false;
            };
            let (bodies, is_changed) = space.forget(state, horizon_ns);
            dropped += bodies;
            is_changed
        });
        self.session.forget_unused(horizon_ns);
        dropped
    }
}

/// Adds methods to a live session that forward to the session and do not affect published state.
macro_rules! feeding {
    ($($name:ident($own:ty $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        impl LiveSession {$(
            #[doc = concat!("As [`Session::", stringify!($name), "`].")]
            pub fn $name(self: $own $(, $argument: $type)*) $(-> $result)? {
                self.session.$name($($argument),*)
            }
        )*}
    };
}

feeding! {
    event_type(&mut Self, schema: Arc<EventSchema>) -> EventTypeId;
    event_types(&Self) -> &[EventTypeInfo];
    schema(&Self, id: EventTypeId) -> Option<&Arc<EventSchema>>;
    needs_order(&Self, id: EventTypeId) -> bool;
    facts(&mut Self) -> &mut TraceFacts;
    lost(&mut Self, loss: Loss);
    perf_map(&mut Self, pid: u32, text: &[u8]);
    has_process(&Self, pid: u32) -> bool;
}

impl LiveSpace {
    /// Applies the changes since the last update.
    fn update(&mut self, process: &Process, state: &mut ProcessState) {
        let before = Arc::clone(&self.state);
        for (index, body) in state.code.bodies.changes_since(&before.code.bodies) {
            match before.code.bodies.get(index) {
                None => {
                    self.bodies
                        .insert(body_occupant(process, &state.code, body));
                }
                Some(before) => update_end(&mut self.bodies, index, before.end, body.end),
            }
        }
        for (index, image) in state.images.changes_since(&before.images) {
            match before.images.get(index) {
                None => {
                    self.images.insert(image_occupant(process, image));
                }
                Some(before) => update_end(&mut self.images, index, before.end, image.end),
            }
        }
        self.untimed.catch_up(&state.untimed.symbols);
        self.state = Arc::new(state.snapshot());
    }

    /// Drops what ended by a time, from the maps and the state. Returns the number of dropped
    /// bodies, and whether anything was dropped.
    fn forget(&mut self, state: &mut ProcessState, horizon_ns: u64) -> (usize, bool) {
        let bodies = self.bodies.forget_before(horizon_ns).into_iter();
        let bodies: Vec<_> = bodies.map(|id| BodyIndex(id.index() as u32)).collect();
        if !bodies.is_empty() {
            let forgotten = Arc::make_mut(&mut self.forgotten);
            for body in bodies
                .iter()
                .filter_map(|body| state.code.bodies.get(body.index()))
            {
                forgotten.insert(body.start, body.last());
            }
        }
        let images = self.images.forget_before(horizon_ns).into_iter();
        let images: Vec<_> = images.map(|id| ImageIndex(id.index() as u32)).collect();
        let modules = state.code.modules.count();
        state.code.forget(&bodies, horizon_ns);
        state.forget_images(&images);
        state.forget_details(horizon_ns);
        let is_changed = !bodies.is_empty() || !images.is_empty();
        (
            bodies.len(),
            is_changed || state.code.modules.count() < modules,
        )
    }

    /// Returns the number of bodies and images that arrived after the watermark.
    fn late(&self) -> usize {
        self.bodies.late() + self.images.late()
    }

    fn snapshot(&mut self) -> AddressSpace {
        AddressSpace {
            bodies: Index::Live(self.bodies.snapshot()),
            images: Index::Live(self.images.snapshot()),
            untimed: self.untimed.clone(),
            forgotten: self.forgotten.clone(),
            state: self.state.clone(),
        }
    }
}

fn update_end(map: &mut LiveMap, index: usize, before: End, end: End) {
    if before != end
        && let Some(id) = Id::from_index(index)
    {
        map.set_end(id, end);
    }
}

impl Timeline {
    /// Returns whether later events may change which code is resolved for an address and time, and
    /// its lifetime. Never in a frozen timeline, nor after [`LiveSession::finish`].
    ///
    /// Later events may still add to code that is final: its module, its name where it had none,
    /// the targets of a stub; and its certainty may decrease.
    pub fn is_provisional(
        &self,
        process: ProcessIndex,
        address: u64,
        time_ns: u64,
        position: Position,
    ) -> bool {
        if self.watermark == u64::MAX {
            return false;
        }
        // An answer is final only where there is code: then it has the byte before a return
        // address.
        let address = position.looked_up(self.normalise(address));
        self.space(process).is_some_and(|space| {
            time_ns >= self.watermark || space.bodies.id(address, time_ns).is_none()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Image, Method};
    use chronosym_events::Action;

    #[test]
    fn unchanged_processes_are_shared_by_published_timelines() {
        let at = |pid, time| At::new(time).process(pid).thread(1);
        let mut live = LiveSession::new();
        for pid in [1, 2] {
            live.apply(
                at(pid, 1),
                Image::new(Action::Load, 0x10_0000, 64, "/lib/a.so"),
            );
        }
        live.publish();
        let before = live.reader().timeline();
        live.apply(at(2, 2), Method::new(Action::Load, 1, 0x1000, 64));
        live.advance(2);
        live.publish();
        let after = live.reader().timeline();
        let is_shared = |pid: usize| {
            let (before, after) = (&before.spaces[pid], &after.spaces[pid]);
            Arc::ptr_eq(&before.state, &after.state)
        };
        assert!(is_shared(0));
        assert!(!is_shared(1));
        assert_eq!(after.spaces[1].state.code.bodies.count(), 1);
    }
}
