//! The ways in which folders and servers lay out symbol files.

use super::disk::Listing;
use super::key::{StoreKey, breakpad_name, debuginfod};
use super::name::{FileName, packed, tier};
use super::url::ServerUrl;
use crate::identity::Wanted;

/// The pointer file of a store, which is at the path of a file and has its path.
pub(super) const POINTER: &str = "file.ptr";
/// The file whose presence in its root makes a store two-tier.
pub(super) const TWO_TIER: &str = "index2.txt";

/// Subfolders of plain folders by the kind of image, which DbgHelp searches, also within `symbols`.
const KIND_FOLDERS: [&str; 3] = ["dll", "exe", "sys"];

/// Paths below a plain folder at which the wanted file may be under its own name or build ID, as
/// far as the folder's listing does not rule them out.
pub(super) fn flat(wanted: &Wanted, names: &[FileName], listing: &Listing) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut add = |parts: &[&str]| {
        if parts.first().is_some_and(|first| listing.may_have(first)) {
            paths.push(parts.iter().map(|&part| part.to_owned()).collect());
        }
    };
    match wanted {
        Wanted::ElfDebug(id) | Wanted::ElfImage(id) => {
            let debug = matches!(wanted, Wanted::ElfDebug(_));
            let (ending, perf, served) = match debug {
                true => (".debug", "debug", "debuginfo"),
                false => ("", "elf", "executable"),
            };
            let text = id.to_string();
            let (start, rest) = text.split_at(2);
            let file = format!("{rest}{ending}");
            // A folder of separate debug files, or the `.build-id` folder in it.
            add(&[".build-id", start, &file]);
            add(&[start, &file]);
            // The cache of `perf`: a folder for each file.
            add(&[".build-id", start, rest, perf]);
            if !debug {
                add(&[".build-id", start, rest, "vdso"]);
            }
            // The cache of a debuginfod client.
            add(&[&text, served]);
            if debug {
                // An unstripped image.
                add(&[".build-id", start, rest, "elf"]);
                add(&[&text, "executable"]);
            }
            for name in names {
                let name = name.as_str();
                if debug {
                    let (debug, dbg) = (format!("{name}.debug"), format!("{name}.dbg"));
                    add(&[&debug]);
                    add(&[&dbg]);
                    add(&[".debug", name]);
                    add(&[".debug", &debug]);
                    let bundle = format!("{name}.dSYM");
                    add(&[&bundle, "Contents", "Resources", "DWARF", name]);
                }
                add(&[name]);
            }
        }
        Wanted::ElfMapped(_) => {}
        Wanted::Breakpad(_) => {
            for name in names {
                add(&[&breakpad_name(name.as_str())]);
            }
        }
        Wanted::Pdb { .. } | Wanted::Image { .. } | Wanted::R2rMap { .. } => {
            for name in names {
                add(&[name.as_str()]);
                for kind in KIND_FOLDERS {
                    add(&[kind, name.as_str()]);
                    add(&["symbols", kind, name.as_str()]);
                }
            }
        }
    }
    paths
}

/// Paths below a store at which the wanted file, its compressed form or a pointer to it may be,
/// in one or two tiers, as far as the store's listing does not rule them out.
pub(super) fn keyed(keys: &[StoreKey], listing: &Listing) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let places = keys.iter().filter_map(|key| {
        let folder = &key.symsrv[0];
        let is_listed = listing.may_have(folder);
        let tier = tier(folder).filter(|tier| listing.may_have(tier));
        (is_listed || tier.is_some()).then_some((key, is_listed, tier))
    });
    let places: Vec<_> = places.collect();
    for ending in [Form::Plain, Form::Packed, Form::Pointer] {
        for (key, is_listed, tier) in &places {
            if ending != Form::Plain && !key.symstore {
                continue;
            }
            let path = ending.of(&key.symsrv);
            let two_tier = tier.clone().map(|tier| [&[tier], &path[..]].concat());
            if *is_listed {
                paths.push(path.to_vec());
            }
            paths.extend(two_tier);
        }
    }
    paths
}

/// The form in which a store has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    /// Under the name with an underscore as its last letter.
    Packed,
    /// As a pointer to it.
    Pointer,
}

