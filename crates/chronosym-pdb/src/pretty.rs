//! Compiler-generated names, as they read in source code.
//!
//! The forms are not documented but have been stable since Roslyn.
//!
//! C#: `<Main>b__0_1` is a lambda in `Main`, `<Main>g__Local|0_1` a local function, `<Main>d__2`
//! the state machine of `Main`, `<>c` and `<>c__DisplayClass0_0` closure classes.
//!
//! Visual Basic: `_Closure$__` and `_Closure$__2-0` are closure classes, `_Lambda$__2-0` a lambda
//! (without the name of its method), `VB$StateMachine_2_Main` the state machine of `Main`.
//!
//! F#: `name@12-3` is the closure class of a function of that name or in it, or a local function
//! compiled to a method; 12 is its line.

/// `Type.Method` as in source code; `None` if no part of the name is compiler-generated.
///
/// Lambdas become `<lambda#1>`, with their number in the method. Generic arguments move to the
/// remaining type.
/// ```
/// use chronosym_pdb::pretty::method_name;
/// assert_eq!(method_name("A.Program+<>c__DisplayClass0_0", "<Main>g__Start|0").unwrap(), "A.Program.Main.Start");
/// assert_eq!(method_name("A.Program+<>c", "<Main>b__0_1").unwrap(), "A.Program.Main.<lambda#1>");
/// assert_eq!(method_name("A.Async+<Level>d__1", "MoveNext").unwrap(), "A.Async.Level");
/// assert_eq!(method_name("A.Module+load@12-3", "Invoke").unwrap(), "A.Module.load.<closure@12-3>");
/// assert_eq!(method_name("A.Form+VB$StateMachine_2_Load", "MoveNext").unwrap(), "A.Form.Load");
/// assert_eq!(method_name("A.Program", "Main"), None);
/// ```
///
/// # Examples
///
/// ```
/// use chronosym_pdb::pretty::method_name;
///
/// // A lambda, and the body of an async method.
/// assert_eq!(method_name("Program+<>c", "<Main>b__0_0").as_deref(), Some("Program.Main.<lambda#0>"));
/// assert_eq!(method_name("Program+<RunAsync>d__1", "MoveNext").as_deref(), Some("Program.RunAsync"));
/// assert_eq!(method_name("Program", "Main"), None); // nothing to change
/// ```
pub fn method_name(type_name: &str, method: &str) -> Option<String> {
    let (types, arguments) = split_arguments(type_name);
    let mut kept = Vec::new();
    let mut machine = None;
    let mut closure = None;
    let mut changed = false;
    for part in split_nested(types) {
        // The arity suffix follows the generated name.
        let part_name = part.split_once('`').map_or(part, |(name, _)| name);
        let is_closure = ["<>c__DisplayClass", "_Closure$__"]
            .iter()
            .any(|start| part_name.starts_with(start));
        if let Some(user) = state_machine(part_name) {
            machine = Some(user);
        } else if let Some(parts) = split_at_line(part_name) {
            closure = Some(parts);
        } else if part_name != "<>c" && !is_closure {
            kept.push(part);
            continue;
        }
        changed = true;
    }
    let mut out = kept.join("+");
    out.push_str(arguments);
    let runs = match (closure, machine) {
        (Some((user, line)), _) => {
            push_user_name(&mut out, user, 0);
            out.extend([".<closure@", line, ">"]);
            // The methods that run the body of a function, a sequence, and a task.
            ["Invoke", "GenerateNext", "MoveNext"].contains(&method)
        }
        (None, Some(user)) => {
            push_user_name(&mut out, user, 0);
            method == "MoveNext"
        }
        (None, None) => {
            changed |= push_user_name(&mut out, method, 0);
            true
        }
    };
    if !runs {
        out.extend([".", method]);
    }
    changed.then_some(out)
}

/// Generated names nest: lambdas in local functions in lambdas.
const MAX_NESTING: u32 = 16;

/// Appends `.name`, translated if it is generated; returns whether it is.
fn push_user_name(out: &mut String, name: &str, depth: u32) -> bool {
    if let Some(number) = name.strip_prefix("_Lambda$__") {
        out.extend([".<lambda#", number, ">"]);
        return true;
    }
    if let Some((user, _)) = split_at_line(name) {
        out.extend([".", user]);
        return true;
    }
    let parts = split_mangled(name).filter(|_| depth < MAX_NESTING);
    let tail = parts.and_then(|(user, kind, rest)| {
        let tail = match kind {
            // The last number identifies the lambda within its method.
            'b' => rest
                .strip_prefix("__")
                .and_then(|number| number.rsplit('_').next())
                .map(|number| [".<lambda#", number, ">"]),
            'g' => rest
                .strip_prefix("__")
                .and_then(|rest| rest.split_once('|'))
                .map(|(local, _)| [".", local, ""]),
            // The entry point of top-level statements.
            '$' if rest.is_empty() => None,
            _ => return None,
        };
        Some((user, tail))
    });
    let Some((user, tail)) = tail else {
        out.extend([".", name]);
        return false;
    };
    push_user_name(out, user, depth.saturating_add(1));
    out.extend(tail.into_iter().flatten());
    true
}

