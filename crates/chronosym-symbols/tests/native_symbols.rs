//! Symbol tables without debug information beside them.

mod made;

use chronosym_symbols::{Address, Answers, NativeSymbols, Query};
use made::{elf, symbol};

#[test]
fn labels_that_assemblers_keep_for_the_linker_name_nothing() {
    const LOCAL: u8 = 0;
    const GLOBAL: u8 = 0x10;
    const FUNCTION: u8 = 2;
    let names = b"\0main\0.L0 \0.Lentry\0.Lfunction\0label\0".to_vec();
    let at = |name: &[u8]| names.windows(name.len()).position(|w| w == name).unwrap() as u32;
    let table = [
        vec![0; 24],
        symbol(at(b"main"), GLOBAL | FUNCTION, 0x1000, 0x20),
        symbol(at(b".L0 "), LOCAL, 0x1008, 0),
        symbol(at(b".L0 "), LOCAL, 0x1028, 0),
        symbol(at(b"label"), LOCAL, 0x1030, 0),
        // What someone named so on purpose.
        symbol(at(b".Lentry"), GLOBAL, 0x1034, 0),
        symbol(at(b".Lfunction"), LOCAL | FUNCTION, 0x1038, 4),
    ]
    .concat();
    let bytes = elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
        (".symtab", 2, 0, 0, table),
        (".strtab", 3, 0, 0, names),
    ]);
    let symbols = NativeSymbols::open(&bytes[..]).unwrap();
    let asked = [0x1000, 0x1010, 0x1028, 0x1030, 0x1034, 0x1038].map(Address::VirtualAddress);
    let mut out = Answers::new();
    symbols.find_all(&asked, &Query::default(), &mut out);
    let names: Vec<_> = out
        .iter()
        .map(|a| a.frames().next().and_then(|f| f.name()))
        .collect();
    let expected = ["main", "main", "", "label", ".Lentry", ".Lfunction"];
    assert_eq!(names, expected.map(|n| (!n.is_empty()).then_some(n)));
}
