//! Timelines.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chronosym::{
    AddressQuery, Diagnostics, EventSelector, Input, OpenError, Opener, Options, Position,
    QueryProcess, ResolvedBatch, SampleSelection, SaveOptions, SymbolSource,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::{Array, Field, Numbers};
use crate::bodies::Bodies;
use crate::columns::FrameColumns;
use crate::error;
use crate::events::Events;
use crate::frame::Frame;
use crate::resolver::Resolver;
use crate::samples::{Resolved, Samples};
use crate::symbols::SymbolsArgument;
use crate::table::{RecordBatch, RecordBatchReader};

/// The recorded lifetimes of all code of a trace. Any number of threads can use it.
#[pyclass(module = "chronosym", frozen)]
pub struct Timeline {
    timeline: Arc<chronosym::Timeline>,
    symbols: Option<Arc<dyn SymbolSource>>,
    diagnostics: Diagnostics,
    paths: Vec<PathBuf>,
    resolved: Arc<Mutex<Resolved>>,
}

impl Timeline {
    pub fn new(
        timeline: Arc<chronosym::Timeline>,
        symbols: Option<Arc<dyn SymbolSource>>,
        diagnostics: Diagnostics,
        paths: Vec<PathBuf>,
    ) -> Self {
        let resolver = chronosym::Resolver::new(&timeline, symbols.clone());
        Timeline {
            timeline,
            symbols,
            diagnostics,
            paths,
            resolved: Arc::new(Mutex::new(Resolved::new(resolver))),
        }
    }

    /// The timeline.
    pub fn shared(&self) -> &Arc<chronosym::Timeline> {
        &self.timeline
    }
}

fn lock(resolved: &Mutex<Resolved>) -> MutexGuard<'_, Resolved> {
    resolved.lock().unwrap_or_else(PoisonError::into_inner)
}

fn position(is_return: bool) -> Position {
    match is_return {
        true => Position::Return,
        false => Position::Exact,
    }
}

/// The queries of three columns.
fn queries(
    pids: &Numbers,
    times: &Numbers,
    addresses: &Numbers,
    are_return: &Numbers,
) -> PyResult<Vec<AddressQuery>> {
    let columns = [pids, times, addresses, are_return];
    let rows = columns
        .iter()
        .filter_map(|column| column.rows())
        .max()
        .unwrap_or(1);
    if let Some(other) = columns
        .iter()
        .filter_map(|it| it.rows())
        .find(|&it| it != rows)
    {
        let text = format!("the arrays differ in length: {other} and {rows}");
        return Err(PyValueError::new_err(text));
    }
    let query = |row| {
        let pid = pids.at(row);
        let pid = u32::try_from(pid)
            .map_err(|_| PyValueError::new_err(format!("{pid} is not a process id")))?;
        Ok(AddressQuery {
            process: QueryProcess::Pid(pid),
            address: addresses.at(row),
            time_ns: times.at(row),
            position: position(are_return.at(row) != 0),
        })
    };
    (0..rows).map(query).collect()
}

/// The rows of a batch: one for each frame.
fn rows_of(resolved: &mut Resolved, queries: &[AddressQuery]) -> RecordBatch {
    let mut batch = ResolvedBatch::default();
    resolved.resolver.resolve_batch(queries, &mut batch);
    resolved.table.add_table(resolved.resolver.frame_table());
    let mut numbers = Vec::with_capacity(batch.frames().len());
    for query in 0..batch.len() {
        numbers.resize(batch.offsets()[query + 1], query as u64);
    }
    let frames: Vec<u32> = batch.frames().iter().map(|it| it.index() as u32).collect();
    let mut fields = vec![Field::u64("query")];
    fields.extend(FrameColumns::fields());
    let mut columns = vec![Array::numbers(numbers)];
    columns.extend(resolved.table.rows(&frames));
    RecordBatch::new(Field::rows(fields), Array::rows(frames.len(), columns))
}

