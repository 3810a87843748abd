//! `chronosym symbolize`: addresses of traces, object files and PDBs.

mod common;
#[path = "../../chronosym-symbols/tests/made/mod.rs"]
mod made;

use common::*;
use made::{elf, symbol};
use serde_json::Value;

/// Returns addresses of a trace's samples, with their frames and times.
fn some_frames(trace: &str) -> Vec<(u64, Value)> {
    let run = run(&[
        "-q", "stacks", "--format", "jsonl", "--from", "1s", "--to", "1050ms", trace,
    ]);
    let samples = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    samples
        .map(|s| (s["time_ns"].as_u64().unwrap(), s["frames"][0].clone()))
        .filter(|(_, frame)| frame["name"].is_string())
        .collect()
}

#[test]
fn a_trace_resolves_like_its_samples() {
    let trace = arg(R2R);
    let frames = some_frames(&trace);
    assert!(frames.len() > 20);
    for (time, frame) in frames.iter().take(8) {
        let address = frame["address"].as_str().unwrap();
        let time = format!("{time}ns");
        let mut args = vec![
            "symbolize",
            "--style",
            "json",
            "--trace",
            &trace,
            "--time",
            &time,
            address,
        ];
        let exact = frame["inlined"].is_null();
        // The innermost frame of a thread that waits is a return address.
        args.push("--caller");
        let run = run(&args);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(answer["address"], address);
        if exact {
            assert_eq!(answer["frames"][0]["name"], frame["name"]);
            assert_eq!(answer["frames"][0]["module"], frame["module"]);
            assert_eq!(answer["frames"][0]["evidence"], frame["evidence"]);
        }
    }
}

#[test]
fn lists_and_texts_are_read_from_standard_input() {
    let trace = arg(R2R);
    let frames = some_frames(&trace);
    let (_, frame) = &frames[0];
    let address = frame["address"].as_str().unwrap();
    let number = u64::from_str_radix(&address[2..], 16).unwrap();
    let name = frame["name"].as_str().unwrap();
    let list = format!("{address}\n{number}\nnonsense\n0x{number:016x} {address}\n");
    let run = run_with_input(
        &["symbolize", "--trace", &trace, "--caller"],
        list.as_bytes(),
    );
    assert_eq!(run.status, 0, "{}", run.stderr);
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(lines.len(), 5, "{}", run.stdout);
    assert_eq!(lines[2], "nonsense ?? (not an address)");
    for i in [0, 1, 3, 4] {
        assert!(
            lines[i].starts_with(address) && lines[i].contains(name),
            "{}",
            lines[i]
        );
    }

    let mut text = format!("at {address}, [{number:016x}]; 0x1 2026-11-21 \u{e9} ").into_bytes();
    text.extend([0xff, b'\n']);
    let filtered = chronosym_bytes(
        &["symbolize", "--filter", "--trace", &trace, "--caller"],
        &text,
    );
    let shown = String::from_utf8_lossy(&filtered);
    assert_eq!(shown.matches(name).count(), 2, "{shown}");
    assert!(shown.contains("]; 0x1 2026-11-21 \u{e9} "), "{shown}");
    assert!(filtered.ends_with(&[b' ', 0xff, b'\n']));
}

fn chronosym_bytes(args: &[&str], input: &[u8]) -> Vec<u8> {
    let path = file(input);
    let output = chronosym()
        .args(args)
        .stdin(std::fs::File::open(&path).unwrap())
        .output()
        .unwrap();
    assert!(output.status.success());
    output.stdout
}

#[test]
fn without_a_time_several_occupants_are_all_given() {
    // Dynamic methods come and go at one address (rule 19).
    let trace = arg(REUSE);
    let methods = run(&["-q", "methods", "--match", "dynamicClass", &trace]).stdout;
    let mut starts: std::collections::BTreeMap<&str, usize> = Default::default();
    for line in methods.lines().filter(|l| l.starts_with("  0x")) {
        *starts
            .entry(line.trim().split('-').next().unwrap())
            .or_default() += 1;
    }
    let (address, count) = starts.into_iter().max_by_key(|(_, n)| *n).unwrap();
    assert!(count > 2);
    let ask = |extra: &[&str]| {
        let mut args = vec!["-q", "symbolize", "--trace", &trace, address];
        args.extend(extra);
        run(&args).stdout
    };
    let answer: Value = serde_json::from_str(&ask(&["--style", "json"])).unwrap();
    assert_eq!(answer["frames"][0]["name_reason"], "Ambiguous");
    let occupants = answer["occupants"].as_array().unwrap();
    assert!(occupants.len() >= count);
    let text = ask(&[]);
    assert!(text.starts_with(&format!("{address} Ambiguous: {} answers", occupants.len())));
    // Each at its own time.
    for occupant in occupants.iter().filter(|o| o["from_ns"].is_u64()).take(3) {
        let time = format!("{}ns", occupant["from_ns"]);
        let at: Value = serde_json::from_str(&ask(&["--style", "json", "--time", &time])).unwrap();
        assert_eq!(at["frames"], occupant["frames"]);
    }
}

