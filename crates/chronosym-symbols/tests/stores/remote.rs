//! Servers, well-behaved and otherwise.

use std::fs;
use std::io::Write;
use std::sync::Mutex;
use std::time::Duration;

use chronosym_symbols::identity::{BuildId, FileIdentity, Wanted};
use chronosym_symbols::path::parse_debuginfod_urls;
use chronosym_symbols::store::{
    Attempt, AttemptResult, NoFile, NotFetched, Reach, Request, SearchLocation,
};

use super::server::{Reply, Server};
use super::{
    GUID, Setup, files, foo, found, identify, missing, pdb_id, portable, symbols, trials, windows,
};

fn key(file: &str) -> String {
    format!("/s/foo.pdb/{GUID}1/{file}")
}

/// A server that has one file, at its key.
fn plain_server() -> Server {
    Server::new(|path| {
        if path == key("foo.pdb") {
            Reply::Ok(windows(1))
        } else {
            Reply::Status(404)
        }
    })
}

fn setup(server: &Server) -> Setup {
    Setup::new(&format!("srv*{{dir}}/down*{}", server.url("s")))
}

/// Returns a server with a reply for the first URL; every other one is a 404.
fn first_url(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Server {
    let count = Mutex::new(0);
    Server::new(move |path| {
        if path != key("foo.pdb") {
            return Reply::Status(404);
        }
        let mut count = count.lock().unwrap();
        *count += 1;
        reply(*count)
    })
}

#[test]
fn fetched_once_then_from_the_downstream_store() {
    let server = plain_server();
    let setup = setup(&server);
    let outcome = setup.acquire(&foo());
    let down = setup.path(&format!("down/foo.pdb/{GUID}1/foo.pdb"));
    assert_eq!(found(&outcome), down);
    assert_eq!(fs::read(&down).unwrap(), windows(1));
    let url = server.url(&key("foo.pdb")[1..]);
    assert_eq!(
        outcome.attempts.last().unwrap().location,
        SearchLocation::Url(url)
    );
    let again = setup.acquire(&foo());
    assert_eq!(found(&again), down);
    assert_eq!(server.paths().len(), 1, "{:?}", server.paths());
    assert!(
        !setup.path("cache").exists(),
        "the default cache is not for this chain"
    );
    setup.assert_tidy();
}

#[test]
fn a_server_alone_caches_in_the_cache_folder() {
    let server = plain_server();
    let setup = Setup::new(&server.url("s"));
    let cached = setup.path(&format!("cache/foo.pdb/{GUID}1/foo.pdb"));
    assert_eq!(found(&setup.acquire(&foo())), cached);
    assert!(setup.path("cache/CACHEDIR.TAG").exists());
    let mut offline = setup;
    offline.config.offline = true;
    assert_eq!(
        found(&offline.acquire(&foo())),
        cached,
        "offline does not mean empty"
    );
    assert_eq!(server.paths().len(), 1);
}

#[test]
fn without_a_cache_folder_nothing_is_fetched() {
    let server = plain_server();
    let mut setup = Setup::new(&server.url("s"));
    setup.config.cache = None;
    let outcome = setup.acquire(&foo());
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
    assert!(
        matches!(trials(&outcome)[..], [AttemptResult::Failed(_)]),
        "{outcome:?}"
    );
    assert!(server.paths().is_empty());
}

#[test]
fn an_unusable_cache_folder_is_reported_and_files_are_used_anyway() {
    let server = plain_server();
    let setup = setup(&server);
    setup.write("down", "a file where a folder should be");
    let stores = setup.stores();
    let outcome = stores.acquire(&foo(), &identify);
    let path = found(&outcome);
    assert!(path.is_file() && !path.starts_with(setup.path("")));
    let failed = |attempt: &&Attempt| matches!(attempt.result, AttemptResult::Failed(_));
    let failed: Vec<_> = outcome.attempts.iter().filter(failed).collect();
    let is_of_folder = |attempt: &Attempt| matches!(attempt.location, SearchLocation::Folder(_));
    assert!(
        !failed.is_empty() && failed.iter().all(|it| is_of_folder(it)),
        "{outcome:?}"
    );
    // It is not kept beyond the run.
    drop(stores);
    assert!(!path.exists());
}

#[test]
fn offline_wins() {
    let server = plain_server();
    let mut setup = setup(&server);
    setup.config.offline = true;
    let outcome = setup.acquire(&foo());
    assert_eq!(missing(&outcome), &NoFile::Offline);
    assert_eq!(
        trials(&outcome),
        [&AttemptResult::NotFound, &AttemptResult::Offline]
    );
    assert!(server.paths().is_empty());
    assert!(!setup.path("down").exists(), "nothing was prepared either");
}

#[test]
fn only_the_requested_reach_is_searched() {
    let server = plain_server();
    let setup = setup(&server);
    let outcome = setup.acquire(&foo().within(Reach::Folders));
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
    assert!(server.paths().is_empty());
    found(&setup.acquire(&foo().within(Reach::Stores)));
}

#[test]
fn follows_redirects() {
    let other = Server::new(|path| match path {
        "/blob/1?sig=x%20y" => Reply::Ok(windows(1)),
        _ => Reply::Status(404),
    });
    let target = other.url("blob/1?sig=x%20y");
    let server = Server::new(move |path| match path {
        "/s/hop/relative" => Reply::Redirect(301, "/s/absolute".into()),
        "/s/absolute" => Reply::Redirect(307, target.clone()),
        path if path == key("foo.pdb") => Reply::Redirect(302, "../../hop/relative".into()),
        // Two dots are the server's to resolve.
        path if path.ends_with("/../../hop/relative") => {
            Reply::Redirect(308, "/s/hop/relative".into())
        }
        _ => Reply::Status(404),
    });
    let setup = setup(&server);
    let outcome = setup.acquire(&foo());
    found(&outcome);
    assert_eq!(other.paths(), ["/blob/1?sig=x%20y"]);
    assert!(
        !format!("{outcome:?}").contains("sig"),
        "no secrets in what is shown"
    );
}

#[test]
fn a_redirect_loop_ends() {
    let server = first_url(|_| Reply::Redirect(302, key("foo.pdb")));
    let setup = setup(&server);
    let outcome = setup.acquire(&foo());
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
    let loops = server
        .paths()
        .iter()
        .filter(|path| **path == key("foo.pdb"))
        .count();
    assert_eq!(loops, 6, "the request and five redirects");
    assert!(
        trials(&outcome)
            .iter()
            .any(|t| matches!(t, AttemptResult::Refused(_))),
        "{outcome:?}"
    );
    setup.assert_tidy();
}

#[test]
fn redirects_to_files_are_refused() {
    let server = first_url(|_| Reply::Redirect(302, "file:///etc/passwd".into()));
    let outcome = setup(&server).acquire(&foo());
    assert!(
        matches!(trials(&outcome)[..], [_, AttemptResult::Refused(_), ..]),
        "{outcome:?}"
    );
}

#[test]
fn a_slow_server_is_left_alone_for_the_run() {
    let server = Server::new(|_| Reply::Hang(Duration::from_secs(30)));
    let mut setup = setup(&server);
    setup.config.fetch.idle_timeout = Duration::from_millis(150);
    let stores = setup.stores();
    let outcome = stores.acquire(&foo(), &identify);
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
    assert_eq!(
        trials(&outcome),
        [&AttemptResult::NotFound, &AttemptResult::TimedOut]
    );
    let other = Request::new(Wanted::pdb(pdb_id(1)), "bar.pdb");
    let outcome = stores.acquire(&other, &identify);
    assert_eq!(
        trials(&outcome),
        [
            &AttemptResult::NotFound,
            &AttemptResult::ServerDown("timed out".into())
        ]
    );
    assert_eq!(server.paths().len(), 1);
    // The failure is the server's: the next run queries it again.
    setup.acquire(&foo());
    assert_eq!(server.paths().len(), 2);
}

#[test]
fn a_body_that_stops_half_way_times_out() {
    let server = first_url(|_| Reply::HalfThenHang(windows(1), Duration::from_secs(30)));
    let mut setup = setup(&server);
    setup.config.fetch.idle_timeout = Duration::from_millis(150);
    let outcome = setup.acquire(&foo());
    assert_eq!(
        trials(&outcome),
        [&AttemptResult::NotFound, &AttemptResult::TimedOut]
    );
    setup.assert_tidy();
}

#[test]
fn a_truncated_body_is_fetched_again() {
    let server = first_url(|count| match count {
        1 => Reply::Truncated(windows(1)[..500].to_vec()),
        2 => Reply::Close,
        _ => Reply::Ok(windows(1)),
    });
    let setup = setup(&server);
    found(&setup.acquire(&foo()));
    assert_eq!(server.paths().len(), 3);
    setup.assert_tidy();
}

#[test]
fn a_body_always_truncated_is_a_failure() {
    let server = first_url(|_| Reply::Truncated(windows(1)[..500].to_vec()));
    let setup = setup(&server);
    let outcome = setup.acquire(&foo());
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
    assert!(
        matches!(trials(&outcome)[..], [_, AttemptResult::Failed(_)]),
        "{outcome:?}"
    );
    assert_eq!(server.paths().len(), 3, "once, and two repetitions");
    setup.assert_tidy();
}

/// Bytes after a body that is longer than its stated length are not the response to the next
/// request.
#[test]
fn a_body_longer_than_its_stated_length_is_damaged() {
    let server = first_url(|count| match count {
        1 => Reply::TooLong(windows(1)),
        _ => Reply::Ok(windows(1)),
    });
    let setup = setup(&server);
    let stores = setup.stores();
    let outcome = stores.acquire(&foo(), &identify);
    assert!(
        matches!(missing(&outcome), NoFile::SymbolFileDamaged { .. }),
        "{outcome:?}"
    );
    let other = Request::new(Wanted::pdb(pdb_id(1)), "bar.pdb");
    let outcome = stores.acquire(&other, &identify);
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile, "{outcome:?}");
    found(&setup.acquire(&foo()));
    setup.assert_tidy();
}

