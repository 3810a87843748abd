//! Demanglers: any name in each scheme, as each tool writes it.

use chronosym_symbols::demangle::{Dialect, demangle_as};

/// Maximum length of a demangled name, in bytes.
const MOST: usize = 64 << 10;

fn in_each_way(prefixes: &[&str], data: &[u8]) {
    let name = String::from_utf8_lossy(data);
    let whole = std::iter::once(name.clone().into_owned());
    for name in whole.chain(prefixes.iter().map(|prefix| format!("{prefix}{name}"))) {
        for dialect in [Dialect::Plain, Dialect::Llvm, Dialect::Gnu] {
            let Ok(readable) = demangle_as(&name, dialect) else {
                continue;
            };
            assert!(readable.len() <= MOST, "{}", readable.len());
            // The same name is always read in the same way.
            assert_eq!(demangle_as(&name, dialect).as_ref(), Ok(&readable));
        }
    }
}

/// As GCC and Clang mangle C++.
pub fn itanium(data: &[u8]) {
    in_each_way(&["_Z", "__Z", "_ZN"], data);
}

/// As MSVC mangles C++.
pub fn msvc(data: &[u8]) {
    in_each_way(&["?", "??", "?f@@YA"], data);
}

/// Both schemes of Rust.
pub fn rust(data: &[u8]) {
    in_each_way(&["_R", "_RNv", "_ZN"], data);
}
