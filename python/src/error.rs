//! Exceptions.

use chronosym::OpenError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    chronosym,
    Error,
    PyException,
    "A trace cannot be read, or a file not written. `kind` is a word such as `not_found`, `format`, `damaged` or \
     `cancelled`; `path` is the file or None; `offset` is the position in it in bytes, or None."
);

fn with(
    py: Python<'_>,
    text: String,
    kind: &str,
    path: Option<&str>,
    offset: Option<u64>,
) -> PyErr {
    let error = Error::new_err(text);
    let value = error.value(py);
    let set = value
        .setattr("kind", kind)
        .and_then(|()| value.setattr("path", path))
        .and_then(|()| value.setattr("offset", offset));
    match set {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// The message of an error and of its causes.
pub fn message(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let error_text = error.to_string();
        // Some errors repeat their cause.
        if !text.ends_with(&error_text) {
            text = format!("{text}: {error_text}");
        }
        cause = error.source();
    }
    text
}

pub fn of_open(py: Python<'_>, error: &OpenError) -> PyErr {
    let kind = error.kind();
    with(
        py,
        message(error),
        kind.as_str(),
        error.input(),
        error.offset(),
    )
}

pub fn of_file(py: Python<'_>, path: &str, error: &std::io::Error) -> PyErr {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => "not_found",
        _ => "io",
    };
    with(
        py,
        format!("cannot write {path}: {error}"),
        kind,
        Some(path),
        None,
    )
}

/// An error in the middle of a stream, whose text is known only.
pub fn failed(text: String) -> PyErr {
    Python::attach(|py| with(py, text, "io", None, None))
}
