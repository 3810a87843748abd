//! Frames as rows of the tables.

use crate::answer::{Source, StoredFrame};

const HAS_FUNCTION: u32 = 1;
const INLINED: u32 = 2;
const PLAIN_NAMES: u32 = 4;
const SOURCE: u32 = 8;

/// The sources of names; the number of one in the file is its index.
const SOURCES: [Source; 6] = [
    Source::DebugInfo,
    Source::SymbolTable,
    Source::DynamicSymbols,
    Source::Export,
    Source::PublicSymbols,
    Source::Plt,
];

/// Returns the flags of a function; `None` for a frame that is not converted.
pub(super) fn flags(frame: &StoredFrame) -> Option<u32> {
    if frame.line_limited || frame.line_uncertain {
        return None;
    }
    let source = SOURCES.iter().position(|&source| source == frame.source)?;
    let source = u32::try_from(source).ok()?;
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    Some(
        flag(frame.has_function, HAS_FUNCTION)
            | flag(frame.inlined, INLINED)
            | flag(frame.plain_names, PLAIN_NAMES)
            | source.saturating_mul(SOURCE),
    )
}

/// Returns a frame with these flags, without names and location; `None` if they are invalid.
pub(super) fn frame(flags: u32, function: u64) -> Option<StoredFrame> {
    Some(StoredFrame {
        name: None,
        symbol: None,
        file: None,
        line: 0,
        column: 0,
        discriminator: 0,
        function,
        has_function: flags & HAS_FUNCTION != 0,
        inlined: flags & INLINED != 0,
        plain_names: flags & PLAIN_NAMES != 0,
        line_limited: false,
        line_uncertain: false,
        source: *SOURCES.get(usize::try_from(flags / SOURCE).ok()?)?,
    })
}