#[pymethods]
impl Timeline {
    /// Resolves addresses: a row for each frame of each query, innermost first.
    #[pyo3(signature = (pid, time_ns, address, *, return_address=None))]
    fn resolve(
        &self,
        py: Python<'_>,
        pid: &Bound<'_, PyAny>,
        time_ns: &Bound<'_, PyAny>,
        address: &Bound<'_, PyAny>,
        return_address: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<RecordBatch> {
        let pids = Numbers::read(pid, "pid")?;
        let times = Numbers::read(time_ns, "time_ns")?;
        let addresses = Numbers::read(address, "address")?;
        let are_return = match return_address {
            Some(return_address) => Numbers::read(return_address, "return_address")?,
            None => Numbers::One(0),
        };
        py.detach(|| {
            let queries = queries(&pids, &times, &addresses, &are_return)?;
            Ok(rows_of(&mut lock(&self.resolved), &queries))
        })
    }

    /// Returns a resolver for batches of addresses.
    fn resolver(&self) -> Resolver {
        Resolver::new(&self.timeline, self.symbols.clone())
    }

    /// Returns the frames of one address, innermost first.
    #[pyo3(signature = (pid, time_ns, address, *, return_address=false))]
    fn frames_at(
        &self,
        py: Python<'_>,
        pid: u32,
        time_ns: u64,
        address: u64,
        return_address: bool,
    ) -> Vec<Frame> {
        py.detach(|| {
            let Some(process) = self.timeline.process_of(pid, time_ns) else {
                return Vec::new();
            };
            let position = position(return_address);
            let symbols = self.symbols.as_deref();
            let frames = self
                .timeline
                .frames(process, address, time_ns, position, symbols);
            frames.iter().map(Frame::from).collect()
        })
    }

    /// Returns the samples in time order, each with the number of its stack and the names of its innermost frame.
    fn samples(&self, py: Python<'_>) -> RecordBatchReader {
        let mut samples = py.detach(|| Samples::new(&self.timeline));
        let resolved = self.resolved.clone();
        let next = move || Ok(samples.next(&mut lock(&resolved)));
        RecordBatchReader::new(Samples::fields(), next)
    }

    /// Returns the stacks of all samples: a row for each frame, innermost first.
    fn stacks(&self, py: Python<'_>) -> RecordBatchReader {
        py.detach(|| lock(&self.resolved).resolve_all());
        let resolved = self.resolved.clone();
        let mut stack = 0;
        let next = move || {
            let rows = lock(&resolved).stacks(stack);
            Ok(rows.map(|(rows, next)| {
                stack = next;
                rows
            }))
        };
        RecordBatchReader::new(Resolved::stack_fields(), next)
    }

    /// Returns the frames that stacks refer to.
    fn frames(&self, py: Python<'_>) -> RecordBatchReader {
        py.detach(|| lock(&self.resolved).resolve_all());
        let resolved = self.resolved.clone();
        let mut frame = 0;
        let next = move || {
            let rows = lock(&resolved).frames(frame);
            frame += rows.as_ref().map_or(0, |rows| rows.length as u32);
            Ok(rows)
        };
        RecordBatchReader::new(Resolved::frame_fields(), next)
    }

    /// Returns the code bodies, process by process.
    fn bodies(&self) -> RecordBatchReader {
        let mut bodies = Bodies::new(&self.timeline);
        RecordBatchReader::new(Bodies::fields(), move || Ok(bodies.next()))
    }

    /// Returns the events of the trace, or those of the given types: `PROVIDER` or `PROVIDER/ID`. They are read from the
    /// file again, batch by batch.
    #[pyo3(signature = (*types))]
    fn events(&self, py: Python<'_>, types: Vec<String>) -> PyResult<RecordBatchReader> {
        let selectors = types.iter().map(|text| {
            let wrong =
                || PyValueError::new_err(format!("{text:?} is not PROVIDER or PROVIDER/ID"));
            EventSelector::parse(text).ok_or_else(wrong)
        });
        let selectors = selectors.collect::<PyResult<Vec<_>>>()?;
        let open = || {
            let inputs = self.paths.iter().map(Input::file);
            Opener::new().open(inputs)?.into_events()
        };
        let stream = py
            .detach(open)
            .map_err(|error| error::of_open(py, &error))?;
        let stream = stream.ok_or_else(|| {
            PyValueError::new_err("there is no single recording with events: name one trace")
        })?;
        let mut events = Events::new(stream, selectors);
        Ok(RecordBatchReader::new(Events::fields(), move || {
            events.next()
        }))
    }

    /// Saves what names addresses in a small file, which `open` reads; with `samples` also the samples.
    #[pyo3(signature = (path, *, samples=false))]
    fn save(&self, py: Python<'_>, path: PathBuf, samples: bool) -> PyResult<()> {
        let save = || {
            let mut options = SaveOptions::new().with_diagnostics(&self.diagnostics);
            options.samples = samples;
            let out = BufWriter::new(File::create(&path)?);
            self.timeline.save(out, &options)?.flush()
        };
        py.detach(save).map_err(|error| {
            // A part of a timeline is of no use; if it cannot be removed, either, the first error matters.
            if path.is_file() {
                let _ = fs::remove_file(&path);
            }
            error::of_file(py, &path.display().to_string(), &error)
        })
    }

    /// Processes, as dictionaries.
    #[getter]
    fn processes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let of = |it: chronosym::ProcessView<'_>| {
            let dict = PyDict::new(py);
            dict.set_item("pid", it.pid)?;
            dict.set_item("name", it.name)?;
            dict.set_item("command_line", it.command_line)?;
            dict.set_item("start_ns", it.start_ns)?;
            dict.set_item("end_ns", it.end_ns)?;
            dict.set_item("runtimes", it.runtimes)?;
            dict.set_item("is_managed", it.is_managed)?;
            Ok(dict)
        };
        self.timeline.processes().map(of).collect()
    }

    /// What was wrong with the recording.
    #[getter]
    fn diagnostics(&self) -> Vec<&str> {
        self.diagnostics.list.iter().map(|it| &*it.text).collect()
    }

    /// Number of events that the recorder lost, as far as it states them.
    #[getter]
    fn lost_events(&self) -> u64 {
        self.diagnostics.lost_events()
    }

    /// Time of the last event, in ns since the trace began.
    #[getter]
    fn duration_ns(&self) -> u64 {
        self.timeline.facts().duration_ns
    }

    fn __repr__(&self) -> String {
        let processes = self.timeline.processes().count();
        let samples = self.timeline.samples().len();
        format!("Timeline({processes} processes, {samples} samples)")
    }
}

