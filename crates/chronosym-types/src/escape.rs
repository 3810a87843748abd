//! Escaping of text from files for each output.
//!
//! Names in traces and symbol files are untrusted. This module, and no other, replaces or escapes
//! characters that control a terminal, hide or reorder text, break a line or end a value.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns whether a character must not be written as it is: control characters, characters that
/// change the direction of text, are invisible or start a line, and noncharacters (U+FFFE, U+FFFF,
/// which XML cannot represent).
///
/// Invisible are the characters with Unicode's property `Default_Ignorable_Code_Point`, interlinear
/// annotations, controls of musical notation, and the empty Braille pattern.
#[inline]
pub fn is_hostile(c: char) -> bool {
    c < ' ' || c >= '\u{7f}' && is_hostile_beyond_ascii(c)
}

fn is_hostile_beyond_ascii(c: char) -> bool {
    matches!(c,
        '\u{7f}'..='\u{9f}'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{fffe}'..='\u{ffff}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Replaces hostile characters and those for which `more` holds.
fn replace(text: &str, more: impl Fn(char) -> Option<char>) -> Cow<'_, str> {
    let other = |c: char| if is_hostile(c) { Some('?') } else { more(c) };
    if text.chars().all(|c| other(c).is_none()) {
        return text.into();
    }
    text.chars().map(|c| other(c).unwrap_or(c)).collect()
}

/// Escapes text for a terminal or a line: each hostile character becomes `?`.
///
/// # Examples
///
/// ```
/// use chronosym_types::escape;
///
/// assert_eq!(escape::terminal("Main\x1b[31m"), "Main?[31m");
/// ```
pub fn terminal(text: &str) -> Cow<'_, str> {
    // Without a branch for each byte, many are compared at once.
    let is_plain = |all, byte| all & matches!(byte, b' '..=b'~');
    if text.bytes().fold(true, is_plain) {
        return text.into();
    }
    replace(text, |_| None)
}

/// Escapes a frame of folded stacks: as [`terminal`], and `;`, which separates frames, becomes `:`.
pub fn folded(text: &str) -> Cow<'_, str> {
    replace(text, |c| (c == ';').then_some(':'))
}

/// Escapes the inside of a JSON string: hostile characters become `\u` escapes.
pub fn json(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !is_hostile(c) && c != '"' && c != '\\';
    if is_plain_json(text.as_bytes()) || text.chars().all(plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len().saturating_add(8));
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if is_hostile(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String does not fail.
                    _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.into()
}

/// Returns whether all of the text is ASCII that JSON does not escape.
fn is_plain_json(text: &[u8]) -> bool {
    let (words, rest) = text.as_chunks();
    match text.last_chunk() {
        // The last eight bytes cover the rest.
        Some(last) => words.iter().chain([last]).all(|&word| is_plain_word(word)),
        None => {
            let mut padded = [b' '; 8];
            for (padded, byte) in padded.iter_mut().zip(rest) {
                *padded = *byte;
            }
            is_plain_word(padded)
        }
    }
}

/// As [`is_plain_json`], for eight bytes at once. False for few others too.
fn is_plain_word(word: [u8; 8]) -> bool {
    const TOP: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(word);
    let each = |byte: u8| u64::from_le_bytes([byte; 8]);
    // The top bit of a byte below `limit` becomes 1; a borrow can reach higher bytes only.
    let below = |word: u64, limit: u8| word.wrapping_sub(each(limit)) & !word;
    let is = |byte: u8| below(word ^ each(byte), 1);
    (word | below(word, b' ') | is(b'"') | is(b'\\') | is(0x7f)) & TOP == 0
}

/// Escapes text and quoted attributes of XML, HTML and SVG: markup becomes references, hostile
/// characters become `?`.
pub fn xml(text: &str) -> Cow<'_, str> {
    let plain = |c: char| !is_hostile(c) && !matches!(c, '&' | '<' | '>' | '"' | '\'');
    if text.chars().all(plain) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if plain(c) => out.push(c),
            // XML cannot represent the others.
            _ => out.push('?'),
        }
    }
    out.into()
}

