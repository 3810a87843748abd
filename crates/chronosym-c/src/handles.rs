//! The table of all objects to which callers have handles.
//!
//! A handle is a number: the kind of its object, the row, and the generation of the row, which
//! changes whenever the row is freed. A freed or invented handle therefore finds nothing, and no
//! handle is a pointer.

use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::{process, ptr};

use crate::status::{Failure, chronosym_status};

/// A type of handles.
pub trait Handle: Copy {
    /// What a handle refers to.
    type Object: Send + Sync + 'static;
    /// Distinguishes types of handles, from 1.
    const KIND: u8;
    /// The type's name in messages.
    const NAME: &'static str;

    /// A handle of an id.
    fn of(id: u64) -> Self;
    /// The id of a handle.
    fn id(self) -> u64;
}

/// Implements [`Handle`] for a structure with a field `id`.
macro_rules! handle {
    ($name:ident, $kind:literal, $text:literal, $object:ty) => {
        impl $crate::handles::Handle for $name {
            type Object = $object;
            const KIND: u8 = $kind;
            const NAME: &'static str = $text;

            fn of(id: u64) -> Self {
                $name { id }
            }

            fn id(self) -> u64 {
                self.id
            }
        }
    };
}
pub(crate) use handle;

/// Maximum number of objects at a time.
const MOST: usize = 1 << 24;

struct Row {
    generation: u32,
    object: Option<Arc<dyn Any + Send + Sync>>,
}

#[derive(Default)]
struct Rows {
    all: Vec<Row>,
    free: Vec<usize>,
}

/// The objects of one process.
struct Table {
    process: u32,
    /// Generation of the first objects; differs in each process.
    first_generation: u32,
    rows: RwLock<Rows>,
}

impl Table {
    /// The table of this process. A forked process gets a new one, because another thread of the
    /// parent may have held a lock of the old one during the fork.
    fn of_process() -> &'static Table {
        static LATEST: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());
        let process = process::id();
        let latest = LATEST.load(Ordering::Acquire);
        // SAFETY: a table that was ever stored is never freed.
        if let Some(table) = unsafe { latest.as_ref() }
            && table.process == process
        {
            return table;
        }
        let new = Box::into_raw(Box::new(Table {
            process,
            first_generation: RandomState::new().hash_one(process) as u32,
            rows: RwLock::default(),
        }));
        match LATEST.compare_exchange(latest, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it is never freed from now on.
            Ok(_) => unsafe { &*new },
            Err(other) => {
                // SAFETY: no other thread has seen `new`, and `other` was stored: it is never
                // freed.
                unsafe {
                    drop(Box::from_raw(new));
                    &*other
                }
            }
        }
    }
}

fn id_of<H: Handle>(row: usize, generation: u32) -> u64 {
    u64::from(H::KIND) << 56 | (row as u64) << 32 | u64::from(generation)
}

/// The row and the generation of a handle.
fn parts<H: Handle>(handle: H) -> Result<(usize, u32), Failure> {
    let (id, name) = (handle.id(), H::NAME);
    let invalid = |text| Failure::new(chronosym_status::InvalidHandle, text);
    if id == 0 {
        return Err(invalid(format!("the handle of the {name} is null")));
    }
    if (id >> 56) as u8 != H::KIND {
        return Err(invalid(format!("the handle is not one of a {name}")));
    }
    Ok(((id >> 32) as usize & (MOST - 1), id as u32))
}

fn gone<H: Handle>() -> Failure {
    Failure::new(
        chronosym_status::InvalidHandle,
        format!(
            "there is no {} with this handle: it was freed, or belongs to another process",
            H::NAME
        ),
    )
}

/// Adds an object.
pub fn add<H: Handle>(object: H::Object) -> Result<H, Failure> {
    share::<H>(Arc::new(object))
}

/// Adds a handle of an object that may have others.
pub fn share<H: Handle>(object: Arc<H::Object>) -> Result<H, Failure> {
    let table = Table::of_process();
    let mut rows = table.rows.write().unwrap_or_else(PoisonError::into_inner);
    let row = match rows.free.pop() {
        Some(row) => row,
        None if rows.all.len() < MOST => {
            rows.all.push(Row {
                generation: table.first_generation,
                object: None,
            });
            rows.all.len() - 1
        }
        None => {
            let text = format!("{MOST} objects exist at once");
            return Err(Failure::new(chronosym_status::Limit, text));
        }
    };
    rows.all[row].object = Some(object);
    Ok(H::of(id_of::<H>(row, rows.all[row].generation)))
}

/// Returns the object of a handle. It lives at least as long as the result, even if the handle is
/// freed.
pub fn get<H: Handle>(handle: H) -> Result<Arc<H::Object>, Failure> {
    let (row, generation) = parts(handle)?;
    let table = Table::of_process();
    let rows = table.rows.read().unwrap_or_else(PoisonError::into_inner);
    let row = rows.all.get(row).filter(|row| row.generation == generation);
    let object = row
        .and_then(|row| row.object.clone())
        .ok_or_else(gone::<H>)?;
    object.downcast().map_err(|_| gone::<H>())
}

/// Removes a handle.
pub fn free<H: Handle>(handle: H) -> Result<(), Failure> {
    let object = get(handle)?;
    let (index, generation) = parts(handle)?;
    let table = Table::of_process();
    let mut rows = table.rows.write().unwrap_or_else(PoisonError::into_inner);
    let row = &mut rows.all[index];
    // Another thread may have removed it first.
    if row.generation != generation || row.object.take().is_none() {
        return Err(gone::<H>());
    }
    row.generation = row.generation.wrapping_add(1);
    rows.free.push(index);
    // Drop the object after releasing the lock: dropping can take long.
    drop(rows);
    drop(object);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, PartialEq, Debug)]
    struct Number {
        id: u64,
    }
    handle!(Number, 250, "number", u32);

    #[derive(Clone, Copy)]
    struct Word {
        id: u64,
    }
    handle!(Word, 251, "word", String);

    #[test]
    fn freed_foreign_and_invented_handles_find_nothing() {
        let first: Number = add(7).unwrap();
        assert_eq!(*get(first).unwrap(), 7);
        let second: Number = share(get(first).unwrap()).unwrap();
        free(first).unwrap();
        assert!(get(first).is_err());
        assert!(free(first).is_err());
        let third: Number = add(8).unwrap();
        assert_ne!(first, third);
        assert_eq!(*get(second).unwrap(), 7);
        assert!(get(Number { id: 0 }).is_err());
        assert!(get(Word { id: third.id }).is_err());
        let kind = 251_u64 << 56 | (third.id & ((1 << 56) - 1));
        assert!(get(Word { id: kind }).is_err());
        assert!(
            get(Number {
                id: third.id ^ 1 << 40
            })
            .is_err()
        );
        let _ = Word::of(3).id();
    }
}