#[test]
fn a_pdb_resolves_like_llvm_symbolizer() {
    let pdb = arg("pdb-small/x86_64/small.pdb");
    let gz = std::fs::File::open(testdata("pdb-small/x86_64/llvm-symbolizer-22.json.gz")).unwrap();
    let truth: Value = serde_json::from_reader(flate2::read::GzDecoder::new(gz)).unwrap();
    let truth = truth.as_object().unwrap();
    let list: Vec<&String> = truth.keys().step_by(37).collect();
    let input = list.iter().map(|k| format!("{k}\n")).collect::<String>();
    let run = run_with_input(
        &["symbolize", "--pdb", &pdb, "--style", "json"],
        input.as_bytes(),
    );
    assert_eq!(run.status, 0, "{}", run.stderr);
    let answers: Vec<Value> = run
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(answers.len(), list.len());
    let mut compared = 0;
    for (key, answer) in list.iter().zip(&answers) {
        let expected = truth[*key].as_array().unwrap();
        let frames = answer["frames"].as_array().unwrap();
        if frames[0]["line"].is_u64() && expected.len() == frames.len() {
            for (frame, expected) in frames.iter().zip(expected) {
                compared += 1;
                assert_eq!(
                    frame["line"].as_u64().unwrap_or(0),
                    expected[2].as_u64().unwrap(),
                    "{key}"
                );
            }
        }
    }
    assert!(compared > list.len() / 2, "{compared} of {}", list.len());
    // With the image, addresses are as the image states them.
    let image = arg("pdb-small/x86_64/small.exe");
    let by_rva = common::run(&["symbolize", "--pdb", &pdb, "--style", "llvm", "0x1010"]).stdout;
    let at = [
        "symbolize",
        "--obj",
        &image,
        "--pdb",
        &pdb,
        "--style",
        "llvm",
        "0x140001010",
    ];
    assert_eq!(common::run(&at).stdout, by_rva);
    assert!(by_rva.ends_with("\n\n") && by_rva.lines().count() >= 3);
    // A PDB of another build is refused with both ids.
    let other = arg("pdb-small/i686/small.pdb");
    let refused = common::run(&["symbolize", "--obj", &image, "--pdb", &other, "0x140001010"]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stderr.contains("another build"),
        "{}",
        refused.stderr
    );
    // It is used if requested, and each frame is marked.
    let ask = |style| {
        let args = ["symbolize", "--obj", &image, "--pdb", &other, "--any-pdb"];
        common::run(&[&args[..], &["--style", style, "0x140001010"]].concat())
    };
    let text = ask("text");
    assert!(
        text.stdout.ends_with(" [of another build]\n"),
        "{}",
        text.stdout
    );
    assert!(text.stderr.contains("another build"), "{}", text.stderr);
    let json = ask("json").stdout;
    assert!(json.contains(r#""certainty":"Approximate""#), "{json}");
}

/// `--obj` accepts PDBs: alone, several for one log, and with the image of the same name.
#[test]
fn a_pdb_takes_the_place_of_its_image() {
    let (pdb, image) = (
        arg("pdb-small/x86_64/small.pdb"),
        arg("pdb-small/x86_64/small.exe"),
    );
    let by_pdb = common::run(&["symbolize", "--pdb", &pdb, "0x1010"]).stdout;
    assert!(by_pdb.contains(".cpp:"), "{by_pdb}");
    let as_object = common::run(&["symbolize", "--obj", &pdb, "0x1010"]);
    assert_eq!(as_object.stdout, by_pdb, "{}", as_object.stderr);
    let gnu = common::run(&["symbolize", "--style", "gnu", "-f", "-e", &pdb, "0x1010"]);
    assert!(gnu.stdout.contains(".cpp:"), "{}", gnu.stderr);
    let together = common::run(&["symbolize", "--obj", &image, "--obj", &pdb, "0x140001010"]);
    assert_eq!(together.stdout, by_pdb.replace("0x1010", "0x140001010"));

    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.pdb");
    std::fs::copy(testdata("pdb-small/i686/small.pdb"), &other).unwrap();
    let other = other.to_str().unwrap();
    let log = b"small.exe+0x1010\nother.exe+0x1010\n";
    let run = run_with_input(
        &["symbolize", "--filter", "--obj", &pdb, "--obj", other],
        log,
    );
    assert_eq!(run.stdout.matches(".cpp:").count(), 2, "{}", run.stderr);
    // A PDB is no image of another one.
    let both = common::run(&["symbolize", "--obj", other, "--pdb", &pdb, "0x1010"]);
    assert_eq!(both.status, 1, "{}", both.stdout);
}

/// WinDbg omits the ending of an image; a folder may have PDBs only.
#[test]
fn folders_have_the_files_of_names_without_endings() {
    let folder = tempfile::tempdir().unwrap();
    let add = |from: &str, to: &str| {
        std::fs::copy(
            testdata(&format!("pdb-small/x86_64/{from}")),
            folder.path().join(to),
        )
        .unwrap();
    };
    let ask = || {
        let path = folder.path().to_str().unwrap();
        let args = ["symbolize", "--filter", "--offline", "--symbols", path];
        let run = run_with_input(&args, b"app+0x1010\nlib.DLL+0x1010\napp.so+0x1010\n");
        let lines = run.stdout.lines();
        lines
            .map(|line| line.contains(".cpp:"))
            .collect::<Vec<bool>>()
    };
    add("small.pdb", "app.pdb");
    add("small.pdb", "lib.pdb");
    assert_eq!(ask(), [true, true, false]);
    // An image comes first; its own PDB is not here.
    add("small.exe", "app.exe");
    assert_eq!(ask(), [false, true, false]);
    add("small.pdb", "small.pdb");
    assert_eq!(ask(), [true, true, false]);
    add("small.exe", "app.dll");
    assert_eq!(ask(), [false, true, false], "it could be either");
}

#[test]
fn public_symbols_of_a_pdb_are_approximate() {
    let pdb = arg("pdb-small/x86_64/small.pdb");
    let run = common::run(&[
        "symbolize",
        "--pdb",
        &pdb,
        "--style",
        "json",
        "0x1627",
        "0x1010",
    ]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let certainty = r#""certainty":"Approximate""#;
    assert!(
        lines[0].contains("nodebug_add") && lines[0].contains(certainty),
        "{lines:?}"
    );
    assert!(!lines[1].contains(certainty), "{lines:?}");
}

#[test]
fn an_image_finds_its_pdb() {
    let ask = |image: &str, more: &[&str]| {
        let words = [
            "symbolize",
            "--style",
            "llvm",
            "--obj",
            image,
            "0x140001010",
        ];
        common::run(&[&words, more].concat())
    };
    let beside = ask(&arg("pdb-small/x86_64/small.exe"), &[]);
    let pdb = arg("pdb-small/x86_64/small.pdb");
    let named = ask(&arg("pdb-small/x86_64/small.exe"), &["--pdb", &pdb]);
    assert_eq!(beside.stdout, named.stdout);
    assert_eq!(beside.stderr, "");
    // Without an image it is searched for where the options say; one of another build is not used.
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("small.exe");
    std::fs::copy(testdata("pdb-small/x86_64/small.exe"), &image).unwrap();
    let image = image.to_str().unwrap();
    let alone = ask(image, &["--offline"]);
    assert_ne!(alone.stdout, named.stdout);
    assert!(alone.stderr.contains("no small.pdb of"), "{}", alone.stderr);
    let other = folder.path().join("small.pdb");
    std::fs::copy(testdata("pdb-small/i686/small.pdb"), other).unwrap();
    let mismatched = ask(image, &["--offline"]);
    assert_eq!(mismatched.stdout, alone.stdout);
    assert!(
        mismatched.stderr.contains("expected Windows PDB"),
        "{}",
        mismatched.stderr
    );
    let found = ask(image, &["--symbols", &arg("pdb-small/x86_64")]);
    assert_eq!((found.stdout, found.stderr.as_str()), (named.stdout, ""));
}

#[test]
fn an_object_file_resolves_virtual_addresses_and_rvas() {
    // The program itself has symbols; for addresses of its functions it is used itself.
    let own = env!("CARGO_BIN_EXE_chronosym");
    let styles = ["text", "json", "llvm", "gnu"];
    for style in styles {
        let run = run(&["symbolize", "--obj", own, "--style", style, "0x1"]);
        assert_eq!(run.status, 0, "{style}: {}", run.stderr);
        assert!(!run.stdout.is_empty());
    }
    let gnu = run(&["symbolize", "--obj", own, "--style", "gnu", "0x1"]);
    assert_eq!(gnu.stdout, "??\n??:0\n");
}

/// The reason of the only frame of each answer, with the module that it is in.
fn reasons(args: &[&str]) -> Vec<(String, Option<String>)> {
    let all = [&["symbolize", "--style", "json"], args].concat();
    let frame = |answer: &Value| {
        let text = |key: &str| answer["frames"][0][key].as_str().map(str::to_owned);
        (text("name_reason").unwrap_or_default(), text("module"))
    };
    json_lines(&all).iter().map(frame).collect()
}

#[test]
fn unnamed_frames_have_a_reason() {
    let known = |reason: &str| (reason.to_owned(), Some("small".to_owned()));
    let unknown = |reason: &str| (reason.to_owned(), None);
    let (pdb, image) = (
        arg("pdb-small/x86_64/small.pdb"),
        arg("pdb-small/x86_64/small.exe"),
    );
    assert_eq!(
        reasons(&[
            "--pdb",
            &pdb,
            "0x10",
            "small+0x10",
            "other+0x10",
            "0xffffffffff"
        ]),
        [
            known("NoName"),
            known("NoName"),
            unknown("NoSymbolFile"),
            unknown("InvalidAddress")
        ]
    );
    let asked = ["--obj", &image, "0x140002004", "other+0x10", "0x10"];
    let expected = [
        known("NoName"),
        unknown("NoSymbolFile"),
        unknown("InvalidAddress"),
    ];
    assert_eq!(reasons(&asked), expected);
    // Without the PDB the image itself is used, with the same output except for the reason.
    let expected = [
        known("NoSymbolFile"),
        unknown("NoSymbolFile"),
        unknown("InvalidAddress"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("small.exe");
    std::fs::copy(&image, &alone).unwrap();
    let asked = [
        "--obj",
        alone.to_str().unwrap(),
        "0x140002004",
        "other+0x10",
        "0x10",
    ];
    assert_eq!(reasons(&asked), expected);
    let text = run(&["symbolize", "--pdb", &pdb, "other+0x10"]).stdout;
    assert_eq!(text, "other+0x10 ?? (not this file)\n");

    // The signature of each module's symbols, before the record with the object file's name.
    let mut bytes = std::fs::read(&pdb).unwrap();
    for at in (0..bytes.len() - 8).step_by(4) {
        if bytes[at..at + 4] == [4, 0, 0, 0] && bytes[at + 6..at + 8] == [0x01, 0x11] {
            bytes[at] = 7;
        }
    }
    let damaged = file(&bytes);
    let asked = ["--pdb", damaged.to_str().unwrap(), "0x1010"];
    assert_eq!(reasons(&asked)[0].0, "SymbolFileDamaged");
}

#[test]
fn functions_of_a_pdb_have_parameters_where_llvm_prints_them() {
    let pdb = arg("pdb-small/x86_64/small.pdb");
    let ask = |style| run(&["symbolize", "--pdb", &pdb, "--style", style, "0x1100"]).stdout;
    assert!(ask("llvm").starts_with("twice_inlined(struct geo::Vec &, int)\n"));
    assert!(ask("gnu").starts_with("twice_inlined\n"));
}

#[test]
fn an_image_alone_names_its_pdb() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("small.exe");
    std::fs::copy(testdata("pdb-small/x86_64/small.exe"), &image).unwrap();
    let ask = |more: &[&str]| {
        let image = image.to_str().unwrap();
        let words = [
            "symbolize",
            "--style",
            "json",
            "--obj",
            image,
            "0x140002004",
        ];
        json_lines(&[&words, more].concat())[0]["frames"][0].clone()
    };
    let alone = ask(&[]);
    assert_eq!(alone["name_reason"], "NoSymbolFile");
    let id = alone["pdb_id"].as_str().unwrap();
    assert!(id.len() > 32, "{id}");
    let server = ["--symbol-path", "srv*https://symbols.invalid/", "--offline"];
    assert_eq!(ask(&server)["name_reason"], "Offline");
    std::fs::copy(
        testdata("pdb-small/i686/small.pdb"),
        folder.path().join("small.pdb"),
    )
    .unwrap();
    let mismatched = ask(&[]);
    assert_eq!(mismatched["name_reason"], "SymbolFileMismatch");
    assert_eq!(mismatched["pdb_id"], id);
}

/// However much of the input arrives at once, all its numbers have one radix.
#[test]
fn numbers_of_a_list_have_one_radix() {
    let own = env!("CARGO_BIN_EXE_chronosym");
    let listed = |more: &[&str], list: &[u8]| {
        let args = [&["symbolize", "--obj", own, "--style", "json"], more].concat();
        let run = run_with_input(&args, list);
        let addresses = run.stdout.lines().map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            answer["address"].as_str().unwrap().to_owned()
        });
        (
            addresses.collect::<Vec<_>>(),
            run.stderr.contains("--radix"),
        )
    };
    let at = |addresses: [&str; 2]| addresses.map(str::to_owned).to_vec();
    assert_eq!(listed(&[], b"1f\n10\n"), (at(["0x1f", "0x10"]), false));
    assert_eq!(listed(&[], b"10\n1f\n"), (at(["0xa", "1f"]), true));
    assert_eq!(
        listed(&["--radix", "16"], b"10\n1f\n"),
        (at(["0x10", "0x1f"]), false)
    );
    // A list that is known as a whole.
    assert_eq!(listed(&["10", "1f"], b""), (at(["0x10", "0x1f"]), true));
}

#[test]
fn the_style_of_addr2line_reads_hexadecimal_numbers() {
    let pdb = arg("pdb-small/x86_64/small.pdb");
    let ask = |address| run(&["symbolize", "--pdb", &pdb, "--style", "gnu", address]);
    let (bare, prefixed) = (ask("1100"), ask("0x1100"));
    assert!(prefixed.stdout.starts_with("twice_inlined\n"));
    assert_eq!(
        (bare.stdout, bare.stderr),
        (prefixed.stdout, prefixed.stderr)
    );
}

#[test]
fn offsets_count_from_a_section_that_is_named() {
    let own = env!("CARGO_BIN_EXE_chronosym");
    let args = ["symbolize", "--obj", own, "--style", "json"];
    let asked = |address: &str| {
        let run = run(&[&args[..], &[address]].concat());
        assert_eq!(run.status, 0);
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        answer["frames"][0].clone()
    };
    let inside = asked(".text+0x100");
    assert!(
        inside["name"].is_string() || inside["name_reason"] == "NoName",
        "{inside}"
    );
    assert_eq!(inside["address"], "0x100");
    let nowhere = asked(".nothing+0x100");
    assert!(
        nowhere["name"].is_null() && nowhere["name_reason"] != "NoName",
        "{nowhere}"
    );
}

#[test]
fn unsupported_formats_are_named() {
    for (bytes, name) in [
        (
            &[&[0xCF, 0xFA, 0xED, 0xFE, 7, 0, 0, 1][..], &[0; 16]].concat()[..],
            "is damaged",
        ),
        (b"MODULE Linux x86_64 0 a\n", "the MODULE record is damaged"),
        (b"SYMC\x09\0\0\0", "a SymCache of symbolic is not read"),
        (b"!<arch>\n", "an archive of object files is not read"),
        (
            &[0x64, 0x86, 2, 0, 0, 0, 0, 0],
            "a COFF object file is not read",
        ),
        (
            &[0x28, 0xB5, 0x2F, 0xFD, 0],
            "the compressed file is damaged",
        ),
    ] {
        let made = file(bytes);
        let run = run(&["symbolize", "--obj", made.to_str().unwrap(), "0x10"]);
        assert_eq!(run.status, 1);
        assert!(run.stderr.contains(name), "{}", run.stderr);
    }
}

#[test]
fn files_of_macos_are_resolved() {
    let app = testdata("macho/universal/app");
    let app = app.to_str().unwrap();
    let unclear = run(&["symbolize", "--obj", app, "0x100000460"]);
    assert_eq!(unclear.status, 1);
    assert!(
        unclear.stderr.contains("x86_64, arm64"),
        "{}",
        unclear.stderr
    );
    // The bundle next to the program, or given itself.
    for file in [format!("{app}:arm64"), format!("{app}.dSYM:arm64")] {
        let run = run(&[
            "symbolize",
            "--obj",
            &file,
            "--style",
            "json",
            "0x100000460",
        ]);
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        let frame = &answer["frames"][0];
        assert_eq!(frame["name"], "other");
        assert_eq!(frame["file"], "/src/two.c");
    }
    // Without it, lines are in object files.
    let alone = testdata("macho/arm64/app");
    let run = run(&["symbolize", "--obj", alone.to_str().unwrap(), "0x100000460"]);
    assert!(run.stdout.contains("other"), "{}", run.stdout);
    assert!(run.stderr.contains("dsymutil"), "{}", run.stderr);
}

#[test]
fn a_build_id_chooses_the_image_of_a_universal_file() {
    let folder = testdata("macho/universal");
    let image = chronosym_symbols::NativeSymbols::open_path(&folder.join("app:arm64")).unwrap();
    let uuid = image.build_id().unwrap();
    let folder = folder.to_str().unwrap();
    let log = format!("    #0 0x102a00464  (/Applications/app+0x464) (BuildId: {uuid})\n");
    let run = run_with_input(
        &["symbolize", "--filter", "--symbols", folder],
        log.as_bytes(),
    );
    assert!(
        run.stdout.contains("other"),
        "{}\n{}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn thunks_are_named_readably() {
    // The record of a procedure becomes that of a thunk, which linkers name as they name symbols.
    let mut bytes = std::fs::read(testdata("pdb-small/x86_64/small.pdb")).unwrap();
    let name = b"from_line_directive\0";
    let is_record = |at: &usize| {
        bytes[at + 2..at + 4] == 0x1110_u16.to_le_bytes() && bytes[at + 39..].starts_with(name)
    };
    let mut places = (0..bytes.len() - 64).step_by(4);
    let record = places.find(is_record).unwrap() + 4;
    let [length, offset] = [12, 28].map(|at| bytes[record + at..record + at + 4].to_vec());
    bytes[record - 2..record].copy_from_slice(&0x1102_u16.to_le_bytes());
    bytes[record + 12..record + 16].copy_from_slice(&offset);
    bytes[record + 16..record + 18].copy_from_slice(&[1, 0]);
    bytes[record + 18..record + 20].copy_from_slice(&length[..2]);
    bytes[record + 21..record + 37].copy_from_slice(b"??_9V@ns@@$B7AA\0");
    let rva = 0x1000 + u32::from_le_bytes(offset.try_into().unwrap());
    let pdb = file(&bytes);
    let run = run(&[
        "symbolize",
        "--pdb",
        pdb.to_str().unwrap(),
        &rva.to_string(),
    ]);
    let readable = "[thunk]: __cdecl ns::V::`vcall'{8, {flat}}";
    assert!(
        run.stdout.contains(readable),
        "{}{}",
        run.stdout,
        run.stderr
    );
}

#[test]
fn a_file_that_is_not_there_is_named_once() {
    for option in ["--obj", "--pdb"] {
        let run = run(&["symbolize", option, "no/such/file", "0x10"]);
        assert_eq!(run.status, 1);
        assert_eq!(
            run.stderr.matches("no/such/file").count(),
            1,
            "{}",
            run.stderr
        );
        assert_eq!(run.stderr.matches("os error").count(), 1, "{}", run.stderr);
    }
}

#[test]
fn names_out_of_a_file_neither_break_lines_nor_steer_the_terminal() {
    let names = b"\0evil\x1b[31m\nline\0".to_vec();
    let table = [vec![0; 24], symbol(1, 0x12, 0x1000, 4)].concat();
    let bytes = elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x40]),
        (".symtab", 2, 0, 0, table),
        (".strtab", 3, 0, 0, names),
    ]);
    let image = file(&bytes);
    let image = image.to_str().unwrap();
    for style in ["text", "llvm", "gnu"] {
        let run = run(&["symbolize", "--obj", image, "--style", style, "0x1000"]);
        assert!(run.stdout.contains("evil?[31m?line"), "{}", run.stdout);
        let control = |c: char| c.is_control() && c != '\n';
        assert!(!run.stdout.contains(control), "{:?}", run.stdout);
    }
    let filtered = run_with_input(&["symbolize", "--filter", "--obj", image], b"at 0x1000\n");
    assert_eq!(filtered.stdout, "at evil?[31m?line\n");
}

