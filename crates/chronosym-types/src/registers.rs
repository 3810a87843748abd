//! Registers of a thread while its stack is walked.

/// A processor whose stacks can be walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Processor {
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

impl Processor {
    /// DWARF numbers of the frame pointer and the stack pointer.
    const fn pointers(self) -> (u16, u16) {
        match self {
            Processor::X86_64 => (6, 7),
            Processor::Aarch64 => (29, 31),
        }
    }

    /// Returns the DWARF number of the frame pointer.
    pub const fn frame_pointer(self) -> u16 {
        self.pointers().0
    }

    /// Returns the DWARF number of the return address column, which need not be a register.
    pub const fn return_register(self) -> u16 {
        match self {
            Processor::X86_64 => 16,
            Processor::Aarch64 => 30,
        }
    }
}

const COUNT: usize = 33;

/// The registers in one frame, by DWARF number. Unknown ones are absent.
///
/// # Examples
///
/// ```
/// use chronosym_types::{Processor, Registers};
///
/// let mut registers = Registers::new(Processor::X86_64, 0x40_1010);
/// registers.set_stack_pointer(0x7ffe_0f00);
/// registers.set(6, Some(0x7ffe_1000)); // rbp
/// // The frame pointer points to the caller's, and the return address follows it.
/// let stack = |address| match address {
///     0x7ffe_1000 => Some(0x7ffe_1040),
///     0x7ffe_1008 => Some(0x40_2020),
///     _ => None,
/// };
/// assert_eq!(registers.follow_frame_pointer(stack), Some(()));
/// assert_eq!(registers.stack_pointer(), Some(0x7ffe_1010));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    processor: Processor,
    values: [Option<u64>; COUNT],
    /// Instruction pointer or return address.
    pub instruction: u64,
}

impl Registers {
    /// Returns registers of which only the instruction pointer is known.
    pub fn new(processor: Processor, instruction: u64) -> Self {
        Registers {
            processor,
            values: [None; COUNT],
            instruction,
        }
    }

    /// Returns the processor.
    pub fn processor(&self) -> Processor {
        self.processor
    }

    /// Returns the value of a register.
    pub fn get(&self, number: u16) -> Option<u64> {
        *self.values.get(usize::from(number))?
    }

    /// Sets a register. Ignores numbers that the processor does not have.
    pub fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(register) = self.values.get_mut(usize::from(number)) {
            *register = value;
        }
    }

    /// Returns the stack pointer.
    pub fn stack_pointer(&self) -> Option<u64> {
        self.get(self.processor.pointers().1)
    }

    /// Sets the stack pointer.
    pub fn set_stack_pointer(&mut self, value: u64) {
        self.set(self.processor.pointers().1, Some(value));
    }

    /// Moves to the caller along the chain of frame pointers: each points to the caller's frame
    /// pointer, followed by the return address. Returns `None` and changes nothing if the chain
    /// ends.
    pub fn follow_frame_pointer(&mut self, read: impl Fn(u64) -> Option<u64>) -> Option<()> {
        let (frame, stack) = self.processor.pointers();
        let at = self.get(frame)?;
        if at % 8 != 0 || at < self.get(stack)? {
            return None;
        }
        let (next, back) = (read(at)?, read(at.checked_add(8)?)?);
        // The frame pointer of the outermost frame is 0; any other must increase.
        if next != 0 && next <= at {
            return None;
        }
        let mut caller = Registers::new(self.processor, back);
        caller.set(frame, Some(next));
        caller.set(stack, Some(at.checked_add(16)?));
        *self = caller;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_pointers_lead_outwards_only() {
        let stack = [0x1010_u64, 0x40, 0, 0x50];
        let read = |address: u64| {
            let at = address.checked_sub(0x1000)? / 8;
            stack.get(usize::try_from(at).ok()?).copied()
        };
        for (processor, frame) in [(Processor::X86_64, 6), (Processor::Aarch64, 29)] {
            let mut registers = Registers::new(processor, 0x30);
            assert_eq!(registers.follow_frame_pointer(read), None, "none is known");
            registers.set_stack_pointer(0xff8);
            registers.set(frame, Some(0x1000));
            registers.set(3, Some(9));
            let mut seen = Vec::new();
            while registers.follow_frame_pointer(read).is_some() {
                seen.push((registers.instruction, registers.stack_pointer()));
            }
            assert_eq!(seen, [(0x40, Some(0x1010)), (0x50, Some(0x1020))]);
            assert_eq!(registers.get(3), None, "a callee may have changed it");
            // A chain back into the same frame.
            registers.set_stack_pointer(0x1010);
            registers.set(frame, Some(0x1008));
            assert_eq!(registers.follow_frame_pointer(read), None);
            registers.set(frame, Some(0x1001));
            assert_eq!(registers.follow_frame_pointer(read), None);
        }
    }
}
