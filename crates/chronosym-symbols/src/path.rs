//! The syntax of `_NT_SYMBOL_PATH` and `DEBUGINFOD_URLS`.
//!
//! Elements are separated by `;` and searched from left to right:
//!
//! | element | meaning |
//! |---|---|
//! | `folder` | a plain folder: file names first, then the keyed layout of a store |
//! | `srv*store*store*…` | a chain of stores, the nearest first; what a farther one has is copied to the nearer ones |
//! | `symsrv*dll*store*…` | the same; the DLL's name means nothing here |
//! | `srv**server` | an empty store is the default downstream store: the cache folder |
//! | `srv*` | the cache folder and Microsoft's public server |
//! | `cache*folder` | caches what the elements to its right fetch; `cache*` alone means the cache folder |
//! | `https://server/path` | the same as `srv*https://server/path` |
//!
//! Source: Microsoft's "Advanced SymSrv Use" and "Symbol path for Windows debuggers" pages.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::store::url::{ServerUrl, UrlError};

/// Microsoft's public symbol server, queried only if a symbol path names it or contains `srv*`.
pub const MICROSOFT_SERVER: &str = "https://msdl.microsoft.com/download/symbols";

/// A parsed symbol path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolPath {
    /// In the order of the search.
    pub elements: Vec<PathElement>,
    /// Descriptions of invalid elements, which the search ignores.
    pub problems: Vec<String>,
}

/// One element of a symbol path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathElement {
    /// A plain folder.
    Folder(PathBuf),
    /// Files fetched by later elements are cached in this folder; `None` is the default cache
    /// folder.
    Cache(Option<PathBuf>),
    /// A chain of stores, the nearest first. Never empty.
    Chain(Vec<Store>),
}

/// One store of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Store {
    /// The default downstream store: the cache folder.
    Default,
    /// A folder or share with the keyed layout.
    Folder(PathBuf),
    /// A server.
    Server(ServerUrl),
}

impl SymbolPath {
    /// Parses a symbol path. Ignores empty elements; describes invalid ones in
    /// [`problems`](Self::problems).
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_symbols::path::SymbolPath;
    ///
    /// let path = SymbolPath::parse("srv*/cache*https://symbols.example.com;/builds/app");
    /// assert_eq!(path.elements.len(), 2);
    /// assert!(path.has_server());
    /// assert!(path.problems.is_empty());
    /// ```
    pub fn parse(text: &str) -> Self {
        let mut path = Self::default();
        for element in text.split(';') {
            let element = element.trim().trim_matches('"').trim();
            if element.is_empty() {
                continue;
            }
            match parse_element(element) {
                Ok(element) => path.elements.push(element),
                Err(why) => path.problems.push(why.to_string()),
            }
        }
        path
    }

    /// Returns true if the path has a server.
    pub fn has_server(&self) -> bool {
        self.elements.iter().any(|element| match element {
            PathElement::Chain(stores) => stores.iter().any(|s| matches!(s, Store::Server(_))),
            PathElement::Folder(_) | PathElement::Cache(_) => false,
        })
    }
}

