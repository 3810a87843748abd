//! Windows PDBs made by hand, record by record: layouts that no available file has.

use chronosym_pdb::windows::{Frames, Limitation, WindowsPdb};
use chronosym_support::msf::{put, put_together};

const S_END: u16 = 6;
const S_THUNK32: u16 = 0x1102;
const S_PUB32: u16 = 0x110E;
const S_GPROC32: u16 = 0x1110;
const S_GMANPROC: u16 = 0x112A;
const S_TRAMPOLINE: u16 = 0x112C;
const S_SEPCODE: u16 = 0x1132;
const S_INLINESITE: u16 = 0x114D;
const S_INLINESITE_END: u16 = 0x114E;

const LINES: u32 = 0xF2;
const CHECKSUMS: u32 = 0xF4;
const INLINEES: u32 = 0xF6;
const IMPORTS: u32 = 0xF7;
const EXPORTS: u32 = 0xF8;

/// `/names`, and the offsets of its strings.
const NAMES: &[u8] = b"\0a.cpp\0b.cpp\0EXPORTER.obj\0";
const EXPORTER: u32 = 13;
/// Offsets of the files in every module's checksums.
const A: u32 = 0;
const B: u32 = 8;

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn shorts(shorts: &[u16]) -> Vec<u8> {
    shorts.iter().flat_map(|it| it.to_le_bytes()).collect()
}

fn padded(mut data: Vec<u8>) -> Vec<u8> {
    data.resize(data.len().next_multiple_of(4), 0);
    data
}

/// A record of symbols or types: its length, its kind, its fields.
fn record(kind: u16, fields: &[&[u8]]) -> Vec<u8> {
    let mut record = padded([&shorts(&[0, kind]), &fields.concat()[..]].concat());
    let len = record.len() as u16 - 2;
    record[..2].copy_from_slice(&len.to_le_bytes());
    record
}

fn procedure(offset: u32, len: u32, name: &str) -> Vec<u8> {
    let fields = words(&[0, 0, 0, len, 0, 0, 0, offset]);
    record(S_GPROC32, &[&fields, &[1, 0, 0], name.as_bytes(), &[0]])
}

fn method(token: u32, offset: u32, name: &str) -> Vec<u8> {
    let fields = words(&[0, 0, 0, 0x10, 0, 0, token, offset]);
    record(
        S_GMANPROC,
        &[&fields, &[1, 0, 0, 0, 0], name.as_bytes(), &[0]],
    )
}

/// A piece of the code of the procedure at `parent`.
fn piece(offset: u32, len: u32, parent: u32) -> Vec<u8> {
    let fields = words(&[0, 0, len, 0, offset, parent, 0x1_0001]);
    record(S_SEPCODE, &[&fields])
}

fn site(inlinee: u32, annotations: &[u8]) -> Vec<u8> {
    record(S_INLINESITE, &[&words(&[0, 0, inlinee]), annotations])
}

fn subsection(kind: u32, body: Vec<u8>) -> Vec<u8> {
    [words(&[kind, body.len() as u32]), padded(body)].concat()
}

/// Rows of a file, each an offset, a line and a column.
type Rows<'r> = (u32, &'r [(u32, u32, u16)]);

