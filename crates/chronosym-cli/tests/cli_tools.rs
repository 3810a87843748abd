//! `symbolize --style gnu` and `--style llvm` in place of addr2line and llvm-symbolizer: compares
//! the same options and input with the tools themselves (binutils 2.40, LLVM 14, and 19 and 22
//! where they are installed).

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use common::chronosym;
use libtest_mimic::{Arguments, Failed, Trial};

/// A C++ program with inlined calls, static functions, scopes, operators and variables.
const PROGRAM: &str = r"
volatile int g;
static int table[4] = {1, 2, 3, 4};
namespace a { namespace {
__attribute__((noinline)) int hidden(int n) { return n + table[n & 3]; }
} }
template<typename T> struct Box {
    T value;
    static inline __attribute__((always_inline)) T twice(T n) { g += n; return n * 2; }
    __attribute__((noinline)) T operator()(T n) const { return value + twice(n) + a::hidden(n); }
    __attribute__((noinline)) bool operator<(const Box &other) const { return twice(value) < other.value; }
};
int main(int count, char **) {
    Box<int> one{count}, two{count + g};
    return (one < two) + one(g);
}
";

/// A program some of whose code belongs to no line.
const LINE_ZERO_PROGRAM: &str = r"
#include <map>
std::map<int, int> counts;
static int count(int n) { return counts[n] += n; }
int main(int n, char **) {
    auto twice = [&](int k) { return count(n + k); };
    return twice(n) + twice(3);
}
";

/// Options of addr2line.
const GNU: &[&[&str]] = &[
    &[],
    &["-f"],
    &["-fi"],
    &["-fiC"],
    &["-fC"],
    &["-i"],
    &["-a"],
    &["-p"],
    &["-fiCpas"],
    &["-s", "--functions", "--inlines", "--demangle"],
    &["--basenames", "--addresses", "--pretty-print"],
    &["-j", ".text", "-f"],
    &["--section=.text", "-fi"],
    &[
        "--func", "--inl", "--dem", "--basen", "--addr", "--pr", "--no-r",
    ],
    &["--sect", ".text", "--f"],
];

/// Options of llvm-symbolizer.
const LLVM: &[&[&str]] = &[
    &[],
    &["-a"],
    &["-p"],
    &["-p", "-a", "-s"],
    &["--no-inlines"],
    &["--basenames", "--no-demangle"],
    &["--functions=none"],
    &["--functions=short"],
    &["-f=short", "--no-inlines"],
    &["-f", "-i", "-C"],
    &["--inlining=false", "--print-address"],
    &["--functions=linkage", "--pretty-print", "--no-inlines"],
    &["--relative-address"],
    &["--print-source-context-lines=3"],
    &["--print-source-context-lines", "12", "-p", "-a"],
    &["--verbose"],
    &[
        "--verbose",
        "-p",
        "-a",
        "-s",
        "--print-source-context-lines=3",
    ],
    &["--verbose", "--no-inlines", "--functions=short"],
    &["--relativenames"],
    &["--output-style=JSON"],
    &["--output-style=JSON", "-p", "--relativenames"],
    &["--output-style=JSON", "--no-inlines"],
    &["--output-style=JSON", "--functions=none", "--basenames"],
    &["--output-style=JSON", "--functions=short"],
    &["--output-style=JSON", "--print-source-context-lines=3"],
];

/// Options for code that belongs to no line, which LLVM 14 and 19 do not have.
const LINE_ZERO: &[&[&str]] = &[
    &["--skip-line-zero"],
    &["--skip-line-zero", "-p", "-a"],
    &["--skip-line-zero", "--verbose"],
    &["--skip-line-zero", "--output-style=JSON"],
];

