//! Typed facts about processes, images, modules, methods and samples: the input of a session.
//!
//! Raw events decode into exactly these. A source without events of its own, such as a profiler,
//! applies them with [`Session::apply`](crate::Session::apply) and
//! [`Session::sample`](crate::Session::sample):
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
pub use chronosym_types::MappedFile;

use crate::evidence::Evidence;
use crate::ids::EventTypeId;
use crate::symbol_identity::PdbReference;
use crate::terms::{Addressing, SampleKind, Weight};

/// Time, process and thread of a fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct At {
    /// ns since the trace began.
    pub time_ns: u64,
    /// The process, if known.
    pub process: Option<u32>,
    /// The thread, if known.
    pub thread: Option<u64>,
    /// The thread that wrote the event, if it is another one: adjacent events of one thread belong
    /// together (rule 12).
    pub writer: Option<u64>,
}

impl At {
    /// Creates a position at a time, in ns since the trace began.
    pub fn new(time_ns: u64) -> Self {
        At {
            time_ns,
            ..At::default()
        }
    }

    /// Returns the same at another time, in ns since the trace began.
    pub fn at(self, time_ns: u64) -> Self {
        At { time_ns, ..self }
    }

    /// Sets the process.
    pub fn process(self, pid: u32) -> Self {
        let process = Some(pid);
        At { process, ..self }
    }

    /// Sets process and thread, if known.
    pub fn of(self, process: Option<u32>, thread: Option<u64>) -> Self {
        At {
            process,
            thread,
            ..self
        }
    }

    /// Sets the thread that wrote the event.
    pub fn written_by(self, tid: u64) -> Self {
        let writer = Some(tid);
        At { writer, ..self }
    }

    /// Sets the thread.
    pub fn thread(self, tid: u64) -> Self {
        let thread = Some(tid);
        At { thread, ..self }
    }

    /// Returns the thread that wrote the event.
    pub(crate) fn writer(self) -> u64 {
        self.writer.or(self.thread).unwrap_or(0)
    }
}

