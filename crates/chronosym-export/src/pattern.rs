//! The patterns with which options select functions, modules and processes by name.

use std::borrow::Cow;
use std::fmt;

use chronosym_pdb::csharp::SourceName;
use regex_lite::{Regex, RegexBuilder};

/// Selects names. One syntax holds for every option:
///
/// - Text matches anywhere in a name, without case if it has no capital letter. A function has the
///   name `module!Namespace.Type.Method`, and the one of its source code, with or without type
///   arguments: `Cache.Get` matches ``App!App.Cache`1[System.Int32].Get``.
/// - Text with `*` or `?` is a name with wildcards, compared as a whole and without case.
/// - `/…/` is a regular expression, matched anywhere, with case.
///
/// # Examples
///
/// ```
/// use chronosym_export::Pattern;
///
/// let name = "App!App.Cache`1[System.Int32].Get";
/// for text in ["cache", "Cache.Get", "Cache<int>.Get", "app!*", "/Cache.*Get$/"] {
///     assert!(Pattern::new(text)?.is_match(name), "{text}");
/// }
/// assert!(!Pattern::new("CACHE")?.is_match(name));
/// # Ok::<(), chronosym_export::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern {
    /// As it was written.
    written: String,
    /// Without the slashes of an expression.
    text: String,
    any_case: bool,
    /// The text is nothing but this expression.
    is_regex: bool,
    regex: Option<Regex>,
}

/// A pattern that is not valid.
#[derive(Clone, Debug, thiserror::Error)]
#[error("'{pattern}' is not a regular expression: {reason}")]
#[non_exhaustive]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// The reason.
    pub reason: String,
}

impl Pattern {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// If `/…/` is not a regular expression, or if the pattern is too long.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let inner = text
            .strip_prefix('/')
            .and_then(|text| text.strip_suffix('/'));
        let regex = match inner {
            Some(inner) => Some(compile(inner, false)),
            None if text.contains(['*', '?']) => Some(compile(&wildcards(text), true)),
            None => None,
        };
        let error = |error: regex_lite::Error| PatternError {
            pattern: text.to_owned(),
            reason: error.to_string(),
        };
        Ok(Pattern {
            any_case: !text.chars().any(char::is_uppercase),
            written: text.to_owned(),
            text: inner.unwrap_or(text).to_owned(),
            is_regex: inner.is_some(),
            regex: regex.transpose().map_err(error)?,
        })
    }

    /// Parses a pattern of an option that took regular expressions before: text with their special
    /// characters matches as an expression, too.
    ///
    /// # Errors
    ///
    /// The errors of [`Pattern::new`].
    pub fn or_regex(text: &str) -> Result<Self, PatternError> {
        let mut pattern = Self::new(text)?;
        let is_special = text.contains(['^', '$', '|', '\\', '(', '[', '{']);
        if !pattern.is_regex
            && (is_special || text.contains(".*") || text.contains(".+"))
            && let Ok(regex) = compile(text, false)
        {
            pattern.regex = Some(regex);
        }
        Ok(pattern)
    }

    /// Returns whether a name matches.
    pub fn is_match(&self, name: &str) -> bool {
        names(name).any(|name| {
            let has_regex = self
                .regex
                .as_ref()
                .is_some_and(|regex| regex.is_match(&name));
            has_regex || !self.is_regex && self.contains(&name)
        })
    }

    /// How well a name matches: 3 as a whole, 2 with its end, 1 with a part, 0 not at all.
    pub(crate) fn rank(&self, name: &str) -> u8 {
        let rank = |name: &str| {
            let Some(start) = name.len().checked_sub(self.text.len()) else {
                return 0;
            };
            let end = name.get(start..);
            let is_end = end.is_some_and(|end| match self.any_case {
                true => end.eq_ignore_ascii_case(&self.text),
                false => end == self.text,
            });
            let before = &name[..if is_end { start } else { 0 }];
            let after_module = name.find('!').map_or(0, |at| at + 1);
            match is_end {
                true if start == 0 || start == after_module => 3,
                true if before.ends_with(['.', '+', '!', '/', ':']) => 2,
                _ => 0,
            }
        };
        let best = match self.is_regex {
            true => 0,
            false => names(name).map(|name| rank(&name)).max().unwrap_or(0),
        };
        best.max(u8::from(self.is_match(name)))
    }

    fn contains(&self, name: &str) -> bool {
        match self.any_case {
            true => name.to_lowercase().contains(&self.text),
            false => name.contains(&self.text),
        }
    }
}