#[test]
fn lines_can_be_left_out() {
    let own = env!("CARGO_BIN_EXE_chronosym");
    let symbols = chronosym_symbols::NativeSymbols::open_path(own.as_ref()).unwrap();
    let code = symbols
        .code()
        .iter()
        .max_by_key(|r| r.end - r.start)
        .unwrap();
    let addresses: Vec<String> = (code.start..code.end)
        .step_by((code.end - code.start) as usize / 40)
        .map(|address| format!("{address:#x}"))
        .collect();
    let pdb = arg("pdb-small/x86_64/small.pdb");
    for (option, file, asked) in [
        ("--obj", own, addresses),
        (
            "--pdb",
            &pdb,
            vec!["0x1010".to_owned(), "0x1020".to_owned()],
        ),
    ] {
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let args = [&["symbolize", "--style", "json", option, file][..], &asked].concat();
        let frames = |args: &[&str]| -> Vec<Value> {
            let frames = json_lines(args).into_iter();
            frames
                .flat_map(|mut a| std::mem::take(a["frames"].as_array_mut().unwrap()))
                .filter(|frame| frame["name"].is_string())
                .collect()
        };
        assert!(frames(&args).iter().any(|frame| frame["line"].is_u64()));
        let without = frames(&[&args[..], &["--no-lines"]].concat());
        assert!(!without.is_empty());
        for frame in without {
            assert_eq!(frame["line_reason"], "LinesDisabled", "{frame}");
            assert!(
                frame["file"].is_null() && frame["line"].is_null(),
                "{frame}"
            );
        }
    }
}

