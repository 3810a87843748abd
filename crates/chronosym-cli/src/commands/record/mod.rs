//! `chronosym record`.

mod ending;
mod files;
mod losses;
mod session;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use chronosym_export::show_count;
use chronosym_record::{Config, Profile, Suspended, find};

use self::ending::Ending;
use self::files::Names;
use self::session::{Made, Recorder};
use super::{dotnet_process, save, stacks};
use crate::args::{Cli, Record};
use crate::{interrupt, progress};

/// A program that is started has so long until its runtime is ready.
const START: Duration = Duration::from_secs(30);
/// How often it is checked whether a program has ended, or has started another.
const POLL: Duration = Duration::from_millis(50);
/// Processes that outlive their program are recorded no longer.
const OUTLIVE: Duration = Duration::from_secs(1);

pub fn run(args: &Record) -> Result<()> {
    let recorder = Recorder {
        config: config(args),
        ending: Ending::new(args),
        duration: args.duration,
        lists_code: !args.no_start_rundown,
    };
    let (names, made) = match args.command.is_empty() {
        true => attach(args, &recorder)?,
        false => start(args, &recorder)?,
    };
    finish(args, &recorder, &names, made)
}

fn config(args: &Record) -> Config {
    let profiles: &[Profile] = match (&*args.profile, &*args.providers) {
        ([], []) => &[Profile::Cpu],
        (profiles, _) => profiles,
    };
    let providers = profiles.iter().flat_map(|profile| profile.providers());
    let mut config = Config::new(providers.chain(args.providers.iter().cloned()));
    config.buffer_mib = args.buffer;
    config
}

type Recordings = Vec<Result<Made>>;

/// Records processes that run.
fn attach(args: &Record, recorder: &Recorder) -> Result<(Names, Recordings)> {
    let targets = dotnet_process::targets(&args.pid, args.name.as_deref(), ", or -- COMMAND")?;
    let mut names = Names::new(args.output.as_deref(), targets.len() > 1)?;
    interrupt::catch();
    let made = thread::scope(|scope| {
        let mut threads = Vec::new();
        for target in &targets {
            let files = names.of(&target.name, target.pid);
            threads.push(scope.spawn(move || recorder.attach(target, files)));
        }
        threads.into_iter().map(joined).collect()
    });
    interrupt::release();
    Ok((names, made))
}

/// Starts a program, and records the runtimes in it.
fn start(args: &Record, recorder: &Recorder) -> Result<(Names, Recordings)> {
    let mut names = Names::new(args.output.as_deref(), false)?;
    let [program, arguments @ ..] = &*args.command else {
        bail!("no program");
    };
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::inherit());
    if args.profile.contains(&Profile::Inlining) {
        command.env("DOTNET_RichDebugInfo", "1");
    }
    let program = Path::new(program);
    let mut suspended = Suspended::start(command, START)
        .with_context(|| format!("cannot record {}", program.display()))?;
    let stem = program.file_stem().unwrap_or_default();
    let name = stem.to_string_lossy();
    interrupt::catch();
    let made = thread::scope(|scope| {
        let mut threads = Vec::new();
        let mut ended: Option<Instant> = None;
        loop {
            if let Some(started) = suspended.next(POLL) {
                let pid = started.pid();
                let name = find(pid).map_or_else(|_| name.to_string(), |target| target.name);
                let files = names.of(&name, pid);
                let is_first = threads.is_empty();
                threads.push(scope.spawn(move || {
                    let made = recorder.start(&name, started, files);
                    if is_first && made.is_err() {
                        recorder.ending.end();
                    }
                    made
                }));
            }
            let is_done = threads.iter().all(ScopedJoinHandle::is_finished);
            if ended.is_none() && suspended.ended().is_some() {
                ended = Some(Instant::now());
            }
            if is_done && (ended.is_some() || recorder.ending.is_over()) {
                break;
            }
            if ended.is_some_and(|ended| ended.elapsed() > OUTLIVE) && !recorder.ending.is_over() {
                progress::note(
                    "the program has ended; processes that outlive it are recorded no longer",
                );
                recorder.ending.end();
            }
        }
        threads.into_iter().map(joined).collect()
    });
    interrupt::release();
    if suspended.ended().is_none() {
        progress::note("the program was ended with the recording");
    }
    if suspended.excess() > 0 {
        progress::note(&format!(
            "{} processes were too many to be recorded",
            suspended.excess()
        ));
    }
    Ok((names, made))
}

fn joined(thread: ScopedJoinHandle<'_, Result<Made>>) -> Result<Made> {
    match thread.join() {
        Ok(made) => made,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Reports how the recordings ended, and writes what is made of them.
fn finish(args: &Record, recorder: &Recorder, names: &Names, made: Recordings) -> Result<()> {
    let (made, failed): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    let made: Vec<Made> = made.into_iter().flatten().collect();
    let mut failed = failed.into_iter().filter_map(Result::err);
    let Some(first) = made.first() else {
        return Err(failed
            .next()
            .context("nothing was recorded")
            .unwrap_or_else(|error| error));
    };
    let bytes = show_count(recorder.ending.bytes());
    let seconds = recorder.ending.began().elapsed().as_secs_f64();
    progress::hint(&match made.len() {
        1 => format!("{bytes} bytes in {seconds:.1} s"),
        count => format!("{count} recordings, {bytes} bytes in {seconds:.1} s"),
    });
    if recorder.ending.has_reached_size() {
        progress::note("stopped: --max-size is reached");
    }
    made.iter().for_each(Made::report_end);
    let traces: Vec<PathBuf> = made.iter().flat_map(Made::files).collect();
    if args.save_timeline {
        let path = names.beside(&first.trace, "chrono");
        save::run(&Cli::save(&traces, &path)?)?;
    }
    if let Some(report) = names.report() {
        stacks::run(&Cli::stacks(&traces, report)?)?;
    }
    // The others are of use without those that failed.
    failed.next().map_or(Ok(()), Err)
}
