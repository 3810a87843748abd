//! Any bytes as the text of `perf script`.
#![no_main]

use chronosym_perf::script::Reader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut reader = Reader::new(data);
    let mut samples = 0;
    while let Ok(Some(sample)) = reader.next_sample() {
        samples += 1;
        std::hint::black_box(sample.frames().count());
    }
    assert_eq!(samples, reader.diagnostics().samples);
    assert_eq!(reader.diagnostics().bytes_read, data.len() as u64);
});
