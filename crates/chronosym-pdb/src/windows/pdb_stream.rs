//! The PDB stream (number 1): id, features, and the number of the string table's stream.

use super::msf::Msf;
use crate::bytes::{Cursor, until_nul};
use crate::{Error, Guid, Result};

/// Version of the stream since Visual C++ 7.0 (`PDBImpvVC70`).
const VC70: u32 = 20_000_404;
/// Feature code of a `/DEBUG:FASTLINK` PDB ("MINI").
const MINIMAL: u32 = 0x494E_494D;

#[derive(Debug)]
pub(super) struct PdbStream {
    pub(super) guid: Guid,
    pub(super) age: u32,
    pub(super) fastlink: bool,
    /// The stream of the string table `/names`.
    names: Option<u32>,
}

impl PdbStream {
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
            names: None,
        };
        if at.position() < data.len() {
            let size = at.u32()? as usize;
            let strings = at.bytes(size)?;
            info.names = named_stream(b"/names", strings, &mut at)?;
            // The size of an empty legacy map, then the feature codes.
            let _ = at.u32();
            while let Ok(feature) = at.u32() {
                info.fastlink |= feature == MINIMAL;
            }
        }
        Ok(info)
    }
}

/// Returns the number of the stream called `wanted`. The map is a closed hash table: size,
/// capacity, bit vectors of present and deleted slots, then (offset of the name, stream number) of
/// present slots.
fn named_stream(wanted: &[u8], strings: &[u8], at: &mut Cursor<'_>) -> Result<Option<u32>> {
    let (count, _capacity) = (at.u32()?, at.u32()?);
    for _ in 0..2 {
        let words = at.u32()? as usize;
        at.bytes(words.saturating_mul(4))?;
    }
    let mut number = None;
    for _ in 0..count {
        let (name, stream) = (at.u32()? as usize, at.u32()?);
        let name = strings
            .get(name..)
            .ok_or(at.damaged("a stream's name lies outside the string buffer"))?;
        if number.is_none() && until_nul(name) == wanted {
            number = Some(stream);
        }
    }
    Ok(number)
}

/// The string table `/names`: strings at byte offsets.
#[derive(Debug)]
pub(super) struct StringTable<'a> {
    data: std::borrow::Cow<'a, [u8]>,
}

impl<'a> StringTable<'a> {
    const HEADER: u32 = 12;

    pub(super) fn read(msf: &Msf<'a>, info: &PdbStream) -> Result<Self> {
        let what = "string table /names";
        let Some(number) = info.names else {
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
        Some(until_nul(self.data.get(at..)?))
    }
}
