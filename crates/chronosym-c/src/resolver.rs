//! Batches of addresses and stacks.

use std::ffi::c_char;
use std::sync::{Arc, Mutex};

use chronosym::{
    AddressQuery, BatchQuery, FrameTable, Position, QueryProcess, ResolvedBatch, Resolver,
    StackQuery, SymbolSource, TextId,
};

use crate::boundary::{call, only};
use crate::handles::{self, Handle, handle};
use crate::pointers::{self, Versioned};
use crate::status::{Failure, chronosym_status};
use crate::symbols::chronosym_symbols;
use crate::timeline::chronosym_timeline;

/// A handle of a resolver, which caches answers. One thread at a time can use it: give each thread its own.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct chronosym_resolver {
    /// Zero is the null handle.
    pub id: u64,
}

handle!(chronosym_resolver, 3, "resolver", Mutex<ResolverObject>);

/// The kind of an address.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum chronosym_position {
    /// The address of an instruction: the innermost one of a CPU sample.
    Exact = 0,
    /// A return address: every other one of a stack.
    Return = 1,
}

/// An address of a process at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct chronosym_query {
    /// The address, as recorded in a stack.
    pub address: u64,
    /// ns since the trace began.
    pub time_ns: u64,
    /// The process id.
    pub pid: u32,
    /// A `chronosym_position`.
    pub position: u32,
}

impl BatchQuery for chronosym_query {
    fn is_valid(&self) -> bool {
        self.position <= 1
    }

    fn query(&self) -> AddressQuery {
        AddressQuery {
            process: QueryProcess::Pid(self.pid),
            address: self.address,
            time_ns: self.time_ns,
            position: match self.position {
                0 => Position::Exact,
                _ => Position::Return,
            },
        }
    }
}

/// A stack of a process at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct chronosym_stack {
    /// Addresses, innermost first. All but the innermost are return addresses.
    pub addresses: *const u64,
    /// Number of `addresses`.
    pub address_count: usize,
    /// ns since the trace began.
    pub time_ns: u64,
    /// The process id.
    pub pid: u32,
    /// A `chronosym_position`, that of the innermost address.
    pub position: u32,
}

/// A frame: the code at an address. Texts are indexes for `chronosym_rows`; text 0 is empty and
/// means none. `chronosym_name` returns the names of list values.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct chronosym_frame {
    /// Text: simple name of the module or image.
    pub module: u32,
    /// Text: the method with namespace and type; of native code the demangled symbol.
    pub method: u32,
    /// Text: the signature as the runtime spells it.
    pub signature: u32,
    /// Text: the source file.
    pub file: u32,
    /// The source line from 1, or 0.
    pub line: u32,
    /// The column in the source line from 1, or 0.
    pub column: u32,
    /// The number of the process in `chronosym_timeline_processes` if the code is a code body, else `UINT32_MAX`.
    pub process: u32,
    /// The number of the code body in its process, or `UINT32_MAX`; of an inlinee that of the body it is inlined into.
    pub body: u32,
    /// 1 if the frame is inlined into the next one that is not, else 0.
    pub inlined: u8,
    /// A value of `CHRONOSYM_LIST_TIER`, or 0.
    pub tier: u8,
    /// A value of `CHRONOSYM_LIST_EVIDENCE`, or 0.
    pub evidence: u8,
    /// A value of `CHRONOSYM_LIST_CERTAINTY`, or 0.
    pub certainty: u8,
    /// A value of `CHRONOSYM_LIST_NAME_REASON`: why there is no name, or not all of it; 0 for none.
    pub name_reason: u8,
    /// A value of `CHRONOSYM_LIST_LINE_REASON`: why a frame with a name has no line; 0 for none.
    pub line_reason: u8,
    /// Zero.
    pub reserved: [u8; 10],
}

