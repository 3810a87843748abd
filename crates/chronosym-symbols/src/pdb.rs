//! One Windows PDB, and the frames of native code in it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use chronosym_pdb::windows::{Frames, FunctionKind, WindowsPdb};

use crate::answer::{Answers, Missing, NonZeroId, Source, StoredAnswer, StoredFrame};
use crate::converted::{Converted, Damaged, Input, Key, SymbolCache, Tables};
use crate::mmap::FileData;
use crate::query::Query;

/// Minimum number of addresses per thread.
const ADDRESSES_PER_THREAD: usize = 1000;

/// Bytes of module streams after whose reading the pages of the mapping are released: later
/// addresses seldom need them.
const RELEASE_AFTER: u64 = 64 << 20;

self_cell::self_cell! {
    struct Cell {
        owner: FileData,
        #[not_covariant]
        dependent: WindowsPdb,
    }
}

/// The symbols of one Windows PDB. Threads can share it.
pub struct PdbSymbols {
    pdb: Cell,
    pub(crate) converted: Tables,
    /// Bytes of module streams read when pages were released last.
    released_at: AtomicU64,
}

impl std::fmt::Debug for PdbSymbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PdbSymbols").finish_non_exhaustive()
    }
}

/// An address in the order of the file, and its index in the batch.
type Wanted = (u32, u32);

impl PdbSymbols {
    /// Reads the headers of a Windows PDB.
    ///
    /// # Errors
    /// It is not one, or is malformed.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_symbols::{Answers, PdbSymbols, Query};
    ///
    /// let file = std::fs::read("../../testdata/pdb-small/x86_64/small.pdb")?;
    /// let symbols = PdbSymbols::open(file)?;
    /// let mut answers = Answers::new();
    /// symbols.find_all(&[0x1000], &Query::default(), &mut answers);
    /// let frame = answers.get(0).unwrap().frames().next().unwrap();
    /// assert!(frame.name().is_some() && frame.line().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(data: impl Into<FileData>) -> chronosym_pdb::Result<Self> {
        Ok(PdbSymbols {
            pdb: Cell::try_new(data.into(), |data| WindowsPdb::open(data))?,
            released_at: AtomicU64::new(0),
            converted: Tables::default(),
        })
    }

    /// Answers lookups from converted symbols, where the cache has them. Call it before the first
    /// lookup.
    pub fn use_cache(&mut self, cache: SymbolCache) {
        self.converted = Tables::new(cache);
    }

    /// Returns the bytes of the file.
    pub(crate) fn data(&self) -> &FileData {
        self.pdb.borrow_owner()
    }

    /// Returns true if a query is answered from converted symbols.
    pub fn is_converted(&self, query: &Query) -> bool {
        self.table(query).is_some()
    }

    /// Returns the converted symbols for a query, if there are some.
    fn table(&self, query: &Query) -> Option<Arc<Converted>> {
        self.converted.get(query, |cache| {
            let id = self.with(|pdb| pdb.id()).to_string();
            let id = id.as_bytes();
            let data = self.data();
            Key::new(&[Input { data, id }], query, cache.folder())
        })
    }

    /// Calls `read` with the parsed PDB.
    pub fn with<R>(&self, read: impl FnOnce(&WindowsPdb<'_>) -> R) -> R {
        self.pdb.with_dependent(|_, pdb| read(pdb))
    }

    /// Resolves RVAs, in the order given, and replaces the content of `out`. The virtual addresses
    /// of the answers are RVAs.
    ///
    /// They are looked up in the order of the file, so that each part of it is read once.
    pub fn find_all(&self, rvas: &[u64], query: &Query, out: &mut Answers) {
        if let Some(table) = self.table(query) {
            match table.find_all(rvas, out) {
                Ok(()) => {
                    out.lines = query.lines;
                    return;
                }
                Err(Damaged) => self.converted.drop_damaged(&table),
            }
        }
        self.find_directly(rvas, query, out);
    }

    /// As [`PdbSymbols::find_all`], without converted symbols.
    pub(crate) fn find_directly(&self, rvas: &[u64], query: &Query, out: &mut Answers) {
        out.clear();
        out.lines = query.lines;
        out.answers
            .extend(rvas.iter().map(|&rva| StoredAnswer::outside(rva)));
        let wanted = (0..u32::MAX).zip(rvas);
        let wanted = wanted.filter_map(|(index, &rva)| Some((u32::try_from(rva).ok()?, index)));
        let mut wanted: Vec<Wanted> = wanted.collect();
        wanted.sort_unstable_by_key(|&(rva, index)| u64::from(rva) << 32 | u64::from(index));
        let available = match query.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let threads = available.min(wanted.len() / ADDRESSES_PER_THREAD).max(1);
        // Each thread takes a part of the image.
        let mut parts = wanted.chunks(wanted.len().div_ceil(threads).max(1));
        let first = parts.next().unwrap_or_default();
        let resolved = std::thread::scope(|scope| {
            let others: Vec<_> = parts
                .map(|part| {
                    let work = || {
                        let mut out = Answers::new();
                        let resolved = self.find_sorted(part, query, &mut out);
                        (out, resolved)
                    };
                    (part, std::thread::Builder::new().spawn_scoped(scope, work))
                })
                .collect();
            let mut resolved = self.find_sorted(first, query, out);
            for (part, thread) in others {
                match thread.map(std::thread::ScopedJoinHandle::join) {
                    Ok(Ok((mut own, mut more))) => {
                        let shift = out.append(&mut own);
                        more.iter_mut()
                            .for_each(|answer| answer.start = answer.start.saturating_add(shift));
                        resolved.append(&mut more);
                    }
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    Err(_) => resolved.append(&mut self.find_sorted(part, query, out)),
                }
            }
            resolved
        });
        for (&(_, index), answer) in wanted.iter().zip(resolved) {
            if let Some(place) = out.answers.get_mut(index as usize) {
                *place = answer;
            }
        }
        out.seal();
    }

    /// Resolves sorted RVAs.
    fn find_sorted(
        &self,
        wanted: &[Wanted],
        query: &Query,
        out: &mut Answers,
    ) -> Vec<StoredAnswer> {
        self.with(|pdb| {
            let mut lookup = Lookup {
                pdb,
                query,
                frames: Frames::new(),
                name: String::new(),
                recent: Vec::new(),
                linkage: None,
            };
            let mut answers: Vec<StoredAnswer> = Vec::with_capacity(wanted.len());
            for &(rva, _) in wanted {
                let same = answers.last().filter(|last| last.address == u64::from(rva));
                let answer = match same {
                    Some(&same) => same,
                    None => lookup.find(rva, out),
                };
                answers.push(answer);
                self.release(pdb);
            }
            answers
        })
    }

    /// Releases the mapped pages once many of them were read.
    pub(crate) fn release(&self, pdb: &WindowsPdb<'_>) {
        let (read, before) = (pdb.bytes_read(), self.released_at.load(Relaxed));
        let is_due = read.saturating_sub(before) > RELEASE_AFTER;
        let turn = || {
            self.released_at
                .compare_exchange(before, read, Relaxed, Relaxed)
        };
        if is_due && turn().is_ok() {
            let data = self.pdb.borrow_owner();
            data.release(0..data.len());
        }
    }
}

