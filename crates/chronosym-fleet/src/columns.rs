//! Columns of tables.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, StringArray};
use arrow_schema::{DataType, Field};
use chronosym_types::hash::HashMap;

/// A column of texts, stored once each. A text may be absent.
pub fn text(name: &str) -> Field {
    let texts = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Field::new(name, texts, true)
}

/// A column of 64-bit numbers.
pub fn number(name: &str) -> Field {
    Field::new(name, DataType::Int64, false)
}

/// A column of 64-bit numbers that may be absent.
pub fn some_number(name: &str) -> Field {
    number(name).with_nullable(true)
}

/// A column of lines, which may be absent.
pub fn some_line(name: &str) -> Field {
    Field::new(name, DataType::Int32, true)
}

/// A column of flags.
pub fn flag(name: &str) -> Field {
    Field::new(name, DataType::Boolean, false)
}

/// The number of a text.
pub type TextNumber = Option<i32>;

/// The distinct texts of a column.
#[derive(Default)]
pub struct Texts {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, i32>,
    /// All texts so far, if a column was made of them.
    values: Option<ArrayRef>,
}

impl Texts {
    /// Returns texts with the numbers 0, 1, ….
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        let mut all = Texts::default();
        for text in texts {
            all.number(text);
        }
        all
    }

    /// Returns the number of a text, which is added if it is new.
    pub fn number(&mut self, text: &str) -> i32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.texts.len() as i32;
        let text: Arc<str> = text.into();
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        self.values = None;
        number
    }

    /// Returns the number of a text, if there is one and it is not empty.
    pub fn some(&mut self, text: Option<&str>) -> TextNumber {
        let text = text.filter(|text| !text.is_empty());
        text.map(|text| self.number(text))
    }

    /// Returns the column of these texts.
    pub fn column(&mut self, numbers: Vec<TextNumber>) -> ArrayRef {
        let values = self.values.get_or_insert_with(|| {
            let texts = self.texts.iter().map(|text| Some(&**text));
            Arc::new(texts.collect::<StringArray>())
        });
        let keys = Int32Array::from(numbers);
        // Its keys are numbers of its texts.
        Arc::new(DictionaryArray::<Int32Type>::new(keys, values.clone()))
    }
}

/// Returns a column with one text in every row.
pub fn same_text(text: Option<&str>, rows: usize) -> ArrayRef {
    let mut texts = Texts::default();
    let number = texts.some(text);
    texts.column(vec![number; rows])
}

/// Returns a column of texts, of which a row may have none.
pub fn texts<'t>(all: impl Iterator<Item = Option<&'t str>>) -> ArrayRef {
    let mut texts = Texts::default();
    let numbers = all.map(|text| texts.some(text)).collect();
    texts.column(numbers)
}

/// Returns a column of numbers.
pub fn numbers(all: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(all))
}

/// Returns a column of numbers, of which a row may have none.
pub fn some_numbers(all: Vec<Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from(all))
}

/// Returns a column of lines; those beyond its range are absent.
pub fn some_lines(all: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    let lines = all.map(|line| line.and_then(|line| i32::try_from(line).ok()));
    Arc::new(lines.collect::<Int32Array>())
}

/// Returns a column of flags.
pub fn flags(all: impl Iterator<Item = bool>) -> ArrayRef {
    Arc::new(all.map(Some).collect::<BooleanArray>())
}
