//! Lines of every form of the logs that `symbolize` reads, of random modules, offsets and builds:
//! each address is answered from the module that its line names, or the line stays as it is, byte
//! for byte.

mod common;
#[path = "../../chronosym-symbols/tests/made/mod.rs"]
mod made;

use std::fs;

use made::{elf, symbol};

/// Addresses of the function of each program.
const FUNCTION: std::ops::Range<u64> = 0x1000..0x1040;

/// Bytes of each program that are mapped.
const LEN: u64 = 0x2000;

/// A module that lines name. The third has no file.
struct Module {
    name: &'static str,
    function: &'static str,
    base: u64,
    build: u8,
}

const MODULES: [Module; 3] = [
    Module {
        name: "app",
        function: "work",
        base: 0x55d0_c0a0_0000,
        build: 0xab,
    },
    Module {
        name: "libplug.so",
        function: "serve",
        base: 0x7f12_a400_0000,
        build: 0xcd,
    },
    Module {
        name: "libgone.so",
        function: "vanish",
        base: 0x7f12_a500_0000,
        build: 0xef,
    },
];

/// Lines about one module: `P` path, `F` file name, `R` offset in the image, `A` address in the
/// process, `B` load address, `E` and `L` end and last address, `N` function, `O` and `S` offset in
/// it and size, `I` build id, `G` the same as Breakpad writes it, each in braces; `R10` and `O10`
/// are decimal, `R16` and `A16` have sixteen digits.
const LINES: &[&str] = &[
    // glibc, musl, boost, abseil
    "{P}(+0x{R}) [0x{A}]",
    "{P}({N}+0x{O}) [0x{A}]",
    "{P}(+0x{R})[0x{A}]",
    "{P}+0x{R}",
    "{P}@0x{R}",
    "<{P}+0x{R}>",
    // Ruby, X.Org
    "{P}(0x{R}) [0x{A16}]",
    "(EE) 0: {P} ({N}+0x{O}) [0x{A}]",
    // Unreal Engine
    "0x{A16} {F}!UnknownFunction(0x{R})",
    // Sanitizers, Chromium, LLVM
    "    #1 0x{A}  ({P}+0x{R})",
    "    #1 0x{A}  ({P}+0x{R}) (BuildId: {I})",
    "    #0 0x{A} in ?? ({P}+0x{R}) (BuildId: {I})",
    "    #0 {N} <null> ({F}+0x{R}) (BuildId: {I})",
    "SUMMARY: AddressSanitizer: heap-use-after-free ({P}+0x{R}) (BuildId: {I}) ",
    " #2 0x{A16} ({P}+0x{R})",
    // systemd, minidump_stackwalk
    "                #0  0x{A16} n/a ({F} + 0x{R})",
    "#3  0x{A16} {N} ({P} + 0x{R})",
    " 1  {F} + 0x{R}",
    " 1  {F}!{N} + 0x{O}",
    "0|1|{F}||||0x{R}",
    // Android
    "      #01 pc {R16}  {P} (BuildId: {I})",
    "      #01 pc {R16}  {P} ({N}+32) (BuildId: {I})",
    "  #01 pc {R16}  /data/app/~~x==/com.x-y==/lib/arm64/{F}",
    // Linux
    " ? {N}+0x{O}/0x{S} [{F}]",
    "RIP: 0010:{N}+0x{O}/0x{S} [{F} {I}]",
    "x[7]: segfault at 0 ip {A16} sp 00007ffd1234 error 4 in {F}[{R},{B}+2000]",
    "x[7]: segfault at 0 ip {A16} sp 00007ffd1234 error 4 in {F}[{B}+2000]",
    "traps: x[7] general protection fault ip:{A} sp:7ffd1234 error:0 in {F}[{B}+2000]",
    " [<{A16}>] {N}+0x{O}/0x{S} [{F}]",
    // gdb, lldb
    "{N} + {O10} in section .text of {P}",
    "    frame #0: 0x{A16} {F}`{N} + {O10}",
    // macOS
    "2   {F}    \t0x{A16} 0x{B} + {R10}",
    "2   {F}    \t0x{A16} {N} + {O10}",
    "??? (in {F}) load address 0x{B} + 0x{R} [0x{A}]",
    "{\"imageOffset\":{R10},\"imageName\":\"{F}\"}",
    // Windows, Wine
    "00 00000000`0014f7c8 00007ff6`c0a011c1     {F}!{N}+0x{O}",
    "03 00000000`0014f800 00007ffb`4c3e7034     {F}+0x{R}",
    "ExceptionAddress: {A16} ({F}!{N}+0x{O})",
    "{F}!{N}+{O}",
    "   at {F}!<BaseAddress>+0x{R}",
    "Fault Module Name: {F}\r\nException Offset: {R16}",
    "Faulting module name: {F}, version: 1.0, time stamp: 0x65a0b1c2\nFault offset: 0x{R16}",
    "  1 0x{A16} in {F} (+0x{R}) (0x000000000061fe60)",
    "=>0 0x{A16} {N}+0x{O} in {F} (0x000000000061fe30)",
    // HotSpot, V8, Sentry, Crashpad
    "C  [{F}+0x{R}]  {N}+0x{O}",
    "{\"module\":\"{F}\",\"module_offset\":\"0x{R16}\",\"offset\":\"0x{A16}\"}",
    "{\"instruction_addr\":\"0x{A}\",\"image_addr\":\"0x{B}\",\"package\":\"{P}\"}",
    // perf script
    "\t    {A} {N}+0x{O} ({P})",
    "\t    {A} [unknown] ({P}+0x{R})",
    // bpftrace, bcc
    "\t{A} {N}+{O10} ({P})",
    "        {N}+{O10} ({P})",
    "  b'{N}+0x{O} [{F}]'",
    // NetBSD, VMware, Windows XP, illumos
    "x() at {F}:{N}+0x{O}",
    "cpu2:7)0x43812345678:[0x{A}]{N}@{F}#1.0+0x{O} stack: 0x99",
    "Faulting application a.exe, version 1.0, faulting module {F}, version 0.0.0.0, fault address 0x{R}.",
    "fffffffffbc2f7d0 {F}:{N}+{O} ()",
    " fee2ee7d {F}`{N}+0x{O}(1, 6)",
];

