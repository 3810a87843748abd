//! Any bytes as a trace of LTTng: its metadata up to the first zero, the rest a stream.
#![no_main]

use chronosym_ctf::{Metadata, Options, Reader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let text = [b"/* CTF 1.8 */", &data[..end]].concat();
    let Ok(metadata) = Metadata::parse(&text, Options::default()) else { return };
    let stream = data.get(end + 1..).unwrap_or_default();
    let mut reader = Reader::new(vec![metadata], Options::default());
    reader.add_stream(stream);
    let (mut events, mut last) = (0, 0);
    while let Ok(Some(event)) = reader.next_event() {
        assert!(event.time_ns >= last);
        last = event.time_ns;
        events += 1;
        let values = event.context.iter().chain(event.fields.iter());
        std::hint::black_box(values.count());
    }
    assert_eq!(events, reader.diagnostics().events);
    assert!(reader.diagnostics().bytes_read <= stream.len() as u64);
});
