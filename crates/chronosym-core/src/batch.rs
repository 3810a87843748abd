//! Resolves many addresses or stacks at once, to numbers of frames in columns.

use std::mem;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::frame_table::{FrameTable, TableFrame};
use crate::ids::ProcessIndex;
use crate::resolve::AddressAt;
use crate::resolver::{FrameCache, Resolver};
use crate::terms::Position;
use crate::timeline::Timeline;

/// Identifies the process of a query.
///
/// Closed: a process is named by its id or its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueryProcess {
    /// The process of this id at the time of the query ([`Timeline::process_of`]).
    Pid(u32),
    /// A process of the timeline.
    Index(ProcessIndex),
}

/// An address of a process at a time.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressQuery {
    /// The process.
    pub process: QueryProcess,
    /// The address, as a stack has it.
    pub address: u64,
    /// ns since the trace began.
    pub time_ns: u64,
    /// Whether it is an instruction or a return address.
    pub position: Position,
}

/// A query in a caller's own layout, such as that of another language: a batch of them is resolved
/// without a copy.
pub trait BatchQuery: Sync {
    /// Returns the query.
    fn query(&self) -> AddressQuery;

    /// Returns false for one with values that mean nothing: its batch gets no answers.
    fn is_valid(&self) -> bool {
        true
    }
}

impl BatchQuery for AddressQuery {
    fn query(&self) -> AddressQuery {
        *self
    }
}

/// A stack of a process at a time.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackQuery<'a> {
    /// The process.
    pub process: QueryProcess,
    /// Addresses, innermost first.
    pub leaf_first: &'a [u64],
    /// ns since the trace began.
    pub time_ns: u64,
    /// The position of the innermost address; the others are return addresses.
    pub position: Position,
}

/// The frames of each query of a batch. When it is reused for another batch, it allocates only if
/// that is larger.
#[derive(Clone, Debug, Default)]
pub struct ResolvedBatch {
    offsets: Vec<usize>,
    frames: Vec<TableFrame>,
    /// The frames of each address in the resolver.
    cached: Vec<Option<Cached>>,
    /// The addresses of stacks.
    addresses: Vec<AddressQuery>,
}

/// The first frame of an address in a resolver, and the number of frames.
type Cached = (u32, u32);

impl ResolvedBatch {
    /// Removes the answers of the batch before, and makes room for those of `queries`.
    fn start(&mut self, queries: usize) {
        self.offsets.clear();
        self.offsets.reserve(queries + 1);
        self.offsets.push(0);
        self.frames.clear();
        self.frames.reserve(queries);
    }

    /// Returns the number of queries.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Returns whether there was no query.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the frames of a query, innermost first; empty if the batch has no such query.
    pub fn frames_of(&self, query: usize) -> &[TableFrame] {
        match self.offsets.get(query..) {
            Some([start, end, ..]) => &self.frames[*start..*end],
            _ => &[],
        }
    }

    /// Returns the offset in [`frames`](Self::frames) of the first frame of each query, and the
    /// number of frames.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Returns the frames of all queries, in the order of the queries.
    pub fn frames(&self) -> &[TableFrame] {
        &self.frames
    }

    /// Removes and returns [`offsets`](Self::offsets) and [`frames`](Self::frames), for callers that keep them without a
    /// copy.
    pub fn take_rows(&mut self) -> (Vec<usize>, Vec<TableFrame>) {
        (mem::take(&mut self.offsets), mem::take(&mut self.frames))
    }
}

/// Minimum number of addresses for each thread.
const THREAD: usize = 1 << 15;

