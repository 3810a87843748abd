//! Commands that get a missing symbol file, or record the names it would supply.

use chronosym_core::{Timeline, TraceFacts, file_name};
use chronosym_symbolizer::chronosym_symbols::identity::Wanted;
use chronosym_symbolizer::{AttemptResult, MissingSymbols};
use chronosym_types::escape::shell;

const MICROSOFT: &str = "https://msdl.microsoft.com/download/symbols";

/// Returns the commands for a file, the likeliest to help first; `trace` is the trace's path as a
/// shell word.
pub(crate) fn commands(missing: &MissingSymbols, timeline: &Timeline, trace: &str) -> Vec<String> {
    let file = &missing.file;
    let path = missing.trace_paths.first().map_or("", String::as_str);
    let top = |options: &str| format!("chronosym top {options} {trace}");
    let mut commands = Vec::new();
    let is_kernel = path.starts_with("[kernel");
    if is_kernel {
        commands.push(
            "sudo cat /proc/kallsyms > kallsyms   # on that machine, before it is rebooted"
                .to_owned(),
        );
        commands.push(top("--kallsyms kallsyms"));
    }
    let is_untried = |result: &AttemptResult| *result == AttemptResult::NotTrusted;
    if file
        .attempts
        .iter()
        .any(|attempt| is_untried(&attempt.result))
    {
        commands.push(top("--trust-trace-paths") + "   # on the recorded machine");
    }
    match &file.wanted {
        Some(Wanted::ElfMapped(_)) => {
            if let Some(path) = missing
                .trace_paths
                .iter()
                .find(|path| path.starts_with('/'))
            {
                let name = shell(file_name(path));
                commands
                    .push(top(&format!("--symbols {name}")) + "   # a copy of the file that ran");
            }
        }
        Some(Wanted::ElfDebug(_) | Wanted::ElfImage(_)) => {
            if is_of_dotnet(path) {
                commands.push(top(&format!("--symbol-path 'srv*{MICROSOFT}'")));
            } else {
                let server = debuginfod(timeline.facts());
                commands.push(format!("DEBUGINFOD_URLS={server} chronosym top {trace}"));
                commands.extend(package(path));
            }
        }
        Some(Wanted::Pdb { .. } | Wanted::Image { .. }) if is_of_microsoft(&missing.name, path) => {
            commands.push(top(&format!("--symbol-path 'srv*{MICROSOFT}'")));
        }
        Some(_) => commands.push(top("--symbols DIR") + "   # the folder of the build that ran"),
        None if is_kernel => {}
        None if timeline.facts().format == "etl" => commands.push(
            "xperf -merge trace.etl merged.etl   # on the recorded machine: adds the ids of PDBs"
                .to_owned(),
        ),
        None => {}
    }
    commands
}

/// Returns the debuginfod server of the distribution that the kernel's release names, or else the
/// one that forwards requests to those of all distributions.
fn debuginfod(facts: &TraceFacts) -> &'static str {
    let machine = facts.machine.as_deref().unwrap_or_default();
    let is = |words: &[&str]| words.iter().any(|word| machine.contains(word));
    match () {
        () if is(&["-generic", "-lowlatency"]) => "https://debuginfod.ubuntu.com",
        () if is(&[".fc"]) => "https://debuginfod.fedoraproject.org",
        () if is(&["-arch"]) => "https://debuginfod.archlinux.org",
        () if is(&["+deb", "-amd64", "-cloud-amd64"]) => "https://debuginfod.debian.net",
        () => "https://debuginfod.elfutils.org",
    }
}

/// Returns the package with the debug file of an installed file, if its path is that of a
/// distribution with such packages.
fn package(path: &str) -> Option<String> {
    let is_library = path.starts_with("/usr/lib/") || path.starts_with("/lib/");
    let is_multiarch = is_library && path.contains("-linux-gnu/");
    if is_multiarch && file_name(path).starts_with("libc.so") {
        return Some("sudo apt install libc6-dbg".to_owned());
    }
    let name = shell(path);
    is_multiarch.then(|| {
        format!("sudo apt install \"$(dpkg -S {name} | cut -d: -f1)-dbgsym\"   # on that machine, with its debug packages enabled")
    })
}

fn is_of_dotnet(path: &str) -> bool {
    let name = file_name(path);
    let is_native = [
        "libcoreclr",
        "libclr",
        "libmscordbi",
        "libmscordaccore",
        "libhost",
    ];
    is_native.iter().any(|start| name.starts_with(start)) || name.starts_with("libSystem.")
}

fn is_of_microsoft(name: &str, path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let names = [
        "System.",
        "Microsoft.",
        "coreclr",
        "clrjit",
        "clr",
        "mscor",
        "ntdll",
        "netstandard",
    ];
    lower.contains("\\windows\\")
        || is_of_dotnet(path)
        || names.iter().any(|start| name.starts_with(start))
}
