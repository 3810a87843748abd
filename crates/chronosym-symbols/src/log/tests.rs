use super::target::file_name;
use super::*;

/// Returns all matches without alternatives.
fn find_all(text: &[u8]) -> Vec<Found<'_>> {
    let mut found = scan(text).found;
    found.retain(|found| !found.is_alternative);
    found.sort_by_key(|found| found.range.start);
    found
}

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

/// Returns the requests of a text: module, kind and number.
fn requests(text: &str) -> Vec<(Option<&str>, At<'_>)> {
    let found = find_all(text.as_bytes()).into_iter();
    let targets = found.map(|found| found.target);
    targets.map(|target| (target.file, target.at)).collect()
}

/// One line of each form, about a module `prog` and the address 0x11c1.
#[test]
fn addresses_are_of_the_module_that_the_line_names() {
    let rva = At::Rva(0x11c1);
    let address = At::Address(0x11c1);
    let mapped = At::Mapped {
        address: 0x11c1,
        start: 0x1000,
        len: 0xa000,
    };
    // Never an address in the file.
    let of_process = At::Mapped {
        address: 0x11c1,
        start: 0x11c1,
        len: 0,
    };
    let symbol = |name, offset| {
        let size = None;
        At::Symbol(Symbol { name, offset, size })
    };
    for (text, module, at) in [
        (
            "      #01 pc 00000000000011c1  /system/lib64/prog (f(int)+32) (BuildId: c0ffee)",
            "/system/lib64/prog",
            address,
        ),
        ("mono() [0x11c1]", "mono", address),
        ("./prog[0x11c1]", "./prog", address),
        (
            "postgres: user db [local] SELECT(+0x11c1)[0x55d0c0a011c1]",
            "postgres",
            rva,
        ),
        (
            "\tpostgres: user db 10.0.0.1(5432) idle(f+0x20) [0x11c1]",
            "postgres",
            address,
        ),
        ("fffffffffbc2f7d0 prog:f+20 ()", "prog", symbol("f", 0x20)),
        (
            "    Object \"./prog\", at 0x11c1, in wrk(int)",
            "./prog",
            address,
        ),
        ("0x11c1 <f+32> (/srv/prog)", "/srv/prog", address),
        ("0x00000000000011c1 (prog) WinMain", "prog", address),
        (
            "  * frame #0: 0x00000000000011c1 prog`f(n=4545) at a.c:6:10",
            "prog",
            address,
        ),
        (
            "      Address: prog[0x00000000000011c1] (prog.PT_LOAD[1]..text + 32)",
            "prog",
            address,
        ),
        (
            "00000000`000011c1 488b05c12a0000  mov     rax,qword ptr [prog!g_x (00000000`00003c89)]",
            "prog",
            address,
        ),
        (
            "        ExceptionAddress: prog.00000000000011C1",
            "prog",
            address,
        ),
        (
            "0xffffff81f2c8b9d0 : 0x00000000000011c1 prog : _f + 0x20",
            "prog",
            address,
        ),
        ("f() at prog:g+0x20", "prog", symbol("g", 0x20)),
        (
            "Exception thrown at 0x00000000000011C1 in prog.exe: 0xC0000005: Access violation.",
            "prog.exe",
            address,
        ),
        (
            "Unhandled exception at 0x000011C1 (prog.dll) in app.exe: 0xC0000005: Access violation.",
            "prog.dll",
            address,
        ),
        (
            "app.exe caused an Access Violation at location 000011C1 in module prog.exe Reading from location 00000099.",
            "prog.exe",
            address,
        ),
        (
            "000011C1 (prog): (filename not available): wrk",
            "prog",
            address,
        ),
        (
            "Faulting application a.exe, version 1.0, faulting module prog.dll, version 0.0.0.0, fault address 0x000011c1.",
            "prog.dll",
            rva,
        ),
        (
            "[  1] 0x00000000000011c1                    /srv/prog+00004545 _f+00000032",
            "/srv/prog",
            address,
        ),
        (
            "    at 1   prog.kexe                 0x11c1 kfun:#main(){} + 4545 (/src/a.kt:6:5)",
            "prog.kexe",
            address,
        ),
        (
            "cpu2:4711)0x43812345678:[0x11c1]f@prog#1.0.0.0+0x20 stack: 0x99, 0x43812345678",
            "prog",
            address,
        ),
        (
            "=========     Host Frame:/srv/prog [0x11c1]",
            "/srv/prog",
            rva,
        ),
        (
            "0 [inlined] 0x00000000000011c1 level1() in prog at /src/a.swift:5:15",
            "prog",
            address,
        ),
        (
            " fffffd7fff19b25a prog`f (1, 6) + a",
            "prog",
            At::Address(0xffff_fd7f_ff19_b25a),
        ),
        ("  b'f+0x20 [prog]'", "prog", symbol("f", 0x20)),
        ("        f+32 (/srv/prog)", "/srv/prog", symbol("f", 0x20)),
        (
            "ffffff000f5a4d10 prog`f+0x20(ffffff01, 11c1)",
            "prog",
            symbol("f", 0x20),
        ),
        (
            r#""0","prog.exe","prog.exe + 0x11c1","0x7ff6c0a011c1","C:\x\prog.exe""#,
            "prog.exe",
            rva,
        ),
        (
            r#""1","prog.exe","wrk + 0x20","0x7ff6c0a011c1","C:\x\prog.exe""#,
            "prog.exe",
            symbol("wrk", 0x20),
        ),
        (
            "vmx SymBacktrace[0] 00007ffe rip=000055d0c0a011c1 in function (null) in object /srv/prog loaded at 000055d0c0a00000",
            "/srv/prog",
            rva,
        ),
        (
            r#"{"frameAddress":"0x55d0c0a011c1","machoFile":"prog","machoLoadAddress":"0x55d0c0a00000"}"#,
            "prog",
            rva,
        ),
        ("prog(0x11c1) [0x7f12a40011c1]", "prog", rva),
        (
            "/srv/prog *:6379(+0x11c1)[0x55d0c0a011c1]",
            "/srv/prog",
            rva,
        ),
        (
            "/srv/prog 0.0.0.0:6379(+0x11c1)[0x55d0c0a011c1]",
            "/srv/prog",
            rva,
        ),
        ("/srv/prog *:6379(f+0x20)[0x11c1]", "/srv/prog", address),
        (
            "frame #1: <unknown function> + 0x11c1 (0x55d0c0a011c1 in /srv/prog)",
            "/srv/prog",
            rva,
        ),
        (
            "frame #2: f(int, char) + 0x20 (0x11c1 in /srv/prog)",
            "/srv/prog",
            address,
        ),
        (
            " 0x55d0c0a011c1 : 0x55d0c0a011c1 [/srv/prog+0x11c1/0x4000]",
            "/srv/prog",
            rva,
        ),
        ("   #1    0x000055d0c0a011c1 in <prog>+0x11c1", "prog", rva),
        (
            "#01 pc 00000000000011c1 /lib/prog(f+32)(c0ffee)",
            "/lib/prog",
            address,
        ),
        (
            "#01 pc 00000000000011c1 /lib/prog(c0ffee)",
            "/lib/prog",
            address,
        ),
        ("    libwork.so`0x11c1", "libwork.so", address),
        ("    prog`f(int)+0x20", "prog", symbol("f(int)", 0x20)),
        (
            "prog 12 3.4:  1 cycles:  11c1 f(int, char)+0x1a (/srv/prog)",
            "/srv/prog",
            address,
        ),
        (
            "(EE) 1: /usr/lib/prog (f+0x20) [0x11c1]",
            "/usr/lib/prog",
            address,
        ),
        (
            "(EE) 1: /usr/lib/prog (?+0x99) [0x11c1]",
            "/usr/lib/prog",
            address,
        ),
        (
            "0x00007ff6c0a011c1 prog!UnknownFunction(0x11c1)",
            "prog",
            rva,
        ),
        ("0x11c1 libplug.so!f(int) [/b.cpp:7]", "libplug.so", address),
        ("#0 0x11c1 in f (base.apk!libc.so+0x11c1)", "libc.so", rva),
        (
            "Address: 11c1 (prog!f+0x0000000000000020)",
            "prog",
            symbol("f", 0x20),
        ),
        ("prog!f+20", "prog", symbol("f", 0x20)),
        ("SYMBOL_NAME:  prog!f+20", "prog", symbol("f", 0x20)),
        (
            "at address 000011c1 in module 'prog'. Read of address 00001185.",
            "prog",
            address,
        ),
        (
            "Fault address:  000011c1 01:00000185 C:\\x\\prog.exe",
            "C:\\x\\prog.exe",
            address,
        ),
        (
            "  1 0x00000140001185 f+0x20(n=0x11c1) [Z:\\a.cpp:7] in prog (0x61fe90)",
            "prog",
            symbol("f", 0x20),
        ),
        (
            "    #00 pc 000011c1  /data/app/base.apk!prog (offset 0x1000)",
            "prog",
            address,
        ),
        ("#0  0x000055d0c0a011c1 n/a (prog + 0x11c1)", "prog", rva),
        (" 1  prog + 0x11c1", "prog", rva),
        ("0|1|prog||||0x11c1", "prog", rva),
        (
            "2   prog  \t0x55d0c0a011c1 0x55d0c0a00000 + 4545",
            "prog",
            rva,
        ),
        (
            "2   My Program  0x55d0c0a011c1 0x55d0c0a00000 + 4545",
            "My Program",
            rva,
        ),
        (
            "prog[1]: segfault at 0 ip 000055d0c0a011c1 sp 00007ffd1234 error 4 in prog[11c1,55d0c0a00000+a000]",
            "prog",
            At::FileOffset(0x11c1),
        ),
        (
            "prog[1]: segfault at 0 ip 00000000000011c1 sp 00007ffd1234 error 4 in prog[1000+a000]",
            "prog",
            mapped,
        ),
        (
            "traps: prog[1] general protection fault ip:11c1 sp:7ffd1234 error:0 in prog[1000+a000]",
            "prog",
            mapped,
        ),
        (
            "  #01 pc 000011c1  /data/app/~~x==/com.x-y==/lib/arm64/prog",
            "/data/app/~~x==/com.x-y==/lib/arm64/prog",
            address,
        ),
        (
            "Sig[3].Name=Fault Module Name\r\nSig[3].Value=prog\r\nSig[6].Value=c0000005\r\n\
             Sig[7].Name=Exception Offset\r\nSig[7].Value=000011c1\r\n",
            "prog",
            rva,
        ),
        (
            "Fault Module Name:\tprog\r\nException Offset:\t000011c1\r\n",
            "prog",
            rva,
        ),
        (
            "  3 0x00001000000011c1 BaseThread+0x9() in prog (0x000000000061fec0)",
            "prog",
            symbol("BaseThread", 9),
        ),
        ("prog!f(int) + 0x21 bytes", "prog", symbol("f(int)", 0x21)),
        ("#01: ???[/srv/prog +0x11c1]", "/srv/prog", rva),
        (
            "\t0x000055d0c0a011c1\tf+0x21 [prog]",
            "prog",
            symbol("f", 0x21),
        ),
        ("#0  0x000011c1 f - /srv/prog", "/srv/prog", address),
        (
            "  Binary file \"/srv/prog\", at +0x11c1 [0x7f0011c1]",
            "/srv/prog",
            rva,
        ),
        (
            "==7==    at 0x11C1: ??? (in /srv/prog)",
            "/srv/prog",
            of_process,
        ),
        (" 1  prog!f + 0x21", "prog", symbol("f", 0x21)),
        (
            "Faulting module name: prog.dll, version: 1.0, time stamp: 0x65a0\r\nException code: 0xc0000005\r\nFault offset: 0x00000000000011c1\r\nFaulting process id: 0x11c1\r\n",
            "prog.dll",
            rva,
        ),
        (
            "  0 0x0000000055d011c1 in prog (+0x11c1) (0x000000000061fe30)",
            "prog",
            rva,
        ),
        (
            "#1  0x000011c1 in ?? () from /srv/prog",
            "/srv/prog",
            address,
        ),
        (" 1: 0x11c1 wrk(int) [prog]", "prog", address),
        (
            "1 [ra] 0x00000000000011c1 <unknown> in prog",
            "prog",
            address,
        ),
        (
            "{\"frame\":0,\"module\":\"prog\",\"module_offset\":\"0x11c1\",\"offset\":\"0x55d0c0a011c1\"}",
            "prog",
            rva,
        ),
        (
            "{\"instruction_addr\": \"0x55d0c0a011c1\",\n\"image_addr\": \"0x55d0c0a00000\",\n \"package\": \"/srv/prog\"}",
            "/srv/prog",
            rva,
        ),
        ("0x11c1 in prog.so.1, which is loaded", "prog.so.1", address),
        ("\x1b[31m/srv/prog+0x11c1\x1b[0m", "/srv/prog", rva),
    ] {
        assert_eq!(requests(text), [(Some(module), at)], "{text}");
    }
}

