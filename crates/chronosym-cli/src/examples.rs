//! Examples for each command's help and for the manual page.

use clap::Command;
use clap::builder::Styles;

/// A command line and its purpose.
type Example = (&'static str, &'static str);

/// By command.
#[rustfmt::skip]
pub const EXAMPLES: &[(&str, &[Example])] = &[
    ("summary", &[
        ("chronosym app.nettrace", "what ran, where the time went, what to do next"),
        ("chronosym summary --format json app.nettrace", "the figures as JSON"),
    ]),
    ("info", &[
        ("chronosym info app.nettrace", "show what a trace contains and what is missing"),
        ("chronosym info --format json app.nettrace", "the same as JSON"),
    ]),
    ("stacks", &[
        ("chronosym stacks app.nettrace", "a call tree, hottest first"),
        ("chronosym stacks app.nettrace -o app.svg", "a flame graph for any browser; .html is a report with a time axis"),
        ("chronosym stacks --just-my-code --running app.nettrace", "user code of running threads"),
        ("chronosym stacks --event Microsoft-Windows-DotNETRuntime/80 app.nettrace", "where exceptions were thrown"),
        ("chronosym stacks --format folded app.nettrace", "one line per stack, for other tools"),
    ]),
    ("top", &[
        ("chronosym top app.nettrace", "hot methods: user code first, then all"),
        ("chronosym top --activity blocked perf.data", "where threads waited, from context switches"),
        ("chronosym top --running --by module app.nettrace", "modules, for running threads"),
        ("chronosym top --from 1.5s --to 2s --tid 4711 app.nettrace", "one thread for half a second"),
        ("chronosym top --callers Cache.Get app.nettrace", "callers of a method, with their time"),
    ]),
    ("otlp", &[
        ("chronosym otlp --symbols bin < in.otlp > out.otlp", "names and lines of programs in a folder"),
        ("chronosym otlp in.otlp -o out.otlp", "from debuginfod servers and symbol servers of the environment"),
    ]),
    ("save", &[
        ("chronosym save app.nettrace -o app.chrono", "the timeline alone, for symbolize --trace app.chrono"),
        ("chronosym save --with-samples app.nettrace -o app.chrono", "timeline and samples, for every command"),
    ]),
    ("merge", &[
        ("chronosym merge web.nettrace worker.nettrace -o machine.chrono", "two processes of one machine in one timeline"),
        ("chronosym merge agent.deltas -o agent.chrono", "deltas of a live session, as a saved timeline"),
    ]),
    ("export", &[
        ("chronosym export app.nettrace -o lake", "tables for DuckDB, Polars, Spark, ClickHouse: lake/samples/*.parquet, …"),
        ("chronosym export --host web-17 --format arrow app.nettrace -o lake", "with the machine's name, in Arrow's file format"),
    ]),
    ("resolve", &[
        ("chronosym resolve --stdin arrow --timelines timelines < addresses.arrows > names.arrows", "names for addresses of many processes"),
        ("chronosym resolve --stdin rowbinary --timelines timelines", "as a function of ClickHouse"),
    ]),
    #[cfg(unix)]
    ("record", &[
        ("chronosym record --pid 4711 --duration 30s -o app.html", "record 30 seconds, and make a report"),
        ("chronosym record -o app.nettrace -- dotnet App.dll", "start a program and record it from its first instruction to its end"),
        ("chronosym record --name App --profile alloc -o app.nettrace", "allocations, until Ctrl+C"),
        ("chronosym record --pid 4711 --perf --duration 30s -o app.html", "native code and the kernel, too"),
    ]),
    #[cfg(unix)]
    ("watch", &[
        ("chronosym watch --pid 4711", "hot methods of the last two seconds, until Ctrl+C"),
        ("chronosym watch --name App --interval 10s -n 20", "the last ten seconds each time, with more rows"),
    ]),
    ("serve", &[
        ("chronosym serve app.nettrace", "show the report in a browser"),
        ("chronosym serve --sources ~/src/app app.nettrace", "with source files from a folder"),
        ("chronosym serve --viewer firefox app.nettrace", "show it in Firefox Profiler"),
    ]),
    ("threads", &[
        ("chronosym threads app.nettrace", "time, running share and hottest method per thread"),
        ("chronosym threads --process app --format json machine.etl", "one process, as JSON"),
    ]),
    ("lines", &[
        ("chronosym lines app.nettrace Cache.Get", "time per line, with source embedded in the PDB"),
        ("chronosym lines --symbols bin --sources ~/src/app app.nettrace Cache.Get", "with PDBs and source from folders"),
    ]),
    ("runtime", &[
        ("chronosym runtime app.nettrace", "one line per report"),
        ("chronosym runtime gc app.nettrace", "each collection with its pause and the heap after it"),
        ("chronosym runtime exceptions --format json app.nettrace", "exception types, and where they were thrown and caught, as JSON"),
    ]),
    ("inlining", &[
        ("chronosym inlining app.nettrace", "rejected calls by cost, and the calls inlined into hot methods"),
        ("chronosym inlining app.nettrace Cache.Get", "one method"),
    ]),
    ("symbols", &[
        ("chronosym symbols app.nettrace", "missing symbol files and the time they would name"),
        ("chronosym symbols --symbol-path 'srv*~/symbols*https://msdl.microsoft.com/download/symbols' app.etl", "download the files that a server has"),
    ]),
    ("diff", &[
        ("chronosym diff before.nettrace after.nettrace", "methods that take more or less time than before"),
        ("chronosym diff --running -n 10 before.nettrace after.nettrace", "the ten largest changes, for running threads"),
        ("chronosym diff a/perf.data a/app.nettrace -- b/perf.data b/app.nettrace", "several recordings on each side"),
    ]),
    ("events", &[
        ("chronosym events app.nettrace", "every record, with its fields"),
        ("chronosym events --event Microsoft-Windows-DotNETRuntime/80 app.nettrace", "exceptions"),
        ("chronosym events --format jsonl --from 1s --to 1100ms app.nettrace", "a tenth of a second, as JSON"),
    ]),
    ("modules", &[
        ("chronosym modules app.nettrace", "modules and images, with the symbol files found for them"),
        ("chronosym modules --pid 4711 --format json machine.etl", "one process, as JSON"),
    ]),
    ("methods", &[
        ("chronosym methods app.nettrace", "every code body with address, lifetime and tier"),
        ("chronosym methods --match Cache. app.nettrace", "bodies of matching methods"),
    ]),
    ("explain", &[
        ("chronosym explain app.nettrace 0x7f2237486480", "code that was ever loaded at an address"),
        ("chronosym explain --pid 4711 --time 1.5s machine.etl 0x7ff81234", "code at that address in one process at one time"),
    ]),
    ("symbolize", &[
        ("chronosym symbolize --trace app.nettrace 0x7f2237486480", "resolve an address of a traced process"),
        ("chronosym symbolize --obj libapp.so 0x1234", "resolve an address of a file"),
        ("chronosym symbolize --pdb app.pdb --filter < crash.txt", "replace the addresses in a text with names"),
    ]),
    ("completions", &[
        ("chronosym completions bash > ~/.local/share/bash-completion/completions/chronosym", "complete commands with Tab"),
    ]),
    ("man", &[("chronosym man | man -l -", "read the manual page")]),
];

