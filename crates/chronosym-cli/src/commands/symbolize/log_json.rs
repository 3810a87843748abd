//! Addresses in JSON: an object states the module beside them.

use std::ops::Range;

use crate::request::{At, Target};
use crate::units::parse_address;

/// Bytes of an object on either side of an address that are read.
const NEAR: usize = 4 << 10;

const MODULES: &[&str] = &[
    "module",
    "package",
    "code_file",
    "object",
    "image_name",
    "imageName",
    "binary",
    "binaryName",
];
const CODE: &[&str] = &[
    "addr",
    "address",
    "instruction_addr",
    "ip",
    "pc",
    "native_address",
];

/// Completes an address, which stands in quotes; false if it is none of code.
pub fn complete<'a>(text: &'a [u8], range: Range<usize>, target: &mut Target<'a>) -> bool {
    let At::Address(address) = target.at else {
        return false;
    };
    let object = object_around(text, range.clone());
    let key = key_before(&text[..range.start - 1]);
    target.file = MODULES.iter().find_map(|key| value(object, key));
    if matches!(
        key,
        Some("module_offset" | "module_relative_address" | "image_offset")
    ) {
        target.at = At::Rva(address);
        return target.file.is_some();
    }
    if let Some(base) = value(object, "image_addr").and_then(parse_address) {
        target.at = At::Rva(address.wrapping_sub(base));
    }
    key.is_some_and(|key| CODE.contains(&key))
}

/// The object that a value is in, without those around it.
fn object_around(text: &[u8], range: Range<usize>) -> &str {
    let mut depth = 0_usize;
    let before = text[range.start.saturating_sub(NEAR)..range.start]
        .iter()
        .rev();
    let start = before.take_while(|&&b| {
        match b {
            b'}' => depth += 1,
            b'{' if depth == 0 => return false,
            b'{' => depth -= 1,
            _ => {}
        }
        true
    });
    let start = range.start - start.count();
    let mut depth = 0_usize;
    let after = text[range.end..text.len().min(range.end + NEAR)].iter();
    let end = after.take_while(|&&b| {
        match b {
            b'{' => depth += 1,
            b'}' if depth == 0 => return false,
            b'}' => depth -= 1,
            _ => {}
        }
        true
    });
    let end = range.end + end.count();
    std::str::from_utf8(&text[start..end]).unwrap_or_default()
}

/// The key before a value in quotes.
fn key_before(before: &[u8]) -> Option<&str> {
    let start = before.len().saturating_sub(64);
    let before = before.get(start..)?;
    let ascii = before
        .iter()
        .rposition(|b| !b.is_ascii())
        .map_or(0, |at| at + 1);
    let before = std::str::from_utf8(&before[ascii..]).ok()?;
    let key = before
        .trim_end()
        .strip_suffix(':')?
        .trim_end()
        .strip_suffix('"')?;
    Some(key.rsplit_once('"')?.1)
}

/// The text that an object has for a key.
fn value<'a>(object: &'a str, key: &str) -> Option<&'a str> {
    let (_, after) = object.split_once(&format!("\"{key}\""))?;
    let value = after.trim_start().strip_prefix(':')?.trim_start();
    let value = value.strip_prefix('"')?;
    Some(value.split('"').next().unwrap_or_default()).filter(|value| !value.contains('\\'))
}
