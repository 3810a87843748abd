//! Programs in the layouts of common builds, compiled for the test: location of the debug
//! information, compiler, compression. Compares every seventh byte of the code with
//! llvm-symbolizer: names, depth, lines.

#[path = "native/converted.rs"]
mod converted;

use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use chronosym::symbols::{CacheUse, StoreConfig, SymbolOptions, Symbolizer};
use chronosym::{ImageRef, SymbolSource};
use chronosym_pdb::windows::{Frames, WindowsPdb};
use chronosym_symbols::demangle::Dialect;
use chronosym_symbols::style::{Printer, Style};
use chronosym_symbols::{Address, Answers, DebugFileSearch, NativeSymbols, Query};
use libtest_mimic::{Arguments, Failed, Trial};
use pdb_addr2line::ContextPdbData;
use pdb_addr2line::pdb::PDB;

/// Name, compiler, flags.
const COMPILED: [(&str, &str, &[&str]); 18] = [
    ("gcc-o0", "g++", &["-O0", "-g"]),
    ("gcc-og", "g++", &["-Og", "-g"]),
    ("gcc-o2", "g++", &["-O2", "-g"]),
    ("gcc-o3-dwarf4", "g++", &["-O3", "-gdwarf-4"]),
    ("gcc-zlib", "g++", &["-O2", "-g", "-gz=zlib"]),
    ("gcc-zdebug", "g++", &["-O2", "-g", "-gz=zlib-gnu"]),
    ("gcc-lto", "g++", &["-O2", "-g", "-flto"]),
    ("gcc-g1", "g++", &["-O2", "-g1"]),
    ("gcc-split", "g++", &["-O2", "-gdwarf-5", "-gsplit-dwarf"]),
    ("clang-o0", "clang++", &["-O0", "-g"]),
    ("clang-o2", "clang++", &["-O2", "-g"]),
    ("clang-dwarf4", "clang++", &["-O2", "-gdwarf-4"]),
    ("clang-g1", "clang++", &["-O2", "-g1"]),
    (
        "clang-lld",
        "clang++",
        &[
            "-O2",
            "-g",
            "-fuse-ld=lld",
            "-ffunction-sections",
            "-Wl,--gc-sections",
        ],
    ),
    (
        "clang-lto",
        "clang++",
        &["-O2", "-g", "-flto", "-fuse-ld=lld"],
    ),
    (
        "clang-thin",
        "clang++",
        &["-O2", "-gdwarf-4", "-flto=thin", "-fuse-ld=lld"],
    ),
    (
        "clang-split",
        "clang++",
        &["-O2", "-gdwarf-5", "-gsplit-dwarf"],
    ),
    (
        "clang-split4",
        "clang++",
        &["-O2", "-gdwarf-4", "-gsplit-dwarf"],
    ),
];

/// Name, flags of rustc.
const RUST: [(&str, &[&str]); 5] = [
    ("rust-plain", &["-Copt-level=1", "-g"]),
    (
        "rust-unpacked",
        &["-Copt-level=1", "-g", "-Csplit-debuginfo=unpacked"],
    ),
    (
        "rust-packed",
        &["-Copt-level=1", "-g", "-Csplit-debuginfo=packed"],
    ),
    ("rust-lto", &["-Copt-level=2", "-g", "-Clto=fat"]),
    (
        "rust-lines",
        &["-Copt-level=1", "-Cdebuginfo=line-tables-only"],
    ),
];

/// Processors that objects are compiled for, and flags.
const OBJECTS: [(&str, &str, &[&str]); 7] = [
    ("object-x86_64", "x86_64", &["-g"]),
    ("object-dwarf4", "x86_64", &["-gdwarf-4"]),
    ("object-zlib", "x86_64", &["-g", "-gz"]),
    ("object-aarch64", "aarch64", &["-g"]),
    ("object-i386", "i386", &["-g"]),
    ("object-armv7", "armv7", &["-g"]),
    ("object-riscv64", "riscv64", &["-g", "-mrelax"]),
];

/// Processors for which Windows programs are compiled, and whether C names start with an underscore
/// there.
const WINDOWS: [(&str, &str, bool); 3] = [
    ("pdb-x86_64", "x86_64", false),
    ("pdb-i686", "i686", true),
    ("pdb-aarch64", "aarch64", false),
];

/// Maximum number of answers, over all programs of one name, in which LLVM 14's tool lacks
/// inlinees, because it does not apply the skeleton's `low_pc` to ranges of split units.
const MAX_LESS_DEEP: usize = 60;

/// Maximum number of answers with other lines: for PDBs LLVM 14's tool uses the first of several
/// rows at one offset, and ends rows of inlinees too early. In each case `pdb-addr2line` must have
/// our lines.
const MAX_OTHER_LINES: usize = 200;

