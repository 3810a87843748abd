//! The PDB stream (number 1): identity, named streams, features.

use super::msf::Msf;
use crate::bytes::{self, Cursor};
use crate::{Error, Guid, Result};

/// `impv` of Visual C++ 7.0; every later compiler writes it or a greater one.
const VC70: u32 = 20_000_404;
/// Feature code of a `/DEBUG:FASTLINK` PDB ("MINI"): symbols stay in the object files.
const MINIMAL: u32 = 0x494E_494D;

/// A name and the number of its stream.
type NamedStream = (Box<[u8]>, u32);

#[derive(Debug)]
pub(super) struct Info {
    pub(super) guid: Guid,
    pub(super) age: u32,
    pub(super) fastlink: bool,
    named: Box<[NamedStream]>,
}

impl Info {
    pub(super) fn read(msf: &Msf<'_>) -> Result<Self> {
        let what = "PDB stream";
        let stream = msf.required(1, what)?;
        let data = stream.bytes(0, stream.len())?;
        let mut at = Cursor::new(&data, what);
        let version = at.u32()?;
        if version < VC70 {
            return Err(Error::Unsupported { what, version });
        }
        let (_signature, age) = (at.u32()?, at.u32()?);
        let guid = Guid(at.array()?);
        let mut info = Self {
            guid,
            age,
            fastlink: false,
            named: Box::default(),
        };
        if at.position() < data.len() {
            let size = at.u32()? as usize;
            let strings = at.bytes(size)?;
            info.named = named_streams(strings, &mut at)?;
            // One more word (the size of an empty legacy map), then the feature codes.
            let _ = at.u32();
            while let Ok(feature) = at.u32() {
                info.fastlink |= feature == MINIMAL;
            }
        }
        Ok(info)
    }

    /// The number of the stream called `name`.
    pub(super) fn named(&self, name: &str) -> Option<u32> {
        let mut named = self.named.iter();
        named
            .find(|(found, _)| **found == *name.as_bytes())
            .map(|&(_, stream)| stream)
    }
}

/// A closed hash table on disk: size, capacity, bit vectors of present and deleted slots, then the
/// present slots' (offset of the name, stream number).
fn named_streams(strings: &[u8], at: &mut Cursor<'_>) -> Result<Box<[NamedStream]>> {
    let (count, _capacity) = (at.u32()?, at.u32()?);
    for _ in 0..2 {
        let words = at.u32()? as usize;
        at.bytes(words.saturating_mul(4))?;
    }
    let mut named = Vec::new();
    for _ in 0..count {
        let (name, stream) = (at.u32()? as usize, at.u32()?);
        let name = strings
            .get(name..)
            .ok_or(at.damaged("a stream's name lies outside the string buffer"))?;
        named.push((super::symbols::until_nul(name).into(), stream));
    }
    Ok(named.into())
}

/// The string table `/names`: strings at byte offsets.
#[derive(Debug)]
pub(super) struct Names<'a> {
    data: std::borrow::Cow<'a, [u8]>,
}

impl<'a> Names<'a> {
    const HEADER: u32 = 12;

    pub(super) fn read(msf: &Msf<'a>, info: &Info) -> Result<Self> {
        let what = "string table /names";
        let Some(number) = info.named("/names") else {
            return Ok(Self {
                data: Default::default(),
            });
        };
        let stream = msf.required(number, what)?;
        if stream.u32(0) != Some(0xEFFE_EFFE) {
            return Err(stream.damaged(0, "the signature is not 0xEFFEEFFE"));
        }
        let size = stream.u32(8).ok_or(stream.short(8, 4))?;
        let end = size.saturating_add(Self::HEADER);
        Ok(Self {
            data: stream.bytes(0, end)?,
        })
    }

    pub(super) fn get(&self, offset: u32) -> Option<&[u8]> {
        let at = offset.checked_add(Self::HEADER)? as usize;
        Some(super::symbols::until_nul(self.data.get(at..)?))
    }
}

/// A source file's checksum as the `/src/files/…` streams of managed compilers hold it.
///
/// Layout: language, vendor, document type and algorithm GUIDs, checksum size, source size, bytes.
pub(super) fn source_checksum(data: &[u8]) -> Option<(&[u8; 16], &[u8])> {
    let algorithm = bytes::slice(data, 48, 16)?.try_into().ok()?;
    let size = bytes::u32(data, 64)? as usize;
    Some((algorithm, bytes::slice(data, 72, size)?))
}
