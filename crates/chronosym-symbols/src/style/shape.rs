//! The parts of an answer that the options of llvm-symbolizer and addr2line select.

use std::borrow::Cow;

/// Which parts of an answer the styles of llvm-symbolizer and addr2line print. The default is what
/// llvm-symbolizer prints without options, and `addr2line -f -i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Names of functions.
    pub functions: Functions,
    /// Whether the address precedes its answer.
    pub has_addresses: bool,
    /// Whether each frame is one line: `f at file:line`, ` (inlined by) g at file:line`.
    pub is_pretty: bool,
    /// Whether paths are printed without their folders.
    pub has_base_names: bool,
    /// Whether only the innermost frame is printed.
    pub is_innermost: bool,
    /// How many lines of source text follow each frame: they are read from the path that the symbol
    /// file states. Only in the style of llvm-symbolizer.
    pub context_lines: u32,
    /// Whether the start of each function is printed, which needs
    /// [`Query::declarations`](crate::Query::declarations). Only in the style of llvm-symbolizer.
    pub has_starts: bool,
}

/// Which names of functions are printed.
///
/// Closed: the choices of the tools that it imitates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Functions {
    /// None.
    None,
    /// Without scope and parameters.
    Short,
    /// As linkers have them, demangled if requested.
    #[default]
    Linkage,
}

impl Shape {
    /// Returns a path as it is printed.
    pub fn path<'p>(&self, path: &'p str) -> &'p str {
        match self.has_base_names {
            true => path.rsplit(['/', '\\']).next().unwrap_or(path),
            false => path,
        }
    }

    /// Returns the name of a function as it is printed; `None` if it is not.
    pub fn name<'n>(&self, name: &'n str) -> Option<Cow<'n, str>> {
        match self.functions {
            Functions::None => None,
            Functions::Short => Some(short(name).into()),
            Functions::Linkage => Some(name.into()),
        }
    }
}

/// Returns a name without scope and parameters: `f<int>` of `a::b::f<int>(char)`.
fn short(name: &str) -> &str {
    let mut depth = 0_usize;
    let (mut start, mut end) = (0, name.len());
    let mut last = '\0';
    // End of the characters of an operator.
    let mut symbol_end = 0;
    for (at, c) in name.char_indices() {
        let own = name.get(start..at).unwrap_or_default();
        if own == "operator" {
            let rest = name.get(at..).unwrap_or_default();
            let is_symbol = |c: char| !c.is_alphanumeric() && !matches!(c, ' ' | '(' | '_');
            let len = rest.find(|c| !is_symbol(c)).unwrap_or(rest.len());
            let len = if rest.starts_with("()") { 2 } else { len };
            symbol_end = at.saturating_add(len);
        }
        match c {
            _ if at < symbol_end => {}
            // `(anonymous namespace)::f` is in a scope.
            '(' if depth == 0 && at > start && end == name.len() => {
                (end, depth) = (at, 1);
            }
            '<' | '(' | '{' | '[' => depth = depth.saturating_add(1),
            '>' if last == '-' => {}
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && last == ':' => {
                (start, end) = (at.saturating_add(1), name.len());
            }
            ' ' if depth == 0 && end == name.len() && !own.starts_with("operator") => {
                start = at.saturating_add(1)
            }
            _ => {}
        }
        last = c;
    }
    name.get(start..end)
        .filter(|own| !own.is_empty())
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn short_names_have_neither_scope_nor_parameters() {
        for (name, expected) in [
            ("main", "main"),
            ("a::b::f<a::c>(char, int (*)(int))", "f<a::c>"),
            ("(anonymous namespace)::f(int)", "f"),
            ("void a::g<int>(int)", "g<int>"),
            ("a::operator<<(int)", "operator<<"),
            ("a::operator()(int) const", "operator()"),
            ("a::operator->()", "operator->"),
            (
                "a::f()::{lambda(int)#1}::operator()(int) const",
                "operator()",
            ),
        ] {
            assert_eq!(short(name), expected, "{name}");
        }
    }
}