fn main() -> ExitCode {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    let is_absent = |tool: &str, version: &str| {
        let said = Command::new(tool).arg("--version").output();
        !said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(version))
    };
    let no_compiler = is_absent("g++", "");
    let mut trials = Vec::new();
    let ignored = !required && (no_compiler || is_absent("addr2line", "2.40"));
    trials.push(Trial::test("addr2line", beside_addr2line).with_ignored_flag(ignored));
    for (tool, version, is_pinned) in [
        ("llvm-symbolizer", "14.", true),
        ("llvm-symbolizer-19", "19.", false),
        ("llvm-symbolizer-22", "22.", false),
    ] {
        let ignored = (no_compiler || is_absent(tool, version)) && !(required && is_pinned);
        let trial = Trial::test(tool, move || beside_llvm(tool, is_pinned));
        trials.push(trial.with_ignored_flag(ignored));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A program in which some code belongs to no line.
fn beside_line_zero(tool: &str, program: &Program) -> Result<(), Failed> {
    // Only clang writes such lines.
    std::fs::write(program.folder.path().join("zero.cpp"), LINE_ZERO_PROGRAM)?;
    let mut compiler = Command::new("clang++");
    compiler.args(["-g", "-O2", "zero.cpp", "-o", "zero.out"]);
    let done = compiler.current_dir(program.folder.path()).output();
    if !done.is_ok_and(|done| done.status.success()) {
        return Ok(());
    }
    let code = program.symbols_of("zero.out", "tTwW")?;
    let lines = code
        .iter()
        .flat_map(|(start, size)| *start..start + size)
        .map(|address| format!("{address:#x}\n"));
    let input: String = lines.collect();
    for options in LINE_ZERO {
        let options = [options, &["--obj=zero.out"][..]].concat();
        let theirs = program.answer(Command::new(tool), &options, &input)?;
        let own = program.answer(ours("llvm"), &options, &input)?;
        if !own.contains("pproximate") {
            return Err(format!("{options:?}: no approximate line: {own}").into());
        }
        same(&options, &own, &theirs)?;
        // A single address is looked up in another way.
        for line in input.lines().step_by(41) {
            let options = [&options[..], &[line]].concat();
            answers_like(program, tool, &options)?;
        }
    }
    Ok(())
}

/// Symbolizer markup of a process with the program at 0x10000.
fn beside_markup(tool: &str, program: &Program, code: &[u64]) -> Result<(), Failed> {
    const ID: &str = "00112233445566778899aabbccddeeff00112233";
    let folder = program.folder.path();
    program.compile(
        &[
            "-g",
            "-O2",
            "-Wl,--build-id=0x00112233445566778899aabbccddeeff00112233",
        ],
        "id.out",
    )?;
    let store = folder.join("debug/.build-id/00");
    std::fs::create_dir_all(&store)?;
    std::fs::copy(
        folder.join("id.out"),
        store.join(format!("{}.debug", &ID[2..])),
    )?;
    let mut input = format!(
        "no markup {{{{{{ \n{{{{{{reset}}}}}}\nlog: {{{{{{module:0:prog:elf:{ID}}}}}}}\n\
         {{{{{{mmap:0x10000:0x5000:load:0:RX:0}}}}}}\n{{{{{{mmap:0x8000:4096:load:0:rw:0x8000}}}}}}\n\
         {{{{{{module:1:lost:elf:C0FFEE}}}}}} more\nx {{{{{{mmap:0x80000:010000:load:1:r:0x0}}}}}} y\r\n\
         {{{{{{pc:0x80010}}}}}} {{{{{{symbol:_ZN1a1bEv}}}}}} {{{{{{symbol:main}}}}}} {{{{{{data:0x99}}}}}}\n\
         {{{{{{bt:0:0x80010}}}}}} {{{{{{other:1}}}}}} {{{{{{bt}}}}}} {{{{{{pc:0x11111:no}}}}}}\n\
         \x1b[1mbold\x1b[0m {{{{{{module:0:again:elf:aa}}}}}}\n{{{{{{mmap:0x10800:1:load:0:r:0}}}}}}\n"
    );
    for (at, address) in code.iter().map(|address| address + 0x10000).enumerate() {
        input += &match at % 4 {
            0 => format!("at {{{{{{pc:{address:#x}}}}}}}\n"),
            1 => format!("{{{{{{bt:{at}:{address:#x}}}}}}} end\n"),
            2 => format!("{{{{{{bt:{at}:{address:#x}:pc}}}}}} {{{{{{pc:{address}:ra}}}}}}\n"),
            _ => format!("data {{{{{{data:{address:#x}}}}}}}\n"),
        };
    }
    input += "{{{mmap:0x90000:4096:load:1:r:0x0}}}\nend {{{reset}}}\n{{{pc:0x11111}}}\n{{{reset}}}\n{{{module:0:a:elf:aa}}}\n";
    let options = ["--filter-markup", "--debug-file-directory=debug"];
    let theirs = program.answer(Command::new(tool), &options, &input)?;
    let own = program.answer(ours("llvm"), &options, &input)?;
    if !own.contains(" main ") || !own.contains("[[[ELF module #0x1 \"lost\"; BuildID=c0ffee [") {
        return Err(own.into());
    }
    same(&options, &own, &theirs)
}

/// The program, compiled.
struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn build() -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("program.cpp"), PROGRAM)?;
        let program = Program { folder };
        program.compile(&["-g", "-O2"], "a.out")?;
        Ok(program)
    }

    fn compile(&self, options: &[&str], output: &str) -> Result<(), Failed> {
        let mut compiler = Command::new("g++");
        compiler.args(options).args(["program.cpp", "-o", output]);
        let done = compiler.current_dir(self.folder.path()).output()?;
        match done.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned().into()),
        }
    }

    /// Replaces a split unit by a package.
    fn pack(&self, unit: &str, package: &str) -> Result<(), Failed> {
        let mut packer = Command::new("llvm-dwp");
        packer.args([unit, "-o", package]);
        let done = packer.current_dir(self.folder.path()).output()?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned().into());
        }
        Ok(std::fs::remove_file(self.folder.path().join(unit))?)
    }

    /// The symbols of these kinds, with their sizes.
    fn symbols(&self, kinds: &str) -> Result<Vec<(u64, u64)>, Failed> {
        self.symbols_of("a.out", kinds)
    }

    fn symbols_of(&self, file: &str, kinds: &str) -> Result<Vec<(u64, u64)>, Failed> {
        let mut command = Command::new("nm");
        command.args(["-S", file]).current_dir(self.folder.path());
        let listed = command.output()?;
        let text = String::from_utf8(listed.stdout)?;
        let symbols = text.lines().filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [start, size, kind, _] = words[..] else {
                return None;
            };
            let hex = |digits| u64::from_str_radix(digits, 16).ok();
            Some((hex(start)?, hex(size)?)).filter(|_| kinds.contains(kind))
        });
        Ok(symbols.collect())
    }

    /// Addresses in each function.
    fn code(&self) -> Result<Vec<u64>, Failed> {
        let functions = self.symbols("tTwW")?;
        let bytes = functions
            .iter()
            .flat_map(|(start, size)| *start..start + size);
        let bytes: Vec<u64> = bytes.collect();
        (bytes.len() > 100)
            .then_some(bytes)
            .ok_or_else(|| "no code".into())
    }

    fn answer(
        &self,
        mut command: Command,
        options: &[&str],
        input: &str,
    ) -> Result<String, Failed> {
        let mut child = command
            .args(options)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().ok_or("no input")?;
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
        let output = child.wait_with_output()?;
        writer.join().map_err(|_| "writer")??;
        Ok(String::from_utf8(output.stdout)?)
    }
}

