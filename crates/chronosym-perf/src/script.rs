//! Reads the output of `perf script`.
//!
//! ```
//! use chronosym_perf::script::{Options, Reader};
//!
//! # fn main() -> Result<(), chronosym_perf::Error> {
//! let text = b"work er 12/13 [001]  4710.772860:     250000 cpu-clock: \n\
//!     \x20\tffffffff815a2001 next_uptodate_folio+0xc1 ([kernel.kallsyms])\n\n";
//! let mut reader = Reader::new(text.as_slice(), Options::default())?;
//! let sample = reader.next_sample()?.expect("there is one");
//! assert_eq!((sample.comm, sample.pid, sample.tid), ("work er", Some(12), 13));
//! let frame = sample.frames().next().expect("it has a frame");
//! assert_eq!((frame.symbol, frame.offset), (Some("next_uptodate_folio"), Some(0xc1)));
//! # Ok(()) }
//! ```
//!
//! Addresses of frames in files are offsets in the file, all others addresses of the process, as
//! perf prints them. Text that is not UTF-8 is converted with replacement characters.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of what was read, and places in a line that is in memory"
)]

use std::io::Read;

use chronosym_types::Window;

use crate::error::Error;

/// Limits of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Bytes of a line; the rest is cut. 64 KiB unless set.
    pub line_limit: usize,
    /// Bytes of all lines of a sample; further lines are skipped. 4 MiB unless set.
    pub sample_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            line_limit: 64 << 10,
            sample_limit: 4 << 20,
        }
    }
}

/// One sample, borrowed from the reader until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// Name of the thread.
    pub comm: &'a str,
    /// Process; `None` if it was not printed.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: u32,
    /// Processor, if it was printed.
    pub cpu: Option<u32>,
    /// ns on the clock of the recording, with the printed precision: mostly µs.
    pub time_ns: u64,
    /// Events that the sample represents, if printed.
    pub period: Option<u64>,
    /// Name of the event, empty if it was not printed.
    pub event: &'a str,
    /// The rest of the line after the event: the fields of a tracepoint.
    pub text: &'a str,
    frames: &'a str,
}

/// A frame of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame<'a> {
    /// Offset in the file for frames of files, otherwise the address in the process.
    pub address: u64,
    /// Name of the symbol.
    pub symbol: Option<&'a str>,
    /// Bytes from the start of the symbol, if they were printed.
    pub offset: Option<u64>,
    /// Path of the file, `[kernel.kallsyms]`, `perf-PID.map` and the like.
    pub dso: Option<&'a str>,
    /// The function was inlined into the next frame.
    pub is_inlined: bool,
}

/// What was damaged or unknown in a text, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostics {
    /// Bytes read from the source.
    pub bytes_read: u64,
    /// Samples read.
    pub samples: u64,
    /// Records other than samples, such as mappings and thread starts; skipped.
    pub other_records: u64,
    /// Lines that are neither head nor frame of a sample, skipped.
    pub unknown_lines: u64,
    /// Lines that were cut as too long, or skipped because their sample has too many.
    pub long_lines: u64,
}

impl Diagnostics {
    /// Returns whether all of the text was read.
    pub fn is_clean(&self) -> bool {
        self.unknown_lines == 0 && self.long_lines == 0
    }
}

/// Returns whether a text with these first bytes is the output of `perf script`: its first line
/// that is neither blank nor a comment is the head of a sample, or the comments are those of `perf
/// script --header`.
///
/// # Examples
///
/// ```
/// use chronosym_perf::script::is_script;
///
/// assert!(is_script(b"app 10/11 [000] 1.000002: cycles:\n\t1010 work (/bin/app)\n"));
/// assert!(!is_script(b"PERFILE2"));
/// ```
pub fn is_script(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut lines = text.lines();
    let is_header = lines.next().is_some_and(|line| line.starts_with("# ====="));
    if is_header
        && lines
            .next()
            .is_some_and(|line| line.starts_with("# captured on"))
    {
        return true;
    }
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| self::head(line).is_some())
}

/// Reads samples from any source, in the order of the text.
pub struct Reader<R> {
    window: Window<R>,
    options: Options,
    diagnostics: Diagnostics,
    /// The current line, and the head of the next sample once it was read.
    line: String,
    has_head: bool,
    head: String,
    frames: String,
}

