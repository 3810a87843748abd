//! Exported tables as input.

use std::path::PathBuf;

use anyhow::Result;
use chronosym::{Diagnostics, Session};

/// Reads exported tables into a session; `None` if the path is something else.
#[cfg(feature = "fleet")]
pub fn read(paths: &[PathBuf], session: &mut Session) -> Result<Option<Diagnostics>> {
    match paths {
        [path] if chronosym_fleet::is_export(path) => {
            let read = chronosym_fleet::read(path, &crate::limits::get(), session)?;
            Ok(Some(read))
        }
        _ => Ok(None),
    }
}

/// Without the feature `fleet`, there is no decoder.
#[cfg(not(feature = "fleet"))]
pub fn read(paths: &[PathBuf], _: &mut Session) -> Result<Option<Diagnostics>> {
    let is_table = |path: &PathBuf| path.extension().is_some_and(|it| it == "parquet");
    let has_tables = |path: &PathBuf| path.join("samples").is_dir() && path.join("stacks").is_dir();
    if let [path] = paths
        && (is_table(path) || has_tables(path))
    {
        anyhow::bail!("{}: {}", path.display(), crate::output::WITHOUT_FLEET);
    }
    Ok(None)
}

/// Leaves panics of decoders, which are errors about a file, out of standard error.
#[cfg(feature = "fleet")]
pub fn silence_decoders() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !chronosym_fleet::is_decoding() {
            report(panic);
        }
    }));
}
