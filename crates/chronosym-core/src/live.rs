//! A session that is asked while it goes on: one writer, readers that never wait (rule 20).

use std::sync::Arc;

use arc_swap::ArcSwap;
use chronosym_events::EventSchema;
use chronosym_timeline::{Id, LiveMap};

use crate::event_types::EventTypeInfo;
use crate::facts::{At, Fact};
use crate::ids::{BodyIndex, EventTypeId, ProcessIndex};
use crate::index::Index;
use crate::ranges::Ranges;
use crate::recording::{Loss, TraceFacts};
use crate::selection::SampleSelection;
use crate::session::{Payload, Session};
use crate::space::{AddressSpace, body_occupant, image_occupant};
use crate::state::ProcessState;
use crate::terms::Position;
use crate::timeline::Timeline;
use crate::untimed_index::UntimedIndex;

/// A [`Session`] whose answers can be had at any moment.
///
/// Push events into it as into a [`Session`], and [`publish`](LiveSession::publish) now and then: readers, on any thread,
/// see all that was published. After [`finish`](LiveSession::finish) the answers are those of [`Session::finish`].
///
/// Neither samples nor stacks are kept, so that it has no [`StackId`](crate::StackId)s: a live reader resolves addresses
/// itself. Events of several EventPipe sessions of one process can be pushed into one live session; what two of them say
/// alike is one fact.
///
/// The session in it cannot be taken away or replaced, so that what readers see fits together at all times:
///
/// ```compile_fail,E0614
/// let mut live = chronosym_core::LiveSession::new();
/// let taken = std::mem::take(&mut *live);
/// ```
pub struct LiveSession {
    pub(crate) session: Session,
    spaces: Vec<LiveSpace>,
    watermark: u64,
    finished: bool,
    latest: Arc<ArcSwap<Timeline>>,
}

/// The maps of one process, and how much of its state they show.
#[derive(Default)]
struct LiveSpace {
    state: Arc<ProcessState>,
    bodies: LiveMap,
    /// How many of the process's bodies were ever in the map.
    inserted: usize,
    images: LiveMap,
    image_ends: Vec<chronosym_timeline::End>,
    untimed: UntimedIndex,
    forgotten: Arc<Ranges>,
}

/// Where readers get the latest published timeline. Cheap to clone.
#[derive(Clone)]
pub struct LiveReader {
    latest: Arc<ArcSwap<Timeline>>,
}

impl LiveReader {
    /// The timeline as it was last published. Never waits for the writer.
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
    /// A live session without events.
    pub fn new() -> Self {
        let mut session = Session::new(SampleSelection::None);
        session.is_live = true;
        let empty = Timeline::of(&mut session, Vec::new(), 0);
        LiveSession {
            session,
            spaces: Vec::new(),
            watermark: 0,
            finished: false,
            latest: Arc::new(ArcSwap::from_pointee(empty)),
        }
    }

    /// Takes one event, as [`Session::push`] does. It has no stack: that would not be kept.
    pub fn push(&mut self, id: EventTypeId, at: At, payload: Payload<'_>) {
        self.session.push(id, at, payload, None);
    }

