//! Where names and lines beyond the trace come from.

use std::path::PathBuf;
use std::sync::Arc;

use chronosym::symbols::{
    StoreConfig, SymbolOptions, SymbolPath, Symbolizer, parse_debuginfod_urls,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A source of symbols, for any number of timelines and threads.
#[pyclass(module = "chronosym", frozen)]
pub struct Symbols {
    pub symbolizer: Arc<Symbolizer>,
}

#[pymethods]
impl Symbols {
    #[new]
    #[pyo3(signature = (
        folders=Vec::new(), *, path=None, debuginfod=None, cache=None, offline=false, trust_trace_paths=false, lines=true,
        pretty=false, any_pdb=false
    ))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        folders: Vec<PathBuf>,
        path: Option<&str>,
        debuginfod: Option<&str>,
        cache: Option<PathBuf>,
        offline: bool,
        trust_trace_paths: bool,
        lines: bool,
        pretty: bool,
        any_pdb: bool,
    ) -> PyResult<Self> {
        let mut stores = StoreConfig::new();
        stores.folders = folders;
        stores.cache = cache;
        stores.offline = offline;
        stores.trust_trace_paths = trust_trace_paths;
        if let Some(path) = path {
            stores.path = SymbolPath::parse(path);
        }
        if let Some(urls) = debuginfod {
            let (urls, wrong) = parse_debuginfod_urls(urls);
            if let Some(problem) = wrong.first() {
                return Err(PyValueError::new_err(format!("debuginfod: {problem}")));
            }
            stores.debuginfod = urls;
        }
        let mut options = SymbolOptions::default();
        (options.lines, options.pretty, options.any_pdb) = (lines, pretty, any_pdb);
        let symbolizer = Arc::new(Symbolizer::new(stores, options));
        Ok(Symbols { symbolizer })
    }
}

/// A source, or folders that are searched without servers.
#[derive(FromPyObject)]
pub enum SymbolsArgument<'py> {
    Source(Bound<'py, Symbols>),
    Folders(Vec<PathBuf>),
    Folder(PathBuf),
}

impl SymbolsArgument<'_> {
    pub fn symbolizer(self) -> Arc<Symbolizer> {
        let folders = match self {
            SymbolsArgument::Source(source) => return source.get().symbolizer.clone(),
            SymbolsArgument::Folders(folders) => folders,
            SymbolsArgument::Folder(folder) => vec![folder],
        };
        let mut stores = StoreConfig::new();
        stores.folders = folders;
        stores.offline = true;
        Arc::new(Symbolizer::new(stores, SymbolOptions::default()))
    }
}
