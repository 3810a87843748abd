//! Names of traces in pictures.

use std::path::PathBuf;

/// Returns the names of traces without their folders.
pub fn name(traces: &[PathBuf]) -> String {
    let names = traces
        .iter()
        .map(|path| path.file_name().unwrap_or(path.as_os_str()));
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    names.join(", ")
}
