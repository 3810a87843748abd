//! `chronosym serve`: a server for Firefox Profiler on this machine.

mod api;
mod assembly;
mod body;
mod server;

use std::io::{BufWriter, Write};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};
use chronosym_export::Granularity;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::api::Api;
use self::server::{Origin, Service};
use crate::args::Serve;
use crate::profiled::Sampled;
use crate::{output, progress};

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
    let origin = Origin {
        host: listener.local_addr()?.to_string(),
        token: token()?,
        viewer: args.viewer.trim_end_matches('/').to_owned(),
    };
    let mut out = output::open(None);
    writeln!(out, "{}", viewer_url(&origin))?;
    out.flush()?;
    drop(out);
    progress::hint("serving until stopped (Ctrl+C); open the address above in a browser");
    let api = Api::new(series.resolver, sampled.symbols, args.sources.clone());
    server::run(listener, Service::new(origin, profile, api))
}

/// 128 random bits, which every request must contain.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn viewer_url(origin: &Origin) -> String {
    let server = format!("http://{}/{}", origin.host, origin.token);
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let profile = encode(&format!("{server}/profile.json"));
    let viewer = &origin.viewer;
    format!(
        "{viewer}/from-url/{profile}/?symbolServer={}",
        encode(&server)
    )
}
