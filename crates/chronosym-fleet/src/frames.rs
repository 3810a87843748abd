//! The tables `frames` and `stacks`: each content once.

use std::sync::Arc;

use arrow_array::ArrayRef;
use chronosym_core::{
    Certainty, Code, Evidence, Frame, FrameId, NameReason, ResolvedStack, Resolver, SampleClass,
    SourceLine, SymbolSource, Timeline,
};
use chronosym_types::hash::HashMap;

use crate::columns::{
    self, Texts, flag, flags, number, numbers, same_text, some_line, some_lines, some_number,
    some_numbers, text,
};
use crate::content::{Content, stack_id};
use crate::error::Error;
use crate::format::FrameNames;
use crate::table::{Layout, ROWS, Table};

/// What a frame shows, and with it all frames that show the same.
struct Row {
    id: i64,
    module: Option<i32>,
    method: Option<i32>,
    signature: Option<i32>,
    label: i32,
    file: Option<i32>,
    line: Option<u32>,
    inlined: bool,
    identity: Option<i32>,
    rva: Option<i64>,
    token: Option<u32>,
    address: Option<i64>,
    evidence: Option<Evidence>,
    certainty: Option<Certainty>,
    reason: Option<NameReason>,
}

/// The texts of all rows.
#[derive(Default)]
struct RowTexts {
    modules: Texts,
    methods: Texts,
    signatures: Texts,
    labels: Texts,
    files: Texts,
    identities: Texts,
}

/// Resolves stacks, and gives frames and stacks their ids.
pub struct Stacks {
    resolver: Resolver,
    names: FrameNames,
    /// The row of each frame of the resolver, so far.
    row_of: Vec<Option<u32>>,
    rows: Vec<Row>,
    row_of_id: HashMap<i64, u32>,
    texts: RowTexts,
    /// The id of each stack of the resolver, so far.
    id_of: Vec<Option<i64>>,
    /// Each id once, with the id of its callers and the frame; callers precede.
    stacks: Vec<(i64, Option<i64>, i64)>,
    /// The position of each id in `stacks`.
    position_of: HashMap<i64, u32>,
    path: Vec<ResolvedStack>,
}

impl Stacks {
    pub fn new(
        timeline: &Arc<Timeline>,
        symbols: Option<Arc<dyn SymbolSource>>,
        names: FrameNames,
    ) -> Self {
        Stacks {
            resolver: Resolver::new(timeline, symbols),
            names,
            row_of: Vec::new(),
            rows: Vec::new(),
            row_of_id: HashMap::default(),
            texts: RowTexts::default(),
            id_of: Vec::new(),
            stacks: Vec::new(),
            position_of: HashMap::default(),
            path: Vec::new(),
        }
    }

    /// Returns the id of a sample's stack; `None` without frames.
    pub fn id(&mut self, class: &SampleClass, time_ns: u64) -> Option<i64> {
        let (stack, _) = self.resolver.resolve(class, time_ns)?;
        if let Some(Some(id)) = self.id_of.get(stack.index()) {
            return Some(*id);
        }
        let mut path = std::mem::take(&mut self.path);
        let mut caller = None;
        let mut next = Some(stack);
        while let Some(stack) = next {
            caller = self.id_of.get(stack.index()).copied().flatten();
            if caller.is_some() {
                break;
            }
            path.push(stack);
            next = self.resolver.caller(stack);
        }
        for stack in path.drain(..).rev() {
            let frame = self.frame_id(self.resolver.leaf(stack));
            let id = stack_id(frame, caller);
            let next = self.stacks.len() as u32;
            if *self.position_of.entry(id).or_insert(next) == next {
                self.stacks.push((id, caller, frame));
            }
            if self.id_of.len() <= stack.index() {
                self.id_of.resize(stack.index() + 1, None);
            }
            self.id_of[stack.index()] = Some(id);
            caller = Some(id);
        }
        self.path = path;
        caller
    }

    /// Returns the numbers of the labels of a stack that [`id`](Self::id) returned, innermost
    /// first.
    pub fn labels(&self, mut stack: Option<i64>) -> impl Iterator<Item = i32> {
        std::iter::from_fn(move || {
            let position = *self.position_of.get(&stack?)?;
            let (_, caller, frame) = self.stacks[position as usize];
            stack = caller;
            let row = *self.row_of_id.get(&frame)?;
            Some(self.rows[row as usize].label)
        })
    }

    /// Returns the column of these labels.
    pub fn label_column(&mut self, numbers: Vec<Option<i32>>) -> ArrayRef {
        self.texts.labels.column(numbers)
    }

    /// Returns whether frames were left out because of the limit on memory.
    pub fn limit(&self) -> Option<String> {
        self.resolver.limit().map(|limit| limit.to_string())
    }

    fn frame_id(&mut self, id: FrameId) -> i64 {
        if let Some(Some(row)) = self.row_of.get(id.index()) {
            return self.rows[*row as usize].id;
        }
        let row = self.row(self.resolver.frame(id).clone());
        let content = row.id;
        let next = self.rows.len() as u32;
        let at = *self.row_of_id.entry(content).or_insert(next);
        match self.rows.get_mut(at as usize) {
            None => self.rows.push(row),
            // What is stated of all of them holds for the weakest.
            Some(known) if row.certainty > known.certainty => {
                (known.certainty, known.evidence) = (row.certainty, row.evidence);
            }
            Some(_) => {}
        }
        if self.row_of.len() <= id.index() {
            self.row_of.resize(id.index() + 1, None);
        }
        self.row_of[id.index()] = Some(at);
        content
    }

