//! Call frame information of ELF files (`.eh_frame`, `.debug_frame`): recovers the registers of the
//! caller.

use std::ops::Range;
use std::sync::Mutex;

use chronosym_types::{Processor, Registers};
use gimli::{
    BaseAddresses, CallFrameInstruction, CfaRule, CieOrFde, DebugFrame, EhFrame, Encoding,
    EndianSlice, Evaluation, EvaluationResult, Register, RegisterRule, RunTimeEndian,
    UnwindContext, UnwindExpression, UnwindOffset, UnwindSection, UnwindTableRow, Value,
};
use object::read::{Object, ObjectSection};

use crate::answer::Address;
use crate::elf::container::Container;
use crate::elf::segments::Mapping;
use crate::error::{Error, Result};
use crate::mmap::FileData;

type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;

/// Size of one entry in bytes: each step runs through one, and real ones have about a hundred.
const MAX_ENTRY_BYTES: usize = 64 << 10;
/// Length of an augmentation string in bytes: `zPLR` is a long one. Every entry reads that of its
/// CIE.
const MAX_AUGMENTATION: usize = 64;
/// Bytes of entries that the steps in a file may read, in addition to the bytes that each step
/// adds: any number of steps may use the longest entry.
const FREE_BYTES: usize = 256 << 20;
const BYTES_A_STEP: usize = 1 << 10;

/// The unwind table of an ELF file.
#[derive(Debug)]
pub struct UnwindTable {
    container: Container,
    processor: Processor,
    bases: BaseAddresses,
    eh_frame: Option<Section>,
    debug_frame: Option<Section>,
    work: Mutex<Work>,
}

#[derive(Debug)]
struct Work {
    /// Memory for the rows of an entry.
    context: UnwindContext<usize>,
    /// Bytes of entries that may still be read.
    left: usize,
}

/// A section of entries.
#[derive(Debug)]
struct Section {
    bytes: Range<usize>,
    /// Virtual addresses of each function and the offset of its entry, sorted by start.
    functions: Vec<(Range<u64>, usize)>,
}

/// The result of a step to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The registers are now those of the caller.
    Caller {
        /// The caller was interrupted, as by a signal: its instruction pointer is not a return
        /// address.
        is_interrupted: bool,
    },
    /// The function is marked as outermost.
    Outermost,
    /// No entry covers the address.
    NoEntry,
    /// The entry is invalid, or needs registers or memory that are unavailable.
    Lost,
}

/// How much code has a frame pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FramePointers {
    /// Bytes of functions with an unwind entry.
    pub functions: u64,
    /// Bytes of those with a frame pointer.
    pub with_pointer: u64,
}

impl UnwindTable {
    /// Reads the headers of a file and indexes its entries.
    ///
    /// # Errors
    /// As [`NativeSymbols::open`](crate::NativeSymbols::open); [`Error::Unsupported`] for
    /// processors other than [`Processor`]'s.
    pub fn parse(data: FileData) -> Result<Self> {
        let container = Container::parse(data)?;
        let file = container.file()?;
        let processor = match file.architecture() {
            object::Architecture::X86_64 => Processor::X86_64,
            object::Architecture::Aarch64 => Processor::Aarch64,
            _ => {
                return Err(Error::Unsupported {
                    what: "call frame information of this processor",
                });
            }
        };
        let address = |name| Some(file.section_by_name(name)?.address());
        let mut bases = BaseAddresses::default();
        if let Some(text) = address(".text") {
            bases = bases.set_text(text);
        }
        if let Some(got) = address(".got") {
            bases = bases.set_got(got);
        }
        if let Some(own) = address(".eh_frame") {
            bases = bases.set_eh_frame(own);
        }
        // Debug files have headers of sections whose bytes are in the image only.
        let bytes = |name| {
            let section = file.section_by_name(name)?;
            let is_plain = section.compressed_file_range().is_ok_and(|range| {
                range.format == object::CompressionFormat::None && range.uncompressed_size > 0
            });
            let (offset, size) = section.file_range().filter(|_| is_plain)?;
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            container.data.get(start..end).map(|_| start..end)
        };
        let [eh_frame, debug_frame] = [".eh_frame", ".debug_frame"].map(bytes);
        drop(file);
        let mut table = UnwindTable {
            container,
            processor,
            bases,
            eh_frame: None,
            debug_frame: None,
            work: Mutex::new(Work {
                context: UnwindContext::new_in(),
                left: FREE_BYTES,
            }),
        };
        table.eh_frame = eh_frame.map(|bytes| Section {
            functions: functions(&table.eh(&bytes), table.bytes(&bytes), &table.bases),
            bytes,
        });
        table.debug_frame = debug_frame.map(|bytes| Section {
            functions: functions(&table.debug(&bytes), table.bytes(&bytes), &table.bases),
            bytes,
        });
        Ok(table)
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        let sections = [&self.eh_frame, &self.debug_frame];
        (sections.into_iter().flatten()).all(|section| section.functions.is_empty())
    }

