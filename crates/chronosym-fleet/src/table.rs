//! A file with a table. It gets its name when it is complete.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, GzipLevel};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::error::Error;
use crate::format::{FORMAT_VERSION, Format};

/// Rows of a batch.
pub const ROWS: usize = 1 << 16;
/// Rows of a row group: engines skip row groups by the least and greatest value of a column.
const GROUP: usize = 1 << 17;

/// The layout of a table.
pub(crate) struct Layout {
    /// Its name, and that of its folder.
    pub name: &'static str,
    pub fields: Vec<Field>,
    /// The column by which its rows are sorted.
    pub sorted_by: Option<&'static str>,
    /// Columns of distinct ids, stored as they are.
    pub ids: &'static [&'static str],
    /// Columns of numbers that differ in nearly every row, stored as differences.
    pub varying: &'static [&'static str],
}

enum Out {
    Parquet(Box<ArrowWriter<File>>),
    Arrow(Box<FileWriter<BufWriter<File>>>),
}

/// Writes a table.
pub struct Table {
    schema: SchemaRef,
    /// `None` when it is closed.
    out: Option<Out>,
    path: PathBuf,
    partial: PathBuf,
}

impl Table {
    /// Creates the table of a recording in `folder`.
    pub fn create(
        folder: &Path,
        file_name: &str,
        format: Format,
        layout: &Layout,
    ) -> Result<Self, Error> {
        let folder = folder.join(layout.name);
        fs::create_dir_all(&folder).map_err(Error::write(&folder))?;
        let path = folder.join(format!("{file_name}.{}", format.extension()));
        // Engines leave out files whose names start with a dot or an underscore.
        let partial = folder.join(format!("._{file_name}.{}", format.extension()));
        let schema = Arc::new(Schema::new(layout.fields.clone()));
        let file = File::create(&partial).map_err(Error::write(&partial))?;
        let mut table = Table {
            schema: schema.clone(),
            out: None,
            path,
            partial,
        };
        table.out = Some(match format {
            Format::Parquet => {
                let options = ArrowWriterOptions::new()
                    .with_properties(properties(layout))
                    // Texts are plain strings for every engine.
                    .with_skip_arrow_metadata(true);
                let writer = ArrowWriter::try_new_with_options(file, schema, options);
                Out::Parquet(Box::new(writer.map_err(Error::encode(&table.path))?))
            }
            Format::Arrow => {
                let schema = Schema::new(layout.fields.clone())
                    .with_metadata([(VERSION.to_owned(), FORMAT_VERSION.to_owned())]);
                let writer = FileWriter::try_new(BufWriter::new(file), &schema);
                Out::Arrow(Box::new(writer.map_err(Error::encode(&table.path))?))
            }
        });
        Ok(table)
    }

    /// Writes rows.
    pub fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        let batch = RecordBatch::try_new(self.schema.clone(), columns);
        let batch = batch.map_err(Error::encode(&self.path))?;
        match &mut self.out {
            Some(Out::Parquet(out)) => out.write(&batch).map_err(Error::encode(&self.path)),
            Some(Out::Arrow(out)) => out.write(&batch).map_err(Error::encode(&self.path)),
            None => Ok(()),
        }
    }

    /// Completes the file, which then gets its name. Returns its size in bytes.
    pub fn finish(mut self) -> Result<u64, Error> {
        match self.out.take() {
            Some(Out::Parquet(out)) => {
                out.close().map_err(Error::encode(&self.path))?;
            }
            Some(Out::Arrow(mut out)) => {
                out.finish().map_err(Error::encode(&self.path))?;
                let file = out.into_inner().map_err(Error::encode(&self.path))?;
                let file = file.into_inner().map_err(|error| error.into_error());
                file.map_err(Error::write(&self.path))?;
            }
            None => {}
        }
        fs::rename(&self.partial, &self.path).map_err(Error::write(&self.path))?;
        let size = fs::metadata(&self.path).map_err(Error::write(&self.path))?;
        Ok(size.len())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // After `finish` there is none.
        _ = fs::remove_file(&self.partial);
    }
}

const VERSION: &str = "chronosym.version";

fn properties(layout: &Layout) -> WriterProperties {
    let version = KeyValue::new(VERSION.to_owned(), FORMAT_VERSION.to_owned());
    let level = GzipLevel::try_new(9).unwrap_or_default();
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::GZIP(level))
        // Files are small: indexes of pages take more bytes than they save.
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(GROUP))
        .set_created_by(format!("chronosym {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata(Some(vec![version]));
    for column in layout.ids.iter().chain(layout.varying) {
        properties = properties.set_column_dictionary_enabled((*column).into(), false);
    }
    for column in layout.varying {
        properties =
            properties.set_column_encoding((*column).into(), Encoding::DELTA_BINARY_PACKED);
    }
    let names = layout.fields.iter().map(|field| field.name().as_str());
    let sorted_by = names.enumerate().find(|it| layout.sorted_by == Some(it.1));
    let sorted_by = sorted_by.map(|(column, _)| {
        vec![SortingColumn {
            column_idx: column as i32,
            descending: false,
            nulls_first: false,
        }]
    });
    properties.set_sorting_columns(sorted_by).build()
}
