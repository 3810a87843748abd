//! Columns of batches, and the rows of `samples`.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::DataType;

use super::file::batches;
use crate::error::Error;

fn column<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b dyn Array, String> {
    let column = batch
        .column_by_name(name)
        .ok_or_else(|| format!("it has no column {name}"))?;
    Ok(&**column)
}

fn other_type(name: &str, array: &dyn Array) -> String {
    format!("the column {name} has the type {}", array.data_type())
}

/// A column of numbers.
pub fn numbers<'b>(batch: &'b RecordBatch, name: &str) -> Result<&'b Int64Array, String> {
    let array = column(batch, name)?;
    let numbers = array.as_primitive_opt::<Int64Type>();
    numbers.ok_or_else(|| other_type(name, array))
}

/// The value of a row, unless it is null.
pub fn number(numbers: &Int64Array, row: usize) -> Option<i64> {
    numbers.is_valid(row).then(|| numbers.value(row))
}

/// A column of texts.
pub(crate) enum Texts<'b> {
    Plain(&'b StringArray),
    Numbered(&'b arrow_array::Int32Array, &'b StringArray),
}

impl<'b> Texts<'b> {
    pub fn of(batch: &'b RecordBatch, name: &str) -> Result<Self, String> {
        let array = column(batch, name)?;
        let texts = match array.data_type() {
            DataType::Utf8 => array.as_string_opt::<i32>().map(Texts::Plain),
            _ => array.as_dictionary_opt::<Int32Type>().and_then(|it| {
                let texts = it.values().as_string_opt::<i32>()?;
                Some(Texts::Numbered(it.keys(), texts))
            }),
        };
        texts.ok_or_else(|| other_type(name, array))
    }

    /// The text of a row, unless it is null.
    pub fn get(&self, row: usize) -> Option<&'b str> {
        match *self {
            Texts::Plain(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Texts::Numbered(keys, texts) => {
                let key = keys.is_valid(row).then(|| keys.value(row) as usize)?;
                (key < texts.len() && texts.is_valid(key)).then(|| texts.value(key))
            }
        }
    }
}

/// Identifies a process in all tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessKey<'b> {
    /// The machine and its boot; of a recording that does not state them, the recording.
    pub machine: (&'b str, &'b str),
    pub pid: Option<i64>,
    pub start: Option<i64>,
}

/// A row of `samples`.
pub(crate) struct SampleRow<'b> {
    pub key: ProcessKey<'b>,
    pub process: Option<&'b str>,
    pub tid: i64,
    pub thread: Option<&'b str>,
    pub time: i64,
    pub event: &'b str,
    pub kind: &'b str,
    pub weight: Option<i64>,
    pub unit: &'b str,
    pub stack: Option<i64>,
}

const COLUMNS: [&str; 14] = [
    "trace", "host", "boot", "pid", "start", "process", "tid", "thread", "time", "event", "kind",
    "weight", "unit", "stack_id",
];

/// Calls `each` with every row of a file, until it returns false.
pub fn each(
    path: &Path,
    mut each: impl FnMut(SampleRow<'_>) -> Result<bool, String>,
) -> Result<(), Error> {
    batches(path, &COLUMNS, |batch| {
        let text = |name| Texts::of(batch, name);
        let number_of = |name| numbers(batch, name);
        let (trace, host, boot) = (text("trace")?, text("host")?, text("boot")?);
        let (pid, start, process) = (number_of("pid")?, number_of("start")?, text("process")?);
        let (tid, time) = (number_of("tid")?, number_of("time")?);
        let thread = text("thread")?;
        let (event, kind, unit) = (text("event")?, text("kind")?, text("unit")?);
        let (weight, stack) = (number_of("weight")?, number_of("stack_id")?);
        for row in 0..batch.num_rows() {
            let machine = match (host.get(row), boot.get(row)) {
                (None, None) => (trace.get(row).unwrap_or_default(), ""),
                (host, boot) => (host.unwrap_or_default(), boot.unwrap_or_default()),
            };
            let row = SampleRow {
                key: ProcessKey {
                    machine,
                    pid: number(pid, row),
                    start: number(start, row),
                },
                process: process.get(row),
                tid: number(tid, row).unwrap_or(0),
                thread: thread.get(row),
                time: number(time, row).unwrap_or(0),
                event: event.get(row).unwrap_or_default(),
                kind: kind.get(row).unwrap_or_default(),
                weight: number(weight, row),
                unit: unit.get(row).unwrap_or_default(),
                stack: number(stack, row),
            };
            if !each(row)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}
