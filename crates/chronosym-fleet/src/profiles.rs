//! The table `profiles`: the sums of samples that differ in time and weight only.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, ListArray};
use arrow_schema::{DataType, Field};
use chronosym_types::hash::HashMap;

use crate::columns::{number, numbers, some_number, some_numbers, text};
use crate::error::Error;
use crate::frames::Stacks;
use crate::listings::Owner;
use crate::row::{Group, RowTexts};
use crate::table::{Layout, ROWS, Table};
use crate::trace::Trace;

/// A label of a stack.
fn label() -> Field {
    text("item").with_nullable(false)
}

pub fn layout() -> Layout {
    let (mut fields, [event, kind, activity, unit]) = RowTexts::fields();
    fields.extend([number("first"), number("last"), event, kind, activity]);
    fields.extend([some_number("weight"), unit, number("count")]);
    let stack = DataType::List(Arc::new(label()));
    fields.push(Field::new("stack", stack, true));
    Layout {
        name: "profiles",
        fields,
        sorted_by: None,
        ids: &[],
        varying: &["weight"],
    }
}

/// A row: the sum of the samples of a group.
struct Sum {
    group: Group,
    /// Of its stack, outermost first.
    labels: Vec<i32>,
    weight: Option<i64>,
    count: i64,
}

impl Sum {
    fn add(&mut self, weight: Option<i64>, count: i64) {
        let both = self.weight.zip(weight);
        self.weight = both.map(|(own, weight)| own.saturating_add(weight));
        self.count += count;
    }

    /// Neighbours in this order have callers in common, which compress well.
    fn key(&self) -> (i64, &[i32], Group) {
        // Stacks of different overloads may have equal labels.
        let stack = self.group.stack.map(|_| 0);
        let mut group = self.group;
        group.stack = stack;
        (group.tid, &self.labels, group)
    }
}

/// Writes the sums of the samples of a recording, and returns the number of samples.
pub fn write(
    trace: &Trace<'_>,
    owner: &Owner<'_>,
    stacks: &mut Stacks,
    table: &mut Table,
) -> Result<u64, Error> {
    let mut texts = RowTexts::of(trace, owner);
    let mut sums: Vec<Sum> = Vec::new();
    let mut number_of: HashMap<Group, usize> = HashMap::default();
    let mut times = (i64::MAX, i64::MIN);
    let samples = texts.each(trace, stacks, |_, stacks, row| {
        times = (times.0.min(row.time), times.1.max(row.time));
        let number = *number_of.entry(row.group).or_insert(sums.len());
        match sums.get_mut(number) {
            Some(sum) => sum.add(row.weight, 1),
            None => {
                let mut labels: Vec<i32> = stacks.labels(row.group.stack).collect();
                labels.reverse();
                let (group, weight) = (row.group, row.weight);
                let count = 1;
                sums.push(Sum {
                    group,
                    labels,
                    weight,
                    count,
                });
            }
        }
        Ok(())
    })?;
    sums.sort_by(|a, b| a.key().cmp(&b.key()));
    sums.dedup_by(|next, sum| {
        let are_equal = sum.key() == next.key();
        if are_equal {
            sum.add(next.weight, next.count);
        }
        are_equal
    });
    for sums in sums.chunks(ROWS) {
        write_rows(sums, times, stacks, &mut texts, table)?;
    }
    Ok(samples)
}

fn write_rows(
    sums: &[Sum],
    (first, last): (i64, i64),
    stacks: &mut Stacks,
    texts: &mut RowTexts<'_>,
    table: &mut Table,
) -> Result<(), Error> {
    let groups: Vec<Group> = sums.iter().map(|sum| sum.group).collect();
    let (mut columns, [event, kind, activity, unit]) = texts.groups(&groups);
    let times = [first, last].map(|time| numbers(vec![time; sums.len()]));
    columns.extend(times);
    columns.extend([event, kind, activity]);
    columns.extend([
        some_numbers(sums.iter().map(|sum| sum.weight).collect()),
        unit,
        numbers(sums.iter().map(|sum| sum.count).collect()),
        stack_column(sums, stacks),
    ]);
    table.write(columns)
}

fn stack_column(sums: &[Sum], stacks: &mut Stacks) -> ArrayRef {
    let mut numbers = ListBuilder::new(Int32Builder::new());
    for sum in sums {
        let leaf_first = sum.labels.iter().rev();
        leaf_first.for_each(|&label| numbers.values().append_value(label));
        numbers.append(sum.group.stack.is_some());
    }
    let (_, offsets, numbers, has_stack) = numbers.finish().into_parts();
    let labels = numbers.as_primitive::<Int32Type>().iter().collect();
    let labels = stacks.label_column(labels);
    Arc::new(ListArray::new(
        Arc::new(label()),
        offsets,
        labels,
        has_stack,
    ))
}
