//! Walks a stack from the registers and the copied stack of a sampled thread.
//!
//! Callers of functions in an image are found by its unwind tables, if its file is available, and
//! those of jitted code by what its compiler wrote about it; callers of functions that both omit, by
//! frame pointers. An image
//! without a file ends the stack: whether it keeps frame pointers is unknown, and a guess would
//! produce wrong callers. The stack is never scanned for plausible addresses.

use std::sync::Arc;

pub use chronosym_types::{Processor, Registers};
use rustc_hash::FxHashMap;

use crate::evidence::CallerProof;
use crate::images::Image;
use crate::names::NameTable;
use crate::stacks::Walked;
use crate::state::ProcessState;
use crate::strings::StringId;
use crate::symbol_identity::PdbReference;
use crate::symbol_source::ImageRef;
use crate::terms::Position;

/// Result of a step to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The registers are now those of the caller, by this proof.
    Caller(CallerProof),
    /// The table does not cover the address.
    NoEntry,
    /// The function has no caller.
    Outermost,
    /// The table is invalid, or the copied stack ends too early.
    Lost,
}

/// Unwind tables of one image.
pub trait CallFrames: Send + Sync {
    /// Steps from the registers of a function to those of its caller. `rva` is the address in the
    /// image, inside the call for a caller; `read` returns 8 bytes of the stack.
    fn step(
        &self,
        image: &ImageRef<'_>,
        rva: u64,
        registers: &mut Registers,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Step;
}

/// Files of images that are needed while a recording is read.
pub trait ImageFiles: Send + Sync {
    /// Returns the unwind tables of an image; `None` if its file is not available.
    fn call_frames(&self, image: &ImageRef<'_>) -> Option<Arc<dyn CallFrames>>;

    /// Returns the identity in the header of a file that a recording identifies by its content;
    /// `None` if the file is not available.
    fn identity(&self, file: &FileByContent<'_>) -> Option<HeaderIdentity> {
        let _ = file;
        None
    }

    /// Steps from the registers of jitted code to those of its caller, as [`CallFrames::step`].
    /// `address` is in the code.
    fn step_jitted(
        &self,
        frames: EhFrame<'_>,
        address: u64,
        registers: &mut Registers,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Step {
        let _ = (frames, address, registers, read);
        Step::NoEntry
    }
}

/// Call frame information of jitted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EhFrame<'a> {
    /// The bytes of an `.eh_frame` section.
    pub bytes: &'a [u8],
    /// The address of the section, to which its entries are relative.
    pub address: u64,
}

impl<'a> EhFrame<'a> {
    /// Creates call frame information at an address.
    pub fn new(bytes: &'a [u8], address: u64) -> Self {
        EhFrame { bytes, address }
    }
}

/// Call frame information that compilers of jitted code wrote to files.
pub trait JittedFrames: Send {
    /// Takes note of a file that a process mapped because it writes such information to it.
    fn mapped(&mut self, process: u32, path: &str);

    /// Returns the information of the code at an address of a process, at a time in ns of the
    /// recording's clock.
    fn find(&mut self, process: u32, time_ns: u64, address: u64) -> Option<EhFrame<'_>>;
}

/// A file that a recording identifies by its content.
///
/// Closed: the identities of OTLP profiles.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileByContent<'a> {
    /// Its path or name.
    pub path: &'a str,
    /// The first 16 bytes of the SHA-256 of its first and last 4096 bytes and its length
    /// (`process.executable.build_id.htlhash`), in hex; empty if unknown.
    pub htlhash: &'a str,
    /// The module version id of an assembly; empty if unknown.
    pub mvid: &'a str,
}

/// The identity in the header of a file.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderIdentity {
    /// The build ID of an ELF file, in hex.
    pub build_id: Option<String>,
    /// The time stamp and the size of a PE image.
    pub pe: Option<(u32, u32)>,
    /// The PDB of an assembly.
    pub pdb: Option<PdbReference>,
}

/// A sampled thread.
///
/// Closed: callers build it as a literal.
pub struct Thread<'a> {
    /// Its registers.
    pub registers: Registers,
    /// The bytes of its stack from the stack pointer up, in little-endian order.
    pub stack: &'a [u8],
    /// Its process.
    pub process: u32,
    /// The time of the sample in ns of the recording's clock.
    pub time_ns: u64,
}

impl Thread<'_> {
    fn reader(&self) -> Option<impl Fn(u64) -> Option<u64> + use<'_>> {
        let (first, stack) = (self.registers.stack_pointer()?, self.stack);
        Some(move |address: u64| {
            let at = usize::try_from(address.checked_sub(first)?).ok()?;
            Some(u64::from_le_bytes(*stack.get(at..)?.first_chunk()?))
        })
    }
}

