//! The table `samples`, in time order.

use crate::columns::{number, numbers, some_number, some_numbers};
use crate::error::Error;
use crate::frames::Stacks;
use crate::listings::Owner;
use crate::row::{Group, Row, RowTexts};
use crate::table::{Layout, ROWS, Table};
use crate::trace::Trace;

pub fn layout() -> Layout {
    let (mut fields, [event, kind, activity, unit]) = RowTexts::fields();
    fields.extend([number("time"), event, kind, activity]);
    fields.extend([some_number("weight"), unit, some_number("stack_id")]);
    Layout {
        name: "samples",
        fields,
        sorted_by: Some("time"),
        ids: &[],
        varying: &["time", "weight"],
    }
}

/// Writes the samples of a recording, and returns their number.
pub fn write(
    trace: &Trace<'_>,
    owner: &Owner<'_>,
    stacks: &mut Stacks,
    table: &mut Table,
) -> Result<u64, Error> {
    let mut texts = RowTexts::of(trace, owner);
    let mut rows = Vec::new();
    let count = texts.each(trace, stacks, |texts, _, row| {
        rows.push(row);
        match rows.len() {
            ROWS => write_rows(&std::mem::take(&mut rows), texts, table),
            _ => Ok(()),
        }
    })?;
    if !rows.is_empty() {
        write_rows(&rows, &mut texts, table)?;
    }
    Ok(count)
}

fn write_rows(rows: &[Row], texts: &mut RowTexts<'_>, table: &mut Table) -> Result<(), Error> {
    let groups: Vec<Group> = rows.iter().map(|row| row.group).collect();
    let (mut columns, [event, kind, activity, unit]) = texts.groups(&groups);
    let time = numbers(rows.iter().map(|row| row.time).collect());
    columns.extend([time, event, kind, activity]);
    let weight = some_numbers(rows.iter().map(|row| row.weight).collect());
    let stack = some_numbers(groups.iter().map(|group| group.stack).collect());
    columns.extend([weight, unit, stack]);
    table.write(columns)
}
