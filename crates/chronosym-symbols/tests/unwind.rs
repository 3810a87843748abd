//! Call frame information: every kind of rule, and damage.

mod made;

use chronosym_symbols::Address;
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::unwind::{self, Step, UnwindTable};
use chronosym_types::{Processor, Registers};
use made::{elf, with_length};
use proptest::prelude::*;

const TEXT: u64 = 0x1000;
const STACK: u64 = 0x7000;
const CALL: Step = Step::Caller {
    is_interrupted: false,
};

/// The stack pointer is 8 below the frame, the return address right there.
const INITIAL: [u8; 5] = [0x0c, 7, 8, 0x90, 1];

/// An entry of functions in `.debug_frame`: (offset in the text, size, instructions).
fn debug_frame(functions: &[(u64, u64, &[u8])]) -> Vec<u8> {
    let mut cie = vec![0xff; 4];
    // Version 1, no augmentation, factors 1 and -8, return address in column 16.
    cie.extend([1, 0, 1, 0x78, 16]);
    cie.extend(INITIAL);
    let mut section = with_length(cie);
    for (offset, size, instructions) in functions {
        let mut entry = 0_u32.to_le_bytes().to_vec();
        entry.extend((TEXT + offset).to_le_bytes());
        entry.extend(size.to_le_bytes());
        entry.extend(*instructions);
        section.extend(with_length(entry));
    }
    section
}

/// Encodes the functions as `.eh_frame`, with the augmentation of a signal's trampoline if
/// requested.
fn eh_frame(functions: &[(u64, u64, &[u8])], is_signal: bool) -> Vec<u8> {
    let mut cie = vec![0; 4];
    cie.push(1);
    cie.extend(if is_signal { &b"zRS\0"[..] } else { b"zR\0" });
    // Factors, column, one byte of augmentation: addresses are absolute.
    cie.extend([1, 0x78, 16, 1, 0]);
    cie.extend(INITIAL);
    let mut section = with_length(cie);
    for (offset, size, instructions) in functions {
        let mut entry = (section.len() as u32 + 4).to_le_bytes().to_vec();
        entry.extend((TEXT + offset).to_le_bytes());
        entry.extend(size.to_le_bytes());
        entry.push(0);
        entry.extend(*instructions);
        section.extend(with_length(entry));
    }
    section.extend([0; 4]);
    section
}

fn file(name: &str, section: Vec<u8>) -> Vec<u8> {
    elf(&[
        (".text", 1, 6, TEXT, vec![0x90; 0x100]),
        (name, 1, 2, 0x4000, section),
    ])
}

fn table(bytes: Vec<u8>) -> UnwindTable {
    UnwindTable::parse(FileData::from(bytes)).expect("it is sound")
}

/// Words from 0x7000 up.
fn read(address: u64) -> Option<u64> {
    let at = address.checked_sub(STACK)?;
    (at < 0x100).then_some(0x10_0000 + at)
}

fn start() -> Registers {
    let mut registers = Registers::new(Processor::X86_64, TEXT);
    registers.set_stack_pointer(STACK);
    registers.set(6, Some(STACK + 0x40));
    registers.set(3, Some(33));
    registers
}

fn step(table: &UnwindTable, offset: u64) -> (Step, Registers) {
    let mut registers = start();
    let step = table.step(
        Address::VirtualAddress(TEXT + offset),
        &mut registers,
        &read,
    );
    (step, registers)
}

#[test]
fn code_with_frame_pointers_is_counted() {
    let pushes = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6];
    // Only the stack pointer moves.
    let moves = [0x41, 0x0e, 16];
    let functions: [(u64, u64, &[u8]); 3] =
        [(0, 0x10, &moves), (0x10, 0x20, &pushes), (0x30, 0x8, &[])];
    for bytes in [
        file(".debug_frame", debug_frame(&functions)),
        file(".eh_frame", eh_frame(&functions, false)),
    ] {
        let counted = table(bytes).frame_pointers();
        assert_eq!((counted.functions, counted.with_pointer), (0x38, 0x20));
    }
}

#[test]
fn rows_locate_the_caller_at_each_instruction() {
    // push bp after 1 byte: the frame is 16 below, bp saved; then the frame is by bp.
    let pushes = [0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6];
    let functions: [(u64, u64, &[u8]); 1] = [(0x10, 0x20, &pushes)];
    for bytes in [
        file(".debug_frame", debug_frame(&functions)),
        file(".eh_frame", eh_frame(&functions, false)),
    ] {
        let table = table(bytes);
        assert!(!table.is_empty());
        let at = |offset| {
            let (found, registers) = step(&table, offset);
            assert_eq!(found, CALL, "{offset:#x}");
            let known = [6, 7, 3].map(|number| registers.get(number));
            (registers.instruction, known)
        };
        let (own, kept) = (Some(STACK + 0x40), Some(33));
        assert_eq!(at(0x10), (0x10_0000, [own, Some(STACK + 8), kept]));
        assert_eq!(
            at(0x11),
            (0x10_0008, [Some(0x10_0000), Some(STACK + 16), kept])
        );
        assert_eq!(
            at(0x14),
            (0x10_0048, [Some(0x10_0040), Some(STACK + 0x50), kept])
        );
        assert_eq!(step(&table, 0xf).0, Step::NoEntry);
        assert_eq!(step(&table, 0x30), (Step::NoEntry, start()));
    }
}

