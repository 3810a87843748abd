//! The table of forms in which runtimes and tools write frames and lists of images. To add a form,
//! add an entry, and a line to the test of its family.

use std::sync::LazyLock;

use super::pattern::Pattern;

/// The content of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Code. If the line has several alternatives for it, the first that can be resolved is
    /// replaced.
    Code,
    /// Code in the module that an earlier line states.
    CodeOfModule,
    /// The module of lines that follow.
    Module,
    /// The value of the next line is the module of lines that follow.
    NextIsModule,
    /// The value of the next line is an offset in the module that an earlier line states.
    NextIsOffset,
    /// A value.
    Value,
    /// An image with its load address or its identity.
    Image,
    /// Numbers that are not addresses of code.
    Other,
    /// From here on, only lines of known forms have addresses of code.
    OnlyForms,
}

use Kind::{
    Code, CodeOfModule, Image, Module, NextIsModule, NextIsOffset, OnlyForms, Other, Value,
};

/// The forms. The first that matches applies.
const ROWS: &[(Kind, &str)] = &[
    // Mappings: Android's tombstones; /proc/PID/maps, also in hs_err_pid.log.
    (
        Image,
        "{start}-{last} {mode} {offset} {h} {path} (BuildId: {id})",
    ),
    (
        Image,
        "{start}-{last} {mode} {offset} {h} {path} (load bias {0xh})",
    ),
    (Image, "^{start}-{end} {mode} {offset} {word} {word} {rest}"),
    (Image, "^{start}-{end} {mode} {offset} {word} {word}$"),
    (Image, "{start}-{last} {mode} {offset} {h} {path}"),
    (Image, "Address mapping: {start}-{end} {path}"),
    (Other, "^{start}-{end} {mode} "),
    // gdb: `info proc mappings`, `info sharedlibrary`, which starts at the code.
    (Image, "^{0xstart} {0xend} {0xh} {0xoffset} {mode} {rest}"),
    (Image, "^{0xstart} {0xend} {0xh} {0xoffset} {rest}"),
    (Other, "^{0xh} {0xh} {0xh} {0xh}"),
    (Other, "^{0xh} {0xh} Yes"),
    (Other, "^{0xh} {0xh} No"),
    // Images: sanitizers, macOS, Swift, Breakpad, HotSpot on Windows, WinDbg, Wine, lldb, pprof,
    // systemd.
    (Image, "^{0xstart}-{0xend} {path} ({any}) <{id}>"),
    (Image, "^{0xstart} - {0xlast} {name} {any}<{id}> {rest}"),
    (Image, "^{0xstart}–{0xend} {id} {name} {rest}"),
    (Image, "^{0xstart}–{0xend} <no build ID> {name} {rest}"),
    (
        Image,
        "^{0xstart} - {0xlast} {name} {any}(WARNING: No symbols, {symbols}, {id})",
    ),
    (Image, "^{0xstart} - {0xlast} «{letter}:\\{any}»$"),
    (Image, "^{0xstart} - {0xlast} {name} {word} (main)$"),
    (Image, "^{0xstart} - {0xlast} {path} {word}$"),
    (
        Image,
        "^Module|{name}|{any}|{symbols}|{id}|{0xstart}|{0xlast}|",
    ),
    (Image, "^Module|{name}|{any}|{any}|{id}|{0xstart}|{0xlast}|"),
    (Image, "^{start} {end} {name} (deferred)"),
    (Image, "^ModLoad: {start} {end} {rest}"),
    (Image, "^{name}({any})[{id}]@{0xstart}->{0xlast}"),
    (Other, "^dependency: "),
    (Image, "^{start} {end} {name} ({any}symbols)"),
    (Image, "^PE {start}-~{end} {word} {rest}"),
    (Image, "^PE-Wine {start}-~{end} {word} {rest}"),
    (Image, "^ELF {start}-~{end} {word} {rest}"),
    (Image, "^[~{n}] {id} {0xstart} {rest}"),
    (
        Image,
        "^{letter}:{any}:{name} ({start}), size: {len10} (result",
    ),
    (Image, "^{n}: {0xstart}/{0xend}/{0xoffset} {path} {id}"),
    (Image, "^{n}: {0xstart}/{0xend}/{0xoffset} {path}"),
    // DrMinGW.
    (Image, "^{start}-{end} «{path}.exe»"),
    (Image, "^{start}-{end} «{path}.dll»"),
    (Image, "^{start}-{end} «{path}.DLL»"),
    (Image, "Module {path} with build-id {id}"),
    (Image, "module {path} with build-id: {id}"),
    (
        Image,
        "[[[ELF module #{0xh} \"{path}\" BuildID={id} {0xstart}]]]",
    ),
    // perf script; bpftrace in the mode of perf.
    (Other, "{address} {any} (inlined)$"),
    (Code, "{address} [unknown] («{path}+{0xoffset}»)$"),
    (Code, "{address} {function}+{0x+} («{path}+{0xoffset}»)$"),
    (Code, "{address} [unknown] ({path})$"),
    (Code, "{address} {function}+{0x+} ({path})$"),
    (Code, "{address} {function}+{+10} ({path})$"),
    (Other, "{address} {function}+{0xh} ([{any}"),
    (Other, "{address} [unknown] ([{any}"),
    // Data that glibc, sanitizers, libFuzzer, Valgrind, Crystal and backward describe.
    (Other, "double free or corruption ("),
    (Other, "^INFO: Loaded {n} modules "),
    (Other, "^INFO: Loaded {n} PC tables "),
    (Other, "power schedule ({0xh}, {n})"),
    (Other, "^{0xh},{0xh},{0xh}"),
    (Other, "^=={n}== Address {0xh} is "),
    (Other, "<auxwhat>Address {0xh} is "),
    (Other, "<unique>{0xh}</unique>"),
    (Other, "^--{n}-- "),
    (Other, "(signal {n}) at address {0xh}"),
    (Other, "mapped to object [{0xh}]"),
    (Other, "mapped object [{0xh}]"),
    (Other, "^{0xh} is located "),
    (Other, "^=>{0xh}:"),
    (Other, "^Location is "),
    (Other, "^Mutex M{n} ({0xh}) "),
    // glibc, sanitizers, Chromium, LLVM, musl.
    (Code, "(«{path}+{0xrva}») (BuildId: {id})"),
    // Envoy; backward; glog and folly, with the time of a crash; Chromium on Windows.
    (Code, "#{n}: {any} [{0xaddress}]$"),
    (Code, "Object \"{path}\", at {0xaddress}, in "),
    (Other, "*** Aborted at {n} ("),
    (Code, "[{0xaddress}+{n}]"),
    // Redis, whose title has the address and port.
    (Code, "{path} *:{n}(«+{0xrva}»)~[{0xh}]"),
    (Code, "{path} *:{n}({function}+{0x+})~[{0xaddress}]"),
    (Code, "{path} {n}.{n}.{n}.{n}:{n}(«+{0xrva}»)~[{0xh}]"),
    (
        Code,
        "{path} {n}.{n}.{n}.{n}:{n}({function}+{0x+})~[{0xaddress}]",
    ),
    (Code, "{titled}: {any}(«+{0xrva}»)~[{0xh}]"),
    (Code, "{titled}: {any}({function}+{0x+})~[{0xaddress}]"),
    (Code, "{path}(«+{0xrva}»)~[{0xh}]"),
    (Code, "{path}(«+{0xrva}»)"),
    (Code, "{path}({function}+{0x+})~[{0xaddress}]"),
    (Code, "{path}({function}+{0x+})"),
    (Code, "{path}(«{0xrva}»)~[{0xaddress}]"),
    (Code, "{path}()~[{0xaddress}]"),
    (Code, "^{path}[{0xaddress}]$"),
    // Ceph; X.Org.
    (Code, "^{n}: ({function}+{0x+}) [{0xaddress}]$"),
    (Code, "{path} (?+{0xh}) [{0xaddress}]"),
    (Code, "{path} ({function}+{0x+}) [{0xaddress}]"),
    (Code, "(«{path}+{0xrva}»)"),
    // PyTorch; SystemTap; Fuchsia.
    (
        Code,
        "^frame #{n}: «<unknown function> + {0xrva}» ({0xh} in {path})",
    ),
    (
        Code,
        "^frame #{n}: {function} + {0x+} ({0xaddress} in {path})",
    ),
    (Code, "[«{path}+{0xrva}»/{0xh}]"),
    (Code, "in «<{path}>+{0xrva}»"),
    (Code, "({path}@{function}+{0x+})"),
    (Code, "«{path}@{0xrva}»"),
    (Code, "^{n}# {0xaddress} in {rest}"),
    // Valgrind, which loads programs at low addresses; elfutils; Firefox; Python; bcc.
    (Code, "^=={n}== {word} {0xprocess}: {any} (in {path})$"),
    (Code, "^=={n}== {word} {0xprocess}: "),
    (Code, "<ip>{0xprocess}</ip>"),
    (Code, "^#{n} {0xaddress} {any}- {path}$"),
    (Code, "[«{path} +{0xrva}»]"),
    (
        Code,
        "Binary file \"{path}\", at {callee}+{0x+} [{0xaddress}]",
    ),
    (Code, "Binary file \"{path}\", at «+{0xrva}» [{0xh}]"),
    // Flutter, whose lines name no module.
    (Code, "#{n} abs {h} virt {address} "),
    // HarmonyOS.
    (Code, "#{n} pc {address} {path}({callee}+{n})({id})$"),
    (Code, "#{n} pc {address} {path}({id})$"),
    // Android.
    (Code, "#{n} pc {address} {entry} ({any}) (BuildId: {id})"),
    (Code, "#{n} pc {address} {entry} (BuildId: {id})"),
    (Other, "#{n} pc {h} <{any}"),
    (Code, "#{n} pc {address} {entry}"),
    (Other, "#{n} pc {h} "),
    // minidump_stackwalk -m: with a function, the offset counts from its line.
    (Code, "^{n}|{n}|{path}||||{0xrva}$"),
    (Code, "^{n}|{n}|{file}||||{0xrva}$"),
    (Other, "^{n}|{n}|{any}|{any}|"),
    // systemd-coredump, minidump_stackwalk, Wine.
    (Code, "(«{file} + {0xrva}»)"),
    (Code, "^{n} {path}!{function} + {0x+}$"),
    (Code, "^{n} «{file} + {0xrva}»$"),
    (Code, "in «{path} (+{0xrva})»"),
    (Code, "{identifier}+{0x+} in {path} ({0xh})"),
    (Code, "{identifier}+{0x+}() in {path} ({0xh})"),
    (Code, " in {n}-bit code ({0xaddress})"),
    (Code, "{identifier}+{0x+} [{any}] in {path} ({0xh})"),
    (Code, "{identifier}+{0x+}({any}) [{any}] in {path} ({0xh})"),
    // bcc; Linux: oopses, backtraces, faults.
    (Code, "'{identifier}+{0x+} [{path}]'"),
    (Code, "{identifier}+{0x+}/{0xsize} [{path} {id}]"),
    (Code, "{identifier}+{0x+} [{path}]$"),
    (Code, "{identifier}+{0x+}/{0xsize} [{path}]"),
    (Code, "{identifier}+{0x+}/{0xsize}"),
    (
        Code,
        " ip «{h}» sp {h} error {h} in {path}[{offset},{h}+{h}]",
    ),
    (
        Code,
        " ip:«{h}» sp:{h} error:{h} in {path}[{offset},{h}+{h}]",
    ),
    (
        Code,
        " ip {address} sp {h} error {h} in {path}[{start}+{len}]",
    ),
    (
        Code,
        " ip:{address} sp:{h} error:{h} in {path}[{start}+{len}]",
    ),
    (Other, " segfault at "),
    (Other, "sp : {h} ip : {h} fp : {h}"),
    (Other, "[{h}] *pgd="),
    (Other, "Stack: ({0xh} to {0xh})"),
    (Other, " general protection fault"),
    (Other, "Kernel Offset: "),
    (Other, "Code: {h} {h} {h} "),
    // Process Monitor's tables; VMware.
    (Code, ",\"{file}\",\"{function} + {0x+}\","),
    (
        Code,
        "rip={address} in function {any} in object {path} loaded at {base}",
    ),
    // Windows Error Reporting.
    (Module, "Faulting module name: {file},"),
    (Module, "Fault Module Name: {file}$"),
    (NextIsModule, "^Sig[{n}].Name=Fault Module Name$"),
    (NextIsOffset, "^Sig[{n}].Name=Exception Offset$"),
    (Value, "^Sig[{n}].Value={rest}$"),
    (Other, "^Sig["),
    (CodeOfModule, "Fault offset: {0xrva}"),
    (CodeOfModule, "Exception Offset: {rva}"),
    (
        Code,
        "faulting module {file}, version {any}, fault address {0xrva}",
    ),
    (Other, "^Faulting "),
    (Other, "^Exception code: "),
    (Other, "^Exception Code: "),
    // Windows' stop errors; .NET Framework's and CoreCLR's events.
    (Other, "^({0xh},{0xh},{0xh},{0xh})"),
    (Code, "at IP {address} ({h}) with exit code"),
    // .NET, Mono, Native AOT.
    (Code, "in «{file}:token {0xtoken}+{il}»"),
    (Code, "at {method}) [{0xil}] in «<{id}>:0»"),
    (Code, "at {method}) [{0xil}] in «<{id}#{id}>:0»"),
    (Code, "«{path}!<BaseAddress>+{0xrva}»"),
    // Visual Studio, DrMinGW, StackWalker, Application Verifier.
    (Code, "exception at {0xaddress} ({file}) in {any}: {0xh}"),
    (Code, "exception at {0xaddress} in {file}: {0xh}"),
    (
        Code,
        "Exception thrown at {0xaddress} ({file}) in {any}: {0xh}",
    ),
    (Code, "Exception thrown at {0xaddress} in {file}: {0xh}"),
    (Other, " has exited with code "),
    (Other, "^HEAP["),
    (Code, "at location {address} in module {path} "),
    (Code, "^{address} ({file}): (filename not available)"),
    (Other, "^{h} : Invalid address "),
    // Offsets in jitted code.
    (Other, "^at {any} <{0xh}>$"),
    // Visual Studio: with a line, the offset counts from its code.
    (Other, "{path}!{any} Line {n} + {0xh} bytes"),
    (Code, "{path}!{function} + {0x+} bytes"),
    // WinDbg, which omits `0x` in some lines; Unreal Engine; Delphi.
    (Code, "^{address} {h} {any} ptr [{path}!"),
    (Code, "{path}!{function}+{0x+}"),
    (Code, "^{path}!{function}+{+}$"),
    (Code, "^ExceptionAddress: {path}.{address}$"),
    (Code, "exception on {address} ({h}, "),
    (Code, "^SYMBOL_NAME: {path}!{function}+{+}$"),
    (Code, "{path}!UnknownFunction({0xrva})"),
    (Code, "at address {address} in module '{path}'"),
    // Free Pascal.
    (Code, "^«$0{address}» "),
    (Code, "^«$0{address}»$"),
    (Code, "error {n} at «$0{address}»"),
    (Code, "exception occurred at «$0{address}»"),
    // Unity, also with Mono.
    (Code, "^{0xaddress} ({file}) {any}"),
    (Other, "^Pkilling {0xh} from "),
    (Code, "native instruction pointer ({0xaddress})"),
    // Oracle; MariaDB; PHP.
    (Code, "[ADDR:{0xh}] [PC:{0xaddress}]"),
    (Other, "^ORA-{n}: "),
    (Other, "^{h} ? {h} ?"),
    (Code, "^{identifier}()+{+10} "),
    (Other, "^Query ({0xh}): "),
    (Other, " {0xh} InnoDB: "),
    (Other, "^[{0xh}] {any}.php:{n}"),
    // MATLAB; Kotlin; R; VMware's kernel; CUDA, also code of the device; Go.
    (Code, "^[~{n}] {0xaddress} {path}+{n}"),
    (Code, "^at {n} {path} {0xaddress} "),
    (Other, "^address {0xh}, cause '"),
    (
        Code,
        "{0xh}:[{0xaddress}]{callee}@{path}#{any}+{0x+} stack: ",
    ),
    (Code, " IP {0xaddress} addr {0xh}"),
    (Code, "Host Frame:{path} [{0xrva}]"),
    (Other, "^========= at {0xh} in "),
    (Other, "^========= Address {0xh} is "),
    (Other, " stack=[{0xh},{0xh})"),
    // Registers of ARM, in Android's tombstones and Zephyr; OP-TEE; ESP32, with stack addresses, and
    // ESP8266.
    (Code, "r14/lr: {0xaddress}"),
    (Other, "TEE load address @ "),
    (Code, "lr {h} pc {address}"),
    (Other, "Fault address falls at "),
    (Code, "{0xaddress}:0x3f{h}"),
    (Code, "epc1={0xaddress}"),
    // Command lines, and what ClickHouse writes of the data that a fault accessed.
    (Other, "Command Line: "),
    (Other, "Address: {0xh}. Access"),
    // Memory that glibc complains of.
    (Other, "^*** glibc detected *** "),
    (Other, "^*** Error in `"),
    // HotSpot: registers, stacks and heaps of `hs_err_pid.log`.
    (
        OnlyForms,
        "# A fatal error has been detected by the Java Runtime Environment:",
    ),
    (Code, " at pc={0xaddress}, pid={n}"),
    (Code, "Instructions: (pc={0xaddress})"),
    (Code, "[«{file}+{0xrva}»] {function}+{0x+}"),
    (Code, "[«{file}+{0xrva}»]"),
    // macOS: crash reports, samples, panics; Swift; lldb.
    (Other, "^Exception Codes: "),
    (Other, "^VM Region Info: "),
    (Other, "^Panicked thread: "),
    (Other, "^{word} : {0xh} {0xh}$"),
    (Code, "^{0xh} : {0xaddress} {path} : {function} + {0x+}"),
    (Code, "^{0xh} : {0xaddress}"),
    (Code, "^{n} {file} {0xaddress} {0xbase} + {rva10}"),
    (Code, "^{n} {file} {0xaddress} {function} + {+10}"),
    (Code, "(in {file}) load address {0xh} + {0xrva} [{0xh}]"),
    (Code, "{function} (in {file}) + {+10} [{0xaddress}]"),
    (Code, "^{n}{any} {0xaddress} <unknown> in {path}"),
    (Code, "^{n}{any} {0xaddress} {function} + {+10} in {path}"),
    (Code, "^{n}{any} {0xaddress} {any} in {path} at {any}"),
    (Code, "{0xaddress} {path}`{function} + {+10}"),
    (Code, "{0xaddress} {path}`"),
    (Code, "Address: {path}[{0xaddress}]"),
    // Kernels of BSD.
    (Code, "^#{n} {0xaddress} at {callee}+{0x+}"),
    (Code, "() at {callee}+{0x+}/frame {0xh}"),
    (Code, "() at {path}:{callee}+{0x+}"),
    (Other, "stack pointer = {0xh}:"),
    (Other, "frame pointer = {0xh}:"),
    (Other, "^end trace frame: "),
    // illumos. In the kernel, a frame starts with its address on the stack.
    (Code, "^{address} {path}`{identifier} ("),
    (Code, "^{h} {path}:{identifier}+{+} ("),
    (Code, "^{h} {path}`{identifier}+{+}("),
    (Code, "^{h} {path}`{identifier}+{0x+}("),
    // DTrace.
    (Code, "^{path}`{0xaddress}$"),
    (Code, "^{path}`{function}+{0x+}$"),
    // gdb.
    (Code, "^{function} + {+10} in section {word} of {rest}"),
    (Code, "^{function} + {+10} in section {word}$"),
    (Code, "#{n} {0xaddress} in {any}) from {path}"),
    (Code, "{address} <{function}+{+10}> ({path})"),
    (Code, "{address} <{function}+{+10}>"),
    // Erlang: terms and frames of its stacks.
    (Other, "^y({n}) "),
    (Code, "^{0xh} Return addr {0xaddress} "),
    (Code, "^{0xh}:SReturn addr {0xaddress} "),
    (Other, "^{0xh}:SCatch "),
    (Code, "^{0xaddress}: ???? ("),
    // V8.
    (Other, " [bytecode={0xh} offset={n}]"),
    (Other, "^Security context: "),
    (Code, "^{n}: {0xaddress} {any}[{path}]$"),
    (Code, "^{n}: {0xaddress} [{path}]$"),
    // bpftrace.
    (Code, "^{callee}+{+10}$"),
    (Code, "^{callee}+{+10} ({path})$"),
];

/// A compiled form.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) kind: Kind,
    pub(super) pattern: Pattern,
}

/// Returns the compiled table.
pub(super) fn rows() -> &'static [Row] {
    static COMPILED: LazyLock<Vec<Row>> = LazyLock::new(|| {
        let rows = ROWS.iter().map(|&(kind, pattern)| Row {
            kind,
            pattern: Pattern::new(pattern),
        });
        rows.collect()
    });
    &COMPILED
}
