//! Windows times as text.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "days and seconds of 64-bit counts of 100 ns"
)]

/// Days from 1601-01-01 to 1970-01-01.
const DAYS_1601_TO_1970: i64 = 134_774;

/// A FILETIME (100 ns since 1601-01-01 UTC) in RFC 3339 form, such as `2019-04-17T18:40:00.1234567Z`.
pub(crate) fn filetime(ticks: u64) -> String {
    let (seconds, fraction) = (ticks / 10_000_000, ticks % 10_000_000);
    let (days, of_day) = ((seconds / 86_400) as i64, seconds % 86_400);
    let (year, month, day) = civil(days - DAYS_1601_TO_1970);
    let (h, m, s) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}");
    if fraction != 0 {
        text.push_str(format!(".{fraction:07}").trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// A SYSTEMTIME: year, month, day of week, day, hour, minute, second, milliseconds.
pub(crate) fn systemtime([year, month, _, day, h, m, s, ms]: [u16; 8]) -> String {
    format!("{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{ms:03}Z")
}

/// Year, month and day of a day counted from 1970-01-01, by the proleptic Gregorian calendar.
fn civil(days: i64) -> (i64, u32, u32) {
    // Count from 0000-03-01, so that leap days end their years; 146,097 days are 400 years.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = (of_year - (153 * month + 2) / 5 + 1) as u32;
    let month = if month < 10 { month + 3 } else { month - 9 } as u32;
    (year + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(filetime(0), "1601-01-01T00:00:00Z");
        assert_eq!(filetime(116_444_736_000_000_000), "1970-01-01T00:00:00Z");
        assert_eq!(
            filetime(125_963_423_999_999_990),
            "2000-02-29T23:59:59.999999Z"
        );
        assert_eq!(
            filetime(133_801_632_000_000_001),
            "2025-01-01T00:00:00.0000001Z"
        );
        assert!(filetime(u64::MAX).starts_with("60056-"));
        assert_eq!(
            systemtime([2024, 2, 4, 29, 1, 2, 3, 4]),
            "2024-02-29T01:02:03.004Z"
        );
    }
}