#[test]
fn rules_of_every_kind_are_followed() {
    let rules: &[u8] = &[
        // The frame is the value at sp + 8, by an expression.
        0x0f, 3, 0x77, 8, 0x06,
        // bx is the former bp, bp is the frame − 16, r12 is at the frame + 8, r13 is the frame + 2,
        // r14 is unknown.
        0x09, 3, 6, 0x14, 6, 2, 0x10, 12, 2, 0x23, 8, 0x16, 13, 2, 0x23, 2, 0x07, 14,
    ];
    let table = table(file(".debug_frame", debug_frame(&[(0, 0x10, rules)])));
    let frame = STACK + 0x20;
    let memory = move |address| match address {
        0x7008 => Some(frame),
        other => read(other),
    };
    let mut registers = start();
    registers.set(14, Some(14));
    let found = table.step(Address::VirtualAddress(TEXT), &mut registers, &memory);
    assert_eq!(found, CALL);
    let known = [3, 6, 7, 12, 13, 14].map(|number| registers.get(number));
    assert_eq!(
        known,
        [
            Some(STACK + 0x40),
            Some(frame - 16),
            Some(frame),
            Some(0x10_0028),
            Some(frame + 2),
            None
        ]
    );
    assert_eq!(registers.instruction, 0x10_0018);
}

#[test]
fn linkage_code_has_its_frame_by_the_instruction() {
    // Linkers write this for each 16 bytes: sp + 8, and 8 more from the 11th byte on, after the
    // push.
    let rules = [
        0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
    ];
    let table = table(file(".eh_frame", eh_frame(&[(0, 0x40, &rules)], false)));
    for (offset, back) in [(0x10, 0x10_0000), (0x1a, 0x10_0000), (0x1b, 0x10_0008)] {
        let mut registers = start();
        registers.instruction = 0x5555_0000 + offset;
        let at = Address::VirtualAddress(TEXT + offset);
        assert_eq!(table.step(at, &mut registers, &read), CALL);
        assert_eq!(registers.instruction, back, "{offset:#x}");
    }
}

#[test]
fn ends_and_signals_are_distinguished_from_calls() {
    let outermost: [(u64, u64, &[u8]); 1] = [(0, 0x10, &[0x07, 16])];
    let outermost = table(file(".eh_frame", eh_frame(&outermost, false)));
    assert_eq!(step(&outermost, 0).0, Step::Outermost);
    let signal = table(file(".eh_frame", eh_frame(&[(0, 0x10, &[])], true)));
    let interrupted = Step::Caller {
        is_interrupted: true,
    };
    assert_eq!(step(&signal, 0).0, interrupted);
    // The frame is beyond the copy of the stack.
    let mut registers = start();
    registers.set_stack_pointer(STACK + 0x1000);
    let at = Address::VirtualAddress(TEXT);
    let before = registers.clone();
    assert_eq!(signal.step(at, &mut registers, &read), Step::Lost);
    assert_eq!(registers, before);
    let mut arm = Registers::new(Processor::Aarch64, TEXT);
    assert_eq!(signal.step(at, &mut arm, &read), Step::Lost);
}

#[test]
fn an_expression_without_end_is_left() {
    // skip -3: itself again.
    let rules = [0x0f, 3, 0x2f, 0xfd, 0xff];
    let table = table(file(".debug_frame", debug_frame(&[(0, 0x10, &rules)])));
    assert_eq!(step(&table, 0).0, Step::Lost);
}

proptest! {
    #[test]
    fn any_bytes_may_be_wrong(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let rules: &[u8] = &[0x0f, 3, 0x77, 8, 0x06, 0x10, 12, 2, 0x23, 8, 0x42, 0x0a, 0x0b];
        let whole = file(".eh_frame", eh_frame(&[(0, 0x10, rules), (0x20, 8, &[0x41, 0x0e, 16])], false));
        let mut bytes = whole.clone();
        for (at, value) in flips {
            bytes[at.index(whole.len())] = value;
        }
        if let Ok(table) = UnwindTable::parse(FileData::from(bytes)) {
            for offset in 0..0x40 {
                let _ = step(&table, offset);
            }
        }
    }
}

#[test]
fn a_header_extended_without_end_is_rejected() {
    let entries = |extensions: usize| {
        let mut head = vec![0, 0, 0, 0, 1, b'z'];
        head.extend([b'L'].repeat(extensions));
        // Factors, column, a byte of each extension.
        head.extend([0, 1, 0x78, 16]);
        head.extend([extensions as u8 | 0x80, (extensions >> 7) as u8]);
        head.extend([0].repeat(extensions));
        head.extend(INITIAL);
        let mut section = with_length(head);
        let mut entry = (section.len() as u32 + 4).to_le_bytes().to_vec();
        entry.extend([TEXT, 16].map(u64::to_le_bytes).concat());
        // An address in an unknown encoding for the last extension.
        entry.extend([8, 0, 0, 0, 0, 0, 0, 0, 0]);
        section.extend(with_length(entry));
        section.extend([0; 4]);
        section
    };
    assert!(!table(file(".eh_frame", entries(3))).is_empty());
    assert!(table(file(".eh_frame", entries(10_000))).is_empty());
}

#[test]
fn jitted_code_is_described_by_a_section_of_its_own() {
    // The frame is 16 below after 4 bytes.
    let functions: [(u64, u64, &[u8]); 1] = [(0, 0x20, &[0x44, 0x0e, 16])];
    let section = eh_frame(&functions, false);
    let at = |offset: u64| {
        let (mut registers, address) = (start(), TEXT + 0x20);
        let step = unwind::step_in(&section, address, TEXT + offset, &mut registers, &read);
        (step, registers.instruction)
    };
    assert_eq!(at(3), (CALL, 0x10_0000));
    assert_eq!(at(4), (CALL, 0x10_0008));
    assert_eq!(at(0x20), (Step::NoEntry, TEXT));
    for end in 0..section.len() {
        let cut = section.get(..end).unwrap();
        let _ = unwind::step_in(cut, TEXT + 0x20, TEXT, &mut start(), &read);
    }
}
