//! Reads and writes through pointers of the caller, checked as far as they can be.

use std::mem::{self, MaybeUninit};
use std::ptr;
use std::slice;

use crate::status::Failure;

/// A structure whose first field is its size, a `usize`, so that later versions can append fields. All-zero bytes are a
/// valid value, and the one that appended fields have for callers of earlier versions.
pub trait Versioned: Copy {}

/// The name of a structure in C.
fn name_of<T>() -> &'static str {
    let name = std::any::type_name::<T>();
    name.rsplit("::").next().unwrap_or(name)
}

/// Larger sizes are not believed.
const LARGEST: usize = 4096;

/// The size that a caller states, if it is one that a structure can have.
///
/// # Safety
///
/// `pointer` is null or points to a structure whose size is set.
unsafe fn stated_size<T: Versioned>(pointer: *const T) -> Result<usize, Failure> {
    let name = name_of::<T>();
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is null")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("{name} is misaligned")));
    }
    // SAFETY: the caller states that the first field can be read, and it is a `usize`.
    let size = unsafe { pointer.cast::<usize>().read() };
    match size {
        _ if (mem::size_of::<T>()..=LARGEST).contains(&size) => Ok(size),
        _ => Err(Failure::argument(format!(
            "the size of {name} is {size}, not {}: set it to sizeof",
            mem::size_of::<T>()
        ))),
    }
}

/// Reads options: `None` for null. Fields that only a later version knows must be zero.
///
/// # Safety
///
/// `pointer` is null or points to a structure whose size is set.
pub unsafe fn read_versioned<T: Versioned>(pointer: *const T) -> Result<Option<T>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller states.
    let size = unsafe { stated_size(pointer)? };
    let known = mem::size_of::<T>();
    // SAFETY: the structure has `size` bytes, as it states itself.
    let rest = unsafe { slice::from_raw_parts(pointer.cast::<u8>().add(known), size - known) };
    if rest.iter().any(|&byte| byte != 0) {
        return Err(Failure::argument(format!(
            "{} sets options that this version does not have",
            name_of::<T>()
        )));
    }
    // SAFETY: checked to be aligned and at least as large as `T`.
    Ok(Some(unsafe { pointer.read() }))
}

/// Writes a result without its size field; bytes that only a later version defines become zero.
///
/// # Safety
///
/// `pointer` is null or points to a structure whose size is set.
pub unsafe fn write_versioned<T: Versioned>(pointer: *mut T, value: T) -> Result<(), Failure> {
    // SAFETY: as the caller states.
    let size = unsafe { stated_size(pointer.cast_const())? };
    let known = mem::size_of::<T>();
    // SAFETY: the structure has `size` bytes, as it states itself, and nothing else refers to it.
    unsafe {
        pointer.write(value);
        pointer.cast::<usize>().write(size);
        pointer.cast::<u8>().add(known).write_bytes(0, size - known);
    }
    Ok(())
}

/// Writes a result.
///
/// # Safety
///
/// `pointer` is null or valid for a write.
pub unsafe fn write<T>(pointer: *mut T, name: &str, value: T) -> Result<(), Failure> {
    // SAFETY: as the caller states.
    unsafe { check_out(pointer, name)?.write(value) };
    Ok(())
}

/// Checks the pointer for a result before the result is computed.
///
/// # Safety
///
/// `pointer` is null or valid for a write as long as the result is used.
pub unsafe fn check_out<'a, T>(
    pointer: *mut T,
    name: &str,
) -> Result<&'a mut MaybeUninit<T>, Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{name} is null")));
    }
    if !pointer.is_aligned() {
        return Err(Failure::argument(format!("{name} is misaligned")));
    }
    // SAFETY: not null, aligned, and valid for a write, as the caller states.
    Ok(unsafe { &mut *pointer.cast::<MaybeUninit<T>>() })
}

/// The elements of an array; null is an empty one.
///
/// # Safety
///
/// `data` is null or points to `count` elements, which do not change while the result is in use.
pub unsafe fn array<'a, T>(data: *const T, count: usize, name: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(Failure::argument(format!("{name} is null")));
    }
    if !data.is_aligned() {
        return Err(Failure::argument(format!("{name} is misaligned")));
    }
    if count > isize::MAX as usize / mem::size_of::<T>().max(1) {
        return Err(Failure::argument(format!("{name} has {count} elements")));
    }
    // SAFETY: not null, aligned, of a possible size, and readable as the caller states.
    Ok(unsafe { slice::from_raw_parts(data, count) })
}

/// Copies at most `capacity` values.
///
/// # Safety
///
/// `out` is null or has room for `capacity` elements.
pub unsafe fn fill<T: Copy>(
    out: *mut T,
    capacity: usize,
    name: &str,
    values: &[T],
) -> Result<(), Failure> {
    let count = values.len().min(capacity);
    if count == 0 {
        return Ok(());
    }
    // SAFETY: as the caller states.
    unsafe { check_out(out, name)? };
    // SAFETY: both have `count` elements, and `values` is memory of this library.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr(), out, count) };
    Ok(())
}
