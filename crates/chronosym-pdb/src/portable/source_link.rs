//! Source Link: from a document's name to the URL of its text.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Error, Result};

/// Bytes of a path or a URL; longer ones are left out.
const MOST: usize = 4 << 10;

/// A Source Link map (the `documents` object of its JSON).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLink {
    /// URLs by path, in lower case.
    whole: BTreeMap<String, String>,
    /// By what stands before the star that ends a path; one in the URL stands for the rest.
    below: BTreeMap<String, String>,
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
        let (mut whole, mut below) = (BTreeMap::new(), BTreeMap::new());
        for (path, url) in documents.ok_or(damaged)? {
            let Some(url) = url.as_str().filter(|url| path.len().max(url.len()) <= MOST) else {
                continue;
            };
            let (of, start) = match path.strip_suffix('*') {
                Some(start) => (&mut below, start),
                None => (&mut whole, &**path),
            };
            // A star may only stand at the end of the path, and then once in the URL.
            let stars = path.matches('*').count();
            if stars == url.matches('*').count() && !start.contains('*') {
                let known = of.entry(start.to_ascii_lowercase());
                known.or_insert_with(|| url.to_owned());
            }
        }
        Ok(Self { whole, below })
    }

    /// The URL for a document: of a path that is its name, or else of the longest that it begins with. Names compare without
    /// regard to ASCII case, as the format says.
    pub fn url(&self, document: &str) -> Option<String> {
        let name = document.to_ascii_lowercase();
        let below = |end| {
            let url = self.below.get(name.get(..end)?)?;
            Some(url.replace('*', &encode(document.get(end..)?)))
        };
        let whole = self.whole.get(&name).cloned();
        whole.or_else(|| (0..=name.len()).rev().find_map(below))
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
        "bad*star*": "https://host.test/*", "nostar*": "https://host.test/x"}}"#;

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
        assert_eq!(url(r"D:\src\a.cs"), None);
    }

    #[test]
    fn other_json_is_refused() {
        for bad in ["", "{", "[]", r#"{"documents": []}"#] {
            assert!(SourceLink::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
