//! The location of a symbol file, or why there is none, as text and as JSON.

use std::io::{self, Write};

use chronosym_symbolizer::SymbolFile;
use chronosym_types::IdentityKind;
use serde::ser::SerializeMap;

use crate::object::{Fields, Object};
use crate::text_line;

/// Returns the locations that were searched, if there is no file.
fn attempts(file: &SymbolFile) -> Vec<String> {
    let attempts = file.attempts.iter().filter(|_| file.found.is_err());
    attempts.map(ToString::to_string).collect()
}

impl Fields for SymbolFile {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let attempts = Some(attempts(self)).filter(|attempts| !attempts.is_empty());
        object
            .some("wanted", self.wanted.as_ref().map(ToString::to_string))
            .some("found", self.found.as_ref().ok().map(ToString::to_string))
            .some("matched_by", self.matched_by().map(IdentityKind::as_str))
            .some("reason", self.found.as_ref().err().map(|none| none.name()))
            .some("attempts", attempts);
    }
}

/// Writes the location of the file, or why there is none and which locations were searched.
pub(crate) fn write_symbol_file(
    file: &SymbolFile,
    what: &str,
    indent: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    match &file.found {
        Ok(location) => {
            let weak = file.matched_by().filter(|kind| !kind.is_of_content());
            let by = match weak {
                Some(IdentityKind::FileNumber) => {
                    " (by device and inode: the file that was mapped)"
                }
                Some(_) => " (by its path alone: perhaps another build)",
                None => "",
            };
            text_line!(out, "{indent}{what} found: {location}{by}")?;
        }
        Err(none) if file.wanted.is_some() => {
            text_line!(out, "{indent}no {what}: {}: {none}", none.name())?;
        }
        Err(_) => text_line!(out, "{indent}no {what}: the trace states no identity")?,
    }
    for attempt in attempts(file) {
        text_line!(out, "{indent}  {attempt}")?;
    }
    Ok(())
}
