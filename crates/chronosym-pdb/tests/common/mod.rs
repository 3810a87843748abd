//! The project's own test data.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::Read;
use std::path::{Path, PathBuf};

pub(crate) fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata")
        .join(relative)
}

pub(crate) fn read(relative: &str) -> Vec<u8> {
    let path = path(relative);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The only file of a zip archive.
pub(crate) fn unzip(relative: &str) -> Vec<u8> {
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(read(relative))).unwrap();
    let mut bytes = Vec::new();
    archive
        .by_index(0)
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

pub(crate) fn gunzip(relative: &str) -> String {
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(&read(relative)[..])
        .read_to_string(&mut text)
        .unwrap();
    text
}

pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16()
        .chain([0])
        .flat_map(u16::to_le_bytes)
        .collect()
}

/// Returns the positions of `needle` in `haystack`.
pub(crate) fn positions<'a>(
    haystack: &'a [u8],
    needle: &'a [u8],
) -> impl Iterator<Item = usize> + 'a {
    haystack
        .windows(needle.len())
        .enumerate()
        .filter(move |(_, window)| *window == needle)
        .map(|(at, _)| at)
}