/// Proxies and portals answer every question with a page.
#[test]
fn a_web_page_is_not_a_symbol_file() {
    let page = b"<!DOCTYPE html><html><body>Please log in</body></html>";
    let server = Server::new(move |_| Reply::With("Content-Type: text/html\r\n", page.to_vec()));
    let setup = setup(&server);
    let outcome = setup.acquire(&foo());
    assert!(
        matches!(missing(&outcome), NoFile::SymbolFileDamaged { .. }),
        "{outcome:?}"
    );
    let kept = files(&setup.path("down"));
    assert!(
        !kept.iter().any(|path| path.ends_with("foo.pdb")),
        "{kept:?}"
    );
    setup.assert_tidy();
}

#[test]
fn slow_responses_are_abandoned() {
    for code in [200, 404, 500] {
        let server = Server::new(move |_| Reply::Drip(code));
        let mut setup = setup(&server);
        setup.config.fetch.speed_after = Duration::from_millis(200);
        // A test that waited for the whole body, or for a pause that never occurs, would not end.
        setup.config.fetch.total_timeout = Duration::from_secs(3600);
        let outcome = setup.acquire(&foo());
        assert_eq!(missing(&outcome), &NoFile::NoSymbolFile, "{code}");
        setup.assert_tidy();
    }
}

