//! Any bytes as a Windows PDB: all that a caller may ask of it.
#![no_main]

use chronosym_pdb::windows::{Frames, WindowsPdb};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(pdb) = WindowsPdb::open(data) else {
        return;
    };
    std::hint::black_box((pdb.guid(), pdb.age(), pdb.machine(), pdb.limits().count()));
    for name in ["/names", "srcsrv"] {
        let _ = std::hint::black_box(pdb.named_stream(name));
    }
    let _ = std::hint::black_box(pdb.source_link());
    let mut frames = Frames::new();
    let mut ask = |rva: u32| {
        if let Ok(Some(function)) = pdb.find(rva, &mut frames) {
            assert!(!frames.is_empty());
            std::hint::black_box((function, format!("{:?}", &*frames)));
        } else {
            assert!(frames.is_empty());
        }
        let _ = std::hint::black_box(pdb.symbol(rva));
    };
    // What the file says, and addresses that no function of it may have.
    for function in pdb.functions().take(300).flatten() {
        ask(function.rva);
        ask(function.rva.wrapping_add(function.len / 2));
        ask(function.rva.wrapping_add(function.len));
    }
    for rva in (0..0x4000).step_by(61) {
        ask(rva);
    }
    ask(u32::MAX);
    for row in 1..20 {
        let _ = std::hint::black_box(pdb.managed_line(0x0600_0000 + row, 7 * row));
    }
    let _ = std::hint::black_box(pdb.source_checksum("Program.cs"));
    std::hint::black_box(pdb.heap_bytes());
});
