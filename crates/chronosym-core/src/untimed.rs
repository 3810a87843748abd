//! Sources without times: perf maps and Universal `ProcessSymbol` records (rule 18).

use chronosym_events::OptimizationTier;

use crate::evidence::Evidence;
use crate::facts::Symbol;
use crate::ids::NameId;
use crate::names::NameTable;
use crate::strings::StringId;
use crate::symbol_text::SymbolText;
use chronosym_types::Chunked;

/// A named range without a lifetime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntimedSymbol {
    pub start: u64,
    pub last: u64,
    pub name: NameId,
    /// Simple name; empty if the text has none.
    pub module: StringId,
    pub tier: Option<OptimizationTier>,
    pub evidence: Evidence,
    /// Source file and line, and whether the function is inlined: stated by profiles only.
    pub line: (StringId, u32),
    pub is_inlined: bool,
}

/// The untimed symbols of one process; where they overlap, the latest wins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Untimed {
    pub symbols: Chunked<UntimedSymbol>,
}

impl Untimed {
    pub fn add(&mut self, symbol: &Symbol<'_>, names: &mut NameTable) {
        let text = symbol.name.to_text();
        let text = match symbol.evidence {
            // Its maker has taken the runtime's text apart.
            Evidence::Profile => SymbolText::plain(&text),
            _ => SymbolText::parse(&text),
        };
        let module = match text.module {
            "" => names.text(symbol.module),
            named => names.short(named),
        };
        let line = symbol
            .profiled
            .map_or((StringId::EMPTY, 0), |it| (names.text(it.file), it.line));
        self.symbols.push(UntimedSymbol {
            start: symbol.start,
            last: symbol.last.max(symbol.start),
            name: names.intern(text.namespace, text.name, &text.signature()),
            module,
            tier: text.tier,
            evidence: symbol.evidence,
            line,
            is_inlined: symbol.profiled.is_some_and(|it| it.is_inlined),
        });
    }
}

/// Splits a perf map into pieces of whole lines, about 256 KiB each.
pub(crate) fn pieces(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    const PIECE: usize = 256 << 10;
    std::iter::from_fn(move || {
        let least = PIECE.min(text.len());
        let end = text[least..].iter().position(|&byte| byte == b'\n');
        let (piece, rest) = text.split_at(end.map_or(text.len(), |end| least + end + 1));
        text = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Parses a perf map (`START SIZE name`, hexadecimal, relative to `base`). Returns the number of
/// malformed lines.
pub(crate) fn read_perf_map(
    text: &[u8],
    base: u64,
    names: &mut NameTable,
    into: &mut Untimed,
) -> u64 {
    let mut bad = 0;
    for line in text.split(|&b| b == b'\n') {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches('\r');
        if line.is_empty() {
            continue;
        }
        match perf_map_line(line, base) {
            Some((start, last, name)) => into.add(&Symbol::new(start, last, name), names),
            None => bad += 1,
        }
    }
    bad
}

fn perf_map_line(line: &str, base: u64) -> Option<(u64, u64, &str)> {
    let (start, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let hex = |text: &str| {
        u64::from_str_radix(text.trim_start_matches("0x").trim_start_matches("0X"), 16).ok()
    };
    let (start, size) = (base.checked_add(hex(start)?)?, hex(size)?);
    Some((start, start.checked_add(size.checked_sub(1)?)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untimed_index::UntimedIndex;

    #[test]
    fn pieces_of_a_perf_map_end_with_a_line() {
        let text = "1000 10 name\n".repeat(50_000);
        for text in [&*text, &text[..text.len() - 1], "1 1 a", ""] {
            let pieces: Vec<_> = pieces(text.as_bytes()).collect();
            assert_eq!(pieces.concat(), text.as_bytes());
            assert_eq!(
                pieces.len(),
                (text.len() >> 18) + usize::from(!text.is_empty())
            );
            let (_, before) = pieces.split_last().unwrap_or((&&[][..], &[]));
            assert!(before.iter().all(|piece| piece.ends_with(b"\n")));
        }
    }

    #[test]
    fn the_latest_row_of_a_perf_map_wins() {
        let (mut names, mut untimed) = (NameTable::default(), Untimed::default());
        let bad = read_perf_map(
            b"8 10 old\n0x10 4 new\nnonsense\n18 0 empty\r\n28 1 \xff\n",
            8,
            &mut names,
            &mut untimed,
        );
        assert_eq!(bad, 2);
        let index = UntimedIndex::of(&untimed.symbols);
        let at = |address| index.at(address, &untimed.symbols);
        assert_eq!(
            (at(0x18), at(0x10), at(0x30), at(0x20)),
            (Some((1, true)), Some((0, false)), Some((2, false)), None)
        );
    }
}