/// Lines that need a list of images.
const OF_PROCESS: &[&str] = &[
    "   4:     0x{A} - <unknown>",
    "{P}() [0x{A}]",
    "{P}[0x{A}]",
    "(EE) 3: {P} (?+0x99) [0x{A}]",
    "Access violation at address {A16} in module '{F}'. Read of address 00001010.",
    "0x{A16} {F}!f(int) [/b.cpp:7]",
    "#1  0x{A16} in ?? () from {P}",
    "    @     0x{A}        112  x",
    " 1# 0x{A} in {P}",
    " 2: 0x{A} f(int) [{F}]",
    "1 [ra] 0x{A16} <unknown> in {F}",
    "\t    {A} [unknown] ({P})",
    "PC=0x{A16} m=0 sigcode=1",
    "    1 1 @ 0x{A}",
    "0: {N} - 0x{A16}",
    "0x{A16} ({F}): (filename not available): (function-name not available)",
    "wine: Unhandled page fault on read access to 0000000000000000 at address {A16} (thread 0024)",
    "SIGSEGV (0xb) at pc=0x{A16}, pid=1, tid=2",
    "{\"pc\": \"0x{A16}\", \"symbol\": \"{N} [{P}]\"}",
    "    Object \"{P}\", at 0x{A}, in {N}",
    "0x{A} <x+32> ({P})",
    "0x{A16} ({F}) WinMain",
    "  * frame #0: 0x{A16} {F}`x(n=4545) at a.c:6:10",
    "      Address: {F}[0x{A16}] (x.PT_LOAD[1]..text + 32)",
    "        ExceptionAddress: {F}.{A16}",
    "0xffffff81f2c8b9d0 : 0x{A16} {F} : _x + 0x20",
    "    @ {A16} x(int)",
    "\tx [0x{A16}+39] (a.cc:313)",
    "#2: a::b() [0x{A}]",
    "==4711==    by 0x{A}: x (a.c:12)",
    "      <ip>0x{A}</ip>",
    "    sp  0000007ffd123456  lr  0000000000000099  pc  {A16}",
    "0x00007ffd12345678 Return addr 0x{A16} (x)",
    "#0 0x{A16} at x+0x65",
    "Exception thrown at 0x{A16} in {F}: 0xC0000005: Access violation.",
    "Unhandled exception at 0x{A16} ({F}) in x.exe: 0xC0000005: Access violation.",
    "{A16} ({F}): (filename not available): x",
    "[  1] 0x{A16}                    {P}+00004545 _x+00000032",
    "    at 1   {F}                 0x{A} kfun:#main(){} + 4545",
    "0 [inlined] 0x{A16} level1() in {F} at /src/a.swift:5:15",
];

/// Lines of lists of images; a log has one kind.
const IMAGES: &[&str] = &[
    "{B}-{E} r-xp 00000000 fd:00 1315    {P}",
    "0x{B} - 0x{E} {F} ??? (main)",
    "0x{B}–0x{E} {I} {F} {P}",
    "[  0] {I} 0x{B} {P} ",
    "Module|{F}||{F}|{G}|0x{B}|0x{E}|1",
    "      0x{B}     0x{E}     0x2000        0x0  r-xp   {P}",
    "    {B}-{L} r-x         0     2000  {P} (BuildId: {I}) (load bias 0x1000)",
    "    {B}-{L} r-x         0     2000  {P} (load bias 0x1000)",
    "[critical][backtrace] Address mapping: {B}-{E} {P}",
    "ModLoad: {B} {E}   {P}",
];

