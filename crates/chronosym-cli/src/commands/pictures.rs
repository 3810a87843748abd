//! The formats of `stacks` that other programs show.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chronosym_export::{PageFacts, Series};

use crate::args::StackFormat;

/// The format that a file's name tells.
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
    let told = endings.iter().find(|(ending, _)| name.ends_with(ending));
    told.map(|(_, format)| *format)
}

/// Whether [`write()`] writes it.
pub fn is_picture(format: StackFormat) -> bool {
    !matches!(
        format,
        StackFormat::Folded | StackFormat::Jsonl | StackFormat::Text
    )
}

/// Writes a format that is made of a series; nothing where [`is_picture`] says no.
pub fn write(
    format: StackFormat,
    series: &Series,
    traces: &[PathBuf],
    notes: &[String],
    out: &mut impl Write,
) -> io::Result<()> {
    match format {
        StackFormat::Svg => chronosym_export::write_svg(series, out),
        StackFormat::Html => {
            let names = traces
                .iter()
                .map(|path| path.file_name().unwrap_or(path.as_os_str()));
            let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
            let facts = PageFacts::new(names.join(", "), notes.to_vec());
            chronosym_export::write_html(series, &facts, out)
        }
        StackFormat::Speedscope => chronosym_export::write_speedscope(series, out),
        StackFormat::Firefox => chronosym_export::write_firefox(series, out),
        StackFormat::Pprof => chronosym_export::write_pprof(series, out),
        StackFormat::Otlp => chronosym_export::write_otlp(series, out),
        StackFormat::Folded | StackFormat::Jsonl | StackFormat::Text => Ok(()),
    }
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
