//! Compares native symbols with the system's tools: programs compiled with every variety of debug
//! information, every byte of their code, with the output of llvm-symbolizer and addr2line.
//!
//! The tools are Debian 12's (LLVM 14, binutils 2.40); if one is absent its trials are ignored,
//! unless `CHRONOSYM_REQUIRE_TOOLS=1`, which makes that a failure. Differences are allowed only if
//! a class below names them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use chronosym_symbols::demangle::Dialect;
use chronosym_symbols::style::{Printer, Style};
use chronosym_symbols::{Address, Answers, NativeSymbols, Query, Source};
use libtest_mimic::{Arguments, Failed, Trial};

/// Name, flags of both compiler runs and the link, and a change to the linked program.
const VARIANTS: [(&str, &[&str], After); 18] = [
    ("o0", &["-O0", "-g"], After::Nothing),
    ("o2", &["-O2", "-g"], After::Nothing),
    ("o3-static-base", &["-O3", "-g", "-no-pie"], After::Nothing),
    ("dwarf4", &["-O2", "-gdwarf-4"], After::Nothing),
    (
        "dwarf3",
        &["-O1", "-gdwarf-3", "-gstrict-dwarf"],
        After::Nothing,
    ),
    (
        "dwarf2",
        &["-O2", "-gdwarf-2", "-gstrict-dwarf"],
        After::Nothing,
    ),
    (
        "type-units",
        &["-O2", "-gdwarf-5", "-fdebug-types-section"],
        After::Unlist,
    ),
    ("zlib", &["-O2", "-g", "-gz=zlib"], After::Nothing),
    ("zstd", &["-O2", "-g"], After::Zstd),
    ("lto", &["-O2", "-g", "-flto"], After::Nothing),
    (
        "sections",
        &["-O2", "-g", "-ffunction-sections", "-Wl,--gc-sections"],
        After::Nothing,
    ),
    ("debuglink", &["-O2", "-g"], After::Strip),
    (
        "split5",
        &["-O2", "-gdwarf-5", "-gsplit-dwarf"],
        After::Nothing,
    ),
    (
        "split4",
        &["-O2", "-gdwarf-4", "-gsplit-dwarf"],
        After::Nothing,
    ),
    (
        "split5-package",
        &["-O2", "-gdwarf-5", "-gsplit-dwarf"],
        After::Package,
    ),
    (
        "split4-package",
        &["-O2", "-gdwarf-4", "-gsplit-dwarf"],
        After::Package,
    ),
    ("shared", &["-O2", "-gdwarf-4"], After::Share),
    ("mini", &["-O2", "-g"], After::Mini),
];

/// Programs for Windows: name (the compiler adds the extension if it is missing), prefix of the
/// tools' names, flags.
const WINDOWS: [(&str, &str, &[&str]); 5] = [
    ("pe-o0.exe", X64, &["-O0", "-g"]),
    ("pe-dwarf5.exe", X64, &["-O2", "-gdwarf-5"]),
    ("pe-dwarf4.exe", X64, &["-O2", "-gdwarf-4"]),
    ("pe32-dwarf5.exe", X86, &["-O2", "-gdwarf-5"]),
    ("pe32-dwarf4.exe", X86, &["-O2", "-gdwarf-4"]),
];

const X64: &str = "x86_64-w64-mingw32-";
const X86: &str = "i686-w64-mingw32-";