/// Number of answers in which binutils may differ, by the program's name; none for others.
const OTHER_GNU: [(&str, usize); 7] = [
    // They read neither split units nor this compression.
    ("gcc-split", 80),
    ("gcc-zdebug", 80),
    ("clang-split", 10),
    ("clang-split4", 10),
    ("rust-unpacked", 120),
    ("rust-packed", 120),
    // Names from the symbol table if there is no linkage name.
    ("rust-lines", 80),
];

fn main() -> ExitCode {
    let required = std::env::var_os("CHRONOSYM_REQUIRE_TOOLS").is_some_and(|v| v == "1");
    let absent = |tool: &&str| Command::new(tool).arg("--version").output().is_err();
    let mut trials = Vec::new();
    let mut add =
        |name: &str, tools: &[&str], check: Box<dyn FnOnce() -> Result<(), Failed> + Send>| {
            let missing = tools.iter().find(|tool| absent(tool));
            let ignored = missing.is_some() && !required;
            trials.push(Trial::test(name, check).with_ignored_flag(ignored));
        };
    for (name, compiler, flags) in COMPILED {
        let tools = [compiler, "llvm-symbolizer", "addr2line"];
        add(
            name,
            &tools,
            Box::new(move || Program::compile(compiler, flags)?.check(name)),
        );
    }
    for (name, flags) in RUST {
        let check = move || Program::rustc(flags)?.check(name);
        let tools = ["rustc", "llvm-symbolizer", "addr2line"];
        add(name, &tools, Box::new(check));
    }
    for (name, target, flags) in OBJECTS {
        let tools = ["clang", "ld.lld", "llvm-symbolizer", "xz", "zstd", "gzip"];
        let check = move || unlinked(target, flags);
        add(name, &tools, Box::new(check));
    }
    for (name, target, underscore) in WINDOWS {
        let tools = ["clang", "lld-link", "llvm-symbolizer"];
        let check = move || windows(target, underscore);
        add(name, &tools, Box::new(check));
    }
    // In the latter two references lead from unit to unit.
    for (name, flags, dwz) in [
        ("packed", &["-O2", "-g"][..], false),
        ("packed-lto", &["-O2", "-g", "-flto"], false),
        ("packed-dwz", &["-O2", "-g"], true),
    ] {
        let tools = ["g++", "objcopy", "dwz"];
        add(name, &tools, Box::new(move || packed(flags, dwz)));
    }
    add(
        "converted-in-a-trace",
        &["g++"],
        Box::new(converted_in_a_trace),
    );
    let tools = ["gcc", "ld", "xz"];
    add("module-in-a-trace", &tools, Box::new(module_in_a_trace));
    let tools = ["g++", "addr2line", "size"];
    add("object-gnu", &tools, Box::new(unlinked_beside_addr2line));
    add(
        "split-elsewhere",
        &["g++", "dwp"],
        Box::new(split_elsewhere),
    );
    add("split-in-a-trace", &["g++"], Box::new(split_in_a_trace));
    add("linked-name", &["g++", "objcopy"], Box::new(linked_name));
    let tools = ["gcc", "addr2line", "llvm-symbolizer"];
    add("reserved-names", &tools, Box::new(reserved_names));
    add(
        "shared-elsewhere",
        &["g++", "dwz"],
        Box::new(shared_elsewhere),
    );
    add(
        "other-symbols",
        &["g++", "objcopy"],
        Box::new(symbols_of_other_sections),
    );
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
}

