//! What kind of code a frame is of: what pictures colour and viewers sort by.

use crate::shape::{FRAMEWORK, is_framework_module};
use chronosym_core::{Code, Evidence, Frame};
use chronosym_types::closed_list;

closed_list! {
    /// Whose code it is.
    #[non_exhaustive]
    CodeKind {
        /// Managed code that is not the framework's.
        Managed = "managed",
        /// Managed code of .NET itself.
        Framework = "framework",
        /// The runtime's own native code.
        Runtime = "runtime",
        /// Other native code.
        Native = "native",
        /// The system's.
        Kernel = "kernel",
        /// A stub that the runtime made, such as those of calls into native code.
        Stub = "stub",
        /// Nothing says what it is called.
        Unnamed = "unnamed",
    }
}

impl CodeKind {
    /// The kind of a frame's code.
    pub fn of(frame: &Frame) -> CodeKind {
        let module = frame.module().unwrap_or_default();
        if frame.function.label() == FRAMEWORK {
            CodeKind::Framework
        } else if frame.name().is_err() {
            CodeKind::Unnamed
        } else if is_stub(frame) {
            CodeKind::Stub
        } else if frame.address >> 63 == 1 {
            // The upper half belongs to the system on each 64-bit system; 32-bit ones draw the line in different places.
            CodeKind::Kernel
        } else if is_native(frame) {
            if is_runtime(module) {
                CodeKind::Runtime
            } else {
                CodeKind::Native
            }
        } else if is_framework(frame) {
            CodeKind::Framework
        } else {
            CodeKind::Managed
        }
    }
}

/// By what says so, or by the names that the runtime gives its stubs in events and in perf maps.
fn is_stub(frame: &Frame) -> bool {
    let name = frame.name().unwrap_or_default();
    let given = ["IL_STUB", "dynamicClass.IL_STUB", "stub "];
    frame.evidence == Some(Evidence::Stub) || given.iter().any(|given| name.starts_with(given))
}

fn is_native(frame: &Frame) -> bool {
    match frame.code {
        Code::Body(..) | Code::Precompiled(..) => false,
        // Symbols of processes are of all code: only methods have a signature.
        Code::Untimed(..) => {
            frame.evidence == Some(Evidence::ProcessSymbol) && frame.signature().is_none()
        }
        _ => true,
    }
}

/// The runtime's native libraries, by the names that they have in the releases of .NET and .NET Framework.
fn is_runtime(module: &str) -> bool {
    let name = module.strip_prefix("lib").unwrap_or(module);
    let is_shim = name != module && name.starts_with("System.");
    let known = [
        "clr",
        "clrgc",
        "clrgcexp",
        "clrjit",
        "coreclr",
        "hostfxr",
        "hostpolicy",
        "mscorwks",
        "mscordacwks",
        "mscoree",
        "mscoreei",
        "mscorjit",
        "compatjit",
        "monosgen-2.0",
        "mscordaccore",
    ];
    let name = name.strip_suffix(".so").unwrap_or(name);
    is_shim || known.iter().any(|known| name.eq_ignore_ascii_case(known))
}

fn is_framework(frame: &Frame) -> bool {
    let binary = frame.function.binary();
    binary.is_some_and(|binary| is_framework_module(binary.name(), binary.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_known_by_their_names() {
        for name in [
            "libcoreclr",
            "coreclr",
            "CLR",
            "libclrjit",
            "libSystem.Native",
        ] {
            assert!(is_runtime(name), "{name}");
        }
        assert!(!is_runtime("libc") && !is_runtime("clrmd") && !is_runtime("System.Linq"));
        for name in [
            "System.Private.CoreLib",
            "System",
            "Microsoft.Extensions.Hosting",
            "mscorlib",
        ] {
            assert!(is_framework_module(name, None), "{name}");
        }
        assert!(!is_framework_module("Systematic", None) && !is_framework_module("App", None));
    }
}