impl<R: Read> Reader<R> {
    /// Opens a text. Any text is accepted: lines that are not samples are counted.
    ///
    /// # Errors
    /// [`Error::Io`] if nothing of the source can be read.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_perf::script::{Options, Reader};
    ///
    /// let text = "app 10/11 [000] 1.000002: cycles:\n\t1010 work+0x10 (/bin/app)\n\t2020 main+0x20 (/bin/app)\n\n";
    /// let mut reader = Reader::new(text.as_bytes(), Options::default())?;
    /// let sample = reader.next_sample()?.unwrap();
    /// assert_eq!((sample.comm, sample.pid, sample.tid), ("app", Some(10), 11));
    /// assert_eq!(sample.time_ns, 1_000_002_000);
    /// let symbols: Vec<_> = sample.frames().filter_map(|frame| frame.symbol).collect();
    /// assert_eq!(symbols, ["work", "main"]); // leaf first
    /// # Ok::<(), chronosym_perf::Error>(())
    /// ```
    pub fn new(source: R, options: Options) -> Result<Self, Error> {
        let mut window = Window::new(source);
        window.fill_to(1);
        if let Some(source) = window.take_failure() {
            return Err(Error::Io { offset: 0, source });
        }
        Ok(Self {
            window,
            options,
            diagnostics: Diagnostics::default(),
            line: String::new(),
            has_head: false,
            head: String::new(),
            frames: String::new(),
        })
    }

    /// Returns the diagnostics so far.
    pub fn diagnostics(&self) -> &Diagnostics {
        &self.diagnostics
    }

    /// Returns the next sample; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if the source fails, after everything read before has been delivered.
    pub fn next_sample(&mut self) -> Result<Option<Sample<'_>>, Error> {
        self.frames.clear();
        while !self.has_head {
            if !self.read_line() {
                let offset = self.window.end_offset();
                return match self.window.take_failure() {
                    Some(source) => Err(Error::Io { offset, source }),
                    None => Ok(None),
                };
            }
            self.look();
        }
        std::mem::swap(&mut self.head, &mut self.line);
        self.has_head = false;
        // A blank line ends the frames, or the head of the next sample.
        while self.read_line() && !self.line.trim().is_empty() {
            let is_frame = frame(&self.line).is_some();
            if is_frame && (self.line.starts_with('\t') || head(&self.line).is_none()) {
                if self.frames.len() + self.line.len() < self.options.sample_limit {
                    self.frames.push_str(&self.line);
                    self.frames.push('\n');
                } else {
                    self.diagnostics.long_lines += 1;
                }
                continue;
            }
            self.look();
            if self.has_head {
                break;
            }
        }
        self.diagnostics.samples += 1;
        Ok(head(&self.head).map(|sample| Sample {
            frames: &self.frames,
            ..sample
        }))
    }

    /// Classifies a line outside the frames.
    fn look(&mut self) {
        let line = self.line.trim();
        match head(&self.line) {
            _ if line.is_empty() || line.starts_with('#') => {}
            Some(head) if head.text.starts_with("PERF_RECORD_") => {
                self.diagnostics.other_records += 1;
            }
            Some(_) => self.has_head = true,
            None => self.diagnostics.unknown_lines += 1,
        }
    }

    /// Reads a line, without its end; false at the end of the text.
    fn read_line(&mut self) -> bool {
        self.line.clear();
        let mut seen = 0;
        let end = loop {
            let bytes = self.window.bytes();
            let mut new = bytes.iter().skip(seen);
            if let Some(end) = new.position(|&byte| byte == b'\n') {
                break seen + end + 1;
            }
            seen = bytes.len();
            // Only the start of an endless line is held.
            if seen > self.options.line_limit || !self.window.read_more() {
                break seen;
            }
        };
        let bytes = self.window.bytes().get(..end).unwrap_or_default();
        let is_ended = bytes.ends_with(b"\n");
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let kept = text.get(..self.options.line_limit).unwrap_or(text);
        self.line.push_str(String::from_utf8_lossy(kept).trim_end());
        let is_long = kept.len() < text.len();
        self.window.discard(end);
        if is_long {
            self.diagnostics.long_lines += 1;
            while !is_ended && self.skip_to_line_end() {}
        }
        self.diagnostics.bytes_read = self.window.end_offset();
        end > 0
    }

    /// Skips the rest of a line in memory; true if the line continues.
    fn skip_to_line_end(&mut self) -> bool {
        let bytes = self.window.bytes();
        let end = bytes.iter().position(|&byte| byte == b'\n');
        self.window.discard(end.map_or(bytes.len(), |end| end + 1));
        end.is_none() && self.window.read_more()
    }
}

