//! Real Windows PDBs, read completely and compared with two other readers: `pdb2`'s records and
//! `pdb-addr2line`'s answers.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::process::ExitCode;

use chronosym_conformance::{CORPUS, case};
use chronosym_pdb::windows::{Frames, FunctionKind, WindowsPdb};
use libtest_mimic::{Arguments, Failed};
use pdb_addr2line::pdb::{FallibleIterator, PDB, SymbolData};
use pdb_addr2line::{ContextPdbData, TypeFormatterFlags};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let mut cases = Vec::new();
    for name in ["crash.pdb", "softokn3.pdb"] {
        cases.push(case(
            CORPUS,
            format!("{name}_every_procedure_line_and_inlinee"),
            move |corpus| read_to_the_end(&std::fs::read(corpus.join("pdb").join(name))?),
        ));
        cases.push(case(
            CORPUS,
            format!("{name}_every_byte_beside_pdb_addr2line"),
            move |corpus| {
                let data = std::fs::read(corpus.join("pdb").join(name))?;
                beside_addr2line(&data, name == "crash.pdb")
            },
        ));
    }
    cases.push(case(CORPUS, "identity", |corpus| {
        let data = std::fs::read(corpus.join("pdb/softokn3.pdb"))?;
        let pdb = WindowsPdb::open(&data)?;
        // Source indexing wrote to this file after the linker: its own age increased to 2, the
        // DBI's did not.
        assert_eq!(pdb.id().age, 1);
        Ok(())
    }));
    cases.push(case(CORPUS, "classic_managed", |corpus| {
        classic_managed(&std::fs::read(
            corpus.join("pdb/CsDesktopWithSourceLink.pdb"),
        )?)
    }));
    libtest_mimic::run(&Arguments::from_args(), cases).exit_code()
}

/// `pdb2`'s description of a procedure, by RVA of its start.
struct Procedure {
    len: u32,
    name: String,
}

/// The lines of one procedure, in file order: several tables if functions were folded.
type Lines = BTreeMap<u32, Vec<(String, u32)>>;

struct Oracle {
    procedures: BTreeMap<u32, Vec<Procedure>>,
    lines: Lines,
    /// (RVA of a byte, file, line) of every row of every inline site.
    inlined: Vec<(u32, String, u32)>,
    /// Functions whose lines it could not read.
    unread: usize,
}

/// Returns the result of `run`, or `None` if it panics.
fn quietly<T>(run: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).ok()
}

/// Line numbers that represent no line.
const HIDDEN: [u32; 2] = [0xFE_EFEE, 0xF0_0F00];

fn oracle(data: &[u8]) -> Result<Oracle, Failed> {
    let mut file = PDB::open(Cursor::new(data))?;
    let map = file.address_map()?;
    let strings = file.string_table()?;
    let debug = file.debug_information()?;
    let mut modules = debug.modules()?;
    let mut oracle = Oracle {
        procedures: BTreeMap::new(),
        lines: BTreeMap::new(),
        inlined: Vec::new(),
        unread: 0,
    };
    while let Some(module) = modules.next()? {
        let Some(info) = file.module_info(&module)? else {
            continue;
        };
        let program = info.line_program()?;
        let path = |file| -> Result<String, Failed> {
            let info = program.get_file_info(file)?;
            Ok(info.name.to_string_lossy(&strings)?.into_owned())
        };
        let inlinees: BTreeMap<_, _> = info
            .inlinees()?
            .map(|inlinee| Ok((inlinee.index(), inlinee)))
            .collect()?;
        let mut symbols = info.symbols()?;
        let mut around = None;
        while let Some(symbol) = symbols.next()? {
            let (offset, len, name) = match symbol.parse() {
                Ok(SymbolData::Procedure(found)) => (found.offset, found.len, found.name),
                Ok(SymbolData::Thunk(found)) => (found.offset, found.len.into(), found.name),
                Ok(SymbolData::InlineSite(site)) => {
                    let (Some(around), Some(inlinee)) = (around, inlinees.get(&site.inlinee))
                    else {
                        continue;
                    };
                    let mut rows = inlinee.lines(around, &site);
                    while let Ok(Some(row)) = rows.next() {
                        if let (Some(rva), 1..) = (row.offset.to_rva(&map), row.length.unwrap_or(0))
                        {
                            let place = (rva.0, path(row.file_index)?, row.line_start);
                            oracle.inlined.push(place);
                        }
                    }
                    continue;
                }
                _ => continue,
            };
            around = Some(offset);
            // A debug assertion of the reader requires that rows ascend over the files of one
            // table, which MSVC does not ensure.
            let all = || program.lines_for_symbol(offset).collect::<Vec<_>>();
            match quietly(all) {
                Some(rows) => {
                    for row in rows? {
                        if let Some(rva) = row.offset.to_rva(&map) {
                            let lines = oracle.lines.entry(rva.0).or_default();
                            lines.push((path(row.file_index)?, row.line_start));
                        }
                    }
                }
                None => oracle.unread += 1,
            }
            if let (Some(rva), 1..) = (offset.to_rva(&map), len) {
                oracle.procedures.entry(rva.0).or_default().push(Procedure {
                    len,
                    name: name.to_string().into_owned(),
                });
            }
        }
    }
    Ok(oracle)
}