#[test]
fn a_perf_map_is_for_traces() {
    let pdb = arg("pdb-small/x86_64/small.pdb");
    let own = env!("CARGO_BIN_EXE_chronosym");
    for (option, file) in [("--pdb", pdb.as_str()), ("--obj", own)] {
        let run = run(&["symbolize", option, file, "--perf-map", "x.map", "0x1010"]);
        assert!(run.stderr.contains("--perf-map"), "{}", run.stderr);
    }
}

/// A program without symbols that names its debug file, and that file.
fn stripped(build: Option<u8>, link: &str, crc: u32) -> (Vec<u8>, Vec<u8>) {
    let note = |build: u8| {
        let mut note = [4u32, 20, 3].map(u32::to_le_bytes).concat();
        note.extend(b"GNU\0");
        note.extend([build; 20]);
        (".note.gnu.build-id", 7, 2, 0x400, note)
    };
    let text = (".text", 1, 6, 0x1000, vec![0x90; 0x40]);
    let mut name = link.as_bytes().to_vec();
    name.resize(link.len() / 4 * 4 + 4, 0);
    name.extend(crc.to_le_bytes());
    let mut image = vec![text.clone(), (".gnu_debuglink", 1, 0, 0, name)];
    let table = [vec![0; 24], symbol(1, 0x12, 0x1000, 0x40)].concat();
    let mut debug = vec![
        text,
        (".symtab", 2, 0, 0, table),
        (".strtab", 3, 0, 0, b"\0found\0".to_vec()),
    ];
    image.extend(build.map(note));
    debug.extend(build.map(note));
    (elf(&image), elf(&debug))
}

