//! The checked-in header is the one of the source. `CHRONOSYM_BLESS=1` writes it.

use std::fs;
use std::path::Path;

#[test]
fn the_header_is_that_of_the_source() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::generate_with_config(folder, config).unwrap();
    let mut header = Vec::new();
    bindings.write(&mut header);
    let path = folder.join("include/chronosym.h");
    if std::env::var_os("CHRONOSYM_BLESS").is_some() {
        fs::write(&path, &header).unwrap();
    }
    let header = String::from_utf8(header).unwrap();
    // Git may have changed the ends of lines.
    let checked_in = fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    assert!(
        header == checked_in,
        "run `CHRONOSYM_BLESS=1 cargo test -p chronosym-c --test header`"
    );
}
