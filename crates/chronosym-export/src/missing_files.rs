//! The symbol files that a profile lacks, as text and as JSON.

use std::io::{self, Write};

use chronosym_core::Profile;
use chronosym_symbolizer::MissingSymbols;
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::header::no_samples;
use crate::object::{Fields, Json, Object};
use crate::symbol_commands::commands;
use crate::table::TableObject;
use crate::text_line;
use crate::units::show_count;
use crate::weight::{Amount, WeightUnit};

/// The symbol files that would supply names or lines of a profile's leaves.
#[derive(Debug)]
pub struct MissingFiles<'p> {
    profile: &'p Profile,
    files: Vec<MissingFile<'p>>,
    max_lines: usize,
}

#[derive(Debug)]
struct MissingFile<'p> {
    symbols: &'p MissingSymbols,
    unnamed: Amount,
    without_line: Amount,
    commands: Vec<String>,
}

impl<'p> MissingFiles<'p> {
    /// Returns the missing files of a profile, of which at most `max_lines` are shown, each with
    /// the commands that get it; `trace` is the trace's path as a shell word.
    pub fn new(
        profile: &'p Profile,
        missing: &'p [MissingSymbols],
        trace: &str,
        max_lines: usize,
    ) -> Self {
        let is_timed = profile.time_ns().is_some();
        let amount = |samples, ns| Amount {
            samples,
            time_ns: is_timed.then_some(ns),
            bytes: 0,
            events: 0,
        };
        let files = missing.iter().map(|symbols| MissingFile {
            symbols,
            unnamed: amount(symbols.unnamed, symbols.unnamed_ns),
            without_line: amount(symbols.without_line, symbols.without_line_ns),
            commands: commands(symbols, profile.resolver.timeline(), trace),
        });
        MissingFiles {
            profile,
            files: files.collect(),
            max_lines,
        }
    }

    /// Writes a table, and the options that add search paths.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (profile, missing) = (self.profile, &self.files);
        let samples = show_count(profile.samples());
        if profile.samples() == 0 {
            return writeln!(
                out,
                "{}: `chronosym info TRACE` shows what the trace contains",
                no_samples(profile.resolver.timeline())
            );
        }
        if missing.is_empty() {
            return writeln!(
                out,
                "no missing symbol file would add a name or line to the innermost frames of {samples} samples"
            );
        }
        let unit = match WeightUnit::of(profile) {
            WeightUnit::Bytes | WeightUnit::Events => WeightUnit::Samples,
            unit => unit,
        };
        let all = unit.total(profile);
        let cells = |amount: &Amount| {
            let weight = amount.weight(unit);
            let share = weight as f64 * 100.0 / all.max(1) as f64;
            format!("{share:>6.1}% {:>9}", unit.show(weight))
        };
        writeln!(
            out,
            "percentages of the innermost frames of {samples} samples:\n\
             those that a file would name, and those with a name to which it would add a line\n\n\
             {:>7} {:>9} {:>7} {:>9}  module or image",
            "name %",
            unit.head("name"),
            "line %",
            unit.head("line")
        )?;
        for file in missing.iter().take(self.max_lines) {
            text_line!(
                out,
                "{} {}  {}: {}",
                cells(&file.unnamed),
                cells(&file.without_line),
                file.symbols.name,
                file.symbols.reason()
            )?;
            let nothing = || "the trace states no id of the file".to_owned();
            text_line!(out, "{INDENT}{}", file.identity().unwrap_or_else(nothing))?;
            if let (true, Ok(stripped)) =
                (file.symbols.file.is_stripped(), &file.symbols.file.found)
            {
                text_line!(out, "{INDENT}found   {stripped}, which is stripped")?;
            }
            for path in &file.symbols.trace_paths {
                text_line!(out, "{INDENT}path    {path}")?;
            }
            for path in &file.symbols.server_paths {
                text_line!(out, "{INDENT}server  {path}")?;
            }
            for command in &file.commands {
                text_line!(out, "{INDENT}try     {command}")?;
            }
        }
        match missing.len().saturating_sub(self.max_lines) {
            0 => {}
            more => writeln!(out, "\n{more} more (`-n` shows more)")?,
        }
        writeln!(
            out,
            "\nsearch locations: --symbols DIR, --symbol-path 'srv*CACHE*URL',\n\
             DEBUGINFOD_URLS, --trust-trace-paths"
        )
    }
}

const INDENT: &str = "         ";

impl Serialize for MissingFiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let files: Vec<_> = self.files.iter().map(Json).collect();
        TableObject::new(self.profile, "symbol_file", &files, self.max_lines).serialize(serializer)
    }
}

impl MissingFile<'_> {
    fn identity(&self) -> Option<String> {
        self.symbols.file.wanted.as_ref().map(ToString::to_string)
    }
}

impl Fields for MissingFile<'_> {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .field("module", &self.symbols.name)
            .field("unnamed", self.unnamed)
            .field("without_line", self.without_line)
            .field("reason", self.symbols.reason())
            .some("identity", self.identity())
            .field("trace_paths", &self.symbols.trace_paths)
            .field("server_paths", &self.symbols.server_paths)
            .field("commands", &self.commands);
    }
}
