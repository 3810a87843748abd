//! Sends one request at a time to a symbol server: the HTTP part of the blocking driver.
//!
//! The search interprets the status and decides about redirects and retries for every driver; this
//! module does not follow redirects or retry.

use std::cell::Cell;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use flate2::read::MultiGzDecoder;
use percent_encoding::percent_decode_str;
use ureq::http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, LOCATION, RETRY_AFTER,
};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::config::FetchLimits;
use super::disk::create_new;
use super::driver::{Fetched, NotFetched};
use super::url::authority;
use crate::unpack_limit::unpack_limit;

/// Maximum number of bytes read of the body of an error response.
const MAX_ERROR_BODY: u64 = 64 << 10;

/// An HTTP client that keeps its connections. Uses the proxy that the environment names.
///
/// Certificates are checked against the system's roots (or those of `SSL_CERT_FILE` and
/// `SSL_CERT_DIR`), so that the servers of a company work, and against Mozilla's where the system
/// has none.
#[derive(Debug)]
pub struct Client {
    plain: ureq::Agent,
    limits: FetchLimits,
    /// For https; made on first use, because reading the roots takes a while.
    secure: OnceLock<ureq::Agent>,
}

impl Client {
    /// Creates a client with these timeouts.
    pub fn new(limits: &FetchLimits) -> Self {
        Self {
            plain: agent(limits, TlsConfig::default()),
            limits: limits.clone(),
            secure: OnceLock::new(),
        }
    }

    fn agent(&self, url: &str) -> &ureq::Agent {
        if url
            .get(..6)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
        {
            self.secure
                .get_or_init(|| agent(&self.limits, system_roots()))
        } else {
            &self.plain
        }
    }

    /// Requests `url` and writes the body of a 200 to the new file `to`; removes it again on any
    /// failure.
    pub fn download(&self, url: &str, to: &Path, limit: u64) -> Fetched {
        let mut created = false;
        let create = || create_new(to).inspect(|_| created = true);
        let fetched = self.get(url, limit, create);
        if created && fetched != Fetched::Saved {
            let _ = fs::remove_file(to);
        }
        fetched
    }

    /// Requests `url` and returns the body of a 200.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub fn fetch(&self, url: &str, limit: u64) -> Result<Vec<u8>, NotFetched> {
        let mut body = Vec::new();
        match self.get(url, limit, || Ok(&mut body)) {
            Fetched::Saved => Ok(body),
            Fetched::Status { code, .. } => Err(NotFetched::Status(code)),
            Fetched::TooLarge => Err(NotFetched::TooLarge(limit)),
            Fetched::TimedOut => Err(NotFetched::Failed("the server took too long".into())),
            Fetched::Unreachable(why) | Fetched::Broken(why) | Fetched::NotSaved(why) => {
                Err(NotFetched::Failed(why))
            }
        }
    }

    /// Requests `url` and writes the body of a 200 to the writer that `create` returns.
    ///
    /// A body in content encoding gzip is decoded; `limit` counts decoded bytes, whose ratio to the
    /// encoded ones is limited as well.
    fn get<W: Write>(
        &self,
        url: &str,
        limit: u64,
        create: impl FnOnce() -> io::Result<W>,
    ) -> Fetched {
        let (url, credentials) = split_credentials(url);
        let mut request = self.agent(&url).get(&url).header(ACCEPT_ENCODING, "gzip");
        if let Some(credentials) = credentials {
            request = request.header(
                AUTHORIZATION,
                format!("Basic {}", BASE64.encode(credentials)),
            );
        }
        let response = match request.call() {
            Ok(response) => response,
            Err(error) => return failed(error),
        };
        let header = |name| response.headers().get(name)?.to_str().ok();
        let code = response.status().as_u16();
        if code != 200 {
            let retry_after = header(RETRY_AFTER).and_then(|text| text.trim().parse().ok());
            let location = header(LOCATION).map(str::to_owned);
            // A connection is reused only if its last body was read to the end, and most responses
            // are such a 404. The body may also arrive slowly.
            let mut body = response.into_body().into_reader().take(MAX_ERROR_BODY);
            let _ = save(&mut body, &mut io::sink(), &|| u64::MAX, None, &self.limits);
            return Fetched::Status {
                code,
                location,
                retry_after: retry_after.map(Duration::from_secs),
            };
        }
        let gzip = |it: &str| ["gzip", "x-gzip"].contains(&&*it.trim().to_lowercase());
        let encoded = header(CONTENT_ENCODING).is_some_and(gzip);
        let length = header(CONTENT_LENGTH).and_then(|text| text.trim().parse::<u64>().ok());
        let length = length.filter(|_| !encoded);
        if length.is_some_and(|length| length > limit) {
            return Fetched::TooLarge;
        }
        let arrived = Cell::new(0);
        let arriving = Counted {
            source: response.into_body().into_reader(),
            count: &arrived,
        };
        let mut body: Box<dyn Read> = match encoded {
            true => Box::new(MultiGzDecoder::new(arriving)),
            false => Box::new(arriving),
        };
        let max = || limit.min(unpack_limit(arrived.get()));
        match create() {
            Ok(mut out) => save(&mut body, &mut out, &max, length, &self.limits),
            Err(error) => Fetched::NotSaved(error.to_string()),
        }
    }
}