impl Resolver {
    /// Resolves addresses; `batch` then has the frames of each query, as numbers of
    /// [`frame_table`](Self::frame_table).
    ///
    /// The frames are those of [`Timeline::frames`]. Addresses that were resolved before are looked
    /// up on all cores in large batches; nothing is allocated for each query. If a query is not valid
    /// ([`BatchQuery::is_valid`]), `batch` is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Method};
    /// use chronosym_core::{Action, AddressQuery, Options, Position, QueryProcess, ResolvedBatch, Resolver, Session};
    ///
    /// let mut session = Session::new(Options::default());
    /// let at = At::new(0).process(42);
    /// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
    /// let timeline = session.finish();
    ///
    /// let mut resolver = Resolver::new(&timeline, None);
    /// let mut batch = ResolvedBatch::default();
    /// let query = AddressQuery {
    ///     process: QueryProcess::Pid(42),
    ///     address: 0x1010,
    ///     time_ns: 100,
    ///     position: Position::Exact,
    /// };
    /// resolver.resolve_batch(&[query, AddressQuery { address: 0x9000, ..query }], &mut batch);
    ///
    /// let table = resolver.frame_table();
    /// let [known, unknown] = [0, 1].map(|query| batch.frames_of(query)[0].index());
    /// assert_eq!(table.text(table.method()[known]), "Ns.Type.Run");
    /// assert!(table.reason()[unknown].is_some());
    /// ```
    pub fn resolve_batch<Q: BatchQuery>(&mut self, queries: &[Q], batch: &mut ResolvedBatch) {
        if !self.find_frames(queries, batch) {
            return batch.start(0);
        }
        batch.start(queries.len());
        for &(first, count) in batch.cached.iter().flatten() {
            self.push_table_frames(first, count, &mut batch.frames);
            batch.offsets.push(batch.frames.len());
        }
    }