fn ours(style: &str) -> Command {
    let mut command = chronosym();
    command.args(["symbolize", "--style", style]);
    command
}

/// Compares the answers to arguments.
fn answers_like(program: &Program, tool: &str, options: &[&str]) -> Result<(), Failed> {
    let theirs = program.answer(Command::new(tool), options, "")?;
    let own = program.answer(ours("llvm"), options, "")?;
    same(options, &own, &theirs)
}

fn same(options: &[&str], ours: &str, theirs: &str) -> Result<(), Failed> {
    let differs = ours
        .lines()
        .zip(theirs.lines())
        .enumerate()
        .find(|(_, (a, b))| a != b);
    if let Some((at, (ours, theirs))) = differs {
        return Err(format!(
            "{options:?}, line {}: {ours:?}, the tool: {theirs:?}",
            at + 1
        )
        .into());
    }
    let counts = [ours, theirs].map(|text| text.lines().count());
    match counts[0] == counts[1] && counts[0] > 0 {
        true => Ok(()),
        false => Err(format!("{options:?}: {counts:?} lines").into()),
    }
}

/// binutils 2.40 use the unit's file instead of another entry of DWARF 5's table: for a program
/// with one file there is no difference.
fn beside_addr2line() -> Result<(), Failed> {
    let program = Program::build()?;
    let mut input = String::from("zzz\n\n 0x0\nffffffffffff\n");
    for (at, address) in program.code()?.into_iter().enumerate() {
        input += &match at % 3 {
            0 => format!("{address:x}\n"),
            1 => format!("0x{address:X}\n"),
            _ => format!("  {address:#x} rest\n"),
        };
    }
    for options in GNU {
        let theirs = program.answer(Command::new("addr2line"), options, &input)?;
        let own = program.answer(ours("gnu"), options, &input)?;
        same(options, &own, &theirs)?;
        let named = [options, &["-ea.out", "1140", "0x1160"][..]].concat();
        let theirs = program.answer(Command::new("addr2line"), &named, "")?;
        let own = program.answer(ours("gnu"), &named, "")?;
        same(&named, &own, &theirs)?;
    }
    Ok(())
}

