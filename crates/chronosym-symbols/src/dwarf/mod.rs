//! DWARF 2 to 5: from an address to functions and lines, reading as little of the file as possible.
//!
//! Parsing a unit into tables costs more than resolving a hundred addresses in it, so a batch
//! builds no tables. Its addresses are sorted and grouped by unit; one pass over the entries and
//! the line number program of each unit compares them with the wanted addresses. Memory depends on
//! the number of frames, not on the size of the file. Only single lookups use tables, of the units
//! used last ([`cached_unit`]).

pub(crate) mod abbrev;
pub(crate) mod budget;
pub(crate) mod cached_unit;
pub(crate) mod form;
pub(crate) mod functions;
pub(crate) mod index;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod ranges;
pub(crate) mod resolve;
pub(crate) mod split;
pub(crate) mod unit;
pub(crate) mod variables;