    /// As [`Session::apply`].
    pub fn apply<'a>(&mut self, at: At, fact: impl Into<Fact<'a>>) {
        self.session.apply(at, fact);
    }

    /// The session that events go into. Only for adapters of trace formats, which leave it in place.
    #[doc(hidden)]
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// A handle for readers.
    pub fn reader(&self) -> LiveReader {
        LiveReader {
            latest: self.latest.clone(),
        }
    }

    /// Promises that no event of an earlier time is to come: answers for times before it are final where they name code.
    ///
    /// Code that comes late all the same is taken in, and counted ([`Timeline::diagnostics`]).
    pub fn advance(&mut self, watermark_ns: u64) {
        self.watermark = self.watermark.max(watermark_ns);
    }

    /// Up to when answers that name code are final, ns since the trace began.
    pub fn watermark(&self) -> u64 {
        self.watermark
    }

    /// Shows readers all that was pushed until now.
    ///
    /// The cost follows what came since the last call, the number of processes, and that of the modules and images of those
    /// processes that anything came of.
    pub fn publish(&mut self) {
        let machine = &mut self.session.machine;
        machine.ensure_states();
        let processes = &machine.processes.all;
        self.spaces.resize_with(processes.len(), LiveSpace::default);
        let states = machine.states.take_changes();
        let mut spaces = Vec::with_capacity(processes.len());
        for ((process, (state, is_changed)), live) in
            processes.iter().zip(states).zip(&mut self.spaces)
        {
            if is_changed {
                live.catch_up(process, state);
            }
            for map in [&mut live.bodies, &mut live.images] {
                map.advance(self.watermark);
                if self.finished {
                    map.finish();
                }
            }
            spaces.push(AddressSpace {
                bodies: Index::Live(live.bodies.snapshot()),
                images: Index::Live(live.images.snapshot()),
                untimed: live.untimed.clone(),
                forgotten: live.forgotten.clone(),
                state: live.state.clone(),
            });
        }
        let late = |live: &LiveSpace| live.bodies.late() + live.images.late();
        machine.counters.late = self.spaces.iter().map(late).sum::<usize>() as u64;
        let watermark = if self.finished {
            u64::MAX
        } else {
            self.watermark
        };
        self.latest
            .store(Arc::new(Timeline::of(&mut self.session, spaces, watermark)));
    }

    /// The last event has come: publishes final answers. Events that are pushed all the same are late.
    pub fn finish(&mut self) {
        let machine = &mut self.session.machine;
        machine.close_ended();
        for state in machine.states.iter_mut() {
            state.code.finish();
        }
        self.finished = true;
        self.publish();
    }

    /// Drops code that ended at or before `horizon_ns`, so that memory does not grow with the length of the session.
    ///
    /// Answers for later times stay as they are; earlier times may find nothing. Returns how many bodies were dropped.
    /// Names stay: programs repeat them.
    pub fn forget_before(&mut self, horizon_ns: u64) -> usize {
        self.publish();
        let mut dropped = 0;
        for (state, live) in self.session.machine.states.iter_mut().zip(&mut self.spaces) {
            let dead = live.bodies.forget_before(horizon_ns).into_iter();
            let dead: Vec<_> = dead.map(|id| BodyIndex(id.index() as u32)).collect();
            dropped += dead.len();
            for index in &dead {
                let body = &state.code.bodies[index.index()];
                Arc::make_mut(&mut live.forgotten).insert(body.start, body.last());
            }
            if !dead.is_empty() {
                state.code.forget(&dead);
            }
            live.images.forget_before(horizon_ns);
            state.forget_details(horizon_ns);
        }
        dropped
    }
}

/// Gives a live session what feeds a session and cannot harm what readers see.
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
    /// Takes over what has come since the last time.
    fn catch_up(&mut self, process: &crate::process::Process, state: &mut ProcessState) {
        for index in state.code.take_changes() {
            let body = &state.code.bodies[index.index()];
            let Some(id) = Id::from_index(index.index()) else {
                continue;
            };
            if index.index() >= self.inserted {
                self.bodies
                    .insert(body_occupant(process, &state.code, body));
                self.inserted += 1;
            } else {
                self.bodies.set_end(id, body.end);
            }
        }
        for (index, image) in state.images.iter().enumerate() {
            match self.image_ends.get_mut(index) {
                None => {
                    self.images.insert(image_occupant(process, image));
                    self.image_ends.push(image.end);
                }
                Some(end) if *end != image.end => {
                    *end = image.end;
                    if let Some(id) = Id::from_index(index) {
                        self.images.set_end(id, image.end);
                    }
                }
                Some(_) => {}
            }
        }
        self.untimed.catch_up(&state.untimed.symbols);
        self.state = Arc::new(state.snapshot());
    }
}

impl Timeline {
    /// Whether events to come may change which code is answered for an address and time, and when that lived. Never in a frozen
    /// timeline, nor after [`LiveSession::finish`].
    ///
    /// Later events may still tell more of code that is final: its module, its name where it had none, the targets of a stub, and
    /// that its life is less certain.
    pub fn is_provisional(
        &self,
        process: ProcessIndex,
        address: u64,
        time_ns: u64,
        position: Position,
    ) -> bool {
        let address = self.normalise(address);
        // What is not provisional is code: then it has the byte before a return address.
        let at = position.looked_up(address);
        self.space(process)
            .is_some_and(|space| space.bodies.is_provisional(at, time_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Image, Method};
    use chronosym_events::Action;

    #[test]
    fn what_nothing_came_of_is_not_copied_again() {
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
        assert_eq!(after.spaces[1].state.code.bodies.len(), 1);
    }
}