/// Without a length the end of the connection is the end of the file: only the file itself can show
/// that it is truncated.
#[test]
fn a_truncated_body_without_a_length_is_damaged() {
    let server = first_url(|_| Reply::Unlimited(windows(1)[..500].to_vec()));
    let setup = setup(&server);
    let outcome = setup.acquire(&foo());
    let url = server.url(&key("foo.pdb")[1..]);
    let damaged = NoFile::SymbolFileDamaged {
        location: SearchLocation::Url(url),
        why: "truncated".into(),
    };
    assert_eq!(missing(&outcome), &damaged);
    assert!(super::files(&setup.path("down")).is_empty());
}

#[test]
fn another_build_is_a_mismatch_with_both_ids() {
    let server = first_url(|_| Reply::Ok(windows(2)));
    let setup = setup(&server);
    let outcome = setup.acquire(&foo());
    match missing(&outcome) {
        NoFile::SymbolFileMismatch { wanted, found, .. } => {
            assert_eq!(wanted, &Wanted::pdb(pdb_id(1)));
            assert_eq!(found, &FileIdentity::WindowsPdb(pdb_id(2)));
        }
        other => panic!("{other}"),
    }
    let text = missing(&outcome).to_string();
    assert!(text.contains("age 1") && text.contains("age 2"), "{text}");
    assert!(
        super::files(&setup.path("down")).is_empty(),
        "it is not kept"
    );
}