/// A pass over sorted RVAs.
struct Lookup<'p, 'd> {
    pdb: &'p WindowsPdb<'d>,
    query: &'p Query,
    frames: Frames,
    name: String,
    /// Names and paths of the last frames, outermost first: neighbours share them.
    recent: Vec<[Option<NonZeroId>; 2]>,
    /// RVA of the last function, and its public name.
    linkage: Option<(u32, Option<NonZeroId>)>,
}

impl Lookup<'_, '_> {
    fn find(&mut self, rva: u32, out: &mut Answers) -> StoredAnswer {
        let mut answer = StoredAnswer {
            address: rva.into(),
            start: u32::try_from(out.frames.len()).unwrap_or(u32::MAX),
            len: 0,
            missing: Missing::NoName,
        };
        let function = match self.pdb.find(rva, &mut self.frames) {
            Ok(Some(function)) => function,
            Ok(None) => return answer,
            Err(error) => {
                out.note_damage(error.to_string());
                answer.missing = Missing::Damaged;
                return answer;
            }
        };
        let source = match function.kind {
            FunctionKind::Public => Source::PublicSymbols,
            _ => Source::DebugInfo,
        };
        let linkage = self.linkage_name(function.rva, out);
        let innermost = self.frames.first().filter(|_| !self.query.inlines);
        let depth = self.frames.len();
        if self.recent.len() < depth {
            self.recent.resize(depth, [None; 2]);
        }
        let recent = self.recent.iter_mut().take(depth).rev();
        for (frame, [recent_name, recent_file]) in self.frames.iter().zip(recent) {
            if !self.query.inlines && frame.inlined {
                continue;
            }
            let position = Some(innermost.unwrap_or(frame)).filter(|_| self.query.lines);
            let file = position.and_then(|position| position.file.as_deref());
            let name = frame.name.as_ref().and_then(|name| {
                self.name.clear();
                if !name.scope.is_empty() {
                    self.name.push_str(&name.scope);
                    self.name.push_str("::");
                }
                self.name.push_str(&name.base);
                out.names.intern_recent(self.name.as_bytes(), recent_name)
            });
            out.frames.push(StoredFrame {
                name,
                symbol: linkage.filter(|_| !frame.inlined),
                file: file.and_then(|file| out.files.intern_recent(file.as_bytes(), recent_file)),
                line: position.and_then(|position| position.line).unwrap_or(0),
                column: position.and_then(|p| p.column).unwrap_or(0).into(),
                discriminator: 0,
                function: function.rva.into(),
                has_function: true,
                inlined: frame.inlined,
                plain_names: true,
                line_limited: false,
                line_uncertain: false,
                source,
            });
            answer.len = answer.len.saturating_add(1);
        }
        answer
    }

    /// Returns the public name of a function, which has the types of its parameters.
    fn linkage_name(&mut self, function: u32, out: &mut Answers) -> Option<NonZeroId> {
        self.query.symbol_names?;
        if let Some((_, name)) = self.linkage.filter(|(last, _)| *last == function) {
            return name;
        }
        let public = self.pdb.public_symbol(function).ok().flatten();
        let is_mangled = |name: &str| name.starts_with('?') || name.starts_with("_Z");
        let public = public.filter(|it| it.rva == function && is_mangled(&it.name));
        let name = public.and_then(|symbol| out.names.intern(symbol.name.as_bytes()));
        self.linkage = Some((function, name));
        name
    }
}
