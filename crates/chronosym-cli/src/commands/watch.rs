//! `chronosym watch`.

use std::io::{self, IsTerminal, Seek, SeekFrom, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use chronosym::source::nettrace::NettraceStream;
use chronosym::source::{EventStream, read_live};
use chronosym::{Budget, DiagnosticKind, Filter, LiveSession, Timeline};
use chronosym_export::{By, Sort, hotspots, user_methods, write_top};
use chronosym_record::{Config, Limits, Profile, Runtime, Session};

use super::dotnet_process;
use crate::args::Watch;
use crate::profiled::shown;
use crate::{interrupt, limits, output, progress};

/// Samples that may wait to be shown.
const MOST_SAMPLES: u64 = 1 << 20;
/// Code that ended is named for so long: events of the runtime arrive late.
const KEPT_NS: u64 = 10_000_000_000;
/// Bytes of the list of code.
const MOST_LIST: u64 = 1 << 30;

pub fn run(args: &Watch) -> Result<()> {
    let target = dotnet_process::target(args.pid, args.name.as_deref())?;
    let runtime = Runtime::of(&target);
    let mut live = LiveSession::new();
    live.keep_samples(MOST_SAMPLES);
    live.limit_memory(Budget::of(&limits::get(), None));
    let list = dotnet_process::list_code(&runtime);
    let mut config = Config::new(Profile::Cpu.providers());
    // A list of code at the end would not be read.
    config.rundown = 0;
    let session = runtime.collect(&config);
    let session =
        session.with_context(|| format!("cannot watch {} ({})", target.name, target.pid))?;
    if let Some(list) = list {
        read_list(list, &mut live)?;
    }
    let (mut to_reader, from_session) = UnixStream::pair().context("cannot make a pipe")?;
    let ends = Arc::new(AtomicBool::new(false));
    interrupt::catch();
    let (is_over, duration) = (ends.clone(), args.duration.map(Duration::from_nanos));
    let began = Instant::now();
    let recorder = thread::spawn(move || {
        session.record(&mut to_reader, &Limits::default(), |_| {
            let is_late = duration.is_some_and(|duration| began.elapsed() >= duration);
            is_late || interrupt::is_caught() || is_over.load(Ordering::Relaxed)
        })
    });
    let shown = show(args, from_session, &mut live);
    ends.store(true, Ordering::Relaxed);
    _ = recorder.join();
    interrupt::release();
    shown
}

/// Reads the list of the code that was compiled before.
fn read_list(list: Session, live: &mut LiveSession) -> Result<()> {
    let mut file = tempfile::tempfile().context("cannot make a temporary file")?;
    list.record(&mut file, &Limits::default().bytes(MOST_LIST), |_| true)?;
    file.seek(SeekFrom::Start(0))
        .context("cannot read a temporary file")?;
    let mut stream = NettraceStream::new(file, Default::default())?;
    Ok(read_live(&mut stream, live)?)
}

/// Shows a table after each interval, until the stream ends.
fn show(args: &Watch, stream: UnixStream, live: &mut LiveSession) -> Result<()> {
    let mut stream = NettraceStream::new(stream, Default::default())?;
    let interval = Duration::from_nanos(args.interval);
    let mut last = Instant::now();
    while live
        .read_batch(|session| stream.read_batch(session))?
        .is_some()
    {
        if last.elapsed() >= interval {
            last = Instant::now();
            let (timeline, dropped) = live.take_samples();
            write_table(args, &timeline)?;
            if dropped > 0 {
                progress::note(&format!("{dropped} samples were too many to be shown"));
            }
            let diagnostics = timeline.diagnostics();
            let of_limits = diagnostics
                .iter()
                .filter(|it| it.kind == DiagnosticKind::Limit);
            for diagnostic in of_limits {
                progress::note(&diagnostic.to_string());
            }
            live.forget_before(live.watermark().saturating_sub(KEPT_NS));
        }
    }
    Ok(())
}

fn write_table(args: &Watch, timeline: &Arc<Timeline>) -> Result<()> {
    let profile = timeline.profile(&Filter::default(), None);
    let rows = hotspots(&profile, By::Method, Sort::default(), false);
    let user_code = match args.all {
        true => Vec::new(),
        false => user_methods(&profile),
    };
    let mut out = output::open(None);
    if io::stdout().is_terminal() {
        // Clears the screen.
        write!(out, "\x1b[H\x1b[2J")?;
    }
    let options = shown(args.max_lines, None);
    let order = (By::Method, Sort::default());
    write_top(&profile, order, &rows, &user_code, options, &mut out)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}