#[test]
fn not_found_is_remembered_for_the_run_and_on_disk() {
    let server = Server::new(|_| Reply::Status(404));
    let mut setup = setup(&server);
    let stores = setup.stores();
    let outcome = stores.acquire(&foo(), &identify);
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
    assert_eq!(
        trials(&outcome),
        [&AttemptResult::NotFound, &AttemptResult::NotFound]
    );
    let asked = server.paths();
    let expected = [
        format!("/s/foo.pdb/{GUID}1/foo.pdb"),
        format!("/s/foo.pdb/{}FFFFFFFF/foo.pdb", GUID.to_lowercase()),
        format!("/s/foo.pdb/{}1/foo.pdb", GUID.to_lowercase()),
        format!("/s/foo.pdb/{GUID}FFFFFFFF/foo.pdb"),
        format!("/s/foo.pdb/{GUID}1/foo.pd_"),
        format!("/s/foo.pdb/{GUID}1/file.ptr"),
        "/s/index2.txt".to_owned(),
    ];
    assert_eq!(asked, expected);
    for stores in [stores, setup.stores()] {
        let outcome = stores.acquire(&foo(), &identify);
        assert_eq!(
            trials(&outcome),
            [&AttemptResult::NotFound, &AttemptResult::KnownMissing]
        );
    }
    assert_eq!(server.paths().len(), asked.len());
    setup.config.fetch.missing_age = Duration::ZERO;
    setup.acquire(&foo());
    assert_eq!(
        server.paths().len(),
        2 * asked.len(),
        "the note had expired"
    );
}

#[test]
fn repeats_after_a_server_error() {
    let server = first_url(|count| match count {
        1 => Reply::Status(500),
        2 => Reply::StatusWith(503, "Retry-After: 0\r\n"),
        _ => Reply::Ok(windows(1)),
    });
    found(&setup(&server).acquire(&foo()));
    assert_eq!(server.paths().len(), 3);
}

#[test]
fn errors_without_end_are_neither_a_miss_nor_repeated_for_ever() {
    let server = Server::new(|_| Reply::Status(502));
    let setup = setup(&server);
    let stores = setup.stores();
    for name in ["a.pdb", "b.pdb", "c.pdb", "d.pdb", "e.pdb"] {
        let request = Request::new(Wanted::pdb(pdb_id(1)), name);
        let outcome = stores.acquire(&request, &identify);
        assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
    }
    assert_eq!(
        server.paths().len(),
        9,
        "three files, three times each; then it is left alone"
    );
    assert!(
        !setup.path("cache/.missing").exists(),
        "an error is no \"not found\""
    );
}