fn read_to_the_end(data: &[u8]) -> Result<(), Failed> {
    let pdb = WindowsPdb::open(data)?;
    assert_eq!(pdb.limitations().count(), 0);
    let oracle = oracle(data)?;

    // The same procedures, in the same number.
    let mut count = 0;
    for function in pdb.functions() {
        let function = function?;
        if !matches!(function.kind, FunctionKind::Procedure | FunctionKind::Thunk) {
            continue;
        }
        let name = function.name.as_ref().map(ToString::to_string);
        let known = oracle.procedures.get(&function.rva).is_some_and(|known| {
            known
                .iter()
                .any(|known| known.len == function.len && name.as_ref() == Some(&known.name))
        });
        assert!(known, "{function:?}");
        count += 1;
    }
    let expected: usize = oracle.procedures.values().map(Vec::len).sum();
    assert!(expected > 100, "{expected} procedures");
    assert_eq!(count, expected);

    // Every row at its own byte: of several rows there, one of the last of each table.
    let mut frames = Frames::new();
    let mut rows = 0;
    for (&rva, lines) in &oracle.lines {
        let found = pdb.find(rva, &mut frames)?;
        let Some(function) = found else {
            return Err(format!("{rva:#x} has lines {lines:?} but no function").into());
        };
        if lines.iter().all(|(_, line)| HIDDEN.contains(line)) {
            continue;
        }
        let own = frames.last().ok_or("no frame")?;
        let file = own.file.as_deref().unwrap_or_default();
        let line = own.line.unwrap_or_default();
        let folded = oracle
            .procedures
            .get(&function.rva)
            .is_some_and(|all| all.len() > 1);
        // For folded functions the reader returns the lines of any of them.
        let last = &lines[lines.len() - 1];
        assert!(
            folded || (file, line) == (&*last.0, last.1),
            "{rva:#x}: {file}:{line}, not {last:?}"
        );
        rows += 1;
    }
    assert!(rows > 200, "{rows} rows");
    assert!(
        oracle.unread < 40,
        "{} functions without lines",
        oracle.unread
    );

    // Every row of every inline site is one of the frames at its first byte, or of folded code.
    let mut sites = 0;
    for (rva, file, line) in &oracle.inlined {
        let function = pdb
            .find(*rva, &mut frames)?
            .ok_or("no function around an inline site")?;
        if oracle
            .procedures
            .get(&function.rva)
            .is_some_and(|all| all.len() > 1)
        {
            continue;
        }
        let line = Some(*line).filter(|&line| line > 0);
        assert!(
            frames.iter().any(|frame| frame.inlined
                && frame.line == line
                && frame.file.as_deref() == Some(file)),
            "{rva:#x}: {file}:{line:?} is none of {:?}",
            &*frames
        );
        sites += 1;
    }
    assert!(sites > 400, "{sites} rows of inline sites");
    Ok(())
}