    fn row(&mut self, frame: Frame) -> Row {
        let binary = frame.function.binary();
        let is_named = self.names == FrameNames::Named;
        let method = frame.name().ok().filter(|_| is_named);
        let signature = frame.signature().filter(|_| is_named);
        let line = frame.line.as_ref().ok().filter(|_| method.is_some());
        let rva = match (method, frame.code) {
            (None, Code::Image { rva, .. }) => Some(rva),
            _ => None,
        };
        let token = frame.token.filter(|_| is_named && method.is_none());
        let identity = rva
            .or(token.map(u64::from))
            .and(binary)
            .and_then(|binary| binary.identity());
        let address =
            (method.is_none() && rva.is_none() && token.is_none()).then_some(frame.address);
        let module = frame.module().filter(|_| is_named || rva.is_some());
        let label = match (is_named, module, rva) {
            (true, ..) => frame.label().to_owned(),
            (false, Some(module), Some(rva)) => format!("{module}!+{rva:#x}"),
            _ => format!("{:#x}", frame.address),
        };
        let mut content = Content::new("frame");
        content
            .text(module)
            .text(method)
            .text(signature)
            .text(Some(&label))
            .text(line.map(|line| &*line.file))
            .number(line.map(|line| line.line.into()))
            .number(Some(frame.inlined.into()))
            .text(identity)
            .number(rva)
            .number(token.map(u64::from))
            .number(address);
        let texts = &mut self.texts;
        Row {
            id: content.id(),
            module: texts.modules.some(module),
            method: texts.methods.some(method),
            signature: texts.signatures.some(signature),
            label: texts.labels.number(&label),
            file: texts.files.some(line.map(|line: &SourceLine| &*line.file)),
            line: line.map(|line| line.line),
            inlined: frame.inlined,
            identity: texts.identities.some(identity),
            rva: rva.map(|rva| rva as i64),
            token,
            address: address.map(|address| address as i64),
            evidence: frame.evidence,
            certainty: frame.certainty,
            reason: frame.name_reason().filter(|_| is_named),
        }
    }

    /// The layout of [`write_frames`](Self::write_frames).
    pub fn frames() -> Layout {
        Layout {
            name: "frames",
            fields: vec![
                text("trace"),
                number("frame_id"),
                text("label"),
                text("module"),
                text("method"),
                text("signature"),
                text("file"),
                some_line("line"),
                flag("inlined"),
                text("identity"),
                some_number("rva"),
                some_number("token"),
                some_number("address"),
                text("evidence"),
                text("certainty"),
                text("name_reason"),
            ],
            sorted_by: None,
            ids: &["frame_id"],
            varying: &[],
        }
    }

    pub fn write_frames(&mut self, trace: &str, table: &mut Table) -> Result<(), Error> {
        let texts = &mut self.texts;
        for rows in self.rows.chunks(ROWS) {
            let all = |of: fn(&Row) -> Option<i32>| rows.iter().map(of).collect::<Vec<_>>();
            let list = |of: fn(&Row) -> Option<&'static str>| columns::texts(rows.iter().map(of));
            let optional =
                |of: fn(&Row) -> Option<i64>| some_numbers(rows.iter().map(of).collect());
            table.write(vec![
                same_text(Some(trace), rows.len()),
                numbers(rows.iter().map(|row| row.id).collect()),
                texts.labels.column(all(|row| Some(row.label))),
                texts.modules.column(all(|row| row.module)),
                texts.methods.column(all(|row| row.method)),
                texts.signatures.column(all(|row| row.signature)),
                texts.files.column(all(|row| row.file)),
                some_lines(rows.iter().map(|row| row.line)),
                flags(rows.iter().map(|row| row.inlined)),
                texts.identities.column(all(|row| row.identity)),
                optional(|row| row.rva),
                optional(|row| row.token.map(i64::from)),
                optional(|row| row.address),
                list(|row| row.evidence.map(Evidence::as_str)),
                list(|row| row.certainty.map(Certainty::as_str)),
                list(|row| row.reason.map(NameReason::as_str)),
            ])?;
        }
        Ok(())
    }

    /// The layout of [`write_stacks`](Self::write_stacks).
    pub fn stacks() -> Layout {
        Layout {
            name: "stacks",
            fields: vec![
                number("stack_id"),
                some_number("caller_id"),
                number("frame_id"),
            ],
            sorted_by: None,
            ids: &["stack_id"],
            varying: &[],
        }
    }

    pub fn write_stacks(&self, table: &mut Table) -> Result<(), Error> {
        for rows in self.stacks.chunks(ROWS) {
            let columns: [ArrayRef; 3] = [
                numbers(rows.iter().map(|row| row.0).collect()),
                some_numbers(rows.iter().map(|row| row.1).collect()),
                numbers(rows.iter().map(|row| row.2).collect()),
            ];
            table.write(columns.into())?;
        }
        Ok(())
    }
}
