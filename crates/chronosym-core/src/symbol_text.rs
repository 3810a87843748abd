//! Parses the text that identifies a method in perf maps and jitdumps.

use chronosym_events::OptimizationTier;

/// The parts of a runtime's symbol text for a method: `void [Module] Ns.Type::Method(args)[Tier]`.
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
    /// Returns text that is a name as it is.
    pub fn plain(name: &'a str) -> Self {
        SymbolText {
            name,
            ..SymbolText::default()
        }
    }

    /// Parses symbol text. Text of any other form is a plain name.
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

    /// Return type and arguments.
    pub fn signature(&self) -> String {
        match (self.returns, self.arguments) {
            ("", arguments) => arguments.to_owned(),
            (returns, arguments) => format!("{returns} {arguments}"),
        }
    }
}

/// Splits `returns [Module] rest`: the module is delimited by spaces, unlike assembly references in
/// types. A name with spaces of its own (`Anonymously Hosted DynamicMethods Assembly`) is
/// recognised by the method after it.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
