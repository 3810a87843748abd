//! Source Link: from a document's name to the URL of its text.

use std::cmp::Reverse;

use serde_json::Value;

use crate::{Error, Result};

/// A Source Link map (the `documents` object of its JSON).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLink {
    /// Paths and URLs, the longest path first; in one that ends with a star, and in its URL, the star stands for the rest.
    entries: Vec<(String, String)>,
}

impl SourceLink {
    /// Reads the JSON text.
    ///
    /// # Errors
    /// [`Error::Damaged`] if it is not JSON with a `documents` object.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let damaged = Error::damaged("Source Link map", 0, "not the expected JSON");
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        let value: Value = serde_json::from_slice(json).map_err(|_| damaged.clone())?;
        let documents = value.get("documents").and_then(Value::as_object);
        let entries = documents.ok_or(damaged)?.iter().filter_map(|(path, url)| {
            let url = url.as_str()?;
            // A star may only stand at the end of the path, and then once in the URL.
            let stars = path.matches('*').count();
            let fits = stars == url.matches('*').count()
                && (stars == 0 || stars == 1 && path.ends_with('*'));
            fits.then(|| (path.clone(), url.to_owned()))
        });
        let mut entries: Vec<_> = entries.collect();
        // A path without a star is the most specific, then the longest prefix.
        entries.sort_by_key(|(path, _)| (path.ends_with('*'), Reverse(path.len())));
        Ok(Self { entries })
    }

    /// The URL for a document. Names compare without regard to ASCII case, as the format says.
    pub fn url(&self, document: &str) -> Option<String> {
        self.entries.iter().find_map(|(path, url)| {
            let Some(prefix) = path.strip_suffix('*') else {
                return path.eq_ignore_ascii_case(document).then(|| url.clone());
            };
            let (start, rest) = document.split_at_checked(prefix.len())?;
            start
                .eq_ignore_ascii_case(prefix)
                .then(|| url.replace('*', &encode(rest)))
        })
    }
}

/// The rest of a path as part of a URL: `/` between parts, anything unsafe in percent form.
fn encode(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'\\' => out.push('/'),
            b'/' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::SourceLink;

    const MAP: &str = r#"{"documents": {
        "C:\\src\\*": "https://host.test/raw/abc/*",
        "C:\\src\\sub\\*": "https://host.test/other/*?v=1",
        "C:\\src\\One File.cs": "https://host.test/one.cs",
        "bad*star*": "https://host.test/*", "nostar*": "https://host.test/x",
        "a*b": "https://host.test/*"}}"#;

    #[test]
    fn the_most_specific_entry_wins() {
        let map = SourceLink::parse(MAP.as_bytes()).unwrap();
        let url = |name| map.url(name);
        assert_eq!(
            url(r"C:\src\a\b c.cs").as_deref(),
            Some("https://host.test/raw/abc/a/b%20c.cs")
        );
        assert_eq!(
            url(r"c:\SRC\sub\x.cs").as_deref(),
            Some("https://host.test/other/x.cs?v=1")
        );
        assert_eq!(
            url(r"C:\src\One File.cs").as_deref(),
            Some("https://host.test/one.cs")
        );
        assert_eq!(url("nostar1"), None);
        assert_eq!(url("badXstar"), None);
        assert_eq!(url("a*b"), None);
        assert_eq!(url(r"D:\src\a.cs"), None);
    }

    #[test]
    fn other_json_is_refused() {
        for bad in ["", "{", "[]", r#"{"documents": []}"#] {
            assert!(SourceLink::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
