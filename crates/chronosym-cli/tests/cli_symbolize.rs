//! `chronosym symbolize`: addresses of traces, object files and PDBs.

mod common;

use common::*;
use serde_json::Value;

/// An address that the samples of a trace name, with what they name it, and when.
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
fn a_trace_answers_as_its_samples_do() {
    let trace = arg(R2R);
    let frames = some_frames(&trace);
    assert!(frames.len() > 20);
    for (time, frame) in frames.iter().take(8) {
        let address = frame["address"].as_str().unwrap();
        let time = time.to_string();
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
    let list = format!("{address}\n{number}\nnonsense\n{number:016x} {address}\n");
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
    assert!(text.starts_with(&format!(
        "{address} Ambiguous: {} occupants",
        occupants.len()
    )));
    // Each at its own time.
    for occupant in occupants.iter().filter(|o| o["from_ns"].is_u64()).take(3) {
        let time = occupant["from_ns"].to_string();
        let at: Value = serde_json::from_str(&ask(&["--style", "json", "--time", &time])).unwrap();
        assert_eq!(at["frames"], occupant["frames"]);
    }
}

#[test]
fn a_pdb_answers_as_llvm_symbolizer_does() {
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
    // Alone it is looked for where the options say; that of another build does not count.
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
        mismatched.stderr.contains("wanted is Windows PDB"),
        "{}",
        mismatched.stderr
    );
    let found = ask(image, &["--symbols", &arg("pdb-small/x86_64")]);
    assert_eq!((found.stdout, found.stderr.as_str()), (named.stdout, ""));
}

#[test]
fn an_object_file_answers_by_virtual_address_and_by_rva() {
    // The program itself has symbols; where its functions stand it is asked for itself.
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
        "INFO",
        "STACKS",
        "TOP",
        "EVENTS",
        "MODULES",
        "METHODS",
        "SYMBOLIZE",
        "EXPLAIN",
        "COMPLETIONS",
    ] {
        assert!(
            manual.contains(&format!(".SH CHRONOSYM {command}")),
            "{command}"
        );
    }
}