    /// Counts the bytes of functions, and of those with a frame pointer: their entries compute the
    /// frame's address from `rbp` or `x29`. Code without one, in a file that has one elsewhere, is
    /// mostly that of functions that call no others. Takes time linear in the size of the entries.
    pub fn frame_pointers(&self) -> FramePointers {
        let mut counted = FramePointers::default();
        if let Some(section) = &self.eh_frame {
            self.count_frame_pointers(&self.eh(&section.bytes), section, &mut counted);
        }
        if let Some(section) = &self.debug_frame {
            self.count_frame_pointers(&self.debug(&section.bytes), section, &mut counted);
        }
        counted
    }

    fn count_frame_pointers<'a, S>(&self, entries: &S, section: &Section, into: &mut FramePointers)
    where
        S: UnwindSection<Bytes<'a>>,
        S::Offset: From<usize>,
    {
        let pointer = Register(self.processor.frame_pointer());
        for (function, at) in &section.functions {
            let entry = entries.fde_from_offset(&self.bases, (*at).into(), S::cie_from_offset);
            let Ok(entry) = entry else {
                continue;
            };
            let mut has_pointer = false;
            let mut instructions = entry.instructions(entries, &self.bases);
            while let Ok(Some(instruction)) = instructions.next() {
                has_pointer |= matches!(
                    instruction,
                    CallFrameInstruction::DefCfa { register, .. }
                        | CallFrameInstruction::DefCfaSf { register, .. }
                        | CallFrameInstruction::DefCfaRegister { register }
                    if register == pointer
                );
            }
            let bytes = function.end.saturating_sub(function.start);
            into.functions = into.functions.saturating_add(bytes);
            if has_pointer {
                into.with_pointer = into.with_pointer.saturating_add(bytes);
            }
        }
    }

    fn eh(&self, at: &Range<usize>) -> EhFrame<Bytes<'_>> {
        let mut section = EhFrame::new(self.bytes(at), self.container.endian);
        section.set_address_size(8);
        section
    }

    fn debug(&self, at: &Range<usize>) -> DebugFrame<Bytes<'_>> {
        let mut section = DebugFrame::new(self.bytes(at), self.container.endian);
        section.set_address_size(8);
        section
    }

    fn bytes(&self, at: &Range<usize>) -> &[u8] {
        self.container.data.get(at.clone()).unwrap_or_default()
    }

    /// Returns the number to add to offsets of the image's file in an executable mapping to get
    /// virtual addresses, if this is a debug file's table
    /// ([`NativeSymbols::offset_bias`](crate::NativeSymbols::offset_bias)).
    pub fn offset_bias(&self, mapping: Mapping) -> Option<u64> {
        let segments = &self.container.segments;
        (!segments.has_offsets()).then(|| segments.offset_bias(mapping))?
    }

    /// Replaces the registers of a function by those of its caller. `address` is in the function:
    /// the instruction pointer, or an address in the call instruction that has not yet returned.
    /// `read` reads 8 bytes of the stack.
    pub fn step(
        &self,
        address: Address,
        registers: &mut Registers,
        read: &dyn Fn(u64) -> Option<u64>,
    ) -> Step {
        let Some(address) = self.container.segments.virtual_address(address) else {
            return Step::NoEntry;
        };
        if registers.processor() != self.processor {
            return Step::Lost;
        }
        let Ok(mut work) = self.work.lock() else {
            return Step::Lost;
        };
        work.left = work.left.saturating_add(BYTES_A_STEP);
        let mut frame = UnwindFrame {
            address,
            registers,
            read,
            bases: &self.bases,
            work: &mut work,
        };
        let find = |it: &'_ Option<Section>| it.as_ref().and_then(|it| it.find(address));
        let step = if let Some((section, entry)) = find(&self.eh_frame) {
            frame.step(&self.eh(&section), entry.into())
        } else if let Some((section, entry)) = find(&self.debug_frame) {
            frame.step(&self.debug(&section), entry.into())
        } else {
            Some(Step::NoEntry)
        };
        step.unwrap_or(Step::Lost)
    }
}