impl Program {
    fn compile(compiler: &str, flags: &[&str]) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("native/locals.cpp");
        for (object, define) in [("first.o", "-DFIRST"), ("second.o", "-DSECOND")] {
            run(Command::new(compiler)
                .current_dir(&folder)
                .args(flags)
                .args([define, "-c", "-o", object])
                .arg(&source))?;
        }
        run(Command::new(compiler)
            .current_dir(&folder)
            .args(flags)
            .args([
                "first.o",
                "second.o",
                "-o",
                "program",
                "-Wl,--build-id=sha1",
            ]))?;
        let path = folder.path().join("program");
        Ok(Self { folder, path })
    }

    fn rustc(flags: &[&str]) -> Result<Self, Failed> {
        let folder = tempfile::tempdir()?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("native/closures.rs");
        run(Command::new("rustc")
            .current_dir(&folder)
            .args(flags)
            .args([
                "--edition",
                "2021",
                "--crate-name",
                "program",
                "-o",
                "program",
            ])
            .arg(&source))?;
        let path = folder.path().join("program");
        Ok(Self { folder, path })
    }

    /// Returns every seventh byte of the program's own functions.
    fn addresses(&self, symbols: &NativeSymbols) -> Vec<u64> {
        let all = symbols.code().iter().flat_map(|r| r.clone().step_by(7));
        all.take(20_000).collect()
    }

    fn check(&self, name: &str) -> Result<(), Failed> {
        let mut places = DebugFileSearch::next_to(&self.path);
        places.recorded_paths = true;
        let symbols = NativeSymbols::open_path_with(&self.path, places)?;
        converted::object(
            &self.path,
            name.contains("split") || name.contains("packed"),
        )?;
        let addresses = self.addresses(&symbols);
        let ours = answers(&symbols, &addresses)?;
        let theirs = llvm(&self.path, &addresses)?;
        if ours.len() != theirs.len() {
            return Err(format!(
                "{} answers, {} of llvm-symbolizer",
                ours.len(),
                theirs.len()
            )
            .into());
        }
        let mut less_deep = 0;
        for ((address, ours), theirs) in addresses.iter().zip(&ours).zip(&theirs) {
            // LLVM prints a symbol's file, which is not a source position.
            let place =
                |(m, o): (&Frame, &Frame)| m.1 == o.1 || (m.1 == "??:0:0" && o.1.ends_with(":0:0"));
            let same = ours.len() == theirs.len()
                && ours
                    .iter()
                    .zip(theirs)
                    .all(|(m, o)| m.0 == o.0 && place((m, o)));
            let beyond = ours.len() == 1
                && ours[0].0 == "??"
                && matches!(theirs[0].0.as_str(), "_init" | "_fini");
            if same || beyond {
                continue;
            }
            if theirs.len() < ours.len() && ours[0].1 == theirs[0].1 {
                less_deep += 1;
                continue;
            }
            return Err(format!("{address:#x}\n ours {ours:?}\n llvm {theirs:?}").into());
        }
        let theirs = gnu(&self.path, None, &addresses)?;
        let differ = |(ours, theirs): &(&Vec<Frame>, &Vec<Frame>)| !like_gnu(ours, theirs);
        let mut other = ours.iter().zip(&theirs).filter(differ);
        let first = other.next();
        let others = other.count() + usize::from(first.is_some());
        let most = OTHER_GNU.iter().find(|(of, _)| *of == name);
        if others > most.map_or(0, |most| most.1) || theirs.len() != ours.len() {
            let of = ours.len();
            return Err(format!("{others} of {of} answers of binutils differ: {first:?}").into());
        }
        if less_deep > MAX_LESS_DEEP || addresses.len() < 50 {
            let all = addresses.len();
            return Err(format!("{less_deep} of {all} answers of LLVM are less deep").into());
        }
        Ok(())
    }
}

/// Objects have the answers of the program linked from them: section by section, compressed as a
/// whole or not.
fn unlinked(target: &str, flags: &[&str]) -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("native/module.c");
    let at = |name: &str| folder.path().join(name);
    run(Command::new("clang")
        .current_dir(&folder)
        .args(flags)
        .arg(format!("--target={target}-linux-gnu"))
        .args(["-O2", "-ffreestanding", "-c", "-o", "module.ko"])
        .arg(source))?;
    run(Command::new("ld.lld").current_dir(&folder).args([
        "-e",
        "module_work",
        "-o",
        "linked",
        "module.ko",
    ]))?;
    for (tool, ending) in [("xz", "xz"), ("zstd", "zst"), ("gzip", "gz")] {
        let mut command = Command::new(tool);
        command.current_dir(&folder).args(["-k", "module.ko"]);
        // As Linux's own build compresses them.
        if tool == "xz" {
            command.arg("--check=crc32");
        }
        run(&mut command)?;
        assert!(at(&format!("module.ko.{ending}")).is_file());
    }
    let linked = NativeSymbols::open_path(&at("linked"))?;
    converted::object(&at("linked"), false)?;
    converted::object(&at("module.ko"), false)?;
    for name in ["module.ko", "module.ko.xz", "module.ko.zst", "module.ko.gz"] {
        let object = NativeSymbols::open_path(&at(name))?;
        for section in [".text", ".init.text", ".exit.text"] {
            let range = |symbols: &NativeSymbols| symbols.section(section).ok_or("no section");
            let (here, there) = (range(&object)?, range(&linked)?);
            let len = here.end - here.start;
            if section == ".text" {
                assert_eq!(here.start, 0);
            }
            assert!(len > 0 && len <= there.end - there.start, "{section}");
            let addresses: Vec<u64> = (0..len).map(|at| there.start + at).collect();
            let theirs = llvm(&at("linked"), &addresses)?;
            let own: Vec<u64> = (0..len).map(|at| here.start + at).collect();
            let ours = answers(&object, &own)?;
            for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
                // Labels that RISC-V's assembler keeps for the linker are not names.
                let same = |(o, t): (&Frame, &Frame)| o == t || t.0.starts_with(".L") && o.1 == t.1;
                let equal = ours.len() == theirs.len() && ours.iter().zip(theirs).all(same);
                // Padding between functions has no name here.
                if !equal && ours[0].0 != "??" {
                    let what = format!("{name} {section}+{at:#x}");
                    return Err(format!("{what}\n ours {ours:?}\n llvm {theirs:?}").into());
                }
            }
            let named = ours.iter().filter(|answer| answer[0].0 != "??").count() as u64;
            assert!(named * 2 > len, "{name} {section}: {named} of {len}");
        }
    }
    Ok(())
}