#[test]
fn addresses_without_a_module_are_found() {
    for text in [
        "[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x11c1]",
        "#  SIGSEGV (0xb) at pc=0x11c1, pid=4711, tid=4712",
        "    @           0x11c1  wrk()",
        " 1: (Foo::bar(int)+0x20) [0x11c1]",
        "runtime: unexpected return pc for main.f called from 0x11c1",
        "#0: wrk [0x11c1]",
        "    #00 abs 000055d0c0a011c1 virt 00000000000011c1 _kDartIsolateSnapshotInstructions+0x1c1",
        "The instruction at 0x000011c1 referenced memory at 0x00001185.",
        "   4:     0x11c1 - <unknown>",
        "\x1b[31m0x11c1\x1b[0m",
        "{\"addr\": \"0x11c1\"}",
        "    @ 00000000000011c1 wrk(int)",
        "PC: @     0x11c1  (unknown)  wrk()",
        "\tbase::f [0x00000000000011C1+39] (C:\\b\\a.cc:313)",
        "[./source/server/backtrace.h:96] #2: Envoy::Foo::bar() [0x11c1]",
        "core dump [kkorminl()+123] [SIGSEGV] [ADDR:0x99] [PC:0x11C1] []",
        "    sp  0000007ffd123456  lr  0000000000000099  pc  00000000000011c1",
        "Backtrace: 0x11c1:0x3ffb1f00 0x11c1:0x3ffb1f20",
        "0xffffffa0f2c8ba20 : 0x11c1 ",
        "Memory around native instruction pointer (0x11c1):0x11b1  00 00 e8 0a 00 00 00 48 89",
        "internal error in the .NET Runtime at IP 000011C1 (00007FFB4C2A0000) with exit code c0000005.",
        "First chance exception on 00000000000011C1 (C0000005, EXCEPTION_ACCESS_VIOLATION)!",
        "0x11c1: ???? (55d0c0a011c1, 99, 7ffd12345678, 0, 0, 1) + 80005551234567",
        "0x00007f2b6d1b7be6:SReturn addr 0x11C1 (lists:foldl/3 + 88)",
        "#0 0x11c1 at kdb_backtrace+0x65",
        "<err> os: r3/a4:  0x00000001 r12/ip:  0x00000099 r14/lr:  0x000011c1",
        "#PF Exception 14 in world 4711:vmm0 IP 0x11c1 addr 0x99",
    ] {
        let found = requests(text);
        assert!(
            found.contains(&(None, At::Address(0x11c1))),
            "{text}: {found:?}"
        );
    }
}

