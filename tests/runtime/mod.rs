//! Runs the workload in a live CLR, with a client of its diagnostics socket.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Environment variable that names a `dotnet` host: of .NET Core 3.1, or of .NET 5 and later.
pub const DOTNET: &str = "CHRONOSYM_DOTNET";

/// Longest that anything of a runtime is waited for.
pub const PATIENCE: Duration = Duration::from_secs(40);

const RUNTIME: (&str, u64) = ("Microsoft-Windows-DotNETRuntime", 0x10_000B_A0F9);
const RUNDOWN: (&str, u64) = ("Microsoft-Windows-DotNETRuntimeRundown", 0x10_000B_A0F9);
const SAMPLER: (&str, u64) = ("Microsoft-DotNETCore-SampleProfiler", 0);
const TRUTH: (&str, u64) = ("Workload-Truth", u64::MAX);

/// Returns the `dotnet` host to use, if the environment names one.
pub fn host() -> Option<OsString> {
    std::env::var_os(DOTNET)
}

/// Major version of the newest runtime that the host has.
pub fn major() -> u32 {
    let listed = host().and_then(|host| Command::new(host).arg("--list-runtimes").output().ok());
    let text = listed.map_or(String::new(), |o| String::from_utf8_lossy(&o.stdout).into());
    let version = |line: &str| {
        let version = line.strip_prefix("Microsoft.NETCore.App ")?;
        version.split('.').next()?.parse().ok()
    };
    text.lines().filter_map(version).max().unwrap_or(3)
}

/// A workload process; killed when dropped.
pub struct Workload {
    child: Child,
    folder: TempDir,
}

/// The environment that makes the runtime record.
pub struct Recording {
    /// Size of the buffers.
    pub megabytes: u32,
}

impl Workload {
    /// Starts the workload for some seconds.
    pub fn start(seconds: u32, recording: Option<&Recording>) -> Result<Workload, String> {
        let host = host().ok_or(format!("{DOTNET} is not set"))?;
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/clr31/workload");
        let mut command = Command::new(&host);
        command
            .arg(program.join("Workload.dll"))
            .arg(seconds.to_string())
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            .env("DOTNET_ROLL_FORWARD", "Major")
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if let Some(recording) = recording {
            let config = [RUNTIME, RUNDOWN, SAMPLER, TRUTH]
                .map(|(name, keywords)| format!("{name}:{keywords:X}:5"))
                .join(",");
            // .NET Core 3.1 wants a folder and dies of a file; later runtimes want a file.
            let output = if major() < 5 {
                folder.path().to_owned()
            } else {
                folder.path().join("workload.nettrace")
            };
            command
                .env("COMPlus_EnableEventPipe", "1")
                // Later runtimes stream while they record, so that buffers never fill, unless
                // disabled.
                .env("COMPlus_EventPipeOutputStreaming", "0")
                .env("COMPlus_EventPipeOutputPath", output)
                .env(
                    "COMPlus_EventPipeCircularMB",
                    format!("{:X}", recording.megabytes),
                )
                .env("COMPlus_EventPipeConfig", config);
        }
        let child = command
            .spawn()
            .map_err(|e| format!("{}: {e}", host.display()))?;
        Ok(Workload { child, folder })
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended by itself.
    pub fn wait(&mut self) -> Result<(), String> {
        let status = wait_for("the end of the workload", || {
            self.child.try_wait().ok().flatten()
        })?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the workload ended with {status}"))
        }
    }

    /// Ends it at once, as a crash does.
    pub fn kill(&mut self) -> Result<(), String> {
        self.child.kill().map_err(|e| e.to_string())?;
        self.child.wait().map(|_| ()).map_err(|e| e.to_string())
    }

    /// Returns the trace that the runtime has written so far.
    pub fn trace(&self) -> Result<Vec<u8>, String> {
        let path = self
            .find(|name| name.ends_with(".nettrace"))
            .ok_or("the runtime wrote no trace")?;
        fs::read(path).map_err(|e| e.to_string())
    }

