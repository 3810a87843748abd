//! Facts of a profiler, in an array.

use chronosym::facts::{
    Action, At, Fact, IlMap, Image, Method, MethodFlags, Module, NativeMethod, Process, Sample,
    Symbol,
};
use chronosym::{Guid, PdbId, PdbReference, Weight};

use crate::pointers;
use crate::status::Failure;
use crate::text::chronosym_text;

/// The action that a fact states.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum chronosym_action {
    /// The lifetime starts.
    Load = 0,
    /// The lifetime ends.
    Unload = 1,
    /// Alive when the recording begins: it started before.
    ListedAtStart = 2,
    /// Alive when the recording ends: it ends after.
    ListedAtEnd = 3,
}

/// The kind of a fact, and the fields of `chronosym_fact` that it uses in addition to `time_ns`,
/// `pid` and `thread`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum chronosym_fact_kind {
    /// A process. `names`: program, command line.
    Process = 1,
    /// The process starts as a copy of another one. `id`: the pid of its parent.
    Fork = 2,
    /// The process replaces its program: its mappings and code end.
    Exec = 3,
    /// The thread has a name. `names`: the name.
    ThreadName = 4,
    /// A file is mapped. `address`, `size`, `file_offset`, `pdb`; `names`: path, build id in hex digits.
    Image = 5,
    /// A module of the CLR. `id`, `pdb`; `names`: path of the IL, path of the native image.
    Module = 6,
    /// A code body of a CLR method. `id`, `module_id`, `address`, `size`, `token`, `flags` as MethodFlags of the CLR's events
    /// (8: jitted); `names`: type, method, signature.
    Method = 7,
    /// The IL-to-native map of the body that the same thread loaded last. `id`: that of the method; `il_entries`.
    IlMap = 8,
    /// A code body of another compiler. `address`, `size`; `names`: the function.
    NativeMethod = 9,
    /// A name without a lifetime, as in a perf map. `address`, `size`; `names`: the name, the module.
    Symbol = 10,
    /// A CPU sample; live sessions do not keep it. `addresses` innermost first, `weight_ns`.
    Sample = 11,
}

/// The IL offset of the native code that starts at an offset.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct chronosym_il_entry {
    /// IL offset; −1 no mapping, −2 prolog, −3 epilog.
    pub il_offset: i32,
    /// Offset from the start of the body in bytes.
    pub native_offset: u32,
}

/// The identity of a PDB.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct chronosym_pdb {
    /// The GUID as stored in files: the first three groups are little-endian.
    pub guid: [u8; 16],
    /// Its path on the build machine.
    pub path: chronosym_text,
    /// Its age.
    pub age: u32,
    /// Zero.
    pub reserved: u32,
}

/// A statement about a process. Fields that its kind does not use are zero. All pointers are read
/// during the call only.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct chronosym_fact {
    /// A `chronosym_fact_kind`.
    pub kind: u32,
    /// A `chronosym_action`.
    pub action: u32,
    /// ns since the recording began.
    pub time_ns: u64,
    /// The process id.
    pub pid: u32,
    /// MethodFlags of a method.
    pub flags: u32,
    /// The thread id, or 0 if it is unknown.
    pub thread: u64,
    /// Identifies a method or module in its process.
    pub id: u64,
    /// The module of a method, or 0.
    pub module_id: u64,
    /// The first address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// File offset of a mapping in bytes.
    pub file_offset: u64,
    /// The metadata token of a method, or 0.
    pub token: u32,
    /// Zero.
    pub reserved: u32,
    /// Names, by kind.
    pub names: [chronosym_text; 3],
    /// The PDB of an image or module, or null.
    pub pdb: *const chronosym_pdb,
    /// An IL-to-native map.
    pub il_entries: *const chronosym_il_entry,
    /// Number of `il_entries`.
    pub il_entry_count: usize,
    /// A stack, innermost first.
    pub addresses: *const u64,
    /// Number of `addresses`.
    pub address_count: usize,
    /// Time that a sample represents, in ns; 0 if unknown.
    pub weight_ns: u64,
}

