//! The command lines of addr2line and llvm-symbolizer: `symbolize --style gnu` and `--style llvm`
//! accept their options with the same meaning, so that an alias can replace either tool.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use chronosym_symbols::style::{Functions, Shape, Style};

use super::parts::Usage;
use crate::units::parse_address;

/// Settings from a tool's options.
#[derive(Clone, Debug, Default)]
pub struct Tool {
    pub shape: Shape,
    /// Whether names are demangled.
    pub demangle: bool,
    /// The section whose start addresses are relative to.
    pub section: Option<String>,
    /// Subtracted from each address.
    pub adjust: u64,
    /// The build ID of the file that addresses are in.
    pub build_id: Option<String>,
    /// Whether paths are printed without the compilation directory.
    pub relative_paths: bool,
    /// Whether code that belongs to no line has that of earlier code.
    pub skip_line_zero: bool,
    /// Whether answers are llvm-symbolizer's JSON.
    pub is_json: bool,
    /// Whether standard input is a text with symbolizer markup.
    pub filters_markup: bool,
}

/// A tool's command line, translated.
#[derive(Debug)]
pub struct Translated {
    pub args: Vec<OsString>,
    pub tool: Tool,
}

/// An option of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    Object,
    Functions,
    Inlines,
    NoInlines,
    Demangle,
    NoDemangle,
    BaseNames,
    Addresses,
    Pretty,
    Section,
    Adjust,
    BuildId,
    Processor,
    Rva,
    Folder,
    /// A DWARF package.
    Package,
    Offline,
    Output,
    SourceText,
    RelativeNames,
    SkipLineZero,
    Verbose,
    Markup,
    Help,
    Version,
    /// Has no effect here; with the number of its values.
    Nothing,
    NothingOfValue,
    /// GSYM files.
    Unsupported,
}

use Means::{
    Addresses, Adjust, BaseNames, BuildId, Demangle, Folder, Functions as Function, Help, Inlines,
    Markup, NoDemangle, NoInlines, Nothing, NothingOfValue, Object, Offline, Output, Package,
    Pretty, Processor, RelativeNames, Rva, Section, SkipLineZero, SourceText, Unsupported, Verbose,
    Version,
};

/// Options of addr2line (binutils 2.40).
const GNU: &[(&str, Means)] = &[
    ("-a", Addresses),
    ("--addresses", Addresses),
    ("-b", NothingOfValue),
    ("--target", NothingOfValue),
    ("-C", Demangle),
    ("--demangle", Demangle),
    ("-e", Object),
    ("--exe", Object),
    ("-f", Function),
    ("--functions", Function),
    ("-i", Inlines),
    ("--inlines", Inlines),
    ("-j", Section),
    ("--section", Section),
    ("-p", Pretty),
    ("--pretty-print", Pretty),
    ("-r", Nothing),
    ("--no-recurse-limit", Nothing),
    ("--no-recursion-limit", Nothing),
    ("-R", Nothing),
    ("--recurse-limit", Nothing),
    ("--recursion-limit", Nothing),
    ("-s", BaseNames),
    ("--basenames", BaseNames),
    ("-h", Help),
    ("-H", Help),
    ("--help", Help),
    ("-v", Version),
    ("-V", Version),
    ("--version", Version),
];

