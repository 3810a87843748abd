//! Evidence, certainty and reasons: closed lists shared by the library, its JSON and its
//! documentation.

use std::fmt;

use chronosym_events::Action;
use chronosym_types::closed_list;

closed_list! {
    /// The event or file that an answer rests on.
    Evidence {
        /// A method load event: the body starts at its time.
        Load,
        /// A method unload event: the body was alive until its time.
        Unload,
        /// A rundown at the start of the recording listed the body.
        DCStart,
        /// A rundown at the end of the recording listed the body.
        DCEnd,
        /// The runtime looked up the entry point of a precompiled method.
        EntryPoint,
        /// A native image was mapped at the address.
        Image,
        /// The method table of a ReadyToRun image.
        ImageTable,
        /// A perf map, which has no times.
        PerfMap,
        /// A jitdump file.
        JitDump,
        /// A Universal `ProcessSymbol` record, which has no lifetime.
        ProcessSymbol,
        /// An interop stub event named the body's target.
        Stub,
        /// A profile in which another tool had already named the frame.
        Profile,
    }
}

closed_list! {
    /// How exactly events bound the lifetime from which an answer comes.
    Certainty {
        /// The time lies within bounds stated by events, and no lost event could change the answer.
        Exact,
        /// A bound is inferred: from an end rundown only, from code loaded over it, untimed, or
        /// open while events were lost.
        Inferred,
        /// A rule guessed, such as the extent of a body known by its entry point only.
        Approximate,
    }
}

closed_list! {
    /// Why a frame has no name: the first that applies.
    NameReason {
        /// The trace is complete as far as it can tell, and no code was ever loaded at this
        /// address.
        NoCodeAtAddress,
        /// Code was loaded at this address only later.
        BeforeFirstLoad,
        /// Code was loaded at this address earlier, and has been unloaded.
        AfterUnload,
        /// No event or module covers this address, and events were lost.
        EventsLost,
        /// No event or module covers this address, and the runtime wrote no complete rundown.
        NoRundown,
        /// The image is known, but no symbol file for it was found.
        NoSymbolFile,
        /// A symbol file was found, but it belongs to another build.
        SymbolFileMismatch,
        /// A symbol file was found, but it cannot be read.
        SymbolFileDamaged,
        /// The trace names a file, but paths from traces are not trusted.
        PathNotTrusted,
        /// The symbol file would have to be fetched, and fetching is off.
        Offline,
        /// Finding the name in the symbol file would exceed a limit.
        LimitReached,
        /// The code is known, but neither the trace nor a symbol file has a name for it.
        NoName,
        /// Without a time, several bodies claim the address.
        Ambiguous,
        /// The address cannot be code.
        InvalidAddress,
    }
}

closed_list! {
    /// Why a named frame has no source line: the first that applies.
    LineReason {
        /// No IL-to-native map is bound to the body.
        NoILMap,
        /// No symbol file was found.
        NoSymbolFile,
        /// A symbol file was found, but it belongs to another build.
        SymbolFileMismatch,
        /// A symbol file was found, but it cannot be read.
        SymbolFileDamaged,
        /// The trace names a file, but paths from traces are not trusted.
        PathNotTrusted,
        /// The symbol file would have to be fetched, and fetching is off.
        Offline,
        /// Finding the line in the symbol file would exceed a limit.
        LimitReached,
        /// The symbol file has no sequence point for the offset.
        NoSequencePoint,
        /// The symbol file has no line information for the code.
        NoLineInfo,
        /// Lines were not requested.
        LinesDisabled,
    }
}

closed_list! {
    /// How a caller was found if the engine walked the stack.
    #[non_exhaustive]
    CallerProof {
        /// The unwind table of the called function's image.
        UnwindTable,
        /// The chain of frame pointers.
        FramePointer,
        /// The processor's record of calls: the address is that of the call instruction.
        BranchRecord,
        /// The unwind table of a signal trampoline: the frame was interrupted at its address and
        /// did not call.
        Signal,
    }
}

impl NameReason {
    /// Returns the reason for which a frame that has a name has no line, if a symbol file gives
    /// this one.
    pub(crate) fn of_line(self) -> LineReason {
        match self {
            NameReason::NoSymbolFile => LineReason::NoSymbolFile,
            NameReason::SymbolFileMismatch => LineReason::SymbolFileMismatch,
            NameReason::SymbolFileDamaged => LineReason::SymbolFileDamaged,
            NameReason::PathNotTrusted => LineReason::PathNotTrusted,
            NameReason::Offline => LineReason::Offline,
            NameReason::LimitReached => LineReason::LimitReached,
            _ => LineReason::NoLineInfo,
        }
    }
}

impl Evidence {
    /// Returns the evidence that a method event with this action provides.
    pub(crate) fn of(action: Action) -> Self {
        match action {
            Action::Load => Evidence::Load,
            Action::Unload => Evidence::Unload,
            Action::DCStart => Evidence::DCStart,
            Action::DCEnd => Evidence::DCEnd,
        }
    }
}

impl Certainty {
    /// Returns the same certainty, or `Approximate` for a guess.
    pub(crate) fn or_guess(self, is_guess: bool) -> Self {
        if is_guess {
            Certainty::Approximate
        } else {
            self
        }
    }
}

/// A set of [`Evidence`].
///
/// # Examples
///
/// ```
/// use chronosym_core::{Evidence, EvidenceSet};
///
/// let mut set = EvidenceSet::of(Evidence::DCEnd);
/// set.insert(Evidence::Load);
/// assert!(set.contains(Evidence::DCEnd));
/// assert_eq!(set.strongest(), Some(Evidence::Load));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvidenceSet(u16);

impl EvidenceSet {
    /// The empty set.
    pub const NONE: EvidenceSet = EvidenceSet(0);

    /// Returns the set that contains only `evidence`.
    pub const fn of(evidence: Evidence) -> Self {
        EvidenceSet(1 << evidence as u16)
    }

    /// Returns the set as bits, by the position in [`Evidence::ALL`].
    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the set of bits, if all of them are members.
    pub(crate) fn from_bits(bits: u16) -> Option<Self> {
        (bits >> Evidence::ALL.len() == 0).then_some(EvidenceSet(bits))
    }

    /// Returns the union of two sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        EvidenceSet(self.0 | other.0)
    }

    /// Adds a member.
    pub fn insert(&mut self, evidence: Evidence) {
        *self = self.and(EvidenceSet::of(evidence));
    }

    /// Returns whether `evidence` is a member.
    pub const fn contains(self, evidence: Evidence) -> bool {
        self.0 & (1 << evidence as u16) != 0
    }

    /// Returns the members in the order of [`Evidence::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Evidence> {
        Evidence::ALL
            .iter()
            .copied()
            .filter(move |&e| self.contains(e))
    }

    /// Returns the strongest member: the first in the order of [`Evidence::ALL`].
    pub fn strongest(self) -> Option<Evidence> {
        self.iter().next()
    }
}

impl fmt::Display for EvidenceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, evidence) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("+")?;
            }
            f.write_str(evidence.as_str())?;
        }
        Ok(())
    }
}