/// A line table; it has columns if any row has.
fn lines(offset: u32, size: u32, files: &[Rows<'_>]) -> Vec<u8> {
    let columns = files.iter().any(|file| file.1.iter().any(|row| row.2 > 0));
    let mut body = words(&[offset, 1 | u32::from(columns) << 16, size]);
    for (file, rows) in files {
        let count = rows.len() as u32;
        let size = 12 + count * if columns { 12 } else { 8 };
        body.extend(words(&[*file, count, size]));
        for row in *rows {
            body.extend(words(&[row.0, row.1 | 1 << 31]));
        }
        for row in rows.iter().filter(|_| columns) {
            body.extend(shorts(&[row.2, 0]));
        }
    }
    subsection(LINES, body)
}

/// A module: the runs of code that it has in sections, its symbols, its C13 bytes.
struct Module {
    name: &'static str,
    code: Vec<(u16, u32, u32)>,
    symbols: Vec<u8>,
    c13: Vec<u8>,
}

impl Module {
    fn new(code: &[(u16, u32, u32)], c13: &[Vec<u8>]) -> Self {
        let files = subsection(CHECKSUMS, words(&[1, 0, 7, 0]));
        Self {
            name: "main.obj",
            code: code.to_vec(),
            symbols: words(&[4]),
            c13: [files, c13.concat()].concat(),
        }
    }

    /// Adds a record with the records in its scope.
    fn scope(mut self, record: Vec<u8>, inside: &[Vec<u8>]) -> Self {
        let at = self.symbols.len();
        self.symbols.extend(record);
        self.symbols.extend(inside.concat());
        let end = self.symbols.len() as u32;
        put(&mut self.symbols, at + 8, end);
        self.record(self::record(S_END, &[]))
    }

    fn record(mut self, record: Vec<u8>) -> Self {
        self.symbols.extend(record);
        self
    }
}

#[derive(Default)]
struct Made {
    modules: Vec<Module>,
    /// Section, offset and name, by address.
    publics: Vec<(u16, u32, &'static str)>,
    /// Records of classes and of functions, numbered from 0x1000.
    types: Vec<Vec<u8>>,
    ids: Vec<Vec<u8>>,
}

fn made(modules: Vec<Module>, ids: Vec<Vec<u8>>) -> Made {
    Made {
        modules,
        ids,
        ..Made::default()
    }
}

const PDB: usize = 1;
const TPI: usize = 2;
const DBI: usize = 3;
const IPI: usize = 4;
const SECTIONS: usize = 5;
const PUBLICS: usize = 7;

impl Made {
    fn streams(&self) -> Vec<Option<Vec<u8>>> {
        let names = b"/other\0/names\0/names\0";
        let info = [
            words(&[20_000_404, 0, 1, 0, 0, 0, 0, names.len() as u32]),
            names.to_vec(),
            words(&[3, 4, 1, 7, 0, 0, 5, 7, 8, 14, 5, 0]),
        ];
        let (mut list, mut contributions) = (Vec::new(), words(&[0xF12E_BA2D]));
        let mut streams = Vec::new();
        for (number, module) in (0_u32..).zip(&self.modules) {
            let (symbols, c13) = (module.symbols.len() as u32, module.c13.len() as u32);
            let stream = (9 + number) << 16;
            let mut fixed = vec![0; 8];
            fixed.extend([stream, symbols, 0, c13, 0, 0, 0, 0]);
            let text = [module.name.as_bytes(), b"\0x\0"].concat();
            list.extend(padded([words(&fixed), text].concat()));
            streams.push(Some([&module.symbols[..], &module.c13].concat()));
            for &(section, offset, size) in &module.code {
                contributions.extend(words(&[section.into(), offset, size, 0]));
                contributions.extend(words(&[number, 0, 0]));
            }
        }
        let mut records = Vec::new();
        let mut map = Vec::new();
        for &(section, offset, name) in &self.publics {
            map.extend(words(&[records.len() as u32]));
            let fields = [&words(&[0, offset])[..], &section.to_le_bytes()].concat();
            records.extend(record(S_PUB32, &[&fields, name.as_bytes(), &[0]]));
        }
        let publics = [words(&[0, map.len() as u32, 0, 0, 0, 0, 0]), map].concat();
        let mut debug_header = [u16::MAX; 11];
        debug_header[5] = 5;
        let (list_len, code_len) = (list.len() as u32, contributions.len() as u32);
        let head = [u32::MAX, 19_990_903, 1, 0, PUBLICS as u32, 6, list_len];
        let tail = [code_len, 0, 0, 0, 0, 22, 0, 0, 0];
        let debug_header = shorts(&debug_header);
        let header = [words(&head), words(&tail)].concat();
        let dbi = [header, list, contributions, debug_header];
        let section = |rva: u32| [&[0; 8][..], &words(&[0x1000, rva]), &[0; 24]].concat();
        let sections = [section(0x1000), section(0x2000)].concat();
        let numbered = |records: &[Vec<u8>]| {
            let (end, data) = (0x1000 + records.len() as u32, records.concat());
            // Their index offsets are none, in a stream that is another's.
            let mut header = words(&[20_040_203, 56, 0x1000, end, data.len() as u32, 5]);
            header.resize(56, 0);
            [header, data].concat()
        };
        let names = words(&[0xEFFE_EFFE, 1, NAMES.len() as u32]);
        let mut all = vec![
            None,
            Some(info.concat()),
            Some(numbered(&self.types)),
            Some(dbi.concat()),
            Some(numbered(&self.ids)),
            Some(sections),
            Some(records),
            Some(publics),
            Some([&names, NAMES].concat()),
        ];
        all.extend(streams);
        all
    }

    fn file(&self) -> Vec<u8> {
        put_together(&self.streams(), 512, 1)
    }
}

/// The frames at an address, innermost first: their names, files, lines and columns.
fn answer(pdb: &WindowsPdb<'_>, rva: u32) -> String {
    let mut frames = Frames::new();
    pdb.find(rva, &mut frames).unwrap();
    let frame = |frame: &chronosym_pdb::windows::Frame| {
        let name = frame.name.as_ref().map(ToString::to_string);
        let line = frame.line.map(|line| format!(":{line}"));
        let column = frame.column.map(|column| format!(":{column}"));
        let file = frame.file.as_ref().map(|file| format!(" {file}"));
        [name, file, line, column].into_iter().flatten().collect()
    };
    let frames: Vec<String> = frames.iter().map(frame).collect();
    frames.join(" < ")
}

fn assert_answers(made: &Made, answers: &[(u32, &str)]) {
    let file = made.file();
    let pdb = WindowsPdb::open(&file).unwrap();
    for &(rva, expect) in answers {
        assert_eq!(answer(&pdb, rva), expect, "{rva:#x}");
    }
}

#[test]
fn publics_end_where_another_symbol_starts() {
    let code = [(1, 0, 0x40), (1, 0x40, 0x20), (1, 0x80, 0x20)];
    let main = Module::new(&code, &[])
        .scope(procedure(0x10, 8, "first"), &[])
        .scope(procedure(0x30, 8, "second"), &[]);
    let mut other = Module::new(&[(2, 0, 0x20), (2, 0x30, 0x10), (2, 0x40, 0x10)], &[]);
    other.name = "a.obj";
    let made = Made {
        modules: vec![main, other],
        publics: vec![
            // Its name is long enough to make the next record span two pages.
            (1, 0, "x".repeat(489).leak()),
            (1, 0x10, "?first"),
            (1, 0x28, "gap"),
            (1, 0x28, "again"),
            (2, 0x10, "middle"),
            (2, 0x40, "last"),
        ],
        ..Made::default()
    };
    // With 512-byte pages out of order: records span two pages that are not adjacent.
    let file = put_together(&made.streams(), 512, 7);
    let pdb = WindowsPdb::open(&file).unwrap();
    for (rva, name, len, covers) in [
        (0x1004, made.publics[0].2, 0x10, true),
        // A procedure that starts there states its length.
        (0x1012, "?first", 8, true),
        (0x101A, "?first", 8, false),
        // The first of several at one address; one after the preceding procedure.
        (0x102A, "gap", 0x18, true),
        // Up to the following procedure, and no further than its own contribution.
        (0x103A, "gap", 8, false),
        (0x1090, "gap", 8, false),
        (0x2012, "middle", 0x10, true),
        (0x2025, "middle", 0x10, false),
        (0x2035, "middle", 0x20, false),
        (0x2041, "last", 0x10, true),
        (0x2055, "last", 0x10, false),
    ] {
        let found = pdb.public_symbol(rva).unwrap().unwrap();
        let found = (&*found.name, found.len, found.covers);
        assert_eq!(found, (name, len, covers), "{rva:#x}");
    }
    assert_eq!(pdb.public_symbol(0x2000).unwrap(), None);
    assert_eq!(answer(&pdb, 0x1032), "second");
    assert_eq!(answer(&pdb, 0x1024), "", "between two procedures");
    assert_eq!(answer(&pdb, 0x2012), "middle");
}

#[test]
fn line_tables_of_several_functions_and_files() {
    let tables = [
        lines(0x08, 4, &[(A, &[(0, 1, 0)])]),
        // Within a procedure that has a table of its own.
        lines(0x18, 4, &[(A, &[(0, 77, 0)])]),
        // Two files: of all rows the last one before the address is used.
        lines(0x10, 16, &[(B, &[(8, 5, 7)]), (A, &[(0, 3, 0), (4, 0, 0)])]),
        // Two tables for one address, as for folded functions.
        lines(0x20, 0x28, &[(A, &[(0, 10, 0), (0x10, 11, 0)])]),
        lines(0x20, 0x28, &[(B, &[(0, 90, 0), (0x10, 91, 0)])]),
    ];
    let main = Module::new(&[(1, 0, 0x64)], &tables)
        .scope(procedure(0x10, 0x0C, "own"), &[])
        .scope(procedure(0x20, 0x10, "folded"), &[])
        .scope(procedure(0x20, 0x10, "other"), &[])
        .scope(procedure(0x30, 0x10, "shares"), &[])
        .scope(procedure(0x40, 0x08, "has no row"), &[])
        .scope(procedure(0x48, 0x08, "behind the table"), &[])
        .scope(procedure(0x60, 0x08, "longer than its module"), &[]);
    let made = Made {
        modules: vec![main],
        publics: vec![(1, 0x58, "public")],
        ..Made::default()
    };
    assert_answers(
        &made,
        &[
            (0x1000, ""),
            (0x1010, "own a.cpp:3"),
            (0x1014, "own a.cpp"),
            (0x101A, "own b.cpp:5:7"),
            (0x101D, ""),
            (0x1022, "folded a.cpp:10"),
            (0x1032, "shares a.cpp:11"),
            (0x1041, "has no row"),
            (0x1049, "behind the table"),
            (0x1050, ""),
            (0x1059, "public"),
            (0x1062, "longer than its module"),
            (0x1065, ""),
        ],
    );
}

/// Contents of a symbol stream other than procedures in succession.
#[test]
fn records_other_than_plain_procedures() {
    let thunk = record(
        S_THUNK32,
        &[&words(&[0, 0, 0, 0x50]), &shorts(&[1, 8]), b"\0thunk\0"],
    );
    let leads = |to: u32, at: u32| {
        let fields = [shorts(&[0, 8]), words(&[at, to, 0x1_0001])];
        record(S_TRAMPOLINE, &[&fields.concat()])
    };
    let nested = [procedure(0x18, 4, "nested"), record(S_END, &[])].concat();
    let main = Module::new(&[(1, 0, 0x400)], &[])
        .scope(procedure(0, 8, "outer"), &[])
        .scope(procedure(0x10, 0x10, "around"), &[nested])
        .scope(procedure(0x20, 0, "empty"), &[])
        // A kind beyond all kinds of code records.
        .record(record(0x1180, &[&[0; 8]]))
        .scope(thunk, &[]);
    // Ends that lead back, to an end and to the record itself: neither is followed.
    let (back, own) = (main.symbols.len() as u32 - 4, main.symbols.len() as u32);
    let mut main = main.record(procedure(0x60, 8, "leads back"));
    put(&mut main.symbols, own as usize + 8, back);
    let own = main.symbols.len() as u32;
    let mut main = main.record(procedure(0x68, 8, "leads to itself"));
    put(&mut main.symbols, own as usize + 8, own);
    // The field of a trampoline's record at the offset at which others have an end holds its own
    // offset.
    let behind = main.symbols.len() + leads(0, 0).len() + procedure(0, 0, "x").len();
    let main = main
        .record(leads(0x10, behind as u32))
        .scope(procedure(0x70, 8, "x"), &[])
        .scope(procedure(0x78, 8, "y"), &[]);
    let made = made(vec![main], Vec::new());
    let file = made.file();
    let pdb = WindowsPdb::open(&file).unwrap();
    let functions = pdb.functions().map(|function| {
        let function = function.unwrap();
        (function.rva - 0x1000, function.name.unwrap().base)
    });
    let expect = [
        (0, "outer"),
        (0x10, "around"),
        (0x50, "thunk"),
        (0x60, "leads back"),
        (0x68, "leads to itself"),
        (0x70, "x"),
        (0x78, "y"),
        (behind as u32, "around"),
    ];
    let expect = expect.map(|(rva, name)| (rva, name.to_owned()));
    assert_eq!(functions.collect::<Vec<_>>(), expect);
    assert_eq!(answer(&pdb, 0x1052), "thunk");
    let main = &made.modules[0];
    let size = main.symbols.len() + main.c13.len();
    assert_eq!(pdb.bytes_read(), size as u64);
}

fn function_id(scope: u32, name: &str) -> Vec<u8> {
    record(0x1601, &[&words(&[scope, 0]), name.as_bytes(), &[0]])
}

fn functions(names: &[&str]) -> Vec<Vec<u8>> {
    names.iter().map(|name| function_id(0, name)).collect()
}

fn member_id(class: u32, name: &str) -> Vec<u8> {
    record(0x1602, &[&words(&[class, 0]), name.as_bytes(), &[0]])
}

fn string_id(before: u32, text: &str) -> Vec<u8> {
    record(0x1605, &[&words(&[before]), text.as_bytes(), &[0]])
}

fn list_id(ids: &[u32]) -> Vec<u8> {
    record(0x1604, &[&words(&[ids.len() as u32]), &words(ids)])
}

/// A class and its like: fields of fixed size, numbers, the name.
fn class(kind: u16, fixed: usize, numbers: &[u8], name: &str) -> Vec<u8> {
    record(kind, &[&vec![0; fixed], numbers, name.as_bytes(), &[0]])
}

/// Annotations: 16 bytes of code from the start.
const ALL: &[u8] = &[12, 0x10, 0];

/// A module with a procedure of 16 bytes for each inlinee, all of whose code is inlined from there.
fn inlining(inlinees: &[u32], c13: &[Vec<u8>]) -> Module {
    let end = record(S_INLINESITE_END, &[]);
    let of = |module: Module, (number, &id): (u32, &u32)| {
        let p = procedure(0x10 * number, 0x10, "p");
        module.scope(p, &[site(id, ALL), end.clone()])
    };
    let module = Module::new(&[(1, 0, 0x1000)], c13);
    (0..).zip(inlinees).fold(module, of)
}

/// Compares the names of [inlined](inlining) functions with these.
fn assert_inlined(made: &Made, names: &str) {
    let answers: Vec<_> = names.split(',').map(|name| format!("{name} < p")).collect();
    let answers = answers.iter().map(|answer| &**answer);
    let answers: Vec<_> = (0x1008..).step_by(0x10).zip(answers).collect();
    assert_answers(made, &answers);
}

#[test]
fn names_of_inlined_functions() {
    let mut made = Made {
        types: vec![
            class(0x1504, 16, &[4, 0], "Class"),
            class(0x1506, 8, &[4, 0x80, 0, 0, 1, 0], "Union"),
            class(0x1507, 12, &[], "Enum"),
            class(0x1608, 16, &[0, 0x80, 1, 2, 0x80, 0, 1], "Class2"),
            class(
                0x160A,
                8,
                &[&[9, 0x80][..], &[1; 8], &[2, 0]].concat(),
                "Union2",
            ),
            class(0x1503, 8, &[4, 0], "Array"),
        ],
        ids: vec![
            string_id(0, "ns"),
            function_id(0x1000, "f"),
            list_id(&[0x1000, 0x1000]),
            string_id(0x1002, "::tail"),
            function_id(0x1003, "g"),
            function_id(0, "free"),
        ],
        ..Made::default()
    };
    made.ids
        .extend((0x1000..0x1006).map(|class| member_id(class, "m")));
    let ids: Vec<_> = (0x1001..0x100C).collect();
    let made = Made {
        modules: vec![inlining(&ids, &[])],
        ..made
    };
    let names = "ns::f,,,nsns::tail::g,free,Class::m,Union::m,Enum::m,Class2::m,Union2::m,m";
    assert_inlined(&made, names);
}

/// Names may name each other, and all functions at one address may have a long one.
#[test]
fn names_do_not_grow_without_end() {
    let long = "x".repeat(40_000);
    let deep = [(); 8].map(|()| site(0x1002, ALL));
    let main = Module::new(&[(1, 0, 0x10)], &[]).scope(procedure(0, 0x10, "p"), &deep);
    let made = Made {
        modules: vec![main],
        ids: vec![
            string_id(0, &long),
            list_id(&[0x1000; 4]),
            function_id(0x1001, "f"),
        ],
        ..Made::default()
    };
    let file = made.file();
    let mut frames = Frames::new();
    WindowsPdb::open(&file)
        .unwrap()
        .find(0x1004, &mut frames)
        .unwrap();
    let names = frames.iter().map(|frame| frame.name.as_ref());
    let lens: Vec<_> = names
        .map(|name| name.map_or(0, |it| it.scope.len()))
        .collect();
    assert_eq!(lens, [80_000, 80_000, 80_000, 0, 0, 0, 0, 0, 0]);
}

/// The ids of functions from another module are numbered by who imports them, and named by who
/// exports them.
#[test]
fn inlined_functions_of_other_modules() {
    let imports = words(&[1, 1, 9, EXPORTER, 3, 7, 8, 9, EXPORTER, 1, 9]);
    let ids = [
        0x10_0002, 0x10_0000, 0x20_0000, 0, 0x10_0001, 0x10_0003, 0x30_0000,
    ];
    let ids = ids.map(|id| 1 << 31 | id);
    let main = inlining(&ids, &[subsection(IMPORTS, imports)]);
    let exporter = |pairs: &[u32]| {
        let mut module = Module::new(&[], &[subsection(EXPORTS, words(pairs))]);
        module.name = "Exporter.Obj";
        module
    };
    let first = exporter(&[13, 0x1002, 9, 0x1000, 7, 0x1001]);
    let made = made(
        vec![main, first, exporter(&[9, 0x1002])],
        functions(&["nine", "seven", "wrong"]),
    );
    assert_inlined(&made, "nine,seven,nine,,,,");
}

#[test]
fn where_inlined_code_comes_from() {
    let plain = [0, 0x1000, A, 20, 0x1001, B, 30];
    // With the files that the lines may be of, too.
    let extra = [1, 0x1002, B, 40, 2, A, B, 0x1003, A, 50, 0];
    let c13 = [&plain[..], &extra].map(|entries| subsection(INLINEES, words(entries)));
    // Ends of lines and columns, statements: passed over. Column 3, from offset 4 on, 8 bytes.
    let rich = [7, 1, 8, 1, 10, 0, 13, 1, 9, 3, 1, 4, 12, 8, 0];
    let end = || record(S_INLINESITE_END, &[]);
    let p = |at: u32| procedure(at, 0x10, "p");
    let mut main = Module::new(&[(1, 0, 0x100)], &c13)
        .scope(p(0), &[site(0x1000, &rich), end()])
        .scope(p(0x10), &[site(0x1003, ALL), end()]);
    // A procedure inside the scope has sites of its own. If its end is the record itself, it is
    // invalid, and the following records are read as if they were outside.
    for (at, has_end) in [(0x20, true), (0x30, false)] {
        let mut nested = procedure(0x80, 4, "nested");
        let inside = [site(0x1001, ALL), end()].concat();
        let begin = main.symbols.len() + p(at).len();
        let ends = begin + nested.len() + inside.len();
        put(&mut nested, 8, if has_end { ends } else { begin } as u32);
        let own = [record(S_END, &[]), site(0x1002, ALL), end()].concat();
        main = main.scope(p(at), &[nested, inside, own]);
    }
    let made = made(vec![main], functions(&["a", "b", "c", "d"]));
    assert_answers(
        &made,
        &[
            (0x1003, "p"),
            (0x1004, "a a.cpp:20:3 < p"),
            (0x100B, "a a.cpp:20:3 < p"),
            (0x100C, "p"),
            (0x1018, "d a.cpp:50 < p"),
            (0x1028, "c b.cpp:40 < p"),
            (0x1038, "b b.cpp:30 < p"),
        ],
    );
}

/// Chunks split off a procedure, which may precede it: its inline sites refer to them by number.
#[test]
fn separated_code() {
    let end = record(S_INLINESITE_END, &[]);
    // 4 bytes of the main code, 4 of the first piece from 2 on, the second piece. The third one is
    // in another section.
    let mut ways = vec![12, 4, 0, 2, 1, 12, 4, 2, 2, 2, 1, 0, 12, 8, 0];
    ways.extend([2, 3, 12, 8, 4]);
    let mut elsewhere = piece(0x40, 8, 0x40);
    put(&mut elsewhere, 4 + 24, 0x1_0002);
    let (p, q) = (site(0x1000, &ways), site(0x1001, &[2, 1, 12, 8, 0]));
    let main = Module::new(&[(1, 0, 0x100), (2, 0, 0x100)], &[])
        .scope(procedure(0x40, 16, "p"), &[p, end.clone()])
        .scope(procedure(0x50, 16, "q"), &[q, end.clone()])
        .scope(procedure(0x60, 0x10, "r"), &[])
        .scope(piece(0x90, 8, 0x50), &[])
        .scope(piece(0x80, 8, 0x40), &[])
        .scope(piece(0x10, 8, 0x40), &[])
        .scope(piece(0xA0, 8, 0x50), &[site(0x1000, ALL), end])
        .scope(piece(0xB0, 8, 0x58), &[])
        .scope(piece(0xC0, 8, 0x60), &[])
        .scope(piece(0xD0, 8, 0xC0), &[])
        .scope(elsewhere, &[]);
    let made = made(vec![main], functions(&["a", "b"]));
    assert_answers(
        &made,
        &[
            (0x1043, "a < p"),
            (0x1044, "p"),
            (0x1048, "p"),
            (0x2041, "p"),
            (0x1052, "q"),
            (0x1081, "p"),
            (0x1083, "a < p"),
            (0x1086, "p"),
            (0x1010, "a < p"),
            (0x1017, "a < p"),
            (0x1090, "b < q"),
            (0x10A0, "a < q"),
            (0x10C0, "r"),
        ],
    );
    let file = made.file();
    let pdb = WindowsPdb::open(&file).unwrap();
    // No procedure starts at the address that these state.
    for rva in [0x10B0, 0x10D0] {
        let found = pdb.find(rva, &mut Frames::new()).unwrap().unwrap();
        assert_eq!(found.name, None, "{rva:#x}");
    }
}

#[test]
fn managed_methods() {
    let rows: &[_] = &[(0, 3, 0), (4, 4, 9), (0x14, 5, 2)];
    let first = Module::new(&[(1, 0, 0x20)], &[lines(0, 0x30, &[(A, rows)])])
        .scope(method(0x0600_0003, 0, "C"), &[])
        .scope(method(0x0600_0001, 0x10, "A"), &[]);
    let mut native = procedure(0x70, 4, "native");
    put(&mut native, 4 + 24, 0x0600_0005);
    let second = Module::new(&[(1, 0x40, 0x40)], &[])
        .scope(method(0x0600_0002, 0x40, "B"), &[])
        .scope(method(0x0600_0004, 0x50, ""), &[])
        .scope(native, &[]);
    let made = made(vec![first, second], Vec::new());
    let file = made.file();
    let pdb = WindowsPdb::open(&file).unwrap();
    let names = (0..7).map(|row| pdb.managed_name(0x0600_0000 + row).unwrap());
    let names: Vec<_> = names.map(Option::unwrap_or_default).collect();
    assert_eq!(names, ["", "A", "B", "C", "", "", ""]);
    let line = |row: u32, il: u32| {
        let line = pdb.managed_line(0x0600_0000 + row, il).unwrap()?;
        assert_eq!(line.file.as_deref(), Some("a.cpp"));
        Some((line.line, line.column, line.il_offset))
    };
    assert_eq!(line(3, 3), Some((3, None, 0)));
    assert_eq!(line(3, 4), Some((4, Some(9), 4)));
    // The table is that of both; rows before the method are the other one's.
    assert_eq!(line(1, 3), None);
    assert_eq!(line(1, 9), Some((5, Some(2), 4)));
    assert_eq!((line(2, 0), line(6, 0)), (None, None));
}

/// A function with a line and another function inlined.
fn simple() -> Made {
    let c13 = [
        lines(0, 0x10, &[(A, &[(0, 7, 0)])]),
        subsection(INLINEES, words(&[0, 0x1000, B, 9])),
    ];
    made(vec![inlining(&[0x1000], &c13)], functions(&["f"]))
}

/// Compares the result, or an error's message, after the streams are changed.
fn assert_changed(change: impl FnOnce(&mut Vec<Vec<u8>>), expect: &str) {
    let streams = simple().streams().into_iter();
    let mut streams: Vec<_> = streams.map(Option::unwrap_or_default).collect();
    change(&mut streams);
    let streams: Vec<_> = streams.into_iter().map(Some).collect();
    let file = put_together(&streams, 4096, 1);
    match WindowsPdb::open(&file) {
        Ok(pdb) => {
            assert_eq!(answer(&pdb, 0x1000), expect);
            assert_eq!(answer(&pdb, u32::MAX), "");
            let types_only = pdb
                .limitations()
                .any(|limit| limit == Limitation::NoDebugInformation);
            assert_eq!(types_only, expect.is_empty());
        }
        Err(error) => assert_eq!(error.to_string(), expect),
    }
}

const SIMPLE: &str = "f b.cpp:9 < p a.cpp:7";

#[test]
fn headers_that_are_older_newer_or_cut_short() {
    for (stream, at, word, expect) in [
        (PDB, 0, 20_140_508, SIMPLE),
        (
            PDB,
            0,
            20_000_403,
            "PDB stream version 20000403 is not supported",
        ),
        (DBI, 4, 19_990_904, SIMPLE),
        (
            DBI,
            4,
            19_970_606,
            "DBI stream version 19970606 is not supported",
        ),
        (DBI, 0, 0, "DBI stream version 19990903 is not supported"),
        // Index offsets that are not there in full.
        (IPI, 44, 1 << 20, SIMPLE),
    ] {
        assert_changed(|streams| put(&mut streams[stream], at, word), expect);
    }
    for (stream, len, expect) in [
        (PDB, 28, "f:9 < p:7"),
        (
            TPI,
            55,
            "TPI stream is cut short: 56 bytes wanted at offset 0x0",
        ),
        (TPI, 0, SIMPLE),
        (DBI, 0, ""),
        (IPI, 0, " b.cpp:9 < p a.cpp:7"),
        (PUBLICS, 0, SIMPLE),
        // More sections than section numbers.
        (SECTIONS, 40 * 65_535, SIMPLE),
    ] {
        assert_changed(|streams| streams[stream].resize(len, 0), expect);
    }
}

#[test]
fn module_names_of_any_length() {
    for name in ["", "a", "ab", "abc", "abcd"] {
        let mut made = simple();
        let mut first = Module::new(&[], &[]);
        first.name = name;
        made.modules.insert(0, first);
        assert_answers(&made, &[(0x1000, SIMPLE)]);
    }
}

/// The original sections are used as soon as one of the two tables that describe the move exists.
#[test]
fn code_that_was_moved_one_way() {
    for (slot, rva, expect) in [(3, 0x5000, 0x3000), (4, 0x3000, 0x5000)] {
        let mut streams = simple().streams();
        let section = [&[0; 8][..], &words(&[0x1000, 0x3000]), &[0; 24]].concat();
        let pairs = match slot {
            3 => [0, 0, 0x5000, 0x3000],
            _ => [0, 0, 0x3000, 0x5000],
        };
        let next = streams.len() as u16;
        streams.extend([Some(section), Some(words(&pairs))]);
        let dbi = streams[DBI].as_mut().unwrap();
        let header = dbi.len() - 22;
        for (slot, number) in [(10, next), (slot, next + 1)] {
            dbi[header + 2 * slot..][..2].copy_from_slice(&number.to_le_bytes());
        }
        let file = put_together(&streams, 4096, 1);
        let pdb = WindowsPdb::open(&file).unwrap();
        let found = pdb.find(rva, &mut Frames::new()).unwrap().unwrap();
        assert_eq!(
            (found.rva, found.name.unwrap().base.as_str()),
            (expect, "p")
        );
    }
}