fn agent(limits: &FetchLimits, tls: TlsConfig) -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .user_agent(concat!("chronosym/", env!("CARGO_PKG_VERSION")))
        .timeout_global(Some(limits.total_timeout))
        .timeout_connect(Some(limits.connect_timeout))
        .timeout_recv_response(Some(limits.idle_timeout))
        .timeout_per_read(Some(limits.idle_timeout))
        .tls_config(tls)
        .build()
        .new_agent()
}

fn system_roots() -> TlsConfig {
    let roots = rustls_native_certs::load_native_certs().certs;
    let roots = match roots.is_empty() {
        true => RootCerts::WebPki,
        false => roots
            .iter()
            .map(|root| Certificate::from_der(root).to_owned())
            .into(),
    };
    TlsConfig::builder().root_certs(roots).build()
}

/// Counts the bytes read from a source.
struct Counted<'c, R> {
    source: R,
    count: &'c Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buffer)?;
        self.count.set(self.count.get().saturating_add(n as u64));
        Ok(n)
    }
}

fn save(
    body: &mut impl Read,
    file: &mut impl Write,
    limit: &dyn Fn() -> u64,
    length: Option<u64>,
    limits: &FetchLimits,
) -> Fetched {
    let start = Instant::now();
    let mut buffer = vec![0; 64 << 10];
    let mut saved = 0_u64;
    loop {
        let count = match body.read(&mut buffer) {
            Ok(0) if length.is_some_and(|length| length != saved) => {
                return Fetched::Broken("the body is incomplete".into());
            }
            Ok(0) => return Fetched::Saved,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return failed(error.into()),
        };
        saved = saved.saturating_add(count as u64);
        if saved > limit() {
            return Fetched::TooLarge;
        }
        let elapsed = start.elapsed();
        let least = u128::from(limits.least_speed).saturating_mul(elapsed.as_millis()) / 1000;
        if elapsed >= limits.speed_after && u128::from(saved) < least {
            return Fetched::TimedOut;
        }
        if let Err(error) = file.write_all(buffer.get(..count).unwrap_or_default()) {
            return Fetched::NotSaved(error.to_string());
        }
    }
}

fn failed(error: ureq::Error) -> Fetched {
    use io::ErrorKind;
    match error {
        ureq::Error::Timeout(_) => Fetched::TimedOut,
        ureq::Error::Io(error) if error.kind() == ErrorKind::TimedOut => Fetched::TimedOut,
        ureq::Error::Io(error)
            if matches!(
                error.kind(),
                ErrorKind::ConnectionRefused
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable
                    | ErrorKind::AddrNotAvailable
            ) =>
        {
            Fetched::Unreachable(error.to_string())
        }
        ureq::Error::HostNotFound
        | ureq::Error::ConnectionFailed
        | ureq::Error::InvalidProxyUrl
        | ureq::Error::Tls(_)
        | ureq::Error::Rustls(_)
        | ureq::Error::Pem(_) => Fetched::Unreachable(error.to_string()),
        // Its text repeats the URI, which may contain secrets.
        ureq::Error::BadUri(_) => Fetched::Unreachable("bad address".into()),
        error => Fetched::Broken(error.to_string()),
    }
}

/// Returns the URL without `user:password@`, and those, percent-decoded.
fn split_credentials(url: &str) -> (String, Option<Vec<u8>>) {
    let split = || {
        let (scheme, rest) = url.split_once("://")?;
        let (credentials, host) = authority(rest).rsplit_once('@')?;
        let path = &rest[authority(rest).len()..];
        let credentials = percent_decode_str(credentials).collect();
        Some((format!("{scheme}://{host}{path}"), Some(credentials)))
    };
    split().unwrap_or_else(|| (url.to_owned(), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a byte now and then.
    struct Drip(u32);

    impl Read for Drip {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.0 += 1;
            assert!(self.0 < 1000, "it is read without end");
            std::thread::sleep(Duration::from_millis(10));
            to[0] = 0;
            Ok(1)
        }
    }

    #[test]
    fn a_body_that_drips_is_given_up() {
        let limits = FetchLimits {
            speed_after: Duration::from_millis(200),
            ..FetchLimits::default()
        };
        let mut file = tempfile::tempfile().unwrap();
        let fetched = save(&mut Drip(0), &mut file, &|| 1 << 20, None, &limits);
        assert_eq!(fetched, Fetched::TimedOut);
        // An endless body ends at the limit.
        let fetched = save(&mut io::repeat(0), &mut file, &|| 1 << 20, None, &limits);
        assert_eq!(fetched, Fetched::TooLarge);
    }

    #[test]
    fn credentials() {
        let split = |url| {
            let (url, credentials) = split_credentials(url);
            (url, credentials.map(|c| String::from_utf8(c).unwrap()))
        };
        assert_eq!(split("http://h/a@b"), ("http://h/a@b".into(), None));
        let (url, header) = split("https://Aladdin:open%20sesame@h:1/x?y");
        assert_eq!(url, "https://h:1/x?y");
        assert_eq!(header.as_deref(), Some("Aladdin:open sesame"));
    }
}