impl fmt::Display for SymbolPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, element) in self.elements.iter().enumerate() {
            if i > 0 {
                f.write_str(";")?;
            }
            match element {
                PathElement::Folder(folder) => write!(f, "{}", folder.display())?,
                PathElement::Cache(None) => f.write_str("cache*")?,
                PathElement::Cache(Some(folder)) => write!(f, "cache*{}", folder.display())?,
                PathElement::Chain(stores) => {
                    f.write_str("srv")?;
                    for store in stores {
                        match store {
                            Store::Default => f.write_str("*")?,
                            Store::Folder(folder) => write!(f, "*{}", folder.display())?,
                            Store::Server(server) => write!(f, "*{server}")?,
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Why an element is invalid.
#[derive(Debug, thiserror::Error)]
enum ElementError {
    #[error("{0}: no store is named")]
    NoStore(String),
    #[error("{0}: cache* takes one folder")]
    CacheFolders(String),
    #[error("{0}: unknown keyword before *")]
    Keyword(String),
    #[error("{0}: {1}")]
    Server(String, UrlError),
}

fn parse_element(element: &str) -> Result<PathElement, ElementError> {
    let mut parts = element.split('*').map(str::trim);
    let keyword = parts.next().unwrap_or_default().to_ascii_lowercase();
    match keyword.as_str() {
        "srv" if element.contains('*') => parse_chain(element, parts.collect()),
        "symsrv" if element.contains('*') => {
            parts.next();
            let stores: Vec<_> = parts.collect();
            if stores.is_empty() {
                return Err(ElementError::NoStore(element.to_owned()));
            }
            parse_chain(element, stores)
        }
        "cache" if element.contains('*') => {
            let folder = parts.next().filter(|folder| !folder.is_empty());
            match parts.next() {
                None => Ok(PathElement::Cache(folder.map(PathBuf::from))),
                Some(_) => Err(ElementError::CacheFolders(element.to_owned())),
            }
        }
        _ if is_url(element) && !element.contains('*') => parse_chain(element, vec![element]),
        _ if element.contains('*') => Err(ElementError::Keyword(element.to_owned())),
        _ => Ok(PathElement::Folder(PathBuf::from(element))),
    }
}

fn parse_chain(element: &str, parts: Vec<&str>) -> Result<PathElement, ElementError> {
    let server = |text: &str| {
        ServerUrl::parse(text).map_err(|why| ElementError::Server(element.to_owned(), why))
    };
    if parts.iter().all(|part| part.is_empty()) {
        return Ok(PathElement::Chain(vec![
            Store::Default,
            Store::Server(server(MICROSOFT_SERVER)?),
        ]));
    }
    let store = |part: &str| match part {
        "" => Ok(Store::Default),
        _ if is_url(part) => server(part).map(Store::Server),
        _ => Ok(Store::Folder(PathBuf::from(part))),
    };
    let stores: Result<_, _> = parts.into_iter().map(store).collect();
    stores.map(PathElement::Chain)
}

fn is_url(text: &str) -> bool {
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://")
}

/// Returns true for a share of another machine: `\\server\share`, on Windows with any mixture of
/// slashes.
pub(crate) fn is_share(path: &Path) -> bool {
    let slash = |byte: &u8| *byte == b'\\' || (cfg!(windows) && *byte == b'/');
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.get(..2).is_some_and(|two| two.iter().all(slash))
}

/// Parses `DEBUGINFOD_URLS`, which is separated by white space. Returns the servers and
/// descriptions of invalid elements.
///
/// Ignores the verification policies of elfutils (such as `ima:enforcing`): every file is verified
/// by its build ID.
pub fn parse_debuginfod_urls(text: &str) -> (Vec<ServerUrl>, Vec<String>) {
    let mut servers = Vec::new();
    let mut problems = Vec::new();
    let elements = text.split_whitespace();
    for element in elements.filter(|element| !element.starts_with("ima:")) {
        match ServerUrl::parse(element) {
            Ok(server) => servers.push(server),
            Err(why) => problems.push(why.to_string()),
        }
    }
    (servers, problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Store {
        Store::Server(ServerUrl::parse(text).unwrap())
    }

    fn folder(text: &str) -> Store {
        Store::Folder(text.into())
    }

    #[test]
    fn elements() {
        let plain = |text: &str| vec![PathElement::Folder(text.into())];
        let chain = |stores: &[Store]| vec![PathElement::Chain(stores.to_vec())];
        let (local, share) = (folder(r"c:\l"), folder(r"\\h\m"));
        let cases = [
            ("", vec![]),
            (" ; ;;", vec![]),
            ("/a b", plain("/a b")),
            ("\"/a b\"", plain("/a b")),
            (r"C:\s", plain(r"C:\s")),
            ("srv*", chain(&[Store::Default, server(MICROSOFT_SERVER)])),
            (
                "SRV**https://h/s",
                chain(&[Store::Default, server("https://h/s")]),
            ),
            (
                r"srv*c:\l*\\h\m*https://h/s/",
                chain(&[local, share, server("https://h/s")]),
            ),
            ("srv*/a*", chain(&[folder("/a"), Store::Default])),
            ("symsrv*symsrv.dll*/a", chain(&[folder("/a")])),
            ("http://h/s", chain(&[server("http://h/s")])),
            (
                "cache*;Cache*/c;/d",
                vec![
                    PathElement::Cache(None),
                    PathElement::Cache(Some("/c".into())),
                    PathElement::Folder("/d".into()),
                ],
            ),
            ("srv", plain("srv")),
        ];
        for (text, elements) in cases {
            let path = SymbolPath::parse(text);
            assert_eq!(path.elements, elements, "{text}");
            assert!(path.problems.is_empty(), "{text}: {:?}", path.problems);
        }
    }

    #[test]
    fn other_elements_of_an_invalid_path_count() {
        let path = SymbolPath::parse("symsrv*x.dll;foo*bar;cache*/a*/b;srv*https://;/ok");
        assert_eq!(path.elements, [PathElement::Folder("/ok".into())]);
        assert_eq!(path.problems.len(), 4, "{:?}", path.problems);
    }

    #[test]
    fn display_parses_to_the_same_path_without_secrets() {
        let text = "/a;cache*;cache*/c;srv*/d**https://h/s";
        let path = SymbolPath::parse(text);
        assert_eq!(path.to_string(), text);
        let secret = SymbolPath::parse("srv*https://me:pw@h/s?sig=key");
        assert_eq!(secret.to_string(), "srv*https://h/s");
        assert!(!format!("{secret:?}").contains("pw"));
    }

    #[test]
    fn shares() {
        assert!(is_share(Path::new(r"\\h\s")));
        assert_eq!(is_share(Path::new("//h/s")), cfg!(windows));
        assert!(
            !is_share(Path::new("/h")) && !is_share(Path::new("C:\\h")) && !is_share(Path::new(""))
        );
    }

    #[test]
    fn servers() {
        assert!(SymbolPath::parse("/a;srv*/b*http://h/").has_server());
        assert!(!SymbolPath::parse("/a;srv*/b;cache*/c").has_server());
        let (servers, problems) =
            parse_debuginfod_urls(" https://a/ \n ima:enforcing http://b file:///c ");
        assert_eq!(servers.len(), 2);
        assert_eq!(problems.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn any_text_parses_and_its_display_parses_to_the_same(text in "([a-zA-Z:/*; .\\\\]|srv\\*|cache\\*|https?://[a-z/?@]|\\PC){0,40}") {
            let path = SymbolPath::parse(&text);
            let again = SymbolPath::parse(&path.to_string());
            proptest::prop_assert_eq!(path.to_string(), again.to_string());
            proptest::prop_assert!(again.problems.is_empty(), "{:?}", again.problems);
        }
    }
}
