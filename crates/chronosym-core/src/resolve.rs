//! The first step of resolution: (process, address, time) → code (rules 8 to 11 and 18 to 19).

use std::ops::Range;

use chronosym_timeline::{End, Neighbours, Start};

use crate::body::CodeBody;
use crate::evidence::{Certainty, Evidence, NameReason};
use crate::ids::{BodyIndex, ImageIndex, ProcessIndex};
use crate::recording::{Loss, LossScope};
use crate::space::AddressSpace;
use crate::terms::{Addressing, Position};
use crate::timeline::Timeline;

/// The code at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeAt {
    Body(BodyIndex),
    /// Index of one of the process's untimed symbols.
    Untimed {
        index: usize,
        /// Whether a symbol with another name covers the address, too.
        contested: bool,
    },
    /// An image and its process: the system's for kernel addresses.
    Image(ProcessIndex, ImageIndex),
    Nothing(NameReason),
}

/// An address of a process at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressAt {
    pub(crate) process: ProcessIndex,
    pub(crate) address: u64,
    /// Less than `u64::MAX`.
    pub(crate) time: u64,
    pub(crate) position: Position,
}

impl AddressAt {
    /// Creates an address as in a stack; the time is in ns since the trace began.
    pub fn new(process: ProcessIndex, address: u64, time: u64, position: Position) -> Self {
        AddressAt {
            process,
            address,
            // Code that never ended has a lifetime up to `u64::MAX`, which is half-open.
            time: time.min(u64::MAX - 1),
            position,
        }
    }
}

/// The code at an address, and the times for which the answer is the same.
#[derive(Clone, Debug)]
pub(crate) struct Location {
    pub code: CodeAt,
    pub certainty: Certainty,
    /// Whether a lost event could refute it.
    pub after_loss: bool,
    /// The address that was looked up: one less than a return address.
    pub looked_up: u64,
    pub valid: Range<u64>,
}