/// Options of llvm-symbolizer (14 to 22).
const LLVM: &[(&str, Means)] = &[
    ("-a", Addresses),
    ("--addresses", Addresses),
    ("--print-address", Addresses),
    ("--adjust-vma", Adjust),
    ("-C", Demangle),
    ("--demangle", Demangle),
    ("--no-demangle", NoDemangle),
    ("-e", Object),
    ("--exe", Object),
    ("--obj", Object),
    ("-f", Function),
    ("--functions", Function),
    ("-i", Inlines),
    ("--inlines", Inlines),
    ("--inlining", Inlines),
    ("--no-inlines", NoInlines),
    ("-p", Pretty),
    ("--pretty-print", Pretty),
    ("-s", BaseNames),
    ("--basenames", BaseNames),
    ("--relative-address", Rva),
    ("--build-id", BuildId),
    ("--default-arch", Processor),
    ("--debug-file-directory", Folder),
    ("--fallback-debug-path", Folder),
    ("--dsym-hint", Folder),
    ("--no-debuginfod", Offline),
    ("--output-style", Output),
    ("--debuginfod", Nothing),
    ("--dia", Nothing),
    ("--disable-gsym", Nothing),
    ("--no-untag-addresses", Nothing),
    ("--use-native-pdb-reader", Nothing),
    ("--use-symbol-table", Nothing),
    ("--cache-size", NothingOfValue),
    ("--dwp", Package),
    ("--filter-markup", Markup),
    ("--color", Nothing),
    ("--gsym-file-directory", Unsupported),
    ("--print-source-context-lines", SourceText),
    ("--relativenames", RelativeNames),
    ("--skip-line-zero", SkipLineZero),
    ("--verbose", Verbose),
    ("--help", Help),
    ("-v", Version),
    ("--version", Version),
];

impl Means {
    /// Returns whether the next argument is its value, if none is attached.
    fn takes_value(self) -> bool {
        matches!(
            self,
            Object
                | Section
                | Adjust
                | BuildId
                | Processor
                | Folder
                | Package
                | Output
                | SourceText
                | NothingOfValue
        )
    }
}

/// Translates a command line of `symbolize` in the style of a tool; `None` for all others.
/// `takes_value` states whether an option of this program has a value; `None` for other options.
///
/// # Errors
/// An option of the tool is not supported, or its value is invalid.
pub fn translate(
    args: &[OsString],
    takes_value: &dyn Fn(&str) -> Option<bool>,
) -> Result<Option<Translated>> {
    let is_it = |arg: &OsString| arg == "symbolize";
    let Some(start) = args.iter().skip(1).position(is_it) else {
        return Ok(None);
    };
    let (front, rest) = args.split_at(start.saturating_add(2));
    let Some(style) = style_of(rest) else {
        return Ok(None);
    };
    let mut reader = Reader::new(style, takes_value);
    reader.out.extend_from_slice(front);
    reader.read(with_files(rest)?)?;
    Ok(Some(reader.finish()))
}

/// The style of a tool that the arguments select.
fn style_of(args: &[OsString]) -> Option<Style> {
    let mut values = args.iter().enumerate().filter_map(|(at, arg)| {
        let arg = arg.to_str()?;
        match arg.strip_prefix("--style=") {
            Some(value) => Some(value),
            None => (arg == "--style").then(|| args.get(at.checked_add(1)?)?.to_str())?,
        }
    });
    let style = values.next_back()?.parse::<Style>().ok()?;
    style.dialect().map(|_| style)
}

/// Returns the arguments with those of response files (`@FILE`) inserted.
fn with_files(args: &[OsString]) -> Result<VecDeque<OsString>> {
    let mut all = VecDeque::new();
    for arg in args {
        match arg.to_str().and_then(|arg| arg.strip_prefix('@')) {
            Some(path) if fs::metadata(path).is_ok() => {
                let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
                all.extend(text.split_whitespace().map(OsString::from));
            }
            _ => all.push_back(arg.clone()),
        }
    }
    Ok(all)
}

fn find(table: &[(&str, Means)], name: &str) -> Option<Means> {
    let found = table.iter().find(|(own, _)| *own == name);
    found.map(|(_, means)| *means)
}

struct Reader<'t> {
    style: Style,
    takes_value: &'t dyn Fn(&str) -> Option<bool>,
    out: Vec<OsString>,
    tool: Tool,
    /// Whether any option states a source of symbols.
    has_source: bool,
    /// The options of the tool that were given.
    given: Vec<Means>,
    processor: Option<String>,
    objects: Vec<OsString>,
}

impl<'t> Reader<'t> {
    fn new(style: Style, takes_value: &'t dyn Fn(&str) -> Option<bool>) -> Self {
        Reader {
            style,
            takes_value,
            out: Vec::new(),
            tool: Tool {
                demangle: true,
                ..Tool::default()
            },
            has_source: false,
            given: Vec::new(),
            processor: None,
            objects: Vec::new(),
        }
    }

