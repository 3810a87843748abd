//! Exports recordings, a file per table each.

use std::path::PathBuf;

use chronosym_core::{Diagnostic, DiagnosticKind};
use chronosym_types::Hex;
use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::format::{Detail, Format, FrameNames};
use crate::frames::Stacks;
use crate::listings::{self, Owner};
use crate::profiles;
use crate::samples;
use crate::table::{Layout, Table};
use crate::trace::Trace;

/// The size of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exported {
    /// Number of samples.
    pub samples: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

/// Writes tables into a folder, a file per table and recording.
///
/// # Examples
///
/// ```
/// use chronosym_core::facts::{At, Method, Sample};
/// use chronosym_core::{Action, Options, Session};
/// use chronosym_fleet::{Exporter, Trace};
///
/// let mut session = Session::new(Options::default());
/// let at = At::new(0).process(42).thread(7);
/// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
/// session.sample(at.at(100), &[0x1010], Sample::cpu());
/// let timeline = session.finish();
///
/// let folder = tempfile::tempdir()?;
/// let exported = Exporter::new(folder.path()).export(&Trace::new("a.nettrace", &timeline))?;
/// assert_eq!(exported.samples, 1);
/// let files = std::fs::read_dir(folder.path().join("samples"))?;
/// assert_eq!(files.count(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Exporter {
    folder: PathBuf,
    format: Format,
    names: FrameNames,
    detail: Detail,
}

impl Exporter {
    /// Creates an exporter into a folder, which need not exist, in the default format.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Exporter {
            folder: folder.into(),
            format: Format::default(),
            names: FrameNames::default(),
            detail: Detail::default(),
        }
    }

    /// Sets the format.
    pub fn format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// Sets the columns of frames that are filled.
    pub fn names(mut self, names: FrameNames) -> Self {
        self.names = names;
        self
    }

    /// Sets how much is kept of samples.
    pub fn detail(mut self, detail: Detail) -> Self {
        self.detail = detail;
        self
    }

    /// Exports a recording. Files of an earlier export of the same name are replaced; `samples`
    /// or `profiles` is the last, so that every sample in the folder has its stack.
    ///
    /// # Errors
    ///
    /// [`Error`] if a file cannot be written.
    pub fn export(&self, trace: &Trace<'_>) -> Result<Exported, Error> {
        let host = trace.host.clone();
        let host = host.or_else(|| trace.timeline.facts().host.clone());
        let owner = Owner {
            trace: trace.name,
            host: host.as_ref(),
        };
        let mut exported = Exported::default();
        let symbols = match self.names {
            FrameNames::Named => trace.symbols.clone(),
            FrameNames::Addresses => None,
        };
        let mut stacks = Stacks::new(trace.timeline, symbols, self.names);
        let layout = match self.detail {
            Detail::Samples => samples::layout(),
            Detail::Sums => profiles::layout(),
        };
        let mut samples_table = self.table(trace.name, &layout)?;
        let write = match self.detail {
            Detail::Samples => samples::write,
            Detail::Sums => profiles::write,
        };
        exported.samples = write(trace, &owner, &mut stacks, &mut samples_table)?;

        let mut diagnostics = trace.diagnostics.to_vec();
        if trace.timeline.facts().start_unix_ns.is_none() {
            let text = "the recording does not state when it began: times count from its start";
            diagnostics.push(Diagnostic::new(DiagnosticKind::Unused, text));
        }
        if let Some(limit) = stacks.limit() {
            diagnostics.push(Diagnostic::new(DiagnosticKind::Limit, limit));
        }
        exported.bytes += self.write_diagnostics(&owner, &diagnostics)?;
        if self.detail == Detail::Samples {
            exported.bytes += self.write_context(trace, &owner, &mut stacks)?;
        }
        exported.bytes += samples_table.finish()?;
        Ok(exported)
    }

    /// Writes the tables to which rows of `samples` refer.
    fn write_context(
        &self,
        trace: &Trace<'_>,
        owner: &Owner<'_>,
        stacks: &mut Stacks,
    ) -> Result<u64, Error> {
        let mut bytes = 0;
        let mut table = self.table(trace.name, &Stacks::frames())?;
        stacks.write_frames(trace.name, &mut table)?;
        bytes += table.finish()?;
        let mut table = self.table(trace.name, &Stacks::stacks())?;
        stacks.write_stacks(&mut table)?;
        bytes += table.finish()?;
        let mut table = self.table(trace.name, &listings::processes())?;
        listings::write_processes(trace, owner, &mut table)?;
        bytes += table.finish()?;
        let mut table = self.table(trace.name, &listings::modules())?;
        listings::write_modules(trace, owner, &mut table)?;
        bytes += table.finish()?;
        Ok(bytes)
    }

    /// Exports the reason why a recording cannot be read, as its only diagnostic.
    ///
    /// # Errors
    ///
    /// [`Error`] if the file cannot be written.
    pub fn unreadable(&self, name: &str, reason: &str) -> Result<(), Error> {
        let diagnostic = Diagnostic::new(DiagnosticKind::Damage, reason);
        let owner = Owner {
            trace: name,
            host: None,
        };
        self.write_diagnostics(&owner, &[diagnostic]).map(|_| ())
    }

    fn write_diagnostics(&self, owner: &Owner<'_>, all: &[Diagnostic]) -> Result<u64, Error> {
        let mut table = self.table(owner.trace, &listings::diagnostics())?;
        listings::write_diagnostics(owner, all, &mut table)?;
        table.finish()
    }

    fn table(&self, trace: &str, layout: &Layout) -> Result<Table, Error> {
        Table::create(&self.folder, &file_name(trace), self.format, layout)
    }
}

/// Returns a file name for a recording: the end of its name, and a hash of all of it.
fn file_name(trace: &str) -> String {
    const MOST: usize = 80;
    let end = trace.rsplit(['/', '\\']).next().unwrap_or(trace);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let plain = end.chars().map(|c| if is_plain(c) { c } else { '_' });
    let mut name: String = plain.take(MOST).collect();
    // Engines leave out files whose names start with these.
    name = name.trim_start_matches(['.', '_']).to_owned();
    name.push('-');
    name + &Hex(&Sha256::digest(trace)[..8]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_differ() {
        let names = ["a/x.nettrace", "b/x.nettrace", "../..", "_x", "é\0:x", ""].map(file_name);
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
            assert!(!name.starts_with(['.', '_']), "{name}");
            assert!(
                name.chars().all(|c| c.is_ascii() && !c.is_control()),
                "{name}"
            );
            assert!(!name.contains(['/', '\\', ':']), "{name}");
        }
        assert!(names[0].starts_with("x.nettrace-"));
        assert!(file_name(&"long".repeat(1000)).len() < 100);
    }
}