/// One typed statement about a process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fact<'a> {
    /// A process starts, stops, or is alive.
    Process(Process<'a>),
    /// What identifies a process on its host.
    ProcessKey(ProcessKey),
    /// A process starts as a copy of another, with everything mapped there at this time.
    Fork {
        /// The parent process.
        parent: u32,
    },
    /// A process replaces its program: all its mappings and code end.
    Exec,
    /// The thread's name.
    ThreadName(Text<'a>),
    /// A file is mapped or unmapped.
    Image(Image<'a>),
    /// A CLR module is loaded, unloaded or listed by a rundown.
    Module(Module<'a>),
    /// A code body is loaded, unloaded or listed by a rundown.
    Method(Method<'a>),
    /// The JIT starts to compile a method on this thread.
    JitStart {
        /// The method's id.
        method_id: u64,
    },
    /// The IL-to-native map of a body: it follows the body's load event on the same thread, and
    /// precedes a body listed by an end rundown.
    IlMap(IlMap<'a>),
    /// The inline tree of the body that the same thread loaded last.
    InlineTree(InlineTree),
    /// A runtime has completed its rundown.
    RundownComplete {
        /// The runtime instance in the process.
        clr_instance: u16,
    },
    /// An interop stub was generated for a method, or serves another one.
    Stub(Stub<'a>),
    /// A code body of another compiler than the CLR's: a jitdump record.
    NativeMethod(NativeMethod<'a>),
    /// A code body of another compiler moves to another address.
    NativeMove {
        /// An address in the body until now.
        from: u64,
        /// The corresponding address from now on.
        to: u64,
    },
    /// A named range without a lifetime (rule 18).
    Symbol(Symbol<'a>),
}

impl Fact<'_> {
    /// Returns whether it ends what exists, and adds nothing.
    pub(crate) fn ends(&self) -> bool {
        let action = match self {
            Fact::Process(process) => process.action,
            Fact::Image(image) => image.action,
            Fact::Module(module) => module.action,
            Fact::Method(method) => method.action,
            fact => return matches!(fact, Fact::Exec),
        };
        action == Action::Unload
    }
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
    ProcessKey,
    Image<'a>,
    Module<'a>,
    Method<'a>,
    IlMap<'a>,
    InlineTree,
    Stub<'a>,
    NativeMethod<'a>,
    Symbol<'a>
);

/// A process that starts (`Load`), stops (`Unload`), or is alive (`DCStart`, `DCEnd`).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Process<'a> {
    /// The action.
    pub action: Action,
    /// The program's name; empty if unknown.
    pub name: Text<'a>,
    /// The command line; empty if unknown.
    pub command_line: Text<'a>,
    /// Whether it is a 32-bit process of a 64-bit Windows.
    pub is_wow64: bool,
}

impl<'a> Process<'a> {
    /// Creates a process by its name, which may be empty.
    pub fn new(action: Action, name: impl Into<Text<'a>>) -> Self {
        Process {
            action,
            name: name.into(),
            ..Process::default()
        }
    }
}

/// What identifies a process on its host, apart from its id, which is reused and repeats in other
/// pid namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessKey {
    /// When it started, ns since 1970-01-01 UTC: often before the recording.
    pub started_unix_ns: Option<i64>,
    /// The inode of its pid namespace, as in `/proc/PID/ns/pid`.
    pub pid_namespace: Option<u64>,
}

impl ProcessKey {
    /// Creates a key; either part may be unknown.
    pub fn new(started_unix_ns: Option<i64>, pid_namespace: Option<u64>) -> Self {
        ProcessKey {
            started_unix_ns,
            pid_namespace,
        }
    }
}

/// A file that is mapped (`Load`), unmapped (`Unload`), or listed as mapped.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Image<'a> {
    /// The action.
    pub action: Action,
    /// The first address.
    pub base: u64,
    /// Bytes; 0 only when an image is unmapped.
    pub size: u64,
    /// The file's path. Memory without a file (`//anon`, `/memfd:…`, `[heap]`) is not an image.
    pub path: Text<'a>,
    /// File offset of the mapping, in bytes: 0 for images mapped as a whole.
    pub file_offset: u64,
    /// How addresses in the mapping correspond to addresses of an ELF file.
    pub addressing: Addressing,
    /// The image is one function, an eBPF program, and `path` is its name.
    pub is_function: bool,
    /// The time stamp in the PE header.
    pub timestamp: Option<u32>,
    /// The PDB's identity.
    pub pdb: Option<PdbReference>,
    /// The build id, in hex digits.
    pub build_id: &'a str,
    /// The file's number in the kernel.
    pub file: Option<MappedFile>,
}

impl<'a> Image<'a> {
    /// Creates a file mapped at `base`, `size` in bytes.
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
    /// The action.
    pub action: Action,
    /// The runtime instance in the process.
    pub clr_instance: u16,
    /// The module's id, unique in a runtime instance during its lifetime.
    pub id: u64,
    /// The id of its assembly.
    pub assembly_id: u64,
    /// Path of the IL image.
    pub il_path: Text<'a>,
    /// Path of the native image; often empty.
    pub native_path: Text<'a>,
    /// Identity of the PDB of its IL.
    pub managed_pdb: Option<PdbReference>,
    /// Identity of the PDB of its native image.
    pub native_pdb: Option<PdbReference>,
}

impl<'a> Module<'a> {
    /// Creates a module by its id and the path of its IL.
    pub fn new(action: Action, id: u64, il_path: impl Into<Text<'a>>) -> Self {
        Module {
            action,
            id,
            il_path: il_path.into(),
            ..Module::default()
        }
    }
}

/// A code body of a CLR method.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Method<'a> {
    /// The action.
    pub action: Action,
    /// The runtime instance in the process.
    pub clr_instance: u16,
    /// The method's id.
    pub id: u64,
    /// The id of its module; 0 for none.
    pub module_id: u64,
    /// The first address.
    pub start: u64,
    /// Bytes.
    pub size: u32,
    /// The metadata token; 0 for none.
    pub token: u32,
    /// The kind of code.
    pub flags: MethodFlags,
    /// The full name of its type, its own name, and its signature as the runtime spells it; all
    /// empty if unknown.
    pub names: [Text<'a>; 3],
    /// The native code version; 0 is the default version.
    pub native_code_version: u64,
}

impl<'a> Method<'a> {
    /// Creates a jitted body of the method `id`, `size` in bytes.
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

    /// Sets type, name and signature.
    pub fn named<T: Into<Text<'a>>>(mut self, namespace: T, name: T, signature: T) -> Self {
        self.names = [namespace.into(), name.into(), signature.into()];
        self
    }

    /// Sets the module and the metadata token.
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
    /// The native code version, if known: it identifies the body if no adjacent event does.
    pub version: Option<u64>,
    /// The extent of the code that the map covers.
    pub extent: Extent,
    /// (IL offset, native offset in bytes from the start of the body); IL offset −1 is no mapping,
    /// −2 prolog, −3 epilog.
    pub entries: &'a [(i32, u32)],
}

impl<'a> IlMap<'a> {
    /// Creates the map of a body of `method_id`.
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
    /// The inlinees and their native offsets.
    pub tree: chronosym_events::InlineTree,
}

impl InlineTree {
    /// Creates the tree of the default version of a method.
    pub fn new(method_id: u64, tree: chronosym_events::InlineTree) -> Self {
        InlineTree {
            clr_instance: 0,
            method_id,
            version: 0,
            tree,
        }
    }
}

/// The target of an interop stub (rule 16).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Stub<'a> {
    /// The runtime instance in the process.
    pub clr_instance: u16,
    /// The method id of the stub.
    pub method_id: u64,
    /// Type, name and signature of the target method.
    pub target: [Text<'a>; 3],
    /// Whether the stub existed before and serves another target.
    pub is_shared: bool,
}

impl<'a> Stub<'a> {
    /// Creates a stub for a target's type, name and signature.
    pub fn new<T: Into<Text<'a>>>(method_id: u64, target: [T; 3]) -> Self {
        Stub {
            method_id,
            target: target.map(Into::into),
            ..Stub::default()
        }
    }
}

/// A code body of another compiler than the CLR's JIT, from a jitdump file.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NativeMethod<'a> {
    /// The function's name.
    pub name: Text<'a>,
    /// The first address.
    pub start: u64,
    /// Bytes.
    pub size: u32,
    /// Lines as (first address, file, line), in any order.
    pub lines: &'a [(u64, &'a str, u32)],
}

