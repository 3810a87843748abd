//! Dates and times of day in UTC, by the proleptic Gregorian calendar.

#![cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        reason = "days and seconds of 64-bit counts, and dates of 16-bit parts"
    )
)]

use std::fmt;

/// Returns year, month, day, hour, minute and second of a time in seconds since 1970-01-01.
///
/// # Examples
///
/// ```
/// assert_eq!(chronosym_types::time::utc(86_400 + 3_661), [1970, 1, 2, 1, 1, 1]);
/// ```
pub fn utc(unix_seconds: i64) -> [i64; 6] {
    let (days, of_day) = (
        unix_seconds.div_euclid(86_400),
        unix_seconds.rem_euclid(86_400),
    );
    // Count from 0000-03-01, so that leap days end their years; 146,097 days are 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    [year, month, day, hour, minute, second]
}

/// A FILETIME: 100 ns since 1601-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileTime(pub u64);

/// Writes RFC 3339, such as `2019-04-17T18:40:00.1234567Z`.
impl fmt::Display for FileTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SECONDS_1601_TO_1970: i64 = 11_644_473_600;
        let seconds = (self.0 / 10_000_000).cast_signed() - SECONDS_1601_TO_1970;
        let [year, month, day, h, m, s] = utc(seconds);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}")?;
        let fraction = format!(".{:07}", self.0 % 10_000_000);
        write!(
            f,
            "{}Z",
            fraction.trim_end_matches('0').trim_end_matches('.')
        )
    }
}

/// A SYSTEMTIME: year, month, day of the week, day, hour, minute, second, milliseconds. May be
/// invalid;
/// [`unix_ns`](Self::unix_ns) checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemTime(pub [u16; 8]);

impl SystemTime {
    /// Returns nanoseconds since 1970-01-01; `None` for a date that does not exist.
    pub fn unix_ns(self) -> Option<i64> {
        let [year, month, _, day, hour, minute, second, ms] = self.0.map(i64::from);
        // The inverse of `utc`.
        let from_march = (month + 9) % 12;
        let years = year - i64::from(month <= 2);
        let leap_days = years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400);
        let days = 365 * years + leap_days + (153 * from_march + 2) / 5 + day - 1 - 719_468;
        let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
        let exists = utc(seconds) == [year, month, day, hour, minute, second] && ms < 1000;
        (seconds * 1000 + ms)
            .checked_mul(1_000_000)
            .filter(|_| exists)
    }
}

impl fmt::Display for SystemTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, _, day, h, m, s, ms] = self.0;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_times_are_texts() {
        for (ticks, text) in [
            (0, "1601-01-01T00:00:00Z"),
            (116_444_736_000_000_000, "1970-01-01T00:00:00Z"),
            (125_963_423_999_999_990, "2000-02-29T23:59:59.999999Z"),
            (133_801_632_000_000_001, "2025-01-01T00:00:00.0000001Z"),
        ] {
            assert_eq!(FileTime(ticks).to_string(), text);
        }
        assert!(FileTime(u64::MAX).to_string().starts_with("60056-"));
    }

    fn date(year: u16, month: u16, day: u16) -> Option<i64> {
        SystemTime([year, month, 0, day, 0, 0, 0, 0]).unix_ns()
    }

    #[test]
    fn system_times_count_from_1970() {
        assert_eq!(date(1970, 1, 1), Some(0));
        assert_eq!(date(2000, 3, 1), Some(951_868_800_000_000_000));
        let leap_day = SystemTime([2024, 2, 4, 29, 23, 59, 59, 999]);
        assert_eq!(leap_day.unix_ns(), Some(1_709_251_199_999_000_000));
        assert_eq!(leap_day.to_string(), "2024-02-29T23:59:59.999Z");
    }

    #[test]
    fn dates_that_do_not_exist_have_no_time() {
        for (year, month, day) in [
            (2023, 2, 29),
            (2023, 0, 1),
            (2023, 13, 1),
            (2023, 4, 31),
            (2023, 4, 0),
            (u16::MAX, 1, 1),
        ] {
            assert_eq!(date(year, month, day), None);
        }
        for of_day in [[24, 0, 0, 0], [0, 60, 0, 0], [0, 0, 60, 0], [0, 0, 0, 1000]] {
            let [h, m, s, ms] = of_day;
            assert_eq!(SystemTime([2024, 1, 0, 1, h, m, s, ms]).unix_ns(), None);
        }
    }
}
