//! Where files are mapped: `/proc/PID/maps`, also within a log.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result};

use crate::units::hex;

/// The mappings of a process.
#[derive(Debug, Default)]
pub struct Mappings(Vec<Mapping>);

#[derive(Debug)]
struct Mapping {
    start: u64,
    end: u64,
    file_offset: u64,
    path: String,
}

impl Mappings {
    /// Reads a file that lists mappings, and other lines perhaps.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        let name = || path.display().to_string();
        let file = File::open(path).with_context(name)?;
        Self::parse(BufReader::new(file)).with_context(name)
    }

    fn parse(text: impl BufRead) -> io::Result<Self> {
        let mut list = Vec::new();
        for line in text.split(b'\n') {
            list.extend(mapping(&String::from_utf8_lossy(&line?)));
        }
        list.sort_by_key(|mapping: &Mapping| mapping.start);
        Ok(Mappings(list))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The path and the file offset of an address.
    pub fn find(&self, address: u64) -> Option<(&str, u64)> {
        let next = self.0.partition_point(|mapping| mapping.start <= address);
        let mapping = self.0[..next]
            .last()
            .filter(|mapping| address < mapping.end)?;
        let within = address - mapping.start;
        Some((&mapping.path, mapping.file_offset.checked_add(within)?))
    }
}

/// `55d0c0a00000-55d0c0a04000 r-xp 00001000 fe:01 1234   /srv/my prog`.
fn mapping(line: &str) -> Option<Mapping> {
    let (start, end, rest) = split(line)?;
    let (file_offset, rest) = next_word(rest);
    let (_device, rest) = next_word(rest);
    let (_inode, path) = next_word(rest);
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        file_offset: hex(file_offset)?,
        path: path.trim_end_matches(" (deleted)").to_owned(),
    })
}

/// The start and the end of a line that lists a mapping, and what follows its mode.
pub fn split(line: &str) -> Option<(&str, &str, &str)> {
    let (range, rest) = next_word(line.trim());
    let (start, end) = range.split_once('-')?;
    let (mode, rest) = next_word(rest);
    let is_mode = mode.len() == 4 && mode.bytes().all(|b| b"rwxsp-".contains(&b));
    is_mode.then_some((start, end, rest))
}

fn next_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Mappings {
        Mappings::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn addresses_are_found_in_mappings() {
        let mappings = parse(
            "Dynamic libraries:\n\
             55d0c0a00000-55d0c0a01000 r--p 00000000 fe:01 1234   /srv/my prog\n\
             55d0c0a01000-55d0c0a04000 r-xp 00002000 fe:01 1234   /srv/my prog\r\n\
             7ffd12300000-7ffd12321000 rw-p 00000000 00:00 0      [stack]\n\
             7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n\
             zz-1 r-xp\nffffffffffffffff-0 r-xp ffffffffffffffff 0 0 x",
        );
        let find = |address| mappings.find(address);
        assert_eq!(find(0x55d0_c0a0_0fff), Some(("/srv/my prog", 0xfff)));
        assert_eq!(find(0x55d0_c0a0_11c1), Some(("/srv/my prog", 0x21c1)));
        assert_eq!(find(0x55d0_c0a0_4000), None);
        assert_eq!(find(0x7f00_0000_0010), Some(("", 0x10)));
        assert_eq!(find(u64::MAX), None);
        assert_eq!(find(0), None);
        assert!(parse("").is_empty());
    }
}