/// PDBs as lld writes them, every byte of the code.
fn windows(target: &str, underscore: bool) -> Result<(), Failed> {
    const BASE: u64 = 0x1_0000_0000;
    let folder = tempfile::tempdir()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("native/module.c");
    run(Command::new("clang")
        .current_dir(&folder)
        .arg(format!("--target={target}-pc-windows-msvc"))
        .args(["-g", "-gcodeview", "-O2", "-ffreestanding"])
        .args(["-c", "-o", "module.obj"])
        .arg(source))?;
    let base = if underscore { 0x40_0000 } else { BASE };
    run(Command::new("lld-link").current_dir(&folder).args([
        "/debug",
        "/nodefaultlib",
        "/entry:module_work",
        "/subsystem:console",
        &format!("/base:{base:#x}"),
        "/out:module.exe",
        "module.obj",
    ]))?;
    let image = folder.path().join("module.exe");
    let symbols = NativeSymbols::open_path(&image)?;
    let bytes = std::fs::read(folder.path().join("module.pdb"))?;
    let pdb = WindowsPdb::open(&bytes)?;
    let addresses: Vec<u64> = symbols.code().iter().flat_map(Clone::clone).collect();
    assert!(addresses.len() > 200 && addresses[0] >= base);
    let code = symbols.code().iter();
    let code: Vec<_> = code.map(|r| r.start - base..r.end - base).collect();
    converted::pdb(&folder.path().join("module.pdb"), &code)?;
    let other = ContextPdbData::try_from_pdb(PDB::open(Cursor::new(&bytes))?)?;
    let other = other.make_context()?;
    let mut found = Frames::new();
    let mut other_lines = 0;
    for (address, theirs) in addresses.iter().zip(llvm(&image, &addresses)?) {
        let rva = u32::try_from(address - base)?;
        let function = pdb.find(rva, &mut found)?;
        if function.is_none() {
            // We distinguish padding between functions.
            continue;
        }
        let ours = found.iter().map(|frame| {
            let name = frame.name.as_ref().map(ToString::to_string);
            let (file, line) = (frame.file.as_deref().unwrap_or("??"), frame.line);
            let place = format!("{file}:{}:0", line.unwrap_or(0));
            (name.unwrap_or("??".to_owned()), place)
        });
        let ours: Vec<Frame> = ours.collect();
        // The function around it all is named there as the linker names it.
        let same_name = |(o, t): (&Frame, &Frame)| {
            o.0 == t.0 || (underscore && t.0.strip_prefix('_') == Some(&o.0))
        };
        let same_names = ours.len() == theirs.len() && ours.iter().zip(&theirs).all(same_name);
        let same_lines = (ours.iter().zip(&theirs)).all(|(ours, theirs)| ours.1 == theirs.1);
        if same_names && !same_lines {
            let third = other.find_frames(rva)?.ok_or("not found")?;
            let lines = third.frames.iter().map(|frame| frame.line);
            let agrees = lines.eq(found.iter().map(|frame| frame.line));
            other_lines += usize::from(agrees);
            if agrees {
                continue;
            }
        }
        if !(same_names && same_lines) {
            return Err(format!("{address:#x}\n ours {ours:?}\n llvm {theirs:?}").into());
        }
    }
    let all = addresses.len();
    if other_lines > MAX_OTHER_LINES {
        return Err(format!("{other_lines} of {all} answers of LLVM have other lines").into());
    }
    Ok(())
}

/// Compression of sections does not change the answers.
fn packed(flags: &[&str], dwz: bool) -> Result<(), Failed> {
    let program = Program::compile("g++", flags)?;
    if dwz {
        run(Command::new("dwz").arg(&program.path))?;
    }
    let expected = answers_with(&program.path, |_| {})?;
    let plain = std::fs::metadata(&program.path)?.len();
    for kind in ["zlib", "zlib-gnu", "zstd"] {
        let packed = program.folder.path().join(kind);
        run(Command::new("objcopy")
            .arg(format!("--compress-debug-sections={kind}"))
            .args([&program.path, &packed]))?;
        assert!(std::fs::metadata(&packed)?.len() < plain, "{kind}");
        assert_eq!(answers_with(&packed, |_| {})?, expected, "{kind}");
        converted::object(&packed, false)?;
        // One at a time, from the end on.
        let symbols = NativeSymbols::open_path(&packed)?;
        let all = symbols.code().iter().flat_map(|r| r.clone().step_by(7));
        let all: Vec<u64> = all.collect();
        for (address, expected) in all.iter().zip(&expected).rev().step_by(5) {
            let found = answers(&symbols, &[*address])?;
            assert_eq!(found, std::slice::from_ref(expected), "{kind} {address:#x}");
        }
    }
    Ok(())
}

