//! The first step of resolution: (process, address, time) → what stood there (rules 8 to 11 and 18 to 19).

use std::ops::Range;

use chronosym_timeline::{End, Neighbours, Start};

use crate::body::CodeBody;
use crate::evidence::{Certainty, NameReason};
use crate::ids::{BodyIndex, ImageIndex, ProcessIndex};
use crate::recording::Loss;
use crate::space::AddressSpace;
use crate::terms::Position;
use crate::timeline::Timeline;

/// What stands at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Body(BodyIndex),
    /// Row of the process's untimed symbols.
    Untimed {
        row: usize,
        /// Another one there has a different name.
        contested: bool,
    },
    /// An image, and the process whose image it is: the system's for kernel addresses.
    Image(ProcessIndex, ImageIndex),
    Nothing(NameReason),
}

/// An address of a process at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressAt {
    pub(crate) process: ProcessIndex,
    pub(crate) address: u64,
    /// Before the end of all times.
    pub(crate) time: u64,
    pub(crate) position: Position,
}

impl AddressAt {
    /// An address as a stack has it; the time is in ns since the trace began.
    pub fn new(process: ProcessIndex, address: u64, time: u64, position: Position) -> Self {
        AddressAt {
            process,
            address,
            // What never ended is there until the end of times, which is no time itself: lives are half open.
            time: time.min(u64::MAX - 1),
            position,
        }
    }
}

/// An answer, and the times for which it is the same.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub found: Found,
    pub certainty: Certainty,
    /// The address that was looked up: one less than a return address.
    pub looked_up: u64,
    pub valid: Range<u64>,
}

impl Location {
    /// Rule 23: where clocks can be so many ns apart, what begins or ends within that of a time may do so on its other side.
    fn within(mut self, error_ns: u64, time: u64) -> Self {
        if error_ns == 0 || self.certainty != Certainty::Exact {
            return self;
        }
        let Range { start, end } = self.valid;
        let from = if start == 0 {
            0
        } else {
            start.saturating_add(error_ns)
        };
        let to = if end == u64::MAX {
            end
        } else {
            end.saturating_sub(error_ns)
        };
        if (from..to).contains(&time) {
            self.valid = from..to;
            return self;
        }
        self.certainty = Certainty::Inferred;
        if time < from {
            self.valid.end = from.min(end);
        } else {
            self.valid.start = to.max(start);
        }
        self
    }
}

/// All times. What never ended ends here.
pub(crate) const ALWAYS: Range<u64> = 0..u64::MAX;

pub(crate) fn meet(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

impl Timeline {
    /// What stood at an address of a process at a time.
    pub(crate) fn locate(&self, at: AddressAt) -> Location {
        let AddressAt {
            process,
            time,
            position,
            ..
        } = at;
        let address = self.normalise(at.address);
        let Some(space) = self.space(process) else {
            return Location {
                found: Found::Nothing(NameReason::NoCodeAtAddress),
                certainty: Certainty::Inferred,
                looked_up: address,
                valid: ALWAYS,
            };
        };
        let exact = |address| self.locate_exact(process, space, address, time);
        let is_code = |l: &Location| !matches!(l.found, Found::Nothing(_));
        match position {
            Position::Exact => exact(address),
            Position::Return => {
                let call = exact(position.looked_up(address));
                if is_code(&call) {
                    return call;
                }
                // Nothing before it: then it is the first byte of what stands there, however it got on the stack.
                let own = exact(address);
                if is_code(&own) {
                    Location {
                        valid: meet(&own.valid, &call.valid),
                        ..own
                    }
                } else {
                    own
                }
            }
        }
    }

    /// Whether an address can be the kernel's: 32-bit systems give user mode 2 GB or more, others the lower half.
    fn is_kernel(&self, address: u64) -> bool {
        match self.facts.pointer_size {
            Some(4) => address >= 1 << 31,
            Some(_) => address >> 63 == 1,
            None => true,
        }
    }

    /// The processes whose images can be at an address of a process: its own, and the system's, whose user mode (its ntdll) is
    /// nobody else's.
    pub(crate) fn image_owners(
        &self,
        process: ProcessIndex,
        address: u64,
    ) -> impl Iterator<Item = ProcessIndex> + '_ {
        let shared = self.is_kernel(address) || self.system.contains(&process);
        let system = self.system.iter().copied();
        std::iter::once(process).chain(system.filter(move |&s| shared && s != process))
    }

    /// Clears what is no part of an address: the Thumb bit and pointer authentication.
    pub(crate) fn normalise(&self, address: u64) -> u64 {
        self.address_mask.apply(address)
    }

    fn locate_exact(
        &self,
        process: ProcessIndex,
        space: &AddressSpace,
        address: u64,
        time: u64,
    ) -> Location {
        let (body, gap) = space.body_at(address, time, &self.losses);
        if let Some(location) = body {
            return location.within(self.facts.clock_error_ns, time);
        }
        if let Some((row, contested)) = space.untimed.at(address, &space.state.untimed.rows) {
            let found = Found::Untimed { row, contested };
            return Location {
                found,
                certainty: Certainty::Inferred,
                looked_up: address,
                valid: gap,
            };
        }
        let mut valid = gap;
        for owner in self.image_owners(process, address) {
            let AddressSpace { images, state, .. } = &self.spaces[owner.index()];
            if let Some((id, life)) = images.find(address, time) {
                let image = &state.images[id.index()];
                let life = life.from..life.to;
                let (certainty, known) =
                    certainty(image.begin, image.end, life, time, &self.losses);
                return Location {
                    found: Found::Image(owner, ImageIndex(id.index() as u32)),
                    certainty,
                    looked_up: address,
                    valid: meet(&valid, &known),
                };
            }
            valid = meet(&valid, &between(&images.neighbours(address, time)));
        }
        let reason = self.why_nothing(process, space, address, time);
        Location {
            found: Found::Nothing(reason),
            certainty: Certainty::Inferred,
            looked_up: address,
            valid,
        }
    }

    /// The first reason that applies to an address where nothing stands at a time.
    fn why_nothing(
        &self,
        process: ProcessIndex,
        space: &AddressSpace,
        address: u64,
        time: u64,
    ) -> NameReason {
        const LOWEST: u64 = 0x1000;
        if address < LOWEST {
            return NameReason::InvalidAddress;
        }
        let near = [&space.bodies, &space.images].map(|map| map.neighbours(address, time));
        // What was dropped stood there before anything that is still known.
        if space.forgotten.contains(address) || near.iter().any(|near| near.before.is_some()) {
            return NameReason::AfterUnload;
        }
        if near.iter().any(|near| near.after.is_some()) {
            return NameReason::BeforeFirstLoad;
        }
        if !self.losses.is_empty() {
            return NameReason::EventsLost;
        }
        if self.is_managed(process) && !self.has_rundown(process) {
            return NameReason::NoRundown;
        }
        NameReason::NoCodeAtAddress
    }
}

