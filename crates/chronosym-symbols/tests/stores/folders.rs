//! Folders, paths of the trace, and the order of the search.

use std::fs;

use chronosym_symbols::identity::{BuildId, FileIdentity, Guid, PdbFormat, PdbId, PeId, Wanted};
use chronosym_symbols::store::{AttemptResult, NoFile, Request, SearchLocation};

use super::remote::cabinet;
use super::{GUID, Setup, foo, found, missing, pdb_id, portable, symbols, trials, windows};

fn with_folder() -> Setup {
    let mut setup = Setup::new("");
    setup.config.folders.push(setup.path("given"));
    setup
}

#[test]
fn every_layout_of_a_given_folder() {
    let key = format!("{GUID}1");
    let lower = key.to_lowercase();
    let places = [
        "foo.pdb".to_owned(),
        "FOO.PDB".to_owned(),
        "dll/foo.pdb".to_owned(),
        "exe/Foo.pdb".to_owned(),
        "symbols/exe/foo.pdb".to_owned(),
        format!("foo.pdb/{key}/foo.pdb"),
        format!("foo.pdb/{lower}/foo.pdb"),
        format!("fo/foo.pdb/{key}/foo.pdb"),
    ];
    for location in places {
        let setup = with_folder();
        let path = setup.write(&format!("given/{location}"), windows(1));
        let outcome = setup.acquire(&foo());
        assert_eq!(found(&outcome), path);
    }
}

#[test]
fn formats_and_images() {
    let setup = with_folder();
    setup.write("given/foo.pdb", portable());
    found(&setup.acquire(&foo()));
    let only = |format| {
        let wanted = Wanted::Pdb {
            id: pdb_id(1),
            stamp: Some(7),
            format,
        };
        setup.acquire(&Request::new(wanted, "foo.pdb"))
    };
    found(&only(PdbFormat::Portable));
    assert_eq!(
        missing(&only(PdbFormat::Windows)).name(),
        "SymbolFileMismatch"
    );
    setup.write("given/a.dll/0000000A1000/a.dll", symbols("image 10 4096"));
    let pe = Some(PeId {
        timestamp: 10,
        size_of_image: 4096,
    });
    found(&setup.acquire(&Request::new(Wanted::Image { pe, pdb: None }, "A.dll")));
}

#[test]
fn elf_files() {
    let text = "abcdef0123456789";
    let id = BuildId::parse(text).unwrap();
    let debug = |name: &str| Request::new(Wanted::ElfDebug(id.clone()), name);
    let file = |kind: &str| symbols(&format!("elf {text} {kind}"));
    for location in [
        ".build-id/ab/cdef0123456789.debug",
        "ab/cdef0123456789.debug",
        ".debug/libx.so",
        "libx.so.debug",
    ] {
        let setup = with_folder();
        setup.write("given/libx.so", file("stripped"));
        let path = setup.write(&format!("given/{location}"), file("debug"));
        assert_eq!(found(&setup.acquire(&debug("/usr/lib/libx.so"))), path);
    }
    let setup = with_folder();
    let stripped = setup.write("given/libx.so", file("stripped"));
    let outcome = setup.acquire(&debug("libx.so"));
    assert!(matches!(
        missing(&outcome),
        NoFile::SymbolFileMismatch { .. }
    ));
    let image = Request::new(Wanted::ElfImage(id.clone()), "libx.so");
    assert_eq!(found(&setup.acquire(&image)), stripped);
    let linked = setup.write("given/x.dbg", file("debug"));
    let request = debug("libx.so").or_named("x.dbg");
    assert_eq!(
        found(&setup.acquire(&request)),
        linked,
        "the name of a debug link"
    );
    assert_eq!(found(&setup.acquire(&debug("x"))), linked);
}

#[test]
fn the_first_match_is_used_and_all_are_reported() {
    let mut setup = Setup::new("{dir}/second;{dir}/third");
    setup.config.folders.push(setup.path("empty"));
    setup.config.folders.push(setup.path("first"));
    setup.write("first/foo.pdb", windows(9));
    setup.write("second/foo.pdb", "rubbish");
    let third = setup.write("third/foo.pdb", windows(1));
    let outcome = setup.acquire(&foo());
    assert_eq!(found(&outcome), third);
    let expected = [
        &AttemptResult::NotFound,
        &AttemptResult::Mismatch(FileIdentity::WindowsPdb(pdb_id(9))),
        &AttemptResult::Damaged("truncated".into()),
        &AttemptResult::Found,
    ];
    assert_eq!(trials(&outcome), expected);
    assert_eq!(
        outcome.attempts[0].location,
        SearchLocation::Folder(setup.path("empty"))
    );
    fs::remove_file(third).unwrap();
    assert_eq!(missing(&setup.acquire(&foo())).name(), "SymbolFileMismatch");
    fs::remove_file(setup.path("first/foo.pdb")).unwrap();
    assert_eq!(missing(&setup.acquire(&foo())).name(), "SymbolFileDamaged");
}

