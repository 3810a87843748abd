//! Any bytes as a linked ELF or PE file: symbol table, debug information, names.
#![no_main]

use chronosym_symbols::{Address, Answers, NativeSymbols, Query};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(file) = NativeSymbols::open(data) else {
        return;
    };
    std::hint::black_box((file.build_id().is_some(), file.base(), file.has_lines()));
    let spread = |range: &std::ops::Range<u64>| {
        let (start, step) = (
            range.start,
            (range.end.saturating_sub(range.start) / 30).max(1),
        );
        (0..32)
            .map(move |index| Address::VirtualAddress(start.wrapping_add(step.wrapping_mul(index))))
    };
    let mut addresses: Vec<_> = file.code().iter().take(20).flat_map(spread).collect();
    addresses.extend([0, 0x1000, u64::MAX].map(Address::Rva));
    let mut query = Query::default();
    query.symbol_names = true;
    query.threads = 1;
    let mut answers = Answers::new();
    // At once, which reads the units in file order, and one by one, which keeps them.
    file.find_all(&addresses, &query, &mut answers);
    assert_eq!(answers.len(), addresses.len());
    for answer in answers.iter() {
        for frame in answer.frames() {
            std::hint::black_box((frame.demangled(), frame.file(), frame.line()));
        }
    }
    for &address in addresses.iter().take(40) {
        file.find(address, &query, &mut answers);
        assert_eq!(answers.len(), 1);
    }
});