/// One path or several.
#[derive(FromPyObject)]
pub enum Paths {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

/// Reads a trace, or several files of one recording.
#[pyfunction]
#[pyo3(signature = (
    paths, *, symbols=None, progress=None, samples=true, trust_trace_paths=false, max_memory=None
))]
pub fn open(
    py: Python<'_>,
    paths: Paths,
    symbols: Option<SymbolsArgument<'_>>,
    progress: Option<Py<PyAny>>,
    samples: bool,
    trust_trace_paths: bool,
    max_memory: Option<u64>,
) -> PyResult<Timeline> {
    if progress
        .as_ref()
        .is_some_and(|it| !it.bind(py).is_callable())
    {
        return Err(PyTypeError::new_err("progress must be callable"));
    }
    let paths = match paths {
        Paths::One(path) => vec![path],
        Paths::Many(paths) => paths,
    };
    let symbols = symbols.map(SymbolsArgument::symbolizer);
    let mut limits = chronosym::Limits::default();
    limits.memory = max_memory;
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let report = raised.clone();
    let mut opener = Opener::new().limits(limits).watch(move |it| {
        let called = Python::attach(|py| {
            py.check_signals()?;
            let Some(progress) = &progress else {
                return Ok(true);
            };
            let answer = progress.call1(py, (it.read, it.total))?;
            // None, of a function that returns nothing, goes on.
            Ok(answer.is_none(py) || answer.is_truthy(py)?)
        });
        match called {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                *report.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    if trust_trace_paths {
        opener = opener.trust_trace_paths();
    }
    if let Some(symbols) = &symbols {
        opener = opener.unwind_with(symbols.clone());
    }
    let selection = match samples {
        true => SampleSelection::default(),
        false => SampleSelection::None,
    };
    let read = || -> Result<_, OpenError> {
        let recording = opener.open(paths.iter().map(Input::file))?;
        recording.timeline(Options::from(selection))
    };
    let read = py.detach(read);
    if let Some(error) = raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    let (timeline, diagnostics) = read.map_err(|error| error::of_open(py, &error))?;
    let symbols = symbols.map(|symbols| symbols as Arc<dyn SymbolSource>);
    Ok(Timeline::new(timeline, symbols, diagnostics, paths))
}
