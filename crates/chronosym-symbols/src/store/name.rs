//! File names in a trace: untrusted until they are one harmless path component.

use std::fmt;
use std::path::{Path, PathBuf};

/// A file name that is safe as one component of a path, on any operating system.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileName(String);

/// The longest file name in bytes, which leaves space for an ending within the 255 that file
/// systems allow.
const MAX_LEN: usize = 200;

/// Names that open a device on Windows, whatever follows the first dot.
const DEVICES: [&str; 7] = ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"];

impl FileName {
    /// Returns the last component of a path that a trace names, with either kind of separator, if
    /// it is harmless: not empty, `.` or `..`, no drive letter or stream (`:`), no control or
    /// reserved character, no reserved device name, no dot or blank at the end (Windows drops them:
    /// two names, one file), no dot at the start (the cache's own files start with one), at most
    /// 200 bytes.
    pub fn from_untrusted(path: &str) -> Option<Self> {
        let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let harmless = !name.is_empty()
            && name.len() <= MAX_LEN
            && !name.ends_with(['.', ' '])
            && !name.starts_with([' ', '.'])
            && !name.eq_ignore_ascii_case(crate::cache::TAG)
            && !name.contains(|c: char| c.is_control() || "<>:\"|?*".contains(c))
            && !is_device(name);
        harmless.then(|| Self(name.to_owned()))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the name that `compress` gives a file: its last letter becomes an underscore.
pub(super) fn packed(name: &str) -> String {
    let mut name = name.to_owned();
    name.pop();
    name.push('_');
    name
}

/// Returns the folder that holds a file in a two-tier store: the first two letters of its name;
/// `None` if those are not a valid folder name.
pub(super) fn tier(name: &str) -> Option<String> {
    let tier: String = name.chars().take(2).collect();
    is_component(&tier).then_some(tier)
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let stem = stem.trim_end().to_lowercase();
    let port = ["com", "lpt"]
        .iter()
        .find_map(|port| stem.strip_prefix(port));
    // One digit follows, which may be a superscript.
    let is_number = |rest: &str| {
        let mut rest = rest.chars();
        let is_digit = |c: char| c.is_ascii_digit() || "¹²³".contains(c);
        rest.next().is_some_and(is_digit) && rest.next().is_none()
    };
    DEVICES.contains(&stem.as_str()) || port.is_some_and(is_number)
}

fn is_component(text: &str) -> bool {
    !text.is_empty()
        && !text.ends_with(['.', ' '])
        && !text.contains(['/', '\\', ':', '\0'])
        && text.len() < 256
}

/// `root` with `components` below it, or `None` if one of them is not exactly one ordinary
/// component: the last check before a path is used.
pub(super) fn below<S: AsRef<str>>(root: &Path, components: &[S]) -> Option<PathBuf> {
    let mut path = root.to_path_buf();
    for component in components {
        let component = component.as_ref();
        if !is_component(component) {
            return None;
        }
        path.push(component);
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_component_of_either_kind_of_path() {
        let name = |path| FileName::from_untrusted(path).map(|n| n.0);
        let foo = Some("foo.pdb".to_owned());
        for path in [
            "foo.pdb",
            r"C:\x\foo.pdb",
            r"\\server\share\foo.pdb",
            "/x/foo.pdb",
            "../../foo.pdb",
            r"..\..\foo.pdb",
            r"x/y\foo.pdb",
        ] {
            assert_eq!(name(path), foo, "{path}");
        }
        assert_eq!(name("[vdso]").as_deref(), Some("[vdso]"));
        assert_eq!(name("com10.dll").as_deref(), Some("com10.dll"));
        assert_eq!(name("common.dll").as_deref(), Some("common.dll"));
    }

    #[test]
    fn hostile_names() {
        let long = "x".repeat(201);
        for path in [
            "",
            ".",
            "..",
            "/",
            "a/..",
            r"a\..",
            "a/.",
            "x ",
            "x.",
            "...",
            " x",
            "C:",
            "C:foo",
            "a:b",
            "a\0b",
            "a\nb",
            "con",
            "CON.pdb",
            "aux .pdb",
            "nul.x.y",
            "COM1.dll",
            "lpt9",
            "com¹",
            "CONIN$",
            "a?b",
            "a*b",
            "a|b",
            "<a>",
            "\u{85}",
            ".prune",
            "a/.missing",
            ".x.pdb.part",
            "cachedir.tag",
            long.as_str(),
        ] {
            assert_eq!(FileName::from_untrusted(path), None, "{path:?}");
        }
    }

    #[test]
    fn forms() {
        assert_eq!(packed("Foo.pdb"), "Foo.pd_");
        assert_eq!(packed("xé"), "x_");
        assert_eq!(tier("Foo.pdb").as_deref(), Some("Fo"));
        assert_eq!(tier(".x").as_deref(), Some(".x"));
        assert_eq!(tier("a.b"), None);
        assert_eq!(tier("..b"), None);
    }

    #[test]
    fn below_takes_single_components_only() {
        let root = Path::new("/store");
        assert_eq!(below(root, &["a", "b.c"]), Some("/store/a/b.c".into()));
        for bad in ["", "..", ".", "a/b", r"a\b", "c:", "/abs", "a\0"] {
            assert_eq!(below(root, &["a", bad]), None, "{bad:?}");
        }
    }
}
