//! The tables that pprof and OTLP share: strings, functions, mappings and locations, each once.

use chronosym_core::{Code, Frame, FrameId, ResolvedStack, Resolver};
use chronosym_types::hash::RandomState;
use indexmap::IndexSet;
use rustc_hash::FxHashMap;

use crate::function_groups::FunctionGroups;

/// Distinct values by number, in the order in which they came.
pub(crate) type Numbered<T> = IndexSet<T, RandomState>;

/// A function in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Function {
    pub name: u64,
    pub signature: u64,
    pub file: u64,
}

/// A binary, and where it was, if it is an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Mapping {
    pub start: u64,
    pub limit: u64,
    pub path: u64,
    pub identity: u64,
    /// The identity is a build id, and not that of a PDB.
    pub has_build_id: bool,
}

/// The frames at an address: those inlined come before what they are inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Location {
    pub address: u64,
    pub mapping: u64,
    /// Function, line, column.
    pub lines: Vec<(u64, u64, u64)>,
}

/// Number 0 of each table stands for nothing.
pub(crate) struct Tables {
    pub strings: Numbered<String>,
    pub functions: Numbered<Function>,
    pub mappings: Numbered<Mapping>,
    pub locations: Numbered<Location>,
    /// Locations by their innermost and outermost frames.
    known: FxHashMap<(FrameId, FrameId), u64>,
    rows: FunctionGroups,
}

impl Tables {
    /// `addresses`: code without a name is apart by address.
    pub fn new(resolver: &Resolver, addresses: bool) -> Self {
        Tables {
            strings: Numbered::from_iter([String::new()]),
            functions: Numbered::from_iter([Function::default()]),
            mappings: Numbered::from_iter([Mapping::default()]),
            locations: Numbered::from_iter([Location::default()]),
            known: FxHashMap::default(),
            rows: FunctionGroups::new(resolver, addresses),
        }
    }

    pub fn text(&mut self, text: &str) -> u64 {
        self.strings.insert_full(text.to_owned()).0 as u64
    }

    /// The locations of a stack, innermost first.
    pub fn stack(&mut self, resolver: &Resolver, stack: ResolvedStack) -> Vec<u64> {
        let (mut locations, mut group) = (Vec::new(), Vec::new());
        for frame in resolver.stack(stack) {
            group.push(frame);
            if !resolver.frame(frame).inlined {
                locations.push(self.location(resolver, &group));
                group.clear();
            }
        }
        if !group.is_empty() {
            locations.push(self.location(resolver, &group));
        }
        locations
    }

    fn location(&mut self, resolver: &Resolver, group: &[FrameId]) -> u64 {
        let key = (group[0], group[group.len() - 1]);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        let body = resolver.frame(key.1);
        let mapping = self.mapping(resolver, body);
        let lines = group.iter().map(|&id| {
            let frame = resolver.frame(id);
            let line = frame.line.as_ref().ok();
            let function = self.function(frame);
            let number = line.map_or(0, |line| u64::from(line.line));
            let column = line.and_then(|line| line.column).map_or(0, u64::from);
            (function, number, column)
        });
        let row = Location {
            address: body.address,
            lines: lines.collect(),
            mapping,
        };
        let id = self.locations.insert_full(row).0 as u64;
        self.known.insert(key, id);
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let row = &self.rows.rows[self.rows.of_frame(frame)];
        let name = format!("{row}{}", row.signature);
        let name = self.strings.insert_full(name).0 as u64;
        let signature = self.text(frame.signature().unwrap_or_default());
        let file = frame.line.as_ref().map_or("", |line| &*line.file);
        let file = self.text(file);
        let row = Function {
            name,
            signature,
            file,
        };
        self.functions.insert_full(row).0 as u64
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
        let row = Mapping {
            start,
            limit,
            path,
            identity,
            has_build_id,
        };
        self.mappings.insert_full(row).0 as u64
    }
}