/// Steps to the caller of jitted code that a compiler described with an `.eh_frame` of its own, at
/// `address`. Little-endian; otherwise as [`UnwindTable::step`].
pub fn step_in(
    eh_frame: &[u8],
    address: u64,
    instruction: u64,
    registers: &mut Registers,
    read: &dyn Fn(u64) -> Option<u64>,
) -> Step {
    if eh_frame.len() > MAX_ENTRY_BYTES {
        return Step::NoEntry;
    }
    let bases = BaseAddresses::default().set_eh_frame(address);
    let mut section = EhFrame::new(eh_frame, RunTimeEndian::Little);
    section.set_address_size(8);
    let functions = functions(&section, eh_frame, &bases);
    let mut covering = functions.iter().filter(|(it, _)| it.contains(&instruction));
    let Some((_, entry)) = covering.next() else {
        return Step::NoEntry;
    };
    let mut work = Work {
        context: UnwindContext::new_in(),
        left: FREE_BYTES,
    };
    let mut frame = UnwindFrame {
        address: instruction,
        registers,
        read,
        bases: &bases,
        work: &mut work,
    };
    let step = frame.step(&section, (*entry).into());
    step.unwrap_or(Step::Lost)
}

impl Section {
    /// Returns the entry of the function at an address.
    fn find(&self, address: u64) -> Option<(Range<usize>, usize)> {
        let after = (self.functions).partition_point(|(function, _)| function.start <= address);
        let (function, entry) = self.functions.get(after.checked_sub(1)?)?;
        let bytes = self.bytes.clone();
        function.contains(&address).then_some((bytes, *entry))
    }
}

/// Indexes the entries of a section up to the first damage.
fn functions<'a, S>(section: &S, bytes: &[u8], bases: &BaseAddresses) -> Vec<(Range<u64>, usize)>
where
    S: UnwindSection<Bytes<'a>>,
    S::Offset: UnwindOffset<usize>,
{
    let mut functions = Vec::new();
    let head = |section: &S, bases: &BaseAddresses, at: S::Offset| {
        let own = bytes.get(UnwindOffset::into(at)..).unwrap_or_default();
        // After the length, in either form, come four bytes and the version.
        let before = if own.starts_with(&[0xff; 4]) { 21 } else { 9 };
        let mut name = own.iter().skip(before).take(MAX_AUGMENTATION);
        match name.any(|&byte| byte == 0) {
            true => S::cie_from_offset(section, bases, at),
            false => Err(gimli::Error::UnknownAugmentation),
        }
    };
    let mut entries = section.entries(bases);
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        // Functions that the linker dropped have no address.
        let Ok(entry) = partial.parse(head) else {
            continue;
        };
        let range = entry.initial_address()..entry.end_address();
        let is_short = entry.entry_len().max(entry.cie().entry_len()) <= MAX_ENTRY_BYTES;
        if is_short && range.start != 0 && !range.is_empty() {
            functions.push((range, entry.offset()));
        }
    }
    functions.sort_unstable_by_key(|(function, entry)| (function.start, *entry));
    functions
}

/// A frame and what the step to its caller needs.
struct UnwindFrame<'a> {
    address: u64,
    registers: &'a mut Registers,
    read: &'a dyn Fn(u64) -> Option<u64>,
    bases: &'a BaseAddresses,
    work: &'a mut Work,
}