/// Compares both readers for every byte of .text. Known differences, and why we are right:
///
/// * pdb-addr2line extends a function and its lines over the padding after it;
/// * it uses lines of a table that starts elsewhere if the function has none of its own;
/// * for functions folded into one body, it combines the first one's name with the last one's
///   lines;
/// * it shows line 0 ("no line made this code") as a line.
fn beside_addr2line(data: &[u8], imports: bool) -> Result<(), Failed> {
    let pdb = WindowsPdb::open(data)?;
    let oracle = oracle(data)?;
    let theirs = ContextPdbData::try_from_pdb(PDB::open(Cursor::new(data))?)?;
    let flags = TypeFormatterFlags::NO_ARGUMENTS
        | TypeFormatterFlags::NAME_ONLY
        | TypeFormatterFlags::NO_FUNCTION_RETURN
        | TypeFormatterFlags::NO_MEMBER_FUNCTION_STATIC;
    let open = || theirs.make_context_with_formatter_flags(flags);
    let mut context = open()?;
    let mut frames = Frames::new();
    let end = oracle.procedures.last_key_value().ok_or("no procedures")?;
    let end = end.0 + end.1[0].len;
    let (mut equal, mut own_line_missing, mut folded, mut padding, mut unread) = (0, 0, 0, 0, 0);
    for rva in 0x1000..end {
        // It caches the names of inlinees by their number, and the numbers of imported ones have
        // another meaning in each module: a context of many addresses mixes them up.
        if imports && oracle.procedures.contains_key(&rva) {
            context = open()?;
        }
        let ours = pdb.find(rva, &mut frames)?;
        let Some(theirs) = quietly(|| context.find_frames(rva)) else {
            context = open()?;
            unread += 1;
            continue;
        };
        let theirs = theirs?;
        let (ours, theirs) = match (ours, theirs) {
            (None, None) => continue,
            (None, Some(_)) => {
                let before = oracle.procedures.range(..=rva).next_back();
                let covered = before
                    .is_some_and(|(start, all)| all.iter().any(|found| rva - start < found.len));
                assert!(!covered, "{rva:#x}");
                padding += 1;
                continue;
            }
            (Some(ours), None) => return Err(format!("{rva:#x}: only here {ours:?}").into()),
            (Some(ours), Some(theirs)) => (ours, theirs),
        };
        assert_eq!(ours.rva, theirs.start_rva, "{rva:#x}");
        assert_eq!(frames.len(), theirs.frames.len(), "{rva:#x}");
        for (mine, other) in frames.iter().zip(&theirs.frames) {
            let folded_here = oracle
                .procedures
                .get(&ours.rva)
                .is_some_and(|all| all.len() > 1);
            let name = mine.name.as_ref().map(ToString::to_string);
            // MSVC numbers anonymous namespaces in some records, and uses its own terms in others.
            let anonymous = name
                .as_ref()
                .is_some_and(|name| name.contains("`anonymous-namespace'"));
            assert!(
                name == other.function || folded_here || anonymous,
                "{rva:#x} {name:?}"
            );
            let line = other.line.filter(|&line| line > 0);
            if (mine.line, mine.file.as_deref()) == (line, other.file.as_deref()) {
                equal += 1;
            } else if folded_here {
                folded += 1;
            } else {
                let has_rows = oracle
                    .lines
                    .range(ours.rva..=rva)
                    .any(|(_, lines)| lines.iter().any(|row| !HIDDEN.contains(&row.1)));
                assert!(
                    !mine.inlined && mine.file.is_none() && !has_rows,
                    "{rva:#x} {mine:?}"
                );
                own_line_missing += 1;
            }
        }
    }
    println!(
        "{equal} equal frames, {own_line_missing} without rows of their own, {folded} folded, {padding} bytes of padding, {unread} bytes not compared"
    );
    assert!(equal > 8000 && own_line_missing + folded < equal / 7);
    Ok(())
}

fn classic_managed(data: &[u8]) -> Result<(), Failed> {
    const FILE: &str = r"C:\PerfViewTestData\CsDesktopWithSourceLink\Program.cs";
    let pdb = WindowsPdb::open(data)?;
    let line = |il| pdb.managed_line(0x0600_0001, il);
    let first = line(0)?.ok_or("no line at IL 0")?;
    assert_eq!(
        (first.file.as_deref(), first.line, first.il_offset),
        (Some(FILE), 13, 0)
    );
    for il in 1..0xA {
        assert_eq!(line(il)?.ok_or("no line")?.line, 13);
    }
    let last = line(0xA)?.ok_or("no line at IL 10")?;
    assert_eq!((last.line, last.il_offset), (14, 0xA));
    assert_eq!(pdb.managed_line(0x0600_0002, 0)?, None);
    Ok(())
}
