//! Any bytes as a PE image: its debug directory, managed metadata and precompiled code.
#![no_main]

use chronosym_pdb::metadata::{Metadata, Table, Token};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::r2r::{NoModules, R2rImage};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(metadata) = Metadata::parse(data) {
        read_metadata(&metadata, None);
    }
    let Ok(image) = PeImage::parse(data) else {
        return;
    };
    std::hint::black_box((
        image.sections().count(),
        image.codeviews().count(),
        image.exports().len(),
    ));
    std::hint::black_box((
        image.coff_symbols().len(),
        image.pdb_checksum(),
        image.perf_map_id(),
    ));
    let _ = std::hint::black_box(image.embedded_portable_pdb(1 << 20));
    if let Ok(metadata) = image.metadata() {
        read_metadata(&metadata, Some(&image));
    }
    let Ok(r2r) = R2rImage::open(image) else {
        return;
    };
    for method in r2r.methods().take(1000) {
        std::hint::black_box(r2r.method_name(&method, &NoModules));
        std::hint::black_box(r2r.bounds(&method).map_or(0, |bounds| bounds.count()));
        std::hint::black_box((
            r2r.il_offset(&method, method.hot_size / 2, true),
            r2r.method_at(method.begin.wrapping_add(3)),
            r2r.definition(&method),
        ));
    }
});

fn read_metadata(metadata: &Metadata<'_>, image: Option<&PeImage<'_>>) {
    std::hint::black_box((metadata.mvid(), metadata.assembly_name()));
    for table in [
        Table::METHOD_DEF,
        Table::MEMBER_REF,
        Table::METHOD_SPEC,
        Table::TYPE_SPEC,
    ] {
        for row in 0..=metadata.rows(table).min(1000) {
            let token = Token::new(table, row);
            if let Some(name) = metadata.method(token) {
                std::hint::black_box((name.map_text(), name.signature_text()));
            }
            std::hint::black_box(metadata.type_of(token));
            let body = image.filter(|_| table == Table::METHOD_DEF);
            if let Some(body) = body.and_then(|image| image.il_body(metadata, row)) {
                std::hint::black_box((body.calls().count(), body.call_at(7)));
            }
        }
    }
}
