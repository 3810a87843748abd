//! The stack of a sample: its recorded addresses, and the registers from which a walk starts.

use chronosym_perf::{CpuMode, Record, Sample};
use chronosym_types::{Processor, Registers};

use chronosym_core::Session;

/// What was recorded of a stack.
pub(super) struct Recorded {
    /// Whether it has all frames. If not, a copy of the user stack must be unwound.
    pub is_whole: bool,
    /// Index of the first frame whose address is that of a call instruction.
    pub calls: usize,
}

/// Writes the addresses of a sample to `out`, innermost first: those of the kernel, then those of
/// user space. Samples of guests have none, since their addresses belong to another machine.
///
/// The processor's branch records replace the walk over frame pointers up to its first frame, as in
/// perf.
pub(super) fn addresses(record: &Record<'_>, sample: &Sample<'_>, out: &mut Vec<u64>) -> Recorded {
    out.clear();
    if is_guest(record.cpu_mode) {
        return Recorded {
            is_whole: true,
            calls: 0,
        };
    }
    let calls = || sample.call_stack.iter().flat_map(|stack| stack.calls());
    let has_calls = calls().next().is_some();
    let mut has_user = false;
    for part in sample.callchain.iter().flat_map(|chain| chain.parts()) {
        if !is_guest(part.mode) {
            let is_user = part.mode == CpuMode::User;
            has_user |= is_user;
            let most = if is_user && has_calls { 1 } else { usize::MAX };
            out.extend(part.addresses.iter().take(most));
        }
    }
    // Walks over frame pointers end in values that are not addresses.
    const LOWEST: u64 = 0x1000;
    while out.last().is_some_and(|&last| last < LOWEST) {
        out.pop();
    }
    if out.is_empty() {
        out.extend(sample.ip);
    }
    let first_call = out.len();
    out.extend(calls());
    // Kernel threads have neither registers nor a stack of user space.
    let has_user = has_user || has_calls;
    Recorded {
        is_whole: has_user || sample.user_stack.is_none_or(|_| !has_registers(sample)),
        calls: first_call,
    }
}

fn has_registers(sample: &Sample<'_>) -> bool {
    sample.user_registers.is_none_or(|it| it.abi != 0)
}

pub(super) fn is_guest(mode: CpuMode) -> bool {
    matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser)
}

/// Returns the registers of a 64-bit program, by DWARF's numbers.
pub(super) fn registers(
    session: &mut Session,
    recorded: &chronosym_perf::Registers<'_>,
) -> Option<Registers> {
    const IS_64_BIT: u64 = 2;
    // ax dx cx bx si di bp sp r8..r15, as the kernel numbers them.
    const X86_64: [u32; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
    let machine = session.facts().machine.as_deref().unwrap_or("x86_64");
    let (processor, instruction) = match machine {
        _ if machine.ends_with("aarch64") => (Processor::Aarch64, 32),
        _ if machine.ends_with("x86_64") => (Processor::X86_64, 8),
        _ => return None,
    };
    let instruction = recorded
        .get(instruction)
        .filter(|_| recorded.abi == IS_64_BIT)?;
    let mut registers = Registers::new(processor, instruction);
    for number in 0..32 {
        let own = match processor {
            Processor::X86_64 => X86_64.get(usize::from(number)).copied(),
            _ => Some(number.into()),
        };
        registers.set(number, own.and_then(|own| recorded.get(own)));
    }
    Some(registers)
}
