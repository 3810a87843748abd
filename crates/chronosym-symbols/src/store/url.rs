//! Server addresses, and the targets that redirects may have.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters except letters, digits and these.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'+');

/// Why a text is not a server's address. Each variant has the text, without secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// There is no `://` in it.
    #[error("{0}: not a URL")]
    NotAUrl(String),
    /// Another scheme.
    #[error("{0}: only http and https are supported")]
    Scheme(String),
    /// Blanks or control characters.
    #[error("{0}: white space in a URL")]
    WhiteSpace(String),
    /// The host is missing.
    #[error("{0}: no host")]
    NoHost(String),
    /// The host name is invalid.
    #[error("{0}: not a host")]
    NotAHost(String),
}

/// Why a redirect is not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RedirectError {
    #[error("redirected from no URL")]
    FromNowhere,
    #[error("redirected to no URL")]
    ToNowhere,
    #[error("redirected to {0}, not a web address")]
    NotWeb(String),
    #[error("redirected from https to {0}")]
    Downgraded(String),
    #[error("more than {0} redirects")]
    TooMany(u32),
}

/// The address of a symbol or debuginfod server: `http` or `https`, a host, perhaps a path and a
/// query.
///
/// Shown without user name, password and query, which may be secrets (a shared access signature is
/// a query).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ServerUrl {
    /// Scheme, authority and path, no slash at the end.
    base: String,
    /// The query with its question mark, or empty; appended to every path.
    query: String,
}

impl ServerUrl {
    /// Parses an address.
    ///
    /// # Errors
    /// The text is not a valid address.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let text = text.trim();
        let bad = |error: fn(String) -> UrlError| Err(error(redacted(text)));
        let Some((scheme, rest)) = text.split_once("://") else {
            return bad(UrlError::NotAUrl);
        };
        let scheme = scheme.to_ascii_lowercase();
        if scheme != "http" && scheme != "https" {
            return bad(UrlError::Scheme);
        }
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return bad(UrlError::WhiteSpace);
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = match rest.find('?') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let rest = rest.trim_end_matches('/');
        let host = host(authority(rest));
        if host.is_empty() {
            return bad(UrlError::NoHost);
        }
        if !host
            .chars()
            .all(|c| c.is_alphanumeric() || "-._:%".contains(c))
        {
            return bad(UrlError::NotAHost);
        }
        Ok(Self {
            base: format!("{scheme}://{rest}"),
            query: query.to_owned(),
        })
    }

    /// Returns the URL of a file below this address. Components are percent-encoded.
    pub(super) fn join<'a>(&self, components: impl IntoIterator<Item = &'a str>) -> String {
        let mut url = self.base.clone();
        for component in components {
            url.push('/');
            url.extend(utf8_percent_encode(component, &ESCAPED));
        }
        url.push_str(&self.query);
        url
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redacted(&self.base))
    }
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerUrl({self})")
    }
}

/// Returns a URL without user name, password and query.
pub fn redacted(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority = authority(rest);
    let path = &rest[authority.len()..];
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

pub(super) fn authority(rest: &str) -> &str {
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

fn host(authority: &str) -> &str {
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// Returns the target of a redirect from `from` to `location`.
///
/// It may lead to another host and from `http` to `https`, never from `https` to `http` (the
/// request would be public, and others could respond to it) nor to another scheme.
///
/// # Errors
///
/// Why it is not followed.
pub(super) fn redirect(from: &str, location: &str) -> Result<String, RedirectError> {
    let Some((scheme, rest)) = from.split_once("://") else {
        return Err(RedirectError::FromNowhere);
    };
    let location = location.trim();
    if location.is_empty() || location.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(RedirectError::ToNowhere);
    }
    let target = if let Some(other_host) = location.strip_prefix("//") {
        format!("{scheme}://{other_host}")
    } else if location.starts_with('/') {
        format!("{scheme}://{}{location}", authority(rest))
    } else if location
        .split(['/', '?'])
        .next()
        .is_some_and(|s| s.contains(':'))
    {
        location.to_owned()
    } else {
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        let folder = path.rfind('/').map_or(path, |end| &path[..end]);
        format!("{scheme}://{folder}/{location}")
    };
    let lower = target.get(..8).unwrap_or(&target).to_ascii_lowercase();
    if lower.starts_with("https://") {
        Ok(target)
    } else if !lower.starts_with("http://") {
        Err(RedirectError::NotWeb(redacted(&target)))
    } else if scheme.eq_ignore_ascii_case("https") {
        Err(RedirectError::Downgraded(redacted(&target)))
    } else {
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn join_encodes_and_keeps_the_query() {
        let server = ServerUrl::parse("HTTPS://h:8080/s//?sig=a%2Fb").unwrap();
        assert_eq!(
            server.join(["a b#?%.pdb", "é"]),
            "https://h:8080/s/a%20b%23%3F%25.pdb/%C3%A9?sig=a%2Fb"
        );
        assert_eq!(server.to_string(), "https://h:8080/s");
    }

    #[test]
    fn bad_addresses() {
        for bad in [
            "",
            "h",
            "ftp://h",
            "http://",
            "https:///x",
            "http://u@/",
            "http://h/ x",
            "http://:80",
            "http://[]/",
            "http://a*b",
        ] {
            assert!(ServerUrl::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn redirects() {
        let from = "http://u:p@h:1/a/b?c/d";
        let ok = [
            ("/x", "http://u:p@h:1/x"),
            ("x", "http://u:p@h:1/a/x"),
            ("//g/x", "http://g/x"),
            ("https://g/x", "https://g/x"),
            ("http://g/x", "http://g/x"),
            ("x?y=http://z", "http://u:p@h:1/a/x?y=http://z"),
        ];
        for (location, target) in ok {
            assert_eq!(redirect(from, location), Ok(target.to_owned()));
        }
        for bad in [
            "",
            "a b",
            "file:///etc/passwd",
            "FTP://h/x",
            "javascript:1",
            "\u{7f}",
        ] {
            assert!(redirect(from, bad).is_err(), "{bad}");
        }
        assert!(redirect("https://h/a", "http://h/a").is_err());
        assert!(redirect("https://h/a", "HTTP://h/a").is_err());
        assert_eq!(redirect("https://h/a", "/b"), Ok("https://h/b".into()));
    }
}