/// A symbolizer converts the files that it used, and another one answers from them.
fn converted_in_a_trace() -> Result<(), Failed> {
    let program = Program::compile("g++", &["-O2", "-g"])?;
    converted::settle(program.folder.path())?;
    let native = NativeSymbols::open_path(&program.path)?;
    let build_id = native.build_id().ok_or("no build id")?.to_string();
    let mut config = StoreConfig::new();
    config.folders = vec![program.folder.path().to_owned()];
    config.cache = Some(program.folder.path().join("cache"));
    config.symbol_cache = CacheUse::Always;
    let open = || Symbolizer::new(config.clone(), SymbolOptions::default());
    let mut image = ImageRef::new("/srv/program");
    image.build_id = Some(&build_id);
    let code = native.code().iter().flat_map(Clone::clone);
    let rvas: Vec<u64> = code.map(|va| va - native.base()).collect();
    let frames = |symbols: &Symbolizer| -> Vec<String> {
        let all = rvas.iter().map(|&rva| symbols.native(&image, rva));
        all.map(|frames| format!("{frames:?}")).collect()
    };
    let first = open();
    let expected = frames(&first);
    assert!(first.convert_symbols() > 0);
    let second = open();
    assert_eq!(frames(&second), expected);
    assert_eq!(second.convert_symbols(), 0);
    Ok(())
}

/// A kernel module is found by its build ID, compressed as by distributions; addresses are relative
/// to where it is loaded.
fn module_in_a_trace() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("native/module.c");
    let at = |name: &str| folder.path().join(name);
    run(Command::new("gcc")
        .current_dir(&folder)
        .args(["-g", "-O2", "-ffreestanding", "-c", "-o", "module.o"])
        .arg(source))?;
    run(Command::new("ld").current_dir(&folder).args([
        "-r",
        "--build-id=sha1",
        "-o",
        "module.ko",
        "module.o",
    ]))?;
    let native = NativeSymbols::open_path(&at("module.ko"))?;
    let build_id = native.build_id().ok_or("no build id")?.to_string();
    let len = native.section(".text").ok_or("no code")?.end;
    let expected = answers(&native, &(0..len).collect::<Vec<_>>())?;
    run(Command::new("xz").arg(at("module.ko")))?;
    let mut config = StoreConfig::new();
    config.folders = vec![folder.path().to_owned()];
    let symbols = Symbolizer::new(config, SymbolOptions::default());
    let mut image = ImageRef::new("/lib/modules/6.1.0/kernel/module.ko.xz");
    image.build_id = Some(&build_id);
    for (offset, expected) in (0..len).zip(&expected) {
        let frames = symbols
            .native(&image, offset)
            .map_err(|reason| reason.to_string())?;
        let frames = frames.iter().map(|frame| {
            let line = frame.line.as_ref();
            let place = line.map(|l| format!("{}:{}:", l.file, l.line));
            (frame.name.to_string(), place.unwrap_or_default())
        });
        let same = |((name, place), (expected, at)): ((String, String), &Frame)| {
            name == *expected && at.starts_with(&place)
        };
        let padding = expected[0].0 == "??";
        assert!(
            padding || frames.len() == expected.len() && frames.zip(expected).all(same),
            "{offset:#x}"
        );
    }
    assert!(expected.iter().any(|frames| frames.len() > 2));
    Ok(())
}

