//! What identifies a process on its host.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::process::{read, start_time};

/// What identifies a process: its host and boot, and its start and pid namespace there. Process ids
/// alone are reused, and repeat in other pid namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The name of the host; empty if unknown.
    pub host: String,
    /// The id of the boot; empty if unknown.
    pub boot_id: String,
    /// When the process started, ns since 1970-01-01 UTC. The boot time that Linux states, in whole
    /// seconds, and the clock ticks from it to the start: equal for all readers.
    pub started_unix_ns: Option<i64>,
    /// The inode of its pid namespace.
    pub pid_namespace: Option<u64>,
}

impl Identity {
    /// Reads what `/proc` states about a process, by its id in the pid namespace of the caller. Parts
    /// that cannot be read are unknown.
    pub fn of(pid: u32) -> Self {
        Self::read_from(Path::new("/proc"), pid)
    }

    fn read_from(proc: &Path, pid: u32) -> Self {
        let process = proc.join(pid.to_string());
        let kernel = proc.join("sys/kernel");
        let word = |path: &str| {
            String::from_utf8_lossy(&read(&kernel.join(path)))
                .trim()
                .to_owned()
        };
        let namespace = std::fs::metadata(process.join("ns/pid")).ok();
        Identity {
            host: word("hostname"),
            boot_id: word("random/boot_id"),
            started_unix_ns: started(&read(&proc.join("stat")), &read(&process.join("stat"))),
            pid_namespace: namespace.map(|it| it.ino()),
        }
    }
}

/// Returns the start of a process, ns since 1970-01-01 UTC, by the `stat` of the system and its own.
fn started(system: &[u8], process: &[u8]) -> Option<i64> {
    /// A tick of `USER_HZ`, which is 100 on all architectures that .NET supports.
    const TICK_NS: i64 = 10_000_000;
    let mut lines = std::str::from_utf8(system).ok()?.lines();
    let booted = lines.find_map(|line| line.strip_prefix("btime "))?;
    let booted: i64 = booted.trim().parse().ok()?;
    let ticks: i64 = start_time(process)?.parse().ok()?;
    let booted_ns = booted.checked_mul(1_000_000_000)?;
    booted_ns.checked_add(ticks.checked_mul(TICK_NS)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_identity_is_what_proc_states() {
        let root = tempfile::tempdir().expect("a folder");
        let files = [
            ("sys/kernel/hostname", "web-17\n"),
            ("sys/kernel/random/boot_id", "1b2c\n"),
            ("stat", "cpu  1 2 3\nbtime 1700000000\nprocesses 9\n"),
            (
                "7/stat",
                "7 (a) b) S 1 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 3456 1 1\n",
            ),
            ("7/ns/pid", ""),
        ];
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let identity = Identity::read_from(root.path(), 7);
        assert_eq!((&*identity.host, &*identity.boot_id), ("web-17", "1b2c"));
        assert_eq!(identity.started_unix_ns, Some(1_700_000_034_560_000_000));
        let namespace = fs::metadata(root.path().join("7/ns/pid")).expect("a file");
        assert_eq!(identity.pid_namespace, Some(namespace.ino()));
        let other = Identity::read_from(root.path(), 8);
        assert_eq!((other.started_unix_ns, other.pid_namespace), (None, None));
    }
}
