//! Names without their mangling.

/// The readable form of a mangled name; `None` if it is not mangled in a way known here.
pub fn demangle(name: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(name).ok()?;
    Some(format!("{name:#}"))
}
