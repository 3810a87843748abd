//! Debug files, as distributions and build systems split them off: a trace has the names and lines
//! that the unstripped program gives.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use chronosym_support::perf::{PerfAttr, PerfWriter};
use common::server::Server;
use common::{chronosym, json_lines};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

const PID: u32 = 7;
const BASE: u64 = 0x5555_5555_0000;

/// Flags of the linker: code in pages of its own, with the headers, at fixed addresses.
const LAYOUTS: [&[&str]; 3] = [&["-pie"], &["-pie", "-Wl,-z,noseparate-code"], &["-no-pie"]];

/// How a debug file is split off.
#[derive(Clone, Copy)]
enum Split {
    /// `objcopy --only-keep-debug` of binutils or LLVM.
    Objcopy(&'static str),
    EuStrip,
    /// `dh_strip` for `-dbg` and `-dbgsym` packages.
    Debian,
}

/// The location of the debug file.
#[derive(Clone, Copy)]
enum Place {
    Folder,
    BuildId,
    Debuginfod,
}

fn main() -> ExitCode {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    let absent = |tool: &&str| Command::new(tool).arg("--version").output().is_err();
    let trials = [
        (
            "objcopy",
            &["g++", "objcopy"][..],
            Split::Objcopy("objcopy"),
            Place::Folder,
        ),
        (
            "eu_strip",
            &["g++", "objcopy", "eu-strip"],
            Split::EuStrip,
            Place::Folder,
        ),
        (
            "llvm_objcopy",
            &["g++", "objcopy", "llvm-objcopy"],
            Split::Objcopy("llvm-objcopy"),
            Place::Folder,
        ),
        (
            "debian_dbg",
            &["g++", "objcopy"],
            Split::Debian,
            Place::BuildId,
        ),
        (
            "debuginfod",
            &["g++", "objcopy"],
            Split::Objcopy("objcopy"),
            Place::Debuginfod,
        ),
    ];
    let mut trials = Vec::from(trials.map(|(name, tools, split, place)| {
        let ignored = !required && tools.iter().any(absent);
        Trial::test(name, move || names_are_the_same(split, place)).with_ignored_flag(ignored)
    }));
    let ignored = !required && absent(&"g++");
    trials.push(
        Trial::test("offsets_of_traces_and_files", offsets_are_the_same).with_ignored_flag(ignored),
    );
    let ignored = !required && ["g++", "objcopy"].iter().any(absent);
    trials.push(Trial::test("home_folder", the_home_folder_is_private).with_ignored_flag(ignored));
    let ignored = !required && ["g++", "objcopy", "llvm-objcopy"].iter().any(absent);
    trials
        .push(Trial::test("image_after_debug_file", image_answers_next).with_ignored_flag(ignored));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

fn names_are_the_same(split: Split, place: Place) -> Result<(), Failed> {
    for flags in LAYOUTS {
        let program = Program::compile(flags)?;
        let debug = program.split(split)?;
        let expected = program.answers(&Symbols::folder(program.at("whole")))?;
        let named = expected[0].matches("\"name\":\"").count();
        assert!(
            named > 40 && expected[0].contains("locals.cpp"),
            "{flags:?}: {}",
            expected[0]
        );
        let symbols = program.put(&debug, place)?;
        assert_eq!(program.answers(&symbols)?, expected, "{flags:?}");
        // With the image, the only file with the program headers.
        std::fs::copy(
            program.at("stripped/program"),
            symbols.folder.join("program"),
        )?;
        assert_eq!(
            program.answers(&symbols)?,
            expected,
            "{flags:?}, with the image"
        );
    }
    Ok(())
}

/// The image names code that a debug file does not name, and the frame states so.
fn image_answers_next() -> Result<(), Failed> {
    let program = Program::compile(&["-pie", "-rdynamic"])?;
    let debug = program.split(Split::Objcopy("objcopy"))?;
    run(Command::new("llvm-objcopy")
        .args(["--remove-section=.symtab", "--remove-section=.strtab"])
        .args([&debug, &program.at("debug/program.debug")]))?;
    let image = program.at("debug/program");
    std::fs::copy(program.at("stripped/program"), &image)?;
    let [stacks, ..] = program.answers(&Symbols::folder(program.at("debug")))?;
    let (mut by_debug_file, mut by_image) = (0, 0);
    for line in stacks.lines() {
        let sample: Value = serde_json::from_str(line)?;
        let frame = &sample["frames"][0];
        if frame["symbol_file"].is_null() {
            by_debug_file += usize::from(frame["file"].is_string());
            continue;
        }
        assert_eq!(frame["symbol_file"].as_str(), image.to_str());
        assert!(
            frame["name"].is_string() && frame["file"].is_null(),
            "{frame}"
        );
        by_image += 1;
    }
    assert!(
        by_debug_file > 40 && by_image > 0,
        "{by_debug_file}, {by_image}"
    );
    Ok(())
}

/// A profile that uses a debug file of perf's cache in the home folder does not state the folder;
/// the lists of the symbol files that were found do.
fn the_home_folder_is_private() -> Result<(), Failed> {
    let program = Program::compile(LAYOUTS[0])?;
    let debug = program.split(Split::Objcopy("objcopy"))?;
    let home = program.at("private-person");
    let (start, rest) = program.build_id.split_at(2);
    let inner = home.join(".debug/.build-id").join(start).join(rest);
    std::fs::create_dir_all(&inner)?;
    std::fs::rename(&debug, inner.join("debug"))?;
    let output = |args: &[&str]| -> Result<String, Failed> {
        let mut command = chronosym();
        let command = command.args(args).arg(&program.trace).env("HOME", &home);
        let output = command.env_remove("XDG_CACHE_HOME").output()?;
        Ok(String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
    };
    for format in ["folded", "jsonl", "html", "firefox", "speedscope", "pprof"] {
        let text = output(&["stacks", "--format", format])?;
        assert!(!text.contains("private-person"), "{format}");
        if format == "folded" {
            assert!(text.contains("program!main"), "{text:.500}");
        }
    }
    for args in [
        &["top"][..],
        &["top", "--format", "json"],
        &["symbols"],
        &["threads"],
    ] {
        assert!(!output(args)?.contains("private-person"), "{args:?}");
    }
    for args in [&["info"][..], &["modules"]] {
        assert!(output(args)?.contains("private-person"), "{args:?}");
    }
    Ok(())
}

/// Offsets count from the body's start, in inlined frames and of return addresses, too.
fn offsets_are_the_same() -> Result<(), Failed> {
    let program = Program::compile(LAYOUTS[0])?;
    let (trace, whole) = (program.trace.to_str(), program.at("whole/program"));
    let symbols = program.at("whole");
    let (trace, whole, symbols) = (
        trace.ok_or("")?,
        whole.to_str().ok_or("")?,
        symbols.to_str(),
    );
    let frames = |options: &[&str], addresses: &[String]| {
        let addresses = addresses.iter().map(String::as_str);
        let args = ["-q", "symbolize", "--style", "json"].into_iter();
        let args = args.chain(options.iter().copied()).chain(addresses);
        let answers = json_lines(&args.collect::<Vec<_>>());
        let frame = |frame: &Value| ["name", "offset", "inlined"].map(|key| frame[key].clone());
        let frames = answers.iter().map(|answer| {
            let frames = answer["frames"].as_array().into_iter().flatten();
            frames.map(frame).collect::<Vec<_>>()
        });
        frames.collect::<Vec<_>>()
    };
    for caller in [&[][..], &["--caller"]] {
        let source = ["--trace", trace, "--symbols", symbols.ok_or("")?];
        let of_trace = frames(&[&source, caller].concat(), &program.addresses);
        let of_file = frames(&[&["--obj", whole], caller].concat(), &program.in_file);
        let mut inlined = 0;
        for (at, (of_trace, of_file)) in of_trace.iter().zip(&of_file).enumerate() {
            if of_file[0][0].is_null() {
                continue;
            }
            assert_eq!(of_trace, of_file, "{} {caller:?}", program.in_file[at]);
            assert!(
                of_file
                    .iter()
                    .all(|[_, offset, _]| *offset == of_file[0][1])
            );
            inlined += of_file.len() - 1;
        }
        assert!(inlined > 5, "{inlined}");
    }
    Ok(())
}

/// A program, whole and stripped, and a recording of it.
struct Program {
    folder: tempfile::TempDir,
    build_id: String,
    trace: PathBuf,
    addresses: Vec<String>,
    /// The same as the file states them.
    in_file: Vec<String>,
}

/// The locations of symbols.
struct Symbols {
    folder: PathBuf,
    server: Option<Server>,
}

impl Symbols {
    fn folder(folder: PathBuf) -> Self {
        Symbols {
            folder,
            server: None,
        }
    }
}

impl Program {
    fn compile(flags: &[&str]) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        for name in ["whole", "stripped", "debug"] {
            std::fs::create_dir(at(name))?;
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/native/locals.cpp");
        let sources = ["-DFIRST", "-DSECOND"].map(|define| (define, at(&define[2..])));
        for (define, object) in &sources {
            run(Command::new("g++")
                .args(["-O2", "-g", define, "-c", "-o"])
                .args([object, &source])
                .args(flags.iter().filter(|flag| !flag.starts_with("-Wl"))))?;
        }
        let whole = at("whole/program");
        run(Command::new("g++")
            .args(sources.iter().map(|(_, object)| object))
            .args(flags)
            .args(["-Wl,--build-id=sha1", "-o"])
            .arg(&whole))?;
        // Only the image names stubs of its linkage table: in these sections they have no names.
        let stubs = [".plt", ".plt.sec", ".plt.got"];
        let stubs = stubs.map(|name| format!("--rename-section={name}=.stubs{name}"));
        run(Command::new("objcopy").args(stubs).arg(&whole))?;
        run(Command::new("objcopy")
            .arg("--strip-all")
            .args([&whole, &at("stripped/program")]))?;
        let elf = Elf(std::fs::read(&whole)?);
        let build_id = elf.build_id().ok_or("no build id")?;
        let (offset, address, size) = elf.code().ok_or("no code")?;
        let bias = BASE.wrapping_sub(offset);
        let trace = at("perf.data");
        let mut perf = PerfWriter::new(PerfAttr::default());
        perf.comm(1_000, PID, PID, "program");
        // As the kernel maps: whole pages.
        let first = offset & !0xfff;
        let len = (offset + size).next_multiple_of(0x1000) - first;
        let body = perf.body().u32(PID).u32(PID);
        let body = body
            .words(&[bias.wrapping_add(first), len, first])
            .u32(20)
            .raw(&build_id);
        let body = body.u32(5).u32(2).name("/opt/program");
        perf.kernel_record(10, 2 | 1 << 14, body, 1_000, PID);
        let inside: Vec<u64> = (offset..offset + size).step_by(11).collect();
        for (time, at) in (2_000..).step_by(1_000).zip(&inside) {
            perf.sample(time, PID, PID, &[bias.wrapping_add(*at)]);
        }
        std::fs::write(&trace, perf.file())?;
        let addresses = inside
            .iter()
            .map(|at| format!("{:#x}", bias.wrapping_add(*at)));
        Ok(Program {
            addresses: addresses.collect(),
            in_file: (address..address + size)
                .step_by(11)
                .map(|at| format!("{at:#x}"))
                .collect(),
            build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            trace,
            folder,
        })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Splits the debug information off.
    fn split(&self, split: Split) -> Result<PathBuf, Failed> {
        let (whole, debug) = (self.at("whole/program"), self.at("program.debug"));
        match split {
            Split::Objcopy(tool) => run(Command::new(tool)
                .arg("--only-keep-debug")
                .args([&whole, &debug]))?,
            Split::EuStrip => run(Command::new("eu-strip").arg("-f").args([
                &debug,
                Path::new("-o"),
                &self.at("rest"),
                &whole,
            ]))?,
            Split::Debian => run(Command::new("objcopy")
                .args(["--only-keep-debug", "--compress-debug-sections"])
                .args([&whole, &debug]))?,
        }
        Ok(debug)
    }

    /// Copies a debug file to its location.
    fn put(&self, debug: &Path, place: Place) -> Result<Symbols, Failed> {
        let folder = self.at("debug");
        let mut symbols = Symbols::folder(folder.clone());
        match place {
            Place::Folder => _ = std::fs::copy(debug, folder.join("program.debug"))?,
            Place::BuildId => {
                let (start, rest) = self.build_id.split_at(2);
                let inner = folder.join(".build-id").join(start);
                std::fs::create_dir_all(&inner)?;
                std::fs::copy(debug, inner.join(format!("{rest}.debug")))?;
            }
            Place::Debuginfod => {
                let bytes = std::fs::read(debug)?;
                let path = format!("/buildid/{}/debuginfo", self.build_id);
                symbols.server = Some(Server::new(move |asked| {
                    (asked == path).then(|| bytes.clone())
                }));
            }
        }
        Ok(symbols)
    }

    /// Returns the output of the commands.
    fn answers(&self, symbols: &Symbols) -> Result<[String; 3], Failed> {
        let trace = self.trace.to_str().ok_or("a path")?;
        let addresses = self.addresses.iter().map(String::as_str);
        let stacks = vec!["stacks", "--format", "jsonl", trace];
        let top = vec![
            "top", "--by", "line", "-n", "1000", "--format", "json", trace,
        ];
        let symbolize = ["symbolize", "--style", "json", "--trace", trace];
        let symbolize = symbolize.into_iter().chain(addresses).collect();
        let mut answers = [const { String::new() }; 3];
        for (args, answer) in [stacks, top, symbolize].into_iter().zip(&mut answers) {
            let mut command = chronosym();
            command.args(args).arg("--symbols").arg(&symbols.folder);
            command.arg("--cache").arg(self.at("cache"));
            if let Some(server) = &symbols.server {
                command.env("DEBUGINFOD_URLS", &server.url);
                command.args(["--symbol-path", ""]);
            }
            let output = command.output()?;
            if !output.status.success() {
                return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
            }
            *answer = String::from_utf8(output.stdout)?;
        }
        Ok(answers)
    }
}

/// A 64-bit little-endian ELF file.
struct Elf(Vec<u8>);

impl Elf {
    fn number<const N: usize>(&self, at: u64) -> Option<u64> {
        let bytes = self.0.get(at as usize..)?.get(..N)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |sum, &byte| sum << 8 | u64::from(byte)),
        )
    }

    /// Offsets of the program headers of a type.
    fn headers(&self, kind: u64) -> impl Iterator<Item = u64> {
        let (start, count) = (self.number::<8>(32), self.number::<2>(56));
        let headers = (0..count.unwrap_or(0)).map(move |i| start.unwrap_or(0) + i * 56);
        headers.filter(move |&at| self.number::<4>(at) == Some(kind))
    }

    /// File offset, address and size of the executable segment.
    fn code(&self) -> Option<(u64, u64, u64)> {
        let mut loads = self.headers(1);
        let at = loads.find(|&at| self.number::<4>(at + 4).is_some_and(|flags| flags & 1 == 1))?;
        Some((
            self.number::<8>(at + 8)?,
            self.number::<8>(at + 16)?,
            self.number::<8>(at + 32)?,
        ))
    }

    fn build_id(&self) -> Option<Vec<u8>> {
        let start = 4 + 4 + 4;
        self.headers(4).find_map(|at| {
            let note = self.number::<8>(at + 8)?;
            let is_it = self.number::<4>(note)? == 4 && self.number::<4>(note + 8)? == 3;
            let id = note + start + 4;
            is_it.then(|| {
                self.0
                    .get(id as usize..id as usize + 20)
                    .map(<[u8]>::to_vec)
            })?
        })
    }
}

fn run(command: &mut Command) -> Result<(), Failed> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let error = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {error}").into())
}
