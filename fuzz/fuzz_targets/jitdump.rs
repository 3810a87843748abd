//! Any bytes as a jitdump: all that a caller may ask of its records.
#![no_main]

use chronosym_perf::jitdump::{Reader, Record};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = Reader::new(data) else { return };
    let mut records = 0;
    while let Ok(Some(record)) = reader.next_record() {
        records += 1;
        if let Record::Load(load) = record {
            let end = load.code_offset + load.code.map_or(0, |code| code.len() as u64);
            assert!(end <= data.len() as u64);
            std::hint::black_box((load.lines.count(), load.unwinding));
        }
    }
    assert!(records <= reader.diagnostics().records);
    assert_eq!(reader.diagnostics().bytes_read, data.len() as u64);
});
