//! Batches of addresses, answered by the numbers of frames.

use std::sync::{Arc, Mutex, PoisonError};

use chronosym::{ResolvedBatch, SymbolSource};
use pyo3::prelude::*;

use crate::arrow::{Array, Field, Queries};
use crate::columns::FrameColumns;
use crate::table::RecordBatch;
use crate::timeline::Timeline;

/// Resolves batches of addresses, and keeps what it has resolved: each distinct frame has a number, and its names are made
/// once.
#[pyclass(module = "chronosym", frozen)]
pub struct Resolver(Mutex<State>);

struct State {
    resolver: chronosym::Resolver,
    batch: ResolvedBatch,
    columns: FrameColumns,
}

impl Resolver {
    pub fn new(
        timeline: &Arc<chronosym::Timeline>,
        symbols: Option<Arc<dyn SymbolSource>>,
    ) -> Self {
        Resolver(Mutex::new(State {
            resolver: chronosym::Resolver::new(timeline, symbols),
            batch: ResolvedBatch::default(),
            columns: FrameColumns::default(),
        }))
    }

    /// Runs a call with exclusive use of the resolver, without the GIL.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut State) -> T + Send) -> T {
        py.detach(|| work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl Resolver {
    /// Resolves an array of `chronosym.QUERY`: a row for each query with the numbers of its frames, innermost first.
    fn resolve(&self, py: Python<'_>, queries: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
        let queries = Queries::of(queries)?;
        let rows = queries.rows();
        let (offsets, frames) = self.with(py, |state| {
            state.resolver.resolve_batch(rows, &mut state.batch);
            state.batch.take_rows()
        });
        let field = Field::list("frames", Field::u32("item"));
        let lists = Array::lists(offsets, frames);
        Ok(RecordBatch::new(
            Field::rows(vec![field]),
            Array::rows(rows.len(), vec![lists]),
        ))
    }

    /// The frames so far: row n is the frame with the number n.
    fn frames(&self, py: Python<'_>) -> RecordBatch {
        let columns = self.with(py, |state| {
            state.columns.add_table(state.resolver.frame_table());
            let numbers: Vec<u32> = (0..state.resolver.frame_table().len() as u32).collect();
            Array::rows(numbers.len(), state.columns.rows(&numbers))
        });
        RecordBatch::new(Field::rows(FrameColumns::fields()), columns)
    }

    /// Continues with a later timeline of the same live session. Numbers of frames stay valid.
    fn advance_to(&self, py: Python<'_>, timeline: &Timeline) {
        self.with(py, |state| state.resolver.advance_to(timeline.shared()));
    }
}
