//! Any bytes as a perf.data: all that a caller may ask of its records.
#![no_main]

use chronosym_perf::{Event, Options, Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // A small limit, so that rounds are cut, too.
    let options = Options::default().with_round_limit(16 << 10);
    if let Ok(mut reader) = Reader::open(std::io::Cursor::new(data), options) {
        while let Ok(Some(_)) = reader.next_record() {}
    }
    let Ok(mut reader) = Reader::new(data, options) else { return };
    let mut records = 0;
    while let Ok(Some(record)) = reader.next_record() {
        records += 1;
        assert!(record.attr.is_none_or(|attr| attr < 1 << 16));
        if let Event::Sample(sample) = record.event {
            let chain = sample.callchain.iter().flat_map(|chain| chain.parts());
            let sum = chain.flat_map(|part| part.addresses.iter()).fold(0, |all, address| all ^ address);
            let registers = sample.user_registers.and_then(|registers| registers.get(7));
            std::hint::black_box((sum, registers));
        }
        std::hint::black_box(format!("{:?}", record.event));
    }
    let diagnostics = reader.diagnostics();
    assert!(records <= diagnostics.records);
    assert!(diagnostics.bytes_read <= data.len() as u64);
    if let Some(truncation) = diagnostics.truncation {
        assert!(truncation.at_offset + truncation.bytes_lost <= data.len() as u64);
    }
});
