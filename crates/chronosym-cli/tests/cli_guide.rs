//! The guide and the README: every chronosym command in them runs, and does what they state.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::chronosym;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn pages() -> Vec<PathBuf> {
    let mut folders = vec![Path::new(ROOT).join("docs/guide")];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// The commands in blocks of `sh` that are ours, each once. A block is of ours or of other tools'
/// alone.
fn commands() -> BTreeSet<Vec<String>> {
    let mut commands = BTreeSet::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for block in text.split("```sh\n").skip(1) {
            let block = block.split_once("```").unwrap().0;
            let ours = |line: &str| line.starts_with("chronosym ");
            if block.lines().any(ours) {
                assert!(block.lines().all(ours), "{}: {block}", page.display());
                commands.extend(block.lines().map(words));
            }
        }
    }
    commands
}

/// Words apart by blanks, quoted ones in one.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| match at % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// The files that the guide's names represent.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let testdata = Path::new(ROOT).join("testdata");
    for (name, trace) in [
        ("app", "clr10/traces/all"),
        ("before", "clr10/traces/default"),
        ("after", "clr10/traces/all"),
        ("web", "clr8/shop/shop"),
    ] {
        let file = fs::File::open(testdata.join(format!("{trace}.nettrace.zip"))).unwrap();
        let mut zip = zip::ZipArchive::new(file).unwrap();
        let mut bytes = Vec::new();
        zip.by_index(0).unwrap().read_to_end(&mut bytes).unwrap();
        fs::write(folder.path().join(format!("{name}.nettrace")), bytes).unwrap();
    }
    for (name, from) in [("symbols", "clr10/workload"), ("bin", "clr8/shop")] {
        let copy = folder.path().join(name);
        fs::create_dir(&copy).unwrap();
        for entry in fs::read_dir(testdata.join(from)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                fs::copy(&path, copy.join(path.file_name().unwrap())).unwrap();
            }
        }
    }
    folder
}

/// A server prints its address, and continues to run.
fn serves(mut command: Command) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let stdout = child.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let is_address = [
        "http://127.0.0.1:",
        "https://profiler.firefox.com/from-url/",
    ];
    assert!(
        is_address.iter().any(|start| line.starts_with(start)),
        "{line}"
    );
}

#[test]
fn every_command_runs() {
    let (folder, commands) = (folder(), commands());
    let mut said = BTreeSet::new();
    for words in &commands {
        let mut command = chronosym();
        command.current_dir(&folder).args(&words[1..]);
        said.insert(words[1].as_str());
        if words[1] == "serve" {
            serves(command);
            continue;
        }
        let out = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&out.stderr);
        if words[1] == "record" {
            // The options are right, and the process of the guide is missing.
            assert!(stderr.contains("there is no process 4711"), "{stderr}");
            continue;
        }
        assert!(out.status.success(), "{words:?}: {stderr}");
        let option = words.iter().position(|word| word == "-o");
        let written = option.map(|at| fs::read(folder.path().join(&words[at + 1])).unwrap());
        let result = written.unwrap_or(out.stdout);
        assert!(
            result.len() > 100,
            "{words:?}: {}",
            String::from_utf8_lossy(&result)
        );
        assert!(!stderr.contains("no sample passes"), "{words:?}: {stderr}");
    }
    let all = [
        "diff", "events", "explain", "info", "lines", "modules", "serve", "stacks", "symbols",
        "threads", "top",
    ];
    assert!(said.is_superset(&all.into()), "{said:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1) {
            let target = target.split(')').next().unwrap();
            let path = page.parent().unwrap().join(target);
            assert!(path.exists(), "{}: {target}", page.display());
            links += 1;
        }
    }
    assert!(links > 15, "{links}");
}

