//! Classifies code as user code or framework code.

use chronosym_core::{Frame, Function, Timeline};

/// The start of document paths in a deterministic build, which replaces the actual folder.
const BUILT_ELSEWHERE: &str = "/_/";

/// Classifies code as user code or framework code: the runtime, its class library, the system, and
/// packages.
///
/// Determined by the folder of a module, by its name, and by its PDB. A library also belongs to the
/// framework if its PDB shows that it was built elsewhere (its documents start with `/_/`, while
/// those of another module do not). Code without a module is classified by its namespace.
#[derive(Clone, Copy, Debug)]
pub struct UserCode {
    has_own_builds: bool,
    /// Whether all managed code is that of an SDK or package, such as a compiler: it is then user
    /// code.
    tools_are_users: bool,
}

impl UserCode {
    /// Returns the classification of the code of a timeline.
    pub fn of(timeline: &Timeline) -> Self {
        let modules = || timeline.processes().flat_map(|p| timeline.modules(p.index));
        let is_framework = |name: &str, path: &str| is_framework_module(name, Some(path));
        let mut own = modules()
            .filter(|view| !is_framework(view.name, view.module.il_path))
            .peekable();
        UserCode {
            tools_are_users: own.peek().is_none(),
            has_own_builds: own.filter_map(|view| view.module.managed_pdb).any(|pdb| {
                pdb.path.contains(['/', '\\']) && !pdb.path.starts_with(BUILT_ELSEWHERE)
            }),
        }
    }

    /// Returns whether the code of a frame is user code.
    pub fn has(&self, frame: &Frame) -> bool {
        let file = frame.line.as_ref().map(|line| &*line.file);
        let is_built_elsewhere =
            self.has_own_builds && file.is_ok_and(|file| file.starts_with(BUILT_ELSEWHERE));
        !is_built_elsewhere && self.has_function(&frame.function)
    }

    /// Returns whether the code of a function is user code, ignoring PDBs.
    fn has_function(&self, function: &Function) -> bool {
        match origin(function) {
            Origin::Framework => false,
            Origin::Package => self.tools_are_users,
            Origin::User => true,
        }
    }
}

/// Returns the origin of the code of a function. Unnamed code without a module belongs to the
/// framework, as does code that is generated at run time: stubs between managed and native code,
/// and dynamic methods, which serve the code that calls them.
fn origin(function: &Function) -> Origin {
    let is_generated = |name: &str| name.starts_with("dynamicClass.");
    match function.binary() {
        _ if function.recorded_name().is_some_and(is_generated) => Origin::Framework,
        Some(binary) => Origin::of(binary.name(), binary.path()),
        // Jitted code of a recording without the runtime's events.
        None => function
            .recorded_name()
            .map_or(Origin::Framework, Origin::of_name),
    }
}

/// The origin of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// The runtime, its class library, or the system.
    Framework,
    /// An SDK or a package cache.
    Package,
    User,
}

impl Origin {
    fn of(name: &str, path: Option<&str>) -> Self {
        let name = name.to_lowercase();
        let has_prefix = || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if NAMES.contains(&name.as_str()) || has_prefix() {
            return Origin::Framework;
        }
        let path = path.map(|path| path.replace('\\', "/").to_lowercase());
        let is_in = |folders: &[&str]| {
            (path.as_ref()).is_some_and(|path| folders.iter().any(|folder| path.contains(folder)))
        };
        let is_system = path.as_ref().is_some_and(|path| {
            path.starts_with("/lib/") || path.starts_with("/lib64/") || path.starts_with('[')
        });
        if is_system || is_in(&SYSTEM_FOLDERS) {
            Origin::Framework
        } else if is_in(&PACKAGE_FOLDERS) {
            Origin::Package
        } else {
            Origin::User
        }
    }
}

