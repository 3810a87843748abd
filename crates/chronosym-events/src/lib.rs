//! Typed .NET runtime, kernel and Universal trace events.
#![deny(missing_docs)]