/// The guide ends at the hottest line of a web service, and the first row of `top` is its method.
#[test]
fn ten_minutes_lead_to_the_hottest_line() {
    let folder = folder();
    let output = |args: &[&str]| {
        let run = chronosym()
            .current_dir(&folder)
            .args(args)
            .output()
            .unwrap();
        String::from_utf8(run.stdout).unwrap()
    };
    let summary = output(&["web.nettrace", "--symbols", "bin"]);
    assert!(
        summary.contains("Shop.Catalog.Distance (Shop.cs:165)"),
        "{summary}"
    );
    let top = output(&["top", "--symbols", "bin", "web.nettrace"]);
    let first = top
        .lines()
        .skip_while(|line| !line.starts_with("total %"))
        .nth(1);
    assert!(first.unwrap().contains("Shop.Catalog.Distance"), "{top}");
    // Frames of the method by line, counted from samples: the innermost user frame of those that ran.
    let mut lines: BTreeMap<u64, u64> = BTreeMap::new();
    for line in output(&[
        "stacks",
        "--format",
        "jsonl",
        "--symbols",
        "bin",
        "web.nettrace",
    ])
    .lines()
    {
        let sample: serde_json::Value = serde_json::from_str(line).unwrap();
        let leaf = &sample["frames"][0];
        if leaf["name"] == "Shop.Catalog.Distance" {
            let weight = sample["weight_ns"].as_u64().unwrap();
            *lines.entry(leaf["line"].as_u64().unwrap()).or_default() += weight;
        }
    }
    let hottest = lines.iter().max_by_key(|(_, weight)| **weight);
    assert_eq!(hottest.unwrap().0, &165, "{lines:?}");
}

/// The guide names each reason, as results do.
#[test]
fn every_reason_is_reported() {
    let text = fs::read_to_string(Path::new(ROOT).join("docs/guide/unnamed.md")).unwrap();
    for reason in chronosym::NameReason::ALL {
        let row = format!("| `{}` |", reason.as_str());
        assert_eq!(text.matches(&row).count(), 1, "{row}");
    }
}

fn readme() -> String {
    fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap()
}

/// The commands of the README work as written, from the folder of a clone.
#[cfg(unix)]
#[test]
fn every_command_of_the_readme_runs() {
    let clone = tempfile::tempdir().unwrap();
    let testdata = Path::new(ROOT).join("testdata").canonicalize().unwrap();
    std::os::unix::fs::symlink(testdata, clone.path().join("testdata")).unwrap();
    let readme = readme();
    let mut ran = 0;
    for block in readme.split("```sh\n").skip(1) {
        for line in block.split_once("```").unwrap().0.lines() {
            let built = line.strip_prefix("cargo run --release -p chronosym-cli -- ");
            let Some(args) = built.or_else(|| line.strip_prefix("chronosym ")) else {
                let known = ["cargo install --path ", "cargo test --workspace"];
                assert!(known.iter().any(|known| line.starts_with(known)), "{line}");
                continue;
            };
            let run = chronosym().current_dir(&clone).args(words(args)).output();
            let run = run.unwrap();
            let stderr = String::from_utf8_lossy(&run.stderr);
            assert!(run.status.success(), "{line}: {stderr}");
            ran += 1;
        }
    }
    assert_eq!(ran, 3);
    assert!(fs::metadata(clone.path().join("shop.html")).unwrap().len() > 100_000);
}

/// What the README prints below a command is what the command prints.
#[test]
fn the_output_in_the_readme_is_that_of_its_commands() {
    let shop = Path::new(ROOT).join("testdata/clr8/shop");
    let readme = readme();
    let mut compared = 0;
    for block in readme.split("```text\n$ chronosym ").skip(1) {
        let (line, printed) = block.split_once('\n').unwrap();
        let printed = printed.split_once("```").unwrap().0;
        let (args, last) = line.split_once(" | tail -").unwrap_or((line, "999"));
        let run = chronosym().current_dir(&shop).args(words(args)).output();
        let stdout = String::from_utf8(run.unwrap().stdout).unwrap();
        let lines: Vec<&str> = stdout.lines().collect();
        let from = lines.len().saturating_sub(last.parse().unwrap());
        assert_eq!(lines[from..].join("\n"), printed.trim_end(), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 2);
}