impl Origin {
    /// Returns the origin of a method of an unknown module, by its namespace.
    fn of_name(name: &str) -> Self {
        // A bracket opens the name of merged frames.
        const NAMESPACES: [&str; 7] = [
            "System.",
            "Microsoft.",
            "Internal.",
            "Interop",
            "dynamicClass.",
            "stub ",
            "[",
        ];
        match NAMESPACES.iter().any(|start| name.starts_with(start)) {
            true => Origin::Framework,
            false => Origin::User,
        }
    }
}

/// Folders of the system and of shared frameworks.
const SYSTEM_FOLDERS: [&str; 5] = [
    "/windows/",
    "/usr/lib/",
    "/usr/lib64/",
    "/shared/microsoft.",
    "/systemroot/",
];

/// Folders of SDKs and package caches.
const PACKAGE_FOLDERS: [&str; 5] = [
    "/dotnet/sdk/",
    "/dotnet/store/",
    "/.nuget/packages/",
    "/nuget/packages/",
    "/nugetpackages/",
];

/// Modules of .NET and the system by the start of their names. Applications may carry them in their
/// own folders.
const PREFIXES: [&str; 17] = [
    "system.",
    "ld-linux",
    "ld-musl",
    "libc.musl",
    "libsystem.",
    "api-ms-win-",
    "microsoft.aspnetcore.",
    "microsoft.csharp",
    "microsoft.data.",
    "microsoft.diagnostics.",
    "microsoft.entityframeworkcore",
    "microsoft.extensions.",
    "microsoft.identitymodel.",
    "microsoft.net.",
    "microsoft.visualbasic",
    "microsoft.win32.",
    "microsoft.windows.",
];

/// Modules of the .NET Framework, of runtimes installed in other folders, and of the system.
const NAMES: [&str; 33] = [
    "system",
    "mscorlib",
    "netstandard",
    "windowsbase",
    "presentationcore",
    "presentationframework",
    "accessibility",
    "coreclr",
    "libcoreclr",
    "clr",
    "mscorwks",
    "mscoreei",
    "clrjit",
    "libclrjit",
    "clrgc",
    "libclrgc",
    "hostfxr",
    "libhostfxr",
    "hostpolicy",
    "libhostpolicy",
    "ntoskrnl",
    "ntkrnlmp",
    "vmlinux",
    "ntdll",
    "libc",
    "libm",
    "libdl",
    "libpthread",
    "librt",
    "libgcc_s",
    "libstdc++",
    "libc++",
    "linux-vdso",
];

/// Returns whether a module or image belongs to .NET, the system, an SDK or a package, by its
/// simple name and path.
pub fn is_framework_module(name: &str, path: Option<&str>) -> bool {
    Origin::of(name, path) != Origin::User
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_classified_by_folder_and_name() {
        for (name, path, origin) in [
            ("System.Linq", None, Origin::Framework),
            (
                "Kestrel",
                Some("/usr/share/dotnet/shared/Microsoft.AspNetCore.App/8.0.4/Kestrel.dll"),
                Origin::Framework,
            ),
            (
                "Microsoft.CodeAnalysis",
                Some("/usr/share/dotnet/sdk/8.0.204/Roslyn/Microsoft.CodeAnalysis.dll"),
                Origin::Package,
            ),
            (
                "Microsoft.CodeAnalysis",
                Some("/srv/app/Microsoft.CodeAnalysis.dll"),
                Origin::User,
            ),
            (
                "Newtonsoft.Json",
                Some(r"C:\Users\me\.nuget\packages\newtonsoft.json\13.0.3\lib\Newtonsoft.Json.dll"),
                Origin::Package,
            ),
            (
                "Microsoft.Extensions.Hosting",
                Some("/srv/app/Microsoft.Extensions.Hosting.dll"),
                Origin::Framework,
            ),
            ("Systematic", None, Origin::User),
            (
                "libc",
                Some("/usr/lib/x86_64-linux-gnu/libc.so.6"),
                Origin::Framework,
            ),
            ("app", Some("/home/me/app"), Origin::User),
        ] {
            assert_eq!(Origin::of(name, path), origin, "{name} {path:?}");
        }
    }
}
