#![expect(
    clippy::arithmetic_side_effects,
    reason = "parts of a date have 16 bits each"
)]

use std::fmt;

use chronosym_types::Cursor;

use crate::error::Error;
use crate::fault::Parsed;

/// The two families of EventPipe files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.netperf`: versions 1 to 3, .NET Core 2.
    Netperf,
    /// `.nettrace`: version 4 (.NET Core 3 and later) and 6.
    Nettrace,
}

/// What a trace says of itself at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceHeader {
    /// File family.
    pub format: Format,
    /// Major and minor version of the format. "V5" files say 4 here, as on disk.
    pub version: (u32, u32),
    /// Wall-clock time at [`qpc_start`](Self::qpc_start), UTC; `None` if the header is cut off.
    pub start: Option<StartTime>,
    /// Raw clock at the start of the trace, in ticks.
    pub qpc_start: i64,
    /// Ticks of the raw clock a second; never 0.
    pub qpc_frequency: u64,
    /// Bytes of an address in stacks: 4 or 8.
    pub pointer_size: u8,
    /// Process that was traced; in V6 from the `ProcessId` key, absent in traces of a whole machine.
    pub process_id: Option<u32>,
    /// Hardware threads of the machine.
    pub processors: Option<u32>,
    /// Time between two ticks of the sampler as asked for, in nanoseconds.
    pub sample_rate_ns: Option<u32>,
    /// Key-value pairs of a V6 header, in file order.
    pub key_values: Vec<(String, String)>,
}

impl TraceHeader {
    /// A header of which nothing but the format is known yet.
    pub(crate) fn unknown(format: Format, version: (u32, u32)) -> Self {
        Self {
            format,
            version,
            start: None,
            qpc_start: 0,
            qpc_frequency: 1_000_000_000,
            pointer_size: 8,
            process_id: None,
            processors: None,
            sample_rate_ns: None,
            key_values: Vec::new(),
        }
    }

    /// SYSTEMTIME, clock and frequency: the part that all versions share.
    pub(crate) fn read_clock(&mut self, cursor: &mut Cursor<'_>) -> Parsed<()> {
        let mut parts = [0u16; 8];
        for part in &mut parts {
            *part = cursor.u16()?;
        }
        let [
            year,
            month,
            day_of_week,
            day,
            hour,
            minute,
            second,
            millisecond,
        ] = parts;
        self.start = Some(StartTime {
            year,
            month,
            day_of_week,
            day,
            hour,
            minute,
            second,
            millisecond,
        });
        self.qpc_start = cursor.i64()?;
        self.qpc_frequency = cursor.u64()?;
        Ok(())
    }

    /// The rest of the V3 to V5 header.
    pub(crate) fn read_process(&mut self, cursor: &mut Cursor<'_>) -> Parsed<u32> {
        let pointer_size = cursor.u32()?;
        self.process_id = Some(cursor.u32()?);
        self.processors = Some(cursor.u32()?);
        self.sample_rate_ns = Some(cursor.u32()?);
        Ok(pointer_size)
    }

    /// The rest of the V6 header.
    pub(crate) fn read_pairs(&mut self, cursor: &mut Cursor<'_>) -> Parsed<u32> {
        let pointer_size = cursor.u32()?;
        for _ in 0..cursor.u32()? {
            let (key, value) = (
                cursor.var_text()?.to_string(),
                cursor.var_text()?.to_string(),
            );
            match key.as_str() {
                "ProcessId" => self.process_id = value.parse().ok(),
                "HardwareThreadCount" => self.processors = value.parse().ok(),
                "ExpectedCPUSamplingRate" => self.sample_rate_ns = value.parse().ok(),
                _ => {}
            }
            self.key_values.push((key, value));
        }
        Ok(pointer_size)
    }

    pub(crate) fn check(&mut self, pointer_size: u32, offset: u64) -> Result<(), Error> {
        self.pointer_size = match pointer_size {
            4 => 4,
            8 => 8,
            other => {
                return Err(Error::BadHeader {
                    offset,
                    what: "pointer size",
                    value: other.into(),
                });
            }
        };
        if self.qpc_frequency == 0 || i64::try_from(self.qpc_frequency).is_err() {
            let value = self.qpc_frequency.cast_signed();
            return Err(Error::BadHeader {
                offset,
                what: "clock frequency",
                value,
            });
        }
        Ok(())
    }
}

/// A SYSTEMTIME as stored: UTC, to the millisecond. It may hold nonsense; [`unix_ns`](Self::unix_ns) checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartTime {
    /// Year, 2018 and later in real traces.
    pub year: u16,
    /// 1 to 12.
    pub month: u16,
    /// 0 is Sunday.
    pub day_of_week: u16,
    /// 1 to 31.
    pub day: u16,
    /// 0 to 23.
    pub hour: u16,
    /// 0 to 59.
    pub minute: u16,
    /// 0 to 59.
    pub second: u16,
    /// 0 to 999.
    pub millisecond: u16,
}

impl StartTime {
    /// Nanoseconds since 1970-01-01 UTC, or `None` for a date that does not exist.
    pub fn unix_ns(&self) -> Option<i64> {
        let year = i64::from(self.year);
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let days_in_month = match self.month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        if !(1..=days_in_month).contains(&self.day)
            || self.hour > 23
            || self.minute > 59
            || self.second > 59
            || self.millisecond > 999
        {
            return None;
        }
        // Years counted from March, so that the leap day is the last one.
        let month = i64::from(self.month);
        let shifted_year = if month <= 2 { year - 1 } else { year };
        let month_from_march = (month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(self.day) - 1;
        let leap_days = shifted_year.div_euclid(4) - shifted_year.div_euclid(100)
            + shifted_year.div_euclid(400);
        let days = 365 * shifted_year + leap_days + day_of_year - 719_468;
        let seconds = ((days * 24 + i64::from(self.hour)) * 60 + i64::from(self.minute)) * 60
            + i64::from(self.second);
        seconds
            .checked_mul(1_000)?
            .checked_add(i64::from(self.millisecond))?
            .checked_mul(1_000_000)
    }
}

impl fmt::Display for StartTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
            millisecond,
            ..
        } = self;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: u16, month: u16, day: u16) -> StartTime {
        StartTime {
            year,
            month,
            day_of_week: 0,
            day,
            hour: 0,
            minute: 0,
            second: 0,
            millisecond: 0,
        }
    }

    #[test]
    fn start_time_counts_from_1970() {
        assert_eq!(date(1970, 1, 1).unix_ns(), Some(0));
        let leap_day = StartTime {
            hour: 23,
            minute: 59,
            second: 59,
            millisecond: 999,
            ..date(2024, 2, 29)
        };
        assert_eq!(leap_day.unix_ns(), Some(1_709_251_199_999_000_000));
        assert_eq!(date(2000, 3, 1).unix_ns(), Some(951_868_800_000_000_000));
        assert_eq!(leap_day.to_string(), "2024-02-29T23:59:59.999Z");
    }

    #[test]
    fn dates_that_do_not_exist_have_no_time() {
        assert_eq!(date(2023, 2, 29).unix_ns(), None);
        assert_eq!(date(2023, 0, 1).unix_ns(), None);
        assert_eq!(date(2023, 13, 1).unix_ns(), None);
        assert_eq!(date(2023, 4, 31).unix_ns(), None);
        assert_eq!(date(u16::MAX, 1, 1).unix_ns(), None);
    }
}
