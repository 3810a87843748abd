//! Sources without time: perf maps and Universal `ProcessSymbol` records (rule 18).

use chronosym_events::OptimizationTier;

use crate::chunked::Chunked;
use crate::evidence::Evidence;
use crate::facts::Symbol;
use crate::names::{NameId, Names};
use crate::strings::StringId;

/// A named range without a life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UntimedSymbol {
    pub start: u64,
    pub last: u64,
    pub name: NameId,
    /// Simple name; empty where the text has none.
    pub module: StringId,
    pub tier: Option<OptimizationTier>,
    pub evidence: Evidence,
}

/// The untimed symbols of one process; where rows overlap the latest wins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Untimed {
    pub rows: Chunked<UntimedSymbol>,
}

impl Untimed {
    pub fn add(&mut self, symbol: &Symbol<'_>, names: &mut Names) {
        let text = symbol.name.to_text();
        let text = SymbolText::parse(&text);
        let module = match text.module {
            "" => names.text(symbol.module),
            named => names.strings.intern(named),
        };
        self.rows.push(UntimedSymbol {
            start: symbol.start,
            last: symbol.last.max(symbol.start),
            name: text.intern(names),
            module,
            tier: text.tier,
            evidence: symbol.evidence,
        });
    }
}

/// A runtime's own text for a method, taken apart: `void [Module] Ns.Type::Method(args)[Tier]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SymbolText<'a> {
    pub module: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// Return type with modifiers, and arguments in parentheses.
    pub returns: &'a str,
    pub arguments: &'a str,
    pub tier: Option<OptimizationTier>,
}

impl<'a> SymbolText<'a> {
    /// Text of any other form is a name as it stands.
    pub fn parse(text: &'a str) -> Self {
        let (text, tier) = split_tier(text.trim());
        let Some((returns, module, rest)) = split_module(text) else {
            return SymbolText {
                name: text,
                tier,
                ..SymbolText::default()
            };
        };
        let (path, arguments) = rest.split_at(rest.find('(').unwrap_or(rest.len()));
        let parts = path.split_once("::");
        let (namespace, name) = parts.filter(|it| !it.0.is_empty()).unwrap_or(("", path));
        SymbolText {
            module,
            namespace,
            name,
            returns,
            arguments,
            tier,
        }
    }

    pub fn intern(&self, names: &mut Names) -> NameId {
        let signature = match (self.returns, self.arguments) {
            ("", arguments) => arguments.to_owned(),
            (returns, arguments) => format!("{returns} {arguments}"),
        };
        names.intern(self.namespace, self.name, &signature)
    }
}

/// `returns [Module] rest`: the module stands between blanks, unlike the assembly references inside types. A name with
/// blanks of its own (`Anonymously Hosted DynamicMethods Assembly`) is known from other text by the method after it.
fn split_module(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('[').map(|at| at + from) {
        let close = open + text[open..].find(']')?;
        let blank_before = open == 0 || text[..open].ends_with(' ');
        let inside = &text[open + 1..close];
        if blank_before
            && !inside.is_empty()
            && let Some(rest) = text[close + 1..].strip_prefix(' ')
            && (!inside.contains(' ') || rest.contains("::"))
        {
            return Some((text[..open].trim_end(), inside, rest));
        }
        from = open + 1;
    }
    None
}

fn split_tier(text: &str) -> (&str, Option<OptimizationTier>) {
    use OptimizationTier::*;
    let tail = text.strip_suffix(']').and_then(|head| {
        head.rfind('[')
            .map(|open| (&text[..open], &head[open + 1..]))
    });
    let Some((head, tier)) = tail else {
        return (text, None);
    };
    let tier = match tier {
        "MinOptJitted" => MinOptJitted,
        "Optimized" => Optimized,
        "QuickJitted" => QuickJitted,
        "OptimizedTier1" => OptimizedTier1,
        "OptimizedTier1OSR" => OptimizedTier1OSR,
        "InstrumentedTier" | "QuickJittedInstrumented" => QuickJittedInstrumented,
        "InstrumentedTierOptimized" | "OptimizedTier1Instrumented" => OptimizedTier1Instrumented,
        "ReadyToRun" => ReadyToRun,
        "PreJIT" | "PreStub" => PreJIT,
        "Unknown" => return (head, None),
        _ => return (text, None),
    };
    (head, Some(tier))
}

/// Parses a perf map (`START SIZE name`, hexadecimal, from a base on). Returns the number of lines that are not of this form.
pub(crate) fn read_perf_map(text: &[u8], base: u64, names: &mut Names, into: &mut Untimed) -> u64 {
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
    fn the_runtimes_own_text_is_taken_apart() {
        use OptimizationTier::{Optimized, OptimizedTier1, QuickJittedInstrumented};
        for (text, module, namespace, name, tier) in [
            (
                "instance !!0 [Workload] Ns.Box`1[System.Int32]::Map(class [Lib]System.Func`2<!0,!!0>)[OptimizedTier1]",
                "Workload",
                "Ns.Box`1[System.Int32]",
                "Map",
                OptimizedTier1,
            ),
            (
                "class [System.Linq]A.B [Lib] N.Int32::N.IAdd<N.Int32>.op(int32[])[InstrumentedTier]",
                "Lib",
                "N.Int32",
                "N.IAdd<N.Int32>.op",
                QuickJittedInstrumented,
            ),
            (
                "int32 [Anonymously Hosted DynamicMethods Assembly] dynamicClass::lambda(int32)[Optimized]",
                "Anonymously Hosted DynamicMethods Assembly",
                "dynamicClass",
                "lambda",
                Optimized,
            ),
        ] {
            let parsed = SymbolText::parse(text);
            let parts = (parsed.module, parsed.namespace, parsed.name);
            assert_eq!(parts, (module, namespace, name));
            assert_eq!(parsed.tier, Some(tier));
            let whole = format!(
                "{} [{module}] {namespace}::{name}{}",
                parsed.returns, parsed.arguments
            );
            assert!(text.starts_with(&whole), "{whole}");
        }
        for plain in [
            "void f(T) [with T = int] const",
            "stub CreateHelper<DynamicHelper>",
            "__memset_avx512_unaligned_erms",
            "int main(int[])",
            "a[b] c",
        ] {
            assert_eq!(SymbolText::parse(plain).name, plain);
        }
    }

    #[test]
    fn the_latest_row_of_a_perf_map_wins() {
        let (mut names, mut untimed) = (Names::default(), Untimed::default());
        let bad = read_perf_map(
            b"8 10 old\n0x10 4 new\nnonsense\n18 0 empty\r\n28 1 \xff\n",
            8,
            &mut names,
            &mut untimed,
        );
        assert_eq!(bad, 2);
        let index = UntimedIndex::of(&untimed.rows);
        let at = |address| index.at(address, &untimed.rows);
        assert_eq!(
            (at(0x18), at(0x10), at(0x30), at(0x20)),
            (Some((1, true)), Some((0, false)), Some((2, false)), None)
        );
    }
}