/// Compares with binutils, with addresses relative to a section given by name.
fn unlinked_beside_addr2line() -> Result<(), Failed> {
    let program = Program::compile("g++", &["-O2", "-g", "-ffunction-sections"])?;
    let path = program.folder.path().join("first.o");
    let object = NativeSymbols::open_path(&path)?;
    let sizes = Command::new("size").arg("-A").arg(&path).output()?;
    let sizes = String::from_utf8(sizes.stdout)?;
    let mut compared = 0;
    for row in sizes.lines() {
        let mut words = row.split_whitespace();
        let (Some(name), Some(Ok(len))) = (words.next(), words.next().map(str::parse::<u64>))
        else {
            continue;
        };
        if !name.starts_with(".text") || len == 0 {
            continue;
        }
        let start = object.section(name).ok_or("no section")?.start;
        let own: Vec<u64> = (0..len).map(|at| start + at).collect();
        let ours = answers(&object, &own)?;
        let theirs = gnu(&path, Some(name), &(0..len).collect::<Vec<_>>())?;
        for (at, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let same = like_gnu(ours, theirs);
            if !same {
                return Err(format!("{name}+{at:#x}\n ours {ours:?}\n gnu {theirs:?}").into());
            }
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
    Ok(())
}

/// Debug information that is neither next to the program nor where it was compiled.
fn split_elsewhere() -> Result<(), Failed> {
    let program = Program::compile("g++", &["-O2", "-gdwarf-4", "-gsplit-dwarf"])?;
    let expected = answers_with(&program.path, |_| {})?;
    let apart = tempfile::tempdir()?;
    let moved = apart.path().join("moved");
    std::fs::copy(&program.path, &moved)?;
    let found = |change: &dyn Fn(&mut DebugFileSearch)| answers_with(&moved, change);
    assert_ne!(found(&|_| {})?, expected);
    assert_eq!(found(&|places| places.recorded_paths = true)?, expected);
    let folder =
        |places: &mut DebugFileSearch| places.folders.push(program.folder.path().to_owned());
    assert_eq!(found(&folder)?, expected);
    // A package with the name of the program, of its debug file, or of neither.
    run(Command::new("dwp")
        .current_dir(&program.folder)
        .args(["-e", "program", "-o", "all"]))?;
    for name in ["moved.dwp", "moved.debug.dwp", "other.dwp"] {
        let package = apart.path().join(name);
        std::fs::copy(program.folder.path().join("all"), &package)?;
        assert_eq!(found(&|_| {})?, expected, "{name}");
        std::fs::remove_file(package)?;
    }
    // A package of another build is rejected.
    let other = Program::compile("g++", &["-O1", "-gdwarf-4", "-gsplit-dwarf"])?;
    let folder = |places: &mut DebugFileSearch| places.folders.push(other.folder.path().to_owned());
    let refused = found(&folder)
        .err()
        .and_then(|e| e.message().map(str::to_owned));
    assert!(refused.is_some_and(|why| why.contains("the file found for it lacks it")));
    Ok(())
}

/// Frames of a trace, too, have split units where the program records them if paths of traces are
/// trusted, and where symbols are looked for.
fn split_in_a_trace() -> Result<(), Failed> {
    let program = Program::compile("g++", &["-O2", "-gdwarf-5", "-gsplit-dwarf"])?;
    let apart = tempfile::tempdir()?;
    std::fs::copy(&program.path, apart.path().join("program"))?;
    let symbols = NativeSymbols::open_path(&program.path)?;
    let build_id = symbols.build_id().ok_or("no build id")?.to_string();
    let mut image = ImageRef::new("program");
    image.build_id = Some(&build_id);
    let addresses = program.addresses(&symbols);
    let inlined = |change: &dyn Fn(&mut StoreConfig)| {
        let mut config = StoreConfig::new();
        config.folders = vec![apart.path().to_owned()];
        change(&mut config);
        let symbols = Symbolizer::new(config, SymbolOptions::default());
        let frames = addresses.iter().map(|&at| symbols.native(&image, at));
        let deep = |frames: &Result<Vec<_>, _>| frames.as_ref().is_ok_and(|f| f.len() > 1);
        frames.filter(deep).count()
    };
    assert_eq!(inlined(&|_| {}), 0);
    let trusted = inlined(&|config| config.trust_trace_paths = true);
    assert!(trusted > 10, "{trusted}");
    let folder = program.folder.path();
    let beside = inlined(&|config| config.folders.push(folder.to_owned()));
    assert_eq!(beside, trusted);
    Ok(())
}

/// The debug files next to a link's target are found.
fn linked_name() -> Result<(), Failed> {
    let program = Program::compile("g++", &["-O2", "-g"])?;
    let whole = answers_with(&program.path, |_| {})?;
    let at = |name: &str| program.folder.path().join(name);
    run(Command::new("objcopy")
        .arg("--only-keep-debug")
        .args([&program.path, &at("program.debug")]))?;
    run(Command::new("objcopy")
        .arg("--strip-all")
        .arg(format!(
            "--add-gnu-debuglink={}",
            at("program.debug").display()
        ))
        .arg(&program.path))?;
    // Without symbols of the program's own, functions have the names of DWARF, as in LLVM.
    let expected = answers_with(&program.path, |_| {})?;
    let lines = |answers: &[Vec<(String, String)>]| -> Vec<Vec<String>> {
        let of = |frames: &Vec<(String, String)>| frames.iter().map(|it| it.1.clone()).collect();
        answers.iter().map(of).collect()
    };
    assert_eq!(lines(&expected), lines(&whole));
    let apart = tempfile::tempdir()?;
    let link = apart.path().join("link");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&program.path, &link)?;
    assert_eq!(answers_with(&link, |_| {})?, expected);
    Ok(())
}

/// A function whose debug information has a name that C reserves for its implementation has the
/// name that programs use, unless a tool's names are wanted. A different function that was merged
/// with it does not count.
fn reserved_names() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    std::fs::write(
        at("reserved.c"),
        r#"
        #define ALIAS(of) __attribute__((alias(#of)))
        int __GI___libc_work(int n) { return n * 3; }
        int work(int n) ALIAS(__GI___libc_work);
        int __libc_work(int n) ALIAS(__GI___libc_work);
        static int libc_work(int n) ALIAS(__GI___libc_work);
        int __merged_one(int n) { return n * 7; }
        int other(int n) ALIAS(__merged_one);
        int __lonely(int n) { return n * 11; }
        int _internal(int n) { return n * 13; }
        int internal(int n) ALIAS(_internal);
        int main(void) { return work(1) + libc_work(2); }
        "#,
    )?;
    run(Command::new("gcc").current_dir(&folder).args([
        "-g",
        "-O0",
        "-o",
        "reserved",
        "reserved.c",
    ]))?;
    let path = at("reserved");
    converted::object(&path, false)?;
    let symbols = NativeSymbols::open_path(&path)?;
    for (debug_name, name) in [
        ("__GI___libc_work", "work"),
        ("__merged_one", "__merged_one"),
        ("__lonely", "__lonely"),
        ("_internal", "_internal"),
        ("main", "main"),
    ] {
        let mut functions = symbols.functions();
        let (_, code) = functions
            .find(|it| it.0 == debug_name.as_bytes())
            .ok_or(debug_name)?;
        let start = code.start;
        let addresses = [start, start + 4];
        let ours = answers(&symbols, &addresses)?;
        assert_eq!(ours, llvm(&path, &addresses)?);
        let theirs = gnu(&path, None, &addresses)?;
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!(like_gnu(ours, theirs), "{ours:?} {theirs:?}");
        }
        let mut found = Answers::new();
        let asked = addresses.map(Address::VirtualAddress);
        symbols.find_all(&asked, &Query::default(), &mut found);
        for answer in found.iter() {
            let frames: Vec<_> = answer.frames().map(|frame| frame.name()).collect();
            assert_eq!(frames, [Some(name)], "{debug_name}");
        }
    }
    Ok(())
}

