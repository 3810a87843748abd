//! Additions to clap's text of usage errors: the command, option or argument that was likely meant.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Commands of other tools, and the equivalent here.
const COMMANDS: &[(&[&str], &str)] = &[
    (&["version"], "use `chronosym --version`"),
    (
        &["report", "html"],
        "use `chronosym stacks TRACE -o report.html`",
    ),
    (
        &["flamegraph", "flame", "svg"],
        "use `chronosym stacks TRACE -o flame.svg`",
    ),
    (
        &["convert", "export"],
        "use `chronosym stacks TRACE -o FILE`: the extension selects the format",
    ),
    (
        &["collect", "ps"],
        "use `chronosym record` for .NET processes on Linux; without a target it lists them",
    ),
    (&["view", "open", "show"], "use `chronosym serve TRACE`"),
    (
        &["annotate", "source"],
        "use `chronosym lines TRACE METHOD`",
    ),
    (&["script", "dump"], "use `chronosym events TRACE`"),
];

/// Options of other tools, and their names here.
const OPTIONS: &[(&[&str], &str)] = &[
    (
        &["--top", "--limit", "--count", "--rows", "--lines-max"],
        "-n N",
    ),
    (&["--name", "--method"], "--match PATTERN"),
    (&["--cpu", "--on-cpu"], "--running"),
    (&["--blocked", "--off-cpu"], "--waiting"),
    (&["--thread"], "--tid TID"),
    (&["--start", "--since"], "--from T"),
    (&["--end", "--until"], "--to T"),
    (&["--filter", "--only"], "--include PATTERN"),
    (&["--sym", "--pdb"], "--symbols DIR"),
];

/// Positional arguments of commands that need two, and how to find the second.
const PAIRS: &[(&str, &str, &str)] = &[
    ("lines", "<METHOD>", "`chronosym top TRACE` lists methods"),
    (
        "explain",
        "<ADDR>",
        "`chronosym methods TRACE` lists code with addresses",
    ),
];

/// Adds advice to a usage error of a program that was called with `words`.
pub fn advise(mut error: Error, program: &Command, words: &[OsString]) -> Error {
    let mut commands = program.get_subcommands();
    let command = commands.find(|command| words.iter().any(|word| word == command.get_name()));
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let Some(word) = text(&error, ContextKind::InvalidSubcommand) else {
                return error;
            };
            if let Some(tip) = meaning(COMMANDS, &word) {
                error.remove(ContextKind::SuggestedSubcommand);
                tip_is(&mut error, tip);
            } else if error.get(ContextKind::SuggestedSubcommand).is_none() {
                match nearest(&word, program.get_subcommands().map(Command::get_name)) {
                    Some(name) => {
                        let names = ContextValue::Strings(vec![name.to_owned()]);
                        error.insert(ContextKind::SuggestedSubcommand, names);
                    }
                    None => tip_is(&mut error, "`chronosym --help` lists the commands"),
                }
            }
        }
        ErrorKind::UnknownArgument => {
            let Some(word) = text(&error, ContextKind::InvalidArg) else {
                return error;
            };
            // clap's own tip is to pass the word as a file name.
            error.remove(ContextKind::Suggested);
            let option = |tip: &str| tip.split(' ').next().unwrap_or_default().to_owned();
            if let Some(tip) = meaning(OPTIONS, &word)
                && command.is_some_and(|command| has(command, &option(tip)))
            {
                error.remove(ContextKind::SuggestedArg);
                tip_is(&mut error, &format!("use `{tip}`"));
            } else if command.is_some_and(|command| command.get_name() == "record")
                && let Some(tip) = program_to_record(&word, words)
            {
                error.remove(ContextKind::SuggestedArg);
                tip_is(&mut error, &tip);
            } else if !word.starts_with('-') {
                tip_is(&mut error, "options go before or after all other arguments");
            } else if error.get(ContextKind::SuggestedArg).is_none() {
                let of = program.get_subcommands().filter(|of| has(of, &word));
                let of: Vec<_> = of.map(Command::get_name).collect();
                if !of.is_empty() {
                    let tip = format!("'{word}' is an option of {}", of.join(", "));
                    tip_is(&mut error, &tip);
                }
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let name = command.map(Command::get_name);
            let pair = PAIRS.iter().find(|(of, ..)| Some(*of) == name);
            if let Some((_, second, tip)) = pair {
                let both = vec!["<TRACE>...".to_owned(), (*second).to_owned()];
                error.insert(ContextKind::InvalidArg, ContextValue::Strings(both));
                tip_is(&mut error, tip);
            }
        }
        _ => {}
    }
    error
}

/// Returns the command line that records a program that was given without `--`.
fn program_to_record(word: &str, words: &[OsString]) -> Option<String> {
    if word.starts_with('-') {
        return None;
    }
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(format!("use `--pid {word}`"));
    }
    let at = words.iter().position(|it| *it == *word)?;
    let (options, target) = words.get(1..)?.split_at_checked(at.checked_sub(1)?)?;
    let mut line: Vec<_> = options.iter().map(|word| word.to_string_lossy()).collect();
    line.push("--".into());
    if word.ends_with(".dll") {
        line.push("dotnet".into());
    }
    line.extend(target.iter().map(|word| word.to_string_lossy()));
    let line = line.join(" ");
    Some(format!(
        "`chronosym {line}` starts the program; `--name {word}` records one that runs"
    ))
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

fn tip_is(error: &mut Error, tip: &str) {
    let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip.to_owned())]);
    error.insert(ContextKind::Suggested, tips);
}

fn meaning(table: &[(&[&str], &'static str)], word: &str) -> Option<&'static str> {
    let row = table.iter().find(|(words, _)| words.contains(&word));
    row.map(|(_, meaning)| *meaning)
}

/// Returns whether a command has an option, spelled with its hyphens.
fn has(command: &Command, option: &str) -> bool {
    command.get_arguments().any(|argument| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        [long, short].into_iter().flatten().any(|own| own == option)
    })
}

/// Returns the word that differs least, if it differs by at most two letters, and by less than half
/// of them.
fn nearest<'a>(word: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = all.map(|other| (strsim::osa_distance(word, other), other));
    let near = distances.filter(|(distance, other)| *distance <= 2 && 2 * distance < other.len());
    near.min().map(|(_, other)| other)
}