#[test]
fn a_stripped_image_is_answered_from_its_debug_file() {
    let (image, debug) = stripped(Some(0xAB), "app.debug", 0);
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("app");
    std::fs::write(&app, image).unwrap();
    let ask = |more: &[&str]| {
        let args = ["symbolize", "--obj", app.to_str().unwrap(), "0x1000"];
        run(&[&args, more].concat())
    };
    let alone = ask(&[]);
    assert_eq!(alone.stdout, "0x1000 ?? (no name)\n");
    let why = json_lines(&[
        "symbolize",
        "--style",
        "json",
        "--obj",
        app.to_str().unwrap(),
        "0x1000",
    ]);
    assert_eq!(why[0]["frames"][0]["name_reason"], "NoSymbolFile");
    assert_eq!(why[0]["frames"][0]["build_id"], "ab".repeat(20).as_str());
    assert!(
        alone
            .stderr
            .contains("stripped; debug file app.debug not found"),
        "{}",
        alone.stderr
    );
    let missing = ask(&["--symbols", "no/such/folder"]);
    assert_eq!(missing.status, 1);
    assert!(missing.stderr.contains("there is no such folder"));

    let other = tempfile::tempdir().unwrap();
    let place = other.path().to_str().unwrap();
    let nothing = ask(&["--symbols", place]);
    assert!(
        nothing.stderr.contains("no debug file of"),
        "{}",
        nothing.stderr
    );
    assert!(nothing.stderr.contains(place), "{}", nothing.stderr);
    let keyed = format!(".build-id/ab/{}.debug", "ab".repeat(19));
    let stored = format!("_.debug/elf-buildid-sym-{}/_.debug", "ab".repeat(20));
    for (path, option) in [
        ("app.debug", "--symbols"),
        (keyed.as_str(), "--symbols"),
        (stored.as_str(), "--symbol-path"),
    ] {
        let path = other.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &debug).unwrap();
        let found = ask(&[option, place]);
        assert_eq!(found.stdout, "0x1000 found [symbol]\n", "{}", found.stderr);
        assert_eq!(found.stderr, "");
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_debug_file_of_another_build_is_reported_with_the_difference() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("app");
    let ask = || run(&["symbolize", "--obj", app.to_str().unwrap(), "0x1000"]);
    let (image, _) = stripped(Some(0xAB), "app.debug", 0);
    let (_, debug) = stripped(Some(0xCD), "app.debug", 0);
    std::fs::write(&app, image).unwrap();
    std::fs::write(folder.path().join("app.debug"), debug).unwrap();
    let told = ask().stderr;
    for part in ["app.debug is not used", &"ab".repeat(20), &"cd".repeat(20)] {
        assert!(told.contains(part), "{told}");
    }
    // Without build ids the link's checksum decides.
    let (image, debug) = stripped(None, "app.debug", 0x1234_5678);
    std::fs::write(&app, image).unwrap();
    let mut sum = flate2::Crc::new();
    sum.update(&debug);
    std::fs::write(folder.path().join("app.debug"), debug).unwrap();
    let told = ask().stderr;
    let own = format!("{:#010x}", sum.sum());
    for part in ["app.debug is not used", "0x12345678", &own] {
        assert!(told.contains(part), "{told}");
    }
    let (image, _) = stripped(None, "app.debug", sum.sum());
    std::fs::write(&app, image).unwrap();
    assert_eq!(ask().stdout, "0x1000 found [symbol]\n");
    // In a folder of the options as well.
    let other = tempfile::tempdir().unwrap();
    let debug = folder.path().join("app.debug");
    std::fs::rename(debug, other.path().join("app.debug")).unwrap();
    assert_eq!(ask().stdout, "0x1000 ?? (no name)\n");
    let place = other.path().to_str().unwrap();
    let args = ["symbolize", "--obj", app.to_str().unwrap(), "0x1000"];
    let found = run(&[&args[..], &["--symbols", place]].concat());
    assert_eq!(found.stdout, "0x1000 found [symbol]\n", "{}", found.stderr);
}

