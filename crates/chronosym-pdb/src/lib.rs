//! Parsers of portable PDBs, Windows PDBs and ReadyToRun images.
#![deny(missing_docs)]
