use super::form_tests::{find_all, requests};
use super::target::file_name;
use super::*;

#[test]
fn addresses_are_found_in_text() {
    let text = b"at 0x7f00, [00007fcc`a43da4a7] in coreclr+0x1a2. (12345678901) \xff day 2026 0xyz";
    let found: Vec<(&str, Option<&str>, At<'_>)> = find_all(text)
        .iter()
        .map(|q| {
            let own = std::str::from_utf8(&text[q.range.clone()]).unwrap();
            (own, q.target.file, q.target.at)
        })
        .collect();
    assert_eq!(
        found,
        [
            ("0x7f00", None, At::Address(0x7f00)),
            ("00007fcc`a43da4a7", None, At::Address(0x7fcc_a43d_a4a7)),
            ("coreclr+0x1a2", Some("coreclr"), At::Rva(0x1a2)),
            ("12345678901", None, At::Address(0x123_4567_8901)),
        ]
    );
}

#[test]
fn forms_of_other_tools_are_known() {
    let replaced = |text: &str| {
        let mut out = text.to_owned();
        for found in find_all(text.as_bytes()).into_iter().rev() {
            let Found {
                range,
                target: Target { file, id, at, .. },
                ..
            } = found;
            let at = match at {
                At::Address(address) => format!("{address:x}"),
                At::Rva(rva) => format!("+{rva:x}"),
                At::FileOffset(offset) => format!("@{offset:x}"),
                At::Mapped { address, .. } => format!("mapped {address:x}"),
                At::Listed(index, rva) => format!("#{index} {rva:x}"),
                At::Symbol(symbol) => format!("{} {:x}", symbol.name, symbol.offset),
                At::Il(Method::Token(token), il) => format!("{token:x} {il:x}"),
                At::Il(Method::Named(name), il) => format!("{name} {il:x}"),
            };
            let named = [file, id].into_iter().flatten();
            let words: Vec<&str> = named.chain([&*at]).collect();
            out.replace_range(range, &format!("<{}>", words.join(" ")));
        }
        out
    };
    for (text, expected) in [
        // Oracle
        (
            "kgeasnmierr()+145    call     kgerinv()            7F2A3C ? 000000001 ?",
            "<kgeasnmierr 91>    call     kgerinv()            7F2A3C ? 000000001 ?",
        ),
        // glibc
        (
            "./prog(+0xbc90)[0x55d0c0]",
            "./prog(<./prog +bc90>)[0x55d0c0]",
        ),
        (
            "./prog(main+0x1a) [0x401136]",
            "./prog(main+0x1a) [<./prog 401136>]",
        ),
        // AddressSanitizer
        (
            "#1 0x55d0c0 (/srv/b/prog+0xbc90) (BuildId: ab)",
            "#1 0x55d0c0 (</srv/b/prog ab +bc90>) (BuildId: ab)",
        ),
        // HotSpot, Windows
        (
            "V  [libjvm.so+0x8d2f3c]  f+0x1c",
            "V  [<libjvm.so +8d2f3c>]  f+0x1c",
        ),
        (r"at C:\x\prog.exe+0x10", r"at <C:\x\prog.exe +10>"),
        // .NET
        (
            "   at N.T.M(Int32 x) in App.dll:token 0x6000001+0x1a",
            "   at N.T.M(Int32 x) in <App.dll 6000001 1a>",
        ),
        (
            "   at N.T.M(Int32 x) in /src/a.cs:line 7",
            "   at N.T.M(Int32 x) in /src/a.cs:line 7",
        ),
        (
            "  at N.T.M[T] (T x) [0x0001a] in <0123456789abcdef0123456789abcdef>:0 ",
            "  at N.T.M[T] (T x) [0x0001a] in <0123456789abcdef0123456789abcdef N.T.M[T] (T x) 1a> ",
        ),
        (
            "   at App!<BaseAddress>+0x1234\n   at N.T.M(Int32) + 0x23",
            "   at <App +1234>\n   at N.T.M(Int32) + 0x23",
        ),
        // perf script
        (
            "\t 55d0c0 main+0x1a (/srv/b/prog)\n",
            "\t </srv/b/prog 55d0c0> main+0x1a (/srv/b/prog)\n",
        ),
        (
            "prog 12 3.4: 5 cycles:  55d0c0 f(int, char)+0x1a (/srv/b/prog+0x10c0)",
            "prog 12 3.4: 5 cycles:  55d0c0 f(int, char)+0x1a (</srv/b/prog @10c0>)",
        ),
        // Not addresses of code, or not whole ones.
        (
            "lea rax,[rip+0x2f1a]; mov 0x11c1(%rip),%rax; 0x0 - <unknown>",
            "lea rax,[rip+0x2f1a]; mov 0x11c1(%rip),%rax; 0x0 - <unknown>",
        ),
        (
            "0x602000000014 is located 4 bytes inside of 16-byte region [0x602000000010,0x602000000020)",
            "0x602000000014 is located 4 bytes inside of 16-byte region [0x602000000010,0x602000000020)",
        ),
        (
            "  Location is global 'x' at 0x555556a4f6a8 (prog+0x14fb6a8)",
            "  Location is global 'x' at 0x555556a4f6a8 (prog+0x14fb6a8)",
        ),
        (
            "=>0x0c047fff8000: fa fa[fd]fd fa fa",
            "=>0x0c047fff8000: fa fa[fd]fd fa fa",
        ),
        (
            "  Mutex M0 (0x7fffffffe5c0) created at:",
            "  Mutex M0 (0x7fffffffe5c0) created at:",
        ),
        (
            "# A fatal error has been detected by the Java Runtime Environment:\n\
            #  SIGSEGV (0xb) at pc=0x7f48aacd2f94, pid=9345, tid=9346\n\
            XMM[0]=0x0 0x7f48ab03a720\nStack: [0x7f48a9ce0000,0x7f48a9de0000]\n\
            RDI=0x7f48a4 points into readable memory: 0x7f48ab0e3500\n\
            C  [libjli.so+0x4592]  JavaMain+0xd82\nInstructions: (pc=0x7f48aacd2f94)",
            "# A fatal error has been detected by the Java Runtime Environment:\n\
            #  SIGSEGV (0xb) at pc=<7f48aacd2f94>, pid=9345, tid=9346\n\
            XMM[0]=0x0 0x7f48ab03a720\nStack: [0x7f48a9ce0000,0x7f48a9de0000]\n\
            RDI=0x7f48a4 points into readable memory: 0x7f48ab0e3500\n\
            C  [<libjli.so +4592>]  JavaMain+0xd82\nInstructions: (pc=<7f48aacd2f94>)",
        ),
        (
            r#"{"type": "async", "is_active": true, "address": "0x566fa00"}"#,
            r#"{"type": "async", "is_active": true, "address": "0x566fa00"}"#,
        ),
        (
            "rip=0x7f001234, 0xbc90h 0x12zz",
            "rip=0x7f001234, 0xbc90h 0x12zz",
        ),
        (
            "ERROR_CODE: 0x1150, port 0x1150, ack 0x1150, ptr 0x1150; Instruction Pointer: 0x1150",
            "ERROR_CODE: 0x1150, port 0x1150, ack 0x1150, ptr 0x1150; Instruction Pointer: <1150>",
        ),
        ("no module (+0x10) x=+0x10", "no module (+0x10) x=+0x10"),
        ("0x10/srv/prog+0x1a", "<0x10/srv/prog +1a>"),
        (
            "in a.dll:token 0x7000001+0x1a] in <ab>:0",
            "in a.dll:token 0x7000001+0x1a] in <ab>:0",
        ),
    ] {
        assert_eq!(replaced(text), expected, "{text}");
    }
}

/// However truncated forms are combined, each match is a range of the text, and matches do not
/// overlap.
#[test]
fn forms_that_are_broken_off_are_left_alone() {
    let parts = [
        "at N.T.M (T x) [0x1",
        "] in <",
        "0123456789abcdef0123456789abcdef",
        ">:0",
        " in a.dll",
        ":token 0x6000001",
        "+0x1a",
        "App!",
        "<BaseAddress>",
        "(",
        ")",
        "[",
        "\u{e9}",
        "\n",
        " ",
        "0x7f00",
        "(+0x10)[",
        "/srv/prog",
        ": 55d0c0",
        " (BuildId: ",
        "C:\\x",
        "=",
        "+ ",
        "!",
        "\\",
    ];
    for a in parts {
        for b in parts {
            for c in parts {
                for text in [[a, b, c].concat(), [a, b, " ", c, a].concat()] {
                    let mut end = 0;
                    for Found { range, .. } in find_all(text.as_bytes()) {
                        assert!(end <= range.start && range.start < range.end, "{text:?}");
                        assert!(range.end <= text.len(), "{text:?}");
                        end = range.end;
                    }
                }
            }
        }
    }
}

/// Lines about the module `prog`, each with all of its addresses of code in it.
const LINES: &[&str] = &[
    "./prog(+0x11c1)[0x55d0c0a011c1]",
    "/srv/prog(f(int)+0x20) [0x55d0c0a011c1]",
    "#1 0x55d0c0a011c1 in f (/srv/prog+0x11c1) (BuildId: c0ffee)",
    "/srv/prog@0x11c1",
    "1# 0x11c1 in ./prog",
    "prog() [0x11c1]",
    "prog(0x11c1) [0x55d0c0a011c1]",
    "/srv/prog (f+0x20) [0x55d0c0a011c1]",
    "0x000055d0c0a011c1 prog!UnknownFunction(0x11c1)",
    "00007ff6c0a011c1 (prog!f+0x0000000000000020)",
    "at address 11c1 in module 'prog'",
    "#01 pc 00000000000011c1  /system/lib64/prog (f(int)+32) (BuildId: c0ffee)",
    "0|1|prog||||0x11c1",
    "#0  0x000055d0c0a011c1 n/a (prog + 0x11c1)",
    " 1  prog + 0x11c1",
    "=>0 0x00000001400011c1 f+0x20 in prog (0x000000000061fe30)",
    "f+0x1f/0x60 [prog]",
    "RIP: 0010:f+0x1f/0x60 [prog c0ffee]",
    "prog[1]: segfault at 0 ip 11c1 sp 7ffd error 4 in prog[11c1,55d0c0a00000+a000]",
    "Faulting module name: prog, version: 1\nFault offset: 0x11c1",
    "   at N.T.M() in prog:token 0x6000001+0x1a",
    "   at prog!<BaseAddress>+0x11c1",
    "00 00000000`0012f6b8 00000001`400011c1 prog!ns::f+0x20",
    "C  [prog+0x11c1]  f+0x20",
    "2   prog  \t0x55d0c0a011c1 0x55d0c0a00000 + 4545",
    "2   prog  \t0x55d0c0a011c1 f(int) + 32",
    "??? (in prog) load address 0x10a000000 + 0x11c1 [0x10a0011c1]",
    "1 [ra] 0x000055d0c0a011c1 <unknown> in prog",
    "frame #1: 0x000055d0c0a011c1 prog`f(int) + 32 at a.c:7",
    "f + 32 in section .text of /srv/prog",
    "#1  0x11c1 in ?? () from /srv/prog",
    " 1: 0x11c1 f(int) [prog]",
    "    55d0c0a011c1 f+0x20 (/srv/prog)",
    "    55d0c0a011c1 [unknown] (/srv/prog+0x11c1)",
    "{\"module\":\"prog\",\"module_offset\":\"0x11c1\"}",
    "{\"instruction_addr\":\"0x2011c1\",\"image_addr\":\"0x200000\",\"package\":\"/srv/prog\"}",
];

/// Every address of a line is one of the module that the line names, whatever is before and after
/// the line.
#[test]
fn lines_name_the_module_of_each_address() {
    let others = [
        "",
        "#1 0x99 in g (/srv/other+0x99)\n",
        "x=0x1234 1169\n",
        "\x1b[1m",
    ];
    for line in LINES {
        for before in others {
            for after in ["", "\r\n", "\n7: 0x77 h() [other]\n"] {
                let text = format!("{before}{line}{after}");
                let own = before.len()..before.len() + line.len();
                let scan = scan(text.as_bytes());
                let found = scan
                    .found
                    .iter()
                    .filter(|found| own.contains(&found.range.start));
                let files: Vec<&str> = found
                    .map(|f| file_name(f.target.file.unwrap_or("?")))
                    .collect();
                assert!(!files.is_empty(), "{text:?}");
                assert!(
                    files.iter().all(|file| *file == "prog"),
                    "{text:?}: {files:?}"
                );
            }
        }
    }
}

/// A line that is truncated or has one changed byte is read without panic, and each match is a
/// range of it.
#[test]
fn damaged_lines_are_read() {
    for line in LINES {
        for end in 0..line.len() {
            for byte in [b'(', b'0', b'"', 0xff] {
                let mut bytes = line.as_bytes()[..end].to_vec();
                bytes.push(byte);
                bytes.extend(&line.as_bytes()[end + 1..]);
                for text in [&bytes[..=end], &bytes] {
                    for found in scan(text).found {
                        assert!(std::str::from_utf8(&text[found.range]).is_ok(), "{line}");
                    }
                }
            }
        }
    }
}

#[test]
fn an_escape_that_starts_no_sequence_is_passed_over() {
    for text in ["\x1b", "\x1b\x1bx", "a \x1b\u{e9} 0x10", "\x1b[\x1b"] {
        scan(text.as_bytes());
    }
}

/// Lines with many frames take time linear in their length: steps of matching are counted, and the
/// text examined around a number is limited.
#[test]
fn long_lines_take_steps_in_proportion() {
    let steps = |text: &str| read(START, text.as_bytes(), false).steps.max(1);
    for part in LINES.iter().step_by(2).chain(&[
        "(a+0x1 ",
        "0x11 f(x) + 32 ",
        "f(in a) ",
        "x!y ",
        "#0 pc 1 a ",
        "a b c (inlined ",
        "\x1b[1m 0x11 ",
        "((((0x11",
        "##### 12345678 ",
    ]) {
        let line = |times| part.replace('\n', " ").repeat(times);
        let (short, long) = (steps(&line(120)), steps(&line(480)));
        assert!(long <= short.saturating_mul(6), "{part:?}: {short}, {long}");
    }
}

/// The steps that a line may take suffice for names of thousands of characters, and are few enough
/// for lines of megabytes: fields of any text are not tried again where their end is nowhere.
#[test]
fn steps_are_few() {
    let name = "std::map<int, Foo<char> >::operator()(int) const ".repeat(80);
    for line in [
        format!(" 7: 0x11c1 {name} [/srv/prog]"),
        format!("/srv/prog({name}+0x20) [0x11c1]"),
        format!("    #7 0x11c1 in {name} (/srv/prog+0x11c1)"),
    ] {
        let sink = read(START, line.as_bytes(), false);
        assert!(!sink.found.is_empty(), "{line}");
        assert!(sink.steps < 12 * line.len(), "{line}: {}", sink.steps);
    }
    let text = "f+0x10(x) [x] in ".repeat(1000);
    for row in super::forms::rows() {
        let mut left = 1 << 30;
        assert!(row.pattern.find(&text, 0, &mut left).is_none());
        let steps = (1 << 30) - left;
        assert!(steps < 8 * text.len(), "{row:?}: {steps}");
    }
    // It names a module further on than the steps reach.
    let text = format!("0x11c1 {} (in other) ", "x+7 (app) ".repeat(1000));
    assert_eq!(requests(&text), []);
}

/// ABRT's frames have the build ID and a decimal offset.
#[test]
fn objects_of_abrt_are_read() {
    let text = br#"{"frames":[{"address":94354890,"build_id":"c0ffee","build_id_offset":4545}]}"#;
    let scan = scan(text);
    let [found] = &scan.found[..] else {
        panic!("{:?}", scan.found)
    };
    assert_eq!(
        (found.target.at, found.target.id),
        (At::Rva(0x11c1), Some("c0ffee"))
    );
    assert_eq!(found.form, Form::JsonValue);
}

/// MongoDB's hexadecimal numbers have no prefix. Older versions omit the address of the process.
#[test]
fn objects_of_mongodb_are_read() {
    let images = r#"{"somap":[{"b":"55D0C0A00000","elfType":3,"buildId":"C5BCD4F5CEDD21CC91EAEB9955960AC130817533"},
        {"b":"7F12A4E00000","path":"/lib/libx.so","elfType":3,"buildId":"FB561FDB8ED8972A5FFF6D6DF3FA54ED9074C30E"}]}"#;
    let whole = |frame: &str| format!("{frame}\n{images}\n");
    for (frame, file) in [
        (
            r#"{"a":"55D0C0A011C1","b":"55D0C0A00000","o":"11C1","s":"f","s+":"8"}"#,
            None,
        ),
        (r#"{"b":"7F12A4E00000","o":"11C1"}"#, Some("/lib/libx.so")),
    ] {
        let text = whole(frame);
        let scan = scan(text.as_bytes());
        let mut target = scan.found.first().expect(frame).target;
        let (image, _) = scan.images.complete(&mut target).expect(frame);
        assert_eq!(target.at, At::Rva(0x11c1), "{frame}");
        assert_eq!((!image.path.is_empty()).then_some(&*image.path), file);
        assert_eq!(target.id, image.id.as_deref());
    }
    for other in [
        r#"{"a":"55D0C0A011C1","b":"55D0C0A00000","o":"11C2"}"#,
        r#"{"a":"55D0C0A011C1","b":"blue","o":"11C2"}"#,
        r#"{"b":"1","o":2}"#,
    ] {
        assert_eq!(requests(&whole(other)), [], "{other}");
    }
}

