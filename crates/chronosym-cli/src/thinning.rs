//! Leaves out samples of files that viewers would not open.

use std::io::{self, Write};

use chronosym_export::{Series, show_count};

use crate::args::{StackFormat, Stacks};
use crate::progress;

/// Viewers do not open files of more bytes.
const LARGE: u64 = 200_000_000;

/// Writes a file for speedscope or Firefox.
pub fn write(series: &Series, format: StackFormat, out: &mut impl Write) -> io::Result<()> {
    match format {
        StackFormat::Firefox => chronosym_export::write_firefox(series, out),
        _ => chronosym_export::write_speedscope(series, out),
    }
}

/// Keeps one of every N samples of each thread: as requested, or as many as viewers can open, which
/// is reported.
pub fn thin(series: &mut Series, args: &Stacks, format: StackFormat) -> io::Result<()> {
    if let Some(every) = args.every {
        series.thin(every);
        return Ok(());
    }
    if args.full {
        return Ok(());
    }
    let all = series.samples.len();
    let every = fit(series, format, LARGE)?;
    let kept = series.samples.len();
    if kept < all {
        let [kept, all] = [kept, all].map(|count| show_count(count as u64));
        progress::note(&format!(
            "the file has one of every {every} samples of each thread, with the weight of all: {kept} of {all}; a file with all samples (--full) would exceed 200 MB"
        ));
    }
    Ok(())
}

/// Keeps one of every N samples of each thread, so that a file has at most `large` bytes. Returns N.
fn fit(series: &mut Series, format: StackFormat, large: u64) -> io::Result<u64> {
    let (least, most) = sizes(series, format);
    let mut every = least.div_ceil(large).max(1);
    series.thin(every);
    let mut size = u64::MAX;
    while most / every > large {
        let mut file = Counter(0);
        write(series, format, &mut file)?;
        // What does not shrink is not of samples.
        if file.0 <= large || file.0 > size / 4 * 3 {
            break;
        }
        size = file.0;
        let factor = size.div_ceil(large);
        series.thin(factor);
        every *= factor;
    }
    Ok(every)
}

/// Returns bounds of the size of a file, as measured: each distinct stack and function takes more
/// than another sample.
fn sizes(series: &Series, format: StackFormat) -> (u64, u64) {
    let samples = series.samples.len() as u64;
    let least = match format {
        StackFormat::Firefox => 28,
        _ => 52,
    };
    let most = samples
        .saturating_mul(60)
        .saturating_add(series.frames().saturating_mul(40));
    (samples.saturating_mul(least), most)
}

/// Counts the bytes of an output.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use chronosym::facts::{At, Sample};
    use chronosym::{Filter, Options, Session};
    use chronosym_export::{Granularity, Shape};

    use super::*;

    #[test]
    fn files_of_deep_distinct_stacks_fit() {
        for format in [StackFormat::Speedscope, StackFormat::Firefox] {
            let mut session = Session::new(Options::default());
            for time in 0..2_000 {
                let stack: Vec<u64> = (0..50).map(|depth| 1 << 20 | time << 8 | depth).collect();
                session.sample(At::new(time).process(1).thread(7), &stack, Sample::cpu());
            }
            let granularity = Granularity {
                addresses: true,
                ..Granularity::default()
            };
            let (filter, shape) = (Filter::default(), Shape::default());
            let timeline = session.finish();
            let mut series = Series::new(&timeline, &filter, None, &shape, granularity, None);
            let every = fit(&mut series, format, 300_000).expect("memory");
            // By the number of samples alone, the file would have all.
            assert!(every > 1);
            assert_eq!(series.samples.len() as u64, 2_000_u64.div_ceil(every));
            let mut file = Counter(0);
            write(&series, format, &mut file).expect("memory");
            assert!((50_000..=300_000).contains(&file.0), "{}", file.0);
        }
    }
}
