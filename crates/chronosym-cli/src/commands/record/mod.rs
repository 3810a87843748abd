//! `chronosym record`.

mod ending;
mod files;
mod losses;
mod perf;
mod session;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use chronosym::facts::{At, ProcessKey};
use chronosym::{Host, Session};
use chronosym_export::show_count;
use chronosym_record::{Config, Identity, Profile, Provider, Suspended, find};

use self::ending::Ending;
use self::files::Names;
use self::perf::Perf;
use self::session::{Made, Recorder};
use super::{dotnet_process, save, stacks};
use crate::args::{CallGraph, Cli, Record};
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
    let recordings = match args.command.is_empty() {
        true => attach(args, &recorder)?,
        false => start(args, &recorder)?,
    };
    finish(args, &recorder, recordings)
}

fn config(args: &Record) -> Config {
    let mut providers: Vec<Provider> = match (&*args.profile, &*args.providers) {
        ([], []) if args.perf.is_some() => Profile::names(),
        ([], []) => Profile::Cpu.providers(),
        (profiles, _) => profiles.iter().flat_map(|it| it.providers()).collect(),
    };
    providers.extend(args.providers.iter().cloned());
    let mut config = Config::new(providers);
    config.buffer_mib = args.buffer;
    config
}

/// What was recorded.
struct Recordings {
    names: Names,
    made: Vec<Result<Made>>,
    perf: Option<Perf>,
}

/// Records processes that run.
fn attach(args: &Record, recorder: &Recorder) -> Result<Recordings> {
    let targets = dotnet_process::targets(&args.pid, args.name.as_deref(), ", or -- COMMAND")?;
    let mut names = Names::new(args.output.as_deref(), targets.len() > 1)?;
    let mut files = Vec::new();
    for target in &targets {
        files.push(names.of(&target.name, target.pid));
    }
    let pids: Vec<u32> = targets.iter().map(|target| target.pid).collect();
    let mut perf = start_perf(args, &pids, &names, &files[0].trace)?;
    interrupt::catch();
    let made = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (target, files) in targets.iter().zip(files) {
            threads.push(scope.spawn(move || recorder.attach(target, files)));
        }
        while !recorder.ending.is_over() && !threads.iter().all(ScopedJoinHandle::is_finished) {
            thread::sleep(POLL);
        }
        perf.iter_mut().for_each(Perf::interrupt);
        threads.into_iter().map(joined).collect()
    });
    interrupt::release();
    Ok(Recordings { names, made, perf })
}

fn start_perf(args: &Record, pids: &[u32], names: &Names, first: &Path) -> Result<Option<Perf>> {
    let path = names.beside(first, "perf.data");
    let perf = args.perf.map(|calls| {
        // Nothing is known of the code of a program that has not started.
        let is_unknown = calls == CallGraph::Auto && !args.command.is_empty();
        Perf::start(if is_unknown { CallGraph::Fp } else { calls }, pids, path)
    });
    perf.transpose()
}

/// Starts a program, and records the runtimes in it.
fn start(args: &Record, recorder: &Recorder) -> Result<Recordings> {
    let mut names = Names::new(args.output.as_deref(), false)?;
    let [program, arguments @ ..] = &*args.command else {
        bail!("no program");
    };
    let mut command = match args.perf {
        Some(_) => perf::stopped(&args.command),
        None => Command::new(program),
    };
    if args.perf.is_none() {
        command.args(arguments);
    }
    command.stdin(Stdio::inherit());
    if args.profile.contains(&Profile::Inlining) {
        command.env("DOTNET_RichDebugInfo", "1");
    }
    let program = Path::new(program);
    let stem = program.file_stem().unwrap_or_default();
    let name = stem.to_string_lossy();
    let cannot = || format!("cannot record {}", program.display());
    let mut suspended = interrupt::make(|| Suspended::spawn(command), |made| Some(made.folder()))
        .with_context(cannot)?;
    let pid = suspended.pid();
    let mut perf = match args.perf {
        Some(_) => perf::proceed(pid, || {
            let first = PathBuf::from(format!("{name}-{pid}"));
            start_perf(args, &[pid], &names, &first)
        })?,
        None => None,
    };
    suspended.wait_for_runtime(START).with_context(cannot)?;
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
            if recorder.ending.is_over() {
                perf.iter_mut().for_each(Perf::interrupt);
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
    Ok(Recordings { names, made, perf })
}

fn joined(thread: ScopedJoinHandle<'_, Result<Made>>) -> Result<Made> {
    match thread.join() {
        Ok(made) => made,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Reports how the recordings ended, and writes what is made of them.
fn finish(args: &Record, recorder: &Recorder, recordings: Recordings) -> Result<()> {
    let names = recordings.names;
    let (made, failed): (Vec<_>, Vec<_>) = recordings.made.into_iter().partition(Result::is_ok);
    let made: Vec<Made> = made.into_iter().flatten().collect();
    let mut failed = failed.into_iter().filter_map(Result::err);
    let Some(first) = made.first() else {
        return Err(failed
            .next()
            .unwrap_or_else(|| anyhow!("nothing was recorded")));
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
    let mut words: Vec<OsString> = made.iter().flat_map(Made::files).map(Into::into).collect();
    let perf = recordings.perf.and_then(Perf::end);
    if let Some(path) = &perf {
        words.push(path.into());
        words.extend(perf::options(made.iter().map(|it| &it.process)));
    }
    if args.save_timeline {
        let path = names.beside(&first.trace, "chrono");
        // perf's ids are those of the pid namespace of the command.
        let processes = made.iter().map(|it| match perf {
            Some(_) => (it.process.pid, &it.process.identity),
            None => (it.process.own_pid, &it.process.identity),
        });
        let args = Cli::save(&path, &words)?;
        save::run_with(&args, |session| identify(session, processes))?;
    }
    if let Some(report) = names.report() {
        stacks::run(&Cli::stacks(report, &words)?)?;
    }
    // The others are of use without those that failed.
    failed.next().map_or(Ok(()), Err)
}

/// States the host, and the start and pid namespace of each recorded process.
fn identify<'m>(session: &mut Session, processes: impl Iterator<Item = (u32, &'m Identity)>) {
    let end = At::new(session.facts().duration_ns);
    let mut by_pid: BTreeMap<u32, Vec<&Identity>> = BTreeMap::new();
    for (pid, identity) in processes {
        let host = Host::new(&*identity.host, &*identity.boot_id);
        session.facts().host.get_or_insert(host);
        by_pid.entry(pid).or_default().push(identity);
    }
    for (pid, identities) in by_pid {
        // Processes of two containers can have one id.
        if let [identity] = identities[..] {
            let key = ProcessKey::new(identity.started_unix_ns, identity.pid_namespace);
            session.apply(end.process(pid), key);
        }
    }
}