/// The supplementary file is found by its name in any folder, and set by its build ID from any
/// path.
fn shared_elsewhere() -> Result<(), Failed> {
    let program = Program::compile("g++", &["-O2", "-g"])?;
    let expected = answers_with(&program.path, |_| {})?;
    let at = |name: &str| program.folder.path().join(name);
    std::fs::copy(&program.path, at("copy"))?;
    run(Command::new("dwz").current_dir(&program.folder).args([
        "-m",
        "common.debug",
        "program",
        "copy",
    ]))?;
    assert_eq!(answers_with(&program.path, |_| {})?, expected);
    let apart = tempfile::tempdir()?;
    let common = apart.path().join("common.debug");
    std::fs::rename(at("common.debug"), &common)?;
    let symbols = NativeSymbols::open_path(&program.path)?;
    assert!(
        symbols
            .missing_supplement()
            .is_some_and(|(_, path)| path == "common.debug")
    );
    assert!(
        symbols
            .missing_files()
            .iter()
            .any(|note| note.contains("supplementary file common.debug"))
    );
    let folder = |places: &mut DebugFileSearch| places.folders.push(apart.path().to_owned());
    assert_eq!(answers_with(&program.path, folder)?, expected);
    let elsewhere = apart.path().join("x");
    std::fs::rename(&common, &elsewhere)?;
    let mut symbols = NativeSymbols::open_path(&program.path)?;
    assert!(symbols.set_supplement(&program.path).is_err());
    let (supplement, _) = symbols.missing_supplement().ok_or("not named")?;
    let supplement = supplement.to_string();
    symbols.set_supplement(&elsewhere)?;
    let addresses = program.addresses(&symbols);
    assert_eq!(answers(&symbols, &addresses)?, expected);
    // It is found by its build ID, in the layout of distributions, for the frames of a trace.
    let (head, tail) = supplement.split_at(2);
    let place = apart.path().join(".build-id").join(head);
    std::fs::create_dir_all(&place)?;
    std::fs::rename(&elsewhere, place.join(format!("{tail}.debug")))?;
    let build_id = symbols.build_id().ok_or("no build id")?.to_string();
    let mut image = ImageRef::new("program");
    image.build_id = Some(&build_id);
    let mut config = StoreConfig::new();
    config.folders = vec![program.folder.path().to_owned(), apart.path().to_owned()];
    let in_trace = Symbolizer::new(config, SymbolOptions::default());
    for (&address, expected) in addresses.iter().zip(&expected) {
        let frames = in_trace
            .native(&image, address)
            .map_err(|r| r.to_string())?;
        // Only traces name linkage stubs.
        let stubs = frames.iter().filter(|frame| frame.name.ends_with("@plt"));
        let named = expected.iter().filter(|frame| frame.0 != "??").count();
        assert_eq!(frames.len() - stubs.count(), named, "{address:#x}");
    }
    Ok(())
}

