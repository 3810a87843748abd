//! Text that fits into a terminal.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Shortens a name to `width` columns, but to no fewer than 16. It loses its arguments first, then
/// its type arguments, its namespace, its module and its type; a method that is still too long
/// loses its middle.
pub(crate) fn fit(name: &str, width: Option<usize>) -> Cow<'_, str> {
    const LEAST: usize = 16;
    let Some(width) = width.map(|width| width.max(LEAST)) else {
        return name.into();
    };
    if columns(name) <= width {
        return name.into();
    }
    // An address without its explanation fits best.
    if let Some((address, _)) = name.split_once(' ').filter(|_| name.starts_with("0x"))
        && columns(address) <= width
    {
        return address.into();
    }
    let (name, arguments) = without_arguments(name);
    let arguments = if arguments.is_empty() { "" } else { "(…)" };
    let whole = format!("{name}{arguments}");
    if columns(&whole) <= width {
        return whole.into();
    }
    let name = without_type_arguments(name);
    let (module, path) = match name.split_once('!') {
        Some((module, path)) => (format!("{module}!"), path),
        None => (String::new(), &*name),
    };
    let parts = parts(path);
    // With the module if the type also fits, then without.
    let with_type = &parts[..parts.len().saturating_sub(1)];
    let forms = [
        (&*module, with_type, arguments),
        (&*module, with_type, ""),
        ("", with_type, arguments),
        ("", with_type, ""),
        ("", &*parts, arguments),
        ("", &*parts, ""),
    ];
    for (module, parts, arguments) in forms {
        for &part in parts {
            let cut = if part == 0 && !module.is_empty() {
                ""
            } else {
                "…"
            };
            let shown = format!("{module}{cut}{}{arguments}", &path[part..]);
            if columns(&shown) <= width {
                return shown.into();
            }
        }
    }
    let method = &path[parts.last().copied().unwrap_or(0)..];
    let (start, end) = (start(method, width / 2), end(method, width - width / 2 - 1));
    format!("{start}…{end}").into()
}

/// Returns the columns of text on a terminal: Chinese characters take two.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Returns the start of a text that takes at most `room` columns.
pub(crate) fn start(text: &str, room: usize) -> &str {
    &text[..within(text.char_indices(), room).map_or(text.len(), |(at, _)| at)]
}

/// Returns the end of a text that takes at most `room` columns.
fn end(text: &str, room: usize) -> &str {
    let cut = within(text.char_indices().rev(), room);
    &text[cut.map_or(0, |(at, c)| at + c.len_utf8())..]
}

/// Returns the first character that takes a column beyond `room`.
fn within(mut chars: impl Iterator<Item = (usize, char)>, room: usize) -> Option<(usize, char)> {
    let mut taken = 0;
    chars.find(|(_, c)| {
        taken += c.width().unwrap_or(0);
        taken > room
    })
}

/// Splits a name into the part before its arguments, and the arguments.
fn without_arguments(name: &str) -> (&str, &str) {
    let mut depth = 0usize;
    for (at, c) in name.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' if depth == 1 && at > 0 && !name[..at].ends_with([' ', ':', '!', '.']) => {
                return name.split_at(at);
            }
            '(' if depth <= 1 => break,
            '(' => depth -= 1,
            _ if depth == 0 => break,
            _ => {}
        }
    }
    (name, "")
}

/// Replaces text in brackets by `[…]` and, in names of C++ and Rust, by `<…>`.
fn without_type_arguments(name: &str) -> String {
    let angles = name.contains("::") && name.matches('<').count() == name.matches('>').count();
    let (mut out, mut depth) = (String::with_capacity(name.len()), 0usize);
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let (opens, closes) = match c {
            '[' => (true, false),
            ']' => (false, true),
            '<' | '>' if angles => (c == '<', c == '>'),
            _ => (false, false),
        };
        depth = depth.saturating_sub(usize::from(closes));
        if depth == 0 {
            out.push(c);
            // The brackets of `new[]` are empty.
            if opens && chars.peek() != Some(&']') {
                out.push('…');
            }
        }
        depth += usize::from(opens);
    }
    out
}

/// Returns the starts of the parts of a qualified name; the last part is the method.
fn parts(path: &str) -> Vec<usize> {
    const SEPARATORS: [char; 4] = ['.', '+', ':', '/'];
    let constructor = [".ctor", ".cctor"].into_iter();
    let mut constructor = constructor.filter_map(|name| path.strip_suffix(name));
    let end = constructor.next().map_or(path.len(), str::len);
    let mut parts = vec![0];
    let mut after_separator = false;
    for (at, c) in path.char_indices() {
        let is_separator = SEPARATORS.contains(&c);
        if at > 0 && (at == end || (after_separator && !is_separator && at < end)) {
            parts.push(at);
        }
        after_separator = is_separator;
    }
    parts
}