#[test]
fn other_numbers_are_left_alone() {
    for text in [
        "55d0c0a00000-55d0c0a04000 r-xp 00001149 fd:00 00001149   /srv/prog",
        "allocated 0x11c1 bytes",
        "SIGSEGV (0xb)",
        "SEGV on unknown address 0x0000000011c1",
        "EXCEPTION_ACCESS_VIOLATION reading address 0x00000000000011c1",
        "Access violation reading location 0x00000000000011c1.",
        "Caught Segmentation fault, suspect faulting address 0x11c1",
        "[BUG] Segmentation fault at 0x00000000000011c1",
        "BUG: kernel NULL pointer dereference, address: 00000000000011c1",
        "NULL pointer dereference at virtual address 000011c1",
        "stop reason = signal SIGSEGV (fault address: 0x11c1)",
        "READ of size 4 at 0x0000000011c1 thread T0",
        "Read of size 4 at addr ffff8880000011c1 by task prog/4711",
        "[4711:0x11c1]    12345 ms: Mark-sweep",
        "  <object at 0x11c1>",
        "*** SIGSEGV (@0x11c1) received by PID 4711",
        "0x11c1 + 0x11c1 cannot be represented in type 'int'",
        "Address: 0x11c1. Access: read. Address not mapped to object.",
        "  Command Line: ./prog 0x11c1",
        "11c0: 000011c1 000011c1 c0a01f4c 000011c1 00000000 00000000 00000000 00000000",
        "0x000000c00008ce50:  0x00000000000011c1  0x00000000000011c1 <main.f+0x0000000000000020>",
        "sp : c0a011c1  ip : 000011c1  fp : c0a01f4c",
        "[000011c1] *pgd=000011c1",
        "EXCVADDR: 0x000011c1  LBEG    : 0x000011c1",
        "y(0)     0x000011c1",
        "Unhandled exception. System.InvalidOperationException: 0x11c1",
        "0x11c1 bytes in 3 blocks",
        "pid 000011c1, commit 000011c1",
        "000011c1 fix a bug",
        "2026-11-24 20261124 x",
        "main.wrk(0x11c1, 0xc000012080)",
        "RAX=0x00000000000011c1 is an unknown value",
        "    rsp = 0x00000000000011c1   rbx = 0x11c1",
        "rax            0x11c1   4545",
        "x0  00000000000011c1  x1  00000000000011c1",
        "00007ffd1234:   00000000000011c1 00000000000011c1",
        "0x00007ffd12345678:   48 8b 05 c1 11 00 00",
        "00000000`0012f6b8 00000001`400011c1 prog!wrk",
        "#00 pc 000011c1  <anonymous:7f00>",
        "0|1|prog|wrk|a.c|7|0x11c1",
        "   at N.T.M() + 0x2a offset",
        "{\"image_addr\": \"0x11c1\", \"image_size\": \"0x11c1\"}",
        "2   prog  0x55d0c0a011c1 0x55d0c0a00000 + 17",
        "Exception code: 0xc0000005",
        "0|1|prog||||",
        "prog[1]: segfault at 11c1 ip 000011c1 sp 000011c1 error 4",
        "prog[1]: segfault at 0 ip 000011c1 sp 00007ffd1234 error 4 in prog[2000+a000]",
        "      0x55d0c0a00000     0x55d0c0a01000     0x1000        0x0  r--p   /srv/prog",
        "0x00007ffff7fc6000  0x00007ffff7ff0195  Yes (*)     /srv/prog.so",
        "\t    55d0c0a011c1 f+0x0 (inlined)",
        "\tffffffff81c01a2b entry_SYSCALL_64+0x6e ([kernel.kallsyms])",
        "Timestamp: 2026-11-24 10:32:16.123456789+0100",
        "j  Main.wrk(I)I+0",
        "prog!wrk(int n) Line 6 + 0x20 bytes",
        " rip:000055d0c0a011c1 rsp:000000000061fe30",
        "postgres: user db [local] SELECT + 0x11c1 rows",
        "double free or corruption (!prev): 0x00000000000011c1 ***",
        "free(): invalid pointer: 0x00000000000011c1 ***",
        "*** Aborted at 1732832130 (Unix time, try 'date -d @1732832130') ***",
        "Check failed: x == y (4545 vs. 0x11c1)",
        "Segmentation fault (Address not mapped to object [0x11c1])",
        "Invalid memory access (signal 11) at address 0x11c1",
        "0x000000c00008ce50:SCatch 0x000011c1 (proc_lib:init_p/3 + 40)",
        "[0x00000000000011c1] foo() /srv/a.php:3 ",
        "Attempt to free unreferenced scalar: SV 0x11c1, Perl interpreter: 0x11c1 at a.pl line 3.",
        "#FailureMessage Object: 0x11c1",
        "Security context: 0x11c1 <JSObject>",
        "    2: foo [0x11c1] [/srv/a.js:3] [bytecode=0x11c1 offset=11](this=0x11c1,1)",
        "Pkilling 0x11c1 from 0x11c1",
        "0x55d0c0a011c1  8b 00 89 c6 48 8d 3d 3a 0e 00 00 b8 00 00 00 00  ....H.=:........",
        "0x7ffd12345600: c1 11 a0 c0 d0 55 00 00 01 00 00 00 00 00 00 00  .....U..........",
        "\t  at (wrapper managed-to-native) N.T.wrk (int) <0x011c1>",
        "--->Fault address falls at 0x000011c1 before any mapped regions",
        "pthread_mutex_lock called on a destroyed mutex (0x00000000000011c1)",
        "Exception Codes:       KERN_INVALID_ADDRESS at 0x00000000000011c1",
        "Exception Codes:       0x0000000000000001, 0x00000000000011c1",
        "VM Region Info: 0x11c1 is not in any region.",
        "   far: 0x00000000000011c1  esr: 0x000011c1 (Data Abort) byte read",
        "Kernel slide:      0x00000000000011c1",
        "  Boot    : 0x000011c1 0x000011c1",
        "Panicked thread: 0x11c1, backtrace: 0x11c1, tid: 4712",
        "ORA-00600: internal error code, arguments: [kdsgrp1], [0x11c1], []",
        "   0000000011C1 ? 0000000011C1 ?",
        "Thread pointer: 0x11c1",
        "stack_bottom = 0x11c1 thread_stack 0x11c1",
        "Query (0x11c1): select 1 from t",
        "2026-11-28 22:15:30 0x11c1  InnoDB: Assertion failure in file a.cc line 12",
        "(XEN) Faulting linear address: 00000000000011c1",
        "stack pointer\t        = 0x28:0x00000000000011c1",
        "code segment\t\t= base 0x0, limit 0x11c1, type 0x1b",
        "end trace frame: 0x11c1, count: -3",
        "   (0x00000000000011C1,0x0000000000000002,0x0000000000000000,0x00000000000011C1)",
        "TRAP_FRAME:  ffffc08f12345678 -- (.trap 0x11c1)",
        "Attempt to read from address 00000000000011c1",
        "00000000000011C1 00007F2B6D1A1D0A System.Threading.Monitor.Wait(System.Object, Int32)",
        "$2 = (int *) 0x11c1",
        "The program '[4711] prog.exe' has exited with code -1073741819 (0xc0000005) 'Access violation'.",
        "HEAP[prog.exe]: Heap block at 00000000000011C0 modified at 00000000000011C1",
        "\t00000000000011C1 : Invalid address causing the exception.",
        "address 0x11c1, cause 'memory not mapped'",
        "=========     at 0x11c1 in wrk(int*)",
        "=========     Address 0x000011c1 is out of bounds",
        "stack: frame={sp:0xc00011c1b8, fp:0xc00011c1e0} stack=[0x11c1,0x11c1)",
        "BFAR Address: 0x11c1",
        "Core data-abort at address 0x11c1 (translation fault)",
        "region  4: va 0x000011c1 pa 0x000011c1 size 0x00c000 flags r-xs [0]",
        "TEE load address @ 0x11c1",
        "Load address: 0x11c1",
        "failed with result 0x000011c1 (NS_ERROR_FAILURE): file /src/a.cpp:12",
        "k0             0x11c1              4545",
        "fs_base        0x11c1      4545",
        "INFO: Loaded 1 modules   (4545 inline 8-bit counters): 4545 [0x11c1, 0x11c1), ",
        "0x11,0xc1,0xa,0x11c1,",
        "==4711==  Address 0x11c1 is not stack'd, malloc'd or (recently) free'd",
        "==4711==  Access not within mapped region at address 0x11C1",
        "--4711--   svma 0x00000011c1, avma 0x00000011c1",
        "  <unique>0x11c1</unique>",
        "BUG: unable to handle page fault for address: 00000000000011c1",
        "Kernel Offset: 0x11c1 from 0x11c1",
        "Code: d65f03c0 000011c1 f9400000 (000011c1) ",
        "unreferenced object 0x11c1 (size 64):",
        "Unspecified error, HRESULT 0x11c1, Win32Error 0x11c1",
        "PS      : 0x000011c1  A0      : 0x000011c1  A1      : 0x000011c1  EXCCAUSE: 0x000011c1",
        "rip 0x000055d0c0a011c1  48 8b 05 c1 2a 00 00 48  H...*..H",
    ] {
        assert_eq!(requests(text), [], "{text}");
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