fn beside_llvm(tool: &str, is_14: bool) -> Result<(), Failed> {
    let program = Program::build()?;
    let code = program.code()?;
    let mut input = String::new();
    for (at, address) in code.iter().enumerate() {
        input += &match at % 4 {
            0 => format!("{address:#x}\n"),
            1 => format!("{address}\n"),
            2 => format!("  {address:#X}\n").replace("0X", "0x"),
            _ => format!("0{address:o}\n"),
        };
    }
    // LLVM 14 repeats input that it cannot parse, later versions look up a symbol.
    if !is_14 {
        input += "main\nmain+0x4\nmain+4\n";
    }
    for options in LLVM {
        let options = [options, &["--obj=a.out"][..]].concat();
        let theirs = program.answer(Command::new(tool), &options, &input)?;
        let own = program.answer(ours("llvm"), &options, &input)?;
        same(&options, &own, &theirs)?;
        let named = [&options[..], &["0x1140", "4450"]].concat();
        let theirs = program.answer(Command::new(tool), &named, "")?;
        let own = program.answer(ours("llvm"), &named, "")?;
        same(&named, &own, &theirs)?;
    }
    if !is_14 {
        beside_markup(tool, &program, &code)?;
    }
    if tool.ends_with("22") {
        beside_line_zero(tool, &program)?;
    }
    // Between sections, LLVM extends symbols without a size: addresses in functions only.
    let options = ["--adjust-vma=0x10", "-a", "-e", "a.out", "0x1150", "0x1160"];
    answers_like(&program, tool, &options)?;
    // Lines that name the file.
    let copy: PathBuf = program.folder.path().join("my program");
    std::fs::copy(program.folder.path().join("a.out"), &copy)?;
    let mut input = String::from("CODE missing 0x10\nmissing 0x10\n");
    for (at, address) in code.iter().enumerate() {
        let copy = Path::new(&copy).display();
        input += &match at % 4 {
            0 => format!("a.out {address:#x}\n"),
            1 => format!("CODE a.out {address:#x}\n"),
            2 => format!("\"{copy}\" {address:#x}\n"),
            _ => format!("CODE \"my program\"  {address:#x}\n"),
        };
    }
    for options in [&[][..], &["--output-style=JSON"]] {
        // In JSON, LLVM reports a missing file once.
        let input = input.strip_prefix("CODE missing 0x10\n").unwrap_or(&input);
        let theirs = program.answer(Command::new(tool), options, input)?;
        let own = program.answer(ours("llvm"), options, input)?;
        same(options, &own, &theirs)?;
    }
    // Variables. LLVM 14 does not print where they are declared, later versions not for all.
    let variables = program.symbols("bBdDrRtT")?;
    let lines = variables
        .iter()
        .map(|(start, size)| format!("DATA a.out {:#x}\n", start + size / 2));
    let input: String = lines.collect();
    let theirs = program.answer(Command::new(tool), &[], &input)?;
    let own = program.answer(ours("llvm"), &[], &input)?;
    if !own.contains("table\n") || !own.contains("/program.cpp:3\n") {
        return Err(format!("no declaration: {own}").into());
    }
    // LLVM 14 prints no declarations; later versions not all, and the file of a local symbol without
    // one, with line 0.
    let is_unknown = |line: &str| line == "??:?" || line.ends_with(":0");
    let answers = |text: &str| -> Vec<Vec<String>> {
        let blocks = text.split("\n\n").filter(|block| !block.is_empty());
        blocks
            .map(|block| block.lines().map(str::to_owned).collect())
            .collect()
    };
    let (own, theirs) = (answers(&own), answers(&theirs));
    for (own, theirs) in own.iter().zip(&theirs) {
        let is_declared = theirs.get(2).is_some_and(|line| !is_unknown(line));
        let len = if is_declared { 3 } else { 2 };
        if own.get(..len) != theirs.get(..len) {
            return Err(format!("DATA: {own:?}, the tool: {theirs:?}").into());
        }
    }
    if own.len() != theirs.len() || own.len() < 10 {
        return Err(format!("DATA: {} and {} answers", own.len(), theirs.len()).into());
    }
    // Local variables.
    let lines = code
        .iter()
        .map(|address| format!("FRAME a.out {address:#x}\n"));
    let input: String = lines.collect();
    for options in [&[][..], &["-a"], &["--output-style=JSON"]] {
        let theirs = program.answer(Command::new(tool), options, &input)?;
        let own = program.answer(ours("llvm"), options, &input)?;
        if !own.contains("/program.cpp") {
            return Err("no local variables".into());
        }
        same(&["FRAME"], &own, &theirs)?;
    }
    // LLVM prints none of a split unit.
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        program.compile(&["-g", "-O2", version], "whole.out")?;
        program.compile(&["-g", "-O2", version, "-gsplit-dwarf"], "split.out")?;
        let whole = input.replace(" a.out ", " whole.out ");
        let theirs = program.answer(Command::new(tool), &[], &whole)?;
        let options = ["--output-style=JSON", "-e", "split.out", "0x1060", "0x1190"];
        answers_like(&program, tool, &options)?;
        let split = input.replace(" a.out ", " split.out ");
        let own = program.answer(ours("llvm"), &[], &split)?;
        same(&["FRAME", "-gsplit-dwarf", version], &own, &theirs)?;
        program.pack("split.out-program.dwo", "split.out.dwp")?;
        let own = program.answer(ours("llvm"), &[], &split)?;
        same(&["FRAME", "package", version], &own, &theirs)?;
        std::fs::remove_file(program.folder.path().join("split.out.dwp"))?;
    }
    Ok(())
}
