//! The kind of code of a frame, which colours flame graphs and tables.

use crate::shape::FRAMEWORK;
use crate::user_code::is_framework_module;
use chronosym_core::{Code, Evidence, Frame};
use chronosym_types::closed_list;

closed_list! {
    /// The origin of code.
    #[non_exhaustive]
    CodeKind {
        /// Managed code outside the framework.
        Managed = "managed",
        /// Managed code of .NET itself.
        Framework = "framework",
        /// The runtime's own native code.
        Runtime = "runtime",
        /// Other native code.
        Native = "native",
        /// The kernel's code.
        Kernel = "kernel",
        /// A stub that the runtime generated, such as one of a P/Invoke.
        Stub = "stub",
        /// Code without a name.
        Unnamed = "unnamed",
    }
}

impl CodeKind {
    /// Returns the kind of a frame's code.
    pub fn of(frame: &Frame) -> CodeKind {
        let module = frame.module().unwrap_or_default();
        if frame.function.label() == FRAMEWORK {
            CodeKind::Framework
        } else if frame.name().is_err() {
            CodeKind::Unnamed
        } else if is_stub(frame) {
            CodeKind::Stub
        } else if frame.address >> 63 == 1 {
            // The upper half is the kernel's on every 64-bit system; 32-bit systems differ.
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

/// Recognizes stubs by their evidence, or by the names that the runtime uses in events and perf
/// maps.
fn is_stub(frame: &Frame) -> bool {
    let name = frame.name().unwrap_or_default();
    let given = ["IL_STUB", "dynamicClass.IL_STUB", "stub "];
    frame.evidence == Some(Evidence::Stub) || given.iter().any(|given| name.starts_with(given))
}

fn is_native(frame: &Frame) -> bool {
    match frame.code {
        Code::Body(..) | Code::Precompiled(..) => false,
        Code::Untimed(..) => match frame.evidence {
            // Process symbols cover all code; only methods have a signature.
            Some(Evidence::ProcessSymbol) => frame.signature().is_none(),
            Some(Evidence::Profile) => !is_managed_file(frame),
            _ => false,
        },
        _ => true,
    }
}

/// Returns whether the binary of a frame has the name of an assembly.
fn is_managed_file(frame: &Frame) -> bool {
    let path = frame.function.binary().and_then(|binary| binary.path());
    let extension = path.and_then(|path| path.rsplit_once('.'));
    extension.is_some_and(|(_, it)| ["dll", "exe"].iter().any(|x| it.eq_ignore_ascii_case(x)))
}

/// Recognizes the runtime's native libraries by their names in releases of .NET and .NET Framework.
fn is_runtime(module: &str) -> bool {
    let name = module.strip_prefix("lib").unwrap_or(module);
    let is_shim = name != module && name.starts_with("System.");
    let names = [
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
    is_shim || names.iter().any(|it| name.eq_ignore_ascii_case(it))
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