/// Quotes text as one word of a POSIX shell, unless it is plain.
///
/// # Examples
///
/// ```
/// use chronosym_types::escape;
///
/// assert_eq!(escape::shell("app.nettrace"), "app.nettrace");
/// assert_eq!(escape::shell("my app; ls"), "'my app; ls'");
/// ```
pub fn shell(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("'{}'", text.replace('\'', "'\\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hostile name and its escapes: terminal, folded, JSON, XML.
    const NAMES: [[&str; 5]; 12] = [
        ["Main", "Main", "Main", "\"Main\"", "Main"],
        ["Größe😀", "Größe😀", "Größe😀", "\"Größe😀\"", "Größe😀"],
        [
            "a\u{1b}[31mb\u{9b}0m\u{7f}",
            "a?[31mb?0m?",
            "a?[31mb?0m?",
            r#""a\u001b[31mb\u009b0m\u007f""#,
            "a?[31mb?0m?",
        ],
        ["a\r\nb\tc", "a??b?c", "a??b?c", r#""a\r\nb\tc""#, "a??b?c"],
        [
            "\u{202e}gnp.exe\u{2066}\u{2069}\u{61c}\u{2060}",
            "?gnp.exe????",
            "?gnp.exe????",
            r#""\u202egnp.exe\u2066\u2069\u061c\u2060""#,
            "?gnp.exe????",
        ],
        [
            "a\u{200b}\u{200f}\u{feff}b\u{2028}\u{2029}",
            "a???b??",
            "a???b??",
            r#""a\u200b\u200f\ufeffb\u2028\u2029""#,
            "a???b??",
        ],
        [
            "\u{ad}\u{34f}\u{115f}\u{180e}\u{3164}\u{fe0f}\u{fff9}\u{e0041}",
            "????????",
            "????????",
            r#""\u00ad\u034f\u115f\u180e\u3164\ufe0f\ufff9\udb40\udc41""#,
            "????????",
        ],
        ["a;b 7", "a;b 7", "a:b 7", "\"a;b 7\"", "a;b 7"],
        [
            "\",\"x\":\"\\",
            "\",\"x\":\"\\",
            "\",\"x\":\"\\",
            r#""\",\"x\":\"\\""#,
            "&quot;,&quot;x&quot;:&quot;\\",
        ],
        [
            "</text><script>a&&b('')",
            "</text><script>a&&b('')",
            "</text><script>a&&b('')",
            "\"</text><script>a&&b('')\"",
            "&lt;/text&gt;&lt;script&gt;a&amp;&amp;b(&#39;&#39;)",
        ],
        [
            "=cmd|' /C calc'!A0",
            "=cmd|' /C calc'!A0",
            "=cmd|' /C calc'!A0",
            "\"=cmd|' /C calc'!A0\"",
            "=cmd|&#39; /C calc&#39;!A0",
        ],
        [
            "\0\u{8}\u{c}\u{fffe}",
            "????",
            "????",
            r#""\u0000\b\f\ufffe""#,
            "????",
        ],
    ];

    #[test]
    fn each_character_of_json_is_escaped_wherever_it_stands() {
        for c in (0..0x100u32).filter_map(char::from_u32) {
            let is_plain = c.is_ascii() && !c.is_control() && c != '"' && c != '\\';
            for before in [0, 3, 7, 8, 15, 20] {
                for after in [0, 1, 9] {
                    let text = format!("{}{c}{}", "a".repeat(before), " ".repeat(after));
                    assert_eq!(is_plain_json(text.as_bytes()), is_plain, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn hostile_names_are_harmless_wherever_they_are_written() {
        for [name, on_terminal, in_folded, in_json, in_xml] in NAMES {
            let json = format!("\"{}\"", json(name));
            assert_eq!(
                [&*terminal(name), &*folded(name), &json, &*xml(name)],
                [on_terminal, in_folded, in_json, in_xml],
                "{name:?}"
            );
            for text in [on_terminal, in_folded, in_json, in_xml] {
                assert!(!text.contains(is_hostile), "{text:?}");
            }
        }
    }
}
