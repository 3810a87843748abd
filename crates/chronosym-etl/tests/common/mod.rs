//! Writers shared by several tests.

use chronosym_support::etl::{EtlWriter, Options};

/// A writer of plain buffers, and one of compressed ones.
pub fn writers() -> [EtlWriter<Vec<u8>>; 2] {
    [false, true].map(|compress| {
        let options = Options {
            compress,
            ..Options::default()
        };
        EtlWriter::new(Vec::new(), options).unwrap()
    })
}
