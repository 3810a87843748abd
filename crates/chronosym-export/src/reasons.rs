//! What evidence and reasons mean, and what helps where a frame has no name or no line.

use chronosym_core::{Evidence, LineReason, NameReason};

/// Returns what it means that a frame has no name, and what helps: now, or in the next recording.
pub(crate) fn name_reason(reason: NameReason) -> (&'static str, &'static str) {
    #[rustfmt::skip]
    let text = match reason {
        NameReason::NoCodeAtAddress => ("no event speaks of code there",
            "next time: record the runtime's loader and JIT events, and let the recording end with its rundown"),
        NameReason::BeforeFirstLoad => ("code came there only later",
            "next time: record from the start of the program"),
        NameReason::AfterUnload => ("the code that was there had gone",
            "nothing is known to: tell us if this is much"),
        NameReason::EventsLost => ("events were lost",
            "next time: record with larger buffers, or fewer events"),
        NameReason::NoRundown => ("code from before the recording; the runtime never listed it",
            "next time: let the recording end while the program still runs, and leave its rundown on"),
        NameReason::NoSymbolFile => ("known image, no symbol file: see --symbols",
            "--symbols DIR, or --symbol-path with a symbol server"),
        NameReason::SymbolFileMismatch => ("the symbol file is of another build",
            "--symbols with the files of the build that ran"),
        NameReason::SymbolFileDamaged => ("the symbol file cannot be read",
            "get it anew"),
        NameReason::PathNotTrusted => ("known image, no symbol file: see --symbols and --trust-trace-paths",
            "--trust-trace-paths on the machine that was recorded, or --symbols DIR"),
        NameReason::Offline => ("the symbol file would have to be fetched",
            "leave out --offline"),
        NameReason::LimitReached => ("it would cost too much to find out",
            "get the symbol file anew: no compiler shares tables so widely"),
        NameReason::NoName => ("known code, but nothing says what it is called",
            "--symbols DIR, or --perf-map FILE"),
        NameReason::Ambiguous => ("several bodies claim the address",
            "ask with a time"),
        NameReason::InvalidAddress => ("no code can be there",
            "nothing: the recorder's stack walk went astray"),
    };
    text
}

/// Returns what it means that a frame with a name has no line, and what helps.
pub(crate) fn line_reason(reason: LineReason) -> (&'static str, &'static str) {
    #[rustfmt::skip]
    let text = match reason {
        LineReason::NoILMap => ("nothing leads from its native code to IL",
            "next time: record IL maps (keyword 20000 of Microsoft-Windows-DotNETRuntime, level 5); of precompiled code --symbols with its image"),
        LineReason::NoSymbolFile => ("its PDB or debug file is not at hand",
            "--symbols DIR, or --symbol-path with a symbol server"),
        LineReason::SymbolFileMismatch => ("the symbol file is of another build",
            "--symbols with the files of the build that ran"),
        LineReason::SymbolFileDamaged => ("the symbol file cannot be read",
            "get it anew"),
        LineReason::PathNotTrusted => ("its symbol file is not at hand, and paths of the trace are not tried",
            "--trust-trace-paths on the machine that was recorded"),
        LineReason::Offline => ("the symbol file would have to be fetched",
            "leave out --offline"),
        LineReason::LimitReached => ("it would cost too much to find out",
            "get it anew"),
        LineReason::NoSequencePoint => ("the compiler gave the code no line",
            "nothing: no source stands behind it"),
        LineReason::NoLineInfo => ("the symbol file has no lines",
            "a symbol file with debug information"),
        LineReason::LinesDisabled => ("--no-lines",
            "leave out --no-lines"),
    };
    text
}

/// Returns what a name's evidence means.
pub(crate) fn evidence_text(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Load => "the runtime said when it compiled or loaded the code",
        Evidence::Unload => "the runtime named the code when it let go of it",
        Evidence::DCStart => "listed by the runtime when the recording began (start rundown)",
        Evidence::DCEnd => "listed by the runtime when the recording ended (end rundown)",
        Evidence::EntryPoint => "the runtime looked up where precompiled code begins",
        Evidence::Image => "a native image was mapped there; its symbols say more",
        Evidence::ImageTable => "the precompiled image's own table of methods",
        Evidence::PerfMap => "a perf map, which knows no times",
        Evidence::JitDump => "a jitdump file",
        Evidence::ProcessSymbol => "symbols that the recorder wrote into the trace, without times",
        Evidence::Stub => "the runtime said what the stub is for",
    }
}
