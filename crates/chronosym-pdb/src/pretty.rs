//! Names that the C# compiler made up, as the user would write them.
//!
//! The compiler's names are no contract, but they have been stable since Roslyn: `<Main>b__0_1` a
//! lambda in `Main`, `<Main>g__Local|0_1` a local function, `<Main>d__2` the class of `Main`'s state
//! machine, `<>c` and `<>c__DisplayClass0_0` the classes that hold lambdas and what they capture.

/// `Type.Method` without the compiler's inventions; nothing if the name has none.
///
/// Lambdas have no name: they become `<lambda#1>`, after their number in the method. Where a name is
/// rewritten, instantiation arguments move to the type that is left.
///
/// ```
/// use chronosym_pdb::pretty::method_name;
/// assert_eq!(method_name("A.Program+<>c__DisplayClass0_0", "<Main>g__Start|0").unwrap(), "A.Program.Main.Start");
/// assert_eq!(method_name("A.Program+<>c", "<Main>b__0_1").unwrap(), "A.Program.Main.<lambda#1>");
/// assert_eq!(method_name("A.Async+<Level>d__1", "MoveNext").unwrap(), "A.Async.Level");
/// assert_eq!(method_name("A.Program", "Main"), None);
/// ```
pub fn method_name(type_name: &str, method: &str) -> Option<String> {
    let (types, arguments) = split_arguments(type_name);
    let mut kept = Vec::new();
    let mut machine = None;
    let mut changed = false;
    for part in split_nested(types) {
        // An arity mark stands behind the made-up name, too.
        let part_name = part.split_once('`').map_or(part, |(name, _)| name);
        if part_name == "<>c" || part_name.starts_with("<>c__DisplayClass") {
            changed = true;
        } else if let Some((user, 'd', _)) = split_mangled(part_name) {
            changed = true;
            machine = Some(user);
        } else {
            kept.push(part);
        }
    }
    let mut out = kept.join("+");
    out.push_str(arguments);
    match (machine, method) {
        (Some(user), "MoveNext") => {
            push_user_name(&mut out, user, 0);
        }
        (Some(user), other) => {
            push_user_name(&mut out, user, 0);
            out.push('.');
            out.push_str(other);
        }
        (None, _) => changed |= push_user_name(&mut out, method, 0),
    }
    changed.then_some(out)
}

/// Lambdas in local functions in lambdas: names nest, but not without end.
const MAX_NESTING: u32 = 16;

/// Appends `.name`, taking a made-up name apart. Whether it was one.
fn push_user_name(out: &mut String, name: &str, depth: u32) -> bool {
    let parts = if depth < MAX_NESTING {
        split_mangled(name)
    } else {
        None
    };
    let Some((user, kind, rest)) = parts else {
        out.push('.');
        out.push_str(name);
        return false;
    };
    let tail = match kind {
        // The last number tells a method's lambdas apart.
        'b' => rest
            .strip_prefix("__")
            .map(|number| (true, number.rsplit('_').next().unwrap_or(number))),
        'g' => rest
            .strip_prefix("__")
            .and_then(|rest| rest.split_once('|'))
            .map(|(local, _)| (false, local)),
        // Top-level statements.
        '$' if rest.is_empty() => None,
        _ => {
            out.push('.');
            out.push_str(name);
            return false;
        }
    };
    push_user_name(out, user, depth + 1);
    match tail {
        Some((true, number)) => {
            out.push_str(".<lambda#");
            out.push_str(number);
            out.push('>');
        }
        Some((false, local)) => {
            out.push('.');
            out.push_str(local);
        }
        None => {}
    }
    true
}

/// `<user>kind…`: the user's name, the kind, and what follows. The brackets of the user's part nest.
fn split_mangled(name: &str) -> Option<(&str, char, &str)> {
    let inner = name.strip_prefix('<')?;
    let mut depth = 1;
    for (at, char) in inner.char_indices() {
        match char {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let rest = &inner[at + 1..];
            let kind = rest.chars().next()?;
            return (at > 0).then(|| (&inner[..at], kind, &rest[kind.len_utf8()..]));
        }
    }
    None
}

/// Splits off the instantiation: ``Outer`1+Inner[System.Int32]``.
fn split_arguments(name: &str) -> (&str, &str) {
    name.split_at(name.find('[').unwrap_or(name.len()))
}

/// The enclosing types and the type, outermost first; a `+` within brackets belongs to a name.
fn split_nested(types: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    types.split(move |char| {
        match char {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        char == '+' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::method_name;

    #[test]
    fn made_up_names() {
        for (owner, method, pretty) in [
            ("N.P+<>c", "<Main>b__0_1", "N.P.Main.<lambda#1>"),
            (
                "N.P+<>c__DisplayClass0_1",
                "<Main>b__3",
                "N.P.Main.<lambda#3>",
            ),
            ("N.P", "<Run>g__Local|5_3", "N.P.Run.Local"),
            (
                "N.P+<>c__DisplayClass0_0",
                "<Main>g__Start|0",
                "N.P.Main.Start",
            ),
            ("N.A+<Run>d__2", "MoveNext", "N.A.Run"),
            (
                "N.A+<Run>d__2`1[System.Int32]",
                "MoveNext",
                "N.A[System.Int32].Run",
            ),
            (
                "N.A+<Run>d__2",
                "System.IDisposable.Dispose",
                "N.A.Run.System.IDisposable.Dispose",
            ),
            ("N.P+<>c+<<Main>b__0_4>d", "MoveNext", "N.P.Main.<lambda#4>"),
            (
                "N.P",
                "<<Main>g__Outer|0_0>g__Inner|0_1",
                "N.P.Main.Outer.Inner",
            ),
            (
                "N.P+<>c",
                "<<Main>g__Outer|0_0>b__0_1",
                "N.P.Main.Outer.<lambda#1>",
            ),
            ("N.P+<>c", "<.ctor>b__0_1", "N.P..ctor.<lambda#1>"),
            ("Program", "<Main>$", "Program.Main"),
            (
                "N.O`1+<>c__DisplayClass1_0[N.X+Y]",
                "<M>b__0",
                "N.O`1[N.X+Y].M.<lambda#0>",
            ),
        ] {
            assert_eq!(
                method_name(owner, method).as_deref(),
                Some(pretty),
                "{owner} {method}"
            );
        }
    }

    #[test]
    fn other_names_stay() {
        for (owner, method) in [
            ("N.P+Nested`1[System.Int32]", "Run"),
            ("N.P", ".ctor"),
            ("N.P", "<P>k__BackingField"),
            ("<>f__AnonymousType0`2[A,B]", "get_X"),
            ("<PrivateImplementationDetails>", "ComputeStringHash"),
            ("N.P", "<unclosed"),
            ("N.P", "<>"),
            ("", ""),
        ] {
            assert_eq!(method_name(owner, method), None, "{owner} {method}");
        }
    }
}
