//! The module to which a symbol file belongs.

use chronosym_types::{Guid, PdbId};

use super::record::{Records, field};
use crate::error::{Error, Result};
use crate::identity::BuildId;

/// Number of records at the start that are searched for the module's ids.
const HEADER: usize = 16;

/// The module to which a symbol file belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// Its identity, like that of a PDB. For ELF, the first 16 bytes of the build ID; for Mach-O,
    /// the UUID; both with age 0.
    pub(crate) id: PdbId,
    /// The build ID of an ELF file, if it is stated in full.
    pub(crate) build_id: Option<BuildId>,
}

impl Module {
    /// Returns true if data starts like a symbol file.
    pub(crate) fn sniff(data: &[u8]) -> bool {
        data.starts_with(b"MODULE ")
    }

    /// Parses the `MODULE` and `INFO` records at the start of a file.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is no `MODULE` record with an identity.
    pub(crate) fn parse(data: &[u8]) -> Result<Self> {
        let mut records = Records::from(data, 0)
            .map(|(_, record)| record)
            .take(HEADER);
        let damaged = || Error::damaged("the MODULE record", "it states no system and identity");
        let mut module = records.next().ok_or_else(damaged)?;
        let mut next = || field(&mut module).ok_or_else(damaged);
        let (_, system, _) = (next()?, next()?, next()?);
        let id = identity(next()?).ok_or_else(damaged)?;
        // On other systems the code id is a time stamp and a size.
        let is_elf = !matches!(system, b"windows" | b"mac" | b"ios");
        let mut infos = records.take_while(|record| record.starts_with(b"INFO "));
        let build_id = infos.find_map(|record| {
            let mut record = record.strip_prefix(b"INFO CODE_ID ")?;
            let text = std::str::from_utf8(field(&mut record)?).ok()?;
            BuildId::parse(text).filter(|_| is_elf)
        });
        Ok(Self { id, build_id })
    }
}

/// Parses a GUID of 32 digits and an age of up to 8.
fn identity(text: &[u8]) -> Option<PdbId> {
    let text = std::str::from_utf8(text).ok()?;
    let (guid, age) = text.split_at_checked(32)?;
    let guid: Guid = guid.parse().ok()?;
    let age = u32::from_str_radix(age, 16).ok()?;
    Some(PdbId { guid, age })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_have_an_identity() {
        let text = b"MODULE windows x86_64 5A9832E5287241C1838ED98914E9B7FF1 app.pdb\n";
        let module = Module::parse(text).unwrap();
        let guid = "5A9832E5-2872-41C1-838E-D98914E9B7FF".parse().unwrap();
        assert_eq!(module.id, PdbId { guid, age: 1 });
        assert_eq!(module.build_id, None);
        let text = b"MODULE Linux x86_64 9D4B3B1A2C8F00D1838ED98914E9B7FF0 libapp.so\n\
            INFO CODE_ID 1A3B4B9D8F2CD100838ED98914E9B7FF01234567\nFILE 0 a.c\n";
        let module = Module::parse(text).unwrap();
        let id = BuildId::parse("1a3b4b9d8f2cd100838ed98914e9b7ff01234567");
        assert_eq!(module.build_id, id);
    }

    #[test]
    fn modules_without_identity_are_refused() {
        for text in [
            "",
            "MODULE ",
            "MODULE Linux x86_64",
            "MODULE Linux x86_64 12 name",
            "MODULE Linux x86_64 5A9832E5287241C1838ED98914E9B7FF name",
            "MODULE Linux x86_64 5A9832E5287241C1838ED98914E9B7FF123456789 name",
            "MODULE Linux x86_64 5A9832E5287241C1838ED98914E9B7ÄÄ1 name",
        ] {
            assert!(Module::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
