//! The files of an export, read batch by batch.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use crate::error::Error;

/// Returns whether a path is a folder with exported tables, or one of their files with samples.
///
/// # Examples
///
/// ```
/// assert!(!chronosym_fleet::is_export("../../testdata".as_ref()));
/// ```
pub fn is_export(path: &Path) -> bool {
    root(path).is_some()
}

/// Returns the folder of the tables, and the file if it is one.
fn root(path: &Path) -> Option<(&Path, Option<&Path>)> {
    let has_tables = |folder: &Path| {
        ["samples", "stacks", "frames"]
            .iter()
            .all(|table| folder.join(table).is_dir())
    };
    if path.is_dir() {
        return has_tables(path).then_some((path, None));
    }
    let table = path.parent()?;
    let folder = table.parent()?;
    let is_samples = table.file_name()? == "samples" && is_table(path);
    (is_samples && has_tables(folder)).then_some((folder, Some(path)))
}

fn is_table(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    let name = path.file_name().and_then(|it| it.to_str()).unwrap_or("_");
    matches!(extension, Some("parquet" | "arrow")) && !name.starts_with(['.', '_'])
}

/// The files of an export.
pub(crate) struct Tables {
    pub samples: Vec<PathBuf>,
    pub stacks: Vec<PathBuf>,
    pub frames: Vec<PathBuf>,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Tables {
    pub fn find(path: &Path) -> Result<Self, Error> {
        let missing = "it has no folders samples, stacks and frames with .parquet or .arrow files";
        let (folder, file) = root(path).ok_or_else(|| Error::read(path)(missing))?;
        let list = |table: &str| {
            let folder = folder.join(table);
            let entries = fs::read_dir(&folder).map_err(Error::read(&folder))?;
            let paths = entries.map(|entry| entry.map(|it| it.path()));
            let mut paths = paths
                .collect::<Result<Vec<_>, _>>()
                .map_err(Error::read(&folder))?;
            paths.retain(|path| is_table(path));
            paths.sort();
            Ok::<_, Error>(paths)
        };
        let samples = match file {
            Some(file) => vec![file.to_owned()],
            None => list("samples")?,
        };
        let (stacks, frames) = match file {
            // Its own files, if it has any.
            Some(file) => {
                let name = file.file_name().unwrap_or_default();
                let own = |table: &str| folder.join(table).join(name);
                let (stacks, frames) = (own("stacks"), own("frames"));
                match stacks.is_file() && frames.is_file() {
                    true => (vec![stacks], vec![frames]),
                    false => (list("stacks")?, list("frames")?),
                }
            }
            None => (list("stacks")?, list("frames")?),
        };
        let size = |path: &PathBuf| fs::metadata(path).map_or(0, |it| it.len());
        let bytes = [&samples, &stacks, &frames]
            .into_iter()
            .flatten()
            .map(size)
            .sum();
        Ok(Tables {
            samples,
            stacks,
            frames,
            bytes,
        })
    }
}

/// Rows that a byte of a file may have. A sample takes one at the least.
const ROWS_OF_BYTE: i64 = 1000;
/// Rows of a batch.
const ROWS: usize = 1 << 13;

type Batches = Box<dyn Iterator<Item = Result<RecordBatch, String>>>;

/// Calls `each` with the batches of a file, until it returns false. They have at least these
/// columns.
pub fn batches(
    path: &Path,
    columns: &[&str],
    mut each: impl FnMut(&RecordBatch) -> Result<bool, String>,
) -> Result<(), Error> {
    // The decoders are not ours: one that panics costs this file.
    let mut opened = guarded(|| open(path, columns)).map_err(Error::read(path))?;
    loop {
        let batch = guarded(|| opened.next().transpose()).map_err(Error::read(path))?;
        let Some(batch) = batch else { return Ok(()) };
        if !each(&batch).map_err(Error::read(path))? {
            return Ok(());
        }
    }
}

/// Turns a panic of a decoder into an error.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let failed = |_| Err("it is damaged".to_owned());
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(failed)
}

fn open(path: &Path, columns: &[&str]) -> Result<Batches, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    if path.extension().is_some_and(|it| it == "arrow") {
        let reader = FileReader::try_new_buffered(file, None).map_err(|error| error.to_string())?;
        return Ok(Box::new(
            reader.map(|it| it.map_err(|error| error.to_string())),
        ));
    }
    // Without types of Arrow that another program may have stored, texts are strings.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options);
    let builder = builder.map_err(|error| error.to_string())?;
    let rows = builder.metadata().file_metadata().num_rows();
    if rows / ROWS_OF_BYTE > size as i64 {
        return Err(format!("it states {rows} rows in {size} bytes"));
    }
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    let reader = builder.with_projection(mask).with_batch_size(ROWS).build();
    let reader = reader.map_err(|error| error.to_string())?;
    Ok(Box::new(
        reader.map(|it| it.map_err(|error| error.to_string())),
    ))
}
