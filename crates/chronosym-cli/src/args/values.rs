//! Values that several commands take.

use std::str::FromStr;

use anyhow::{Context, Result};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Returns a parser for a type with a fixed list of names.
pub fn one_of<T>(
    names: impl IntoIterator<Item = impl Into<PossibleValue>>,
) -> impl TypedValueParser<Value = T>
where
    T: Clone + Default + FromStr + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).map(|name| name.parse().unwrap_or_default())
}

/// Returns a possible value with its meaning.
pub fn meant((name, what): (&'static str, &'static str)) -> PossibleValue {
    PossibleValue::new(name).help(what)
}

/// A number of rows.
pub fn rows(text: &str) -> Result<usize> {
    let rows = text.parse().ok().filter(|&rows| rows > 0);
    rows.context("expected a whole number from 1")
}