impl Location {
    /// Rule 23: events within the clock error may have happened on either side of `time`.
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

/// All times. Lifetimes without an end end here.
pub(crate) const ALWAYS: Range<u64> = 0..u64::MAX;

pub(crate) fn meet(a: &Range<u64>, b: &Range<u64>) -> Range<u64> {
    a.start.max(b.start)..a.end.min(b.end)
}

impl Timeline {
    /// Looks up the code at an address of a process at a time.
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
                code: CodeAt::Nothing(NameReason::NoCodeAtAddress),
                certainty: Certainty::Inferred,
                after_loss: false,
                looked_up: address,
                valid: ALWAYS,
            };
        };
        let exact = |address| self.locate_exact(process, space, address, time);
        let is_code = |l: &Location| !matches!(l.code, CodeAt::Nothing(_));
        match position {
            Position::Exact => exact(address),
            Position::Return => {
                let call = exact(position.looked_up(address));
                if is_code(&call) {
                    return call;
                }
                // Without code before it, the address is the first byte of a function that did not
                // call.
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

    /// Returns whether an address may be the kernel's: user mode has 2 GB or more of a 32-bit
    /// address space, and the lower half of others.
    fn is_kernel(&self, address: u64) -> bool {
        match self.facts.pointer_size {
            Some(4) => address >= 1 << 31,
            Some(_) => address >> 63 == 1,
            None => true,
        }
    }

    /// Returns the position of a frame that is not a leaf: the first user frame below kernel frames
    /// was interrupted or entered the kernel at its address, and any other frame called (rule 9).
    pub(crate) fn caller_position(&self, callee: u64, caller: u64) -> Position {
        match self.is_surely_kernel(callee) && !self.is_surely_kernel(caller) {
            true => Position::Exact,
            false => Position::Return,
        }
    }

    /// Returns whether an address is the kernel's in every process. Not known of 32-bit systems,
    /// whose user code may be in the upper half.
    fn is_surely_kernel(&self, address: u64) -> bool {
        self.facts.pointer_size != Some(4) && self.normalise(address) >> 63 == 1
    }

    /// Returns the processes whose images may be at an address: its own, and the system's, whose
    /// user mode (its ntdll) belongs to itself only.
    pub(crate) fn image_owners(
        &self,
        process: ProcessIndex,
        address: u64,
    ) -> impl Iterator<Item = ProcessIndex> + '_ {
        let shared = self.is_kernel(address) || self.system.contains(&process);
        let system = self.system.iter().copied();
        std::iter::once(process).chain(system.filter(move |&s| shared && s != process))
    }

    /// Clears the Thumb bit and pointer authentication.
    pub(crate) fn normalise(&self, address: u64) -> u64 {
        self.address_mask.apply(address)
    }

    pub(crate) fn locate_exact(
        &self,
        process: ProcessIndex,
        space: &AddressSpace,
        address: u64,
        time: u64,
    ) -> Location {
        let (body, gap) = space.body_at(address, time, self.losses_of(process));
        if let Some(location) = body {
            return location.within(self.facts.clock_error_ns, time);
        }
        if let Some((index, contested)) = space.untimed.at(address, &space.state.untimed.symbols) {
            let code = CodeAt::Untimed { index, contested };
            return Location {
                code,
                certainty: Certainty::Inferred,
                after_loss: false,
                looked_up: address,
                valid: gap,
            };
        }
        match self.image_location(process, address, time, gap) {
            Ok(location) => location,
            Err(valid) => {
                let (reason, times) = self.why_nothing(process, space, address, time);
                Location {
                    code: CodeAt::Nothing(reason),
                    certainty: Certainty::Inferred,
                    after_loss: false,
                    looked_up: address,
                    valid: meet(&valid, &times),
                }
            }
        }
    }

    /// Returns the image at an address within `valid`, or else the times at which there is none.
    fn image_location(
        &self,
        process: ProcessIndex,
        address: u64,
        time: u64,
        mut valid: Range<u64>,
    ) -> Result<Location, Range<u64>> {
        for owner in self.image_owners(process, address) {
            let AddressSpace { images, state, .. } = &*self.spaces[owner.index()];
            if let Some((id, lifetime)) = images.find(address, time) {
                let image = &state.images[id.index()];
                let lifetime = lifetime.from..lifetime.to;
                let bounds = Bounds {
                    start: image.loaded,
                    end: image.end,
                    confirmed: image.confirmed,
                };
                // A runtime describes no images.
                let losses = self.losses_of(owner);
                let losses = losses.filter(|loss| loss.scope != LossScope::Runtime);
                let (certainty, doubtful, sure) = bounds.certainty(lifetime, time, losses);
                return Ok(Location {
                    code: CodeAt::Image(owner, ImageIndex(id.index() as u32)),
                    certainty,
                    // A kernel stays until the next boot.
                    after_loss: doubtful && image.addressing != Addressing::Rva,
                    looked_up: address,
                    valid: meet(&valid, &sure),
                });
            }
            valid = meet(&valid, &between(&images.neighbours(address, time)));
        }
        Err(valid)
    }

    /// Returns the native image that has the code of an untimed symbol without a line: its symbol
    /// file has what the recorder left out.
    pub(crate) fn image_of_symbol(&self, at: AddressAt, location: &Location) -> Option<Location> {
        let CodeAt::Untimed { index, .. } = location.code else {
            return None;
        };
        let symbol = &self.spaces[at.process.index()].state.untimed.symbols[index];
        // Perf maps name compiled code; in a recorder's symbols it has a tier, or no module.
        let is_native = symbol.evidence == Evidence::ProcessSymbol
            && symbol.tier.is_none()
            && symbol.line.1 == 0
            && !self.names.strings.get(symbol.module).is_empty();
        if !is_native {
            return None;
        }
        let valid = location.valid.clone();
        let found = self.image_location(at.process, location.looked_up, at.time, valid);
        let found = found.ok()?;
        let CodeAt::Image(owner, image) = found.code else {
            return None;
        };
        let image = &self.spaces[owner.index()].state.images[image.index()];
        let path = self.names.strings.get(image.path);
        let ending = path.get(path.len().saturating_sub(4)..).unwrap_or_default();
        let is_pe = [".dll", ".exe"]
            .iter()
            .any(|pe| ending.eq_ignore_ascii_case(pe));
        (!is_pe && image.part.is_none() && image.pdb.is_none()).then_some(found)
    }

    /// Returns the first reason that applies to an address without code, and the times for which it
    /// does as long as no code is there.
    fn why_nothing(
        &self,
        process: ProcessIndex,
        space: &AddressSpace,
        address: u64,
        time: u64,
    ) -> (NameReason, Range<u64>) {
        const LOWEST: u64 = 0x1000;
        if address < LOWEST {
            return (NameReason::InvalidAddress, ALWAYS);
        }
        let near = [&space.bodies, &space.images].map(|map| map.neighbours(address, time));
        // Code that was dropped precedes everything still stored.
        if space.forgotten.contains(address) || near.iter().any(|near| near.before.is_some()) {
            return (NameReason::AfterUnload, ALWAYS);
        }
        if near.iter().any(|near| near.after.is_some()) {
            return (NameReason::BeforeFirstLoad, ALWAYS);
        }
        // A runtime lists the code of its process only.
        let is_user = !self.is_surely_kernel(address);
        let is_unlisted = is_user && self.is_managed(process) && !self.has_rundown(process);
        // Events before `time` describe the code, and lists and unloads after it do. Without any
        // list, a loss up to the end may have contained it.
        let end_ns = self.facts.duration_ns;
        let since = self.losses_of(process).filter_map(|loss| match loss.scope {
            LossScope::System if is_unlisted => None,
            LossScope::System => Some(loss.from_ns.saturating_add(1)),
            _ if is_unlisted && loss.to_ns < end_ns => Some(loss.from_ns.saturating_add(1)),
            _ => Some(0),
        });
        let otherwise = match is_unlisted {
            true => NameReason::NoRundown,
            false => NameReason::NoCodeAtAddress,
        };
        match since.min() {
            Some(since) if time >= since => (NameReason::EventsLost, since..u64::MAX),
            Some(since) => (otherwise, 0..since),
            None => (otherwise, ALWAYS),
        }
    }

    /// Returns the losses that may have been events of a process.
    fn losses_of(&self, process: ProcessIndex) -> impl Iterator<Item = &Loss> {
        let first = self.losses.first();
        let pid = first.and_then(|_| self.process(process).pid);
        self.losses.iter().filter(move |loss| loss.concerns(pid))
    }
}

