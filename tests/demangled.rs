//! Compares demangled names with `c++filt` and `llvm-cxxfilt`, for the exports of installed C++
//! libraries, and with LLVM's own list of names.
//!
//! A name counts as wrong if neither tool prints the name that we print in its dialect.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use chronosym_conformance::{CORPUS, case};
use chronosym_symbols::demangle::{Dialect, demangle_as};
use libtest_mimic::{Arguments, Failed, Trial};

/// Libraries, at least one of which is installed on every machine with compilers.
const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
    "/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14",
];

/// One of this many names is compared.
const STEP: usize = 7;

/// The number of names in a thousand that may differ from both tools; it must not grow.
const MAX_WRONG: usize = 1;

/// Names of LLVM's list for which our result differs: two for which LLVM's tool differs as well, a
/// string, which LLVM prints as one since version 22, and a name that refers to itself.
const OTHER_THAN_LISTED: [&str; 4] = [
    "_Z1fM1XRFivEMS_OFivEMS_KOFivE",
    "_Z1fM1XVKFivEMS_VFivEMS_KOFivE",
    "_ZTAXtl1StlA32_cLc104ELc101ELc108ELc108ELc111ELc32ELc119ELc111ELc114ELc108ELc100EEEE",
    "_Zcv1BIRT_EIS1_E",
];

fn main() -> ExitCode {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    let missing = ["nm", "c++filt", "llvm-cxxfilt"].iter().find(|tool| {
        let run = Command::new(tool).arg("--version").output();
        run.is_err()
    });
    let trial = Trial::test("exported_names", exported_names);
    let nothing = !LIBRARIES.iter().any(|path| Path::new(path).exists());
    let trial = trial.with_ignored_flag((missing.is_some() || nothing) && !required);
    let list = case(CORPUS, "names_of_llvms_list", |corpus| {
        listed_names(&corpus.join("demangle/itanium.tsv"))
    });
    libtest_mimic::run(&Arguments::from_args(), vec![trial, list]).exit_code()
}

fn listed_names(list: &Path) -> Result<(), Failed> {
    let list = std::fs::read_to_string(list)?;
    let mut other = Vec::new();
    for line in list.lines() {
        let (name, expected) = line.split_once('\t').ok_or("a line without a tab")?;
        if demangle_as(name, Dialect::Llvm).ok().as_deref() != Some(expected) {
            other.push(name);
        }
    }
    match other == OTHER_THAN_LISTED {
        true => Ok(()),
        false => Err(format!("{} names differ: {other:#?}", other.len()).into()),
    }
}

fn exported_names() -> Result<(), Failed> {
    let mut names: Vec<String> = Vec::new();
    for library in LIBRARIES.iter().filter(|path| Path::new(path).exists()) {
        let listed = Command::new("nm")
            .args(["-D", "--defined-only", library])
            .output()?;
        let text = String::from_utf8(listed.stdout)?;
        let symbols = text.lines().filter_map(|line| line.rsplit(' ').next());
        let own = symbols.filter_map(|symbol| symbol.split('@').next());
        names.extend(own.filter(|name| name.starts_with("_Z")).map(str::to_owned));
    }
    names.sort_unstable();
    names.dedup();
    let names: Vec<String> = names.into_iter().step_by(STEP).collect();
    if names.len() < 500 {
        return Err(format!("only {} names", names.len()).into());
    }
    let gnu = filtered("c++filt", &names)?;
    let llvm = filtered("llvm-cxxfilt", &names)?;
    let mut wrong = Vec::new();
    for ((name, gnu), llvm) in names.iter().zip(&gnu).zip(&llvm) {
        let ours = |dialect| demangle_as(name, dialect).unwrap_or_else(|_| name.clone());
        if ours(Dialect::Gnu) != *gnu && ours(Dialect::Llvm) != unspaced(llvm) {
            wrong.push(format!(
                "{name}\n ours {}\n gnu  {gnu}\n llvm {llvm}",
                ours(Dialect::Gnu)
            ));
        }
    }
    if wrong.len() * 1000 > names.len() * MAX_WRONG {
        let shown = wrong
            .iter()
            .take(20)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n");
        let (wrong, all) = (wrong.len(), names.len());
        return Err(format!("{wrong} of {all} are wrong:\n{shown}").into());
    }
    Ok(())
}

/// A name without the spaces between the ends of template arguments, which LLVM 14 writes and later
/// versions do not.
fn unspaced(name: &str) -> String {
    let mut name = name.to_owned();
    while name.contains("> >") {
        name = name.replace("> >", ">>");
    }
    name
}

fn filtered(tool: &str, names: &[String]) -> Result<Vec<String>, Failed> {
    let mut child = Command::new(tool)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no pipe")?;
    let text = names.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output()?;
    let _ = writer.join();
    let text = String::from_utf8(output.stdout)?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.len() != names.len() {
        return Err(format!("{tool}: {} answers to {} names", lines.len(), names.len()).into());
    }
    Ok(lines)
}
