//! The system's `perf`, beside the sessions of runtimes.

mod call_graph;
mod rights;

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};

use self::rights::Rights;
use super::session::Process;
use crate::args::CallGraph;
use crate::progress;

/// Samples a second of a processor's time. Copies of stacks take a hundred times the bytes.
const FREQUENCY: &str = "999";
const FREQUENCY_WITH_STACKS: &str = "199";
/// Bytes of each copied stack.
const STACKS: &str = "dwarf,16384";
/// `perf` takes no longer to begin; at its end it reads the build ids of images.
const BEGIN: Duration = Duration::from_secs(10);
const END: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
/// Of its messages the last bytes are shown.
const MESSAGES: u64 = 2000;

/// A running `perf record`.
pub struct Perf {
    child: Child,
    path: PathBuf,
    messages: File,
    is_interrupted: bool,
}

impl Perf {
    /// Records processes, their threads, and what they start.
    pub fn start(calls: CallGraph, pids: &[u32], path: PathBuf) -> Result<Self> {
        let copies = match calls {
            CallGraph::Auto => call_graph::needs_stacks(pids),
            CallGraph::Fp => false,
            CallGraph::Dwarf => true,
        };
        let (calls, frequency) = match copies {
            true => (STACKS, FREQUENCY_WITH_STACKS),
            false => ("fp", FREQUENCY),
        };
        let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
        // Otherwise perf keeps the file of an earlier recording under another name.
        _ = std::fs::remove_file(&path);
        let messages = tempfile::tempfile().context("cannot make a temporary file")?;
        let stderr = messages.try_clone().context("cannot run perf")?;
        let mut command = Command::new("perf");
        // The clock of runtimes.
        command.args(["record", "-k", "mono", "-F", frequency]);
        // Copies of all images in the user's folder take time and space.
        command.arg("--no-buildid-cache");
        command.args(["--call-graph", calls, "-p", &pids.join(","), "-o"]);
        command.arg(&path);
        // It takes commands at its standard input, and acknowledges them at its output.
        command.args(["--control", "fd:0,1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.stderr(stderr).spawn();
        let child = child.map_err(|error| match error.kind() {
            ErrorKind::NotFound => anyhow!(
                "perf is not installed: its package is linux-perf (Debian), linux-tools-$(uname -r) (Ubuntu) or perf"
            ),
            _ => anyhow!("cannot run perf: {error}"),
        })?;
        let mut perf = Perf {
            child,
            path,
            messages,
            is_interrupted: false,
        };
        perf.wait_for_begin()?;
        progress::hint(&format!(
            "perf samples {frequency} times a second, and finds callers by {}, to {}",
            match copies {
                true => "copies of the stack",
                false => "frame pointers",
            },
            perf.path.display()
        ));
        if Rights::read().lacks_kernel() {
            progress::note("perf leaves out the kernel: kernel.perf_event_paranoid is 2 or more");
        }
        Ok(perf)
    }

    /// Waits until it executes commands, which it does once it records. Its file has a header long
    /// before.
    fn wait_for_begin(&mut self) -> Result<()> {
        if let Some(commands) = &mut self.child.stdin {
            // It may have ended, which is seen below.
            _ = commands.write_all(b"enable\n");
        }
        let (send, acknowledged) = mpsc::channel();
        if let Some(mut replies) = self.child.stdout.take() {
            thread::spawn(move || {
                let mut byte = [0];
                let count = replies.read(&mut byte).unwrap_or(0);
                _ = send.send(count);
                // It may write more.
                _ = std::io::copy(&mut replies, &mut std::io::sink());
            });
        }
        match acknowledged.recv_timeout(BEGIN) {
            Ok(1..) => Ok(()),
            Ok(0) => {
                let status = self.child.wait().context("cannot run perf")?;
                bail!("{}", self.failure(status))
            }
            Err(_) => bail!("perf did not begin within {} s", BEGIN.as_secs()),
        }
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn failure(&mut self, status: ExitStatus) -> String {
        let mut text = format!("perf cannot record ({status})");
        for part in [Rights::read().advice(), self.messages()] {
            if !part.is_empty() {
                text = format!("{text}\n{part}");
            }
        }
        text
    }

    fn messages(&mut self) -> String {
        let mut bytes = Vec::new();
        let length = self.messages.metadata().map_or(0, |file| file.len());
        let from = SeekFrom::Start(length.saturating_sub(MESSAGES));
        if self.messages.seek(from).is_ok() {
            _ = Read::by_ref(&mut self.messages)
                .take(MESSAGES)
                .read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }

    /// Asks it to end.
    pub fn interrupt(&mut self) {
        if !self.is_interrupted {
            self.is_interrupted = true;
            if self.ended().is_none() {
                signal(self.child.id(), Signal::INT);
            }
        }
    }

    /// Waits for its end. Returns its file, unless it failed.
    pub fn end(mut self) -> Option<PathBuf> {
        self.interrupt();
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.ended() {
                break status;
            }
            if began.elapsed() > END {
                progress::note("perf does not end: it was killed, and its file may lack its end");
                return self.has_samples();
            }
            thread::sleep(POLL);
        };
        // Killed by the signal that ends it, as older ones are.
        use std::os::unix::process::ExitStatusExt;
        if !status.success() && status.signal() != Some(Signal::INT.as_raw()) {
            let failure = self.failure(status);
            progress::note(&failure);
        }
        self.has_samples()
    }

    fn has_samples(&self) -> Option<PathBuf> {
        let is_file = self.path.metadata().is_ok_and(|file| file.len() > 0);
        is_file.then(|| self.path.clone())
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        // It may have ended.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns a command that stops itself before it becomes the program: `perf` then sees all that the
/// program starts. [`proceed`] lets it go on.
pub fn stopped(words: &[OsString]) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "kill -STOP $$; exec \"$@\"", "sh"])
        .args(words);
    command
}

/// Runs `act` once a command of [`stopped`] has stopped, and then the program. It stays stopped if
/// `act` fails.
pub fn proceed<T>(pid: u32, act: impl FnOnce() -> Result<T>) -> Result<T> {
    let began = Instant::now();
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    while !stat().contains(") T ") && began.elapsed() < BEGIN {
        thread::sleep(POLL);
    }
    let done = act()?;
    signal(pid, Signal::CONT);
    Ok(done)
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have ended.
        _ = kill_process(pid, signal);
    }
}

/// Options to read the file on the machine where it was recorded.
pub fn options<'p>(processes: impl Iterator<Item = &'p Process>) -> Vec<OsString> {
    let mut words = Vec::new();
    let kallsyms = Path::new("/proc/kallsyms");
    if File::open(kallsyms).is_ok() {
        words.extend(["--kallsyms".into(), kallsyms.into()]);
    }
    for Process { pid, own_pid, .. } in processes.filter(|it| it.own_pid != it.pid) {
        words.extend(["--map-pid".into(), format!("{own_pid}={pid}").into()]);
    }
    words
}