    /// Like [`resolve_batch`](Self::resolve_batch), for stacks: returns the frames of all addresses
    /// of a stack, innermost first.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Method};
    /// use chronosym_core::{Action, Options, Position, QueryProcess, ResolvedBatch, Resolver, Session, StackQuery};
    ///
    /// let mut session = Session::new(Options::default());
    /// let at = At::new(0).process(42);
    /// session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", ""));
    /// session.apply(at, Method::new(Action::Load, 2, 0x2000, 64).named("Ns.Type", "Main", ""));
    /// let timeline = session.finish();
    ///
    /// let mut resolver = Resolver::new(&timeline, None);
    /// let mut batch = ResolvedBatch::default();
    /// let stack = StackQuery {
    ///     process: QueryProcess::Pid(42),
    ///     leaf_first: &[0x1010, 0x2020],
    ///     time_ns: 100,
    ///     position: Position::Exact,
    /// };
    /// resolver.resolve_stacks(&[stack], &mut batch);
    /// let table = resolver.frame_table();
    /// let names: Vec<_> = batch.frames_of(0).iter().map(|frame| table.text(table.method()[frame.index()])).collect();
    /// assert_eq!(names, ["Ns.Type.Run", "Ns.Type.Main"]);
    /// ```
    pub fn resolve_stacks(&mut self, stacks: &[StackQuery<'_>], batch: &mut ResolvedBatch) {
        let mut addresses = mem::take(&mut batch.addresses);
        addresses.clear();
        for stack in stacks {
            let mut callee = None;
            addresses.extend(stack.leaf_first.iter().map(|&address| {
                let callee = callee.replace(address);
                AddressQuery {
                    process: stack.process,
                    address,
                    time_ns: stack.time_ns,
                    position: callee.map_or(stack.position, |callee| {
                        self.timeline().caller_position(callee, address)
                    }),
                }
            }));
        }
        self.find_frames(&addresses, batch);
        batch.start(stacks.len());
        let mut cached = batch.cached.iter().flatten();
        for stack in stacks {
            for &(first, count) in cached.by_ref().take(stack.leaf_first.len()) {
                self.push_table_frames(first, count, &mut batch.frames);
            }
            batch.offsets.push(batch.frames.len());
        }
        batch.addresses = addresses;
    }

    /// Returns the distinct frames of all batches so far, in columns.
    pub fn frame_table(&self) -> &FrameTable {
        &self.table
    }

    /// Finds the frames of each address: cached ones on all cores, then the others. Returns whether
    /// all queries are valid.
    fn find_frames<Q: BatchQuery>(&mut self, queries: &[Q], batch: &mut ResolvedBatch) -> bool {
        batch.cached.clear();
        batch.cached.resize(queries.len(), None);
        if !look_up_all(self.cache(), queries, &mut batch.cached) {
            return false;
        }
        let timeline = self.timeline().clone();
        let mut processes = Processes::new(&timeline);
        for (query, cached) in queries.iter().zip(&mut batch.cached) {
            if cached.is_none() {
                let (_, frames) = self.frames_at(processes.at(&query.query()), None, true);
                *cached = Some((frames.start, frames.len() as u32));
            }
        }
        self.fill_table();
        true
    }

    #[inline]
    fn push_table_frames(&self, first: u32, count: u32, frames: &mut Vec<TableFrame>) {
        let range = first as usize..(first + count) as usize;
        frames.extend_from_slice(&self.table_frames[range]);
    }

    /// Adds the frames since the last batch to the table.
    fn fill_table(&mut self) {
        for frame in self.table_frames.len()..self.frames().len() {
            let frame = &self.frames[frame];
            self.table_frames.push(self.table.insert(frame));
        }
    }
}

/// Like [`look_up`]; large batches use all cores.
fn look_up_all<Q: BatchQuery>(
    cache: FrameCache<'_>,
    queries: &[Q],
    cached: &mut [Option<Cached>],
) -> bool {
    if queries.len() < 2 * THREAD {
        return look_up(cache, queries, cached);
    }
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let chunk = queries.len().div_ceil(cores).max(THREAD);
    let chunks = queries.chunks(chunk).zip(cached.chunks_mut(chunk));
    let others = chunks.len().saturating_sub(1);
    let chunks = Mutex::new(chunks);
    let next = || chunks.lock().unwrap_or_else(PoisonError::into_inner).next();
    let are_valid = AtomicBool::new(true);
    let work = || {
        while let Some((queries, cached)) = next() {
            if !look_up(cache, queries, cached) {
                are_valid.store(false, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        // If a thread cannot be spawned, the others take its chunks.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).is_ok();
        (0..others).all(spawn);
        work();
    });
    are_valid.into_inner()
}

/// Looks up the cached frames of addresses. Returns whether all queries are valid.
fn look_up<Q: BatchQuery>(
    cache: FrameCache<'_>,
    queries: &[Q],
    cached: &mut [Option<Cached>],
) -> bool {
    let mut processes = Processes::new(cache.timeline);
    let mut are_valid = true;
    for (query, cached) in queries.iter().zip(cached) {
        are_valid &= query.is_valid();
        let frames = cache.frames(processes.at(&query.query()));
        *cached = frames.map(|frames| (frames.start, frames.len() as u32));
    }
    are_valid
}

/// Finds the processes of queries; most have the same process as the preceding query.
struct Processes<'t> {
    timeline: &'t Timeline,
    last: Option<(u32, ProcessIndex)>,
}

impl<'t> Processes<'t> {
    fn new(timeline: &'t Timeline) -> Self {
        Processes {
            timeline,
            last: None,
        }
    }

    #[inline]
    fn at(&mut self, query: &AddressQuery) -> AddressAt {
        let process = match query.process {
            QueryProcess::Index(process) => process,
            QueryProcess::Pid(pid) => match self.last {
                Some((last, process)) if last == pid => process,
                _ => self.find(pid, query.time_ns),
            },
        };
        AddressAt::new(process, query.address, query.time_ns, query.position)
    }

    fn find(&mut self, pid: u32, time_ns: u64) -> ProcessIndex {
        // No timeline has this one.
        const NONE: ProcessIndex = ProcessIndex(u32::MAX);
        let process = self.timeline.process_of(pid, time_ns).unwrap_or(NONE);
        let is_only = self
            .timeline
            .processes
            .incarnations(Some(pid))
            .nth(1)
            .is_none();
        self.last = is_only.then_some((pid, process));
        process
    }
}