/// Unwind tables by path and build id of their image; each is requested once.
type TableCache = FxHashMap<(StringId, StringId), Option<Arc<dyn CallFrames>>>;

/// Walks stacks.
pub struct Unwinder {
    files: Arc<dyn ImageFiles>,
    tables: TableCache,
    jitted: Option<Box<dyn JittedFrames>>,
}

/// Maximum number of frames; no copied stack has as many.
const MAX_FRAMES: usize = 8192;
/// No code is below this address.
const LOWEST: u64 = 0x1000;

impl Unwinder {
    /// Creates an unwinder that gets unwind tables from `files`.
    pub fn new(files: Arc<dyn ImageFiles>) -> Self {
        Unwinder {
            files,
            tables: TableCache::default(),
            jitted: None,
        }
    }

    /// Walks through jitted code with this information.
    pub fn with_jitted(mut self, jitted: Option<Box<dyn JittedFrames>>) -> Self {
        self.jitted = jitted;
        self
    }

    /// Takes note of a file, as [`JittedFrames::mapped`].
    pub fn mapped(&mut self, process: u32, path: &str) {
        if let Some(jitted) = &mut self.jitted {
            jitted.mapped(process, path);
        }
    }

    /// Appends the frames of a thread, innermost first, each with its proof. Returns false if the
    /// walk ended before a frame that is marked as outermost.
    pub(crate) fn walk(
        &mut self,
        thread: Thread<'_>,
        state: &ProcessState,
        names: &NameTable,
        out: &mut Vec<Walked>,
    ) -> bool {
        let Some(read) = thread.reader() else {
            return false;
        };
        let mut registers = thread.registers.clone();
        let mut proof = None;
        for _ in 0..MAX_FRAMES {
            let address = code_address(&registers);
            if address < LOWEST {
                return true;
            }
            out.push(Walked { address, proof });
            let before = registers.stack_pointer();
            let looked_up = position(proof).looked_up(address);
            let image = state.mapped.covering(&state.images, looked_up);
            let step = match image {
                Some(image) => self.step(image, names, looked_up, &mut registers, &read),
                None => {
                    let jitted = self.jitted.as_mut();
                    let found =
                        jitted.and_then(|it| it.find(thread.process, thread.time_ns, looked_up));
                    found.map_or(Step::NoEntry, |frames| {
                        let files = &self.files;
                        files.step_jitted(frames, looked_up, &mut registers, &read)
                    })
                }
            };
            proof = match step {
                Step::Caller(proof) => Some(proof),
                Step::NoEntry if registers.follow_frame_pointer(&read).is_some() => {
                    Some(CallerProof::FramePointer)
                }
                Step::Outermost => return true,
                Step::NoEntry | Step::Lost => return false,
            };
            // Stacks grow downwards: a caller's frame is at a higher address. Only a leaf may have
            // no frame.
            let is_up = registers.stack_pointer() > before;
            let is_leaf = out.len() == 1 && registers.stack_pointer() == before;
            if !is_up && !is_leaf {
                return false;
            }
        }
        false
    }

    fn step(
        &mut self,
        image: &Image,
        names: &NameTable,
        address: u64,
        registers: &mut Registers,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Step {
        let reference = ImageRef::of(image, &names.strings);
        let key = (image.path, image.build_id);
        let files = &self.files;
        let table = self.tables.entry(key);
        match table.or_insert_with(|| files.call_frames(&reference)) {
            Some(table) => table.step(&reference, image.rva(address), registers, read),
            // Compilers of managed code keep frame pointers, JIT or ahead of time.
            None if is_managed(reference.path) => Step::NoEntry,
            None => Step::Lost,
        }
    }
}

/// Returns the position of a frame: exact if a signal interrupted it, else a return address.
fn position(proof: Option<CallerProof>) -> Position {
    match proof {
        None | Some(CallerProof::Signal | CallerProof::BranchRecord) => Position::Exact,
        Some(_) => Position::Return,
    }
}

fn is_managed(path: &str) -> bool {
    let ending = path.len().checked_sub(4).and_then(|at| path.get(at..));
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case(".dll"))
}

/// Returns the instruction address of a thread, without Arm's pointer authentication.
fn code_address(registers: &Registers) -> u64 {
    const ADDRESS: u64 = (1 << 48) - 1;
    match registers.processor() {
        Processor::Aarch64 => registers.instruction & ADDRESS,
        _ => registers.instruction,
    }
}
