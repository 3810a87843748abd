//! Names of methods in the spelling of C#: `Cell<int>.Get(string, ref bool)`.

use std::borrow::Cow;
use std::fmt;

use crate::pretty;

/// The parts of a method's name. Native functions have only a method.
///
/// # Examples
///
/// ```
/// use chronosym_pdb::csharp::SourceName;
///
/// let name = SourceName::managed("App.Outer+Cell`1[System.Int32].Get", Some("instance !0 (bool)"));
/// assert_eq!(name.to_string(), "App.Outer.Cell<int>.Get");
/// assert_eq!(name.arguments, "(bool)");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceName {
    /// The namespace with the dot after it, or empty.
    pub namespace: String,
    /// The type with its enclosing types, or empty.
    pub of_type: String,
    /// The method, local function or lambda.
    pub method: String,
    /// The types of its arguments in parentheses, or empty if they are unknown.
    pub arguments: String,
}

/// The full name, without arguments.
impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.of_type.is_empty() { "" } else { "." };
        write!(f, "{}{}{dot}{}", self.namespace, self.of_type, self.method)
    }
}

impl SourceName {
    /// Returns the name of a native function, or other text.
    pub fn plain(text: &str) -> Self {
        SourceName {
            method: text.to_owned(),
            ..SourceName::default()
        }
    }

    /// Splits the name of a managed method, as events state it, and spells it as in source code.
    pub fn managed(name: &str, signature: Option<&str>) -> Self {
        let arguments = signature.and_then(arguments).unwrap_or_default();
        let Some((owner, method)) = pretty::split_name(name) else {
            return SourceName {
                arguments,
                ..SourceName::plain(name)
            };
        };
        let types = owner.find(['+', '`', '[', '<']).unwrap_or(owner.len());
        let namespace = owner[..types]
            .rfind('.')
            .map_or(0, |dot| dot.saturating_add(1));
        let (namespace, owner) = owner.split_at(namespace);
        let pretty = pretty::method_name(owner, method);
        let (of_type, method) = match &pretty {
            // The generated types have been removed; a dot follows the last type.
            Some(full) => split_first(full).unwrap_or(("", full)),
            None => (owner, method),
        };
        let method = match method {
            ".ctor" => "ctor",
            ".cctor" => "cctor",
            method => method,
        };
        SourceName {
            namespace: namespace.to_owned(),
            of_type: type_name(of_type),
            method: generic_arguments(method).into_owned(),
            arguments,
        }
    }
}

/// Splits at the first dot outside of brackets.
fn split_first(name: &str) -> Option<(&str, &str)> {
    let mut depth = 0_u32;
    let dot = name.char_indices().find(|&(_, c)| {
        match c {
            '<' | '[' => depth = depth.saturating_add(1),
            '>' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == '.' && depth == 0
    });
    let (at, _) = dot?;
    Some((&name[..at], &name[at.saturating_add(1)..]))
}

/// Spells a type without its namespace: ``Outer`1+Inner[System.Int32]`` is `Outer.Inner<int>`.
fn type_name(name: &str) -> String {
    let (types, arguments) = match name.find('[') {
        Some(at) => name.split_at(at),
        None => (name, ""),
    };
    let mut out = String::with_capacity(name.len());
    for (index, part) in types.split('+').enumerate() {
        if index > 0 {
            out.push('.');
        }
        out.push_str(without_arity(part));
    }
    out.push_str(&generic_arguments(arguments));
    out
}

/// Cuts the number of generic parameters that ends a name.
fn without_arity(name: &str) -> &str {
    match name.rsplit_once('`') {
        Some((start, arity)) if arity.bytes().all(|b| b.is_ascii_digit()) => start,
        _ => name,
    }
}

/// Replaces the brackets of generic arguments, and spells the types in them.
fn generic_arguments(text: &str) -> Cow<'_, str> {
    if !text.contains('[') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let (mut word, mut open) = (0, Vec::new());
    for (at, c) in text.char_indices() {
        if !matches!(c, '[' | ']' | ',') {
            continue;
        }
        out.push_str(short_type(&text[word..at]));
        word = at.saturating_add(1);
        // `[]` and `[,]` are arrays.
        let is_array = c == '[' && text[word..].starts_with([']', ',']);
        match c {
            '[' => {
                open.push(is_array);
                out.push(if is_array { '[' } else { '<' });
            }
            ']' => out.push(if open.pop() == Some(true) { ']' } else { '>' }),
            _ => out.push_str(if open.last() == Some(&true) {
                ","
            } else {
                ", "
            }),
        }
    }
    out.push_str(short_type(&text[word..]));
    Cow::Owned(out)
}

/// Returns the keyword or the last part of a type's name.
fn short_type(name: &str) -> &str {
    let name = name.trim();
    let keyword = KEYWORDS.iter().find(|(full, _)| *full == name);
    keyword.map_or_else(
        || {
            let short = name.rsplit(['.', '+', '/']).next().unwrap_or(name);
            without_arity(short)
        },
        |(_, keyword)| keyword,
    )
}

const KEYWORDS: [(&str, &str); 16] = [
    ("System.Boolean", "bool"),
    ("System.Byte", "byte"),
    ("System.SByte", "sbyte"),
    ("System.Char", "char"),
    ("System.Int16", "short"),
    ("System.UInt16", "ushort"),
    ("System.Int32", "int"),
    ("System.UInt32", "uint"),
    ("System.Int64", "long"),
    ("System.UInt64", "ulong"),
    ("System.Single", "float"),
    ("System.Double", "double"),
    ("System.Decimal", "decimal"),
    ("System.String", "string"),
    ("System.Object", "object"),
    ("System.Void", "void"),
];

