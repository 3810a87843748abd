//! Numbers that a caller passes: one for all rows, a buffer such as a numpy array, an Arrow array or stream, or a sequence.

use std::ffi::{CStr, c_void};
use std::fmt::Display;
use std::slice;

use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::ffi::{ArrowArray, ArrowArrayStream, ArrowSchema};

/// A column of numbers, or one number for all rows.
pub enum Numbers {
    One(u64),
    Many(Vec<u64>),
}

impl Numbers {
    /// Reads the numbers of an argument, whose name is for messages.
    pub fn read(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        if let Ok(number) = value.extract::<i128>() {
            return Ok(Numbers::One(checked(number, name)?));
        }
        let numbers = if value.hasattr("__arrow_c_array__")? {
            let pair = value.call_method0("__arrow_c_array__")?;
            let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = pair.extract()?;
            of_array(&schema, &array, name)?
        } else if value.hasattr("__arrow_c_stream__")? {
            let stream = value.call_method0("__arrow_c_stream__")?;
            of_stream(stream.cast::<PyCapsule>()?, name)?
        } else if let Some(numbers) = of_buffer(value, name)? {
            numbers
        } else {
            let numbers: Vec<i128> = value.extract().map_err(|_| {
                let kind = value.get_type();
                PyTypeError::new_err(format!(
                    "{name} must be an integer, or an array or sequence of integers, not {kind}"
                ))
            })?;
            let numbers = numbers.into_iter().map(|it| checked(it, name));
            numbers.collect::<PyResult<_>>()?
        };
        Ok(Numbers::Many(numbers))
    }

    /// The number of rows, unless all have one number.
    pub fn rows(&self) -> Option<usize> {
        match self {
            Numbers::One(_) => None,
            Numbers::Many(numbers) => Some(numbers.len()),
        }
    }

    /// The number of a row.
    pub fn at(&self, row: usize) -> u64 {
        match self {
            Numbers::One(number) => *number,
            Numbers::Many(numbers) => numbers[row],
        }
    }
}

fn checked(number: impl TryInto<u64> + Copy + Display, name: &str) -> PyResult<u64> {
    let wrong = |_| PyValueError::new_err(format!("{name} has {number}: expected 0 to 2**64 - 1"));
    number.try_into().map_err(wrong)
}

fn all<T: Copy + TryInto<u64> + Display>(numbers: &[T], name: &str) -> PyResult<Vec<u64>> {
    numbers.iter().map(|&it| checked(it, name)).collect()
}

/// The numbers of an object with the buffer protocol.
fn of_buffer(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Vec<u64>>> {
    fn read<T: Element + Copy + TryInto<u64> + Display>(
        value: &Bound<'_, PyAny>,
        name: &str,
    ) -> PyResult<Option<Vec<u64>>> {
        let Ok(buffer) = PyBuffer::<T>::get(value) else {
            return Ok(None);
        };
        if buffer.dimensions() != 1 {
            let text = format!("{name} has {} dimensions: expected 1", buffer.dimensions());
            return Err(PyValueError::new_err(text));
        }
        all(&buffer.to_vec(value.py())?, name).map(Some)
    }
    for read in [read::<u64>, read::<i64>, read::<u32>, read::<i32>] {
        if let Some(numbers) = read(value, name)? {
            return Ok(Some(numbers));
        }
    }
    Ok(None)
}

fn pointer<T>(capsule: &Bound<'_, PyCapsule>, name: &CStr) -> PyResult<*mut T> {
    Ok(capsule.pointer_checked(Some(name))?.as_ptr().cast())
}

fn of_array(
    schema: &Bound<'_, PyCapsule>,
    array: &Bound<'_, PyCapsule>,
    name: &str,
) -> PyResult<Vec<u64>> {
    let schema = pointer::<ArrowSchema>(schema, c"arrow_schema")?;
    let array = pointer::<ArrowArray>(array, c"arrow_array")?;
    let mut numbers = Vec::new();
    // SAFETY: capsules of these names hold these structures, which their makers filled.
    unsafe { push_numbers(&*schema, &*array, name, &mut numbers)? };
    Ok(numbers)
}

fn of_stream(stream: &Bound<'_, PyCapsule>, name: &str) -> PyResult<Vec<u64>> {
    let stream = pointer::<ArrowArrayStream>(stream, c"arrow_array_stream")?;
    let failed = || PyValueError::new_err(format!("the stream of {name} failed"));
    let mut numbers = Vec::new();
    let mut schema = ArrowSchema::empty();
    // SAFETY: a capsule of this name holds a stream, whose functions its maker set; it is used by this thread only.
    unsafe {
        let get_schema = (*stream).get_schema.ok_or_else(failed)?;
        let get_next = (*stream).get_next.ok_or_else(failed)?;
        if get_schema(stream, &mut schema) != 0 {
            return Err(failed());
        }
        loop {
            let mut array = ArrowArray::empty();
            if get_next(stream, &mut array) != 0 {
                return Err(failed());
            }
            if array.release.is_none() {
                return Ok(numbers);
            }
            push_numbers(&schema, &array, name, &mut numbers)?;
        }
    }
}

/// Appends the numbers of an array.
///
/// # Safety
///
/// The structures are as the standard states.
unsafe fn push_numbers(
    schema: &ArrowSchema,
    array: &ArrowArray,
    name: &str,
    numbers: &mut Vec<u64>,
) -> PyResult<()> {
    let format = String::from_utf8_lossy(schema.format()).into_owned();
    if array.length == 0 {
        return Ok(());
    }
    if array.n_buffers != 2 || !schema.dictionary.is_null() {
        return Err(PyTypeError::new_err(format!(
            "{name} must have integers, not values of the Arrow type {format}"
        )));
    }
    // SAFETY: an array of a primitive type has two buffers.
    let (valid, values) = unsafe { (*array.buffers, *array.buffers.add(1)) };
    let (offset, length) = (array.offset as usize, array.length as usize);
    if array.null_count != 0 && !valid.is_null() {
        let has = |row: usize| {
            let bit = offset + row;
            // SAFETY: the buffer has a bit for each value.
            unsafe { *valid.cast::<u8>().add(bit / 8) >> (bit % 8) & 1 == 1 }
        };
        if !(0..length).all(has) {
            return Err(PyValueError::new_err(format!("{name} has nulls")));
        }
    }
    // SAFETY: the buffer has `offset + length` values of the type that the format states.
    numbers.extend(unsafe {
        match &*format {
            "L" => read_all::<u64>(values, offset, length, name),
            "l" => read_all::<i64>(values, offset, length, name),
            "I" => read_all::<u32>(values, offset, length, name),
            "i" => read_all::<i32>(values, offset, length, name),
            // Times and durations of 64 bits.
            it if it.starts_with("tD") || it.starts_with("ts") => {
                read_all::<i64>(values, offset, length, name)
            }
            _ => Err(PyTypeError::new_err(format!(
                "{name} must have integers of 32 or 64 bits, not values of the Arrow type {format}"
            ))),
        }
    }?);
    Ok(())
}

/// # Safety
///
/// At `values` are `offset + length` numbers.
unsafe fn read_all<T: Copy + TryInto<u64> + Display>(
    values: *const c_void,
    offset: usize,
    length: usize,
    name: &str,
) -> PyResult<Vec<u64>> {
    // SAFETY: as the caller states.
    all(
        unsafe { slice::from_raw_parts(values.cast::<T>().add(offset), length) },
        name,
    )
}
