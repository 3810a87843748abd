//! Tables for consumers of Arrow: one batch of rows, or batches one after the other.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow::{Array, ArrowArray, ArrowArrayStream, ArrowSchema, Field, Next};
use crate::error;

/// Rows with named columns, which pyarrow, polars, pandas and duckdb take without a copy.
#[pyclass(module = "chronosym", frozen)]
pub struct RecordBatch {
    field: Field,
    array: Array,
}

impl RecordBatch {
    pub fn new(field: Field, array: Array) -> Self {
        RecordBatch { field, array }
    }
}

fn schema<'py>(py: Python<'py>, field: &Field) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowSchema::of(field), c"arrow_schema")
}

#[pymethods]
impl RecordBatch {
    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.array.length
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&'static str> {
        names(&self.field)
    }

    fn __len__(&self) -> usize {
        self.array.length
    }

    fn __repr__(&self) -> String {
        format!(
            "RecordBatch({} rows: {})",
            self.array.length,
            names(&self.field).join(", ")
        )
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.field)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // The standard leaves it to the maker whether it casts.
        let _ = requested_schema;
        let array = PyCapsule::new_with_value(py, ArrowArray::of(&self.array), c"arrow_array")?;
        Ok((schema(py, &self.field)?, array))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let mut array = Some(self.array.clone());
        stream(py, self.field.clone(), Box::new(move || Ok(array.take())))
    }
}

fn stream<'py>(py: Python<'py>, field: Field, next: Next) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, ArrowArrayStream::of(field, next), c"arrow_array_stream")
}

fn names(field: &Field) -> Vec<&'static str> {
    field.children.iter().map(|column| column.name).collect()
}

/// Batches of rows, made one at a time: an iterator, and a stream for consumers of Arrow. It can be read once.
#[pyclass(module = "chronosym", frozen)]
pub struct RecordBatchReader {
    field: Field,
    next: Mutex<Option<Next>>,
}

impl RecordBatchReader {
    pub fn new(
        field: Field,
        next: impl FnMut() -> Result<Option<Array>, String> + Send + 'static,
    ) -> Self {
        RecordBatchReader {
            field,
            next: Mutex::new(Some(Box::new(next))),
        }
    }
}

#[pymethods]
impl RecordBatchReader {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&'static str> {
        names(&self.field)
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let next = py.detach(|| {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            next.as_mut().map(|next| next())
        });
        let array = next.unwrap_or(Ok(None)).map_err(error::failed)?;
        Ok(array.map(|array| RecordBatch::new(self.field.clone(), array)))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.field)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let next = py.detach(|| {
            self.next
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
        });
        let next = next.ok_or_else(|| PyRuntimeError::new_err("the batches were already read"))?;
        stream(py, self.field.clone(), next)
    }
}
