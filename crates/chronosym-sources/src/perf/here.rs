//! Detects whether a perf.data was recorded on this machine since its last boot, so that file
//! numbers in it identify local files.

use std::time::{SystemTime, UNIX_EPOCH};

use chronosym_perf::Info;

/// Maximum difference between two computations of the boot time, in ns.
const TOLERANCE_NS: u64 = 2_000_000_000;

/// Returns the end of the recording, in ns since 1970-01-01 UTC, if it was made on this machine: it
/// states this host's name and kernel, and by its clock, which counts from the boot, the machine
/// was booted when this one was. The author of a forged recording does not know that time.
pub(super) fn until_ns(info: &Info, written: Option<SystemTime>) -> Option<u64> {
    let kernel = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    let is_own = |stated: &Option<String>, name| {
        let own = || kernel(name).is_some_and(|own| Some(own.trim_end()) == stated.as_deref());
        stated.is_some() && own()
    };
    if !is_own(&info.host_name, "hostname") || !is_own(&info.os_release, "osrelease") {
        return None;
    }
    let [_, last_ns] = info.sample_times_ns?;
    let written_ns = written.and_then(since_1970_ns);
    let booted_ns = match info.clock {
        Some(clock) => clock.wall_ns.checked_sub(clock.clock_ns),
        None => written_ns?.checked_sub(last_ns),
    };
    let (booted_ns, own_ns) = (booted_ns?, own_boot_ns()?);
    let is_this_boot = last_ns > 0 && booted_ns.abs_diff(own_ns) <= TOLERANCE_NS;
    let ended_ns = written_ns.unwrap_or_else(|| own_ns.saturating_add(last_ns));
    is_this_boot.then_some(ended_ns)
}

/// Returns this machine's boot time, in ns since 1970-01-01 UTC.
fn own_boot_ns() -> Option<u64> {
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    let seconds: f64 = uptime.split(' ').next()?.parse().ok()?;
    since_1970_ns(SystemTime::now())?.checked_sub((seconds * 1e9) as u64)
}

fn since_1970_ns(time: SystemTime) -> Option<u64> {
    let since = time.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(name: &str) -> Option<String> {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        Some(text.trim_end().to_owned())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_recording_of_this_boot_has_this_hosts_name_and_clock() {
        let mut info = Info::default();
        let now = SystemTime::now();
        let since_boot = since_1970_ns(now).unwrap() - own_boot_ns().unwrap();
        info.sample_times_ns = Some([1, since_boot]);
        assert_eq!(until_ns(&info, Some(now)), None, "whose it is is unknown");
        info.host_name = own("hostname");
        info.os_release = own("osrelease");
        assert_eq!(until_ns(&info, Some(now)), since_1970_ns(now));
        assert_eq!(until_ns(&info, None), None);
        info.sample_times_ns = Some([1, since_boot - 5_000_000_000]);
        assert_eq!(
            until_ns(&info, Some(now)),
            None,
            "another boot, or a file that was touched"
        );
        info.host_name = Some("elsewhere".to_owned());
        info.sample_times_ns = Some([1, since_boot]);
        assert_eq!(until_ns(&info, Some(now)), None);
    }
}
