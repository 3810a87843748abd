//! The location of a file in a store: keys derived from its name and identity.
//!
//! Source: the SSQP key conventions of dotnet/symstore; upper case where SymSrv uses it.

use chronosym_types::Hex;

use super::name::FileName;
use crate::identity::{PdbFormat, PdbId, Wanted};

/// A key: folder, identity, file. Every part is one path component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoreKey {
    /// `[name, identity, name]` as SymSrv spells it: the name as given, GUIDs in upper case.
    pub(super) symsrv: [String; 3],
    /// The same as SSQP spells it: in lower case, except for time stamps and portable PDBs'
    /// `FFFFFFFF`.
    pub(super) ssqp: [String; 3],
    /// Whether stores of SymStore hold such files, so that `.pd_`, `file.ptr` and two tiers are
    /// possible.
    pub(super) symstore: bool,
}

impl StoreKey {
    fn new(name: &str, symsrv_id: String, ssqp_id: String, symstore: bool) -> Self {
        let lower = name.to_lowercase();
        Self {
            symsrv: [name.to_owned(), symsrv_id, name.to_owned()],
            ssqp: [lower.clone(), ssqp_id, lower],
            symstore,
        }
    }

    /// `app.pdb/ID/app.sym`, as `dump_syms` and Mozilla's servers have it.
    fn breakpad(name: &str, id: &PdbId) -> Self {
        let key = [
            name.to_owned(),
            format!("{:#}{:X}", id.guid, id.age),
            breakpad_name(name),
        ];
        Self {
            ssqp: key.clone(),
            symsrv: key,
            symstore: false,
        }
    }

    /// Returns the spellings, the more usual one for this kind of file first, no spelling twice.
    pub(super) fn spellings(&self) -> Vec<&[String; 3]> {
        if self.symsrv == self.ssqp {
            vec![&self.symsrv]
        } else if self.symstore {
            vec![&self.symsrv, &self.ssqp]
        } else {
            vec![&self.ssqp, &self.symsrv]
        }
    }
}

/// Returns the name of the Breakpad symbol file of a PDB or an image.
pub(super) fn breakpad_name(name: &str) -> String {
    let stem = match name.rsplit_once('.') {
        Some((stem, ending)) if ending.eq_ignore_ascii_case("pdb") => stem,
        _ => name,
    };
    format!("{stem}.sym")
}

/// Returns the keys of a wanted file, the likelier one first. ELF debug files need no name.
pub(super) fn keys(wanted: &Wanted, names: &[FileName]) -> Vec<StoreKey> {
    let mut keys = Vec::new();
    let one = |id: String, symstore| vec![(id.clone(), id, symstore)];
    // Identities as SymSrv and as SSQP spell them, and whether stores of SymStore hold such files.
    let ids = match wanted {
        Wanted::Pdb { id, format, .. } => {
            let upper = format!("{:#}", id.guid);
            let guid = upper.to_lowercase();
            let windows = (PdbFormat::Portable, format!("{:x}", id.age), true);
            let portable = (PdbFormat::Windows, "FFFFFFFF".to_owned(), false);
            let both = [windows, portable].into_iter();
            both.filter(|(other, ..)| format != other)
                .map(|(_, age, symstore)| (upper.clone() + &age, guid.clone() + &age, symstore))
                .collect()
        }
        Wanted::Image { pe: Some(pe), .. } => {
            one(format!("{:08X}{:x}", pe.timestamp, pe.size_of_image), true)
        }
        Wanted::ElfDebug(id) | Wanted::ElfImage(id) => {
            // Padded with zero bytes to the 20 that symbol server keys have.
            let id = format!("{:0<40}", id.to_string());
            if matches!(wanted, Wanted::ElfDebug(_)) {
                let sym = format!("elf-buildid-sym-{id}");
                keys.push(StoreKey::new("_.debug", sym.clone(), sym, false));
            }
            // An unstripped image is published as an image.
            one(format!("elf-buildid-{id}"), false)
        }
        Wanted::R2rMap {
            signature: Some(signature),
            version,
        } => one(format!("r2rmap-v{version}-{}", Hex(signature)), false),
        Wanted::Breakpad(id) => {
            let named = names.iter();
            keys.extend(named.map(|name| StoreKey::breakpad(name.as_str(), id)));
            Vec::new()
        }
        Wanted::Image { pe: None, .. }
        | Wanted::ElfMapped(_)
        | Wanted::R2rMap {
            signature: None, ..
        } => Vec::new(),
    };
    for name in names {
        keys.extend(ids.iter().map(|(symsrv, ssqp, symstore)| {
            StoreKey::new(name.as_str(), symsrv.clone(), ssqp.clone(), *symstore)
        }));
    }
    keys
}