#[test]
fn packed_files_and_pointers_in_folders() {
    let mut packed = Vec::new();
    {
        use std::io::Write;
        let mut gzip = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
        gzip.write_all(&windows(1)).unwrap();
    }
    // The cache folder is the nearer store of a store alone.
    for path in ["srv*{dir}/store", "srv**{dir}/store"] {
        for packed in [packed.clone(), cabinet(&windows(1))] {
            let setup = Setup::new(path);
            setup.write(&format!("store/foo.pdb/{GUID}1/foo.pd_"), packed);
            let cached = setup.path(&format!("cache/foo.pdb/{GUID}1/foo.pdb"));
            assert_eq!(found(&setup.acquire(&foo())), cached);
            setup.assert_tidy();
        }
    }
    let mut setup = Setup::new("srv*{dir}/store");
    setup.config.cache = None;
    setup.write(&format!("store/foo.pdb/{GUID}1/foo.pd_"), &packed);
    let outcome = setup.acquire(&foo());
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);

    let setup = Setup::new("{dir}/store");
    let real = setup.write("elsewhere/x.pdb", windows(1));
    let pointer = format!("store/foo.pdb/{GUID}1/file.ptr");
    setup.write(&pointer, format!("PATH:{}", real.display()));
    assert_eq!(found(&setup.acquire(&foo())), real);
    for bad in [
        r"PATH:\\evil\share\x.pdb",
        "PATH:../elsewhere/x.pdb",
        "MSG: gone",
        "PATH:/nowhere/x.pdb",
    ] {
        setup.write(&pointer, bad);
        let outcome = setup.acquire(&foo());
        assert_eq!(missing(&outcome), &NoFile::NoSymbolFile, "{bad}");
        assert_eq!(outcome.attempts.len(), 1, "{bad}: {outcome:?}");
    }
}

#[test]
fn paths_of_the_trace_need_trust() {
    let mut setup = Setup::new("");
    let path = setup.write("build/foo.pdb", windows(1));
    let text = path.to_str().unwrap().to_owned();
    let request = foo().at_trace_path(&text);
    let outcome = setup.acquire(&request);
    assert_eq!(
        missing(&outcome),
        &NoFile::PathNotTrusted { path: text.clone() }
    );
    setup.config.trust_trace_paths = true;
    let outcome = setup.acquire(&request);
    assert_eq!(found(&outcome), path);
    let location = &outcome.attempts.last().unwrap().location;
    assert!(
        matches!(location, SearchLocation::TracePath(_)),
        "{location}"
    );
    // Whether a file is there is not looked up: that alone would contact the server of an
    // automounter.
    setup.config.trust_trace_paths = false;
    fs::remove_file(&path).unwrap();
    assert_eq!(
        missing(&setup.acquire(&request)),
        &NoFile::PathNotTrusted { path: text.clone() }
    );
    setup.config.trust_trace_paths = true;
    assert_eq!(missing(&setup.acquire(&request)), &NoFile::NoSymbolFile);
    setup.config.trust_trace_paths = true;
    for refused in [
        r"\\server\share\foo.pdb",
        "//server/share/foo.pdb",
        "foo.pdb",
        "../foo.pdb",
        "",
    ] {
        let outcome = setup.acquire(&foo().at_trace_path(refused));
        assert!(
            matches!(trials(&outcome)[..], [AttemptResult::Refused(_)]),
            "{refused}: {outcome:?}"
        );
    }
}

#[test]
fn without_an_identity_no_file_is_used() {
    let setup = with_folder();
    setup.write("given/foo.pdb", windows(1));
    let none = PdbId {
        guid: Guid::default(),
        age: 0,
    };
    let outcome = setup.acquire(&Request::new(Wanted::pdb(none), "foo.pdb"));
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
    assert!(matches!(trials(&outcome)[..], [AttemptResult::Refused(_)]));
}

#[test]
fn caches_of_perf_and_of_debuginfod_clients() {
    let text = "abcdef0123456789";
    let id = BuildId::parse(text).unwrap();
    for (location, wanted) in [
        (
            ".build-id/ab/cdef0123456789/elf",
            Wanted::ElfImage(id.clone()),
        ),
        (
            ".build-id/ab/cdef0123456789/elf",
            Wanted::ElfDebug(id.clone()),
        ),
        (
            ".build-id/ab/cdef0123456789/debug",
            Wanted::ElfDebug(id.clone()),
        ),
        ("abcdef0123456789/debuginfo", Wanted::ElfDebug(id.clone())),
        ("abcdef0123456789/executable", Wanted::ElfDebug(id.clone())),
    ] {
        let mut setup = Setup::new("");
        setup.config.other_caches.push(setup.path("other"));
        let request = Request::new(wanted, "libx.so");
        let outcome = setup.acquire(&request);
        assert_eq!(missing(&outcome).name(), "NoSymbolFile");
        assert!(outcome.attempts.is_empty(), "{:?}", outcome.attempts);
        let path = setup.write(
            &format!("other/{location}"),
            symbols(&format!("elf {text} debug")),
        );
        assert_eq!(found(&setup.acquire(&request)), path);
        // A file of another build.
        setup.write(&format!("other/{location}"), symbols("elf 0123 debug"));
        assert_eq!(
            missing(&setup.acquire(&request)).name(),
            "SymbolFileMismatch"
        );
    }
}