/// Lines without an address of code.
const OTHERS: &[&str] = &[
    "allocated 0x{R} bytes",
    "READ of size 4 at 0x{A} thread T0",
    "SEGV on unknown address 0x{A}",
    "Access violation reading location 0x{A16}.",
    "NULL pointer dereference at virtual address {A16}",
    "<object at 0x{A}>",
    "0x000000c00008ce50:  0x{A16}  0x{A16} <main.f+0x0000000000000020>",
    "RAX=0x{R16} is an unknown value",
    "commit {R16}",
    "main.f(0x{R}, 0xc000012080)",
    "0x00007ffd12345678:   48 8b 05 c1 11 00 00 00",
    "Timestamp: 2026-11-24 10:32:16.123456789+0100",
    "wrote {R16} bytes",
    "pid 0000{R}",
    "\t    {A16} x (inlined)",
    "runtime.cgocall(0x{A}, 0xc00005fe88)",
    "\t/srv/main.go:12 +0x{R}",
    "rip    0x{A}",
    "RIP=0x{A16}, EFLAGS=0x0000000000010246",
    "Faulting process id: 0x{R}",
    "   at N.T.M() + 0x{O} offset",
    "id 0000{R}-{R}-8000-0000{A}",
    "*** glibc detected *** x: double free or corruption (fasttop): 0x{A16} ***",
    "double free or corruption (!prev): 0x{A16}",
    "$2 = (int *) 0x{A}",
    "0x{A}  8b 00 89 c6 48 8d 3d 3a 0e 00 00 b8 00 00 00 00  ....H.=:........",
    "==4711==  Address 0x{A} is not stack'd, malloc'd or (recently) free'd",
    "{A16} {A16} System.Threading.Monitor.Wait(System.Object)",
    "Exception Codes:       KERN_INVALID_ADDRESS at 0x{A16}",
    "unreferenced object 0x{A16} (size 64):",
    "some text without numbers",
    "",
];

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn of<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len() as u64) as usize]
    }
}

fn build_id(build: u8) -> String {
    format!("{build:02x}").repeat(20)
}

fn line(template: &str, module: &Module, rva: u64, build: u8) -> String {
    let base = module.base;
    let address = base + rva;
    let offset = rva - FUNCTION.start;
    let size = FUNCTION.end - FUNCTION.start;
    let values = [
        ("P", format!("/srv/{}", module.name)),
        ("F", module.name.to_owned()),
        ("R", format!("{rva:x}")),
        ("R16", format!("{rva:016x}")),
        ("R10", rva.to_string()),
        ("A", format!("{address:x}")),
        ("A16", format!("{address:016x}")),
        ("B", format!("{base:x}")),
        ("E", format!("{:x}", base + LEN)),
        ("L", format!("{:x}", base + LEN - 1)),
        ("N", module.function.to_owned()),
        ("O", format!("{offset:x}")),
        ("O10", offset.to_string()),
        ("S", format!("{size:x}")),
        ("I", build_id(build)),
        ("G", format!("{}0", format!("{build:02X}").repeat(16))),
    ];
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("{{{name}}}"), &value);
    }
    text
}

/// A program of one function.
fn program(module: &Module) -> Vec<u8> {
    let mut note = [4u32, 20, 3].map(u32::to_le_bytes).concat();
    note.extend(b"GNU\0");
    note.extend([module.build; 20]);
    let size = FUNCTION.end - FUNCTION.start;
    let table = [vec![0; 24], symbol(1, 0x12, FUNCTION.start, size)].concat();
    let names = format!("\0{}\0", module.function);
    let mut bytes = elf(&[
        (".text", 1, 6, FUNCTION.start, vec![0x90; 0x100]),
        (".note.gnu.build-id", 7, 2, 0x400, note),
        (".symtab", 2, 0, 0, table),
        (".strtab", 3, 0, 0, names.into_bytes()),
    ]);
    // A program header: offset 0 is at address 0, readable and executable.
    let at = bytes.len() as u64;
    bytes.extend([1u32, 5].map(u32::to_le_bytes).concat());
    bytes.extend([0, 0, 0, LEN, LEN, 0x1000].map(u64::to_le_bytes).concat());
    bytes.resize(LEN as usize, 0);
    bytes[32..40].copy_from_slice(&at.to_le_bytes());
    bytes[56] = 1;
    bytes
}

/// The expected replacement of a line of the log.
struct Expected {
    text: String,
    /// The function and the offset, if the line has to be answered.
    function: Option<String>,
}

