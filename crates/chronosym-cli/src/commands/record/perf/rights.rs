//! The rights that `perf` needs.

use std::fs;
use std::path::Path;

/// Numbers of capabilities, from `linux/capability.h`.
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;

/// What this process may record.
#[derive(Clone, Copy, Debug)]
pub struct Rights {
    /// `kernel.perf_event_paranoid`: -1 to 2, and up to 4 with patches of distributions.
    paranoid: Option<i32>,
    /// CAP_PERFMON or CAP_SYS_ADMIN.
    has_capability: bool,
    is_contained: bool,
}

impl Rights {
    pub fn read() -> Self {
        let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let marks = ["/.dockerenv", "/run/.containerenv"];
        Rights {
            paranoid: paranoid.ok().and_then(|text| text.trim().parse().ok()),
            has_capability: has_capability(&status),
            is_contained: marks.iter().any(|mark| Path::new(mark).exists())
                || std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
        }
    }

    /// Whether `perf` leaves the kernel out without an error.
    pub fn lacks_kernel(self) -> bool {
        !self.has_capability && self.paranoid.is_some_and(|paranoid| paranoid >= 2)
    }

    /// What is missing, and how to get it.
    pub fn advice(self) -> String {
        let paranoid = match self.paranoid {
            Some(value) => value.to_string(),
            None => "unknown".to_owned(),
        };
        let mut advice = match (self.has_capability, self.paranoid) {
            (true, _) => String::new(),
            (false, Some(3..)) => format!(
                "kernel.perf_event_paranoid is {paranoid}: only users with CAP_PERFMON may record. As root, \
                 `sysctl kernel.perf_event_paranoid=2` lets users record their own processes"
            ),
            _ => format!(
                "kernel.perf_event_paranoid is {paranoid}: without CAP_PERFMON users may record their own \
                 processes only. Record as root, or `setcap cap_perfmon,cap_sys_ptrace=ep` the program perf"
            ),
        };
        if self.is_contained {
            let and = if advice.is_empty() { "" } else { ". " };
            advice += and;
            advice += "In a container, perf_event_open needs the capability PERFMON (docker run --cap-add PERFMON; \
                       securityContext.capabilities.add in Kubernetes), and a seccomp profile that allows it";
        }
        advice
    }
}

fn has_capability(status: &str) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits & (1 << SYS_ADMIN | 1 << PERFMON) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_advised() {
        assert!(has_capability("Name:\tx\nCapEff:\t0000004000000000\n"));
        assert!(!has_capability("CapEff:\t0000000000000400\n"));
        let rights = |paranoid, has_capability, is_contained| Rights {
            paranoid: Some(paranoid),
            has_capability,
            is_contained,
        };
        assert!(rights(2, false, false).lacks_kernel());
        assert!(!rights(1, false, false).lacks_kernel());
        let patched = rights(4, false, false).advice();
        assert!(patched.contains("sysctl kernel.perf_event_paranoid=2"));
        let other = rights(2, false, true).advice();
        assert!(other.contains("setcap cap_perfmon") && other.contains("--cap-add PERFMON"));
        assert_eq!(rights(4, true, false).advice(), "");
    }
}
