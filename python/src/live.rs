//! Live sessions.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use chronosym::facts::{Action, At, Image, Method, Module, Process, Symbol};
use chronosym::source::nettrace::NettraceStream;
use chronosym::source::read_live;
use chronosym::{Diagnostics, LiveReader, OpenError, SymbolSource};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error;
use crate::symbols::SymbolsArgument;
use crate::timeline::Timeline;

/// A session that resolves while facts still arrive. One thread feeds it; any thread gets timelines, without waiting.
#[pyclass(module = "chronosym", frozen)]
pub struct LiveSession {
    live: Mutex<chronosym::LiveSession>,
    reader: LiveReader,
    symbols: Option<Arc<dyn SymbolSource>>,
}

impl LiveSession {
    /// Calls `work` with the session, without the lock of Python: the thread that has the session may need it.
    fn live<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut chronosym::LiveSession) -> T + Send,
    ) -> T {
        py.detach(|| work(&mut self.live.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn with(&self, timeline: Arc<chronosym::Timeline>) -> Timeline {
        let mut diagnostics = Diagnostics::default();
        diagnostics.list = timeline.diagnostics();
        Timeline::new(timeline, self.symbols.clone(), diagnostics, Vec::new())
    }
}

fn action_of(action: &str) -> PyResult<Action> {
    match action {
        "load" => Ok(Action::Load),
        "unload" => Ok(Action::Unload),
        "listed_at_start" => Ok(Action::DCStart),
        "listed_at_end" => Ok(Action::DCEnd),
        _ => Err(PyValueError::new_err(format!(
            "{action:?} is not an action: expected load, unload, listed_at_start or listed_at_end"
        ))),
    }
}

fn at(time_ns: u64, pid: u32, thread: Option<u64>) -> At {
    let mut at = At::new(time_ns).process(pid);
    at.thread = thread;
    at
}

#[pymethods]
impl LiveSession {
    #[new]
    #[pyo3(signature = (*, symbols=None))]
    fn new(symbols: Option<SymbolsArgument<'_>>) -> Self {
        let live = chronosym::LiveSession::new();
        LiveSession {
            reader: live.reader(),
            live: Mutex::new(live),
            symbols: symbols.map(|symbols| symbols.symbolizer() as Arc<dyn SymbolSource>),
        }
    }

    /// States a process.
    #[pyo3(signature = (time_ns, pid, name="", *, action="load"))]
    fn process(
        &self,
        py: Python<'_>,
        time_ns: u64,
        pid: u32,
        name: &str,
        action: &str,
    ) -> PyResult<()> {
        let fact = Process::new(action_of(action)?, name);
        self.live(py, |live| live.apply(at(time_ns, pid, None), fact));
        Ok(())
    }

    /// States a mapped file.
    #[pyo3(signature = (time_ns, pid, base, size, path, *, file_offset=0, build_id="", action="load"))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn image(
        &self,
        py: Python<'_>,
        time_ns: u64,
        pid: u32,
        base: u64,
        size: u64,
        path: &str,
        file_offset: u64,
        build_id: &str,
        action: &str,
    ) -> PyResult<()> {
        let mut image = Image::new(action_of(action)?, base, size, path);
        (image.file_offset, image.build_id) = (file_offset, build_id);
        self.live(py, |live| live.apply(at(time_ns, pid, None), image));
        Ok(())
    }

    /// States a module of the CLR.
    #[pyo3(signature = (time_ns, pid, id, path, *, action="load"))]
    fn module(
        &self,
        py: Python<'_>,
        time_ns: u64,
        pid: u32,
        id: u64,
        path: &str,
        action: &str,
    ) -> PyResult<()> {
        let fact = Module::new(action_of(action)?, id, path);
        self.live(py, |live| live.apply(at(time_ns, pid, None), fact));
        Ok(())
    }

    /// States a jitted code body.
    #[pyo3(signature = (
        time_ns, pid, id, address, size, *, type_name="", name="", signature="", module=0, token=0, thread=None,
        action="load"
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn method(
        &self,
        py: Python<'_>,
        time_ns: u64,
        pid: u32,
        id: u64,
        address: u64,
        size: u32,
        type_name: &str,
        name: &str,
        signature: &str,
        module: u64,
        token: u32,
        thread: Option<u64>,
        action: &str,
    ) -> PyResult<()> {
        let method = Method::new(action_of(action)?, id, address, size)
            .named(type_name, name, signature)
            .in_module(module, token);
        self.live(py, |live| live.apply(at(time_ns, pid, thread), method));
        Ok(())
    }

    /// States a name without a lifetime, as in a perf map.
    fn symbol(
        &self,
        py: Python<'_>,
        time_ns: u64,
        pid: u32,
        address: u64,
        size: u64,
        name: &str,
    ) -> PyResult<()> {
        let last = size
            .checked_sub(1)
            .and_then(|size| address.checked_add(size));
        let last = last.ok_or_else(|| PyValueError::new_err("a symbol without a range"))?;
        self.live(py, |live| {
            live.apply(at(time_ns, pid, None), Symbol::new(address, last, name))
        });
        Ok(())
    }

    /// Reads a nettrace stream from a file, a pipe or a socket by its path until its end, and publishes each batch.
    fn read(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let name = path.display().to_string();
        let read = || -> Result<(), OpenError> {
            let file = std::fs::File::open(&path);
            let file = file.map_err(|source| OpenError::Open {
                name: name.clone(),
                source,
            })?;
            let trace = |source| OpenError::Trace {
                name: name.clone(),
                source,
            };
            let stream = NettraceStream::new(file, Default::default());
            let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
            read_live(&mut stream.map_err(trace)?, &mut live).map_err(trace)
        };
        py.detach(read).map_err(|error| error::of_open(py, &error))
    }

    /// States that no event of an earlier time follows.
    fn advance(&self, py: Python<'_>, watermark_ns: u64) {
        self.live(py, |live| live.advance(watermark_ns));
    }

    /// Shows readers all that was stated.
    fn publish(&self, py: Python<'_>) {
        self.live(py, |live| live.publish());
    }

    /// Drops what ended before a time. Returns the number of code bodies.
    fn forget_before(&self, py: Python<'_>, horizon_ns: u64) -> usize {
        self.live(py, |live| live.forget_before(horizon_ns))
    }

    /// Returns the timeline as it was last published. Never waits for the thread that feeds.
    fn timeline(&self) -> Timeline {
        self.with(self.reader.timeline())
    }

    /// Publishes final answers, and returns the timeline.
    fn finish(&self, py: Python<'_>) -> Timeline {
        self.live(py, |live| live.finish());
        self.timeline()
    }
}
