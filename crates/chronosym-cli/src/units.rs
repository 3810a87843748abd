//! Parses times and addresses.

use anyhow::{Context, Result, anyhow, bail};
pub use chronosym_export::{show_count, show_time};
pub use chronosym_symbols::log::{hex, parse_address};

/// Parses `1.5s`, `200ms`, `3us`, `2m`, or a decimal fraction of seconds; returns ns. A whole
/// number without unit is rejected: other tools mean seconds by it.
pub fn parse_time(text: &str) -> Result<u64> {
    let text = text.trim();
    let units = [
        ("ns", 1u64),
        ("us", 1_000),
        ("µs", 1_000),
        ("ms", 1_000_000),
        ("s", SECOND),
        ("m", 60 * SECOND),
    ];
    let (number, unit) = units
        .iter()
        .find_map(|&(suffix, unit)| {
            text.strip_suffix(suffix)
                .map(|number| (number.trim_end(), Some(unit)))
        })
        .unwrap_or((text, None));
    let bad = || {
        anyhow!(
            "'{text}' is not a time: expected a number with m, s, ms, us or ns, such as 1.5s or 200ms"
        )
    };
    if let Ok(whole) = number.parse::<u64>() {
        let unit = match unit {
            Some(unit) => unit,
            // Zero has the same meaning in every unit.
            None if whole == 0 => 1,
            None => bail!("'{text}' has no unit: {text}s is in seconds, {text}ns in nanoseconds"),
        };
        return whole.checked_mul(unit).ok_or_else(bad);
    }
    let value: f64 = number.parse().map_err(|_| bad())?;
    if unit.is_none() && !number.contains('.') {
        return Err(bad());
    }
    // Fractions of a nanosecond are rounding errors.
    let ns = value * unit.unwrap_or(SECOND) as f64;
    if ns.is_finite() && (0.0..1.8e19).contains(&ns) {
        Ok(ns.round() as u64)
    } else {
        Err(bad())
    }
}

const SECOND: u64 = 1_000_000_000;

/// Parses `PID` or `PID@TIME`.
pub fn parse_pid(text: &str) -> Result<(u32, Option<u64>)> {
    let (pid, time) = match text.split_once('@') {
        Some((pid, time)) => (pid, Some(parse_time(time)?)),
        None => (text, None),
    };
    let pid = pid
        .parse()
        .with_context(|| format!("'{pid}' is not a process id"))?;
    Ok((pid, time))
}

/// Parses a size: bytes, or with K, M or G (1,024 bytes and its powers).
#[cfg(unix)]
pub fn parse_size(text: &str) -> Result<u64> {
    let units = [('K', 10), ('M', 20), ('G', 30)];
    let upper = text.to_uppercase();
    let upper = upper.strip_suffix('B').unwrap_or(&upper);
    let unit = units
        .iter()
        .find_map(|&(suffix, bits)| Some((upper.strip_suffix(suffix)?, bits)));
    let (digits, bits) = unit.unwrap_or((upper, 0));
    let number: Option<u64> = digits.trim_end().parse().ok();
    let size = number
        .and_then(|number| number.checked_mul(1 << bits))
        .filter(|&size| size > 0);
    size.ok_or_else(|| anyhow!("'{text}' is not a size: expected bytes, such as 500M or 2G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, ns) in [
            ("1.5s", 1_500_000_000),
            ("200ms", 200_000_000),
            ("0", 0),
            ("7ns", 7),
            ("3 us", 3_000),
            ("1.5", 1_500_000_000),
            ("2m", 120_000_000_000),
            ("18446744073709551615ns", u64::MAX),
        ] {
            assert_eq!(parse_time(text).unwrap(), ns, "{text}");
        }
        for bad in [
            "",
            "s",
            "1e3",
            "1.5.5",
            "inf",
            "m",
            "-1s",
            "1h",
            "nan",
            "7",
            "18446744073709551615",
            "1e30s",
            "99999999999999999999s",
        ] {
            assert!(parse_time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pid_can_have_a_time() {
        assert_eq!(parse_pid("7@1s").unwrap(), (7, Some(1_000_000_000)));
        assert_eq!(parse_pid("7").unwrap(), (7, None));
        assert!(parse_pid("x").is_err());
    }
}
