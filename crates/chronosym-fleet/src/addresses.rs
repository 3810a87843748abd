//! Streams of bare addresses in Arrow's stream format (IPC), and of their names.

use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::error::Error;
use crate::read::{Texts, guarded, numbers};

const INPUT: &str = "standard input";

fn failed<E: std::fmt::Display>(error: E) -> Error {
    Error::read(Path::new(INPUT))(error)
}

/// Reads batches with the columns `key` (text), `time` (64 bits) and `address` (64 bits).
pub struct AddressReader<R> {
    reader: StreamReader<BufReader<R>>,
}

impl<R: Read> AddressReader<R> {
    /// Starts to read.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] if the source does not begin with a schema of Arrow.
    pub fn new(source: R) -> Result<Self, Error> {
        let open = || StreamReader::try_new_buffered(source, None).map_err(|it| it.to_string());
        let reader = guarded(open).map_err(failed)?;
        Ok(AddressReader { reader })
    }

    /// Reads a batch and calls `each` with the key, time and address of every row. Returns false
    /// after the last batch.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] if the batch is damaged, lacks a column or has a null.
    pub fn next_batch(&mut self, mut each: impl FnMut(&str, i64, u64)) -> Result<bool, Error> {
        let next = || self.reader.next().transpose().map_err(|it| it.to_string());
        let Some(batch) = guarded(next).map_err(failed)? else {
            return Ok(false);
        };
        let keys = Texts::of(&batch, "key").map_err(failed)?;
        let times = numbers(&batch, "time").map_err(failed)?;
        let addresses = batch.column_by_name("address");
        let addresses = addresses.ok_or_else(|| failed("it has no column address"))?;
        let signed = numbers(&batch, "address");
        let unsigned = addresses.as_primitive_opt::<UInt64Type>();
        for row in 0..batch.num_rows() {
            let address = match (unsigned, &signed) {
                (Some(addresses), _) => addresses.value(row),
                (None, Ok(addresses)) => addresses.value(row) as u64,
                (None, Err(error)) => return Err(failed(error)),
            };
            let key = keys
                .get(row)
                .filter(|_| times.is_valid(row) && addresses.is_valid(row));
            let key = key.ok_or_else(|| failed("a row has a null"))?;
            each(key, times.value(row), address);
        }
        Ok(true)
    }

    /// Creates the writer of the answers: a batch for each batch, with the column `names`, a list
    /// of texts.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if `out` cannot be written.
    pub fn writer<W: Write>(&self, out: W) -> Result<NamesWriter<W>, Error> {
        let element = Field::new("item", DataType::Utf8, true);
        let names = Field::new("names", DataType::List(Arc::new(element)), false);
        let schema = Arc::new(Schema::new(vec![names]));
        let writer = StreamWriter::try_new(out, &schema);
        let writer = writer.map_err(Error::encode(Path::new("standard output")))?;
        Ok(NamesWriter { writer, schema })
    }
}

/// Writes the names of addresses.
pub struct NamesWriter<W: Write> {
    writer: StreamWriter<W>,
    schema: SchemaRef,
}

impl<W: Write> NamesWriter<W> {
    /// Writes the names of the rows of a batch.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if they cannot be written.
    pub fn write<'n>(
        &mut self,
        rows: impl Iterator<Item = impl Iterator<Item = &'n str>>,
    ) -> Result<(), Error> {
        let mut names = ListBuilder::new(StringBuilder::new());
        for row in rows {
            row.for_each(|name| names.values().append_value(name));
            names.append(true);
        }
        let column: ArrayRef = Arc::new(names.finish());
        let batch = RecordBatch::try_new(self.schema.clone(), vec![column]);
        let written = batch.and_then(|batch| self.writer.write(&batch));
        let written = written.and_then(|()| self.writer.flush());
        written.map_err(Error::encode(Path::new("standard output")))
    }

    /// Ends the stream.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if the end cannot be written.
    pub fn finish(mut self) -> Result<(), Error> {
        let end = self.writer.finish();
        end.map_err(Error::encode(Path::new("standard output")))
    }
}
