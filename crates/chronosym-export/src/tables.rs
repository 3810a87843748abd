//! The tables that pprof and OTLP share: distinct strings, functions, mappings and locations.

use std::cmp::Reverse;

use chronosym_core::{Code, Frame, FrameId, Profile, ResolvedStack, Resolver};
use chronosym_types::hash::RandomState;
use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use crate::function_groups::FunctionGroups;
use crate::kind::CodeKind;

/// Distinct values by index, in the order of insertion.
pub(crate) type Numbered<T> = IndexSet<T, RandomState>;

/// A function in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    pub name: u64,
    pub signature: u64,
    pub file: u64,
}

/// A binary and, if it is an image, its addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mapping {
    pub start: u64,
    pub limit: u64,
    pub path: u64,
    pub identity: u64,
    /// Whether the identity is a build ID instead of a PDB id.
    pub has_build_id: bool,
}

/// The frames at an address: inlined frames precede the frame that they are inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Location {
    pub address: u64,
    pub mapping: u64,
    /// Function, line, column.
    pub lines: Vec<(u64, u64, u64)>,
}

/// The first element of each table represents an absent value.
pub(crate) struct Tables {
    pub strings: Numbered<String>,
    pub functions: Numbered<Function>,
    pub mappings: Numbered<Mapping>,
    pub locations: Numbered<Location>,
    /// Locations by their innermost and outermost frames.
    location_of: FxHashMap<(FrameId, FrameId), u64>,
    groups: FunctionGroups,
}

impl Tables {
    /// Returns empty tables. With `addresses`, unnamed code is grouped by address.
    pub fn new(resolver: &Resolver, addresses: bool) -> Self {
        Tables {
            strings: Numbered::from_iter([String::new()]),
            functions: Numbered::from_iter([Function::default()]),
            mappings: Numbered::from_iter([Mapping::default()]),
            locations: Numbered::from_iter([Location::default()]),
            location_of: FxHashMap::default(),
            groups: FunctionGroups::new(resolver, addresses),
        }
    }

    /// Adds the mapping of the program itself before all others, because viewers treat the first
    /// mapping as the program. It is the binary with a process's name or, if none matches, user
    /// code.
    pub fn add_main(&mut self, profile: &Profile) {
        let (resolver, mut weights) = (&profile.resolver, FxHashMap::default());
        for entry in &profile.entries {
            *weights.entry(entry.thread).or_insert(0) += entry.samples;
        }
        let hottest = weights
            .into_iter()
            .max_by_key(|&(thread, samples)| (samples, Reverse(thread)));
        let timeline = resolver.timeline();
        let process = hottest.and_then(|(thread, _)| timeline.thread_view(thread));
        let process = process.and_then(|thread| timeline.process_view(thread.process));
        let name = process.and_then(|process| process.name).unwrap_or_default();
        let is_named = |frame: &&Frame| {
            let binary = frame.function.binary();
            binary.is_some_and(|binary| binary.name().eq_ignore_ascii_case(name))
        };
        let is_user = |frame: &&Frame| CodeKind::of(frame) == CodeKind::Managed;
        let frames = || resolver.frames().iter();
        if let Some(main) = frames().find(is_named).or_else(|| frames().find(is_user)) {
            self.mapping(resolver, main);
        }
    }

    pub fn text(&mut self, text: &str) -> u64 {
        let known = self.strings.get_index_of(text);
        known.unwrap_or_else(|| self.strings.insert_full(text.to_owned()).0) as u64
    }

    /// Returns the locations of a stack, innermost first.
    pub fn stack(&mut self, resolver: &Resolver, stack: ResolvedStack) -> Vec<u64> {
        let (mut locations, mut frames) = (Vec::new(), Vec::new());
        for frame in resolver.stack(stack) {
            frames.push(frame);
            if !resolver.frame(frame).inlined {
                locations.push(self.location(resolver, &frames));
                frames.clear();
            }
        }
        if !frames.is_empty() {
            locations.push(self.location(resolver, &frames));
        }
        locations
    }

    fn location(&mut self, resolver: &Resolver, frames: &[FrameId]) -> u64 {
        let key = (frames[0], frames[frames.len() - 1]);
        if let Some(&location) = self.location_of.get(&key) {
            return location;
        }
        let body = resolver.frame(key.1);
        let mapping = self.mapping(resolver, body);
        let lines = frames.iter().map(|&id| {
            let frame = resolver.frame(id);
            let line = frame.line.as_ref().ok();
            let function = self.function(frame);
            let number = line.map_or(0, |line| u64::from(line.line));
            let column = line.and_then(|line| line.column).map_or(0, u64::from);
            (function, number, column)
        });
        let location = Location {
            address: body.address,
            lines: lines.collect(),
            mapping,
        };
        let id = self.locations.insert_full(location).0 as u64;
        self.location_of.insert(key, id);
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let group = &self.groups.all[self.groups.of_frame(frame)];
        let name = format!("{group}{}", group.signature);
        let name = self.strings.insert_full(name).0 as u64;
        let signature = self.text(frame.signature().unwrap_or_default());
        let file = frame.line.as_ref().map_or("", |line| &*line.file);
        let file = self.text(file);
        let function = Function {
            name,
            signature,
            file,
        };
        self.functions.insert_full(function).0 as u64
    }

    fn mapping(&mut self, resolver: &Resolver, frame: &Frame) -> u64 {
        let Some(binary) = frame.function.binary() else {
            return 0;
        };
        let image = match frame.code {
            Code::Image { process, image, .. } => resolver.timeline().image_ref(process, image),
            _ => None,
        };
        let has_build_id = image
            .as_ref()
            .is_some_and(|i| i.pdb.is_none() && i.build_id.is_some());
        let (start, limit) = image.map_or((0, 0), |i| (i.base, i.base.saturating_add(i.size)));
        let path = self.text(binary.path().unwrap_or(binary.name()));
        let identity = self.text(binary.identity().unwrap_or_default());
        let mapping = Mapping {
            start,
            limit,
            path,
            identity,
            has_build_id,
        };
        self.mappings.insert_full(mapping).0 as u64
    }
}
