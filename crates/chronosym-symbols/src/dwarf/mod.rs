//! DWARF 2 to 5: from an address to functions and lines, reading as little of the file as the answer needs.
//!
//! Parsing a unit into tables costs more than answering a hundred addresses from it, so nothing is parsed into tables. A
//! batch of addresses is sorted and grouped by unit; each unit's entries and its line program are then run over once, and
//! what passes is compared with the few addresses wanted. Memory follows the answers, not the file. Only addresses asked one at
//! a time have tables, of the units asked last ([`known`]).

pub(crate) mod abbrev;
pub(crate) mod budget;
pub(crate) mod form;
pub(crate) mod functions;
pub(crate) mod index;
pub(crate) mod known;
pub(crate) mod lines;
pub(crate) mod names;
pub(crate) mod ranges;
pub(crate) mod resolve;
pub(crate) mod split;
pub(crate) mod unit;
