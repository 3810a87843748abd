//! Checks dependencies: each direct one has its reason (docs/dependencies.md), each licence and
//! source is allowed (deny.toml). Runs cargo offline; a lock file whose crates are not all
//! available is a failure that says so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// Returns cargo's metadata of the workspace, for this machine.
fn metadata() -> Value {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let rustc = String::from_utf8(rustc.stdout).unwrap();
    let host = rustc
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--format-version=1"])
        .args(["--all-features", "--filter-platform", host])
        .current_dir(root())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The members of the workspace that are published.
fn published(metadata: &Value) -> Vec<&Value> {
    let members: BTreeSet<&str> = list(&metadata["workspace_members"])
        .iter()
        .map(text)
        .collect();
    list(&metadata["packages"])
        .iter()
        .filter(|package| members.contains(text(&package["id"])) && package["publish"].is_null())
        .collect()
}

/// The packages that those lead to but for their tests, by id.
fn reached(metadata: &Value) -> Vec<&Value> {
    let nodes: BTreeMap<&str, &Value> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| (text(&node["id"]), node))
        .collect();
    let mut open: Vec<&str> = published(metadata)
        .iter()
        .map(|package| text(&package["id"]))
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let needed = list(&nodes[id]["deps"]).iter().filter(|dependency| {
            list(&dependency["dep_kinds"])
                .iter()
                .any(|kind| kind["kind"] != "dev")
        });
        open.extend(needed.map(|dependency| text(&dependency["pkg"])));
    }
    list(&metadata["packages"])
        .iter()
        .filter(|package| seen.contains(text(&package["id"])))
        .collect()
}

/// Returns the strings of a list in deny.toml, one per line.
fn allowed(section: &str, key: &str) -> BTreeSet<String> {
    let deny = read("deny.toml");
    let (_, section) = deny.split_once(&format!("[{section}]\n")).unwrap();
    let section = section.split("\n[").next().unwrap();
    let (_, list) = section.split_once(&format!("{key} = [")).unwrap();
    let list = list.split_once(']').unwrap().0;
    let entries = list.lines().filter(|line| !line.trim().starts_with('#'));
    entries
        .flat_map(|line| line.split('"').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// Returns whether an SPDX expression can be satisfied; `/` is an old form of `OR`.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ");
    let spaced = spaced.replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    any_of(&mut words, allowed)
}

type Words<'w, 'a> = &'w mut std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> bool {
    let mut any = all_of(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        any |= all_of(words, allowed);
    }
    any
}

fn all_of(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> bool {
    let mut all = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        all &= one(words, allowed);
    }
    all
}

fn one(words: Words<'_, '_>, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.next() else {
        return false;
    };
    if word == "(" {
        let inner = any_of(words, allowed);
        return words.next_if_eq(&")").is_some() && inner;
    }
    let exception = words.next_if_eq(&"WITH").and_then(|_| words.next());
    match exception {
        Some(exception) => allowed.contains(&format!("{word} WITH {exception}")),
        None => allowed.contains(word),
    }
}

#[test]
fn expressions_are_read_as_spdx_says() {
    let allowed = ["MIT", "Zlib"].map(str::to_owned).into();
    for good in [
        "MIT",
        "GPL-2.0-only OR MIT",
        "GPL-2.0-only/MIT",
        "(GPL-2.0-only OR MIT) AND Zlib",
        "MIT AND Zlib OR GPL-2.0-only",
    ] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in [
        "",
        "GPL-2.0-only",
        "MIT AND GPL-2.0-only",
        "(MIT AND GPL-2.0-only) OR BSL-1.0",
        "MIT WITH Some-exception",
    ] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}

#[test]
fn licences_sources_and_versions_are_allowed() {
    let metadata = metadata();
    let licences = allowed("licenses", "allow");
    let (banned, skipped) = (allowed("bans", "deny"), allowed("bans", "skip"));
    let registries: BTreeSet<String> = allowed("sources", "allow-registry")
        .iter()
        .map(|registry| format!("registry+{registry}"))
        .collect();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let packages = reached(&metadata);
    assert!(packages.len() > 50, "{}", packages.len());
    for package in packages {
        let name = text(&package["name"]);
        versions
            .entry(name)
            .or_default()
            .insert(text(&package["version"]));
        assert!(!banned.contains(name), "{name} is banned");
        let licence = text(&package["license"]);
        assert!(
            is_allowed(licence, &licences),
            "{name}: the licence is {licence:?}"
        );
        if let Some(source) = package["source"].as_str() {
            assert!(registries.contains(source), "{name} comes from {source}");
        }
    }
    for (name, versions) in versions {
        let is_one = versions.len() == 1 || skipped.contains(name);
        assert!(is_one, "{name} in several versions: {versions:?}");
    }
}

/// The features of each direct dependency, over all crates that have it.
fn direct(metadata: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut direct: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in published(metadata) {
        for dependency in list(&package["dependencies"]) {
            if dependency["source"].is_null() || dependency["kind"] == "dev" {
                continue;
            }
            let features = direct.entry(text(&dependency["name"])).or_default();
            features.extend(list(&dependency["features"]).iter().map(text));
            if dependency["uses_default_features"] == true {
                features.insert("default");
            }
        }
    }
    direct
}

#[test]
fn each_direct_dependency_has_its_reason() {
    let metadata = metadata();
    let table = read("docs/dependencies.md");
    let mut described: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in table.lines().filter_map(|line| line.strip_prefix("| `")) {
        let mut cells = row.split('|').map(str::trim);
        let name = cells.next().unwrap().trim_end_matches('`');
        let features = cells.next().unwrap().split_whitespace().collect();
        let reason = cells.next().unwrap();
        assert!(reason.len() > 5, "{name} has no reason");
        let twice = described.insert(name, features);
        assert!(twice.is_none(), "{name} has two rows");
    }
    let direct = direct(&metadata);
    for name in described.keys().chain(direct.keys()) {
        let (row, asked) = (described.get(name), direct.get(name));
        assert_eq!(row, asked, "{name}; left: docs/dependencies.md");
    }
}

/// Each package must contain its licences, and a page for registries.
#[test]
fn each_package_holds_its_licences() {
    for package in published(&metadata()) {
        let manifest = Path::new(text(&package["manifest_path"]));
        let folder = manifest.parent().unwrap();
        // A vendored package keeps the files and the spelling of its origin.
        if folder.starts_with(root().canonicalize().unwrap().join("vendor")) {
            continue;
        }
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let copy = std::fs::read(folder.join(name)).unwrap_or_default();
            assert_eq!(copy, read(name).into_bytes(), "{}/{name}", folder.display());
        }
        assert!(folder.join("README.md").is_file(), "{}", folder.display());
    }
}
