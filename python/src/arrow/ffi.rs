//! The structures of the Arrow C data interface and C stream interface
//! (arrow.apache.org/docs/format/CDataInterface.html), and what they are made of.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use super::data::{Array, Field};

/// A type and its name, as the standard lays it out.
#[repr(C)]
pub struct ArrowSchema {
    pub format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    pub n_children: i64,
    pub children: *mut *mut ArrowSchema,
    pub dictionary: *mut ArrowSchema,
    release: Option<unsafe extern "C" fn(*mut ArrowSchema)>,
    private_data: *mut c_void,
}

/// Values, as the standard lays them out.
#[repr(C)]
pub struct ArrowArray {
    pub length: i64,
    pub null_count: i64,
    pub offset: i64,
    pub n_buffers: i64,
    n_children: i64,
    pub buffers: *mut *const c_void,
    children: *mut *mut ArrowArray,
    dictionary: *mut ArrowArray,
    pub release: Option<unsafe extern "C" fn(*mut ArrowArray)>,
    private_data: *mut c_void,
}

/// Arrays one after the other, as the standard lays them out.
#[repr(C)]
pub struct ArrowArrayStream {
    pub get_schema: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowSchema) -> c_int>,
    pub get_next: Option<unsafe extern "C" fn(*mut ArrowArrayStream, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut ArrowArrayStream)>,
    private_data: *mut c_void,
}

// SAFETY: the standard lets any thread use and release a structure, one at a time.
unsafe impl Send for ArrowSchema {}
// SAFETY: as above.
unsafe impl Send for ArrowArray {}
// SAFETY: as above.
unsafe impl Send for ArrowArrayStream {}

/// The structure is nullable.
const NULLABLE: i64 = 2;

/// What a schema points to.
struct SchemaOwner {
    _name: CString,
    children: Vec<*mut ArrowSchema>,
    dictionary: *mut ArrowSchema,
}

/// What an array points to.
struct ArrayOwner {
    buffers: Vec<*const c_void>,
    children: Vec<*mut ArrowArray>,
    dictionary: *mut ArrowArray,
    _array: Array,
}

impl ArrowSchema {
    /// The schema of a field.
    pub fn of(field: &Field) -> Self {
        let name = CString::new(field.name).unwrap_or_default();
        let boxed = |field: &Field| Box::into_raw(Box::new(ArrowSchema::of(field)));
        let children: Vec<_> = field.children.iter().map(boxed).collect();
        let dictionary = field.dictionary.as_deref().map_or(ptr::null_mut(), boxed);
        let mut owner = Box::new(SchemaOwner {
            _name: name,
            children,
            dictionary,
        });
        ArrowSchema {
            format: field.format.as_ptr(),
            name: owner._name.as_ptr(),
            metadata: ptr::null(),
            flags: if field.nullable { NULLABLE } else { 0 },
            n_children: owner.children.len() as i64,
            children: owner.children.as_mut_ptr(),
            dictionary,
            release: Some(release_schema),
            private_data: Box::into_raw(owner).cast(),
        }
    }

    /// A structure that is filled by somebody else.
    pub fn empty() -> Self {
        ArrowSchema {
            format: ptr::null(),
            name: ptr::null(),
            metadata: ptr::null(),
            flags: 0,
            n_children: 0,
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }

    /// The format, which tells the type.
    pub fn format(&self) -> &[u8] {
        match self.format.is_null() {
            true => b"",
            // SAFETY: by the C data interface, a format ends with a zero and lives as long as the schema.
            false => unsafe { CStr::from_ptr(self.format) }.to_bytes(),
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: called once, with a schema of `ArrowSchema::of`, which has this owner.
    unsafe {
        let owner = Box::from_raw((*schema).private_data.cast::<SchemaOwner>());
        for &child in owner.children.iter().chain([&owner.dictionary]) {
            if !child.is_null() {
                drop(Box::from_raw(child));
            }
        }
        (*schema).release = None;
    }
}

impl Drop for ArrowSchema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a schema whose `release` is set has not been released or moved.
            unsafe { release(self) };
        }
    }
}

