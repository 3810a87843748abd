//! Queries of a page whose samples are merged, to a server that has all of them.

use std::io::{self, Write};
use std::ops::Range;

use chronosym_core::{ResolvedStack, ThreadIndex};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::columns::{ColumnInfo, Columns};
use super::samples;
use crate::series::Series;
use crate::tables::Numbered;

/// The numbers of threads and stacks in a report.
#[derive(Debug)]
pub(super) struct Index {
    pub threads: Numbered<ThreadIndex>,
    /// The node of each stack.
    pub nodes: FxHashMap<ResolvedStack, u32>,
    /// The place of each node in the report's list of stacks.
    pub place: Vec<u32>,
}

/// All samples of a report whose page has merged ones.
#[derive(Debug)]
pub struct ReportQueries {
    series: Series,
    index: Index,
}

#[derive(Serialize)]
struct Header<'a> {
    weight_until_next: bool,
    columns: &'a [ColumnInfo],
}

impl ReportQueries {
    pub(super) fn new(series: Series, index: Index) -> Self {
        ReportQueries { series, index }
    }

    /// Writes the sums of the samples in a range of time (ns since the trace began) by thread,
    /// stack and activity, in the form of the report's data. It takes time linear in the number of
    /// these samples, and memory in that of the sums.
    ///
    /// # Errors
    ///
    /// Errors of writing to `out`.
    pub fn write(&self, times: Range<u64>, out: &mut impl Write) -> io::Result<()> {
        let Index {
            threads,
            nodes,
            place,
        } = &self.index;
        let all = &self.series.samples;
        let from = all.partition_point(|sample| sample.time_ns < times.start);
        let to = all.partition_point(|sample| sample.time_ns < times.end);
        let selected = all.get(from..to).unwrap_or_default();
        let sums = samples::sums(selected, times.start, threads, nodes);
        let mut columns = Columns::default();
        let weight_until_next = samples::write(&sums, threads.len(), place, &mut columns);
        let header = chronosym_types::json::to_string(&Header {
            weight_until_next,
            columns: &columns.info,
        })?;
        columns.write(&header, out)
    }
}
