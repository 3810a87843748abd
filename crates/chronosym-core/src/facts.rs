//! What a session can be fed: typed facts of processes, images, modules, methods and samples.
//!
//! Raw events decode into exactly these. A source without events of its own, such as a profiler, states them itself with
//! [`Session::apply`](crate::Session::apply) and [`Session::sample`](crate::Session::sample):
//!
//! ```
//! use chronosym_core::facts::{At, Method, Process, Sample};
//! use chronosym_core::{Action, Options, Session};
//!
//! let mut session = Session::new(Options::default());
//! let at = At::new(1_000).process(42).thread(7);
//! session.apply(at, Process::new(Action::Load, "app"));
//! session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Run", "void ()"));
//! session.sample(at.at(2_000), &[0x1010], Sample::cpu());
//! let timeline = session.finish();
//! let process = timeline.find_process(42, None).expect("it was stated");
//! let frames = timeline.frames(process, 0x1010, 2_000, chronosym_core::Position::Exact, None);
//! assert_eq!(frames[0].name(), Ok("Ns.Type.Run"));
//! ```

pub use chronosym_events::{Action, Extent, MethodFlags, Text};

use crate::evidence::Evidence;
use crate::ids::EventTypeId;
use crate::symbol_identity::PdbReference;
use crate::terms::{Addressing, SampleKind, Weight};

/// When a fact was stated, and of whom.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct At {
    /// ns since the trace began.
    pub time_ns: u64,
    /// The process that it is of, where that is known.
    pub process: Option<u32>,
    /// The thread that it is of, where that is known.
    pub thread: Option<u64>,
    /// The thread that stated it, where that is another: what one thread states in a row belongs together (rule 12).
    pub writer: Option<u64>,
}

impl At {
    /// A time, in ns since the trace began.
    pub fn new(time_ns: u64) -> Self {
        At {
            time_ns,
            ..At::default()
        }
    }

    /// At another time, in ns since the trace began.
    pub fn at(self, time_ns: u64) -> Self {
        At { time_ns, ..self }
    }

    /// Of this process.
    pub fn process(self, pid: u32) -> Self {
        let process = Some(pid);
        At { process, ..self }
    }

    /// Of these, where they are known.
    pub fn of(self, process: Option<u32>, thread: Option<u64>) -> Self {
        At {
            process,
            thread,
            ..self
        }
    }

    /// Stated by this thread.
    pub fn written_by(self, tid: u64) -> Self {
        let writer = Some(tid);
        At { writer, ..self }
    }

    /// Of this thread.
    pub fn thread(self, tid: u64) -> Self {
        let thread = Some(tid);
        At { thread, ..self }
    }

    /// Who stated it.
    pub(crate) fn writer(self) -> u64 {
        self.writer.or(self.thread).unwrap_or(0)
    }
}