/// Returns the possible locations of a wanted file on a server: paths relative to the server's
/// address, the likeliest first. Names are untrusted and may be full paths. A file without identity
/// has no location.
pub fn server_paths(wanted: &Wanted, names: &[String]) -> Vec<String> {
    let names = names
        .iter()
        .filter_map(|name| FileName::from_untrusted(name));
    let keys = keys(wanted, &names.collect::<Vec<_>>());
    let paths = keys
        .iter()
        .filter_map(|key| Some(key.spellings().first()?.join("/")));
    let debuginfod = debuginfod(wanted).map(|parts| parts.join("/"));
    paths.chain(debuginfod).collect()
}

/// Returns the path of a wanted file on a debuginfod server: `buildid/{id}/debuginfo` or
/// `…/executable`.
pub(super) fn debuginfod(wanted: &Wanted) -> Option<[String; 3]> {
    let (id, kind) = match wanted {
        Wanted::ElfDebug(id) => (id, "debuginfo"),
        Wanted::ElfImage(id) => (id, "executable"),
        _ => return None,
    };
    Some(["buildid".into(), id.to_string(), kind.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{BuildId, Guid, PdbId, PeId};

    fn spelled(wanted: &Wanted, name: &str) -> Vec<String> {
        let names: Vec<_> = FileName::from_untrusted(name).into_iter().collect();
        let keys = keys(wanted, &names);
        let spellings = keys.iter().flat_map(StoreKey::spellings);
        spellings.map(|parts| parts.join("/")).collect()
    }

    /// The examples of the SSQP key conventions, and SymSrv's spelling of the same.
    #[test]
    fn published_examples() {
        let id = PdbId {
            guid: Guid::from_u128(0x497b72f6_390a_44fc_878e_5a2d63b6cc4b),
            age: 0x1a,
        };
        assert_eq!(
            spelled(&Wanted::pdb(id), "Foo.pdb"),
            [
                "Foo.pdb/497B72F6390A44FC878E5A2D63B6CC4B1a/Foo.pdb",
                "foo.pdb/497b72f6390a44fc878e5a2d63b6cc4b1a/foo.pdb",
                "foo.pdb/497b72f6390a44fc878e5a2d63b6cc4bFFFFFFFF/foo.pdb",
                "Foo.pdb/497B72F6390A44FC878E5A2D63B6CC4BFFFFFFFF/Foo.pdb",
            ]
        );
        let image = |timestamp| Wanted::Image {
            pe: Some(PeId {
                timestamp,
                size_of_image: 0x3_2000,
            }),
            pdb: None,
        };
        assert_eq!(
            spelled(&image(0x542d_5742), "foo.exe"),
            ["foo.exe/542D574232000/foo.exe"]
        );
        assert_eq!(
            spelled(&image(0x0d9f_641e), "Foo.exe"),
            [
                "Foo.exe/0D9F641E32000/Foo.exe",
                "foo.exe/0D9F641E32000/foo.exe"
            ],
            "eight digits, always"
        );
        let id = BuildId::parse("180a373d6afbabf0eb1f09be1bc45bd7").unwrap();
        assert_eq!(
            spelled(&Wanted::ElfDebug(id.clone()), ""),
            ["_.debug/elf-buildid-sym-180a373d6afbabf0eb1f09be1bc45bd700000000/_.debug"]
        );
        assert_eq!(
            spelled(&Wanted::ElfImage(id.clone()), "libfoo.so"),
            ["libfoo.so/elf-buildid-180a373d6afbabf0eb1f09be1bc45bd700000000/libfoo.so"]
        );
        assert_eq!(
            debuginfod(&Wanted::ElfDebug(id.clone())).unwrap().join("/"),
            "buildid/180a373d6afbabf0eb1f09be1bc45bd7/debuginfo",
            "no padding there"
        );
        assert_eq!(
            server_paths(&Wanted::ElfDebug(id), &["/lib/libfoo.so".to_owned()]),
            [
                "_.debug/elf-buildid-sym-180a373d6afbabf0eb1f09be1bc45bd700000000/_.debug",
                "libfoo.so/elf-buildid-180a373d6afbabf0eb1f09be1bc45bd700000000/libfoo.so",
                "buildid/180a373d6afbabf0eb1f09be1bc45bd7/debuginfo",
            ]
        );
        let map = Wanted::R2rMap {
            signature: Some([0xab; 16]),
            version: 1,
        };
        assert_eq!(
            spelled(&map, "X.ni.r2rmap")[0],
            format!("x.ni.r2rmap/r2rmap-v1-{}/x.ni.r2rmap", "ab".repeat(16))
        );
    }
}
