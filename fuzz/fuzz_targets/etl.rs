//! Any bytes as an .etl file: all that a caller may ask of its records.
#![no_main]

use chronosym_etl::{EtlReader, ExtendedItem};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = EtlReader::open(data) else { return };
    while let Some(record) = reader.next_record() {
        std::hint::black_box((record.counters().fold(0, |all, word| all ^ word), record.instance()));
        for item in record.extended_items() {
            match item {
                ExtendedItem::SchemaTl(schema) => {
                    let _ = std::hint::black_box(chronosym_etl::TraceLoggingSchema::parse(schema));
                }
                other => {
                    std::hint::black_box(format!("{other:?}"));
                }
            }
        }
    }
});