/// One statement about a process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fact<'a> {
    /// A process starts, stops, or is there.
    Process(Process<'a>),
    /// A process begins as a copy of another: whatever is mapped there at this time is mapped here, too.
    Fork {
        /// The other process.
        parent: u32,
    },
    /// A process runs another program from now on: nothing that was mapped or compiled is left.
    Exec,
    /// What the thread is called.
    ThreadName(Text<'a>),
    /// A file is mapped or unmapped.
    Image(Image<'a>),
    /// A module of the CLR is loaded, unloaded or listed.
    Module(Module<'a>),
    /// A native body of a method is loaded, unloaded or listed.
    Method(Method<'a>),
    /// The JIT starts to compile a method on this thread.
    JitStart {
        /// The method's id.
        method_id: u64,
    },
    /// The IL-to-native map of a body: it follows the load of its body on the same thread, and precedes a body that a rundown
    /// at the end lists.
    IlMap(IlMap<'a>),
    /// The inline tree of the body that the same thread loaded last.
    InlineTree(InlineTree),
    /// A runtime has listed all that is alive, to the last row.
    RundownComplete {
        /// The runtime instance in the process.
        clr_instance: u16,
    },
    /// An interop stub was made for a method, or serves one more.
    Stub(Stub<'a>),
    /// A body of a compiler that is not the CLR's: a jitdump record.
    NativeMethod(NativeMethod<'a>),
    /// Such a body stands at another address from now on.
    NativeMove {
        /// An address in it until now.
        from: u64,
        /// The address in its place.
        to: u64,
    },
    /// A named range without a life (rule 18).
    Symbol(Symbol<'a>),
}

macro_rules! facts {
    ($($name:ident $(<$a:lifetime>)?),*) => {$(
        impl<'a> From<$name $(<$a>)?> for Fact<'a> {
            fn from(fact: $name $(<$a>)?) -> Self {
                Fact::$name(fact)
            }
        }
    )*};
}
facts!(
    Process<'a>,
    Image<'a>,
    Module<'a>,
    Method<'a>,
    IlMap<'a>,
    InlineTree,
    Stub<'a>,
    NativeMethod<'a>,
    Symbol<'a>
);

/// A process starts (`Load`), stops (`Unload`), or is there (`DCStart`, `DCEnd`).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Process<'a> {
    /// What happened.
    pub action: Action,
    /// What it is called; empty if that is not known.
    pub name: Text<'a>,
    /// Its command line; empty if that is not known.
    pub command_line: Text<'a>,
    /// Whether its pointers are half as wide as the system's.
    pub is_wow64: bool,
}

impl<'a> Process<'a> {
    /// A process by its name, which may be empty.
    pub fn new(action: Action, name: impl Into<Text<'a>>) -> Self {
        Process {
            action,
            name: name.into(),
            ..Process::default()
        }
    }
}

/// A file that is mapped (`Load`), unmapped (`Unload`), or listed as mapped.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Image<'a> {
    /// What happened.
    pub action: Action,
    /// The first address.
    pub base: u64,
    /// Bytes; 0 says nothing but where an image is unmapped.
    pub size: u64,
    /// The file. Memory without one (`//anon`, `/memfd:…`, `[heap]`) is no image.
    pub path: Text<'a>,
    /// Where in the file the mapping begins, in bytes: 0 for images mapped as a whole.
    pub file_offset: u64,
    /// How its addresses are found in an ELF file.
    pub addressing: Addressing,
    /// It is one function, called as the path says: an eBPF program.
    pub is_function: bool,
    /// The time stamp in its header.
    pub timestamp: Option<u32>,
    /// Its PDB.
    pub pdb: Option<PdbReference>,
    /// Its build id, in hex digits.
    pub build_id: &'a str,
}

impl<'a> Image<'a> {
    /// A file at a base, `size` in bytes.
    pub fn new(action: Action, base: u64, size: u64, path: impl Into<Text<'a>>) -> Self {
        Image {
            action,
            base,
            size,
            path: path.into(),
            ..Image::default()
        }
    }
}

/// A module of the CLR.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Module<'a> {
    /// What happened.
    pub action: Action,
    /// The runtime instance in the process.
    pub clr_instance: u16,
    /// Its id, unique in a runtime instance while it lives.
    pub id: u64,
    /// The id of its assembly.
    pub assembly_id: u64,
    /// Where its IL was loaded from.
    pub il_path: Text<'a>,
    /// Where its native image was loaded from; often empty.
    pub native_path: Text<'a>,
    /// The PDB of its IL.
    pub managed_pdb: Option<PdbReference>,
    /// The PDB of its native image.
    pub native_pdb: Option<PdbReference>,
}

impl<'a> Module<'a> {
    /// A module by its id and the path of its IL.
    pub fn new(action: Action, id: u64, il_path: impl Into<Text<'a>>) -> Self {
        Module {
            action,
            id,
            il_path: il_path.into(),
            ..Module::default()
        }
    }
}

/// A native body of a method of the CLR.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Method<'a> {
    /// What happened.
    pub action: Action,
    /// The runtime instance in the process.
    pub clr_instance: u16,
    /// The method's id.
    pub id: u64,
    /// The id of its module; 0 if it has none.
    pub module_id: u64,
    /// The first address.
    pub start: u64,
    /// Bytes.
    pub size: u32,
    /// The metadata token; 0 if it has none.
    pub token: u32,
    /// What kind of code it is.
    pub flags: MethodFlags,
    /// The full name of its type, its own name, its signature as the runtime spells it; all empty if they are not known.
    pub names: [Text<'a>; 3],
    /// The native code version; 0 is the default one.
    pub native_code_version: u64,
}

impl<'a> Method<'a> {
    /// A jitted body of the method `id`, `size` in bytes.
    pub fn new(action: Action, id: u64, start: u64, size: u32) -> Self {
        Method {
            action,
            id,
            start,
            size,
            flags: MethodFlags::jitted(None),
            ..Method::default()
        }
    }

    /// Of this type, name and signature.
    pub fn named<T: Into<Text<'a>>>(mut self, namespace: T, name: T, signature: T) -> Self {
        self.names = [namespace.into(), name.into(), signature.into()];
        self
    }

    /// In this module.
    pub fn in_module(mut self, id: u64, token: u32) -> Self {
        (self.module_id, self.token) = (id, token);
        self
    }
}

/// An IL-to-native map.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct IlMap<'a> {
    /// `Load` with the load of its body, `DCStart` and `DCEnd` with a rundown.
    pub action: Action,
    /// The runtime instance in the process.
    pub clr_instance: u16,
    /// The method's id.
    pub method_id: u64,
    /// The native code version, where it is known: it binds a map whose body is no neighbour.
    pub version: Option<u64>,
    /// The part of the code that it speaks of.
    pub extent: Extent,
    /// (IL offset, native offset in bytes from the start of the body); −1 no mapping, −2 prolog, −3 epilog.
    pub entries: &'a [(i32, u32)],
}

impl<'a> IlMap<'a> {
    /// The map of the body of `method_id`.
    pub fn new(action: Action, method_id: u64, entries: &'a [(i32, u32)]) -> Self {
        IlMap {
            action,
            method_id,
            entries,
            ..IlMap::default()
        }
    }
}

/// The inline tree of a body.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct InlineTree {
    /// The runtime instance in the process.
    pub clr_instance: u16,
    /// The method's id.
    pub method_id: u64,
    /// The native code version of the body.
    pub version: u64,
    /// What was inlined where.
    pub tree: chronosym_events::InlineTree,
}

impl InlineTree {
    /// The tree of the default version of a method.
    pub fn new(method_id: u64, tree: chronosym_events::InlineTree) -> Self {
        InlineTree {
            clr_instance: 0,
            method_id,
            version: 0,
            tree,
        }
    }
}

/// What an interop stub serves (rule 16).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Stub<'a> {
    /// The runtime instance in the process.
    pub clr_instance: u16,
    /// The method id of the stub.
    pub method_id: u64,
    /// Type, name and signature of the method that it serves.
    pub target: [Text<'a>; 3],
    /// Whether the stub was there already and serves one more.
    pub is_shared: bool,
}

impl<'a> Stub<'a> {
    /// A stub that was made for a method: its type, name and signature.
    pub fn new<T: Into<Text<'a>>>(method_id: u64, target: [T; 3]) -> Self {
        Stub {
            method_id,
            target: target.map(Into::into),
            ..Stub::default()
        }
    }
}

/// A body that a compiler other than the CLR's JIT made, as jitdump files state it.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NativeMethod<'a> {
    /// What it is called.
    pub name: Text<'a>,
    /// The first address.
    pub start: u64,
    /// Bytes.
    pub size: u32,
    /// Its lines: (first address, file, line), in any order.
    pub lines: &'a [(u64, &'a str, u32)],
}

