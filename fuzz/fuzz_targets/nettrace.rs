//! Any bytes as a .nettrace or .netperf file: all that a caller may ask of its records.
#![no_main]

use chronosym_nettrace::{Options, Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // A small limit, so that regions are cut, too.
    let options = Options::default().with_region_limit(64 << 10);
    let Ok(mut reader) = Reader::with_options(data, options) else { return };
    let mut events = 0;
    let mut types = 0;
    while let Ok(Some(region)) = reader.next_region() {
        let mut in_time_order = 0;
        let mut latest = i64::MIN;
        for record in region.in_time_order() {
            assert!(record.raw_time >= latest);
            latest = record.raw_time;
            in_time_order += 1;
        }
        assert_eq!(in_time_order, region.len());
        for record in region.records() {
            events += 1;
            assert!(region.event_type(record.event_type).is_some());
            let stack = record.stack.map(|row| {
                assert!(row.index() < region.stack_count());
                region.stack(row).addresses().fold(0, |all, address| all ^ address)
            });
            let ids = (record.activity_id(), record.related_activity_id(), record.labels().count());
            std::hint::black_box((stack, ids, record.thread(), record.payload.len()));
        }
        assert!(region.event_types().len() >= types);
        types = region.event_types().len();
    }
    let diagnostics = reader.diagnostics();
    assert_eq!(diagnostics.events, events);
    assert_eq!(diagnostics.bytes_read, data.len() as u64);
    for gap in diagnostics.gaps.listed() {
        assert!(gap.end() <= data.len() as u64);
    }
});