impl ArrowArray {
    /// The values of an array, which keep it.
    pub fn of(array: &Array) -> Self {
        let boxed = |array: &Array| Box::into_raw(Box::new(ArrowArray::of(array)));
        let buffers = array.buffers.iter();
        let buffers = buffers.map(|buffer| buffer.as_ref().map_or(ptr::null(), |it| it.start()));
        let mut owner = Box::new(ArrayOwner {
            buffers: buffers.collect(),
            children: array.children.iter().map(boxed).collect(),
            dictionary: array.dictionary.as_deref().map_or(ptr::null_mut(), boxed),
            _array: array.clone(),
        });
        ArrowArray {
            length: array.length as i64,
            null_count: array.null_count as i64,
            offset: 0,
            n_buffers: owner.buffers.len() as i64,
            n_children: owner.children.len() as i64,
            buffers: owner.buffers.as_mut_ptr(),
            children: owner.children.as_mut_ptr(),
            dictionary: owner.dictionary,
            release: Some(release_array),
            private_data: Box::into_raw(owner).cast(),
        }
    }

    /// A structure that is filled by somebody else; released, which ends a stream.
    pub fn empty() -> Self {
        ArrowArray {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: called once, with an array of `ArrowArray::of`, which has this owner.
    unsafe {
        let owner = Box::from_raw((*array).private_data.cast::<ArrayOwner>());
        for &child in owner.children.iter().chain([&owner.dictionary]) {
            if !child.is_null() {
                drop(Box::from_raw(child));
            }
        }
        (*array).release = None;
    }
}

impl Drop for ArrowArray {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: an array whose `release` is set has not been released or moved.
            unsafe { release(self) };
        }
    }
}

/// Makes the arrays of a stream.
pub type Next = Box<dyn FnMut() -> Result<Option<Array>, String> + Send>;

struct StreamOwner {
    field: Field,
    next: Next,
    error: CString,
}

impl ArrowArrayStream {
    /// A stream of arrays of a field.
    pub fn of(field: Field, next: Next) -> Self {
        let owner = Box::new(StreamOwner {
            field,
            next,
            error: CString::default(),
        });
        ArrowArrayStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release_stream),
            private_data: Box::into_raw(owner).cast(),
        }
    }
}

/// The standard's code of a failure whose text is in `get_last_error`.
const FAILED: c_int = 5;

unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: a stream of `ArrowArrayStream::of` that is not released, and a place for a schema.
    unsafe {
        let owner = &*(*stream).private_data.cast::<StreamOwner>();
        out.write(ArrowSchema::of(&owner.field));
    }
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
    // SAFETY: a stream of `ArrowArrayStream::of` that is not released, used by one thread at a time.
    let owner = unsafe { &mut *(*stream).private_data.cast::<StreamOwner>() };
    let next = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (owner.next)()));
    let array = match next.unwrap_or_else(|_| Err("internal error; please report it".to_owned())) {
        Ok(Some(array)) => ArrowArray::of(&array),
        Ok(None) => ArrowArray::empty(),
        Err(error) => {
            owner.error = CString::new(error.replace('\0', "")).unwrap_or_default();
            return FAILED;
        }
    };
    // SAFETY: a place for an array.
    unsafe { out.write(array) };
    0
}

unsafe extern "C" fn get_last_error(stream: *mut ArrowArrayStream) -> *const c_char {
    // SAFETY: a stream of `ArrowArrayStream::of` that is not released.
    unsafe {
        (*(*stream).private_data.cast::<StreamOwner>())
            .error
            .as_ptr()
    }
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: called once, with a stream of `ArrowArrayStream::of`.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<StreamOwner>()));
        (*stream).release = None;
    }
}

impl Drop for ArrowArrayStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a stream whose `release` is set has not been released or moved.
            unsafe { release(self) };
        }
    }
}
