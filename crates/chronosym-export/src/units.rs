//! Numbers, times and addresses as text.

/// Formats a number with thousands separators: `1,234,567`.
pub fn show_count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Formats a number with a noun: `1 wait`, `1,200 waits`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {one}{plural}", show_count(count))
}

/// Formats a number with at most four digits and a prefix: `12.35G`; exact below 10,000.
pub(crate) fn show_rounded(n: u64) -> String {
    if n < 10_000 {
        return n.to_string();
    }
    let (mut scaled, mut prefix) = (n as f64, "");
    for next in ["k", "M", "G", "T", "P", "E"] {
        // So that rounding does not reach 1,000.
        if scaled >= 999.95 {
            (scaled, prefix) = (scaled / 1e3, next);
        }
    }
    let decimals = if scaled < 9.995 { 2 } else { 1 };
    format!("{scaled:.decimals$}{prefix}")
}

/// Formats a time in ns from the start of the trace: `1.234567s`.
pub fn show_time(ns: u64) -> String {
    format!("{}.{:06}s", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// Formats a duration in ns for a sentence: `12.35 s`, `7 ms`, `80 µs`.
pub(crate) fn show_span(ns: u64) -> String {
    match ns {
        ..999_500 => format!("{:.0} µs", ns as f64 / 1e3),
        999_500..999_500_000 => format!("{:.0} ms", ns as f64 / 1e6),
        _ => format!("{:.2} s", ns as f64 / 1e9),
    }
}

/// Formats the first and last address of a range: `0x1000-0x1fff`.
pub fn show_range(start: u64, size: u64) -> String {
    let last = start.saturating_add(size.saturating_sub(1));
    format!("{start:#x}-{last:#x}")
}

/// Formats a time in ns since 1970: `2026-11-06 21:13:27 UTC`.
pub fn utc(unix_ns: i128) -> Option<String> {
    let seconds = i64::try_from(unix_ns.div_euclid(1_000_000_000)).ok()?;
    let [year, month, day, hour, minute, second] = chronosym_types::time::utc(seconds);
    Some(format!(
        "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds: i128| utc(seconds * 1_000_000_000).unwrap();
        assert_eq!(at(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(at(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(at(1_794_000_000), "2026-11-06 21:20:00 UTC");
        assert_eq!(at(-1), "1969-12-31 23:59:59 UTC");
    }

    #[test]
    fn rounded_numbers_have_four_digits() {
        let shown =
            [0, 9_999, 10_000, 999_949, 999_950, 12_345_678_901, u64::MAX].map(show_rounded);
        assert_eq!(
            shown,
            ["0", "9999", "10.0k", "999.9k", "1.00M", "12.3G", "18.4E"]
        );
    }

    #[test]
    fn counts_have_separators() {
        assert_eq!(
            (show_count(1_234_567), show_count(12), show_count(123)),
            ("1,234,567".into(), "12".into(), "123".into())
        );
    }
}