/// C#'s `<user>d…` or Visual Basic's `VB$StateMachine_2_user`; the latter has no number for a
/// lambda.
fn state_machine(name: &str) -> Option<&str> {
    if let Some((user, 'd', _)) = split_mangled(name) {
        return Some(user);
    }
    let numbered = name.strip_prefix("VB$StateMachine_")?;
    let user = numbered.trim_start_matches(|c: char| c.is_ascii_digit());
    user.strip_prefix('_').filter(|user| !user.is_empty())
}

/// `user@line-number`; `user$cont` is the continuation of a function too long for one method.
fn split_at_line(name: &str) -> Option<(&str, &str)> {
    let (user, line) = name.rsplit_once('@')?;
    let is_place = line.starts_with(|c: char| c.is_ascii_digit())
        && line
            .chars()
            .all(|c| c.is_ascii_digit() || "-DT".contains(c));
    let user = user.strip_suffix("$cont").unwrap_or(user);
    (is_place && !user.is_empty()).then_some((user, line))
}

/// `<user>kind…`: the user's name, the kind, the rest. Brackets nest in the user's name.
fn split_mangled(name: &str) -> Option<(&str, char, &str)> {
    let inner = name.strip_prefix('<')?;
    let mut depth = 1_u32;
    for (at, char) in inner.char_indices() {
        match char {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            let rest = inner.get(at.saturating_add(1)..)?;
            let kind = rest.chars().next()?;
            return (at > 0).then(|| (&inner[..at], kind, &rest[kind.len_utf8()..]));
        }
    }
    None
}

/// Splits off the generic arguments: ``Outer`1+Inner[System.Int32]``.
fn split_arguments(name: &str) -> (&str, &str) {
    name.split_at(name.find('[').unwrap_or(name.len()))
}

/// Returns the enclosing types and the type, outermost first; a `+` in brackets is part of a name.
fn split_nested(types: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    types.split(move |char| {
        match char {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        char == '+' && depth == 0
    })
}

/// Splits a full name into type and method at the last dot outside of brackets; the name of a
/// constructor begins with a dot of its own. `None` without such a dot.
/// ```
/// use chronosym_pdb::pretty::split_name;
/// assert_eq!(split_name("A.B[C.D].Main"), Some(("A.B[C.D]", "Main")));
/// assert_eq!(split_name("A.B..ctor"), Some(("A.B", ".ctor")));
/// ```
pub fn split_name(name: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let dot = name.char_indices().rev().find(|&(_, c)| {
        match c {
            '>' | ']' => depth = depth.saturating_add(1),
            '<' | '[' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '.' && depth == 0
    });
    let (owner, method) = name.split_at(dot?.0);
    match owner.strip_suffix('.') {
        Some(owner) => Some((owner, method)),
        None => Some((owner, method.strip_prefix('.')?)),
    }
}

#[cfg(test)]
mod tests {
    use super::{method_name, split_name};

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
            ("N.C+_Closure$__", "_Lambda$__3-1", "N.C.<lambda#3-1>"),
            (
                "N.C+_Closure$__2-0`1[A]",
                "_Lambda$__0",
                "N.C[A].<lambda#0>",
            ),
            (
                "N.C+VB$StateMachine_12_Load_All",
                "MoveNext",
                "N.C.Load_All",
            ),
            (
                "N.C+VB$StateMachine___Lambda$__1-0",
                "MoveNext",
                "N.C.<lambda#1-0>",
            ),
            ("N.Q", "TransInner$cont@1274-4", "N.Q.TransInner"),
            ("N.Q", "|Pat|_|@12", "N.Q.|Pat|_|"),
            (
                "N.W+AsyncDownloadString@1775-12",
                "Invoke",
                "N.W.AsyncDownloadString.<closure@1775-12>",
            ),
            (
                "N.W+all@7D`1[A]",
                "GetFreshEnumerator",
                "N.W[A].all.<closure@7D>.GetFreshEnumerator",
            ),
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
            ("N.P", "<>b__0"),
            ("N.P", "<Main>$2"),
            ("N.List+T@DebugTypeProxy", "get_Items"),
            ("N.P", "user@home"),
            ("N.P", "user@DT"),
            ("N.P", "user@1a"),
            ("N.P", "@1"),
            ("N.P", "VB$AnonymousDelegate_0"),
            ("", ""),
        ] {
            assert_eq!(method_name(owner, method), None, "{owner} {method}");
        }
    }

    #[test]
    fn names_are_split_outside_of_brackets() {
        for (name, parts) in [
            (
                "A.Program+<>c.<Main>b__0_1",
                Some(("A.Program+<>c", "<Main>b__0_1")),
            ),
            (
                "A.B+<X>d__1[System.Int32].MoveNext",
                Some(("A.B+<X>d__1[System.Int32]", "MoveNext")),
            ),
            (
                "A.B.<System.I.Get>g__Local|0",
                Some(("A.B", "<System.I.Get>g__Local|0")),
            ),
            ("A.B+<>c..ctor", Some(("A.B+<>c", ".ctor"))),
            ("plain", None),
        ] {
            assert_eq!(split_name(name), parts, "{name}");
        }
    }
}