/// Examples for the program.
const FIRST: &[Example] = &[
    (
        "chronosym app.nettrace",
        "what ran, where the time went, what to do next",
    ),
    (
        "chronosym top app.nettrace",
        "the methods that take the time",
    ),
    (
        "chronosym stacks app.nettrace -o app.html",
        "a report for any browser: time axis, flame graph, source",
    ),
];

/// Help: the summary, examples, then the options.
const TEMPLATE: &str =
    "{about-with-newline}\n{before-help}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The syntax of every option that selects by name.
pub const PATTERNS: &str = "\
Patterns (PATTERN, METHOD) select by name, such as module!Namespace.Type.Method:
  text       matches anywhere; case matters if it has a capital letter: Cache.Get, cache<int>
  a*b, a?b   wildcards; match the whole name, with or without its module, in any case: 'App!*', '*.Get'
  /regex/    a regular expression; matches anywhere, case matters: '/Cache.*Get$/'
A pattern is compared with the recorded name and with the name in source code. --include, --exclude,
--fold and the --match of top also accept regular expressions without slashes.";

/// Adds the examples to each command's help.
pub fn add(program: Command) -> Command {
    let program = program
        .help_template(TEMPLATE)
        .before_help(text(FIRST))
        .after_help(PATTERNS);
    EXAMPLES.iter().fold(program, |program, (name, examples)| {
        program.mut_subcommand(name, |command| {
            command.help_template(TEMPLATE).before_help(text(examples))
        })
    })
}

fn text(examples: &[Example]) -> String {
    let lines = examples.iter();
    let lines = lines.map(|(line, what)| format!("  {line}\n      {what}\n"));
    let styles = Styles::styled();
    let header = styles.get_header();
    format!("{header}Examples:{header:#}\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_example_can_be_typed() {
        let program = Cli::with_examples();
        let named: Vec<&str> = EXAMPLES.iter().map(|(name, _)| *name).collect();
        for command in program.get_subcommands() {
            assert!(
                named.contains(&command.get_name()),
                "{}",
                command.get_name()
            );
        }
        for (name, examples) in EXAMPLES {
            for (line, _) in *examples {
                // Split like a shell: up to a pipe or a redirection.
                let line = line.split([' ']).map(|word| word.trim_matches('\''));
                let mut line: Vec<&str> = line
                    .take_while(|word| !["|", ">", "<"].contains(word))
                    .collect();
                // A trace in place of a command means `summary`.
                if *name == "summary" && line[1] == "app.nettrace" {
                    line.insert(1, name);
                }
                assert_eq!(line[1], *name, "{line:?}");
                let parsed = Cli::with_examples().try_get_matches_from(&line);
                assert!(parsed.is_ok(), "{line:?}: {}", parsed.unwrap_err());
            }
        }
    }
}
