//! Names of the values of closed lists, and the version.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::LazyLock;

use chronosym::{Certainty, DiagnosticKind, Evidence, LineReason, NameReason, OptimizationTier};

/// Closed lists, whose values are numbered from 1. docs/resolution.md explains them.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum chronosym_list {
    /// The evidence of an answer: `Load`, `Image`, `PerfMap` and others.
    Evidence = 1,
    /// The certainty of an answer: `Exact`, `Inferred`, `Approximate`.
    Certainty = 2,
    /// Why a frame has no name.
    NameReason = 3,
    /// Why a frame with a name has no line.
    LineReason = 4,
    /// The optimization tier of a code body.
    Tier = 5,
    /// The kind of a diagnostic: `LostEvents`, `Loss`, `CutShort`, `Damage`, `Limit`, `Unused`.
    Diagnostic = 6,
}

/// The names of each list, by its number.
static NAMES: LazyLock<[Vec<CString>; 6]> = LazyLock::new(|| {
    fn list<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<CString> {
        let names = names.into_iter();
        names
            .map(|name| CString::new(name).unwrap_or_default())
            .collect()
    }
    [
        list(Evidence::ALL.map(Evidence::as_str)),
        list(Certainty::ALL.map(Certainty::as_str)),
        list(NameReason::ALL.map(NameReason::as_str)),
        list(LineReason::ALL.map(LineReason::as_str)),
        list(OptimizationTier::ALL.iter().map(|tier| tier.name())),
        list([
            "LostEvents",
            "Loss",
            "CutShort",
            "Damage",
            "Limit",
            "Unused",
        ]),
    ]
});

/// The number of a kind of diagnostic.
pub fn diagnostic(kind: DiagnosticKind) -> u32 {
    match kind {
        DiagnosticKind::LostEvents => 1,
        DiagnosticKind::Loss => 2,
        DiagnosticKind::CutShort => 3,
        DiagnosticKind::Damage => 4,
        DiagnosticKind::Limit => 5,
        DiagnosticKind::Unused => 6,
        _ => 0,
    }
}

/// Returns the name of a value of a `chronosym_list`, which ends with a zero and stays valid until
/// the process ends; null for 0 and for values that are not in the list.
#[unsafe(no_mangle)]
pub extern "C" fn chronosym_name(list: u32, value: u32) -> *const c_char {
    let index = |number: u32| (number as usize).wrapping_sub(1);
    let names = NAMES.get(index(list));
    let name = names.and_then(|names| names.get(index(value)));
    name.map_or(ptr::null(), |name| name.as_ptr())
}

/// Returns the version of the library, such as `0.1.0`; ends with a zero and stays valid until the
/// process ends.
#[unsafe(no_mangle)]
pub extern "C" fn chronosym_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn name(list: chronosym_list, value: u32) -> Option<String> {
        let name = chronosym_name(list as u32, value);
        // SAFETY: names end with a zero.
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
        name.map(|name| name.to_str().unwrap().to_owned())
    }

    #[test]
    fn values_are_numbered_as_the_engine_lists_them() {
        let is = |list, value, text: &str| assert_eq!(name(list, value).as_deref(), Some(text));
        is(chronosym_list::Evidence, 1, "Load");
        is(
            chronosym_list::Evidence,
            Evidence::PerfMap as u32 + 1,
            "PerfMap",
        );
        is(chronosym_list::Certainty, 2, "Inferred");
        is(chronosym_list::NameReason, 1, "NoCodeAtAddress");
        is(chronosym_list::LineReason, 1, "NoILMap");
        is(chronosym_list::Tier, 1, "MinOptJitted");
        is(
            chronosym_list::Diagnostic,
            diagnostic(DiagnosticKind::Limit),
            "Limit",
        );
        assert_eq!(name(chronosym_list::Certainty, 0), None);
        assert_eq!(name(chronosym_list::Certainty, 4), None);
        assert!(chronosym_name(0, 1).is_null());
        assert!(chronosym_name(99, 1).is_null());
    }
}