impl Form {
    fn of(self, key: &[String; 3]) -> [String; 3] {
        let mut path = key.clone();
        path[2] = match self {
            Self::Plain => return path,
            Self::Packed => packed(&path[2]),
            Self::Pointer => POINTER.to_owned(),
        };
        path
    }

    /// Returns the form of an existing file, by its name.
    pub(super) fn of_found(name: &str, names: &[FileName]) -> Self {
        if name.eq_ignore_ascii_case(POINTER) {
            return Self::Pointer;
        }
        let is_packed = |own: &FileName| packed(own.as_str()).eq_ignore_ascii_case(name);
        match names.iter().any(is_packed) {
            true => Self::Packed,
            false => Self::Plain,
        }
    }
}

/// Returns the URLs of a wanted file on a symbol server, and the form of each.
pub(super) fn symbol_urls(
    server: &ServerUrl,
    keys: &[StoreKey],
    two_tier: bool,
) -> Vec<(String, Form)> {
    let mut urls: Vec<(String, Form)> = Vec::new();
    let mut add = |path: &[String; 3], form| {
        let tier = if two_tier { tier(&path[0]) } else { None };
        let parts = tier.iter().chain(path).map(String::as_str);
        let url = server.join(parts);
        if !urls.iter().any(|(other, _)| *other == url) {
            urls.push((url, form));
        }
    };
    // The usual spelling of every key comes first: most misses and hits are decided there.
    for nth in 0..2 {
        for key in keys {
            if let Some(spelling) = key.spellings().get(nth) {
                add(spelling, Form::Plain);
            }
        }
    }
    for key in keys.iter().filter(|key| key.symstore) {
        add(&Form::Packed.of(&key.symsrv), Form::Packed);
        add(&Form::Pointer.of(&key.symsrv), Form::Pointer);
    }
    urls
}

/// Returns the URL of a wanted file on a debuginfod server.
pub(super) fn debuginfod_urls(server: &ServerUrl, wanted: &Wanted) -> Vec<(String, Form)> {
    let path = debuginfod(wanted);
    path.iter()
        .map(|path| (server.join(path.iter().map(String::as_str)), Form::Plain))
        .collect()
}

/// The content of a pointer file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    /// The path of the file.
    Path(String),
    /// The reason why there is no file.
    Message(String),
}

