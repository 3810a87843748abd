//! The files of an export, read batch by batch.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;

use super::footer;
use super::pages::{Expansion, Group};
use crate::error::Error;
use crate::guard::guarded;

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

/// Rows that a file may have, and how many for each of its bytes in addition.
const FREE_ROWS: u64 = 2_000_000;
const ROWS_OF_BYTE: u64 = 4;

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

fn open(path: &Path, columns: &[&str]) -> Result<Batches, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    if path.extension().is_some_and(|it| it == "arrow") {
        let reader = FileReader::try_new_buffered(file, None).map_err(|error| error.to_string())?;
        return Ok(Box::new(
            reader.map(|it| it.map_err(|error| error.to_string())),
        ));
    }
    footer::check(&file, size)?;
    parquet(file, size, columns).map_err(|error| error.to_string())
}

fn parquet(file: File, size: u64, columns: &[&str]) -> Result<Batches, ParquetError> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
    let rows = metadata.row_groups().iter().map(|it| it.num_rows().max(0));
    let rows = rows.fold(0u64, |sum, rows| sum.saturating_add(rows as u64));
    if rows > FREE_ROWS.saturating_add(size.saturating_mul(ROWS_OF_BYTE)) {
        let text = format!("it states {rows} rows in {size} bytes");
        return Err(ParquetError::General(text));
    }
    let schema = metadata.file_metadata().schema_descr_ptr();
    let mask = ProjectionMask::columns(&schema, columns.iter().copied());
    // Without types of Arrow that another program may have stored, texts are strings.
    let levels = parquet_to_arrow_field_levels(&schema, mask.clone(), None)?;
    let (file, metadata) = (Arc::new(file), Arc::new(metadata));
    let expansion = Expansion::of(size);
    let groups = 0..metadata.num_row_groups();
    let batches = groups.map(move |number| {
        let group = Group {
            file: Arc::clone(&file),
            metadata: Arc::clone(&metadata),
            number,
            expansion: expansion.clone(),
        };
        let leaves = (0..schema.num_columns()).filter(|&leaf| mask.leaf_included(leaf));
        let rows = group.batch_rows(leaves)?;
        ParquetRecordBatchReader::try_new_with_row_groups(&levels, &group, rows, None)
    });
    Ok(Box::new(batches.flat_map(|reader| -> Batches {
        match reader {
            Ok(reader) => Box::new(reader.map(|it| it.map_err(|error| error.to_string()))),
            Err(error) => Box::new(std::iter::once(Err(error.to_string()))),
        }
    })))
}