/// The time between two lives.
fn between(near: &Neighbours) -> Range<u64> {
    let from = near.before.map_or(0, |(_, life)| life.to);
    from..near.after.map_or(u64::MAX, |(_, life)| life.from)
}

impl AddressSpace {
    pub(crate) fn body(&self, index: BodyIndex) -> &CodeBody {
        &self.state.code.bodies[index.index()]
    }

    /// The body at an address and time; without one, the time for which there is none.
    fn body_at(&self, address: u64, time: u64, losses: &[Loss]) -> (Option<Location>, Range<u64>) {
        if let Some((id, life)) = self.bodies.find(address, time) {
            let index = BodyIndex(id.index() as u32);
            let (body, life) = (self.body(index), life.from..life.to);
            let (certainty, valid) = if body.approximate {
                (Certainty::Approximate, life)
            } else {
                certainty(body.begin, body.end, life, time, losses)
            };
            let found = Found::Body(index);
            return (
                Some(Location {
                    found,
                    certainty,
                    looked_up: address,
                    valid: valid.clone(),
                }),
                valid,
            );
        }
        let near = self.bodies.neighbours(address, time);
        let mut gap = between(&near);
        // Rule 8: the load event can be a little late, where nothing stood before.
        if near.before.is_none()
            && !self.forgotten.contains(address)
            && let Some((id, life)) = near.after
        {
            let index = BodyIndex(id.index() as u32);
            let body = self.body(index);
            let loaded =
                body.flags.is_jitted() && matches!(body.begin, Start::At(at) if at == life.from);
            if loaded && body.earliest <= time {
                let valid = body.earliest..life.from;
                let found = Found::Body(index);
                let location = Location {
                    found,
                    certainty: Certainty::Approximate,
                    looked_up: address,
                    valid: valid.clone(),
                };
                return (Some(location), valid);
            }
            if loaded {
                gap.end = gap.end.min(body.earliest);
            }
        }
        (None, gap)
    }
}

/// How sure it is that what events say began and ended so stood there at `time`, and the part of its life for which that holds.
fn certainty(
    begin: Start,
    end: End,
    life: Range<u64>,
    time: u64,
    losses: &[Loss],
) -> (Certainty, Range<u64>) {
    let known_from = match begin {
        Start::At(at) | Start::Before(at) => at,
        Start::Unbounded => u64::MAX,
    };
    if time < known_from {
        return (Certainty::Inferred, life.start..life.end.min(known_from));
    }
    let known = known_from.max(life.start)..life.end;
    match end {
        End::At(_) => (Certainty::Exact, known),
        End::After(at) if time <= at => (
            Certainty::Exact,
            known.start..known.end.min(at.saturating_add(1)),
        ),
        End::After(at) => (
            Certainty::Inferred,
            known.start.max(at.saturating_add(1))..known.end,
        ),
        // Closed by what was put over it: when it went is not known.
        End::Open if life.end != u64::MAX => (Certainty::Inferred, known),
        End::Open => match losses
            .iter()
            .filter(|l| l.to_ns > known_from)
            .map(|l| l.from_ns)
            .min()
        {
            None => (Certainty::Exact, known),
            Some(lost) if time < lost => (Certainty::Exact, known.start..known.end.min(lost)),
            Some(lost) => (Certainty::Inferred, known.start.max(lost)..known.end),
        },
    }
}
