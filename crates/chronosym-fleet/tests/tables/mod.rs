//! Reads exported files.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::reader::FileReader;
use arrow_schema::DataType;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    None,
    Number(i64),
    Text(String),
    Flag(bool),
    List(Vec<Value>),
}

impl Value {
    pub fn number(&self) -> i64 {
        self.some_number().unwrap()
    }

    pub fn some_number(&self) -> Option<i64> {
        match self {
            Value::None => None,
            Value::Number(number) => Some(*number),
            other => panic!("{other:?}"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Value::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }
}

pub type Rows = Vec<BTreeMap<String, Value>>;

/// The files of a table.
pub fn files(folder: &Path, table: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.join(table)).unwrap();
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// The rows of all files of a table.
pub fn read(folder: &Path, table: &str) -> Rows {
    let mut rows = Rows::new();
    for path in files(folder, table) {
        let file = File::open(&path).unwrap();
        let batches: Vec<RecordBatch> = match path.extension().and_then(|it| it.to_str()) {
            Some("parquet") => {
                let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
                builder.build().unwrap().map(Result::unwrap).collect()
            }
            Some("arrow") => {
                let reader = FileReader::try_new(file, None).unwrap();
                reader.map(Result::unwrap).collect()
            }
            other => panic!("{other:?}"),
        };
        for batch in batches {
            let schema = batch.schema();
            for row in 0..batch.num_rows() {
                let columns = schema.fields().iter().zip(batch.columns());
                let values = columns.map(|it| (it.0.name().clone(), value(it.1, row)));
                rows.push(values.collect());
            }
        }
    }
    rows
}

fn value(column: &ArrayRef, row: usize) -> Value {
    if column.is_null(row) {
        return Value::None;
    }
    match column.data_type() {
        DataType::Int64 => Value::Number(column.as_primitive::<Int64Type>().value(row)),
        DataType::Int32 => Value::Number(column.as_primitive::<Int32Type>().value(row).into()),
        DataType::Boolean => Value::Flag(column.as_boolean().value(row)),
        DataType::Utf8 => Value::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::Dictionary(..) => {
            let column = column.as_dictionary::<Int32Type>();
            let key = column.keys().value(row) as usize;
            Value::Text(column.values().as_string::<i32>().value(key).to_owned())
        }
        DataType::List(_) => {
            let list = column.as_list::<i32>().value(row);
            Value::List((0..list.len()).map(|row| value(&list, row)).collect())
        }
        other => panic!("{other}"),
    }
}
