//! `chronosym serve`: a server for Firefox Profiler on this machine.

mod api;
mod assembly;

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use chronosym_etl::ReadAt;
use chronosym_export::Granularity;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tiny_http::{Header, Method, Request, Response, ResponseBox, Server};

use self::api::Api;
use crate::args::Serve;
use crate::profiled::Sampled;
use crate::{output, progress};

/// The viewer asks for a few thousand addresses at most.
const LONGEST_QUESTION: u64 = 16 << 20;
/// A reader that stalls keeps the others waiting no longer than there are these.
const WORKERS: usize = 4;

pub fn run(args: &Serve) -> Result<()> {
    let (selection, markers) = (&args.selection, crate::limits::get().markers);
    let sampled = Sampled::read(&args.traces, &args.symbols, selection, markers)?;
    let granularity = Granularity {
        addresses: selection.samples.addresses,
        ..Granularity::default()
    };
    let series = sampled.series(granularity);
    if series.samples.is_empty() {
        bail!("no sample passes; `chronosym info` shows what the trace has");
    }
    // Nameless: nothing stays of it when the server is stopped.
    let profile = tempfile::tempfile().context("cannot keep the profile")?;
    let mut out = BufWriter::new(&profile);
    chronosym_export::write_firefox(&series, &mut out)?;
    out.flush()?;
    drop(out);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .with_context(|| format!("cannot listen on port {}", args.port))?;
    let place = Place {
        host: listener.local_addr()?.to_string(),
        token: token()?,
        viewer: args.viewer.trim_end_matches('/').to_owned(),
    };
    // The server starts threads of its own, and panics where there is no room for them.
    let thread = std::thread::Builder::new().spawn(|| ());
    thread.context("cannot start a thread")?;
    let server =
        Server::from_listener(listener, None).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut out = output::open(None);
    writeln!(out, "{}", place.viewer_url())?;
    out.flush()?;
    drop(out);
    progress::hint("serving until stopped (Ctrl+C); open the address above in a browser");
    let service = Service {
        place,
        profile: Arc::new(profile),
        api: Api::new(series.resolver, sampled.symbols, args.sources.clone()),
    };
    let work = || {
        while let Ok(request) = server.recv() {
            // Who goes away before the answer does not want it.
            let _ = service.answer(request);
        }
    };
    std::thread::scope(|scope| {
        let spawn = |_| std::thread::Builder::new().spawn_scoped(scope, work);
        // Fewer do where there is no room for all.
        let _ = (1..WORKERS).try_for_each(|at| spawn(at).map(drop));
        work();
    });
    Ok(())
}

/// 128 random bits: who does not know them gets nothing.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Where the server is, and whom it serves.
struct Place {
    host: String,
    token: String,
    viewer: String,
}

impl Place {
    fn viewer_url(&self) -> String {
        let server = format!("http://{}/{}", self.host, self.token);
        let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let profile = encode(&format!("{server}/profile.json"));
        format!(
            "{}/from-url/{profile}/?symbolServer={}",
            self.viewer,
            encode(&server)
        )
    }

    /// The part of a path after the token; nothing for anybody else's.
    fn strip<'u>(&self, url: &'u str) -> Option<&'u str> {
        let path = url.split(['?', '#']).next()?.strip_prefix('/')?;
        let (token, rest) = path.split_at_checked(self.token.len())?;
        // As long for any wrong token: bytes are compared to the last.
        let differ = token
            .bytes()
            .zip(self.token.bytes())
            .fold(0, |all, (a, b)| all | (a ^ b));
        (differ == 0).then_some(rest)
    }
}

struct Service {
    place: Place,
    profile: Arc<File>,
    api: Api,
}

/// The bytes of a file from its begin to its end, whoever reads it beside.
struct Whole {
    file: Arc<File>,
    at: u64,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.at, buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Service {
    fn answer(&self, mut request: Request) -> io::Result<()> {
        let sent = |name: &'static str| {
            let mut headers = request.headers().iter();
            let found = headers.find(|header| header.field.equiv(name));
            found.map(|header| header.value.as_str().to_owned())
        };
        let (host, origin) = (sent("Host"), sent("Origin"));
        let viewer = &self.place.viewer;
        // A page of another site may ask under a name that leads here, but it cannot say this host.
        let is_allowed = host.as_deref() == Some(&self.place.host)
            && origin.as_deref().is_none_or(|origin| origin == viewer);
        let mut response = match is_allowed {
            true => self.find(&mut request)?,
            false => Response::empty(403).boxed(),
        };
        let mut headers = vec![
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Vary", "Origin"),
        ];
        if is_allowed && origin.is_some() {
            headers.push(("Access-Control-Allow-Origin", viewer));
            headers.push(("Access-Control-Allow-Methods", "GET, POST"));
            headers.push(("Access-Control-Allow-Headers", "content-type"));
            headers.push(("Access-Control-Allow-Private-Network", "true"));
        }
        let headers = headers.into_iter().filter_map(header);
        headers.for_each(|header| response.add_header(header));
        request.respond(response)
    }

    fn find(&self, request: &mut Request) -> io::Result<ResponseBox> {
        let empty = |status: u16| Ok(Response::empty(status).boxed());
        let Some(path) = self.place.strip(request.url()) else {
            return empty(404);
        };
        let path = path.to_owned();
        let mut response = match (request.method(), path.as_str()) {
            (Method::Get, "/profile.json") => {
                let file = Arc::clone(&self.profile);
                let length = usize::try_from(file.metadata()?.len()).ok();
                let whole = Whole { file, at: 0 };
                Response::new(200.into(), Vec::new(), whole, length, None).boxed()
            }
            (Method::Post, question @ ("/symbolicate/v5" | "/source/v1" | "/asm/v1")) => {
                let mut text = Vec::new();
                let reader = request.as_reader();
                reader.take(LONGEST_QUESTION + 1).read_to_end(&mut text)?;
                if text.len() as u64 > LONGEST_QUESTION {
                    return empty(413);
                }
                Response::from_string(self.api.answer(question, &text)).boxed()
            }
            (method, "/profile.json" | "/symbolicate/v5" | "/source/v1" | "/asm/v1") => {
                return empty(if *method == Method::Options { 204 } else { 405 });
            }
            _ => return empty(404),
        };
        let json = header(("Content-Type", "application/json"));
        json.into_iter().for_each(|json| response.add_header(json));
        Ok(response)
    }
}

fn header((name, value): (&str, &str)) -> Option<Header> {
    Header::from_bytes(name, value).ok()
}
