//! Streams of bare addresses in Arrow's stream format (IPC), and of their names.

use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use crate::columns::text;
use crate::error::Error;
use crate::guard::guarded;
use crate::read::{Texts, numbers};

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

    /// Reads a batch; `None` after the last one.
    ///
    /// # Errors
    ///
    /// [`Error::Read`] if the batch is damaged, lacks a column or has a null.
    pub fn next_batch(&mut self) -> Result<Option<AddressBatch>, Error> {
        let next = || self.reader.next().transpose().map_err(|it| it.to_string());
        let Some(batch) = guarded(next).map_err(failed)? else {
            return Ok(None);
        };
        for name in ["key", "time", "address"] {
            let column = batch.column_by_name(name);
            let column = column.ok_or_else(|| failed(format!("it has no column {name}")))?;
            if column.logical_null_count() > 0 {
                return Err(failed(format!("a row has a null in the column {name}")));
            }
        }
        let addresses = match batch["address"].as_primitive_opt::<UInt64Type>() {
            Some(addresses) => addresses.clone(),
            None => {
                let signed = numbers(&batch, "address").map_err(failed)?;
                signed.unary(|address| address as u64)
            }
        };
        // Its type is checked where its texts are used.
        Texts::of(&batch, "key").map_err(failed)?;
        Ok(Some(AddressBatch {
            keys: batch["key"].clone(),
            times: numbers(&batch, "time").map_err(failed)?.clone(),
            addresses,
        }))
    }

    /// Creates the writer of the answers: a batch for each batch, with the column `names`, a list
    /// of dictionary-encoded texts.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if `out` cannot be written.
    pub fn writer<W: Write>(&self, out: W) -> Result<NamesWriter<W>, Error> {
        let element = text("item");
        let names = Field::new("names", DataType::List(Arc::new(element)), false);
        let schema = Arc::new(Schema::new(vec![names]));
        let writer = StreamWriter::try_new(out, &schema);
        let writer = writer.map_err(Error::encode(Path::new("standard output")))?;
        Ok(NamesWriter { writer, schema })
    }
}

/// Rows of addresses.
pub struct AddressBatch {
    keys: ArrayRef,
    times: Int64Array,
    addresses: UInt64Array,
}

impl AddressBatch {
    /// Returns the keys to which [`positions`](Self::positions) refer, or else that of each row.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let texts = match self.keys.as_any_dictionary_opt() {
            Some(keys) => keys.values(),
            None => &self.keys,
        };
        let texts = texts.as_string_opt::<i32>();
        texts.into_iter().flatten().map(Option::unwrap_or_default)
    }

    /// Returns the position of each row's key in [`keys`](Self::keys), if those are
    /// dictionary-encoded; otherwise each row has its own.
    pub fn positions(&self) -> Option<&[i32]> {
        let keys = self.keys.as_dictionary_opt::<Int32Type>()?;
        Some(keys.keys().values())
    }

    /// Returns the time of each row.
    pub fn times(&self) -> &[i64] {
        self.times.values()
    }

    /// Returns the address of each row.
    pub fn addresses(&self) -> &[u64] {
        self.addresses.values()
    }
}

/// The names of rows, as numbers of texts.
pub struct NameRows {
    /// The end of each row in `numbers`, after a 0.
    ends: Vec<i32>,
    numbers: Vec<i32>,
}

impl NameRows {
    /// Makes room for so many rows of one name.
    pub fn with_capacity(rows: usize) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(0);
        NameRows {
            ends,
            numbers: Vec::with_capacity(rows),
        }
    }

    /// Adds a row with the numbers of its texts.
    #[inline]
    pub fn push_row(&mut self, numbers: impl IntoIterator<Item = u32>) {
        let numbers = numbers.into_iter().map(|number| number as i32);
        self.numbers.extend(numbers);
        self.ends.push(self.numbers.len() as i32);
    }
}

/// Writes the names of addresses.
pub struct NamesWriter<W: Write> {
    writer: StreamWriter<W>,
    schema: SchemaRef,
}

impl<W: Write> NamesWriter<W> {
    /// Writes the names of the rows of a batch, as numbers of `texts`.
    ///
    /// # Errors
    ///
    /// [`Error::Encode`] if they cannot be written, or are more than 2^31.
    pub fn write<'t>(
        &mut self,
        texts: impl Iterator<Item = &'t str>,
        rows: NameRows,
    ) -> Result<(), Error> {
        let error = Error::encode(Path::new("standard output"));
        if i32::try_from(rows.numbers.len()).is_err() {
            return Err(error(ArrowError::OffsetOverflowError(rows.numbers.len())));
        }
        let offsets = OffsetBuffer::new(rows.ends.into());
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let numbers = Int32Array::from(rows.numbers);
        let written = DictionaryArray::try_new(numbers, texts).and_then(|names| {
            let names = ListArray::try_new(Arc::new(text("item")), offsets, Arc::new(names), None)?;
            let batch = RecordBatch::try_new(self.schema.clone(), vec![Arc::new(names)])?;
            self.writer.write(&batch)?;
            self.writer.flush()
        });
        written.map_err(error)
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
