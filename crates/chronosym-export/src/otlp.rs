//! OTLP profiles (opentelemetry-proto, profiles/v1development), which are still experimental.

use std::io::{self, Write};

use chronosym_core::{ProcessIndex, ProcessView, Profile, ProfileEntry, ThreadIndex};
use indexmap::IndexMap;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::series::Granularity;
use crate::tables::{Numbered, Tables};
use crate::weight::WeightUnit;
use crate::wire::Message;

/// An attribute of samples or mappings: the index of its key, and its value.
type Attribute = (u64, Value);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Value {
    Text(String),
    Int(u64),
}

impl Value {
    /// As an `AnyValue`.
    fn write(&self, m: &mut Message) {
        match self {
            Value::Text(text) => m.text(1, text),
            Value::Int(int) => m.int(3, *int),
        };
    }
}

/// The tables of the whole file.
struct Dictionary {
    tables: Tables,
    stacks: Numbered<Vec<u64>>,
    attributes: Numbered<Attribute>,
}

impl Dictionary {
    fn attribute(&mut self, key: &str, value: Value) -> u64 {
        let key = self.tables.text(key);
        self.attributes.insert_full((key, value)).0 as u64
    }
}

/// Writes one `ProfilesData` message: a resource for each process, with a profile of sample counts
/// and, if known, one of time or bytes. Text is as in the trace: viewers escape it.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_otlp(
    profile: &Profile,
    granularity: Granularity,
    out: &mut impl Write,
) -> io::Result<()> {
    let timeline = profile.resolver.timeline();
    let mut dictionary = Dictionary {
        tables: Tables::new(&profile.resolver, granularity.addresses),
        stacks: Numbered::from_iter([Vec::new()]),
        attributes: Numbered::from_iter([(0, Value::Text(String::new()))]),
    };
    let mut processes: IndexMap<ProcessIndex, Vec<&ProfileEntry>, FxBuildHasher> =
        IndexMap::default();
    for entry in &profile.entries {
        if let Some(thread) = timeline.thread_view(entry.thread) {
            processes.entry(thread.process).or_default().push(entry);
        }
    }
    let unit = WeightUnit::of(profile);
    let own_type = unit
        .sample_type()
        .map(|(name, unit_name)| (name, unit_name, unit));
    let types = [Some(("samples", "count", WeightUnit::Samples)), own_type];
    for (process, entries) in &processes {
        let mut data = Message::default();
        data.message(1, |m| {
            if let Some(view) = timeline.process_view(*process) {
                m.message(1, |m| write_resource(&view, m));
            }
            m.message(2, |m| {
                m.message(1, |m| {
                    _ = m.text(1, "chronosym").text(2, env!("CARGO_PKG_VERSION"))
                });
                for (name, unit_name, unit) in types.into_iter().flatten() {
                    let name = dictionary.tables.text(name);
                    let unit_name = dictionary.tables.text(unit_name);
                    m.message(2, |m| {
                        m.message(1, |m| _ = m.int(1, name).int(2, unit_name));
                        write_samples(profile, entries, unit, granularity, &mut dictionary, m);
                    });
                }
            });
        });
        out.write_all(data.bytes())?;
    }
    let mut data = Message::default();
    data.message(2, |m| write_dictionary(&mut dictionary, m));
    out.write_all(data.bytes())
}

fn write_resource(process: &ProcessView<'_>, m: &mut Message) {
    let mut attributes = vec![("service.name", Value::Text(process.label()))];
    if let Some(pid) = process.pid {
        attributes.push(("process.pid", Value::Int(u64::from(pid))));
    }
    if let Some(name) = process.name {
        attributes.push(("process.executable.name", Value::Text(name.to_owned())));
    }
    for (key, value) in attributes {
        m.message(1, |m| {
            m.text(1, key).message(2, |m| value.write(m));
        });
    }
}

fn write_samples(
    profile: &Profile,
    entries: &[&ProfileEntry],
    unit: WeightUnit,
    granularity: Granularity,
    dictionary: &mut Dictionary,
    m: &mut Message,
) {
    let (resolver, timeline) = (&profile.resolver, profile.resolver.timeline());
    let mut threads: FxHashMap<ThreadIndex, Vec<u64>> = FxHashMap::default();
    for entry in entries {
        let locations = dictionary.tables.stack(resolver, entry.stack);
        let stack = dictionary.stacks.insert_full(locations).0 as u64;
        let attributes = threads.entry(entry.thread).or_insert_with(|| {
            let view = timeline.thread_view(entry.thread);
            let Some(thread) = view.filter(|_| granularity.threads) else {
                return Vec::new();
            };
            let id = dictionary.attribute("thread.id", Value::Int(thread.tid));
            let name = thread.name.map(|name| Value::Text(name.to_owned()));
            let name = name.map(|name| dictionary.attribute("thread.name", name));
            std::iter::once(id).chain(name).collect()
        });
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        let tier = leaf.tier.map(|tier| Value::Text(tier.name().to_owned()));
        let tier = tier.map(|tier| dictionary.attribute("chronosym.tier", tier));
        let attributes = attributes.iter().copied().chain(tier);
        m.message(2, |m| {
            m.int(1, stack).packed(2, attributes);
            m.packed(4, [unit.weight(entry)]);
        });
    }
    let facts = timeline.facts();
    let start = facts.start_unix_ns.and_then(|ns| u64::try_from(ns).ok());
    m.fixed64(3, start.unwrap_or(0)).int(4, facts.duration_ns);
}

fn write_dictionary(dictionary: &mut Dictionary, m: &mut Message) {
    let mappings = std::mem::take(&mut dictionary.tables.mappings);
    for mapping in mappings {
        let identity = dictionary.tables.strings[mapping.identity as usize].clone();
        let identity = (!identity.is_empty()).then(|| {
            // The conventions define no attribute for PDB ids.
            let key = match mapping.has_build_id {
                true => "process.executable.build_id.gnu",
                false => "chronosym.pdb_id",
            };
            dictionary.attribute(key, Value::Text(identity))
        });
        m.message(1, |m| {
            m.int(1, mapping.start).int(2, mapping.limit);
            m.int(4, mapping.path).packed(5, identity);
        });
    }
    for location in &dictionary.tables.locations {
        m.message(2, |m| {
            m.int(1, location.mapping).int(2, location.address);
            for &(function, line, column) in &location.lines {
                m.message(3, |m| _ = m.int(1, function).int(2, line).int(3, column));
            }
        });
    }
    for function in &dictionary.tables.functions {
        m.message(3, |m| {
            m.int(1, function.name).int(2, function.signature);
            m.int(3, function.file);
        });
    }
    // The first link represents none.
    m.blob(4, &[]);
    for text in &dictionary.tables.strings {
        m.text(5, text);
    }
    for (key, value) in &dictionary.attributes {
        m.message(6, |m| {
            m.int(1, *key).message(2, |m| value.write(m));
        });
    }
    for stack in &dictionary.stacks {
        m.message(7, |m| _ = m.packed(1, stack.iter().copied()));
    }
}