#[test]
fn an_unreachable_server_is_left_alone_at_once() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let setup = Setup::new(&format!("srv*{{dir}}/down*http://{closed}/s"));
    let stores = setup.stores();
    let outcome = stores.acquire(&foo(), &identify);
    assert!(
        matches!(trials(&outcome)[..], [_, AttemptResult::Failed(_)]),
        "{outcome:?}"
    );
    let outcome = stores.acquire(&foo(), &identify);
    assert!(
        matches!(trials(&outcome)[..], [_, AttemptResult::ServerDown(_)]),
        "{outcome:?}"
    );
}

#[test]
fn a_403_is_reported_and_not_cached_on_disk() {
    let server = Server::new(|_| Reply::Status(403));
    let setup = setup(&server);
    let outcome = setup.acquire(&foo());
    assert!(
        trials(&outcome).contains(&&AttemptResult::Failed("status 403".into())),
        "{outcome:?}"
    );
    assert!(!setup.path("cache/.missing").exists());
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(data).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn gzip_as_encoding_and_as_file() {
    for headers in [
        "Content-Encoding: gzip\r\n",
        "Content-Type: application/gzip\r\n",
    ] {
        let server = first_url(move |_| Reply::With(headers, gzip(&windows(1))));
        let setup = setup(&server);
        let path = found(&setup.acquire(&foo())).to_owned();
        assert_eq!(fs::read(path).unwrap(), windows(1), "{headers}");
        setup.assert_tidy();
    }
}

pub fn cabinet(data: &[u8]) -> Vec<u8> {
    let mut builder = cab::CabinetBuilder::new();
    builder
        .add_folder(cab::CompressionType::MsZip)
        .add_file("foo.pdb");
    let mut writer = builder.build(std::io::Cursor::new(Vec::new())).unwrap();
    while let Some(mut file) = writer.next_file().unwrap() {
        file.write_all(data).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A cabinet in LZX, made of one uncompressed block: there is no LZX compressor to use here.
///
/// Source: MS-CAB 2 and MS-PATCH 2 (LZX DELTA's block header without its chunk size, as in
/// cabinets).
fn lzx_cabinet(data: &[u8]) -> Vec<u8> {
    let size = u32::try_from(data.len()).unwrap();
    // Bits, high first in 16-bit words: no E8 translation, block type 3, 24 bits of size; padding
    // to a word.
    let mut bits = vec![0, 0, 1, 1];
    bits.extend((0..24).rev().map(|i| size >> i & 1));
    bits.resize(32, 0);
    let mut block = Vec::new();
    for word in bits.chunks(16) {
        let word = word.iter().fold(0, |word, bit| word << 1 | *bit);
        block.extend(u16::try_from(word).unwrap().to_le_bytes());
    }
    for last_offset in [1_u32; 3] {
        block.extend(last_offset.to_le_bytes());
    }
    block.extend(data);
    if data.len() % 2 == 1 {
        block.push(0);
    }
    let mut cab = Vec::new();
    cab.extend(b"MSCF\0\0\0\0");
    let data_at = 36 + 8 + 16 + 8;
    let total = data_at + 8 + u32::try_from(block.len()).unwrap();
    for field in [total, 0, 36 + 8, 0] {
        cab.extend(field.to_le_bytes());
    }
    cab.extend([3, 1]);
    for field in [1_u16, 1, 0, 0, 0] {
        cab.extend(field.to_le_bytes());
    }
    cab.extend(data_at.to_le_bytes());
    for field in [1_u16, 3 | 15 << 8] {
        cab.extend(field.to_le_bytes());
    }
    for field in [size, 0] {
        cab.extend(field.to_le_bytes());
    }
    for field in [0_u16, 0x21, 0, 0x20] {
        cab.extend(field.to_le_bytes());
    }
    cab.extend(b"foo.pdb\0");
    cab.extend(0_u32.to_le_bytes());
    cab.extend(u16::try_from(block.len()).unwrap().to_le_bytes());
    cab.extend(u16::try_from(size).unwrap().to_le_bytes());
    cab.extend(block);
    cab
}

#[test]
fn compressed_files_are_unpacked() {
    let small = symbols(&format!("windows {GUID} 1"))[..].to_vec();
    for packed in [cabinet(&windows(1)), lzx_cabinet(&small[..])] {
        let server = Server::new(move |path| {
            if path == key("foo.pd_") {
                Reply::Ok(packed.clone())
            } else {
                Reply::Status(404)
            }
        });
        let setup = setup(&server);
        let outcome = setup.acquire(&foo());
        assert_eq!(
            found(&outcome),
            setup.path(&format!("down/foo.pdb/{GUID}1/foo.pdb"))
        );
        assert_eq!(fs::read(found(&outcome)).unwrap(), windows(1));
        setup.assert_tidy();
    }
}

#[test]
fn damaged_cabinets_are_damage() {
    let server = Server::new(|path| {
        if path == key("foo.pd_") {
            Reply::Ok(cabinet(&windows(1))[..200].to_vec())
        } else {
            Reply::Status(404)
        }
    });
    let setup = setup(&server);
    let outcome = setup.acquire(&foo());
    assert!(
        matches!(missing(&outcome), NoFile::SymbolFileDamaged { .. }),
        "{outcome:?}"
    );
    setup.assert_tidy();
}

#[test]
fn larger_than_allowed() {
    let limit = 1000;
    let replies: [fn() -> Reply; 4] = [
        || Reply::Ok(windows(1)),
        || Reply::Unlimited(windows(1)),
        || Reply::With("Content-Encoding: gzip\r\n", gzip(&windows(1))),
        || Reply::Ok(gzip(&windows(1))),
    ];
    for (i, reply) in replies.into_iter().enumerate() {
        let server = first_url(move |_| reply());
        let mut setup = setup(&server);
        setup.config.fetch.max_bytes = limit;
        let outcome = setup.acquire(&foo());
        assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
        assert!(
            trials(&outcome).contains(&&AttemptResult::TooLarge(limit)),
            "{i}: {outcome:?}"
        );
        setup.assert_tidy();
    }
}

#[test]
fn pointers_of_servers() {
    let private = tempfile::tempdir().unwrap();
    let secret = private.path().join("foo.pdb");
    fs::write(&secret, windows(1)).unwrap();
    let other = Server::new(|_| Reply::Ok(windows(1)));
    let pointers = [
        (format!("PATH:{}", other.url("x")), true),
        (format!("PATH:{}", secret.display()), false),
        (r"PATH:\\evil\share\foo.pdb".to_owned(), false),
        (format!("PATH:file://{}", secret.display()), false),
        ("MSG: not for you".to_owned(), false),
        (String::new(), false),
    ];
    for (pointer, followed) in pointers {
        let text = pointer.clone();
        let server = Server::new(move |path| {
            if path == key("file.ptr") {
                Reply::Ok(text.clone().into_bytes())
            } else {
                Reply::Status(404)
            }
        });
        let setup = setup(&server);
        let outcome = setup.acquire(&foo());
        assert_eq!(outcome.file.is_ok(), followed, "{pointer}: {outcome:?}");
        if !followed {
            assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
            let said = |t: &&AttemptResult| {
                matches!(t, AttemptResult::Refused(_) | AttemptResult::Failed(_))
            };
            assert!(trials(&outcome).iter().any(said), "{pointer}: {outcome:?}");
        }
        setup.assert_tidy();
    }
}

#[test]
fn two_tier_servers() {
    let server = Server::new(|path| match path {
        "/s/index2.txt" => Reply::Ok(Vec::new()),
        path if path == format!("/s/fo/foo.pdb/{GUID}1/foo.pdb") => Reply::Ok(windows(1)),
        _ => Reply::Status(404),
    });
    let setup = setup(&server);
    let stores = setup.stores();
    let outcome = stores.acquire(&foo(), &identify);
    assert_eq!(
        found(&outcome),
        setup.path(&format!("down/foo.pdb/{GUID}1/foo.pdb"))
    );
    let asked = server.paths().len();
    let bar = Request::new(Wanted::pdb(pdb_id(1)), "bar.pdb");
    stores.acquire(&bar, &identify);
    let bars = server.paths().split_off(asked);
    assert!(
        bars.iter().all(|path| path.starts_with("/s/ba/bar.pdb/")),
        "{bars:?}"
    );
}

#[test]
fn lower_case_servers_and_portable_pdbs() {
    let server = Server::new(|path| {
        if path == format!("/s/foo.pdb/{}FFFFFFFF/foo.pdb", GUID.to_lowercase()) {
            Reply::Ok(portable())
        } else {
            Reply::Status(404)
        }
    });
    let setup = setup(&server);
    let request = Request::new(Wanted::pdb(pdb_id(1)), "/src/Foo.pdb");
    let outcome = setup.acquire(&request);
    let kept = setup.path(&format!("down/Foo.pdb/{GUID}FFFFFFFF/Foo.pdb"));
    assert_eq!(
        found(&outcome),
        kept,
        "under its own key, not a Windows PDB's"
    );
    assert_eq!(found(&setup.acquire(&request)), kept);
}

#[test]
fn debuginfod() {
    let text = "180a373d6afbabf0eb1f09be1bc45bd796a71085";
    let server = Server::new(move |path| {
        if path == format!("/buildid/{text}/debuginfo") {
            Reply::Ok(symbols(&format!("elf {text} debug")))
        } else {
            Reply::Status(404)
        }
    });
    let mut setup = Setup::new("");
    setup.config.debuginfod = parse_debuginfod_urls(&server.url("")).0;
    let id = BuildId::parse(text).unwrap();
    let debug = Request::new(Wanted::ElfDebug(id.clone()), "libfoo.so");
    let outcome = setup.acquire(&debug);
    let cached = format!("cache/_.debug/elf-buildid-sym-{text}/_.debug");
    assert_eq!(found(&outcome), setup.path(&cached));
    assert_eq!(found(&setup.acquire(&debug)), setup.path(&cached));
    let image = Request::new(Wanted::ElfImage(id), "libfoo.so");
    assert_eq!(missing(&setup.acquire(&image)), &NoFile::NoSymbolFile);
    let paths = [
        format!("/buildid/{text}/debuginfo"),
        format!("/buildid/{text}/executable"),
    ];
    assert_eq!(server.paths(), paths);
    assert_eq!(missing(&setup.acquire(&foo())), &NoFile::NoSymbolFile);
    assert_eq!(server.paths().len(), 2, "it is not asked for PDBs");
}

#[test]
fn a_damaged_cached_file_is_downloaded_again() {
    let server = plain_server();
    let setup = setup(&server);
    let cached = setup.write(&format!("down/foo.pdb/{GUID}1/foo.pdb"), &windows(1)[..99]);
    let outcome = setup.acquire(&foo());
    assert_eq!(found(&outcome), cached);
    assert_eq!(fs::read(&cached).unwrap(), windows(1));
    assert_eq!(
        trials(&outcome),
        [
            &AttemptResult::Damaged("truncated".into()),
            &AttemptResult::Found
        ]
    );
}

#[test]
fn chained_stores_are_filled_from_far_to_near() {
    let server = plain_server();
    let setup = Setup::new(&format!("srv*{{dir}}/near*{{dir}}/mid*{}", server.url("s")));
    setup.write("mid/index2.txt", "");
    found(&setup.acquire(&foo()));
    let near = setup.path(&format!("near/foo.pdb/{GUID}1/foo.pdb"));
    let mid = setup.path(&format!("mid/fo/foo.pdb/{GUID}1/foo.pdb"));
    assert!(
        near.exists() && mid.exists(),
        "{:?}",
        super::files(setup.dir.path())
    );
    fs::remove_file(&near).unwrap();
    let outcome = setup.acquire(&foo());
    assert_eq!(found(&outcome), near, "copied from the middle one");
    assert_eq!(server.paths().len(), 1);
    setup.assert_tidy();
}

#[test]
fn cache_elements_cache_files_of_later_elements() {
    let server = plain_server();
    let setup = Setup::new(&format!("cache*{{dir}}/c;srv*{}", server.url("s")));
    let cached = setup.path(&format!("c/foo.pdb/{GUID}1/foo.pdb"));
    assert_eq!(found(&setup.acquire(&foo())), cached);
    assert_eq!(found(&setup.acquire(&foo())), cached);
    assert_eq!(server.paths().len(), 1);
}

#[test]
fn credentials_are_sent_and_never_shown() {
    let server = Server::new(|_| Reply::Status(401));
    let url = server.url("s").replace("http://", "http://me:pass%3Aword@");
    let setup = Setup::new(&format!("srv*{{dir}}/down*{url}?token=hush"));
    let outcome = setup.acquire(&foo());
    let seen = &server.seen()[0];
    assert!(seen.path.ends_with("/foo.pdb?token=hush"), "{seen:?}");
    let header = "authorization: basic bwu6cgfzczp3b3jk";
    assert!(
        seen.headers.iter().any(|h| h.to_lowercase() == header),
        "{seen:?}"
    );
    let shown = format!("{outcome:?} {:?}", setup.config);
    assert!(
        !shown.contains("pass") && !shown.contains("hush"),
        "{shown}"
    );
}

#[test]
fn connections_are_kept() {
    let server = Server::new(|_| Reply::Status(404));
    setup(&server).acquire(&foo());
    assert_eq!(server.paths().len(), 7);
    assert_eq!(server.connections(), 1);
}

#[test]
fn the_cache_is_pruned_to_its_limit() {
    let server = plain_server();
    let mut setup = Setup::new(&server.url("s"));
    setup.config.cache_limit = 40_000;
    // A first run created the folder and left files in it that were not used for a long time.
    found(&setup.acquire(&foo()));
    let old = setup.write("cache/old.pdb/1/old.pdb", windows(3));
    let time = std::time::SystemTime::now() - Duration::from_secs(9999);
    fs::File::options()
        .append(true)
        .open(&old)
        .unwrap()
        .set_modified(time)
        .unwrap();
    let fetched = setup.path(&format!("cache/foo.pdb/{GUID}1/foo.pdb"));
    fs::remove_file(&fetched).unwrap();
    found(&setup.acquire(&foo()));
    assert!(!old.exists());
    assert!(fetched.exists());
}

#[test]
fn source_files_are_fetched_only_where_fetching_is_on() {
    let server = Server::new(|path| match path {
        "/a/B.cs" => Reply::Ok(b"class B;".to_vec()),
        "/moved" => Reply::Redirect(302, "/a/B.cs".into()),
        _ => Reply::Status(404),
    });
    let fetch =
        |setup: &Setup, path: &str, most| setup.stores().fetch_source(&server.url(path), most);
    let setup = setup(&server);
    assert_eq!(fetch(&setup, "a/B.cs", 8), Ok(b"class B;".to_vec()));
    assert_eq!(fetch(&setup, "a/B.cs", 7), Err(NotFetched::TooLarge(7)));
    assert_eq!(fetch(&setup, "a/C.cs", 8), Err(NotFetched::Status(404)));
    assert_eq!(fetch(&setup, "moved", 8), Err(NotFetched::Status(302)));
    let file = setup.stores().fetch_source("file:///etc/passwd", 8);
    assert!(matches!(file, Err(NotFetched::Url(_))), "{file:?}");
    let seen = server.paths().len();
    let mut offline = self::setup(&server);
    offline.config.offline = true;
    for setup in [Setup::new("/tmp"), offline] {
        assert_eq!(fetch(&setup, "a/B.cs", 8), Err(NotFetched::Off));
    }
    assert_eq!(server.paths().len(), seen);
}