/// The results of a batch. Pointers are valid until the next call with the same resolver.
///
/// The frames of query `q`, innermost first, are `frames[offsets[q]]` to `frames[offsets[q + 1] - 1]`: numbers of rows of
/// `table`, which has every distinct frame of the resolver so far. Text `t` begins at `texts + text_offsets[t]` and ends with
/// a zero; `text_offsets[t + 1]` is the offset after that zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct chronosym_rows {
    /// Set to `sizeof(chronosym_rows)`.
    pub size: usize,
    /// Number of queries.
    pub count: usize,
    /// Number of the first frame of each query, and the number of frames: `count + 1` elements.
    pub offsets: *const usize,
    /// Rows of `table`: `offsets[count]` elements.
    pub frames: *const u32,
    /// The distinct frames.
    pub table: *const chronosym_frame,
    /// Number of rows of `table`.
    pub table_count: usize,
    /// The texts, contiguous.
    pub texts: *const c_char,
    /// Offset of each text, and the number of bytes of all: `text_count + 1` elements.
    pub text_offsets: *const u64,
    /// Number of texts.
    pub text_count: usize,
}

impl Versioned for chronosym_rows {}

pub struct ResolverObject {
    resolver: Resolver,
    batch: ResolvedBatch,
    table: Vec<chronosym_frame>,
    texts: Vec<u8>,
    text_offsets: Vec<u64>,
}

impl ResolverObject {
    fn new(resolver: Resolver) -> Self {
        ResolverObject {
            resolver,
            batch: ResolvedBatch::default(),
            table: Vec::new(),
            // Text 0, with the zero after it.
            texts: vec![0],
            text_offsets: vec![0, 1],
        }
    }

    /// The answers to the last batch.
    fn rows(&mut self) -> chronosym_rows {
        let table = self.resolver.frame_table();
        for index in self.table.len()..table.len() {
            let [module, method, signature, file] = [
                table.module(),
                table.method(),
                table.signature(),
                table.file(),
            ]
            .map(|column| {
                add_text(
                    &mut self.texts,
                    &mut self.text_offsets,
                    table,
                    column[index],
                )
            });
            let (process, body) = match table.body()[index] {
                Some((process, body)) => (process.index() as u32, body.index() as u32),
                None => (u32::MAX, u32::MAX),
            };
            self.table.push(chronosym_frame {
                module,
                method,
                signature,
                file,
                line: table.line()[index],
                column: table.column()[index],
                process,
                body,
                inlined: table.inlined()[index].into(),
                tier: table.tier()[index].map_or(0, |it| it as u8 + 1),
                evidence: table.evidence()[index].map_or(0, |it| it as u8 + 1),
                certainty: table.certainty()[index].map_or(0, |it| it as u8 + 1),
                name_reason: table.reason()[index].map_or(0, |it| it as u8 + 1),
                line_reason: table.line_reason()[index].map_or(0, |it| it as u8 + 1),
                reserved: [0; 10],
            });
        }
        chronosym_rows {
            size: 0,
            count: self.batch.len(),
            offsets: self.batch.offsets().as_ptr(),
            // A `TableFrame` has the layout of a `u32`.
            frames: self.batch.frames().as_ptr().cast(),
            table: self.table.as_ptr(),
            table_count: self.table.len(),
            texts: self.texts.as_ptr().cast(),
            text_offsets: self.text_offsets.as_ptr(),
            text_count: self.text_offsets.len() - 1,
        }
    }
}

/// Adds a text if it is the next one: texts are numbered in the order in which frames first use
/// them.
fn add_text(texts: &mut Vec<u8>, offsets: &mut Vec<u64>, table: &FrameTable, id: TextId) -> u32 {
    if id.index() == offsets.len() - 1 {
        // In C a zero ends a text, so a name is cut at its first zero.
        let text = table.text(id).split('\0').next().unwrap_or_default();
        texts.extend_from_slice(text.as_bytes());
        texts.push(0);
        offsets.push(texts.len() as u64);
    }
    id.index() as u32
}

fn position_of(value: u32) -> Result<Position, Failure> {
    match value {
        0 => Ok(Position::Exact),
        1 => Ok(Position::Return),
        _ => Err(Failure::argument(format!(
            "{value} is not a chronosym_position"
        ))),
    }
}

