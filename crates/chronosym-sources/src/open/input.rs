//! Inputs to open.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::bytes::ByteStream;
use super::error::OpenError;

/// An input that contains a trace.
pub struct Input(pub(super) What);

pub(super) enum What {
    Path(PathBuf),
    Stream(String, ByteStream),
}

impl Input {
    /// Returns the input for a file, a pipe or a device at a path.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Input(What::Path(path.into()))
    }

    /// Returns the input for any stream that is read sequentially; messages call it `name`.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::{Options, SampleSelection};
    /// use chronosym_sources::open::{Input, Opener};
    ///
    /// // A trace that arrives through a socket or a pipe.
    /// let text = "app 10/11 [000] 1.000002: cycles:\n\t1010 work+0x10 (/bin/app)\n\n";
    /// let input = Input::stream("profile.txt", text.as_bytes());
    /// let (timeline, _) = Opener::new().open([input])?.timeline(Options::default())?;
    /// assert_eq!(timeline.samples().len(), 1);
    /// # Ok::<(), chronosym_sources::open::OpenError>(())
    /// ```
    pub fn stream(name: impl Into<String>, source: impl Read + Send + 'static) -> Self {
        Input(What::Stream(name.into(), Box::new(source)))
    }

    /// Returns the input for standard input.
    pub fn stdin() -> Self {
        Input::stream("standard input", std::io::stdin())
    }

    pub(super) fn name(&self) -> String {
        match &self.0 {
            What::Path(path) => path.display().to_string(),
            What::Stream(name, _) => name.clone(),
        }
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Input").field(&self.name()).finish()
    }
}

/// Rejects a file that is named twice, since it would be counted twice. Pipes and terminals are not
/// checked: opening one may already consume input.
pub(super) fn refuse_twins(inputs: &[Input]) -> Result<(), OpenError> {
    let path = |input: &Input| match &input.0 {
        What::Path(path) => Some(path.clone()),
        What::Stream(..) => None,
    };
    let paths: Vec<PathBuf> = inputs.iter().filter_map(path).collect();
    let is_file = |path: &Path| path.metadata().is_ok_and(|m| m.is_file());
    for (i, second) in paths.iter().enumerate() {
        let same = |first: &&PathBuf| {
            *first == second
                || is_file(first)
                    && is_file(second)
                    && same_file::is_same_file(first, second).unwrap_or(false)
        };
        if let Some(first) = paths[..i].iter().find(same) {
            return Err(OpenError::SameFile {
                first: first.display().to_string(),
                second: second.display().to_string(),
            });
        }
    }
    Ok(())
}
