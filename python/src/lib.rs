//! The extension module of the Python package `chronosym`. docs/languages/python.md explains it, and
//! `python/chronosym/__init__.pyi` has its types.

mod arrow;
mod bodies;
mod columns;
mod error;
mod events;
mod frame;
mod live;
mod resolver;
mod samples;
mod symbols;
mod table;
mod timeline;

use pyo3::prelude::*;

#[pymodule]
fn _chronosym(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<error::Error>())?;
    module.add("QUERY", arrow::QUERY.to_vec())?;
    module.add_class::<frame::Frame>()?;
    module.add_class::<live::LiveSession>()?;
    module.add_class::<resolver::Resolver>()?;
    module.add_class::<symbols::Symbols>()?;
    module.add_class::<table::RecordBatch>()?;
    module.add_class::<table::RecordBatchReader>()?;
    module.add_class::<timeline::Timeline>()?;
    module.add_function(wrap_pyfunction!(timeline::open, module)?)
}
