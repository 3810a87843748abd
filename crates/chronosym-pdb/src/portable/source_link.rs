//! Source Link: URLs of source documents by name.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Error, Result};

/// Bytes of a path or a URL; longer ones are ignored.
const MAX_LENGTH: usize = 4 << 10;

/// A Source Link map (the `documents` object of its JSON).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLink {
    /// URLs by exact path in lower case.
    exact: BTreeMap<String, String>,
    /// URLs by the prefix before a path's trailing `*`; the `*` in the URL is replaced by the rest.
    prefixes: BTreeMap<String, String>,
}

impl SourceLink {
    /// Parses the JSON text.
    ///
    /// # Errors [`Error::Damaged`] if it is not JSON with a `documents` object.
    pub fn parse(json: &[u8]) -> Result<Self> {
        let damaged = Error::damaged("Source Link map", 0, "not the expected JSON");
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        let value: Value = serde_json::from_slice(json).map_err(|_| damaged.clone())?;
        let documents = value.get("documents").and_then(Value::as_object);
        let (mut exact, mut prefixes) = (BTreeMap::new(), BTreeMap::new());
        for (path, url) in documents.ok_or(damaged)? {
            let Some(url) = url
                .as_str()
                .filter(|url| path.len().max(url.len()) <= MAX_LENGTH)
            else {
                continue;
            };
            let (urls, start) = match path.strip_suffix('*') {
                Some(start) => (&mut prefixes, start),
                None => (&mut exact, &**path),
            };
            // A `*` is valid only at the end of the path, and exactly once in its URL.
            let stars = path.matches('*').count();
            if stars == url.matches('*').count() && !start.contains('*') {
                let entry = urls.entry(start.to_ascii_lowercase());
                entry.or_insert_with(|| url.to_owned());
            }
        }
        Ok(Self { exact, prefixes })
    }

    /// Returns the URL of a document: of the exact path, or else of the longest matching prefix.
    /// Paths compare without regard to ASCII case, as the format requires.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_pdb::portable::SourceLink;
    ///
    /// let link = SourceLink::parse(br#"{"documents": {"/src/*": "https://example.com/raw/1a2b/*"}}"#)?;
    /// assert_eq!(link.url("/src/App/Program.cs").as_deref(), Some("https://example.com/raw/1a2b/App/Program.cs"));
    /// assert_eq!(link.url("/other/Program.cs"), None);
    /// # Ok::<(), chronosym_pdb::Error>(())
    /// ```
    pub fn url(&self, document: &str) -> Option<String> {
        let name = document.to_ascii_lowercase();
        let by_prefix = |end| {
            let url = self.prefixes.get(name.get(..end)?)?;
            Some(url.replace('*', &encode(document.get(end..)?)))
        };
        let exact = self.exact.get(&name).cloned();
        exact.or_else(|| (0..=name.len()).rev().find_map(by_prefix))
    }
}

/// Percent-encodes the rest of a path, with `/` between its parts.
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
