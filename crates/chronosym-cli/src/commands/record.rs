//! `chronosym record`.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chronosym_export::show_count;
use chronosym_record::{Config, End, Limits, Profile, Recorded, Runtime, Session, Suspended};

use super::{dotnet_process, stacks};
use crate::args::{Cli, Record, Usage};
use crate::{interrupt, progress};

/// A program that is started has so long until its runtime is ready.
const START: Duration = Duration::from_secs(30);
/// A list of the code that was compiled before takes no longer to begin, nor to go on.
const LISTING: Duration = Duration::from_secs(10);

pub fn run(args: &Record) -> Result<()> {
    let began = Instant::now();
    let mut config = config(args);
    let (name, pid, runtime, mut program) = match args.command.split_first() {
        Some((program, arguments)) => {
            let mut command = Command::new(program);
            command.args(arguments).stdin(Stdio::inherit());
            if args.profile.contains(&Profile::Inlining) {
                command.env("DOTNET_RichDebugInfo", "1");
            }
            let suspended = Suspended::start(command, START);
            let shown = Path::new(program).display();
            let suspended = suspended.with_context(|| format!("cannot record {shown}"))?;
            let name = Path::new(program).file_stem().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            (name, suspended.pid(), suspended.runtime(), Some(suspended))
        }
        None => {
            let target = dotnet_process::target(args.pid, args.name.as_deref(), ", or -- COMMAND")?;
            let runtime = Runtime::of(&target);
            (target.name, target.pid, runtime, None)
        }
    };
    let files = Files::new(args.output.as_deref(), &name, pid)?;
    config.buffer_mib = args.buffer;

    let mut list = None;
    let session = match &program {
        Some(suspended) => suspended.collect(&runtime, &config),
        None => {
            if !args.no_start_rundown {
                list = dotnet_process::list_code(&runtime);
            }
            runtime.collect(&config)
        }
    };
    let session = session.with_context(|| format!("cannot record {name} ({pid})"))?;
    let start = files.start.clone();
    let list = list.map(|list| thread::spawn(move || write_list(list, &start)));
    let mut out = files.create()?;
    let until = args
        .duration
        .map(|ns| format!(" for {:.1} s", ns as f64 / 1e9));
    progress::hint(&format!(
        "recording {name} ({pid}) to {}{}; Ctrl+C stops",
        files.trace.display(),
        until.unwrap_or_default()
    ));
    let recorded = record(args, session, &mut out)?;
    drop(out);
    if let Some(suspended) = &mut program {
        if suspended.ended().is_none() && recorded.end != End::TargetEnded {
            progress::note("the program was ended with the recording");
        }
        if recorded.end == End::TargetEnded {
            _ = suspended.wait();
        }
    }
    drop(program);
    progress::hint(&format!(
        "{} bytes in {:.1} s",
        show_count(recorded.bytes),
        began.elapsed().as_secs_f64()
    ));
    let mut traces = vec![files.trace.clone()];
    let started_before = list.is_some_and(|list| list.join().unwrap_or(false));
    if recorded.is_complete && started_before {
        // Its end lists the same code, and what came since.
        _ = std::fs::remove_file(&files.start);
    } else if started_before {
        traces.insert(0, files.start.clone());
    }
    report_end(&recorded, &traces);
    match &files.report {
        Some(report) => stacks::run(&Cli::stacks(&traces, report)?),
        None => Ok(()),
    }
}

fn config(args: &Record) -> Config {
    let profiles: &[Profile] = match (&*args.profile, &*args.providers) {
        ([], []) => &[Profile::Cpu],
        (profiles, _) => profiles,
    };
    let providers = profiles.iter().flat_map(|profile| profile.providers());
    Config::new(providers.chain(args.providers.iter().cloned()))
}

/// The files of a recording.
struct Files {
    trace: PathBuf,
    /// What lists the code that was compiled before.
    start: PathBuf,
    report: Option<PathBuf>,
    is_default: bool,
}

impl Files {
    fn new(output: Option<&Path>, name: &str, pid: u32) -> Result<Self> {
        let is_default = output.is_none();
        let name = name.strip_suffix(".dll").unwrap_or(name);
        let default = PathBuf::from(format!("{name}-{pid}.nettrace"));
        let output = output.unwrap_or(&default);
        let is_trace = output.extension().is_some_and(|it| it == "nettrace");
        if output.extension().is_none() {
            bail!(Usage(
                "-o needs an extension: .nettrace, or that of a report such as .html".to_owned()
            ));
        }
        let trace = output.with_extension("nettrace");
        Ok(Files {
            start: output.with_extension("start.nettrace"),
            report: (!is_trace).then(|| output.to_owned()),
            trace,
            is_default,
        })
    }

    /// Creates the file of the recording.
    fn create(&self) -> Result<File> {
        let mut options = OpenOptions::new();
        options.write(true);
        match self.is_default {
            true => options.create_new(true),
            false => options.create(true).truncate(true),
        };
        let file = options.open(&self.trace);
        file.with_context(|| format!("cannot create {}", self.trace.display()))
    }
}

/// Writes the list. Returns whether there is one: a recording without is of use, too.
fn write_list(list: Session, path: &Path) -> bool {
    let mut limits = Limits::default();
    limits.silence = LISTING;
    let written = File::create(path)
        .ok()
        .and_then(|mut file| list.record(&mut file, &limits, |_| true).ok());
    let is_complete = written.is_some_and(|recorded| recorded.is_complete);
    if !is_complete {
        progress::note("the runtime did not list the code that was compiled before");
        _ = std::fs::remove_file(path);
    }
    is_complete
}

fn record(args: &Record, session: Session, out: &mut File) -> Result<Recorded> {
    let limits = Limits::default().bytes(args.max_size.unwrap_or(u64::MAX));
    let end = args
        .duration
        .map(|ns| Instant::now() + Duration::from_nanos(ns));
    let interrupted = interrupt::catch();
    let began = Instant::now();
    let recorded = session.record(out, &limits, |bytes| {
        progress::recording(began, bytes);
        interrupted() || end.is_some_and(|end| Instant::now() >= end)
    });
    interrupt::release();
    Ok(recorded?)
}

fn report_end(recorded: &Recorded, traces: &[PathBuf]) {
    if recorded.reached_size {
        progress::note("stopped: the recording has reached --max-size");
    }
    if recorded.end == End::Stalled {
        progress::note("the runtime did not end the recording: it hangs, or sends without end");
    }
    if !recorded.is_complete {
        let rest = match traces {
            [start, _] => format!(
                "read {} with it, which lists what was compiled before",
                start.display()
            ),
            _ => "code that was compiled before may be unnamed".to_owned(),
        };
        progress::note(&format!(
            "the code that ran is not listed at the end: {rest}"
        ));
    }
}