#[derive(Clone, Copy, PartialEq)]
enum After {
    Nothing,
    /// Compress debug sections with zstd, which this LLVM cannot read: it gets the program before
    /// that.
    Zstd,
    /// Remove the list of units and their addresses, which Clang omits.
    Unlist,
    /// Move debug information to a separate file; the program is stripped and linked to it.
    Strip,
    /// Move split units to a package and delete their files.
    Package,
    /// Move what the program shares with a copy of itself to a supplementary file (dwz).
    Share,
    /// Stripped but for a packed symbol table in `.gnu_debugdata`; the tools get the table
    /// unpacked.
    Mini,
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    let absent = |tool: &str, version: &str| -> Option<String> {
        let said = Command::new(tool).arg("--version").output().ok();
        match said {
            None => Some(format!("{tool} is not installed")),
            Some(said) => {
                let text = String::from_utf8_lossy(&said.stdout).into_owned();
                (!text.contains(version))
                    .then(|| format!("{tool} {version} wanted, this is {text}"))
            }
        }
    };
    let compiler = absent("gcc", "")
        .or_else(|| absent("g++", ""))
        .or_else(|| absent("objcopy", ""));
    let llvm = compiler
        .clone()
        .or_else(|| absent("llvm-symbolizer", "LLVM version 14."));
    let gnu = compiler.or_else(|| absent("addr2line", "2.40"));
    let others = [
        ("llvm-dwp", After::Package),
        ("dwz", After::Share),
        ("xz", After::Mini),
    ];

