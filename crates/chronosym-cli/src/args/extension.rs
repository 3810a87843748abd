//! The output format by the extension of `-o`, for every command with `--format`.

use std::path::Path;

use anyhow::{Result, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use super::parts::Usage;

/// Formats by the end of the file name.
const ENDINGS: &[(&str, &str)] = &[
    (".svg", "svg"),
    (".html", "html"),
    (".htm", "html"),
    (".speedscope.json", "speedscope"),
    (".speedscope", "speedscope"),
    (".firefox.json", "firefox"),
    (".profile.json", "firefox"),
    (".perfetto.json", "perfetto"),
    (".pb.gz", "pprof"),
    (".pprof", "pprof"),
    (".otlp", "otlp"),
    (".jsonl", "jsonl"),
    (".folded", "folded"),
    (".collapsed", "folded"),
    (".json", "json"),
    (".txt", "text"),
];

/// Returns the value of `--format` that the output of a command needs; `None` if the command line
/// states it, or the name has no extension.
///
/// # Errors
///
/// A usage error if the command cannot write such a file.
pub fn format(program: &Command, matches: &ArgMatches) -> Result<Option<&'static str>> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(None);
    };
    let command = program.find_subcommand(name);
    let mut arguments = command.into_iter().flat_map(Command::get_arguments);
    let format = arguments.find(|argument| argument.get_id() == "format");
    let output = matches.try_get_one::<std::path::PathBuf>("output");
    let (Some(format), Ok(Some(output))) = (format, output) else {
        return Ok(None);
    };
    let is_stated = matches.value_source("format") == Some(ValueSource::CommandLine);
    if is_stated || output.extension().is_none() || output.is_dir() {
        return Ok(None);
    }
    let values = format.get_possible_values();
    let can = |wanted: &str| values.iter().any(|value| value.get_name() == wanted);
    let wanted = of(output);
    if let Some(wanted) = wanted.filter(|wanted| can(wanted)) {
        return Ok(Some(wanted));
    }
    let known = ENDINGS.iter().filter(|(_, format)| can(format));
    let known: Vec<_> = known.map(|(ending, _)| *ending).collect();
    let (name, known) = (output.display(), known.join(", "));
    let hint = match wanted {
        Some("json") => "; `chronosym top --format json` writes tables as JSON",
        Some(_) => "; `chronosym stacks` writes pictures and profiles",
        None => "",
    };
    bail!(Usage(format!(
        "{name}: the extension is none of {known}; --format states the format of any other name{hint}"
    )))
}

fn of(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let ending = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
    ending.map(|(_, format)| *format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_select_formats() {
        let of = |name: &str| of(Path::new(name));
        assert_eq!(of("a/b.SVG"), Some("svg"));
        assert_eq!(of("cpu.pb.gz"), Some("pprof"));
        assert_eq!(of("x.speedscope.json"), Some("speedscope"));
        assert_eq!(of("x.json"), Some("json"));
        assert_eq!(of("x.png"), None);
    }
}
