//! Properties that hold for any bytes: a target for each parser and demangler, for the map, and for
//! the whole pipeline.
//!
//! A target is a plain function that panics when a property is violated. Stable Rust replays the
//! corpora through them and changes their inputs at random (`tests/replay.rs`); libFuzzer, which
//! sees which code an input reaches, runs them in `libfuzzer/` by the script `long-run`.
#![deny(missing_docs)]

pub mod choices;
mod converted;
pub mod corpus;
mod events;
mod files;
mod made;
mod map;
pub mod mutate;
mod names;
mod pipeline;
mod proto;
mod readers;
mod saved;
pub mod seeds;
mod stores;

/// A function that runs with any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its folder in `corpus/`.
    pub name: &'static str,
    /// Panics when a promise is broken.
    pub run: fn(&[u8]),
    /// The name of its dictionary in `dictionaries/`.
    pub words: &'static str,
}

const fn target(name: &'static str, run: fn(&[u8]), words: &'static str) -> Target {
    Target { name, run, words }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    // Readers: bytes to records.
    target("nettrace", readers::nettrace, "nettrace"),
    target("etl", readers::etl, "etl"),
    target("perf_data", readers::perf_data, "perf"),
    target("ctf", readers::ctf, "ctf"),
    target("jitdump", readers::jitdump, "perf"),
    target("perf_script", readers::perf_script, "text"),
    target("perf_map", readers::perf_map, "text"),
    target("otlp", readers::otlp, "etl"),
    target("saved", saved::any, "etl"),
    target("wrapped", readers::wrapped, "wrapped"),
    // Events: payloads, and descriptions in traces.
    target("event_payload", events::payload, "etl"),
    target("trace_logging", events::trace_logging, "etl"),
    target("event_description", events::description, "etl"),
    target("manifest", events::manifest, "manifest"),
    target("inline_tree", events::inline_tree, "etl"),
    // Symbol files.
    target("elf", files::elf, "elf"),
    target("dwarf", files::dwarf, "elf"),
    target("go_table", files::go_table, "elf"),
    target("breakpad", files::elf, "text"),
    target("mach_o", files::elf, "elf"),
    target("unwind", files::unwind, "elf"),
    target("pe", files::pe, "pdb"),
    target("kallsyms", files::kallsyms, "text"),
    target("r2r_map", files::r2r_map, "text"),
    target("portable_pdb", files::portable_pdb, "pdb"),
    target("windows_pdb", files::windows_pdb, "pdb"),
    target("converted", converted::any, "etl"),
    target("symbol_path", files::symbol_path, "text"),
    target("packed", stores::packed, "wrapped"),
    target("crash_log", files::crash_log, "text"),
    // Demanglers.
    target("names_itanium", names::itanium, "names"),
    target("names_msvc", names::msvc, "names"),
    target("names_rust", names::rust, "names"),
    // The map against the naive model.
    target("map", map::frozen_and_live, "etl"),
    // The whole way: reader, timeline, profile, every output.
    target("pipeline", pipeline::any, "nettrace"),
    target("made_nettrace", made::nettrace, "etl"),
    target("made_etl", made::etl, "etl"),
    target("made_perf", made::perf, "etl"),
];

/// The target of a name.
#[must_use]
pub fn target_of(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
