//! The program in a terminal.

use std::process::Command;

use super::chronosym;

/// Returns what the program prints in a terminal of this width, without colours. The arguments
/// have no characters that a shell interprets.
pub fn run_in_terminal(columns: usize, args: &[&str]) -> String {
    let program = chronosym();
    let program = program.get_program().to_str().unwrap();
    let line = args.join(" ");
    let mut command = Command::new("script");
    command.arg("-qec");
    command.arg(format!(
        "stty cols {columns} rows 40; exec '{program}' --color never {line}"
    ));
    command.arg("/dev/null").stdin(std::process::Stdio::null());
    let out = command.output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(out.status.success(), "{args:?}: {text}");
    text.replace("\r\n", "\n")
}
