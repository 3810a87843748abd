//! `chronosym serve`: a server of the report, or of a profile for Firefox Profiler, for this
//! machine.

mod api;
mod assembly;
mod body;
mod browser;
mod server;

use std::io::{BufWriter, IsTerminal, Write};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result, bail};
use chronosym_export::Granularity;
use chronosym_types::Hex;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use self::api::Api;
use self::server::{Answers, Origin, Service};
use super::report;
use crate::args::Serve;
use crate::profiled::Sampled;
use crate::{output, progress};

pub fn run(args: &Serve) -> Result<()> {
    report::check_sources(&args.source.sources)?;
    let selection = &args.selection;
    let sampled = Sampled::read_with(&args.traces, &args.symbols, selection, report::options())?;
    sampled.check_samples()?;
    let granularity = Granularity {
        addresses: selection.samples.addresses,
        ..Granularity::default()
    };
    let series = sampled.series(granularity);
    if series.samples.is_empty() {
        bail!("no sample passes the filters; `chronosym info` shows what the trace contains");
    }
    // Nameless: nothing stays of it when the server is stopped.
    let content = tempfile::tempfile().context("cannot keep the report")?;
    let mut out = BufWriter::new(&content);
    let answers = match args.viewer {
        Some(_) => {
            chronosym_export::write_firefox(&series, &mut out)?;
            let folders = args.source.sources.clone();
            Answers::Viewer(Api::new(series.resolver, sampled.symbols, folders))
        }
        None => {
            let raw = selection.samples.raw;
            let (traces, source) = (&args.traces, &args.source);
            Answers::Report(report::write_served(
                series, &sampled, traces, source, raw, &mut out,
            )?)
        }
    };
    out.flush()?;
    drop(out);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port))
        .with_context(|| format!("cannot listen on port {}", args.port))?;
    let origin = Origin {
        host: listener.local_addr()?.to_string(),
        token: token()?,
        viewer: args.viewer.clone(),
    };
    let url = url(&origin);
    let mut out = output::open(None);
    writeln!(out, "{url}")?;
    out.flush()?;
    drop(out);
    let is_opened = !args.no_open && std::io::stdout().is_terminal();
    // Kept while the server runs.
    let _page = is_opened.then(|| browser::open(&url)).flatten();
    progress::hint("serving until stopped (Ctrl+C); open the address above in a browser");
    server::run(listener, Service::new(origin, content, answers))
}

/// 128 random bits, which every request must contain.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    Ok(Hex(&bytes).to_string())
}

/// Returns the address that a browser opens.
fn url(origin: &Origin) -> String {
    let server = format!("http://{}/{}", origin.host, origin.token);
    let Some(viewer) = &origin.viewer else {
        return format!("{server}/");
    };
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let profile = encode(&format!("{server}/profile.json"));
    format!(
        "{viewer}/from-url/{profile}/?symbolServer={}",
        encode(&server)
    )
}