/// Wraps a line at `width` columns between words; lines after the first start with `indent`. A word
/// that is too long for a line is shortened as names are.
pub fn wrap(text: &str, width: usize, indent: &str) -> String {
    let words = text.trim_start_matches(' ');
    let mut out = " ".repeat(text.len() - words.len());
    let (mut column, mut blanks, mut is_begin) = (out.len(), 0, true);
    for word in words.split(' ') {
        if word.is_empty() {
            blanks += 1;
            continue;
        }
        let word = fit(word, Some(width.saturating_sub(columns(indent))));
        let len = columns(&word);
        if !is_begin && column + blanks + len > width {
            out.push('\n');
            out.push_str(indent);
            column = columns(indent);
        } else {
            out.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        }
        out.push_str(&word);
        column += len;
        (blanks, is_begin) = (1, false);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_stays() {
        let of = |name: &str, width| fit(name, Some(width)).into_owned();
        let name = "System.Private.CoreLib!System.Threading.WaitHandle.WaitOneNoCheck";
        assert_eq!(fit(name, None), name);
        assert_eq!(of(name, 65), name);
        assert_eq!(
            of(name, 50),
            "System.Private.CoreLib!…WaitHandle.WaitOneNoCheck"
        );
        assert_eq!(of(name, 41), "…Threading.WaitHandle.WaitOneNoCheck");
        assert_eq!(of(name, 3), "…WaitOneNoCheck");
        assert_eq!(of("ünïcödé.ünïcödé.ünïcödé", 16), "…ünïcödé.ünïcödé");
        assert_eq!(of("A.OneVeryLongNameOfAMethod", 16), "OneVeryL…AMethod");
        let wide = "应用!应用.目录.计算两个名称的距离并返回";
        assert_eq!(columns(wide), 39);
        assert_eq!(of(wide, 38), "应用!…目录.计算两个名称的距离并返回");
        assert_eq!(of(wide, 16), "计算两个…并返回");
    }

    #[test]
    fn arguments_go_first() {
        let of = |name: &str, width| fit(name, Some(width)).into_owned();
        let thread = "System.Private.CoreLib!System.Threading.Thread.Join(int32,class X)";
        assert_eq!(
            of(thread, 60),
            "System.Private.CoreLib!System.Threading.Thread.Join(…)"
        );
        assert_eq!(of(thread, 40), "System.Private.CoreLib!…Thread.Join(…)");
        let generic = "App!App.Shapes+Box`1+Inner`1[System.__Canon,System.Int64].Pair";
        assert_eq!(of(generic, 40), "App!App.Shapes+Box`1+Inner`1[…].Pair");
        assert_eq!(of(generic, 24), "App!…Inner`1[…].Pair");
        let native = "libx!std::vector<int, std::allocator<int> >::push_back(int const&)";
        assert_eq!(of(native, 40), "libx!std::vector<…>::push_back(…)");
        let constructor = "System.Private.CoreLib!System.Threading.SpinWait..cctor()";
        assert_eq!(
            of(constructor, 40),
            "System.Private.CoreLib!…SpinWait..cctor"
        );
        assert_eq!(
            of("libstdc++!operator new[](unsigned long)", 30),
            "libstdc++!operator new[](…)"
        );
        assert_eq!(of("0x5000 (no event or module covers it)", 16), "0x5000");
    }

    #[test]
    fn whatever_the_name_it_fits() {
        for name in [
            "((((((((((((((((((((",
            "]]]]]]]]]]]]]]]]]]]]]",
            "<<<<<<::::>>>>>>>>>>>>>",
            "!!!!!!!!!!!!!!!!!!!!!",
            "....................cctor",
            "a(b(c(d(e(f(g(h(i(j(k(l(m",
            "…………………………………………………………………………",
            "长长长长长长长长长长长长长",
            "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}长长长长长",
        ] {
            assert!(columns(&fit(name, Some(16))) <= 16, "{name}");
        }
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        assert_eq!(wrap("one two three", 7, "  "), "one two\n  three");
        assert_eq!(wrap("muchtoolong a", 4, ""), "muchtoolong\na");
        assert_eq!(wrap("", 4, ""), "");
        assert_eq!(wrap("  1%   one  two", 11, "    "), "  1%   one\n    two");
        assert_eq!(
            wrap("at /usr/share/dotnet/shared/libcoreclr.so", 24, "  "),
            "at …shared/libcoreclr.so"
        );
    }
}