/// A log, each of whose entries may have several lines.
fn log(random: &mut Random) -> (Vec<Expected>, Vec<String>) {
    let images = (random.below(3) > 0).then(|| *random.of(IMAGES));
    let has_ids = images.is_some_and(|row| row.contains("{I}") || row.contains("{G}"));
    let mut expected = Vec::new();
    // The builds that the list states.
    let builds: Vec<u8> = MODULES
        .iter()
        .map(|module| match random.below(3) {
            0 => 0x11,
            _ => module.build,
        })
        .collect();
    let count = 30 + random.below(30);
    for _ in 0..count {
        let at = random.below(3) as usize;
        let module = &MODULES[at];
        let build = if has_ids { builds[at] } else { module.build };
        let rva = FUNCTION.start + random.below(FUNCTION.end - FUNCTION.start);
        let kind = random.below(10);
        let (template, is_code) = match kind {
            0 => (random.of(OTHERS), false),
            1..=3 if images.is_some() => (random.of(OF_PROCESS), true),
            _ => (random.of(LINES), true),
        };
        // A line may state another build than the list.
        let own = match random.below(4) {
            0 => 0x22,
            _ => build,
        };
        let states_build = template.contains("{I}");
        let is_right = (!has_ids || build == module.build || states_build)
            && (!states_build || own == module.build);
        let is_known = is_code && is_right && module.name != "libgone.so";
        let text = line(template, module, rva, own);
        let function = match rva - FUNCTION.start {
            0 => module.function.to_owned(),
            offset => format!("{}+{offset:#x}", module.function),
        };
        expected.push(Expected {
            text,
            function: is_known.then_some(function),
        });
    }
    let rows = images.map(|row| {
        let rows = MODULES.iter().zip(&builds);
        let rows = rows.map(|(module, build)| {
            let build = if has_ids { *build } else { module.build };
            line(row, module, FUNCTION.start, build)
        });
        rows.collect()
    });
    (expected, rows.unwrap_or_default())
}

/// Whether `new` is `old` with one part replaced by a function with an offset.
fn is_answered(old: &str, new: &str, function: &str) -> bool {
    if old == new {
        // It has the function already.
        return old.contains(function.split('+').next().unwrap());
    }
    // A number of JSON becomes a string.
    let answers = [function.to_owned(), format!("\"{function}\"")];
    let at_each =
        (0..new.len()).filter(|at| old.is_char_boundary(*at) && new.is_char_boundary(*at));
    let mut at_each = at_each.take_while(|at| old.get(..*at) == new.get(..*at));
    at_each.any(|at| {
        let mut rests = answers
            .iter()
            .filter_map(|answer| new[at..].strip_prefix(&**answer));
        rests.any(|rest| old.len() > at + rest.len() && old.ends_with(rest))
    })
}

#[test]
fn each_address_is_of_the_module_of_its_line_or_left() {
    let folder = tempfile::tempdir().unwrap();
    for module in &MODULES[..2] {
        fs::write(folder.path().join(module.name), program(module)).unwrap();
    }
    for seed in 1..=60 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let (entries, images) = log(&mut random);
        let end = if random.below(2) == 0 { "\n" } else { "\r\n" };
        let first = random.below(2) == 0;
        let mut lines: Vec<&str> = entries.iter().map(|entry| &*entry.text).collect();
        let at = if first { 0 } else { lines.len() };
        lines.splice(at..at, images.iter().map(|row| &**row));
        let text = lines.join(end) + end;
        let path = folder.path().join("crash.txt");
        fs::write(&path, &text).unwrap();
        let mut command = common::chronosym();
        command.current_dir(folder.path());
        command.args([
            "symbolize",
            "--offline",
            "--obj",
            "app",
            "--obj",
            "libplug.so",
        ]);
        let run = common::finish(command.arg("crash.txt").output().unwrap());
        assert_eq!(run.status, 0, "{}", run.stderr);
        let mut rest = &*run.stdout;
        for (at, old) in lines.iter().enumerate() {
            // No answer has the end of a line.
            let parts = old.matches('\n').count() + 1;
            let len: usize = rest.split_inclusive('\n').take(parts).map(str::len).sum();
            let (new, after) = rest.split_at(len);
            let new = new.strip_suffix(end).unwrap_or(new);
            rest = after;
            let is_row = images.iter().any(|row| row == old);
            let entry = entries.iter().find(|entry| entry.text == **old && !is_row);
            let function = entry.and_then(|entry| entry.function.as_deref());
            let is_right = match function {
                None => *old == new,
                Some(function) => is_answered(old, new, function),
            };
            assert!(
                is_right,
                "seed {seed}, entry {at}, {function:?}\n old: {old}\n new: {new}\n{text}\n{}",
                run.stderr
            );
        }
        assert_eq!(rest, "");
    }
}