    /// A file in its folder.
    pub fn find(&self, is_wanted: impl Fn(&str) -> bool) -> Option<PathBuf> {
        let files = fs::read_dir(self.folder.path()).ok()?.flatten();
        files.map(|f| f.path()).find(|p| {
            p.file_name()
                .and_then(|n| n.to_str())
                .is_some_and(&is_wanted)
        })
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Calls `ask` repeatedly until it returns a value.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> Result<T, String> {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return Ok(answer);
        }
        if begin.elapsed() > PATIENCE {
            return Err(format!("waited in vain for {what}"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(unix)]
pub mod ipc {
    //! The diagnostics protocol, as far as a recording needs it.

    use std::io::{self, Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};

    use std::time::Duration;

    use super::{RUNTIME, SAMPLER, TRUTH, Workload, wait_for};

    /// Maximum wait for a response, or for the next bytes of a recording.
    const SILENCE: Duration = Duration::from_secs(10);

    const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";
    const EVENT_PIPE: u8 = 2;
    const STOP_TRACING: u8 = 1;
    const COLLECT_TRACING_2: u8 = 3;
    const OK: (u8, u8) = (0xFF, 0);

    /// A recording under way.
    pub struct Session {
        /// The socket that accepts the command to stop.
        pub socket: PathBuf,
        /// The runtime's id of it.
        pub id: u64,
        /// The trace while it is written.
        pub stream: UnixStream,
    }

    /// Starts a recording of a running workload, with a rundown at its end.
    ///
    /// # Errors
    ///
    /// An error that [`is_silent`] accepts if the runtime hangs or crashes.
    pub fn attach(workload: &Workload) -> io::Result<Session> {
        let socket = wait_for("the diagnostics socket", || {
            workload.find(|name| name.starts_with("dotnet-diagnostic-"))
        })
        .map_err(io::Error::other)?;
        let mut request = Vec::new();
        request.extend_from_slice(&64u32.to_le_bytes());
        // The nettrace format.
        request.extend_from_slice(&1u32.to_le_bytes());
        // With rundown.
        request.push(1);
        let providers = [RUNTIME, SAMPLER, TRUTH];
        request.extend_from_slice(&(providers.len() as u32).to_le_bytes());
        for (name, keywords) in providers {
            request.extend_from_slice(&keywords.to_le_bytes());
            request.extend_from_slice(&5u32.to_le_bytes());
            put_string(&mut request, name);
            put_string(&mut request, "");
        }
        let (stream, answer) = call(&socket, COLLECT_TRACING_2, &request)?;
        let id = answer
            .try_into()
            .map(u64::from_le_bytes)
            .map_err(|a| io::Error::other(format!("a session id of {} bytes", a.len())))?;
        Ok(Session { socket, id, stream })
    }

    /// Asks the runtime to end a recording; its stream ends after the rundown.
    ///
    /// # Errors
    ///
    /// As [`attach`].
    pub fn stop(socket: &Path, id: u64) -> io::Result<()> {
        call(socket, STOP_TRACING, &id.to_le_bytes()).map(|_| ())
    }

    /// Returns whether the runtime was silent for too long, or has exited.
    pub fn is_silent(error: &io::Error) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};
        matches!(
            error.kind(),
            WouldBlock | TimedOut | UnexpectedEof | ConnectionReset | BrokenPipe
        )
    }

    fn put_string(out: &mut Vec<u8>, text: &str) {
        let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
        out.extend_from_slice(&(units.len() as u32).to_le_bytes());
        out.extend(units.iter().flat_map(|u| u.to_le_bytes()));
    }

    fn call(socket: &Path, command: u8, payload: &[u8]) -> io::Result<(UnixStream, Vec<u8>)> {
        const HEADER: usize = 20;
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(SILENCE))?;
        let size = (HEADER + payload.len()) as u16;
        let mut message = MAGIC.to_vec();
        message.extend_from_slice(&size.to_le_bytes());
        message.extend_from_slice(&[EVENT_PIPE, command, 0, 0]);
        message.extend_from_slice(payload);
        stream.write_all(&message)?;
        let mut header = [0; HEADER];
        stream.read_exact(&mut header)?;
        let size = u16::from_le_bytes([header[14], header[15]]) as usize;
        let mut answer = vec![0; size.saturating_sub(HEADER)];
        stream.read_exact(&mut answer)?;
        if !header.starts_with(MAGIC) || (header[16], header[17]) != OK {
            return Err(io::Error::other(format!(
                "the runtime refuses: {:x?} {answer:x?}",
                &header[16..18]
            )));
        }
        Ok((stream, answer))
    }
}
