//! Adds names and lines to OTLP profiles.

use chronosym_core::facts::At;
use chronosym_core::unwind::ImageFiles;
use chronosym_core::{Frame, Options, Position, Session, SymbolSource};
use chronosym_otlp::{MAX_TEXT, NewLine, Profiles, join};
use chronosym_types::hash::{HashMap, HashSet};

use super::places::Places;
use crate::error::ReadError;

/// OTLP profiles with more names and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbolized {
    /// The file.
    pub bytes: Vec<u8>,
    /// Number of locations.
    pub locations: u64,
    /// Number of locations to which a name or a line was added.
    pub changed: u64,
    /// Number of locations that still have no name.
    pub unnamed: u64,
}

/// Adds names, lines and inlined functions to the locations of OTLP profiles that have none.
///
/// A location that has a line, and a function that has a name, keep them. Everything else is
/// unchanged, unknown fields included. `files` identifies files that the profiles identify by their
/// content.
///
/// # Errors
///
/// [`ReadError::Otlp`] if the bytes have no profile.
pub fn symbolize(
    bytes: Vec<u8>,
    files: Option<&dyn ImageFiles>,
    symbols: &dyn SymbolSource,
) -> Result<Symbolized, ReadError> {
    let has_lengths = bytes.first() == Some(&0);
    let mut result = Symbolized::default();
    let all = Profiles::read(bytes)?;
    let messages = all.iter().map(|profiles| {
        let lines = new_lines(profiles, files, symbols, &mut result);
        profiles.with_lines(&lines)
    });
    let messages: Vec<Vec<u8>> = messages.collect();
    result.bytes = join(&messages, has_lengths);
    Ok(result)
}

/// Returns functions for locations.
fn new_lines(
    profiles: &Profiles,
    files: Option<&dyn ImageFiles>,
    symbols: &dyn SymbolSource,
    result: &mut Symbolized,
) -> HashMap<usize, Vec<NewLine>> {
    let mut places = Places::new(0);
    let mut session = Session::new(Options::default());
    let at = At::new(0).process(1);
    let process = session.process_at(at);
    for location in 0..profiles.location_count() {
        places.state(profiles, location, (at, process), files, &mut session);
    }
    let callers = callers(profiles);
    let timeline = session.finish();
    let mut lines = HashMap::default();
    // The first location represents none.
    for index in 1..profiles.location_count() {
        result.locations += 1;
        let position = match callers.contains(&index) {
            true => Position::Return,
            false => Position::Exact,
        };
        let names = names(profiles, index);
        let addresses = places.stack(profiles, [index].into_iter(), (position, &mut 2), files);
        let found = match addresses.as_slice() {
            &[address] => timeline.frames(process, address, 1, position, Some(symbols)),
            _ => Vec::new(),
        };
        let new = merged(&names, &found);
        result.unnamed += u64::from(names.is_empty() && new.is_none());
        if let Some(new) = new {
            result.changed += 1;
            lines.insert(index, new);
        }
    }
    lines
}

/// Returns the names of a location, innermost first, and whether each has a line.
fn names(profiles: &Profiles, index: usize) -> Vec<(String, bool)> {
    let location = profiles.location(index);
    let lines = location.iter().flat_map(|location| location.lines());
    let named = lines.filter_map(|line| {
        let function = profiles.function(line.function)?;
        function
            .has_name()
            .then(|| (function.name.into_owned(), line.line > 0))
    });
    named.collect()
}

/// Returns the frames of a location, unless they add nothing to its names.
fn merged(names: &[(String, bool)], found: &[Frame]) -> Option<Vec<NewLine>> {
    let adds_line = found.iter().any(|frame| frame.line.is_ok());
    let own = match names {
        [] => None,
        // The rest of a longer name is not known here.
        [(name, false)] if adds_line && name.len() < MAX_TEXT => Some(name),
        _ => return None,
    };
    let mut lines = Vec::with_capacity(found.len());
    for frame in found {
        let line = frame.line.as_ref().ok();
        lines.push(NewLine {
            name: frame.name().ok()?.to_owned(),
            file: line.map_or(String::new(), |line| line.file.to_string()),
            line: line.map_or(0, |line| line.line),
            column: line.and_then(|line| line.column).unwrap_or(0),
        });
    }
    let outermost = lines.last_mut()?;
    if let Some(own) = own {
        outermost.name.clone_from(own);
    }
    Some(lines)
}

/// Returns the locations that call others.
fn callers(profiles: &Profiles) -> HashSet<usize> {
    let stacks = 0..profiles.stack_count();
    stacks
        .flat_map(|stack| profiles.stack(stack).skip(1))
        .collect()
}
