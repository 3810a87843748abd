//! Where results go.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result};

use crate::args::Color;

static COLOR: OnceLock<Color> = OnceLock::new();

/// Says once what `--color` asks for.
pub fn set_color(color: Color) {
    let _ = COLOR.set(color);
}

/// Whether results are coloured: as `--color` says, by default on a terminal unless `NO_COLOR` is set (no-color.org).
pub fn is_coloured(path: Option<&Path>) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match COLOR.get().copied().unwrap_or(Color::Auto) {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
            is_terminal(path) && !set("NO_COLOR") && !dumb
        }
    }
}

/// Columns of the terminal; `None` where results go elsewhere.
pub fn width(path: Option<&Path>) -> Option<usize> {
    if !is_terminal(path) {
        return None;
    }
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

/// Standard output, or the file that `-o` names.
pub fn open(path: Option<&Path>) -> Result<Box<dyn Write>> {
    crate::progress::clear();
    Ok(match path {
        None => Box::new(BufWriter::with_capacity(1 << 16, io::stdout().lock())),
        Some(path) => {
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            Box::new(BufWriter::with_capacity(1 << 16, file))
        }
    })
}

/// Whether results are read by a person at a terminal.
pub fn is_terminal(path: Option<&Path>) -> bool {
    path.is_none() && io::stdout().is_terminal()
}

/// A reader such as `head` that has seen enough is no failure.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}