impl UnwindFrame<'_> {
    fn step<'b, S>(&mut self, section: &S, entry: S::Offset) -> Option<Step>
    where
        S: UnwindSection<Bytes<'b>>,
    {
        let entry = section
            .fde_from_offset(self.bases, entry, S::cie_from_offset)
            .ok()?;
        let encoding = entry.cie().encoding();
        let bytes = entry.entry_len().saturating_add(entry.cie().entry_len());
        self.work.left = self.work.left.checked_sub(bytes)?;
        let row = entry
            .unwind_info_for_address(section, self.bases, &mut self.work.context, self.address)
            .ok()?;
        let rules = RuleContext {
            section,
            encoding,
            registers: self.registers,
            read: self.read,
        };
        let top = rules.top(row)?;
        let mut caller = self.registers.clone();
        caller.set_stack_pointer(top);
        for (Register(number), rule) in row.registers() {
            if !matches!(rule, RegisterRule::SameValue) {
                caller.set(*number, rules.value(rule, top));
            }
        }
        let back = self.registers.processor().return_register();
        // A register without a rule keeps its value: on Arm, the link register.
        let is_outermost = matches!(row.register(Register(back)), Some(RegisterRule::Undefined));
        let Some(instruction) = caller.get(back).filter(|_| !is_outermost) else {
            return is_outermost.then_some(Step::Outermost);
        };
        caller.instruction = instruction;
        if self.registers.processor() == Processor::X86_64 {
            caller.set(back, None);
        }
        *self.registers = caller;
        Some(Step::Caller {
            is_interrupted: entry.is_signal_trampoline(),
        })
    }
}

/// Evaluates the rules of a row.
struct RuleContext<'a, S> {
    section: &'a S,
    encoding: Encoding,
    registers: &'a Registers,
    read: &'a dyn Fn(u64) -> Option<u64>,
}

impl<'b, S: UnwindSection<Bytes<'b>>> RuleContext<'_, S> {
    /// Returns the value of a register. On x86-64 the return address column is the instruction
    /// pointer, which the tables of linkage code refer to.
    fn register(&self, register: Register) -> Option<u64> {
        let processor = self.registers.processor();
        let is_instruction =
            processor == Processor::X86_64 && register.0 == processor.return_register();
        match is_instruction {
            true => Some(self.registers.instruction),
            false => self.registers.get(register.0),
        }
    }

    /// Returns the canonical frame address: the stack pointer before the call.
    fn top(&self, row: &UnwindTableRow<usize>) -> Option<u64> {
        match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.register(*register)?.checked_add_signed(*offset)
            }
            CfaRule::Expression(expression) => self.evaluate(expression, None),
        }
    }

    /// Returns the value of a register in the caller.
    fn value(&self, rule: &RegisterRule<usize>, top: u64) -> Option<u64> {
        match rule {
            RegisterRule::Undefined => None,
            RegisterRule::Offset(offset) => (self.read)(top.checked_add_signed(*offset)?),
            RegisterRule::ValOffset(offset) => top.checked_add_signed(*offset),
            RegisterRule::Register(other) => self.register(*other),
            RegisterRule::Expression(expression) => {
                (self.read)(self.evaluate(expression, Some(top))?)
            }
            RegisterRule::ValExpression(expression) => self.evaluate(expression, Some(top)),
            RegisterRule::Constant(value) => Some(*value),
            _ => None,
        }
    }

    fn evaluate(&self, expression: &UnwindExpression<usize>, initial: Option<u64>) -> Option<u64> {
        let expression = expression.get(self.section).ok()?;
        // Each operation runs once: compilers write no loops.
        let max = u32::try_from(expression.0.len()).ok()?;
        let mut evaluation: Evaluation<Bytes<'b>> = expression.evaluation(self.encoding);
        evaluation.set_max_iterations(max);
        if let Some(value) = initial {
            evaluation.set_initial_value(value);
        }
        let mut state = evaluation.evaluate().ok()?;
        for _ in 0..max {
            state = match state {
                EvaluationResult::Complete => {
                    return match evaluation.value_result()? {
                        Value::Generic(value) | Value::U64(value) => Some(value),
                        _ => None,
                    };
                }
                EvaluationResult::RequiresMemory {
                    address, size: 8, ..
                } => {
                    let value = (self.read)(address)?;
                    evaluation.resume_with_memory(Value::Generic(value))
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.register(register)?;
                    evaluation.resume_with_register(Value::Generic(value))
                }
                _ => return None,
            }
            .ok()?;
        }
        None
    }
}