/// ECMA-335, II.7.1: the types of IL that have keywords. Longer ones come first.
const PRIMITIVES: [(&str, &str); 21] = [
    ("unsigned int8", "byte"),
    ("unsigned int16", "ushort"),
    ("unsigned int32", "uint"),
    ("unsigned int64", "ulong"),
    ("unsigned int", "nuint"),
    ("native unsigned int", "nuint"),
    ("native uint", "nuint"),
    ("native int", "nint"),
    ("int8", "sbyte"),
    ("int16", "short"),
    ("int32", "int"),
    ("int64", "long"),
    ("float32", "float"),
    ("float64", "double"),
    ("bool", "bool"),
    ("char", "char"),
    ("string", "string"),
    ("object", "object"),
    ("typedref", "TypedReference"),
    ("void", "void"),
    ("refany", "TypedReference"),
];

/// Spells the types of a signature's arguments, with parentheses; `None` if it has none that can be
/// read.
pub fn arguments(signature: &str) -> Option<String> {
    let at = signature.find('(')?;
    let mut types = Types {
        rest: &signature[at.saturating_add(1)..],
    };
    let mut out = String::from("(");
    types.list(')', &mut out, 0)?;
    out.push(')');
    Some(out)
}

/// Types in a signature, as ILAsm spells them.
struct Types<'a> {
    rest: &'a str,
}

/// Generic arguments in each other.
const MAX_DEPTH: u32 = 32;

impl Types<'_> {
    fn skip(&mut self, text: &str) -> bool {
        let rest = self.rest.trim_start();
        let is = rest.strip_prefix(text);
        self.rest = is.unwrap_or(rest);
        is.is_some()
    }

    fn list(&mut self, end: char, out: &mut String, depth: u32) -> Option<()> {
        let end = end.encode_utf8(&mut [0; 4]).to_owned();
        let mut is_first = true;
        while !self.skip(&end) {
            if !is_first {
                if !self.skip(",") {
                    return None;
                }
                out.push_str(", ");
            }
            is_first = false;
            self.one(out, depth)?;
        }
        Some(())
    }

    fn one(&mut self, out: &mut String, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        while ["class ", "value class ", "valuetype ", "modreq", "pinned "]
            .iter()
            .any(|word| self.skip(word))
        {}
        let start = out.len();
        let primitive = PRIMITIVES.iter().find(|(il, _)| {
            let rest = self.rest.strip_prefix(il);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
        });
        if let Some((il, keyword)) = primitive {
            self.rest = &self.rest[il.len()..];
            out.push_str(keyword);
        } else {
            let end = self
                .rest
                .find([',', ')', '<', '>', '[', ']', '&', '*', ' ']);
            let name = &self.rest[..end.unwrap_or(self.rest.len())];
            self.rest = &self.rest[name.len()..];
            match name.trim_start_matches('!') {
                "" => return None,
                // Parameters of the type and of the method.
                number if number.len() < name.len() => out.extend(["T", number]),
                name => out.push_str(short_type(name)),
            }
        }
        loop {
            if self.skip("<") {
                out.push('<');
                self.list('>', out, depth.saturating_add(1))?;
                out.push('>');
            } else if self.skip("[") {
                let end = self.rest.find(']')?;
                let rank = self.rest[..end].matches(',').count();
                self.rest = &self.rest[end.saturating_add(1)..];
                out.push('[');
                out.extend(std::iter::repeat_n(',', rank));
                out.push(']');
            } else if self.skip("&") {
                out.insert_str(start, "ref ");
            } else if self.skip("*") {
                out.push('*');
            } else {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(name: &str, signature: &str) -> String {
        let name = SourceName::managed(name, Some(signature));
        let dot = if name.of_type.is_empty() { "" } else { "." };
        format!(
            "{}|{}{dot}|{}{}",
            name.namespace, name.of_type, name.method, name.arguments
        )
    }

    #[test]
    fn names_are_those_of_source_code() {
        for (name, signature, expected) in [
            (
                "App.Program.Main",
                "void (class System.String[])",
                "App.|Program.|Main(string[])",
            ),
            ("Program.Main", "void  ()", "|Program.|Main()"),
            (
                "Workload.Inlining+Cell`1[System.Int32].Get",
                "instance !0 (bool,class System.String&)",
                "Workload.|Inlining.Cell<int>.|Get(bool, ref string)",
            ),
            (
                "System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32[]].TryInsert",
                "instance bool (!0,!1,value class System.Memory`1<unsigned int8>)",
                "System.Collections.Generic.|Dictionary<__Canon, int[]>.|TryInsert(T0, T1, Memory<byte>)",
            ),
            (
                "A.B..ctor",
                "instance void (native int)",
                "A.|B.|ctor(nint)",
            ),
            (
                "A.Program+<>c__DisplayClass0_0.<Main>b__0",
                "instance void ()",
                "A.|Program.|Main.<lambda#0>()",
            ),
            (
                "A.Async+<Level>d__1.MoveNext",
                "instance void ()",
                "A.|Async.|Level()",
            ),
            (
                "A.T.Go[System.Int32]",
                "void (class A.F`2<int32,class B.C[,]>,!!0*)",
                "A.|T.|Go<int>(F<int, C[,]>, T0*)",
            ),
        ] {
            assert_eq!(full(name, signature), expected);
        }
        assert_eq!(SourceName::managed("Main", None), SourceName::plain("Main"));
        // Text that is not a signature is omitted.
        for bad in [
            "void (",
            "void (int32",
            "x",
            "void (class )",
            "v (a b)",
            "v ([)",
        ] {
            assert_eq!(full("A.B.C", bad), "A.|B.|C", "{bad}");
        }
        let deep = format!("void ({})", "A<".repeat(100_000));
        assert_eq!(full("A.B.C", &deep), "A.|B.|C");
    }
}