impl Pointer {
    /// Parses `PATH:where` or `MSG:why`; anything else is a bare path, as old stores wrote it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let line = text.trim_start_matches('\u{feff}').lines().next()?.trim();
        let prefixed = |prefix: &str| {
            let start = line.get(..prefix.len())?;
            start
                .eq_ignore_ascii_case(prefix)
                .then(|| line[prefix.len()..].trim().to_owned())
        };
        if let Some(message) = prefixed("MSG:") {
            return Some(Self::Message(message));
        }
        let path = prefixed("PATH:").unwrap_or_else(|| line.to_owned());
        (!path.is_empty() && !path.contains(char::is_control)).then_some(Self::Path(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::{BuildId, Guid, PdbId};
    use crate::store::key::keys;

    fn pdb() -> (Wanted, Vec<FileName>) {
        let id = PdbId {
            guid: Guid([0xab; 16]),
            age: 2,
        };
        let names = FileName::from_untrusted("foo.pdb").into_iter().collect();
        (Wanted::pdb(id), names)
    }

    #[test]
    fn pointers() {
        let path = |p: &str| Some(Pointer::Path(p.to_owned()));
        assert_eq!(Pointer::parse("PATH:\\\\s\\x.pdb\r\n"), path(r"\\s\x.pdb"));
        assert_eq!(Pointer::parse("path: /x.pdb"), path("/x.pdb"));
        assert_eq!(Pointer::parse("/x.pdb"), path("/x.pdb"));
        assert_eq!(
            Pointer::parse("MSG: Not public"),
            Some(Pointer::Message("Not public".into()))
        );
        for nothing in ["", "\n/x", "PATH:", "PATH:a\0b"] {
            assert_eq!(Pointer::parse(nothing), None, "{nothing:?}");
        }
    }

    #[test]
    fn store_paths_and_urls() {
        let (wanted, names) = pdb();
        let keys = keys(&wanted, &names);
        let guid = "AB".repeat(16);
        let paths: Vec<_> = keyed(&keys, &Listing::default())
            .iter()
            .map(|path| path.join("/"))
            .collect();
        assert_eq!(
            paths,
            [
                format!("foo.pdb/{guid}2/foo.pdb"),
                format!("fo/foo.pdb/{guid}2/foo.pdb"),
                format!("foo.pdb/{guid}FFFFFFFF/foo.pdb"),
                format!("fo/foo.pdb/{guid}FFFFFFFF/foo.pdb"),
                format!("foo.pdb/{guid}2/foo.pd_"),
                format!("fo/foo.pdb/{guid}2/foo.pd_"),
                format!("foo.pdb/{guid}2/file.ptr"),
                format!("fo/foo.pdb/{guid}2/file.ptr"),
            ]
        );
        let server = ServerUrl::parse("http://h").unwrap();
        let urls = symbol_urls(&server, &keys, false);
        let lower = "ab".repeat(16);
        let expected = [
            (format!("http://h/foo.pdb/{guid}2/foo.pdb"), Form::Plain),
            (
                format!("http://h/foo.pdb/{lower}FFFFFFFF/foo.pdb"),
                Form::Plain,
            ),
            (format!("http://h/foo.pdb/{lower}2/foo.pdb"), Form::Plain),
            (
                format!("http://h/foo.pdb/{guid}FFFFFFFF/foo.pdb"),
                Form::Plain,
            ),
            (format!("http://h/foo.pdb/{guid}2/foo.pd_"), Form::Packed),
            (format!("http://h/foo.pdb/{guid}2/file.ptr"), Form::Pointer),
        ];
        assert_eq!(urls, expected);
        let two_tier = symbol_urls(&server, &keys, true);
        assert!(
            two_tier
                .iter()
                .all(|(url, _)| url.starts_with("http://h/fo/foo.pdb/"))
        );
    }

    #[test]
    fn symbol_files_of_breakpad() {
        let id = PdbId {
            guid: Guid([0xab; 16]),
            age: 0x1f,
        };
        let wanted = Wanted::Breakpad(id);
        let names =
            ["firefox.PDB", "libxul.so"].map(|name| FileName::from_untrusted(name).unwrap());
        let keys = keys(&wanted, &names);
        let paths: Vec<_> = keyed(&keys, &Listing::default())
            .iter()
            .map(|path| path.join("/"))
            .collect();
        let guid = "AB".repeat(16);
        let expected = [
            format!("firefox.PDB/{guid}1F/firefox.sym"),
            format!("libxul.so/{guid}1F/libxul.so.sym"),
        ];
        assert_eq!(
            paths.iter().filter(|path| expected.contains(path)).count(),
            2,
            "{paths:?}"
        );
        let server = ServerUrl::parse("http://h").unwrap();
        let urls = symbol_urls(&server, &keys, true);
        assert!(
            urls.iter()
                .any(|(url, form)| { *form == Form::Plain && url.ends_with(&expected[1]) })
        );
        let flat = flat(&wanted, &names, &Listing::default());
        assert_eq!(flat, [["firefox.sym"], ["libxul.so.sym"]]);
    }

    #[test]
    fn elf_folders() {
        let id = BuildId::new(&[0xab, 0xcd, 0xef]).unwrap();
        let names: Vec<_> = FileName::from_untrusted("libx.so").into_iter().collect();
        let join = |wanted| -> Vec<String> {
            flat(&wanted, &names, &Listing::default())
                .iter()
                .map(|path| path.join("/"))
                .collect()
        };
        let debug = join(Wanted::ElfDebug(id.clone()));
        for path in [
            ".build-id/ab/cdef.debug",
            "abcdef/debuginfo",
            ".debug/libx.so",
            "libx.so.debug",
            "libx.so",
        ] {
            assert!(debug.iter().any(|p| p == path), "{path} in {debug:?}");
        }
        let image = join(Wanted::ElfImage(id));
        assert_eq!(
            image,
            [
                ".build-id/ab/cdef",
                "ab/cdef",
                ".build-id/ab/cdef/elf",
                ".build-id/ab/cdef/vdso",
                "abcdef/executable",
                "libx.so"
            ]
        );
    }
}
