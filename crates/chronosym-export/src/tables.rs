//! The tables that pprof and OTLP share: strings, functions, mappings and locations, each once.

use std::hash::Hash;

use chronosym::{Code, Frame, FrameId, ResolvedStack, Resolver};
use rustc_hash::FxHashMap;

use crate::rows::Rows;

/// Distinct values by number, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Table<T> {
    index: FxHashMap<T, usize>,
    pub rows: Vec<T>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table {
            index: FxHashMap::default(),
            rows: Vec::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    /// A table whose number 0 is taken.
    pub fn starting_with(first: T) -> Self {
        let mut table = Table::default();
        table.id(first);
        table
    }

    pub fn id(&mut self, value: T) -> usize {
        if let Some(&known) = self.index.get(&value) {
            return known;
        }
        self.rows.push(value.clone());
        self.index.insert(value, self.rows.len() - 1);
        self.rows.len() - 1
    }
}

/// A function in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FunctionRow {
    pub name: usize,
    pub signature: usize,
    pub file: usize,
}

/// A binary, and where it was, if it is an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct MappingRow {
    pub start: u64,
    pub limit: u64,
    pub path: usize,
    pub identity: usize,
    /// The identity is a build id, and not that of a PDB.
    pub has_build_id: bool,
}

/// The frames at an address: those inlined come before what they are inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct LocationRow {
    pub address: u64,
    pub mapping: usize,
    /// Function, line, column.
    pub lines: Vec<(usize, u64, u64)>,
}

/// Number 0 of each table stands for nothing.
pub(crate) struct Tables {
    pub strings: Table<String>,
    pub functions: Table<FunctionRow>,
    pub mappings: Table<MappingRow>,
    pub locations: Table<LocationRow>,
    /// Locations by their innermost and outermost frames.
    known: FxHashMap<(FrameId, FrameId), usize>,
    rows: Rows,
}

impl Tables {
    /// `addresses`: code without a name is apart by address.
    pub fn new(resolver: &Resolver, addresses: bool) -> Self {
        Tables {
            strings: Table::starting_with(String::new()),
            functions: Table::starting_with(FunctionRow::default()),
            mappings: Table::starting_with(MappingRow::default()),
            locations: Table::starting_with(LocationRow::default()),
            known: FxHashMap::default(),
            rows: Rows::new(resolver, addresses),
        }
    }

    pub fn text(&mut self, text: &str) -> usize {
        self.strings.id(text.to_owned())
    }

    /// The locations of a stack, innermost first.
    pub fn stack(&mut self, resolver: &Resolver, stack: ResolvedStack) -> Vec<u64> {
        let (mut locations, mut group) = (Vec::new(), Vec::new());
        for frame in resolver.stack(stack) {
            group.push(frame);
            if !resolver.frame(frame).inlined {
                locations.push(self.location(resolver, &group) as u64);
                group.clear();
            }
        }
        if !group.is_empty() {
            locations.push(self.location(resolver, &group) as u64);
        }
        locations
    }

    fn location(&mut self, resolver: &Resolver, group: &[FrameId]) -> usize {
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
        let row = LocationRow {
            address: body.address,
            lines: lines.collect(),
            mapping,
        };
        let id = self.locations.id(row);
        self.known.insert(key, id);
        id
    }

    fn function(&mut self, frame: &Frame) -> usize {
        let row = &self.rows.rows[self.rows.of[frame.function.id().index()] as usize];
        let name = format!("{row}{}", row.signature);
        let name = self.strings.id(name);
        let signature = self.text(frame.signature().unwrap_or_default());
        let file = frame.line.as_ref().map_or("", |line| &*line.file);
        let file = self.text(file);
        self.functions.id(FunctionRow {
            name,
            signature,
            file,
        })
    }

    fn mapping(&mut self, resolver: &Resolver, frame: &Frame) -> usize {
        let Some(binary) = frame.function.binary() else {
            return 0;
        };
        let image = match frame.code {
            Code::Image { process, image, .. } => resolver.timeline().image(process, image),
            _ => None,
        };
        let has_build_id = image
            .as_ref()
            .is_some_and(|i| i.pdb.is_none() && i.build_id.is_some());
        let (start, limit) = image.map_or((0, 0), |i| (i.base, i.base.saturating_add(i.size)));
        let path = self.text(binary.path().unwrap_or(binary.name()));
        let identity = self.text(binary.identity().unwrap_or_default());
        self.mappings.id(MappingRow {
            start,
            limit,
            path,
            identity,
            has_build_id,
        })
    }
}
