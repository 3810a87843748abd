//! Columns of frames: what is known of each frame, once, and rows that refer to it.

use chronosym::{
    Certainty, Evidence, Frame, FrameTable, LineReason, NameReason, OptimizationTier, TextId,
};

use crate::arrow::{Array, Categories, Field, NONE};

/// What a frame has in every table.
struct Values<'f> {
    module: &'f str,
    method: &'f str,
    signature: &'f str,
    file: &'f str,
    line: u32,
    column: u32,
    inlined: bool,
    tier: Option<OptimizationTier>,
    evidence: Option<Evidence>,
    certainty: Option<Certainty>,
    name_reason: Option<NameReason>,
    line_reason: Option<LineReason>,
}

/// Numbers of texts, and the texts.
#[derive(Default)]
struct TextColumn {
    numbers: Vec<u32>,
    texts: Categories,
}

impl TextColumn {
    fn push(&mut self, text: &str) {
        let number = self.texts.number(text);
        self.numbers.push(number);
    }

    fn rows(&mut self, frames: &[u32]) -> Array {
        let numbers = frames.iter().map(|&frame| self.numbers[frame as usize]);
        self.texts.column(numbers.collect())
    }
}

/// Values of a closed list, whose texts are all there from the start.
struct ListColumn {
    numbers: Vec<u32>,
    texts: Categories,
}

impl ListColumn {
    fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        ListColumn {
            numbers: Vec::new(),
            texts: Categories::of(texts),
        }
    }

    fn push(&mut self, value: Option<u32>) {
        self.numbers.push(value.unwrap_or(NONE));
    }

    fn rows(&mut self, frames: &[u32]) -> Array {
        let numbers = frames.iter().map(|&frame| self.numbers[frame as usize]);
        self.texts.column(numbers.collect())
    }
}

/// Distinct frames in columns.
pub struct FrameColumns {
    module: TextColumn,
    method: TextColumn,
    signature: TextColumn,
    file: TextColumn,
    line: Vec<u32>,
    column: Vec<u32>,
    inlined: Vec<bool>,
    tier: ListColumn,
    evidence: ListColumn,
    certainty: ListColumn,
    name_reason: ListColumn,
    line_reason: ListColumn,
}

impl Default for FrameColumns {
    fn default() -> Self {
        FrameColumns {
            module: TextColumn::default(),
            method: TextColumn::default(),
            signature: TextColumn::default(),
            file: TextColumn::default(),
            line: Vec::new(),
            column: Vec::new(),
            inlined: Vec::new(),
            tier: ListColumn::of(OptimizationTier::ALL.iter().map(|it| it.name())),
            evidence: ListColumn::of(Evidence::ALL.map(Evidence::as_str)),
            certainty: ListColumn::of(Certainty::ALL.map(Certainty::as_str)),
            name_reason: ListColumn::of(NameReason::ALL.map(NameReason::as_str)),
            line_reason: ListColumn::of(LineReason::ALL.map(LineReason::as_str)),
        }
    }
}

impl FrameColumns {
    /// The columns of [`rows`](Self::rows).
    pub fn fields() -> Vec<Field> {
        let mut fields: Vec<Field> = ["module", "method", "signature", "file"]
            .map(|name| Field::category(name).or_null())
            .into();
        fields.extend(["line", "column"].map(|name| Field::u32(name).or_null()));
        fields.push(Field::bool("inlined"));
        let lists = [
            "tier",
            "evidence",
            "certainty",
            "name_reason",
            "line_reason",
        ];
        fields.extend(lists.map(|name| Field::category(name).or_null()));
        fields
    }

    /// Adds the frames of a table that are new.
    pub fn add_table(&mut self, table: &FrameTable) {
        for at in self.line.len()..table.len() {
            let text = |column: &[TextId]| table.text(column[at]);
            self.push(&Values {
                module: text(table.module()),
                method: text(table.method()),
                signature: text(table.signature()),
                file: text(table.file()),
                line: table.line()[at],
                column: table.column()[at],
                inlined: table.inlined()[at],
                tier: table.tier()[at],
                evidence: table.evidence()[at],
                certainty: table.certainty()[at],
                name_reason: table.reason()[at],
                line_reason: table.line_reason()[at],
            });
        }
    }

    /// Adds the frames of a resolver that are new.
    pub fn add_frames(&mut self, frames: &[Frame]) {
        for frame in &frames[self.line.len().min(frames.len())..] {
            let line = frame.line.as_ref().ok();
            self.push(&Values {
                module: frame.module().unwrap_or_default(),
                method: frame.name().unwrap_or_default(),
                signature: frame.signature().unwrap_or_default(),
                file: line.map_or("", |line| &*line.file),
                line: line.map_or(0, |line| line.line),
                column: line.and_then(|line| line.column).unwrap_or(0),
                inlined: frame.inlined,
                tier: frame.tier,
                evidence: frame.evidence,
                certainty: frame.certainty,
                name_reason: frame.name_reason(),
                line_reason: frame.line_reason(),
            });
        }
    }

    fn push(&mut self, values: &Values<'_>) {
        self.module.push(values.module);
        self.method.push(values.method);
        self.signature.push(values.signature);
        self.file.push(values.file);
        self.line.push(values.line);
        self.column.push(values.column);
        self.inlined.push(values.inlined);
        self.tier.push(values.tier.map(|it| it as u32));
        self.evidence.push(values.evidence.map(|it| it as u32));
        self.certainty.push(values.certainty.map(|it| it as u32));
        self.name_reason
            .push(values.name_reason.map(|it| it as u32));
        self.line_reason
            .push(values.line_reason.map(|it| it as u32));
    }

    /// Rows of the frames with these numbers.
    pub fn rows(&mut self, frames: &[u32]) -> Vec<Array> {
        let numbers = |column: &[u32]| {
            let rows = frames.iter().map(|&frame| column[frame as usize]);
            Array::numbers_or_null(rows.collect(), 0)
        };
        vec![
            self.module.rows(frames),
            self.method.rows(frames),
            self.signature.rows(frames),
            self.file.rows(frames),
            numbers(&self.line),
            numbers(&self.column),
            Array::bools(frames.iter().map(|&frame| self.inlined[frame as usize])),
            self.tier.rows(frames),
            self.evidence.rows(frames),
            self.certainty.rows(frames),
            self.name_reason.rows(frames),
            self.line_reason.rows(frames),
        ]
    }

    /// Module and method of the frames with these numbers.
    pub fn names(&mut self, frames: &[u32]) -> [Array; 2] {
        [self.module.rows(frames), self.method.rows(frames)]
    }
}
