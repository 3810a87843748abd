//! Why an answer is believed, how far, and why there is none: the closed lists shared by the library, its JSON and its
//! documentation.

use std::fmt;

use chronosym_events::Action;
use chronosym_types::closed_list;

closed_list! {
    /// Which event or file says that code stood at an address.
    Evidence {
        /// A method load event: the body began at its time.
        Load,
        /// A method unload event: the body was alive until its time.
        Unload,
        /// A rundown at the start of the recording listed the body.
        DCStart,
        /// A rundown at the end of the recording listed the body.
        DCEnd,
        /// The runtime looked up the entry point of a precompiled method.
        EntryPoint,
        /// A native image was mapped there.
        Image,
        /// The method table of a ReadyToRun image.
        ImageTable,
        /// A perf map, which carries no time.
        PerfMap,
        /// A jitdump file.
        JitDump,
        /// A Universal `ProcessSymbol` record, which carries no life span.
        ProcessSymbol,
        /// An interop stub event named the body's target.
        Stub,
    }
}

closed_list! {
    /// How well the events bound the life that an answer comes from.
    Certainty {
        /// The time lies within bounds that events state.
        Exact,
        /// A bound is inferred: known from an end rundown only, untimed, or open while events were lost.
        Inferred,
        /// A rule guessed, such as the extent of a body known only by its entry point.
        Approximate,
    }
}

closed_list! {
    /// Why a frame has no name: the first that applies.
    NameReason {
        /// The trace is complete as far as it can tell, and nothing ever stood there.
        NoCodeAtAddress,
        /// Something stood there, but only later.
        BeforeFirstLoad,
        /// Something stood there, but it had gone.
        AfterUnload,
        /// Nothing is known of the address, and the trace lost events.
        EventsLost,
        /// Nothing is known of the address, and the runtime never listed what was alive.
        NoRundown,
        /// The image is known, but no symbol file for it was found.
        NoSymbolFile,
        /// A symbol file was found, but it belongs to another build.
        SymbolFileMismatch,
        /// A symbol file was found, but it cannot be read.
        SymbolFileDamaged,
        /// The trace names a file, but files named by traces are not opened unasked.
        PathNotTrusted,
        /// The symbol file would have to be fetched, and fetching is off.
        Offline,
        /// The symbol file is at hand, but to find the name in it would cost more than is allowed.
        LimitReached,
        /// The code is known, but nothing says what it is called.
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
        /// The trace names a file, but files named by traces are not opened unasked.
        PathNotTrusted,
        /// The symbol file would have to be fetched, and fetching is off.
        Offline,
        /// The symbol file is at hand, but to find the line in it would cost more than is allowed.
        LimitReached,
        /// The symbol file has no sequence point for the offset.
        NoSequencePoint,
        /// The symbol file has no line information for the code.
        NoLineInfo,
        /// Lines were not asked for.
        LinesDisabled,
    }
}

closed_list! {
    /// By what a frame was found where the engine walked the stack itself.
    #[non_exhaustive]
    CallerProof {
        /// The unwind table of the called function's image.
        UnwindTable,
        /// The chain of frame pointers.
        FramePointer,
        /// The unwind table of what returns from a signal's handler: the frame was interrupted at its address, and did not call.
        Signal,
    }
}

impl Evidence {
    /// What an event that says this of code is.
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
    /// As sure, unless a rule guessed.
    pub(crate) fn or_guess(self, is_guess: bool) -> Self {
        if is_guess {
            Certainty::Approximate
        } else {
            self
        }
    }
}

/// A set of [`Evidence`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvidenceSet(u16);

impl EvidenceSet {
    /// The set without members.
    pub const NONE: EvidenceSet = EvidenceSet(0);

    /// The set that holds just `evidence`.
    pub const fn of(evidence: Evidence) -> Self {
        EvidenceSet(1 << evidence as u16)
    }

    /// All that is in either.
    pub(crate) const fn and(self, other: Self) -> Self {
        EvidenceSet(self.0 | other.0)
    }

    /// Adds a member.
    pub fn insert(&mut self, evidence: Evidence) {
        *self = self.and(EvidenceSet::of(evidence));
    }

    /// Whether `evidence` is a member.
    pub const fn contains(self, evidence: Evidence) -> bool {
        self.0 & (1 << evidence as u16) != 0
    }

    /// The members in the order of [`Evidence::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Evidence> {
        Evidence::ALL
            .iter()
            .copied()
            .filter(move |&e| self.contains(e))
    }

    /// The strongest member: the first in the order of [`Evidence::ALL`].
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