impl<'a> NativeMethod<'a> {
    /// A body without lines.
    pub fn new(name: impl Into<Text<'a>>, start: u64, size: u32) -> Self {
        NativeMethod {
            name: name.into(),
            start,
            size,
            ..NativeMethod::default()
        }
    }

    /// With lines: (first address, file, line), in any order.
    pub fn with_lines(mut self, lines: &'a [(u64, &'a str, u32)]) -> Self {
        self.lines = lines;
        self
    }
}

/// A named range without a life: it answers last, and of several the latest.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Symbol<'a> {
    /// The first address.
    pub start: u64,
    /// The last address.
    pub last: u64,
    /// Its name, or a runtime's own text for a method: `void [Module] Ns.Type::Method(args)[Tier]`.
    pub name: Text<'a>,
    /// The simple name of its module, where its text has none.
    pub module: Text<'a>,
    /// Who says so.
    pub evidence: Evidence,
}

impl<'a> Symbol<'a> {
    /// A row of a perf map; `last` is part of it.
    pub fn new(start: u64, last: u64, name: impl Into<Text<'a>>) -> Self {
        Symbol {
            start,
            last,
            name: name.into(),
            module: Text::default(),
            evidence: Evidence::PerfMap,
        }
    }
}

/// What a sample says beside its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// What it says of its thread.
    pub kind: SampleKind,
    /// What it stands for.
    pub weight: Weight,
    /// The event that carried it; without one, samples of a kind have a type of their own.
    pub event: Option<EventTypeId>,
    /// The processor had nothing to do.
    pub idle: bool,
}

impl Sample {
    /// A sample of a kind, of weight one.
    pub fn new(kind: SampleKind) -> Self {
        Sample {
            kind,
            weight: Weight::One,
            event: None,
            idle: false,
        }
    }

    /// The thread was running.
    pub fn cpu() -> Self {
        Sample::new(SampleKind::Cpu)
    }

    /// Of this weight.
    pub fn weighing(self, weight: Weight) -> Self {
        Sample { weight, ..self }
    }

    /// Of this event.
    pub fn of(self, event: EventTypeId) -> Self {
        let event = Some(event);
        Sample { event, ..self }
    }
}
