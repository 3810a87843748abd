//! Real files of the project's test data: the right one is taken, and nothing else ever is.

use std::fs;
use std::path::PathBuf;

use chronosym_symbols::identity::{FileIdentity, PdbFormat, Wanted};
use chronosym_symbols::store::{NoFile, Outcome, Request, identity_of, read_identity};

#[cfg(feature = "http")]
use super::server::{Reply, Server};
use super::{Setup, found, missing};

fn testdata(path: &str) -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata");
    PathBuf::from(root).join(path)
}

/// The first PDB that an image names.
fn pdb_of(image: &str) -> Wanted {
    match identity_of(&fs::read(testdata(image)).unwrap()) {
        Ok(FileIdentity::Image { pdbs, .. }) => Wanted::pdb(pdbs[0]),
        other => panic!("{other:?}"),
    }
}

fn acquire(setup: &Setup, wanted: Wanted, name: &str) -> Outcome {
    setup
        .stores()
        .acquire(&Request::new(wanted, name), &read_identity)
}

#[test]
fn pdbs_next_to_their_images_and_by_name() {
    let mut setup = Setup::new("");
    setup.config.folders = vec![
        testdata("clr10/workload"),
        testdata("pdb-small/aarch64/small.pdb"),
    ];
    let managed = acquire(
        &setup,
        pdb_of("clr10/workload/Workload.dll"),
        "/src/obj/Workload.pdb",
    );
    assert_eq!(found(&managed), testdata("clr10/workload/Workload.pdb"));
    let native = acquire(
        &setup,
        pdb_of("pdb-small/aarch64/small.exe"),
        r"C:\small.pdb",
    );
    assert_eq!(
        found(&native),
        testdata("pdb-small/aarch64/small.pdb"),
        "the file itself was given"
    );
}

#[test]
fn the_pdb_of_another_build_is_never_taken() {
    let builds = [
        (
            "pdb-small/x86_64/small.exe",
            "pdb-small/i686/small.pdb",
            "small.pdb",
        ),
        (
            "clr10/workload/Workload.dll",
            "clr10/workload/net9/Workload.pdb",
            "Workload.pdb",
        ),
        (
            "clr10/workload/Workload.dll",
            "clr31/workload/Workload.pdb",
            "Workload.pdb",
        ),
    ];
    for (image, other, name) in builds {
        let mut setup = Setup::new("");
        setup.config.folders = vec![testdata(other)];
        let wanted = pdb_of(image);
        let outcome = acquire(&setup, wanted.clone(), name);
        match missing(&outcome) {
            NoFile::SymbolFileMismatch {
                wanted: asked,
                found,
                ..
            } => {
                assert_eq!(asked, &wanted);
                assert_eq!(
                    Ok(found.clone()),
                    identity_of(&fs::read(testdata(other)).unwrap())
                );
            }
            why => panic!("{other}: {why}"),
        }
    }
}

#[cfg(feature = "http")]
#[test]
fn a_pdb_cut_short_is_damaged_wherever_it_is_cut() {
    for (image, pdb, name) in [
        (
            "pdb-small/x86_64/small.exe",
            "pdb-small/x86_64/small.pdb",
            "small.pdb",
        ),
        (
            "clr10/workload/Workload.dll",
            "clr10/workload/Workload.pdb",
            "Workload.pdb",
        ),
    ] {
        let whole = fs::read(testdata(pdb)).unwrap();
        let wanted = pdb_of(image);
        for part in 0..16 {
            let cut = whole[..whole.len() * part / 16].to_vec();
            // Without a length in the response, a broken connection cannot be detected.
            let server = Server::new(move |path| {
                if path.ends_with(".pdb") {
                    Reply::Unlimited(cut.clone())
                } else {
                    Reply::Status(404)
                }
            });
            let setup = Setup::new(&server.url("s"));
            let outcome = acquire(&setup, wanted.clone(), name);
            let reason = missing(&outcome);
            assert!(
                matches!(reason, NoFile::SymbolFileDamaged { .. }),
                "{part}/16: {reason}"
            );
            setup.assert_tidy();
        }
    }
}

#[test]
fn the_format_counts_where_it_is_known() {
    let Wanted::Pdb { id, .. } = pdb_of("clr10/workload/Workload.dll") else {
        panic!("no PDB");
    };
    let mut setup = Setup::new("");
    setup.config.folders = vec![testdata("clr10/workload")];
    let format = PdbFormat::Windows;
    let wanted = Wanted::Pdb {
        id,
        stamp: None,
        format,
    };
    let outcome = acquire(&setup, wanted, "Workload.pdb");
    assert_eq!(missing(&outcome).name(), "SymbolFileMismatch");
}