/// A symbol of a section without code names no code, whatever its value.
fn symbols_of_other_sections() -> Result<(), Failed> {
    let program = Program::compile("g++", &["-O2", "-g"])?;
    let symbols = NativeSymbols::open_path(&program.path)?;
    let expected = answers_with(&program.path, |_| {})?;
    let inside = symbols.code().last().ok_or("no code")?.start + 3;
    run(Command::new("objcopy")
        .arg(format!("--add-symbol=stray=.debug_info:{inside:#x},local"))
        .arg(&program.path))?;
    assert_eq!(answers_with(&program.path, |_| {})?, expected);
    Ok(())
}

/// A function and its file and line.
type Frame = (String, String);

fn answers_with(
    path: &Path,
    change: impl Fn(&mut DebugFileSearch),
) -> Result<Vec<Vec<Frame>>, Failed> {
    let mut places = DebugFileSearch::next_to(path);
    change(&mut places);
    let symbols = NativeSymbols::open_path_with(path, places)?;
    let all = symbols.code().iter().flat_map(|r| r.clone().step_by(7));
    answers(&symbols, &all.collect::<Vec<u64>>())
}

fn answers(symbols: &NativeSymbols, addresses: &[u64]) -> Result<Vec<Vec<Frame>>, Failed> {
    let asked: Vec<Address> = addresses
        .iter()
        .map(|&a| Address::VirtualAddress(a))
        .collect();
    let mut answers = Answers::new();
    let mut query = Query::default();
    query.symbol_names = Some(Dialect::Llvm);
    symbols.find_all(&asked, &query, &mut answers);
    if !answers.damage().is_empty() {
        return Err(format!("damage: {:?}", answers.damage()).into());
    }
    let mut text = Vec::new();
    Printer::new(Style::Llvm, &answers)
        .demangle(false)
        .print_all(&mut text)?;
    Ok(frames(&String::from_utf8(text)?))
}

fn llvm(path: &Path, addresses: &[u64]) -> Result<Vec<Vec<Frame>>, Failed> {
    let mut command = Command::new("llvm-symbolizer");
    command
        .arg("--no-demangle")
        .arg(format!("--obj={}", path.display()));
    Ok(frames(&ask(command, addresses)?))
}

/// Returns the answers of binutils for addresses or offsets in a section. Only lines are compared,
/// because binutils sometimes use the wrong file.
fn gnu(path: &Path, section: Option<&str>, addresses: &[u64]) -> Result<Vec<Vec<Frame>>, Failed> {
    let mut command = Command::new("addr2line");
    command.args(["-f", "-i", "-a"]);
    if let Some(section) = section {
        command.args(["-j", section]);
    }
    command.arg("-e").arg(path);
    let text = ask(command, addresses)?;
    // Each answer starts with its address.
    let answers = text.split("\n0x").map(|answer| {
        let lines: Vec<&str> = answer.lines().skip(1).collect();
        let frame = |pair: &[&str]| {
            let place = pair.get(1).copied().unwrap_or_default();
            let line = place.rsplit(':').next().unwrap_or_default();
            let line = line.split(' ').next().unwrap_or_default();
            (pair[0].to_owned(), line.to_owned())
        };
        lines.chunks(2).map(frame).collect()
    });
    Ok(answers.collect())
}

/// True where binutils have the same frames.
fn like_gnu(ours: &[Frame], theirs: &[Frame]) -> bool {
    let same = |(ours, theirs): (&Frame, &Frame)| {
        let line = ours.1.split(':').nth(1).unwrap_or_default();
        // Without a linkage name binutils may print that of the preceding query.
        let name = ours.0 == theirs.0 || !ours.0.starts_with("_Z");
        name && (line == theirs.1 || (line == "0" && theirs.1 == "?"))
    };
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(same)
}

/// Returns the output of a tool that reads addresses from its standard input.
fn ask(mut command: Command, addresses: &[u64]) -> Result<String, Failed> {
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

fn frames(text: &str) -> Vec<Vec<Frame>> {
    let answers = text.trim_end().split("\n\n");
    let frame = |pair: &[&str]| {
        (
            pair[0].to_owned(),
            pair.get(1).map_or(String::new(), |p| (*p).to_owned()),
        )
    };
    answers
        .map(|answer| {
            answer
                .lines()
                .collect::<Vec<_>>()
                .chunks(2)
                .map(frame)
                .collect()
        })
        .collect()
}

fn run(command: &mut Command) -> Result<(), Failed> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