/// The pattern as it was written.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

fn compile(text: &str, any_case: bool) -> Result<Regex, regex_lite::Error> {
    let mut builder = RegexBuilder::new(text);
    builder.case_insensitive(any_case).build()
}

/// Returns the expression of a name with wildcards, with or without its module.
fn wildcards(text: &str) -> String {
    let part = |c: char| match c {
        '*' => ".*".to_owned(),
        '?' => ".".to_owned(),
        c => regex_lite::escape(c.encode_utf8(&mut [0; 4])),
    };
    let parts: String = text.chars().map(part).collect();
    format!("^(?:[^!]*!)?{parts}$")
}

/// Returns the spellings of a name: the recorded one, and those of source code with and without type
/// arguments.
fn names(name: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let (module, path) = match name.split_once('!') {
        Some((module, path)) => (&name[..=module.len()], path),
        None => ("", name),
    };
    let is_managed = path.contains('.') && !path.contains("::");
    let source = is_managed.then(|| format!("{module}{}", SourceName::managed(path, None)));
    let plain = source.as_deref().map(without_type_arguments);
    let source = [source, plain].into_iter().flatten().map(Cow::Owned);
    std::iter::once(Cow::Borrowed(name)).chain(source)
}

fn without_type_arguments(name: &str) -> String {
    let mut depth = 0_usize;
    let kept = name.chars().filter(|c| {
        depth += usize::from(*c == '<');
        let is_kept = depth == 0;
        depth = depth.saturating_sub(usize::from(*c == '>'));
        is_kept
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str = "App!App.Outer+Cell`1[System.Int32].Get";

    #[test]
    fn text_matches_the_spelling_of_events_and_of_source() {
        for (text, is_match) in [
            ("cell", true),
            ("Cell", true),
            ("CELL", false),
            ("Cell.Get", true),
            ("cell.get", true),
            ("Cell<int>.Get", true),
            ("Outer+Cell`1[System.Int32]", true),
            ("Outer.Cell", true),
            ("App!App.Outer", true),
            ("Get.Cell", false),
            // Wildcards.
            ("App!*", true),
            ("*.Get", true),
            ("App.Outer.Cell.G?t", true),
            ("Cell*", false),
            ("APP!*GET", true),
            // Regular expressions.
            ("/Cell.*Get$/", true),
            ("/cell/", false),
            ("/^App!/", true),
        ] {
            assert_eq!(
                Pattern::new(text).unwrap().is_match(CELL),
                is_match,
                "{text}"
            );
        }
        let async_method = "App!App.Web+<GoAsync>d__4.MoveNext";
        assert!(Pattern::new("Web.GoAsync").unwrap().is_match(async_method));
        assert!(Pattern::new("/[/").is_err());
        assert!(Pattern::new("[").unwrap().is_match(CELL));
    }

    /// What scripts pass to `--include`, `--exclude`, `--fold` and `--match` of `top`.
    #[test]
    fn regular_expressions_need_no_slashes_where_they_did_not() {
        let matches = |text: &str| Pattern::or_regex(text).unwrap().is_match(CELL);
        for text in [
            "!App",
            "Get$",
            "^App!",
            "Put|Get",
            r"Cell`1\[",
            "Cell.*Get",
            "web!|app!App",
        ] {
            assert!(matches(text) == (text != "web!|app!App"), "{text}");
        }
        assert!(Pattern::or_regex("[").unwrap().is_match(CELL));
        assert!(!Pattern::new("Get$").unwrap().is_match(CELL));
    }

    #[test]
    fn whole_names_rank_above_ends_and_parts() {
        let rank = |text: &str| Pattern::new(text).unwrap().rank(CELL);
        assert_eq!(rank("App.Outer.Cell.Get"), 3);
        assert_eq!(rank(CELL), 3);
        assert_eq!(rank("Cell.Get"), 2);
        assert_eq!(rank("get"), 2);
        assert_eq!(rank("et"), 1);
        assert_eq!(rank("Put"), 0);
    }
}
