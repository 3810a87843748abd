//! Tokens of the Trace Stream Description Language.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "places in a text of at most 16 MiB"
)]

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token<'t> {
    Word(&'t str),
    Number(i128),
    Text(String),
    /// Punctuation, `:=` and `...` as one.
    Sign(&'t str),
    End,
}

/// Splits a text into tokens and counts open braces.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'t> {
    rest: &'t str,
    pub depth: u32,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        Lexer {
            rest: text,
            depth: 0,
        }
    }

    pub fn next(&mut self) -> Token<'t> {
        self.skip_blanks();
        let rest = self.rest;
        let Some(first) = rest.chars().next() else {
            return Token::End;
        };
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if first.is_ascii_digit()
            || first == '-' && rest[1..].starts_with(|c: char| c.is_ascii_digit())
        {
            let end = rest[1..]
                .find(|c| !is_part(c))
                .map_or(rest.len(), |at| at + 1);
            return Token::Number(number(self.take(end)));
        }
        if is_part(first) {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            return Token::Word(self.take(end));
        }
        if first == '"' {
            return self.text();
        }
        let sign = [":=", "..."]
            .into_iter()
            .find(|sign| rest.starts_with(sign));
        let sign = self.take(sign.map_or(first.len_utf8(), str::len));
        match sign {
            "{" => self.depth += 1,
            "}" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        Token::Sign(sign)
    }

    /// Skips blanks and comments.
    fn skip_blanks(&mut self) {
        loop {
            // Packets may be padded with zeros.
            self.rest = self
                .rest
                .trim_start_matches(|c: char| c.is_whitespace() || c == '\0');
            let end = match self.rest {
                rest if rest.starts_with("/*") => rest.find("*/").map(|at| at + 2),
                rest if rest.starts_with("//") => rest.find('\n'),
                _ => return,
            };
            self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
        }
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    fn text(&mut self) -> Token<'t> {
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[at + 2..];
                    return Token::Text(text);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, c)) => text.push(c),
                    None => break,
                },
                c => text.push(c),
            }
        }
        self.rest = "";
        Token::Text(text)
    }
}

/// Decimal, `0x` hex, or octal with a leading 0; anything else is 0. As in C, a suffix may follow.
fn number(text: &str) -> i128 {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
    let hex = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let value = match (hex, digits.strip_prefix('0')) {
        (Some(hex), _) => i128::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => i128::from_str_radix(octal, 8),
        (None, _) => digits.parse(),
    };
    value.unwrap_or(0).saturating_mul(sign)
}