/// Takes facts.
pub trait Feed {
    /// As `Session::apply`.
    fn apply(&mut self, at: At, fact: Fact<'_>);
    /// As `Session::sample`.
    fn sample(&mut self, at: At, leaf_first: &[u64], sample: Sample);
}

fn action_of(action: u32) -> Result<Action, Failure> {
    match action {
        0 => Ok(Action::Load),
        1 => Ok(Action::Unload),
        2 => Ok(Action::DCStart),
        3 => Ok(Action::DCEnd),
        _ => Err(Failure::argument(format!(
            "{action} is not a chronosym_action"
        ))),
    }
}

impl chronosym_fact {
    /// Feeds the fact.
    ///
    /// # Safety
    ///
    /// The pointers are as documented.
    pub(crate) unsafe fn apply(&self, feed: &mut dyn Feed) -> Result<(), Failure> {
        let mut at = At::new(self.time_ns).process(self.pid);
        at.thread = (self.thread != 0).then_some(self.thread);
        // SAFETY: as the caller states.
        let name = |index: usize| unsafe { self.names[index].read("a name of a fact") };
        let names = [name(0)?, name(1)?, name(2)?];
        let [first, second, _] = names;
        let action = action_of(self.action)?;
        let size = || {
            u32::try_from(self.size)
                .map_err(|_| Failure::argument(format!("a method of {} bytes", self.size)))
        };
        let fact: Fact<'_> = match self.kind {
            it if it == chronosym_fact_kind::Process as u32 => {
                let mut process = Process::new(action, first);
                process.command_line = second.into();
                process.into()
            }
            it if it == chronosym_fact_kind::Fork as u32 => {
                let parent = u32::try_from(self.id);
                let parent = parent.map_err(|_| Failure::argument("the parent is not a pid"))?;
                Fact::Fork { parent }
            }
            it if it == chronosym_fact_kind::Exec as u32 => Fact::Exec,
            it if it == chronosym_fact_kind::ThreadName as u32 => Fact::ThreadName(first.into()),
            it if it == chronosym_fact_kind::Image as u32 => {
                let mut image = Image::new(action, self.address, self.size, first);
                image.file_offset = self.file_offset;
                image.build_id = second;
                // SAFETY: as the caller states.
                image.pdb = unsafe { self.pdb()? };
                image.into()
            }
            it if it == chronosym_fact_kind::Module as u32 => {
                let mut module = Module::new(action, self.id, first);
                module.native_path = second.into();
                // SAFETY: as the caller states.
                module.managed_pdb = unsafe { self.pdb()? };
                module.into()
            }
            it if it == chronosym_fact_kind::Method as u32 => {
                let mut method = Method::new(action, self.id, self.address, size()?)
                    .in_module(self.module_id, self.token);
                method.names = names.map(Into::into);
                method.flags = MethodFlags(self.flags);
                method.into()
            }
            it if it == chronosym_fact_kind::IlMap as u32 => {
                // SAFETY: as the caller states.
                let entries =
                    unsafe { pointers::array(self.il_entries, self.il_entry_count, "il_entries")? };
                let entries: Vec<(i32, u32)> = entries
                    .iter()
                    .map(|it| (it.il_offset, it.native_offset))
                    .collect();
                feed.apply(at, IlMap::new(action, self.id, &entries).into());
                return Ok(());
            }
            it if it == chronosym_fact_kind::NativeMethod as u32 => {
                NativeMethod::new(first, self.address, size()?).into()
            }
            it if it == chronosym_fact_kind::Symbol as u32 => {
                let last = self
                    .size
                    .checked_sub(1)
                    .and_then(|n| self.address.checked_add(n));
                let last = last.ok_or_else(|| Failure::argument("a symbol without a range"))?;
                let mut symbol = Symbol::new(self.address, last, first);
                symbol.module = second.into();
                symbol.into()
            }
            it if it == chronosym_fact_kind::Sample as u32 => {
                // SAFETY: as the caller states.
                let stack =
                    unsafe { pointers::array(self.addresses, self.address_count, "addresses")? };
                let mut sample = Sample::cpu();
                if self.weight_ns > 0 {
                    sample = sample.weighing(Weight::Ns(self.weight_ns));
                }
                feed.sample(at, stack, sample);
                return Ok(());
            }
            kind => {
                return Err(Failure::argument(format!(
                    "{kind} is not a chronosym_fact_kind"
                )));
            }
        };
        feed.apply(at, fact);
        Ok(())
    }

    /// The PDB, if there is one.
    ///
    /// # Safety
    ///
    /// The pointers are as documented.
    unsafe fn pdb(&self) -> Result<Option<PdbReference>, Failure> {
        // SAFETY: as the caller states.
        let pdb = unsafe { pointers::array(self.pdb, (!self.pdb.is_null()).into(), "pdb")? };
        let Some(pdb) = pdb.first() else {
            return Ok(None);
        };
        let id = PdbId {
            guid: Guid(pdb.guid),
            age: pdb.age,
        };
        // SAFETY: as the caller states.
        let path = unsafe { pdb.path.read("the path of a PDB")? }.to_owned();
        Ok(Some(PdbReference { id, path }))
    }
}