impl<'a> NativeMethod<'a> {
    /// Creates a body without lines.
    pub fn new(name: impl Into<Text<'a>>, start: u64, size: u32) -> Self {
        NativeMethod {
            name: name.into(),
            start,
            size,
            ..NativeMethod::default()
        }
    }

    /// Sets the lines: (first address, file, line), in any order.
    pub fn with_lines(mut self, lines: &'a [(u64, &'a str, u32)]) -> Self {
        self.lines = lines;
        self
    }
}

/// A named range without a lifetime: it is used only if no code body covers the address, and the
/// latest of several wins.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Symbol<'a> {
    /// The first address.
    pub start: u64,
    /// The address of the last byte.
    pub last: u64,
    /// The name, or a runtime's symbol text for a method: `void [Module]
    /// Ns.Type::Method(args)[Tier]`.
    pub name: Text<'a>,
    /// The simple name of its module, if the text has none. Of a frame of a profile
    /// ([`Evidence::Profile`]), the path of its module.
    pub module: Text<'a>,
    /// The source of the symbol.
    pub evidence: Evidence,
    /// File and line, and whether the function is inlined into the next one of the stack; for
    /// frames of a profile only.
    pub profiled: Option<ProfiledLine<'a>>,
}

/// The line of a frame of a profile.
///
/// Closed: a reader of profiles builds it as a literal.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProfiledLine<'a> {
    /// The source file; empty if unknown.
    pub file: Text<'a>,
    /// The line from 1; 0 if unknown.
    pub line: u32,
    /// Whether the function is inlined.
    pub is_inlined: bool,
}

impl<'a> Symbol<'a> {
    /// Creates a symbol of a perf map.
    pub fn new(start: u64, last: u64, name: impl Into<Text<'a>>) -> Self {
        Symbol {
            start,
            last,
            name: name.into(),
            module: Text::default(),
            evidence: Evidence::PerfMap,
            profiled: None,
        }
    }

    /// Creates the symbol of a frame that a profile names, in a module of this path.
    pub fn profiled(
        start: u64,
        name: impl Into<Text<'a>>,
        module: impl Into<Text<'a>>,
        line: ProfiledLine<'a>,
    ) -> Self {
        Symbol {
            module: module.into(),
            evidence: Evidence::Profile,
            profiled: Some(line),
            ..Symbol::new(start, start, name)
        }
    }
}

/// Properties of a sample other than its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// The kind of sample.
    pub kind: SampleKind,
    /// The weight.
    pub weight: Weight,
    /// The event that carried the sample; samples without one have a type for each kind.
    pub event: Option<EventTypeId>,
    /// Whether the processor was idle.
    pub idle: bool,
}

impl Sample {
    /// Creates a sample of a kind, with a weight of one.
    pub fn new(kind: SampleKind) -> Self {
        Sample {
            kind,
            weight: Weight::One,
            event: None,
            idle: false,
        }
    }

    /// Creates a CPU sample.
    pub fn cpu() -> Self {
        Sample::new(SampleKind::Cpu)
    }

    /// Sets the weight.
    pub fn weighing(self, weight: Weight) -> Self {
        Sample { weight, ..self }
    }

    /// Sets the event.
    pub fn of(self, event: EventTypeId) -> Self {
        let event = Some(event);
        Sample { event, ..self }
    }
}
