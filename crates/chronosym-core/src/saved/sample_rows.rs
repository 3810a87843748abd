//! Rows of stacks, samples and markers.

use super::coder::Coder;
use crate::evidence::CallerProof;
use crate::ids::{EventTypeId, StackId, ThreadIndex};
use crate::marker_kind::{Mark, MarkerKind, Phase};
use crate::markers::Seen;
use crate::samples::SampleClass;
use crate::stacks::Walked;
use crate::strings::StringId;
use crate::terms::{SampleKind, Weight};

/// A node of the prefix tree: a frame, and the distance to its caller's row; 0 for an outermost
/// frame.
pub(super) struct StackRow {
    pub frame: Walked,
    pub caller: u32,
}

impl Default for StackRow {
    fn default() -> Self {
        StackRow {
            frame: Walked::from(0),
            caller: 0,
        }
    }
}

pub(super) fn stack(coder: &mut Coder<'_>, row: &mut StackRow) {
    coder.delta(&mut row.frame.address);
    coder.number(&mut row.caller);
    let mut proof = row.frame.proof.map_or(0, |proof| proof as usize + 1);
    coder.number(&mut proof);
    let member = |at: usize| CallerProof::ALL.get(at).copied();
    row.frame.proof = proof.checked_sub(1).and_then(member);
    coder.check(proof == 0 || row.frame.proof.is_some());
}

pub(super) struct ClassRow(pub SampleClass);

impl Default for ClassRow {
    fn default() -> Self {
        ClassRow(SampleClass {
            thread: ThreadIndex(0),
            stack: StackId(0),
            event: EventTypeId(0),
            kind: SampleKind::Cpu,
            idle: false,
            on_cpu: false,
        })
    }
}

pub(super) fn class(coder: &mut Coder<'_>, ClassRow(class): &mut ClassRow) {
    coder.delta(&mut class.thread.0);
    coder.delta(&mut class.stack.0);
    coder.number(&mut class.event.0);
    coder.member(&SampleKind::ALL, &mut class.kind);
    let mut flags = u8::from(class.idle) | u8::from(class.on_cpu) << 1;
    coder.number(&mut flags);
    coder.check(flags <= 3);
    (class.idle, class.on_cpu) = (flags & 1 != 0, flags & 2 != 0);
}

/// A sample: class, time in ns, weight.
#[derive(Default)]
pub(super) struct SampleRow {
    pub class: u32,
    pub time_ns: u64,
    pub weight: Weight,
}

pub(super) fn sample(coder: &mut Coder<'_>, row: &mut SampleRow) {
    coder.number(&mut row.class);
    coder.delta(&mut row.time_ns);
    let (mut kind, mut weight) = match row.weight {
        Weight::One => (0u8, 0),
        Weight::Unknown => (1, 0),
        Weight::Ns(ns) => (2, ns),
        Weight::Count(count) => (3, count),
        Weight::Bytes(bytes) => (4, bytes),
    };
    coder.number(&mut kind);
    match kind {
        0 | 1 => coder.skip(1),
        _ => coder.number(&mut weight),
    }
    coder.check(kind <= 4);
    row.weight = match kind {
        0 => Weight::One,
        1 => Weight::Unknown,
        2 => Weight::Ns(weight),
        3 => Weight::Count(weight),
        _ => Weight::Bytes(weight),
    };
}

pub(super) struct MarkerRow(pub Seen);

impl Default for MarkerRow {
    fn default() -> Self {
        MarkerRow(Seen {
            time_ns: 0,
            thread: ThreadIndex(0),
            mark: Mark {
                kind: MarkerKind::Collection,
                phase: Phase::Instant,
            },
            key: 0,
            text: StringId::EMPTY,
        })
    }
}

pub(super) fn marker(coder: &mut Coder<'_>, MarkerRow(seen): &mut MarkerRow) {
    coder.delta(&mut seen.time_ns);
    coder.delta(&mut seen.thread.0);
    coder.member(&MarkerKind::ALL, &mut seen.mark.kind);
    let phases = [Phase::Instant, Phase::Start, Phase::End];
    coder.member(&phases, &mut seen.mark.phase);
    coder.delta(&mut seen.key);
    coder.string(&mut seen.text);
}
