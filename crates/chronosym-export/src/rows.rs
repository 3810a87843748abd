//! Which functions are one row of an output: those that look alike, unless their signatures say that they are overloads.

use std::sync::Arc;

use chronosym::{Function, Resolver};
use rustc_hash::FxHashMap;

/// The functions of a resolver by rows.
pub(crate) struct Rows {
    /// The row of each function.
    pub of: Vec<u32>,
    pub rows: Vec<Row>,
}

/// One or several functions of one label.
pub(crate) struct Row {
    pub function: Arc<Function>,
    /// What sets overloads apart; empty where there is just one.
    pub signature: String,
}

impl Rows {
    pub(crate) fn new(resolver: &Resolver) -> Self {
        let functions = resolver.functions();
        let mut by_label: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
        for (index, function) in functions.iter().enumerate() {
            by_label.entry(function.label()).or_default().push(index);
        }
        let mut rows = Rows {
            of: vec![u32::MAX; functions.len()],
            rows: Vec::with_capacity(by_label.len()),
        };
        for index in 0..functions.len() {
            if let Some(alike) = by_label.remove(functions[index].label()) {
                rows.add(functions, &alike);
            }
        }
        rows
    }

    /// The label of a row, with what sets overloads apart.
    pub(crate) fn label(&self, row: u32) -> String {
        let row = &self.rows[row as usize];
        format!("{}{}", row.function.label(), row.signature)
    }

    /// For each row whether `text` means it: as its whole name, else as the end of its name, else as a part of its label.
    pub(crate) fn matching(&self, text: &str) -> Vec<bool> {
        let rank = |row: &Row| {
            let label = row.function.label();
            let end = label.strip_suffix(text);
            let full = format!("{label}{}", row.signature);
            let boundary = |rest: &str| rest.ends_with(['.', '+', '!', '/', ':']);
            if full == text || label == text || row.function.name() == Some(text) {
                3
            } else if end.is_some_and(boundary) {
                2
            } else {
                u8::from(full.contains(text))
            }
        };
        let ranks: Vec<u8> = self.rows.iter().map(rank).collect();
        let best = ranks.iter().copied().max().unwrap_or(0).max(1);
        ranks.into_iter().map(|rank| rank == best).collect()
    }

    /// Adds the rows of functions that have one label.
    fn add(&mut self, functions: &[Arc<Function>], alike: &[usize]) {
        let of: Vec<String> = alike.iter().map(|&i| signature(&functions[i])).collect();
        let mut overloads: Vec<&str> = of.iter().map(String::as_str).collect();
        overloads.sort_unstable();
        overloads.dedup();
        // One of which no signature is known is the only one that there is.
        let apart = overloads.iter().filter(|s| !s.is_empty()).count() > 1;
        let mut row_of: Vec<(&str, u32)> = Vec::new();
        for (&index, signature) in alike.iter().zip(&of) {
            let signature = if apart { signature.as_str() } else { "" };
            let known = row_of.iter().find(|(known, _)| *known == signature);
            let row = known.map_or(self.rows.len() as u32, |(_, row)| *row);
            if known.is_none() {
                row_of.push((signature, row));
                self.rows.push(Row {
                    function: Arc::clone(&functions[index]),
                    signature: shown(signature, &overloads),
                });
            }
            self.of[index] = row;
        }
    }
}

/// The signature of a function, the blanks of which differ from source to source; empty where there is none, or where it is not
/// that of what the name stands for.
fn signature(function: &Function) -> String {
    let signature = function.signature();
    let signature = signature.filter(|_| function.compiled_as().is_none());
    let words = signature.unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// The arguments, or all of it where others have the same.
fn shown(signature: &str, overloads: &[&str]) -> String {
    let arguments = |signature: &str| signature.find('(').map_or(0, |at| at);
    let own = &signature[arguments(signature)..];
    let same = |other: &&&str| &other[arguments(other)..] == own;
    if overloads.iter().filter(same).count() > 1 {
        format!("  {signature}")
    } else {
        own.to_owned()
    }
}
