//! .NET processes and their diagnostics sockets.
//!
//! A runtime listens at `dotnet-diagnostic-{pid}-{key}-socket` in its `TMPDIR`, else in `/tmp`: the
//! pid is the one in its own pid namespace, the key its start, in clock ticks since the boot, field
//! 22 of `/proc/PID/stat`. Sockets of killed processes remain.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::RecordError;

/// A process with a diagnostics socket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// Its id in the pid namespace of this process.
    pub pid: u32,
    /// Its id in its own pid namespace, as in its recordings.
    pub own_pid: u32,
    /// The name of its program: for `dotnet app.dll` that of the application.
    pub name: String,
    /// Its socket, through `/proc/PID/root`.
    pub socket: PathBuf,
}

/// Maximum number of bytes read of a file or line in `/proc`.
const MOST: u64 = 1 << 20;

/// Finds the socket of a process.
///
/// # Errors
///
/// [`RecordError::NoProcess`], or [`RecordError::NoSocket`].
pub fn find(pid: u32) -> Result<Target, RecordError> {
    find_in(Path::new("/proc"), pid)
}

/// Returns the .NET processes that can be recorded, by id. Those of other users are missing, unless
/// this process may see their sockets.
pub fn find_all() -> Vec<Target> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut all: Vec<Target> = pids.filter_map(|pid| find(pid).ok()).collect();
    all.sort_by_key(|target| target.pid);
    all
}

fn find_in(proc: &Path, pid: u32) -> Result<Target, RecordError> {
    let process = proc.join(pid.to_string());
    if !process.is_dir() {
        return Err(RecordError::NoProcess(pid));
    }
    let status = read(&process.join("status"));
    let own_pid = own_pid(&status).unwrap_or(pid);
    let folder = temporary_folder(&read(&process.join("environ")));
    let inside = folder.strip_prefix("/").unwrap_or(&folder);
    let start = start_time(&read(&process.join("stat")));
    // If the root of the process cannot be read, assume the root of this process.
    let roots = [process.join("root"), PathBuf::from("/")];
    let socket = roots
        .iter()
        .find_map(|root| socket_in(&root.join(inside), own_pid, start.as_deref()));
    let socket = socket.ok_or_else(|| RecordError::NoSocket {
        pid,
        folder: folder.display().to_string(),
    })?;
    Ok(Target {
        pid,
        own_pid,
        name: name(&read(&process.join("cmdline"))),
        socket,
    })
}

pub(crate) fn read(path: &Path) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    // Unreadable values are unknown.
    if let Ok(file) = fs::File::open(path) {
        _ = file.take(MOST).read_to_end(&mut bytes);
    }
    bytes
}

/// The last number of the line `NSpid:` of `status`.
fn own_pid(status: &[u8]) -> Option<u32> {
    let mut lines = status.split(|&byte| byte == b'\n');
    let line = lines.find_map(|line| line.strip_prefix(b"NSpid:"))?;
    std::str::from_utf8(line)
        .ok()?
        .split_whitespace()
        .last()?
        .parse()
        .ok()
}

/// `TMPDIR` of an environment, if it is absolute.
fn temporary_folder(environ: &[u8]) -> PathBuf {
    let mut variables = environ.split(|&byte| byte == 0);
    let folder = variables.find_map(|variable| variable.strip_prefix(b"TMPDIR="));
    let folder = folder.map(|folder| PathBuf::from(OsStr::from_bytes(folder)));
    let folder = folder.filter(|folder| folder.is_absolute());
    folder.unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// Field 22 of `stat`; the second, the program's name in parentheses, may contain anything.
pub(crate) fn start_time(stat: &[u8]) -> Option<String> {
    let after = stat.iter().rposition(|&byte| byte == b')')? + 1;
    let fields = std::str::from_utf8(&stat[after..]).ok()?;
    fields.split_whitespace().nth(19).map(str::to_owned)
}

/// The socket of a process in a folder: the one with its start in the name, else the newest.
fn socket_in(folder: &Path, pid: u32, start: Option<&str>) -> Option<PathBuf> {
    let prefix = format!("dotnet-diagnostic-{pid}-");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let name = entry.file_name();
        let key = name
            .to_str()
            .and_then(|name| name.strip_prefix(&prefix)?.strip_suffix("-socket"));
        if let Some(key) = key {
            let modified = entry.metadata().and_then(|it| it.modified()).ok();
            found.push((Some(key) == start, modified, entry.path()));
        }
    }
    found.into_iter().max().map(|(_, _, path)| path)
}

/// The program's name in a command line: for `dotnet app.dll` that of the application.
fn name(cmdline: &[u8]) -> String {
    let words = cmdline
        .split(|&byte| byte == 0)
        .filter(|word| !word.is_empty());
    let mut names = words.map(|word| {
        let file = word.rsplit(|&byte| byte == b'/').next().unwrap_or(word);
        String::from_utf8_lossy(file).into_owned()
    });
    let first = names.next().unwrap_or_default();
    let application = |name: &String| name.ends_with(".dll") || name.ends_with(".exe");
    match first.as_str() {
        "dotnet" => names.find(application).unwrap_or(first),
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_a_process_are_those_that_proc_states() {
        assert_eq!(
            own_pid(b"Name:\tx\nNSpid:\t4711\t12\t7\nNSpgid:\t1\n"),
            Some(7)
        );
        assert_eq!(own_pid(b"Name:\tx\n"), None);
        assert_eq!(
            temporary_folder(b"A=1\0TMPDIR=/var/t\0"),
            Path::new("/var/t")
        );
        assert_eq!(temporary_folder(b"TMPDIR=t\0"), Path::new("/tmp"));
        let stat = b"1 (a) b) S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 3456 1 1\n";
        assert_eq!(start_time(stat).as_deref(), Some("3456"));
        assert_eq!(name(b"/usr/bin/dotnet\0exec\0/srv/App.dll\0"), "App.dll");
        assert_eq!(name(b"./server\0--x\0"), "server");
    }

    #[test]
    fn of_sockets_left_behind_the_one_of_the_start_is_taken() {
        let root = tempfile::tempdir().expect("a folder");
        let process = root.path().join("7");
        fs::create_dir_all(process.join("root/var/t")).expect("a folder");
        let stat = "7 (x) S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 30 1 1\n";
        let files = [
            ("status", "NSpid:\t7\t3\n"),
            ("environ", "TMPDIR=/var/t\0"),
            ("cmdline", "app\0"),
            ("stat", stat),
            ("root/var/t/dotnet-diagnostic-3-30-socket", ""),
            ("root/var/t/dotnet-diagnostic-3-29-socket", ""),
            ("root/var/t/dotnet-diagnostic-33-30-socket", ""),
        ];
        for (name, text) in files {
            fs::write(process.join(name), text).expect("a file");
        }
        let target = find_in(root.path(), 7).expect("a socket");
        assert!(target.socket.ends_with("dotnet-diagnostic-3-30-socket"));
        assert_eq!((target.own_pid, target.name.as_str()), (3, "app"));
        assert!(matches!(
            find_in(root.path(), 8),
            Err(RecordError::NoProcess(8))
        ));
        fs::write(process.join("status"), "NSpid:\t7\t4\n").expect("a file");
        assert!(matches!(
            find_in(root.path(), 7),
            Err(RecordError::NoSocket { .. })
        ));
    }
}