    fn read(&mut self, mut args: VecDeque<OsString>) -> Result<()> {
        let table = if self.style == Style::Gnu { GNU } else { LLVM };
        let find = |name: &str| find(table, name);
        while let Some(arg) = args.pop_front() {
            let Some(text) = arg.to_str().filter(|text| text.len() > 1) else {
                self.out.push(arg);
                continue;
            };
            if text == "--" {
                self.out.push(arg);
                self.out.extend(args.drain(..));
                continue;
            }
            // LLVM's long options have one dash or two.
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text, None),
            };
            let long = format!("--{}", name.trim_start_matches('-'));
            let is_long = self.style == Style::Llvm && name.len() > 2 && find(&long).is_some();
            if text.starts_with("--") || text.starts_with('-') && is_long {
                let means = match find(&long) {
                    None if self.style == Style::Gnu => self.abbreviated(&long)?,
                    means => means,
                };
                match means {
                    Some(means) => self.option(&long, means, value.map(Into::into), &mut args)?,
                    None => self.other(&arg, name, value.is_some(), &mut args),
                }
            } else if let Some(letters) = text.strip_prefix('-') {
                self.letters(letters, &arg, find, &mut args)?;
            } else {
                self.out.push(arg);
            }
        }
        Ok(())
    }

    /// Finds an option of addr2line by the start of its name.
    fn abbreviated(&self, name: &str) -> Result<Option<Means>> {
        if (self.takes_value)(name).is_some() {
            return Ok(None);
        }
        let starts = |(own, _): &&(&str, Means)| own.starts_with(name);
        let mut meant: Vec<Means> = GNU.iter().filter(starts).map(|(_, means)| *means).collect();
        meant.dedup();
        match *meant {
            [] => Ok(None),
            [means] => Ok(Some(means)),
            _ => bail!(Usage(format!("{name} is ambiguous"))),
        }
    }

    /// An option of ours.
    fn other(&mut self, arg: &OsStr, name: &str, has_value: bool, args: &mut VecDeque<OsString>) {
        // These state where addresses are, as --obj does.
        const SOURCES: [&str; 7] = [
            "--obj",
            "--pdb",
            "--trace",
            "--maps",
            "--process-maps",
            "--symbols",
            "--trust-trace-paths",
        ];
        self.has_source |= SOURCES.contains(&name);
        self.out.push(arg.to_owned());
        if !has_value && (self.takes_value)(name) == Some(true) {
            self.out.extend(args.pop_front());
        }
    }

    /// Short options, of which the last may have a value: `-fiCe FILE`, `-f=short`.
    fn letters(
        &mut self,
        letters: &str,
        arg: &OsStr,
        find: impl Fn(&str) -> Option<Means>,
        args: &mut VecDeque<OsString>,
    ) -> Result<()> {
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let rest = letters.get(at + letter.len_utf8()..).unwrap_or_default();
            let Some(means) = find(&name) else {
                if at > 0 {
                    bail!(Usage(format!("{name} in {} is unknown", arg.display())));
                }
                self.out.push(arg.to_owned());
                let is_output = letter == 'o' && rest.is_empty();
                self.out
                    .extend(is_output.then(|| args.pop_front()).flatten());
                return Ok(());
            };
            let value = rest.strip_prefix('=').or_else(|| {
                let is_value = means.takes_value() && !rest.is_empty();
                is_value.then_some(rest)
            });
            self.option(&name, means, value.map(Into::into), args)?;
            if value.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn option(
        &mut self,
        name: &str,
        means: Means,
        value: Option<OsString>,
        args: &mut VecDeque<OsString>,
    ) -> Result<()> {
        let value = match (value, means.takes_value()) {
            (Some(value), _) => Some(value),
            (None, true) => {
                let value = args.pop_front();
                Some(value.ok_or_else(|| Usage(format!("{name} needs a value")))?)
            }
            (None, false) => None,
        };
        let text = || {
            value
                .as_ref()
                .map(|value| value.to_string_lossy().into_owned())
        };
        let is_false = text().is_some_and(|text| text == "false");
        self.given.push(means);
        match means {
            Object => {
                self.has_source = true;
                self.objects.extend(value);
            }
            Function => {
                self.tool.shape.functions = match text().as_deref() {
                    None | Some("linkage") => Functions::Linkage,
                    Some("short") => Functions::Short,
                    Some("none") => Functions::None,
                    Some(other) => {
                        bail!(Usage(format!("{name}={other}: not none, short, linkage")))
                    }
                };
            }
            NoInlines => self.tool.shape.is_innermost = true,
            Inlines => self.tool.shape.is_innermost = is_false,
            Demangle => self.tool.demangle = !is_false,
            NoDemangle => self.tool.demangle = false,
            BaseNames => self.tool.shape.has_base_names = true,
            Addresses => self.tool.shape.has_addresses = true,
            Pretty => self.tool.shape.is_pretty = true,
            Section => self.tool.section = text(),
            Adjust => {
                let number = text().and_then(|text| parse_address(&text));
                let number = number.ok_or_else(|| Usage(format!("{name} needs a number")))?;
                self.tool.adjust = number;
            }
            BuildId => {
                self.has_source = true;
                self.tool.build_id = text();
            }
            Processor => self.processor = text(),
            Rva => self.out.push("--rva".into()),
            Folder => {
                self.out.push("--symbols".into());
                self.out.extend(value);
            }
            Package => {
                // The packages of a folder are found by the ids of their units.
                let folder = value.as_deref().map(Path::new).and_then(Path::parent);
                let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
                self.out.push("--symbols".into());
                self.out.push(folder.unwrap_or(Path::new(".")).into());
            }
            Offline => self.out.push("--offline".into()),
            Output => match text().as_deref() {
                Some("LLVM") => self.tool.is_json = false,
                Some("JSON") => self.tool.is_json = true,
                Some("GNU") => self.out.push("--style=gnu".into()),
                _ => bail!(Usage(format!("{name} is one of LLVM, GNU and JSON"))),
            },
            RelativeNames => self.tool.relative_paths = true,
            SkipLineZero => self.tool.skip_line_zero = true,
            Verbose => {}
            Markup => self.tool.filters_markup = true,
            SourceText => {
                let number = text().and_then(|text| text.parse().ok());
                let number = number.ok_or_else(|| Usage(format!("{name} needs a number")))?;
                self.tool.shape.context_lines = number;
            }
            Help => self.out.push("--help".into()),
            Version => {
                self.out.truncate(1);
                self.out.push("--version".into());
                args.clear();
            }
            Nothing | NothingOfValue => {}
            Unsupported => bail!(Usage(format!(
                "{name} is not supported: GSYM files are not read"
            ))),
        }
        Ok(())
    }

    fn finish(mut self) -> Translated {
        let has = |means| self.given.contains(&means);
        self.tool.shape.has_starts = self.tool.is_json || has(Verbose);
        // Without an option of addr2line, `--style gnu` prints all that it can.
        if self.style == Style::Gnu && (!self.given.is_empty() || !self.has_source) {
            if !has(Function) {
                self.tool.shape.functions = Functions::None;
            }
            self.tool.demangle = has(Demangle);
            self.tool.shape.is_innermost = !has(Inlines);
            if !self.has_source {
                self.objects.push("a.out".into());
            }
        }
        let mut objects = Vec::new();
        for mut object in self.objects {
            if let Some(processor) = &self.processor {
                object.push(":");
                object.push(processor);
            }
            objects.push("--obj".into());
            objects.push(object);
        }
        // Arguments after `--` are not options.
        let end = self.out.iter().position(|arg| arg == "--");
        let end = end.unwrap_or(self.out.len());
        self.out.splice(end..end, objects);
        Translated {
            args: self.out,
            tool: self.tool,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command line that a tool's means here, and what is printed.
    fn translated(line: &str) -> (String, Tool) {
        let args = ["chronosym", "symbolize"].into_iter();
        let args: Vec<OsString> = args.chain(line.split(' ')).map(Into::into).collect();
        let takes_value = |name: &str| match name {
            "--symbols" | "--style" | "--obj" | "--base" => Some(true),
            "--offline" => Some(false),
            _ => None,
        };
        let translated = translate(&args, &takes_value).unwrap().unwrap();
        let args = translated.args.iter().skip(2);
        let args: Vec<_> = args.map(|arg| arg.to_string_lossy()).collect();
        (args.join(" "), translated.tool)
    }

    #[test]
    fn options_have_the_meaning_of_the_tool() {
        let (args, tool) = translated("--style gnu -fCse prog 10 --symbols -f");
        assert_eq!(args, "--style gnu 10 --symbols -f --obj prog");
        let shape = tool.shape;
        assert_eq!(shape.functions, Functions::Linkage);
        assert!(tool.demangle && shape.has_base_names && shape.is_innermost);

        let (args, tool) = translated("--style=gnu -j .text -eprog -ip");
        assert_eq!(args, "--style=gnu --obj prog");
        assert_eq!(tool.section.as_deref(), Some(".text"));
        assert!(!tool.demangle && !tool.shape.is_innermost && tool.shape.is_pretty);
        assert_eq!(tool.shape.functions, Functions::None);

        let (args, _) = translated("--style gnu 10");
        assert_eq!(args, "--style gnu 10 --obj a.out");
        let (args, tool) = translated("--style gnu --obj prog 10");
        assert_eq!(args, "--style gnu --obj prog 10");
        assert_eq!((tool.shape, tool.demangle), (Shape::default(), true));

        let (args, tool) = translated("--style llvm -obj=prog -demangle=false -f=short -a -i 10");
        assert_eq!(args, "--style llvm 10 --obj prog");
        assert_eq!(tool.shape.functions, Functions::Short);
        assert!(!tool.demangle && tool.shape.has_addresses && !tool.shape.is_innermost);
        let (args, tool) = translated("--style llvm --default-arch arm64 --no-inlines --exe prog");
        assert_eq!(args, "--style llvm --obj prog:arm64");
        assert!(tool.shape.is_innermost);
        let (args, _) = translated("--style llvm --dwp=out/app.dwp -e prog 10");
        assert_eq!(args, "--style llvm --symbols out 10 --obj prog");
        let (args, _) = translated("--style llvm --dwp app.dwp -e prog");
        assert_eq!(args, "--style llvm --symbols . --obj prog");
        let (args, _) = translated("--style llvm -e prog -- 10");
        assert_eq!(args, "--style llvm --obj prog -- 10");
        let (args, _) = translated("--style llvm -v");
        assert_eq!(args, "");
    }

    #[test]
    fn long_options_of_addr2line_are_abbreviated() {
        let (args, tool) =
            translated("--style gnu --exe=prog --func --inl --dem --no-r --sect .text");
        assert_eq!(args, "--style gnu --obj prog");
        assert!(tool.demangle && !tool.shape.is_innermost);
        assert_eq!(tool.shape.functions, Functions::Linkage);
        assert_eq!(tool.section.as_deref(), Some(".text"));
        // An option of ours is not an abbreviation.
        let (args, tool) = translated("--style gnu --obj prog --base 10 --offline --p");
        assert_eq!(args, "--style gnu --obj prog --base 10 --offline");
        assert!(tool.shape.is_pretty && !tool.shape.has_base_names);
        let args = ["chronosym", "symbolize", "--style", "gnu", "--e"].map(OsString::from);
        assert!(
            translate(&args, &|_| None)
                .unwrap_err()
                .to_string()
                .contains("needs a value")
        );
        let args = ["chronosym", "symbolize", "--style", "gnu", "--"].map(OsString::from);
        assert!(translate(&args, &|_| None).is_ok());
    }

    #[test]
    fn other_styles_are_not_translated() {
        let args = ["chronosym", "symbolize", "--style", "json", "-f"].map(OsString::from);
        assert!(translate(&args, &|_| None).unwrap().is_none());
    }
}
