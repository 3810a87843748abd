//! Queries that a caller passes as an array of `chronosym.QUERY`, resolved where they are.

use std::slice;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use chronosym::{AddressQuery, BatchQuery, Position, QueryProcess};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// The fields of a query in the order of its layout, and their types as in numpy's `dtype`.
pub const QUERY: [(&str, &str); 4] = [
    ("address", "<u8"),
    ("time_ns", "<u8"),
    ("pid", "<u4"),
    ("is_return", "<u4"),
];

/// A query in the caller's memory. Atomic: other threads can change it while it is read.
#[repr(C)]
pub struct Query {
    address: AtomicU64,
    time_ns: AtomicU64,
    pid: AtomicU32,
    is_return: AtomicU32,
}

impl BatchQuery for Query {
    fn query(&self) -> AddressQuery {
        AddressQuery {
            process: QueryProcess::Pid(self.pid.load(Relaxed)),
            address: self.address.load(Relaxed),
            time_ns: self.time_ns.load(Relaxed),
            position: match self.is_return.load(Relaxed) {
                0 => Position::Exact,
                _ => Position::Return,
            },
        }
    }
}

/// An array of queries.
pub struct Queries(PyUntypedBuffer);

impl Queries {
    /// Checks that an argument has the layout of queries.
    pub fn of(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(value)
            .ok()
            .filter(|it| has_layout(&it.format().to_string_lossy(), it.item_size()));
        let Some(buffer) = buffer else {
            return Err(PyTypeError::new_err(format!(
                "queries must be an array of chronosym.QUERY, such as numpy.zeros(n, chronosym.QUERY), not {}",
                value
                    .repr()
                    .map_or_else(|_| String::new(), |it| it.to_string())
            )));
        };
        let is_aligned = buffer.buf_ptr().cast::<Query>().is_aligned();
        if buffer.dimensions() != 1 || !buffer.is_c_contiguous() || !is_aligned {
            let text = "queries must be one contiguous array: numpy.ascontiguousarray makes one";
            return Err(PyValueError::new_err(text));
        }
        Ok(Queries(buffer))
    }

    /// The queries.
    pub fn rows(&self) -> &[Query] {
        let count = self.0.item_count();
        if count == 0 {
            return &[];
        }
        // SAFETY: the exporter keeps `count` contiguous items in place while the buffer is held; each has the size, and
        // the pointer the alignment of a `Query`, of which every bit pattern is valid. Changes by others are atomic here.
        unsafe { slice::from_raw_parts(self.0.buf_ptr().cast(), count) }
    }
}

/// Whether items have the fields of [`QUERY`]: a format of the buffer protocol is `T{L:address:…}`, in which `Q` stands for 64
/// bits, `I` for 32, and `L` for one of them, by platform; which one, the size of an item tells.
fn has_layout(format: &str, size: usize) -> bool {
    let fields = format
        .strip_prefix("T{")
        .and_then(|it| it.strip_suffix(":}"));
    let mut parts = fields.unwrap_or_default().split(':');
    let mut has = |&(name, numpy): &(&str, &str)| {
        let letters = if numpy == "<u8" {
            ["Q", "L"]
        } else {
            ["I", "L"]
        };
        let letter = parts
            .next()
            .map(|it| it.trim_start_matches(['<', '=', '@']));
        letter.is_some_and(|it| letters.contains(&it)) && parts.next() == Some(name)
    };
    QUERY.iter().all(&mut has) && parts.next().is_none() && size == size_of::<Query>()
}
