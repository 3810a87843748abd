//! Providers of events, and the configuration of a session.

use std::fmt;
use std::str::FromStr;

use crate::ipc::put_string;

/// A provider of events with its keywords and level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Provider {
    /// Its name.
    pub name: String,
    /// A bit for each kind of events.
    pub keywords: u64,
    /// 1 critical, 2 error, 3 warning, 4 informational, 5 verbose.
    pub level: u32,
    /// Arguments as `key=value` separated by semicolons; mostly empty.
    pub arguments: String,
}

impl Provider {
    /// Creates a provider.
    pub fn new(name: impl Into<String>, keywords: u64, level: u32) -> Self {
        Provider {
            name: name.into(),
            keywords,
            level,
            arguments: String::new(),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:#x}:{}", self.name, self.keywords, self.level)?;
        match self.arguments.as_str() {
            "" => Ok(()),
            arguments => write!(f, ":{arguments}"),
        }
    }
}

/// Why a text is not a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no provider (expected NAME[:KEYWORDS[:LEVEL[:ARGUMENTS]]], keywords in hex, levels 1 to 5)"
)]
pub struct ProviderError(String);

impl FromStr for Provider {
    type Err = ProviderError;

    /// Parses `NAME[:KEYWORDS[:LEVEL[:ARGUMENTS]]]`, as `dotnet-trace` does. Without keywords, all
    /// are enabled; the default level is verbose.
    fn from_str(text: &str) -> Result<Self, ProviderError> {
        let mut parts = text.splitn(4, ':');
        let name = parts.next().unwrap_or_default();
        let part = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
        let keywords = part(parts.next()).map(|text| {
            let digits = text.trim_start_matches("0x").trim_start_matches("0X");
            u64::from_str_radix(digits, 16)
        });
        let level = part(parts.next()).map(|text| text.parse());
        let invalid = || ProviderError(text.to_owned());
        let provider = Provider {
            name: name.to_owned(),
            keywords: keywords
                .transpose()
                .map_err(|_| invalid())?
                .unwrap_or(u64::MAX),
            level: level.transpose().map_err(|_| invalid())?.unwrap_or(5),
            arguments: part(parts.next()).unwrap_or_default(),
        };
        let is_name = !name.is_empty() && name.len() <= MAX_NAME;
        match is_name && (1..=5).contains(&provider.level) {
            true => Ok(provider),
            false => Err(invalid()),
        }
    }
}

const MAX_NAME: usize = 1000;

/// The configuration of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The providers. Providers with the same name are merged.
    pub providers: Vec<Provider>,
    /// Code that the runtime lists at the end of the session, as keywords of the rundown provider;
    /// 0 for none. Runtimes before .NET 9 list all or none.
    pub rundown: u64,
    /// Size of the runtime's buffer in MiB. Events are lost while it is full.
    pub buffer_mib: u32,
}

impl Config {
    /// GC, Loader, Jit, NGen, start and end of the rundown, IL maps, code symbols: as
    /// `dotnet-trace`.
    pub const RUNDOWN: u64 = 0x8002_0139;

    /// Records providers, with a rundown at the end.
    pub fn new(providers: impl IntoIterator<Item = Provider>) -> Self {
        let mut joined: Vec<Provider> = Vec::new();
        for provider in providers {
            match joined.iter_mut().find(|it| it.name == provider.name) {
                Some(it) => {
                    it.keywords |= provider.keywords;
                    it.level = it.level.max(provider.level);
                    if it.arguments.is_empty() {
                        it.arguments = provider.arguments;
                    }
                }
                None => joined.push(provider),
            }
        }
        Config {
            providers: joined,
            rundown: Self::RUNDOWN,
            buffer_mib: 256,
        }
    }

    /// The payload of CollectTracing (version 1), CollectTracing2 (2), CollectTracing4 (4).
    pub(crate) fn payload(&self, version: u32) -> Vec<u8> {
        let mut out = self.buffer_mib.max(1).to_le_bytes().to_vec();
        // The nettrace format.
        out.extend(1u32.to_le_bytes());
        match version {
            1 => (),
            2 => out.push((self.rundown != 0).into()),
            _ => {
                out.extend(self.rundown.to_le_bytes());
                // With stacks.
                out.push(1);
            }
        }
        out.extend((self.providers.len() as u32).to_le_bytes());
        for provider in &self.providers {
            out.extend(provider.keywords.to_le_bytes());
            out.extend(provider.level.to_le_bytes());
            put_string(&mut out, &provider.name);
            put_string(&mut out, &provider.arguments);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_spelled_as_for_dotnet_trace() {
        let parse = |text: &str| text.parse::<Provider>();
        assert_eq!(parse("A:0x10:4"), Ok(Provider::new("A", 0x10, 4)));
        assert_eq!(parse("A"), Ok(Provider::new("A", u64::MAX, 5)));
        assert_eq!(parse("A::3"), Ok(Provider::new("A", u64::MAX, 3)));
        let with_arguments = parse("A:1:5:k=v:w").expect("a provider");
        assert_eq!(with_arguments.arguments, "k=v:w");
        assert_eq!(with_arguments.to_string(), "A:0x1:5:k=v:w");
        for text in ["", ":1", "A:x", "A:1:6", "A:1:0", "A:1:y"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_session_has_each_provider_once() {
        let config = Config::new([
            Provider::new("A", 1, 4),
            Provider::new("B", 2, 4),
            Provider::new("A", 8, 5),
        ]);
        let providers = [Provider::new("A", 9, 5), Provider::new("B", 2, 4)];
        assert_eq!(config.providers, providers);
    }

    #[test]
    fn payloads_have_the_fields_of_their_version() {
        let config = Config::new([Provider::new("A", 1, 4)]);
        let providers = b"\x01\0\0\0\x01\0\0\0\0\0\0\0\x04\0\0\0\x02\0\0\0A\0\0\0\x01\0\0\0\0\0";
        for (version, middle) in [
            (1, &b""[..]),
            (2, b"\x01"),
            (4, b"\x39\x01\x02\x80\0\0\0\0\x01"),
        ] {
            let expected = [&b"\0\x01\0\0\x01\0\0\0"[..], middle, providers].concat();
            assert_eq!(config.payload(version), expected, "{version}");
        }
    }
}
