//! Damaged files: reading them always ends in a result or an error.

mod common;

use std::sync::LazyLock;

use chronosym_pdb::Error;
use chronosym_pdb::metadata::{Metadata, Table, Token};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::portable::PortablePdb;
use chronosym_pdb::r2r::{MethodStart, NamedMethodStart, NoAssemblies, R2rImage, R2rMap};
use proptest::prelude::*;

use common::read;

static PRECOMPILED: LazyLock<Vec<u8>> =
    LazyLock::new(|| read("clr10/r2r/linux-arm64/Workload.dll"));
static EMBEDDING: LazyLock<Vec<u8>> = LazyLock::new(|| read("clr10/workload/PluginB.dll"));
static PDB: LazyLock<Vec<u8>> = LazyLock::new(|| read("clr10/workload/Workload.pdb"));
static MAP: LazyLock<Vec<u8>> = LazyLock::new(|| read("clr10/r2r/linux-x64/Workload.ni.r2rmap"));

/// Calls every accessor; returns the number of values, which shows that the tests read something.
fn read_metadata(metadata: &Metadata<'_>, image: Option<&PeImage<'_>>) -> usize {
    let mut read = 0;
    for table in [
        Table::METHOD_DEF,
        Table::MEMBER_REF,
        Table::METHOD_SPEC,
        Table::TYPE_SPEC,
    ] {
        for row in 0..=metadata.rows(table).min(5000) {
            let token = Token::new(table, row);
            if let Some(name) = metadata.method(token) {
                read += name.owner_text().len() + name.signature_text().len();
            }
            read += usize::from(metadata.type_of(token).is_some());
            if table == Table::METHOD_DEF {
                let body = image.and_then(|image| image.il_body(metadata, row));
                read += body.map_or(0, |body| {
                    body.calls().count() + usize::from(body.call_at(7).is_some())
                });
            }
        }
    }
    read + metadata.mvid().is_some() as usize + metadata.assembly_name().len()
}

fn read_image(data: &[u8]) -> Result<usize, Error> {
    let image = PeImage::parse(data)?;
    let mut read = image.sections().count()
        + image.codeviews().count()
        + usize::from(image.export(b"a").is_some());
    read += usize::from(image.pdb_checksum().is_some());
    read += image.perf_map_id().map_or(0, |id| id.path.len());
    if let Ok(Some(pdb)) = image.embedded_portable_pdb(1 << 20) {
        read += read_pdb(&pdb).unwrap_or(0);
    }
    if let Ok(metadata) = image.metadata() {
        read += read_metadata(&metadata, Some(&image));
    }
    if let Ok(r2r) = R2rImage::open(image) {
        for method in r2r.methods() {
            read += r2r
                .method_name(&method, &NoAssemblies)
                .map_or(0, |name| name.owner_text().len());
            read += r2r.bounds(&method).map_or(0, |bounds| bounds.count());
            read += usize::from(r2r.il_offset(&method, method.hot_size / 2, true).is_some());
            read += usize::from(r2r.method_at(method.start.wrapping_add(3)).is_some());
            read += usize::from(r2r.definition(&method).is_some());
        }
        let start = |address| MethodStart {
            address,
            size: None,
            token: None,
        };
        r2r.base_of(&[0x1000_0000, 0x1000_0010].map(start));
    }
    Ok(read)
}

fn read_pdb(data: &[u8]) -> Result<usize, Error> {
    let pdb = PortablePdb::parse(data)?;
    let mut read = 0;
    for row in pdb.documents().take(5000) {
        read += pdb.document(row).map_or(0, |document| document.name.len());
        read += usize::from(pdb.source_link_url(row).is_some());
        read += pdb
            .embedded_source(row, 1 << 20)
            .ok()
            .flatten()
            .map_or(0, |text| text.len());
    }
    for row in 0..=pdb.method_count().min(5000) {
        read += pdb.sequence_points(row).count() + usize::from(pdb.line_at(row, 20).is_some());
    }
    pdb.verify_checksum("SHA256", &[0; 32]);
    Ok(read)
}

/// Parsed files are shared between threads.
#[test]
fn parsers_are_sync() {
    fn is_sync<T: Send + Sync>() {}
    is_sync::<PeImage<'static>>();
    is_sync::<Metadata<'static>>();
    is_sync::<PortablePdb<'static>>();
    is_sync::<R2rImage<'static>>();
}

#[test]
fn undamaged_files_are_read_in_full() {
    assert!(read_image(&PRECOMPILED).unwrap() > 10_000);
    assert!(read_image(&EMBEDDING).unwrap() > 100);
    let read = read_pdb(&PDB).unwrap();
    assert!(read > 500, "{read}");
}

#[test]
fn every_truncation_of_a_pdb_is_an_error_or_reads_less() {
    let whole = read_pdb(&PDB).unwrap();
    for length in 0..PDB.len() {
        if let Ok(found) = read_pdb(&PDB[..length]) {
            assert!(found <= whole);
        }
    }
    // The tables precede the heaps: a truncated stream is never accepted as complete.
    assert!(matches!(
        read_pdb(&PDB[..PDB.len() - 100]),
        Err(Error::Truncated { .. })
    ));
}

/// Damage: bytes set to values that tend to hurt, at random or near the front, and a cut.
fn damage(
    data: &[u8],
    edits: &[(prop::sample::Index, u8, bool)],
    cut: Option<prop::sample::Index>,
) -> Vec<u8> {
    let mut data = data.to_vec();
    for (at, value, front) in edits {
        let length = if *front {
            data.len().min(1024)
        } else {
            data.len()
        };
        data[at.index(length)] = *value;
    }
    if let Some(cut) = cut {
        data.truncate(cut.index(data.len()));
    }
    data
}

fn edits() -> impl Strategy<Value = Vec<(prop::sample::Index, u8, bool)>> {
    let value = prop_oneof![Just(0xff), Just(0x7f), Just(0x80), Just(0), any::<u8>()];
    prop::collection::vec((any::<prop::sample::Index>(), value, any::<bool>()), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn damaged_images_do_not_panic(edits in edits(), cut in prop::option::of(any::<prop::sample::Index>())) {
        let _ = read_image(&damage(&PRECOMPILED, &edits, cut));
        let _ = read_image(&damage(&EMBEDDING, &edits, cut));
    }

    #[test]
    fn damaged_pdbs_do_not_panic(edits in edits(), cut in prop::option::of(any::<prop::sample::Index>())) {
        let _ = read_pdb(&damage(&PDB, &edits, cut));
    }

    #[test]
    fn damaged_maps_do_not_panic(edits in edits(), cut in prop::option::of(any::<prop::sample::Index>())) {
        if let Ok(map) = R2rMap::parse(&damage(&MAP, &edits, cut)) {
            map.method_at(0x12000);
            let starts: Vec<NamedMethodStart<'_>> = map
                .methods()
                .iter()
                .take(30)
                .map(|row| NamedMethodStart {
                    address: 0x7f00_0000_0000 + u64::from(row.rva),
                    size: Some(row.size),
                    name: row.owner_and_name(),
                })
                .collect();
            map.base_of(&starts);
        }
    }

    #[test]
    fn noise_is_refused(data in prop::collection::vec(any::<u8>(), 0..2048)) {
        prop_assert!(read_image(&data).is_err());
        prop_assert!(read_pdb(&data).is_err());
        let mut signed = b"BSJB\x01\0\x01\0\0\0\0\0\x04\0\0\0v\0\0\0\0\0\x05\0".to_vec();
        signed.extend(&data);
        let _ = read_pdb(&signed);
    }
}