impl<'a> Sample<'a> {
    /// Returns the frames, innermost first.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'a>> + use<'a> {
        let own_line = frame(self.text).into_iter();
        own_line.chain(self.frames.lines().filter_map(frame))
    }
}

/// Parses the head of a sample: `COMM PID/TID [CPU] SECONDS.FRACTION: PERIOD EVENT: TEXT`. Names of
/// threads may look like anything, so the time locates it.
fn head(line: &str) -> Option<Sample<'_>> {
    let mut from = 0;
    loop {
        let colon = from + line.get(from..)?.find(':')?;
        // A time has no colon in it, so it starts after the previous one.
        if let Some(blank) = line[from..colon].rfind([' ', '\t'])
            && let Some(sample) = head_before(&line[..from + blank], &line[from + blank + 1..colon])
        {
            return Some(head_after(sample, line[colon + 1..].trim_start()));
        }
        from = colon + 1;
    }
}

fn head_before<'a>(before: &'a str, time: &str) -> Option<Sample<'a>> {
    let (seconds, fraction) = time.split_once('.')?;
    let scale = match fraction.len() {
        6 => 1_000,
        9 => 1,
        _ => return None,
    };
    let time_ns =
        (number(seconds)?.checked_mul(1_000_000_000)?).checked_add(number(fraction)? * scale)?;
    let before = before.trim_end();
    let (before, cpu) = match before.strip_suffix(']') {
        Some(cpu) => {
            let open = cpu.trim_end_matches(|c: char| c.is_ascii_digit());
            let number = number(&cpu[open.len()..])?;
            let before = open.strip_suffix('[')?;
            (before.trim_end(), Some(number.try_into().ok()?))
        }
        None => (before, None),
    };
    let (comm, ids) = before.rsplit_once([' ', '\t'])?;
    let (pid, tid) = match ids.split_once('/') {
        Some((pid, tid)) => (Some(id(pid)?), id(tid)?),
        None => (None, id(ids)?),
    };
    Some(Sample {
        comm: comm.trim(),
        pid,
        tid,
        cpu,
        time_ns,
        period: None,
        event: "",
        text: "",
        frames: "",
    })
}

fn head_after<'a>(sample: Sample<'a>, rest: &'a str) -> Sample<'a> {
    let mut words = rest.splitn(2, char::is_whitespace);
    let period = words.next().and_then(number);
    let rest = period.and(words.next()).map_or(rest, str::trim_start);
    let (event, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    match event.strip_suffix(':') {
        Some(event) => Sample {
            period,
            event,
            text: text.trim(),
            ..sample
        },
        None => Sample {
            period,
            text: rest,
            ..sample
        },
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// Parses the id of a process or thread; perf prints those of the kernel as -1.
fn id(text: &str) -> Option<u32> {
    match text {
        "-1" => Some(u32::MAX),
        _ => number(text)?.try_into().ok(),
    }
}

/// Parses a frame: `ADDRESS SYMBOL+OFFSET (DSO)`, of which perf may print the address only.
fn frame(line: &str) -> Option<Frame<'_>> {
    let line = line.trim();
    let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
    if address.starts_with('+') {
        return None;
    }
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim();
    let (symbol, dso) = match last_group(rest) {
        Some((symbol, dso)) => (symbol, Some(dso)),
        None => (rest, None),
    };
    let (symbol, offset) = match symbol.rsplit_once("+0x") {
        Some((name, offset)) => match u64::from_str_radix(offset, 16) {
            Ok(offset) => (name, Some(offset)),
            Err(_) => (symbol, None),
        },
        None => (symbol, None),
    };
    let is_named = |text: &&str| !text.is_empty() && *text != "[unknown]";
    Some(Frame {
        address,
        symbol: Some(symbol).filter(is_named),
        offset,
        is_inlined: dso == Some("inlined"),
        dso: dso.filter(|&dso| dso != "inlined").filter(is_named),
    })
}

/// Splits a text into the part before its last pair of parentheses and the part inside: both may
/// contain others.
fn last_group(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_suffix(')')?;
    let mut open = 1;
    for (at, byte) in inside.bytes().enumerate().rev() {
        match byte {
            b')' => open += 1,
            b'(' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some((inside[..at].trim_end(), &inside[at + 1..]));
        }
    }
    None
}
