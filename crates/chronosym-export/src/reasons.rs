//! Explanations of evidence and reasons, and what helps if a frame has no name or no line.

use chronosym_core::{Evidence, LineReason, NameReason};

/// Returns why a frame has no name, in words, and what helps: now, or in the next recording.
pub(crate) fn name_reason(reason: NameReason) -> (&'static str, &'static str) {
    #[rustfmt::skip]
    let text = match reason {
        NameReason::NoCodeAtAddress => ("unknown code: no event or module covers this address",
            "next time: record the runtime's loader and JIT events, and end the recording with a rundown"),
        NameReason::BeforeFirstLoad => ("sampled before the first code was loaded at this address",
            "next time: record from the start of the program"),
        NameReason::AfterUnload => ("sampled after the code at this address was unloaded",
            "nothing; please report it if the share is large"),
        NameReason::EventsLost => ("events were lost",
            "next time: record with larger buffers, or fewer events"),
        NameReason::NoRundown => ("code from before the recording, which the runtime never listed",
            "next time: stop the recording while the program still runs, with the rundown enabled"),
        NameReason::NoSymbolFile => ("known image without a symbol file: see --symbols",
            "--symbols DIR, or --symbol-path with a symbol server"),
        NameReason::SymbolFileMismatch => ("the symbol file belongs to another build",
            "--symbols with the files of the build that ran"),
        NameReason::SymbolFileDamaged => ("the symbol file cannot be read",
            "download it again"),
        NameReason::PathNotTrusted => ("known image without a symbol file: see --symbols and --trust-trace-paths",
            "--trust-trace-paths on the machine that was recorded, or --symbols DIR"),
        NameReason::Offline => ("the symbol file would have to be downloaded",
            "leave out --offline"),
        NameReason::LimitReached => ("a limit was reached before the name was found",
            "raise the limit that a note names (--max-memory, --max-line-share), or replace the symbol file"),
        NameReason::NoName => ("known code without a name",
            "--symbols DIR, or --perf-map FILE"),
        NameReason::Ambiguous => ("several code bodies cover the address at different times",
            "state a time"),
        NameReason::InvalidAddress => ("not a code address",
            "nothing: the recorder's stack walk failed here"),
    };
    text
}

/// Returns why a named frame has no line, in words, and what helps.
pub(crate) fn line_reason(reason: LineReason) -> (&'static str, &'static str) {
    #[rustfmt::skip]
    let text = match reason {
        LineReason::NoILMap => ("no IL map for its native code",
            "next time: record IL maps (keyword 20000 of Microsoft-Windows-DotNETRuntime, level 5); for precompiled code --symbols with its image"),
        LineReason::NoSymbolFile => ("its PDB or debug file was not found",
            "--symbols DIR, or --symbol-path with a symbol server"),
        LineReason::SymbolFileMismatch => ("the symbol file belongs to another build",
            "--symbols with the files of the build that ran"),
        LineReason::SymbolFileDamaged => ("the symbol file cannot be read",
            "download it again"),
        LineReason::PathNotTrusted => ("its symbol file was not found, and paths of the trace are not opened",
            "--symbols DIR, or --trust-trace-paths on the machine that was recorded"),
        LineReason::Offline => ("the symbol file would have to be downloaded",
            "leave out --offline"),
        LineReason::LimitReached => ("a limit was reached before the line was found",
            "download it again"),
        LineReason::NoSequencePoint => ("the compiler assigned no line to this code",
            "nothing: it was generated without source code"),
        LineReason::NoLineInfo => ("the symbol file has no line information",
            "a symbol file with debug information"),
        LineReason::LinesDisabled => ("--no-lines",
            "leave out --no-lines"),
    };
    text
}

/// Returns whether a symbol file would give the line.
pub(crate) fn needs_file(reason: LineReason) -> bool {
    matches!(
        reason,
        LineReason::NoSymbolFile
            | LineReason::SymbolFileMismatch
            | LineReason::SymbolFileDamaged
            | LineReason::PathNotTrusted
            | LineReason::Offline
    )
}

/// Returns an explanation of a name's evidence.
pub(crate) fn evidence_text(evidence: Evidence) -> &'static str {
    match evidence {
        Evidence::Load => "load event of the runtime",
        Evidence::Unload => "unload event of the runtime",
        Evidence::DCStart => "rundown at the start of the recording",
        Evidence::DCEnd => "rundown at the end of the recording",
        Evidence::EntryPoint => "entry point of precompiled code that the runtime looked up",
        Evidence::Image => "symbols of the native image mapped at the address",
        Evidence::ImageTable => "method table of the precompiled image",
        Evidence::PerfMap => "perf map, without times",
        Evidence::JitDump => "jitdump file",
        Evidence::ProcessSymbol => "symbols that the recorder wrote into the trace, without times",
        Evidence::Stub => "stub event of the runtime",
        Evidence::Profile => "the profile itself, which another tool named",
    }
}