    let mut trials = Vec::new();
    for (name, flags, after) in VARIANTS {
        for (tool, missing) in [("llvm", &llvm), ("gnu", &gnu)] {
            // Binutils' tool does not read split units. It also finds no lines of functions without
            // an address, such as those in two parts in DWARF 2, and no inlinees if there are type
            // units.
            let beyond = name.starts_with("split") || ["dwarf2", "type-units"].contains(&name);
            if tool == "gnu" && beyond {
                continue;
            }
            let tool_of_its_own = others.iter().find(|(_, for_which)| *for_which == after);
            let problem = missing
                .clone()
                .or_else(|| tool_of_its_own.and_then(|(tool, _)| absent(tool, "")));
            let ignored = problem.is_some() && !required;
            let trial = Trial::test(format!("{name}/{tool}"), move || {
                if let Some(problem) = problem {
                    return Err(problem.into());
                }
                let program = Program::build(name, "", flags, after)?;
                match tool {
                    "llvm" => {
                        against_llvm(name, &program)?;
                        match name {
                            "o2" | "lto" | "split5" => starts_against_llvm(&program),
                            _ => Ok(()),
                        }
                    }
                    _ => against_gnu(&program, "", gnu_class),
                }
            });
            trials.push(trial.with_ignored_flag(ignored));
        }
    }
    for (name, tool, check) in [
        (
            "split-missing",
            None,
            split_units_that_are_missing as fn() -> _,
        ),
        (
            "split-package-of-some",
            Some("llvm-dwp"),
            split_units_that_a_package_lacks,
        ),
    ] {
        let problem = ["gcc", "g++"]
            .into_iter()
            .chain(tool)
            .find_map(|tool| absent(tool, ""));
        let ignored = problem.is_some() && !required;
        let trial = Trial::test(name, move || match problem {
            Some(problem) => Err(problem.into()),
            None => check(),
        });
        trials.push(trial.with_ignored_flag(ignored));
    }
    for (name, prefix, flags) in WINDOWS {
        for tool in ["llvm", "gnu"] {
            let problem = absent(&format!("{prefix}gcc"), "")
                .or_else(|| absent(&format!("{prefix}g++"), ""))
                .or_else(|| match tool {
                    "llvm" => absent("llvm-symbolizer", "LLVM version 14."),
                    _ => absent(&format!("{prefix}addr2line"), "2.40"),
                });
            let ignored = problem.is_some() && !required;
            let trial = Trial::test(format!("{name}/{tool}"), move || {
                if let Some(problem) = problem {
                    return Err(problem.into());
                }
                let program = Program::build(name, prefix, flags, After::Nothing)?;
                match tool {
                    "llvm" => against_llvm(name, &program),
                    _ => against_gnu(&program, prefix, windows_gnu_class),
                }
            });
            trials.push(trial.with_ignored_flag(ignored));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A compiled program, in a temporary folder.
struct Program {
    /// The file opened here.
    path: PathBuf,
    /// The file given to the tools: the same, except for contents that they cannot read.
    reference: PathBuf,
    _folders: [Option<tempfile::TempDir>; 2],
}

impl Program {
    fn build(name: &str, prefix: &str, flags: &[&str], after: After) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("native");
        let at = |file: &str| folder.path().join(file);
        let compile = |compiler: &str, file: &str, object: &str| {
            run(Command::new(format!("{prefix}{compiler}"))
                .current_dir(folder.path())
                .args(flags)
                .arg("-c")
                .arg(source.join(file))
                .args(["-o", object]))
        };
        compile("gcc", "plain.c", "plain.o")?;
        compile("g++", "shapes.cpp", "shapes.o")?;
        run(Command::new(format!("{prefix}g++"))
            .current_dir(folder.path())
            .args(flags)
            .args(["plain.o", "shapes.o", "-Wl,--build-id=sha1", "-o", name]))?;
        let mut reference = at(name);
        let mut path = reference.clone();
        match after {
            After::Nothing => {}
            After::Zstd => {
                path = at("packed");
                run(Command::new("objcopy")
                    .arg("--compress-debug-sections=zstd")
                    .args([&reference, &path]))?;
            }
            After::Unlist => {
                run(Command::new("objcopy")
                    .arg("--remove-section=.debug_aranges")
                    .arg(&path))?;
            }
            After::Strip => {
                path = at("stripped");
                let debug = at("stripped.debug");
                run(Command::new("objcopy")
                    .arg("--only-keep-debug")
                    .args([&reference, &debug]))?;
                run(Command::new("objcopy")
                    .arg("--strip-all")
                    .arg(format!("--add-gnu-debuglink={}", debug.display()))
                    .args([&reference, &path]))?;
                // The tools name code of a stripped program differently.
                reference = path.clone();
            }
            After::Package => {
                // Binutils' dwp crashes on DWARF 5, LLVM's does not. LLVM's symbolizer reads the
                // units' own files.
                path = at("packaged");
                std::fs::copy(&reference, &path)?;
                run(Command::new("llvm-dwp")
                    .current_dir(folder.path())
                    .arg("-e")
                    .args([name, "-o", "packaged.dwp"]))?;
                let apart = tempfile::tempdir()?;
                for file in ["packaged", "packaged.dwp"] {
                    std::fs::copy(at(file), apart.path().join(file))?;
                }
                return Ok(Self {
                    path: apart.path().join("packaged"),
                    reference,
                    _folders: [Some(folder), Some(apart)],
                });
            }
            After::Share => {
                path = at("one");
                std::fs::copy(&reference, &path)?;
                std::fs::copy(&reference, at("two"))?;
                run(Command::new("dwz").current_dir(folder.path()).args([
                    "-m",
                    "common.debug",
                    "one",
                    "two",
                ]))?;
            }
            After::Mini => {
                path = at("stripped");
                let table = at("table");
                run(Command::new("objcopy")
                    .arg("--strip-debug")
                    .args([&reference, &table]))?;
                reference = at("reference");
                std::fs::copy(&table, &reference)?;
                run(Command::new("xz").arg(&table))?;
                run(Command::new("objcopy")
                    .arg("--strip-all")
                    .arg("--add-section")
                    .arg(format!(".gnu_debugdata={}", at("table.xz").display()))
                    .args([&reference, &path]))?;
            }
        }
        Ok(Self {
            path,
            reference,
            _folders: [Some(folder), None],
        })
    }

    fn open(&self) -> Result<NativeSymbols, Failed> {
        Ok(NativeSymbols::open_path(&self.path)?)
    }
}

/// Without them the line tables are there, but not which of the lines are those of inlined
/// functions.
fn split_units_that_are_missing() -> Result<(), Failed> {
    let program = Program::build("split", "", &SPLIT, After::Nothing)?;
    let folder = program.path.parent().ok_or("no folder")?;
    let complete = all(&program.open()?);
    for unit in ["plain.dwo", "shapes.dwo"] {
        std::fs::remove_file(folder.join(unit))?;
    }
    let symbols = program.open()?;
    let answers = all(&symbols);
    let (mut named, mut lines) = (0, 0);
    for (answer, complete) in answers.iter().zip(complete.iter()) {
        let innermost = complete.frames().next();
        for frame in answer.frames() {
            named += usize::from(frame.name().is_some());
            let Some(line) = frame.line() else { continue };
            lines += 1;
            let expected = innermost.and_then(|frame| Some((frame.file()?, frame.line()?)));
            if !frame.line_uncertain() || frame.file().zip(Some(line)) != expected {
                return Err(format!("line {line} of {:?}, not {expected:?}", frame.name()).into());
            }
        }
        let has_line = innermost.is_some_and(|frame| frame.line().is_some());
        if has_line && answer.frames().all(|frame| frame.line().is_none()) {
            return Err(format!("{:#x} has no line", answer.address()).into());
        }
    }
    let missing = symbols.missing_files();
    match missing.as_slice() {
        [one] if one.contains("plain.dwo and 1 more not found") && named > 0 && lines > 0 => Ok(()),
        _ => Err(format!("{named} named, {lines} lines, {missing:?}").into()),
    }
}

/// Units missing in a package may still be in files next to it.
fn split_units_that_a_package_lacks() -> Result<(), Failed> {
    let program = Program::build("split", "", &SPLIT, After::Nothing)?;
    let expected = printed(Style::Llvm, false, &all(&program.open()?))?;
    let folder = program.path.parent().ok_or("no folder")?;
    run(Command::new("llvm-dwp")
        .current_dir(folder)
        .args(["plain.dwo", "-o", "split.dwp"]))?;
    std::fs::remove_file(folder.join("plain.dwo"))?;
    let symbols = program.open()?;
    let answers = all(&symbols);
    if printed(Style::Llvm, false, &answers)? != expected || !answers.damage().is_empty() {
        return Err(format!("other answers: {:?}", answers.damage()).into());
    }
    Ok(())
}

const SPLIT: [&str; 3] = ["-O2", "-gdwarf-5", "-gsplit-dwarf"];

/// Returns the answers for every byte of the code.
fn all(symbols: &NativeSymbols) -> Answers {
    let addresses: Vec<Address> = symbols
        .code()
        .iter()
        .flat_map(Clone::clone)
        .map(Address::VirtualAddress)
        .collect();
    let mut answers = Answers::new();
    symbols.find_all(&addresses, &Query::default(), &mut answers);
    answers
}

/// Returns the address of every byte of the code, and our answers.
fn ours(program: &Program, dialect: Dialect) -> Result<(Vec<u64>, Answers), Failed> {
    let symbols = program.open()?;
    let addresses: Vec<u64> = symbols.code().iter().flat_map(Clone::clone).collect();
    if addresses.len() < 5000 {
        return Err(format!("only {} bytes of code", addresses.len()).into());
    }
    let asked: Vec<Address> = addresses
        .iter()
        .map(|&a| Address::VirtualAddress(a))
        .collect();
    let mut answers = Answers::new();
    let mut query = Query::default();
    query.symbol_names = Some(dialect);
    symbols.find_all(&asked, &query, &mut answers);
    if !answers.damage().is_empty() {
        return Err(format!("damage: {:?}", answers.damage()).into());
    }
    let inlined = answers.iter().filter(|a| a.frames().len() > 1).count();
    if inlined == 0 && symbols.has_lines() {
        return Err("no inlined frame anywhere".into());
    }
    // Single lookups use another path, with cached units.
    let mut single = Answers::new();
    for (i, &address) in asked.iter().enumerate().step_by(7) {
        symbols.find(address, &query, &mut single);
        let print = |answers: &Answers, i: usize| -> Result<Vec<u8>, Failed> {
            let mut text = Vec::new();
            let answer = answers.get(i).ok_or("no answer")?;
            let printer = Printer::new(Style::Json, answers).demangle(false);
            printer.print(&mut text, answer.address(), &answer)?;
            Ok(text)
        };
        let (one, all) = (print(&single, 0)?, print(&answers, i)?);
        if one != all {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (one, all) = (text(&one), text(&all));
            return Err(format!("{address:x?}\n  alone    {one}  in batch {all}").into());
        }
    }
    Ok((addresses, answers))
}

/// Prints each answer as text, in frames of two lines.
fn printed(style: Style, demangle: bool, answers: &Answers) -> Result<Vec<Vec<Frame>>, Failed> {
    let printer = Printer::new(style, answers).demangle(demangle);
    let mut all = Vec::new();
    for answer in answers.iter() {
        let mut text = Vec::new();
        printer.print(&mut text, answer.address(), &answer)?;
        all.push(frames(&String::from_utf8(text)?));
    }
    Ok(all)
}

type Frame = (String, String);

fn frames(text: &str) -> Vec<Frame> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.is_empty()).collect();
    lines
        .chunks(2)
        .map(|pair| {
            (
                pair[0].to_owned(),
                pair.get(1).copied().unwrap_or("").to_owned(),
            )
        })
        .collect()
}

