//! Go's function table, which every Go binary carries for its own stack traces: functions, files,
//! lines and inlined calls, also of binaries built without symbols and DWARF (`-ldflags=-s`, `-w`).
//!
//! Supports the layouts since Go 1.2. Inlined calls are supported since Go 1.12, before Go 1.18
//! only if the linker wrote addresses that need no relocation.
//!
//! Sources: `debug/gosym/pclntab.go`, `internal/abi/symtab.go`, `runtime/symtab.go`,
//! `runtime/symtabinl.go`, `runtime/runtime2.go` and `cmd/link/internal/ld/pcln.go` of Go 1.19 to
//! 1.27.

mod image;
mod inlined;
mod moduledata;
mod pclntab;
mod resolve;

pub(crate) use resolve::{GoScratch, GoSymbols};
