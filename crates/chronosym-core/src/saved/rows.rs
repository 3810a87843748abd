//! Rows of code, processes and images.

use std::sync::Arc;

use chronosym_events::{Extent, Guid, OptimizationTier};
use chronosym_timeline::{End, Start};
use chronosym_types::{ByOffset, PdbId};

use super::coder::Coder;
use super::ranks::TextSource;
use crate::body::{CodeBody, Module};
use crate::clr_state::Details;
use crate::code::LoneMap;
use crate::evidence::{Evidence, EvidenceSet};
use crate::ids::{ModuleIndex, NameId};
use crate::il_map::IlMap;
use crate::images::{Image, PePart, PerfMapId};
use crate::inline_tree::InlineTree;
use crate::process::{Process, Runtime, Thread};
use crate::strings::StringId;
use crate::symbol_identity::PdbReference;
use crate::terms::Addressing;
use crate::untimed::UntimedSymbol;

/// An element of a process, with its number in the process: rows are sorted by address.
pub(super) struct Of<T> {
    pub process: u32,
    pub number: u32,
    pub it: T,
}

impl<T: Default> Default for Of<T> {
    fn default() -> Self {
        Of {
            process: 0,
            number: 0,
            it: T::default(),
        }
    }
}

/// Returns a row of a process.
pub(super) fn of<T>(
    processes: usize,
    mut code: impl FnMut(&mut Coder<'_>, &mut T),
) -> impl FnMut(&mut Coder<'_>, &mut Of<T>) {
    move |coder, row| {
        coder.index(&mut row.process, processes);
        let next = coder.numbers;
        coder.relative(&mut row.number, next);
        coder.numbers = u64::from(row.number) + 1;
        code(coder, &mut row.it);
    }
}

/// A body, the id of its module if that is not known, and its targets if it is a stub.
pub(super) struct BodyRow {
    pub body: CodeBody,
    pub module_id: Option<u64>,
    pub targets: Option<Vec<NameId>>,
}

impl Default for BodyRow {
    fn default() -> Self {
        BodyRow {
            body: CodeBody::NONE,
            module_id: None,
            targets: None,
        }
    }
}

impl BodyRow {
    /// Replaces the ranks of a row that was read with [`Unread`](super::ranks::Unread).
    pub fn read_texts(&mut self, texts: &mut dyn TextSource) -> Option<()> {
        self.body.name = texts.name(self.body.name.0)?;
        for target in self.targets.iter_mut().flatten() {
            *target = texts.name(target.0)?;
        }
        if let Some(lines) = self.body.lines() {
            let read = |&(offset, (file, line)): &(u32, (StringId, u32))| {
                Some((offset, (texts.string(file.0)?, line)))
            };
            let lines: Option<Vec<_>> = lines.upto(u32::MAX).iter().map(read).collect();
            self.body.rare_mut().lines = Some(ByOffset::new(lines?.into_iter()));
        }
        Some(())
    }

    /// Drops the names of a row that was read with [`Unread`](super::ranks::Unread): it only bounds
    /// the lifetimes of others.
    pub fn drop_texts(&mut self) {
        self.body.name = NameId::NONE;
        (self.body.rare, self.targets) = (None, None);
    }
}

pub(super) fn body(coder: &mut Coder<'_>, row: &mut BodyRow) {
    let BodyRow {
        body,
        module_id,
        targets,
    } = row;
    let end = coder.end;
    coder.relative(&mut body.start, end);
    coder.number(&mut body.size);
    coder.end = body.last().wrapping_add(1);
    coder.number(&mut body.clr_instance);
    coder.delta(&mut body.token);
    coder.number(&mut body.flags.0);
    coder.delta(&mut body.method_id);
    coder.number(&mut body.native_code_version);
    coder.name(&mut body.name);
    let mut module = body.module.map_or(0, |module| u64::from(module.0) + 1);
    coder.delta(&mut module);
    body.module = module.checked_sub(1).map(|it| ModuleIndex(it as u32));
    evidence(coder, &mut body.evidence);
    let started = lifetime(coder, &mut body.loaded, &mut body.end, &mut body.confirmed);
    coder.relative(&mut body.earliest, started);
    coder.flag(&mut body.approximate);
    let mut entries = body.il_map.as_ref().map(|map| map.entries());
    coder.option(&mut entries, 3, il_map);
    let rare = body.rare.as_deref();
    let mut tree = rare.and_then(|rare| rare.inline_tree.clone());
    let mut lines = rare.and_then(|rare| Some(rare.lines.as_ref()?.upto(u32::MAX).to_vec()));
    coder.option(&mut tree, 9, inline_tree);
    coder.option(&mut lines, 4, line_table);
    coder.option(targets, 2, |coder, targets| {
        coder.list(targets, 1, Coder::name);
    });
    if coder.version > 1 {
        coder.option(module_id, 1, Coder::delta);
    }
    if coder.reads() {
        body.il_map = entries.map(|it| Arc::new(IlMap::of(&it)));
        if tree.is_some() || lines.is_some() {
            let rare = body.rare_mut();
            rare.inline_tree = tree;
            rare.lines = lines.map(|lines| ByOffset::new(lines.into_iter()));
        }
    }
}

fn il_map(coder: &mut Coder<'_>, entries: &mut Vec<(u32, i32)>) {
    let (mut offset, mut il) = (0, 0);
    coder.list(entries, 2, |coder, (native, entry)| {
        gap(coder, native, &mut offset);
        il_offset(coder, entry, &mut il);
    });
}

/// Codes an offset as its distance from the preceding one, which is not larger.
fn gap(coder: &mut Coder<'_>, offset: &mut u32, last: &mut u32) {
    let mut gap = offset.wrapping_sub(*last);
    coder.number(&mut gap);
    *offset = last.wrapping_add(gap);
    *last = *offset;
}

/// Codes an IL offset as its distance from the preceding one; −1 to −3 have separate numbers.
fn il_offset(coder: &mut Coder<'_>, offset: &mut i32, last: &mut i32) {
    const SPECIAL: u32 = 3;
    let distance = offset.wrapping_sub(*last);
    let zigzag = (distance << 1 ^ distance >> 31) as u32;
    let mut number = match *offset {
        -3..=-1 => u64::from(!*offset as u32),
        _ => u64::from(zigzag) + u64::from(SPECIAL),
    };
    coder.number(&mut number);
    if let Some(zigzag) = number.checked_sub(u64::from(SPECIAL)) {
        let zigzag = zigzag as u32;
        let distance = (zigzag >> 1) as i32 ^ -((zigzag & 1) as i32);
        *offset = last.wrapping_add(distance);
        *last = *offset;
    } else {
        *offset = !(number as i32);
    }
}

fn inline_tree(coder: &mut Coder<'_>, tree: &mut InlineTree) {
    type Node = (u64, u32, Option<u32>);
    let nodes = tree.0.nodes().iter();
    let mut nodes: Vec<Node> = nodes
        .map(|node| (node.method_id, node.il_offset, node.parent))
        .collect();
    let mappings = tree.0.mappings().iter();
    let mut mappings: Vec<(u32, i32, u32)> = mappings
        .map(|mapping| (mapping.native_offset, mapping.il_offset, mapping.node))
        .collect();
    coder.list(&mut nodes, 3, |coder, (method, il, parent)| {
        coder.delta(method);
        coder.number(il);
        let mut number = parent.map_or(0, |parent| u64::from(parent) + 1);
        coder.number(&mut number);
        *parent = number.checked_sub(1).map(|it| it as u32);
    });
    let (mut offset, mut last) = (0, 0);
    coder.list(&mut mappings, 3, |coder, (native, il, node)| {
        gap(coder, native, &mut offset);
        il_offset(coder, il, &mut last);
        coder.number(node);
    });
    let mut faults = tree.0.faults();
    coder.number(&mut faults);
    if coder.reads() {
        let read = chronosym_events::InlineTree::new(nodes, mappings, faults);
        coder.check(read.is_some());
        tree.0 = read.unwrap_or_default();
    }
}

fn line_table(coder: &mut Coder<'_>, lines: &mut Vec<(u32, (StringId, u32))>) {
    let mut last = 0;
    coder.list(lines, 3, |coder, (offset, (file, line))| {
        gap(coder, offset, &mut last);
        coder.string(file);
        coder.delta(line);
    });
}

fn evidence(coder: &mut Coder<'_>, evidence: &mut EvidenceSet) {
    let mut bits = evidence.bits();
    coder.number(&mut bits);
    let set = EvidenceSet::from_bits(bits);
    coder.check(set.is_some());
    *evidence = set.unwrap_or_default();
}

/// Start and end, and the time of the last own event; returns the time of the start. Four columns.
fn lifetime(coder: &mut Coder<'_>, start: &mut Start, end: &mut End, confirmed: &mut u64) -> u64 {
    let (mut kind, mut started) = match *start {
        Start::At(at) => (0, at),
        Start::Before(at) => (1, at),
        Start::Unbounded => (2u8, 0),
    };
    coder.number(&mut kind);
    coder.delta(&mut started);
    coder.check(kind <= 2);
    *start = match kind {
        0 => Start::At(started),
        1 => Start::Before(started),
        _ => Start::Unbounded,
    };
    let (mut kind, time) = match *end {
        End::Open => (0u8, None),
        End::At(at) => (1, Some(at)),
        End::After(at) => (2, Some(at)),
    };
    coder.number(&mut kind);
    coder.check(kind <= 2);
    let mut ended = time;
    if coder.reads() {
        ended = (kind > 0).then_some(0);
    }
    match &mut ended {
        Some(ended) => coder.delta(ended),
        None => coder.skip(1),
    }
    *end = match (kind, ended) {
        (1, Some(at)) => End::At(at),
        (2, Some(at)) => End::After(at),
        _ => End::Open,
    };
    coder.relative(confirmed, ended.unwrap_or(started));
    started
}

pub(super) fn pdb_reference(coder: &mut Coder<'_>, pdb: &mut Option<PdbReference>) {
    let mut parts = pdb.take().map(|pdb| (pdb.id.guid, pdb.id.age, pdb.path));
    coder.option(&mut parts, 5, |coder, (guid, age, path)| {
        coder.guid(guid);
        coder.number(age);
        coder.text(path);
    });
    *pdb = parts.map(|(guid, age, path)| PdbReference {
        id: PdbId { guid, age },
        path,
    });
}

/// A module without its bodies, which name it themselves.
pub(super) fn module(coder: &mut Coder<'_>, row: &mut Module) {
    coder.number(&mut row.clr_instance);
    coder.delta(&mut row.module_id);
    coder.delta(&mut row.assembly_id);
    coder.string(&mut row.il_path);
    coder.string(&mut row.native_path);
    coder.string(&mut row.simple_name);
    pdb_reference(coder, &mut row.managed_pdb);
    pdb_reference(coder, &mut row.native_pdb);
    lifetime(coder, &mut row.loaded, &mut row.end, &mut 0);
    evidence(coder, &mut row.evidence);
    if coder.version > 2 {
        coder.list(&mut row.unloads, 1, Coder::delta);
    }
}

pub(super) fn image(coder: &mut Coder<'_>, row: &mut Image) {
    coder.delta(&mut row.base);
    coder.number(&mut row.size);
    coder.number(&mut row.file_offset);
    let file_offset = row.file_offset;
    coder.relative(&mut row.rva_bias, file_offset);
    coder.member(&ADDRESSINGS, &mut row.addressing);
    coder.flag(&mut row.is_function);
    coder.string(&mut row.path);
    coder.string(&mut row.simple_name);
    coder.option(&mut row.timestamp, 1, Coder::number);
    pdb_reference(coder, &mut row.pdb);
    pdb_reference(coder, &mut row.il_pdb);
    coder.string(&mut row.build_id);
    coder.option(&mut row.part, 8, pe_part);
    lifetime(coder, &mut row.loaded, &mut row.end, &mut row.confirmed);
}

const ADDRESSINGS: [Addressing; 3] = [Addressing::Virtual, Addressing::FileOffset, Addressing::Rva];

fn pe_part(coder: &mut Coder<'_>, part: &mut PePart) {
    coder.number(&mut part.file_offset);
    coder.delta(&mut part.code_delta);
    coder.option(&mut part.perf_map, 5, |coder, map: &mut PerfMapId| {
        let mut signature = Guid(map.signature);
        coder.guid(&mut signature);
        map.signature = signature.0;
        coder.number(&mut map.version);
        coder.text(&mut map.name);
    });
}

pub(super) fn process(coder: &mut Coder<'_>, row: &mut Process) {
    coder.option(&mut row.pid, 1, Coder::number);
    coder.string(&mut row.name);
    coder.string(&mut row.command_line);
    coder.option(&mut row.start, 1, Coder::delta);
    coder.option(&mut row.end, 1, Coder::delta);
    coder.flag(&mut row.is_wow64);
    coder.flag(&mut row.is_managed);
    coder.list(&mut row.runtimes, 7, |coder, runtime: &mut Runtime| {
        coder.number(&mut runtime.clr_instance);
        runtime
            .version
            .iter_mut()
            .for_each(|part| coder.number(part));
        coder.number(&mut runtime.sku);
        coder.flag(&mut runtime.rundown);
    });
    let mut forgotten: Vec<_> = row.forgotten.ranges().collect();
    coder.list(&mut forgotten, 2, |coder, (first, last)| {
        coder.delta(first);
        let first = *first;
        coder.relative(last, first);
    });
    if coder.version > 1 {
        let started = row.started_unix_ns.map(|it| it as u64);
        let mut key = (started, row.pid_namespace);
        coder.option(&mut key.0, 1, Coder::delta);
        coder.option(&mut key.1, 1, Coder::delta);
        (row.started_unix_ns, row.pid_namespace) = (key.0.map(|it| it as i64), key.1);
    }
    if coder.reads() {
        let code = Arc::make_mut(&mut row.forgotten);
        (forgotten.iter()).for_each(|&(first, last)| code.insert(first, last));
    }
}

pub(super) fn thread(coder: &mut Coder<'_>, row: &mut Thread) {
    coder.number(&mut row.process.0);
    coder.delta(&mut row.tid);
    coder.string(&mut row.name);
    coder.list(&mut row.earlier, 2, |coder, (until, name)| {
        coder.delta(until);
        coder.string(name);
    });
}

impl Default for UntimedSymbol {
    fn default() -> Self {
        UntimedSymbol {
            start: 0,
            last: 0,
            name: NameId::NONE,
            module: StringId::EMPTY,
            tier: None,
            evidence: Evidence::PerfMap,
            line: (StringId::EMPTY, 0),
            is_inlined: false,
        }
    }
}

pub(super) fn symbol(coder: &mut Coder<'_>, row: &mut UntimedSymbol) {
    let end = coder.end;
    coder.relative(&mut row.start, end);
    let start = row.start;
    coder.relative(&mut row.last, start);
    coder.end = row.last.wrapping_add(1);
    coder.name(&mut row.name);
    coder.string(&mut row.module);
    let mut tier = row.tier.map_or(0, |tier| {
        1 + OptimizationTier::ALL
            .iter()
            .position(|&it| it == tier)
            .unwrap_or(0)
    });
    coder.number(&mut tier);
    row.tier = match tier.checked_sub(1) {
        Some(index) => OptimizationTier::ALL.get(index).copied(),
        None => None,
    };
    coder.check(tier == 0 || row.tier.is_some());
    coder.member(&Evidence::ALL, &mut row.evidence);
    if row.evidence == Evidence::Profile {
        let mut inlined = u8::from(row.is_inlined);
        coder.string(&mut row.line.0);
        coder.delta(&mut row.line.1);
        coder.number(&mut inlined);
        row.is_inlined = inlined == 1;
    }
}

/// The rows of the bodies of a method that is inlined into another.
#[derive(Default)]
pub(super) struct MethodRow {
    pub clr_instance: u16,
    pub method_id: u64,
    pub bodies: Vec<u32>,
}

pub(super) fn method(coder: &mut Coder<'_>, row: &mut MethodRow) {
    coder.delta(&mut row.method_id);
    coder.number(&mut row.clr_instance);
    coder.list(&mut row.bodies, 1, Coder::delta);
}

/// The row of a precompiled body of a module.
pub(super) fn precompiled(coder: &mut Coder<'_>, row: &mut u32) {
    coder.delta(row);
}

impl Default for LoneMap {
    fn default() -> Self {
        LoneMap {
            time: 0,
            clr_instance: 0,
            method_id: 0,
            version: 0,
            extent: Extent::default(),
            map: Arc::new(IlMap::of(&[])),
        }
    }
}

pub(super) fn lone_map(coder: &mut Coder<'_>, row: &mut LoneMap) {
    coder.delta(&mut row.time);
    coder.number(&mut row.clr_instance);
    coder.delta(&mut row.method_id);
    coder.number(&mut row.version);
    coder.member(&[Extent::Hot, Extent::Cold], &mut row.extent);
    let mut entries = row.map.entries();
    il_map(coder, &mut entries);
    if coder.reads() {
        row.map = Arc::new(IlMap::of(&entries));
    }
}

/// A runtime's record of a method.
#[derive(Default)]
pub(super) struct DetailsRow {
    pub method_id: u64,
    pub time: u64,
    pub details: Details,
}

pub(super) fn details(coder: &mut Coder<'_>, row: &mut DetailsRow) {
    coder.delta(&mut row.method_id);
    coder.delta(&mut row.time);
    coder.delta(&mut row.details.type_id);
    coder.delta(&mut row.details.token);
    coder.delta(&mut row.details.loader_module_id);
}

/// The name of a type: its id, and its name.
pub(super) fn type_name(coder: &mut Coder<'_>, (id, name): &mut (u64, StringId)) {
    coder.delta(id);
    coder.string(name);
}

/// A PDB of a module: runtime instance, module id, bytes.
pub(super) fn pdb(coder: &mut Coder<'_>, (clr, module, bytes): &mut (u16, u64, Vec<u8>)) {
    coder.number(clr);
    coder.number(module);
    coder.bytes(bytes);
}