/// Creates a resolver of a timeline, with names and lines of `symbols`, or only those in the trace if that is the null
/// handle. Free it with `chronosym_resolver_free`.
///
/// # Safety
///
/// `resolver` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_resolver_new(
    timeline: chronosym_timeline,
    symbols: chronosym_symbols,
    resolver: *mut chronosym_resolver,
) -> chronosym_status {
    call(|| {
        // SAFETY: as the caller states.
        let resolver = unsafe { pointers::check_out(resolver, "resolver")? };
        let timeline = handles::get(timeline)?;
        let symbols: Option<Arc<dyn SymbolSource>> = match symbols.id() {
            0 => None,
            _ => Some((*handles::get(symbols)?).clone()),
        };
        let object = ResolverObject::new(Resolver::new(&timeline.timeline, symbols));
        resolver.write(handles::add(Mutex::new(object))?);
        Ok(())
    })
}

/// Frees a handle. Rows of the resolver are no longer valid.
#[unsafe(no_mangle)]
pub extern "C" fn chronosym_resolver_free(resolver: chronosym_resolver) -> chronosym_status {
    call(|| handles::free(resolver))
}

/// Continues with a later timeline of the same live session. Rows of the table keep their numbers,
/// and only addresses whose answer may have changed are resolved again.
#[unsafe(no_mangle)]
pub extern "C" fn chronosym_resolver_advance(
    resolver: chronosym_resolver,
    timeline: chronosym_timeline,
) -> chronosym_status {
    call(|| {
        let object = handles::get(resolver)?;
        let timeline = handles::get(timeline)?;
        let mut object = only(&object, "resolver")?;
        object.resolver.advance_to(&timeline.timeline);
        Ok(())
    })
}

/// Runs a call with exclusive use of a resolver.
fn with_resolver(
    resolver: chronosym_resolver,
    work: impl FnOnce(&mut ResolverObject) -> Result<(), Failure>,
) -> chronosym_status {
    call(|| {
        let object = handles::get(resolver)?;
        let mut object = only(&object, "resolver")?;
        work(&mut object)
    })
}

/// Resolves addresses. Large batches use all cores.
///
/// # Safety
///
/// `queries` points to `count` elements; `rows` is null or points to a `chronosym_rows` whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_resolve(
    resolver: chronosym_resolver,
    queries: *const chronosym_query,
    count: usize,
    rows: *mut chronosym_rows,
) -> chronosym_status {
    with_resolver(resolver, |object| {
        // SAFETY: as the caller states.
        let queries = unsafe { pointers::array(queries, count, "queries")? };
        object.resolver.resolve_batch(queries, &mut object.batch);
        if object.batch.len() < queries.len() {
            for query in queries {
                position_of(query.position)?;
            }
        }
        // SAFETY: as the caller states.
        unsafe { pointers::write_versioned(rows, object.rows()) }
    })
}

/// Resolves stacks: the rows of each are the frames of all its addresses, innermost first.
///
/// # Safety
///
/// `stacks` points to `count` elements with valid addresses; `rows` is null or points to a `chronosym_rows` whose `size` is
/// set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_resolve_stacks(
    resolver: chronosym_resolver,
    stacks: *const chronosym_stack,
    count: usize,
    rows: *mut chronosym_rows,
) -> chronosym_status {
    with_resolver(resolver, |object| {
        // SAFETY: as the caller states.
        let stacks = unsafe { pointers::array(stacks, count, "stacks")? };
        let mut queries = Vec::with_capacity(stacks.len());
        for stack in stacks {
            queries.push(StackQuery {
                process: QueryProcess::Pid(stack.pid),
                // SAFETY: as the caller states.
                leaf_first: unsafe {
                    pointers::array(stack.addresses, stack.address_count, "addresses")?
                },
                time_ns: stack.time_ns,
                position: position_of(stack.position)?,
            });
        }
        object.resolver.resolve_stacks(&queries, &mut object.batch);
        // SAFETY: as the caller states.
        unsafe { pointers::write_versioned(rows, object.rows()) }
    })
}
