//! Lines of each form, and lines that look like one.

use super::*;

/// Returns all matches without alternatives.
pub(super) fn find_all(text: &[u8]) -> Vec<Found<'_>> {
    let mut found = scan(text).found;
    found.retain(|found| !found.is_alternative);
    found.sort_by_key(|found| found.range.start);
    found
}

/// Returns the requests of a text: module, kind and number.
pub(super) fn requests(text: &str) -> Vec<(Option<&str>, At<'_>)> {
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
        "  $00000000000011C1  WRK,  line 4 of prog.pas",
        "  $000011C1",
        "Runtime error 216 at $00000000000011C1",
        "An unhandled exception occurred at $00000000000011C1:",
        "epc1=0x000011c1, epc2=0x00000099, epc3=0x00000000, excvaddr=0x00000098, depc=0x00000000",
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
