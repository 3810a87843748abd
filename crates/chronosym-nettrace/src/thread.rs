//! V6 thread entries, which events refer to by index.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "counts of what was read, and the last place of a list that is not empty"
)]

use chronosym_types::Cursor;
use chronosym_types::hash::HashMap;

use crate::diagnostics::Diagnostics;
use crate::fault::{Fault, Parsed};

/// A thread as described by a V6 file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Thread {
    /// Index by which the file's events name the thread.
    pub index: u64,
    /// Thread name; may be empty.
    pub name: String,
    /// Process of the thread.
    pub process_id: Option<u32>,
    /// OS thread id; 0 in entries that describe a whole process.
    pub thread_id: Option<u64>,
    /// Further key-value pairs.
    pub key_values: Vec<(String, String)>,
}

pub(crate) const NO_THREAD: u64 = u64::MAX;

/// Entries live in slots: a removed entry is kept until the end of the region that may still refer
/// to it.
#[derive(Default)]
pub(crate) struct Threads {
    slots: Vec<Thread>,
    by_index: HashMap<u64, usize>,
    removed: Vec<usize>,
    free: Vec<usize>,
    clear_pending: bool,
}

impl Threads {
    /// Slot of a thread index or [`NO_THREAD`].
    pub(crate) fn find(&self, index: u64) -> u64 {
        self.by_index
            .get(&index)
            .map_or(NO_THREAD, |&slot| slot as u64)
    }

    pub(crate) fn get(&self, slot: u64) -> Option<&Thread> {
        self.slots.get(usize::try_from(slot).ok()?)
    }

    pub(crate) fn thread_id(&self, index: u64) -> Option<u64> {
        self.get(self.find(index))?.thread_id
    }

    /// Forgets all entries at the end of the region.
    pub(crate) fn clear_later(&mut self) {
        self.clear_pending = true;
    }

    /// Frees the state that only the preceding region could refer to.
    pub(crate) fn begin_region(&mut self) {
        if std::mem::take(&mut self.clear_pending) {
            *self = Self::default();
        }
        self.free.append(&mut self.removed);
    }

    pub(crate) fn remove(&mut self, index: u64) {
        self.removed.extend(self.by_index.remove(&index));
    }

    /// Reads one entry: an index, then options. Options before an unknown one are kept.
    pub(crate) fn read_entry(&mut self, entry: &[u8], diagnostics: &mut Diagnostics) -> Parsed<()> {
        let mut cursor = Cursor::new(entry);
        let mut thread = Thread {
            index: cursor.var_u64()?,
            ..Thread::default()
        };
        let read = thread.read_options(&mut cursor, diagnostics);
        let index = thread.index;
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(old) = self.slots.get_mut(slot) {
                    *old = thread;
                }
                slot
            }
            None => {
                self.slots.push(thread);
                self.slots.len() - 1
            }
        };
        self.removed.extend(self.by_index.insert(index, slot));
        read
    }
}

impl Thread {
    fn read_options(
        &mut self,
        cursor: &mut Cursor<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Parsed<()> {
        while !cursor.is_at_end() {
            match cursor.u8()? {
                1 => self.name = cursor.var_text()?.to_string(),
                2 => {
                    self.process_id =
                        Some(u32::try_from(cursor.var_u64()?).map_err(|_| Fault::Bad)?)
                }
                3 => self.thread_id = Some(cursor.var_u64()?),
                4 => self.key_values.push((
                    cursor.var_text()?.to_string(),
                    cursor.var_text()?.to_string(),
                )),
                // Options have no size, so the end of an unknown one is unknown.
                _ => {
                    diagnostics.unknown_options += 1;
                    break;
                }
            }
        }
        Ok(())
    }
}
