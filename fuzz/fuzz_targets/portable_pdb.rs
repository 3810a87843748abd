//! Any bytes as a portable PDB: all that a caller may ask of it.
#![no_main]

use chronosym_pdb::portable::PortablePdb;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(pdb) = PortablePdb::parse(data) else {
        return;
    };
    for row in pdb.documents().take(1000) {
        std::hint::black_box((pdb.document(row), pdb.source_link_url(row)));
        let _ = std::hint::black_box(pdb.embedded_source(row, 1 << 20));
    }
    for row in 0..=pdb.methods().min(1000) {
        std::hint::black_box((
            pdb.lines(row).count(),
            pdb.line_at(row, 20),
            pdb.kickoff_method(row),
        ));
    }
    std::hint::black_box(pdb.verify_checksum("SHA256", &[0; 32]));
});