/// Lines may come one by one: a module stated before, and the kind of log, apply to those that follow.
#[test]
fn lines_before_a_text_apply_to_it() {
    for (before, line, expected) in [
        (
            "# A fatal error has been detected by the Java Runtime Environment:\n",
            "R8=0x00000000000011c1 0x11c1",
            None,
        ),
        (
            "Faulting module name: prog.exe, version: 1\n",
            "Fault offset: 0x11c1",
            Some("prog.exe"),
        ),
        (
            "Sig[3].Name=Fault Module Name\nSig[3].Value=prog.exe\nSig[6].Name=Exception Offset\n",
            "Sig[6].Value=000011c1",
            Some("prog.exe"),
        ),
    ] {
        let mut context = START.clone();
        for line in before.lines() {
            context = scan_after(&context, line.as_bytes()).context;
        }
        let scan = scan_after(&context, line.as_bytes());
        let files: Vec<_> = scan.found.iter().map(|found| found.target.file).collect();
        assert_eq!(files, Vec::from_iter(expected.map(Some)), "{line}");
    }
}

/// An address of a process under Valgrind is never one in the file, also if the line has no module.
#[test]
fn addresses_under_valgrind_are_of_the_process() {
    for text in ["==7==    by 0x11c1: main (a.c:12)", "<ip>0x11c1</ip>"] {
        let (address, start, len) = (0x11c1, 0x11c1, 0);
        let of_process = At::Mapped {
            address,
            start,
            len,
        };
        assert_eq!(requests(text), [(None, of_process)], "{text}");
    }
}
