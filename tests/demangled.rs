//! Readable names against c++filt's and llvm-cxxfilt's, for what the C++ libraries of this system export.
//!
//! A name counts as wrong where neither tool writes it as we do in that tool's dialect.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use chronosym_symbols::demangle::{Dialect, demangle_as};
use libtest_mimic::{Arguments, Failed, Trial};

/// Libraries of which one at least is everywhere where there are compilers.
const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
    "/usr/lib/x86_64-linux-gnu/libclang-cpp.so.14",
];

/// Of so many names one is asked.
const STEP: usize = 7;

/// So many of a thousand may differ from both tools; the number may not grow.
const MAX_WRONG: usize = 1;

fn main() -> ExitCode {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    let missing = ["nm", "c++filt", "llvm-cxxfilt"].iter().find(|tool| {
        let run = Command::new(tool).arg("--version").output();
        run.is_err()
    });
    let trial = Trial::test("exported_names", exported_names);
    let nothing = !LIBRARIES.iter().any(|path| Path::new(path).exists());
    let trial = trial.with_ignored_flag((missing.is_some() || nothing) && !required);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit_code()
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
        if ours(Dialect::Gnu) != *gnu && ours(Dialect::Llvm) != *llvm {
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
