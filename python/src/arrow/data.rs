//! Columns in memory, laid out as Arrow's columnar format states.

use std::any::Any;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

/// The name and type of a column.
#[derive(Clone)]
pub struct Field {
    pub name: &'static str,
    pub format: &'static CStr,
    pub nullable: bool,
    pub children: Vec<Field>,
    pub dictionary: Option<Box<Field>>,
}

impl Field {
    fn new(name: &'static str, format: &'static CStr) -> Self {
        Field {
            name,
            format,
            nullable: false,
            children: Vec::new(),
            dictionary: None,
        }
    }

    pub fn u32(name: &'static str) -> Self {
        Field::new(name, c"I")
    }

    pub fn u64(name: &'static str) -> Self {
        Field::new(name, c"L")
    }

    pub fn bool(name: &'static str) -> Self {
        Field::new(name, c"b")
    }

    /// Text with 64-bit offsets.
    pub fn text(name: &'static str) -> Self {
        Field::new(name, c"U")
    }

    /// Texts by number.
    pub fn category(name: &'static str) -> Self {
        Field {
            dictionary: Some(Box::new(Field::text(""))),
            ..Field::new(name, c"I")
        }
    }

    /// Lists, with 64-bit offsets.
    pub fn list(name: &'static str, item: Field) -> Self {
        Field {
            children: vec![item],
            ..Field::new(name, c"+L")
        }
    }

    /// Rows with these columns.
    pub fn rows(columns: Vec<Field>) -> Self {
        Field {
            children: columns,
            ..Field::new("", c"+s")
        }
    }

    pub fn or_null(self) -> Self {
        Field {
            nullable: true,
            ..self
        }
    }
}

/// Memory that is shared and never changes.
#[derive(Clone)]
pub struct Buffer {
    _owner: Arc<dyn Any + Send + Sync>,
    start: *const c_void,
}

// SAFETY: the memory is that of the owner, which any thread can use, and never changes.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    pub fn start(&self) -> *const c_void {
        self.start
    }
}

impl<T: Send + Sync + 'static> From<Vec<T>> for Buffer {
    fn from(values: Vec<T>) -> Self {
        // A vector's memory stays where it is when the vector moves.
        let start = values.as_ptr().cast();
        Buffer {
            _owner: Arc::new(values),
            start,
        }
    }
}

/// The values of a column. Cheap to clone.
#[derive(Clone)]
pub struct Array {
    pub length: usize,
    pub null_count: usize,
    pub buffers: Vec<Option<Buffer>>,
    pub children: Vec<Array>,
    pub dictionary: Option<Arc<Array>>,
}

/// One bit a value, the first in the lowest bit.
fn bits(values: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.size_hint().0 / 8 + 1);
    for (index, value) in values.enumerate() {
        if index % 8 == 0 {
            bytes.push(0);
        }
        if value && let Some(last) = bytes.last_mut() {
            *last |= 1 << (index % 8);
        }
    }
    bytes
}

impl Array {
    fn of(length: usize, buffers: Vec<Option<Buffer>>) -> Self {
        Array {
            length,
            null_count: 0,
            buffers,
            children: Vec::new(),
            dictionary: None,
        }
    }

    pub fn numbers<T: Send + Sync + 'static>(values: Vec<T>) -> Self {
        Array::of(values.len(), vec![None, Some(values.into())])
    }

    pub fn bools(values: impl ExactSizeIterator<Item = bool>) -> Self {
        Array::of(values.len(), vec![None, Some(bits(values).into())])
    }

    /// Numbers, of which those that are `null` are none.
    pub fn numbers_or_null<T: PartialEq + Send + Sync + 'static>(values: Vec<T>, null: T) -> Self {
        let null_count = values.iter().filter(|value| **value == null).count();
        let valid = (null_count > 0).then(|| bits(values.iter().map(|value| *value != null)));
        let mut array = Array::numbers(values);
        array.null_count = null_count;
        array.buffers[0] = valid.map(Buffer::from);
        array
    }

    /// Texts by their numbers; [`NONE`] is none.
    pub fn categories(numbers: Vec<u32>, texts: Arc<Array>) -> Self {
        Array {
            dictionary: Some(texts),
            ..Array::numbers_or_null(numbers, NONE)
        }
    }

    /// Lists that end at each offset but the first.
    pub fn lists<T: Send + Sync + 'static>(offsets: Vec<usize>, values: Vec<T>) -> Self {
        const { assert!(size_of::<usize>() == size_of::<i64>()) };
        Array {
            children: vec![Array::numbers(values)],
            ..Array::of(offsets.len() - 1, vec![None, Some(offsets.into())])
        }
    }

    pub fn rows(length: usize, columns: Vec<Array>) -> Self {
        Array {
            children: columns,
            ..Array::of(length, vec![None])
        }
    }
}

/// The number of no text.
pub const NONE: u32 = u32::MAX;

/// Texts that are added one by one.
#[derive(Default)]
pub struct Texts {
    offsets: Vec<i64>,
    bytes: Vec<u8>,
}

impl Texts {
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    pub fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.offsets.push(self.bytes.len() as i64);
    }

    /// All texts so far.
    pub fn array(&self) -> Array {
        let offsets: Vec<i64> = std::iter::once(0)
            .chain(self.offsets.iter().copied())
            .collect();
        let buffers = vec![None, Some(offsets.into()), Some(self.bytes.clone().into())];
        Array::of(self.len(), buffers)
    }

    /// All texts, which are then forgotten.
    pub fn take(&mut self) -> Array {
        let array = self.array();
        *self = Texts::default();
        array
    }
}
