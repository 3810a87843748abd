//! Formats of `stacks` and `diff` for other programs.

use std::path::{Path, PathBuf};

use crate::args::StackFormat;

/// Returns the format for the extension of a file name.
pub fn format_of(path: &Path) -> Option<StackFormat> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let endings = [
        (".svg", StackFormat::Svg),
        (".html", StackFormat::Html),
        (".htm", StackFormat::Html),
        (".speedscope.json", StackFormat::Speedscope),
        (".speedscope", StackFormat::Speedscope),
        (".firefox.json", StackFormat::Firefox),
        (".profile.json", StackFormat::Firefox),
        (".pb.gz", StackFormat::Pprof),
        (".pprof", StackFormat::Pprof),
        (".otlp", StackFormat::Otlp),
        (".jsonl", StackFormat::Jsonl),
        (".folded", StackFormat::Folded),
        (".collapsed", StackFormat::Folded),
    ];
    let ending = endings.iter().find(|(ending, _)| name.ends_with(ending));
    ending.map(|(_, format)| *format)
}

/// Returns the names of traces without their folders.
pub fn name(traces: &[PathBuf]) -> String {
    let names = traces
        .iter()
        .map(|path| path.file_name().unwrap_or(path.as_os_str()));
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let of = |name: &str| format_of(Path::new(name));
        assert_eq!(of("a/b.SVG"), Some(StackFormat::Svg));
        assert_eq!(of("cpu.pb.gz"), Some(StackFormat::Pprof));
        assert_eq!(of("x.speedscope.json"), Some(StackFormat::Speedscope));
        assert_eq!(of("x.json"), None);
        assert_eq!(of("x.txt"), None);
    }
}