fn ask(command: &mut Command, addresses: &[u64]) -> Result<String, Failed> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no pipe")?;
    let text: String = addresses.iter().map(|a| format!("{a:#x}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output()?;
    let _ = writer.join();
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn run(command: &mut Command) -> Result<(), Failed> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}

/// Compares answer by answer; `allowed` names the class of a known difference in which we are
/// right.
fn compare(
    addresses: &[u64],
    ours: &[Vec<Frame>],
    theirs: &[Vec<Frame>],
    allowed: impl Fn(usize, &[Frame], &[Frame]) -> Option<&'static str>,
) -> Result<(), Failed> {
    if ours.len() != theirs.len() {
        return Err(format!("{} answers here, {} there", ours.len(), theirs.len()).into());
    }
    let mut differences = 0;
    let mut shown = String::new();
    for (i, (mine, other)) in ours.iter().zip(theirs).enumerate() {
        if mine != other && allowed(i, mine, other).is_none() {
            differences += 1;
            if differences <= 5 {
                shown += &format!("\n{:#x}\n  here  {mine:?}\n  there {other:?}", addresses[i]);
            }
        }
    }
    match differences {
        0 => Ok(()),
        n => Err(format!("{n} of {} answers differ{shown}", ours.len()).into()),
    }
}

fn against_llvm(name: &str, program: &Program) -> Result<(), Failed> {
    let (addresses, answers) = ours(program, Dialect::Llvm)?;
    let asked = |arguments: &[&str]| -> Result<Vec<Vec<Frame>>, Failed> {
        let text = ask(
            Command::new("llvm-symbolizer")
                .args(arguments)
                .arg(format!("--obj={}", program.reference.display())),
            &addresses,
        )?;
        Ok(text.trim_end().split("\n\n").map(frames).collect())
    };
    let split = name.starts_with("split");
    let decorated = name.starts_with("pe32");
    let dwarf2 = name == "dwarf2";
    let is_stripped = name == "debuglink";
    let class = |_: usize, mine: &[Frame], other: &[Frame]| {
        // `_init` has no size, and LLVM lets it reach beyond its section into the next: the PLT.
        if let ([m], [o]) = (mine, other)
            && m.0 == "??"
            && o.0 == "_init"
        {
            return Some("a symbol without size, beyond its section");
        }
        if is_stripped && mine.len() == 1 && other.len() == 1 && other[0].0 == "??" {
            return Some("a symbol of the debug file, whose symbols LLVM does not read");
        }
        // Ranges in split units are relative to the skeleton's low_pc, which LLVM 14 does not
        // apply: it misses inlinees. Strict DWARF 2 cannot describe a function in two parts: it
        // then has no address, and the symbol table names it.
        if dwarf2
            && mine.len() == 1
            && other.first().map(|f| &f.1) == mine.first().map(|f| &f.1)
            && other.last().map(|f| &f.0) == mine.first().map(|f| &f.0)
        {
            return Some("functions in two parts, in DWARF 2");
        }
        if split
            && other.len() < mine.len()
            && other.first().map(|f| &f.1) == mine.first().map(|f| &f.1)
            && other.last().map(|f| &f.0) == mine.last().map(|f| &f.0)
        {
            return Some("inlined frames of a split unit");
        }
        None
    };
    let raw = asked(&["--no-demangle"])?;
    // Not demangled, LLVM leaves names of 32-bit Windows in their decoration, which we take off in
    // any case.
    if !decorated {
        compare(
            &addresses,
            &printed(Style::Llvm, false, &answers)?,
            &raw,
            class,
        )?;
    }
    let mine_raw = printed(Style::Llvm, false, &answers)?;
    compare(
        &addresses,
        &unspaced(printed(Style::Llvm, true, &answers)?),
        &unspaced(asked(&[])?),
        |i, mine, other| {
            class(i, mine, other)
                .or_else(|| names_differ(decorated, &mine_raw[i], &raw[i], mine, other))
        },
    )
}

/// Names without the spaces between the ends of template arguments, which LLVM 14 writes and later
/// versions do not.
fn unspaced(mut answers: Vec<Vec<Frame>>) -> Vec<Vec<Frame>> {
    for (name, _) in answers.iter_mut().flatten() {
        while name.contains("> >") {
            *name = name.replace("> >", ">>");
        }
    }
    answers
}

/// Compares the start of the code around each address: GCC splits functions in two, and the cold
/// part may have the lower address.
fn starts_against_llvm(program: &Program) -> Result<(), Failed> {
    let (addresses, answers) = ours(program, Dialect::Llvm)?;
    let text = ask(
        Command::new("llvm-symbolizer")
            .arg("--output-style=JSON")
            .arg(format!("--obj={}", program.reference.display())),
        &addresses,
    )?;
    let mut compared = 0;
    for (answer, line) in answers.iter().zip(text.lines()) {
        let theirs: serde_json::Value = serde_json::from_str(line)?;
        let theirs = theirs["Symbol"].as_array().and_then(|all| all.last());
        let theirs = theirs.and_then(|symbol| symbol["StartAddress"].as_str());
        // LLVM does not name stubs.
        let body = answer.frames().last().filter(|f| f.source() != Source::Plt);
        let start = body.and_then(|f| f.function_start());
        if let (Some(start), Some(theirs)) = (start, theirs.filter(|text| !text.is_empty())) {
            compared += 1;
            if format!("{start:#x}") != theirs {
                let at = answer.address();
                return Err(format!("{at:#x} in what begins at {start:#x}, not {theirs}").into());
            }
        }
    }
    if compared < addresses.len() / 2 {
        return Err(format!("only {compared} of {} compared", addresses.len()).into());
    }
    Ok(())
}

/// If mangled answers agree and demangled ones differ, the names must be of a kind that the
/// demangler is known to write differently.
fn names_differ(
    decorated: bool,
    mine_raw: &[Frame],
    other_raw: &[Frame],
    mine: &[Frame],
    other: &[Frame],
) -> Option<&'static str> {
    if mine.len() != other.len() || mine_raw.len() != other_raw.len() {
        return None;
    }
    let known = |raw: &Frame, mine: &Frame, other: &Frame| {
        let templated_constructor = ["C1I", "C2I", "C4I", "CI1", "CI2", "CI4"]
            .iter()
            .any(|c| raw.0.contains(c));
        let pack = raw.0.contains("Dp");
        // LLVM also removes the underscore that 32-bit Windows prepends, and the text after `@`,
        // from names in the debug information, and does not demangle such a name.
        let plain = mine.0.split_once('@').map_or(&*mine.0, |(name, _)| name);
        let undecorated =
            decorated && (raw.0 == other.0 || plain.strip_prefix('_') == Some(other.0.as_str()));
        // Otherwise the lines have been compared with the mangled names.
        let placed = !decorated || mine.1 == other.1;
        // LLVM 14 cannot demangle all names of GCC, and prints those as they are.
        let unread = raw.0.starts_with('_')
            && raw.0.trim_start_matches('_') == other.0.trim_start_matches('_');
        placed && (mine.0 == other.0 || templated_constructor || pack || undecorated || unread)
    };
    mine_raw
        .iter()
        .zip(mine)
        .zip(other)
        .all(|((raw, mine), other)| known(raw, mine, other))
        .then_some("templated constructors, packs of references, names of 32-bit Windows, names that LLVM cannot read")
}