/// Returns the time between two lifetimes.
fn between(near: &Neighbours) -> Range<u64> {
    let from = near.before.map_or(0, |(_, lifetime)| lifetime.to);
    from..near.after.map_or(u64::MAX, |(_, lifetime)| lifetime.from)
}

impl Timeline {
    /// Returns whether events of a process's runtime may have been lost after one time and before
    /// another.
    pub(crate) fn lost_between(&self, process: ProcessIndex, after: u64, before: u64) -> bool {
        let mut losses = self.losses_of(process);
        losses.any(|loss| {
            let is_between = loss.to_ns > after && loss.from_ns < before;
            is_between && loss.scope != LossScope::System
        })
    }
}

impl AddressSpace {
    pub(crate) fn body(&self, index: BodyIndex) -> &CodeBody {
        &self.state.code.bodies[index.index()]
    }

    /// Returns the body at an address and time, or else the time during which there is none.
    fn body_at<'l>(
        &self,
        address: u64,
        time: u64,
        losses: impl Iterator<Item = &'l Loss>,
    ) -> (Option<Location>, Range<u64>) {
        if let Some((id, lifetime)) = self.bodies.find(address, time) {
            let index = BodyIndex(id.index() as u32);
            let (body, lifetime) = (self.body(index), lifetime.from..lifetime.to);
            let (certainty, after_loss, valid) = if body.approximate {
                (Certainty::Approximate, false, lifetime)
            } else {
                let bounds = Bounds {
                    start: body.loaded,
                    end: body.end,
                    confirmed: body.confirmed,
                };
                bounds.certainty(lifetime, time, losses)
            };
            let code = CodeAt::Body(index);
            return (
                Some(Location {
                    code,
                    certainty,
                    after_loss,
                    looked_up: address,
                    valid: valid.clone(),
                }),
                valid,
            );
        }
        let near = self.bodies.neighbours(address, time);
        let mut gap = between(&near);
        // Rule 8: the load event may be logged late, if there was no code before.
        if near.before.is_none()
            && !self.forgotten.contains(address)
            && let Some((id, lifetime)) = near.after
        {
            let index = BodyIndex(id.index() as u32);
            let body = self.body(index);
            let loaded = body.flags.is_jitted()
                && matches!(body.loaded, Start::At(at) if at == lifetime.from);
            if loaded && body.earliest <= time {
                let valid = body.earliest..lifetime.from;
                let code = CodeAt::Body(index);
                let location = Location {
                    code,
                    certainty: Certainty::Approximate,
                    after_loss: false,
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

/// The bounds of an occupant, as events state them.
struct Bounds {
    start: Start,
    end: End,
    /// Time of the occupant's own latest event.
    confirmed: u64,
}

impl Bounds {
    /// Returns the certainty that the occupant was there at `time`, whether a lost event could
    /// refute it, and the part of its lifetime for which both are the same.
    fn certainty<'l>(
        &self,
        lifetime: Range<u64>,
        time: u64,
        losses: impl Iterator<Item = &'l Loss>,
    ) -> (Certainty, bool, Range<u64>) {
        let first_seen = match self.start {
            Start::At(at) | Start::Before(at) => at,
            Start::Unbounded => u64::MAX,
        };
        if time < first_seen {
            let before = lifetime.start..lifetime.end.min(first_seen);
            return (Certainty::Inferred, false, before);
        }
        let seen = first_seen.max(lifetime.start)..lifetime.end;
        match self.end {
            End::After(at) if time <= at => {
                let until = seen.end.min(at.saturating_add(1));
                return (Certainty::Exact, false, seen.start..until);
            }
            End::After(at) => {
                let from = seen.start.max(at.saturating_add(1));
                return (Certainty::Inferred, false, from..seen.end);
            }
            // Ended by code loaded over it; the time of its own end is unknown.
            End::Open if lifetime.end != u64::MAX => return (Certainty::Inferred, false, seen),
            End::At(_) | End::Open => {}
        }
        // From its last own event on, the occupant may have been replaced by lost events.
        let doubts = losses.filter(|loss| loss.to_ns > self.confirmed);
        match doubts.map(|loss| loss.from_ns.max(self.confirmed)).min() {
            Some(lost) if time >= lost && time > self.confirmed => {
                let from = seen.start.max(lost).max(self.confirmed.saturating_add(1));
                (Certainty::Inferred, true, from..seen.end)
            }
            Some(lost) => {
                let until = lost.max(self.confirmed.saturating_add(1));
                (Certainty::Exact, false, seen.start..seen.end.min(until))
            }
            None => (Certainty::Exact, false, seen),
        }
    }
}
