//! From the registers and the stack of a sampled thread to its callers.
//!
//! Through an image by its unwind tables, if a file of it is at hand; through code of a compiler at run time by frame
//! pointers, and likewise where the tables of an image leave a function out. An image without a file ends the stack: what
//! it does with the frame pointer is not known, and a guess would name callers that there were not. The stack is never
//! scanned for what looks like an address.

use std::sync::Arc;

pub use chronosym_types::{Processor, Registers};
use rustc_hash::FxHashMap;

use crate::evidence::CallerProof;
use crate::images::Image;
use crate::names::Names;
use crate::stacks::Walked;
use crate::state::ProcessState;
use crate::strings::StringId;
use crate::symbol_source::ImageRef;
use crate::terms::Position;

/// What became of the search for a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The registers are those of the caller now, by this proof.
    Caller(CallerProof),
    /// The table says nothing of the address.
    NoEntry,
    /// The function has no caller.
    Outermost,
    /// The table cannot be followed, or the stack ends before it should.
    Lost,
}

/// How the functions of one image save registers.
pub trait CallFrames: Send + Sync {
    /// From the registers in a function to those in its caller. `rva` is where the thread stands in the image, or where it
    /// stands in the call; `read` gives 8 bytes of the stack.
    fn step(
        &self,
        image: &ImageRef<'_>,
        rva: u64,
        registers: &mut Registers,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Step;
}

/// The file that was mapped, as the kernel knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileNumber {
    /// Major and minor number of its device.
    pub device: (u32, u32),
    /// Its inode.
    pub inode: u64,
}

/// The files of images, for what has to be known of them while a recording is read.
pub trait ImageFiles: Send + Sync {
    /// How the functions of an image save registers; `None` if no file of it is at hand.
    fn call_frames(&self, image: &ImageRef<'_>) -> Option<Arc<dyn CallFrames>>;

    /// The build id of a file of this machine, in hex digits, if it is still the one that was mapped. For recorders that do
    /// not state one.
    fn build_id(&self, path: &str, file: FileNumber) -> Option<String> {
        let _ = (path, file);
        None
    }
}

/// A thread as a sample found it.
pub struct Thread<'a> {
    /// Its registers.
    pub registers: Registers,
    /// The bytes of its stack from the stack pointer up, in the order of little-endian machines.
    pub stack: &'a [u8],
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

/// Where images are found, by path and build id: each is asked for once.
type Known = FxHashMap<(StringId, StringId), Option<Arc<dyn CallFrames>>>;

/// Walks stacks.
pub struct Unwinder {
    files: Arc<dyn ImageFiles>,
    known: Known,
}

/// More frames than any stack that can be copied has room for.
const MOST_FRAMES: usize = 8192;
/// Below this there is no code.
const LOWEST: u64 = 0x1000;

impl Unwinder {
    /// Asks `files` for the tables of images.
    pub fn new(files: Arc<dyn ImageFiles>) -> Self {
        Unwinder {
            files,
            known: Known::default(),
        }
    }

    /// The files of images.
    pub fn files(&self) -> &dyn ImageFiles {
        &*self.files
    }

    /// Appends the frames of a thread, innermost first, each with what proves it. False if the walk broke off before a frame
    /// that says that it is the outermost.
    pub(crate) fn walk(
        &mut self,
        thread: Thread<'_>,
        state: &ProcessState,
        names: &Names,
        out: &mut Vec<Walked>,
    ) -> bool {
        let Some(read) = thread.reader() else {
            return false;
        };
        let mut registers = thread.registers.clone();
        let mut proof = None;
        for _ in 0..MOST_FRAMES {
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
                None => Step::NoEntry,
            };
            proof = match step {
                Step::Caller(proof) => Some(proof),
                Step::NoEntry if registers.follow_frame_pointer(&read).is_some() => {
                    Some(CallerProof::FramePointer)
                }
                Step::Outermost => return true,
                Step::NoEntry | Step::Lost => return false,
            };
            // Stacks grow downwards: a caller's frame lies further up. Only a leaf may have none of its own.
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
        names: &Names,
        address: u64,
        registers: &mut Registers,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Step {
        let reference = ImageRef::of(image, &names.strings);
        let key = (image.path, image.build_id);
        let files = &self.files;
        let known = self.known.entry(key);
        match known.or_insert_with(|| files.call_frames(&reference)) {
            Some(table) => table.step(&reference, image.rva(address), registers, read),
            // Compilers of managed code keep frame pointers, whether they compile beforehand or not.
            None if is_managed(reference.path) => Step::NoEntry,
            None => Step::Lost,
        }
    }
}

/// A frame that was found so stands at its address, or waits for a call to return there.
fn position(proof: Option<CallerProof>) -> Position {
    match proof {
        None | Some(CallerProof::Signal) => Position::Exact,
        Some(_) => Position::Return,
    }
}

fn is_managed(path: &str) -> bool {
    let ending = path.len().checked_sub(4).and_then(|at| path.get(at..));
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case(".dll"))
}

/// Where a thread stands, without what Arm's pointer authentication adds.
fn code_address(registers: &Registers) -> u64 {
    const ADDRESS: u64 = (1 << 48) - 1;
    match registers.processor() {
        Processor::Aarch64 => registers.instruction & ADDRESS,
        _ => registers.instruction,
    }
}