#[test]
fn an_image_without_its_pdb_lists_the_locations_searched() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("small.exe");
    std::fs::copy(testdata("pdb-small/x86_64/small.exe"), &image).unwrap();
    let args = [
        "symbolize",
        "--offline",
        "--symbol-path",
        "foo*bar",
        "--obj",
    ];
    let run = run(&[&args[..], &[image.to_str().unwrap(), "0x140001010"]].concat());
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(
        run.stderr.contains("symbol path: foo*bar"),
        "{}",
        run.stderr
    );
    let beside = format!("; {}: not found", folder.path().display());
    assert!(run.stderr.contains(&beside), "{}", run.stderr);
}

#[test]
fn completions_and_the_manual_name_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = run(&["completions", shell]);
        assert_eq!(run.status, 0);
        assert!(run.stdout.contains("symbolize"), "{shell}");
    }
    let manual = run(&["man"]).stdout;
    assert!(manual.contains(".TH chronosym"));
    for command in [
        "info",
        "stacks",
        "top",
        "events",
        "modules",
        "methods",
        "symbolize",
        "explain",
        "completions",
    ] {
        let page = run(&["man", command]).stdout;
        assert!(page.contains(&format!(".TH chronosym-{command}")), "{page}");
        let reference = format!("chronosym\\-{command}(1)");
        assert!(manual.contains(&reference), "{command}");
    }
}