type Class = fn(&Answers, usize, &[Frame], &[Frame]) -> Option<&'static str>;

fn against_gnu(program: &Program, prefix: &str, class: Class) -> Result<(), Failed> {
    let (addresses, answers) = ours(program, Dialect::Gnu)?;
    let text = ask(
        Command::new(format!("{prefix}addr2line"))
            .args(["-f", "-i", "-a", "-e"])
            .arg(&program.reference),
        &addresses,
    )?;
    let mut theirs: Vec<Vec<Frame>> = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines().chain(["0x"]) {
        if line.starts_with("0x") {
            if !lines.is_empty() {
                theirs.push(frames(&lines.join("\n")));
            }
            lines.clear();
        } else {
            lines.push(line);
        }
    }
    let mine = printed(Style::Gnu, false, &answers)?;
    compare(&addresses, &mine, &theirs, |i, mine, other| {
        class(&answers, i, mine, other)
    })
}

fn gnu_class(answers: &Answers, i: usize, mine: &[Frame], other: &[Frame]) -> Option<&'static str> {
    let answer = answers.get(i)?;
    if mine.len() != other.len() {
        return None;
    }
    // For DWARF 5, binutils 2.40 sometimes use the wrong entry of the file table: the line is
    // right, the file is the unit's. LLVM's tool agrees with us.
    let line = |f: &Frame| f.1.rsplit(':').next().map(str::to_owned);
    let places = mine
        .iter()
        .zip(other)
        .all(|(m, o)| m.0 == "??" || line(m) == line(o));
    if !places {
        return None;
    }
    if mine.iter().zip(other).all(|(m, o)| m.0 == o.0) {
        return Some("files: the wrong one of DWARF 5's table");
    }
    if mine[0].0 == "??" && mine.iter().zip(other).skip(1).all(|(m, o)| m.0 == o.0) {
        return Some("padding after a function, named after it");
    }
    let unlinked =
        answer.frames().zip(mine).zip(other).all(|((frame, m), o)| {
            m.0 == o.0 || !frame.name().is_some_and(|n| n.starts_with("_Z"))
        });
    if unlinked {
        return Some("no linkage name: binutils' name depends on what was asked before");
    }
    let alias = |name: &str| {
        ["C1E", "C2E", "D1E", "D2E"]
            .iter()
            .any(|a| name.contains(a))
    };
    let aliases = mine
        .iter()
        .zip(other)
        .all(|(m, o)| m.0 == o.0 || (alias(&m.0) && alias(&o.0)));
    aliases.then_some("another of several symbols at one address")
}

/// For PE images binutils read the debug information only, without its discriminators: frames
/// without a line have a wrong name.
fn windows_gnu_class(
    _: &Answers,
    _: usize,
    mine: &[Frame],
    other: &[Frame],
) -> Option<&'static str> {
    let place = |frame: &Frame| match frame.1.split_once(" (discriminator") {
        Some((place, _)) => place.to_owned(),
        None => frame.1.clone(),
    };
    // As in `gnu_class`: the wrong file of DWARF 5's table.
    let line = |frame: &Frame| place(frame).rsplit(':').next().map(str::to_owned);
    let same = mine.len() == other.len()
        && mine
            .iter()
            .zip(other)
            .all(|(m, o)| line(m) == line(o) || m.1.starts_with("??:"));
    same.then_some("names and discriminators of PE images")
}
